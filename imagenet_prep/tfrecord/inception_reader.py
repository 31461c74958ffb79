"""Record bytes -> the values of an Inception record.

Nearly all records have the format of inception.record_parts. They are read at known positions; the
values, encoded again, must give the same bytes. Any other encoding of the same features is as
legal: the general parser reads it, several times slower.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping, Sequence
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

_FIRST_KEY = 128
"""In nearly all records the image's key is after this many bytes: the search starts there."""

_HEAD = 2048
"""Bytes that hold everything before the image: the longest class has some 140 bytes of words."""


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
    features=inception.FEATURES,
    colorspace=inception.COLORSPACE.decode(),
    channels=inception.CHANNELS,
    format=inception.FORMAT.decode(),
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
    """The record, if it has exactly the fifteen features in inception.record_parts's format;
    None otherwise.
    """
    try:
        head = read_head(data) or _read_odd_head(data)
        if head is None:
            return None
        (label, wnid, text), start, stop = head
        tail = bytes(data[stop:])
        filename, width, height, boxes = _read_tail(tail, label)
    except (ValueError, IndexError, struct.error):
        return None
    labels = (label,) * len(boxes)
    image = data[start:stop]
    return ImageRecord(filename, label, wnid, text, width, height, boxes, labels, image, CANONICAL)


def read_head(data: memoryview) -> tuple[Words, int, int] | None:
    """The class, and where the image starts and stops in the data; None unless the format is the
    most common one.

    That is our format with an image of 16 KiB to 2 MiB. Each of the five nested lengths before the
    image then is three bytes long. They are decoded and compared at once, as digits of one large
    number.
    """
    head = data[:512].tobytes()
    key = head.find(_KEY, _FIRST_KEY)
    tags_and_lengths = head[:4] + head[key - 4 : key + 27]
    digits = int.from_bytes(tags_and_lengths, "little")
    if digits & _CONSTANT_BITS != _CONSTANT:
        return None
    lengths = digits & _LOW | digits >> 1 & _MIDDLE | digits >> 2 & _HIGH
    length = lengths >> _LAST
    if lengths != length * _ONES + (len(data) << 8) + _OVERHEADS:
        return None
    words = _read_class(head[4 : key - 4])
    image_start = key + 27
    return words and (words, image_start, image_start + length)


def _masks() -> tuple[int, ...]:
    """The constants that ``read_head`` needs, derived from one such head,
    whose image has 20,000 bytes.
    """
    entry = inception.ENCODED.head(20_000)
    # of the lengths in the first four bytes of the data and the 31 before the image
    places = (1, 5, 24, 28, 32)
    sample = int.from_bytes(b"\x0a\x80\x80\x00" + entry, "little")
    low = sum(0x7F << 8 * place for place in places)
    middle = low << 7
    high = low << 14
    varying_bits = sum(0x7F7F7F << 8 * place for place in places)
    all_bits = (1 << 8 * 35) - 1
    constant_bits = all_bits & ~varying_bits
    decoded = sample & low | sample >> 1 & middle | sample >> 2 & high
    ones = sum(1 << 8 * place for place in places[1:])
    # the first length is that of the data except its own four bytes
    overheads = decoded - 20_000 * ones - (4 << 8)
    constant = sample & constant_bits
    last = 8 * places[-1]
    return constant_bits, constant, low, middle, high, last, ones, overheads


_CONSTANT_BITS, _CONSTANT, _LOW, _MIDDLE, _HIGH, _LAST, _ONES, _OVERHEADS = _masks()


def _read_odd_head(data: memoryview) -> tuple[Words, int, int] | None:
    """As ``read_head``, for images of any length;
    raises ValueError or IndexError for a head of another layout.
    """
    head = bytes(data[:_HEAD])
    size, start = varint_in(head, 1)
    key = head.index(_KEY, start)
    class_stop = head.rindex(b"RGB", start, key) + 3
    words = _read_class(head[start:class_stop])
    _, list_tag = varint_in(head, key + len(_KEY))
    _, value_tag = varint_in(head, list_tag + 1)
    length, image_start = varint_in(head, value_tag + 1)
    if head[class_stop:image_start] != inception.ENCODED.head(length):
        return None
    is_whole = head[0] == 10 and start + size == len(data)
    if words is None or not is_whole:
        return None
    return words, image_start, image_start + length


@functools.lru_cache(maxsize=4096)
def _read_class(entries: bytes) -> Words | None:
    """Label, wnid and words from the entries before the image:
    the same bytes for every image of a class.
    """
    try:
        features = parse_example(delimited(1, entries))
        if features.keys() != _CLASS_FEATURES:
            return None
        colorspace, channels, _ = _constants(features)
        if (colorspace, channels) != (CANONICAL.colorspace, CANONICAL.channels):
            return None
        label = _int(features, "image/class/label")
        wnid = _text(features, "image/class/synset")
        text = _text(features, "image/class/text")
    except (ExampleError, RecordError):
        return None
    if label is None or wnid is None or text is None:
        return None
    return label, wnid, text


def _read_tail(tail: bytes, label: int) -> tuple[str, int, int, tuple[Box, ...]]:
    """File name, width, height and boxes from the bytes after the image;
    raises ValueError unless canonical.
    """
    # after tag, length, tag, length, "image/filename", and three times tag, length
    name_length = tail[23]
    name_stop = 24 + name_length
    if not tail.startswith(inception.value_prefix("image/filename", name_length)):
        raise ValueError
    filename = tail[24:name_stop].decode()
    sizes = tail[name_stop:]
    read = _read_shared_sizes if len(sizes) <= _MOST_SHARED else _read_sizes
    width, height, boxes = read(sizes, label)
    return filename, width, height, boxes


