"""Extracts archives to image folders, raw-data/{train,validation}/<wnid>/, which PyTorch's
ImageFolder reads.

A worker fills a temporary folder with the images that the final class folder lacks. Every few
seconds the parent syncs the file system once and moves the finished classes. So a class folder
under its final name is whole, and the next run makes a crash's remains again. Python's tarfile is
not used: only names in the data set's own form become paths, and nothing is written through a link.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError, PrepError, SpaceError, UsageError, WriteError, named
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.astray import download_hint, refuse_astray, refuse_wrong_folder
from imagenet_prep.ilsvrc2012.coming_needs import folders_need
from imagenet_prep.ilsvrc2012.official import ImageSource, finished
from imagenet_prep.ilsvrc2012.official_tars import ArchiveIndex, OfficialTar, TarTask, class_tars
from imagenet_prep.ilsvrc2012.raw_data import find_packed, find_source, hint_to_own_raw_data
from imagenet_prep.model import Done, Engine, Failed, Outcomes, Progress, Silent
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.row_bytes import refuse_changed, write_rows
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.sources.tar_members import duplicate
from imagenet_prep.storage.durable import fsync_dir, make_folders, sync_file_system
from imagenet_prep.storage.files import lack_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.space import Need, refuse_lack
from imagenet_prep.text import number_of

_SYNC_SECONDS = 5.0


class UntarSplit(Struct, frozen=True):
    """One split of an UntarSummary: its number of classes and images,
    and the number of images written.
    """

    split: str
    classes: int
    images: int
    written: int


class UntarSummary(Struct, frozen=True):
    """The summary of untar; a split without an archive is not in it."""

    splits: tuple[UntarSplit, ...]

    @property
    def written(self) -> int:
        """Images written by this run; 0 if everything existed."""
        return sum(split.written for split in self.splits)


class ClassTask(Struct, frozen=True):
    """A class of a split whose images are written.

    Args:
        rows: its rows in the split's catalog; all rows of ``catalog``, which a worker gets.
        tar: instead of both, a class's tar in the train archive: the worker lists it, so that a bad
            tar harms no other.
    """

    split: str
    wnid: str
    size: int
    rows: range = range(0)
    catalog: Catalog | None = None
    tar: TarTask | None = None


_Classes = Mapping[str, Sequence[ClassTask]]
_Stamps = dict[str, tuple[Path, tuple[int, int, int]]]
"""The official archives by split, with stamps that show whether they
changed after they were listed.
"""


def untar(layout: Layout, engine: Engine, *, progress: Progress | None = None) -> UntarSummary:
    """Write every image that is missing or has a wrong size to its class folder.

    An interrupted run resumes; if nothing is missing, nothing is touched.

    Raises:
        InputError: an archive is corrupt, changes meanwhile, or holds foreign files; or there is
            none.
        DataProblemsError, WorkerError: a worker was killed three times on a class, or has a bug;
            other classes finish.
        UsageError: an output folder is a link.
        SpaceError, BusyError, WriteError: no space is left, another run works here, or the storage
            fails.
    """
    layout.refuse_urls()
    progress = progress or Silent()
    with hold(layout.lock_paths, instead=layout.advice_if_read_only):
        sources = _find_sources(layout, progress)
        stamps, catalogs, classes = _list(layout, sources, engine, progress)
        partial = local_path(layout.raw_partial_dir)
        split_folders = [partial / split for split in sources]
        folders = itertools.chain.from_iterable(map(_subfolders, split_folders))
        leftovers = [folder for folder in folders if folder.is_dir()]
        refuse_lack([*_needs(layout, classes), *map(_freed, leftovers)])
        for folder in leftovers:  # from an earlier run; its content may not be durable
            shutil.rmtree(folder, ignore_errors=True)
        summaries = _untar_classes(classes, catalogs, _Unpacker(layout, stamps), engine, progress)
        for folder in (*split_folders, partial):
            with contextlib.suppress(OSError):  # the folder is not empty
                folder.rmdir()
        return UntarSummary(tuple(summaries.values()))


def foresee(
    layout: Layout, engine: Engine, *, progress: Progress | None = None
) -> tuple[Need, ...]:
    """Estimate the disk space that the missing class folders require; nothing is written.

    Raises:
        InputError, UsageError: as ``untar``.
    """
    layout.refuse_urls()
    progress = progress or Silent()
    sources = _find_sources(layout, progress)
    _, _, classes = _list(layout, sources, engine, progress)
    return tuple(_needs(layout, classes))


# before the start ---------------------------------------------------------------------------------


def _find_sources(layout: Layout, progress: Progress) -> dict[str, ImageSource]:
    refuse_wrong_folder(layout)
    sources: dict[str, ImageSource] = {}
    notes = []
    folders = 0
    for split in facts.SPLITS:
        packed = find_packed(layout, split)
        if packed is not None:
            sources[split] = packed
            continue
        unpacked = find_source(layout, split)
        if unpacked is not None:
            folders += 1
            notes.append(f"{split}: skipped, because its images are in folders: {unpacked.path}")
            continue
        refuse_astray(layout, split)
        name = facts.ARCHIVES[split].filename
        notes.append(
            f"{split}: skipped, because {layout.raw_dir} has no file {name}, "
            "and no other archive of its images"
        )
    if not sources and not folders:
        names = " or ".join(facts.ARCHIVES[split].filename for split in facts.SPLITS)
        raise InputError(
            lack_of(layout.raw_dir, f"no archives in {layout.raw_dir}"),
            f"expected {names}, or a copy of ImageNet from Kaggle or Hugging Face",
            hint_to_own_raw_data(layout) or download_hint(layout),
        )
    for note in notes:
        progress.note(note)
    return sources


def _list(
    layout: Layout, sources: Mapping[str, ImageSource], engine: Engine, progress: Progress
) -> tuple[_Stamps, dict[str, Catalog], _Classes]:
    """The official archives, the images of all splits except train, and the classes."""
    _refuse_links(layout, sources)
    stamps: _Stamps = {}
    catalogs: dict[str, Catalog] = {}
    classes: dict[str, Sequence[ClassTask]] = {}
    for split, source in sources.items():
        path = local_path(source.path)
        if not isinstance(source, OfficialTar):
            catalogs[split] = source.catalog(engine, progress)
            classes[split] = _classes_of(catalogs[split])
            continue
        with FileSlices(path) as view:
            stamps[split] = path, view.stamp
        if split == facts.VALIDATION:
            list_archive = ArchiveIndex(split)
            catalog, skipped = list_archive((path, "", 0, None))
            skipped.note(path, progress)
            catalogs[split] = finished([catalog], split)
            classes[split] = _classes_of(catalogs[split])
        else:
            classes[split] = _class_tars(path)
    return stamps, catalogs, classes


def _class_tars(archive: Path) -> list[ClassTask]:
    """A task for each tar of the train archive."""
    tasks = []
    with FileSlices(archive) as view:
        for wnid, (offset, length) in class_tars(view).items():
            tar = (archive, wnid, offset, offset + length)
            task = ClassTask(facts.TRAIN, wnid, length, tar=tar)
            tasks.append(task)
    return tasks


def _classes_of(catalog: Catalog) -> list[ClassTask]:
    """Each class in turn, as the rows of a split's catalog are sorted."""
    tasks, start = [], 0
    for label, count in catalog.count_by_label().items():
        wnid = catalog.classes[label][0]
        rows = range(start, start + count)
        size = catalog.size(rows)
        tasks.append(ClassTask(catalog.split, wnid, size, rows))
        start += count
    return tasks


