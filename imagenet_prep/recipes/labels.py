"""Labelled: which class each file is of, by a file of labels or by its folder.
Classes: their names and numbers.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.folder_roles import FolderTree
from imagenet_prep.recipes.inputs import Inputs, need_path
from imagenet_prep.recipes.joined_tables import join_tables, match_table, spread
from imagenet_prep.recipes.labels_file import (
    LabelsFault,
    LabelTable,
    flat_labels,
    form_of,
    parse_labels,
    typed,
)
from imagenet_prep.recipes.misread_folders import (
    Misread,
    mask_folders,
    misread,
    misread_inner,
    mixed_masks,
    nested,
)
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.schema import Labels
from imagenet_prep.recipes.splits import Division
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


NO_LABEL = -1
"""A number in place of a label that is no class, as in Hugging Face's data sets."""


# labels of a file ---------------------------------------------------------------------------------


def read_table(file: RecipeFile, root: AnyPath) -> tuple[LabelTable, AnyPath] | None:
    """The file of labels that the recipe names, and where it is; None if it names none.

    Raises:
        InputError: it is not there, or a line of it can't be understood.
    """
    said = file.recipe.labels
    if not isinstance(said, Labels):
        return None
    if isinstance(said.file, str):
        path = need_path(file, ("labels", "file"), below(root, said.file))
        return _parse(said, said.file, path), path
    tables = []
    for split, names in said.file.items():
        for name in [names] if isinstance(names, str) else names:
            path = need_path(file, ("labels", "file", split), below(root, name))
            tables.append((split, _parse(said, name, path), path))
    first = tables[0][2]
    try:
        return join_tables(tables), first
    except LabelsFault as fault:
        raise _at(str(first), fault) from fault


def _parse(said: Labels, name: str, path: AnyPath) -> LabelTable:
    """The table of one file of labels."""
    label, form = None if said.label is True else said.label, said.format or form_of(name)
    try:
        table = parse_labels(
            read_plain(path),
            form,
            said.path,
            label,
            header=said.header,
            several=said.several or "",
            one_hot=said.one_hot or (),
            split=said.split,
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
    given: Classes | None,
    first: int,
) -> Labelled:
    """Labels of the files that a table names.

    Args:
        file: the recipe.
        inputs: where the files are from.
        listing: those of them that matter.
        source: the table, and the path of its file.
        given: the classes that the recipe names, if it does.
        first: the number of the first class.

    Raises:
        InputError: files without a line, lines without a file, or a label that can't be.
        UsageError: the recipe's classes don't fit the labels.
    """
    table, path = spread(source[0], listing.names), source[1]
    rows, notes = _matched(file, inputs, listing, table, path)
    classes, by_row, several = Classes(), [0] * len(table.paths), list[list[int]]()
    if table.labels is not None:
        try:
            classes, by_row, several = _numbered(file, table, path, given, first)
        except LabelsFault as fault:
            raise at_line(path, fault, table) from fault
    policy = _policies(file).unlabelled
    labels = np.array([*by_row, 0 if policy == "keep" else -1], np.int32)[
        rows
    ]  # the last is of files without a line
    empty = np.flatnonzero(labels == 0).tolist() if table.labels is not None else []
    if empty and policy == "error":
        raise at_line(
            path,
            LabelsFault(table.lines[rows[empty[0]]], f"no label for {listing.names[empty[0]]}"),
            table,
        )
    if empty and policy == "skip":
        labels[empty], empty = -1, []
    if empty:
        names = listed(listing.names[row] for row in empty)
        notes.append(f"{number_of(len(empty), 'record has', 'records have')} no label: {names}")
    if several:
        labels, several = np.minimum(labels, 0), [several[row] if row >= 0 else [] for row in rows]
    return Labelled(classes, labels, table, path, rows, tuple(notes), several, len(empty))


def left_out(text: str, names: Sequence[str], policy: str, expected: str, hint: str) -> list[str]:
    """The note on files, lines or annotations that have no counterpart, if there are any.

    Raises:
        InputError: the ``policy`` is "error".
    """
    if names and policy == "error":
        raise InputError(f"{text}: {listed(names)}", expected, hint)
    done = {"skip": "; left out", "empty": "; kept without boxes"}.get(policy, "")
    return [f"{text}: {listed(names)}{done}"] if names else []


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


