"""The record layout of 2016, as ``build_imagenet_data.py`` (tensorflow/models, Inception) wrote it.

A record is the Example of fifteen features around the image's own bytes. Features are in byte order of their names,
so everything except the image is two short byte strings: one before ``image/encoded``'s value, one after it.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping

from imagenet_prep.model import Box, Item
from imagenet_prep.tfrecord import example
from imagenet_prep.tfrecord.example import BytesList, FloatList, Int64List, encode_entry, varint

COLORSPACE = b"RGB"
CHANNELS = 3
FORMAT = b"JPEG"
FEATURES = frozenset(
    f"image/{name}"
    for name in (
        *("encoded", "height", "width", "colorspace", "channels", "format", "filename"),
        *("class/label", "class/synset", "class/text"),
        *(f"object/bbox/{part}" for part in ("xmin", "xmax", "ymin", "ymax", "label")),
    )
)
"""The names of the features that every record has."""

_OF_BOXES = "image/object/bbox/"
_WHOLE = ("image/height", "image/width", "image/channels", "image/class/label", f"{_OF_BOXES}label")
PROMISE: Mapping[str, Mapping[str, object]] = {
    name: {
        "kind": "int64" if name in _WHOLE else "float" if name.startswith(_OF_BOXES) else "bytes",
        "optional": False,
        "values": None if name.startswith(_OF_BOXES) else 1,
    }
    for name in sorted(FEATURES)
}
"""The features of every record: kind, whether optional, and how many values (None: any number)."""

ENCODED = example.SplitEntry("image/encoded")
"""The entry of the image."""

_FORMAT_ENTRY = encode_entry("image/format", BytesList((FORMAT,)))


def record_parts(item: Item, width: int, height: int, length: int) -> tuple[bytes, bytes]:
    """The bytes before and after the image in the record of ``item``; the image has ``length`` bytes.

    ``width`` and ``height`` are in pixels. Parts that many records share are encoded once.
    """
    name = item.filename.encode()
    tail = (
        _value_prefix("image/filename", len(name))
        + name
        + _FORMAT_ENTRY
        + _size_entry("image/height", height)
        + _bbox_entries(item.label, item.boxes)
        + _size_entry("image/width", width)
    )
    head = _class_entries(item.label, item.wnid, item.text) + ENCODED.head(length)
    return b"\x0a" + varint(len(head) + length + len(tail)) + head, tail


@functools.lru_cache(maxsize=4096)
def _class_entries(label: int, wnid: str, text: str) -> bytes:
    """The entries before image/encoded: the same for every image of a class."""
    return b"".join(
        (
            encode_entry("image/channels", Int64List((CHANNELS,))),
            encode_entry("image/class/label", Int64List((label,))),
            encode_entry("image/class/synset", BytesList((wnid.encode(),))),
            encode_entry("image/class/text", BytesList((text.encode(),))),
            encode_entry("image/colorspace", BytesList((COLORSPACE,))),
        )
    )


@functools.lru_cache(maxsize=4096)
def _size_entry(name: str, pixels: int) -> bytes:
    return encode_entry(name, Int64List((pixels,)))


@functools.lru_cache(maxsize=4096)
def _value_prefix(name: str, length: int) -> bytes:
    """The part of a byte string's entry before its ``length`` bytes."""
    return example.SplitEntry(name).head(length)


def _bbox_entries(label: int, boxes: tuple[Box, ...]) -> bytes:
    count = len(boxes)
    if count == 0:
        return _NO_BOXES
    xmax, xmin, ymax, ymin = _bbox_prefixes(count)
    floats = _floats(count).pack
    return b"".join(
        (
            _bbox_labels(label, count),
            xmax,
            floats(*[box.xmax for box in boxes]),
            xmin,
            floats(*[box.xmin for box in boxes]),
            ymax,
            floats(*[box.ymax for box in boxes]),
            ymin,
            floats(*[box.ymin for box in boxes]),
        )
    )


@functools.lru_cache(maxsize=4096)
def _bbox_labels(label: int, count: int) -> bytes:
    return encode_entry("image/object/bbox/label", Int64List((label,) * count))


@functools.lru_cache(maxsize=256)
def _floats(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}f")


@functools.lru_cache(maxsize=256)
def _bbox_prefixes(count: int) -> tuple[bytes, ...]:
    """The part of each edge's entry before its ``count`` floats, in byte order of the four names."""
    size = 4 * count
    return tuple(encode_entry(name, FloatList((0.0,) * count))[:-size] for name in _BBOX_SIDES)


_BBOX_SIDES = tuple(f"image/object/bbox/{side}" for side in ("xmax", "xmin", "ymax", "ymin"))
_NO_BOXES = _bbox_labels(0, 0) + b"".join(encode_entry(name, FloatList(())) for name in _BBOX_SIDES)
