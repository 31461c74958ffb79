"""make_engine: runs tasks on processes or threads of this machine,
or on the machines of a Ray cluster.
"""

from __future__ import annotations

import os

from imagenet_prep.engines.threads import ThreadEngine, available_cpus
from imagenet_prep.errors import UsageError
from imagenet_prep.model import Engine

ENGINES = ("processes", "threads", "ray")


def make_engine(
    name: str = "processes", workers: int | None = None, ray_address: str | None = None
) -> Engine:
    """The engine called ``name`` with ``workers`` workers (default: one per CPU that this process,
    or Ray, may use).

    ``ray_address`` is the address of a Ray cluster (default: RAY_ADDRESS); without one, "ray"
    starts a local cluster.

    Raises:
        UsageError: the engine does not exist, there is less than one worker, or the engine doesn't
            use an address.
    """
    if name not in ENGINES:
        raise UsageError(f"no engine {name!r}", f"expected one of {', '.join(ENGINES)}")
    if workers is not None and workers < 1:
        raise UsageError(f"{workers} workers", "expected at least 1")
    if ray_address is not None and name != "ray":
        raise UsageError(
            f"the engine {name!r} can't use the Ray cluster at {ray_address}",
            "expected the engine 'ray', or no address",
        )
    if name == "processes":
        from imagenet_prep.engines.processes import ProcessEngine

        return ProcessEngine(workers or available_cpus())
    if name == "threads":
        return ThreadEngine(workers or available_cpus())
    from imagenet_prep.engines.ray_cluster import RayEngine

    return RayEngine(workers, ray_address or os.environ.get("RAY_ADDRESS"))
