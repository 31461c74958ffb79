"""Archives -> image folders, train/<wnid>/ and validation/<wnid>/ in raw-data: the form PyTorch's ImageFolder reads.

A worker puts together a class in a folder aside, with what the final folder lacks; every few seconds the parent syncs
the file system once and moves the finished classes to their place. So a class folder under its final name is whole,
and what a crash leaves aside is made again by the next run. Python's tarfile takes no part in it: only names of the
data set's own form become paths, and nothing is written through a link.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from imagenet_prep.errors import InputError, SpaceError, UsageError, WriteError, named
from imagenet_prep.escaping import command
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.estimates import folders_need
from imagenet_prep.ilsvrc2012.official import OfficialTar, class_tars
from imagenet_prep.ilsvrc2012.raw_data import find_packed
from imagenet_prep.ilsvrc2012.source import ImageSource
from imagenet_prep.ilsvrc2012.unpacking import ClassRows, classes_of, folders_of, sizes_in, write_class, write_in_order
from imagenet_prep.model import Done, Engine, Outcomes, Progress, Silent
from imagenet_prep.sources.archive_faults import REMEDY, duplicate, stranger
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.sources.tar_members import Member
from imagenet_prep.sources.tars import walk
from imagenet_prep.storage.durable import begin_write_out, fsync_dir, sync_file_system
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.space import Need, refuse_lack
from imagenet_prep.text import number_of

_SYNC_SECONDS = 5.0
_LONGEST_NAME = 100  # bytes; a tar's own limit without extensions

_Places = dict[str, tuple[int, int]]
"""Offset in the archive and length in bytes of each image, by name."""


@dataclass(frozen=True, slots=True)
class UntarSplit:
    """One split's part of an UntarSummary: how many classes and images there are, and how many images were written."""

    split: str
    classes: int
    images: int
    written: int


@dataclass(frozen=True, slots=True)
class UntarSummary:
    """What untar did; a split whose archive isn't there is not in it."""

    splits: tuple[UntarSplit, ...]

    @property
    def written(self) -> int:
        """Images written by this run; 0 if everything was there."""
        return sum(split.written for split in self.splits)


@dataclass(frozen=True, slots=True)
class _Archive:
    """An archive, and what shows whether it is still the one whose members were listed."""

    path: Path
    stamp: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Class:
    """A class of a split: the tar at ``start`` to ``stop`` of its archive, or, if that is empty, ``members``."""

    split: str
    wnid: str
    size: int
    start: int = 0
    stop: int = 0
    members: tuple[Member, ...] = ()


_Task = _Class | ClassRows


def untar(layout: Layout, engine: Engine, *, progress: Progress | None = None) -> UntarSummary:
    """Write every image that isn't there yet, or not in its right size, to its class folder.

    Interrupted at any moment, the next call goes on from there; if nothing is missing, nothing is touched.

    Raises:
        InputError: an archive is corrupt, changes meanwhile, or holds what can't be of this data set; or there is none.
        DataProblemsError, WorkerError: a worker was killed three times on a class, or has a bug; the others are done.
        UsageError: a folder to write to is a link.
        SpaceError, BusyError, WriteError: as their names say.
    """
    layout.refuse_urls()
    progress = progress or Silent()
    with hold(layout.lock_paths):
        sources = _find_sources(layout, progress)
        archives, catalogs, classes = _list(layout, sources, engine, progress)
        refuse_lack(_needs(layout, classes))
        found = _untar_classes(classes, catalogs, _Unpacker(layout, archives), engine, progress)
        partial = local_path(layout.raw_partial_dir)
        for folder in (*(partial / split for split in sources), partial):
            with contextlib.suppress(OSError):  # something is left in it
                folder.rmdir()
        return UntarSummary(tuple(found.values()))


def foresee(layout: Layout, engine: Engine, *, progress: Progress | None = None) -> tuple[Need, ...]:
    """What the class folders that are not there yet will take of the disk; nothing is written.

    Raises:
        InputError, UsageError: as ``untar``.
    """
    layout.refuse_urls()
    progress = progress or Silent()
    return tuple(_needs(layout, _list(layout, _find_sources(layout, progress), engine, progress)[2]))


# before the start ----------------------------------------------------------------------------------------------


def _find_sources(layout: Layout, progress: Progress) -> dict[str, ImageSource]:
    sources = {split: source for split in facts.SPLITS if (source := find_packed(layout, split))}
    for split in facts.SPLITS:
        if split not in sources:
            path = layout.archive_path(facts.ARCHIVES[split])
            progress.note(f"{split}: no archive {path}, so nothing is done for it")
    if not sources:
        names = " nor ".join(facts.ARCHIVES[split].filename for split in facts.SPLITS)
        raise InputError(
            f"no archives in {layout.raw_dir}",
            f"found neither {names}, nor another copy in one file",
            command("download", layout.data_dir),
        )
    return sources


