"""BDD100K: a JSON list of frames, whose labels have a box2d of corners in pixels;
Scalabel writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import read_json
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.formats import Format
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


class _BddBox(Struct):
    x1: float
    y1: float
    x2: float
    y2: float


class _BddLabel(Struct):
    category: str
    box2d: _BddBox | None = None


class _BddFrame(Struct):
    name: str
    labels: list[_BddLabel] | None = None


def _read(path: Path, notes: list[str]) -> list[Drawn]:
    """The frames of a file; labels without a box, such as lanes, are counted in a note."""
    frames: list[_BddFrame] = read_json(path, list[_BddFrame], "BDD100K")
    images = []
    boxless_count = 0
    for frame_number, frame in enumerate(frames):
        image = Drawn(frame.name, f"{path}: [{frame_number}]", [])
        for label_number, label in enumerate(frame.labels or ()):
            box = label.box2d
            if box is None:
                boxless_count += 1
                continue
            corners = (box.x1, box.y1, box.x2, box.y2)
            place = f"{image.place}.labels[{label_number}]"
            image.objects.append(DrawnObject(label.category, corners, place))
        images.append(image)
    if boxless_count:
        notes.append(f"{path.name}: {number_of(boxless_count, 'label')} without box2d not read")
    return images


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, lambda path: _read(path, images.file.unread))


def _recognises(_name: str, ends: bytes) -> bool:
    return ends.lstrip().startswith(b"[") and b'"box2d"' in ends and b'"labels"' in ends


FORMAT = Format(
    "bdd",
    "BDD100K",
    "bdd100k",
    (".json",),
    _recognises,
    _mark,
    usage={"BDD100K": "`boxes: {bdd: FILES}`"},
)
