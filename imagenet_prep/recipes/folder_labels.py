"""label_by_folder: class folders -> Labelled, which class each file is of."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.classes import Classes, by_names
from imagenet_prep.recipes.divisions import Division
from imagenet_prep.recipes.folder_roles import FolderTree
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.labels import Labelled
from imagenet_prep.recipes.misread_folders import (
    Misread,
    mask_folders,
    masks_in_classes,
    misread,
    misread_inner,
    nested,
)
from imagenet_prep.recipes.path_parts import base_name
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.folders import PRIVATE
from imagenet_prep.sources.names import Column, Names, Rows, below, entry_name, places_of
from imagenet_prep.storage.files import scan
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of


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
    obstacles = inputs.obstacles
    files = ClassFolders(listing.names, parts, file.recipe.source.class_folder)
    misread_faults: list[InputError] = []
    if declared is None:
        is_divided = bool(file.recipe.splits)
        misread_faults += _misread_folders(inputs.origin, files, is_divided=is_divided)
    obstacles.extend(folder_faults(inputs.origin, files, is_misread=bool(misread_faults)))
    obstacles.extend(misread_faults)
    notes = _skipped_folders(inputs, listing, parts, files.tops)
    if declared is None:
        classes = by_names(file, files, first_label)
        notes += _note_on_inner_folders(files)
    else:
        obstacles.extend(_undeclared_folders(file, files, declared))
        classes = declared
    empty_classes = [name for name in classes.names if name not in files]
    if empty_classes:
        classes_have = number_of(len(empty_classes), "class has", "classes have")
        notes.append(f"{classes_have} no file: {listed(empty_classes)}")
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
    is_narrow = len(classes.names) < 1 << 15
    labels = np.full(count, -1, np.int16 if is_narrow else np.int32)
    for label, name in enumerate(classes.names, 1):
        for division, start, stop in files.runs.get(name, ()):
            rows = division.rows[start:stop]
            labels[places_of(rows)] = label
    return labels


class ClassFolders(Mapping[str, Sequence[str]]):
    """The files of each class folder, by their paths from there; found on request.

    ``runs`` are by class the divisions and places there, from one to another, that hold its files.
    ``loose`` are files that are in no folder, each with what comes before the class. ``tops`` are
    the first folders, ``same`` two paths that would be one class. ``kind``: the class is the first
    folder, the inner one, or the path of all.
    """

    def __init__(self, names: Names, divisions: Sequence[Division], kind: str = "first") -> None:
        self._names = names
        self._divisions = divisions
        self.kind = kind
        self.file_names = names
        self.tops: set[str] = set()
        self.same: tuple[str, ...] = ()
        paths: dict[str, str] = {}
        self.runs: dict[str, list[tuple[Division, int, int]]] = {}
        self.loose: list[tuple[str, str]] = []
        self._deep: dict[str, None] = {}
        is_whole = kind != "first"
        for division in divisions:
            class_slashes = division.lead.count("/") + 1
            folders = names.folders(division.rows, division.lead, whole=is_whole)
            for places, path, slashes in folders:
                if path is None:
                    loose_name = names[division.rows[places.start]]
                    self.loose.append((loose_name, division.lead))
                    continue
                folder = path.rpartition("/")[2] if kind == "inner" else path
                first_path = paths.setdefault(folder, path)
                if first_path != path:
                    self.same = (first_path, path)
                top, _, _ = path.partition("/")
                self.tops.add(top)
                runs = self.runs.setdefault(folder, [])
                runs.append((division, places.start, places.stop))
                if kind == "first" and slashes > class_slashes:
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
                paths: Counter[str] = Counter()
                for row in division.rows[start:stop]:
                    name = self._names[row].removeprefix(division.lead)
                    path, _, _ = name.rpartition("/")
                    paths[path] += 1
                for path, count in paths.items():
                    tree.add(path, count)
        return trees

    def names(self) -> Names:
        """All of them, with what comes before their classes."""
        rows: Rows = self._divisions[0].rows
        if len(self._divisions) > 1 or self.loose:
            rows_of_runs: list[Column] = []
            for division, start, stop in itertools.chain.from_iterable(self.runs.values()):
                rows_of_run = np.asarray(division.rows[start:stop], np.uint32)
                rows_of_runs.append(rows_of_run)
            rows = np.concatenate(rows_of_runs)
        return self._names.picked(rows)


_WHOLE_PATHS = "write in the recipe's `source`: class_folder: path"


def folder_faults(
    folder: object, files: ClassFolders, hint: str = _WHOLE_PATHS, *, is_misread: bool = False
) -> Iterator[InputError]:
    """Two folders of one class, unless ``is_misread`` says that these are no classes, and files in
    no class folder; ``hint`` takes the paths of the former.
    """
    if files.same and not is_misread:
        class_name = base_name(files.same[0])
        problem = f"{folder}: {' and '.join(files.same)} would be one class, {class_name}"
        yield InputError(problem, "expected class folders with different names", hint)
    if files.loose:
        name, lead = files.loose[0]
        problem = f"{name} is in no class folder"
        other_files = len(files.loose) - 1
        if other_files:
            problem += f" (and {number_of(other_files, 'other file')})"
        top = Path(str(folder)).name
        expected = f"expected {top}/{lead}CLASS/FILE"
        move = "move them into class folders" if other_files else "move it into a class folder"
        remedy = f"{move}, or list every image in a labels file"
        yield InputError(problem, expected, remedy)


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
        hint = f"move other folders out of {folder}"
        if fault.choice:
            hint = f"a recipe can say: {_with_folder(fault.choice, folder)}"
        yield InputError(f"{folder}: {fault.what}", "expected only folders of classes", hint)


def _with_folder(choice: str, folder: object) -> str:
    """The keys of a recipe with the folder, if it is one, in place of "..."."""
    return choice.replace(".../", f"{folder}/") if Path(str(folder)).is_dir() else choice


def _undeclared_folders(
    file: RecipeFile, files: ClassFolders, declared: Classes
) -> Iterator[InputError]:
    """The folders that are not among the recipe's classes."""
    undeclared = sorted(set(files) - set(declared.names), key=str.encode)
    if not undeclared:
        return
    folder, *other_folders = undeclared
    first_file = files.first(folder)
    problem = f"{first_file} is in {folder}, which is not among the classes of {file.path}"
    if other_folders:
        problem += f" (and files in {listed(other_folders)})"
    expected = f"expected only folders of its classes: {listed(declared.names)}"
    yield InputError(problem, expected, "add the class to `classes`, or move the folder away")


def _skipped_folders(
    inputs: Inputs, listing: Catalog, divisions: Sequence[Division], class_folders: set[str]
) -> list[str]:
    """The notes on folders without this content, and on folders that hold no data; ``listing`` has
    the files of this content, of splits or not.
    """
    notes: list[str] = []
    for reason in PRIVATE.values():
        folders = inputs.remarks.passed.get(reason)
        if folders:
            verb = "is" if len(folders) == 1 else "are"
            notes.append(f"{listed(folders)} {verb} skipped: {reason}")
    if inputs.listing.containers[0].read_order != "alone":
        return notes
    leads = {division.lead for division in divisions}
    empty_folders: list[str] = []
    for lead in sorted(leads):
        with_files = {*class_folders, *PRIVATE}
        for name in _folders_in(below(inputs.base, lead)):
            if name.startswith(".") or name in with_files:
                continue
            if not len(listing.names.below(f"{lead}{name}/")):
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
        folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted(map(entry_name, folders))


def misread_masks(files: ClassFolders) -> Misread | None:
    """The folders of masks, or the masks among images, that would be misread as classes."""
    return mask_folders(files) or masks_in_classes(files.names(), files)
