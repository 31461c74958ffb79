"""Where work runs: processes or threads on this machine."""

from __future__ import annotations

import os

from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import UsageError
from imagenet_prep.model import Engine

ENGINES: dict[str, type[ProcessEngine] | type[ThreadEngine]] = {"processes": ProcessEngine, "threads": ThreadEngine}


def available_cpus() -> int:
    """How many CPUs this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_engine(name: str = "processes", workers: int | None = None) -> Engine:
    """The engine called ``name`` with ``workers`` workers (default: one a CPU that this process may use).

    Raises:
        UsageError: no such engine, or fewer than one worker.
    """
    if name not in ENGINES:
        raise UsageError(f"no engine {name!r}", f"expected one of {', '.join(ENGINES)}")
    if workers is not None and workers < 1:
        raise UsageError(f"{workers} workers", "expected at least 1")
    return ENGINES[name](workers or available_cpus())
