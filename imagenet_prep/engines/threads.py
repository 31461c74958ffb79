"""Worker threads in this process: for a free-threaded Python, or where the codecs (GIL-free) do the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

from imagenet_prep.engines.faults import fault, no_worker
from imagenet_prep.model import Done, Failed, Outcomes, R, Stepwise, T


@dataclass(slots=True)
class ThreadEngine:
    """Runs tasks on ``workers`` threads."""

    workers: int

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], moved: Callable[[T, int], None] | None = None
    ) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator drops what has not begun."""
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
