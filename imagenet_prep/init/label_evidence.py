"""How sure it is that a table labels the images of a folder, what speaks for it, and which images
it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint
from imagenet_prep.init.folder_shapes import Shape
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_columns import class_candidates
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.init.labels_search import is_in_test
from imagenet_prep.init.proposal import CERTAIN, LIKELY, POSSIBLE
from imagenet_prep.init.table_forms import class_values
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.labels_file import LABELS
from imagenet_prep.recipes.path_parts import base_name, has_ending, suffix_of
from imagenet_prep.text import listed, number_of


def evidence_of(inspection: Inspection, table: LabelsFile) -> str:
    """How many images a table names, and how many classes it gives."""
    column = f" in its column `{table.column}`" if table.column else ""
    total = len(inspection.items or inspection.members)
    counts = f"{len(table.named_rows):,} of {number_of(total, inspection.noun)}"
    verb = "names" if len(table.places) == 1 else "name"
    evidence = f"{table.place} {verb} {counts}{column}"
    if table.label and table.label.lower() not in LABELS:
        classes = number_of(table.classes, "class", "classes")
        columns = f"the column {table.label} gives"
        if "one_hot" in table.options:
            columns = f"the columns {listed(table.options['one_hot'])} give"
        evidence += f"; {columns} {classes}"
    return evidence


def remarks_on(inspection: Inspection, table: LabelsFile, items: Sequence[str]) -> list[str]:
    """The notes on names without an ending, on a table without a class, and on its splits."""
    remarks = _remarks_on_endings(table, items)
    if table.table.splits is not None:
        reason = f"by its column `{table.options.get('split')}`"
        if table.files:
            reason = "a file of each"
        remarks.append(f"splits: {listed(_splits_of(table))}, {reason}")
    columns = list(table.table.columns)
    if columns and not table.has_labels and not table.candidates:
        remarks.append(_remark_on_columns(inspection, table))
    return remarks


def _remarks_on_endings(table: LabelsFile, items: Sequence[str]) -> list[str]:
    """The note on names without the ending of their images, by the first of them."""
    line = next((line for line, row in enumerate(table.rows) if row >= 0), None)
    if line is None:
        return []
    path = table.table.paths[line]
    name = items[table.rows[line]]
    if has_ending(path, suffix_of(name)):
        return []
    is_cut = base_name(name).lower().startswith(f"{base_name(path).lower()}.")
    endings = "no ending" if is_cut else "another ending"
    return [f"it has names with {endings}: {path} is {name}"]


def _remark_on_columns(inspection: Inspection, table: LabelsFile) -> str:
    """The note that no column looks like classes; and the command that takes the first column
    whose values can be.
    """
    columns = table.table.columns
    none = f"none of the columns ({listed(columns)}) looks like one"
    no_class = f"the records have no class: {none}"
    for name, cells in columns.items():
        as_labels = replace(table.table, labels=list(cells))
        if class_values(as_labels) is not None:
            command = inspection.command_for_another(label=name)
            return Hint(f"{no_class}; to use {name} as the class: ", command)
    return no_class


def _splits_of(table: LabelsFile) -> list[str]:
    """The values of the column of splits; a value that is no name of its split with that split:
    "0 is test".
    """
    values = sorted({value for value in table.table.splits or () if value is not None})
    if table.splits is None:
        return values
    texts: list[str] = []
    for value in values:
        split = table.splits.splits[value]
        text = value
        if split_name(value) != split:
            text += f" is {split}"
        texts.append(text)
    return texts


# images without a label ---------------------------------------------------------------------------


def losses_of(
    inspection: Inspection, table: LabelsFile, items: Sequence[str]
) -> tuple[list[InputError], list[str]]:
    """The losses of a table; images for a test, which have no label anywhere, are a note."""
    losses = list(table.losses)
    labelled_rows = table.label_by_row().keys() if table.has_labels else set(table.rows)
    unlabelled = [name for row, name in enumerate(items) if row not in labelled_rows]
    if not unlabelled or len(losses) > 1:
        return losses, []
    if not _are_for_test(inspection, unlabelled, items):
        return losses, []
    noun = inspection.noun
    count = number_of(len(unlabelled), f"{noun} for a test is", f"{noun}s for a test are")
    return [], [f"{count} left out, without a label: {listed(unlabelled)}"]


def _are_for_test(inspection: Inspection, names: Sequence[str], items: Sequence[str]) -> bool:
    """Whether images are in folders of a test,
    or a list of test images or a submission names them.
    """
    row_by_name = {name: row for row, name in enumerate(items)}
    listed_rows: set[int] = set()
    for table in (*inspection.labels, *inspection.partial):
        if table.is_of_test:
            listed_rows.update(table.rows)
    return all(is_in_test(name) or row_by_name[name] in listed_rows for name in names)


# tables and class folders -------------------------------------------------------------------------


def certainty_of(items: Sequence[str], shape: Shape, table: LabelsFile) -> int:
    """A table without labels is no rival of class folders;
    one with labels is, if they are others.
    """
    has_question = bool(table.candidates) and not table.has_labels
    if not shape.has_classes:
        is_nameless = has_question and table.options.get("header") is False
        return POSSIBLE if is_nameless else CERTAIN
    if has_question:
        return POSSIBLE if _has_agreeing_column(items, shape, table) else LIKELY
    if not table.has_labels:
        return POSSIBLE
    return _certainty_beside_folders(items, shape, table)


def _certainty_beside_folders(items: Sequence[str], shape: Shape, table: LabelsFile) -> int:
    """How sure a table with labels is, whose images are in class folders, too."""
    folders = shape.class_by_file()
    labels = table.label_by_row()
    pairs = [(folders.get(items[row], ""), label) for row, label in labels.items()]
    if not are_one_to_one(pairs):
        return LIKELY
    label_by_folder = dict(pairs)
    numbers = [label_by_folder[name] for name in shape.classes if name in label_by_folder]
    if table.class_names and all(isinstance(number, int) for number in numbers):
        if table.table.splits is None and _count_up(numbers):
            return POSSIBLE  # it says what the folders say
        return LIKELY if table.losses else CERTAIN
    return POSSIBLE if table.losses or shape.splits else CERTAIN


def _count_up(numbers: Sequence[int]) -> bool:
    """Whether each number is the one before and 1."""
    first_number = numbers[0]
    return list(numbers) == list(range(first_number, first_number + len(numbers)))


def _has_agreeing_column(items: Sequence[str], shape: Shape, table: LabelsFile) -> bool:
    """Whether one of several columns says what the folders say,
    and no other one is called as classes are.
    """
    folders = shape.class_by_file()
    agrees = False
    for candidate in class_candidates(table.table.columns, table.column):
        cells = table.table.columns[candidate.columns[0]]
        pairs: list[tuple[str, object]] = []
        for row, cell in zip(table.rows, cells, strict=True):
            if row >= 0 and cell is not None:
                folder = folders.get(items[row], "")
                pairs.append((folder, cell))
        if not candidate.is_hot and are_one_to_one(pairs):
            agrees = True
        elif candidate.is_known:
            return False
    return agrees


def are_one_to_one(pairs: Iterable[tuple[object, object]]) -> bool:
    """Whether each left value goes with one right value,
    and no name stands for another class on the other side.
    """
    different = {(str(left), str(right)) for left, right in pairs}
    lefts = {left for left, _ in different}
    rights = {right for _, right in different}
    if not len(different) == len(lefts) == len(rights):
        return False
    if all(text.lstrip("-").isdigit() for text in (*lefts, *rights)):
        return True
    for left, right in different:
        if left != right and (left in rights or right in lefts):
            return False
    return True


def contradicts(table: LabelsFile, other: LabelsFile) -> bool:
    """Whether two tables give an image different classes:
    a class has one name each, or a name and a number.
    """
    labels = table.label_by_row()
    other_labels = other.label_by_row()
    pairs = [(labels[row], label) for row, label in other_labels.items() if row in labels]
    return bool(pairs) and not are_one_to_one(pairs)
