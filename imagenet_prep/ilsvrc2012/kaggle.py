"""KaggleZip and KaggleTar, one split in the one file that Kaggle gives: images and annotations in one tree.

``ILSVRC/Data/CLS-LOC/train/<wnid>/``, ``.../val/``, and the same below ``ILSVRC/Annotations``; test images have no
labels and are left alone. The zip is what the API's ``competitions/data/download-all`` gives today; the tar through
gzip is what there was in 2019.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.box_files import BoxFiles, File, identity_of_file, refuse_repeated
from imagenet_prep.ilsvrc2012.source import (
    ImageSource,
    SourceKind,
    finished,
    label_of,
    refuse_misplaced,
    refuse_twice_in,
)
from imagenet_prep.ilsvrc2012.voc import LARGEST
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.container import Row
from imagenet_prep.sources.packed_tars import PackedTar, walk_packed
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.sources.zips import Zip, walk_zip
from imagenet_prep.storage.layout import Layout

_FOLDERS = {b"train": facts.TRAIN, b"val": facts.VALIDATION}
_in_tree = re.compile(
    rb"(?:\./)?(?:ILSVRC/)?(Data|Annotations)/CLS-LOC/(?:(train)/(n[0-9]{8})|(val))/([^/]+)"
).fullmatch


@dataclass(frozen=True, slots=True)
class KaggleFile:
    """A file of Kaggle's: its name is all that tells it."""

    filename: str


ZIP = KaggleFile("imagenet-object-localization-challenge.zip")
PACKED = KaggleFile("imagenet_object_localization_patched2019.tar.gz")


class _Place(NamedTuple):
    """What the name of a file in the tree tells: whether it is an annotation, its split, class folder and own name."""

    is_annotation: bool
    split: str
    folder: str
    name: bytes


def _place(name: bytes) -> _Place | None:
    """Where a file lies in the tree, or None if it is neither an image nor an annotation of the two splits."""
    match = _in_tree(name)
    if match is None:
        return None
    split = _FOLDERS[match[2] or match[4]]
    return _Place(match[1] == b"Annotations", split, (match[3] or match[4]).decode(), match[5])


def _label(path: Path, place: _Place) -> int | None:
    """The label of an image, None for what is none."""
    label = label_of(place.name, place.split, place.folder if place.split == facts.TRAIN else "")
    if label is None:
        refuse_misplaced(f"{path}/{place.folder}", place.name.decode("utf-8", "backslashreplace"), place.split)
    return label


def _annotation(place: _Place, content: bytes) -> File | None:
    """What annotate reads of a file among the annotations; None if it is none."""
    name = os.fsdecode(place.name)
    return (place.folder, name[:-4], content) if name.endswith(".xml") else None


# the zip of today ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KaggleZip:
    """A split in Kaggle's zip, read in place."""

    path: Path
    split: str
    is_unpacked: ClassVar[bool] = False
    md5: ClassVar[str] = ""
    missing: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """What to call it."""
        return "Kaggle's zip"

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, by the zip's central directory alone."""
        found = Catalog(containers=[Zip(self.path)])
        with FileSlices(self.path) as view:
            stamp = view.modified
            for entry in walk_zip(view):
                place = _place(entry.name)
                if place is None or place.is_annotation or place.split != self.split:
                    continue
                label = _label(self.path, place)
                if label is not None:
                    found.append(place.name.decode(), entry.address, entry.size, stamp, label)
        return refuse_twice_in(self.path, finished([found], self.split))


