"""Faults of tars and doubts about them, each with the command that unpacks the tars."""

from __future__ import annotations

from collections.abc import Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine
from imagenet_prep.hints import Hint
from imagenet_prep.init.folder_shapes import Shape, faults_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.packed_files import unpacking_hint
from imagenet_prep.init.proposal import DoubtError
from imagenet_prep.init.structures.all_folders import are_doubtful_parts, top_folders
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.misread_folders import mask_folders
from imagenet_prep.sources.tars import noun_of
from imagenet_prep.text import listed, number_of


def faults_of_tar_folders(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The files that would be misread or lost if folders in tars became classes."""
    if not shape.files.loose:
        return faults_of(inspection.folder, shape, unpacking_tars(inspection))
    name, lead = shape.files.loose[0]
    count = number_of(len(shape.files.loose), "file")
    place = f"{name} in {tars_in_words(inspection)}"
    problem = f"{inspection.folder}: {place} is in no class folder ({count})"
    move = "move it into a class folder"
    if len(shape.files.loose) > 1:
        move = "move them into class folders"
    hint = unpacking_tars(inspection, f"unpack, {move}, then run init again: ")
    return [InputError(problem, f"expected {lead}CLASS/FILE", hint)]


def fault_of_double(inspection: Inspection, name: str, names: Sequence[str]) -> InputError:
    """The fault of a file that is in several tars under one name."""
    problem = f"{inspection.folder}: {name} is in several {tars_in_words(inspection)}"
    archive = noun_of(inspection.archives)
    class_tars = inspection.command_without_columns(**{"as": "class-tars"})
    hint: str = Hint(f"to make each {archive} a class: ", class_tars)
    if any("/" in other_name for other_name in names):
        hint = _unpacking(inspection, apart=True)
    return InputError(problem, "expected every name once", hint)


def faults_of_tar_splits(
    inspection: Inspection, shape: Shape, names: Sequence[str]
) -> list[InputError]:
    """The fault of folders in tars that are splits without classes, and others that are none:
    train and test1.
    """
    if shape.classes:
        folders = set(shape.classes)
    elif shape.splits:
        return []
    else:
        folders = {name.partition("/")[0] for name in names if "/" in name}
    called_splits = sorted(filter(split_name, folders))
    if not called_splits or (shape.classes and len(called_splits) < len(folders)):
        return []
    first, *others = inspection.archives
    place = (
        f"{tars_in_words(inspection)} of {inspection.folder}"
        if others
        else inspection.folder / first
    )
    problem = f"folders in {place} with names of splits, not of classes: {listed(called_splits)}"
    return [InputError(problem, "expected one folder per class", unpacking_tars(inspection))]


_UNPACK = "unpack, then run init again: "


def unpacking_tars(inspection: Inspection, lead: str = _UNPACK) -> str:
    """The hint that unpacks the tars; into a folder each, where folders don't tell files apart."""
    names: list[str] = []
    for listing in inspection.archives.values():
        names += listing.names
    are_alike = len(set(names)) < len(names)
    are_bare = len(inspection.archives) > 1 and not all("/" in name for name in names)
    return _unpacking(inspection, lead, apart=are_alike or are_bare)


def _unpacking(inspection: Inspection, lead: str = _UNPACK, *, apart: bool) -> str:
    """The hint that unpacks the tars, each into a folder of its own if ``apart``."""
    hint = unpacking_hint(inspection.folder, list(inspection.archives), apart=apart)
    return Hint(lead, hint) if isinstance(hint, CommandLine) else hint


def doubtful_tar_folders(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The folders in tars that may hold more files with labels."""
    folders = [*shape.roles.doubtful, *shape.roles.missed]
    if not folders or not shape.roles.classes:
        return []
    noun = "the folder" if len(folders) == 1 else "the folders"
    classes = "a class" if len(folders) == 1 else "classes"
    place = f"{noun} {listed(folders)} in {tars_in_words(inspection)}"
    problem = f"{inspection.folder}: {place} may be {classes}, or not"
    expected = "expected class folders, or splits of them"
    return [InputError(problem, expected, unpacking_tars(inspection))]


def doubts_of_tar_parts(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The doubt about folders that hold the same folders: they may be the classes."""
    if not are_doubtful_parts(shape.roles):
        return []
    parts = listed(shape.roles.parts)
    classes = listed(shape.classes)
    place = f"the {tars_in_words(inspection)} of {inspection.folder}"
    problem = f"{parts} in {place} hold the same folders ({classes}), and may be the classes"
    aim, outcome = f"make {classes} the classes", f"{classes} taken as the classes"
    expected = "expected one folder per class"
    return [DoubtError.of(aim, outcome, problem, expected, unpacking_tars(inspection))]


def faults_of_tar_masks(
    inspection: Inspection, shape: Shape, names: Sequence[str]
) -> list[InputError]:
    """The fault of folders of images and of their masks, which are no classes."""
    misread = mask_folders(top_folders(names, shape.roles.lead)) if names else None
    if misread is None:
        return []
    problem = f"{tars_in_words(inspection)} of {inspection.folder}: {misread.what}"
    return [InputError(problem, "expected images without masks", unpacking_tars(inspection))]


def tars_in_words(inspection: Inspection) -> str:
    """The word for the archives: tars, zips or archives."""
    return f"{noun_of(inspection.archives)}s"
