"""Shards of MosaicML's streaming (.mds) -> SlicedSamples: the place of each image in the file, and
its other values.

A shard has the number of samples, the offset of each and of the end, and the columns as JSON; a
sample has the sizes of its columns without a fixed size, then all columns
(https://docs.mosaicml.com/projects/streaming, "MDS").
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from imagenet_prep.images import ending_of
from imagenet_prep.sources.stored_arrays import CUT_OR_DAMAGED, OtherFormError, damage_named
from imagenet_prep.storage.files import view_of
from imagenet_prep.text import either

_IMAGES = ("jpeg", "png", "bytes", "jpegarray")
_NUMBERS = {
    "int": "q",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
_LARGEST_COUNT = 1 << 28
_NOUN = "a shard of MDS"


_Column = tuple[str, str, int | None]
"""A name, an encoding, and a size in bytes; None for one that each sample has."""


class SlicedSample(NamedTuple):
    """An image in a file: its name there, offset and length in bytes, and the values next to it."""

    name: str
    offset: int
    length: int
    values: dict[str, Any]


def iter_mds(path: Path) -> Iterator[SlicedSample]:
    """List all samples of a shard in order.

    Raises:
        InputError: it is damaged, or has no column of images.
    """
    view = view_of(path)[0 : path.stat().st_size]
    with damage_named(path, _NOUN):
        offsets, columns = _header(view)
        for number, (start, stop) in enumerate(itertools.pairwise(offsets)):
            yield _sample(view[start:stop], start, number, columns)


def unread_columns(path: Path) -> dict[str, str]:
    """The columns that no sample gets, each with its encoding; a second image, such as a mask, is
    one of them.

    Raises:
        InputError: the shard is damaged, or has no column of images.
    """
    view = view_of(path)[0 : path.stat().st_size]
    with damage_named(path, _NOUN):
        offsets, columns = _header(view)
        if len(offsets) < 2:
            return {}
        data = view[offsets[0] : offsets[1]]
        read = {*_sample(data, offsets[0], 0, columns).values}
        for name, encoding, _, cell in _cells(data, 0, columns):
            if _ending(encoding, cell):
                read.add(name)
                break
        return {name: encoding for name, encoding, _ in columns if name not in read}


def _header(view: memoryview) -> tuple[tuple[int, ...], Sequence[_Column]]:
    """The offset of each sample and of the end, and the columns."""
    (count,) = struct.unpack_from("<I", view, 0)
    if count > _LARGEST_COUNT:
        raise ValueError(CUT_OR_DAMAGED)
    offsets = struct.unpack_from(f"<{count + 1}I", view, 4)
    try:
        config = json.loads(bytes(view[4 * (count + 2) : offsets[0]]))
        facts = [config[f"column_{fact}"] for fact in ("names", "encodings", "sizes")]
        return offsets, list(zip(*facts, strict=True))
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(CUT_OR_DAMAGED) from error


def _cells(
    data: memoryview, number: int, columns: Sequence[_Column]
) -> Iterator[tuple[str, str, int, memoryview]]:
    """The name and encoding of each column, and where its bytes start in a sample."""
    unsized = [name for name, _, size in columns if size is None]
    lengths = dict(zip(unsized, struct.unpack_from(f"<{len(unsized)}I", data, 0), strict=True))
    place = 4 * len(unsized)
    for name, encoding, size in columns:
        length = lengths[name] if size is None else size
        cell = data[place : place + length]
        if len(cell) != length:
            raise ValueError(CUT_OR_DAMAGED)
        yield name, encoding, place, cell
        place += length


def _ending(encoding: str, cell: memoryview) -> str:
    """The ending of an image; "" for other values."""
    return ending_of(bytes(cell[:32])) if encoding in _IMAGES else ""


def _sample(data: memoryview, start: int, number: int, columns: Sequence[_Column]) -> SlicedSample:
    image: tuple[int, int, str] | None = None
    values: dict[str, Any] = {}
    for name, encoding, place, cell in _cells(data, number, columns):
        ending = _ending(encoding, cell)
        if ending and image is None:
            image = start + place, len(cell), ending
        elif encoding in _NUMBERS:
            (values[name],) = struct.unpack(f"<{_NUMBERS[encoding]}", cell)
        elif encoding == "str":
            values[name] = bytes(cell).decode()
    if image is None:
        encodings = ", ".join(f"{name} ({encoding})" for name, encoding, _ in columns)
        raise OtherFormError(
            f"sample {number:,} has no image in a column of the type {either(_IMAGES)}: "
            f"its columns are {encodings}",
            "get an intact copy of it; or write its images as jpeg or png",
        )
    image_start, length, ending = image
    return SlicedSample(f"{number:06}{ending}", image_start, length, values)
