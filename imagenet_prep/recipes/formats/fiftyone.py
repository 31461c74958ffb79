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
from imagenet_prep.recipes.annotation_files import json_problem, read_json
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import corners_of_size, fault
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.formats import Format
from imagenet_prep.text import listed, number_of

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
    content: _Detections = read_json(path, _Detections, "FiftyOne")
    images = []
    if content.samples is not None:
        for number, sample in enumerate(content.samples):
            place = f"{path}: samples[{number}]"
            images.append(_read_sample(sample, content.classes, place))
        return images
    for name, detections in content.labels.items():
        place = f"{path}: labels.{name}"
        objects = _read_objects(detections or (), content.classes, place)
        images.append(Drawn(name, place, objects, is_relative=True))
    return images


def _read_sample(sample: dict[str, Any], classes: list[str] | None, place: str) -> Drawn:
    """An image of a whole dataset."""
    field = _field_of_boxes(sample, place)
    content = [] if field is None else sample[field]["detections"]
    detections = _convert(content, list[_Detection], f"{place}.{field}.detections")
    tags = _convert(sample.get("tags") or [], list[str], f"{place}.tags")
    file_name = _convert(sample.get("filepath"), str, f"{place}.filepath")
    objects = _read_objects(detections, classes, f"{place}.{field}.detections")
    return Drawn(file_name, place, objects, is_relative=True, split=_split_in(tags))


def _convert(value: Any, kind: Any, place: str) -> Any:
    """A part of a sample as a type; raises InputError if it is of another one."""
    try:
        return convert(value, kind)
    except ValidationError as error:
        expected = "expected filepath, tags, and detections of label and bounding_box"
        problem, key = json_problem(error)
        raise fault(f"{place}{key}", problem, expected) from error


_TRUTH = "ground_truth"


def _field_of_boxes(sample: dict[str, Any], place: str) -> str | None:
    """The field of a sample that has its boxes: of several ground_truth counts; None for none."""
    fields = []
    for name, value in sample.items():
        if isinstance(value, dict) and "detections" in value:
            fields.append(name)
    if _TRUTH in fields:
        return _TRUTH
    if len(fields) > 1:
        problem = f"the sample has several fields with detections: {listed(fields)}"
        expected = f"expected a single one, or a field {_TRUTH}"
        rename = f"dataset.rename_sample_field({fields[0]!r}, {_TRUTH!r})"
        hint = f"rename the field of the boxes in FiftyOne, for example {rename}; then export again"
        raise fault(place, problem, expected, hint)
    return fields[0] if fields else None


def _split_in(tags: Sequence[str]) -> str:
    """The split that tags name; "" if they name none, or several."""
    splits = {split_name(tag) for tag in tags} - {""}
    return splits.pop() if len(splits) == 1 else ""


def _read_objects(
    detections: Sequence[_Detection], classes: list[str] | None, image_where: str
) -> list[DrawnObject]:
    objects = []
    for number, detection in enumerate(detections):
        place = f"{image_where}[{number}]"
        class_name = _class_name(detection.label, classes, place)
        corners = corners_of_size(*detection.bounding_box)
        objects.append(DrawnObject(class_name, corners, place))
    return objects


def _class_name(label: int | str, classes: list[str] | None, place: str) -> str:
    if isinstance(label, str):
        return label
    if not classes:
        expected = 'expected a name, or a list of names, "classes", at the top of the file'
        raise fault(place, f"the class is the number {label}", expected)
    if not 0 <= label < len(classes):
        names = number_of(len(classes), "name")
        expected = f"expected the number of a class: `classes` has {names}, numbered from 0"
        raise fault(place, f"there is no class {label}", expected)
    return classes[label]


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


def _recognises(_name: str, ends: bytes) -> bool:
    if b'"bounding_box"' not in ends:
        return False
    is_labels_file = b'"labels"' in ends and b'"classes"' in ends
    is_samples_file = b'"samples"' in ends and b'"filepath"' in ends
    return is_labels_file or is_samples_file


FORMAT = Format(
    "fiftyone",
    "FiftyOne",
    "fiftyone",
    (".json",),
    _recognises,
    _mark,
    usage={
        "FiftyOne": (
            "`boxes: {fiftyone: FILES}`, the labels.json of FiftyOneImageDetectionDataset, "
            "or the samples.json of a FiftyOneDataset"
        )
    },
)
