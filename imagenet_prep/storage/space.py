"""Space on a disk: whether enough is free, and the error for when it is used up."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from imagenet_prep.errors import SpaceError

USED_UP = (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def space_errors(path: Path) -> Iterator[None]:
    """Turn "no space left" from the system into a SpaceError naming ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in USED_UP:
            raise no_space(path) from error
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
