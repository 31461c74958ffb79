"""VIA: the VGG Image Annotator's JSON (versions 1 and 2) and CSV,
whose regions have a shape and attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, json_in, numbers_in, rows_in
from imagenet_prep.recipes.box_policy import corners_around, corners_of_size, fault
from imagenet_prep.recipes.formats import NUMBERING, Format

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


def _read(path: Path, attribute: str | None) -> list[Drawn]:
    images: dict[str, Drawn] = {}
    regions = _rows(path) if path.suffix.lower() == ".csv" else _entries(path)
    for name, where, region in regions:
        image = images.setdefault(name, Drawn(name, where))
        if region is not None:
            image.objects.append(_object(region, attribute, where))
    return list(images.values())


def _entries(path: Path) -> Iterator[tuple[str, str, _ViaRegion | None]]:
    """Each image of a JSON, then each of its regions."""
    is_project = b'"_via_img_metadata"' in path.read_bytes()
    images = (
        json_in(path, _ViaProject, "VIA").images
        if is_project
        else json_in(path, dict[str, _ViaImage], "VIA")
    )
    for key, image in images.items():
        yield image.filename, f"{path}: {key}", None
        regions = image.regions.values() if isinstance(image.regions, dict) else image.regions
        for number, region in enumerate(regions):
            yield image.filename, f"{path}: {key}: regions[{number}]", region


def _rows(path: Path) -> Iterator[tuple[str, str, _ViaRegion | None]]:
    """The image of each row of a CSV, and its region, if it has one."""
    for where, row in rows_in(path):
        name = row.get("#filename") or row.get("filename") or ""
        try:
            shape, attributes = (
                msgspec.json.decode(row.get(f"{part}_attributes") or "{}") for part in _PARTS
            )
        except msgspec.DecodeError as error:
            raise fault(where, f"not JSON: {error}", "expected VIA's attributes") from error
        yield name, where, _ViaRegion(shape, attributes) if shape else None


_PARTS = ("region_shape", "region")


def _object(region: _ViaRegion, attribute: str | None, where: str) -> DrawnObject:
    label, shape = _label(region.region_attributes, attribute, where), region.shape_attributes
    kind = shape.get("name")
    if shape.get("theta"):
        raise fault(where, f"a rotated {kind}", "expected one along the sides of the image")
    try:
        if kind in ("polygon", "polyline"):
            points = list(zip(*(numbers_in(shape[name]) for name in _POINTS), strict=True))
            return DrawnObject.polygon(label, points, where)
        if kind == "rect":
            sides = numbers_in([shape[name] for name in ("x", "y", "width", "height")])
            return DrawnObject(label, corners_of_size(*sides), where)
        if kind in ("circle", "ellipse"):
            radii = [shape.get(name, shape.get("r")) for name in ("rx", "ry")]
            return DrawnObject(
                label, corners_around(*numbers_in([shape["cx"], shape["cy"], *radii])), where
            )
    except (KeyError, TypeError, ValueError) as error:
        raise fault(
            where, f"a {kind} without its numbers", "expected those that VIA writes"
        ) from error
    raise fault(where, f"the shape {kind!r}", "expected rect, circle, ellipse or polygon")


_USUAL = ("class", "label", "name", "type", "category")


_POINTS = ("all_points_x", "all_points_y")


def _label(attributes: dict[str, Any], attribute: str | None, where: str) -> str:
    """The attribute that is the class: the only one, or the first of usual ones;
    a checkbox that is ticked.
    """
    names = [attribute] if attribute else [*attributes] if len(attributes) == 1 else _USUAL
    value = next((attributes[name] for name in names if name in attributes), None)
    if isinstance(value, dict):
        ticked = [name for name, is_on in value.items() if is_on]
        value = ticked[0] if len(ticked) == 1 else None
    if not isinstance(value, str) or not value.strip():
        names_there = ", ".join(attributes) or "nothing"
        expected = (
            "expected a text; columns: {label: ATTRIBUTE} in the recipe's `boxes` names the "
            "attribute"
        )
        raise fault(where, f"no class among its attributes ({names_there})", expected)
    return value.strip()


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    attribute = (keys.columns or {}).get("label")
    images.mark_named(keys.places, lambda path: _read(path, attribute))


def _is_of(name: str, ends: bytes) -> bool:
    if name.lower().endswith(".csv"):
        return b"region_shape_attributes" in ends.split(b"\n", 1)[0]
    return b'"_via_img_metadata"' in ends or (
        b'"shape_attributes"' in ends and b'"region_attributes"' in ends
    )


FORMAT = Format(
    "via",
    "VIA",
    "via",
    (".json", ".csv"),
    _is_of,
    _mark,
    usage={
        "VIA 1 and 2": (
            "`boxes: {via: FILES}`, JSON or CSV. `columns: {label: ATTRIBUTE}` if regions have "
            "several attributes"
        )
    },
    keys=(*NUMBERING, "columns", "polygons"),
)
