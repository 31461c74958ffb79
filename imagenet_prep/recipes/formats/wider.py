"""WIDER FACE: a text of many images: a path, the number of faces,
then x, y, width, height and flags of each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, number_in, text_in
from imagenet_prep.recipes.box_policy import corners_of_size, fault
from imagenet_prep.recipes.formats import Format

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_CLASS = "face"


def _read(path: Path) -> list[Drawn]:
    """The images of one split. An image without faces has a line of zeros."""
    images = []
    lines = enumerate(text_in(path).splitlines(), 1)
    for number, name in lines:
        where = f"{path}, line {number}"
        count = next(lines, (0, ""))[1].strip()
        if not count.isdecimal():
            raise fault(where, f"{count[:40]!r} after {name[:80]}", "expected the number of faces")
        drawn = Drawn(name.strip(), where, [])
        for _ in range(max(1, int(count))):
            place, line = next(lines, (0, ""))
            words = line.split()
            if len(words) < 4:
                raise fault(
                    f"{where}: line {place}",
                    line[:40],
                    f"expected x, y, width and height of {count} faces",
                )
            x, y, width, height = (number_in(word, f"{path}, line {place}") for word in words[:4])
            if count != "0":
                box = corners_of_size(x, y, width, height)
                drawn.objects.append(DrawnObject(_CLASS, box, f"{path}, line {place}"))
        images.append(drawn)
    return images


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


_START = re.compile(rb"\S+/\S+\.jpe?g\s*\r?\n\d+\s*\r?\n\d+ \d+ \d+ \d+ ", re.IGNORECASE)


def _is_of(_name: str, ends: bytes) -> bool:
    return _START.match(ends) is not None


FORMAT = Format(
    "wider",
    "WIDER FACE",
    "wider-face",
    (".txt",),
    _is_of,
    _mark,
    usage={"WIDER FACE": "`boxes: {wider: FILES}`"},
)
