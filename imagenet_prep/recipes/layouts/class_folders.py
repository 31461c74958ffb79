"""Class folders, with folders for splits above them or without; or files in any folders, without classes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.labels import ClassFolders, class_order, folder_faults
from imagenet_prep.recipes.layouts import LIKELY, ONLY_IF_ASKED, POSSIBLE, Proposal, Reading, as_command
from imagenet_prep.recipes.splits import Division, is_image_folder, misread, mixed_masks, nested, split_folders
from imagenet_prep.sources.names import Names
from imagenet_prep.text import listed, number_of


class Shape(Struct, frozen=True):
    """Where files are in folders: the files of each class, the folders that lead to all, and those of splits below."""

    files: ClassFolders
    lead: str = ""
    splits: Mapping[str, str] = {}

    @property
    def classes(self) -> list[str]:
        """The classes in the order of their labels."""
        return class_order(self.files)

    @property
    def has_classes(self) -> bool:
        """Whether the folders may be classes."""
        return (len(self.files) > 1 or bool(self.splits)) and not misread(self.files, self.files.names())


def shape_of(names: Sequence[str], kind: str = "first") -> Shape:
    """The class folders among files, with given splits above them or not; ``kind``: the recipe's `class_folder`."""
    lead = _lead(names)
    splits = split_folders((name.removeprefix(lead) for name in names), 1)
    lead = lead if splits or kind == "first" else ""
    packed = Names.take(sorted(names, key=str.encode))
    leads = [f"{lead}{top}/" for top in splits] or [lead]
    parts = [Division("", packed.below(each) if each else range(len(packed)), False, each) for each in leads]
    return Shape(ClassFolders(packed, parts, kind), lead, splits)


def _lead(names: Sequence[str]) -> str:
    """The folders that hold all others, where there are class folders below them."""
    lead, rest = "", names
    while rest and not split_folders(rest, 1):
        tops = {name.partition("/")[0] for name in rest}
        if len(tops) > 1:
            return lead if all("/" in name for name in rest) else ""
        if not all(name.count("/") > 1 for name in rest):
            return lead
        lead += f"{next(iter(tops))}/"
        rest = [name.partition("/")[2] for name in rest]
    return lead


def faults_of(where: object, shape: Shape, ways: str, way: str = "") -> list[InputError]:
    """The files that would be misread or lost if folders became classes; ``ways`` to take folders within classes."""
    found = [*folder_faults(where, shape.files, way)]
    if inner := nested(shape.files.deep()):
        what = f"{where}: folders within classes would lose their names: {listed(inner)}"
        hint = f"{ways}; a recipe with classes: [{', '.join(list(shape.files)[:20])}] takes the first"
        found.append(InputError(what, "expected one level of class folders", hint))
    return found


_KINDS = {
    "class-folders": ("first", "folders"),
    "inner-folders": ("inner", "inner folders"),
    "folder-paths": ("path", "paths of the folders"),
}
"""The value of `class_folder` in a recipe, and what the classes are then, by layout."""


def _recognise(layout: str, inspection: Inspection) -> Reading | None:
    """Files in folders; one folder alone may be a class or not. Folders within folders are classes only if asked."""
    kind, words = _KINDS[layout]
    shape, is_first = shape_of(inspection.items, kind), kind == "first"
    first = shape if is_first else shape_of(inspection.items)
    classes, alone = shape.classes, len(shape.files) == 1 and not shape.splits
    has_deep = bool(first.files.deep())
    if not classes or (alone and is_image_folder(classes[0]) if is_first else not has_deep):
        return None
    assert inspection.content is not None
    way = f"{as_command(inspection, 'folder-paths')} takes the paths for classes"
    wrong = faults_of(inspection.folder, shape, _ways(inspection) if is_first else "", way)
    where = f" in {' and '.join(shape.splits)}" if shape.splits and is_first else ""
    evidence = f"{number_of(len(classes), 'folder')} of files{where}: {listed(classes)}"
    names = [name.removeprefix(shape.lead) for name in inspection.items]
    options = {} if is_first else {"class_folder": kind}
    return Reading(
        (POSSIBLE if alone else LIKELY) if is_first else ONLY_IF_ASKED,
        (evidence,),
        f"the {words} are the classes: {listed(classes)}",
        Proposal("folders", inspection.content, names, shape.lead, splits=shape.splits, options=options),
        wrong,
        labelled=len(names),
        classes=len(classes),
    )


def _ways(inspection: Inspection) -> str:
    """The commands that take folders within classes."""
    deep = {name: shape_of(inspection.items, kind) for name, (kind, _) in _KINDS.items() if kind != "first"}
    fit = {name: listed(each.classes) for name, each in deep.items() if not each.files.same}
    return "; or ".join(f"{as_command(inspection, name)} (classes: {classes})" for name, classes in fit.items())


def _recognise_unlabelled(inspection: Inspection) -> Reading | None:
    """Files without classes: all in one folder, or in none."""
    if not inspection.items:
        return None
    assert inspection.content is not None
    shape = shape_of(inspection.items)
    certainty = ONLY_IF_ASKED if len(shape.files) > 1 or shape.splits else POSSIBLE
    evidence = f"{number_of(len(inspection.items), inspection.noun)} without a class"
    faults = []
    if len(shape.files) < 2 and (wrong := mixed_masks(Names.take(inspection.items))):
        hint = f"a recipe can say: {wrong.choice}"
        faults = [InputError(f"{inspection.folder}: {wrong.what}", "expected images alone", hint)]
    proposal = Proposal("files", inspection.content, inspection.items)
    return Reading(certainty, (evidence,), "records without labels", proposal, faults, is_labelled=False)


LAYOUTS = {name: functools.partial(_recognise, name) for name in _KINDS} | {"unlabelled": _recognise_unlabelled}
