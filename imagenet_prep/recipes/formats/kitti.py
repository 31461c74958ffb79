"""KITTI: label_2/000000.txt for image_2/000000.png, a line of 15 values for each object;
DontCare is none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import parse_number, read_text
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, columns_named
from imagenet_prep.recipes.box_policy import fault
from imagenet_prep.recipes.formats import Format
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_WORD_COUNTS = (15, 16)
"""Class, truncation, occlusion, angle, four corners in pixels, and seven numbers in space;
results have a score.
"""

_NO_OBJECT = "DontCare"


def _read(path: Path) -> Drawn:
    image = Drawn(path.stem, str(path), [])
    for number, line in enumerate(read_text(path).split("\n"), 1):
        words = line.split()
        if words and words[0] != _NO_OBJECT:
            image.objects.append(_read_object(words, f"{path}, line {number}"))
    return image


def _read_object(words: list[str], place: str) -> DrawnObject:
    if len(words) not in _WORD_COUNTS:
        expected = "expected 15 or 16: class, truncated, occluded, alpha, 4 corners, ..."
        problem = f"the line has {number_of(len(words), 'value')}"
        raise fault(place, problem, expected)
    is_truncated = parse_number(words[1], place) > 0
    left, top, right, bottom = (parse_number(word, place) for word in words[4:8])
    corners = (left, top, right, bottom)
    values = {"truncated": int(is_truncated)}
    return DrawnObject(words[0], corners, place, values)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.file.columns = columns_named("truncated")
    images.mark_files(keys.places, ".txt", _read)


def _recognises(_name: str, ends: bytes) -> bool:
    """Whether the first lines are those of objects."""
    lines = [line.split() for line in ends.split(b"\n")[:3] if line.strip()]
    return bool(lines) and all(map(_is_object, lines))


def _is_object(words: list[bytes]) -> bool:
    """Whether a line has a class, then numbers."""
    if len(words) not in _WORD_COUNTS or words[0].isdigit():
        return False
    try:
        list(map(float, words[1:]))
    except ValueError:
        return False
    return True


FORMAT = Format(
    "kitti",
    "KITTI",
    "kitti",
    (".txt",),
    _recognises,
    _mark,
    usage={
        "KITTI": (
            "`boxes: {kitti: FOLDERS}`: `label_2/a.txt` for `image_2/a.png`; DontCare is no object"
        )
    },
    per_image=True,
    is_vague=True,
)
