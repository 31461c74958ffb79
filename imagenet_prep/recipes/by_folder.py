"""Class folders -> labels; and what is in the way of taking folders for classes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.dividing import Division
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.labelling import Classes, Labelled, numbered
from imagenet_prep.recipes.layouts import misread, nested
from imagenet_prep.recipes.reading import RecipeFile
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.class_folders import MACOSX
from imagenet_prep.sources.names import Names, Rows, places_of
from imagenet_prep.storage.files import scan
from imagenet_prep.text import listed, number_of


def label_by_folder(
    file: RecipeFile,
    inputs: Inputs,
    listing: Catalog,
    divisions: Sequence[Division],
    given: Classes | None,
    first: int,
) -> Labelled:
    """Labels by the folder that a file lies in, below that of its split; ``given`` and ``first`` as for a table.

    A file that lies in no class folder, or in one that is not among the recipe's classes, is added to the ``obstacles``
    of the inputs; folders that would be misread as classes are ``doubts``. A folder without a file is passed over, with
    a note.
    """
    files = _Files(listing, divisions)
    _refuse_loose(inputs, listing, files)
    present = set(files)
    found = sorted(present, key=str.encode)
    classes = given or numbered(found, found, first)
    notes = _passed(inputs, divisions, present)
    doubts: list[InputError] = []
    if given is None:
        if inner := nested(files.deep()):
            notes.append(f"the first folder is the class: {listed(inner)} are only told apart by their paths")
        if wrong := misread(files, files.names()):
            what, hint = f"{inputs.origin}: {wrong.what}", f"name the choice: {wrong.choice}"
            doubts.append(InputError(what, "expected a folder a class", hint))
    else:
        _refuse_strange(file, inputs, files, given)
    without = [name for name in classes.names if name not in present]
    if without:
        notes.append(f"{number_of(len(without), 'class has', 'classes have')} no file: {listed(without)}")
    place = {name: label for label, name in enumerate(classes.names, 1)}
    labels = np.full(len(listing), -1, np.int32)
    for name, runs in files.runs.items():
        if name in place:
            for division, start, stop in runs:
                labels[places_of(division.rows[start:stop])] = place[name]
    return Labelled(classes, labels, notes=tuple(notes), doubts=tuple(doubts))


class _Files(Mapping[str, Sequence[str]]):
    """The files of each class folder, by their paths from there; found where they are asked for.

    ``runs`` are by class the divisions and places there, from one to another, that hold its files. ``loose`` are rows
    that lie in no folder, each with what comes before the class.
    """

    def __init__(self, listing: Catalog, divisions: Sequence[Division]) -> None:
        self._listing, self._divisions = listing, divisions
        self.runs: dict[str, list[tuple[Division, int, int]]] = {}
        self.loose: list[tuple[int, str]] = []
        self._deep: dict[str, None] = {}
        for division in divisions:
            for places, folder, slashes in listing.names.folders(division.rows, division.lead):
                if folder is None:
                    self.loose.append((division.rows[places.start], division.lead))
                    continue
                self.runs.setdefault(folder, []).append((division, places.start, places.stop))
                if slashes > division.lead.count("/") + 1:
                    self._deep[folder] = None

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __getitem__(self, folder: str) -> list[str]:
        return [
            self._listing.names[row].removeprefix(division.lead).removeprefix(f"{folder}/")
            for division, start, stop in self.runs[folder]
            for row in division.rows[start:stop]
        ]

    def first(self, folder: str) -> str:
        """The name of the first file of a class."""
        division, start, _ = self.runs[folder][0]
        return self._listing.names[division.rows[start]]

    def deep(self) -> dict[str, list[str]]:
        """The classes that have folders of their own within."""
        return {folder: self[folder] for folder in self._deep}

    def names(self) -> Names:
        """All of them, with what comes before their classes."""
        rows: Rows = self._divisions[0].rows
        if len(self._divisions) > 1 or self.loose:
            runs = itertools.chain.from_iterable(self.runs.values())
            rows = np.concatenate([np.asarray(each.rows[start:stop], np.uint32) for each, start, stop in runs])
        return self._listing.names.picked(rows)


def _refuse_loose(inputs: Inputs, listing: Catalog, files: _Files) -> None:
    """Files in no class folder are an obstacle."""
    if files.loose:
        row, lead = files.loose[0]
        others = f" (and {len(files.loose) - 1:,} others)" if len(files.loose) > 1 else ""
        inputs.obstacles.append(
            InputError(
                f"{listing.names[row]} lies in no class folder{others}",
                f"expected {inputs.origin.name}/{lead}CLASS/FILE",
                "move it, or name a file of labels in the recipe",
            )
        )


def _refuse_strange(file: RecipeFile, inputs: Inputs, files: _Files, given: Classes) -> None:
    """A folder that is not among the recipe's classes is an obstacle."""
    strange = sorted(set(files) - set(given.names), key=str.encode)
    if strange:
        inside = files.first(strange[0])
        others = f" (and files in {listed(strange[1:])})" if strange[1:] else ""
        inputs.obstacles.append(
            InputError(
                f"{inside} lies in {strange[0]}, which is not among the classes of {file.path}{others}",
                f"expected one of {listed(given.names)}",
                "add the class, or take the folder out",
            )
        )


def _passed(inputs: Inputs, divisions: Sequence[Division], found: set[str]) -> list[str]:
    """What to tell the user of folders that hold nothing of this content, and of those that are nobody's data."""
    notes = [f"{name} is passed over: macOS keeps its own data there" for name in inputs.remarks.passed.get(MACOSX, ())]
    if inputs.listing.containers[0].reading != "alone":
        return notes
    leads = {division.lead for division in divisions}
    empty = []
    for lead in sorted(leads):
        known = {*found, MACOSX, *(each.rstrip("/") for each in leads if not lead)}
        with scan(inputs.base / lead) as found_there:
            entries = sorted(found_there, key=lambda each: each.name)
        empty += [
            lead + each.name
            for each in entries
            if each.is_dir(follow_symlinks=False) and not each.name.startswith(".") and each.name not in known
        ]
    if empty:
        what = "without a file of this content"
        folders = number_of(len(empty), f"folder {what} is", f"folders {what} are")
        notes.append(f"{folders} passed over: {listed(empty)}")
    return notes
