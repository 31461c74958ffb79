"""content_of: what the data of a record says, whatever its encoding. Records that say the same have
equal contents.

Many encodings of an Example say the same: the features in another order, numbers packed or one by
one, longer varints, a message in several pieces. Bytes that no Example has belong to the content,
too: another message that happens to be read as an Example is never equal to a different one.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from imagenet_prep.tfrecord.example import (
    SHORT,
    Buffer,
    BytesList,
    ExampleError,
    iter_entries,
    parse_entry,
    parse_fields,
    read_varints,
    split_entry,
)

FEATURES, FEATURE_LISTS, OTHER = 1, 2, 0
"""The parts of a content: an Example has features, a SequenceExample also feature lists,
and other fields are kept.
"""

_KINDS = {1: "bytes", 2: "float", 3: "int64"}
_FILENAME = b"\x0a\x0eimage/filename"

Key = tuple[int, str]
"""A part of a content, and the name of a feature or a feature list in it."""


class Value(NamedTuple):
    """The value of a feature.

    ``kind`` is "bytes", "float", "int64", "steps" of a feature list, or "" for a feature that is
    not set. ``items`` are byte strings, numbers, or the Values of steps; floats are the four bytes
    of each, joined, so that their bits count. ``others`` are fields that no such feature has.
    """

    kind: str
    items: tuple[object, ...] | bytes = ()
    others: tuple[object, ...] = ()


Content = Mapping[Key, Value]


def content_of(data: Buffer) -> dict[Key, Value]:
    """The values of a record by part and name; the last of several entries with one name counts, as
    in protobuf.

    Raises:
        ExampleError: the data is neither an Example nor a SequenceExample.
    """
    return {key: _value(key, entry) for key, entry in _entries(data).items()}


def differing_keys(first: Buffer, second: Buffer) -> list[Key]:
    """The keys of the values that only one of two records has, or that differ; equal bytes of a
    value are not parsed.

    Raises:
        ExampleError: the data of one is neither an Example nor a SequenceExample.
    """
    entries, others = _entries(first), _entries(second)
    differing = list(entries.keys() ^ others.keys())
    for key in entries.keys() & others.keys():
        if entries[key] != others[key] and _value(key, entries[key]) != _value(key, others[key]):
            differing.append(key)
    return sorted(differing)


def name_in(data: memoryview) -> str:
    """The text of the feature ``image/filename``, if its entry starts with its name;
    otherwise "". No image is read.
    """
    filename: Buffer = b""
    try:
        for entry in iter_entries(data):
            if bytes(entry[: len(_FILENAME)]) == _FILENAME:
                filename = entry
        _, feature = parse_entry(filename)
        if isinstance(feature, BytesList) and len(feature.values) == 1:
            return str(feature.values[0], "utf-8")
    except (ExampleError, UnicodeDecodeError):
        pass
    return ""


def _entries(data: Buffer) -> dict[Key, bytes]:
    """The bytes of the last entry with each name, and the fields that no Example has, joined."""
    view = bytes(data)  # slices of bytes are made in half the time of slices of a memoryview
    entries: dict[Key, bytes] = {}
    others: list[object] = []
    for part, wire, start, stop in parse_fields(view, 0, len(view)):
        if wire != 2 or part not in (FEATURES, FEATURE_LISTS):
            others.append((part, wire, view[start:stop]))
            continue
        for field, entry_wire, entry_start, entry_stop in parse_fields(view, start, stop):
            entry = view[entry_start:entry_stop]
            if field == 1 and entry_wire == 2:
                name = _short_name(entry) if len(entry) <= SHORT else _name(entry)
                entries[part, name] = entry
            else:
                others.append((part, field, entry_wire, entry))
    if others:
        entries[OTHER, ""] = repr(others).encode()
    return entries


def content_digest(data: Buffer, digest_of_long: Callable[[bytes], bytes]) -> int:
    """A number of 64 bits for what a record says; values of more than 256 bytes count by
    ``digest_of_long``.

    It is the sum of a digest per key, whose order makes no difference. Most features of a set have
    the same bytes in many records, so that their digests are cached.

    Raises:
        ExampleError: the data is neither an Example nor a SequenceExample.
    """
    total = 0
    for key, entry in _entries(data).items():
        if len(entry) <= SHORT:
            total += _short_digest(key, entry)
        else:
            total += _digest(key, _shortened(_parse_value(key[0], entry), digest_of_long))
    return total & 0xFFFFFFFFFFFFFFFF


def _digest(key: Key, value: object) -> int:
    return int.from_bytes(
        hashlib.blake2b(repr((key, value)).encode(), digest_size=8).digest(), "little"
    )


@functools.lru_cache(4096)
def _short_digest(key: Key, entry: bytes) -> int:
    """The digest of a short value, in which no item is long."""
    return _digest(key, tuple(_parse_value(key[0], entry)))


def _shortened(value: object, digest_of_long: Callable[[bytes], bytes]) -> object:
    """A value with each long byte string replaced by its length and its digest."""
    if isinstance(value, bytes) and len(value) > SHORT:
        return len(value), digest_of_long(value)
    if isinstance(value, tuple):
        return tuple([_shortened(item, digest_of_long) for item in value])
    return value


def _name(entry: bytes) -> str:
    return split_entry(entry)[0]


_short_name = functools.lru_cache(4096)(_name)


def _value(key: Key, entry: bytes) -> Value:
    """The value in an entry."""
    return _parse_short_value(key[0], entry) if len(entry) <= SHORT else _parse_value(key[0], entry)


def _parse_value(part: int, entry: bytes) -> Value:
    if part == OTHER:
        return Value("others", entry)
    pieces: list[tuple[int, int]] = []
    others: list[object] = []
    for field, wire, start, stop in parse_fields(entry, 0, len(entry)):
        if (field, wire) == (2, 2):
            pieces.append((start, stop))
        elif (field, wire) != (1, 2):
            others.append((field, wire, entry[start:stop]))
    return _feature(entry, pieces, others) if part == FEATURES else _steps(entry, pieces, others)


_parse_short_value = functools.lru_cache(4096)(_parse_value)


def _steps(view: bytes, pieces: Iterable[tuple[int, int]], others: list[object]) -> Value:
    """The steps of a feature list, in order: pieces are joined."""
    steps: list[Value] = []
    for start, stop in pieces:
        for field, wire, step_start, step_stop in parse_fields(view, start, stop):
            if (field, wire) == (1, 2):
                steps.append(_feature(view, [(step_start, step_stop)], []))
            else:
                others.append((field, wire, view[step_start:step_stop]))
    return Value("steps", tuple(steps), tuple(others))


def _feature(view: bytes, pieces: Iterable[tuple[int, int]], others: list[object]) -> Value:
    """The value of a feature: pieces of one kind are joined,
    and a later kind replaces an earlier one.
    """
    kind = ""
    items: list[bytes | int] = []
    for start, stop in pieces:
        for field, wire, list_start, list_stop in parse_fields(view, start, stop):
            if wire != 2 or field not in _KINDS:
                others.append((field, wire, view[list_start:list_stop]))
                continue
            if _KINDS[field] != kind:
                kind, items = _KINDS[field], []
            items += _items(kind, view, list_start, list_stop, others)
    if kind == "float":
        return Value(
            kind, b"".join(item for item in items if isinstance(item, bytes)), tuple(others)
        )
    return Value(kind, tuple(items), tuple(others))


def _items(
    kind: str, view: bytes, start: int, stop: int, others: list[object]
) -> list[bytes | int]:
    """The values in a list message; floats as their bytes, one by one or packed."""
    items: list[bytes | int] = []
    for field, wire, item_start, item_stop in parse_fields(view, start, stop):
        item = view[item_start:item_stop]
        if field != 1 or wire not in _WIRES[kind]:
            others.append((kind, field, wire, item))
        elif kind == "int64":
            items += read_varints(view, item_start, item_stop)
        elif kind == "float" and len(item) % 4:
            raise ExampleError("a packed float list is not a multiple of 4 bytes")
        else:
            items.append(item)
    return items


_WIRES = {"bytes": (2,), "float": (2, 5), "int64": (0, 2)}
"""The wire types in which the values of each kind may be written."""
