"""Class folders, with folders of splits above or below them or without;
or files in any folders, without classes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command, quoted
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import LIKELY, ONLY_IF_ASKED, POSSIBLE, Interpretation, Proposal
from imagenet_prep.init.split_lists import SplitLists, find_split_lists, read_split_lists
from imagenet_prep.init.split_options import asked_folders, asked_lists
from imagenet_prep.recipes.classes import class_order
from imagenet_prep.recipes.divisions import Division
from imagenet_prep.recipes.folder_labels import ClassFolders, folder_faults, misread_masks
from imagenet_prep.recipes.folder_roles import (
    FolderTree,
    Roles,
    mask_folders,
    misread,
    mixed_masks,
    nested,
    roles_of,
)
from imagenet_prep.recipes.mask_names import is_image_folder, is_mask_folder
from imagenet_prep.recipes.recipe_lines import flow
from imagenet_prep.recipes.splits import (
    FOLDERS,
    name_as_split,
    split_name,
    split_names,
    splits_above,
)
from imagenet_prep.sources.names import Names
from imagenet_prep.text import listed, number_of


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
                    classes[self.files.file_names[row]] = class_name
        return classes

    @property
    def has_classes(self) -> bool:
        """Whether the folders may be classes."""
        return len(self.files) > 1 and not misread_masks(self.files)


def shape_of(
    names: Sequence[str], kind: str = "first", splits: Mapping[str, str] | None = None
) -> Shape:
    """The class folders among files, with folders of splits or not; ``kind``: the recipe's
    `class_folder`.

    ``splits`` are those that the user names, by folder.
    """
    roles = roles_of(FolderTree.take(names), splits)
    packed = Names.take(sorted(names, key=str.encode))
    if kind != "first" and not roles.splits:
        roles = Roles(roles.lead)
    parts = _divisions(packed, roles)
    return Shape(ClassFolders(packed, parts, kind), roles.lead, roles.splits, roles)


def _divisions(names: Names, roles: Roles) -> list[Division]:
    """The rows of the folders that hold class folders."""
    tops = [top for top in roles.splits if top] + list(roles.parts)
    leads = [f"{roles.lead}{top}/" for top in tops]
    divisions = [Division("", names.below(lead), False, lead) for lead in leads]
    if leads and "" not in roles.splits:
        return divisions
    rows = names.below(roles.lead) if roles.lead else range(len(names))
    apart = [*leads, *(f"{roles.lead}{folder}/" for folder in roles.left_out)]
    if not apart and not roles.loose:
        return [Division("", rows, False, roles.lead)]
    is_kept = np.ones(len(names), np.bool_)
    for lead in apart:
        below = names.below(lead)
        is_kept[below.start : below.stop] = False
    kept = [row for row in rows if is_kept[row] and "/" in names[row].removeprefix(roles.lead)]
    return [Division("", kept, False, roles.lead), *divisions]


def faults_of(where: object, shape: Shape, ways: str, way: str = "") -> list[InputError]:
    """The files that would be misread or lost if folders became classes;
    ``ways`` to take folders within classes.
    """
    faults = [*folder_faults(where, shape.files, way)]
    if wrong := misread_masks(shape.files):
        faults.append(
            InputError(
                f"{where}: {wrong.what}",
                "expected a folder a class",
                f"a recipe can say: {wrong.choice}",
            )
        )
    if not shape.roles.within and (inner := nested(shape.files.deep())):
        what = f"{where}: folders within classes would lose their names: {listed(inner)}"
        hint = (
            f"{ways}; a recipe with classes: [{', '.join(map(flow, list(shape.files)[:20]))}] "
            "takes the first"
        )
        faults.append(InputError(what, "expected one level of class folders", hint))
    return faults


_KINDS = {
    "class-folders": ("first", "folders"),
    "inner-folders": ("inner", "inner folders"),
    "folder-paths": ("path", "paths of the folders"),
}
"""The value of `class_folder` in a recipe, and what the classes are then, by layout."""


def _recognise(layout: str, inspection: Inspection) -> Interpretation | None:
    """Files in folders; one folder alone may be a class or not.
    Folders within folders are classes only if asked.
    """
    kind, words = _KINDS[layout]
    asked = asked_folders(inspection)
    shape, is_first = shape_of(inspection.items, kind, asked), kind == "first"
    first = shape if is_first else shape_of(inspection.items, splits=asked)
    classes = shape.classes
    is_alone = len(classes) == 1 and not asked
    is_deep = bool(first.files.deep() or first.roles.parts)
    if not classes or (is_alone and is_image_folder(classes[0]) if is_first else not is_deep):
        return None
    assert inspection.content is not None
    way = f"{inspection.command_as('folder-paths')} takes the paths for classes"
    faults = faults_of(inspection.folder, shape, _ways(inspection, shape) if is_first else "", way)
    where = f" in {' and '.join(shape.splits)}" if any(shape.splits) and is_first else ""
    where = f" in each of {listed(shape.roles.parts)}" if shape.roles.parts and is_first else where
    evidence = f"{number_of(len(classes), 'folder')} of files{where}: {listed(classes)}"
    proposal, used = _propose(inspection, shape, {} if is_first else {"class_folder": kind})
    several_lists, list_notes = _lists(inspection, shape, proposal)
    is_tie = layout == "folder-paths" and are_doubtful_parts(first.roles)
    certainty = POSSIBLE if is_alone else LIKELY
    return Interpretation(
        certainty if is_first or is_tie else ONLY_IF_ASKED,
        (evidence,),
        f"the {words} are the classes: {listed(classes)}{_without(shape.roles)}",
        proposal,
        faults,
        annotation_files=used,
        losses=[
            *_missed(inspection, shape),
            *_labelled_elsewhere(inspection, shape),
            *_of_another_case(inspection, shape),
            *several_lists,
        ],
        skip_notes=[*_unlabelled(inspection, shape), *list_notes],
        labelled=len(proposal.names),
        classes=len(classes),
    )


def _propose(
    inspection: Inspection, shape: Shape, options: Mapping[str, Any]
) -> tuple[Proposal, frozenset[str] | None]:
    """A source of folders, and where its splits are unless their usual names say so;
    and the lists of splits.
    """
    assert inspection.content is not None
    names = [name.removeprefix(shape.lead) for name in shape.files.names()]
    proposal = Proposal(
        "folders", inspection.content, names, shape.lead, splits=shape.splits, options=options
    )
    lists = _lists_of(inspection, shape, names)
    if lists is not None:
        return proposal.divide(lists), frozenset(lists.files.values())
    places = {} if is_usual(shape.roles) else shape.roles.places()
    return replace(proposal, places=places), None


def _lists_of(inspection: Inspection, shape: Shape, names: Sequence[str]) -> SplitLists | None:
    """The lists of splits: those that the user names,
    or the only ones where no folder says what the splits are.
    """
    if files := asked_lists(inspection):
        return read_split_lists(inspection.folder, files, names, shape.lead)
    ways = find_split_lists(inspection, names, shape.lead) if _is_undivided(shape) else []
    return ways[0] if len(ways) == 1 else None


def _is_undivided(shape: Shape) -> bool:
    """Whether no folder says what the splits are, and all files are in class folders."""
    return not shape.roles.places() and not shape.splits


def _lists(
    inspection: Inspection, shape: Shape, proposal: Proposal
) -> tuple[list[InputError], list[str]]:
    """The question between several ways to split images by lists;
    and the notes on lists that leave images out.
    """
    if proposal.lists or proposal.written_lists:
        left = len(shape.files.names()) - len(proposal.names)
        return [], [
            f"{number_of(left, inspection.noun)} in no list of a split, left out"
        ] if left else []
    if not _is_undivided(shape) or inspection.options.splits:
        return [], []
    ways = find_split_lists(inspection, proposal.names, shape.lead)
    if len(ways) < 2:
        return [], []
    commands = [inspection.command(splits=way.files) for way in ways[:_MOST_WAYS]]
    what = (
        f"{inspection.folder}: {len(ways)} ways to split the images: "
        f"{listed(ways[0].files.values())}, ..."
    )
    return [
        InputError(what, "expected one list for each split", f"take one: {'; or '.join(commands)}")
    ], []


_MOST_WAYS = 3
"""Ways to split the images that a question names."""


def is_usual(roles: Roles) -> bool:
    """Whether a source of folders finds these splits, and nothing but them, by itself."""
    return (
        bool(roles.splits)
        and "train" in roles.splits.values()
        and all(FOLDERS.get(folder) == split for folder, split in roles.splits.items())
        and not roles.left_out
        and not roles.loose
    )


def _without(roles: Roles) -> str:
    return f"; without {listed(roles.doubtful)}" if roles.doubtful else ""


def _missed(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The images outside of class folders that may have labels."""
    root, missed = FolderTree.take(inspection.items), []
    for folder in shape.roles.missed:
        path = f"{shape.lead}{folder}"
        what = (
            f"{inspection.folder}: {number_of(root.at(path).total, inspection.noun)} in {path}, "
            "next to the splits"
        )
        is_split = not is_mask_folder(folder) and not shape.roles.classes.isdisjoint(
            root.at(path).below
        )
        way = _as_split(inspection, shape, folder) if is_split and shape.splits else ""
        missed.append(InputError(what, "expected class folders, or splits of them", way))
    if shape.roles.loose:
        count = number_of(shape.roles.loose, inspection.noun)
        first = next(name for name in inspection.items if "/" not in name.removeprefix(shape.lead))
        missed.append(
            InputError(
                f"{inspection.folder}: {first} is in no class folder ({count})",
                "expected CLASS/FILE",
            )
        )
    return missed


