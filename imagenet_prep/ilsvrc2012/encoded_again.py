"""CopyEncodedAgain, one split of a copy that can't give the same bytes: refused with that reason, or taken as it is.

In TensorFlow Datasets' imagenet2012 and in timm's imagenet-1k-wds 23 train images were encoded again as RGB JPEGs: 22
that are CMYK, and one that is a PNG (of the former see ``_fix_image`` in its imagenet2012_dataset_builder.py, where the
features are, too: file_name, image, and label, from 0; of the latter https://huggingface.co/datasets/timm/imagenet-1k-wds:
members jpg, cls and json of one name, in json ``filename`` and ``label``, from 0).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.source import (
    SourceKind,
    finished,
    label_of,
    lacking_text,
    no_boxes,
    refuse_twice_in,
)
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.container import Container
from imagenet_prep.sources.in_order import in_order
from imagenet_prep.sources.record_images import RecordImages, iter_record_images
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.sources.tars import Archive, walk
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path
from imagenet_prep.text import number_of

_REMEDY = "get a sound copy of it"
_LARGEST = 1 << 16  # bytes of what a tar says of an image

Span = tuple[int, int]


class _Listed(NamedTuple):
    """An image: its name, its label from 0 (None: not told), offset and length."""

    name: str
    label: int | None
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Maker:
    """Who makes such a copy.

    Args:
        name: what people call it.
        pattern: of the names of its files, with a place for the split.
        folders: where they may lie, below the raw folder.
        siblings: the names of all files of a split, by the name of one; none if that is no name of its files.
        container: what reads one.
        images: what lists one.
    """

    name: str
    pattern: str
    folders: tuple[str, ...]
    siblings: Callable[[str], tuple[str, ...]]
    container: Callable[[Path], Container]
    images: Callable[[Path], Iterator[_Listed]]

    def find(self, layout: Layout, split: str) -> CopyEncodedAgain | None:
        """The files of a split, by the first that is there."""
        for folder in self.folders:
            paths = map(local_path, layout.raw_dir.glob(folder + self.pattern.format(split)))
            found = sorted(path for path in paths if path.is_file())
            names = next((names for path in found if (names := self.siblings(path.name))), ())
            whole = tuple(path for path in found if path.name in names and path.parent == found[0].parent)
            if whole:
                return CopyEncodedAgain(self, whole, split, names)
        return None


@dataclass(frozen=True, slots=True)
class CopyEncodedAgain:
    """The files of a split that are there, and the names of all that should be; never empty."""

    maker: Maker
    paths: tuple[Path, ...]
    split: str
    names: tuple[str, ...]
    is_unpacked: ClassVar[bool] = False
    is_in_order: ClassVar[bool] = False
    md5: ClassVar[str] = ""

    @property
    def path(self) -> Path:
        """The first file."""
        return self.paths[0]

    @property
    def words(self) -> str:
        """What they are."""
        return f"{len(self.paths):,} of {number_of(len(self.names), 'file')} of {self.maker.name}"

    @property
    def encoder(self) -> str:
        """Who made it."""
        return self.maker.name

    @property
    def size(self) -> int:
        """Bytes of the files that are there."""
        return sum(path.stat().st_size for path in self.paths)

    @property
    def missing(self) -> str:
        """The files that are not there."""
        there = {path.name for path in self.paths}
        return lacking_text([name for name in self.names if name not in there])

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, a task a file: headers alone are read."""
        progress.begin(f"listing the {self.split} files", len(self.paths), "files")
        parts = []
        for part in in_order(engine, _FileListing(self.maker, self.split), self.paths):
            parts.append(part)
            progress.advance()
        progress.end()
        return refuse_twice_in(self.path.parent, finished(parts, self.split))


@dataclass(frozen=True, slots=True)
class _FileListing:
    """Lists the images of one file."""

    maker: Maker
    split: str

    def __call__(self, path: Path) -> Catalog:
        found, stamp = Catalog(containers=[self.maker.container(path)]), path.stat().st_mtime_ns
        for each in self.maker.images(path):
            wnid = each.name[:9] if self.split == facts.TRAIN else ""
            known = label_of(each.name.encode(), self.split, wnid)
            if known is None or each.label not in (None, known - 1):
                raise InputError(
                    f"{path}, byte {each.offset:,}: {each.name[:100]!r} is not a {self.split} image of its class",
                    f"expected the label {known - 1}, got {each.label}" if known else "expected an official name",
                    _REMEDY,
                )
            found.append(each.name, each.offset, each.length, stamp, known)
        return found.sorted()


