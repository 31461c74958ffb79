"""Tars, read in place: with class folders within them or without, tars within a tar too; or a tar a class."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.columns import Content, is_of
from imagenet_prep.recipes.inspection import DATA, Inspection, main_content, strange_among, wrong_formats
from imagenet_prep.recipes.labels import class_order
from imagenet_prep.recipes.layouts import (
    CERTAIN,
    LIKELY,
    ONLY_IF_ASKED,
    POSSIBLE,
    Description,
    FolderLayout,
    Proposal,
    Reading,
    as_command,
    describe_rest,
    strange,
)
from imagenet_prep.recipes.layouts.class_folders import Shape, faults_of, shape_of
from imagenet_prep.recipes.splits import counted, suffix_of
from imagenet_prep.sources.tars import folder_of_tar
from imagenet_prep.text import listed, number_of

_SHARD = re.compile(r"[-_. ]*\d+$")
_DEEP = "a recipe can say: source: {tar: ..., class_folder: inner}, or path"
_WNID = re.compile(r"n\d{8}")


def recognise(inspection: Inspection) -> Reading | None:
    """Tars that hold images or arrays."""
    content = content_of(inspection)
    if content is None:
        return None
    names = [name for name, _ in members(inspection, content)]
    again = next((name for name, count in Counter(names).items() if count > 1), None)
    shape = _shape(names)
    faults = formats(inspection, content)
    if again is not None:
        what = f"{inspection.folder}: {again} is in several tars"
        hint = f"{as_command(inspection, 'class-tars')} takes each tar for a class"
        faults.append(InputError(what, "expected every name once", hint))
    classes = list(shape.classes)
    if classes:
        faults += faults_of(inspection.folder, shape, inspection.folder.name, _DEEP)
    evidence = f"{number_of(len(inspection.archives), 'tar')} of {counted(names)}"
    evidence += f", in {number_of(len(classes), 'folder')}: {listed(classes)}" if classes else ", in no folder"
    meaning = f"the folders in the tars are the classes: {listed(classes)}" if classes else "records without labels"
    certainty = LIKELY if classes or again is None or not is_class_tars(inspection) else POSSIBLE
    if inspection.items:
        certainty = min(certainty, POSSIBLE) - 1
    return Reading(certainty, (evidence,), meaning, tuple(faults), shape)


def describe(inspection: Inspection, reading: Reading) -> Description:
    """All files in the tars."""
    rest = describe_rest(inspection, alone=list(inspection.archives), is_labelled=bool(reading.value.files))
    return add_members(inspection, rest)


def recipe(inspection: Inspection, reading: Reading, *, tar_folders: bool = False) -> Proposal:
    """A source of tars, perhaps each as a folder."""
    shape: Shape = reading.value
    content = content_of(inspection)
    assert content is not None
    rows = sorted(members(inspection, content, tar_folders=tar_folders))
    return Proposal(
        "tar",
        content,
        [name for name, _ in rows],
        [length for _, length in rows],
        archives=tuple(inspection.archives),
        tar_folders=tar_folders,
        splits=shape.splits or None,
        classes=shape.classes,
    )


def _shape(names: Sequence[str]) -> Shape:
    """Class folders in tars: if one file is in no folder, convert takes no folder as a class."""
    shape = shape_of(names)
    if shape.lead or shape.loose:  # convert looks for classes at the top, and in all or none
        loose = [name for name in names if "/" not in name]
        files = _by_top(names)
        return Shape("", files, {}, loose if files else ())
    return shape


def _by_top(names: Sequence[str]) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for top, _, rest in (name.partition("/") for name in names if "/" in name):
        files.setdefault(top, []).append(rest)
    return files


# what other layouts of tars use --------------------------------------------------------------------------------


def content_of(inspection: Inspection) -> Content | None:
    """The content of most files in the tars."""
    return main_content(name for listing in inspection.archives.values() for name in listing.names)


def members(inspection: Inspection, content: Content, *, tar_folders: bool = False) -> list[tuple[str, int]]:
    """Name and length of each file of this content, in all tars; with ``tar_folders`` below its tar's name."""
    return [
        (folder_of_tar(tar.rpartition("/")[2]) * tar_folders + name, length)
        for tar, listing in inspection.archives.items()
        for name, length in zip(listing.names, listing.lengths.tolist(), strict=True)
        if is_of(content, name)
    ]


def is_class_tars(inspection: Inspection) -> bool:
    """Whether tars have names of classes: several, and not numbered alike as parts of one set are."""
    stems = [name.rpartition("/")[2][:-4] for name in inspection.archives]
    return len(stems) > 1 and len({_SHARD.sub("", stem) for stem in stems}) > 1


def formats(inspection: Inspection, content: Content) -> list[InputError]:
    """Files in tars that can't be read, and tars within folders of others."""
    found = []
    for name, listing in inspection.archives.items():
        found += wrong_formats(inspection.folder / name, listing.names, content)
        if names := strange_among(listing.names, content):
            fit = sum(is_of(content, each) for each in listing.names)
            found.append(strange(inspection.folder / name, names, content, fit))
    return found


def add_members(inspection: Inspection, rest: Description) -> Description:
    """The description, with the other files in the tars."""
    content = content_of(inspection)
    assert content is not None
    names = (name for listing in inspection.archives.values() for name in listing.names)
    others = [name for name in names if not is_of(content, name)]
    data = [name for name in others if suffix_of(name) in DATA]
    lost = list(rest.lost)
    if data:
        what = f"{inspection.folder}: tars hold {counted(data)} that would not be read: {listed(data)}"
        lost.append(
            InputError(what, "expected images alone", "labels in tars are not read yet: make class folders of them")
        )
    plain = [name for name in others if name not in set(data)]
    noted = [f"{counted(plain)} in tars: no image ({listed(plain)})"] if plain else []
    return Description(tuple(lost), (*rest.passed, *noted))


# a tar a class ------------------------------------------------------------------------------------------------


def _recognise_class_tars(inspection: Inspection) -> Reading | None:
    """Several tars whose files are in no folder."""
    content = content_of(inspection)
    if content is None or len(inspection.archives) < 2:
        return None
    names = [name for name, _ in members(inspection, content, tar_folders=True)]
    if any(name.count("/") > 1 for name in names):
        return None
    classes = class_order({folder_of_tar(name.rpartition("/")[2]).rstrip("/") for name in inspection.archives})
    are_known = all(map(_WNID.fullmatch, classes))
    certainty = CERTAIN if are_known else LIKELY if is_class_tars(inspection) else ONLY_IF_ASKED
    if inspection.items:
        certainty = ONLY_IF_ASKED
    evidence = f"{number_of(len(classes), 'tar')}, their names: {listed(classes)}"
    meaning = f"each tar is a class: {listed(classes)}"
    return Reading(certainty, (evidence,), meaning, tuple(formats(inspection, content)), Shape("", _by_top(names), {}))


LAYOUTS = {
    "plain-tars": FolderLayout(recognise, describe, recipe),
    "class-tars": FolderLayout(_recognise_class_tars, describe, functools.partial(recipe, tar_folders=True)),
}
