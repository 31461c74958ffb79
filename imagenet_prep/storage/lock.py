"""One writer at a time: locks that a holder leaves no trace of, however it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from imagenet_prep.errors import BusyError
from imagenet_prep.storage.durable import make_folder
from imagenet_prep.storage.refusals import writing

_held: set[Path] = set()


@contextlib.contextmanager
def hold(paths: Iterable[Path]) -> Iterator[None]:
    """Hold the folders of a run, each by its lock file, against other runs; re-entrant within a process.

    A POSIX record lock: it dies with its process, however that ends, and is not inherited by workers.

    Raises:
        BusyError: another process holds it; the error names the process.
        SpaceError: no space is left for the lock.
        WriteError: the folder can't be written.
    """
    with contextlib.ExitStack() as stack:
        # Not Path.resolve: of a link to itself that makes, before Python 3.13, an error that is none of the system's.
        for path in sorted({os.path.realpath(path) for path in paths}):
            stack.enter_context(_hold(Path(path)))
        yield


@contextlib.contextmanager
def _hold(path: Path) -> Iterator[None]:
    if path in _held:
        yield  # by this process, further up
        return
    created = make_folder(path.parent)
    try:
        descriptor = _acquire(path)
        _held.add(path)
        try:
            yield
        finally:
            _held.remove(path)
            _let_go(descriptor, path)
    finally:
        for folder in created:  # a command that failed at once leaves nothing behind
            with contextlib.suppress(OSError):
                folder.rmdir()


def _acquire(path: Path) -> int:
    while True:
        with writing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(descriptor)
            os.close(descriptor)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise OSError(error.errno, error.strerror, os.fspath(path)) from error
            raise BusyError(
                f"another run holds {path.parent.parent}",
                f"held by {holder or 'a process that is just starting'}",
                "wait until it is done, or stop it, then run the same command again",
            ) from None
        if is_current(descriptor, path):
            _sign(descriptor, path)
            return descriptor
        os.close(descriptor)  # its holder removed the file between our open and our lock: take the new one


def _holder(descriptor: int) -> str:
    """Who signed the lock; empty if nobody has yet, or it can't be read."""
    try:
        return os.pread(descriptor, 200, 0).decode(errors="replace").strip()
    except OSError:
        return ""


def _sign(descriptor: int, path: Path) -> None:
    """Write into the lock who holds it; where that fails, on a full disk, nothing stays behind."""
    try:
        with writing(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
    except BaseException:
        _let_go(descriptor, path)
        raise


def _let_go(descriptor: int, path: Path) -> None:
    """Remove a lock of ours. Where the system refuses that, it lies there and hinders nobody: its process is gone.

    What is raised here would take the place of the error that the work has ended with.
    """
    with contextlib.suppress(OSError):
        path.unlink()
    with contextlib.suppress(OSError):
        os.close(descriptor)


def flock(descriptor: int) -> None:
    """Lock a file for as long as it is open; raises BlockingIOError if another descriptor holds it."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_current(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
