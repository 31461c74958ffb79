"""folders: one file per image and one folder per class, for torchvision."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Set
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import (
    CLASSES,
    MOST_CLASSES,
    ImageValues,
    SourceSet,
    SourceShard,
    are_lines,
    encode_classes,
    find_meaning,
)
from imagenet_prep.reading.shard import Record
from imagenet_prep.sources.names import below, text_of
from imagenet_prep.storage.durable import make_folder


class FolderPacker(Packer):
    """Writes ``<split>/<class>/<name>`` for each record; the class is its wnid, its name, or its
    words.

    Every split gets a folder for every class of the set, since readers number the folders that they
    find. Where these numbers are not those of the classes, ``classes.json`` has the right ones,
    counted from 0. timm numbers only folders with images, unless ``class_map.txt`` in the folder of
    the split has the numbers.
    """

    unit = "image"

    def __init__(self, source: SourceSet) -> None:
        self.meaning = find_meaning(source.manifest)

    def pack(self, shard: SourceShard, files: Files) -> None:
        """Write a file per image."""
        classes: dict[str, int] = {}
        for record, values in files.values(self.meaning):
            path = _path(shard, record, values)
            _refuse_shared(classes, record, path.split("/")[1], values.class_index)
            if not files.has(path, len(values.encoded)):
                files.write(path, [values.encoded])

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """Create the folders of classes without images in a split;
        and list the numbers, where they are needed.
        """
        paths = itertools.chain.from_iterable(
            below(out, split).glob("*") for split in source.splits
        )
        classes = {text_of(path.name) for path in paths if path.is_dir()}
        numbers = source.numbering.indices
        classes.update(source.manifest.dataset.classes if source.manifest else ())
        for split, name in itertools.product(source.splits, sorted(classes)):
            make_folder(below(out, f"{split}/{name}"))
        class_map = _encode_class_map(numbers, classes)
        files = {f"{split}/{CLASS_MAP}": class_map for split in source.splits if class_map}
        found = {name: numbers[name] for name in sorted(classes) if name in numbers}
        if found and list(found.values()) != list(range(len(classes))):
            files[CLASSES] = encode_classes(found)
        return files


PACKER = FolderPacker

CLASS_MAP = "class_map.txt"
"""The file of a split that has the folder of each class, a line for each number from 0;
as timm reads it.
"""

_WITHIN = "__"
"""The folders within a class become parts of file names:
timm and datasets take the last folder for the class.
"""


def _encode_class_map(numbers: Mapping[str, int], folders: Set[str]) -> bytes:
    """The content of that file; empty if a folder has no number or the name of the file,
    or a line can't hold one.
    """
    names = {number: name for name, number in numbers.items()}
    if (
        not names
        or max(names) > MOST_CLASSES
        or not folders <= numbers.keys() - {CLASS_MAP}
        or not are_lines(numbers)
    ):
        return b""
    return "".join(f"{names.get(number, '')}\n" for number in range(max(names) + 1)).encode()


def _path(shard: SourceShard, record: Record, values: ImageValues) -> str:
    """The split, the class, then the name of the image,
    with its folders except those of its split and class.
    """
    of_class = values.wnid or values.text
    if of_class is None:
        raise InputError(
            f"{shard.path}: record {record.number} has no class",
            "expected its wnid, or words for its class: they name the folder",
            "export to webdataset, or make the set with its classes",
        )
    *folders, name = values.filename.split("/")
    if of_class in folders:
        place = folders.index(of_class)
        before, within = folders[:place], folders[place + 1 :]
        if before and (shard.split.startswith(before[0]) or before[0].startswith(shard.split)):
            del before[0]
        folders = before + within
    file_name = _WITHIN.join([*folders, name]) + values.true_ending
    path = f"{of_class}/{file_name}"
    if not all(map(_is_file_name, (of_class, *folders, name, file_name))):
        raise InputError(
            f"{shard.path}: record {record.number} can't be a file {path!r}",
            "expected names of 255 bytes at most, other than '.' and '..'",
            "export to webdataset, which accepts any name",
        )
    return f"{shard.split}/{path}"


def _refuse_shared(classes: dict[str, int], record: Record, folder: str, index: int | None) -> None:
    """Raise InputError if images of another class are in the same folder,
    as cranes that fly and that lift.
    """
    if index is not None and classes.setdefault(folder, index) != index:
        what = (
            f"{record.place}: the folder {folder!r} would hold classes {classes[folder]} and "
            f"{index}"
        )
        hint = "export to webdataset, or make the set with WordNet ids or other unique names"
        raise InputError(what, "expected a name of its own for each class", hint)


def _is_file_name(text: str) -> bool:
    length = len(text.encode("utf-8", "surrogateescape"))
    return text not in ("", ".", "..") and "/" not in text and "\0" not in text and length <= 255
