"""Dictionaries -> a TFRecord file, or a set of shards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, cast, get_args

from imagenet_prep.errors import BusyError, SpaceError, UsageError
from imagenet_prep.hints import Hint
from imagenet_prep.records.encoder import Encoder, Writable, refuse_single
from imagenet_prep.storage.durable import make_folders
from imagenet_prep.storage.files import kind_in_words
from imagenet_prep.storage.layout import parse_shard_name, shard_name
from imagenet_prep.storage.local import LocalStore
from imagenet_prep.storage.location import Sink, refuse_url
from imagenet_prep.storage.lock import locked, remove_claim
from imagenet_prep.storage.refusals import writing
from imagenet_prep.text import SIZES, number_of, parse_size
from imagenet_prep.tfrecord.compression import MAX_RECORD, Compression, RecordWriter
from imagenet_prep.tfrecord.example import Kind
from imagenet_prep.tfrecord.framing import OVERHEAD

MAX_MESSAGE = (1 << 31) - 1
"""Protobuf, and so every reader of Examples, refuses a message beyond this many bytes."""

HELD = 8 << 20
"""Bytes held back for writing, over all files: larger pieces are no faster."""

_LOCK = "lock"


def _is_count(value: object) -> bool:
    """Whether a value is a whole number from 1, Python's or NumPy's."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _check_target(target: Path) -> None:
    with writing_all_of(target):
        if not target.name or (target.exists() and not target.is_file()):
            raise UsageError(
                f"{target} is {kind_in_words(target)}",
                "expected the name of a file, new or to be replaced",
            )


def write(
    path: str | os.PathLike[str],
    records: Iterable[Writable],
    compression: str | None = None,
    *,
    schema: Mapping[str, Kind] | None = None,
) -> int:
    """Write records to a TFRecord file, replacing an existing one; returns their number.

    The file appears when the last record is written: a partial file is never visible.

    Args:
        path: the file; its folder is created if it does not exist.
        records: dictionaries, each becoming a tf.train.Example, or SequenceExamples; or messages of
            tf.train or their bytes, which are written unchanged.
        compression: of the whole file: None, "gzip" or "zlib", in any case.
        schema: the kind of each feature that should not be inferred, by name: "int64", "float" or
            "bytes".

    Raises:
        UsageError: a record can't be written; the error names record and feature. Or the path is a
            URL.
        SpaceError: no space is left.
        BusyError: another process is writing that file.
        WriteError: the system refuses to write.
    """
    refuse_single(records)
    with open_writer(path, compression, schema=schema) as file:
        for record in records:
            file.write(record)
    return file.records


def open_writer(
    path: str | os.PathLike[str],
    compression: str | None = None,
    *,
    schema: Mapping[str, Kind] | None = None,
) -> FileWriter:
    """A writer of one file, for a ``with`` block: ``write(image=..., label=...)`` appends a record.

    The file appears when the block ends, and replaces an existing one. If the block raises, nothing
    appears. Arguments and errors are those of ``write``.
    """
    refuse_url(path)
    _check_target(Path(path))
    return FileWriter(path, shards=1, compression=compression, schema=schema)


