"""make_engine: runs tasks on processes or threads of this machine,
or on the machines of a Ray cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from queue import SimpleQueue

from msgspec import Struct

from imagenet_prep.errors import DataProblemsError, PrepError, UsageError, WorkerError
from imagenet_prep.escaping import traced
from imagenet_prep.model import Done, Engine, Failed, Outcomes, R, T
from imagenet_prep.storage.refusals import as_error

ENGINES = ("processes", "threads", "ray")


def available_cpus() -> int:
    """The number of CPUs that this process may use; the machine may have more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    if workers is not None and workers < 1:
        raise UsageError(f"{workers} workers", "expected at least 1")
    if ray_address is not None and name != "ray":
        raise UsageError(
            f"an address of a Ray cluster ({ray_address})", "expected --engine ray with it"
        )
    if name == "processes":
        from imagenet_prep.engines.processes import ProcessEngine

        return ProcessEngine(workers or available_cpus())
    if name == "threads":
        return ThreadEngine(workers or available_cpus())
    if name == "ray":
        from imagenet_prep.engines.ray_cluster import RayEngine

        return RayEngine(workers, ray_address or os.environ.get("RAY_ADDRESS"))
    raise UsageError(f"no engine {name!r}", f"expected one of {', '.join(ENGINES)}")


class ThreadEngine(Struct):
    """Runs tasks on ``workers`` threads."""

    workers: int

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator drops the
        tasks that have not started.
        """
        from concurrent.futures import (
            ThreadPoolExecutor,
        )  # not above: most conversions don't need it

        pool, running = ThreadPoolExecutor(self.workers), 0
        outcomes: SimpleQueue[Done[T, R] | Failed[T]] = SimpleQueue()

        def attempt(task: T) -> None:
            try:
                outcomes.put(Done(task, function(task)))
            except Exception as error:  # noqa: BLE001 - every task yields exactly one outcome; a bug is reported
                outcomes.put(Failed(task, fault(error)))

        try:
            for task in tasks:
                if running == self.workers:
                    yield outcomes.get()
                    running -= 1
                try:
                    pool.submit(attempt, task)
                except RuntimeError as error:  # a new thread can't be started
                    raise no_worker(str(error)) from error
                running += 1
            for _ in range(running):
                yield outcomes.get()
        finally:
            pool.shutdown(cancel_futures=True)


# faults -------------------------------------------------------------------------------------------

TRIES = 3
"""How often a task may lose its worker before it counts as failed."""


def fault(error: Exception) -> PrepError:
    """An exception as a PrepError: unchanged, as a system error, or as a bug with its traceback."""
    if isinstance(error, PrepError):
        return error
    refused = as_error(error) if isinstance(error, OSError) else None
    if refused is not None:
        return refused
    return WorkerError(f"a bug in a worker: {error!r}", traced(error))


def no_worker(reason: str) -> PrepError:
    """The error for a system that can't start another process or thread."""
    return PrepError(
        "no worker can be started",
        f"the system says: {reason}",
        (
            "raise the limit of processes (ulimit -u), or try fewer --workers, "
            "and run the same command again"
        ),
    )


def died(cause: str) -> PrepError:
    """The error of a task that lost its worker too often."""
    return DataProblemsError(
        f"a worker died {TRIES} times on the same work", cause, "try fewer --workers"
    )
