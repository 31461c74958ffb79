"""ClassTars, the train images as a folder of a tar a class: of all classes, as the outer tar unpacks, or of some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.official import ArchiveIndex
from imagenet_prep.ilsvrc2012.source import SourceKind, finished, no_boxes, refuse_twice_in
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.in_order import in_order
from imagenet_prep.storage.files import names_in, scan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import number_of

_SUFFIX = ".tar"


@dataclass(frozen=True, slots=True)
class ClassTars:
    """A folder of ``<wnid>.tar``. No digest of any is published: every image is looked at closely."""

    path: AnyPath
    split: ClassVar[str] = facts.TRAIN
    is_unpacked: ClassVar[bool] = False
    is_in_order: ClassVar[bool] = False
    missing: ClassVar[str] = ""
    md5: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """How many there are."""
        return number_of(len(self.wnids()), "class tar")

    @property
    def size(self) -> int:
        """Bytes of the tars."""
        return sum(self.tar(wnid).stat().st_size for wnid in self.wnids())

    def wnids(self) -> list[str]:
        """The classes that are there."""
        try:
            names = set(names_in(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [wnid for wnid in facts.synsets() if f"{wnid}{_SUFFIX}" in names]

    def tar(self, wnid: str) -> AnyPath:
        """Where the tar of a class is, or would be."""
        return self.path / f"{wnid}{_SUFFIX}"

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, read in place: a task a class."""
        tasks = ((self.tar(wnid), wnid, 0, None) for wnid in self.wnids())
        return refuse_twice_in(self.path, finished(in_order(engine, ArchiveIndex(self.split), tasks), self.split))


def class_tars_in(layout: Layout) -> ClassTars:
    """Those in DATA_DIR itself, where download puts them."""
    return ClassTars(layout.class_tars_dir(facts.ARCHIVES[facts.TRAIN]))


def _find(layout: Layout, split: str) -> ClassTars | None:
    if split != facts.TRAIN:
        return None
    own = layout.class_tars_dir(facts.ARCHIVES[split])
    places = [layout.raw_dir / own.name, own, layout.raw_dir / facts.TRAIN]
    return next((found for path in places if (found := ClassTars(path)).wnids() and not _has_folders(path)), None)


def _has_folders(path: AnyPath) -> bool:
    with scan(path) as entries:
        return any(facts.is_wnid(entry.name) and entry.is_dir() for entry in entries)


KIND = SourceKind(name="class tars", find=_find, find_boxes=no_boxes)
