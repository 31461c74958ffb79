"""Pickled tasks -> pickled answers and steps, and back: what an engine's processes say to each other."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

from imagenet_prep.engines.faults import fault
from imagenet_prep.model import R, T


def attempt(function: Callable[[T], R], task: bytes) -> memoryview:
    """A pickled task -> the pickled answer: whether it succeeded, and its result or its error."""
    try:
        return ForkingPickler.dumps((True, function(ForkingPickler.loads(task))))
    except Exception as error:  # noqa: BLE001 - a bug of ours must reach the parent as a value, with its traceback
        return ForkingPickler.dumps((False, fault(error)))


def step(done: int) -> memoryview:
    """What a worker says before its answer: how much of its task is done."""
    return ForkingPickler.dumps((None, done))


def read(answer: bytes) -> tuple[bool | None, Any]:
    """An answer as the worker gave it, or a step (None); one that can't be read is the failure of its task."""
    try:
        succeeded, value = ForkingPickler.loads(answer)
    except Exception as error:  # noqa: BLE001 - whatever reading it runs into
        return False, fault(error)
    return succeeded, value
