"""The work of a Ray worker: one pickled task -> its answer, or why this machine is not fit for it.

What the driver hands over is plain: another version of this package must be able to read it, and say so.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import imagenet_prep
from imagenet_prep.engines.answers import attempt

_kept: tuple[str, Callable[[Any], Any]] | None = None  # from task to task: a reader keeps its archives open


class Kit(NamedTuple):
    """What a worker needs beside tasks, sent once a machine.

    ``name`` tells it from any other; ``function`` is pickled; ``folder`` is the driver's own, for relative paths;
    ``meeting_point`` is a file that the driver made, or ""; it should show everywhere within ``patience`` seconds.
    """

    name: str
    version: str
    function: bytes
    folder: str
    meeting_point: str
    patience: float


def run(kit: tuple[str, str, bytes, str, str, float], task: bytes) -> bytes | tuple[str, str]:
    """The pickled answer to a pickled task; or the name of this machine, and what is wrong with it."""
    global _kept
    if _kept is None or _kept[0] != kit[0]:
        unfit = _look(Kit(*kit))
        if unfit:
            return platform.node(), unfit
        _kept = kit[0], _unpickled(kit[2])
    return bytes(attempt(_kept[1], task))


def _look(kit: Kit) -> str:
    """What keeps this machine from working; empty if nothing does."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's import would start a spinning thread for every core
    if imagenet_prep.__version__ != kit.version:
        return f"imagenet-prep {imagenet_prep.__version__} is installed there, and {kit.version} here"
    with contextlib.suppress(OSError):  # then relative paths lead nowhere, and the next lines say so
        os.chdir(kit.folder)
    until = time.monotonic() + kit.patience
    while kit.meeting_point and not os.path.exists(kit.meeting_point):  # noqa: PTH110 - as it was sent
        if time.monotonic() > until:
            return f"it has another folder {os.path.dirname(kit.meeting_point)} than this machine"  # noqa: PTH120
        time.sleep(0.2)
    return ""


def _unpickled(function: bytes) -> Callable[[Any], Any]:
    import pickle

    loaded: Callable[[Any], Any] = pickle.loads(function)  # noqa: S301 - from the driver, whose code this runs anyway
    return loaded
