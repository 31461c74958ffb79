"""ShardExporter: one shard in another container, read back. export_shards: all of them, settled one after the other.

A worker packs a shard into a folder of its own among the unfinished things, and reads all of it back. The parent makes
what is packed durable, for many shards at a time, gives the files their names, makes those durable, and only then
records the shards in the journal. So nothing has its final name before it is whole, checked and on the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError, WriteError, named
from imagenet_prep.exports.image_tree import same_name
from imagenet_prep.exports.packing import PackedFile, Packer
from imagenet_prep.exports.reading_back import crc_of
from imagenet_prep.exports.source_shard import SourceShard
from imagenet_prep.model import Done, Engine, Progress, ShardInfo
from imagenet_prep.state.journal import Journal
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.plain import load_json
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.space import AGAIN, space_errors

SETTLE_SECONDS = 2.0
"""How often packed shards get their names: a kill costs what was packed since."""


@dataclass(frozen=True, slots=True)
class ExportTask:
    """One shard's work: ``fingerprint`` is of what decides the bytes of its files, below ``target``."""

    shard: SourceShard
    fingerprint: str
    target: Layout

    @property
    def folder(self) -> Path:
        """Where its files are made."""
        return self.target.partial_dir / self.shard.name


@dataclass(frozen=True, slots=True)
class Packed:
    """A shard that is packed and read back: its line of the journal, and its files."""

    info: ShardInfo
    files: tuple[PackedFile, ...]


@dataclass(frozen=True, slots=True)
class ShardExporter:
    """Packs shards; picklable."""

    packer: Packer

    def __call__(self, task: ExportTask) -> Packed:
        """Pack the shard of a task, and read it back.

        Raises:
            InputError: the shard is damaged, or can't be put there.
            SpaceError, WriteError: the disk is full, or fails.
        """
        shutil.rmtree(task.folder, ignore_errors=True)
        with _cleared(task.folder), space_errors(task.folder):
            task.folder.mkdir()
            files = tuple(self.packer.pack(task.shard, task.folder))
            for each in files:
                path = task.folder / each.stored
                if path.stat().st_size != each.size or crc_of(path) != each.crc:
                    raise WriteError(f"{path} does not read back as it was written", "", f"check the disk {AGAIN}")
            listing = _encode(files)
            (task.folder / _LISTING).write_bytes(listing)
        records, size = sum(each.records for each in files), sum(each.size for each in files)
        digest = hashlib.sha256(listing).hexdigest()
        return Packed(ShardInfo(task.shard.name, task.fingerprint, records, size, digest), files)


_LISTING = "files"


@contextlib.contextmanager
def _cleared(folder: Path) -> Iterator[None]:
    """Leave nothing of a shard that failed: a full disk would stay full."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _encode(files: Sequence[PackedFile]) -> bytes:
    return json.dumps([[each.path, each.size, f"{each.crc:08x}"] for each in files]).encode() + b"\n"


def finished_files(target: Layout, info: ShardInfo) -> list[str] | None:
    """The paths of a shard's files below an export, or None if they are not all there in their sizes."""
    path = target.listing_path(info.name)
    listed = load_json(path)
    if listed is None or hashlib.sha256(path.read_bytes()).hexdigest() != info.digest:
        return None
    for name, size, _ in listed:
        try:
            if (target.output_dir / name).stat().st_size != size:
                return None
        except OSError:
            return None
    return [name for name, _, _ in listed]


class ShardSettler:
    """What gives packed shards their names and lines in the journal, many at a time.

    Args:
        target: the export.
        journal: of the export.
        taken: the paths of the files that are there already.
    """

    def __init__(self, target: Layout, journal: Journal, taken: set[str]) -> None:
        self._target = target
        self._journal = journal
        self._taken = taken
        self._waiting: list[Packed] = []
        self._folders: set[Path] = set()
        self._settled = time.monotonic()

    def add(self, packed: Packed) -> None:
        """Take a shard; settle those that wait if it is time."""
        self._waiting.append(packed)
        if time.monotonic() - self._settled > SETTLE_SECONDS:
            self.settle()

    def refuse_names(self, packed: Packed) -> None:
        """Raise InputError if a file would get the name of another; else its names are taken."""
        paths = [each.path for each in packed.files]
        again = self._taken.intersection(paths)
        if again:
            raise same_name(packed.info.name, min(again))
        self._taken.update(paths)

    def settle(self) -> None:
        """Make all that waits durable, name it, make the names durable, then the journal.

        Raises:
            SpaceError, WriteError: the disk did not take it all; what has no line in the journal counts for nothing.
        """
        target, shards = self._target, self._target.shards
        with writing(target.output_dir):
            shards.sync()
            for packed in self._waiting:
                self._name(packed)
            shards.sync()
        for packed in self._waiting:
            self._journal.append(packed.info)
        self._journal.sync()
        self._waiting.clear()
        self._settled = time.monotonic()

    def _name(self, packed: Packed) -> None:
        target, name = self._target, packed.info.name
        folder = target.partial_dir / name
        for each in packed.files:
            final = target.output_dir / each.path
            if final.parent not in self._folders:
                final.parent.mkdir(parents=True, exist_ok=True)
                self._folders.add(final.parent)
            (folder / each.stored).replace(final)
        (folder / _LISTING).replace(target.listing_path(name))
        folder.rmdir()


def export_shards(
    tasks: Sequence[ExportTask], packer: Packer, engine: Engine, settler: ShardSettler, progress: Progress
) -> list[Exception]:
    """Export the shards of all tasks; one that fails stops no other. Returns what each of those failed with."""
    failures: list[Exception] = []
    with contextlib.closing(engine.map(ShardExporter(packer), tasks)) as results:
        for result in results:
            shard = result.task.shard
            progress.advance(shard.size)
            if not isinstance(result, Done):
                failures.append(named(result.error, shard.name))
                continue
            try:
                settler.refuse_names(result.value)
            except InputError as error:
                shutil.rmtree(result.task.folder, ignore_errors=True)
                failures.append(error)
                continue
            settler.add(result.value)
    settler.settle()
    return failures
