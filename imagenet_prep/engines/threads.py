"""ThreadEngine: runs tasks on threads of this process; and the number of CPUs for workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from queue import SimpleQueue

from msgspec import Struct

from imagenet_prep.engines.worker_faults import fault, no_worker
from imagenet_prep.model import Done, Failed, Outcomes, R, T


def available_cpus() -> int:
    """The number of CPUs that this process may use; the machine may have more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ThreadEngine(Struct):
    """Runs tasks on ``workers`` threads."""

    workers: int

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator drops the
        tasks that have not started.
        """
        from concurrent.futures import ThreadPoolExecutor  # most conversions don't need it

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
                    raise no_worker(error) from error
                running += 1
            for _ in range(running):
                yield outcomes.get()
        finally:
            pool.shutdown(cancel_futures=True)
