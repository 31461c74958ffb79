"""ShardMaker: makes one shard, the task of one worker:
from a ShardTask to a file under its final name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from imagenet_prep.datasets.sampled_images import refuse_other_image
from imagenet_prep.errors import InputError, WriteError
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.images import jpeg
from imagenet_prep.model import Item, OnDamaged, Portable, Problem, ProblemKind, ShardInfo
from imagenet_prep.recorders.recorder import Recorded, Recorder, looser_check, with_place
from imagenet_prep.shards.convert_summary import HOW_TO_LEAVE_OUT, LEAVE_OUT, SOUND_COPY
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.row_bytes import read_in_turn
from imagenet_prep.sources.slices import Buffer, Reader
from imagenet_prep.state.indexes import read_written
from imagenet_prep.state.replacement import Identity, identity_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import Sink, local_or_none
from imagenet_prep.storage.refusals import GoneError, replaced_by_run, space_errors, writing
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.compression import Compression, RecordWriter
from imagenet_prep.tfrecord.framing import Index

_BATCH = 4 << 20
"""Bytes of the images whose records are made together, before the first of them is written."""


class Outcome(Struct, frozen=True):
    """The outcome of a shard.

    ``info`` is None if bad images prevented the shard; ``problems`` name them. ``identity`` is that
    of its file on a disk, for a later look whether it is still the same.
    """

    info: ShardInfo | None
    problems: tuple[Problem, ...] = ()
    identity: Identity | None = None


class ShardTask(Struct, frozen=True):
    """The work on one shard: picklable, complete, and without anything that could differ between
    two runs.

    Args:
        name: of the shard.
        fingerprint: of everything that decides its bytes.
        layout: the paths of the set.
        catalog: its images alone, in record order.
        recorder: makes the record of an image.
        compression: of the whole shard.
        on_damaged: whether damaged images refuse the shard, or are left out.
        expected: the entry that the shard must match when it is made again; any other shard is
            refused before it replaces anything. Exactly the same images are left out, and the
            outcome is this entry, fingerprint included.
        bundle: the file that holds just its images, unused once the shard is durable.
        syncs: whether the maker also makes index and names durable, because the journal may be on
            another machine.
        sample: the checksums of some images, by row; see datasets.copies.
    """

    name: str
    fingerprint: str
    layout: Layout
    catalog: Catalog
    recorder: Recorder
    compression: Compression = "none"
    on_damaged: OnDamaged = "refuse"
    expected: ShardInfo | None = None
    bundle: Path | None = None
    syncs: bool = False
    sample: Mapping[int, int] = {}


class ShardMaker(Struct, Portable[ShardTask], frozen=True):
    """Makes shards; picklable. Its reader keeps archives open from one task to the next."""

    reader: Reader = field(default_factory=Reader)

    def meeting_point(self, task: ShardTask, token: str) -> Path | None:
        """A file in the folder of its run."""
        return task.layout.meeting_point(token)

    def inputs(self, task: ShardTask) -> Sequence[Path]:
        """The first archive or folder of its images: a machine that has it has the others."""
        first_container = task.catalog.containers[:1]
        return [container.path for container in first_container if isinstance(container.path, Path)]

    def sent(self, task: ShardTask) -> ShardTask:
        """The task for another machine: it syncs index and name too,
        since the driver's sync can't.
        """
        return replace(task, syncs=True)

    def undo(self, task: ShardTask) -> None:
        """Remove the shard: then it doesn't count as done, whatever the journal says."""
        path = task.layout.shard_path(task.name)
        with writing(path):
            path.unlink(missing_ok=True)

    def __call__(self, task: ShardTask) -> Outcome:
        """Make the shard of a task.

        Raises:
            InputError: the raw data changed or can't be read, or doesn't give the expected shard.
            SpaceError, WriteError: no space is left, or the storage failed twice.
            BusyError: another run has started there since, so this one must not finish anything.
        """
        try:
            # After a failed write no part of the shard can be trusted: once more from its source.
            with contextlib.suppress(WriteError):
                return _Making(task, self.reader).make()
            return _Making(task, self.reader).make()
        except GoneError as error:
            raise replaced_by_run(task.name, f"in {task.layout.output_dir}") from error


