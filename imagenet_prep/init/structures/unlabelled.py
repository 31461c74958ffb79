"""Files in any folders, without classes."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.init.folder_shapes import Shape, shape_of
from imagenet_prep.init.folder_splits import splits_by_folders
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import ONLY_IF_ASKED, POSSIBLE, Interpretation, Proposal
from imagenet_prep.init.split_options import named_folders
from imagenet_prep.init.stray_files import doubts_of_strays
from imagenet_prep.recipes.folder_words import is_image_folder, unmasked
from imagenet_prep.recipes.misread_folders import in_flow, mixed_masks
from imagenet_prep.recipes.path_parts import stem_of
from imagenet_prep.recipes.recipe_lines import flow
from imagenet_prep.sources.names import Names
from imagenet_prep.text import listed, number_of


def recognise(inspection: Inspection) -> Interpretation | None:
    """Files without classes: all in one folder, or in none;
    the folder of images alone where others are next to it.
    """
    if not inspection.items:
        return None
    assert inspection.content is not None
    shape = shape_of(inspection.items)
    items, lead = _images_alone(inspection, shape)
    names = [name.removeprefix(lead) for name in items]
    splits = named_folders(inspection) or {}
    notes = _notes_on_others(inspection, shape, items)
    if splits:
        leads = tuple(f"{folder}/" for folder in splits)
        names = [name for name in names if name.startswith(leads)]
        if len(names) < len(items):
            others = number_of(len(items) - len(names), inspection.noun)
            notes.append(f"{others} in no folder of --split, left out")
    else:
        splits = splits_by_folders(names)
    losses: list[InputError] = []
    if shape.has_classes:
        certainty = ONLY_IF_ASKED
        faults = []
    else:
        if not inspection.options.splits:
            losses = doubts_of_strays(inspection, splits)
        certainty = POSSIBLE
        faults = _faults_of_masks(inspection, items)
    count = number_of(len(names), inspection.noun)
    proposal = Proposal("files", inspection.content, names, lead, splits=splits)
    return Interpretation(
        certainty,
        (f"{count} without a class",),
        "records without labels",
        proposal,
        faults,
        is_labelled=False,
        losses=losses,
        skip_notes=notes,
    )


def _notes_on_others(inspection: Inspection, shape: Shape, items: Sequence[str]) -> list[str]:
    """The note on folders next to that of the images."""
    left_out = len(inspection.items) - len(items)
    if not left_out:
        return []
    _, others = _doubtful_folders(shape)
    count = number_of(left_out, inspection.noun)
    return [f"{count} in {listed(others)}: left out"]


def _doubtful_folders(shape: Shape) -> tuple[list[str], list[str]]:
    """The folders that have names of images in general, and the others that are hardly classes."""
    doubtful = shape.roles.doubtful
    holders = [name for name in doubtful if is_image_folder(name)]
    others = [name for name in doubtful if not is_image_folder(name)]
    return holders, others


def _images_alone(inspection: Inspection, shape: Shape) -> tuple[Sequence[str], str]:
    """The files of the folder of images, if others are next to it; and the folders that lead to
    them, if it is one.
    """
    holders, others = _doubtful_folders(shape)
    if not holders or not others or shape.roles.classes:
        return inspection.items, ""
    leads = tuple(f"{shape.lead}{name}/" for name in holders)
    items = [name for name in inspection.items if name.startswith(leads)]
    if len(leads) > 1:
        return items, ""
    return items, leads[0]


def _faults_of_masks(inspection: Inspection, items: Sequence[str]) -> list[InputError]:
    """The fault of masks next to their images."""
    mixed = mixed_masks(Names.take(items))
    if mixed is None:
        return []
    problem = f"{inspection.folder}: {mixed}"
    pattern = f"{inspection.folder}/**/*"
    hint = (
        f"move the masks out of {inspection.folder}; or, if they are images like the others, write "
        f"a recipe with source: {{files: {flow(pattern)}}}"
    )
    if using := _use_of_masks(inspection, items):
        hint += f"; or, to read the masks, with {using}"
    return [InputError(problem, "expected only images, without masks next to them", hint)]


def _use_of_masks(inspection: Inspection, items: Sequence[str]) -> str:
    """The keys of a recipe that reads the masks; "" if their names alone don't tell them from the
    images.
    """
    masks = [item for item in items if unmasked(stem_of(item)) != stem_of(item)]
    images = set(items).difference(masks)
    suffixes = {stem[len(unmasked(stem)) :] for stem in map(stem_of, masks)}
    image_endings = {posixpath.splitext(name)[1] for name in images}
    mask_endings = {posixpath.splitext(name)[1] for name in masks}
    if len(suffixes) > 1 or len(image_endings) > 1 or image_endings == mask_endings:
        return ""
    pattern = f"{inspection.folder}/**/*{image_endings.pop()}"
    mask = {"folder": str(inspection.folder), "suffix": suffixes.pop()}
    if len(masks) < len(images):
        mask["unmasked"] = "skip"
    return in_flow({"source": {"files": pattern}, "mask": mask})[1:-1]


STRUCTURES = {"unlabelled": recognise}
