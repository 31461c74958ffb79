"""Files that appear under their final names together, when all of them are whole, or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast, get_args

from imagenet_prep.errors import BusyError, SpaceError, UsageError
from imagenet_prep.storage.local import LocalStore
from imagenet_prep.storage.lock import locked
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.store import Sink, Store
from imagenet_prep.tfrecord.compression import MAX_RECORD, Compression, RecordWriter

MAX_MESSAGE = (1 << 31) - 1
"""Protobuf, and so every reader of Examples, refuses a message beyond this many bytes."""

HELD = 8 << 20
"""Bytes that wait for being written, over all files: larger pieces are no faster."""

_LOCK = "lock"


def check_compression(compression: str | None) -> Compression:
    """The compression that is meant; TensorFlow writes GZIP, others gzip.

    Raises:
        UsageError: there is no such one.
    """
    name, known = "none" if compression is None else str(compression).lower(), get_args(Compression)
    if name in known:
        return cast(Compression, name)
    raise UsageError(f"compression {compression!r}", "expected None, 'gzip' or 'zlib'")


def check_length(data: bytes, number: int, compression: Compression) -> None:
    """Raise UsageError if record ``number`` is longer than readers take; ours take less of a compressed file."""
    limit = MAX_MESSAGE if compression == "none" else MAX_RECORD
    if len(data) > limit:
        raise UsageError(f"record {number} has {len(data):,} bytes", f"expected at most {limit:,}")


@contextlib.contextmanager
def writing_all_of(target: Path) -> Iterator[None]:
    """Turn what the system says against writing ``target`` into the error that names it: nothing of it will stay."""
    try:
        with writing(target):
            yield
    except SpaceError as error:
        detail = "nothing of it is kept; what was there before stays"
        raise SpaceError(error.what, detail, "free some space and write it again") from error


@contextlib.contextmanager
def staging(target: Path) -> Iterator[Store]:
    """The folder of ``target`` as a store; what is not finished lies beside it, hidden from its patterns.

    That goes when the block ends. What a killed writer left there is removed.

    Raises:
        BusyError: another writer has it, in this process or another.
        WriteError: it can't be made.
    """
    folder = target.with_name(f".{target.name}.writing")
    with contextlib.ExitStack() as stack:
        with writing_all_of(target):
            folder.mkdir(parents=True, exist_ok=True)
            stack.callback(_quietly, folder.rmdir)
            try:
                stack.enter_context(locked(folder / _LOCK))
            except BlockingIOError:
                raise BusyError(
                    f"{target} is being written by someone else",
                    "expected one writer at a time",
                    "give each process a name of its own to write under",
                ) from None
            stack.callback(_quietly, _empty, folder)
            _empty(folder)
        yield LocalStore(target.parent, folder)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != _LOCK:  # that goes last, with the lock: until then nobody else puts files here
            path.unlink()


def _quietly(call: Callable[..., object], *arguments: object) -> None:
    with contextlib.suppress(OSError):  # what the block ended with is what counts
        call(*arguments)


def publish(files: Sequence[RecordFile], store: Store, names: Sequence[str], replaced: Sequence[str] = ()) -> None:
    """Give finished files their names, after removing ``replaced``; if that fails, none of them stays."""
    for name in replaced:  # first, so that no moment shows a set mixed from old and new
        store.delete(name)
    placed: list[str] = []
    try:
        for file, name in zip(files, names, strict=True):
            file.sink.commit(name)
            placed.append(name)
    except BaseException:
        for name in placed:
            store.delete(name)
        raise
    store.sync_names()


class RecordFile:
    """One TFRecord file on its way; between two flushes it is not open, so that there can be any number.

    ``records`` takes the records. What the system refuses is a SpaceError or a WriteError that names ``target``.
    """

    def __init__(self, sink: Sink, target: Path, compression: Compression) -> None:
        self.sink = sink
        self.records = RecordWriter(self._put, compression, HELD)
        self._target = target

    def flush(self) -> None:
        """Write what is held back."""
        self.records.flush()
        self.sink.rest()

    def finish(self) -> None:
        """Write everything and make it durable; nothing can be added after that."""
        self.records.close()
        with writing_all_of(self._target):
            self.sink.seal()
            self.sink.rest()

    def _put(self, parts: Sequence[bytes | memoryview]) -> None:
        with writing_all_of(self._target):
            self.sink.write(parts)
