"""OfficialTar, ClassTars and ImageFolders: the archives of image-net.org, the tars inside them, and class folders.

Each is read in place: one class at a time, in parallel.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.source import ImageSource, finished, label_of, refuse_misplaced, refuse_twice_in
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.folders import Folder
from imagenet_prep.sources.slices import slices_of
from imagenet_prep.sources.tar_members import REMEDY, duplicate, stranger
from imagenet_prep.sources.tars import Archive, NamedSlices, in_order, walk
from imagenet_prep.storage.files import names_in, scan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import number_of

TarTask = tuple[AnyPath, str, int, int | None]
"""An archive, the wnid of a class ("" for any), the start byte and the end byte (None: the archive's end)."""


# tars ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfficialTar(ImageSource):
    """The archive of a split: train is a tar with a tar per class, validation has all images in no order."""

    @classmethod
    def find(cls, layout: Layout, split: str) -> OfficialTar | None:
        """The archive in the raw folder, or in DATA_DIR's own."""
        path = layout.archive_path(facts.ARCHIVES[split])
        return cls(path, split) if path.is_file() else None

    @property
    def md5(self) -> str:
        """The archive's published facts."""
        return facts.ARCHIVES[self.split].md5

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images: one task per class tar within the train archive, one for all of validation."""
        catalog = finished(in_order(engine, ArchiveIndex(self.split), self._tasks()), self.split)
        row = catalog.names.first_twice()
        if row is not None:
            raise duplicate(self.path, catalog.names[row], *sorted(catalog.offsets[row : row + 2].tolist()))
        return catalog

    def _tasks(self) -> list[TarTask]:
        if self.split == facts.VALIDATION:
            return [(self.path, "", 0, None)]
        with slices_of(self.path) as view:
            return [(self.path, wnid, offset, offset + length) for wnid, (offset, length) in class_tars(view).items()]


@dataclass(frozen=True, slots=True)
class ClassTars(ImageSource):
    """The train images as a folder of ``<wnid>.tar``: all classes, as the official archive unpacks, or some.

    No digest of a class tar is published, so every image is checked closely.
    """

    split: str = facts.TRAIN

    @classmethod
    def find(cls, layout: Layout, split: str) -> ClassTars | None:
        """The first folder with class tars that has no class folders."""
        if split != facts.TRAIN:
            return None
        own = layout.class_tars_dir(facts.ARCHIVES[split])
        places = [layout.raw_dir / own.name, own, layout.raw_dir / facts.TRAIN]
        return next((found for path in places if (found := cls(path)).wnids() and not any(_class_folders(path))), None)

    @property
    def words(self) -> str:
        """The number of class tars."""
        return number_of(len(self.wnids()), "class tar")

    @property
    def size(self) -> int:
        """Bytes of the tars."""
        return sum(self.tar(wnid).stat().st_size for wnid in self.wnids())

    def wnids(self) -> list[str]:
        """The classes present."""
        try:
            names = set(names_in(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [wnid for wnid in facts.synsets() if f"{wnid}.tar" in names]

    def tar(self, wnid: str) -> AnyPath:
        """The path of the tar of a class, present or not."""
        return self.path / f"{wnid}.tar"

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images: one task per class."""
        tasks = ((self.tar(wnid), wnid, 0, None) for wnid in self.wnids())
        return refuse_twice_in(self.path, finished(in_order(engine, ArchiveIndex(self.split), tasks), self.split))


def class_tars_in(layout: Layout) -> ClassTars:
    """The class tars in DATA_DIR itself, where download puts them."""
    return ClassTars(layout.class_tars_dir(facts.ARCHIVES[facts.TRAIN]))


def class_tars(view: NamedSlices, wanted: Collection[str] = ()) -> dict[str, tuple[int, int]]:
    """Offset and length of each class's tar, by wnid, in the train archive; it stops once all ``wanted`` are found.

    Raises:
        InputError: a member is no tar of one of the 1000 classes, a class repeats, or the archive is damaged.
    """
    found: dict[str, tuple[int, int]] = {}
    left = set(wanted)
    for name, offset, length in walk(view, hint=REMEDY):
        wnid = name[:-4].decode("ascii", "replace")
        if wnid not in facts.labels() or name[-4:] != b".tar":
            raise stranger(view.path, name, offset, "tars named <wnid>.tar")
        if wnid in found:
            raise duplicate(view.path, f"{wnid}.tar", found[wnid][0], offset)
        found[wnid] = offset, length
        left.discard(wnid)
        if wanted and not left:
            break
    return found


@dataclass(frozen=True, slots=True)
class ArchiveIndex:
    """Indexes one tar of a split: a class tar, separate or within the train archive, or all of validation."""

    split: str

    def __call__(self, task: TarTask) -> Catalog:
        """The images of a tar, sorted; raises InputError if it is damaged, or holds other files."""
        archive, wnid, start, stop = task
        rows: list[tuple[int, bytes, int, int]] = []
        inside = f"{wnid}.tar" if stop is not None else ""
        with slices_of(archive) as view:
            stamp = view.modified
            for name, offset, length in walk(view, start, stop, inside=inside, hint=REMEDY):
                label = label_of(name, self.split, wnid)
                if label is None:
                    raise stranger(archive, name, offset, f"images of {wnid}" if wnid else "validation images")
                rows.append((label, name, offset, length))
        found = CatalogBuilder(Archive(archive))
        for label, name, offset, length in sorted(rows):  # a few hundred: faster than to sort their columns
            found.append(name.decode(), offset, length, stamp, label)
        return found.listed()


# folders -------------------------------------------------------------------------------------------------------

FOLDERS = {
    facts.TRAIN: ("train", "ILSVRC/Data/CLS-LOC/train", "Data/CLS-LOC/train"),
    facts.VALIDATION: ("validation", "val", "ILSVRC/Data/CLS-LOC/val", "Data/CLS-LOC/val"),
}
"""Folders searched for images: those of untar, torchvision's ImageFolder and the scripts of 2016; Kaggle's tree."""


@dataclass(frozen=True, slots=True)
class ImageFolders(ImageSource):
    """A folder with a folder per class, or with all images of the split (Kaggle's val/)."""

    is_unpacked: ClassVar[bool] = True

    @classmethod
    def find(cls, layout: Layout, split: str) -> ImageFolders | None:
        """The first of the folders that exists, except one that untar has started and not finished."""
        found = cls.find_begun(layout, split)
        is_begun = (layout.raw_partial_dir / split).is_dir()
        return None if found and is_begun and found.path == layout.images_dir(split) else found

    @classmethod
    def find_begun(cls, layout: Layout, split: str) -> ImageFolders | None:
        """A folder that untar has not finished counts too: its archive may be gone."""
        folders = (layout.raw_dir / name for name in FOLDERS[split])
        return next((cls(folder, split) for folder in folders if folder.is_dir()), None)

    @property
    def words(self) -> str:
        """The name of the folder."""
        return f"the folder {self.path.name}"

    @property
    def size(self) -> int:
        """Bytes of all files in it and in its class folders."""
        return sum(map(_size_of, (self.path / wnid for wnid in ("", *_class_folders(self.path)))))

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images: one task per class folder, and one for images in the folder itself."""
        tasks = ("", *_class_folders(self.path))
        return refuse_twice_in(
            self.path, finished(in_order(engine, _FolderScan(self.path, self.split), tasks), self.split)
        )


def _class_folders(folder: AnyPath) -> Iterator[str]:
    with scan(folder) as entries:
        for entry in entries:
            try:
                if facts.is_wnid(entry.name) and entry.is_dir():
                    yield entry.name
            except OSError as error:  # such as a link to itself
                raise InputError(f"{entry.path} can't be read", error.strerror or str(error)) from error


def _size_of(folder: AnyPath) -> int:
    with scan(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())


@dataclass(frozen=True, slots=True)
class _FolderScan:
    """Lists the images of one class folder, or of the flat folder; other files are ignored."""

    folder: AnyPath
    split: str

    def __call__(self, wnid: str) -> Catalog:
        try:
            return self._scan(wnid)
        except OSError as error:  # no read permission, or a dangling link
            raise InputError(f"{error.filename} can't be read", error.strerror or str(error)) from error

    def _scan(self, wnid: str) -> Catalog:
        folder = self.folder / wnid
        found = CatalogBuilder(Folder(folder))
        with scan(folder) as entries:
            for entry in entries:
                label = label_of(os.fsencode(entry.name), self.split, wnid)
                if label is None:
                    refuse_misplaced(str(folder), entry.name, self.split)
                    continue
                status = entry.stat()
                found.append(entry.name, 0, status.st_size, status.st_mtime_ns, label)
        return found.sorted()
