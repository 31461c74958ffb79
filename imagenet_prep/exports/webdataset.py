"""TarPacker: a shard as one tar of webdataset: an image, its class and a JSON of the rest a record, by a common key.

The tars are ustar (POSIX 1003.1-1988) without owner and time, so that the same records give the same bytes. tarfile
takes 22 us for the header of a member; filling in a header that is blank takes 2.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from imagenet_prep.exports.image_values import ImageValues, Meaning
from imagenet_prep.exports.packing import PackedFile
from imagenet_prep.exports.source_shard import SourceShard
from imagenet_prep.reading.shard import Record
from imagenet_prep.storage.local import LocalStore
from imagenet_prep.storage.store import Buffer
from imagenet_prep.tfrecord.crc import crc32c

_BLOCK = 512
_RECORD = 20 * _BLOCK  # a tar ends with two blocks of zeros, and is filled up to a multiple of this
_GATHERED = 1 << 20  # bytes that are worth a write

_BLANK = tarfile.TarInfo("").tobuf(tarfile.USTAR_FORMAT)
_MIDDLE, _TIME, _REST = _BLANK[100:124], _BLANK[136:148], _BLANK[156:]  # what lies around name, size and checksum
_SUM = sum(_MIDDLE) + sum(_TIME) + sum(_REST) + 8 * ord(" ")

_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class TarPacker:
    """Makes a tar a shard, ``<prefix><split>-000000.tar``: for each record ``key.jpg``, ``key.cls`` and ``key.json``.

    The class counts from 0, as those who read webdataset expect; the JSON holds the label as it is in the record.
    """

    meaning: Meaning
    prefix: str = ""
    key: ClassVar[str] = "webdataset"
    version: ClassVar[int] = 1
    is_a_file_each: ClassVar[bool] = False

    def pack(self, shard: SourceShard, folder: Path) -> Sequence[PackedFile]:
        """One tar."""
        name = f"{self.prefix}{shard.split}-{shard.index:06d}.tar"
        keys: set[str] = set()
        crc = 0
        with LocalStore(folder, folder).create(name) as sink:
            waiting: list[Buffer] = []
            size = 0
            for part in self._parts(shard, keys):
                crc = crc32c(part, crc)
                waiting.append(part)
                size += len(part)
                if size >= _GATHERED:
                    sink.write(waiting)
                    waiting, size = [], 0
            end = bytes(2 * _BLOCK + -(sink.size + size + 2 * _BLOCK) % _RECORD)
            sink.write([*waiting, end])
            sink.commit()
        return [PackedFile(name, name, sink.size, crc32c(end, crc), len(keys))]

    def _parts(self, shard: SourceShard, keys: set[str]) -> Iterator[Buffer]:
        for record in shard.records():
            values = self.meaning.values(record)
            key = _key(values.filename)
            if key in keys:
                key = f"{key}_{record.number}"
            keys.add(key)
            yield from _image_member(f"{key}.{_extension(values.encoded)}", values.encoded)
            label = values.label
            small = {} if label is None else {"cls": b"%d" % self.meaning.zero_based(label, record)}
            yield b"".join(
                _member(f"{key}.{extension}", content)
                for extension, content in {**small, "json": _encode(_described(values, record)).encode()}.items()
            )


def _key(filename: str) -> str:
    """What the members of a record have in common: the name without its extension, if that is ImageNet's; no dots."""
    return filename.removesuffix(".JPEG").replace(".", "_")


def _extension(encoded: Buffer) -> str:
    return "png" if bytes(encoded[:4]) == b"\x89PNG" else "jpg"


def _described(values: ImageValues, record: Record) -> dict[str, Any]:
    """What the JSON of a record holds: what its image is called, its class, and all else."""
    told = {"filename": values.filename, "label": values.label, "text": values.text, "wnid": values.wnid}
    return {**{name: _plain(value) for name, value in values.others.items()}, **told}


def _plain(value: Any) -> Any:
    """A value as JSON can have it: bytes are texts if they are UTF-8, else {"base64": ...}."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(value).decode()}


def _image_member(name: str, content: Buffer) -> tuple[Buffer, ...]:
    return _header(name, len(content)), content, bytes(-len(content) % _BLOCK)


def _member(name: str, content: bytes) -> bytes:
    return _header(name, len(content)) + content + bytes(-len(content) % _BLOCK)


def _header(name: str, size: int) -> bytes:
    """The header of a member; one of a long name, or of one that isn't ASCII, takes more blocks (pax)."""
    if len(name) > 100 or not name.isascii():
        info = tarfile.TarInfo(name)
        info.size = size
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
    raw, octal = name.encode(), b"%011o" % size
    total = _SUM + sum(raw) + sum(octal)
    return b"".join((raw.ljust(100, b"\0"), _MIDDLE, octal, b"\0", _TIME, b"%06o\0 " % total, _REST))
