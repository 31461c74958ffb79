"""CVAT: an XML "CVAT for images 1.1" of many images, with boxes, polygons and ellipses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import check_size, parse_number, read_xml
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import DRAW_AND_EXPORT, corners_around, fault, rotated
from imagenet_prep.recipes.formats import NUMBERING, Format

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_CORNERS = ("xtl", "ytl", "xbr", "ybr")
_ELLIPSE = ("cx", "cy", "rx", "ry")


def _read(path: Path) -> list[Drawn]:
    elements = list(read_xml(path).iter("image"))
    images = [_read_image(element, path) for element in elements]
    if images and not any(image.objects for image in images):
        raise _no_objects(path, elements)
    return images


def _no_objects(path: Path, images: Sequence[ElementTree.Element]) -> InputError:
    """The error for a file without boxes: tags are classes of whole images."""
    problem = "no image has a box, a polygon or an ellipse"
    most_tags = max(len(image.findall("tag")) for image in images)
    if not most_tags:
        advice = "draw them in CVAT, and export again; or move this file away"
        return fault(str(path), problem, "expected at least one box, polygon or ellipse", advice)
    hint = Hint(
        "for images with several classes, write a CSV with the columns filename and label, a line "
        "for each class of an image, and run ",
        mention("init", "FOLDER", "--as", "several-labels"),
    )
    if most_tags == 1:
        hint = Hint(
            "run ",
            mention("init", "FOLDER", "--as", "cvat-tags"),
            " with the folder of the images: it makes a recipe of these classes",
        )
    return fault(
        str(path),
        problem,
        "expected a box, polygon or ellipse: tags are classes of whole images",
        hint,
    )


def _read_image(element: ElementTree.Element, path: Path) -> Drawn:
    name = element.get("name", "")
    image_id = element.get("id")
    title = "image" if image_id is None else f"image {image_id}"
    place = f"{path}: {title} ({name})"
    width, height = _numbers(element, ("width", "height"), place)
    image = Drawn(name, place, [], check_size(width, height, place))
    shapes = [child for child in element if child.tag != "tag"]
    for number, shape in enumerate(shapes, 1):
        image.objects.append(_read_object(shape, f"{place}: object {number}"))
    return image


def _read_object(element: ElementTree.Element, place: str) -> DrawnObject:
    label = element.get("label", "")
    if not label:
        raise fault(place, "the object has no label", "expected the class")
    rotation = parse_number(element.get("rotation", "0"), place, "rotation")
    if rotation % 360:
        raise rotated(place, element.tag)
    if element.tag == "polygon":
        points = _points(element, place)
        return DrawnObject.polygon(label, points, place)
    if element.tag == "box":
        left, top, right, bottom = _numbers(element, _CORNERS, place)
        corners = (left, top, right, bottom)
        return DrawnObject(label, corners, place)
    if element.tag == "ellipse":
        x, y, half_width, half_height = _numbers(element, _ELLIPSE, place)
        corners = corners_around(x, y, half_width, half_height)
        return DrawnObject(label, corners, place)
    problem = f"the shape is <{element.tag}>"
    raise fault(place, problem, "expected a box, a polygon or an ellipse", DRAW_AND_EXPORT)


def _points(element: ElementTree.Element, place: str) -> list[tuple[float, float]]:
    """The corners of a polygon."""
    pairs = [pair.split(",") for pair in element.get("points", "").split(";")]
    if any(len(pair) != 2 for pair in pairs):
        raise fault(place, "its points are not all pairs of numbers", "expected x,y;x,y;...")
    points = []
    for x, y in pairs:
        points.append((parse_number(x, place), parse_number(y, place)))
    return points


def _numbers(
    element: ElementTree.Element, attributes: Sequence[str], place: str
) -> Iterator[float]:
    """The numbers of these attributes."""
    return (parse_number(element.get(name, ""), place, name) for name in attributes)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


def _recognises(_name: str, ends: bytes) -> bool:
    return b"<annotations>" in ends and b"<version>1.1" in ends


FORMAT = Format(
    "cvat",
    "CVAT",
    "cvat",
    (".xml",),
    _recognises,
    _mark,
    usage={
        "CVAT": (
            '`boxes: {cvat: FILES}`, "CVAT for images 1.1"; for files of tags, the classes of '
            "images, init writes a table (`--as cvat-tags`)"
        )
    },
    keys=(*NUMBERING, "polygons"),
)
