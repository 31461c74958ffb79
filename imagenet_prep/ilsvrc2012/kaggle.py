"""KaggleZip, one split in the one file that Kaggle gives: images and annotations in one tree.

``ILSVRC/Data/CLS-LOC/train/<wnid>/``, ``.../val/``, and the same below ``ILSVRC/Annotations``; test images have no
labels and are left alone. The zip is what the API's ``competitions/data/download-all`` gives.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.box_files import File, identity_of_file, refuse_repeated
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
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.sources.tar_members import Member
from imagenet_prep.sources.zip_entries import CutZip, ZipFault, check_end
from imagenet_prep.sources.zips import Zip, walk_zip
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path
from imagenet_prep.text import size_text

_SPLITS = {b"train": facts.TRAIN, b"val": facts.VALIDATION}
_in_tree = re.compile(rb"(?:\./)?(?:ILSVRC/)?(Data|Annotations)/CLS-LOC/(?:(train)/(n[0-9]{8})|(val))").fullmatch


@dataclass(frozen=True, slots=True)
class KaggleFile:
    """A file of Kaggle's: its name is all that tells it."""

    filename: str


ZIP = KaggleFile("imagenet-object-localization-challenge.zip")

_HINT = "finish its download, or move it away and fetch it again: imagenet-prep download DATA_DIR --source kaggle"


class _Place(NamedTuple):
    """What a folder of the tree holds: annotations or images, of which split; and its own name."""

    is_annotation: bool
    split: str
    folder: str


@functools.lru_cache(maxsize=1 << 14)
def _place(folder: bytes) -> _Place | None:
    """What a folder of the tree holds; None if it is neither images nor annotations of the two splits."""
    match = _in_tree(folder)
    if match is None:
        return None
    return _Place(match[1] == b"Annotations", _SPLITS[match[2] or match[4]], (match[3] or match[4]).decode())


def _annotated(name: bytes) -> str:
    """The split that a file is an annotation of; "" if it is none."""
    place = _place(name.rpartition(b"/")[0]) if name.endswith(b".xml") else None
    return place.split if place and place.is_annotation else ""


@dataclass(slots=True)
class _TreeImages:
    """The images of both splits in one file of Kaggle's, ``key``: what tells it from another, and from itself later."""

    key: tuple[object, ...] = ()
    images: dict[str, Catalog] = field(default_factory=dict)

    def add(self, member: Member, stamp: int) -> None:
        """Take a file, if it is an image."""
        name, address, length = member
        folder, _, own = name.rpartition(b"/")
        place = _place(folder)
        if place is None or place.is_annotation:
            return
        label = label_of(own, place.split, place.folder if place.split == facts.TRAIN else "")
        if label is None:
            refuse_misplaced(f"{self.key[0]}/{place.folder}", own.decode("utf-8", "backslashreplace"), place.split)
        else:
            self.images[place.split].append(own.decode(), address, length, stamp, label)

    def catalog(self, path: Path, split: str) -> Catalog:
        """All images of a split."""
        return refuse_twice_in(path, finished([self.images[split]], split))


_last = [_TreeImages()]
"""The listing made last: both splits ask for it, and after annotate convert; to make it takes up to minutes."""


def _key(path: Path) -> tuple[object, ...]:
    with FileSlices(path) as view:
        return path, *view.stamp


def _file(member: Member, content: bytes) -> File:
    """What annotate reads of an annotation."""
    folder, _, name = os.fsdecode(member[0]).rpartition("/")
    return folder.rpartition("/")[2], name[:-4], content


@dataclass(frozen=True, slots=True)
class KaggleZip:
    """A split in Kaggle's zip, read in place."""

    path: Path
    split: str
    is_unpacked: ClassVar[bool] = False
    is_in_order: ClassVar[bool] = False
    md5: ClassVar[str] = ""
    missing: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """What to call it."""
        return "Kaggle's zip"

    @property
    def size(self) -> int:
        """Bytes of the file, of both splits."""
        return self.path.stat().st_size

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, by the zip's central directory alone."""
        if _last[0].key != _key(self.path):
            images = {split: Catalog(containers=[Zip(self.path)]) for split in facts.SPLITS}
            listing = _TreeImages(_key(self.path), images)
            with FileSlices(self.path) as view:
                stamp = view.modified
                for member in walk_zip(view, _HINT):
                    listing.add(member, stamp)
            _last[0] = listing
        return _last[0].catalog(self.path, self.split)


def damage_of(sources: Iterable[ImageSource | None]) -> str:
    """What the end of Kaggle's zip says if it is not whole, in words to stand after its name; else ""."""
    path = next((each.path for each in sources if isinstance(each, KaggleZip)), None)
    if path is not None:
        with contextlib.suppress(InputError), FileSlices(path) as view:
            try:
                check_end(view)
            except ZipFault as fault:
                what = "not complete" if isinstance(fault, CutZip) else "damaged"
                return f", which is {what} ({size_text(len(view))})"
    return ""


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
            for member in walk_zip(view, _HINT):
                name, address, length = member
                if _annotated(name) == self.split:
                    row = Row(os.fsdecode(name), address, length, 0)
                    yield _file(member, bytes(read(row)) if length <= LARGEST else bytes(LARGEST + 1))
                    progress.advance()


def _find(layout: Layout, split: str) -> KaggleZip | None:
    path = layout.archive_path(ZIP)
    return KaggleZip(local_path(path), split) if path.is_file() else None


def _find_boxes(layout: Layout, split: str) -> BoxesInZip | None:
    path = layout.archive_path(ZIP)
    return BoxesInZip(local_path(path), split) if path.is_file() else None


KIND = SourceKind(name=f"Kaggle's {ZIP.filename}", find=_find, find_boxes=_find_boxes)
