"""Turns the system's refusals (OSError) into errors that name the file, the reason and the remedy;
None for a bug.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from imagenet_prep.errors import (
    BusyError,
    InputError,
    PrepError,
    SpaceError,
    UsageError,
    WriteError,
)
from imagenet_prep.hints import Hint, run_again

AGAIN = "and try again"


def free_space() -> str:
    """The hint for a full disk."""
    return Hint("free some space, then ", run_again())


def refuse_existing(path: Path, hint: str = "choose another name with --output") -> None:
    """Raise UsageError if a command would replace a file."""
    if path.exists():
        raise UsageError(f"{path} already exists", "expected a new file", hint)
    if path.is_symlink():
        raise UsageError(f"{path} is a broken link", "expected a new file", hint)


USED_UP = (errno.ENOSPC, errno.EDQUOT)

STORAGE_FAULTS = {
    errno.EIO: (
        f"its disk, or the network to it, fails: read the system's log (dmesg), fix that {AGAIN}"
    ),
    errno.EROFS: f"make its file system writable, or choose another folder, {AGAIN}",
    errno.EFBIG: (
        "its file system, or ulimit -f, limits file sizes: choose another folder, "
        "or raise the limit"
    ),
}
_GONE = """
ESTALE ENXIO ENODEV ENOMEDIUM ENOTCONN ESHUTDOWN ETIMEDOUT ECONNABORTED ECONNRESET EHOSTDOWN
EHOSTUNREACH ENETDOWN ENETUNREACH ENOLINK EREMOTEIO
"""
"""A disk or a mount that is there no more answers with these;
not every system knows all of them.
"""

STORAGE_FAULTS.update(
    dict.fromkeys(
        (vars(errno)[name] for name in _GONE.split() if name in vars(errno)),
        f"its storage went away: mount it again {AGAIN}",
    )
)
"""The storage fails, or can't be written: status 1."""


LIMITS: dict[int, str] = {
    errno.EMFILE: f"raise the limit of open files (ulimit -n), or try fewer --workers, {AGAIN}",
    errno.ENFILE: f"too many files are open on this machine: stop some programs {AGAIN}",
    errno.ENOMEM: f"try fewer --workers, or free some memory, {AGAIN}",
}
"""The system has run out of something: status 1."""

_CHECK_PERMISSIONS = f"check its permissions and those of its folder {AGAIN}"
_INPUT = {
    errno.EACCES: _CHECK_PERMISSIONS,
    errno.EPERM: _CHECK_PERMISSIONS,
    errno.ELOOP: f"a link leads back to itself, or over too many others: remove it {AGAIN}",
    errno.ENAMETOOLONG: "use a shorter name for the file, or a folder with a shorter path",
    errno.ENOTDIR: (
        f"expected a folder, found something else: correct the path, or move that away, {AGAIN}"
    ),
    errno.EISDIR: (
        f"expected a file, found a folder: correct the path, or move the folder away, {AGAIN}"
    ),
    errno.ENOENT: (
        f"a part of the path is missing, or a link is broken: correct or restore it, {AGAIN}"
    ),
    errno.EOPNOTSUPP: f"its file system can't do that: use another file system {AGAIN}",
}
"""The input is not as expected: status 4."""


NOT_PLAIN = "it is not a plain file"
"""The reason why a pipe, a socket or a device is not read."""


@contextlib.contextmanager
def space_errors(path: object) -> Iterator[None]:
    """Turn "no space left" into a SpaceError naming ``path``, and a failing storage into a
    WriteError.

    Only for blocks that write: errors of files that are read there must be converted before.
    """
    try:
        yield
    except OSError as error:
        if error.errno in USED_UP:
            raise _used_up(path, error) from error
        if error.errno in STORAGE_FAULTS:
            reason = os.strerror(error.errno)
            raise WriteError(f"cannot write {path}", reason, STORAGE_FAULTS[error.errno]) from error
        raise


def no_space(path: object) -> SpaceError:
    """The SpaceError for a full disk that holds ``path``;
    its space or its inodes may be used up.
    """
    with contextlib.suppress(OSError):
        system = os.statvfs(Path(str(path)).parent)
        if system.f_files and not system.f_ffree:
            return SpaceError(
                f"no inodes left for {path}",
                "its file system holds as many files as it can; everything finished so far is kept",
                Hint("remove some files there, then ", run_again()),
            )
    return SpaceError(
        f"no space left while writing {path}", "everything finished so far is kept", free_space()
    )


def _used_up(path: object, error: OSError) -> SpaceError:
    """The error for a full disk, or for a quota that leaves nothing of it."""
    if error.errno != errno.EDQUOT:
        return no_space(path)
    return SpaceError(
        f"your disk quota is used up: {path} can't be written",
        "everything finished so far is kept",
        Hint("remove some of your files there, or get a larger quota, then ", run_again()),
    )


