"""Labelled: which class each file is of, by a file of labels or by its folder.
Classes: their names and numbers.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.divisions import Division
from imagenet_prep.recipes.folder_roles import (
    FolderTree,
    Misread,
    mask_folders,
    misread,
    misread_inner,
    mixed_masks,
    nested,
)
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.joined_tables import join_tables, match_table, spread
from imagenet_prep.recipes.labels_file import (
    NO_LABEL,
    LabelsFault,
    LabelTable,
    flat_labels,
    form_of,
    parse_labels,
    typed,
)
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.recipes.schema import Labels
from imagenet_prep.sources.array_files import is_downsampled
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.folders import PRIVATE
from imagenet_prep.sources.names import Column, Names, Rows, below, entry_name, places_of
from imagenet_prep.storage.files import read_plain, scan
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


# labels of a file ---------------------------------------------------------------------------------


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
    tables = []
    for split, names in keys.file.items():
        for name in [names] if isinstance(names, str) else names:
            path = need_path(file, ("labels", "file", split), below(root, name))
            tables.append((split, _parse(keys, name, path), path))
    first_path = tables[0][2]
    try:
        return join_tables(tables), first_path
    except LabelsFault as fault:
        raise _at(str(first_path), fault) from fault


def _parse(keys: Labels, name: str, path: AnyPath) -> LabelTable:
    """The table of one file of labels."""
    try:
        table = parse_labels(
            read_plain(path),
            keys.format or form_of(name),
            keys.path,
            None if keys.label is True else keys.label,
            header=keys.header,
            several=keys.several or "",
            one_hot=keys.one_hot or (),
            split=keys.split,
        )
    except LabelsFault as fault:
        raise _at(f"{path}, line {fault.line}", fault) from fault
    if not table.paths:
        raise InputError(f"{path} labels no file", "expected a path and its label in each line")
    return table


def at_line(path: AnyPath, fault: LabelsFault, table: LabelTable) -> InputError:
    """The error for a line of a file of labels, or for a sample."""
    return _at(table.place(path, fault.line), fault)


def _at(place: str, fault: LabelsFault) -> InputError:
    return InputError(f"{place}: {fault.reason}", "", "correct it and run the same command again")


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
    table, path = spread(source[0], listing.names), source[1]
    rows, notes = _match_files(file, inputs, listing, table, path)
    classes, row_labels, several_by_row = Classes(), [0] * len(table.paths), list[list[int]]()
    if table.labels is not None:
        try:
            classes, row_labels, several_by_row = _number_labels(
                file, table, path, declared, first_label
            )
        except LabelsFault as fault:
            raise at_line(path, fault, table) from fault
    label_without_line = 0 if _policies(file).unlabelled == "keep" else -1
    labels = np.array([*row_labels, label_without_line], np.int32)[rows]  # row -1 is the last
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
    policy = _policies(file).unlabelled
    unlabelled = np.flatnonzero(labels == 0).tolist()
    if not unlabelled:
        return 0
    if policy == "error":
        first_file = unlabelled[0]
        reason = f"no label for {listing.names[first_file]}"
        raise at_line(path, LabelsFault(table.lines[rows[first_file]], reason), table)
    if policy == "skip":
        labels[unlabelled] = -1
        return 0
    names = listed(listing.names[row] for row in unlabelled)
    notes.append(f"{number_of(len(unlabelled), 'record has', 'records have')} no label: {names}")
    return len(unlabelled)


def left_out(text: str, names: Sequence[str], policy: str, expected: str, hint: str) -> list[str]:
    """The note on files, lines or annotations that have no counterpart, if there are any.

    Raises:
        InputError: the ``policy`` is "error".
    """
    if not names:
        return []
    if policy == "error":
        raise InputError(f"{text}: {listed(names)}", expected, hint)
    outcome = {"skip": "; left out", "empty": "; kept without boxes"}.get(policy, "")
    return [f"{text}: {listed(names)}{outcome}"]


def _match_files(
    file: RecipeFile, inputs: Inputs, listing: Catalog, table: LabelTable, path: AnyPath
) -> tuple[Column, list[str]]:
    """The table's row of each file (-1: none); what is not matched is an
    error unless the recipe says otherwise.
    """
    keys, notes = _policies(file), list[str]()
    file_of_line = np.array(match_table(table, listing.names, inputs.base, path, file.recipe.strip))
    matched_lines = np.flatnonzero(file_of_line >= 0)
    rows = np.full(len(listing), -1, np.int64)
    rows[file_of_line[matched_lines]] = matched_lines
    unlabelled = [listing.names[row] for row in np.flatnonzero(rows < 0).tolist()]
    unmatched_lines = np.setdiff1d(np.arange(len(file_of_line)), rows).tolist()
    if keys.unlabelled != "keep":
        notes += left_out(
            f"{number_of(len(unlabelled), 'file has', 'files have')} no label in {path}",
            unlabelled,
            keys.unlabelled or "error",
            "expected every file to have a line",
            "add them, or leave such files out with labels: {file: ..., unlabelled: skip}",
        )
    missing_files = []
    for number in unmatched_lines:
        place = table.place("", table.lines[number]).lstrip(", ")
        missing_files.append(f"{table.paths[number]} ({place})")
    count = number_of(len(missing_files), "file that is", "files that are")
    notes += left_out(
        f"{path} labels {count} not there",
        missing_files,
        keys.missing,
        f"expected them among the files in {inputs.origin}",
        "take them out, or skip such lines with labels: {file: ..., missing: ignore}",
    )
    return rows, notes


def _number_labels(
    file: RecipeFile, table: LabelTable, path: AnyPath, declared: Classes | None, first_label: int
) -> tuple[Classes, list[int], list[list[int]]]:
    """The classes of a table, each row's label from 1, 0 where the label is empty; and its labels,
    if it has several.

    A row of several has 1 for its label. Raises LabelsFault.
    """
    assert table.labels is not None
    kind, values = typed(table.labels, table.lines, table.is_text)
    are_numbers = kind == "int64"
    if are_numbers:
        _refuse_two_signs(file, values, table)
        values = [_without_no_label(value) for value in values]
    if kind == "float":
        _refuse_floats(values, table)
    class_values = set(flat_labels(values) if table.is_several else values) - {None}
    place_of: dict[Any, int]
    if are_numbers and declared is None:
        classes = _by_number(file, class_values, table, path)
        place_of = {number: label for label, number in enumerate(classes.numbers, 1)}
    else:
        classes = declared or _by_text(class_values, first_label)
        place_of = _places_of_given(classes, first_label, are_numbers=are_numbers)
    if class_values - place_of.keys():
        _refuse_unknown(values, table, classes, place_of, first_label, are_numbers=are_numbers)
    if not table.is_several:
        return classes, [place_of.get(value, 0) for value in values], []
    several = _several_labels(values, table, place_of)
    return classes, [int(value is not None) for value in values], several


def _refuse_floats(values: Sequence[Any], table: LabelTable) -> None:
    """Raise LabelsFault for the first label, a number that is not whole."""
    for value, line in zip(values, table.lines, strict=True):
        if any(label is not None for label in _labels_in(value)):
            option = "source: {..., label: false}" if table.of_samples else "labels: {label: false}"
            raise LabelsFault(
                line, f"a label that is not a class: to keep it as a column, write {option}"
            )


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
            if not are_numbers:
                raise LabelsFault(line, f"{label!r} is not among the classes of the recipe")
            last_label = first_label + len(classes.names) - 1
            hint = "set first_label if they start elsewhere"
            raise LabelsFault(
                line, f"label {label}, expected {first_label} to {last_label}: {hint}"
            )


def _several_labels(
    values: Sequence[Any], table: LabelTable, place_of: Mapping[Any, int]
) -> list[list[int]]:
    """The labels of each row, from 1; raises LabelsFault if a row has one twice."""
    several: list[list[int]] = []
    for value, line in zip(values, table.lines, strict=True):
        labels = [] if value is None else [place_of[label] for label in _labels_in(value)]
        if len(set(labels)) < len(labels):
            raise LabelsFault(line, "a label is there twice: expected each once")
        several.append(labels)
    return several


def _labels_in(value: Any) -> Sequence[Any]:
    """The labels of a row: those of a list, or its only one, which may be None."""
    return value if isinstance(value, list) else (value,)


def _policies(file: RecipeFile) -> Labels:
    """The recipe's policies for files and lines that have no counterpart."""
    return file.recipe.labels if isinstance(file.recipe.labels, Labels) else Labels(file="-")