class _Making:
    """One try at a task."""

    def __init__(self, task: ShardTask, reader: Reader) -> None:
        self._task = task
        self._reader = reader
        self._index = Index()
        self._repairs: list[str] = []
        self._warned: list[str] = []
        self._faults: list[str] = []
        self._problems: list[Problem] = []
        self._to_restore = ""

    def make(self) -> Outcome:
        task = self._task
        shard_path = task.layout.shard_path(task.name)
        with space_errors(shard_path), task.layout.shards.create(task.name) as sink:
            writer = RecordWriter(sink.write, task.compression)
            for batch in self._batches():
                self._write(batch, writer)
            writer.close()
            info = self._describe(sink.size, writer.file_digest)
            problems = tuple(self._problems)
            self._refuse_other(info)
            if problems and task.on_damaged == "refuse":
                return Outcome(None, problems)
            self._finish(sink)
        local_shard = local_or_none(shard_path)
        identity = identity_of(local_shard) if local_shard else None
        return Outcome(task.expected or info, problems, identity)

    def _batches(self) -> Iterator[list[tuple[Item, Recorded]]]:
        """The records in order, some at a time; each bad image becomes a Problem.

        Records are made from headers, before any whole image is read for its checksum: an image
        would replace the interpreter in the processor's cache.
        """
        recorder, sample = self._task.recorder, self._task.sample
        catalog = self._catalog()
        images = zip(catalog.items(), read_in_turn(catalog, self._reader), strict=True)
        batch: list[tuple[Item, Recorded]] = []
        size = 0
        for row, (item, content) in enumerate(images):
            if row in sample:
                refuse_other_image(catalog, row, content, sample[row])
            try:
                batch.append((item, recorder.record(item, content)))
            except jpeg.ImageError as error:
                self._leave_out(catalog, row, item, content, error)
            size += len(content)
            if size >= _BATCH:
                yield batch
                batch, size = [], 0
        yield batch

    def _catalog(self) -> Catalog:
        """The task's images, without those that the expected shard left out."""
        catalog, expected = self._task.catalog, self._task.expected
        if expected is None or not expected.set_aside:
            return catalog
        left_out = expected.set_aside
        return catalog.picked(
            [row for row, name in enumerate(catalog.names) if name not in left_out]
        )

    def _leave_out(
        self, catalog: Catalog, row: int, item: Item, content: Buffer, error: jpeg.ImageError
    ) -> None:
        """Note a bad image, its place, and the check that would take it."""
        detail = with_place(error, catalog.place(row), catalog.lengths[row])
        looser = looser_check(self._task.recorder, item, content)
        to_restore = item.filename
        if isinstance(error, jpeg.MaskError):
            to_restore = f"the mask of {item.filename}"
        self._to_restore = self._to_restore or to_restore
        remedy = f"{error.remedy or SOUND_COPY}{LEAVE_OUT}{HOW_TO_LEAVE_OUT}"
        if looser:
            remedy += f"; {looser} accepts it unchanged"
        self._faults.append(str(error))
        self._problems.append(Problem(ProblemKind.BAD_IMAGE, item.filename, detail, remedy))

    def _write(self, batch: Sequence[tuple[Item, Recorded]], writer: RecordWriter) -> None:
        """Write records, and list them in the index."""
        for item, recorded in batch:
            if recorded.repair:
                self._repairs.append(f"{item.filename} ({recorded.repair})")
            if recorded.warning:
                self._warned.append(f"{item.filename} ({recorded.warning})")
            length, crc = writer.write(*recorded.parts)
            self._index.add(length, crc, item.filename)

    def _describe(self, size: int, file_digest: str) -> ShardInfo:
        """The entry of the shard, whose file has ``size`` bytes."""
        return ShardInfo(
            name=self._task.name,
            fingerprint=self._task.fingerprint,
            records=len(self._index.names),
            size=size,
            digest=self._index.digest,
            set_aside=tuple(problem.subject for problem in self._problems),
            repairs=tuple(self._repairs),
            file_digest=file_digest,
            warned=tuple(self._warned),
            faults=tuple(self._faults),
        )

    def _refuse_other(self, info: ShardInfo) -> None:
        """Raise InputError for a shard that is not the expected one."""
        expected = self._task.expected
        if expected is not None and (self._problems or not _is_same(info, expected)):
            raise self._other(expected, info)

    def _altered(self, expected: ShardInfo) -> list[str]:
        """The images whose records differ from the shard's index;
        none if the index is of other images.
        """
        index = self._index
        written = read_written(self._task.layout, expected)
        if written is None or written.names != index.names:
            return []
        crcs = zip(index.names, written.crcs, index.crcs, strict=True)
        return [name for name, written_crc, new_crc in crcs if written_crc != new_crc]

    def _other(self, expected: ShardInfo, info: ShardInfo) -> InputError:
        """The error for a shard that differs from the one made first."""
        detail = expected_and_got(expected, info)
        restore = f"restore the images and annotations as they were{self._other_versions()}"
        if self._problems:
            problem = self._problems[0]
            detail = f"{problem.subject}: {problem.detail}"
            restore = f"restore {self._to_restore} as it was"
        elif altered := self._altered(expected):
            detail = f"{altered[0]} now gives another record than the shard's index lists"
            if len(altered) > 1:
                detail += f", and so do {number_of(len(altered) - 1, 'other image')}"
        return InputError(
            f"{info.name} can't be made again with the same content",
            detail,
            Hint(f"{restore}; or, to make the set again, ", CONVERT_AGAIN),
        )

    def _other_versions(self) -> str:
        """The advice about libraries that may have made other bytes of the same inputs."""
        recorder = self._task.recorder
        versions = ""
        if recorder.how is not None:
            versions = ", or the versions of Pillow and the codec (reencode in manifest.json)"
        elif recorder.writes_masks:
            versions = ", or the version of Pillow, which writes masks"
        if self._task.compression != "none":
            versions += ", or the version of zlib, which compresses the shard"
        return versions

    def _finish(self, sink: Sink) -> None:
        """The steps after the last byte that make a shard durable: seal, index, commit.

        One sync per shard. The writer of the journal syncs names, many at a time. If a crash undoes
        a name, the file is missing and the shard not done. Names are synced at once in two cases:
        if the task says that no other process can, or if the name was taken. The old content of a
        taken name would return under the new journal line.
        """
        name, shards = self._task.name, self._task.layout.shards
        sink.seal()
        self._write_index()
        is_taken = shards.size(name) is not None
        sink.commit()
        if is_taken or self._task.syncs:
            shards.sync_names()

    def _write_index(self) -> None:
        """Write the listing, then the offsets."""
        task = self._task
        indexes = task.layout.indexes
        offsets_path, listing_path = task.layout.index_paths(task.name)
        offsets, listing = self._index.encode()
        for path, content in ((listing_path, listing), (offsets_path, offsets)):
            with indexes.create(path.name) as sink:
                sink.write([content])
                if task.syncs:
                    sink.seal()
                sink.commit()
        if task.syncs:
            indexes.sync_names()


def _is_same(info: ShardInfo, expected: ShardInfo) -> bool:
    return _contents(info) == _contents(expected)


def _contents(info: ShardInfo) -> tuple[int, int, str, str]:
    """The facts of an entry that tell its bytes."""
    return info.records, info.size, info.digest, info.file_digest


def expected_and_got(expected: ShardInfo, info: ShardInfo) -> str:
    """Two entries of one shard as text: the recorded one, and the new one."""
    return f"expected {_in_words(expected)}; got {_in_words(info)}"


def _in_words(info: ShardInfo) -> str:
    records, size = number_of(info.records, "record"), number_of(info.size, "byte")
    return f"{records} in {size}, digest {info.digest[:12]}"
