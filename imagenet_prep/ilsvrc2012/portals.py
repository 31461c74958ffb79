"""KaggleZip, both splits in one zip, and HubFiles, parquet files:
the copies of Kaggle and Hugging Face.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.boxes import LARGEST, BoxFiles, File
from imagenet_prep.ilsvrc2012.official import (
    ImageSource,
    finished,
    is_misplaced,
    label_of,
    refuse_misplaced,
)
from imagenet_prep.model import Engine, ProblemKind, Progress
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.obstacles import refuse
from imagenet_prep.sources.parquets import ParquetImages, check_pyarrow, iter_rows
from imagenet_prep.sources.skipped import OTHER_NAMES, SYSTEM_FILES, Skipped, is_system_file
from imagenet_prep.sources.slices import FileSlices, Row
from imagenet_prep.sources.tar_members import REMEDY
from imagenet_prep.sources.tars import in_order
from imagenet_prep.sources.zips import CutZip, Zip, ZipFault, check_end, walk_zip, with_slashes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.text import number_of, size_text

# Kaggle's zip -------------------------------------------------------------------------------------
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


# Hugging Face's parquet files ---------------------------------------------------------------------
#
# The layout of https://huggingface.co/datasets/ILSVRC/imagenet-1k:
# ``data/train-00000-of-00294.parquet`` and so on. Labels count from 0; image names end with the
# wnid, in no order; there are no boxes. The huggingface_hub cache is read too
# (https://huggingface.co/docs/huggingface_hub/guides/manage-cache): links in
# ``snapshots/<commit>/``.

_CACHED = "datasets--ILSVRC--imagenet-1k"
_NAME = re.compile(r"(.+?)_(n[0-9]{8})\.JPEG").fullmatch
_FILE = re.compile(r"(train|validation)-([0-9]{5})-of-([0-9]{5})\.parquet").fullmatch
_SHOWN = 5
_EXAMPLES = {
    facts.TRAIN: "n01440764_10026_n01440764.JPEG",
    facts.VALIDATION: "ILSVRC2012_val_00000293_n01440764.JPEG",
}


class HubFiles(ImageSource, frozen=True):
    """The present files of a split, and the complete number of files; never empty."""

    paths: tuple[Path, ...]
    count: int
    is_in_order: ClassVar[bool] = True

    @classmethod
    def find(cls, layout: Layout, split: str) -> HubFiles | None:
        """The files of the most complete folder."""
        found = (each for folder in hub_folders(layout) for each in _hub_files(folder, split))
        return min(found, key=lambda each: len(each.lacking), default=None)

    @property
    def size(self) -> int:
        """Bytes of the present files."""
        return sum(path.stat().st_size for path in self.paths)

    @property
    def words(self) -> str:
        """A description of the files."""
        return f"{len(self.paths):,} of {number_of(self.count, 'file')} of Hugging Face"

    @property
    def lacking(self) -> list[str]:
        """The names of the missing files."""
        there = {path.name for path in self.paths}
        names = (
            f"{self.split}-{number:05d}-of-{self.count:05d}.parquet" for number in range(self.count)
        )
        return [name for name in names if name not in there]

    @property
    def missing(self) -> str:
        """The missing files, for messages."""
        names = self.lacking
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        return ", ".join(names[:_SHOWN]) + more

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, one task per file: each is read to its end,
        since only that gives the lengths of images.
        """
        check_pyarrow()
        progress.begin(f"listing the {self.split} files", len(self.paths), "files")
        parts = []
        for part in in_order(engine, _HubListing(self.split), self.paths):
            parts.append(part)
            progress.advance()
        progress.end()
        return finished(parts, self.split, self.path.parent)


def hub_folders(layout: Layout) -> Iterator[AnyPath]:
    """Folders that may hold the files: the raw folder, downloaded folders,
    and snapshots of the cache.
    """
    for top in ("", "imagenet-1k", "ILSVRC/imagenet-1k"):
        yield layout.raw_dir / top / "data"
        yield layout.raw_dir / top
    for cache in ("", _CACHED, f"hub/{_CACHED}"):
        snapshots = layout.raw_dir / cache / "snapshots"
        yield from sorted((path / "data" for path in snapshots.glob("*")), key=str)


def _hub_files(folder: AnyPath, split: str) -> Iterator[HubFiles]:
    """The files of a folder, by their complete number: another export has another number."""
    by_count: dict[int, list[Path]] = {}
    for path in sorted(map(local_path, folder.glob(f"{split}-*.parquet"))):
        named = _FILE(path.name)
        if named and int(named[2]) < int(named[3]) and path.is_file():
            by_count.setdefault(int(named[3]), []).append(path)
    for count, paths in by_count.items():
        yield HubFiles(paths[0], split, tuple(paths), count)


class _HubListing(Struct, frozen=True):
    """Lists the images of one file."""

    split: str

    def __call__(self, path: Path) -> Catalog:
        found, stamp = CatalogBuilder(ParquetImages(path)), path.stat().st_mtime_ns
        for number, own_name, label, length in iter_rows(path):
            name, wnid = official_name(own_name)
            known = label_of(name.encode(), self.split, wnid)
            where = f"{path}, row {number:,}: {own_name[:100]!r}"
            if known is None:
                expected = f"expected a name such as {_EXAMPLES[self.split]}"
                error = InputError(f"{where} is not a {self.split} image", expected, REMEDY)
                refuse(error, ProblemKind.STRAY_FILE, path.name, image=own_name[:100])
            elif label != known - 1:
                expected = f"expected {known - 1}, got {label}"
                error = InputError(f"{where} has the label of another class", expected, REMEDY)
                refuse(
                    error,
                    ProblemKind.WRONG_LABEL,
                    path.name,
                    image=name,
                    expected=wnid,
                    got=_class_named(label),
                )
            else:
                found.append(name, number, length, stamp, known)
        return found.sorted()


def _class_named(label: int) -> str:
    """The class of a label of Hugging Face, which counts from 0."""
    return facts.synsets()[label] if 0 <= label < facts.CLASSES else f"label {label}"


def official_name(name: str) -> tuple[str, str]:
    """``n01440764_10026.JPEG`` and ``n01440764`` for a name ``n01440764_10026_n01440764.JPEG``;
    "" for any other.
    """
    found = _NAME(name)
    return (f"{found[1]}.JPEG", found[2]) if found else ("", "")
