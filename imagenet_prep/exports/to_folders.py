"""folders: one file per image and one folder per class, for torchvision."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Set
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.exports.image_values import ImageValues, find_meaning
from imagenet_prep.exports.packing import Files, Packer, refuse_shared
from imagenet_prep.exports.source_set import (
    CLASSES,
    MOST_CLASSES,
    SourceSet,
    SourceShard,
    are_lines,
    encode_classes,
)
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.reading.arguments import shown
from imagenet_prep.reading.record import Record
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
        for record, values in files.values(self.meaning):
            path = _path(shard, record, values)
            folder, _, _ = path.rpartition("/")
            if values.class_index is not None:
                refuse_shared(files.classes, folder, values.class_index, record.place)
            if not files.has(path, len(values.encoded)):
                files.write(path, [values.encoded])

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """Create the folders of classes without images in a split;
        and list the numbers, where they are needed.
        """
        class_names = _find_classes(source, out)
        for split, class_name in itertools.product(source.splits, class_names):
            make_folder(below(out, f"{split}/{class_name}"))
        numbers = source.numbering.indices
        files = {}
        class_map = _encode_class_map(numbers, set(class_names))
        if class_map:
            files = {f"{split}/{CLASS_MAP}": class_map for split in source.splits}
        numbered = {name: numbers[name] for name in class_names if name in numbers}
        numbers_of_readers = list(range(len(class_names)))
        if numbered and list(numbered.values()) != numbers_of_readers:
            files[CLASSES] = encode_classes(numbered)
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


def _find_classes(source: SourceSet, out: Path) -> list[str]:
    """The classes with a folder, and those that the manifest lists, by name."""
    class_names: set[str] = set()
    if source.manifest is not None:
        class_names.update(source.manifest.dataset.classes)
    for split in source.splits:
        for path in below(out, split).glob("*"):
            if path.is_dir():
                class_names.add(text_of(path.name))
    return sorted(class_names)


def _encode_class_map(numbers: Mapping[str, int], folders: Set[str]) -> bytes:
    """The content of that file; empty if a folder has no number or the name of the file,
    or a line can't hold one.
    """
    names = {number: name for name, number in numbers.items()}
    if not names or max(names) > MOST_CLASSES:
        return b""
    if not folders <= numbers.keys() - {CLASS_MAP} or not are_lines(numbers):
        return b""
    lines = [names.get(number, "") for number in range(max(names) + 1)]
    return "".join(f"{line}\n" for line in lines).encode()


def _path(shard: SourceShard, record: Record, values: ImageValues) -> str:
    """The split, the class, then the name of the image,
    with its folders except those of its split and class.
    """
    of_class = values.wnid or values.text
    if of_class is None:
        raise InputError(
            f"{shard.path}: record {record.number} has no class name",
            "expected a class name: its image is put into a folder of that name",
            Hint(
                "export to webdataset; or, if the images have classes, add the feature "
                "`class: class` to the `record` of the recipe, and ",
                CONVERT_AGAIN,
            ),
        )
    *folders, name = values.filename.split("/")
    if of_class in folders:
        depth = folders.index(of_class)
        above = folders[:depth]
        below_class = folders[depth + 1 :]
        if above:
            top = above[0]
            if shard.split.startswith(top) or top.startswith(shard.split):
                del above[0]
        folders = above + below_class
    file_name = _WITHIN.join([*folders, name]) + values.true_ending
    path = f"{of_class}/{file_name}"
    if not all(map(_is_file_name, (of_class, *folders, name, file_name))):
        raise InputError(
            f"{shard.path}: the image of record {record.number} can't be saved in a folder "
            f"{shown(of_class)} as {shown(values.filename)}",
            "expected a class without '/', and names of folders and files of at most 255 bytes, "
            "without NUL, and not empty, '.' or '..'",
            "export to webdataset, which accepts any name",
        )
    return f"{shard.split}/{path}"


def _is_file_name(text: str) -> bool:
    if text in ("", ".", "..") or "/" in text or "\0" in text:
        return False
    length = len(text.encode("utf-8", "surrogateescape"))
    return length <= 255
