"""Zips of the tests' own making, field by field, so that any of them can lie."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

STORED, DEFLATED = 0, 8


@dataclass
class Made:
    """An entry. ``central`` and ``local`` say otherwise in one of the two headers;
    ``data`` stands in the archive.
    """

    name: bytes
    content: bytes = b"content"
    method: int = STORED
    flags: int = 0
    central: dict[str, Any] = field(default_factory=dict)
    local: dict[str, Any] = field(default_factory=dict)
    data: bytes | None = None
    after: bytes = b""
    """What stands behind the data, such as a data descriptor."""


def deflate(content: bytes) -> bytes:
    """As it stands in a zip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def local_header(made: Made, packed: bytes) -> bytes:
    """The header before the data, with its name and extra fields."""
    said = _fields(made, packed) | made.local
    head = (
        b"PK\3\4",
        20,
        said["flags"],
        said["method"],
        0,
        0,
        said["crc"],
        said["packed"],
        said["size"],
    )
    return (
        struct.pack("<4sHHHHHIIIHH", *head, len(said["name"]), len(said["extra"]))
        + said["name"]
        + said["extra"]
    )


def central_header(made: Made, packed: bytes, offset: int) -> bytes:
    """The header in the central directory."""
    said = _fields(made, packed) | {
        "offset": offset,
        "disk": 0,
        "kind": 0,
        "made_by": 20,
        "mark": b"PK\1\2",
    }
    said |= made.central
    head = (said["mark"], said["made_by"], 20, said["flags"], said["method"], 0, 0)
    numbers = (
        said["crc"],
        said["packed"],
        said["size"],
        len(said["name"]),
        len(said["extra"]),
        0,
        said["disk"],
        0,
    )
    tail = (said["kind"], said["offset"])
    return struct.pack("<4sHHHHHHIIIHHHHHII", *head, *numbers, *tail) + said["name"] + said["extra"]


def _fields(made: Made, packed: bytes) -> dict[str, Any]:
    crc = zlib.crc32(made.content)
    fields = {"flags": made.flags, "method": made.method, "crc": crc, "packed": len(packed)}
    return fields | {"size": len(made.content), "name": made.name, "extra": b""}


def make_zip(
    entries: Sequence[Made], *, before: bytes = b"", comment: bytes = b"", **end: int
) -> bytes:
    """A zip of these entries; ``end`` are fields of its last record that say otherwise."""
    body, directory = bytearray(before), b""
    for made in entries:
        packed = made.data if made.data is not None else made.content
        if made.data is None and made.method == DEFLATED:
            packed = deflate(made.content)
        directory += central_header(made, packed, len(body) - len(before))
        body += local_header(made, packed) + packed + made.after
    said = {
        "disk": 0,
        "first": 0,
        "here": len(entries),
        "count": len(entries),
        "length": len(directory),
    }
    said |= {"start": len(body) - len(before), "comment": len(comment)} | end
    last = struct.pack("<4sHHHHIIH", b"PK\5\6", *said.values())
    return bytes(body) + directory + last + comment


def zip_64(content: bytes) -> bytes:
    """The same zip, without a comment, its last record saying that the
    sizes are in those of zip64.
    """
    here, count, length, start = struct.unpack_from("<HHII", content, len(content) - 14)
    body = content[: len(content) - 22]
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, here, count, length, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(body), 1)
    return (
        body
        + record
        + locator
        + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 2**32 - 1, 2**32 - 1, 0)
    )
