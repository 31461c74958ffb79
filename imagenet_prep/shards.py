"""Making one shard: the work of one worker, from a plan to a file under its final name."""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from imagenet_prep.errors import WriteError
from imagenet_prep.formats import inception, jpeg, tfrecord
from imagenet_prep.formats.image import Check, Prepared, prepare
from imagenet_prep.formats.pixels import Reencode
from imagenet_prep.layout import Layout, shard_name
from imagenet_prep.model import Item, Problem, ProblemKind, ShardInfo, ShardPlan
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.reader import Reader
from imagenet_prep.storage import begin_write_out, fsync_dir, space_errors, write_all

Compression = Literal["none", "gzip", "zlib"]
_WINDOW_BITS = {"gzip": 31, "zlib": 15}  # zlib's own encoding of "with a gzip header" and "with a zlib header"


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
        check: how closely each image is looked at.
        how: how to encode every image again, or None to take them as they are.
        compression: of the whole shard.
        skip_bad: leave bad images out, in place of refusing the shard.
    """

    layout: Layout
    catalog: Catalog
    order: array[int]
    check: Check
    how: Reencode | None = None
    compression: Compression = "none"
    skip_bad: bool = False
    reader: Reader = field(default_factory=Reader, repr=False)

    def __call__(self, plan: ShardPlan) -> Outcome:
        """Make the shard of a plan.

        Raises:
            InputError: the raw data changed or can't be read.
            SpaceError: no space left.
            WriteError: the storage failed twice.
        """
        try:
            return self._make(plan)
        except _StorageFailedError:
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
        partial = self.layout.partial_dir / name
        problems: list[Problem] = []
        repairs: list[str] = []
        with space_errors(self.layout.shard_path(name)), partial.open("wb", buffering=0) as file:
            sink = _sink(file.fileno(), self.compression)
            writer = tfrecord.RecordWriter(sink)
            for item, image in self._images(plan, problems):
                if image.repair:
                    repairs.append(f"{item.filename} ({image.repair})")
                head, tail = inception.record_parts(item, image.width, image.height, len(image.encoded))
                writer.write(head, image.encoded, tail)
            writer.flush()
            sink.close()
            if problems and not self.skip_bad:
                partial.unlink()
                return Outcome(None, tuple(problems))
            size = file.tell()
            self._finish(file.fileno(), partial, name, writer)
        set_aside = tuple(problem.subject for problem in problems)
        records, digest = len(writer.offsets), writer.digest
        info = ShardInfo(name, plan.fingerprint, records, size, digest, set_aside, tuple(repairs))
        return Outcome(info, tuple(problems))

    def _images(self, plan: ShardPlan, problems: list[Problem]) -> Iterator[tuple[Item, Prepared]]:
        """The good images of a plan in order; each bad one becomes a Problem."""
        for row in self.order[plan.start : plan.stop]:
            item = self.catalog.item(row)
            data = self.reader.read(item.where)
            try:
                yield item, prepare(data, self.check, self.how)
            except jpeg.ImageError as error:
                where = f"{item.where.path.name}, byte {item.where.offset:,}" if item.where.offset else item.where.path
                problems.append(
                    Problem(
                        ProblemKind.BAD_IMAGE,
                        item.filename,
                        f"{error} ({where}, {item.where.length:,} bytes)",
                        "get a sound copy of it, or leave it out with --skip-bad; --check header takes it as it is",
                    )
                )

    def _finish(self, descriptor: int, partial: Path, name: str, writer: tfrecord.RecordWriter) -> None:
        """Everything between the last byte and a shard that stays: sync, index, rename.

        One sync a shard. The folder is synced by whoever journals the shard, many at a time: if a crash undoes the
        renaming, the file is missing and the shard not done. Unless the name was taken: then the old content would
        come back under the new journal line, so the folder is synced at once.
        """
        final = self.layout.shard_path(name)
        try:
            with space_errors(final):  # a full disk may show as late as here
                os.fsync(descriptor)
                self._write_index(name, writer)
                is_taken = final.exists()
                partial.replace(final)
                if is_taken:
                    fsync_dir(final.parent)
        except OSError as error:
            raise _StorageFailedError(error) from error

    def _write_index(self, name: str, writer: tfrecord.RecordWriter) -> None:
        """A line "offset length" in bytes a record, framing included, as NVIDIA DALI's tfrecord2idx writes it."""
        lines = map("%d %d\n".__mod__, zip(writer.offsets, writer.lengths, strict=True))
        partial = self.layout.partial_dir / f"{name}.idx"
        partial.write_bytes("".join(lines).encode())
        partial.replace(self.layout.index_path(name))


class _StorageFailedError(Exception):
    """An fsync or a rename failed: nothing of the shard can be trusted."""


class Sink(tfrecord.Sink, Protocol):
    """Where a shard's bytes go."""

    def close(self) -> None:
        """Write what is held back."""


def _sink(descriptor: int, compression: Compression) -> Sink:
    return PlainSink(descriptor) if compression == "none" else DeflateSink(descriptor, compression)


@dataclass(slots=True)
class PlainSink:
    """Gathered writes straight to a file descriptor."""

    descriptor: int

    def write(self, parts: Sequence[tfrecord.Buffer]) -> None:
        """Write all of ``parts``."""
        write_all(self.descriptor, parts)
        begin_write_out(self.descriptor)

    def close(self) -> None:
        """Nothing is held back."""


class DeflateSink:
    """One gzip or zlib stream over the whole shard, as TFRecordOptions("GZIP") and ("ZLIB") read it.

    The gzip header holds no time and no name, so that equal records make equal files.
    """

    def __init__(self, descriptor: int, compression: Compression) -> None:
        self._plain = PlainSink(descriptor)
        self._deflate = zlib.compressobj(wbits=_WINDOW_BITS[compression])

    def write(self, parts: Sequence[tfrecord.Buffer]) -> None:
        """Compress and write all of ``parts``."""
        self._plain.write([self._deflate.compress(part) for part in parts])

    def close(self) -> None:
        """Write the end of the stream."""
        self._plain.write([self._deflate.flush()])
