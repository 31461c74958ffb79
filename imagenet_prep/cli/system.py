"""What the system refuses while no stage is there to name it: the error that says it, or None if it is a bug."""

from __future__ import annotations

import errno
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.errors import InputError, PrepError, SpaceError, WriteError
from imagenet_prep.storage import no_space, unreadable

if TYPE_CHECKING:
    from imagenet_prep.stages.status import Status


def as_error(error: OSError) -> PrepError | None:
    """The error for a full disk, for standard output that can't be written, and for a missing right."""
    if isinstance(error, PermissionError) and error.filename is not None:
        return no_right(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        if error.filename is None:
            return SpaceError("no space left while writing the output")
        return no_space(Path(os.fsdecode(error.filename)))
    if error.errno == errno.EBADF and error.filename is None:
        return WriteError("standard output can't be written", str(error.strerror))
    return None


def no_right(error: PermissionError) -> PrepError:
    """The error that names the outermost folder that may not be searched, else the file."""
    path = Path(os.fsdecode(error.filename))
    closed = (folder for folder in reversed(path.parents) if not os.access(folder, os.X_OK))
    return unreadable(next(closed, path), error)


def unknown(error: PermissionError | InputError, folder: Path) -> Status:
    """What status says where it may not look, and the command that shows whose the folder is."""
    from imagenet_prep.stages.status import StageStatus, Status

    said = no_right(error) if isinstance(error, PermissionError) else error
    reason = f"{said.what}: {said.detail}"
    stages = tuple(StageStatus(stage, "unknown", reason) for stage in ("convert", "verify"))
    return Status(stages, shlex.join(["ls", "-la", str(folder)]))
