"""Worker threads in this process: for a free-threaded Python, or where the codecs (GIL-free) do the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from imagenet_prep.engines.faults import fault, no_worker
from imagenet_prep.model import Done, Failed, Outcomes, R, T


@dataclass(slots=True)
class ThreadEngine:
    """Runs tasks on ``workers`` threads."""

    workers: int

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator drops what has not begun."""
        pool = ThreadPoolExecutor(self.workers)
        running: set[Future[Done[T, R] | Failed[T]]] = set()
        try:
            for task in tasks:
                if len(running) == self.workers:
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in finished)
                running.add(_submit(pool, function, task))
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
        finally:
            pool.shutdown(cancel_futures=True)


def _submit(pool: ThreadPoolExecutor, function: Callable[[T], R], task: T) -> Future[Done[T, R] | Failed[T]]:
    try:
        return pool.submit(_attempt, function, task)
    except RuntimeError as error:  # a new thread can't be started
        raise no_worker(str(error)) from error


def _attempt(function: Callable[[T], R], task: T) -> Done[T, R] | Failed[T]:
    try:
        return Done(task, function(task))
    except Exception as error:  # noqa: BLE001 - every task yields exactly one outcome; a bug is reported, not lost
        return Failed(task, fault(error))
