"""TreePacker: the images of a shard as files, a folder a class, as torchvision's ImageFolder reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imagenet_prep.errors import InputError
from imagenet_prep.exports.image_values import ImageValues, Meaning
from imagenet_prep.exports.packing import PackedFile
from imagenet_prep.exports.source_shard import SourceShard
from imagenet_prep.reading.shard import Record
from imagenet_prep.storage.durable import write_all
from imagenet_prep.tfrecord.crc import crc32c


@dataclass(frozen=True, slots=True)
class TreePacker:
    """Makes ``<split>/<class>/<name>`` of each record; the class is its wnid, else its words."""

    meaning: Meaning
    key: ClassVar[str] = "folders"
    version: ClassVar[int] = 1
    is_a_file_each: ClassVar[bool] = True

    def pack(self, shard: SourceShard, folder: Path) -> Sequence[PackedFile]:
        """A file an image, by its number until it has its name."""
        packed: dict[str, PackedFile] = {}
        for record in shard.records():
            values = self.meaning.values(record)
            path = _path(shard, record, values)
            if path in packed:
                raise same_name(f"{shard.path}: record {record.number}", path)
            stored = f"{record.number:06d}"
            descriptor = os.open(folder / stored, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            try:
                write_all(descriptor, [values.encoded])
            finally:
                os.close(descriptor)
            packed[path] = PackedFile(stored, path, len(values.encoded), crc32c(values.encoded), 1)
        return list(packed.values())


def same_name(where: str, path: str) -> InputError:
    """The error for a second image that would get the name of another."""
    return InputError(
        f"{where} would be the file {path}, and so would another record",
        "expected a name of its own for each image of a class",
        "export to webdataset: there each record stays, whatever it is called",
    )


def _path(shard: SourceShard, record: Record, values: ImageValues) -> str:
    """Where an image goes: its own folders are kept, but for one that is its class."""
    of_class = values.wnid or values.text
    if of_class is None:
        raise InputError(
            f"{shard.path}: record {record.number} has no class",
            "expected its wnid, or words for its class: they name the folder",
            "export to webdataset, or make the set with its classes",
        )
    parts = [of_class, *values.filename.removeprefix(f"{of_class}/").split("/")]
    if any(part in ("", ".", "..") or "/" in part or "\0" in part or len(os.fsencode(part)) > 255 for part in parts):
        name = "/".join(parts)
        raise InputError(
            f"{shard.path}: record {record.number} can't be a file {name!r}",
            "expected names that a folder can hold, and that lead nowhere else",
            "export to webdataset: names don't matter there",
        )
    return "/".join((shard.split, *parts))