def may_lack_labels(file: RecipeFile, table: LabelTable) -> bool:
    """Whether records of a table may be without a label."""
    policy = _policies(file).unlabelled
    if policy is not None:
        return policy == "keep"
    return any(
        label in (None, NO_LABEL, str(NO_LABEL))
        for label in table.labels or ()
        if not isinstance(label, list)
    )


def _places_of_given(classes: Classes, first_label: int, *, are_numbers: bool) -> dict[Any, int]:
    """The label, from 1, of each name or number in a table;
    a number is a name if all classes are called by numbers.
    """
    names: Iterable[Any] = classes.names
    if are_numbers and all(map(_NUMBER.fullmatch, classes.names)):
        names = map(int, classes.names)
    elif are_numbers:
        names = range(first_label, first_label + len(classes.names))
    return {name: label for label, name in enumerate(names, 1)}


def _refuse_two_signs(file: RecipeFile, values: Sequence[Any], table: LabelTable) -> None:
    """Raise LabelsFault if the labels are -1 and 1 alone: then -1 may be a class."""
    single_values = {value for value in values if not isinstance(value, list)}
    if single_values == {NO_LABEL, 1} and _policies(file).unlabelled is None:
        line = table.lines[values.index(NO_LABEL)]
        hint = (
            "write classes as 0 and 1, or by their names; labels: {file: ..., unlabelled: "
            "keep} takes -1 as no label"
        )
        raise LabelsFault(
            line, f"the labels are -1 and 1, and -1 stands for no label elsewhere: {hint}"
        )


