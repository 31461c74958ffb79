"""Labels file: files in any folders, and a CSV, TSV, JSON lines or plain text file that names each with its label."""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.labels_file import LABELS, LINES, flat_labels
from imagenet_prep.recipes.labels_search import LabelsFile, judge_labels, last_names, name_in_recipe, separator_of
from imagenet_prep.recipes.layouts import CERTAIN, LIKELY, ONLY_IF_ASKED, POSSIBLE, Proposal, Reading, as_command
from imagenet_prep.recipes.layouts.class_folders import shape_of
from imagenet_prep.recipes.splits import split_name, splits_above
from imagenet_prep.text import listed


def _recognise(inspection: Inspection) -> Reading | None:
    """A file names every image; or half of them, and a line of it is at fault."""
    several = sorted(inspection.labels, key=lambda found: not found.has_labels)
    if not several:
        faults = []
        for refusal in (each for each in inspection.refusals if each.is_most):
            error, way = refusal.error, as_command(inspection, "unlabelled")
            # a file next to the folder may be about other images, and can be left out
            hint = f"{error.hint}; to leave the file out: {way}" if refusal.where.startswith("../") else error.hint
            faults.append(InputError(error.what, error.detail, hint))
        certainty = ONLY_IF_ASKED if shape_of(inspection.items).has_classes else CERTAIN
        return Reading(certainty, (), "a labels file", faults=faults) if faults else None
    table = several[0]
    meaning = f"{table.where} has the labels" if table.has_labels else f"{table.where} has columns, and no labels"
    evidence = (_evidence(inspection, table), *_classless(inspection, table), *_undivided(table))
    faults = _contradictions(inspection, several)
    return Reading(_certainty(inspection, table), evidence, meaning, _propose(inspection, table), faults)


def _recognise_several(inspection: Inspection) -> Reading | None:
    """A file that names every image, whose cells have several labels, or some images in several lines."""
    first = next((found for found in inspection.labels if found.has_labels and not found.table.is_several), None)
    sign, is_sure = separator_of(first.table.labels or ()) if first else (LINES, False)
    names = [first.where] if first else [refusal.where for refusal in inspection.refusals]
    known = last_names(inspection.items)
    judged = (judge_labels(inspection.folder, each, inspection.items, known, sign) for each in names)
    table = next((each for each in judged if isinstance(each, LabelsFile) and each.has_labels), None)
    if table is None or not sign:
        return None
    certainty = (_certainty(inspection, first) + is_sure) if first else ONLY_IF_ASKED
    every = sorted(map(str, set(flat_labels(table.labels or ()))))
    how = "a line for each" if sign == LINES else f"with {sign!r} between them"
    evidence = f"{_evidence(inspection, table)}, and several labels, {how}: {listed(every)}"
    return Reading(certainty, (evidence,), f"an image can have several labels, {how}", _propose(inspection, table))


def _propose(inspection: Inspection, table: LabelsFile) -> Proposal:
    """Patterns of files, the labels file, and splits where the first folders have names of splits."""
    assert inspection.content is not None
    items = inspection.items
    return Proposal("files", inspection.content, items, splits=splits_above(items), table=table)


def _evidence(inspection: Inspection, table: LabelsFile) -> str:
    column, total = f" in its column `{table.column}`" if table.column else "", len(inspection.items)
    return f"{table.where} names {total:,} of {total:,} {inspection.noun}s{column}"


def _classless(inspection: Inspection, table: LabelsFile) -> list[str]:
    """The note on a table without a column of labels."""
    columns = list(table.table.columns)
    if table.table.labels is not None or not columns:
        return []
    several = next((name for name in columns if name.lower() in _SEVERAL), None)
    label, sign = several or columns[0], separator_of(table.table.columns[several])[0] if several else ""
    options = {"file": name_in_recipe(inspection.folder, table.where), **table.options, "label": label}
    options |= {"several": f"'{sign}'"} if sign else {}
    said = ", ".join(f"{key}: {str(value).lower() if value is False else value}" for key, value in options.items())
    which = f"none of the columns ({listed(columns)}) is called {' or '.join(LABELS)}"
    return [f"no class: {which}; if {label} is the class: labels: {{{said}}}"]


def _undivided(table: LabelsFile) -> list[str]:
    """The note on a column that names splits."""
    values = {name: set(map(str, column)) for name, column in table.table.columns.items()}
    return [
        f"no splits: the column {name} ({listed(sorted(each))}) becomes a feature; splits: {{{split_name(min(each))}: "
        "{manifest: FILE}, ...}, with a file of names for each, makes them splits"
        for name, each in values.items()
        if len(each) > 1 and all(map(split_name, each))
    ]


def _certainty(inspection: Inspection, table: LabelsFile) -> int:
    """A table without labels is no rival of class folders; one with labels is, if they are others."""
    shape = shape_of(inspection.items)
    if not shape.has_classes:
        return CERTAIN
    if not table.has_labels:
        return POSSIBLE
    tops = (inspection.items[row].removeprefix(shape.lead).split("/")[bool(shape.splits)] for row in table.rows)
    pairs = set(zip(tops, table.labels or (), strict=True))
    agree = len({folder for folder, _ in pairs}) == len(pairs) == len({label for _, label in pairs})
    if agree and all(folder == str(label) for folder, label in pairs):
        return POSSIBLE if shape.splits else CERTAIN
    return CERTAIN if agree and not shape.splits else LIKELY


def _contradictions(inspection: Inspection, several: list[LabelsFile]) -> list[InputError]:
    """Two files that label the images differently."""
    first, *others = several
    labels = dict(zip(first.rows, first.labels or first.rows, strict=True))
    for found in (each for each in others if each.has_labels):
        pairs = zip(found.rows, found.labels or (), strict=True)
        row = next((row for row, label in pairs if str(labels[row]) != str(label)), None)
        if row is not None:
            what = f"{first.where} and {found.where} give {inspection.items[row]} different labels"
            name = name_in_recipe(inspection.folder, found.where)
            hint = f"move one of them out of {inspection.folder}, or write labels: {name} in a recipe"
            return [InputError(what, "expected one labels file", hint)]
    return []


_SEVERAL = ("labels", "tags", "classes")
"""Usual names of columns with several labels in a cell."""

LAYOUTS = {"several-labels": _recognise_several, "with-labels": _recognise}
