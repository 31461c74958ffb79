"""Tars, read in place: with class folders within them or without, tars within a tar too;
or a tar a class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.init.file_endings import DATA
from imagenet_prep.init.inspection import (
    Inspection,
    main_content,
    strange,
    strange_among,
    wrong_formats,
)
from imagenet_prep.init.layouts.class_folders import Shape, faults_of, is_usual, shape_of
from imagenet_prep.init.packed_files import unpacking_hint
from imagenet_prep.init.proposal import (
    CERTAIN,
    LIKELY,
    ONLY_IF_ASKED,
    POSSIBLE,
    Interpretation,
    Proposal,
)
from imagenet_prep.recipes.classes import class_order
from imagenet_prep.recipes.columns import Content, is_of
from imagenet_prep.recipes.divisions import Division
from imagenet_prep.recipes.folder_labels import ClassFolders
from imagenet_prep.recipes.folder_roles import FolderTree
from imagenet_prep.recipes.splits import counted, split_name, stem_of, suffix_of
from imagenet_prep.sources.names import Names
from imagenet_prep.sources.tars import folder_of_tar, noun_of
from imagenet_prep.text import listed, number_of

_SHARD = re.compile(r"[-_. ]*\d+$")
_DEEP = "a recipe can say: source: {tar: ..., class_folder: inner}, or path"
_FOR_READERS = re.compile(r"licen[cs]e|read_?me|copying", re.IGNORECASE)
"""Texts of a set that say nothing of its images, by their names without endings."""

_WNID = re.compile(r"n\d{8}")


def _recognise_plain(inspection: Inspection) -> Interpretation | None:
    """Tars that hold images or arrays."""
    content = _content_of(inspection)
    if content is None:
        return None
    names, below_tars = (_members(inspection, content, tar_folders=each) for each in (False, True))
    are_splits = (
        len(inspection.archives) > 1
        and not shape_of(names).splits
        and bool(shape_of(below_tars).splits)
    )
    names = below_tars if are_splits else names
    again = next((name for name, count in Counter(names).items() if count > 1), None)
    shape = _shape(names)
    faults = []
    if again is not None:
        what, hint = (
            f"{inspection.folder}: {again} is in several tars",
            inspection.command_as("class-tars"),
        )
        faults.append(
            InputError(what, "expected every name once", f"{hint} takes each tar for a class")
        )
    classes = shape.classes
    if classes:
        faults += faults_of(inspection.folder, shape, _DEEP)
    faults += _faults_of_splits(inspection, shape, names)
    evidence = (
        f"{number_of(len(inspection.archives), noun_of(inspection.archives))} of {counted(names)}"
    )
    evidence += (
        f", in {number_of(len(classes), 'folder')}: {listed(classes)}"
        if classes
        else ", in no folder"
    )
    evidence += f", the tars are the splits: {listed(shape.splits)}" if are_splits else ""
    meaning = (
        f"the folders in the tars are the classes: {listed(classes)}"
        if classes
        else "records without labels"
    )
    certainty = LIKELY if classes or again is None or not _is_class_tars(inspection) else POSSIBLE
    if inspection.items:
        certainty = min(certainty, POSSIBLE) - 1
    interpretation = _reading(inspection, content, shape, tar_folders=are_splits)
    faults += interpretation.faults
    passed = [*interpretation.skip_notes, *_unlabelled(shape, names)]
    labelled = len(interpretation.proposal.names) if classes and interpretation.proposal else 0
    return replace(
        interpretation,
        certainty=certainty,
        evidence=(evidence,),
        meaning=meaning,
        faults=faults,
        losses=[*interpretation.losses, *_doubtful(inspection, shape)],
        skip_notes=passed,
        labelled=labelled,
        classes=len(classes),
    )


def _unlabelled(shape: Shape, names: Sequence[str]) -> list[str]:
    """The notes on folders in tars whose images have no class."""
    root = FolderTree.take(names)
    folders = [f"{shape.lead}{folder}" for folder in shape.roles.unlabelled]
    return [
        f"{number_of(root.at(path).total, 'file')} without a class in {path}, left out"
        for path in folders
    ]


def _faults_of_splits(
    inspection: Inspection, shape: Shape, names: Sequence[str]
) -> list[InputError]:
    """The fault of folders in tars that are splits without classes, and others that are none:
    train and test1.
    """
    tops = {name.partition("/")[0] for name in names if "/" in name}
    folders = set(shape.classes) if shape.classes else set() if shape.splits else tops
    called = sorted(filter(split_name, folders))
    if not called or (shape.classes and len(called) < len(folders)):
        return []
    what = (
        f"{inspection.folder}: folders in tars are called as splits are, not as classes: "
        f"{listed(called)}"
    )
    return [
        InputError(
            what,
            "expected a folder a class",
            unpacking_hint(inspection.folder, list(inspection.archives)),
        )
    ]


def _doubtful(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The folders in tars that may hold more files with labels."""
    folders = [*shape.roles.doubtful, *shape.roles.missed] if shape.roles.classes else []
    what = f"{inspection.folder}: {listed(folders)} in tars may be more classes, or none"
    hint = "for all of them, a recipe can say: classes: [...]"
    return [InputError(what, "expected class folders, or splits of them", hint)] if folders else []