def _without_no_label(value: Any) -> Any:
    """A number, or the numbers of a list, except the one that is no class; None for none."""
    if isinstance(value, list):
        return [number for number in value if number != NO_LABEL] or None
    return None if value == NO_LABEL else value


def _by_number(
    file: RecipeFile, class_numbers: Collection[int], table: LabelTable, path: AnyPath
) -> Classes:
    """Numbers are labels as they stand; a source that lists its classes has those without a file
    too.

    Raises LabelsFault.
    """
    listed_numbers = table.class_names.keys() or table.words.keys()
    numbers = sorted({*class_numbers, *listed_numbers})
    texts = tuple(table.words.get(number, str(number)) for number in numbers)
    names = tuple(
        table.class_names.get(number, text) for number, text in zip(numbers, texts, strict=True)
    )
    if len(set(names)) < len(names):
        names = tuple(map(str, numbers))
    first_label = file.recipe.first_label
    if first_label is None:
        # downsampled ImageNet's labels, and its map, are from 1
        is_batch = table.of_samples and is_downsampled(path.name)
        first_label = int(is_batch or len(table.class_names) > 0)
    classes = Classes(names, texts, tuple(numbers), first_label, is_numbered=True)
    refuse_below_first(file, classes)
    return classes


def refuse_below_first(file: RecipeFile, classes: Classes) -> None:
    """Raise InputError for a number below that of the first class."""
    first_label = classes.first_label
    lowest = min(classes.numbers, default=first_label)
    if lowest >= first_label:
        return
    raise InputError(
        f"{file.path}: the labels have a {lowest}, and the first label is {first_label}",
        f"expected {first_label} or more",
        f"if {lowest} is a class, write first_label: {max(lowest, 0)}; "
        f"{NO_LABEL} stands for no label",
    )


# class folders ------------------------------------------------------------------------------------


def label_by_folder(
    file: RecipeFile,
    inputs: Inputs,
    listing: Catalog,
    divisions: Sequence[Division],
    declared: Classes | None,
    first_label: int,
) -> Labelled:
    """Labels by the folder of a file, below the folder of its split; ``declared`` and
    ``first_label`` as for a table.

    A file that is in no class folder, or in one that is not among the recipe's classes, is added to
    the ``obstacles`` of the inputs, and so are folders that would be misread as classes. A folder
    without a file is skipped, with a note.
    """
    assert file.recipe.source is not None
    parts = [part for division in divisions for part in division.parts or (division,)]
    files = ClassFolders(listing.names, parts, file.recipe.source.class_folder)
    inputs.obstacles.extend(folder_faults(inputs.origin, files))
    notes = _skipped_folders(inputs, parts, files.tops)
    if declared is None:
        is_divided = bool(file.recipe.splits)
        inputs.obstacles.extend(_misread_folders(inputs.origin, files, is_divided=is_divided))
        classes = by_names(file, files, first_label)
        notes += _note_on_inner_folders(files)
    else:
        inputs.obstacles.extend(_undeclared_folders(file, files, declared))
        classes = declared
    empty = [name for name in classes.names if name not in files]
    if empty:
        count = number_of(len(empty), "class has", "classes have")
        notes.append(f"{count} no file: {listed(empty)}")
    labels = _labels_of_folders(files, classes, len(listing))
    return Labelled(classes, labels, notes=tuple(notes))