def _read_sizes(sizes: bytes, label: int) -> tuple[int, int, tuple[Box, ...]]:
    """Width, height and boxes from the bytes after the file name: they are read at their places,
    and encoded again, which shows whether they are right.
    """
    height, position = varint_in(sizes, _HEIGHT)
    boxes: tuple[Box, ...] = ()
    if sizes.startswith(inception.NO_BOXES, position):
        position += len(inception.NO_BOXES)
    else:
        labels_length = sizes[position + 32]  # of the packed labels, if it fits one byte
        count = labels_length // len(varint(label))
        layout, _ = inception.box_layout(label, count)
        unpacked = layout.unpack_from(sizes, position)
        step = 1 + count  # per edge: the bytes before its floats, then the floats
        xmax = unpacked[1:step]
        xmin = unpacked[step + 1 : 2 * step]
        ymax = unpacked[2 * step + 1 : 3 * step]
        ymin = unpacked[3 * step + 1 :]
        boxes = tuple(map(Box, xmin, ymin, xmax, ymax))
        position += layout.size
    width, _ = varint_in(sizes, position + _WIDTH)
    if sizes != inception.after_name(label, boxes, width, height):
        raise ValueError
    return width, height, boxes


# the same bytes for all images of one size without boxes
_read_shared_sizes = functools.lru_cache(maxsize=4096)(_read_sizes)
_MOST_SHARED = len(inception.after_name(0, (), 1 << 27, 1 << 27))
"""The most bytes after a file name that many records may share."""
_HEIGHT = len(inception.FORMAT_ENTRY) + 22
"""Where the height is, from the end of the file name."""
_WIDTH = 21
"""Where the width is, from the end of the boxes."""


# any encoding -------------------------------------------------------------------------------------


def read_features(features: Mapping[str, Feature], *, needs_label: bool = True) -> ImageRecord:
    """The record in a parsed Example; features beyond the fifteen are ignored.

    Raises:
        RecordError: as for read_record.
    """
    label = _int(features, "image/class/label")
    encoded = _only_value(features, "image/encoded", BytesList)
    if label is None and needs_label:
        raise RecordError("image/class/label", "is missing")
    if encoded is None:
        raise RecordError("image/encoded", "is missing")
    boxes, box_labels = _boxes(features)
    traits = _traits(frozenset(features), *_constants(features))
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
        traits=traits,
    )


# few exist, and identical objects compare faster
_traits = functools.lru_cache(maxsize=256)(Traits)


def _constants(features: Mapping[str, Feature]) -> tuple[str | None, int | None, str | None]:
    """Colorspace, channels and format."""
    colorspace = _text(features, "image/colorspace")
    channels = _int(features, "image/channels")
    image_format = _text(features, "image/format")
    return colorspace, channels, image_format


def _boxes(features: Mapping[str, Feature]) -> tuple[tuple[Box, ...], tuple[int, ...]]:
    """Boxes and their labels; the labels may be missing, and the edges may all be missing."""
    names = [f"image/object/bbox/{edge}" for edge in inception.EDGES]
    edge_features = [_get(features, name, FloatList) for name in names]
    edges = [feature.values for feature in edge_features if feature is not None]
    counts = [len(edge) for edge in edges]
    labels: tuple[int, ...] = ()
    label_feature = _get(features, "image/object/bbox/label", Int64List)
    if label_feature is not None:
        labels = label_feature.values
        counts.append(len(labels))
    has_some_edges = len(edges) not in (0, len(inception.EDGES))
    if has_some_edges:
        raise _missing_edges(edge_features)
    if len(set(counts)) > 1:
        raise _unequal_counts(counts)
    if not edges:
        return (), labels
    return tuple(map(Box, *edges)), labels


def _missing_edges(features: Sequence[FloatList | None]) -> BoxesError:
    """The error for boxes without some of their edges, from the feature of each."""
    missing = [
        edge for edge, feature in zip(inception.EDGES, features, strict=True) if feature is None
    ]
    return BoxesError("image/object/bbox", f"lacks {', '.join(missing)}")


def _unequal_counts(counts: Sequence[int]) -> BoxesError:
    """The error for edges and labels of several lengths; without labels if these have none."""
    names = (*inception.EDGES, "label")
    lengths = [f"{name} {count}" for name, count in zip(names, counts, strict=False)]
    return BoxesError("image/object/bbox", f"has lists of different lengths: {', '.join(lengths)}")


def _get(features: Mapping[str, Feature], name: str, kind: type[F]) -> F | None:
    feature = features.get(name)
    if feature is not None and not isinstance(feature, kind):
        raise RecordError(name, f"holds {KINDS[type(feature)]}, expected {KINDS[kind]}")
    return feature


def _only_value(features: Mapping[str, Feature], name: str, kind: type[F]) -> Any:
    """The one value of a feature, or None if it is missing."""
    feature = _get(features, name, kind)
    if feature is None:
        return None
    if len(feature.values) != 1:
        raise RecordError(name, f"holds {len(feature.values)} values, expected 1")
    return feature.values[0]


def _int(features: Mapping[str, Feature], name: str) -> int | None:
    number: int | None = _only_value(features, name, Int64List)
    return number


def _text(features: Mapping[str, Feature], name: str) -> str | None:
    encoded: Buffer | None = _only_value(features, name, BytesList)
    if encoded is None:
        return None
    try:
        return str(encoded, "utf-8")
    except UnicodeDecodeError:
        raise RecordError(name, "is not UTF-8") from None