def _matched(
    file: RecipeFile, inputs: Inputs, listing: Catalog, table: LabelTable, path: AnyPath
) -> tuple[Column, list[str]]:
    """The table's row of each file (-1: none); what is not matched is an
    error unless the recipe says otherwise.
    """
    said, notes = _policies(file), []
    hits = np.array(match_table(table, listing.names, inputs.base, path, file.recipe.strip))
    rows, found = np.full(len(listing), -1, np.int64), np.flatnonzero(hits >= 0)
    rows[hits[found]] = found
    unlabelled = [listing.names[row] for row in np.flatnonzero(rows < 0).tolist()]
    missing = np.setdiff1d(np.arange(len(hits)), rows).tolist()
    text = f"{number_of(len(unlabelled), 'file has', 'files have')} no label in {path}"
    hint = "add them, or leave such files out with labels: {file: ..., unlabelled: skip}"
    if said.unlabelled != "keep":
        notes += left_out(
            text, unlabelled, said.unlabelled or "error", "expected every file to have a line", hint
        )
    lines = [
        f"{table.paths[number]} ({table.place('', table.lines[number]).lstrip(', ')})"
        for number in missing
    ]
    text = f"{path} labels {number_of(len(missing), 'file that is', 'files that are')} not there"
    hint = "take them out, or skip such lines with labels: {file: ..., missing: ignore}"
    notes += left_out(
        text, lines, said.missing, f"expected them among the files in {inputs.origin}", hint
    )
    return rows, notes


def _numbered(
    file: RecipeFile, table: LabelTable, path: AnyPath, given: Classes | None, first: int
) -> tuple[Classes, list[int], list[list[int]]]:
    """The classes of a table, each row's label from 1, 0 where the label is empty; and its labels,
    if it has several.

    A row of several has 1 for its label. Raises LabelsFault.
    """
    assert table.labels is not None
    kind, values = typed(table.labels, table.lines, table.is_text)
    if kind == "int64":
        _refuse_two_signs(file, values, table)
        values = [_without_no_label(value) for value in values]

    def find(is_wrong: Callable[[Any], bool]) -> tuple[Any, int] | None:
        """The first value that is wrong, and its line."""
        rows = zip(values, table.lines, strict=True)
        return next(
            (
                (e, line)
                for value, line in rows
                for e in _each(value)
                if e is not None and is_wrong(e)
            ),
            None,
        )

    if kind == "float" and (wrong := find(lambda _: True)):
        way = "source: {..., label: false}" if table.of_samples else "labels: {label: false}"
        raise LabelsFault(
            wrong[1], f"a label that is not a class: to keep it as a column, write {way}"
        )
    known = set(flat_labels(values) if table.is_several else values) - {None}
    if kind == "int64" and given is None:
        classes = _by_number(file, known, table, path)
        places: dict[Any, int] = {number: label for label, number in enumerate(classes.numbers, 1)}
    else:
        found = sorted(known, key=str.encode) if given is None else []
        classes = given or numbered(found, found, first)
        places = _places_of_given(classes, first, are_numbers=kind == "int64")
    if wrong := find(lambda each: each not in places) if known - places.keys() else None:
        top = (
            f"{wrong[0]}, expected {first} to {first + len(classes.names) - 1}: "
            "set first_label if they start elsewhere"
        )
        what = (
            f"label {top}"
            if kind == "int64"
            else f"{wrong[0]!r} is not among the classes of the recipe"
        )
        raise LabelsFault(wrong[1], what)
    if not table.is_several:
        return classes, [places.get(value, 0) for value in values], []
    several = [[] if value is None else [places[each] for each in _each(value)] for value in values]
    if again := next(
        (
            line
            for each, line in zip(several, table.lines, strict=True)
            if len(set(each)) < len(each)
        ),
        0,
    ):
        raise LabelsFault(again, "a label is there twice: expected each once")
    return classes, [int(value is not None) for value in values], several


def _places_of_given(classes: Classes, first: int, *, are_numbers: bool) -> dict[Any, int]:
    """The label, from 1, of each name or number in a table;
    a number is a name if all classes are called by numbers.
    """
    names: Iterable[Any] = classes.names
    if are_numbers and all(map(_NUMBER.fullmatch, classes.names)):
        names = map(int, classes.names)
    elif are_numbers:
        names = range(first, first + len(classes.names))
    return {name: label for label, name in enumerate(names, 1)}


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else (value,)


def _refuse_two_signs(file: RecipeFile, values: Sequence[Any], table: LabelTable) -> None:
    """Raise LabelsFault if the labels are -1 and 1 alone: then -1 may be a class."""
    single = {value for value in values if not isinstance(value, list)}
    if single == {NO_LABEL, 1} and _policies(file).unlabelled is None:
        line = table.lines[values.index(NO_LABEL)]
        how = (
            "write classes as 0 and 1, or by their names; labels: {file: ..., unlabelled: "
            "keep} takes -1 as no label"
        )
        raise LabelsFault(
            line, f"the labels are -1 and 1, and -1 stands for no label elsewhere: {how}"
        )