def _note_on_inner_folders(files: ClassFolders) -> list[str]:
    """The note on folders within several classes, which no label tells apart."""
    inner_folders = nested(files.deep())
    if not inner_folders:
        return []
    names = listed(inner_folders)
    return [f"the first folder is the class: {names} are only told apart by their paths"]


def _labels_of_folders(files: ClassFolders, classes: Classes, count: int) -> Column:
    """The label of each of ``count`` files; -1 for one in no folder of a class."""
    labels = np.full(count, -1, np.int16 if len(classes.names) < 1 << 15 else np.int32)
    for label, name in enumerate(classes.names, 1):
        for division, start, stop in files.runs.get(name, ()):
            labels[places_of(division.rows[start:stop])] = label
    return labels


class ClassFolders(Mapping[str, Sequence[str]]):
    """The files of each class folder, by their paths from there; found on request.

    ``runs`` are by class the divisions and places there, from one to another, that hold its files.
    ``loose`` are files that are in no folder, each with what comes before the class. ``tops`` are
    the first folders, ``same`` two paths that would be one class. ``kind``: the class is the first
    folder, the inner one, or the path of all.
    """

    def __init__(self, names: Names, divisions: Sequence[Division], kind: str = "first") -> None:
        self._names, self._divisions, self.kind = names, divisions, kind
        self.file_names = names
        self.tops: set[str] = set()
        self.same: tuple[str, ...] = ()
        paths: dict[str, str] = {}
        self.runs: dict[str, list[tuple[Division, int, int]]] = {}
        self.loose: list[tuple[str, str]] = []
        self._deep: dict[str, None] = {}
        for division in divisions:
            for places, path, slashes in names.folders(
                division.rows, division.lead, whole=kind != "first"
            ):
                if path is None:
                    self.loose.append((names[division.rows[places.start]], division.lead))
                    continue
                folder = path.rpartition("/")[2] if kind == "inner" else path
                if paths.setdefault(folder, path) != path:
                    self.same = (paths[folder], path)
                self.tops.add(path.partition("/")[0])
                self.runs.setdefault(folder, []).append((division, places.start, places.stop))
                if kind == "first" and slashes > division.lead.count("/") + 1:
                    self._deep[folder] = None

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __getitem__(self, folder: str) -> list[str]:
        names: list[str] = []
        for division, start, stop in self.runs[folder]:
            for row in division.rows[start:stop]:
                name = self._names[row]
                if self.kind == "first":
                    names.append(name.removeprefix(division.lead).removeprefix(f"{folder}/"))
                else:
                    names.append(name.rpartition("/")[2])
        return names

    def __contains__(self, folder: object) -> bool:
        return folder in self.runs

    def first(self, folder: str) -> str:
        """The name of the first file of a class."""
        division, start, _ = self.runs[folder][0]
        return self._names[division.rows[start]]

    def deep(self) -> dict[str, list[str]]:
        """The classes that have folders of their own within."""
        return {folder: self[folder] for folder in self._deep}

    def splits(self) -> dict[str, str]:
        """The name of each division, by what comes before its classes."""
        return {division.lead: division.name for division in self._divisions}

    def trees(self) -> dict[str, FolderTree]:
        """The class folders and those within, by what comes before the classes,
        with how many files each has.
        """
        trees = {division.lead: FolderTree() for division in self._divisions}
        for _, lead in self.loose:
            trees[lead].files += 1
        for folder, runs in self.runs.items():
            for division, start, stop in runs:
                tree = trees[division.lead]
                if folder not in self._deep:
                    tree.add(folder, stop - start)
                    continue
                names = (self._names[row] for row in division.rows[start:stop])
                paths = Counter(
                    name.removeprefix(division.lead).rpartition("/")[0] for name in names
                )
                for path, count in paths.items():
                    tree.add(path, count)
        return trees

    def names(self) -> Names:
        """All of them, with what comes before their classes."""
        rows: Rows = self._divisions[0].rows
        if len(self._divisions) > 1 or self.loose:
            runs = itertools.chain.from_iterable(self.runs.values())
            rows = np.concatenate(
                [np.asarray(division.rows[start:stop], np.uint32) for division, start, stop in runs]
            )
        return self._names.picked(rows)