class ShardWriter:
    """Writes records to a set of shards, ``PREFIX-00000-of-00008`` and so on, that appear together
    when the block ends.

    If the block raises, nothing appears. With ``shards``, records are distributed in turn. With
    ``shard_size``, a new shard starts when a record would exceed that size; a record larger than
    that has a shard of its own.

    Args:
        prefix: the path of every shard up to its number; its folder is created if it does not
            exist.
        shards: the number of shards; those without a record are empty files.
        shard_size: bytes before compression, as a number or as a text such as "100MB" (10^6) or
            "1.5GiB" (2^30).
        compression: of each shard as a whole: None, "gzip" or "zlib", in any case.
        schema: the kind of each feature that should not be inferred, by name: "int64", "float" or
            "bytes".
        overwrite: replace existing shards with this prefix.

    The attribute ``records`` is the number of records written. The attribute ``paths`` lists the
    shards, once the block has ended.

    Raises:
        UsageError: an argument is wrong, or shards with this prefix exist.
    """

    def __init__(
        self,
        prefix: str | os.PathLike[str],
        *,
        shards: int | None = None,
        shard_size: int | str | None = None,
        compression: str | None = None,
        schema: Mapping[str, Kind] | None = None,
        overwrite: bool = False,
    ) -> None:
        if (shards is None) == (shard_size is None):
            given = "neither is given" if shards is None else "both are given"
            raise UsageError(f"shards and shard_size: {given}", "expected one of the two")
        if shards is not None and not _is_count(shards):
            raise UsageError(f"shards {shards!r}", "expected a whole number, at least 1")
        refuse_url(prefix)
        self._prefix = Path(prefix)
        if not self._prefix.name:
            raise UsageError(
                f"prefix {os.fspath(prefix)!r} does not end with a name",
                "expected the start of every shard's path, such as data/train",
            )
        self._count = shards or 1
        self._size = None if shard_size is None else parse_size(shard_size)
        if shard_size is not None and self._size is None:
            raise UsageError(f"shard_size {shard_size!r}", SIZES)
        self._compression = check_compression(compression)
        self._encoder = Encoder(schema)
        self._overwrite = overwrite
        self._block: contextlib.ExitStack | None = None
        self._store: LocalStore  # set when the block starts
        self._open: list[RecordFile] = []  # the shards that still receive records
        self._held = 0
        self._finished: list[RecordFile] = []
        self._failure: BaseException | None = None
        self.records = 0
        self.paths: tuple[Path, ...] = ()

    def __enter__(self) -> ShardWriter:
        """Start the set.

        Raises:
            UsageError: shards with this prefix exist, and ``overwrite`` is not set.
            BusyError: another writer has this prefix.
            WriteError: the system refuses to write.
        """
        if self._open:
            raise UsageError(
                f"this ShardWriter of {self._prefix} was used in another with block",
                "expected a new ShardWriter for each with block",
            )
        with contextlib.ExitStack() as stack:
            self._store = stack.enter_context(staging(self._prefix))
            stack.callback(self._discard)
            old_shards = self._old_shards()
            if old_shards and not self._overwrite:
                raise self._already_there(old_shards)
            self._open = [self._new_file(index) for index in range(self._count)]
            self._block = stack.pop_all()
        return self

    def _already_there(self, old_shards: Sequence[str]) -> UsageError:
        return UsageError(
            f"{self._prefix.with_name(old_shards[0])} already exists",
            f"{number_of(len(old_shards), 'shard has', 'shards have')} the prefix "
            f"{self._prefix.name}: expected none",
            "remove them, or replace them with overwrite=True",
        )

    def write(self, record: Any = None, /, **features: Any) -> None:
        """Append one record, or one of these features. If the record itself is refused, you can
        continue with the next.

        Raises:
            UsageError: a value can't be stored; or the block has ended, or has not started.
            SpaceError: no space is left; the whole set is discarded.
            WriteError: the system refuses to write; the whole set is discarded.
        """
        if self._block is None:
            raise UsageError(
                f"write() of {self._prefix} was called outside of the writer's with block",
                "expected a call within the with block",
            )
        if self._failure is not None:
            raise self._failure
        if features:
            if record is not None:
                raise UsageError(
                    f"write() got a record and the feature {next(iter(features))!r}",
                    "expected a record, or features by name, not both",
                )
            record = features
        message = self._encoder.encode(record, self.records)
        check_length(message, self.records, self._compression)
        try:
            length, _ = self._file_for(message).records.write(message)
            self._held += length
            if self._held >= HELD:
                self._flush()
        except BaseException as error:
            # Half a piece may be written: the set is lost, even if the block catches this.
            self._failure = error
            raise
        self.records += 1

    def _flush(self) -> None:
        for file in self._open:
            file.flush()
        self._held = 0

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Publish all shards, or none after an exception."""
        assert self._block is not None
        block, self._block = self._block, None
        with block:
            if error_type is not None:
                return
            if self._failure is not None:
                raise self._failure
            self._publish()

    def _publish(self) -> None:
        self._finish_open()
        count = len(self._finished)
        names = self._names(count)
        with writing_all_of(self._prefix):
            publish(self._finished, self._store, names, self._old_shards())
        self.paths = tuple(map(self._prefix.with_name, names))

    def _names(self, count: int) -> list[str]:
        return [shard_name(self._prefix.name, index, count) for index in range(count)]

    def _file_for(self, message: bytes) -> RecordFile:
        """The file for a record: the next one in turn, or the last one if it has room."""
        file = self._open[self.records % len(self._open)]
        if self._size is None or not file.records.size:
            return file
        if file.records.size + len(message) + OVERHEAD <= self._size:
            return file
        self._finish_open()
        new_file = self._new_file(len(self._finished))
        self._open = [new_file]
        return new_file

    def _finish_open(self) -> None:
        for file in self._open:
            file.finish()
            self._finished.append(file)

    def _discard(self) -> None:
        for file in (*self._open, *self._finished):
            file.sink.discard()

    def _new_file(self, index: int) -> RecordFile:
        return RecordFile(self._store.create(str(index)), self._prefix, self._compression)

    def _old_shards(self) -> list[str]:
        """The existing shards with this prefix, of any set size."""
        shard_names = [name for name in self._store.list() if self._is_shard(name)]
        for path in map(self._prefix.with_name, shard_names):
            if path.is_dir():
                raise UsageError(
                    f"{path} is a folder", "expected a shard, or nothing", "move it away"
                )
        return shard_names

    def _is_shard(self, name: str) -> bool:
        parsed = parse_shard_name(name)
        return parsed is not None and parsed[0] == self._prefix.name


class FileWriter(ShardWriter):
    """Writes records to one file, which appears when the block ends; see ``open_writer``."""

    def _names(self, count: int) -> list[str]:
        return [self._prefix.name]

    def _file_for(self, message: bytes) -> RecordFile:
        return self._open[0]

    def _old_shards(self) -> list[str]:
        return []  # a rename replaces an existing file


# files that appear together under their final names, once all are complete ------------------------


def check_compression(compression: str | None) -> Compression:
    """The compression that a name stands for; TensorFlow writes GZIP, others gzip.

    Raises:
        UsageError: no compression has this name.
    """
    name = "none" if compression is None else str(compression).lower()
    if name in get_args(Compression):
        return cast(Compression, name)
    raise UsageError(f"compression {compression!r}", "expected None, 'gzip' or 'zlib'")


def check_length(message: bytes, number: int, compression: Compression) -> None:
    """Raise UsageError if record ``number`` is too long for readers;
    our own limit for compressed files is lower.
    """
    limit = MAX_MESSAGE if compression == "none" else MAX_RECORD
    length = len(message)
    if length > limit:
        where = "" if compression == "none" else " in a compressed file"
        raise UsageError(
            f"record {number} has {length:,} bytes", f"expected at most {limit:,}{where}"
        )


@contextlib.contextmanager
def writing_all_of(target: Path) -> Iterator[None]:
    """Turn a system error on writing ``target`` into one that names it and
    says that nothing of it is kept.
    """
    try:
        with writing(target):
            yield
    except SpaceError as error:
        detail = "no new record is kept; files that existed before are unchanged"
        hint = "free space on this disk, then write all records again"
        raise SpaceError(error.what, detail, hint) from error


@contextlib.contextmanager
def staging(target: Path) -> Iterator[LocalStore]:
    """The folder of ``target`` as a store; unfinished files are in a hidden folder next to it.

    The hidden folder is removed when the block ends. Leftovers of a killed writer are removed too.

    Raises:
        BusyError: another writer is using it, in this process or another.
        WriteError: it can't be created.
    """
    folder = target.with_name(f".{target.name}.writing")
    with contextlib.ExitStack() as stack:
        with writing_all_of(target):
            make_folders(folder)
            stack.callback(_quietly, folder.rmdir)
            try:
                stack.enter_context(locked(folder / _LOCK))
            except BlockingIOError:
                raise BusyError(
                    f"another writer has locked {target}",
                    "expected one writer at a time",
                    Hint("give each writer a name of its own", remove_claim(folder / _LOCK)),
                ) from None
            stack.callback(_quietly, _empty, folder)
            _empty(folder)
        yield LocalStore(target.parent, folder)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        # The lock, or the claim of it, is removed last: until then no other writer puts files here.
        if not path.name.startswith((_LOCK, f".{_LOCK}.")):
            path.unlink()


def _quietly(call: Callable[..., object], *arguments: object) -> None:
    with contextlib.suppress(OSError):  # the block's own outcome counts
        call(*arguments)


def publish(
    files: Sequence[RecordFile],
    store: LocalStore,
    names: Sequence[str],
    replaced: Sequence[str] = (),
) -> None:
    """Give finished files their names, in place of ``replaced``; if that fails, only those are
    there, as before.

    Replaced files wait in the hidden folder, which is removed after this.
    """
    hidden_folder = store.unfinished or store.folder
    hidden_names: list[str] = []
    committed_names: list[str] = []
    try:
        for name in replaced:  # first, so that old and new shards never mix
            (store.folder / name).rename(hidden_folder / name)
            hidden_names.append(name)
        for file, name in zip(files, names, strict=True):
            file.sink.commit(name)
            committed_names.append(name)
    except BaseException:
        for name in committed_names:
            store.delete(name)
        for name in hidden_names:
            (hidden_folder / name).rename(store.folder / name)
        raise
    store.sync_names()


class RecordFile:
    """One TFRecord file being written; it is open only during a flush, so the number of files is
    unlimited.

    ``records`` receives the records. A system error is raised as a SpaceError or a WriteError that
    names ``target``.
    """

    def __init__(self, sink: Sink, target: Path, compression: Compression) -> None:
        self.sink = sink
        self.records = RecordWriter(self._put, compression, HELD)
        self._target = target

    def flush(self) -> None:
        """Write all held bytes."""
        self.records.flush()
        self.sink.rest()

    def finish(self) -> None:
        """Write everything and make it durable; no record can be added afterwards."""
        self.records.close()
        with writing_all_of(self._target):
            self.sink.seal()
            self.sink.rest()

    def _put(self, parts: Sequence[bytes | memoryview]) -> None:
        with writing_all_of(self._target):
            self.sink.write(parts)
