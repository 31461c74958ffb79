"""Label Studio: its JSON and JSON-MIN, whose rectangles,
ellipses and polygons are in percent of the image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import check_numbers, read_json
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import (
    DRAW_AND_EXPORT,
    corners_around,
    corners_of_size,
    fault,
    rotated,
)
from imagenet_prep.recipes.formats import NUMBERING, Format

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_Json = Mapping[str, Any]
"""A task, or a region of an image."""

_SHAPES = {
    "rectanglelabels": "x, y, width and height, each a number in percent",
    "polygonlabels": "points: pairs of x and y, each a number in percent",
    "ellipselabels": "x, y, radiusX and radiusY, each a number in percent",
}
"""The numbers of each shape, for messages."""

_OTHER_SHAPES = re.compile("(brush|keypoint|vector)labels")
_UPLOADED = re.compile(r"[0-9a-f]{8}-(?=.)")
"""The start of the name of an uploaded file: Label Studio puts it there."""


def _read(path: Path, image_names: frozenset[str]) -> list[Drawn]:
    tasks = read_json(path, list[dict[str, Any]], "Label Studio")
    images: list[Drawn] = []
    for number, task in enumerate(tasks):
        place = f"{path}: [{number}]"
        if task.get("id") is not None:
            place += f" (id {task['id']})"
        if not task.get("annotations", [task]):
            continue  # nobody has looked at it
        try:
            images.append(_read_task(task, image_names, place))
        except (AttributeError, KeyError, TypeError) as error:
            expected = "expected a task as Label Studio exports it"
            problem = "a part of the task is missing, or of another type"
            raise fault(place, problem, expected) from error
    return images


def _read_task(task: _Json, image_names: frozenset[str], place: str) -> Drawn:
    objects: list[DrawnObject] = []
    for number, region in enumerate(_regions(task, place), 1):
        place_of_object = f"{place}: object {number}"
        objects.append(_read_object(region, place_of_object))
    name = _image_name(task, image_names, place)
    return Drawn(name, place, objects, is_relative=True)


def _image_name(task: _Json, image_names: frozenset[str], place: str) -> str:
    """The name of a task's image: the path on Label Studio's server,
    without what an upload puts before it.
    """
    data = task.get("data", task)
    paths = [value for value in data.values() if isinstance(value, str) and "/" in value]
    address = data.get("image") or next(iter(paths), "")
    if not isinstance(address, str) or not address:
        problem = "the task names no image"
        raise fault(place, problem, "expected its path or address, as `image` of the data")
    before_query, _, _ = address.partition("?")
    _, _, path_in_query = address.partition("?d=")
    path = unquote(path_in_query or before_query)
    _, _, name = path.rpartition("/")
    if name in image_names:
        return name
    return _UPLOADED.sub("", name, count=1)


def _regions(task: _Json, place: str) -> Iterator[_Json]:
    """The regions of a task: of its only annotation, or of the keys of JSON-MIN."""
    if "annotations" in task:
        yield from _regions_of_annotations(task["annotations"], place)
        return
    for value in task.values():
        if isinstance(value, list):
            yield from (region for region in value if "original_width" in region)


def _regions_of_annotations(annotations: Sequence[_Json], place: str) -> Iterator[_Json]:
    """The regions of the only annotation that was not cancelled."""
    valid = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    if len(valid) > 1:
        problem = f"the task has {len(valid)} annotations that are not cancelled"
        hint = "keep one in Label Studio, delete the others, and export again"
        raise fault(place, problem, "expected one annotation for each task", hint)
    for annotation in valid:
        results = [result for result in annotation["result"] if "original_width" in result]
        if any(result.get("image_rotation") for result in results):
            problem = "the image was turned in Label Studio"
            expected = "expected regions that were drawn on the image without rotation"
            hint = "turn it back in Label Studio, draw the regions again, and export again"
            raise fault(place, problem, expected, hint)
        yield from (result["value"] for result in results)


def _read_object(region: _Json, place: str) -> DrawnObject:
    names = (name for name in region if name in _SHAPES or _OTHER_SHAPES.fullmatch(name))
    shape = next(names, "")
    if region.get("rotation"):
        raise rotated(place, "region")
    if shape not in _SHAPES:
        expected = f"expected one of {', '.join(_SHAPES)}"
        if not shape:
            hint = "give it a label in Label Studio, and export again"
            raise fault(place, "the region has no label", expected, hint)
        raise fault(place, f"the region has {shape}", expected, DRAW_AND_EXPORT)
    if not _is_one_name(region[shape]):
        raise fault(place, f"{shape} is not a list of one label", 'expected a list such as ["cat"]')
    try:
        return _place_object(region, shape, place)
    except (KeyError, TypeError, ValueError) as error:
        problem = f"a number of the region of {shape} is missing or invalid"
        raise fault(place, problem, f"expected {_SHAPES[shape]}") from error


def _is_one_name(labels: Any) -> bool:
    """Whether the value of a region's key is one class."""
    is_single = isinstance(labels, list) and len(labels) == 1
    return is_single and isinstance(labels[0], str) and bool(labels[0])


def _place_object(region: _Json, shape: str, place: str) -> DrawnObject:
    """The object of a region; raises KeyError, TypeError or ValueError if it lacks a number."""
    class_name = region[shape][0]
    if shape == "polygonlabels":
        pairs = [_fractions(pair) for pair in region["points"]]
        points = [(x, y) for x, y in pairs]
        return DrawnObject.polygon(class_name, points, place)
    if shape == "ellipselabels":
        centre_and_radii = [region[name] for name in ("x", "y", "radiusX", "radiusY")]
        corners = corners_around(*_fractions(centre_and_radii))
        return DrawnObject(class_name, corners, place)
    sides = [region[name] for name in ("x", "y", "width", "height")]
    corners = corners_of_size(*_fractions(sides))
    return DrawnObject(class_name, corners, place)


def _fractions(percents: Sequence[Any]) -> list[float]:
    """Numbers in percent as fractions of one; raises TypeError if one is no number."""
    return [number / 100 for number in check_numbers(percents)]


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    image_names = frozenset(name.rpartition("/")[2] for name in images.names)

    def read(path: Path) -> list[Drawn]:
        return _read(path, image_names)

    images.mark_named(keys.places, read)


def _recognises(_name: str, ends: bytes) -> bool:
    if b'"original_width"' not in ends:
        return False
    labels = re.search(rb'"[a-z]+labels"', ends)
    return labels is not None


FORMAT = Format(
    "label_studio",
    "Label Studio",
    "label-studio",
    (".json",),
    _recognises,
    _mark,
    usage={"Label Studio": "`boxes: {label_studio: FILES}`, JSON or JSON-MIN"},
    keys=(*NUMBERING, "polygons"),
)
