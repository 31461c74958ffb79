"""KaggleZip: both splits in Kaggle's zip, their images and their annotations, read in place."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.annotation_xml import LARGEST
from imagenet_prep.ilsvrc2012.box_archives import BoxFiles, File
from imagenet_prep.ilsvrc2012.official import (
    ImageSource,
    finished,
    is_misplaced,
    label_of,
    refuse_misplaced,
)
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.skipped import OTHER_NAMES, SYSTEM_FILES, Skipped, is_system_file
from imagenet_prep.sources.slices import FileSlices, Row
from imagenet_prep.sources.zips import CutZip, Zip, ZipFault, check_end, walk_zip, with_slashes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path
from imagenet_prep.text import size_text

#
# Images and annotations share one tree: ``ILSVRC/Data/CLS-LOC/train/<wnid>/``, ``.../val/``, and
# the same below ``ILSVRC/Annotations``. Test images have no labels and are skipped. The API serves
# the zip at ``competitions/data/download-all``.


class KaggleFile(Struct, frozen=True):
    """A file of Kaggle's, known by its name only."""

    filename: str


ZIP = KaggleFile("imagenet-object-localization-challenge.zip")

_HINT = (
    "finish its download, or move it away and fetch it again: "
    "imagenet-prep download DATA_DIR --source kaggle"
)
_SPLITS = {b"train": facts.TRAIN, b"val": facts.VALIDATION}
_in_tree = re.compile(
    rb"(?:.*/)?(Data|Annotations)/CLS-LOC/(?:(train)/(n[0-9]{8})|(val))"
).fullmatch
"""A folder of the tree, which may be in others."""


class _Place(NamedTuple):
    """The content of a folder of the tree: annotations or images,
    their split, and the folder's name.
    """

    is_annotation: bool
    split: str
    folder: str


@functools.lru_cache(maxsize=1 << 14)
def _place(folder: bytes) -> _Place | None:
    """The content of a folder of the tree; None if it has neither images
    nor annotations of the two splits.
    """
    match = _in_tree(folder)
    if match is None:
        return None
    return _Place(
        match[1] == b"Annotations", _SPLITS[match[2] or match[4]], (match[3] or match[4]).decode()
    )


class KaggleZip(ImageSource, frozen=True):
    """A split in Kaggle's zip, read in place."""

    @classmethod
    def find(cls, layout: Layout, split: str) -> KaggleZip | None:
        """The zip in the raw folder, or in DATA_DIR's own."""
        path = layout.archive_path(ZIP)
        return cls(local_path(path), split) if path.is_file() else None

    @property
    def words(self) -> str:
        """Its name for messages."""
        return "Kaggle's zip"

    @property
    def damage(self) -> str:
        """The fault that its end shows, if it is incomplete or damaged."""
        with contextlib.suppress(InputError), FileSlices(local_path(self.path)) as view:
            try:
                check_end(view)
            except ZipFault as fault:
                what = "not complete" if isinstance(fault, CutZip) else "damaged"
                return f", which is {what} ({size_text(len(view))})"
        return ""

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, from the zip's central directory."""
        path = local_path(self.path)
        with FileSlices(path) as view:
            stamp = view.stamp
        images, skipped, misplaced = _images_of(path, stamp)[self.split]
        for folder, name in misplaced:
            refuse_misplaced(f"{path}/{folder}", name, self.split)
        skipped.note(path, progress)
        return finished([images], self.split, path)


@functools.lru_cache(maxsize=1)  # both splits, annotate and convert need it; it can take minutes
def _images_of(
    path: Path, stamp: tuple[int, int, int]
) -> dict[str, tuple[Catalog, Skipped, list[tuple[str, str]]]]:
    """The images of both splits in a zip with this stamp, the other files in their folders, and
    images in wrong ones.

    Each of the last is a folder and a name.
    """
    found = {split: CatalogBuilder(Zip(path)) for split in facts.SPLITS}
    skipped = {split: Skipped() for split in facts.SPLITS}
    misplaced: dict[str, list[tuple[str, str]]] = {split: [] for split in facts.SPLITS}
    with FileSlices(path) as view:
        for name, address, length in walk_zip(view, _HINT):
            folder, _, own = with_slashes(name).rpartition(b"/")
            place = _place(folder)
            if place is None or place.is_annotation:
                continue
            label = label_of(own, place.split, place.folder if place.split == facts.TRAIN else "")
            if label is None:
                other = own.decode("utf-8", "backslashreplace")
                if is_misplaced(place.folder, other, place.split):
                    misplaced[place.split].append((place.folder, other))
                else:
                    kind = SYSTEM_FILES if is_system_file(name) else OTHER_NAMES
                    skipped[place.split].add(kind, f"{place.folder}/{other}")
            else:
                found[place.split].append(own.decode(), address, length, stamp[2], label)
    return {
        split: (rows.listed(), skipped[split], misplaced[split]) for split, rows in found.items()
    }


class BoxesInZip(BoxFiles, frozen=True):
    """The annotations of a split in Kaggle's zip."""

    split: str

    def _files(self, progress: Progress) -> Iterator[File]:
        path = local_path(self.path)
        read = Zip(path).open()
        progress.begin(f"read {path.name}", None, "files")
        with FileSlices(path) as view:
            for name, address, length in walk_zip(view, _HINT):
                folder, _, own = with_slashes(name).rpartition(b"/")
                is_xml = own.endswith(b".xml") and not is_system_file(name)
                place = _place(folder) if is_xml else None
                if place and place.is_annotation and place.split == self.split:
                    row = Row(os.fsdecode(with_slashes(name)), address, length, 0)
                    content = bytes(read(row)) if length <= LARGEST else bytes(LARGEST + 1)
                    yield place.folder, os.fsdecode(own[:-4]), content
                    progress.advance()