def _list(
    layout: Layout, sources: Mapping[str, ImageSource], engine: Engine, progress: Progress
) -> tuple[dict[str, _Archive], dict[str, Catalog], dict[str, Sequence[_Task]]]:
    """The official archives, the images of other copies, and the classes of both."""
    _refuse_links(layout, sources)
    archives, catalogs = _stamped(sources), _listed(sources, engine, progress)
    classes: dict[str, Sequence[_Task]]
    classes = {split: _list_classes(archive.path, split) for split, archive in archives.items()}
    classes |= {split: classes_of(catalog) for split, catalog in catalogs.items()}
    return archives, catalogs, classes


def _stamped(sources: Mapping[str, ImageSource]) -> dict[str, _Archive]:
    """The official archives: a class's tar is listed by the worker that writes it out, so that one harms no other."""
    archives: dict[str, _Archive] = {}
    for split, source in sources.items():
        if isinstance(source, OfficialTar):
            path = local_path(source.path)
            with FileSlices(path) as view:
                archives[split] = _Archive(path, view.stamp)
    return archives


def _listed(sources: Mapping[str, ImageSource], engine: Engine, progress: Progress) -> dict[str, Catalog]:
    """All images of other copies."""
    others = {split: source for split, source in sources.items() if not isinstance(source, OfficialTar)}
    return {split: source.catalog(engine, progress) for split, source in others.items()}


def _refuse_links(layout: Layout, splits: Iterable[str]) -> None:
    """A link among the folders below raw-data would carry images out of it."""
    for split in splits:
        partial = local_path(layout.raw_partial_dir)
        parents = (local_path(layout.images_dir(split)), partial, partial / split)
        for folder in (*parents, *_subfolders(parents[0]), *_subfolders(parents[2])):
            if folder.is_symlink():
                raise UsageError(
                    f"{folder} is a link",
                    "expected a folder: images are not written through links",
                    f"remove the link (to keep the images elsewhere, link {layout.own_raw_dir} as a whole)",
                )


def _subfolders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [folder / entry.name for entry in os.scandir(folder) if facts.is_wnid(entry.name)]


def _list_classes(archive: Path, split: str) -> list[_Class]:
    """The work, a class at a time: a tar each of the train archive, some 50 members of the validation archive."""
    with FileSlices(archive) as view:
        if split == facts.VALIDATION:
            return _sort_validation(view, split)
        tars = class_tars(view)
    return [_Class(split, wnid, length, offset, offset + length) for wnid, (offset, length) in tars.items()]


def _sort_validation(view: FileSlices, split: str) -> list[_Class]:
    found: dict[str, list[Member]] = {}
    for member in walk(view, hint=REMEDY):
        name, offset, _ = member
        number = facts.validation_number(name.decode("ascii", "replace"))
        if number is None:
            raise stranger(view.path, name, offset, f"names like {facts.validation_filename(1)}")
        found.setdefault(facts.validation_wnids()[number - 1], []).append(member)
    return [
        _Class(split, wnid, sum(length for _, _, length in found[wnid]), members=tuple(found[wnid]))
        for wnid in sorted(found)
    ]


def _needs(layout: Layout, classes: Mapping[str, Sequence[_Task]]) -> Iterator[Need]:
    """A class takes about its archive's bytes; one that has its folder is taken as whole."""
    for split, tasks in classes.items():
        folder = local_path(layout.images_dir(split))
        present = {each.name for each in _subfolders(folder)}
        todo = [task for task in tasks if task.wnid not in present]
        aside = [each for each in _subfolders(local_path(layout.raw_partial_dir) / split) if each.name not in present]
        size = sum(task.size for task in todo) - sum(sum(sizes_in(each).values()) for each in aside)
        yield folders_need(layout, split, classes=len(todo), size=size)


# the work ------------------------------------------------------------------------------------------------------


def _untar_classes(
    classes: Mapping[str, Sequence[_Task]],
    catalogs: Mapping[str, Catalog],
    unpacker: _Unpacker,
    engine: Engine,
    progress: Progress,
) -> dict[str, UntarSplit]:
    """All splits' classes in one go, so that nobody waits for the last class of a split; one that fails stops no other.

    Only on a full disk is there no point in going on.
    """
    failures: list[Exception] = []
    publisher = _Publisher(unpacker.layout, failures)
    found = {split: UntarSplit(split, len(tasks), 0, 0) for split, tasks in classes.items()}
    progress.begin("untar", sum(task.size for split in classes for task in classes[split]), "B")
    try:
        with contextlib.closing(_outcomes(classes, catalogs, unpacker, engine)) as outcomes:
            for outcome in outcomes:
                task = outcome.task
                if not isinstance(outcome, Done):
                    failures.append(named(outcome.error, f"{task.split} {task.wnid}"))
                    if isinstance(outcome.error, SpaceError):
                        failures[:] = [outcome.error]
                        break
                    continue
                images, written = outcome.value
                so_far = found[task.split]
                found[task.split] = replace(so_far, images=so_far.images + images, written=so_far.written + written)
                if written:
                    publisher.add(task)
                progress.advance(task.size)
        publisher.publish()
    finally:
        progress.end()
    if failures:
        if len(failures) > 1:
            failed = number_of(len(failures), "class", "classes")
            progress.note(f"{failed} failed, the first one as follows; every other one is in its place")
        raise failures[0]
    return found


