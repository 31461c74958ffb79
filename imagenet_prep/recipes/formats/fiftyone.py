"""FiftyOne: labels.json with relative boxes by the stem of each image, and the names of the classes by number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, json_in
from imagenet_prep.recipes.box_policy import fault
from imagenet_prep.recipes.formats import Format

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


class _Detection(Struct):
    label: int | str
    bounding_box: tuple[float, float, float, float]


class _Detections(Struct):
    labels: dict[str, list[_Detection] | None]
    classes: list[str] | None = None


def _read(path: Path) -> list[Drawn]:
    content: _Detections = json_in(path, _Detections, "FiftyOne")
    images = []
    for name, detections in content.labels.items():
        drawn = Drawn(name, f"{path}: labels.{name}", [], is_relative=True)
        for number, detection in enumerate(detections or ()):
            where = f"{drawn.where}[{number}]"
            x, y, width, height = detection.bounding_box
            label = _label(detection.label, content.classes, where)
            drawn.objects.append(DrawnObject(label, (x, y, x + width, y + height), where))
        images.append(drawn)
    return images


def _label(label: int | str, classes: list[str] | None, where: str) -> str:
    if isinstance(label, str):
        return label
    if classes is None or not 0 <= label < len(classes):
        raise fault(where, f"class {label}", f"expected 0 to {len(classes or ()) - 1}, the numbers of `classes`")
    return classes[label]


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


def _is_of(_name: str, ends: bytes) -> bool:
    return b'"labels"' in ends and b'"bounding_box"' in ends and b'"classes"' in ends


FORMAT = Format("fiftyone", "FiftyOne", "fiftyone", (".json",), _is_of, _mark)
