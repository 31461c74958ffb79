"""Labelled: which class each file is of, by a file of labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.box_policy import CORRECT
from imagenet_prep.recipes.box_policy import fault as fault_at
from imagenet_prep.recipes.classes import NUMBER, Classes, numbered, refuse_below_first
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.joined_tables import join_tables, spread
from imagenet_prep.recipes.label_cells import label_of_cell
from imagenet_prep.recipes.label_matching import label_policies, match_files
from imagenet_prep.recipes.labels_file import NO_LABEL, LabelTable, parse_labels
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.recipes.schema import Labels
from imagenet_prep.recipes.table_rows import LabelsFault, form_of
from imagenet_prep.recipes.typed_values import INT64_RANGE, flat_labels, typed
from imagenet_prep.sources.array_files import is_downsampled
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Column, below
from imagenet_prep.storage.files import read_plain
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of


class Labelled(Struct, frozen=True):
    """Labels by row of the listing (0: none; -1: left out), and the table's row of each file (-1:
    none).

    ``several`` are the labels of each row, from 1, where a file can have more than one; ``labels``
    are 0 then. ``unlabelled`` is the number of files without a label in a set that has labels.
    """

    classes: Classes
    labels: Column
    table: LabelTable | None = None
    table_path: AnyPath | None = None
    table_rows: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    notes: tuple[str, ...] = ()
    several: Sequence[Sequence[int]] = ()
    unlabelled: int = 0


def read_table(file: RecipeFile, root: AnyPath) -> tuple[LabelTable, AnyPath] | None:
    """The file of labels that the recipe names, and where it is; None if it names none.

    Raises:
        InputError: it is not there, or a line of it can't be understood.
    """
    keys = file.recipe.labels
    if not isinstance(keys, Labels):
        return None
    if isinstance(keys.file, str):
        path = need_path(file, ("labels", "file"), below(root, keys.file))
        return _parse(keys, keys.file, path), path
    tables: list[tuple[str, LabelTable, AnyPath]] = []
    for split, names in keys.file.items():
        if isinstance(names, str):
            names = [names]
        for name in names:
            path = need_path(file, ("labels", "file", split), below(root, name))
            table = _parse(keys, name, path)
            tables.append((split, table, path))
    first_path = tables[0][2]
    return join_tables(tables), first_path


def _parse(keys: Labels, name: str, path: AnyPath) -> LabelTable:
    """The table of one file of labels."""
    content = read_plain(path)
    form = keys.format or form_of(name)
    label = None if keys.label is True else keys.label
    try:
        table = parse_labels(
            content,
            form,
            keys.path,
            label,
            header=keys.header,
            several=keys.several or "",
            one_hot=keys.one_hot or (),
            split=keys.split,
        )
    except LabelsFault as fault:
        hint = fault.hint or CORRECT
        raise fault_at(fault.place(path), fault.reason, hint=hint) from fault
    if not table.paths:
        raise InputError(f"{path} names no file", "expected a line for each file, with its path")
    return table


def at_line(path: AnyPath, fault: LabelsFault, table: LabelTable) -> InputError:
    """The error for a line of a file of labels, or for a sample."""
    return fault_at(table.place(path, fault.line), fault.reason, hint=fault.hint or CORRECT)


def label_by_table(
    file: RecipeFile,
    inputs: Inputs,
    listing: Catalog,
    source: tuple[LabelTable, AnyPath],
    declared: Classes | None,
    first_label: int,
) -> Labelled:
    """Labels of the files that a table names.

    Args:
        file: the recipe.
        inputs: where the files are from.
        listing: those of them that matter.
        source: the table, and the path of its file.
        declared: the classes that the recipe names, if it does.
        first_label: the number of the first class.

    Raises:
        InputError: files without a line, lines without a file, or a label that can't be.
        UsageError: the recipe's classes don't fit the labels.
    """
    written_table, path = source
    table = spread(written_table, listing.names)
    rows, notes = match_files(file, inputs, listing, table, path)
    classes = Classes()
    row_labels = [0] * len(table.paths)
    several_by_row: list[list[int]] = []
    if table.labels is not None:
        try:
            numbered_labels = _number_labels(file, table, path, declared, first_label)
        except LabelsFault as fault:
            raise at_line(path, fault, table) from fault
        classes, row_labels, several_by_row = numbered_labels
    keeps_unlabelled = label_policies(file).unlabelled == "keep"
    label_without_line = 0 if keeps_unlabelled else -1
    labels_of_lines = np.array([*row_labels, label_without_line], np.int32)
    labels = labels_of_lines[rows]  # row -1 is the last
    unlabelled = 0
    if table.labels is not None:
        unlabelled = _treat_unlabelled(file, listing, labels, rows, (table, path), notes)
    several: list[list[int]] = []
    if several_by_row:
        labels = np.minimum(labels, 0)
        several = [several_by_row[row] if row >= 0 else [] for row in rows]
    return Labelled(classes, labels, table, path, rows, tuple(notes), several, unlabelled)


def _treat_unlabelled(
    file: RecipeFile,
    listing: Catalog,
    labels: Column,
    rows: Column,
    source: tuple[LabelTable, AnyPath],
    notes: list[str],
) -> int:
    """Leave out the files without a label, or keep them with a note; how many are kept.

    Raises:
        InputError: the recipe wants an error.
    """
    table, path = source
    policy = label_policies(file).unlabelled
    unlabelled = np.flatnonzero(labels == 0).tolist()
    if not unlabelled:
        return 0
    if policy == "error":
        first_file = unlabelled[0]
        place = table.place(path, table.lines[rows[first_file]])
        raise InputError(
            f"{place}: no label for {listing.names[first_file]}",
            "expected a label for each file: the recipe says `unlabelled: error`",
            "fill in the label, or write in `labels`: unlabelled: skip (or keep)",
        )
    if policy == "skip":
        labels[unlabelled] = -1
        return 0
    names = listed(listing.names[row] for row in unlabelled)
    count = len(unlabelled)
    records_have = number_of(count, "record has", "records have")
    notes.append(f"{records_have} no label: {names}")
    return count


def _number_labels(
    file: RecipeFile, table: LabelTable, path: AnyPath, declared: Classes | None, first_label: int
) -> tuple[Classes, list[int], list[list[int]]]:
    """The classes of a table, each row's label from 1, 0 where the label is empty; and its labels,
    if it has several.

    A row of several has 1 for its label. Raises LabelsFault.
    """
    are_numbers, values = _typed_labels(file, table)
    single_values = flat_labels(values) if table.is_several else values
    class_values = set(single_values)
    class_values.discard(None)
    place_of: dict[Any, int]
    if are_numbers and declared is None:
        classes = _by_number(file, class_values, table, path)
        place_of = {number: label for label, number in enumerate(classes.numbers, 1)}
    else:
        classes = declared or _by_text(class_values, first_label)
        place_of = _places_of_given(classes, first_label, are_numbers=are_numbers)
    unknown_values = class_values - place_of.keys()
    if unknown_values:
        _refuse_unknown(values, table, classes, place_of, first_label, are_numbers=are_numbers)
    if not table.is_several:
        labels = [place_of.get(value, 0) for value in values]
        return classes, labels, []
    several = _several_labels(values, table, place_of)
    are_labelled = [int(value is not None) for value in values]
    return classes, are_labelled, several


def _typed_labels(file: RecipeFile, table: LabelTable) -> tuple[bool, list[Any]]:
    """Whether the labels of a table are numbers, and the labels, None where there is none.

    Raises:
        LabelsFault: a label is no whole number, or the labels are -1 and 1 alone.
    """
    assert table.labels is not None
    try:
        kind, values = typed(table.labels, table.lines, table.is_text)
    except LabelsFault as fault:
        raise LabelsFault(fault.line, f"label: {fault.reason}") from fault
    if kind == "float":
        _refuse_floats(file, values, table)
        values = [_as_whole(value) for value in values]
        kind = "int64"
    if kind != "int64":
        return False, values
    _refuse_two_signs(file, values, table)
    return True, [_without_no_label(value) for value in values]


def _refuse_floats(file: RecipeFile, values: Sequence[Any], table: LabelTable) -> None:
    """Raise LabelsFault for the first label that is not a whole number."""
    option = "labels: {file: ..., label: false}"
    if file.recipe.labels is None:
        option = "source: {..., label: false}"
    for value, line in zip(values, table.lines, strict=True):
        for label in _labels_in(value):
            if label is None:
                continue
            if abs(label) >= 1 << 63 and math.isfinite(label):
                raise LabelsFault(line, f"the label {label} is out of range: {INT64_RANGE}")
            if not float(label).is_integer():
                reason = f"the label {label} is not a whole number, so it is no class"
                hint = f"correct it; or, to store the numbers without classes, write {option}"
                raise LabelsFault(line, reason, hint)


def _as_whole(value: Any) -> Any:
    """A label, or a list of labels, that is written as a float: as whole numbers."""
    if isinstance(value, list):
        return [int(label) for label in value]
    return None if value is None else int(value)


def _by_text(class_values: Collection[str], first_label: int) -> Classes:
    """The classes that a table names, in order."""
    names = sorted(class_values, key=str.encode)
    return numbered(names, names, first_label)


def _refuse_unknown(
    values: Sequence[Any],
    table: LabelTable,
    classes: Classes,
    place_of: Mapping[Any, int],
    first_label: int,
    *,
    are_numbers: bool,
) -> None:
    """Raise LabelsFault for the first label that is not among the classes of the recipe."""
    for value, line in zip(values, table.lines, strict=True):
        for label in _labels_in(value):
            if label is None or label in place_of:
                continue
            if not are_numbers or all(map(NUMBER.fullmatch, classes.names)):
                names = f"the classes of the recipe: {listed(classes.names)}"
                raise LabelsFault(line, f"the label {label!r} is not among {names}")
            last_label = first_label + len(classes.names) - 1
            numbers = f"the classes have the numbers {first_label} to {last_label}"
            if first_label == last_label:
                numbers = f"the only class has the number {first_label}"
            hint = _hint_on_numbers(values, len(classes.names))
            raise LabelsFault(line, f"the label is {label}, but {numbers}", hint)


def _hint_on_numbers(values: Sequence[Any], class_count: int) -> str:
    """The remedy for labels that are not the numbers of the classes in the recipe."""
    numbers = [label for value in values for label in _labels_in(value) if label is not None]
    lowest, highest = min(numbers), max(numbers)
    if highest - lowest < class_count:
        return f"if {lowest} is the first class, write in the recipe: first_label: {lowest}"
    return "correct the label, or add the missing classes to the recipe"


def _several_labels(
    values: Sequence[Any], table: LabelTable, place_of: Mapping[Any, int]
) -> list[list[int]]:
    """The labels of each row, from 1; raises LabelsFault if a row has one twice."""
    several: list[list[int]] = []
    for value, line, path in zip(values, table.lines, table.paths, strict=True):
        labels: list[int] = []
        if value is not None:
            labels = [place_of[label] for label in _labels_in(value)]
        for label, count in Counter(_labels_in(value)).items():
            if count > 1:
                problem = f"{path} has {count:,} times the label {label}"
                raise LabelsFault(line, f"{problem}: expected once")
        several.append(labels)
    return several


def _labels_in(value: Any) -> Sequence[Any]:
    """The labels of a row: those of a list, or its only one, which may be None."""
    if isinstance(value, list):
        return value
    return (value,)


def may_lack_labels(file: RecipeFile, table: LabelTable) -> bool:
    """Whether records of a table may be without a label."""
    policy = label_policies(file).unlabelled
    if policy is not None:
        return policy == "keep"
    no_labels = (None, NO_LABEL, str(NO_LABEL))
    for label in table.labels or ():
        is_single = not isinstance(label, list)
        if is_single and label in no_labels:
            return True
    return False


def _places_of_given(classes: Classes, first_label: int, *, are_numbers: bool) -> dict[Any, int]:
    """The label, from 1, of each name or number in a table;
    a number is a name if all classes are called by numbers.
    """
    names: Iterable[Any] = classes.names
    if are_numbers:
        are_called_by_numbers = all(map(NUMBER.fullmatch, classes.names))
        if are_called_by_numbers:
            names = map(int, classes.names)
        else:
            names = range(first_label, first_label + len(classes.names))
    return {name: label for label, name in enumerate(names, 1)}


def _refuse_two_signs(file: RecipeFile, values: Sequence[Any], table: LabelTable) -> None:
    """Raise LabelsFault if the labels are -1 and 1 alone: then -1 may be a class."""
    if NO_LABEL not in values or label_policies(file).unlabelled is not None:
        return
    labels = {label for value in values for label in _labels_in(value)}
    if labels == {NO_LABEL, 1}:
        row = values.index(NO_LABEL)
        line = table.lines[row]
        hint = "write the classes in the file as 0 and 1, or by their names"
        if file.recipe.labels is not None:
            hint += "; or, if -1 is no label, write labels: {file: ..., unlabelled: keep}"
        reason = "the labels are -1 and 1, and -1 usually means no label"
        raise LabelsFault(line, reason, hint)


def _without_no_label(value: Any) -> Any:
    """A number, or the numbers of a list, except the one that is no class; None for none."""
    if isinstance(value, list):
        numbers = [number for number in value if number != NO_LABEL]
        return numbers or None
    if value == NO_LABEL:
        return None
    return value


def _by_number(
    file: RecipeFile, class_numbers: Collection[int], table: LabelTable, path: AnyPath
) -> Classes:
    """Numbers are labels as they stand; a source that lists its classes has those without a file
    too.

    Raises LabelsFault.
    """
    listed_numbers = table.class_names.keys() or table.words.keys()
    numbers = sorted({*class_numbers, *listed_numbers})
    texts: list[str] = []
    names: list[str] = []
    for number in numbers:
        text = label_of_cell(table.words.get(number)) or str(number)
        name = label_of_cell(table.class_names.get(number)) or text
        texts.append(text)
        names.append(name)
    distinct_names = set(names)
    if len(distinct_names) < len(names):
        names = list(map(str, numbers))
    first_label = file.recipe.first_label
    if first_label is None:
        # downsampled ImageNet's labels, and its map, are from 1
        is_batch = table.of_samples and is_downsampled(path.name)
        first_label = int(is_batch or len(table.class_names) > 0)
    classes = Classes(tuple(names), tuple(texts), tuple(numbers), first_label, is_numbered=True)
    refuse_below_first(file, classes)
    return classes
