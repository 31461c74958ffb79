"""Tars, read in place: with class folders within them or without, tars within a tar too;
or a tar a class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.init.file_endings import DATA
from imagenet_prep.init.folder_shapes import Shape, doubts_of_masks, is_usual, shape_of
from imagenet_prep.init.inspection import Inspection, main_content
from imagenet_prep.init.proposal import (
    CERTAIN,
    LIKELY,
    ONLY_IF_ASKED,
    POSSIBLE,
    Interpretation,
    Proposal,
)
from imagenet_prep.init.tar_faults import (
    doubtful_tar_folders,
    doubts_of_tar_parts,
    fault_of_double,
    faults_of_tar_folders,
    faults_of_tar_masks,
    faults_of_tar_splits,
    tars_in_words,
    unpacking_tars,
)
from imagenet_prep.init.unfit_files import strange, strange_among, wrong_formats
from imagenet_prep.recipes.classes import class_order
from imagenet_prep.recipes.columns import Content, has_ending_of
from imagenet_prep.recipes.divisions import Division
from imagenet_prep.recipes.folder_labels import ClassFolders, misread_masks
from imagenet_prep.recipes.folder_roles import FolderTree
from imagenet_prep.recipes.path_parts import base_name, counted, stem_of, suffix_of
from imagenet_prep.sources.names import Names
from imagenet_prep.sources.tars import folder_of_tar, noun_of
from imagenet_prep.text import listed, number_of

_SHARD = re.compile(r"[-_. ]*\d+$")
_FOR_READERS = re.compile(r"licen[cs]e|read_?me|copying", re.IGNORECASE)
"""Texts of a set that say nothing of its images, by their names without endings."""

_WNID = re.compile(r"n\d{8}")


# the folders in tars are the classes --------------------------------------------------------------


def _recognise_plain(inspection: Inspection) -> Interpretation | None:
    """Tars that hold images or arrays."""
    content = _content_of(inspection)
    if content is None:
        return None
    names = _members(inspection, content)
    are_splits = _are_splits(inspection, content, names)
    if are_splits:
        names = _members(inspection, content, tar_folders=True)
    shape = _shape(names)
    classes = shape.classes
    counts = Counter(names)
    double = next((name for name, count in counts.items() if count > 1), None)
    as_source = _interpret(inspection, content, shape, tar_folders=are_splits)
    meaning = "records without labels"
    labelled = 0
    if classes:
        meaning = (
            f"the folders in the {tars_in_words(inspection)} are the classes: {listed(classes)}"
        )
        labelled = as_source.file_count
    faults = _faults(inspection, shape, names, double)
    is_doubtful = double is not None and not classes
    certainty = _certainty(inspection, is_doubtful=is_doubtful)
    evidence = _evidence(inspection, shape, names, are_splits=are_splits)
    proposal = as_source.proposal
    if classes and misread_masks(shape.files):
        assert proposal is not None
        proposal = replace(proposal, classes=classes)
    losses = [
        *as_source.losses,
        *doubtful_tar_folders(inspection, shape),
        *doubts_of_masks(inspection.folder, shape),
        *doubts_of_tar_parts(inspection, shape),
    ]
    notes = [*as_source.skip_notes, *_notes_on_unlabelled(shape, names)]
    return replace(
        as_source,
        certainty=certainty,
        evidence=(evidence,),
        meaning=meaning,
        proposal=proposal,
        faults=[*faults, *as_source.faults],
        losses=losses,
        skip_notes=notes,
        labelled=labelled,
        classes=len(classes),
    )


def _faults(
    inspection: Inspection, shape: Shape, names: Sequence[str], double: str | None
) -> list[InputError]:
    """The faults of the files in tars; ``double`` is one that is there twice."""
    faults: list[InputError] = []
    if double is not None:
        faults.append(fault_of_double(inspection, double, names))
    if shape.classes:
        faults += faults_of_tar_folders(inspection, shape)
    faults += faults_of_tar_splits(inspection, shape, names)
    if not shape.classes:
        faults += faults_of_tar_masks(inspection, shape, names)
    return faults


def _are_splits(inspection: Inspection, content: Content, names: Sequence[str]) -> bool:
    """Whether several tars are the splits, and not the folders in them."""
    if len(inspection.archives) < 2 or shape_of(names).splits:
        return False
    names_in_tar_folders = _members(inspection, content, tar_folders=True)
    return bool(shape_of(names_in_tar_folders).splits)


def _certainty(inspection: Inspection, *, is_doubtful: bool) -> int:
    """How sure it is that tars are no classes; images outside of them would be lost."""
    certainty = LIKELY
    if is_doubtful and _are_class_tars(inspection):
        certainty = POSSIBLE
    if inspection.items:
        certainty = min(certainty, POSSIBLE) - 1
    return certainty


def _evidence(
    inspection: Inspection, shape: Shape, names: Sequence[str], *, are_splits: bool
) -> str:
    tars = number_of(len(inspection.archives), noun_of(inspection.archives))
    evidence = f"{tars} of {counted(names)}"
    if shape.classes:
        folders = number_of(len(shape.classes), "folder")
        evidence += f", in {folders}: {listed(shape.classes)}"
    else:
        evidence += ", in no folder"
    if are_splits:
        evidence += f", the {tars_in_words(inspection)} are the splits: {listed(shape.splits)}"
    return evidence


def _notes_on_unlabelled(shape: Shape, names: Sequence[str]) -> list[str]:
    """The notes on folders in tars whose images have no class."""
    tree = FolderTree.take(names)
    notes: list[str] = []
    for folder in shape.roles.unlabelled:
        path = f"{shape.lead}{folder}"
        count = number_of(tree.at(path).total, "file")
        notes.append(f"{count} without a class in {path}, left out")
    return notes


# the tars are the classes -------------------------------------------------------------------------


def _recognise_class_tars(inspection: Inspection) -> Interpretation | None:
    """Several tars whose files are in no folder: a tar a class."""
    content = _content_of(inspection)
    if content is None or len(inspection.archives) < 2:
        return None
    names = _members(inspection, content, tar_folders=True)
    if any(name.count("/") > 1 for name in names):
        return None
    classes = class_order(set(_stems_of_tars(inspection)))
    certainty = LIKELY if _are_class_tars(inspection) else ONLY_IF_ASKED
    if all(map(_WNID.fullmatch, classes)):
        certainty = CERTAIN
    if inspection.items:
        certainty = ONLY_IF_ASKED
    tars = number_of(len(classes), noun_of(inspection.archives))
    as_source = _interpret(inspection, content, _top_shape(names), tar_folders=True)
    return replace(
        as_source,
        certainty=certainty,
        evidence=(f"{tars}, their names: {listed(classes)}",),
        meaning=f"each {noun_of(inspection.archives)} is a class: {listed(classes)}",
        is_labelled=True,
        labelled=as_source.file_count,
        classes=len(classes),
    )


def _stems_of_tars(inspection: Inspection) -> list[str]:
    """The names of the tars without their endings."""
    return [folder_of_tar(base_name(name)).rstrip("/") for name in inspection.archives]


def _are_class_tars(inspection: Inspection) -> bool:
    """Whether tars have names of classes: several,
    and not numbered alike as parts of one set are.
    """
    stems = _stems_of_tars(inspection)
    unnumbered_stems = {_SHARD.sub("", stem) for stem in stems}
    return len(unnumbered_stems) > 1


# both ---------------------------------------------------------------------------------------------


def _interpret(
    inspection: Inspection, content: Content, shape: Shape, *, tar_folders: bool
) -> Interpretation:
    """The tars as a source; the other files in them, of which data would be missed."""
    faults = _faults_in_tars(inspection, content)
    losses, skip_notes = _other_members(inspection, content)
    has_folders = bool(shape.files)
    if has_folders:
        members: Sequence[str] = shape.files.names()
    else:
        members = _members(inspection, content, tar_folders=tar_folders)
    places: dict[str, dict[str, Any]] | None = {}
    if has_folders and (shape.lead or not is_usual(shape.roles)):
        places = shape.roles.places_in_tars()
    if places is None:
        places = {}
        faults.append(_fault_of_left_out(inspection, shape))
    tars = list(inspection.archives)
    options: dict[str, str | bool] = {}
    if tar_folders:
        options["tar_folders"] = True
    proposal = Proposal(
        "tar",
        content,
        sorted(members),
        paths={"": tars},
        splits=shape.splits,
        places=places,
        options=options,
    )
    return Interpretation(
        ONLY_IF_ASKED,
        (),
        "",
        proposal,
        faults,
        containers=tars,
        is_labelled=has_folders,
        losses=losses,
        skip_notes=skip_notes,
    )


def _fault_of_left_out(inspection: Inspection, shape: Shape) -> InputError:
    """The fault of folders that no recipe can leave out, or of files next to class folders."""
    expected = "expected class folders, or splits of them"
    hint = unpacking_tars(inspection)
    if shape.roles.left_out:
        left_out = listed(shape.roles.left_out)
        folders = f"folders in {tars_in_words(inspection)} that are no classes"
        problem = f"{inspection.folder}: {folders}: {left_out}"
        return InputError(problem, expected, hint)
    count = number_of(shape.roles.loose, "file")
    place = tars_in_words(inspection)
    if shape.lead:
        place = f"{shape.lead.rstrip('/')} in {place}"
    problem = f"{inspection.folder}: {count} in {place}, and in no class folder"
    return InputError(problem, expected, hint)


def _faults_in_tars(inspection: Inspection, content: Content) -> list[InputError]:
    """The faults of images in tars that can't be read, or not with the others."""
    faults: list[InputError] = []
    for tar, listing in inspection.archives.items():
        place = inspection.folder / tar
        faults += wrong_formats(place, listing.names, content, in_tar=True)
        if strange_names := strange_among(listing.names, content):
            fit = sum(has_ending_of(content, name) for name in listing.names)
            faults.append(strange(place, strange_names, content, fit, in_tar=True))
    return faults


