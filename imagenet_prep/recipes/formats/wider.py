"""WIDER FACE: a text of many images: a path, the number of faces,
then x, y, width, height and flags of each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import parse_number, read_text
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import corners_of_size, fault
from imagenet_prep.recipes.formats import Format

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_CLASS = "face"


def _read(path: Path) -> list[Drawn]:
    """The images of one split. An image without faces has a line of zeros."""
    images = []
    lines = enumerate(read_text(path).splitlines(), 1)
    for number, name in lines:
        image = Drawn(name.strip(), f"{path}, line {number}", [])
        _, face_count = next(lines, _NO_LINE)
        face_count = face_count.strip()
        if not face_count.isdecimal():
            problem = f"{face_count[:40]!r} after {name[:80]}"
            raise fault(image.place, problem, "expected the number of faces")
        for _ in range(max(1, int(face_count))):
            face_number, line = next(lines, _NO_LINE)
            if len(line.split()) < 4:
                expected = f"expected x, y, width and height of {face_count} faces"
                raise fault(f"{image.place}: line {face_number}", line[:40], expected)
            face = _read_face(line, f"{path}, line {face_number}")
            if face_count != "0":
                image.objects.append(face)
        images.append(image)
    return images


_NO_LINE = (0, "")
"""The line behind the last one."""


def _read_face(line: str, place: str) -> DrawnObject:
    words = line.split()
    x, y, width, height = (parse_number(word, place) for word in words[:4])
    corners = corners_of_size(x, y, width, height)
    return DrawnObject(_CLASS, corners, place)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


_START = re.compile(rb"\S+/\S+\.jpe?g\s*\r?\n\d+\s*\r?\n\d+ \d+ \d+ \d+ ", re.IGNORECASE)


def _recognises(_name: str, ends: bytes) -> bool:
    return _START.match(ends) is not None


FORMAT = Format(
    "wider",
    "WIDER FACE",
    "wider-face",
    (".txt",),
    _recognises,
    _mark,
    usage={"WIDER FACE": "`boxes: {wider: FILES}`"},
)
