"""make_engine: runs tasks on processes or threads of this machine, or on the machines of a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

from imagenet_prep.engines.faults import fault, no_worker
from imagenet_prep.errors import UsageError
from imagenet_prep.model import Done, Engine, Failed, Outcomes, R, Stepwise, T

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

ENGINES = ("processes", "threads", "ray")


def available_cpus() -> int:
    """The number of CPUs that this process may use; the machine may have more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_engine(name: str = "processes", workers: int | None = None, ray_address: str | None = None) -> Engine:
    """The engine called ``name`` with ``workers`` workers (default: one per CPU that this process, or Ray, may use).

    ``ray_address`` is the address of a Ray cluster (default: RAY_ADDRESS); without one, "ray" starts a local cluster.

    Raises:
        UsageError: the engine does not exist, there is less than one worker, or the engine doesn't use an address.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"{workers} workers", "expected at least 1")
    if ray_address is not None and name != "ray":
        raise UsageError(f"an address of a Ray cluster ({ray_address})", "expected --engine ray with it")
    if name == "processes":
        from imagenet_prep.engines.processes import ProcessEngine

        return ProcessEngine(workers or available_cpus())
    if name == "threads":
        return ThreadEngine(workers or available_cpus())
    if name == "ray":
        from imagenet_prep.engines.ray_cluster import RayEngine

        return RayEngine(workers, ray_address or os.environ.get("RAY_ADDRESS"))
    raise UsageError(f"no engine {name!r}", f"expected one of {', '.join(ENGINES)}")


@dataclass(slots=True)
class ThreadEngine:
    """Runs tasks on ``workers`` threads."""

    workers: int

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], moved: Callable[[T, int], None] | None = None
    ) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator drops the tasks that have not started."""
        from concurrent.futures import ThreadPoolExecutor  # not above: most conversions don't need it

        pool = ThreadPoolExecutor(self.workers)
        heard: SimpleQueue[Done[T, R] | Failed[T] | tuple[T, int]] = SimpleQueue()
        if isinstance(function, Stepwise):
            function = function.telling(lambda task, done: heard.put((task, done)))
        running = 0
        try:
            for task in tasks:
                if running == self.workers:
                    yield _outcome(heard, moved)
                    running -= 1
                _submit(pool, function, task, heard.put)
                running += 1
            while running:
                yield _outcome(heard, moved)
                running -= 1
        finally:
            pool.shutdown(cancel_futures=True)


def _outcome(
    heard: SimpleQueue[Done[T, R] | Failed[T] | tuple[T, int]], moved: Callable[[T, int], None] | None
) -> Done[T, R] | Failed[T]:
    """The next outcome; messages that tasks send earlier are passed on."""
    while isinstance(told := heard.get(), tuple):
        if moved is not None:
            moved(*told)
    return told


def _submit(
    pool: ThreadPoolExecutor, function: Callable[[T], R], task: T, put: Callable[[Done[T, R] | Failed[T]], None]
) -> None:
    try:
        pool.submit(lambda: put(_attempt(function, task)))
    except RuntimeError as error:  # a new thread can't be started
        raise no_worker(str(error)) from error


def _attempt(function: Callable[[T], R], task: T) -> Done[T, R] | Failed[T]:
    try:
        return Done(task, function(task))
    except Exception as error:  # noqa: BLE001 - every task yields exactly one outcome; a bug is reported, not lost
        return Failed(task, fault(error))
