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
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, json_in, numbers_in
from imagenet_prep.recipes.box_policy import corners_around, corners_of_size, fault
from imagenet_prep.recipes.formats import NUMBERING, Format

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_Shape = Mapping[str, Any]
_SHAPES = ("rectanglelabels", "polygonlabels", "ellipselabels")
_OTHER_SHAPES = re.compile("(brush|keypoint|vector)labels")
_UPLOADED = re.compile(r"[0-9a-f]{8}-(?=.)")
"""The start of the name of an uploaded file: Label Studio puts it there."""


def _read(path: Path, known: frozenset[str]) -> list[Drawn]:
    tasks = json_in(path, list[dict[str, Any]], "Label Studio")
    images = []
    for number, task in enumerate(tasks):
        where = f"{path}: [{number}] (id {task.get('id')})"
        if not task.get("annotations", [task]):
            continue  # nobody has looked at it
        try:
            images.append(_drawn(task, known, where))
        except (AttributeError, KeyError, TypeError) as error:
            raise fault(
                where, "no task of Label Studio", "expected data, and annotations with a result"
            ) from error
    return images


def _drawn(task: _Shape, known: frozenset[str], where: str) -> Drawn:
    shapes = enumerate(_shapes(task, where))
    objects = [_object(shape, f"{where}: object {place}") for place, shape in shapes]
    return Drawn(_name(task, known, where), where, objects, is_relative=True)


def _name(task: _Shape, known: frozenset[str], where: str) -> str:
    """The name of a task's image: the path on Label Studio's server,
    without what an upload puts before it.
    """
    data = task.get("data", task)
    texts = [value for value in data.values() if isinstance(value, str) and "/" in value]
    text = data.get("image") or next(iter(texts), "")
    if not isinstance(text, str) or not text:
        raise fault(where, "no image", "expected its path or address in data.image")
    name = unquote(text.partition("?d=")[2] or text.partition("?")[0]).rpartition("/")[2]
    return name if name in known else _UPLOADED.sub("", name, count=1)


def _shapes(task: _Shape, where: str) -> Iterator[_Shape]:
    """The regions of a task: of its only annotation, or of the keys of JSON-MIN."""
    if "annotations" not in task:
        for value in (value for value in task.values() if isinstance(value, list)):
            yield from (shape for shape in value if "original_width" in shape)
        return
    several = [
        annotation for annotation in task["annotations"] if not annotation.get("was_cancelled")
    ]
    if len(several) > 1:
        raise fault(
            where, f"{len(several)} annotations of one image", "expected one: cancel the others"
        )
    for annotation in several:
        results = [result for result in annotation["result"] if "original_width" in result]
        if any(result.get("image_rotation") for result in results):
            raise fault(
                where,
                "an image that was turned in Label Studio",
                "expected regions of the image as it is",
            )
        yield from (result["value"] for result in results)


def _object(shape: _Shape, where: str) -> DrawnObject:
    kind = next(
        (name for name in shape if name in _SHAPES or _OTHER_SHAPES.fullmatch(name)), "no label"
    )
    labels = shape.get(kind)
    is_named = (
        isinstance(labels, list)
        and len(labels) == 1
        and isinstance(labels[0], str)
        and labels[0] != ""
    )
    if kind not in _SHAPES or not is_named or shape.get("rotation"):
        what = "a rotated region" if shape.get("rotation") else f"a region with {kind}"
        raise fault(where, what, f"expected one label: {', '.join(_SHAPES)}")
    label = shape[kind][0]
    try:
        if kind == "polygonlabels":
            points = [_parts(pair) for pair in shape["points"]]
            return DrawnObject.polygon(label, [(x, y) for x, y in points], where)
        if kind == "ellipselabels":
            centre_and_radii = _parts([shape[name] for name in ("x", "y", "radiusX", "radiusY")])
            return DrawnObject(label, corners_around(*centre_and_radii), where)
        sides = _parts([shape[name] for name in ("x", "y", "width", "height")])
        return DrawnObject(label, corners_of_size(*sides), where)
    except (KeyError, TypeError, ValueError) as error:
        raise fault(
            where, f"{kind} without its numbers", "expected those that Label Studio writes"
        ) from error


def _parts(percents: Sequence[Any]) -> list[float]:
    """Numbers in percent as parts of one; raises TypeError if one is no number."""
    return [number / 100 for number in numbers_in(percents)]


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    known = frozenset(name.rpartition("/")[2] for name in images.names)
    images.mark_named(keys.places, lambda path: _read(path, known))


def _is_of(_name: str, ends: bytes) -> bool:
    return b'"original_width"' in ends and re.search(rb'"[a-z]+labels"', ends) is not None


FORMAT = Format(
    "label_studio",
    "Label Studio",
    "label-studio",
    (".json",),
    _is_of,
    _mark,
    usage={"Label Studio": "`boxes: {label_studio: FILES}`, JSON or JSON-MIN"},
    keys=(*NUMBERING, "polygons"),
)