def _without_no_label(value: Any) -> Any:
    """A number, or the numbers of a list, except the one that is no class; None for none."""
    if isinstance(value, list):
        return [number for number in value if number != NO_LABEL] or None
    return None if value == NO_LABEL else value


def _by_number(
    file: RecipeFile, known: Collection[int], table: LabelTable, path: AnyPath
) -> Classes:
    """Numbers are labels as they stand; a source that lists its classes has those without a file
    too.

    Raises LabelsFault.
    """
    listed_numbers = table.class_names.keys() or table.words.keys()
    numbers = sorted({*known, *listed_numbers})
    texts = tuple(table.words.get(number, str(number)) for number in numbers)
    names = tuple(
        table.class_names.get(number, text) for number, text in zip(numbers, texts, strict=True)
    )
    names = names if len(set(names)) == len(names) else tuple(map(str, numbers))
    first = file.recipe.first_label
    if first is None:
        is_batch = table.of_samples and is_downsampled(path.name)
        first = int(
            is_batch or len(table.class_names) > 0
        )  # downsampled ImageNet's labels, and its map, are from 1
    classes = Classes(names, texts, tuple(numbers), first, is_numbered=True)
    refuse_below_first(file, classes)
    return classes


def refuse_below_first(file: RecipeFile, classes: Classes) -> None:
    """Raise InputError for a number below that of the first class."""
    least = min(classes.numbers, default=classes.first_label)
    if least < classes.first_label:
        what = (
            f"{file.path}: the labels have a {least}, and the first label is {classes.first_label}"
        )
        hint = (
            f"if {least} is a class, write first_label: {max(least, 0)}; "
            f"{NO_LABEL} stands for no label"
        )
        raise InputError(what, f"expected {classes.first_label} or more", hint)


# class folders ------------------------------------------------------------------------------------


def label_by_folder(
    file: RecipeFile,
    inputs: Inputs,
    listing: Catalog,
    divisions: Sequence[Division],
    given: Classes | None,
    first: int,
) -> Labelled:
    """Labels by the folder of a file, below the folder of its split; ``given`` and ``first`` as for
    a table.

    A file that is in no class folder, or in one that is not among the recipe's classes, is added to
    the ``obstacles`` of the inputs, and so are folders that would be misread as classes. A folder
    without a file is skipped, with a note.
    """
    assert file.recipe.source is not None
    divisions = [part for division in divisions for part in division.parts or (division,)]
    files = ClassFolders(listing.names, divisions, file.recipe.source.class_folder)
    inputs.obstacles.extend(folder_faults(inputs.origin, files))
    if given is None:
        inputs.obstacles.extend(
            _misread_folders(inputs.origin, files, is_divided=bool(file.recipe.splits))
        )
    inputs.obstacles.extend(_strange(file, files, given) if given else ())
    present = set(files)
    classes = given or by_names(file, present, first)
    notes = _passed(inputs, divisions, files.tops)
    if given is None and (inner := nested(files.deep())):
        notes.append(
            f"the first folder is the class: {listed(inner)} are only told apart by their paths"
        )
    without = [name for name in classes.names if name not in present]
    if without:
        notes.append(
            f"{number_of(len(without), 'class has', 'classes have')} no file: {listed(without)}"
        )
    place = {name: label for label, name in enumerate(classes.names, 1)}
    labels = np.full(len(listing), -1, np.int16 if len(classes.names) < 1 << 15 else np.int32)
    for name, runs in files.runs.items():
        if name in place:
            for division, start, stop in runs:
                labels[places_of(division.rows[start:stop])] = place[name]
    return Labelled(classes, labels, notes=tuple(notes))


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
        rows = (
            (each, row) for each, start, stop in self.runs[folder] for row in each.rows[start:stop]
        )
        if self.kind != "first":
            return [self._names[row].rpartition("/")[2] for _, row in rows]
        return [
            self._names[row].removeprefix(each.lead).removeprefix(f"{folder}/")
            for each, row in rows
        ]

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
                [np.asarray(each.rows[start:stop], np.uint32) for each, start, stop in runs]
            )
        return self._names.picked(rows)


def folder_faults(
    where: object, files: ClassFolders, way: str = "write class_folder: path"
) -> Iterator[InputError]:
    """Two folders of one class (``way`` takes their paths), and files in no class folder."""
    if files.same:
        what = f"{where}: {' and '.join(files.same)} end in the same folder"
        yield InputError(what, "expected one folder of each name", way)
    if files.loose:
        name, lead = files.loose[0]
        others = f" (and {len(files.loose) - 1:,} others)" if len(files.loose) > 1 else ""
        expected = f"expected {Path(str(where)).name}/{lead}CLASS/FILE"
        yield InputError(
            f"{name} is in no class folder{others}",
            expected,
            "move it, or name all in a file of labels",
        )


