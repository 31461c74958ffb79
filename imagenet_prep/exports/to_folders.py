"""folders: an image a file, a folder a class, as torchvision reads them."""

from __future__ import annotations

import os

from imagenet_prep.errors import InputError
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import ImageValues, SourceSet, SourceShard, find_meaning
from imagenet_prep.reading.shard import Record


class FolderPacker(Packer):
    """Makes ``<split>/<class>/<name>`` of each record; the class is its wnid, else its words."""

    unit = "image"

    def __init__(self, source: SourceSet) -> None:
        self.meaning = find_meaning(source.manifest)

    def pack(self, shard: SourceShard, files: Files) -> None:
        """A file an image."""
        for record in shard.records():
            values = self.meaning.values(record)
            files.write(_path(shard, record, values), [values.encoded])


PACKER = FolderPacker


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
