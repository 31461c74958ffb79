"""Features <-> bytes of a tf.train.Example or a tf.train.SequenceExample, without TensorFlow.

The encoding is canonical: exactly what ``SerializeToString(deterministic=True)`` gives, features in
byte order of their names. (Protobuf's implementations differ if one name is a prefix of another; no
record has such names.) Wire format: protobuf.dev/programming-guides/encoding; messages:
tensorflow/core/example/feature.proto.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from msgspec import Struct

T = TypeVar("T")

Buffer = bytes | memoryview

SHORT = 256
"""Bytes of a feature that may be seen again."""

_SHORT_MESSAGE = 1 << 13

_BYTES, _FLOAT, _INT64 = 1, 2, 3  # the oneof of Feature

_pack_three = struct.Struct("3B").pack


class BytesList(Struct, frozen=True):
    """A feature of byte strings."""

    values: tuple[Buffer, ...]


class FloatList(Struct, frozen=True):
    """A feature of 32-bit floats."""

    values: tuple[float, ...]


class Int64List(Struct, frozen=True):
    """A feature of 64-bit integers."""

    values: tuple[int, ...]


Feature = BytesList | FloatList | Int64List

Kind = Literal["int64", "float", "bytes"]

KINDS: dict[type[Feature], Kind] = {Int64List: "int64", FloatList: "float", BytesList: "bytes"}
"""The name of each kind of feature."""


class ExampleError(ValueError):
    """Bytes that are not a tf.train.Example."""


def varint(value: int) -> bytes:
    """A base-128 varint; a negative number is encoded as 64-bit two's complement."""
    if 0x4000 <= value < 0x200000:  # the length of nearly every image and of its record
        return _pack_three(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14)
    if 0 <= value < 0x80:
        return bytes((value,))
    if 0 <= value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited(field: int, content: bytes) -> bytes:
    """A length-delimited field: tag, length, content."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def encode_feature(feature: Feature | None) -> bytes:
    """One Feature message: an empty list is an empty list message,
    None a feature that is not set.
    """
    match feature:
        case None:
            return b""
        case BytesList(values):
            return delimited(_BYTES, b"".join(delimited(1, bytes(value)) for value in values))
        case FloatList(values):
            packed = struct.pack(f"<{len(values)}f", *values)
            return delimited(_FLOAT, delimited(1, packed) if values else b"")
        case Int64List(values):
            packed = b"".join(map(varint, values))
            return delimited(_INT64, delimited(1, packed) if values else b"")


def encode_entry(name: str, feature: Feature | None) -> bytes:
    """One entry of the Features map, tag and length included."""
    return delimited(1, delimited(1, name.encode()) + delimited(2, encode_feature(feature)))


def encode_example(features: Mapping[str, Feature | None]) -> bytes:
    """A whole Example, features in byte order of their names."""
    entries = b"".join(
        encode_entry(name, features[name]) for name in sorted(features, key=str.encode)
    )
    return delimited(1, entries)


class SplitEntry:
    """The map entry of a feature with one value that is written separately: only its length is
    known.

    ``kind`` is b"\\x0a" for a byte string, b"\\x12" for a list of 32-bit floats.
    """

    def __init__(self, name: str, kind: bytes = b"\x0a") -> None:
        self._key = delimited(1, name.encode())
        self._kind = kind

    def head(self, length: int) -> bytes:
        """The part of the entry before a value of ``length`` bytes;
        the entry ends with the value.
        """
        value = b"\x0a" + varint(length)
        values = self._kind + varint(len(value) + length)
        feature = b"\x12" + varint(len(values) + len(value) + length)
        body = self._key + feature + values + value
        return b"\x0a" + varint(len(body) + length) + body


def parse_example(data: Buffer) -> dict[str, Feature]:
    """The features of an Example; byte values are memoryviews, into ``data`` unless they are short.

    Raises:
        ExampleError: the bytes are not a well-formed Example.
    """
    return {name: feature for name, feature in parse_features(data).items() if feature is not None}


def parse_features(data: Buffer) -> dict[str, Feature | None]:
    """The features of an Example, with a None for each name whose feature is not set."""
    return keep_last(map(_named_feature, iter_entries(data)))


def keep_last(entries: Iterable[tuple[str, T]]) -> dict[str, T]:
    """The values of a map by name; the last of several entries with one name counts."""
    values: dict[str, T] = {}
    for name, value in entries:
        values.pop(name, None)
        values[name] = value
    return values


def iter_entries(data: Buffer, field: int = 1) -> Iterator[Buffer]:
    """Every entry of the map in ``field`` of a message: short ones, and those of a short message,
    as bytes.

    Most features of a set are the same bytes in many records, such as a class or a size: bytes can
    be looked up.
    """
    view = bytes(data) if len(data) <= _SHORT_MESSAGE else memoryview(data)
    for found, wire, start, stop in parse_fields(view, 0, len(view)):
        if found == field and wire == 2:
            for inner, inner_wire, a, b in parse_fields(view, start, stop):
                if inner == 1 and inner_wire == 2:
                    yield bytes(view[a:b]) if b - a <= SHORT else view[a:b]


def _named_feature(entry: Buffer) -> tuple[str, Feature | None]:
    return _short_entry(entry) if len(entry) <= SHORT else parse_entry(entry)


def parse_entry(entry: Buffer) -> tuple[str, Feature | None]:
    """The name and the feature of an entry."""
    usual = _parse_usual_entry(entry)
    if usual is not None:
        return usual
    view = entry if len(entry) <= SHORT else memoryview(entry)
    name, pieces = split_entry(view)
    feature = None
    for piece in pieces:
        feature = parse_feature(view, *piece, feature)
    return name, feature


def _parse_usual_entry(entry: Buffer) -> tuple[str, Feature] | None:
    """Name and feature of an entry in the usual layout (a single value, or floats);
    None for any other layout.
    """
    head, size = (
        bytes(entry[:160]),
        len(entry),
    )  # a name of up to 127 bytes, and five bytes before each length
    try:
        name_ends = 2 + head[1]
        name = head[2:name_ends].decode()
        feature, at = varint_in(head, name_ends + 1)
        listed, start = varint_in(head, at + 1)
        length, value = varint_in(head, start + 1)
        kind = head[0], head[name_ends], head[at], head[start]
        if not at + feature == start + listed == value + length == size or head[1] > 0x7F:
            return None
        if kind == (0x0A, 0x12, 0x0A, 0x0A):
            return name, BytesList((memoryview(entry)[value:],))
        if kind == (0x0A, 0x12, 0x12, 0x0A) and length % 4 == 0:
            return name, FloatList(struct.unpack_from(f"<{length // 4}f", entry, value))
        if kind == (0x0A, 0x12, 0x1A, 0x0A) and 1 <= length <= 8 and value + length <= len(head):
            number, stop = varint_in(head, value)
            return (name, Int64List((number,))) if stop == size else None
    except (IndexError, UnicodeDecodeError):
        pass
    return None


_short_entry = functools.lru_cache(4096)(parse_entry)


def split_entry(view: Buffer, what: str = "feature") -> tuple[str, list[tuple[int, int]]]:
    """The name in an entry of a map, and the position of each piece of its value."""
    name, pieces = b"", []
    for part, wire, a, b in parse_fields(view, 0, len(view)):
        if part == 1 and wire == 2:
            name = bytes(view[a:b])
        elif part == 2 and wire == 2:
            pieces.append((a, b))
    try:
        return name.decode(), pieces
    except UnicodeDecodeError:
        raise ExampleError(f"the name of a {what} is not UTF-8") from None


def parse_feature(
    view: Buffer, start: int, stop: int, feature: Feature | None = None
) -> Feature | None:
    """The Feature message between two bytes, joined to an earlier piece of it;
    None if neither sets anything.
    """
    for field, wire, list_start, list_stop in parse_fields(view, start, stop):
        if wire != 2:
            continue
        if field == _BYTES:
            values = tuple(
                view[a:b]
                for f, w, a, b in parse_fields(view, list_start, list_stop)
                if f == 1 and w == 2
            )
            feature = _merge(feature, BytesList(values))
        elif field == _FLOAT:
            feature = _merge(feature, FloatList(_parse_floats(view, list_start, list_stop)))
        elif field == _INT64:
            feature = _merge(feature, Int64List(_parse_ints(view, list_start, list_stop)))
    return feature


def _merge(first: Feature | None, second: Feature) -> Feature:
    """Two pieces of one feature, merged: protobuf joins lists of one kind;
    of two kinds the later counts.
    """
    if first is None or type(first) is not type(second):
        return second
    return type(second)(first.values + second.values)  # type: ignore[arg-type,operator]


def _parse_floats(view: Buffer, start: int, stop: int) -> tuple[float, ...]:
    values: list[float] = []
    for field, wire, a, b in parse_fields(view, start, stop):
        if field == 1 and wire in (2, 5):
            if (b - a) % 4:
                raise ExampleError("a packed float list is not a multiple of 4 bytes")
            values += struct.unpack_from(f"<{(b - a) // 4}f", view, a)
    return tuple(values)


def _parse_ints(view: Buffer, start: int, stop: int) -> tuple[int, ...]:
    values: list[int] = []
    for field, wire, a, b in parse_fields(view, start, stop):
        if field == 1 and wire in (0, 2):
            values += read_varints(view, a, b)
    return tuple(values)


def read_varints(view: Buffer, start: int, stop: int) -> list[int]:
    """The signed 64-bit numbers between two bytes, one varint after the other."""
    values: list[int] = []
    while start < stop:
        value, start = _varint_at(view, start, stop)
        values.append(value - (1 << 64) if value >> 63 else value)
    return values


def varint_in(data: bytes, position: int) -> tuple[int, int]:
    """The number of at most 63 bits at ``position``, and where it ends;
    raises IndexError if the data ends first.
    """
    value = shift = 0
    while (byte := data[position]) >= 0x80 and shift < 56:
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
    return value | byte << shift, position + 1


def _varint_at(view: Buffer, position: int, stop: int) -> tuple[int, int]:
    if position < stop and (byte := view[position]) < 0x80:
        return byte, position + 1
    value = shift = 0
    while position < stop and shift < 70:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
    raise ExampleError("a varint does not end")


def parse_fields(view: Buffer, position: int, stop: int) -> list[tuple[int, int, int, int]]:
    """Each field of a message: number, wire type, and where its value starts and stops."""
    fields: list[tuple[int, int, int, int]] = []
    while position < stop:
        tag, start = view[position], position + 1
        if tag >= 0x80:
            tag, start = _varint_at(view, position, stop)
        wire = tag & 7
        if wire == 2:
            if start < stop and (length := view[start]) < 0x80:
                start += 1
            else:
                length, start = _varint_at(view, start, stop)
            position = start + length
        elif wire == 0:
            _, position = _varint_at(view, start, stop)
        elif wire in (1, 5):
            position = start + (8 if wire == 1 else 4)
        else:
            raise ExampleError(f"wire type {wire} is not used by any Example")
        if position > stop:
            raise ExampleError("a field runs past the end of its message")
        if tag < 8:
            raise ExampleError("a field has number 0")
        fields.append((tag >> 3, wire, start, position))
    return fields


# sequences ----------------------------------------------------------------------------------------

_FEATURE_LISTS = 2  # the field of a SequenceExample that an Example doesn't have

Steps = Sequence[Feature | None]
"""A feature list: one feature per step, None where it is not set."""


def encode_sequence_example(
    context: Mapping[str, Feature | None], feature_lists: Mapping[str, Steps]
) -> bytes:
    """A whole SequenceExample; both of its parts are written even if they are empty."""
    entries = b""
    for name in sorted(feature_lists, key=str.encode):
        features = b"".join(delimited(1, encode_feature(step)) for step in feature_lists[name])
        entries += delimited(1, delimited(1, name.encode()) + delimited(2, features))
    return encode_example(context) + delimited(_FEATURE_LISTS, entries)


def has_feature_lists(data: Buffer) -> bool:
    """Whether a record is a SequenceExample: an Example's parser sees one as an Example with
    nothing but context.

    Raises:
        ExampleError: the bytes are neither.
    """
    view = memoryview(data)
    return any(
        field == _FEATURE_LISTS and wire == 2
        for field, wire, _, _ in parse_fields(view, 0, len(view))
    )


def parse_sequence_example(
    data: Buffer,
) -> tuple[dict[str, Feature | None], dict[str, tuple[Feature | None, ...]]]:
    """The context and the feature lists of a SequenceExample; byte values are memoryviews.

    Raises:
        ExampleError: the bytes are not a well-formed SequenceExample.
    """

    def steps(entry: Buffer) -> tuple[str, tuple[Feature | None, ...]]:
        view = memoryview(entry)
        name, pieces = split_entry(view, "feature list")
        fields = [
            field for piece in pieces for field in parse_fields(view, *piece)
        ]  # protobuf joins pieces
        return name, tuple(
            parse_feature(view, a, b) for inner, wire, a, b in fields if inner == 1 and wire == 2
        )

    return parse_features(data), keep_last(map(steps, iter_entries(data, _FEATURE_LISTS)))
