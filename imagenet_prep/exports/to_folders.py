"""folders: one file per image and one folder per class, for torchvision."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import CLASSES, ImageValues, SourceSet, SourceShard, encode_classes, find_meaning
from imagenet_prep.reading.shard import Record
from imagenet_prep.sources.names import below, text_of
from imagenet_prep.storage.durable import make_folder


class FolderPacker(Packer):
    """Writes ``<split>/<class>/<name>`` for each record; the class is its wnid, its name, or its words.

    Every split gets a folder for every class of the set, since readers number the folders that they find. Where these
    numbers are not those of the classes, ``classes.json`` has the right ones, counted from 0.
    """

    unit = "image"

    def __init__(self, source: SourceSet) -> None:
        self.meaning = find_meaning(source.manifest)

    def pack(self, shard: SourceShard, files: Files) -> None:
        """Write a file per image."""
        for record, values in files.values(self.meaning):
            path = "/".join(_path(shard, record, values))
            if not files.has(path, len(values.encoded)):
                files.write(path, [values.encoded])

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """Create the folders of classes without images in a split; and list the numbers, where they are needed."""
        classes = {text_of(folder.name) for split in source.splits for folder in below(out, split).glob("*")}
        numbers = source.numbering.indices
        classes.update(source.manifest.dataset.classes if source.manifest else ())
        for split, name in itertools.product(source.splits, sorted(classes)):
            make_folder(below(out, f"{split}/{name}"))
        found = {name: numbers[name] for name in sorted(classes) if name in numbers}
        if list(found.values()) == list(range(len(classes))):
            return {}
        return {CLASSES: encode_classes(found)} if found else {}


PACKER = FolderPacker


def _path(shard: SourceShard, record: Record, values: ImageValues) -> list[str]:
    """The split, the class, then the path of the image, without the folders of its split and class."""
    of_class = values.wnid or values.text
    if of_class is None:
        raise InputError(
            f"{shard.path}: record {record.number} has no class",
            "expected its wnid, or words for its class: they name the folder",
            "export to webdataset, or make the set with its classes",
        )
    *folders, name = values.filename.split("/")
    if of_class in folders:
        folders.remove(of_class)
        if folders and (shard.split.startswith(folders[0]) or folders[0].startswith(shard.split)):
            del folders[0]
    parts = [of_class, *folders, name]
    if not all(map(_is_file_name, parts)):
        path = "/".join(parts)
        raise InputError(
            f"{shard.path}: record {record.number} can't be a file {path!r}",
            "expected a valid file name within the export's folder",
            "export to webdataset, which accepts any name",
        )
    return [shard.split, *parts]


def _is_file_name(text: str) -> bool:
    length = len(text.encode("utf-8", "surrogateescape"))
    return text not in ("", ".", "..") and "/" not in text and "\0" not in text and length <= 255
