"""An entry of a shard <-> JSON, in the one form that a checksum is computed over."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from imagenet_prep.model import ShardInfo
from imagenet_prep.tfrecord.crc import crc32c

_canonical = json.JSONEncoder(sort_keys=True).encode
_SEALED = b'{"crc": "'
"""How a sealed line begins: "crc" comes first of all keys of an entry. Eight digits and the other keys follow."""
AFTER_SEAL = 20
"""Where these begin."""
_BRACE = crc32c(b"{")


def canonical(value: object) -> bytes:
    """A value as JSON in its one form: keys in order, one line, ASCII alone."""
    return _canonical(value).encode()


def seal(value: dict[str, Any]) -> str:
    """The CRC32C of the canonical form of an entry, or of a manifest, in hexadecimal: its "crc"."""
    return f"{crc32c(canonical(value)):08x}"


def sealed_line(value: dict[str, Any]) -> bytes:
    """An entry with its own seal, in canonical form, as a line."""
    text = canonical(value)
    return b'%b%08x", %b\n' % (_SEALED, crc32c(text), text[1:])


def is_as_written(line: bytes) -> bool:
    """Whether a line is, byte for byte, one of ``sealed_line``: nothing of it need be encoded again to prove it."""
    return line.startswith(_SEALED) and b'%08x", ' % crc32c(line[AFTER_SEAL:-1], _BRACE) == line[9:AFTER_SEAL]


@contextlib.contextmanager
def many_objects() -> Iterator[None]:
    """A million objects are made here, none in a cycle: the collector need not look through them again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def info_dict(info: ShardInfo) -> dict[str, Any]:
    """The JSON form of a ShardInfo: without a file's digest, if there is none."""
    value = {
        "name": info.name,
        "fingerprint": info.fingerprint,
        "records": info.records,
        "size": info.size,
        "digest": info.digest,
        "set_aside": info.set_aside,
        "repairs": info.repairs,
    }
    return {**value, "file_digest": info.file_digest} if info.file_digest else value


def shard_info(value: Any) -> ShardInfo:
    """A ShardInfo from its JSON form; raises TypeError, KeyError or ValueError if it isn't one."""
    info = decode_entry(canonical(value))
    if info is None:
        raise ValueError("expected an entry of a shard")
    return info


def decode_entry(text: bytes) -> ShardInfo | None:
    """An entry of a shard from its JSON text, which may have a seal; None if it isn't one."""
    decode, fault = _decoder()
    try:
        found = decode(text)
    except fault:
        return None
    return ShardInfo(
        found.name,
        found.fingerprint,
        found.records,
        found.size,
        found.digest,
        found.set_aside,
        found.repairs,
        found.file_digest,
    )


@functools.cache
def _decoder() -> tuple[Callable[[bytes], Any], type[Exception]]:
    """What decodes an entry in a twentieth of the time that json takes; loaded by the first one."""
    from msgspec import DecodeError, Meta, Struct, defstruct
    from msgspec.json import Decoder

    count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    fields: list[Any] = [
        ("name", str),
        ("fingerprint", str),
        ("records", count),
        ("size", count),
        ("digest", str),
        ("set_aside", tuple[str, ...]),
        ("repairs", tuple[str, ...]),
        ("file_digest", str, ""),
        ("crc", str, ""),
    ]
    entry: type[Struct] = defstruct("Entry", fields, forbid_unknown_fields=True, gc=False)
    return Decoder(entry).decode, DecodeError


def texts(value: object) -> tuple[str, ...]:
    """A list of texts that UTF-8 can write; anything else raises TypeError or ValueError."""
    if type(value) is not list or not all(type(each) is str for each in value):
        raise TypeError("expected texts")
    "".join(value).encode()
    return tuple(value)


def counts(*values: object) -> None:
    """Raise TypeError unless each is a whole number, 0 or more, that 64 bits hold."""
    if not all(type(each) is int and 0 <= each < 1 << 63 for each in values):
        raise TypeError("expected numbers")