def _refuse_links(layout: Layout, splits: Iterable[str]) -> None:
    """Refuse links among the folders below raw-data: images would be written elsewhere."""
    partial = local_path(layout.raw_partial_dir)
    for split in splits:
        final_split = local_path(layout.images_dir(split))
        partial_split = partial / split
        class_folders = [*_subfolders(final_split), *_subfolders(partial_split)]
        for folder in (final_split, partial, partial_split, *class_folders):
            if folder.is_symlink():
                raise UsageError(
                    f"{folder} is a link",
                    "expected a folder: images are not written through links",
                    "remove the link (to keep the images elsewhere, "
                    f"link {layout.own_raw_dir} as a whole)",
                )


def _subfolders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [folder / entry.name for entry in os.scandir(folder) if facts.is_wnid(entry.name)]


def _needs(layout: Layout, classes: _Classes) -> Iterator[Need]:
    """Estimate a class at its archive's bytes; a class with a folder counts as done."""
    for split, tasks in classes.items():
        folder = local_path(layout.images_dir(split))
        present = {subfolder.name for subfolder in _subfolders(folder)}
        todo = [task for task in tasks if task.wnid not in present]
        size = sum(task.size for task in todo)
        yield folders_need(layout, split, classes=len(todo), size=size)


def _freed(folder: Path) -> Need:
    """The space that a leftover gives back: it is removed before anything is written."""
    sizes = [path.lstat().st_size for path in folder.iterdir()]
    return Need("untar", "", folder, -sum(sizes), -len(sizes))


