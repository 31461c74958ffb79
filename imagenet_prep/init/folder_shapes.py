"""The files of a folder -> its Shape: which folders are classes, and which are splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.init.proposal import DoubtError
from imagenet_prep.recipes.classes import class_order
from imagenet_prep.recipes.divisions import Division
from imagenet_prep.recipes.folder_labels import ClassFolders, folder_faults, misread_masks
from imagenet_prep.recipes.folder_roles import FolderTree, Roles, roles_of
from imagenet_prep.recipes.misread_folders import nested
from imagenet_prep.recipes.splits import FOLDERS
from imagenet_prep.sources.names import Names
from imagenet_prep.text import listed


class Shape(Struct, frozen=True):
    """Where files are in folders: the files of each class, the folders that lead to all, and those
    of splits below.

    ``splits`` are by folder, from ``lead``; ``roles`` what each folder is.
    """

    files: ClassFolders
    lead: str = ""
    splits: Mapping[str, str] = {}
    roles: Roles = Roles()

    @property
    def classes(self) -> list[str]:
        """The classes in the order of their labels."""
        return class_order(self.files)

    def class_by_file(self) -> dict[str, str]:
        """The class of each file that is in a class folder, by the file's name."""
        classes: dict[str, str] = {}
        for class_name, runs in self.files.runs.items():
            for division, start, stop in runs:
                for row in division.rows[start:stop]:
                    name = self.files.file_names[row]
                    classes[name] = class_name
        return classes

    @property
    def has_classes(self) -> bool:
        """Whether the folders may be classes."""
        if len(self.files) < 2:
            return False
        return not misread_masks(self.files)


def shape_of(
    names: Sequence[str], kind: str = "first", splits: Mapping[str, str] | None = None
) -> Shape:
    """The class folders among files, with folders of splits or not; ``kind``: the recipe's
    `class_folder`.

    ``splits`` are those that the user names, by folder.
    """
    tree = FolderTree.take(names)
    roles = roles_of(tree, splits)
    if kind != "first" and not roles.splits:
        roles = Roles(roles.lead)
    packed = Names.take(sorted(names, key=str.encode))
    divisions = _divisions(packed, roles)
    files = ClassFolders(packed, divisions, kind)
    return Shape(files, roles.lead, roles.splits, roles)


def _divisions(names: Names, roles: Roles) -> list[Division]:
    """The rows of the folders that hold class folders."""
    folders = [*filter(None, roles.splits), *roles.parts]
    leads = [f"{roles.lead}{folder}/" for folder in folders]
    divisions = [Division("", names.below(lead), False, lead) for lead in leads]
    if leads and "" not in roles.splits:
        return divisions
    rows = range(len(names))
    if roles.lead:
        rows = names.below(roles.lead)
    leads += [f"{roles.lead}{folder}/" for folder in roles.left_out]
    if not leads and not roles.loose:
        return [Division("", rows, False, roles.lead)]
    rows_in_classes = _rows_in_folders(names, rows, roles.lead, leads)
    undivided = Division("", rows_in_classes, False, roles.lead)
    return [undivided, *divisions]


def _rows_in_folders(
    names: Names, rows: Sequence[int], lead: str, other_leads: Sequence[str]
) -> list[int]:
    """The rows that are in a folder below ``lead``, and in none of the others."""
    is_elsewhere = np.zeros(len(names), np.bool_)
    for other_lead in other_leads:
        below = names.below(other_lead)
        is_elsewhere[below.start : below.stop] = True
    return [row for row in rows if not is_elsewhere[row] and "/" in names[row].removeprefix(lead)]


def is_usual(roles: Roles) -> bool:
    """Whether a source of folders finds these splits, and nothing but them, by itself."""
    if roles.left_out or roles.loose:
        return False
    if "train" not in roles.splits.values():
        return False
    return all(FOLDERS.get(folder) == split for folder, split in roles.splits.items())


def faults_of(place: object, shape: Shape, commands: str, command: str = "") -> list[InputError]:
    """The files that would be misread or lost if folders became classes.

    ``commands`` take folders within classes, ``command`` takes all of them.
    """
    faults = [*folder_faults(place, shape.files, command)]
    if shape.roles.within:
        return faults
    inner = [path for path in nested(shape.files.deep()) if "/" in path]
    if inner:
        problem = (
            f"{place}: the names of folders inside class folders would be lost: {listed(inner)}"
        )
        faults.append(InputError(problem, "expected no folders inside class folders", commands))
    return faults


def doubts_of_masks(place: object, shape: Shape) -> list[InputError]:
    """The doubt about files with names of masks among the images of classes."""
    misread = misread_masks(shape.files) if shape.files else None
    if misread is None:
        return []
    problem = f"{place}: {misread.what}"
    hint = f"if they are masks, move them out of {place}"
    aim, outcome = "take them as images like the others", "taken as images"
    return [DoubtError.of(aim, outcome, problem, "expected images of classes", hint)]