class GoneError(FileNotFoundError):
    """Someone removed the file while it was being written: another run replaced this one."""


def replaced_by_run(file: object, place: str) -> BusyError:
    """The error for a GoneError; ``place`` is where the other run works."""
    return BusyError(
        f"{file} was not finished: its partial file is gone",
        f"another run has started {place} since or has finished the set, or the file was removed",
        "let that run finish; if there is none, try again",
    )


@contextlib.contextmanager
def writing(path: object) -> Iterator[None]:
    """Turn any refusal to write ``path`` into the error that names it."""
    try:
        with space_errors(path):
            yield
    except OSError as error:
        raise WriteError(
            f"cannot write {path}", error.strerror or str(error), _mend(error)
        ) from error


def unreadable(path: object, error: OSError) -> InputError:
    """The error for an existing file that can't be read."""
    is_object = "://" in str(path) and error.errno == errno.ENOENT
    hint = f"correct the URL, or restore the object, {AGAIN}" if is_object else _mend(error)
    return InputError(f"{path} can't be read", error.strerror or str(error), hint)


def _mend(error: OSError) -> str:
    if error.strerror == NOT_PLAIN:
        found = "expected a file, found a pipe, a socket or a device"
        return f"{found}: write its content to a file, or correct the path, {AGAIN}"
    file = _file_above(_path_of(error)) if error.errno == errno.ENOTDIR else ""
    if file:
        expected = f"expected a folder, but {file} is a file"
        return f"{expected}: correct the path, or move the file away, {AGAIN}"
    return {**STORAGE_FAULTS, **LIMITS, **_INPUT}.get(error.errno or 0, f"fix that {AGAIN}")


def _file_above(path: str) -> str:
    """The file that is where a path has a folder; "" if there is none."""
    with contextlib.suppress(OSError, ValueError):
        for folder in Path(path).parents:
            if folder.is_file():
                return str(folder)
    return ""


def as_error(error: OSError) -> PrepError | None:
    """The error for a refusal of the system; without a file name,
    only for refusals that can't be a bug here.
    """
    path = _path_of(error)
    if path:
        return _error_of_path(path, error)
    if error.errno == errno.EDQUOT:
        return _used_up("a file", error)
    if error.errno in USED_UP:
        return SpaceError("no space left while writing a file", _reason(error), free_space())
    if is_of_system(error):
        fault = "a file can't be read or written"
        return _type_of(error)(fault, _reason(error), _mend(error))
    return None


def _error_of_path(path: str, error: OSError) -> PrepError:
    if error.errno in USED_UP:
        return _used_up(path, error)
    if isinstance(error, PermissionError):
        return _no_right(Path(path), error)
    return _type_of(error)(f"{path} can't be used", _reason(error), _mend(error))


def _type_of(error: OSError) -> type[PrepError]:
    if error.errno in STORAGE_FAULTS:
        return WriteError
    return PrepError if error.errno in LIMITS else InputError


def _path_of(error: OSError) -> str:
    """The file or URL that the refusal names; "" if it names none, or a descriptor.

    A folder that a move can't replace is at its target.
    """
    name = error.filename2 if error.errno == errno.EISDIR else None
    name = name or error.filename
    return os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else ""


def _reason(error: OSError) -> str:
    """The system's reason, and the target of a move or a link."""
    reason = str(error.strerror or error)
    if isinstance(error.filename2, (str, bytes)) and error.errno != errno.EISDIR:
        reason += f" (to {os.fsdecode(error.filename2)})"
    return reason


def closed_folder(path: Path) -> Path | None:
    """The outermost folder above a path that this user may not search."""
    for folder in reversed(path.parents):
        if not os.access(folder, os.X_OK):
            return folder
    return None


def is_of_system(error: OSError) -> bool:
    """Whether a file can't be read for a reason outside it: a missing right, a disk that fails, or
    a limit of the system.
    """
    is_known = error.errno in STORAGE_FAULTS or error.errno in LIMITS
    return is_known or isinstance(error, PermissionError)


def _no_right(path: Path, error: PermissionError) -> PrepError:
    """The error that names the outermost folder without search permission, otherwise the file."""
    folder = closed_folder(path)
    if folder is not None:
        return unreadable(folder, error)
    if path.exists() and not os.access(path, os.R_OK):
        return unreadable(path, error)
    what = f"cannot write {path}"
    if path.exists() and os.access(path, os.W_OK):  # another rule forbids something
        what = f"{path} can't be used"
    return WriteError(what, _reason(error), _mend(error))
