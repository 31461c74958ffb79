"""Class folders -> labels; and what is in the way of taking folders for classes."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.classes import Classes, numbered
from imagenet_prep.recipes.dividing import Division
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.labelling import Labelled
from imagenet_prep.recipes.layouts import misread, nested
from imagenet_prep.recipes.reading import RecipeFile
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.class_folders import MACOSX
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
    names = _folders(inputs, listing, divisions)
    present = set(names.values())
    found = sorted(present, key=str.encode)
    classes = given or numbered(found, found, first)
    notes = _passed(inputs, divisions, present)
    doubts: list[InputError] = []
    if given is None:
        files = _by_class(listing, names, divisions)
        if inner := nested(files):
            notes.append(f"the first folder is the class: {listed(inner)} are only told apart by their paths")
        if wrong := misread(files):
            what, hint = f"{inputs.origin}: {wrong.what}", f"name the choice: {wrong.choice}"
            doubts.append(InputError(what, "expected a folder a class", hint))
    else:
        _refuse_strange(file, inputs, listing, names, given)
    without = [name for name in classes.names if name not in present]
    if without:
        notes.append(f"{number_of(len(without), 'class has', 'classes have')} no file: {listed(without)}")
    place = {name: label for label, name in enumerate(classes.names, 1)}
    labels = array("q", [place.get(names.get(row, ""), -1) for row in range(len(listing))])
    return Labelled(classes, labels, notes=tuple(notes), doubts=tuple(doubts))


def _folders(inputs: Inputs, listing: Catalog, divisions: Sequence[Division]) -> dict[int, str]:
    """The class folder of each file, by row; files in none are an obstacle."""
    names: dict[int, str] = {}
    loose: list[tuple[str, str]] = []
    for division in divisions:
        for row in division.rows:
            name, slash, _ = listing.names[row].removeprefix(division.lead).partition("/")
            if slash:
                names[row] = name
            else:
                loose.append((listing.names[row], division.lead))
    if loose:
        others = f" (and {len(loose) - 1:,} others)" if len(loose) > 1 else ""
        inputs.obstacles.append(
            InputError(
                f"{loose[0][0]} lies in no class folder{others}",
                f"expected {inputs.origin.name}/{loose[0][1]}CLASS/FILE",
                "move it, or name a file of labels in the recipe",
            )
        )
    return names


def _refuse_strange(
    file: RecipeFile, inputs: Inputs, listing: Catalog, names: Mapping[int, str], given: Classes
) -> None:
    """A folder that is not among the recipe's classes is an obstacle."""
    strange = sorted(set(names.values()) - set(given.names), key=str.encode)
    if strange:
        inside = next(listing.names[row] for row in names if names[row] == strange[0])
        others = f" (and files in {listed(strange[1:])})" if strange[1:] else ""
        inputs.obstacles.append(
            InputError(
                f"{inside} lies in {strange[0]}, which is not among the classes of {file.path}{others}",
                f"expected one of {listed(given.names)}",
                "add the class, or take the folder out",
            )
        )


def _by_class(listing: Catalog, names: Mapping[int, str], divisions: Sequence[Division]) -> Mapping[str, Sequence[str]]:
    """The files of each class, by their paths from there."""
    files: dict[str, list[str]] = {}
    for division in divisions:
        for row in division.rows:
            if row in names:
                inner = listing.names[row].removeprefix(division.lead).removeprefix(f"{names[row]}/")
                files.setdefault(names[row], []).append(inner)
    return files


def _passed(inputs: Inputs, divisions: Sequence[Division], found: set[str]) -> list[str]:
    """What to tell the user of folders that hold nothing of this content, and of those that are nobody's data."""
    notes = [f"{name} is passed over: macOS keeps its own data there" for name in inputs.remarks.passed.get(MACOSX, ())]
    if inputs.listing.containers[0].reading != "alone":
        return notes
    leads = {division.lead for division in divisions}
    empty = []
    for lead in sorted(leads):
        known = {*found, MACOSX, *(each.rstrip("/") for each in leads if not lead)}
        entries = sorted(os.scandir(inputs.base / lead), key=lambda each: each.name)
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