def _outcomes(
    classes: Mapping[str, Sequence[_Task]], catalogs: Mapping[str, Catalog], unpacker: _Unpacker, engine: Engine
) -> Outcomes[_Task, tuple[int, int]]:
    """How many images each class has, and how many were written: by workers, but of copies that are read in order."""
    ordered = {split for split, catalog in catalogs.items() if catalog.is_in_order}
    tasks = (
        task.alone(catalogs[split]) if isinstance(task, ClassRows) else task
        for split in classes
        if split not in ordered
        for task in classes[split]
    )
    with contextlib.closing(engine.map(unpacker, tasks)) as outcomes:
        yield from outcomes
    for split in classes:
        if split in ordered:
            yield from write_in_order(classes_of(catalogs[split]), catalogs[split], unpacker.layout)


@dataclass(frozen=True, slots=True)
class _Unpacker:
    """Puts together, in a partial folder, what the final folder of a class lacks. Runs in workers."""

    layout: Layout
    archives: dict[str, _Archive]

    def __call__(self, task: _Task) -> tuple[int, int]:
        """How many images the class has, and how many of them are now in the partial folder, ready to be moved."""
        if isinstance(task, ClassRows):
            return write_class(task, self.layout)
        archive = self.archives[task.split]
        final, partial = folders_of(self.layout, task)
        with FileSlices(archive.path) as view, _unchanged(archive, view):
            wanted = _index(task, view)
            with writing(final):
                present = sizes_in(final)
            missing = {name: where for name, where in wanted.items() if present.get(name) != where[1]}
            with writing(partial):
                if partial.exists():  # of an earlier run; what it holds may not have reached the disk
                    shutil.rmtree(partial)
                if missing:
                    _fill(partial, missing, view)
        return len(wanted), len(missing)


@contextlib.contextmanager
def _unchanged(archive: _Archive, view: FileSlices) -> Iterator[None]:
    """Let nothing that is found in a file count, good or bad, unless it is the archive that was listed, to the end."""

    def check() -> None:
        if view.stamp != archive.stamp:
            raise InputError(
                f"{archive.path} changed while it was read",
                "another file took its place, or something wrote to it",
                "run the same command again once nothing does",
            )

    check()
    try:
        yield
    except InputError:
        check()
        raise
    check()


def _index(task: _Class, view: FileSlices) -> _Places:
    """Where each image is, by name; every name is safe to make a path of."""
    wanted: _Places = {}
    members: Iterable[Member] = task.members or walk(view, task.start, task.stop, hint=REMEDY)
    for raw, offset, length in members:
        name = raw.decode("ascii", "replace")
        is_ours = bool(task.members) or facts.train_wnid(name) == task.wnid
        if not is_ours or len(name) > _LONGEST_NAME:
            raise stranger(view.path, raw, offset, f"names like {task.wnid}_1.JPEG")
        if name in wanted:
            raise duplicate(view.path, name, wanted[name][0], offset)
        wanted[name] = offset, length
    return wanted


def _fill(folder: Path, missing: _Places, view: FileSlices) -> None:
    """Make a folder that holds just ``missing``."""
    folder.mkdir(parents=True)
    for name, (offset, length) in missing.items():
        descriptor = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            view.copy(offset, length, descriptor)
            begin_write_out(descriptor)
        finally:
            os.close(descriptor)


class _Publisher:
    """Moves finished classes to their final place, many after one sync; what can't be moved joins the ``failures``."""

    def __init__(self, layout: Layout, failures: list[Exception]) -> None:
        self._layout = layout
        self._failures = failures
        self._waiting: list[_Task] = []
        self._last = time.monotonic()

    def add(self, task: _Task) -> None:
        """Take a class whose partial folder is complete."""
        self._waiting.append(task)
        if time.monotonic() - self._last > _SYNC_SECONDS:
            self.publish()

    def publish(self) -> None:
        """Make what waits durable, once for all its files, and then visible."""
        if self._waiting:
            raw_dir = local_path(self._layout.own_raw_dir)
            with writing(raw_dir):
                sync_file_system(raw_dir)
            moved = [task for task in self._waiting if self._publish_class(task)]
            with writing(raw_dir):
                for split in {task.split for task in moved}:
                    fsync_dir(raw_dir / split)
                fsync_dir(raw_dir)
        self._waiting.clear()
        self._last = time.monotonic()

    def _publish_class(self, task: _Task) -> bool:
        final, partial = folders_of(self._layout, task)
        try:
            with writing(final):
                _move(partial, final)
        except WriteError as error:
            self._failures.append(error)
            return False
        return True


def _move(partial: Path, final: Path) -> None:
    if not final.exists():
        final.parent.mkdir(parents=True, exist_ok=True)
        partial.rename(final)
        return
    for name in os.listdir(partial):
        (partial / name).replace(final / name)
    fsync_dir(final)
    partial.rmdir()
