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
from typing import Any, Literal, TypeVar

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

_KIND_OF_FIELD: dict[int, Kind] = {_BYTES: "bytes", _FLOAT: "float", _INT64: "int64"}
_WIRES_OF_KIND: dict[Kind, tuple[int, ...]] = {"bytes": (2,), "float": (2, 5), "int64": (0, 2)}
"""The wire types in which the values of each kind may be written."""

_FIXED_SIZES = {1: 8, 5: 4}
"""The bytes of a value by its wire type, where that alone decides them."""


class ExampleError(ValueError):
    """Bytes that are not a tf.train.Example; the text is a sentence about their record."""

    def __init__(self, reason: str = "it is not a tf.train.Example") -> None:
        super().__init__(reason)


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
            items = b"".join(delimited(1, bytes(value)) for value in values)
            return delimited(_BYTES, items)
        case FloatList(values):
            packed = struct.pack(f"<{len(values)}f", *values)
            return delimited(_FLOAT, delimited(1, packed) if values else b"")
        case Int64List(values):
            packed = b"".join(map(varint, values))
            return delimited(_INT64, delimited(1, packed) if values else b"")


def encode_entry(name: str, feature: Feature | None) -> bytes:
    """One entry of the Features map, tag and length included."""
    return _named_entry(name, encode_feature(feature))


def _named_entry(name: str, content: bytes) -> bytes:
    """One entry of a map from names to messages."""
    key_field = delimited(1, name.encode())
    value_field = delimited(2, content)
    return delimited(1, key_field + value_field)


def encode_example(features: Mapping[str, Feature | None]) -> bytes:
    """A whole Example, features in byte order of their names."""
    names = sorted(features, key=str.encode)
    entries = [encode_entry(name, features[name]) for name in names]
    return delimited(1, b"".join(entries))


class SplitEntry:
    """The map entry of a feature with one value that is written separately: only its length is
    known.

    ``list_tag`` is b"\\x0a" for a byte string, b"\\x12" for a list of 32-bit floats.
    """

    def __init__(self, name: str, list_tag: bytes = b"\x0a") -> None:
        self._key = delimited(1, name.encode())
        self._list_tag = list_tag

    def head(self, length: int) -> bytes:
        """The part of the entry before a value of ``length`` bytes;
        the entry ends with the value.
        """
        value_prefix = b"\x0a" + varint(length)
        list_prefix = self._list_tag + varint(len(value_prefix) + length)
        feature_prefix = b"\x12" + varint(len(list_prefix) + len(value_prefix) + length)
        body = self._key + feature_prefix + list_prefix + value_prefix
        return b"\x0a" + varint(len(body) + length) + body


def parse_example(data: Buffer) -> dict[str, Feature]:
    """The features of an Example; byte values are memoryviews, into ``data`` unless they are short.

    Raises:
        ExampleError: the bytes are not a well-formed Example.
    """
    features = parse_features(data)
    return {name: feature for name, feature in features.items() if feature is not None}


def parse_features(data: Buffer) -> dict[str, Feature | None]:
    """The features of an Example, with a None for each name whose feature is not set."""
    return keep_last(map(_named_feature, iter_entries(data)))


def keep_last(entries: Iterable[tuple[str, T]]) -> dict[str, T]:
    """The values of a map by name; the last of several entries with one name counts."""
    last: dict[str, T] = {}
    for name, value in entries:
        last.pop(name, None)
        last[name] = value
    return last


def iter_entries(data: Buffer, field: int = 1) -> Iterator[Buffer]:
    """Every entry of the map in ``field`` of a message: short ones, and those of a short message,
    as bytes.

    Most features of a set are the same bytes in many records, such as a class or a size: bytes can
    be looked up.
    """
    view = bytes(data) if len(data) <= _SHORT_MESSAGE else memoryview(data)
    for map_field, map_wire, map_start, map_stop in parse_fields(view, 0, len(view)):
        if map_field == field and map_wire == 2:
            for entry_field, wire, start, stop in parse_fields(view, map_start, map_stop):
                if entry_field == 1 and wire == 2:
                    entry = view[start:stop]
                    yield bytes(entry) if len(entry) <= SHORT else entry


