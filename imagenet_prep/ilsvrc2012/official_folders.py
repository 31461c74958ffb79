"""ImageFolders: class folders, or one folder of all images of a split -> their catalog."""

from __future__ import annotations

import os
import stat
from typing import ClassVar

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.official import (
    ImageSource,
    class_folders,
    counted,
    finished,
    is_misplaced,
    label_of,
    refuse_misplaced,
)
from imagenet_prep.model import Engine, ProblemKind, Progress
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.folders import Folder
from imagenet_prep.sources.obstacles import refuse
from imagenet_prep.sources.skipped import (
    BELOW,
    NOT_FILES,
    OTHER_NAMES,
    SYSTEM_FILES,
    Skipped,
    files_below,
    is_system_file,
    status_of,
)
from imagenet_prep.sources.tar_members import stream_faults
from imagenet_prep.sources.tars import in_order
from imagenet_prep.storage.files import kind_in_words, names_in, scan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.store import FolderEntry

FOLDERS = {
    facts.TRAIN: (
        "train",
        "ILSVRC/Data/CLS-LOC/train",
        "Data/CLS-LOC/train",
        "ILSVRC2012_img_train",
        "train/train",
    ),
    facts.VALIDATION: (
        *("validation", "val", "ILSVRC/Data/CLS-LOC/val", "Data/CLS-LOC/val", "ILSVRC2012_img_val"),
        *("validation/validation", "val/val"),
    ),
}
"""Folders searched for images: those of untar, torchvision's ImageFolder and the scripts of 2016;
Kaggle's tree; those that an archive is unpacked to, under its own name or into a folder of that
name.
"""


class ImageFolders(ImageSource, frozen=True):
    """A folder with a folder per class, or with all images of the split (Kaggle's val/)."""

    is_unpacked: ClassVar[bool] = True

    @classmethod
    def find(cls, layout: Layout, split: str) -> ImageFolders | None:
        """The first of the folders that exists,
        except one that untar has started and not finished.
        """
        folders = cls.find_begun(layout, split)
        is_begun = (layout.raw_partial_dir / split).is_dir()
        if folders and is_begun and folders.path == layout.images_dir(split):
            return None
        return folders

    @classmethod
    def find_begun(cls, layout: Layout, split: str) -> ImageFolders | None:
        """A folder that untar has not finished counts too: its archive may be gone."""
        for name in FOLDERS[split]:
            folder = layout.raw_dir / name
            if folder.is_dir() and not _is_wrapper(folder):
                return cls(folder, split)
        return None

    @property
    def words(self) -> str:
        """The name of the folder."""
        return f"the folder {self.path.name}"

    @property
    def size(self) -> int:
        """Bytes of all files in it and in its class folders."""
        folders = ("", *class_folders(self.path))
        return sum(_size_of(self.path / folder) for folder in folders)

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images: one task per class folder, and one for images in the folder itself."""
        tasks = ("", *class_folders(self.path))
        skipped = Skipped()
        scans = in_order(engine, _FolderScan(self.path, self.split), tasks)
        parts = list(counted(scans, skipped))
        skipped.note(self.path, progress)
        remedy = "remove one of the two"
        return finished(parts, self.split, self.path, remedy_of_twins=remedy)


def _is_wrapper(folder: AnyPath) -> bool:
    """Whether a folder holds only one of the same name,
    such as train/train, as some archives unpack.
    """
    return (folder / folder.name).is_dir() and not any(
        name not in (folder.name, ".DS_Store") for name in names_in(folder)
    )


def _size_of(folder: AnyPath) -> int:
    with scan(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())


class _FolderScan(Struct, frozen=True):
    """Lists the images of one class folder, or of the flat folder;
    all other entries are counted.
    """

    folder: AnyPath
    split: str

    def __call__(self, wnid: str) -> tuple[Catalog, Skipped]:
        folder = self.folder / wnid
        rows, skipped, no_files = CatalogBuilder(Folder(folder)), Skipped(), Skipped()
        with stream_faults(folder), scan(folder) as entries:  # no read permission
            for entry in entries:
                label = label_of(os.fsencode(entry.name), self.split, wnid)
                if label is None:
                    if is_misplaced(folder.name, entry.name, self.split):
                        refuse_misplaced(str(folder), entry.name, self.split, can_move=True)
                    else:
                        self._skip(entry, wnid, skipped)
                elif (status := status_of(entry)) and stat.S_ISREG(status.st_mode):
                    rows.append(entry.name, 0, status.st_size, status.st_mtime_ns, label)
                else:
                    no_files.add(NOT_FILES, entry.name)
        if no_files.entries:
            _refuse(folder, *no_files.entries[NOT_FILES])
        return rows.sorted(), skipped

    def _skip(self, entry: FolderEntry, wnid: str, skipped: Skipped) -> None:
        name = f"{wnid}/{entry.name}" if wnid else entry.name
        if entry.is_dir():
            if wnid or not facts.is_wnid(entry.name):  # a class folder has a task of its own
                for path in files_below(self.folder / name):
                    skipped.add(BELOW, path.name)
        elif not entry.is_file():
            skipped.add(NOT_FILES, name)
        elif entry.name[:-4] in facts.labels() and entry.name.endswith(".tar"):
            skipped.add("class tars next to class folders", name)
        elif is_system_file(os.fsencode(entry.name)):
            skipped.add(SYSTEM_FILES, name)
        else:
            skipped.add(OTHER_NAMES, name)


def _refuse(folder: AnyPath, count: int, name: str) -> None:
    """Refuse entries with names of images that can't be read as files, or never end."""
    more = f", and {count - 1:,} more like it" if count > 1 else ""
    error = InputError(
        f"{folder / name} is not a plain file{more}",
        f"expected an image, it is {kind_in_words(folder / name)}",
        "remove it, or put the image in its place",
    )
    refuse(error, ProblemKind.UNREADABLE, name)
