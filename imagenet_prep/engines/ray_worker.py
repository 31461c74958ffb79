"""answer: what a worker on a machine of a Ray cluster does with a task."""

from __future__ import annotations

import contextlib
import os
import time
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from imagenet_prep.engines.worker_faults import fault
from imagenet_prep.errors import AccessError, InputError, NetworkError, UsageError, WriteError
from imagenet_prep.version import describe_version, is_same_code

UNREACHED = (AccessError, NetworkError, UsageError)
"""Errors of a machine without the keys, the address or the library of an object store."""


class Kit(NamedTuple):
    """The data that a worker needs in addition to tasks, sent once per machine as plain values for
    any version.

    ``name`` is unique; ``function`` is pickled; ``folder`` is the driver's working folder, for
    relative paths. ``mark`` is a file that the driver made, or ""; every machine should see it
    within ``patience`` seconds.
    """

    name: str
    version: str
    function: bytes
    folder: str
    mark: str
    patience: float


_kept: tuple[str, str, Any] = ("", "", None)
"""The name of a kit, what this machine lacks for it, and its function:
a reader keeps archives open between tasks.
"""


def answer(kit: tuple[str, str, bytes, str, str, float], task: Any) -> tuple[str, Any]:
    """The thing that this machine lacks for a task, or "", and the result if it lacks nothing.

    The result is the error that the function raised, if that may be the machine's fault.

    Raises:
        PrepError: the function raised another error, which is converted to a PrepError.
    """
    lacking, function = _unpacked(Kit(*kit))
    try:
        lacking = lacking or _missing_input(function, task)
        return lacking, None if lacking else function(task)
    except Exception as error:  # noqa: BLE001 - a bug reaches the driver with its traceback
        failure = fault(error)
        if isinstance(failure, (*UNREACHED, InputError, WriteError)):
            return "", failure
        raise failure from None


def _unpacked(kit: Kit) -> tuple[str, Any]:
    """The thing that this machine lacks for a kit, or "", and the kit's function."""
    global _kept
    if _kept[0] != kit.name:
        lacking = _lacking(kit)
        _kept = kit.name, lacking, None if lacking else ForkingPickler.loads(kit.function)
    _, lacking, function = _kept
    if kit.mark and not os.path.exists(kit.mark):  # noqa: PTH110 - as it was sent
        lacking = lacking or "the command that asked for this work has ended"
    return lacking, function


def _missing_input(function: Any, task: Any) -> str:
    """The first input of a task that this machine lacks; empty if it has all."""
    missing = (path for path in function.inputs(task) if not path.exists())
    return next((f"it lacks {path}" for path in missing), "")


def _lacking(kit: Kit) -> str:
    """The reason that this machine can't work; empty if it can."""
    # NumPy's import would start a spinning thread for every core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    version = describe_version()
    if not is_same_code(version, kit.version):
        return f"imagenet-prep {version} is installed there, and {kit.version} here"
    # If that fails, relative paths don't resolve, and the next lines report it.
    with contextlib.suppress(OSError):
        os.chdir(kit.folder)
    deadline = time.monotonic() + kit.patience
    while kit.mark and not os.path.exists(kit.mark):  # noqa: PTH110 - as it was sent
        if time.monotonic() > deadline:
            folder = os.path.dirname(kit.mark)  # noqa: PTH120
            if os.path.isdir(folder):  # noqa: PTH112
                return f"it does not see the new file of this machine in {folder}"
            return f"it has no folder {folder}"
        time.sleep(0.2)
    if kit.mark and not os.access(os.path.dirname(kit.mark), os.W_OK):  # noqa: PTH120
        return f"it can't write to {os.path.dirname(kit.mark)}"  # noqa: PTH120
    return ""
