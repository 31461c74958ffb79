"""CreateML: a JSON list of images, whose objects have a centre and a size in pixels;
Roboflow exports it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import read_json
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import corners_of_size
from imagenet_prep.recipes.formats import Format

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


class _CreateMLBox(Struct):
    x: float
    y: float
    width: float
    height: float


class _CreateMLObject(Struct):
    label: str
    coordinates: _CreateMLBox


class _CreateMLImage(Struct):
    image: str
    annotations: list[_CreateMLObject]


def _read(path: Path) -> list[Drawn]:
    images: list[_CreateMLImage] = read_json(path, list[_CreateMLImage], "CreateML")
    return [_read_image(image, f"{path}: [{number}]") for number, image in enumerate(images)]


def _read_image(image: _CreateMLImage, image_where: str) -> Drawn:
    drawn = Drawn(image.image, image_where, [])
    for number, annotation in enumerate(image.annotations):
        box = annotation.coordinates
        left = box.x - box.width / 2
        top = box.y - box.height / 2
        corners = corners_of_size(left, top, box.width, box.height)
        place = f"{image_where}.annotations[{number}]"
        drawn.objects.append(DrawnObject(annotation.label, corners, place))
    return drawn


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


def _recognises(_name: str, ends: bytes) -> bool:
    return ends.lstrip().startswith(b"[") and b'"coordinates"' in ends and b'"annotations"' in ends


FORMAT = Format(
    "createml",
    "CreateML",
    "createml",
    (".json",),
    _recognises,
    _mark,
    usage={"CreateML": "`boxes: {createml: FILES}`, which Roboflow exports"},
)
