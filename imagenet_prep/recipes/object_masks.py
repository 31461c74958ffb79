"""Outlines of objects in a plan, as text: polygons, runs,
or a file -> the pixels of each, where its record is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from imagenet_prep.images import mask_pixels
from imagenet_prep.images.jpeg import ImageError, MaskError
from imagenet_prep.sources.names import below
from imagenet_prep.storage.files import read_plain
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OBJECT_MASKS = "boxes.mask"
"""The column of the outlines of an image's objects; of their PNGs in its record."""

Polygons = list[list[float]]
"""The polygons of one object: x, y, x, y, ... each, in pixels or relative, as the boxes of its
file are.
"""


class Runs(Struct, gc=False, kw_only=True):
    """An outline that is no polygon: COCO's runs, or a file.

    Args:
        size: height and width, of runs.
        counts: COCO's runs: numbers, or the text that compresses them.
        file: the path of a file, from the folder of the recipe's paths.
        length: the bytes of that file.
        segment: the number of the object's pixels in a panoptic PNG; None: all that is not black.
    """

    size: tuple[int, int] | None = None
    counts: list[int] | str | None = None
    file: str = ""
    length: int = 0
    segment: int | None = None


Outline = Polygons | Runs

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Outline)

NO_OUTLINE = msgspec.Raw(b"[]")

_EXPECTED_RUNS = "expected run lengths, as {size: [height, width], counts: ...}"


def read_outline(text: str | msgspec.Raw) -> Outline:
    """The outline of a JSON text; raises msgspec.MsgspecError if it is none."""
    outline: Outline = _decoder.decode(text)
    return outline


def file_of(text: str) -> str:
    """The path of the file that an outline is in; "" for one that is in the plan."""
    outline = read_outline(text)
    return outline.file if isinstance(outline, Runs) else ""


def outline_text(outline: Outline) -> str:
    """An outline as a plan holds it: one text, which takes a tenth of the memory of its numbers."""
    return _encoder.encode(outline).decode()


def check_outline(outline: Outline, size: tuple[int, int]) -> None:
    """Raise ImageError for an outline that can't be filled in an image of this size,
    (1, 1) if it is relative.
    """
    if isinstance(outline, list):
        if not outline:
            raise ImageError("its outline has no polygon: expected at least one polygon")
        for polygon in outline:
            mask_pixels.check_polygon(polygon, size)
    elif not outline.file:
        runs = _runs_of(outline)
        _refuse_other_size(_size_of(outline), size, "its run lengths are for")
        mask_pixels.check_runs(runs, size)


def box_of(outline: Outline, size: tuple[int, int]) -> tuple[float, float, float, float] | None:
    """The box around an outline, as COCO's own boxes are: xmin, ymin, xmax, ymax in its unit;
    None for an empty one.
    """
    if isinstance(outline, list):
        return corners_of(outline)
    return mask_pixels.box_of_runs(_runs_of(outline), size)


def corners_of(polygons: Polygons) -> tuple[float, float, float, float]:
    """The box around polygons: xmin, ymin, xmax, ymax."""
    xs = [x for polygon in polygons for x in polygon[::2]]
    ys = [y for polygon in polygons for y in polygon[1::2]]
    return min(xs), min(ys), max(xs), max(ys)


def _size_of(outline: Runs) -> tuple[int, int]:
    if outline.size is None:
        raise ImageError(f"its segmentation has no `size`: {_EXPECTED_RUNS}")
    return outline.size[1], outline.size[0]


def _runs_of(outline: Runs) -> list[int]:
    """The lengths of an outline's runs."""
    if isinstance(outline.counts, str):
        return mask_pixels.read_runs(outline.counts)
    if outline.counts is None:
        raise ImageError(f"its segmentation has no `counts`: {_EXPECTED_RUNS}")
    return outline.counts


class MaskFiles:
    """The files of masks below a folder. The segments of the last panoptic PNG are kept:
    its image has several.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._name = ""
        self._segments: NDArray[np.int32] | None = None

    def read(self, name: str, length: int) -> bytes:
        """The bytes of a file.

        Raises:
            ImageError: it has another length than when it was listed.
            InputError: it can't be read.
        """
        data = read_plain(below(self._root, name))
        if len(data) != length:
            size = number_of(len(data), "byte")
            raise MaskError(
                f"its mask {name} has {size}, and had {length:,} when it was listed",
                "restore the mask as it was",
            )
        return data

    def pixels(self, outline: Runs) -> NDArray[np.uint8]:
        """The pixels of an object."""
        import numpy as np

        if outline.segment is None:
            return mask_pixels.decode_mask(self.read(outline.file, outline.length))
        if self._segments is None or self._name != outline.file:
            data = self.read(outline.file, outline.length)
            self._segments = mask_pixels.segment_numbers(data)
            self._name = outline.file
        return np.asarray(self._segments == outline.segment, np.uint8)


def fill_outline(
    text: str, size: tuple[int, int], files: MaskFiles | None, *, is_relative: bool
) -> NDArray[np.uint8]:
    """The pixels of an outline in an image of this size: 1 inside, 0 elsewhere.

    Raises:
        ImageError: the outline can't be filled, or is one of an image of another size.
    """
    outline = read_outline(text)
    if isinstance(outline, list):
        polygons = _scaled(outline, size) if is_relative else outline
        return mask_pixels.fill_polygons(polygons, size)
    if outline.counts is not None:
        _refuse_other_size(_size_of(outline), size)
        return mask_pixels.fill_runs(_runs_of(outline), size)
    assert files is not None
    pixels = files.pixels(outline)
    _refuse_other_size(pixels.shape[::-1], size)
    return pixels


def _scaled(polygons: Polygons, size: tuple[int, int]) -> Polygons:
    """Relative polygons in pixels of an image of this size."""
    scaled: Polygons = []
    for polygon in polygons:
        scaled.append([number * size[place % 2] for place, number in enumerate(polygon)])
    return scaled


def _refuse_other_size(
    mask_size: tuple[int, ...], size: tuple[int, int], subject: str = "it has"
) -> None:
    if mask_size != size:
        mask_width, mask_height = mask_size
        raise ImageError(
            f"{subject} {mask_width} x {mask_height} pixels, the image has {size[0]} x {size[1]}"
        )
