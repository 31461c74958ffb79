"""Makes bytes and names survive a crash of the system: gathered writes, syncs, new folders;
and frees space.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from imagenet_prep.errors import WriteError
from imagenet_prep.escaping import CommandLine, command_line
from imagenet_prep.hints import Hint
from imagenet_prep.storage.refusals import writing

_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # fallocate(2): linux/falloc.h
_NOT_HERE = (errno.EOPNOTSUPP, errno.ENOSYS)
_IOV_MAX = 1024  # buffers a writev takes, on Linux and on macOS


def write_all(descriptor: int, parts: Sequence[bytes | memoryview]) -> None:
    """Write every byte of ``parts`` in order;
    the kernel gathers them, so nothing is joined or copied.
    """
    for start in range(0, len(parts), _IOV_MAX):
        pending = list(parts[start : start + _IOV_MAX])
        while pending:
            pending = _after(pending, os.writev(descriptor, pending))


def begin_write_out(descriptor: int, start: int = 0, length: int = 0) -> None:
    """Start writing bytes from ``start`` to the disk while more are made, so that the final sync is
    short.

    Linux starts to write dirty pages on advice that they are not needed. Pages on their way to the
    disk stay in memory; clean pages leave it. ``length`` is a number of bytes; 0 means to the end
    of the file.
    """
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):  # advice only: a refusal loses nothing
            os.posix_fadvise(descriptor, start, length, os.POSIX_FADV_DONTNEED)


def _after(parts: list[bytes | memoryview], written: int) -> list[bytes | memoryview]:
    """The part of a gather list that remains after the kernel wrote ``written`` bytes of it."""
    if written == sum(map(len, parts)):  # nearly always
        return []
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
    """Make a folder and its parents durably: files synced in it are lost without their names.

    Returns:
        The folders that did not exist, the innermost first.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing(folder):
        make_folders(folder)
        for new_folder in reversed(missing):
            fsync_dir(new_folder.parent)
    return missing


def make_folders(folder: Path) -> None:
    """Make a folder and its parents, however many: mkdir(parents=True) calls itself for each, and
    Python stops it after some hundred.

    Raises:
        WriteError: a broken link or a file has the name of one of them.
    """
    missing = _missing_folders(folder)
    if missing:
        _refuse_link_or_file(missing[-1])
    for path in reversed(missing):
        path.mkdir(exist_ok=True)


def _missing_folders(folder: Path) -> list[Path]:
    """The folder and its parents that are no folders, the innermost first."""
    return list(itertools.takewhile(lambda path: not path.is_dir(), (folder, *folder.parents)))


def refuse_blocked(folder: Path) -> None:
    """Raise WriteError if a folder can't be made, as ``make_folders`` does; make nothing."""
    for path in _missing_folders(folder)[-1:]:
        _refuse_link_or_file(path)


def _refuse_link_or_file(folder: Path) -> None:
    """Raise WriteError if a folder can't be made because a broken link or a file has its name."""
    try:
        mode = folder.stat().st_mode  # asked once: another thread may make the folder now
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP) and folder.is_symlink():
            raise WriteError(
                f"{folder} is a broken link: it leads to {os.path.realpath(folder)}",
                "expected a folder: is the disk mounted that the link leads to?",
                Hint("mount it, or make that folder; or move the link away: ", move_away(folder)),
            ) from None
        return  # it isn't there, or making it tells what is wrong
    if stat.S_ISDIR(mode):
        return
    kind = "a file" if stat.S_ISREG(mode) else "neither a file nor a folder"
    hint = Hint("correct the path, or move it away: ", move_away(folder))
    raise WriteError(f"{folder} is {kind}", "expected a folder, or a new path", hint)


def move_away(path: object) -> CommandLine:
    """The command that gives a path a name that nothing has: ``path.moved``, ``path.moved-2``."""
    return command_line(["mv", "--", str(path), unused_path(f"{path}.moved")])


def unused_path(stem: str, ending: str = "") -> str:
    """``stem`` and ``ending``, with a number between if something has that path: a command that
    writes to it replaces nothing.
    """
    path = f"{stem}{ending}"
    numbers = itertools.count(2)
    while os.path.lexists(path):
        path = f"{stem}-{next(numbers)}{ending}"
    return path


def sync_file_system(folder: Path) -> None:
    """Make everything written to the file system of ``folder`` durable, in one call for any number
    of files.

    Raises:
        OSError: the disk did not store all of it (syncfs(2), Linux 5.8 and later; os.sync never
            reports it).
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
    """Free the bytes of ``path`` from ``start`` to ``stop``; their content is lost.

    Raises:
        OSError: the system refused; some of the range may be freed.
    """
    descriptor = os.open(path, os.O_WRONLY)
    try:
        _punch(descriptor, start, stop)
    finally:
        os.close(descriptor)


def can_punch(folder: Path) -> bool:
    """Whether the file system of ``folder`` can free ranges, tried on an unnamed file: nothing
    appears there.

    Raises:
        OSError: the folder can't be written.
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
    call = (
        getattr(libc, "fallocate64", None) or libc.fallocate
    )  # musl has only fallocate, with 64-bit offsets
    mode, offset, length = (
        ctypes.c_int(_PUNCH_HOLE | _KEEP_SIZE),
        ctypes.c_int64(start),
        ctypes.c_int64(stop - start),
    )
    while call(ctypes.c_int(descriptor), mode, offset, length) != 0:
        if ctypes.get_errno() != errno.EINTR:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
