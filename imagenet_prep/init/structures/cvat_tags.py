"""CVAT's tags: an XML of images with a tag each, the class of the whole image, and no boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import CERTAIN, Interpretation, Proposal
from imagenet_prep.recipes.annotated_images import find_rows
from imagenet_prep.recipes.annotation_files import read_xml
from imagenet_prep.recipes.classes import class_order
from imagenet_prep.recipes.formats.cvat import FORMAT
from imagenet_prep.recipes.splits import splits_above
from imagenet_prep.text import listed, number_of


def recognise(inspection: Inspection) -> Interpretation | None:
    """Files whose images have one tag each and no shape, of at least half of the images."""
    files = sorted(inspection.annotations.get(FORMAT.tool, ()))
    if not files or inspection.content != "image":
        return None
    labels: dict[str, str] = {}
    try:
        for name in files:
            path = inspection.folder / name
            tags = _read_tags(path)
            if tags is None:
                return None
            labels |= _labels_of(tags, inspection.items, path)
    except InputError:
        return None  # the structure of boxes says what is wrong
    if 2 * len(labels) < len(inspection.items):
        return None
    classes = class_order(set(labels.values()))
    class_names = listed(classes)
    evidence = f"{listed(files)} has a tag of {number_of(len(labels), 'image')}: {class_names}"
    names = list(labels)
    splits = splits_above(names)
    proposal = Proposal("files", "image", names, splits=splits, written_labels=labels)
    return Interpretation(
        CERTAIN + 2,
        (evidence,),
        f"the tags are the classes: {class_names}",
        proposal,
        annotation_files=files,
        losses=_untagged(inspection, labels),
        labelled=len(labels),
        classes=len(classes),
    )


def _untagged(inspection: Inspection, labels: Mapping[str, str]) -> list[InputError]:
    """The fault of images without a tag."""
    untagged = [name for name in inspection.items if name not in labels]
    if not untagged:
        return []
    count = number_of(len(untagged), "image")
    problem = f"{inspection.folder}: {count} without a tag: {listed(untagged)}"
    return [InputError(problem, "every image needs a tag")]


def _read_tags(path: Path) -> dict[str, str] | None:
    """The tag of each image; None if an image has a shape, or several tags."""
    tags: dict[str, str] = {}
    for element in read_xml(path).iter("image"):
        labels = [child.get("label", "") for child in element if child.tag == "tag"]
        if len(labels) < len(element) or len(labels) > 1:
            return None
        if labels and labels[0]:
            name = element.get("name", "")
            tags[name] = labels[0]
    return tags


def _labels_of(tags: dict[str, str], images: Sequence[str], path: Path) -> dict[str, str]:
    """The tags by the images of the folder that their names mean."""
    rows = find_rows(list(tags), images, path.parent, path)
    labels: dict[str, str] = {}
    for row, label in zip(rows, tags.values(), strict=True):
        if row >= 0:
            labels[images[row]] = label
    return labels


STRUCTURES = {"cvat-tags": recognise}
