"""Where work runs: processes or threads on this machine."""

from __future__ import annotations

import os

from imagenet_prep.errors import UsageError
from imagenet_prep.model import Engine

ENGINES = ("processes", "threads")


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
    if workers is not None and workers < 1:
        raise UsageError(f"{workers} workers", "expected at least 1")
    if name == "processes":
        from imagenet_prep.engines.processes import ProcessEngine

        return ProcessEngine(workers or available_cpus())
    if name == "threads":
        from imagenet_prep.engines.threads import ThreadEngine

        return ThreadEngine(workers or available_cpus())
    raise UsageError(f"no engine {name!r}", f"expected one of {', '.join(ENGINES)}")