def refuse_encoded_again(layout: Layout, split: str) -> None:
    """Raise InputError if the raw folder holds a split in such a copy; ask it where there is no other."""
    for kind in KINDS:
        found = kind.find(layout, split)
        if found is not None:
            raise InputError(
                f"{found.path} is of {found.encoder}: that copy can't give the same records",
                "expected images as they were published; in that copy 23 of train were encoded again, "
                "22 that are CMYK and one that is a PNG",
                "get the archives of image-net.org, Kaggle's zip or Hugging Face's parquet files, "
                "and name their folder with --raw; or convert it with --as-it-is, which the manifest records",
            )


# TensorFlow Datasets -------------------------------------------------------------------------------------------


def _images_of_records(path: Path) -> Iterator[_Listed]:
    for row in iter_record_images(path):
        yield _Listed(row.name.decode("utf-8", "backslashreplace"), row.label, row.offset, row.length)


# timm's webdataset ---------------------------------------------------------------------------------------------


def _images_of_samples(path: Path) -> Iterator[_Listed]:
    """Each sample of a webdataset: members that follow each other and are called the same up to the first dot."""
    with FileSlices(path) as view:
        last, sample = "", dict[str, Span]()
        for raw, offset, length in walk(view, hint=_REMEDY):
            key, _, kind = raw.decode("utf-8", "backslashreplace").rpartition("/")[2].partition(".")
            if key != last and sample:
                yield _image_of(view, last, sample)
                sample = {}
            last = key
            sample[kind.lower()] = offset, length
        if sample:
            yield _image_of(view, last, sample)


def _image_of(view: FileSlices, key: str, sample: dict[str, Span]) -> _Listed:
    """The image of a sample, under the name that its json tells, or its key."""
    if "jpg" not in sample:
        offset = min(offset for offset, _ in sample.values())
        raise InputError(f"{view.path} holds no {key[:100]}.jpg, at byte {offset:,}", "expected an image", _REMEDY)
    told = _read_json(view, *sample["json"]) if "json" in sample else {}
    name = str(told.get("filename") or f"{key}.JPEG").rpartition("/")[2]
    label = told.get("label")
    if "cls" in sample:
        text = _read(view, *sample["cls"]).strip()
        label = int(text) if text.isdigit() and len(text) <= 4 else -1
    return _Listed(name, label, *sample["jpg"])


def _read(view: FileSlices, offset: int, length: int) -> bytes:
    if length > _LARGEST:
        raise InputError(f"{view.path} holds {length:,} bytes at byte {offset:,}", f"expected {_LARGEST:,}", _REMEDY)
    return view[offset : offset + length]


def _read_json(view: FileSlices, offset: int, length: int) -> dict[str, Any]:
    try:
        found = json.loads(_read(view, offset, length))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{view.path}: what it says of an image at byte {offset:,} is not JSON", "", _REMEDY)
    return found


# both ----------------------------------------------------------------------------------------------------------


def _siblings_of_records(name: str) -> tuple[str, ...]:
    lead, _, count = name.rpartition("-of-")
    if not (count.isdigit() and len(count) == 5 and re.fullmatch(".*-[0-9]{5}", lead)):
        return ()
    return tuple(f"{lead[:-5]}{number:05d}-of-{count}" for number in range(int(count)))


_TARS = {"train": 1024, "validation": 64}


def _siblings_of_samples(name: str) -> tuple[str, ...]:
    found = re.fullmatch(r"(imagenet1k-(train|validation)-)([0-9]{2,4})\.tar", name)
    return tuple(f"{found[1]}{number:0{len(found[3])}d}.tar" for number in range(_TARS[found[2]])) if found else ()


TFDS = Maker(
    "TensorFlow Datasets",
    "imagenet2012-{}.tfrecord-*",
    ("", "imagenet2012/*/"),
    _siblings_of_records,
    RecordImages,
    _images_of_records,
)
TIMM = Maker(
    "timm's webdataset",
    "imagenet1k-{}-*.tar",
    ("", "imagenet-1k-wds/"),
    _siblings_of_samples,
    Archive,
    _images_of_samples,
)
KINDS = tuple(SourceKind(name=maker.name, find=maker.find, find_boxes=no_boxes) for maker in (TFDS, TIMM))
ENCODERS = ("", *(kind.name for kind in KINDS))
"""Whose copies are taken where any will do; "" is that of all who give the very bytes."""
