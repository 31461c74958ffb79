"""Making one shard: the work of one worker, from a plan to a file under its final name."""

from __future__ import annotations

import hashlib
import os
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from imagenet_prep.errors import InputError, WriteError
from imagenet_prep.formats import jpeg, tfrecord
from imagenet_prep.formats.index import encode_index, encode_listing
from imagenet_prep.layout import Layout, shard_name
from imagenet_prep.model import Item, Problem, ProblemKind, ShardInfo, ShardPlan
from imagenet_prep.recorder import Recorded, Recorder
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.container import Reader
from imagenet_prep.storage.durable import begin_write_out, fsync_dir, write_all
from imagenet_prep.storage.plain import open_plain
from imagenet_prep.storage.space import space_errors

Compression = Literal["none", "gzip", "zlib"]
_WINDOW_BITS = {"gzip": 31, "zlib": 15}  # zlib's own encoding of "with a gzip header" and "with a zlib header"


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
        expected = None if self.expected is None else self.expected[name]
        partial = self.layout.partial_dir / name
        problems: list[Problem] = []
        with space_errors(self.layout.shard_path(name)), partial.open("wb", buffering=0) as file:
            records = self._records(plan, problems, expected.set_aside if expected else ())
            writer, names, repairs, file_digest = self._write(file.fileno(), records)
            set_aside = tuple(problem.subject for problem in problems)
            made = (len(writer.offsets), file.tell(), writer.digest, set_aside, repairs)
            info = ShardInfo(name, plan.fingerprint, *made, file_digest)
            if expected is not None and (problems or not _is_same(info, expected)):
                partial.unlink()
                raise self._other(expected, info, problems, self._altered(name, names, writer.crcs))
            if problems and not self.skip_bad:
                partial.unlink()
                return Outcome(None, tuple(problems))
            self._finish(file.fileno(), partial, name, writer, names)
        return Outcome(expected or info, tuple(problems))

    def _write(
        self, descriptor: int, records: Iterable[tuple[Item, Recorded]]
    ) -> tuple[tfrecord.RecordWriter, list[str], tuple[str, ...], str]:
        """Write the records; returns what wrote them, the file names, the repairs in words, the file's digest."""
        names: list[str] = []
        repairs: list[str] = []
        sink = _sink(descriptor, self.compression)
        writer = tfrecord.RecordWriter(sink)
        for item, recorded in records:
            if recorded.repair:
                repairs.append(f"{item.filename} ({recorded.repair})")
            writer.write(*recorded.parts)
            names.append(item.filename)
        writer.flush()
        sink.close()
        return writer, names, tuple(repairs), sink.digest

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

    def _altered(self, shard: str, names: Sequence[str], crcs: Sequence[int]) -> list[str]:
        """The images whose records are not those that the shard's index lists; none if that is of other images."""
        try:
            with open_plain(self.layout.listing_path(shard)) as file:
                lines = file.read().decode().split("\n")[:-1]
        except (OSError, ValueError):
            return []
        listed = [line.partition(" ") for line in lines]
        if [name for _, _, name in listed] != names:
            return []
        return [name for (listed_crc, _, name), crc in zip(listed, crcs, strict=True) if listed_crc != f"{crc:08x}"]

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

    def _finish(
        self, descriptor: int, partial: Path, name: str, writer: tfrecord.RecordWriter, names: Sequence[str]
    ) -> None:
        """Everything between the last byte and a shard that stays: sync, index, rename.

        One sync a shard. The folder is synced by whoever journals the shard, many at a time: if a crash undoes the
        renaming, the file is missing and the shard not done. Unless the name was taken: then the old content would
        come back under the new journal line, so the folder is synced at once.
        """
        final = self.layout.shard_path(name)
        try:
            with space_errors(final):  # a full disk may show as late as here
                os.fsync(descriptor)
                self._write_index(name, writer, names)
                is_taken = final.exists()
                partial.replace(final)
                if is_taken:
                    fsync_dir(final.parent)
        except OSError as error:
            raise _StorageFailedError(error) from error

    def _write_index(self, name: str, writer: tfrecord.RecordWriter, names: Sequence[str]) -> None:
        index, listing = self.layout.index_paths(name)
        for path, content in (
            (listing, encode_listing(writer.crcs, names)),
            (index, encode_index(writer.offsets, writer.lengths)),
        ):
            partial = self.layout.partial_dir / path.name
            partial.write_bytes(content)
            partial.replace(path)


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


class Sink(tfrecord.Sink, Protocol):
    """Where a shard's bytes go."""

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of all bytes, "" where those of the records prove them all."""
        ...

    def close(self) -> None:
        """Write what is held back."""


def _sink(descriptor: int, compression: Compression) -> Sink:
    return PlainSink(descriptor) if compression == "none" else DeflateSink(descriptor, compression)


@dataclass(slots=True)
class PlainSink:
    """Gathered writes straight to a file descriptor."""

    descriptor: int
    digest: str = ""

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
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of all bytes of the file so far."""
        return self._hash.hexdigest()

    def write(self, parts: Sequence[tfrecord.Buffer]) -> None:
        """Compress and write all of ``parts``."""
        self._put([self._deflate.compress(part) for part in parts])

    def close(self) -> None:
        """Write the end of the stream."""
        self._put([self._deflate.flush()])

    def _put(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            self._hash.update(piece)
        self._plain.write(pieces)
