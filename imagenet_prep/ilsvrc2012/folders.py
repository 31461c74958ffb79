"""ImageFolders, one split as files in class folders; also Kaggle's tree, with folders of annotations beside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.box_files import BoxFolder
from imagenet_prep.ilsvrc2012.source import (
    SourceKind,
    finished,
    label_of,
    no_boxes,
    refuse_misplaced,
    refuse_twice_in,
)
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.class_folders import Folder
from imagenet_prep.sources.in_order import in_order
from imagenet_prep.storage.files import scan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

FOLDERS = {
    facts.TRAIN: ("train", "ILSVRC/Data/CLS-LOC/train", "Data/CLS-LOC/train"),
    facts.VALIDATION: ("validation", "val", "ILSVRC/Data/CLS-LOC/val", "Data/CLS-LOC/val"),
}
"""Where images are looked for: what untar, torchvision's ImageFolder and the scripts of 2016 have; Kaggle's tree."""

BOX_FOLDERS = {
    facts.TRAIN: ("ILSVRC/Annotations/CLS-LOC/train", "Annotations/CLS-LOC/train"),
    facts.VALIDATION: ("ILSVRC/Annotations/CLS-LOC/val", "Annotations/CLS-LOC/val"),
}
"""Where annotations are looked for: Kaggle's tree."""


@dataclass(frozen=True, slots=True)
class ImageFolders:
    """A folder with a folder a class, or with all images of the split (Kaggle's val/)."""

    path: AnyPath
    split: str
    is_unpacked: ClassVar[bool] = True
    is_in_order: ClassVar[bool] = False
    md5: ClassVar[str] = ""
    missing: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """The name of the folder."""
        return f"the folder {self.path.name}"

    @property
    def size(self) -> int:
        """Bytes of all files in it, and in its folders of classes."""
        return sum(map(_size_of, (self.path / wnid for wnid in self._tasks())))

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, listed in parallel."""
        parts = in_order(engine, _FolderScan(self.path, self.split), self._tasks())
        return refuse_twice_in(self.path, finished(parts, self.split))

    def _tasks(self) -> Iterator[str]:
        """A task a class folder, and one for images that lie in the folder itself."""
        yield ""
        with scan(self.path) as entries:
            for entry in entries:
                try:
                    if facts.is_wnid(entry.name) and entry.is_dir():
                        yield entry.name
                except OSError as error:  # a link to itself
                    raise InputError(f"{entry.path} can't be read", error.strerror or str(error)) from error


def _size_of(folder: AnyPath) -> int:
    with scan(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())


@dataclass(frozen=True, slots=True)
class _FolderScan:
    """Lists the images of one class folder (or of the flat folder); other files are left alone."""

    folder: AnyPath
    split: str

    def __call__(self, wnid: str) -> Catalog:
        try:
            return self._scan(wnid)
        except OSError as error:  # no right to read it, a link to nowhere
            raise InputError(f"{error.filename} can't be read", error.strerror or str(error)) from error

    def _scan(self, wnid: str) -> Catalog:
        folder = self.folder / wnid
        found = Catalog(containers=[Folder(folder)])
        with scan(folder) as entries:
            for entry in entries:
                label = label_of(os.fsencode(entry.name), self.split, wnid)
                if label is None:
                    refuse_misplaced(str(folder), entry.name, self.split)
                    continue
                status = entry.stat()
                found.append(entry.name, 0, status.st_size, status.st_mtime_ns, label)
        return found.sorted()


def _find(layout: Layout, split: str) -> ImageFolders | None:
    """The first of the folders that is there, but for one that untar has begun and not finished."""
    found = _find_any(layout, split)
    is_begun = (layout.raw_partial_dir / split).is_dir()
    return None if found and is_begun and found.path == layout.images_dir(split) else found


def _find_any(layout: Layout, split: str) -> ImageFolders | None:
    folders = (layout.raw_dir / name for name in FOLDERS[split])
    return next((ImageFolders(folder, split) for folder in folders if folder.is_dir()), None)


def _find_boxes(layout: Layout, split: str) -> BoxFolder | None:
    folders = (layout.raw_dir / name for name in BOX_FOLDERS[split])
    return next((BoxFolder(folder) for folder in folders if folder.is_dir()), None)


KIND = SourceKind(
    name="folders train/ and validation/ (or val/), or Kaggle's ILSVRC/", find=_find, find_boxes=_find_boxes
)

UNFINISHED = SourceKind(name="folders that untar has begun", find=_find_any, find_boxes=no_boxes)
"""What is left if nothing else is there: the copy that they came from has gone."""
