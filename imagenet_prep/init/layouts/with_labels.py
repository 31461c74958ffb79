"""Labels file: files in any folders or in tars, and a table,
list or JSON document that names each with its label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.init.inspection import Inspection, main_content
from imagenet_prep.init.label_columns import class_candidates, separator_of
from imagenet_prep.init.labels_search import LabelsFile, is_in_test, judge_labels, last_names
from imagenet_prep.init.layouts.class_folders import Shape, shape_of
from imagenet_prep.init.proposal import (
    CERTAIN,
    LIKELY,
    ONLY_IF_ASKED,
    POSSIBLE,
    Alternative,
    Interpretation,
    Proposal,
)
from imagenet_prep.init.split_lists import (
    SplitLists,
    find_split_lists,
    find_split_table,
    read_split_lists,
)
from imagenet_prep.init.split_options import asked_folders, asked_lists
from imagenet_prep.init.table_forms import Sought
from imagenet_prep.recipes.labels_file import LABELS, LINES
from imagenet_prep.recipes.path_matching import without_ending
from imagenet_prep.recipes.splits import split_name, splits_above
from imagenet_prep.recipes.typed_values import flat_labels
from imagenet_prep.text import listed, number_of

_MOST_CANDIDATES = 3


def _recognise(inspection: Inspection) -> Interpretation | None:
    """A file names at least half of the images."""
    if not inspection.items:
        return None
    tables = _in_order(inspection)
    if not tables:
        return _refused(inspection)
    shape = shape_of(inspection.items)
    tables[0] = table = _named_by_folders(inspection.items, shape, tables[0])
    certainty = _certainty(inspection.items, shape, table)
    if table.has_labels and _has_several(table)[1]:
        certainty = ONLY_IF_ASKED  # several-labels is the layout
    proposal, lists = _propose(inspection, table)
    return _read(inspection, tables, certainty, proposal, lists=lists)


def _recognise_in_tars(inspection: Inspection) -> Interpretation | None:
    """A file names at least half of the images in tars."""
    tables = _in_order(inspection)
    content = main_content(inspection.members)
    if inspection.items or content is None or not tables or not tables[0].has_labels:
        return None
    table = tables[0]
    tars = list(inspection.archives)
    proposal = Proposal(
        "tar", content, _kept(inspection.members, table), paths={"": tars}, table=table
    )
    certainty = _certainty(inspection.members, shape_of(inspection.members), table)
    return _read(inspection, tables, certainty, proposal, alone=tars)


def _in_order(inspection: Inspection) -> list[LabelsFile]:
    """The tables, the likeliest first: the one that is asked for,
    those with labels, those that name more images.
    """
    asked = inspection.options.label
    tables = inspection.labels
    if asked is not None:
        tables = [table for table in (*inspection.labels, *inspection.partial) if table.label]
    return sorted(
        tables,
        key=lambda table: (
            not table.has_labels,
            not table.candidates,
            -len({*table.rows}),
            not table.files,
            table.where.count("/"),
        ),
    )


def _refused(inspection: Inspection) -> Interpretation | None:
    """The faults of the files that can't be taken; None if there are none."""
    faults = []
    for refusal in (each for each in inspection.refusals if each.is_most):
        error = refusal.error
        # a file next to the folder may be about other images, and can be left out
        if refusal.where.startswith("../"):
            hint = f"{error.hint}; to leave the file out: {inspection.command_as('unlabelled')}"
            error = InputError(error.what, error.detail, hint).with_choices(error.choices)
        faults.append(error)
    if not faults:
        return None
    if shape_of(inspection.items).has_classes:
        return Interpretation(ONLY_IF_ASKED, (), "a labels file", faults=faults)
    choice = (
        f"  0 of {len(inspection.items):,} images, 0 classes: {inspection.command_as('unlabelled')}"
    )
    faults[-1] = faults[-1].with_choices([*faults[-1].choices, choice])
    return Interpretation(CERTAIN, (), "a labels file", faults=faults)


def _read(
    inspection: Inspection,
    tables: Sequence[LabelsFile],
    certainty: int,
    proposal: Proposal,
    alone: Sequence[str] = (),
    lists: frozenset[str] = frozenset(),
) -> Interpretation:
    table = tables[0]
    items = inspection.items or inspection.members
    meaning = _meaning(table)
    evidence = (
        _evidence(inspection, table),
        *_remarks(inspection, table, items),
        *_remarks_on_lists(lists),
    )
    lost, passed = _unlabelled(inspection, table, items)
    if inspection.options.label is not None or inspection.options.image is not None:
        certainty = CERTAIN + 2
    return Interpretation(
        certainty,
        evidence,
        meaning,
        proposal,
        containers=alone,
        losses=lost,
        skip_notes=passed,
        labelled=table.labelled,
        classes=table.classes,
        alternatives=_ways(inspection, tables, items),
        options={}
        if table.label.lower() in ("", *LABELS)
        else _options(inspection, table, table.label, items),
        list_files=lists,
    )


