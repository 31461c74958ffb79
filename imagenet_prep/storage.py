"""Writing so that no final name ever holds partial content, and one run at a time on a DATA_DIR."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal

from imagenet_prep.errors import BusyError, InputError, SpaceError, WriteError
from imagenet_prep.layout import Layout

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_IOV_MAX = 1024  # buffers a writev takes, on Linux and on macOS
_held: set[Path] = set()


@contextlib.contextmanager
def space_errors(path: Path) -> Iterator[None]:
    """Turn "no space left" from the system into a SpaceError naming ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise no_space(path) from error
        raise


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn whatever the system says against writing ``path`` into the error that names it."""
    try:
        with space_errors(path):
            yield
    except OSError as error:
        raise WriteError(f"cannot write {path}", str(error), "mend that and run the same command again") from error


def no_space(path: Path) -> SpaceError:
    """The SpaceError for a full disk under ``path``."""
    return SpaceError(
        f"no space left while writing {path}",
        "everything finished so far is kept",
        "free some space and run the same command again",
    )


def check_free_space(folder: Path, needed: int, purpose: str) -> None:
    """Raise SpaceError if less than ``needed`` bytes are free on the file system of ``folder``."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise SpaceError(
            f"not enough space in {folder} {purpose}",
            f"needed {needed:,} bytes, free {free:,} bytes",
            "free some space or choose another folder, then run the same command again",
        )


def write_all(descriptor: int, parts: Sequence[bytes | memoryview]) -> None:
    """Write every byte of ``parts``, one after the other, gathered by the kernel: nothing is joined or copied here."""
    pending = list(parts)
    while pending:
        pending = _after(pending, os.writev(descriptor, pending[:_IOV_MAX]))


def begin_write_out(descriptor: int) -> None:
    """Let the disk work on what was written while more is being made, so that the sync at the end waits for little.

    Linux begins to write out what is dirty when told that it will not be needed; pages on their way to the disk stay
    in memory.
    """
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):  # advice: where it can't be taken, nothing is lost
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


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


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under ``path`` whole and durable, or, if the block raises, not at all.

    Several writers may be at it at once: each has a file of its own until its last step, and the last one wins.
    """
    make_folder(path.parent)
    with writing(path):
        _remove_abandoned(path)
        partial, descriptor = _create_partial(path)
    try:
        with writing(path), os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            partial.replace(path)
            fsync_dir(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):  # what the block raised is what counts
            partial.unlink(missing_ok=True)
        raise


def _create_partial(path: Path) -> tuple[Path, int]:
    """A new file beside ``path`` and its descriptor; locked, so that others see that it is not abandoned."""
    while True:
        partial = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            _flock(descriptor)
        except BlockingIOError:  # another writer is about to remove it: it came between our two calls
            pass
        except OSError:  # no locks here: then nobody removes what is abandoned either
            return partial, descriptor
        else:
            if _is_current(descriptor, partial):
                return partial, descriptor
        os.close(descriptor)


def _remove_abandoned(path: Path) -> None:
    """Remove what writers of ``path`` left that were killed; no file that a living one holds."""
    for partial in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        with contextlib.suppress(OSError):  # it is held, or gone
            descriptor = os.open(partial, os.O_WRONLY | os.O_CLOEXEC)
            try:
                _flock(descriptor)
                partial.unlink()
            finally:
                os.close(descriptor)


def _flock(descriptor: int) -> None:
    """Lock a file for as long as it is open; raises BlockingIOError if another descriptor holds it."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def save_bytes(path: Path, content: bytes) -> bool:
    """Write ``content`` atomically unless the file holds just that already; say whether it was written."""
    if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
        return False
    with atomic_file(path) as file:
        file.write(content)
    return True


def save_json(path: Path, value: Any) -> bool:
    """Write a JSON value atomically, readable by people, unless it is there already."""
    return save_bytes(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def load_json(path: Path) -> Any:
    """The JSON value in a file, or None if there is no file or it isn't JSON (then it is as good as absent)."""
    content = find_plain(path)
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        return None


def unreadable(path: Path, error: OSError) -> InputError:
    """The error for a file that is there and can't be read."""
    return InputError(f"{path} can't be read", error.strerror or str(error), "mend that and run the same command again")


def read_plain(path: Path, most: int = 1 << 30) -> bytes:
    """The content of a file of at most ``most`` bytes. Never waits for a pipe, or reads from a device without end.

    Raises:
        InputError: it is not there, can't be read, is larger, or is no plain file.
    """
    content = find_plain(path, most)
    if content is None:
        raise unreadable(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    return content


def find_plain(path: Path, most: int = 1 << 30) -> bytes | None:
    """The same, or None if there is no such file."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"{path} is no plain file", "expected a file of its own, got a pipe or a device")
            if status.st_size > most:
                raise InputError(f"{path} holds {status.st_size:,} bytes", f"expected at most {most:,} bytes")
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:  # no system takes such a name
        raise InputError(f"{path} can't be read", str(error)) from error


def open_plain(path: Path) -> IO[bytes]:
    """Open a file to read it, without waiting for a pipe.

    Raises:
        OSError: it can't be opened, or is no plain file.
    """
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115 - whoever asked for it closes it
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "it is no plain file", os.fspath(path))


def kind_of(path: Path) -> Literal["file", "folder", "other", "nothing"]:
    """What lies under a path that came from a file.

    Raises:
        InputError: no telling: there is no right to look, it is too long, or a link to itself.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "nothing"
    except OSError as error:
        raise unreadable(path, error) from error
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def _open_at_once(name: str, flags: int) -> int:
    """Open a file; a pipe too, whether or not anyone writes to it."""
    return os.open(name, flags | os.O_NONBLOCK)


@contextlib.contextmanager
def hold(layout: Layout) -> Iterator[None]:
    """Hold DATA_DIR, and the folder of the shards if that is another, against other runs; re-entrant within a process.

    A POSIX record lock: it dies with its process, however that ends, and is not inherited by workers.

    Raises:
        BusyError: another process holds it; the error names the process.
        SpaceError: no space is left for the lock.
        WriteError: the folder can't be written.
    """
    with contextlib.ExitStack() as stack:
        # Not Path.resolve: of a link to itself that makes, before Python 3.13, an error that is none of the system's.
        for path in sorted({os.path.realpath(path) for path in layout.lock_paths}):
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
        if _is_current(descriptor, path):
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


def _is_current(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
