"""webdataset: one tar per shard.

Each record is an image, its class and a JSON of the rest, with a common key.
The tars are ustar (POSIX 1003.1-1988) without owner and time, so the same records give the same
bytes. tarfile needs 22 us for the header of a member; filling in a blank header needs 2.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.exports.dataset_card import encode_card
from imagenet_prep.exports.image_values import ImageValues, Meaning, find_meaning
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import SourceSet, SourceShard
from imagenet_prep.images import ending_of
from imagenet_prep.state.manifest import ILSVRC2012

Buffer = bytes | memoryview

_BLOCK = 512
_RECORD = 20 * _BLOCK  # a tar ends with two blocks of zeros, padded to a multiple of this

_BLANK = tarfile.TarInfo("").tobuf(tarfile.USTAR_FORMAT)
# the fields around name, size and checksum
_MIDDLE, _TIME, _REST = _BLANK[100:124], _BLANK[136:148], _BLANK[156:]
_SUM = sum(_MIDDLE) + sum(_TIME) + sum(_REST) + 8 * ord(" ")

encode_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


class TarPacker(Packer):
    """Writes a tar per shard, ``<prefix><split>-000000.tar``: per record ``key.jpg``, ``key.cls``
    and ``key.json``.

    The class counts from 0, as readers of webdataset expect; the JSON holds the label as it is in
    the record.
    """

    unit = "shard"

    def __init__(self, source: SourceSet) -> None:
        manifest = source.manifest
        self.meaning = find_meaning(manifest)
        self.prefix = ""
        if manifest is None or manifest.dataset.kind == ILSVRC2012:
            self.prefix = "imagenet-"

    def file_name(self, shard: SourceShard) -> str:
        """The name of its tar."""
        return f"{self.prefix}{shard.split}-{shard.index:06d}.tar"

    def pack(self, shard: SourceShard, files: Files) -> None:
        """One tar."""
        files.write(self.file_name(shard), self._parts(files))

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """``_info.json``, by which timm finds the tars of a split,
        and ``README.md`` for Hugging Face's datasets.
        """
        splits, tars = {}, {}
        for split, shards in source.splits.items():
            names = [self.file_name(shard) for shard in shards]
            counts = [shard.count() for shard in shards]
            lengths = {"num_samples": sum(counts), "shard_lengths": counts}
            splits[split] = {"name": split, "filenames": names, **lengths}
            if sum(counts):  # datasets refuses empty splits
                tars[split] = names
        info = json.dumps({"splits": splits}, indent=1).encode()
        card = encode_card(source, self.meaning, tars)
        return {"_info.json": info, "README.md": card}

    def _parts(self, files: Files) -> Iterator[Buffer]:
        keys: set[str] = set()
        size = 0
        for record, values in files.values(self.meaning):
            key = _key(values.filename, record.number)
            while key in keys:
                key = f"{key}_{record.number}"
            keys.add(key)
            for part in self._members(key, values):
                size += len(part)
                yield part
        size_with_end = size + 2 * _BLOCK
        yield bytes(2 * _BLOCK + -size_with_end % _RECORD)

    def _members(self, key: str, values: ImageValues) -> Iterator[Buffer]:
        image, index = values.encoded, values.class_index
        ending = ending_of(image[:16]) or ".jpg"
        yield _header(f"{key}{ending}", len(image))
        yield image
        padding = bytes(-len(image) % _BLOCK)
        label = b""
        if index is not None:
            label = _member(f"{key}.cls", b"%d" % index)
        description = encode_json(describe(values, self.meaning))
        yield padding + label + _member(f"{key}.json", description.encode())


PACKER = TarPacker


def _key(filename: str, number: int) -> str:
    """The key of a record's members: the file name without dots, and without the extension if it is
    ImageNet's.

    Readers skip a sample if its key has no last part, or starts as "__name__/".
    """
    key = filename.removesuffix(".JPEG").replace(".", "_").replace("\0", "_")
    if key.startswith("__"):
        key = key.lstrip("_")
    if not key or key.endswith("/"):
        key += f"{number:06d}"
    return key


def describe(values: ImageValues, meaning: Meaning) -> dict[str, Any]:
    """The content of a record's JSON: the image's file name, its class,
    and all other values under their own names.
    """
    head = {
        "filename": values.filename,
        "label": values.label,
        "text": values.text,
        "wnid": values.wnid,
    }
    head = {name: value for name, value in head.items() if name not in meaning.others}
    others = {name: _plain(value) for name, value in values.others.items()}
    if not meaning.features:
        # as text: readers that infer types from the first records misread an empty list
        others["boxes"] = encode_json(others["boxes"])
    return {**head, **others}


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: bytes are texts if they are UTF-8, otherwise {"base64": ...}."""
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(value).decode()}


def _member(name: str, content: bytes) -> bytes:
    return _header(name, len(content)) + content + bytes(-len(content) % _BLOCK)


def _header(name: str, size: int) -> bytes:
    """The header of a member; a long or non-ASCII name needs more blocks (pax)."""
    if len(name) > 100 or not name.isascii():
        info = tarfile.TarInfo(name)
        info.size = size
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
    raw = name.encode()
    octal = b"%011o" % size
    checksum = b"%06o\0 " % (_SUM + sum(raw) + sum(octal))
    return b"".join((raw.ljust(100, b"\0"), _MIDDLE, octal, b"\0", _TIME, checksum, _REST))