def _recognise_class_tars(inspection: Inspection) -> Interpretation | None:
    """Several tars whose files are in no folder: a tar a class."""
    content = _content_of(inspection)
    if content is None or len(inspection.archives) < 2:
        return None
    names = _members(inspection, content, tar_folders=True)
    if any(name.count("/") > 1 for name in names):
        return None
    classes = class_order(
        {folder_of_tar(name.rpartition("/")[2]).rstrip("/") for name in inspection.archives}
    )
    are_known = all(map(_WNID.fullmatch, classes))
    certainty = CERTAIN if are_known else LIKELY if _is_class_tars(inspection) else ONLY_IF_ASKED
    if inspection.items:
        certainty = ONLY_IF_ASKED
    evidence = (
        f"{number_of(len(classes), noun_of(inspection.archives))}, their names: {listed(classes)}"
    )
    interpretation = _reading(inspection, content, _top_shape(names), tar_folders=True)
    meaning = f"each tar is a class: {listed(classes)}"
    return replace(interpretation, certainty=certainty, evidence=(evidence,), meaning=meaning)


def _reading(
    inspection: Inspection, content: Content, shape: Shape, *, tar_folders: bool
) -> Interpretation:
    """The tars as a source; the other files in them, of which data would be missed."""
    wrong: list[InputError] = []
    for name, listing in inspection.archives.items():
        wrong += wrong_formats(inspection.folder / name, listing.names, content)
        if names := strange_among(listing.names, content):
            fit = sum(is_of(content, each) for each in listing.names)
            wrong.append(strange(inspection.folder / name, names, content, fit))
    others = [
        name
        for listing in inspection.archives.values()
        for name in listing.names
        if not is_of(content, name)
    ]
    data = [
        name
        for name in others
        if suffix_of(name) in DATA and not _FOR_READERS.fullmatch(stem_of(name))
    ]
    empty = [name for name, listing in inspection.archives.items() if not len(listing.names)]
    plain = [name for name in others if name not in data]
    what = f"{inspection.folder}: tars hold {counted(data)} that would not be read: {listed(data)}"
    hint = unpacking_hint(inspection.folder, list(inspection.archives))
    members = (
        list(shape.files.names())
        if shape.files
        else _members(inspection, content, tar_folders=tar_folders)
    )
    is_plain = not shape.files or (is_usual(shape.roles) and not shape.lead)
    places = {} if is_plain else shape.roles.places_in_tars()
    if places is None:
        what = (
            f"{inspection.folder}: folders in tars that are no classes: "
            f"{listed(shape.roles.left_out)}"
        )
        wrong.append(InputError(what, "expected class folders, or splits of them", hint))
    tars = list(inspection.archives)
    options = {"tar_folders": True} if tar_folders else {}
    return Interpretation(
        ONLY_IF_ASKED,
        (),
        "",
        Proposal(
            "tar",
            content,
            sorted(members),
            paths={"": tars},
            splits=shape.splits,
            places=places or {},
            options=options,
        ),
        wrong,
        containers=tars,
        is_labelled=bool(shape.files),
        losses=[InputError(what, "expected images alone", hint)] if data else [],
        skip_notes=[
            *([f"{counted(plain)} in tars: no image ({listed(plain)})"] if plain else []),
            *([f"{number_of(len(empty), 'empty tar')}: {listed(empty)}"] if empty else []),
        ],
    )


def _shape(names: Sequence[str]) -> Shape:
    """Class folders in tars: if one file is in no folder, convert takes no folder as a class."""
    return shape_of(names) if all("/" in name for name in names) else _top_shape(names)


def _top_shape(names: Sequence[str]) -> Shape:
    return Shape(ClassFolders(Names.take(names), [Division("", range(len(names)), False)]))


def _content_of(inspection: Inspection) -> Content | None:
    """The content of most files in the tars."""
    return main_content(name for listing in inspection.archives.values() for name in listing.names)


def _members(inspection: Inspection, content: Content, *, tar_folders: bool = False) -> list[str]:
    """The files of this content in all tars; with ``tar_folders`` below their tar's name."""
    return [
        folder_of_tar(tar.rpartition("/")[2]) * tar_folders + name
        for tar, listing in inspection.archives.items()
        for name in listing.names
        if is_of(content, name)
    ]


def _is_class_tars(inspection: Inspection) -> bool:
    """Whether tars have names of classes: several,
    and not numbered alike as parts of one set are.
    """
    stems = [folder_of_tar(name.rpartition("/")[2]).rstrip("/") for name in inspection.archives]
    return len(stems) > 1 and len({_SHARD.sub("", stem) for stem in stems}) > 1


LAYOUTS = {"plain-tars": _recognise_plain, "class-tars": _recognise_class_tars}