def _named_feature(entry: Buffer) -> tuple[str, Feature | None]:
    return _short_entry(entry) if len(entry) <= SHORT else parse_entry(entry)


def parse_entry(entry: Buffer) -> tuple[str, Feature | None]:
    """The name and the feature of an entry."""
    usual = _parse_usual_entry(entry)
    if usual is not None:
        return usual
    view = entry if len(entry) <= SHORT else memoryview(entry)
    name, pieces, _ = split_entry(view)
    return name, parse_feature(view, pieces)


# the tags of name, feature, list and values in an entry of the usual form
_ONE_BYTES = 0x0A, 0x12, 0x0A, 0x0A
_FLOATS = 0x0A, 0x12, 0x12, 0x0A
_INT64S = 0x0A, 0x12, 0x1A, 0x0A


def _parse_usual_entry(entry: Buffer) -> tuple[str, Feature] | None:
    """Name and feature of an entry in the usual form (a single value, or floats);
    None for any other layout.
    """
    head = bytes(entry[:160])  # a name of up to 127 bytes, and five bytes before each length
    try:
        name_stop = 2 + head[1]
        name = head[2:name_stop].decode()
        feature_length, list_tag = varint_in(head, name_stop + 1)
        list_length, values_tag = varint_in(head, list_tag + 1)
        length, start = varint_in(head, values_tag + 1)
        stop = len(entry)
        is_whole = list_tag + feature_length == values_tag + list_length == start + length == stop
        if head[1] > 0x7F or not is_whole:
            return None
        tags = head[0], head[name_stop], head[list_tag], head[values_tag]
        if tags == _ONE_BYTES:
            return name, BytesList((memoryview(entry)[start:],))
        if tags == _FLOATS and length % 4 == 0:
            return name, FloatList(struct.unpack_from(f"<{length // 4}f", entry, start))
        if tags == _INT64S and length <= 8:  # of several numbers, the first ends too early
            number, number_stop = varint_in(head, start)
            return (name, Int64List((number,))) if number_stop == stop else None
    except (IndexError, UnicodeDecodeError):
        pass
    return None


_short_entry = functools.lru_cache(4096)(parse_entry)


# any layout: every field is read, also those that no Example has ----------------------------------

Span = tuple[int, int]
"""The start and the stop of a part of a message."""


def split_entry(view: Buffer) -> tuple[str, list[Span], list[object]]:
    """The name in an entry of a map, each piece of its value, and the fields that no entry has."""
    name = b""
    pieces: list[Span] = []
    unknown: list[object] = []
    for field, wire, start, stop in parse_fields(view, 0, len(view)):
        if wire == 2 and field == 1:
            name = bytes(view[start:stop])
        elif wire == 2 and field == 2:
            pieces.append((start, stop))
        else:
            unknown.append((field, wire, view[start:stop]))
    try:
        return name.decode(), pieces, unknown
    except UnicodeDecodeError:
        raise ExampleError from None


def split_steps(view: Buffer, pieces: Iterable[Span], unknown: list[object]) -> list[Span]:
    """The steps of a feature list, whose pieces are joined;
    fields that no list has are added to ``unknown``.
    """
    steps: list[Span] = []
    for piece_start, piece_stop in pieces:
        for field, wire, start, stop in parse_fields(view, piece_start, piece_stop):
            if (field, wire) == (1, 2):
                steps.append((start, stop))
            else:
                unknown.append((field, wire, view[start:stop]))
    return steps


def read_values(
    view: Buffer, pieces: Iterable[Span], unknown: list[object]
) -> tuple[Kind | None, list[Any]]:
    """The kind of a feature, None if it is not set, and its values; fields that no feature has are
    added to ``unknown``.

    Values are bytes, numbers, or for floats the bytes of one or several. Pieces of one kind are
    joined, and a later kind replaces an earlier one, as in protobuf.
    """
    kind: Kind | None = None
    values: list[Any] = []
    for piece_start, piece_stop in pieces:
        for field, wire, start, stop in parse_fields(view, piece_start, piece_stop):
            list_kind = _KIND_OF_FIELD.get(field) if wire == 2 else None
            if list_kind is None:
                unknown.append((field, wire, view[start:stop]))
                continue
            if list_kind != kind:
                kind, values = list_kind, []
            values += _read_list(list_kind, view, start, stop, unknown)
    return kind, values


