"""read_objects: the objects of a row, as lists or one by one -> RowObjects; with the checks of a
number and a class.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from imagenet_prep.recipes.box_policy import Corners, corners_of_size, fault
from imagenet_prep.recipes.json_faults import json_reason, parse_json
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord.inception import EDGES

_BBOXES = ("bbox", "bboxes")
_CATEGORIES = ("categories", "category")

_READ_AS_BOXES = "the column objects, which is read as boxes"
_NO_BOXES = "correct it, or rename the column if it holds no boxes; then run the same command again"


class RowObject(NamedTuple):
    """An object as a row has it: its class, a text or a number, and its corners in pixels."""

    label: str | int
    corners: Corners


def read_objects(value: Any, place: str) -> list[RowObject]:
    """The objects of a row: lists of boxes and of classes, or a list of objects;
    a CSV has them as JSON.
    """
    if value is None:
        return []
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except (ValueError, RecursionError) as error:
            problem = f"{_READ_AS_BOXES}: {json_reason(error)}"
            expected = 'expected {"bbox": [[x, y, width, height], ...], "categories": [...]}'
            raise fault(place, problem, expected, _NO_BOXES) from error
    if isinstance(value, list):
        value = _as_lists(value, place)
    boxes, labels = _boxes_and_labels(value, place)
    if len(boxes) != len(labels):
        counts = number_of(len(boxes), "box", "boxes"), number_of(len(labels), "class", "classes")
        problem = f"objects has {' and '.join(counts)}"
        raise fault(place, problem, "expected one class for each box")
    return [_object_of(box, label, place) for box, label in zip(boxes, labels, strict=True)]


def _boxes_and_labels(value: Any, place: str) -> tuple[list[Any], list[Any]]:
    """The lists of boxes and of classes; raises InputError if they are no lists, or not there."""
    expected = "expected {bbox: [[x, y, width, height], ...], categories: [...]}"
    if not isinstance(value, dict):
        raise fault(place, f"{_READ_AS_BOXES}, is {shown_cell(value)}", expected, _NO_BOXES)
    bbox = first_of(_BBOXES, value)
    category = first_of(_CATEGORIES, value)
    boxes = value.get(bbox)
    labels = value.get(category)
    if boxes is None or labels is None:
        keys = [str(key) for key, content in value.items() if content is not None]
        problem = f"{_READ_AS_BOXES}, has values for {listed(keys) or 'nothing'}"
        raise fault(place, problem, expected, _NO_BOXES)
    for key, values in ((bbox, boxes), (category, labels)):
        if not isinstance(values, list):
            raise fault(place, f"objects: {key} is {shown_cell(values)}", expected)
    return boxes, labels


def _value_at(names: Sequence[str], mapping: Mapping[str, Any]) -> Any:
    """The value at the first of these names that is a key; None if none is."""
    name = first_of(names, mapping)
    return mapping.get(name or "")


def _as_lists(objects: list[Any], place: str) -> dict[str, list[Any]]:
    """A list of objects as lists of their values."""
    boxes: list[Any] = []
    labels: list[Any] = []
    for shape in objects:
        if not isinstance(shape, dict):
            expected = "expected {bbox: [x, y, width, height], category: ...}"
            problem = f"{_READ_AS_BOXES}, holds {shown_cell(shape)}"
            raise fault(place, problem, expected, _NO_BOXES)
        boxes.append(_value_at(_BBOXES, shape))
        labels.append(_value_at(_CATEGORIES, shape))
    return {"bbox": boxes, "category": labels}


def _object_of(box: Any, label: Any, place: str) -> RowObject:
    """An object of x, y, width and height in pixels."""
    if not isinstance(box, list) or len(box) != len(EDGES):
        expected = "expected a list of four numbers in pixels, [x, y, width, height]"
        raise fault(place, f"a bbox is {shown_cell(box)}", f"{expected}, such as [1, 2, 6, 6]")
    x, y, width, height = (read_number(number, place, "a number of a bbox") for number in box)
    class_of_box = read_class(label, place)
    return RowObject(class_of_box, corners_of_size(x, y, width, height))


# one value ----------------------------------------------------------------------------------------


def first_of(names: Sequence[str], columns: Mapping[str, Any]) -> str | None:
    """The first of these names that is a column."""
    return next((name for name in names if name in columns), None)


def shown_cell(value: Any) -> str:
    """The beginning of a value and its type, for messages."""
    if value is None:
        return "null"
    beginning = repr(value)[:60]
    return f"{beginning} ({type(value).__name__})"


def read_number(value: Any, place: str, name: str) -> float:
    """A finite number; the cells of a CSV are texts."""
    number: float = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not is_number or not abs(number) <= sys.float_info.max:
        expected = "expected a finite number, at most 1.797e308"
        raise fault(place, f"{name} is {shown_cell(value)}", expected)
    return number


def read_class(value: Any, place: str) -> str | int:
    """The class of a box: a text or a number from 0; raises InputError for another value."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        problem = f"the class of a box is {shown_cell(value)}"
        raise fault(place, problem, "expected a text that is not empty, or a whole number")
    if isinstance(value, int) and not 0 <= value < 1 << 62:
        raise fault(place, f"the class of a box is {value}", "expected 0 to 2**62 - 1")
    return value
