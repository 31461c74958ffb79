"""Entries that are just as they were written, decoded by msgspec: a line in a twentieth of the time.

What is refused here may be an entry all the same, of an earlier version or in another layout: ``entries`` reads it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder

from imagenet_prep.model import MadeFrom, ShardInfo
from imagenet_prep.state.entries import AFTER_SEAL, Key

_Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class _Entry(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    fingerprint: str
    records: _Count
    size: _Count
    digest: str
    set_aside: tuple[str, ...]
    repairs: tuple[str, ...]
    file_digest: str = ""
    crc: str = ""


class _Beside(Struct, forbid_unknown_fields=True, gc=False):
    items: str
    times: str


class _MadeFrom(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    fingerprint: str
    made_from: _Beside
    crc: str


_entry, _made_from = Decoder(_Entry).decode, Decoder(_MadeFrom).decode


def decode_entry(text: bytes) -> ShardInfo | None:
    """An entry of a shard; None if it isn't one of this version."""
    try:
        found = _entry(text)
    except DecodeError:
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


def decode_line(line: bytes) -> tuple[ShardInfo | Key, MadeFrom | None, bool] | None:
    """What a sealed line of a journal says, as ``Journal`` takes it; None if no line of this version."""
    if not line.startswith(b'"fingerprint"', AFTER_SEAL):
        info = decode_entry(line)
        return (info, None, True) if info else None
    try:
        found = _made_from(line)
    except DecodeError:
        return None
    items = found.fingerprint if found.made_from.items == found.fingerprint else found.made_from.items  # one text
    return (found.name, found.fingerprint), MadeFrom(items, found.made_from.times), True