def _meaning(table: LabelsFile) -> str:
    """The meaning of a table for the images, in a question."""
    if len(table.images) > 1:
        return f"several columns of {table.place} name images"
    if table.has_labels:
        return f"{table.place} has the labels"
    if table.candidates:
        return f"a column of {table.place} is the class"
    return f"{table.place} has columns, and no class"


def _ways(
    inspection: Inspection, tables: Sequence[LabelsFile], items: Sequence[str]
) -> list[Alternative]:
    """The ways that a user must choose from: columns of paths or of classes,
    or tables that contradict each other.
    """
    table = tables[0]
    if table.images and inspection.options.image is None:
        options = _options(inspection, table, "", items)
        named = len({*table.rows} - {-1})
        return [
            Alternative(named, table.classes, {**options, "image": name}) for name in table.images
        ][:_MOST_CANDIDATES]
    if (
        table.splits is not None
        and not table.splits.is_sure
        and table.has_labels
        and not table.files
    ):
        splits = {split: value for value, split in table.splits.splits.items()}
        options = _options(inspection, table, "", items)
        divided = Alternative(table.labelled, table.classes, {**options, "splits": splits})
        return [
            divided,
            Alternative(table.labelled, table.classes, {**options, "as": "with-labels"}),
        ]
    if table.candidates and not table.has_labels:
        ways = []
        if len(table.candidates) == 1:
            ways.append(Alternative(0, 0, {"as": "unlabelled"}))
        for candidate in table.candidates[:_MOST_CANDIDATES]:
            labelled = len({*table.rows} - {-1})
            ways.append(
                Alternative(
                    labelled,
                    candidate.classes,
                    _options(inspection, table, candidate.option, items),
                )
            )
        return ways
    rivals = [table]
    for other in tables[1:]:
        if other.has_labels and all(_contradicts(other, rival) for rival in rivals):
            rivals.append(other)
    if len(rivals) == 1 or inspection.options.label is not None:
        return []
    ways = []
    for rival in rivals[:_MOST_CANDIDATES]:
        option = f"{rival.where}:{rival.label}" if rival.label else rival.where
        ways.append(
            Alternative(rival.labelled, rival.classes, _options(inspection, rival, option, items))
        )
    return ways


def _options(
    inspection: Inspection, table: LabelsFile, label: str, items: Sequence[str]
) -> dict[str, object]:
    """The options that take a column; the layout, too,
    if images would be left out or folders contradict it.
    """
    options: dict[str, object] = {"label": label}
    if _unlabelled(inspection, table, items)[0]:
        options["as"] = "with-labels" if inspection.items else "tars-with-labels"
    return options


def _contradicts(one: LabelsFile, other: LabelsFile) -> bool:
    """Whether two tables give an image different classes:
    a class has one name each, or a name and a number.
    """
    labels = one.label_by_row()
    pairs = [(labels[row], label) for row, label in other.label_by_row().items() if row in labels]
    return bool(pairs) and not _is_one_to_one(pairs)


def _is_one_to_one(pairs: Iterable[tuple[object, object]]) -> bool:
    """Whether each left value goes with one right value,
    and no name stands for another class on the other side.
    """
    different = {(str(left), str(right)) for left, right in pairs}
    lefts, rights = {left for left, _ in different}, {right for _, right in different}
    if not len(different) == len(lefts) == len(rights):
        return False
    numbers = all(text.lstrip("-").isdigit() for text in (*lefts, *rights))
    return numbers or all(
        left == right or (left not in rights and right not in lefts) for left, right in different
    )


def _recognise_several(inspection: Inspection) -> Interpretation | None:
    """A file that names every image, whose cells have several labels,
    or some images in several lines.
    """
    if not inspection.items:
        return None
    first = next(
        (found for found in inspection.labels if found.has_labels and not found.table.is_several),
        None,
    )
    sign = _has_several(first)[0] if first else LINES
    names = [first.where] if first else [refusal.where for refusal in inspection.refusals]
    sought = Sought(
        inspection.folder, inspection.items, last_names(inspection.items), inspection.options
    )
    judged = [judge_labels(sought, name, sign) for name in names]
    if not any(judged):
        stems = replace(sought, known=last_names(map(without_ending, inspection.items)))
        judged = [judge_labels(stems, name, sign) for name in names]
    table = next(
        (each for each in judged if isinstance(each, LabelsFile) and each.has_labels), None
    )
    if table is None or not sign:
        return None
    certainty = (
        _certainty(inspection.items, shape_of(inspection.items), first) if first else ONLY_IF_ASKED
    )
    every = sorted(map(str, set(flat_labels(table.table.labels or ())) - {None}))
    how = "a line for each" if sign == LINES else f"with {sign!r} between them"
    evidence = f"{_evidence(inspection, table)}, and several labels, {how}: {listed(every)}"
    lost, passed = _unlabelled(inspection, table, inspection.items)
    proposal, lists = _propose(inspection, table)
    return Interpretation(
        certainty,
        (evidence, *_remarks_on_lists(lists)),
        f"an image can have several labels, {how}",
        proposal,
        losses=lost,
        skip_notes=passed,
        labelled=table.labelled,
        classes=len(every),
        list_files=lists,
    )


