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
from imagenet_prep.escaping import mention, path_word
from imagenet_prep.hints import Hint
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
from imagenet_prep.sources.archive_faults import ZipFault
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.skipped import OTHER_NAMES, SYSTEM_FILES, Skipped, is_system_file
from imagenet_prep.sources.slices import FileSlices, Row
from imagenet_prep.sources.zip_entries import check_end
from imagenet_prep.sources.zips import Zip, walk_zip, with_slashes
from imagenet_prep.storage.layout import RAW_NAME, Layout
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
    content, train, wnid, validation = match.groups()
    split, name = _SPLITS[train or validation], (wnid or validation).decode()
    return _Place(content == b"Annotations", split, name)


class KaggleZip(ImageSource, frozen=True):
    """A split in Kaggle's zip, read in place."""

    @classmethod
    def find(cls, layout: Layout, split: str) -> KaggleZip | None:
        """The zip in the raw folder."""
        path = layout.archive_path(ZIP)
        return cls(local_path(path), split) if path.is_file() else None

    @property
    def words(self) -> str:
        """Its name for messages."""
        return "Kaggle's zip"

    @property
    def damage(self) -> str:
        """The fault that its end shows, if it is not whole or can't be read in place."""
        with contextlib.suppress(InputError), FileSlices(local_path(self.path)) as view:
            try:
                check_end(view)
            except ZipFault as fault:
                condition = fault.problem.rstrip(",")
                return f", which {condition} ({size_text(len(view))})"
        return ""

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, from the zip's central directory."""
        path = local_path(self.path)
        with FileSlices(path) as view:
            stamp = view.stamp
        listing = _list_zip(path, stamp)[self.split]
        for folder, name in listing.misplaced:
            refuse_misplaced(f"{path}/{folder}", name, self.split, can_move=False)
        listing.skipped.note(path, progress)
        return finished([listing.images], self.split, path)


class _SplitListing(NamedTuple):
    """The content of a zip for a split: images, other files in their folders, and images in
    wrong folders, each as a folder and a name.
    """

    images: Catalog
    skipped: Skipped
    misplaced: list[tuple[str, str]]


class _SplitBuilder:
    """Collects the listing of a split."""

    def __init__(self, path: Path, split: str) -> None:
        self.split = split
        self.rows = CatalogBuilder(Zip(path))
        self.skipped = Skipped()
        self.misplaced: list[tuple[str, str]] = []

    def skip(self, folder: str, path: str, *, is_system: bool) -> None:
        """Count a file that is no image of its folder; ``path`` is its whole path in the zip."""
        outer_folder, _, name = path.rpartition("/")
        if is_misplaced(folder, name, self.split):
            self.misplaced.append((outer_folder, name))
        else:
            self.skipped.add(SYSTEM_FILES if is_system else OTHER_NAMES, f"{folder}/{name}")

    def listed(self) -> _SplitListing:
        """All that was added."""
        return _SplitListing(self.rows.listed(), self.skipped, self.misplaced)


def _to_fetch_again(path: Path) -> Hint:
    """The advice for a zip that is cut or damaged."""
    data_dir = str(path.parent.parent) if path.parent.name == RAW_NAME else "DATA_DIR"
    return Hint(
        "finish its download, or move it away and fetch it again: ",
        mention("download", path_word(data_dir), "--source", "kaggle"),
    )


@functools.lru_cache(maxsize=1)  # both splits, annotate and convert need it; it can take minutes
def _list_zip(path: Path, stamp: tuple[int, int, int]) -> dict[str, _SplitListing]:
    """The content of both splits in a zip with this stamp."""
    builders = {split: _SplitBuilder(path, split) for split in facts.SPLITS}
    modified = stamp[2]
    with FileSlices(path) as view:
        for member, address, length in walk_zip(view, _to_fetch_again(path)):
            folder, _, name = with_slashes(member).rpartition(b"/")
            place = _place(folder)
            if place is None or place.is_annotation:
                continue
            builder = builders[place.split]
            wnid = place.folder if place.split == facts.TRAIN else ""
            label = label_of(name, place.split, wnid)
            if label is not None:
                builder.rows.append(name.decode(), address, length, modified, label)
            else:
                shown_path = with_slashes(member).decode("utf-8", "backslashreplace")
                builder.skip(place.folder, shown_path, is_system=is_system_file(member))
    return {split: builder.listed() for split, builder in builders.items()}


class BoxesInZip(BoxFiles, frozen=True):
    """The annotations of a split in Kaggle's zip."""

    split: str

    def _files(self, progress: Progress) -> Iterator[File]:
        path = local_path(self.path)
        read = Zip(path).open()
        progress.begin(f"read {path.name}", None, "files")
        with FileSlices(path) as view:
            for member, address, length in walk_zip(view, _to_fetch_again(path)):
                folder, _, name = with_slashes(member).rpartition(b"/")
                is_xml = name.endswith(b".xml") and not is_system_file(member)
                place = _place(folder) if is_xml else None
                if place and place.is_annotation and place.split == self.split:
                    row = Row(os.fsdecode(with_slashes(member)), address, length, 0)
                    content = bytes(read(row)) if length <= LARGEST else bytes(LARGEST + 1)
                    yield place.folder, os.fsdecode(name[:-4]), content
                    progress.advance()