# the work -----------------------------------------------------------------------------------------


def _untar_classes(
    classes: _Classes,
    catalogs: Mapping[str, Catalog],
    unpacker: _Unpacker,
    engine: Engine,
    progress: Progress,
) -> dict[str, UntarSplit]:
    """Extract the classes of all splits in one pass, without waiting between splits; a failed class
    stops no other.

    Only a full disk stops all.
    """
    failures: list[Exception] = []
    publisher = _Publisher(unpacker.layout, failures)
    summaries: dict[str, UntarSplit] = {}
    total_bytes = 0
    for split, tasks in classes.items():
        summaries[split] = UntarSplit(split, len(tasks), 0, 0)
        total_bytes += sum(task.size for task in tasks)
    progress.begin("untar", total_bytes, "B")
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
                summary = summaries[task.split]
                all_images = summary.images + images
                all_written = summary.written + written
                summaries[task.split] = replace(summary, images=all_images, written=all_written)
                if written:
                    publisher.add(task)
                progress.advance(task.size)
        publisher.publish()
    finally:
        progress.end()
    if failures:
        if len(failures) > 1:
            count = number_of(len(failures), "error")
            progress.note(f"{count}; finished class folders are kept. The first error:")
        raise failures[0]
    return summaries


def _outcomes(
    classes: _Classes, catalogs: Mapping[str, Catalog], unpacker: _Unpacker, engine: Engine
) -> Outcomes[ClassTask, tuple[int, int]]:
    """The number of images per class, and of images written, by workers;
    copies read in order need no worker.
    """
    ordered = [split for split in classes if split in catalogs and catalogs[split].is_in_order]
    for_workers = [tasks for split, tasks in classes.items() if split not in ordered]
    tasks = (_with_catalog(task, catalogs) for task in itertools.chain.from_iterable(for_workers))
    with contextlib.closing(engine.map(unpacker, tasks)) as outcomes:
        yield from outcomes
    for split in ordered:
        yield from _write_in_order(classes[split], catalogs[split], unpacker.layout)


def _with_catalog(task: ClassTask, catalogs: Mapping[str, Catalog]) -> ClassTask:
    """The task with the rows of its class alone, as a worker gets it."""
    if not task.rows:
        return task
    catalog = catalogs[task.split].whole(task.rows)
    return replace(task, rows=range(len(task.rows)), catalog=catalog)


class _Unpacker(Struct, frozen=True):
    """Writes the images that a class's final folder lacks to a partial folder. Runs in workers."""

    layout: Layout
    stamps: _Stamps

    def __call__(self, task: ClassTask) -> tuple[int, int]:
        """The number of images of the class, and of images in the partial
        folder that are ready to be moved.
        """
        if task.split not in self.stamps:
            return self._write(task)
        path, stamp = self.stamps[task.split]
        with FileSlices(path) as view:
            refuse_changed(path, view.stamp == stamp)
            try:
                return self._write(task)
            # no finding counts, good or bad, unless the file stays the listed one to the end
            finally:
                refuse_changed(path, view.stamp == stamp)

    def _write(self, task: ClassTask) -> tuple[int, int]:
        catalog = task.catalog or _list_class(task)
        row = catalog.names.first_twice()
        if row is not None:
            offsets = sorted(catalog.offsets[row : row + 2].tolist())
            raise duplicate(catalog.container(row).path, catalog.names[row], *offsets)
        missing = _begin(self.layout, task, catalog, range(len(catalog)))
        _, partial = _folders_of(self.layout, task)
        with writing(partial):
            written = sum(1 for _ in write_rows(catalog, missing, lambda _: partial))
        return len(catalog), written