def _labelled_elsewhere(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The folders without classes whose images a table labels in a way
    that can't be joined to the class folders.
    """
    lost = []
    tables = [table for table in inspection.partial if table.has_labels and not table.is_of_test]
    for folder in shape.roles.unlabelled:
        lead = f"{shape.lead}{folder}/"
        rows = {row for row, name in enumerate(inspection.items) if name.startswith(lead)}
        for table in tables:
            if rows <= table.label_by_row().keys():
                known = listed(sorted({str(label) for label in table.label_by_row().values()}))
                what = (
                    f"{inspection.folder}: {table.where} labels the images of {lead} as "
                    f"{known}, and is not read"
                )
                names = f"with the names of the class folders: {listed(shape.classes)}"
                lost.append(
                    InputError(what, f"expected a file in {lead} or called as that folder, {names}")
                )
    return lost


def _of_another_case(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The class folders of different splits whose names differ in the case of letters alone:
    they may be one class.
    """
    alike: dict[str, list[str]] = {}
    for name in shape.classes:
        alike.setdefault(name.casefold(), []).append(name)
    several = [
        names for names in alike.values() if len(names) > 1 and _are_in_other_splits(shape, names)
    ]
    if not several:
        return []
    what = (
        f"{inspection.folder}: classes that differ in the case of letters alone: "
        f"{' and '.join(several[0])}"
    )
    moves = []
    for first, *others in several:
        for other in others:
            for division, _, _ in shape.files.runs[other]:
                place = inspection.folder / division.lead
                moves.append(f"mv -- {quoted(str(place / other))} {quoted(str(place / first))}")
    way = f"to make them one: {' && '.join(moves)}"
    return [InputError(what, "expected one name for each class", way)]


def _are_in_other_splits(shape: Shape, names: Sequence[str]) -> bool:
    """Whether no folder of a split holds two of these classes."""
    leads = [division.lead for name in names for division, _, _ in shape.files.runs[name]]
    return len(leads) == len(set(leads))


def _as_split(inspection: Inspection, shape: Shape, folder: str) -> str:
    """The command that takes a folder next to the splits as one more."""
    splits = {**shape.splits, folder: name_as_split(folder)}
    places = {split: f"{shape.lead}{top}" for top, split in splits.items()}
    return f"as one more split: {inspection.command(splits=places)}"


def _unlabelled(inspection: Inspection, shape: Shape) -> list[str]:
    """The notes on folders whose images have no class,
    each with the command that makes records of them.
    """
    root, notes = FolderTree.take(inspection.items), []
    for folder in (*shape.roles.unlabelled, *shape.roles.doubtful):
        path = f"{shape.lead}{folder}"
        count = number_of(
            root.at(path).total,
            f"{inspection.noun} without a class",
            f"{inspection.noun}s without a class",
        )
        way = command("init", inspection.folder / path, (("as", "unlabelled"),))
        notes.append(f"{path}: {count}, left out; for records without labels: {way}")
    return notes


def _ways(inspection: Inspection, shape: Shape) -> str:
    """The commands that take folders within classes."""
    deep = {
        name: shape_of(inspection.items, kind)
        for name, (kind, _) in _KINDS.items()
        if kind != "first"
    }
    fit = {name: listed(inner.classes) for name, inner in deep.items() if not inner.files.same}
    fit["all-folders"] = listed(shape.classes)
    return "; or ".join(
        f"{inspection.command_as(name)} (classes: {classes})" for name, classes in fit.items()
    )


def _recognise_all(inspection: Inspection) -> Interpretation | None:
    """Every first folder is a class, whatever its name is, and whatever is in it."""
    if asked_folders(inspection):
        return None
    roles = shape_of(inspection.items).roles
    packed = Names.take(sorted(inspection.items, key=str.encode))
    rows = packed.below(roles.lead) if roles.lead else range(len(packed))
    files = ClassFolders(packed, [Division("", rows, False, roles.lead)])
    if len(files) < 2:
        return None
    assert inspection.content is not None
    classes = class_order(files)
    is_doubtful = bool(roles.doubtful) or are_doubtful_parts(roles)
    certainty = LIKELY if len(roles.classes) > 1 else POSSIBLE
    names = [name.removeprefix(roles.lead) for name in files.names()]
    is_misread = misread(files.trees(), files.splits(), is_divided=False) is not None
    evidence = f"{number_of(len(classes), 'folder')} of files: {listed(classes)}"
    if called := list(filter(split_name, classes)):
        evidence += f", called as splits are, not as classes: {listed(called)}"
    elif masks := mask_folders(files):
        evidence += f": {masks.what}"
    return Interpretation(
        certainty if is_doubtful else ONLY_IF_ASKED,
        (evidence,),
        f"every folder is a class: {listed(classes, 8)}",
        Proposal(
            "folders", inspection.content, names, roles.lead, classes=classes if is_misread else ()
        ),
        [*folder_faults(inspection.folder, files)],
        labelled=len(names),
        classes=len(classes),
    )


def are_doubtful_parts(roles: Roles) -> bool:
    """Whether folders hold the same classes, and aren't numbered as the parts of a set are:
    they may be classes.
    """
    stems = {re.sub(r"\d+$", "", folder) for folder in roles.parts}
    are_numbered = len(stems) == 1 and stems.isdisjoint(roles.parts)
    return bool(roles.parts) and not are_numbered


def _recognise_unlabelled(inspection: Inspection) -> Interpretation | None:
    """Files without classes: all in one folder, or in none;
    the folder of images alone where others are next to it.
    """
    if not inspection.items:
        return None
    assert inspection.content is not None
    shape = shape_of(inspection.items)
    items = list(inspection.items)
    holders = [name for name in shape.roles.doubtful if is_image_folder(name)]
    apart = [name for name in shape.roles.doubtful if not is_image_folder(name)]
    passed = []
    if holders and apart and not shape.roles.classes:
        leads = tuple(f"{shape.lead}{name}/" for name in holders)
        items = [name for name in items if name.startswith(leads)]
        passed = [
            (
                f"{number_of(len(inspection.items) - len(items), inspection.noun)} in "
                f"{listed(apart)}: left out"
            )
        ]
    certainty = ONLY_IF_ASKED if shape.has_classes else POSSIBLE
    evidence = f"{number_of(len(items), inspection.noun)} without a class"
    faults = []
    if not shape.has_classes and (wrong := mixed_masks(Names.take(items))):
        hint = f"a recipe can say: {wrong.choice}"
        faults = [InputError(f"{inspection.folder}: {wrong.what}", "expected images alone", hint)]
    lead = f"{shape.lead}{holders[0]}/" if passed and len(holders) == 1 else ""
    names = [name.removeprefix(lead) for name in items]
    asked = asked_folders(inspection)
    if asked:
        names = [name for name in names if name.startswith(tuple(f"{folder}/" for folder in asked))]
    splits = asked or splits_above(names) or _splits_by_tops(names)
    proposal = Proposal("files", inspection.content, names, lead, splits=splits)
    return Interpretation(
        certainty,
        (evidence,),
        "records without labels",
        proposal,
        faults,
        is_labelled=False,
        skip_notes=passed,
    )


def _splits_by_tops(names: Sequence[str]) -> dict[str, str]:
    """The first folders as splits, if some are called as splits are: train, val and extra."""
    tops = {name.partition("/")[0] for name in names}
    splits = split_names(tops)
    if "train" not in splits.values() or len(splits) < 2 or not all("/" in name for name in names):
        return {}
    return {top: splits.get(top) or name_as_split(top) for top in sorted(tops)}


LAYOUTS = {name: functools.partial(_recognise, name) for name in _KINDS} | {
    "all-folders": _recognise_all,
    "unlabelled": _recognise_unlabelled,
}
