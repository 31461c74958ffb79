"""VIA: the VGG Image Annotator's JSON (versions 1 and 2) and CSV,
whose regions have a shape and attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import check_numbers, read_json, read_table
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import (
    CORRECT,
    DRAW_AGAIN,
    corners_around,
    corners_of_size,
    fault,
    rotated,
)
from imagenet_prep.recipes.formats import NUMBERING, Format
from imagenet_prep.recipes.json_faults import json_reason
from imagenet_prep.recipes.recipe_file import shortened
from imagenet_prep.recipes.row_objects import shown_cell
from imagenet_prep.text import either, number_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


class _ViaRegion(Struct):
    shape_attributes: dict[str, Any]
    region_attributes: dict[str, Any]


class _ViaImage(Struct):
    filename: str
    regions: list[_ViaRegion] | dict[str, _ViaRegion]


class _ViaProject(Struct):
    images: dict[str, _ViaImage] = msgspec.field(name="_via_img_metadata")


_CLASS_ATTRIBUTES = ("class", "label", "name", "type", "category")
"""The usual names of the attribute that is the class."""


def _read(path: Path, class_attribute: str | None) -> list[Drawn]:
    images: dict[str, Drawn] = {}
    regions = _rows(path) if path.suffix.lower() == ".csv" else _entries(path)
    for name, place, region in regions:
        image = images.setdefault(name, Drawn(name, place))
        if region is not None:
            image.objects.append(_read_object(region, class_attribute, place))
    return list(images.values())


def _entries(path: Path) -> Iterator[tuple[str, str, _ViaRegion | None]]:
    """Each image of a JSON, then each of its regions."""
    for key, image in _images_in(path).items():
        place = f"{path}: {key}"
        yield image.filename, place, None
        regions = image.regions.values() if isinstance(image.regions, dict) else image.regions
        for number, region in enumerate(regions):
            yield image.filename, f"{place}: regions[{number}]", region


def _images_in(path: Path) -> dict[str, _ViaImage]:
    """The images of a JSON, of a project or alone."""
    if b'"_via_img_metadata"' in path.read_bytes():
        project: _ViaProject = read_json(path, _ViaProject, "VIA")
        return project.images
    images: dict[str, _ViaImage] = read_json(path, dict[str, _ViaImage], "VIA")
    return images


def _rows(path: Path) -> Iterator[tuple[str, str, _ViaRegion | None]]:
    """The image of each row of a CSV, and its region, if it has one."""
    for place, row in read_table(path):
        name = row.get("#filename") or row.get("filename") or ""
        shape = _json_object(row, "region_shape_attributes", place)
        attributes = _json_object(row, "region_attributes", place)
        region = _ViaRegion(shape, attributes) if shape else None
        yield name, place, region


_POINTS = "all_points_x and all_points_y of one length"
_NUMBERS = {
    "rect": "x, y, width and height",
    "circle": "cx, cy and r",
    "ellipse": "cx, cy, rx and ry",
    "polygon": _POINTS,
    "polyline": _POINTS,
}
"""The numbers of each shape, for messages."""

_EXAMPLES = {
    "region_shape_attributes": '{"name": "rect", ...}',
    "region_attributes": '{"class": "cat"}',
}
"""A cell of each column of JSON, for messages."""


def _json_object(row: Mapping[str, str], column: str, place: str) -> dict[str, Any]:
    """The JSON object in a cell of a CSV."""
    cell = row.get(column) or "{}"
    expected = f"expected a JSON object, such as {_EXAMPLES[column]}"
    try:
        value = msgspec.json.decode(cell)
    except RecursionError as error:
        raise fault(place, f"{column}: {json_reason(error)}", expected) from error
    except msgspec.DecodeError as error:
        raise fault(place, f"{column} can't be read as JSON: {error}", expected) from error
    if not isinstance(value, dict):
        raise fault(place, f"{column} is {shortened(cell)}", expected)
    return value


def _read_object(region: _ViaRegion, class_attribute: str | None, place: str) -> DrawnObject:
    class_name = _class_name(region.region_attributes, class_attribute, place)
    shape = region.shape_attributes
    shape_name = shape.get("name")
    if shape.get("theta"):
        raise rotated(place, "region")
    try:
        if shape_name in ("polygon", "polyline"):
            xs = check_numbers(shape["all_points_x"])
            ys = check_numbers(shape["all_points_y"])
            points = list(zip(xs, ys, strict=True))
            return DrawnObject.polygon(class_name, points, place)
        if shape_name == "rect":
            sides = [shape[name] for name in ("x", "y", "width", "height")]
            corners = corners_of_size(*check_numbers(sides))
            return DrawnObject(class_name, corners, place)
        if shape_name in ("circle", "ellipse"):
            radii = [shape.get(name, shape.get("r")) for name in ("rx", "ry")]
            centre_and_radii = [shape["cx"], shape["cy"], *radii]
            corners = corners_around(*check_numbers(centre_and_radii))
            return DrawnObject(class_name, corners, place)
    except (KeyError, TypeError, ValueError) as error:
        problem = f"a number of the {shape_name} is missing or invalid"
        expected = f"expected {_NUMBERS[str(shape_name)]}, each a number"
        raise fault(place, problem, expected) from error
    problem = f"the shape is {shape_name!r}" if shape_name else "the shape has no name"
    expected = "expected rect, circle, ellipse, polygon or polyline"
    raise fault(place, problem, expected, DRAW_AGAIN)


def _class_name(attributes: dict[str, Any], class_attribute: str | None, place: str) -> str:
    """The attribute that is the class; a checkbox that is ticked."""
    attribute = _class_attribute(attributes, class_attribute, place)
    value = attributes[attribute]
    if isinstance(value, dict):
        ticked = [name for name, is_ticked in value.items() if is_ticked]
        if len(ticked) != 1:
            boxes_are = number_of(len(ticked), "checkbox is", "checkboxes are")
            problem = f"{boxes_are} ticked in its attribute {attribute}"
            raise fault(place, problem, "expected one checkbox that is ticked: that of its class")
        value = ticked[0]
    if not isinstance(value, str) or not value.strip():
        problem = f"its attribute {attribute} is {shown_cell(value)}"
        raise fault(place, problem, "expected the name of its class: a text that is not empty")
    return value.strip()


def _class_attribute(attributes: dict[str, Any], class_attribute: str | None, place: str) -> str:
    """The attribute that the recipe names, or the only one, or the first usual one."""
    names: Iterable[str] = _CLASS_ATTRIBUTES
    if class_attribute:
        names = (class_attribute,)
    elif len(attributes) == 1:
        names = attributes
    attribute = next((name for name in names if name in attributes), None)
    if attribute is not None:
        return attribute
    attribute_names = ", ".join(attributes) or "none"
    problem = f"it is not clear which of its attributes is the class: {attribute_names}"
    expected = f"expected the class in {either(_CLASS_ATTRIBUTES)}"
    hint = (
        "rename the attribute in the file, or name it in the recipe's `boxes`: "
        "columns: {label: ATTRIBUTE}"
    )
    if class_attribute:
        problem = f"{class_attribute} is not among its attributes: {attribute_names}"
        expected = "expected the class in the attribute that the recipe names"
        hint = "correct `columns` in the recipe's `boxes`, or the file"
    elif not attributes:
        problem = "it has no attributes"
        hint = CORRECT
    raise fault(place, problem, expected, hint)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    columns = keys.columns or {}
    class_attribute = columns.get("label")

    def read(path: Path) -> list[Drawn]:
        return _read(path, class_attribute)

    images.mark_named(keys.places, read)


def _recognises(name: str, ends: bytes) -> bool:
    if name.lower().endswith(".csv"):
        first_line, _, _ = ends.partition(b"\n")
        return b"region_shape_attributes" in first_line
    has_regions = b'"shape_attributes"' in ends and b'"region_attributes"' in ends
    return has_regions or b'"_via_img_metadata"' in ends


FORMAT = Format(
    "via",
    "VIA",
    "via",
    (".json", ".csv"),
    _recognises,
    _mark,
    usage={
        "VIA 1 and 2": (
            "`boxes: {via: FILES}`, JSON or CSV. `columns: {label: ATTRIBUTE}` if regions have "
            "several attributes"
        )
    },
    keys=(*NUMBERING, "columns", "polygons"),
)
