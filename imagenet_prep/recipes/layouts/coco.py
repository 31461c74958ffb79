"""COCO: images, and JSON files of their boxes, key points and captions."""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_folder import describe_annotations as describe
from imagenet_prep.recipes.annotated_folder import propose_annotations as recipe
from imagenet_prep.recipes.annotated_folder import recognise_annotations, refuse_annotations
from imagenet_prep.recipes.box_files import read_coco
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts import Reading
from imagenet_prep.text import listed

__all__ = ["describe", "recipe", "recognise"]


def recognise(inspection: Inspection) -> Reading | None:
    """A file of boxes that names the images; of several files for the same images, the one called instances."""
    files = [name for tool, names in inspection.annotations.items() if "COCO" in tool for name in names]
    if inspection.content != "image" or not files:
        return None
    sorts: dict[str, dict[str, str]] = {"boxes": {}, "captions": {}}
    for name in sorted(files, key=lambda name: ("instances" not in name, name)):
        if not name.endswith(".json"):
            continue
        try:
            coco = read_coco(inspection.folder / name)
        except InputError as error:
            return refuse_annotations(inspection, "boxes", error)
        if coco.sort and coco.images:
            sorts[coco.sort].setdefault(coco.images[0].file_name, name)
    boxes, captions = (sorted(names.values()) for names in sorts.values())
    if not boxes:
        return None
    value = {"coco": boxes, **({"captions": captions} if captions else {})}
    return recognise_annotations(inspection, "boxes", value, [*boxes, *captions], listed(boxes))
