"""Space on a disk: whether enough is free, and the errors for when it is used up, or the disk takes nothing."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from imagenet_prep.errors import SpaceError, WriteError

AGAIN = "and run the same command again"

USED_UP = (errno.ENOSPC, errno.EDQUOT)

STORAGE_FAULTS = {
    errno.EIO: f"its disk, or the network to it, fails: look into the system's log (dmesg), mend that {AGAIN}",
    errno.EROFS: f"make its file system writable, or name another folder, {AGAIN}",
    errno.EFBIG: "its file system, or ulimit -f, allows no file of this size: name another folder, or raise the limit",
}
STORAGE_FAULTS.update(
    dict.fromkeys((errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.ETIMEDOUT), STORAGE_FAULTS[errno.EIO])
)
"""The storage fails under us, or takes nothing: status 1."""


@contextlib.contextmanager
def space_errors(path: Path) -> Iterator[None]:
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
