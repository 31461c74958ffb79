"""Where work runs: processes or threads on this machine, or the machines of a Ray cluster."""

from __future__ import annotations

import os

from imagenet_prep.errors import UsageError
from imagenet_prep.model import Engine

ENGINES = ("processes", "threads", "ray")


def available_cpus() -> int:
    """How many CPUs this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_engine(name: str = "processes", workers: int | None = None, ray_address: str | None = None) -> Engine:
    """The engine called ``name`` with ``workers`` workers (default: one a CPU that this process, or Ray, may use).

    ``ray_address`` is that of a Ray cluster, which else is RAY_ADDRESS; with neither, "ray" starts one of this machine.

    Raises:
        UsageError: no such engine, fewer than one worker, or an address that the engine has no use for.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"{workers} workers", "expected at least 1")
    if ray_address is not None and name != "ray":
        raise UsageError(f"an address of a Ray cluster ({ray_address})", "expected --engine ray beside it")
    if name == "processes":
        from imagenet_prep.engines.processes import ProcessEngine

        return ProcessEngine(workers or available_cpus())
    if name == "threads":
        from imagenet_prep.engines.threads import ThreadEngine

        return ThreadEngine(workers or available_cpus())
    if name == "ray":
        from imagenet_prep.engines.ray_cluster import RayEngine

        return RayEngine(workers, ray_address or os.environ.get("RAY_ADDRESS"))
    raise UsageError(f"no engine {name!r}", f"expected one of {', '.join(ENGINES)}")
