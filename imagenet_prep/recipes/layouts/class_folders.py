"""Class folders, with folders for splits above them or without; or files in any folders, without classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.labels import class_order
from imagenet_prep.recipes.layouts import (
    LIKELY,
    ONLY_IF_ASKED,
    POSSIBLE,
    Description,
    FolderLayout,
    Proposal,
    Reading,
    as_command,
    describe_rest,
)
from imagenet_prep.recipes.splits import Misread, is_image_folder, misread, mixed_masks, nested, split_folders
from imagenet_prep.sources.names import Names
from imagenet_prep.text import listed, number_of


@dataclass(frozen=True, slots=True)
class Shape:
    """Where files are in folders: the files of each class by their paths from ``lead`` and from there, and the rest.

    ``splits`` are the folders above the classes; ``loose`` the files in no class folder; ``same`` two paths that would
    be one class.
    """

    lead: str
    files: Mapping[str, Sequence[str]]
    splits: Mapping[str, str]
    loose: Sequence[str] = ()
    same: Sequence[str] = ()

    @property
    def classes(self) -> dict[str, int]:
        """How many files each class has, in the order of their labels."""
        return {name: len(self.files[name]) for name in class_order(self.files)}

    @property
    def misread(self) -> Misread | None:
        """The reason why the folders are no classes, if there is one."""
        return misread(self.files, Names.take(f"{name}/{each}" for name, files in self.files.items() for each in files))

    @property
    def has_classes(self) -> bool:
        """Whether the folders may be classes."""
        return (len(self.files) > 1 or bool(self.splits)) and not self.misread


def recognise(inspection: Inspection) -> Reading | None:
    """Files in folders; one folder alone may be a class or not."""
    shape = shape_of(inspection.items)
    if not shape.files:
        return None
    classes = list(shape.classes)
    meaning = f"the folders are the classes: {listed(classes)}"
    where = f" in {' and '.join(shape.splits)}" if shape.splits else ""
    evidence = f"{number_of(len(classes), 'folder')} of files{where}: {listed(classes)}"
    wrong = faults_of(inspection.folder, shape, inspection.folder.name, _ways(inspection, shape))
    alone = len(classes) == 1 and not shape.splits
    if alone and is_image_folder(classes[0]):
        return None
    return Reading(POSSIBLE if alone else LIKELY, (evidence,), meaning, tuple(wrong), shape)


def describe(inspection: Inspection, reading: Reading) -> Description:
    """All files in class folders."""
    return describe_rest(inspection)


def recipe(inspection: Inspection, reading: Reading) -> Proposal:
    """A source of folders."""
    shape: Shape = reading.value
    assert inspection.content is not None
    names = [name.removeprefix(shape.lead) for name in inspection.items]
    return Proposal(
        "folders", inspection.content, names, inspection.lengths, shape.lead, splits=shape.splits, classes=shape.classes
    )


def shape_of(names: Sequence[str], kind: str = "first") -> Shape:
    """The class folders among files, with given splits above them or not; ``kind``: the recipe's `class_folder`."""
    lead = _lead(names)
    rest = [name.removeprefix(lead) for name in names]
    splits = split_folders(rest, 1)
    if splits:
        rest = [name.partition("/")[2] for name in rest]
    elif kind != "first":
        lead, rest = "", list(names)
    files: dict[str, list[str]] = {}
    paths: dict[str, str] = {}
    same: tuple[str, ...] = ()
    for name in (each for each in rest if "/" in each):
        path = name.partition("/")[0] if kind == "first" else name.rpartition("/")[0]
        folder = path.rpartition("/")[2] if kind == "inner" else path
        if paths.setdefault(folder, path) != path:
            same = (paths[folder], path)
        files.setdefault(folder, []).append(name.removeprefix(f"{path}/"))
    return Shape(lead, files, splits, [name for name in rest if "/" not in name], same)


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


