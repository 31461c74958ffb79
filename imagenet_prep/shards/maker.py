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
from imagenet_prep.errors import BusyError, InputError, WriteError
from imagenet_prep.images import jpeg
from imagenet_prep.model import Item, OnDamaged, Portable, Problem, ProblemKind, ShardInfo
from imagenet_prep.recorders.recorder import Recorded, Recorder, looser_check
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.reading import read_in_turn
from imagenet_prep.sources.slices import Reader
from imagenet_prep.state.indexes import read_written
from imagenet_prep.state.replacement import Identity, identity_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import Sink, local_or_none
from imagenet_prep.storage.refusals import space_errors
from imagenet_prep.storage.store import GoneError
from imagenet_prep.tfrecord.compression import Compression, RecordWriter
from imagenet_prep.tfrecord.framing import Index

_REMEDY = "get a sound copy of it, or leave it out: --on-damaged skip, in a recipe on_damaged: skip"


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
        return [each.path for each in task.catalog.containers[:1] if isinstance(each.path, Path)]

    def sent(self, task: ShardTask) -> ShardTask:
        """The task for another machine: it syncs index and name too,
        since the driver's sync can't.
        """
        return replace(task, syncs=True)

    def __call__(self, task: ShardTask) -> Outcome:
        """Make the shard of a task.

        Raises:
            InputError: the raw data changed or can't be read, or doesn't give the expected shard.
            SpaceError, WriteError: no space is left, or the storage failed twice.
            BusyError: another run has started there since, so this one must not finish anything.
        """
        try:
            with contextlib.suppress(
                WriteError
            ):  # no part of the shard can be trusted: once more from its source
                return _Making(task, self.reader).make()
            return _Making(task, self.reader).make()
        except GoneError as error:
            raise BusyError(
                f"{task.name} was not finished: its partial file is gone",
                (
                    f"another run has started in {task.layout.output_dir} since, "
                    "or has finished the set"
                ),
                "let that run finish",
            ) from error


class _Making:
    """One try at a task."""

    def __init__(self, task: ShardTask, reader: Reader) -> None:
        self._task = task
        self._reader = reader
        self._problems: list[Problem] = []
        self._faults: list[str] = []
        self._index = Index()

    def make(self) -> Outcome:
        task, index, problems = self._task, self._index, self._problems
        repairs: list[str] = []
        warned: list[str] = []
        with (
            space_errors(task.layout.shard_path(task.name)),
            task.layout.shards.create(task.name) as sink,
        ):
            writer = RecordWriter(sink.write, task.compression)
            for item, recorded in self._records():
                if recorded.repair:
                    repairs.append(f"{item.filename} ({recorded.repair})")
                if recorded.warning:
                    warned.append(f"{item.filename} ({recorded.warning})")
                index.add(*writer.write(*recorded.parts), item.filename)
            writer.close()
            left_out = tuple(problem.subject for problem in problems)
            info = ShardInfo(
                name=task.name,
                fingerprint=task.fingerprint,
                records=len(index.names),
                size=sink.size,
                digest=index.digest,
                set_aside=left_out,
                repairs=tuple(repairs),
                file_digest=writer.file_digest,
                warned=tuple(warned),
                faults=tuple(self._faults),
            )
            if task.expected is not None and (problems or not _is_same(info, task.expected)):
                raise self._other(task.expected, info)
            if problems and task.on_damaged == "refuse":
                return Outcome(None, tuple(problems))
            self._finish(sink)
        path = local_or_none(task.layout.shard_path(task.name))
        return Outcome(task.expected or info, tuple(problems), identity_of(path) if path else None)

    def _records(self) -> Iterator[tuple[Item, Recorded]]:
        """The records in order, except for left-out images; each bad image becomes a Problem."""
        catalog, recorder = self._task.catalog, self._task.recorder
        left_out = self._task.expected.set_aside if self._task.expected else ()
        if left_out:
            catalog = catalog.picked(
                [row for row, name in enumerate(catalog.names) if name not in left_out]
            )
        for row, (item, data) in enumerate(
            zip(catalog.items(), read_in_turn(catalog, self._reader), strict=True)
        ):
            if row in self._task.sample:
                refuse_other_image(catalog, row, data, self._task.sample[row])
            try:
                yield item, recorder.record(item, data)
            except jpeg.ImageError as error:
                detail = f"{error} ({catalog.place(row)}, {catalog.lengths[row]:,} bytes)"
                looser = looser_check(recorder, item, data)
                remedy = f"{_REMEDY}; {looser} accepts it unchanged" if looser else _REMEDY
                self._faults.append(str(error))
                self._problems.append(Problem(ProblemKind.BAD_IMAGE, item.filename, detail, remedy))

    def _altered(self, expected: ShardInfo) -> list[str]:
        """The images whose records differ from the shard's index;
        none if the index is of other images.
        """
        made = self._index
        written = read_written(self._task.layout, expected)
        if written is None or written.names != made.names:
            return []
        return [
            name
            for name, old, new in zip(made.names, written.crcs, made.crcs, strict=True)
            if old != new
        ]

    def _other(self, expected: ShardInfo, made: ShardInfo) -> InputError:
        """The error for a shard that differs from the one made first."""
        problems, altered = self._problems, self._altered(expected)
        detail = expected_and_got(expected, made)
        if problems:
            detail = f"{problems[0].subject}: {problems[0].detail}"
        elif altered:
            others = f", and of {len(altered) - 1} more" if len(altered) > 1 else ""
            detail = f"by its index, the image or the boxes of {altered[0]}{others} changed"
        return InputError(
            (
                f"{made.name} can't be made again: the raw data has changed since, "
                "or another library makes other bytes"
            ),
            detail,
            "restore the recorded images and boxes, or the versions of Pillow, "
            "the codec (reencode in manifest.json) "
            "and zlib; or make the set again with imagenet-prep convert --overwrite",
        )

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
        paths = self._task.layout.index_paths(self._task.name)
        for path, content in reversed([*zip(paths, self._index.encode(), strict=True)]):
            with self._task.layout.indexes.create(path.name) as sink:
                sink.write([content])
                if self._task.syncs:
                    sink.seal()
                sink.commit()
        if self._task.syncs:
            self._task.layout.indexes.sync_names()


def _is_same(made: ShardInfo, expected: ShardInfo) -> bool:
    found = made.records, made.size, made.digest, made.file_digest
    return found == (expected.records, expected.size, expected.digest, expected.file_digest)


def expected_and_got(expected: ShardInfo, made: ShardInfo) -> str:
    """Two entries of one shard as text: the recorded one, and the new one."""
    told = (
        f"{info.records} records in {info.size} bytes, digest {info.digest[:12]}"
        for info in (expected, made)
    )
    return "expected {}; got {}".format(*told)
