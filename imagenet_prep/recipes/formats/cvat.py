"""CVAT: an XML "CVAT for images 1.1" of many images, with boxes, polygons and ellipses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, number_in, size_of, xml_in
from imagenet_prep.recipes.box_policy import corners_around, fault
from imagenet_prep.recipes.formats import NUMBERING, Format

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_CORNERS = ("xtl", "ytl", "xbr", "ybr")


def _read(path: Path) -> list[Drawn]:
    images = []
    for element in xml_in(path).iter("image"):
        name = element.get("name", "")
        where = f"{path}: image {element.get('id')} ({name})"
        width, height = (_number(element.attrib, side, where) for side in ("width", "height"))
        drawn = Drawn(name, where, [], size_of(width, height, where))
        shapes = [child for child in element if child.tag != "tag"]
        drawn.objects = [
            _object(child, f"{where}: object {number}") for number, child in enumerate(shapes, 1)
        ]
        images.append(drawn)
    if images and not any(image.objects for image in images):
        hint = (
            "tags are classes of whole images: export them from CVAT as ImageNet 1.0, "
            "which has a folder a class"
        )
        raise fault(str(path), "no image has a box or a polygon", f"expected some; {hint}")
    return images


def _object(element: ElementTree.Element, where: str) -> DrawnObject:
    label = element.get("label", "")
    if not label:
        raise fault(where, "no label", "expected the class")
    if _number(element.attrib, "rotation", where, "0") % 360:
        raise fault(
            where, f"a {element.tag} that is rotated", "expected sides along those of the image"
        )
    if element.tag == "box":
        left, top, right, bottom = (_number(element.attrib, name, where) for name in _CORNERS)
        return DrawnObject(label, (left, top, right, bottom), where)
    if element.tag == "polygon":
        pairs = [pair.split(",") for pair in element.get("points", "").split(";")]
        if any(len(pair) != 2 for pair in pairs):
            raise fault(where, "points that are no pairs", "expected x,y;x,y;...")
        points = [(number_in(x, where), number_in(y, where)) for x, y in pairs]
        return DrawnObject.polygon(label, points, where)
    if element.tag == "ellipse":
        x, y, half_width, half_height = (
            _number(element.attrib, name, where) for name in ("cx", "cy", "rx", "ry")
        )
        return DrawnObject(label, corners_around(x, y, half_width, half_height), where)
    raise fault(where, f"a {element.tag}", "expected a box, a polygon or an ellipse")


def _number(attributes: Mapping[str, str], name: str, where: str, otherwise: str = "") -> float:
    return number_in(attributes.get(name, otherwise), f"{where}: {name}")


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


def _is_of(_name: str, ends: bytes) -> bool:
    return b"<annotations>" in ends and b"<version>1.1" in ends


FORMAT = Format(
    "cvat",
    "CVAT",
    "cvat",
    (".xml",),
    _is_of,
    _mark,
    usage={
        "CVAT": (
            '`boxes: {cvat: FILES}`, "CVAT for images 1.1"; for files of tags, the classes of '
            "images, init writes a table (`--as cvat-tags`)"
        )
    },
    keys=(*NUMBERING, "polygons"),
)
