"""Labels file: files in any folders or in tars, and a table,
list or JSON document that names each with its label.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint, join_hints
from imagenet_prep.init.folder_shapes import Shape, shape_of
from imagenet_prep.init.inspection import Inspection, main_content
from imagenet_prep.init.label_evidence import (
    certainty_of,
    contradicts,
    evidence_of,
    losses_of,
    remarks_on,
)
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.init.proposal import (
    CERTAIN,
    ONLY_IF_ASKED,
    Alternative,
    Interpretation,
    Proposal,
)
from imagenet_prep.init.structures.several_labels import find_separator
from imagenet_prep.init.table_proposal import kept_items, propose_files, remarks_on_lists
from imagenet_prep.recipes.labels_file import LABELS
from imagenet_prep.text import either


def _recognise(inspection: Inspection) -> Interpretation | None:
    """A file names at least half of the images."""
    if not inspection.items:
        return None
    tables = _tables_in_order(inspection)
    if not tables:
        return _refuse(inspection)
    shape = shape_of(inspection.items)
    table = _named_by_folders(inspection.items, shape, tables[0])
    tables[0] = table
    certainty = certainty_of(inspection.items, shape, table)
    if table.has_labels and find_separator(table)[1]:
        certainty = ONLY_IF_ASKED  # several-labels is the structure
    proposal, list_files = propose_files(inspection, table)
    interpretation = _interpret(inspection, tables, certainty, proposal)
    evidence = (*interpretation.evidence, *remarks_on_lists(list_files))
    return replace(interpretation, evidence=evidence, list_files=list_files)


def _recognise_in_tars(inspection: Inspection) -> Interpretation | None:
    """A file names at least half of the images in tars."""
    members = inspection.members
    content = main_content(members)
    if inspection.items or content is None:
        return None
    tables = _tables_in_order(inspection)
    if not tables or not tables[0].has_labels:
        return None
    table = tables[0]
    tars = list(inspection.archives)
    names = kept_items(members, table)
    proposal = Proposal("tar", content, names, paths={"": tars}, table=table)
    certainty = certainty_of(members, shape_of(members), table)
    interpretation = _interpret(inspection, tables, certainty, proposal)
    return replace(interpretation, containers=tars)


def _tables_in_order(inspection: Inspection) -> list[LabelsFile]:
    """The tables, the likeliest first: the one that is asked for,
    those with labels, those that name more images.
    """
    tables = inspection.labels
    if inspection.options.label is not None:
        all_tables = [*inspection.labels, *inspection.partial]
        tables = [table for table in all_tables if table.label]
    return sorted(tables, key=_place_in_order)


def _place_in_order(table: LabelsFile) -> tuple[bool, bool, int, bool, int]:
    """The key by which tables are sorted, the likeliest first."""
    row_count = len(set(table.rows))
    depth = table.name.count("/")
    return (
        not table.has_labels,
        not table.candidates,
        -row_count,
        not table.files,
        depth,
    )


def _refuse(inspection: Inspection) -> Interpretation | None:
    """The faults of the files that can't be taken; None if there are none."""
    refusals = [refusal for refusal in inspection.refusals if refusal.is_most]
    if not refusals:
        return None
    has_classes = shape_of(inspection.items).has_classes
    faults = []
    for refusal in refusals:
        error = refusal.error
        if refusal.name.startswith("../") and has_classes:  # it may be about other images
            as_folders = inspection.command_without_columns(**{"as": "class-folders"})
            leaving_out = Hint("to leave the file out: ", as_folders)
            hint = join_hints("; ", filter(None, (error.hint, leaving_out)))
            hinted_error = InputError(error.what, error.detail, hint)
            error = hinted_error.with_choices(error.choices)
        faults.append(error)
    if has_classes:
        return Interpretation(ONLY_IF_ASKED, (), "a labels file", faults=faults)
    choice = Hint("  for records without labels: ", inspection.command_unlabelled())
    last_fault = faults.pop()
    faults.append(last_fault.with_choices([*last_fault.choices, choice]))
    return Interpretation(CERTAIN, (), "a labels file", faults=faults)


def _interpret(
    inspection: Inspection, tables: Sequence[LabelsFile], certainty: int, proposal: Proposal
) -> Interpretation:
    """The images with the labels of the first table."""
    table = tables[0]
    items = inspection.items or inspection.members
    losses, skip_notes = losses_of(inspection, table, items)
    if inspection.options.label is not None or inspection.options.image is not None:
        certainty = CERTAIN + 2
    options: dict[str, object] = {}
    if table.label.lower() not in ("", *LABELS):
        options = _options(inspection, table, table.label, items)
    evidence = evidence_of(inspection, table)
    remarks = remarks_on(inspection, table, items)
    alternatives = _alternatives(inspection, tables, items)
    return Interpretation(
        certainty,
        (evidence, *remarks),
        _meaning(inspection, tables),
        proposal,
        losses=losses,
        skip_notes=skip_notes,
        labelled=table.labelled,
        classes=table.classes,
        alternatives=alternatives,
        options=options,
    )


