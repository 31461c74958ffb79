"""Packer: puts records into the files of a format. Files: receives them. ExportRun: exports all
shards of a set.

A worker packs a shard into a folder of unfinished files, reads each back, makes all of them
durable, and gives them their names. So a file with its final name is complete, checked and durable.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from msgspec import Struct, field
from msgspec.json import decode, encode

from imagenet_prep.errors import DamagedRecordError, InputError, WriteError, named
from imagenet_prep.exports.image_values import ImageValues, Meaning
from imagenet_prep.exports.source_set import SourceSet, SourceShard
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.model import Engine, Failed, Progress
from imagenet_prep.reading.record import Record
from imagenet_prep.sources.names import below
from imagenet_prep.state.damaged_images import DamagedImage, write_damaged_images
from imagenet_prep.storage.durable import make_folders, sync_file_system
from imagenet_prep.storage.files import append_to, plain_lines
from imagenet_prep.storage.layout import Layout, by_number
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.storage.refusals import AGAIN, space_errors, writing
from imagenet_prep.tfrecord import crc32c

_CHUNK = 1 << 20


class Packer:
    """Puts records into the files of one format; picklable. The same set always gives the same
    bytes.

    ``unit`` is the content of a file: a shard (``file_name`` names it), an image, or facts about
    the whole set. Its attributes are part of an export's identity.
    """

    unit: ClassVar[Literal["shard", "image", "set"]]
    requires_utf8_paths: ClassVar[bool] = False
    """Whether its library opens no path that is not UTF-8."""

    def __init__(self, source: SourceSet) -> None:
        """Prepare to pack a set.

        Raises:
            UsageError: the set can't be put into this format, or a library is not installed.
        """

    def file_name(self, shard: SourceShard) -> str:
        """The name of a shard's file, if ``unit`` is a shard."""
        raise NotImplementedError

    def pack(self, shard: SourceShard, files: Files) -> None:
        """Write all records of a shard to ``files``.

        Raises:
            InputError: a record is damaged, or can't be stored in the format.
            OSError, WriteError: the system refuses to write.
        """

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """The final files of the whole set, by path, once the files of all shards are in ``out``.

        ``handed_over`` reads the data that ``pack`` kept of a shard, in this run or an earlier one.
        """
        return {}

    def usage(self, out: Path) -> str:
        """A line of code that reads the export; "" if it needs none."""
        return ""


class Packed(Struct, frozen=True):
    """A shard's outcome: the size of each of its files by path, whether any was made now, the
    damaged records, and the class in each folder, counted from 0.
    """

    sizes: dict[str, int]
    is_made: bool
    left_out: tuple[DamagedImage, ...]
    classes: dict[str, int] = {}


