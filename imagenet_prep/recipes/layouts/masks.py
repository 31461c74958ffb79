"""Masks: images, and a folder of PNGs of the same names: images/a.jpg and masks/a.png."""

from __future__ import annotations

from imagenet_prep.recipes.annotated_folder import describe_annotations as describe
from imagenet_prep.recipes.annotated_folder import images_and_masks, mask_folder, recognise_annotations
from imagenet_prep.recipes.annotated_folder import propose_annotations as recipe
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts import Reading
from imagenet_prep.recipes.splits import stem_of, unmasked
from imagenet_prep.text import listed

__all__ = ["describe", "recipe", "recognise"]

_PAIRED = 0.9
"""The least share of masks that have the name of an image."""


def recognise(inspection: Inspection) -> Reading | None:
    """A folder with a name of masks, whose PNGs have the names of the images outside of it."""
    images, masks = images_and_masks(inspection)
    stems = {unmasked(stem_of(name)) for name in images}
    paired = [name for name in masks if name.lower().endswith(".png") and unmasked(stem_of(name)) in stems]
    if inspection.content != "image" or not paired or len(paired) < _PAIRED * len(masks):
        return None
    folders = sorted({mask_folder(name) for name in masks})
    return recognise_annotations(inspection, "mask", {"folder": folders, "match": "stem"}, (), listed(folders))