def _meaning(inspection: Inspection, tables: Sequence[LabelsFile]) -> str:
    """The meaning of the first table for the images, or of those that contradict it, in a
    question.
    """
    table = tables[0]
    if len(table.image_columns) > 1:
        return f"several columns of {table.place} name images"
    if table.has_labels and table.splits is not None and not table.splits.is_sure:
        return f"{table.place} has the labels, and its column {table.splits.name} may be the splits"
    if table.has_labels:
        rivals = [table]
        if inspection.options.label is None:
            rivals = _rivals(tables)
        places = [rival.place for rival in rivals]
        return f"{either(places)} has the labels"
    if table.candidates:
        return f"a column of {table.place} is the class"
    return f"{table.place} has columns, and no class"


def _named_by_folders(items: Sequence[str], shape: Shape, table: LabelsFile) -> LabelsFile:
    """A table of numbers with the names of the class folders, or of the inner ones,
    if each number is one folder.
    """
    labels = table.label_by_row()
    if not shape.has_classes or not labels:
        return table
    if not all(isinstance(label, int) for label in labels.values()):
        return table
    inner_folders = {name: name.rpartition("/")[0].rpartition("/")[2] for name in items}
    for folder_by_name in (shape.class_by_file(), inner_folders):
        if all(items[row] in folder_by_name for row in labels):
            pairs: set[tuple[int, str]] = set()
            for row, label in labels.items():
                folder = folder_by_name[items[row]]
                pairs.add((label, folder))
            class_names = _name_each(pairs)
            if class_names:
                return replace(table, class_names=class_names)
    return table


def _name_each(pairs: Collection[tuple[int, str]]) -> dict[str, str]:
    """The folder of each number; none if they are not one to one, or say the same."""
    class_names = {str(number): folder for number, folder in sorted(pairs)}
    folders = set(class_names.values())
    is_one_to_one = len(pairs) == len(class_names) == len(folders) > 1
    if not is_one_to_one or folders == class_names.keys():
        return {}
    return class_names


# what a user must choose from ---------------------------------------------------------------------


def _alternatives(
    inspection: Inspection, tables: Sequence[LabelsFile], items: Sequence[str]
) -> list[Alternative]:
    """The ways that a user must choose from: columns of paths or of classes,
    or tables that contradict each other.
    """
    table = tables[0]
    if table.image_columns and inspection.options.image is None:
        return _by_image_columns(inspection, table, items)
    if table.has_labels and not table.files and _has_doubtful_splits(table):
        return _with_splits_or_without(inspection, table, items)
    if table.candidates and not table.has_labels:
        return _by_candidates(inspection, table, items)
    rivals = _rivals(tables)
    if len(rivals) == 1 or inspection.options.label is not None:
        return []
    alternatives: list[Alternative] = []
    for rival in rivals:
        label = rival.name
        if rival.label:
            label += f":{rival.label}"
        options = _options(inspection, rival, label, items)
        alternatives.append(Alternative(rival.labelled, rival.classes, options))
    return alternatives


def _by_image_columns(
    inspection: Inspection, table: LabelsFile, items: Sequence[str]
) -> list[Alternative]:
    """Each column of paths that may name the images."""
    row_count = len(table.named_rows)
    alternatives: list[Alternative] = []
    for column in table.image_columns:
        options = _options(inspection, table, "", items)
        options["image"] = column
        alternatives.append(Alternative(row_count, table.classes, options))
    return alternatives


def _has_doubtful_splits(table: LabelsFile) -> bool:
    return table.splits is not None and not table.splits.is_sure


def _with_splits_or_without(
    inspection: Inspection, table: LabelsFile, items: Sequence[str]
) -> list[Alternative]:
    """The table with a column of numbers as its splits, or as no more than numbers."""
    assert table.splits is not None
    splits = {split: value for value, split in table.splits.splits.items()}
    options = _options(inspection, table, "", items)
    with_splits = {**options, "splits": splits}
    without_splits = {**options, "as": "with-labels"}
    return [
        Alternative(table.labelled, table.classes, with_splits),
        Alternative(table.labelled, table.classes, without_splits),
    ]


def _by_candidates(
    inspection: Inspection, table: LabelsFile, items: Sequence[str]
) -> list[Alternative]:
    """Each column that may be the class; if there is one alone, also no class at all."""
    alternatives: list[Alternative] = []
    if len(table.candidates) == 1:
        alternatives.append(Alternative(0, 0, {"as": "unlabelled"}))
    for candidate in table.candidates:
        row_count = len(table.named_rows)
        options = _options(inspection, table, candidate.option, items)
        alternatives.append(Alternative(row_count, candidate.classes, options))
    return alternatives


def _rivals(tables: Sequence[LabelsFile]) -> list[LabelsFile]:
    """The first table, and those with labels that contradict it and each other."""
    rivals = [tables[0]]
    for table in tables[1:]:
        if not table.has_labels:
            continue
        if all(contradicts(table, rival) for rival in rivals):
            rivals.append(table)
    return rivals


def _options(
    inspection: Inspection, table: LabelsFile, label: str, items: Sequence[str]
) -> dict[str, object]:
    """The options that take a column; the structure, too,
    if images would be left out or folders contradict it.
    """
    options: dict[str, object] = {"label": label}
    losses, _ = losses_of(inspection, table, items)
    if losses:
        options["as"] = "with-labels" if inspection.items else "tars-with-labels"
    return options


STRUCTURES = {"tars-with-labels": _recognise_in_tars, "with-labels": _recognise}
