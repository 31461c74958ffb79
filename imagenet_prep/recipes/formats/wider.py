"""WIDER FACE: a text of many images: a path, the number of faces,
then x, y, width, height and flags of each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import parse_number, read_text
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import corners_of_size, fault
from imagenet_prep.recipes.formats import Format
from imagenet_prep.text import number_of, parse_whole

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_CLASS = "face"
_NUMBERS_OF_FACE = 4  # x, y, width, height; what follows is not read


def _read(path: Path) -> list[Drawn]:
    """The images of one split. An image without faces has a line of zeros."""
    images: list[Drawn] = []
    text = read_text(path).rstrip()
    lines = enumerate(text.split("\n") if text else [], 1)
    for number, name in lines:
        image = Drawn(name.strip(), f"{path}, line {number}", [])
        count_number, face_count = next(lines, _NO_LINE)
        number_of_faces = parse_whole(face_count.strip())
        if number_of_faces is None:
            if len(image.name.split()) >= _NUMBERS_OF_FACE and images:
                raise _face_too_many(image.place, images[-1])
            raise _no_count(path, image, count_number, face_count.strip())
        expected_lines = max(1, number_of_faces)
        for line_count in range(expected_lines):
            face_number, line = next(lines, _NO_LINE)
            if len(line.split()) < _NUMBERS_OF_FACE:
                raise _no_face(path, image, face_number, line_count, expected_lines)
            face = _read_face(line, f"{path}, line {face_number}")
            if number_of_faces:
                image.objects.append(face)
        images.append(image)
    return images


_NO_LINE = (0, "")
"""The line behind the last one."""


def _no_count(path: Path, image: Drawn, number: int, text: str) -> InputError:
    """The error for a line that is not the number of faces, or for a file that ends before it."""
    title = image.name[:80] or "a line without a name"
    if not text:
        hint = f"add the number in the line after it; {_WITHOUT_FACES}"
        problem = f"no number of faces follows {title}"
        return fault(image.place, problem, "expected the number of faces", hint)
    hint = f"put the number before this line, or in its place; {_WITHOUT_FACES}"
    expected = f"expected the number of faces of {title}, which the line before names"
    return fault(f"{path}, line {number}", f"the line is {text[:80]!r}", expected, hint)


_WITHOUT_FACES = "an image without faces has the lines 0 and 0 0 0 0 0 0 0 0 0 0"


def _no_face(
    path: Path, image: Drawn, number: int, line_count: int, expected_lines: int
) -> InputError:
    """The error for a line that is no face, or for a file that ends too early (number 0)."""
    if not number:
        lines = number_of(expected_lines, "line")
        expected = f"expected {lines} of x, y, width and height for {image.name}"
        found_lines = number_of(line_count, "line")
        return fault(image.place, f"the file ends after {found_lines} of boxes", expected)
    place = f"{path}, line {number}"
    expected = f"expected x, y, width and height of a face of {image.name}, or 0 0 0 0 for none"
    if expected_lines == 1:
        return fault(place, "the line has fewer than four values", expected)
    problem = f"{line_count} of {expected_lines} faces of {image.name} come before this line"
    expected = f"expected x, y, width and height of face {line_count + 1}"
    hint = "add the missing faces, or correct the number of faces after the name of the image"
    return fault(place, problem, expected, hint)


def _face_too_many(place: str, image: Drawn) -> InputError:
    """The error for a line of a face where the name of an image should be."""
    faces = number_of(len(image.objects), "face")
    problem = f"another face follows the {faces} of {image.name}"
    if not image.objects:
        problem = f"another line follows the line of zeros of {image.name}, which has 0 faces"
    hint = "correct the number of faces after the name of that image, or remove this line"
    return fault(place, problem, "expected the name of the next image", hint)


def _read_face(line: str, place: str) -> DrawnObject:
    words = line.split()
    x, y, width, height = (parse_number(word, place) for word in words[:4])
    corners = corners_of_size(x, y, width, height)
    return DrawnObject(_CLASS, corners, place)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


_START = re.compile(rb"\S+/\S+\.jpe?g\s*\r?\n\d+\s*\r?\n\d+ \d+ \d+ \d+ ", re.IGNORECASE)


_USUAL_NAME = "_bbx_gt.txt"


def _recognises(name: str, ends: bytes) -> bool:
    return name.endswith(_USUAL_NAME) or _START.match(ends) is not None


FORMAT = Format(
    "wider",
    "WIDER FACE",
    "wider-face",
    (".txt",),
    _recognises,
    _mark,
    usage={"WIDER FACE": "`boxes: {wider: FILES}`"},
)
