"""The record format of 2016, as ``build_imagenet_data.py`` (tensorflow/models, Inception) wrote it.

A record is the Example of fifteen features around the image's own bytes. Features are in byte order
of their names, so everything except the image is two short byte strings: one before
``image/encoded``'s value, one after it.

The features of objects and masks in records of recipes have the names of TensorFlow's Object
Detection API (tensorflow/models, create_coco_tf_record.py and create_pascal_tf_record.py), and of
DeepLab (build_data.py there).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from typing import NamedTuple

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
    head = _class_entries(item.label, item.wnid, item.text) + ENCODED.head(length)
    return b"\x0a" + varint(len(head) + length + len(tail)) + head, tail


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
    return FORMAT_ENTRY + height_entry + NO_BOXES + _size_entry("image/width", width)


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
def value_prefix(name: str, length: int) -> bytes:
    """The part of a byte string's entry before its ``length`` bytes."""
    return example.SplitEntry(name).head(length)


def _box_entries(label: int, boxes: tuple[Box, ...]) -> bytes:
    layout, (xmax, xmin, ymax, ymin) = box_layout(label, len(boxes))
    return layout.pack(
        xmax,
        *[box.xmax for box in boxes],
        xmin,
        *[box.xmin for box in boxes],
        ymax,
        *[box.ymax for box in boxes],
        ymin,
        *[box.ymin for box in boxes],
    )


@functools.lru_cache(maxsize=4096)
def box_layout(label: int, count: int) -> tuple[struct.Struct, tuple[bytes, ...]]:
    """How the entries of boxes are packed: for each edge, in byte order of the names,
    the bytes before its floats.
    """
    prefixes: list[bytes] = []
    for edge in ("xmax", "xmin", "ymax", "ymin"):
        entry = encode_entry(f"image/object/bbox/{edge}", FloatList((0.0,) * count))
        prefixes.append(entry[: len(entry) - 4 * count])
    label_entry = encode_entry("image/object/bbox/label", Int64List((label,) * count))
    prefixes[0] = label_entry + prefixes[0]
    layout = struct.Struct("<" + "".join(f"{len(prefix)}s{count}f" for prefix in prefixes))
    return layout, tuple(prefixes)


NO_BOXES = b"".join(box_layout(0, 0)[1])


# objects and masks --------------------------------------------------------------------------------


class ObjectFeature(NamedTuple):
    """A feature, its kind, and how many values it has:
    one per "box", per "point" (of a box), "any", or "one".
    """

    name: str
    kind: Kind
    values: str = "box"


OBJECT_FEATURES = {
    **{f"boxes.{edge}": ObjectFeature(f"image/object/bbox/{edge}", "float") for edge in EDGES},
    "boxes.label": ObjectFeature("image/object/class/label", "int64"),
    "boxes.text": ObjectFeature("image/object/class/text", "bytes"),
    "boxes.crowd": ObjectFeature("image/object/is_crowd", "int64"),
    "boxes.area": ObjectFeature("image/object/area", "float"),
    "boxes.difficult": ObjectFeature("image/object/difficult", "int64"),
    "boxes.truncated": ObjectFeature("image/object/truncated", "int64"),
    "boxes.view": ObjectFeature("image/object/view", "bytes"),
    "boxes.mask": ObjectFeature("image/object/mask", "bytes"),
    "boxes.keypoint_count": ObjectFeature("image/object/keypoint/num", "int64"),
    "boxes.keypoint_x": ObjectFeature("image/object/keypoint/x", "float", "point"),
    "boxes.keypoint_y": ObjectFeature("image/object/keypoint/y", "float", "point"),
    "boxes.keypoint_visibility": ObjectFeature(
        "image/object/keypoint/visibility", "int64", "point"
    ),
    "boxes.keypoint_text": ObjectFeature("image/object/keypoint/text", "bytes", "point"),
    "boxes.source_id": ObjectFeature("image/source_id", "bytes", "one"),
    "boxes.caption": ObjectFeature("image/caption", "bytes", "any"),
    "mask.encoded": ObjectFeature("image/segmentation/class/encoded", "bytes", "one"),
    "mask.format": ObjectFeature("image/segmentation/class/format", "bytes", "one"),
}
"""The features of objects and masks, by the columns of a recipe that fill them."""
