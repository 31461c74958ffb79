"""Making one shard: the work of one worker, from a plan to a file under its final name."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from imagenet_prep.errors import InputError, WriteError
from imagenet_prep.formats import jpeg
from imagenet_prep.formats.compressed import Compression, RecordWriter
from imagenet_prep.formats.index import Index, decode
from imagenet_prep.layout import Layout, shard_name
from imagenet_prep.model import Item, Problem, ProblemKind, ShardInfo, ShardPlan
from imagenet_prep.recorder import Recorded, Recorder
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.container import Reader
from imagenet_prep.storage.space import space_errors
from imagenet_prep.storage.store import Sink

_REMEDY = "get a sound copy of it, or leave it out: --skip-bad, in a recipe skip_bad: true"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a shard.

    ``info`` is None if bad images kept it from being made; ``problems`` name them.
    """

    info: ShardInfo | None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class ShardMaker:
    """Makes shards of one split; picklable, and free of anything that could differ between two runs.

    Args:
        layout: where the shards go.
        catalog: the images.
        order: the catalog's rows in record order.
        recorder: what makes the record of an image.
        compression: of the whole shard.
        skip_bad: leave bad images out, in place of refusing the shard.
        expected: what each shard must become, by name, when it is made again; any other one is refused before it
            replaces anything. Then just those images are left out that were then, and the outcome is what is expected,
            fingerprint and all: that one holds file times, which may have changed.
        doubt: what beside other raw data may explain a shard that is not as expected.
    """

    layout: Layout
    catalog: Catalog
    order: array[int]
    recorder: Recorder
    compression: Compression = "none"
    skip_bad: bool = False
    expected: Mapping[str, ShardInfo] | None = None
    doubt: str = ""
    reader: Reader = field(default_factory=Reader, repr=False)

    def __call__(self, plan: ShardPlan) -> Outcome:
        """Make the shard of a plan.

        Raises:
            InputError: the raw data changed or can't be read, or doesn't give the expected shard.
            SpaceError: no space left.
            WriteError: the storage failed twice.
        """
        with contextlib.suppress(_StorageFailedError):
            return self._make(plan)
        try:
            return self._make(plan)
        except _StorageFailedError as error:
            raise WriteError(
                f"{shard_name(plan.split, plan.index, plan.count)} can't be written safely",
                f"the storage refused twice: {error}",
                "check the disk, then run the same command again",
            ) from error

    def _make(self, plan: ShardPlan) -> Outcome:
        name = shard_name(plan.split, plan.index, plan.count)
        expected = None if self.expected is None else self.expected[name]
        problems: list[Problem] = []
        repairs: list[str] = []
        index = Index()
        with space_errors(self.layout.shard_path(name)), self.layout.shards.create(name) as sink:
            writer = RecordWriter(sink.write, self.compression)
            for item, recorded in self._records(plan, problems, expected.set_aside if expected else ()):
                if recorded.repair:
                    repairs.append(f"{item.filename} ({recorded.repair})")
                index.add(*writer.write(*recorded.parts), item.filename)
            writer.close()
            left_out = tuple(problem.subject for problem in problems)
            made = (len(index.names), sink.size, index.digest, left_out, tuple(repairs), writer.file_digest)
            info = ShardInfo(name, plan.fingerprint, *made)
            if expected is not None and (problems or not _is_same(info, expected)):
                raise self._other(expected, info, problems, self._altered(name, index))
            if problems and not self.skip_bad:
                return Outcome(None, tuple(problems))
            self._finish(sink, name, index)
        return Outcome(expected or info, tuple(problems))

    def _records(
        self, plan: ShardPlan, problems: list[Problem], left_out: Collection[str]
    ) -> Iterator[tuple[Item, Recorded]]:
        """The records of a plan in order, but for images ``left_out``; each bad image becomes a Problem."""
        for row in self.order[plan.start : plan.stop]:
            item = self.catalog.item(row)
            if item.filename in left_out:
                continue
            data = self.catalog.read(row, self.reader)
            try:
                yield item, self.recorder.record(item, data)
            except jpeg.ImageError as error:
                detail = f"{error} ({self.catalog.place(row)}, {self.catalog.lengths[row]:,} bytes)"
                as_is = self.recorder.as_is(item, data)
                remedy = f"{_REMEDY}; {as_is} takes it as it is" if as_is else _REMEDY
                problems.append(Problem(ProblemKind.BAD_IMAGE, item.filename, detail, remedy))

    def _altered(self, shard: str, made: Index) -> list[str]:
        """The images whose records are not those that the shard's index lists; none if that is of other images."""
        try:
            written = decode(*(self.layout.indexes.read(path.name) for path in self.layout.index_paths(shard)))
        except InputError:
            return []
        if written is None or written.names != made.names:
            return []
        return [name for name, old, new in zip(made.names, written.crcs, made.crcs, strict=True) if old != new]

    def _other(
        self, expected: ShardInfo, made: ShardInfo, problems: Sequence[Problem], altered: Sequence[str]
    ) -> InputError:
        """The error for a shard that came out otherwise than when it was made first."""
        what = f"{made.name} can't be made again: the raw data is not what it was made from"
        detail = f"expected {_in_words(expected)}; got {_in_words(made)}"
        hint = "get back the recorded images and boxes, or make the set again with imagenet-prep convert --overwrite"
        if problems:
            detail = f"{problems[0].subject}: {problems[0].detail}"
        elif made.digest == expected.digest and self.compression != "none":
            what = f"{made.name} can't be made again: zlib is another one, and compresses the same records otherwise"
            hint = "remove this shard and run the same imagenet-prep convert again: it takes the new size"
        elif self.doubt:
            what, detail = f"{what}, or the codec is not", self.doubt
            hint = (
                "install those versions and repair again, or make the set again with imagenet-prep convert --overwrite"
            )
        elif altered:
            others = f", and of {len(altered) - 1} more" if len(altered) > 1 else ""
            detail = f"by its index, the image or the boxes of {altered[0]}{others} changed"
        if expected.repairs and not self.doubt:
            detail += "; another version of Pillow repairs odd images otherwise"
        return InputError(what, detail, hint)

    def _finish(self, sink: Sink, name: str, index: Index) -> None:
        """Everything between the last byte and a shard that stays: seal, index, commit.

        One sync a shard. Names are synced by whoever journals the shard, many at a time: if a crash undoes this one,
        the file is missing and the shard not done. Unless the name was taken: then the old content would come back
        under the new journal line, so the names are synced at once.
        """
        shards = self.layout.shards
        try:
            with space_errors(self.layout.shard_path(name)):  # a full disk may show as late as here
                sink.seal()
                self._write_index(name, index)
                is_taken = shards.size(name) is not None
                sink.commit()
                if is_taken:
                    shards.sync_names()
        except OSError as error:
            raise _StorageFailedError(error) from error

    def _write_index(self, name: str, index: Index) -> None:
        for path, content in reversed([*zip(self.layout.index_paths(name), index.encode(), strict=True)]):
            with self.layout.indexes.create(path.name) as sink:
                sink.write([content])
                sink.commit()


def _is_same(made: ShardInfo, expected: ShardInfo) -> bool:
    file_digest = expected.file_digest and made.file_digest  # an earlier version recorded none
    return (made.records, made.size, made.digest, file_digest) == (
        *(expected.records, expected.size, expected.digest),
        expected.file_digest,
    )


def _in_words(info: ShardInfo) -> str:
    return f"{info.records} records in {info.size} bytes, digest {info.digest[:12]}"


class _StorageFailedError(Exception):
    """An fsync or a rename failed: nothing of the shard can be trusted."""