class Files:
    """The files of one shard: written to ``folder``, then moved to ``out``,
    where they replace those of these names.
    """

    def __init__(self, shard: SourceShard, folder: Path, out: Path) -> None:
        self._shard = shard
        self._folder = folder
        self._out = out
        self.sizes: dict[str, int] = {}
        self.made: dict[str, Path] = {}
        self.left_out: list[DamagedImage] = []
        self.classes: dict[str, int] = {}
        self._handed_over: Path | None = None

    def records(self) -> Iterator[Record]:
        """The records of the shard, without damaged ones if they are left out.

        Raises:
            InputError: as SourceShard.records.
        """
        return self._shard.records(self._leave_out)

    def values(self, meaning: Meaning) -> Iterator[tuple[Record, ImageValues]]:
        """These records with the values that describe their images; one that can't be understood is
        damaged too.

        Raises:
            InputError: as SourceShard.records and Meaning.values.
        """
        for record in self.records():
            try:
                values = meaning.values(record)
            except DamagedRecordError as error:
                if self._shard.on_damaged == "refuse":
                    raise
                self._leave_out(error)
            else:
                yield record, values

    def _leave_out(self, error: DamagedRecordError) -> None:
        shard = self._shard
        self.left_out.append(
            DamagedImage(shard.split, shard.name, error.image, error.detail, error.number)
        )

    def has(self, path: str, size: int) -> bool:
        """Whether the export has a file of this size, in bytes, from an earlier run: then it counts
        as written.

        Raises:
            InputError: the shard has another file with this path.
        """
        self._refuse_second(path)
        final = below(self._out, path)
        if not final.exists() or final.stat().st_size != size:
            return False
        self.sizes[path] = size
        return True

    def write(self, path: str, parts: Iterable[bytes | memoryview]) -> None:
        """Write one file from its parts, and read it back.

        Raises:
            InputError: the shard has another file with this path.
            WriteError: the file does not hold the written bytes.
        """
        with self.aside(path) as stored:
            crc = 0
            with stored.open("wb") as file:
                for part in parts:
                    crc = crc32c(part, crc)
                    file.write(part)
            check_read_back(stored, _crc_of(stored), crc)

    @contextlib.contextmanager
    def aside(self, path: str) -> Iterator[Path]:
        """A path to write one file to, for a library that writes it itself.

        Raises:
            InputError: the shard has another file with this path.
        """
        self._refuse_second(path)
        stored = self._folder / f"{len(self.sizes):06d}"
        yield stored
        self.sizes[path] = stored.stat().st_size
        self.made[path] = stored

    def hand_over(self, data: bytes) -> None:
        """Keep data of this shard for ``Packer.finish``; once per shard."""
        self._handed_over = self._folder / "handed-over"
        self._handed_over.write_bytes(data)

    def _refuse_second(self, path: str) -> None:
        if path in self.sizes:
            raise same_name(self._shard.name, path)

    def publish(self) -> None:
        """Make the new files durable, and give them their names."""
        with writing(self._out):
            if self.made or self._handed_over:
                sync_file_system(self._out)
            if self._handed_over:  # first: a shard with all of its files is not packed again
                final = _handed_over_path(self._out, self._shard)
                make_folders(final.parent)
                self._handed_over.replace(final)
            for path, stored in self.made.items():
                final = below(self._out, path)
                make_folders(final.parent)
                stored.replace(final)
            self._folder.rmdir()


def _handed_over_path(out: Path, shard: SourceShard) -> Path:
    return local_path(Layout(out).handed_over_dir) / shard.name


def handed_over(out: Path, shard: SourceShard) -> bytes:
    """The data that a packer kept of a shard of the export ``out``.

    Raises:
        InputError: it is gone.
    """
    path = _handed_over_path(out, shard)
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        hint = f"remove {out}, and export again"
        raise InputError(
            f"{path} is gone", "expected the data that export keeps for its last step", hint
        ) from error


def check_read_back(path: Path, crcs_read: object, crcs_written: object) -> None:
    """Raise WriteError unless the checksums of a file that was read back
    are those of what was written.
    """
    if crcs_read != crcs_written:
        raise WriteError(
            f"{path} does not read back as it was written", "", f"check the disk {AGAIN}"
        )


