"""Every first folder is a class, whatever its name is, and whatever is in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import LIKELY, ONLY_IF_ASKED, POSSIBLE, Interpretation, Proposal
from imagenet_prep.init.split_options import named_folders
from imagenet_prep.recipes.classes import class_order
from imagenet_prep.recipes.divisions import Division
from imagenet_prep.recipes.folder_labels import ClassFolders, folder_faults, misread_masks
from imagenet_prep.recipes.folder_roles import Roles
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.misread_folders import mask_folders, misread
from imagenet_prep.sources.names import Names
from imagenet_prep.text import listed, number_of


def recognise(inspection: Inspection) -> Interpretation | None:
    """Two folders at least; likely where their names are hardly those of classes."""
    if named_folders(inspection):
        return None
    roles = shape_of(inspection.items).roles
    files = top_folders(inspection.items, roles.lead)
    if len(files) < 2:
        return None
    assert inspection.content is not None
    classes = class_order(files)
    names = [name.removeprefix(roles.lead) for name in files.names()]
    is_misread = misread(files.trees(), files.splits(), is_divided=False) or misread_masks(files)
    must_name = classes if is_misread else ()
    return Interpretation(
        _certainty(roles),
        (_evidence(files, classes),),
        f"every folder is a class: {listed(classes, 8)}",
        Proposal("folders", inspection.content, names, roles.lead, classes=must_name),
        [*folder_faults(inspection.folder, files)],
        labelled=len(names),
        classes=len(classes),
    )


def top_folders(names: Sequence[str], lead: str) -> ClassFolders:
    """The first folders below ``lead``, whatever their names are."""
    packed = Names.take(sorted(names, key=str.encode))
    rows = packed.below(lead) if lead else range(len(packed))
    return ClassFolders(packed, [Division("", rows, False, lead)])


def _certainty(roles: Roles) -> int:
    """A question where folders are hardly classes, or may be parts of a set."""
    if not roles.doubtful and not are_doubtful_parts(roles):
        return ONLY_IF_ASKED
    return LIKELY if len(roles.classes) > 1 else POSSIBLE


def _evidence(files: ClassFolders, classes: list[str]) -> str:
    evidence = f"{number_of(len(classes), 'folder')} of files: {listed(classes)}"
    called_splits = list(filter(split_name, classes))
    if called_splits:
        return f"{evidence}, called as splits are, not as classes: {listed(called_splits)}"
    masks = mask_folders(files)
    return f"{evidence}: {masks.what}" if masks else evidence


def are_doubtful_parts(roles: Roles) -> bool:
    """Whether folders hold the same classes, and aren't numbered as the parts of a set are:
    they may be classes.
    """
    stems = {re.sub(r"\d+$", "", folder) for folder in roles.parts}
    are_numbered = len(stems) == 1 and stems.isdisjoint(roles.parts)
    return bool(roles.parts) and not are_numbered


STRUCTURES = {"all-folders": recognise}
