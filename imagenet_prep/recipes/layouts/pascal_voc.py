"""Pascal VOC: images, and an XML file of the boxes of each."""

from __future__ import annotations

from imagenet_prep.recipes.annotated_folder import describe_annotations as describe
from imagenet_prep.recipes.annotated_folder import propose_annotations as recipe
from imagenet_prep.recipes.annotated_folder import recognise_annotations
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts import Reading
from imagenet_prep.text import listed

__all__ = ["describe", "recipe", "recognise"]


def recognise(inspection: Inspection) -> Reading | None:
    """XML files with the names of the images."""
    files = [name for tool, names in inspection.annotations.items() if "Pascal VOC" in tool for name in names]
    files = [name for name in files if name.lower().endswith(".xml")]
    if inspection.content != "image" or not files:
        return None
    folders = sorted({name.rpartition("/")[0] or "." for name in files})
    return recognise_annotations(inspection, "boxes", {"voc": folders}, files, listed(folders))