def _crc_of(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            crc = crc32c(chunk, crc)
    return crc


def same_name(shard: str, path: str) -> InputError:
    """The error for a second image with the path of another."""
    return InputError(
        f"two records would be saved as {path}, one of them in {shard}",
        "expected another file name for each record",
        "export to webdataset: it keeps every record, whatever its name",
    )


def refuse_shared(classes: dict[str, int], folder: str, index: int, place: str) -> None:
    """Note the class of a folder; raise InputError if it has images of another class, as cranes
    that fly and that lift.
    """
    first_index = classes.setdefault(folder, index)
    if first_index != index:
        raise InputError(
            f"{place}: two classes, {first_index} and {index} counted from 0, "
            f"have the folder {folder!r}",
            "expected another folder name for each class",
            Hint(
                "export to webdataset; or give the classes unique names, such as WordNet ids, and ",
                CONVERT_AGAIN,
            ),
        )


def pack_shard(packer: Packer, target: Layout, shard: SourceShard) -> Packed:
    """Pack a shard for the export ``target``.

    Raises:
        InputError: the shard is damaged, or can't be stored in the format.
        SpaceError, WriteError: the disk is full, or fails.
    """
    folder = local_path(target.partial_dir) / shard.name
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with space_errors(folder):
            folder.mkdir()
            files = Files(shard, folder, local_path(target.output_dir))
            packer.pack(shard, files)
            files.publish()
    except BaseException:  # remove all of it: a full disk would stay full
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Packed(files.sizes, bool(files.made), tuple(files.left_out), files.classes)


class _Finished(Struct):
    """The files of the shards so far, and the class in each folder."""

    paths: set[str] = field(default_factory=set)
    classes: dict[str, int] = field(default_factory=dict)

    def add(self, shard: str, packed: Packed) -> None:
        """Add those of one more shard; raise InputError if it has the same file, or another class
        in the same folder.
        """
        repeated_paths = self.paths & packed.sizes.keys()
        if repeated_paths:
            raise same_name(shard, min(repeated_paths))
        for folder, index in packed.classes.items():
            refuse_shared(self.classes, folder, index, shard)
        self.paths |= packed.sizes.keys()


class ExportedFile(Struct, frozen=True):
    """A line of an export's journal: a file by its path in the export, and its bytes."""

    path: str
    size: int


def sizes_on_record(journal: AnyPath) -> dict[str, int]:
    """The bytes of each file in the journal of an export;
    a line that a crash cut short is skipped.
    """
    sizes = dict[str, int]()
    for line in plain_lines(journal):
        with contextlib.suppress(ValueError):
            exported = decode(line, type=ExportedFile)
            sizes[exported.path] = exported.size
    return sizes


class ExportRun(Struct, frozen=True):
    """One run of an export: the bytes of each shard's files, the shards exported now, and the
    errors of others.

    ``journal`` has a line per file that is a shard's, once it has its name. ``names`` is the file
    that names the damaged records ``left_out``, of earlier runs too until their shard is exported
    again; it is written first.
    """

    journal: AnyPath
    names: AnyPath
    sizes: dict[str, int]
    left_out: dict[str, tuple[DamagedImage, ...]] = {}
    made: set[str] = field(default_factory=set)
    failures: list[Exception] = []

    def export_shards(
        self,
        packer: Packer,
        target: Layout,
        engine: Engine,
        shards: Sequence[SourceShard],
        progress: Progress,
    ) -> None:
        """Export these shards. A failing shard does not stop the others; its error is among the
        failures.

        Raises:
            SpaceError, WriteError: the disk is full, or fails.
        """
        finished = _Finished()
        pack = functools.partial(pack_shard, packer, target)
        with contextlib.closing(engine.map(pack, shards)) as results:
            for result in results:
                name = result.task.name
                progress.advance(result.task.size)
                if isinstance(result, Failed):
                    self.failures.append(named(result.error, name))
                    continue
                packed: Packed = result.value
                sizes = packed.sizes
                try:
                    finished.add(name, packed)
                except InputError as error:
                    self.failures.append(error)
                    continue
                self.sizes[name] = sum(sizes.values())
                if packed.is_made:
                    self.made.add(name)
                self._keep_names(name, packed.left_out)
                if packer.unit == "shard":
                    self._record(sizes)
        out = local_path(target.output_dir)
        with writing(out):
            sync_file_system(out)

    def _keep_names(self, shard: str, left_out: tuple[DamagedImage, ...]) -> None:
        """Write the names of the damaged records again, durably,
        if this shard has other ones than before.
        """
        if left_out == self.left_out.get(shard, ()):
            return
        self.left_out[shard] = left_out
        images = [self.left_out[name] for name in sorted(self.left_out, key=by_number)]
        write_damaged_images(self.names, itertools.chain.from_iterable(images))

    def _record(self, sizes: Mapping[str, int]) -> None:
        lines = [encode(ExportedFile(path, size)) + b"\n" for path, size in sizes.items()]
        with contextlib.closing(append_to(self.journal)) as journal:
            journal.append(b"".join(lines))