def _remarks_on_lists(lists: frozenset[str]) -> list[str]:
    """The note on the lists that divide the images."""
    return [f"splits: as {listed(sorted(lists))} divides the images"] if lists else []


_PLURALS = (
    "labels",
    "tags",
    "classes",
    "attributes",
    "ids",
    "categories",
    "genres",
    "findings",
    "keywords",
)


def _has_several(table: LabelsFile) -> tuple[str, bool]:
    """The sign between several labels in a cell, and whether it is sure:
    the column's name is a plural, or the sign.
    """
    sign, is_sure = separator_of(table.table.labels or ())
    if table.label.lower().rpartition("_")[2].rpartition(" ")[2] not in _PLURALS:
        return sign, is_sure
    cells = {label for label in table.table.labels or () if isinstance(label, str)}
    parts = [part for cell in cells for part in cell.split()]
    is_spaced = not sign and len(set(parts)) < len(parts) and len(parts) > len(cells)
    return (" ", True) if is_spaced else (sign, is_sure or bool(sign))


def _named_by_folders(items: Sequence[str], shape: Shape, table: LabelsFile) -> LabelsFile:
    """A table of numbers with the names of the class folders, or of the inner ones,
    if each number is one folder.
    """
    labels = table.label_by_row()
    if (
        not shape.has_classes
        or not labels
        or not all(isinstance(label, int) for label in labels.values())
    ):
        return table
    for by_name in (
        shape.class_by_file(),
        {name: name.rpartition("/")[0].rpartition("/")[2] for name in items},
    ):
        if any(items[row] not in by_name for row in labels):
            continue
        pairs = {(label, by_name[items[row]]) for row, label in labels.items()}
        numbers, folders = {label for label, _ in pairs}, {folder for _, folder in pairs}
        if len(pairs) == len(numbers) == len(folders) > 1 and folders != set(map(str, numbers)):
            return replace(table, names={str(label): folder for label, folder in sorted(pairs)})
    return table


def _kept(items: Sequence[str], table: LabelsFile) -> list[str]:
    """The images that stay: without a label none does, if the table has labels."""
    if not table.lost:
        return list(items)
    labels = table.label_by_row()
    rows = set(labels) if table.has_labels else {row for row in table.rows if row >= 0}
    rows -= {
        row
        for row, split in zip(table.rows, table.table.splits or (), strict=False)
        if split is None
    }
    return [name for row, name in enumerate(items) if row in rows]


def _propose(inspection: Inspection, table: LabelsFile) -> tuple[Proposal, frozenset[str]]:
    """Patterns of files, the labels file, and splits by folders or by lists;
    and the files of these lists.
    """
    assert inspection.content is not None
    items = _kept(inspection.items, table)
    proposal = Proposal("files", inspection.content, items, table=table)
    if table.table.splits is not None:
        return proposal, frozenset()
    folders = asked_folders(inspection) or {}
    is_whole = bool(folders) and all(
        name.startswith(tuple(f"{folder}/" for folder in folders)) for name in items
    )
    splits = folders if is_whole else splits_above(items)
    if splits and not asked_lists(inspection):
        return replace(proposal, splits=splits), frozenset()
    lists = _lists_of(inspection, table, items)
    if lists is None:
        return proposal, frozenset()
    return proposal.divide(lists), frozenset(lists.files.values())


def _lists_of(inspection: Inspection, table: LabelsFile, items: Sequence[str]) -> SplitLists | None:
    """The lists that divide the images of a table: those that the user names, or the only ones;
    or another table.
    """
    if files := asked_lists(inspection):
        return read_split_lists(inspection.folder, files, items, "")
    several = [
        lists
        for lists in find_split_lists(inspection, items, "")
        if table.where not in lists.files.values()
    ]
    if several:
        return several[0] if len(several) == 1 else None
    return find_split_table(inspection, items, table.places)


