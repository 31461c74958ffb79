"""Record bytes -> the values of an Inception record.

Nearly all records have the layout of inception.record_parts. They are read at known positions; the
values, encoded again, must give the same bytes. Any other encoding of the same features is as
legal: the
general parser reads it, several times slower.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from imagenet_prep.model import Box
from imagenet_prep.tfrecord import inception
from imagenet_prep.tfrecord.example import (
    KINDS,
    Buffer,
    BytesList,
    ExampleError,
    Feature,
    FloatList,
    Int64List,
    delimited,
    parse_example,
    varint,
    varint_in,
)

F = TypeVar("F", BytesList, FloatList, Int64List)

_FIRST_KEY = (
    128  # in nearly all records the image's key is after this many bytes: the search starts there
)
# bytes that hold everything before the image: the longest class has some 140 bytes of words
_HEAD = 2048


class RecordError(ValueError):
    """A feature that is missing, of the wrong kind, or without a usable value."""

    def __init__(self, feature: str, reason: str) -> None:
        super().__init__(f"{feature} {reason}")
        self.feature = feature
        self.reason = reason


class BoxesError(RecordError):
    """The five lists of boxes differ in length."""


class Traits(Struct, frozen=True):
    """The constants of every record of one maker: which features it has, and three values in them.

    A constant is None where its feature is missing.
    """

    features: frozenset[str]
    colorspace: str | None
    channels: int | None
    format: str | None


CANONICAL = Traits(
    inception.FEATURES, inception.COLORSPACE.decode(), inception.CHANNELS, inception.FORMAT.decode()
)


class ImageRecord(NamedTuple):  # a tuple is built in a third of the time of a frozen dataclass
    """The values of a record: ``width`` and ``height`` in pixels, ``box_labels`` one per box,
    ``encoded`` the JPEG.

    Values that other makers leave out are None, or "", or empty; the label is None where
    ``read_image`` finds none.
    """

    filename: str
    label: int | None
    wnid: str | None
    text: str | None
    width: int | None
    height: int | None
    boxes: tuple[Box, ...]
    box_labels: tuple[int, ...]
    encoded: memoryview
    traits: Traits


def read_record(data: memoryview) -> ImageRecord:
    """The values of a record's data.

    Raises:
        ExampleError: the bytes are not a tf.train.Example.
        RecordError: image or label is missing, or a feature has the wrong kind or no usable value.
    """
    return read_canonical(data) or read_features(parse_example(data))


def read_image(data: memoryview) -> ImageRecord:
    """As ``read_record``; a record of boxes may lack the label."""
    return read_canonical(data) or read_features(parse_example(data), needs_label=False)


# our own encoding ---------------------------------------------------------------------------------

_KEY = b"\x0a\x0dimage/encoded\x12"
_CLASS_FEATURES = {
    "image/channels",
    "image/class/label",
    "image/class/synset",
    "image/class/text",
    "image/colorspace",
}

Words = tuple[int, str, str]
"""Label, wnid and words of a class."""


def read_canonical(data: memoryview) -> ImageRecord | None:
    """The record, if it has exactly the fifteen features in inception.record_parts's layout;
    None otherwise.
    """
    try:
        found = read_head(data) or _read_odd_head(data)
        if found is None:
            return None
        (label, wnid, text), start, stop = found
        filename, width, height, boxes = _read_tail(bytes(data[stop:]), label)
    except (ValueError, IndexError, struct.error):
        return None
    labels = (label,) * len(boxes)
    return ImageRecord(
        filename, label, wnid, text, width, height, boxes, labels, data[start:stop], CANONICAL
    )


def read_head(data: memoryview) -> tuple[Words, int, int] | None:
    """The class, and where the image starts and stops in the data; None unless the layout is the
    most common one.

    That is our layout with an image of 16 KiB to 2 MiB. Each of the five nested lengths before the
    image then is three bytes long. They are decoded and compared at once, as digits of one large
    number.
    """
    head = data[:512].tobytes()
    key = head.find(_KEY, _FIRST_KEY)
    digits = int.from_bytes(head[:4] + head[key - 4 : key + 27], "little")
    if digits & _CONSTANT_BITS != _CONSTANT:
        return None
    lengths = digits & _LOW | digits >> 1 & _MIDDLE | digits >> 2 & _HIGH
    length = lengths >> _LAST
    if lengths != length * _EACH + (len(data) << 8) + _MORE:
        return None
    words = _read_class(head[4 : key - 4])
    return words and (words, key + 27, key + 27 + length)


def _masks() -> tuple[int, ...]:
    """The constants that ``read_head`` needs, derived from one such head,
    whose image has 20,000 bytes.
    """
    entry = inception.ENCODED.head(20_000)
    places = (
        1,
        5,
        24,
        28,
        32,
    )  # of the lengths in the first four bytes of the data and the 31 before the image
    sample = int.from_bytes(b"\x0a\x80\x80\x00" + entry, "little")
    low, middle, high = (sum(0x7F << 8 * place + shift for place in places) for shift in (0, 7, 14))
    varying = sum(0x7F7F7F << 8 * place for place in places)
    constant_bits = (1 << 8 * 35) - 1 & ~varying
    decoded = sample & low | sample >> 1 & middle | sample >> 2 & high
    each = sum(1 << 8 * place for place in places[1:])
    more = (
        decoded - 20_000 * each - (4 << 8)
    )  # the first length is that of the data except its own four bytes
    return constant_bits, sample & constant_bits, low, middle, high, 8 * places[-1], each, more


_CONSTANT_BITS, _CONSTANT, _LOW, _MIDDLE, _HIGH, _LAST, _EACH, _MORE = _masks()


def _read_odd_head(data: memoryview) -> tuple[Words, int, int] | None:
    """As ``read_head``, for images of any length;
    raises ValueError or IndexError for a head of another layout.
    """
    head = bytes(data[:_HEAD])
    size, start = varint_in(head, 1)
    key = head.index(_KEY, start)
    first = head.rindex(b"RGB", start, key) + 3
    words = _read_class(head[start:first])
    _, listed = varint_in(head, key + len(_KEY))
    _, value = varint_in(head, listed + 1)
    length, position = varint_in(head, value + 1)
    is_ours = head[0] == 10 and head[first:position] == inception.ENCODED.head(length)
    return (
        (words, position, position + length)
        if words and is_ours and start + size == len(data)
        else None
    )


@functools.lru_cache(maxsize=4096)
def _read_class(entries: bytes) -> Words | None:
    """Label, wnid and words from the entries before the image:
    the same bytes for every image of a class.
    """
    try:
        features = parse_example(delimited(1, entries))
        if features.keys() != _CLASS_FEATURES or _constants(features)[:2] != (
            CANONICAL.colorspace,
            CANONICAL.channels,
        ):
            return None
        label, wnid = _int(features, "image/class/label"), _text(features, "image/class/synset")
        text = _text(features, "image/class/text")
    except (ExampleError, RecordError):
        return None
    return None if label is None or wnid is None or text is None else (label, wnid, text)


def _read_tail(tail: bytes, label: int) -> tuple[str, int, int, tuple[Box, ...]]:
    """File name, width, height and boxes from the bytes after the image;
    raises ValueError unless canonical.
    """
    size = tail[23]  # after tag, length, tag, length, "image/filename", and three times tag, length
    stop = 24 + size
    if not tail.startswith(inception.value_prefix("image/filename", size)):
        raise ValueError("another encoding")
    rest = tail[stop:]
    read = _read_shared if len(rest) <= _MOST_SHARED else _read_rest
    return tail[24:stop].decode(), *read(rest, label)


def _read_rest(rest: bytes, label: int) -> tuple[int, int, tuple[Box, ...]]:
    """Width, height and boxes: they are read at their places, and encoded again,
    which shows whether they are right.
    """
    height, position = varint_in(rest, _HEIGHT)
    boxes: tuple[Box, ...] = ()
    if rest.startswith(inception.NO_BOXES, position):
        position += len(inception.NO_BOXES)
    else:
        count = rest[position + 32] // len(
            varint(label)
        )  # the length of the packed labels, if it fits one byte
        layout, _ = inception.box_layout(label, count)
        values, step = layout.unpack_from(rest, position), count + 1
        xmax, xmin, ymax, ymin = (
            values[start : start + count] for start in range(1, 4 * step, step)
        )
        boxes = tuple(map(Box, xmin, ymin, xmax, ymax))
        position += layout.size
    width, _ = varint_in(rest, position + _WIDTH)
    if rest != inception.after_name(label, boxes, width, height):
        raise ValueError("another encoding")
    return width, height, boxes


_read_shared = functools.lru_cache(maxsize=4096)(
    _read_rest
)  # the same bytes for all images of one size without boxes
_MOST_SHARED = len(inception.after_name(0, (), 1 << 27, 1 << 27))
"""Bytes of a rest that may be shared."""
_HEIGHT, _WIDTH = len(inception.FORMAT_ENTRY) + 22, 21
"""Where height and width are, from the start of the rest, and from the end of the boxes."""


# any encoding -------------------------------------------------------------------------------------


def read_features(features: Mapping[str, Feature], *, needs_label: bool = True) -> ImageRecord:
    """The record in a parsed Example; features beyond the fifteen are ignored.

    Raises:
        RecordError: as for read_record.
    """
    label = _int(features, "image/class/label")
    encoded = _value(features, "image/encoded", BytesList)
    if encoded is None or (label is None and needs_label):
        raise RecordError(
            "image/encoded" if label is not None or not needs_label else "image/class/label",
            "is missing",
        )
    boxes, box_labels = _boxes(features)
    return ImageRecord(
        filename=_text(features, "image/filename") or "",
        label=label,
        wnid=_text(features, "image/class/synset"),
        text=_text(features, "image/class/text"),
        width=_int(features, "image/width"),
        height=_int(features, "image/height"),
        boxes=boxes,
        box_labels=box_labels,
        encoded=memoryview(encoded),
        traits=_traits(frozenset(features), *_constants(features)),
    )


_traits = functools.lru_cache(maxsize=256)(
    Traits
)  # few exist, and identical objects compare faster


def _constants(features: Mapping[str, Feature]) -> tuple[str | None, int | None, str | None]:
    colorspace, channels = _text(features, "image/colorspace"), _int(features, "image/channels")
    return colorspace, channels, _text(features, "image/format")


def _boxes(features: Mapping[str, Feature]) -> tuple[tuple[Box, ...], tuple[int, ...]]:
    """Boxes and their labels; the labels may be missing, and the edges may all be missing."""
    edges = [
        _get(features, f"image/object/bbox/{edge}", FloatList)
        for edge in ("xmin", "ymin", "xmax", "ymax")
    ]
    labels = _get(features, "image/object/bbox/label", Int64List)
    there = [feature.values for feature in (*edges, labels) if feature is not None]
    counts = [len(values) for values in there]
    if len(set(counts)) > 1 or (None in edges and len(there) > (labels is not None)):
        raise BoxesError(
            "image/object/bbox", f"lists xmin, ymin, xmax, ymax, label differ in length: {counts}"
        )
    corners = [edge.values for edge in edges if edge is not None]
    return tuple(map(Box, *corners)) if corners else (), labels.values if labels else ()


def _get(features: Mapping[str, Feature], name: str, kind: type[F]) -> F | None:
    feature = features.get(name)
    if feature is not None and not isinstance(feature, kind):
        raise RecordError(name, f"holds {KINDS[type(feature)]}, expected {KINDS[kind]}")
    return feature


def _value(features: Mapping[str, Feature], name: str, kind: type[F]) -> Any:
    """The one value of a feature, or None if it is missing."""
    feature = _get(features, name, kind)
    if feature is None:
        return None
    if len(feature.values) != 1:
        raise RecordError(name, f"holds {len(feature.values)} values, expected 1")
    return feature.values[0]


def _int(features: Mapping[str, Feature], name: str) -> int | None:
    value: int | None = _value(features, name, Int64List)
    return value


def _text(features: Mapping[str, Feature], name: str) -> str | None:
    value: Buffer | None = _value(features, name, BytesList)
    try:
        return None if value is None else str(value, "utf-8")
    except UnicodeDecodeError:
        raise RecordError(name, "is not UTF-8") from None