def _list_class(task: ClassTask) -> Catalog:
    assert task.tar is not None
    return ArchiveIndex(task.split)(task.tar)[0]


def _write_in_order(
    tasks: Sequence[ClassTask], catalog: Catalog, layout: Layout
) -> Outcomes[ClassTask, tuple[int, int]]:
    """Extract all classes of a split in one pass: its images are in no order of classes."""
    missing: dict[str, list[int]] = {}
    for task in tasks:
        try:
            missing[task.wnid] = _begin(layout, task, catalog, task.rows)
        except PrepError as error:
            yield Failed(task, error)
    folders: dict[int, Path] = {}
    for task in tasks:
        label = catalog.labels[task.rows.start]
        _, folders[label] = _folders_of(layout, task)
    rows = list(itertools.chain.from_iterable(missing.values()))
    try:
        with writing(layout.raw_partial_dir):
            for _ in write_rows(catalog, rows, lambda row: folders[catalog.labels[row]]):
                pass
    except PrepError as error:
        yield Failed(tasks[0], error)
        return
    for task in tasks:
        if task.wnid in missing:
            yield Done(task, (len(task.rows), len(missing[task.wnid])))


def _begin(layout: Layout, task: ClassTask, catalog: Catalog, rows: range) -> list[int]:
    """The rows of a class that its final folder lacks;
    if there are any, it also makes an empty folder for them.
    """
    final, partial = _folders_of(layout, task)
    with writing(final):
        present = _sizes_in(final)
    missing = [row for row in rows if present.get(catalog.names[row]) != catalog.lengths[row]]
    with writing(partial):
        if missing:
            # from a worker that was killed on this class
            shutil.rmtree(partial, ignore_errors=True)
            make_folders(partial)
    return missing


def _folders_of(layout: Layout, task: ClassTask) -> tuple[Path, Path]:
    """The final and the partial folder of a class."""
    final = local_path(layout.images_dir(task.split))
    partial = local_path(layout.raw_partial_dir)
    return final / task.wnid, partial / task.split / task.wnid


def _sizes_in(folder: Path) -> dict[str, int]:
    """The size of each file in a folder by name, -1 if it is not a plain file;
    nothing without a folder.
    """
    try:
        with os.scandir(folder) as entries:
            return {
                entry.name: entry.stat().st_size if entry.is_file(follow_symlinks=False) else -1
                for entry in entries
            }
    except FileNotFoundError:
        return {}


class _Publisher:
    """Moves finished classes to their final folders, many after one sync;
    a failed move joins the ``failures``.
    """

    def __init__(self, layout: Layout, failures: list[Exception]) -> None:
        self._layout = layout
        self._failures = failures
        self._waiting: list[ClassTask] = []
        self._published_at = time.monotonic()

    def add(self, task: ClassTask) -> None:
        """Add a class whose partial folder is complete."""
        self._waiting.append(task)
        if time.monotonic() - self._published_at > _SYNC_SECONDS:
            self.publish()

    def publish(self) -> None:
        """Make the waiting classes durable, with one sync, and then visible."""
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
        self._published_at = time.monotonic()

    def _publish_class(self, task: ClassTask) -> bool:
        final, partial = _folders_of(self._layout, task)
        try:
            with writing(final):
                _move(partial, final)
        except WriteError as error:
            self._failures.append(error)
            return False
        return True


def _move(partial: Path, final: Path) -> None:
    if not final.exists():
        make_folders(final.parent)
        partial.rename(final)
        return
    for name in os.listdir(partial):
        (partial / name).replace(final / name)
    fsync_dir(final)
    partial.rmdir()