def _evidence(inspection: Inspection, table: LabelsFile) -> str:
    column = f" in its column `{table.column}`" if table.column else ""
    total = len(inspection.items or inspection.members)
    named = len({*table.rows} - {-1})
    evidence = f"{table.place} names {named:,} of {total:,} {inspection.noun}s{column}"
    if table.label and table.label.lower() not in LABELS:
        which = "the columns" if "," in table.label else "the column"
        evidence += f"; {which} {table.label} gives {number_of(table.classes, 'class', 'classes')}"
    return evidence


def _remarks(inspection: Inspection, table: LabelsFile, items: Sequence[str]) -> list[str]:
    """The notes on names without an ending, on a table without a class, and on its splits."""
    remarks = []
    row = next((row for row in table.rows if row >= 0), -1)
    text = table.table.paths[list(table.rows).index(row)] if row >= 0 else ""
    if row >= 0 and not text.lower().endswith(items[row].rpartition(".")[2].lower()):
        remarks.append(f"its names have no ending: {text} is {items[row]}")
    if table.table.splits is not None:
        values = sorted({value for value in table.table.splits if value is not None})
        if table.splits is not None:
            splits = table.splits.splits
            values = [
                value if split_name(value) == splits[value] else f"{value} is {splits[value]}"
                for value in values
            ]
        how = "a file of each" if table.files else f"by its column `{table.options.get('split')}`"
        remarks.append(f"splits: {listed(values)}, {how}")
    if not table.has_labels and table.table.columns and not table.candidates:
        names = listed(table.table.columns)
        way = inspection.command(label=next(iter(table.table.columns)))
        remarks.append(
            f"no class: no column ({names}) looks like classes; one can be made them: {way}"
        )
    return remarks


def _unlabelled(
    inspection: Inspection, table: LabelsFile, items: Sequence[str]
) -> tuple[list[InputError], list[str]]:
    """The losses of a table; but images for a test, which have no label anywhere, are but noted."""
    labels = table.label_by_row() if table.has_labels else dict.fromkeys(table.rows)
    without = [name for row, name in enumerate(items) if row not in labels]
    if not without or len(table.lost) > 1 or not _are_for_test(inspection, without, items):
        return list(table.lost), []
    count = number_of(
        len(without), f"{inspection.noun} for a test is", f"{inspection.noun}s for a test are"
    )
    return [], [f"{count} left out, without a label: {listed(without)}"]


def _are_for_test(inspection: Inspection, names: Sequence[str], items: Sequence[str]) -> bool:
    """Whether images are in folders of a test,
    or a list of test images or a submission names them.
    """
    places = {name: row for row, name in enumerate(items)}
    listed_rows: set[int] = set()
    for table in (*inspection.labels, *inspection.partial):
        if table.is_of_test:
            listed_rows.update(table.rows)
    return all(is_in_test(name) or places[name] in listed_rows for name in names)


def _certainty(items: Sequence[str], shape: Shape, table: LabelsFile) -> int:
    """A table without labels is no rival of class folders;
    one with labels is, if they are others.
    """
    if not shape.has_classes:
        is_nameless = (
            table.options.get("header") is False and table.candidates and not table.has_labels
        )
        return POSSIBLE if is_nameless else CERTAIN
    if table.candidates and not table.has_labels:
        return POSSIBLE if _has_agreeing_column(items, shape, table) else LIKELY
    if not table.has_labels:
        return POSSIBLE
    folders = shape.class_by_file()
    pairs = [(folders.get(items[row], ""), label) for row, label in table.label_by_row().items()]
    if not _is_one_to_one(pairs):
        return LIKELY
    by_folder = dict(pairs)
    numbers = [by_folder[folder] for folder in shape.classes if folder in by_folder]
    if table.names and all(isinstance(label, int) for label in numbers):
        is_same = table.table.splits is None and numbers == list(
            range(numbers[0], numbers[0] + len(numbers))
        )
        return CERTAIN if not is_same and not table.lost else POSSIBLE if is_same else LIKELY
    return POSSIBLE if table.lost or shape.splits else CERTAIN


def _has_agreeing_column(items: Sequence[str], shape: Shape, table: LabelsFile) -> bool:
    """Whether one of several columns says what the folders say,
    and no other one is called as classes are.
    """
    others = 0
    agrees = False
    folders = shape.class_by_file()
    for candidate in class_candidates(table.table.columns, table.column):
        values = table.table.columns[candidate.columns[0]]
        pairs = [
            (folders.get(items[row], ""), value)
            for row, value in zip(table.rows, values, strict=True)
            if row >= 0 and value is not None
        ]
        if not candidate.is_hot and _is_one_to_one(pairs):
            agrees = True
        else:
            others += candidate.is_known
    return agrees and not others


LAYOUTS = {
    "several-labels": _recognise_several,
    "tars-with-labels": _recognise_in_tars,
    "with-labels": _recognise,
}