def _misread_folders(
    where: object, files: ClassFolders, *, is_divided: bool
) -> Iterator[InputError]:
    """The folders that are no classes."""
    if not files:
        return
    wrong = misread_masks(files)
    if wrong is None and files.kind == "first":
        wrong = misread(files.trees(), files.splits(), is_divided=is_divided)
    elif wrong is None:
        wrong = misread_inner(files)
    if wrong is not None:
        yield InputError(
            f"{where}: {wrong.what}",
            "expected a folder a class",
            f"a recipe can say: {wrong.choice}",
        )


def misread_masks(files: ClassFolders) -> Misread | None:
    """The folders of masks, or the masks among images, that would be misread as classes."""
    return mask_folders(files) or mixed_masks(files.names())


def _strange(file: RecipeFile, files: ClassFolders, given: Classes) -> Iterator[InputError]:
    """The folders that are not among the recipe's classes."""
    if strange := sorted(set(files) - set(given.names), key=str.encode):
        others = f" (and files in {listed(strange[1:])})" if strange[1:] else ""
        where = f"{strange[0]}, which is not among the classes of {file.path}{others}"
        hint = "add the class, or take the folder out"
        yield InputError(
            f"{files.first(strange[0])} is in {where}",
            f"expected one of {listed(given.names)}",
            hint,
        )


def _passed(inputs: Inputs, divisions: Sequence[Division], found: set[str]) -> list[str]:
    """The notes on folders without this content, and on folders that hold no data."""
    private = {why: inputs.remarks.passed.get(why, []) for why in PRIVATE.values()}
    notes = [
        f"{listed(several)} {'is' if len(several) == 1 else 'are'} skipped: {why}"
        for why, several in private.items()
        if several
    ]
    if inputs.listing.containers[0].reading != "alone":
        return notes
    leads, empty = {division.lead for division in divisions}, []
    for lead in sorted(leads):
        known = {*found, *PRIVATE, *(each.rstrip("/") for each in leads if not lead)}
        with scan(below(inputs.base, lead)) as entries:
            folders = sorted(
                entry_name(entry) for entry in entries if entry.is_dir(follow_symlinks=False)
            )
        empty += [lead + name for name in folders if not name.startswith(".") and name not in known]
    if empty:
        what = "without a file of this content"
        count = number_of(len(empty), f"folder {what} is", f"folders {what} are")
        notes.append(f"{count} skipped: {listed(empty)}")
    return notes


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
    several = list(names)
    if all(name.isascii() and name.isdigit() and len(name) < 19 for name in several):
        return sorted(several, key=lambda name: (int(name), name))
    return sorted(several, key=str.encode)


_NUMBER = re.compile("0|[1-9][0-9]{0,17}")


def by_names(file: RecipeFile, names: Iterable[str], first: int) -> Classes:
    """The classes of folders: in order, the first of them has the number ``first``.

    Names that are all numbers keep them, as the numbers of a table do: a folder that is missing
    moves none. A needless zero makes them texts, as in a table.

    Raises:
        InputError: a number is below that of the first class.
    """
    ordered = class_order(names)
    if not ordered or not all(map(_NUMBER.fullmatch, ordered)):
        return numbered(ordered, ordered, first)
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
    labels = [(name, str(number)) for name, number in zip(names, numbers, strict=True)]
    pairs = [name if name == number else f"{name} {number}" for name, number in labels]
    return ", ".join(pairs) if len(pairs) < 5 else f"{', '.join(pairs[:3])}, ... {pairs[-1]}"


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


def numbered(names: Sequence[str], texts: Sequence[str], first: int) -> Classes:
    """Classes in this order, with their numbers."""
    return Classes(tuple(names), tuple(texts), tuple(range(first, first + len(names))), first)


def given_classes(file: RecipeFile, root: AnyPath, first: int) -> Classes | None:
    """The classes that the recipe names, in its order; None if it names none.

    Raises:
        InputError: their file is not there, or is no list of names.
        UsageError: a name occurs twice.
    """
    said = file.recipe.classes
    if said is None:
        return None
    if isinstance(said, str):
        pairs = _read_classes(need_path(file, ("classes",), below(root, said)))
    elif isinstance(said, dict):
        for name, text in said.items():
            if not isinstance(text, str) or not text:
                raise file.fault(
                    ("classes", name), f"{text!r} can't be", "expected the words for that class"
                )
        pairs = list(said.items())
    else:
        pairs = [(str(name), str(name)) for name in said]
    names = [name for name, _ in pairs]
    if not names or len(set(names)) != len(names):
        again = next((name for name in names if names.count(name) > 1), None)
        raise file.fault(
            ("classes",),
            f"{again} is there twice" if again else "nothing in it",
            "expected each once",
        )
    return numbered(names, [text for _, text in pairs], first)


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