def folder_faults(
    folder: object, files: ClassFolders, hint: str = "write class_folder: path"
) -> Iterator[InputError]:
    """Two folders of one class (``hint`` takes their paths), and files in no class folder."""
    if files.same:
        problem = f"{folder}: {' and '.join(files.same)} end in the same folder"
        yield InputError(problem, "expected one folder of each name", hint)
    if files.loose:
        name, lead = files.loose[0]
        count = len(files.loose) - 1
        more = f" (and {count:,} others)" if count else ""
        yield InputError(
            f"{name} is in no class folder{more}",
            f"expected {Path(str(folder)).name}/{lead}CLASS/FILE",
            "move it, or name all in a file of labels",
        )


def _misread_folders(
    folder: object, files: ClassFolders, *, is_divided: bool
) -> Iterator[InputError]:
    """The folders that are no classes."""
    if not files:
        return
    fault = misread_masks(files)
    if fault is None and files.kind == "first":
        fault = misread(files.trees(), files.splits(), is_divided=is_divided)
    elif fault is None:
        fault = misread_inner(files)
    if fault is not None:
        yield InputError(
            f"{folder}: {fault.what}",
            "expected a folder a class",
            f"a recipe can say: {fault.choice}",
        )


def _undeclared_folders(
    file: RecipeFile, files: ClassFolders, declared: Classes
) -> Iterator[InputError]:
    """The folders that are not among the recipe's classes."""
    undeclared = sorted(set(files) - set(declared.names), key=str.encode)
    if not undeclared:
        return
    folder, *other_folders = undeclared
    others = f" (and files in {listed(other_folders)})" if other_folders else ""
    yield InputError(
        f"{files.first(folder)} is in {folder}, "
        f"which is not among the classes of {file.path}{others}",
        f"expected one of {listed(declared.names)}",
        "add the class, or take the folder out",
    )


def _skipped_folders(
    inputs: Inputs, divisions: Sequence[Division], class_folders: set[str]
) -> list[str]:
    """The notes on folders without this content, and on folders that hold no data."""
    notes: list[str] = []
    for reason in PRIVATE.values():
        if folders := inputs.remarks.passed.get(reason):
            verb = "is" if len(folders) == 1 else "are"
            notes.append(f"{listed(folders)} {verb} skipped: {reason}")
    if inputs.listing.containers[0].reading != "alone":
        return notes
    leads = {division.lead for division in divisions}
    empty_folders: list[str] = []
    for lead in sorted(leads):
        with_files = {*class_folders, *PRIVATE}
        if not lead:
            with_files.update(split_lead.rstrip("/") for split_lead in leads)
        for name in _folders_in(below(inputs.base, lead)):
            if not name.startswith(".") and name not in with_files:
                empty_folders.append(lead + name)
    if empty_folders:
        singular = "folder without a file of this content is"
        plural = "folders without a file of this content are"
        count = number_of(len(empty_folders), singular, plural)
        notes.append(f"{count} skipped: {listed(empty_folders)}")
    return notes


def _folders_in(folder: AnyPath) -> list[str]:
    """The names of the folders in a folder, in order."""
    with scan(folder) as entries:
        return sorted(entry_name(entry) for entry in entries if entry.is_dir(follow_symlinks=False))


def misread_masks(files: ClassFolders) -> Misread | None:
    """The folders of masks, or the masks among images, that would be misread as classes."""
    return mask_folders(files) or mixed_masks(files.names())


# classes ------------------------------------------------------------------------------------------


class Classes(Struct, frozen=True):
    """The classes of a set: names, words, and the numbers that records get. Class ``i`` is label
    ``i`` + 1.

    ``first_label`` is the number that counts as class 0. ``is_numbered``: the labels are numbers in
    the data.
    """

    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    first_label: int = 0
    is_numbered: bool = False


