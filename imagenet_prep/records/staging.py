"""Files that appear under their final names together, when all of them are whole, or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from imagenet_prep.errors import BusyError, SpaceError, UsageError
from imagenet_prep.formats.compressed import MAX_RECORD, Compression
from imagenet_prep.formats.tfrecord import OVERHEAD, frame
from imagenet_prep.storage.durable import fsync_dir, write_all
from imagenet_prep.storage.refusals import writing

MAX_MESSAGE = (1 << 31) - 1
"""Protobuf, and so every reader of Examples, refuses a message beyond this many bytes."""

_WINDOW_BITS = {"gzip": 31, "zlib": 15}  # zlib's own encoding of "with a gzip header" and "with a zlib header"
_LOCK = "lock"


def check_compression(compression: str | None) -> Compression:
    """The compression that is meant; TensorFlow writes GZIP, others gzip.

    Raises:
        UsageError: there is no such one.
    """
    match compression.lower() if isinstance(compression, str) else compression:
        case None | "none":
            return "none"
        case "gzip":
            return "gzip"
        case "zlib":
            return "zlib"
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
def staging(target: Path) -> Iterator[Path]:
    """A folder beside ``target``, hidden from its patterns, for what is not finished; it goes when the block ends.

    What a killed writer left in it is removed.

    Raises:
        BusyError: another writer has it, in this process or another.
        WriteError: it can't be made.
    """
    folder = target.with_name(f".{target.name}.writing")
    with writing_all_of(target):
        descriptor = _lock(folder, target)
    try:
        with writing_all_of(target):
            for path in folder.iterdir():
                if path.name != _LOCK:
                    path.unlink()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _lock(folder: Path, target: Path) -> int:
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), (folder / _LOCK).stat()):
                    return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise BusyError(
                f"{target} is being written by someone else",
                "expected one writer at a time",
                "give each process a name of its own to write under",
            ) from None
        os.close(descriptor)  # its holder removed the folder between our open and our lock: take the new one


def publish(staged: Sequence[Path], finals: Sequence[Path], replaced: Sequence[Path] = ()) -> None:
    """Give finished files their final names, after removing ``replaced``; if that fails, none of them stays."""
    for path in replaced:  # first, so that no moment shows a set mixed from old and new
        path.unlink(missing_ok=True)
    placed: list[Path] = []
    try:
        for path, final in zip(staged, finals, strict=True):
            path.replace(final)
            placed.append(final)
    except BaseException:
        for final in placed:
            final.unlink(missing_ok=True)
        raise
    fsync_dir(finals[0].parent)


class RecordFile:
    """One TFRecord file on its way; it is open only while a piece is written, so that there can be any number.

    ``size`` is the bytes of its records so far, framing included, before compression; ``held`` those not written yet.
    """

    def __init__(self, path: Path, target: Path, compression: Compression) -> None:
        self.path = path
        self.size = 0
        self.held = 0
        self._target = target
        self._parts: list[bytes] = []
        self._deflate = None if compression == "none" else zlib.compressobj(wbits=_WINDOW_BITS[compression])

    def add(self, data: bytes) -> None:
        """Append a record; it is held until the next flush."""
        header, footer, length = frame(data)
        self._parts += (header, data, footer)
        self.size += length + OVERHEAD
        self.held += length + OVERHEAD

    def flush(self) -> None:
        """Write what is held back.

        Raises:
            SpaceError: no space is left.
            WriteError: the system refuses.
        """
        parts = self._parts if self._deflate is None else [self._deflate.compress(part) for part in self._parts]
        self._append(parts)
        self._parts, self.held = [], 0

    def finish(self) -> None:
        """Write everything and make it durable; nothing can be added after that.

        Raises:
            SpaceError: no space is left.
            WriteError: the system refuses.
        """
        self.flush()
        self._append([] if self._deflate is None else [self._deflate.flush()], durable=True)

    def _append(self, parts: Sequence[bytes], *, durable: bool = False) -> None:
        with writing_all_of(self._target), self.path.open("ab", buffering=0) as file:
            write_all(file.fileno(), parts)
            if durable:
                os.fsync(file.fileno())
