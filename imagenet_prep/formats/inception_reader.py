"""Record bytes -> the values of an Inception record.

Records in our own encoding, nearly all there are, are read by looking where their few varying values must lie. That
look is a guess; what surrounds the image is then rebuilt from the values and compared, which proves the guess right.
Any other encoding of the same features is as legal, and takes the general parser.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from imagenet_prep.formats import inception
from imagenet_prep.formats.example import (
    BytesList,
    ExampleError,
    Feature,
    FloatList,
    Int64List,
    delimited,
    parse_example,
)
from imagenet_prep.model import Box, ByteRange, Item

F = TypeVar("F", BytesList, FloatList, Int64List)

_KINDS: dict[type, str] = {BytesList: "bytes", FloatList: "floats", Int64List: "int64s"}
_HEAD = 2048  # bytes that hold everything before the image: words of the longest class are some 140
_NOWHERE = ByteRange(Path(), 0, 0)


class RecordError(ValueError):
    """A feature that is missing, of the wrong kind, or without a usable value."""

    def __init__(self, feature: str, reason: str) -> None:
        super().__init__(f"{feature} {reason}")
        self.feature = feature
        self.reason = reason


class BoxesError(RecordError):
    """The five lists of boxes do not fit together."""


@dataclass(frozen=True, slots=True)
class ImageRecord:
    """What a record says: ``width`` and ``height`` in pixels, ``box_labels`` one a box, ``encoded`` the JPEG."""

    filename: str
    label: int
    wnid: str
    text: str
    width: int
    height: int
    boxes: tuple[Box, ...]
    box_labels: tuple[int, ...]
    encoded: memoryview


def read_record(data: memoryview) -> ImageRecord:
    """The values of a record's data.

    Raises:
        ExampleError: the bytes are no tf.train.Example.
        RecordError: a feature is missing, of the wrong kind, or not what every record must hold.
    """
    return _read_canonical(data) or read_features(parse_example(data))


# our own encoding ----------------------------------------------------------------------------------------------


def _read_canonical(data: memoryview) -> ImageRecord | None:
    """The record, if its encoding is exactly that of inception.record_parts; else None."""
    head = bytes(data[:_HEAD])
    try:
        _, start = _varint(head, 1)
        key = head.index(b"image/encoded")
        _, position = _varint(head, key + 14)  # after the name, each length follows a tag of one byte
        _, position = _varint(head, position + 1)
        length, position = _varint(head, position + 1)
        words = _read_class(head[start : head.rindex(b"RGB", start, key) + 3])
        tail = bytes(data[position + length :])
        filename, width, height, boxes = _read_tail(tail)
    except (ValueError, IndexError, struct.error):
        return None
    if words is None:
        return None
    label, wnid, text = words
    item = Item(filename, label, wnid, text, boxes, _NOWHERE)
    if (head[:position], tail) != inception.record_parts(item, width, height, length):
        return None
    encoded = data[position : position + length]
    return ImageRecord(filename, label, wnid, text, width, height, boxes, (label,) * len(boxes), encoded)


@functools.lru_cache(maxsize=4096)
def _read_class(entries: bytes) -> tuple[int, str, str] | None:
    """Label, wnid and words from the entries before the image: the same bytes for every image of a class."""
    try:
        features = parse_example(delimited(1, entries))
        return (
            _int(features, "image/class/label"),
            _text(features, "image/class/synset"),
            _text(features, "image/class/text"),
        )
    except (ExampleError, RecordError):
        return None


def _read_tail(tail: bytes) -> tuple[str, int, int, tuple[Box, ...]]:
    """File name, width, height and boxes from what follows the image, every length taken to be of one byte."""
    stop = 24 + tail[23]  # tag, length, tag, length, "image/filename", then three times tag, length
    filename = tail[24:stop].decode()
    height = tail.index(b"image/height", stop) + 12
    xmax = tail.index(b"image/object/bbox/xmax", height)
    xmin = tail.index(b"image/object/bbox/xmin", xmax)
    ymax = tail.index(b"image/object/bbox/ymax", xmin)
    ymin = tail.index(b"image/object/bbox/ymin", ymax)
    width = tail.index(b"image/width", ymin) + 11
    starts, stops = (xmin, ymin, xmax, ymax), (ymax, width - 11, xmin, ymin)
    columns = [_read_floats(tail[a + 28 : b - 4]) for a, b in zip(starts, stops, strict=True)]
    return filename, _read_size(tail, width), _read_size(tail, height), tuple(map(Box, *columns))


def _read_floats(packed: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(packed) // 4}f", packed)


def _read_size(tail: bytes, position: int) -> int:
    value, stop = _varint(tail, position + 6)
    if stop - position > 10:
        raise ValueError("over 28 bits: no size of an image")
    return value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[position]) >= 0x80 and shift < 63:
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
    return value | byte << shift, position + 1


# any encoding --------------------------------------------------------------------------------------------------


def read_features(features: Mapping[str, Feature]) -> ImageRecord:
    """The record that a parsed Example is; features beyond the fifteen are left alone.

    Raises:
        RecordError: as for read_record.
    """
    _expect(_text(features, "image/colorspace"), inception.COLORSPACE.decode(), "image/colorspace")
    _expect(_int(features, "image/channels"), inception.CHANNELS, "image/channels")
    _expect(_text(features, "image/format"), inception.FORMAT.decode(), "image/format")
    corners = [
        _get(features, f"image/object/bbox/{edge}", FloatList).values for edge in ("xmin", "ymin", "xmax", "ymax")
    ]
    box_labels = _get(features, "image/object/bbox/label", Int64List).values
    counts = [len(values) for values in (*corners, box_labels)]
    if len(set(counts)) > 1:
        raise BoxesError("image/object/bbox", f"lists xmin, ymin, xmax, ymax, label differ in length: {counts}")
    return ImageRecord(
        filename=_text(features, "image/filename"),
        label=_int(features, "image/class/label"),
        wnid=_text(features, "image/class/synset"),
        text=_text(features, "image/class/text"),
        width=_int(features, "image/width"),
        height=_int(features, "image/height"),
        boxes=tuple(map(Box, *corners)),
        box_labels=box_labels,
        encoded=memoryview(_one(_get(features, "image/encoded", BytesList).values, "image/encoded")),
    )


def _get(features: Mapping[str, Feature], name: str, kind: type[F]) -> F:
    feature = features.get(name)
    if feature is None:
        raise RecordError(name, "is missing")
    if not isinstance(feature, kind):
        raise RecordError(name, f"holds {_KINDS[type(feature)]}, expected {_KINDS[kind]}")
    return feature


V = TypeVar("V")


def _one(values: tuple[V, ...], name: str) -> V:
    if len(values) != 1:
        raise RecordError(name, f"holds {len(values)} values, expected 1")
    return values[0]


def _int(features: Mapping[str, Feature], name: str) -> int:
    return _one(_get(features, name, Int64List).values, name)


def _text(features: Mapping[str, Feature], name: str) -> str:
    try:
        return str(_one(_get(features, name, BytesList).values, name), "utf-8")
    except UnicodeDecodeError:
        raise RecordError(name, "is not UTF-8") from None


def _expect(value: object, expected: object, name: str) -> None:
    if value != expected:
        raise RecordError(name, f"is {value!r}, expected {expected!r}")