def faults_of(where: object, shape: Shape, name: str, ways: str) -> list[InputError]:
    """The files that would be misread or lost if folders became classes; ``ways`` to take folders within classes."""
    found = []
    if (wrong := shape.misread) is not None:
        hint = f"a recipe can say: {wrong.choice}"
        found.append(InputError(f"{where}: {wrong.what}", "expected a folder a class", hint))
    inner = nested(shape.files)
    if inner:
        what = f"{where}: folders within classes would lose their names: {listed(inner)}"
        hint = f"{ways}; a recipe with classes: [{', '.join(list(shape.files)[:20])}] takes the first"
        found.append(InputError(what, "expected one level of class folders", hint))
    if shape.loose:
        others = f" (and {len(shape.loose) - 1:,} others)" if len(shape.loose) > 1 else ""
        what = f"{shape.lead}{shape.loose[0]} is in no class folder{others}"
        found.append(
            InputError(what, "expected all files in class folders, or none", "move it, or label all in a file")
        )
    return found


def _ways(inspection: Inspection, shape: Shape) -> str:
    """The commands that take folders within classes."""
    return "; or ".join(
        f"{as_command(inspection, name)} (classes: {listed(each.classes)})"
        for name, (kind, _) in _KINDS.items()
        if not (each := shape_of(inspection.items, kind)).same
    )


# folders within class folders ----------------------------------------------------------------------------------

_KINDS = {"inner-folders": ("inner", "inner folders"), "folder-paths": ("path", "paths of the folders")}
"""The value of `class_folder` in a recipe, and what the classes are then, by layout."""


def _deep_folders(name: str) -> FolderLayout:
    """The layout of inner folders, or of whole paths, as classes."""
    kind, words = _KINDS[name]

    def recognise_deep(inspection: Inspection) -> Reading | None:
        if not any("/" in each for files in shape_of(inspection.items).files.values() for each in files):
            return None
        shape = shape_of(inspection.items, kind)
        evidence = f"{number_of(len(shape.classes), 'folder')} of files: {listed(shape.classes)}"
        wrong = faults_of(inspection.folder, shape, inspection.folder.name, "")
        if shape.same:
            what = f"{inspection.folder}: {' and '.join(shape.same)} end in the same folder"
            hint = f"{as_command(inspection, 'folder-paths')} takes the paths for classes"
            wrong.append(InputError(what, "expected one folder of each name", hint))
        meaning = f"the {words} are the classes: {listed(shape.classes)}"
        return Reading(ONLY_IF_ASKED, (evidence,), meaning, tuple(wrong), shape)

    def propose_deep(inspection: Inspection, reading: Reading) -> Proposal:
        return dataclasses.replace(recipe(inspection, reading), options={"class_folder": kind})

    return FolderLayout(recognise_deep, describe, propose_deep)


# files without classes -----------------------------------------------------------------------------------------


def _recognise_unlabelled(inspection: Inspection) -> Reading | None:
    """All files in one folder, or in none."""
    if not inspection.items:
        return None
    shape = shape_of(inspection.items)
    certainty = ONLY_IF_ASKED if len(shape.files) > 1 or shape.splits else POSSIBLE
    what = "array" if inspection.content == "array" else "image"
    evidence = f"{number_of(len(inspection.items), what)} without a class"
    wrong = mixed_masks(Names.take(inspection.items)) if len(shape.files) < 2 else None
    hint = f"a recipe can say: {wrong.choice}" if wrong else ""
    faults = (InputError(f"{inspection.folder}: {wrong.what}", "expected images alone", hint),) if wrong else ()
    return Reading(certainty, (evidence,), "records without labels", faults)


def _describe_unlabelled(inspection: Inspection, reading: Reading) -> Description:
    """All files."""
    return describe_rest(inspection, is_labelled=False)


def _propose_unlabelled(inspection: Inspection, reading: Reading) -> Proposal:
    """Patterns of files."""
    assert inspection.content is not None
    return Proposal("files", inspection.content, inspection.items, inspection.lengths)


LAYOUTS = {
    "class-folders": FolderLayout(recognise, describe, recipe),
    **{name: _deep_folders(name) for name in _KINDS},
    "unlabelled": FolderLayout(_recognise_unlabelled, _describe_unlabelled, _propose_unlabelled),
}
