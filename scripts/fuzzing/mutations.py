"""Changes that get past a format's outer guard: checksums made right again, values of JSON
exchanged as values.

Bytes flipped at random hardly ever pass a CRC or a JSON parser, so what lies behind would see no
strange input. Each function here takes an input, its limit in bytes, a source of chance and
libFuzzer's own change of bytes, and gives another input, or None where it can do nothing: then
libFuzzer's own change is taken.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import yaml

from imagenet_prep.tfrecord import crc32c
from imagenet_prep.tfrecord.framing import HEADER, mask

Change = Callable[[bytes, int], bytes]
Mutate = Callable[[bytes, int, random.Random, Change], "bytes | None"]

_BLOCK = 512
_DEEP = 2000

_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1 << 31, 1 << 63, -(1 << 63) - 1, 10**400, 0.5, -0.0, 1e308),
    *(
        float("inf"),
        float("-inf"),
        float("nan"),
        "",
        "a",
        "\ud800",
        "\x00",
        "\x1b[2J",
        "a\nb",
        "../..",
        "/",
    ),
    *(
        "9" * 5000,
        "none",
        "gzip",
        "train",
        "x" * 300,
        [],
        {},
        [[]],
        [None],
        {"": None},
        {"name": []},
        [[0, 1]],
    ),
)


# checksums ----------------------------------------------------------------------------------------


def mend_tar(data: bytes) -> bytes:
    """With the checksum of every block that looks like a header made right."""
    out = bytearray(data)
    for start in range(0, len(out) - _BLOCK + 1, _BLOCK):
        if any(out[start : start + 100]) and out[start + 155] in b" \0":
            total = sum(out[start : start + _BLOCK]) - sum(out[start + 148 : start + 156]) + 8 * 32
            out[start + 148 : start + 156] = b"%06o\0 " % total
    return bytes(out)


def mend_records(data: bytes) -> bytes:
    """With the CRCs of every TFRecord made right, as far as their lengths lead."""
    out, offset = bytearray(data), 0
    while offset + HEADER.size <= len(out):
        (length,) = struct.unpack_from("<Q", out, offset)
        struct.pack_into("<I", out, offset + 8, mask(crc32c(bytes(out[offset : offset + 8]))))
        end = offset + HEADER.size + length
        if end + 4 > len(out):
            break
        struct.pack_into("<I", out, end, mask(crc32c(bytes(out[offset + HEADER.size : end]))))
        offset = end + 4
    return bytes(out)


def mend_png(data: bytes) -> bytes:
    """With the CRC of every chunk made right, as far as their lengths lead."""
    out, offset = bytearray(data), 8
    while offset + 12 <= len(out):
        (length,) = struct.unpack_from(">I", out, offset)
        end = offset + 8 + length
        if end + 4 > len(out):
            break
        struct.pack_into(">I", out, end, zlib.crc32(out[offset + 4 : end]))
        offset = end + 4
    return bytes(out)


def _mended(mend: Callable[[bytes], bytes]) -> Mutate:
    def mutate(data: bytes, limit: int, chance: random.Random, change: Change) -> bytes | None:
        return mend(change(data, limit)) if chance.random() < 0.7 else None

    return mutate


tar, records, png = _mended(mend_tar), _mended(mend_records), _mended(mend_png)


def compressed_records(
    data: bytes, limit: int, chance: random.Random, change: Change
) -> bytes | None:
    """The records within a gzip or zlib stream changed, and compressed again."""
    if chance.random() < 0.4:
        return None
    try:
        plain = zlib.decompressobj(47).decompress(data, limit)
    except zlib.error:
        return None
    plain = mend_records(change(plain, limit))
    return gzip.compress(plain, 1, mtime=0) if data[:1] == b"\x1f" else zlib.compress(plain, 1)


def npz(data: bytes, limit: int, chance: random.Random, change: Change) -> bytes | None:
    """The first member of a ZIP changed, and the ZIP written again."""
    if chance.random() < 0.5 or data[:2] != b"PK":
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [
                (info.filename, archive.open(info).read(limit)) for info in archive.infolist()
            ]
    except Exception:  # noqa: BLE001 - a ZIP that was broken before: nothing to be done here
        return None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number, (name, content) in enumerate(members):
            archive.writestr(
                zipfile.ZipInfo(name), change(content, limit) if number == 0 else content
            )
    return buffer.getvalue()


# values -------------------------------------------------------------------------------------------


def json_value(data: bytes, limit: int, chance: random.Random, change: Change) -> bytes | None:
    """One value anywhere in a JSON text exchanged, taken out, doubled, or put deep down;
    mostly sealed again.
    """
    if chance.random() < 0.2:
        return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if chance.random() < 0.002:
        return (b"[" * _DEEP + data + b"]" * _DEEP)[:limit]
    value = _exchanged(value, chance)
    return _dumped(value if chance.random() < 0.2 else seal(value), limit)


def seal(value: Any) -> Any:
    """The same, its "crc" made right where it has one: a line of the journal, a manifest."""
    with suppress(ValueError, RecursionError):
        if isinstance(value, dict) and "crc" in value:
            others = {key: each for key, each in value.items() if key != "crc"}
            value["crc"] = f"{crc32c(json.dumps(others, sort_keys=True).encode()):08x}"
    return value


def json_line(data: bytes, limit: int, chance: random.Random, change: Change) -> bytes | None:
    """The same in one line of several."""
    lines = data.split(b"\n")
    number = chance.randrange(len(lines))
    line = json_value(lines[number], limit, chance, change)
    return (
        None if line is None else b"\n".join([*lines[:number], line, *lines[number + 1 :]])[:limit]
    )


def yaml_value(data: bytes, limit: int, chance: random.Random, change: Change) -> bytes | None:
    """The same in a YAML text."""
    if chance.random() < 0.4:
        return None
    try:
        value = yaml.load(data, yaml.CSafeLoader)
        return yaml.dump(
            _exchanged(value, chance), None, yaml.CSafeDumper, sort_keys=False
        ).encode()[:limit]
    except Exception:  # noqa: BLE001 - no YAML any more, or nothing that it can write
        return None


def _dumped(value: Any, limit: int) -> bytes | None:
    try:
        text = json.dumps(value).encode()
    except (ValueError, RecursionError):
        return None
    return text if len(text) <= limit else None


def _exchanged(value: Any, chance: random.Random) -> Any:
    places = list(_places(value))
    if not places or chance.random() < 0.03:
        return chance.choice(_VALUES)
    holder, key = chance.choice(places)
    other_holder, other_key = chance.choice(places)
    match chance.randrange(6):
        case 0:
            del holder[key]
        case 1:
            holder[key] = json.loads(json.dumps(other_holder[other_key]))
        case 2 if isinstance(holder, dict):
            holder[chance.choice(("", "name", "a", "\ud800", str(key) + "x"))] = holder.pop(key)
        case 3 if isinstance(holder[key], int):
            holder[key] += chance.choice((-1, 1, 1 << 32))
        case _:
            holder[key] = chance.choice(_VALUES)
    return value


def _places(value: Any) -> Any:
    """Each list or mapping within a value with each of its keys."""
    pending = [value]
    while pending:
        holder = pending.pop()
        if isinstance(holder, (dict, list)):
            for key in holder if isinstance(holder, dict) else range(len(holder)):
                yield holder, key
                pending.append(holder[key])