def _other_members(inspection: Inspection, content: Content) -> tuple[list[InputError], list[str]]:
    """The fault of data in tars; and the notes on other files there, and on empty tars."""
    data: list[str] = []
    others: list[str] = []
    empty: list[str] = []
    for tar, listing in inspection.archives.items():
        if not len(listing.names):
            empty.append(tar)
        for name in listing.names:
            if has_ending_of(content, name):
                continue
            if _is_data(name):
                data.append(name)
            else:
                others.append(name)
    nouns = f"{inspection.noun}s"
    skip_notes: list[str] = []
    if others:
        place = tars_in_words(inspection)
        skip_notes.append(f"no {nouns} in {place}: {counted(others)} ({listed(others)})")
    if empty:
        count = number_of(len(empty), f"empty {noun_of(empty)}")
        skip_notes.append(f"{count}: {listed(empty)}")
    if not data:
        return [], skip_notes
    problem = (
        f"{inspection.folder}: {counted(data)} in {tars_in_words(inspection)} would not be read: "
        f"{listed(data)}"
    )
    expected = f"expected only {nouns} in {tars_in_words(inspection)}"
    fault = InputError(problem, expected, unpacking_tars(inspection))
    return [fault], skip_notes


def _is_data(name: str) -> bool:
    """Whether a file may hold labels or annotations."""
    if suffix_of(name) not in DATA:
        return False
    return not _FOR_READERS.fullmatch(stem_of(name))


def _shape(names: Sequence[str]) -> Shape:
    """Class folders in tars: if one file is in no folder, convert takes no folder as a class."""
    if all("/" in name for name in names):
        return shape_of(names)
    return _top_shape(names)


def _top_shape(names: Sequence[str]) -> Shape:
    whole = Division("", range(len(names)), False)
    folders = ClassFolders(Names.take(names), [whole])
    return Shape(folders)


def _content_of(inspection: Inspection) -> Content | None:
    """The content of most files in the tars."""
    listings = inspection.archives.values()
    return main_content(name for listing in listings for name in listing.names)


def _members(inspection: Inspection, content: Content, *, tar_folders: bool = False) -> list[str]:
    """The files of this content in all tars; with ``tar_folders`` below their tar's name."""
    members: list[str] = []
    for tar, listing in inspection.archives.items():
        lead = ""
        if tar_folders:
            lead = folder_of_tar(base_name(tar))
        members += [f"{lead}{name}" for name in listing.names if has_ending_of(content, name)]
    return members


STRUCTURES = {"plain-tars": _recognise_plain, "class-tars": _recognise_class_tars}
