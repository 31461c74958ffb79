"""FiftyOne: relative boxes in labels.json, by the stem of each image, or in the samples.json of a
whole dataset.

labels.json has the names of the classes by number; samples.json has names, and the split of an
image among its tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, ValidationError, convert

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, json_in
from imagenet_prep.recipes.box_policy import corners_of_size, fault
from imagenet_prep.recipes.formats import Format
from imagenet_prep.recipes.splits import split_name
from imagenet_prep.text import listed

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


class _Detection(Struct):
    label: int | str
    bounding_box: tuple[float, float, float, float]


class _Detections(Struct):
    labels: dict[str, list[_Detection] | None] = {}
    classes: list[str] | None = None
    samples: list[dict[str, Any]] | None = None


def _read(path: Path) -> list[Drawn]:
    content: _Detections = json_in(path, _Detections, "FiftyOne")
    if content.samples is not None:
        return [
            _sample(sample, f"{path}: samples[{number}]")
            for number, sample in enumerate(content.samples)
        ]
    images = []
    for name, detections in content.labels.items():
        where = f"{path}: labels.{name}"
        objects = _objects(detections or (), content.classes, where)
        images.append(Drawn(name, where, objects, is_relative=True))
    return images


def _sample(sample: dict[str, Any], where: str) -> Drawn:
    """An image of a whole dataset; of several fields of boxes,
    ground_truth is the one that counts.
    """
    fields = {
        name: value
        for name, value in sample.items()
        if isinstance(value, dict) and "detections" in value
    }
    if len(fields) > 1 and _TRUTH not in fields:
        raise fault(
            where, f"boxes in {listed(fields)}", f"expected one field of boxes, or {_TRUTH}"
        )
    name = _TRUTH if _TRUTH in fields else next(iter(fields), "")
    try:
        detections = convert(fields[name]["detections"] if fields else [], list[_Detection])
        tags = convert(sample.get("tags") or [], list[str])
        file_name = convert(sample.get("filepath"), str)
    except ValidationError as error:
        raise fault(
            where, str(error), "expected filepath, tags, and detections of label and bounding_box"
        ) from error
    splits = {split for tag in tags if (split := split_name(tag))}
    split = splits.pop() if len(splits) == 1 else ""
    objects = _objects(detections, None, f"{where}.{name}.detections")
    return Drawn(file_name, where, objects, is_relative=True, split=split)


_TRUTH = "ground_truth"


def _objects(
    detections: Sequence[_Detection], classes: list[str] | None, where: str
) -> list[DrawnObject]:
    objects = []
    for number, detection in enumerate(detections):
        place = f"{where}[{number}]"
        label = _label(detection.label, classes, place)
        objects.append(DrawnObject(label, corners_of_size(*detection.bounding_box), place))
    return objects


def _label(label: int | str, classes: list[str] | None, where: str) -> str:
    if isinstance(label, str):
        return label
    if classes is None or not 0 <= label < len(classes):
        raise fault(
            where,
            f"class {label}",
            f"expected 0 to {len(classes or ()) - 1}, the numbers of `classes`",
        )
    return classes[label]


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


def _is_of(_name: str, ends: bytes) -> bool:
    of_labels = b'"labels"' in ends and b'"classes"' in ends
    of_samples = b'"samples"' in ends and b'"filepath"' in ends
    return b'"bounding_box"' in ends and (of_labels or of_samples)


FORMAT = Format(
    "fiftyone",
    "FiftyOne",
    "fiftyone",
    (".json",),
    _is_of,
    _mark,
    usage={
        "FiftyOne": (
            "`boxes: {fiftyone: FILES}`, the labels.json of FiftyOneImageDetectionDataset, "
            "or the samples.json of a FiftyOneDataset"
        )
    },
)
