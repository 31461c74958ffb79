"""What the system refuses (OSError) -> the error that names the file, says why and what to do; None for a bug."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from imagenet_prep.errors import InputError, PrepError, SpaceError, WriteError
from imagenet_prep.escaping import rerun

AGAIN = "and run the same command again"


def free_space() -> str:
    """What to do where a disk is full."""
    return f"free some space, then: {rerun()}"


USED_UP = (errno.ENOSPC, errno.EDQUOT)

STORAGE_FAULTS = {
    errno.EIO: f"its disk, or the network to it, fails: look into the system's log (dmesg), fix that {AGAIN}",
    errno.EROFS: f"make its file system writable, or name another folder, {AGAIN}",
    errno.EFBIG: "its file system, or ulimit -f, allows no file of this size: name another folder, or raise the limit",
}
STORAGE_FAULTS.update(
    dict.fromkeys((errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.ETIMEDOUT), STORAGE_FAULTS[errno.EIO])
)
"""The storage fails under us, or takes nothing: status 1."""


_LIMITS: dict[int, str] = {
    errno.EMFILE: f"raise the limit of open files (ulimit -n), or try fewer --workers, {AGAIN}",
    errno.ENFILE: f"too many files are open on this machine: end what opens them {AGAIN}",
    errno.ENOMEM: f"try fewer --workers, or free some memory, {AGAIN}",
    errno.ENOLCK: "its file system has no locks: name another folder, or mount it with locks",
}
"""The system has no more of something: status 1."""

_INPUT = {
    errno.ELOOP: f"a link leads back to itself: remove it {AGAIN}",
    errno.ENAMETOOLONG: "move the data to a folder with a shorter path",
    errno.ENOTDIR: f"expected a folder where a file is: move that away {AGAIN}",
    errno.EISDIR: f"expected a file where a folder is: move that away {AGAIN}",
    errno.ENOENT: f"it was removed meanwhile, or is a link to nowhere: bring it back {AGAIN}",
}
"""What lies there is not what was expected: status 4."""


@contextlib.contextmanager
def space_errors(path: object) -> Iterator[None]:
    """Turn "no space left" into a SpaceError naming ``path``, and a storage that fails into a WriteError.

    For what only writes: where something else is read meanwhile, its errors must have become others by then.
    """
    try:
        yield
    except OSError as error:
        if error.errno in USED_UP:
            raise no_space(path) from error
        if error.errno in STORAGE_FAULTS:
            reason = os.strerror(error.errno)
            raise WriteError(f"cannot write {path}", reason, STORAGE_FAULTS[error.errno]) from error
        raise


def no_space(path: object) -> SpaceError:
    """The SpaceError for a full disk under ``path``."""
    return SpaceError(
        f"no space left while writing {path}",
        "everything finished so far is kept",
        free_space(),
    )


@contextlib.contextmanager
def writing(path: object) -> Iterator[None]:
    """Turn whatever the system says against writing ``path`` into the error that names it."""
    try:
        with space_errors(path):
            yield
    except OSError as error:
        kind = InputError if isinstance(error, PermissionError) else WriteError
        raise kind(f"cannot write {path}", error.strerror or str(error), _mend(error)) from error


def unreadable(path: object, error: OSError) -> InputError:
    """The error for a file that is there and can't be read."""
    return InputError(f"{path} can't be read", error.strerror or str(error), _mend(error))


def _mend(error: OSError) -> str:
    return f"a folder lies there: move it away {AGAIN}" if error.errno == errno.EISDIR else f"fix that {AGAIN}"


def as_error(error: OSError) -> PrepError | None:
    """The error for what the system said of a file; where it names none, only for what can't be a bug of ours."""
    path = _path_of(error)
    if error.errno in USED_UP:
        return (
            no_space(path) if path else SpaceError("no space left while writing a file", _reason(error), free_space())
        )
    if isinstance(error, PermissionError) and path:
        return _no_right(Path(path), error)
    known = {**STORAGE_FAULTS, **_LIMITS, **_INPUT}
    if not path and not (isinstance(error, PermissionError) or error.errno in {**STORAGE_FAULTS, **_LIMITS}):
        return None
    what = f"{path} can't be used" if path else "a file can't be read or written"
    kind = WriteError if error.errno in STORAGE_FAULTS else PrepError if error.errno in _LIMITS else InputError
    return kind(what, _reason(error), known.get(error.errno or 0, f"fix that {AGAIN}"))


def _path_of(error: OSError) -> str:
    """The file or the URL that the refusal names; "" where it names none, or the number of a descriptor."""
    name = error.filename
    return os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else ""


def _reason(error: OSError) -> str:
    """Why, in the system's words, and where to, if something was to be moved or linked."""
    target = f" (to {os.fsdecode(error.filename2)})" if isinstance(error.filename2, (str, bytes)) else ""
    return f"{error.strerror or error}{target}"


def _no_right(path: Path, error: PermissionError) -> PrepError:
    """The error that names the outermost folder that may not be searched, else the file."""
    closed = (folder for folder in reversed(path.parents) if not os.access(folder, os.X_OK))
    return unreadable(next(closed, path), error)