@dataclass(frozen=True, slots=True)
class BoxesInZip:
    """The annotations of a split in Kaggle's zip."""

    path: Path
    split: str

    def identity(self) -> dict[str, Any]:
        """Size and time of the zip."""
        return identity_of_file(self.path)

    def files(self, progress: Progress) -> Iterator[File]:
        """Every annotation, in the order of the central directory."""
        return refuse_repeated(self.path, self._files(progress))

    def _files(self, progress: Progress) -> Iterator[File]:
        read = Zip(self.path).open()
        progress.begin(f"read {self.path.name}", None, "files")
        with FileSlices(self.path) as view:
            for entry in walk_zip(view):
                place = _place(entry.name)
                if place is None or not place.is_annotation or place.split != self.split:
                    continue
                row = Row(os.fsdecode(place.name), entry.address, entry.size, 0)
                content = bytes(read(row)) if entry.size <= LARGEST else bytes(LARGEST + 1)
                if file := _annotation(place, content):
                    yield file
                    progress.advance()


# the tar of 2019 -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KaggleTar:
    """A split in Kaggle's older tar through gzip, which can only be read in its order."""

    path: Path
    split: str
    is_unpacked: ClassVar[bool] = False
    md5: ClassVar[str] = ""
    missing: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """What to call it."""
        return "Kaggle's .tar.gz of 2019"

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, by one pass over all of it: for both splits, unless annotate has just made it."""
        if _listed.key != _key(self.path):
            try:
                for _ in _read_once(self.path, progress):
                    pass
            finally:
                progress.end()
        return refuse_twice_in(self.path, finished([_listed.images[self.split]], self.split))


@dataclass(frozen=True, slots=True)
class BoxesInTar:
    """The annotations of a split in it."""

    path: Path
    split: str

    def identity(self) -> dict[str, Any]:
        """Size and time of the archive."""
        return identity_of_file(self.path)

    def files(self, progress: Progress) -> Iterator[File]:
        """Every annotation, in the order of the archive."""
        files = (file for split, file in _read_once(self.path, progress) if split == self.split)
        return refuse_repeated(self.path, files)


@dataclass(slots=True)
class _Listed:
    """The images of the tar that was read last: to read it takes minutes, and the next stage needs them too."""

    key: tuple[object, ...] = ()
    images: dict[str, Catalog] = field(default_factory=dict)


_listed = _Listed()


def _key(path: Path) -> tuple[object, ...]:
    """What tells a file from another one, and from itself once it was written to."""
    with FileSlices(path) as view:
        return path, *view.stamp


def _read_once(path: Path, progress: Progress) -> Iterator[tuple[str, File]]:
    """The annotations of both splits in one pass, each with its split; once it is over, all images are listed."""
    key = _key(path)
    with FileSlices(path) as view:
        stamp = view.modified
    images = {split: Catalog(containers=[PackedTar(path)]) for split in facts.SPLITS}

    def keep(name: bytes) -> int:
        place = _place(name)
        return LARGEST + 1 if place and place.is_annotation else 0

    for name, offset, length, content in walk_packed(path, progress, keep):
        place = _place(name)
        if place is None:
            continue
        if place.is_annotation:
            if file := _annotation(place, content):
                yield place.split, file
        elif (label := _label(path, place)) is not None:
            images[place.split].append(place.name.decode(), offset, length, stamp, label)
    _listed.key, _listed.images = key, images


# both ----------------------------------------------------------------------------------------------------------


def _kind(
    name: str,
    file: KaggleFile,
    images: type[KaggleZip] | type[KaggleTar],
    boxes: type[BoxesInZip] | type[BoxesInTar],
) -> SourceKind:
    def find(layout: Layout, split: str) -> ImageSource | None:
        path = layout.archive_path(file)
        return images(path, split) if path.is_file() else None

    def find_boxes(layout: Layout, split: str) -> BoxFiles | None:
        path = layout.archive_path(file)
        return boxes(path, split) if path.is_file() else None

    return SourceKind(name=name, find=find, find_boxes=find_boxes)


ZIP_KIND = _kind(f"Kaggle's {ZIP.filename}", ZIP, KaggleZip, BoxesInZip)
TAR_KIND = _kind(f"Kaggle's {PACKED.filename}", PACKED, KaggleTar, BoxesInTar)
