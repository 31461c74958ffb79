"""match_images: a folder and proposed keys of `boxes` -> MatchedImages: its images with their
objects, and those without a counterpart.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.images.mask_pixels import has_pycocotools
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.recipes.annotated_images import Roots, split_in
from imagenet_prep.recipes.annotating import Annotations, annotate
from imagenet_prep.recipes.box_files import READS_OUTLINES, PolygonError
from imagenet_prep.recipes.folder_words import is_mask_folder
from imagenet_prep.recipes.formats import Proposed, load_format
from imagenet_prep.recipes.path_parts import folder_around, folders_around, stem_of
from imagenet_prep.recipes.schema import Boxes, Recipe
from imagenet_prep.recipes.splits import place_of_split, splits_above
from imagenet_prep.sources.catalog import Catalog

CHOICES = {"missing": "ignore", "unannotated": "skip"}
"""The keys of a recipe's `boxes` that leave out annotations without an image,
and images without an annotation.
"""


class MatchedImages(Struct, frozen=True):
    """The images of a folder and their annotations.

    Args:
        keys: what the recipe says of the annotations, except for CHOICES.
        images: the images that are no masks.
        masks: the images in folders of masks.
        annotations: the annotations.
        keeps_bare: whether images without an annotation are kept.
        unlisted: the images in no list of a split.
    """

    keys: Mapping[str, Any]
    images: Sequence[str]
    masks: Sequence[str]
    annotations: Annotations
    keeps_bare: bool
    unlisted: frozenset[str]

    @property
    def bare(self) -> Sequence[str]:
        """The images without an annotation."""
        return self.annotations.unmatched_images

    @property
    def missing(self) -> Sequence[str]:
        """The annotations without an image."""
        return self.annotations.unmatched_annotations

    @property
    def count(self) -> int:
        """How many images are annotated."""
        return len(self.images) - len(self.bare)

    def names(self) -> list[str]:
        """The images that a recipe takes."""
        left_out = set(self.unlisted)
        if not self.keeps_bare:
            left_out.update(self.bare)
        return [name for name in self.images if name not in left_out]

    def masks_between(self) -> list[str]:
        """The masks that patterns of the images, which name no folder of them, would match."""
        lead = folders_around(self.images)
        names_below = [name.removeprefix(lead) for name in self.images]
        are_flat = not any("/" in name for name in names_below)
        if are_flat or folder_around(names_below):
            return []  # the patterns name no other folder
        endings = {name.rpartition(".")[2] for name in self.images}
        masks_below = [name for name in self.masks if name.startswith(lead)]
        return [name for name in masks_below if name.rpartition(".")[2] in endings]


def match_images(inspection: Inspection, proposed: Proposed) -> MatchedImages:
    """The images of a folder with the annotations that are proposed;
    raises InputError if those can't be.
    """
    images, masks = images_and_masks(inspection)
    row_by_name = {name: row for row, name in enumerate(inspection.listing.names)}
    listing = inspection.listing.picked([row_by_name[name] for name in images])
    keys = _by_split(proposed, images)
    keeps_bare = load_format(next(iter(keys))).unannotated == "empty"
    strip = inspection.options.strip or ""
    roots = Roots(inspection.folder, inspection.folder, strip)
    keys, annotations = _annotate(keys, listing, roots, keeps_bare=keeps_bare)
    unlisted: set[str] = set()
    if proposed.lists:
        unlisted = set(images).difference(*(names for _, names in proposed.lists.values()))
        if not keeps_bare:
            unlisted.difference_update(annotations.unmatched_images)
    return MatchedImages(keys, images, masks, annotations, keeps_bare, frozenset(unlisted))


def _by_split(proposed: Proposed, images: Sequence[str]) -> Mapping[str, Any]:
    """The keys with the files by split, if their names tell it and the
    folders of the images do not.
    """
    format_key, files = next(iter(proposed.value.items()))
    if not isinstance(files, list) or proposed.lists or splits_above(images):
        return proposed.value
    file_by_split = {split_in(stem_of(name)): name for name in files}
    if len(file_by_split) < max(2, len(files)) or "" in file_by_split:
        return proposed.value
    splits = sorted(file_by_split, key=place_of_split)
    return {**proposed.value, format_key: {split: file_by_split[split] for split in splits}}


def _annotate(
    keys: Mapping[str, Any], listing: Catalog, roots: Roots, *, keeps_bare: bool
) -> tuple[Mapping[str, Any], Annotations]:
    """The objects of images by the keys of `boxes`, and these keys,
    with masks if every object has an outline.
    """
    boxes = msgspec.convert({**keys, **CHOICES}, Boxes)
    if keeps_bare:
        boxes = replace(boxes, unannotated="empty")
    recipe = Recipe(boxes=boxes, boxes_outside="clip")
    annotations: Annotations | None = None
    with contextlib.suppress(PolygonError):
        annotations = annotate(recipe, listing, roots)
    notes: list[str] = []
    if has_pycocotools() and (annotations is None or annotations.has_outlines):
        try:
            recipe_of_masks = recipe.replace(boxes=replace(boxes, polygons="masks"))
            with_masks = annotate(recipe_of_masks, listing, roots)
        except InputError as error:
            notes = [f"masks of objects are left out: {error.what}"]
        else:
            return {**keys, "polygons": "masks"}, with_masks
    if annotations is None:
        keys = {**keys, "polygons": "boxes"}
        recipe_of_boxes = recipe.replace(boxes=replace(boxes, polygons="boxes"))
        annotations = annotate(recipe_of_boxes, listing, roots)
    if notes:  # masks can't be read, so that no note may advise it
        unread = [note for note in annotations.unread if not note.endswith(READS_OUTLINES)]
        annotations.unread = [*unread, *notes]
    return keys, annotations


def images_and_masks(inspection: Inspection) -> tuple[list[str], list[str]]:
    """The images of a folder, and those that are in folders of masks."""
    holds_masks = functools.cache(_is_below_masks)  # all files of a folder have one answer
    images: list[str] = []
    masks: list[str] = []
    for name in inspection.items:
        (masks if holds_masks(name.rpartition("/")[0]) else images).append(name)
    return images, masks


def _is_below_masks(folder: str) -> bool:
    """Whether a folder, or one above it, has the name of one of masks or annotations."""
    return any(map(is_mask_folder, folder.split("/")))
