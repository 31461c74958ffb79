"""Bytes and names that survive a crash of the system: gathered writes, syncs, new folders; and space given back."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from imagenet_prep.storage.refusals import writing

_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # fallocate(2): linux/falloc.h
_NOT_HERE = (errno.EOPNOTSUPP, errno.ENOSYS)
_IOV_MAX = 1024  # buffers a writev takes, on Linux and on macOS


def write_all(descriptor: int, parts: Sequence[bytes | memoryview]) -> None:
    """Write every byte of ``parts``, one after the other, gathered by the kernel: nothing is joined or copied here."""
    for start in range(0, len(parts), _IOV_MAX):
        pending = list(parts[start : start + _IOV_MAX])
        while pending:
            pending = _after(pending, os.writev(descriptor, pending))


def begin_write_out(descriptor: int, start: int = 0, length: int = 0) -> None:
    """Let the disk work on what was written from ``start`` on while more is made: the sync at the end waits for little.

    Linux begins to write out what is dirty when told that it will not be needed; pages on their way to the disk stay
    in memory, those that are there already leave it. ``length``: of so many bytes; 0: to the end of the file.
    """
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):  # advice: where it can't be taken, nothing is lost
            os.posix_fadvise(descriptor, start, length, os.POSIX_FADV_DONTNEED)


def _after(parts: list[bytes | memoryview], written: int) -> list[bytes | memoryview]:
    """What is left of a gather list once the kernel took ``written`` bytes of it."""
    for position, part in enumerate(parts):
        if written < len(part):
            return [memoryview(part)[written:], *parts[position + 1 :]]
        written -= len(part)
    return []


def fsync_dir(folder: Path) -> None:
    """Make renames in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it, durably: what is synced in it later can't be reached without their names.

    Returns:
        The folders that had to be made, the innermost first.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for each in reversed(missing):
            fsync_dir(each.parent)
    return missing


def sync_file_system(folder: Path) -> None:
    """Make all that was written to the file system of ``folder`` durable, in one go for any number of files.

    Raises:
        OSError: the disk did not take some of it (syncfs(2), Linux 5.8 and later; os.sync never says so).
    """
    import ctypes

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:  # not Linux
            os.sync()
        elif syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), os.fspath(folder))
    finally:
        os.close(descriptor)


def punch(path: Path, start: int, stop: int) -> None:
    """Give back the bytes of ``path`` from ``start`` to ``stop``; what was there is gone.

    Raises:
        OSError: the system refused; of what was asked nothing or some of it is done.
    """
    descriptor = os.open(path, os.O_WRONLY)
    try:
        _punch(descriptor, start, stop)
    finally:
        os.close(descriptor)


def can_punch(folder: Path) -> bool:
    """Whether the file system of ``folder`` gives space back, tried on a file of no name: nothing appears there.

    Raises:
        OSError: nothing can be written there.
    """
    import tempfile

    if sys.platform != "linux":
        return False
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(1 << 12))
        file.flush()
        try:
            _punch(file.fileno(), 0, 1 << 12)
        except OSError as error:
            if error.errno in _NOT_HERE:
                return False
            raise
    return True


def _punch(descriptor: int, start: int, stop: int) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    call = getattr(libc, "fallocate64", None) or libc.fallocate  # musl has one, of 64 bits, everywhere
    mode, offset, length = ctypes.c_int(_PUNCH_HOLE | _KEEP_SIZE), ctypes.c_int64(start), ctypes.c_int64(stop - start)
    while call(ctypes.c_int(descriptor), mode, offset, length) != 0:
        if ctypes.get_errno() != errno.EINTR:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
