"""An entry of a shard <-> JSON, in the one form that a checksum is computed over."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from imagenet_prep.model import MadeFrom, ShardInfo
from imagenet_prep.tfrecord.crc import crc32c

_canonical = json.JSONEncoder(sort_keys=True).encode
_SEALED = b'{"crc": "'
"""How a sealed line begins: "crc" comes first of all keys of an entry. Eight digits and the other keys follow."""
AFTER_SEAL = 20
"""Where these begin."""
_BRACE = crc32c(b"{")

Key: TypeAlias = tuple[str, str]
"""Name and fingerprint of a shard: what binds a line that says what it was made from to its entry."""


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
    """The JSON form of a ShardInfo: without a file's digest, if there is none, it is that of earlier versions."""
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


def shard_info(value: dict[str, Any]) -> ShardInfo:
    """A ShardInfo from its JSON form; raises TypeError, KeyError or ValueError if it isn't one."""
    lists = {"set_aside": texts(value["set_aside"]), "repairs": texts(value.get("repairs", []))}
    info = ShardInfo(**{**value, **lists})
    texts([info.name, info.fingerprint, info.digest, info.file_digest])
    counts(info.records, info.size)
    return info


def read_made_from(value: Any) -> MadeFrom | None:
    """What a line says that its shard was made from; raises TypeError or ValueError if it isn't of that form."""
    if value is None:
        return None
    texts(list(value.values()))
    return MadeFrom(**value)


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
