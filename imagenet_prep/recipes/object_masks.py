"""Outlines of objects in a plan, as text: polygons, runs, or a file -> the pixels of each, where its record is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from imagenet_prep.images import masks
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.sources.names import below
from imagenet_prep.storage.files import read_plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OBJECT_MASKS = "boxes.mask"
"""The column of the outlines of an image's objects; of their PNGs in its record."""

Polygons = list[list[float]]
"""The polygons of one object: x, y, x, y, ... each, in pixels or relative, as the boxes of its file are."""


class Runs(Struct, tag="runs", gc=False):
    """An outline as COCO's runs: numbers, or the text that compresses them; ``size`` is height and width."""

    size: tuple[int, int]
    counts: list[int] | str


class MaskFile(Struct, tag="file", gc=False):
    """An outline in a file: all that is not black, or the pixels of one ``segment`` of a panoptic PNG.

    ``name`` starts at the folder of the recipe's paths; ``length`` is in bytes.
    """

    name: str
    length: int
    segment: int | None = None


Outline = Polygons | Runs | MaskFile

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Outline)


def outline_text(outline: Outline) -> str:
    """An outline as a plan holds it: one text, which takes a tenth of the memory of its numbers."""
    return _encoder.encode(outline).decode()


class MaskFiles:
    """The files of masks below a folder. The segments of the last panoptic PNG are kept: its image has several."""

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
            raise ImageError(f"its mask {name} has {len(data):,} bytes, and had {length:,} when it was listed")
        return data

    def pixels(self, file: MaskFile) -> NDArray[np.uint8]:
        """The pixels of an object."""
        import numpy as np

        if file.segment is None:
            return masks.decode_mask(self.read(file.name, file.length))
        if self._segments is None or self._name != file.name:
            self._segments = masks.segment_numbers(self.read(file.name, file.length))
            self._name = file.name
        return np.asarray(self._segments == file.segment, np.uint8)


def fill_outline(text: str, size: tuple[int, int], files: MaskFiles | None, *, is_relative: bool) -> NDArray[np.uint8]:
    """The pixels of an outline in an image of this size: 1 inside, 0 elsewhere.

    Raises:
        ImageError: the outline can't be filled, or is one of an image of another size.
    """
    outline: Outline = _decoder.decode(text)
    if isinstance(outline, list):
        return masks.fill_polygons(_scaled(outline, size) if is_relative else outline, size)
    if isinstance(outline, Runs):
        height, width = outline.size
        _refuse_other_size((width, height), size)
        counts = masks.read_runs(outline.counts) if isinstance(outline.counts, str) else outline.counts
        return masks.fill_runs(counts, size)
    assert files is not None
    pixels = files.pixels(outline)
    _refuse_other_size(pixels.shape[::-1], size)
    return pixels


def _scaled(polygons: Polygons, size: tuple[int, int]) -> Polygons:
    """Relative polygons in pixels of an image of this size."""
    return [[value * size[place % 2] for place, value in enumerate(polygon)] for polygon in polygons]


def _refuse_other_size(got: tuple[int, ...], size: tuple[int, int]) -> None:
    if got != size:
        raise ImageError(f"it has {got[0]} x {got[1]} pixels, the image has {size[0]} x {size[1]}")
