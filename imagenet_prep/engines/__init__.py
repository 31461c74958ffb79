"""Where work runs: processes or threads on this machine, or the machines of a Ray cluster."""

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
        """Run ``function`` on every task; closing the iterator drops what has not begun."""
        from concurrent.futures import ThreadPoolExecutor  # not above: a first conversion has no use for it

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
    """The next outcome; what tasks tell before is passed on."""
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
