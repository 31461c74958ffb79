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
    Span,
    iter_entries,
    parse_entry,
    parse_fields,
    read_values,
    split_entry,
    split_steps,
)

FEATURES, FEATURE_LISTS, OTHER = 1, 2, 0
"""The parts of a content: an Example has features, a SequenceExample also feature lists,
and other fields are kept.
"""

_FILENAME = b"\x0a\x0eimage/filename"

Key = tuple[int, str]
"""A part of a content, and the name of a feature or a feature list in it."""


class Value(NamedTuple):
    """The value of a feature.

    ``kind`` is "bytes", "float", "int64", "steps" of a feature list, or "" for a feature that is
    not set. ``items`` are byte strings, numbers, or the Values of steps; floats are the four bytes
    of each, joined, so that their bits count. ``unknown`` are fields that no such feature has.
    """

    kind: str
    items: tuple[object, ...] | bytes = ()
    unknown: tuple[object, ...] = ()


Content = Mapping[Key, Value]


def content_of(data: Buffer) -> dict[Key, Value]:
    """The values of a record by part and name; the last of several entries with one name counts, as
    in protobuf.

    Raises:
        ExampleError: the data is neither an Example nor a SequenceExample.
    """
    return {key: _value(key, entry) for key, entry in _entries(data).items()}


def differing_keys(left: Buffer, right: Buffer) -> list[Key]:
    """The keys of the values that only one of two records has, or that differ; equal bytes of a
    value are not parsed.

    Raises:
        ExampleError: the data of one is neither an Example nor a SequenceExample.
    """
    left_entries = _entries(left)
    right_entries = _entries(right)
    differing = list(left_entries.keys() ^ right_entries.keys())
    for key in left_entries.keys() & right_entries.keys():
        left_entry, right_entry = left_entries[key], right_entries[key]
        if left_entry != right_entry and _value(key, left_entry) != _value(key, right_entry):
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
    unknown: list[object] = []
    for part, wire, start, stop in parse_fields(view, 0, len(view)):
        if wire != 2 or part not in (FEATURES, FEATURE_LISTS):
            unknown.append((part, wire, view[start:stop]))
            continue
        for field, entry_wire, entry_start, entry_stop in parse_fields(view, start, stop):
            entry = view[entry_start:entry_stop]
            if field == 1 and entry_wire == 2:
                name = _short_name(entry) if len(entry) <= SHORT else _name(entry)
                entries[part, name] = entry
            else:
                unknown.append((part, field, entry_wire, entry))
    if unknown:
        entries[OTHER, ""] = repr(unknown).encode()
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
            value = _parse_value(key[0], entry)
            total += _digest(key, _shortened(value, digest_of_long))
    return total & 0xFFFFFFFFFFFFFFFF


def _digest(key: Key, value: object) -> int:
    content = repr((key, value)).encode()
    digest = hashlib.blake2b(content, digest_size=8)
    return int.from_bytes(digest.digest(), "little")


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
    part, _ = key
    if len(entry) <= SHORT:
        return _parse_short_value(part, entry)
    return _parse_value(part, entry)


def _parse_value(part: int, entry: bytes) -> Value:
    if part == OTHER:
        return Value("others", entry)
    _, pieces, unknown = split_entry(entry)
    if part == FEATURES:
        return _feature(entry, pieces, unknown)
    spans = split_steps(entry, pieces, unknown)
    steps = [_feature(entry, [span], []) for span in spans]
    return Value("steps", tuple(steps), tuple(unknown))


_parse_short_value = functools.lru_cache(4096)(_parse_value)


def _feature(view: bytes, pieces: Iterable[Span], unknown: list[object]) -> Value:
    """The value of a feature."""
    kind, items = read_values(view, pieces, unknown)
    if kind == "float":
        return Value(kind, b"".join(items), tuple(unknown))
    return Value(kind or "", tuple(items), tuple(unknown))
