"""The record format of 2016, as ``build_imagenet_data.py`` (tensorflow/models, Inception) wrote it.

A record is the Example of fifteen features around the image's own bytes. Features are in byte order
of their names, so everything except the image is two short byte strings: one before
``image/encoded``'s value, one after it.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping

from imagenet_prep.model import Box, Item
from imagenet_prep.tfrecord import example
from imagenet_prep.tfrecord.example import (
    BytesList,
    FloatList,
    Int64List,
    Kind,
    encode_entry,
    varint,
)

COLORSPACE = b"RGB"
CHANNELS = 3
FORMAT = b"JPEG"
EDGES = ("xmin", "ymin", "xmax", "ymax")

_KINDS_AND_COUNTS: dict[str, tuple[Kind, int | None]] = {
    "channels": ("int64", 1),
    "class/label": ("int64", 1),
    "class/synset": ("bytes", 1),
    "class/text": ("bytes", 1),
    "colorspace": ("bytes", 1),
    "encoded": ("bytes", 1),
    "filename": ("bytes", 1),
    "format": ("bytes", 1),
    "height": ("int64", 1),
    "object/bbox/label": ("int64", None),
    "object/bbox/xmax": ("float", None),
    "object/bbox/xmin": ("float", None),
    "object/bbox/ymax": ("float", None),
    "object/bbox/ymin": ("float", None),
    "width": ("int64", 1),
}
PROMISE: Mapping[str, Mapping[str, object]] = {
    f"image/{name}": {"kind": kind, "optional": False, "values": count}
    for name, (kind, count) in _KINDS_AND_COUNTS.items()
}
"""The features of every record: kind, whether optional, and how many values (None: any number)."""

FEATURES = frozenset(PROMISE)
"""Their names."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "encoded": ("image/encoded",),
    "height": ("image/height",),
    "width": ("image/width",),
    "label": ("image/class/label",),
    "class": ("image/class/synset",),
    "text": ("image/class/text",),
    "path": ("image/filename",),
}
"""The features that hold the columns of an item."""

ENCODED = example.SplitEntry("image/encoded")
"""The entry of the image."""

FORMAT_ENTRY = encode_entry("image/format", BytesList((FORMAT,)))


def record_parts(item: Item, width: int, height: int, length: int) -> tuple[bytes, bytes]:
    """The bytes before and after the image in the record of ``item``; the image has ``length``
    bytes.

    ``width`` and ``height`` are in pixels. Parts that many records share are encoded once.
    """
    name = item.filename.encode()
    after = after_name(item.label, item.boxes, width, height)
    tail = value_prefix("image/filename", len(name)) + name + after
    class_entries = _class_entries(item.label, item.wnid, item.text)
    head = class_entries + ENCODED.head(length)
    features_length = len(head) + length + len(tail)
    return b"\x0a" + varint(features_length) + head, tail


def after_name(label: int, boxes: tuple[Box, ...], width: int, height: int) -> bytes:
    """The entries after the file name."""
    if not boxes:
        return _after_name_without_boxes(width, height)
    height_entry = _size_entry("image/height", height)
    width_entry = _size_entry("image/width", width)
    return FORMAT_ENTRY + height_entry + _box_entries(label, boxes) + width_entry


@functools.lru_cache(maxsize=4096)
def _after_name_without_boxes(width: int, height: int) -> bytes:
    height_entry = _size_entry("image/height", height)
    width_entry = _size_entry("image/width", width)
    return FORMAT_ENTRY + height_entry + NO_BOXES + width_entry


@functools.lru_cache(maxsize=4096)
def _class_entries(label: int, wnid: str, text: str) -> bytes:
    """The entries before image/encoded: the same for every image of a class."""
    channels_entry = encode_entry("image/channels", Int64List((CHANNELS,)))
    label_entry = encode_entry("image/class/label", Int64List((label,)))
    wnid_entry = encode_entry("image/class/synset", BytesList((wnid.encode(),)))
    text_entry = encode_entry("image/class/text", BytesList((text.encode(),)))
    colorspace_entry = encode_entry("image/colorspace", BytesList((COLORSPACE,)))
    return channels_entry + label_entry + wnid_entry + text_entry + colorspace_entry


@functools.lru_cache(maxsize=4096)
def _size_entry(name: str, pixels: int) -> bytes:
    return encode_entry(name, Int64List((pixels,)))


@functools.lru_cache(maxsize=4096)
def value_prefix(name: str, length: int) -> bytes:
    """The part of a byte string's entry before its ``length`` bytes."""
    return example.SplitEntry(name).head(length)


def _box_entries(label: int, boxes: tuple[Box, ...]) -> bytes:
    layout, prefixes = box_layout(label, len(boxes))
    before_xmax, before_xmin, before_ymax, before_ymin = prefixes
    xmax = [box.xmax for box in boxes]
    xmin = [box.xmin for box in boxes]
    ymax = [box.ymax for box in boxes]
    ymin = [box.ymin for box in boxes]
    return layout.pack(
        before_xmax, *xmax, before_xmin, *xmin, before_ymax, *ymax, before_ymin, *ymin
    )


@functools.lru_cache(maxsize=4096)
def box_layout(label: int, count: int) -> tuple[struct.Struct, tuple[bytes, ...]]:
    """How the entries of boxes are packed: for each edge, in byte order of the names,
    the bytes before its floats.
    """
    zeros = FloatList((0.0,) * count)
    prefixes: list[bytes] = []
    for edge in ("xmax", "xmin", "ymax", "ymin"):
        entry = encode_entry(f"image/object/bbox/{edge}", zeros)
        prefix_length = len(entry) - 4 * count
        prefixes.append(entry[:prefix_length])
    labels = Int64List((label,) * count)
    label_entry = encode_entry("image/object/bbox/label", labels)
    prefixes[0] = label_entry + prefixes[0]
    formats = [f"{len(prefix)}s{count}f" for prefix in prefixes]
    layout = struct.Struct("<" + "".join(formats))
    return layout, tuple(prefixes)


_, _prefixes_of_no_boxes = box_layout(0, 0)
NO_BOXES = b"".join(_prefixes_of_no_boxes)
