"""OfficialTar, ClassTars: the archive of a split, or the tars in it -> the catalog of images."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.official import (
    ImageSource,
    class_folders,
    counted,
    finished,
    label_of,
    without_twins,
)
from imagenet_prep.ilsvrc2012.repacked import foreign_member, without_folders
from imagenet_prep.model import Engine, ProblemKind, Progress
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.obstacles import refuse, until_fault
from imagenet_prep.sources.skipped import SYSTEM_FILES, Skipped, is_system_file
from imagenet_prep.sources.slices import FileSlices, slices_of
from imagenet_prep.sources.tar_members import REMEDY, duplicate, stranger
from imagenet_prep.sources.tars import Archive, NamedSlices, in_order, walk
from imagenet_prep.storage.files import names_in
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.storage.store import RangedView
from imagenet_prep.text import number_of

_AT_ONCE = 4 << 20  # bytes of small tars in an archive of a store that are fetched by one request

TarTask = tuple[AnyPath, str, int, int | None]
"""An archive, the wnid of a class ("" for any), the start byte and the end byte (None:
the archive's end).
"""


class OfficialTar(ImageSource, frozen=True):
    """The archive of a split: train is a tar with a tar per class,
    validation has all images in no order.
    """

    @classmethod
    def find(cls, layout: Layout, split: str) -> OfficialTar | None:
        """The archive in the raw folder."""
        path = layout.archive_path(facts.ARCHIVES[split])
        return cls(path, split) if path.is_file() else None

    @property
    def md5(self) -> str:
        """The archive's published facts."""
        return facts.ARCHIVES[self.split].md5

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images: one task per class tar within the train archive,
        one for all of validation.
        """
        skipped = Skipped()
        groups = in_order(engine, _GroupIndex(self.split), _grouped(self._tasks(skipped)))
        parts = itertools.chain.from_iterable(groups)
        catalog = finished(counted(parts, skipped), self.split)
        skipped.note(self.path, progress)
        return without_twins(
            catalog,
            lambda row: duplicate(
                self.path, catalog.names[row], *sorted(catalog.offsets[row : row + 2].tolist())
            ),
        )

    def _tasks(self, skipped: Skipped) -> list[TarTask]:
        if self.split == facts.VALIDATION:
            return [(self.path, "", 0, None)]
        with slices_of(self.path) as view:
            places = class_tars(view, skipped=skipped)
        return [
            (self.path, wnid, offset, offset + length) for wnid, (offset, length) in places.items()
        ]


class ClassTars(ImageSource, frozen=True):
    """The train images as a folder of ``<wnid>.tar``: all classes, as the official archive unpacks,
    or some.

    No digest of a class tar is published, so every image is checked closely.
    """

    split: str = facts.TRAIN

    @classmethod
    def find(cls, layout: Layout, split: str) -> ClassTars | None:
        """The first folder with class tars that has no class folders."""
        if split != facts.TRAIN:
            return None
        raw_dir = layout.raw_dir
        unpacked_archive = layout.class_tars_dir(facts.ARCHIVES[split]).name
        for folder in (raw_dir / unpacked_archive, raw_dir / facts.TRAIN):
            tars = cls(folder)
            if tars.wnids() and not any(class_folders(folder)):
                return tars
        return None

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
        wnids = self.wnids()
        skipped = self._skip_strangers(wnids)
        tasks = ((self.tar(wnid), wnid, 0, None) for wnid in wnids)
        parts = in_order(engine, ArchiveIndex(self.split), tasks)
        catalog = finished(counted(parts, skipped), self.split, self.path)
        skipped.note(self.path, progress)
        return catalog

    def _skip_strangers(self, wnids: Iterable[str]) -> Skipped:
        """The entries of the folder that are no class tars."""
        skipped = Skipped()
        tars = {f"{wnid}.tar" for wnid in wnids}
        for name in sorted(set(names_in(self.path)) - tars):
            is_system = is_system_file(os.fsencode(name))
            skipped.add(SYSTEM_FILES if is_system else "entries that are no class tars", name)
        return skipped


def class_tars_in(layout: Layout) -> ClassTars:
    """The class tars in DATA_DIR itself, where download puts them."""
    return ClassTars(layout.class_tars_dir(facts.ARCHIVES[facts.TRAIN]))


def class_tars(
    view: NamedSlices, wanted: Collection[str] = (), *, skipped: Skipped | None = None
) -> dict[str, tuple[int, int]]:
    """Offset and length of each class's tar, by wnid, in the train archive; it stops once all
    ``wanted`` are found.

    ``skipped`` counts the files that a system added.

    Raises:
        InputError: a member is no tar of one of the 1000 classes, a class repeats, or the archive
            is damaged.
    """
    places: dict[str, tuple[int, int]] = {}
    pending_wnids = set(wanted)
    archive = str(view.path).rpartition("/")[2]
    for member, offset, length in until_fault(walk(view, hint=REMEDY), archive):
        name = without_folders(member)
        wnid = name[:-4].decode("ascii", "replace")
        if wnid not in facts.labels() or name[-4:] != b".tar":
            if not _skip_member(member, skipped):
                error = foreign_member(
                    view.path, member, offset, "tars with names such as n01440764.tar"
                )
                refuse(error, ProblemKind.STRAY_FILE, archive)
            continue
        if wnid in places:
            error = duplicate(view.path, f"{wnid}.tar", places[wnid][0], offset)
            refuse(error, ProblemKind.DUPLICATE, f"{wnid}.tar")
            continue
        places[wnid] = offset, length
        pending_wnids.discard(wnid)
        if wanted and not pending_wnids:
            break
    return places


def _grouped(tasks: Iterable[TarTask]) -> Iterator[list[TarTask]]:
    """The tars of an archive, one at a time; in a store,
    small ones that follow each other are together.
    """
    group: list[TarTask] = []
    for task in tasks:
        stop = task[3]
        is_apart = stop is None or local_or_none(task[0]) is not None
        if group and (is_apart or stop is None or stop - group[0][2] > _AT_ONCE):
            yield group
            group = []
        group.append(task)
    if group:
        yield group


class _GroupIndex(Struct, frozen=True):
    """Indexes tars that follow each other in an archive."""

    split: str

    def __call__(self, tasks: Sequence[TarTask]) -> list[tuple[Catalog, Skipped]]:
        """The images of each, as ArchiveIndex lists them."""
        archive, _, start, _ = tasks[0]
        stop = tasks[-1][3]
        with slices_of(archive) as view:
            if stop is not None and stop - start <= _AT_ONCE and len(tasks) > 1:
                view[start:stop]  # one request: the next ones are in it
            return [ArchiveIndex(self.split).of(view, task) for task in tasks]


class ArchiveIndex(Struct, frozen=True):
    """Indexes one tar of a split: a class tar, separate or within the train archive,
    or all of validation.
    """

    split: str

    def __call__(self, task: TarTask) -> tuple[Catalog, Skipped]:
        """The images of a tar, sorted, and the files that a system added.

        Raises:
            InputError: it is damaged, or holds other files.
        """
        with slices_of(task[0]) as view:
            return self.of(view, task)

    def of(self, view: FileSlices | RangedView, task: TarTask) -> tuple[Catalog, Skipped]:
        """The same of an open archive."""
        archive, wnid, start, stop = task
        rows: list[tuple[int, bytes, int, int]] = []
        skipped = Skipped()
        inside = f"{wnid}.tar" if stop is not None else ""
        members = walk(view, start, stop, inside=inside, hint=REMEDY)
        for name, offset, length in until_fault(members, inside or archive.name):
            label = label_of(name, self.split, wnid)
            if label is None:
                name, member = without_folders(name, wnid), name
                label = label_of(name, self.split, wnid)
            if label is not None:
                rows.append((label, name, offset, length))
            elif not _skip_member(member, skipped):
                error = self._foreign(archive, wnid, member, offset)
                _refuse_member(
                    error, name.decode("ascii", "replace"), self.split, wnid, inside or archive.name
                )
        table = CatalogBuilder(Archive(archive))
        modified = view.modified
        # A few hundred rows: sorting them is faster than sorting columns.
        for label, name, offset, length in sorted(rows):
            table.append(name.decode(), offset, length, modified, label)
        return table.listed(), skipped

    def _foreign(self, archive: AnyPath, wnid: str, member: bytes, offset: int) -> InputError:
        """The error for a member that is no image of the class;
        a tar within an archive is never unpacked.
        """
        if wnid:
            return stranger(archive, member, offset, f"images of {wnid}")
        return foreign_member(archive, member, offset, "validation images")


def _skip_member(member: bytes, skipped: Skipped | None) -> bool:
    """Count a member that a system added; returns whether it is one."""
    if not is_system_file(member):
        return False
    if skipped is not None:
        skipped.add(SYSTEM_FILES, member.decode("utf-8", "backslashreplace"))
    return True


def _refuse_member(error: InputError, name: str, split: str, wnid: str, archive: str) -> None:
    """Refuse a member of an archive that is no image of its class;
    it may be one of another class.
    """
    true_wnid = facts.class_of(name, split)
    if wnid and true_wnid in facts.labels():
        refuse(error, ProblemKind.WRONG_LABEL, archive, image=name, expected=true_wnid, got=wnid)
    else:
        refuse(error, ProblemKind.STRAY_FILE, archive, image=name)
