"""Supervisely: ds/ann/a.jpg.json for ds/img/a.jpg, with rectangles and polygons in pixels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import check_size, read_json
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import DRAW_AGAIN, fault
from imagenet_prep.recipes.formats import NUMBERING, Format
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


class _SuperviselyPoints(Struct):
    exterior: list[tuple[float, float]]
    interior: list[list[tuple[float, float]]] = []


class _SuperviselyObject(Struct, rename="camel"):
    class_title: str
    geometry_type: str
    points: _SuperviselyPoints | None = None


class _SuperviselySize(Struct):
    width: int
    height: int


class _SuperviselyImage(Struct):
    size: _SuperviselySize
    objects: list[_SuperviselyObject]


def _read(path: Path, polygons: str | None) -> Drawn:
    image: _SuperviselyImage = read_json(path, _SuperviselyImage, "Supervisely")
    objects = []
    for number, annotation in enumerate(image.objects):
        objects.append(_read_object(annotation, f"{path}: objects[{number}]"))
    if polygons == "masks":
        _refuse_holes(path, image)
    size = check_size(image.size.width, image.size.height, str(path))
    return Drawn(path.stem, str(path), objects, size)


def _refuse_holes(path: Path, image: _SuperviselyImage) -> None:
    """Raise InputError if an image has a polygon with a hole."""
    for number, annotation in enumerate(image.objects):
        if annotation.points and annotation.points.interior:
            place = f"{path}: objects[{number}]"
            problem = "the polygon has holes, which a mask would fill"
            hint = (
                "write in the recipe's `boxes`: polygons: boxes "
                "(every object then keeps only its box)"
            )
            raise fault(place, problem, "expected a polygon without holes", hint)


def _read_object(annotation: _SuperviselyObject, place: str) -> DrawnObject:
    points = annotation.points.exterior if annotation.points else []
    if annotation.geometry_type == "polygon":
        return DrawnObject.polygon(annotation.class_title, points, place)
    if annotation.geometry_type != "rectangle" or len(points) != 2:
        count = number_of(len(points), "point")
        problem = f"the geometryType is {annotation.geometry_type!r}, with {count}"
        expected = "expected a rectangle of two corners, or a polygon"
        raise fault(place, problem, expected, DRAW_AGAIN)
    return DrawnObject.rectangle(annotation.class_title, points, place)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_files(keys.places, ".json", lambda path: _read(path, keys.polygons))


def _recognises(_name: str, ends: bytes) -> bool:
    return b'"geometryType"' in ends and b'"classTitle"' in ends


FORMAT = Format(
    "supervisely",
    "Supervisely",
    "supervisely",
    (".json",),
    _recognises,
    _mark,
    usage={
        "Supervisely": "`boxes: {supervisely: FOLDERS}`: `ann/a.jpg.json` for `img/a.jpg`",
    },
    keys=(*NUMBERING, "polygons"),
    per_image=True,
)