def _read_list(
    kind: Kind, view: Buffer, list_start: int, list_stop: int, unknown: list[object]
) -> list[Any]:
    """The values in a list message: numbers and floats are written one by one, or packed."""
    values: list[Any] = []
    wires = _WIRES_OF_KIND[kind]
    for field, wire, start, stop in parse_fields(view, list_start, list_stop):
        if field != 1 or wire not in wires:
            unknown.append((kind, field, wire, view[start:stop]))
        elif kind == "int64":
            values += read_varints(view, start, stop)
        elif kind == "float" and (stop - start) % 4:
            raise ExampleError  # a float has 4 bytes
        else:
            values.append(view[start:stop])
    return values


def parse_feature(view: Buffer, pieces: Iterable[Span]) -> Feature | None:
    """The feature in the pieces of a Feature message; None if they set nothing."""
    kind, values = read_values(view, pieces, [])
    if kind == "int64":
        return Int64List(tuple(values))
    if kind == "bytes":
        return BytesList(tuple(values))
    if kind == "float":
        packed = b"".join(values)
        return FloatList(struct.unpack(f"<{len(packed) // 4}f", packed))
    return None


def read_varints(view: Buffer, start: int, stop: int) -> list[int]:
    """The signed 64-bit numbers between two bytes, one varint after the other."""
    numbers: list[int] = []
    while start < stop:
        number, start = _varint_at(view, start, stop)
        numbers.append(number - (1 << 64) if number >> 63 else number)
    return numbers


def varint_in(data: bytes, position: int) -> tuple[int, int]:
    """The number of at most 63 bits at ``position``, and where it ends;
    raises IndexError if the data ends first.
    """
    number = shift = 0
    while (byte := data[position]) >= 0x80 and shift < 56:
        number |= (byte & 0x7F) << shift
        shift += 7
        position += 1
    return number | byte << shift, position + 1


def _varint_at(view: Buffer, position: int, stop: int) -> tuple[int, int]:
    if position < stop and (byte := view[position]) < 0x80:
        return byte, position + 1
    number = shift = 0
    while position < stop and shift < 70:
        byte = view[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
    raise ExampleError  # the number is cut, or too long


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
        elif wire in _FIXED_SIZES:
            position = start + _FIXED_SIZES[wire]
        else:
            raise ExampleError  # no field has this wire type
        if position > stop or tag < 8:  # past the end, or the field has the number 0
            raise ExampleError
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
    entries: list[bytes] = []
    for name in sorted(feature_lists, key=str.encode):
        steps = [delimited(1, encode_feature(step)) for step in feature_lists[name]]
        entries.append(_named_entry(name, b"".join(steps)))
    return encode_example(context) + delimited(_FEATURE_LISTS, b"".join(entries))


def has_feature_lists(data: Buffer) -> bool:
    """Whether a record is a SequenceExample: an Example's parser sees one as an Example with
    nothing but context.

    Raises:
        ExampleError: the bytes are neither.
    """
    view = memoryview(data)
    for field, wire, _, _ in parse_fields(view, 0, len(view)):
        if field == _FEATURE_LISTS and wire == 2:
            return True
    return False


def parse_sequence_example(
    data: Buffer,
) -> tuple[dict[str, Feature | None], dict[str, tuple[Feature | None, ...]]]:
    """The context and the feature lists of a SequenceExample; byte values are memoryviews.

    Raises:
        ExampleError: the bytes are not a well-formed SequenceExample.
    """
    context = parse_features(data)
    entries = iter_entries(data, _FEATURE_LISTS)
    return context, keep_last(map(_named_steps, entries))


def _named_steps(entry: Buffer) -> tuple[str, tuple[Feature | None, ...]]:
    """The name and the steps of a feature list."""
    view = memoryview(entry)
    name, pieces, unknown = split_entry(view)
    spans = split_steps(view, pieces, unknown)
    steps = [parse_feature(view, [span]) for span in spans]
    return name, tuple(steps)
