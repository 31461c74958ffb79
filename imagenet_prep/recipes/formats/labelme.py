"""LabelMe: a JSON for each image, with its name; https://github.com/wkentaro/labelme."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import check_size, read_json
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import DRAW_AGAIN, corners_around, fault
from imagenet_prep.recipes.formats import NUMBERING, Format
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


class _LabelMeShape(Struct):
    label: str
    points: list[tuple[float, float]]
    shape_type: str | None = "polygon"


class _LabelMe(Struct, rename="camel"):
    shapes: list[_LabelMeShape]
    image_path: str = ""
    image_width: int | None = None
    image_height: int | None = None


def _read(path: Path) -> Drawn:
    place = str(path)
    content: _LabelMe = read_json(path, _LabelMe, "LabelMe")
    size = None
    if content.image_width is not None and content.image_height is not None:
        size = check_size(content.image_width, content.image_height, place)
    image = Drawn(content.image_path, place, [], size)
    for number, shape in enumerate(content.shapes):
        image.objects.append(_read_object(shape, f"{place}: shapes[{number}]"))
    return image


def _read_object(shape: _LabelMeShape, place: str) -> DrawnObject:
    """A polygon, or a box between two corners in any order, or around a circle:
    its centre and a point of it.
    """
    points = shape.points
    if shape.shape_type in (None, "polygon"):
        return DrawnObject.polygon(shape.label, points, place)
    if shape.shape_type not in ("rectangle", "circle") or len(points) != 2:
        count = number_of(len(points), "point")
        problem = f"the shape {shape.shape_type!r} has {count}"
        expected = "expected a rectangle or a circle of two points, or a polygon"
        raise fault(place, problem, expected, DRAW_AGAIN)
    if shape.shape_type == "rectangle":
        return DrawnObject.rectangle(shape.label, points, place)
    radius = math.dist(*points)
    return DrawnObject(shape.label, corners_around(*points[0], radius, radius), place)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_files(keys.places, ".json", _read)


def _recognises(_name: str, ends: bytes) -> bool:
    return b'"shapes"' in ends and b'"imagePath"' in ends


FORMAT = Format(
    "labelme",
    "LabelMe",
    "labelme",
    (".json",),
    _recognises,
    _mark,
    usage={"LabelMe": "`boxes: {labelme: FOLDERS}`: `a.json` for `a.jpg`"},
    keys=(*NUMBERING, "polygons"),
    per_image=True,
)
