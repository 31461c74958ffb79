"""OfficialTar, one split in its archive from image-net.org; boxes in two more archives."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.box_files import BOX_ARCHIVES, BoxArchive
from imagenet_prep.ilsvrc2012.source import SourceKind, finished, first_twice, label_of
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.archive_faults import REMEDY, duplicate, stranger
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.in_order import in_order
from imagenet_prep.sources.slices import slices_of
from imagenet_prep.sources.tars import Archive, NamedSlices, walk
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

TarTask = tuple[AnyPath, str, int, int | None]
"""An archive, the wnid of a class ("" for any), from which byte, to which (None: its end)."""


@dataclass(frozen=True, slots=True)
class OfficialTar:
    """The archive of a split: of train a tar of a tar a class, of validation all images in no order."""

    path: AnyPath
    split: str
    is_unpacked: ClassVar[bool] = False
    is_in_order: ClassVar[bool] = False
    missing: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """The name of its file."""
        return self.path.name

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size

    @property
    def md5(self) -> str:
        """The one that image-net.org publishes."""
        return facts.ARCHIVES[self.split].md5

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, read in place: a task for each class's tar within the train archive."""
        catalog = finished(in_order(engine, ArchiveIndex(self.split), self._tasks()), self.split)
        row = first_twice(catalog)
        if row is not None:
            raise duplicate(self.path, catalog.names[row], *sorted(catalog.offsets[row : row + 2]))
        return catalog

    def _tasks(self) -> list[TarTask]:
        """What can be indexed on its own: each class; of validation everything."""
        if self.split == facts.VALIDATION:
            return [(self.path, "", 0, None)]
        with slices_of(self.path) as view:
            return [(self.path, wnid, offset, offset + length) for wnid, (offset, length) in class_tars(view).items()]


def class_tars(view: NamedSlices, wanted: Collection[str] = ()) -> dict[str, tuple[int, int]]:
    """Offset and length of each class's tar, by wnid, in the train archive: no further than all ``wanted`` are found.

    Raises:
        InputError: a member is no tar of one of the 1000 classes, or a class is there twice; or it is damaged.
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
    """Indexes one tar of a split: that of a class, by itself or within the train archive, or all of validation."""

    split: str

    def __call__(self, task: TarTask) -> Catalog:
        """The images of a tar, sorted; raises InputError if it is damaged, or holds others."""
        archive, wnid, start, stop = task
        found = Catalog(containers=[Archive(archive)])
        inside = f"{wnid}.tar" if stop is not None else ""
        with slices_of(archive) as view:
            stamp = view.modified
            for name, offset, length in walk(view, start, stop, inside=inside, hint=REMEDY):
                label = label_of(name, self.split, wnid)
                if label is None:
                    raise stranger(archive, name, offset, f"images of {wnid}" if wnid else "validation images")
                found.append(name.decode(), offset, length, stamp, label)
        return found.sorted()


def _find(layout: Layout, split: str) -> OfficialTar | None:
    path = layout.archive_path(facts.ARCHIVES[split])
    return OfficialTar(path, split) if path.is_file() else None


def _find_boxes(layout: Layout, split: str) -> BoxArchive | None:
    path = layout.archive_path(facts.ARCHIVES[BOX_ARCHIVES[split]])
    return BoxArchive(path) if path.is_file() else None


KIND = SourceKind(name="the archives of image-net.org", find=_find, find_boxes=_find_boxes)
