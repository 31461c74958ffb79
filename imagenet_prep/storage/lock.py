"""Locks on files: a killed holder leaves no lock, and neither do its forked processes.

Where the file system has no locks, the names of other files tell who holds one: see claims.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from imagenet_prep.errors import BusyError, WriteError
from imagenet_prep.escaping import command_line
from imagenet_prep.hints import Hint
from imagenet_prep.storage.claims import NO_LOCKS, claimed, find_claims
from imagenet_prep.storage.durable import make_folder, refuse_blocked
from imagenet_prep.storage.refusals import writing

_held: set[Path] = set()
_descriptors: set[int] = set()


def take(path: Path, flags: int = 0) -> int:
    """Open a file, created if missing, and lock it until this descriptor and its forked copies are
    closed.

    Raises:
        BlockingIOError: another descriptor, of this process or another, holds the lock.
        OSError: the system refuses; the error names the file.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_current(descriptor, path):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        os.close(descriptor)  # the holder removed the file between open and lock: use the new file


def is_current(descriptor: int, path: Path) -> bool:
    """Whether an open file still has that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Take a lock, and remove its file at the end; forked children don't keep the lock.

    A file that the system refuses to remove stays and blocks nobody. An error here would replace
    the error that ended the work.

    Raises:
        BlockingIOError: it is held, by this process or another.
        OSError: the system refuses.
    """
    with contextlib.ExitStack() as stack:
        try:
            descriptor = take(path)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            stack.enter_context(claimed(path))
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _descriptors.add(descriptor)
        stack.callback(_release, descriptor, path)
        yield descriptor


def _release(descriptor: int, path: Path) -> None:
    if descriptor in _descriptors:  # otherwise this is a forked child, and the lock is its parent's
        _descriptors.remove(descriptor)
        with contextlib.suppress(OSError):
            path.unlink()
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _let_go_in_child() -> None:
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()


os.register_at_fork(after_in_child=_let_go_in_child)


@contextlib.contextmanager
def hold(paths: Iterable[Path], *, instead: str = "") -> Iterator[None]:
    """Lock the folders of a run, each by its lock file, against other runs; re-entrant within a
    process. ``instead`` is the advice for a folder that can't be written.

    Raises:
        BusyError: another process holds it; the error names the process.
        SpaceError: no space is left for the lock.
        WriteError: the folder can't be written, or a broken link has its name.
    """
    with contextlib.ExitStack() as stack:
        try:
            _take_all([*paths], stack)
        except WriteError as error:
            reason = error.__cause__
            if not instead or not isinstance(reason, OSError) or reason.errno not in _NOT_WRITABLE:
                raise
            raise WriteError(error.what, error.detail, instead) from reason
        yield


_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def _take_all(lock_paths: Sequence[Path], stack: contextlib.ExitStack) -> None:
    for lock_path in lock_paths:
        with writing(lock_path):
            refuse_blocked(lock_path.parent)  # the real path of a broken link could be made
    # Path.resolve raises an error without an errno for a link to itself, before Python 3.13.
    for path in sorted({os.path.realpath(path) for path in lock_paths}):
        stack.enter_context(_hold(Path(path)))


@contextlib.contextmanager
def _hold(path: Path) -> Iterator[None]:
    if path in _held:
        yield  # a caller in this process holds it
        return
    created = make_folder(path.parent)
    try:
        with contextlib.ExitStack() as stack:
            with writing(path):
                try:
                    path.touch()
                    descriptor = stack.enter_context(locked(path))
                except (
                    BlockingIOError,
                    FileNotFoundError,
                ):  # a run that ends may remove the folder too
                    raise _busy(path) from None
                os.ftruncate(descriptor, 0)
                os.pwrite(
                    descriptor, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0
                )
            _held.add(path)
            stack.callback(_held.remove, path)
            yield
    finally:
        for folder in created:  # a command that failed at once leaves no folders
            with contextlib.suppress(OSError):
                folder.rmdir()


def find_holder(paths: Iterable[Path]) -> str:
    """The living process of this machine that holds one of these lock files, and since when; "" if
    there is none.

    The file tells: trying its lock would block a command that starts at that moment.
    """
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # there is no such file, or it names nobody
            holder = path.read_bytes()[:200].decode().strip()
            _, process, _, host = holder.split(maxsplit=3)
            is_there = host == os.uname().nodename and Path("/proc", process).exists()
            if is_there and Path(os.path.realpath(path)) not in _held:
                locked_at = time.localtime(path.stat().st_mtime)
                return f"{holder} since {time.strftime('%Y-%m-%d %H:%M', locked_at)}"
    return ""


def _busy(path: Path) -> BusyError:
    claims = find_claims(path)
    holder = ""
    # the file names the holder, unless it is unreadable or was released meanwhile
    with contextlib.suppress(OSError):
        holder = path.read_bytes()[:200].decode(errors="replace").strip()
    if claims:
        holder = str(claims[0])
    return BusyError(
        f"another run holds {path.parent.parent}",
        f"held by {holder or 'a process that has just started or ended'}",
        Hint("wait until it ends, or stop it, then run the same command again", remove_claim(path)),
    )


def remove_claim(path: Path) -> str:
    """How to release a lock that a killed process of another machine claims;
    "" if there is no such claim.
    """
    for claim in find_claims(path):
        if claim.fate == "unknown":
            remove = command_line(["rm", str(claim.path(path))])
            return Hint(f"; if {claim} is gone, remove its lock file: ", remove)
    return ""