def class_order(names: Iterable[str]) -> list[str]:
    """Names of classes in the order of their labels:
    as numbers if all are numbers, otherwise by their bytes.
    """
    names = list(names)
    if all(name.isascii() and name.isdigit() and len(name) < 19 for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names, key=str.encode)


_NUMBER = re.compile("0|[1-9][0-9]{0,17}")


def by_names(file: RecipeFile, names: Iterable[str], first_label: int) -> Classes:
    """The classes of folders: in order, the first of them has the number ``first_label``.

    Names that are all numbers keep them, as the numbers of a table do: a folder that is missing
    moves none. A needless zero makes them texts, as in a table.

    Raises:
        InputError: a number is below that of the first class.
    """
    ordered = class_order(names)
    if not ordered or not all(map(_NUMBER.fullmatch, ordered)):
        return numbered(ordered, ordered, first_label)
    numbers = tuple(map(int, ordered))
    classes = Classes(
        tuple(ordered), tuple(ordered), numbers, file.recipe.first_label or 0, is_numbered=True
    )
    refuse_below_first(file, classes)
    return classes


def labels_in_words(names: Iterable[str], numbers: Iterable[int]) -> str:
    """The labels of the first three classes and of the last one, as text: "cat 1, dog 2, fox 3, ...
    wolf 12".
    """
    texts: list[str] = []
    for name, number in zip(names, numbers, strict=True):
        texts.append(name if name == str(number) else f"{name} {number}")
    if len(texts) < 5:
        return ", ".join(texts)
    return f"{', '.join(texts[:3])}, ... {texts[-1]}"


def class_notes(
    names: Sequence[str], numbers: Sequence[int], what: str = "labels"
) -> Iterator[str]:
    """The labels of classes as text, if they differ from their names."""
    if [*names] != [*map(str, numbers)]:
        yield f"{what}: {labels_in_words(names, numbers)}"


def note_on_first(file: RecipeFile, classes: Classes) -> list[str]:
    """The note that numbers seem to count from 1,
    where the recipe does not say where they start.
    """
    is_open = classes.is_numbered and classes.first_label == 0 and file.recipe.first_label is None
    if not is_open or min(classes.numbers, default=0) != 1:
        return []
    return [
        "labels start at 1, and class 0 has no image: if 1 is the first class, write first_label: 1"
    ]


def numbered(names: Sequence[str], texts: Sequence[str], first_label: int) -> Classes:
    """Classes in this order, with their numbers."""
    return Classes(
        tuple(names), tuple(texts), tuple(range(first_label, first_label + len(names))), first_label
    )


def given_classes(file: RecipeFile, root: AnyPath, first_label: int) -> Classes | None:
    """The classes that the recipe names, in its order; None if it names none.

    Raises:
        InputError: their file is not there, or is no list of names.
        UsageError: a name occurs twice.
    """
    declared = file.recipe.classes
    if declared is None:
        return None
    if isinstance(declared, str):
        pairs = _read_classes(need_path(file, ("classes",), below(root, declared)))
    elif isinstance(declared, dict):
        pairs = _classes_with_words(file, declared)
    else:
        pairs = [(str(name), str(name)) for name in declared]
    if not pairs:
        raise file.fault(("classes",), "nothing in it", "expected each once")
    names = [name for name, _ in pairs]
    for name, count in Counter(names).items():
        if count > 1:
            problem = f"{name} is there twice" if name else "nothing in it"
            raise file.fault(("classes",), problem, "expected each once")
    return numbered(names, [text for _, text in pairs], first_label)


def _classes_with_words(file: RecipeFile, words: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each class with its words; raises UsageError if these are no text."""
    for name, text in words.items():
        if not isinstance(text, str) or not text:
            raise file.fault(
                ("classes", name), f"{text!r} can't be", "expected the words for that class"
            )
    return list(words.items())


def _read_classes(path: AnyPath) -> list[tuple[str, str]]:
    """A class a line; after a tab, its words."""
    try:
        lines = read_plain(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} can't be read", str(error)) from error
    pairs = []
    for line in lines:
        name, _, text = line.strip().partition("\t")
        if name:
            pairs.append((name, text.strip() or name))
    return pairs
