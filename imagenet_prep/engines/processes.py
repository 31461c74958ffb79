"""Worker processes on this machine.

Why not concurrent.futures: there one worker killed from outside (the OOM killer) breaks the whole pool. Here its task
is tried again by a new worker. Workers are forked: they start in a millisecond and share what the parent has read. The
library of object stores survives no fork. So an engine forks its workers just before the first request that its process
makes, and keeps them for all that follows; one that comes later, or has lost a worker, starts a new Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic

from imagenet_prep.engines.faults import TRIES, died, fault, no_worker
from imagenet_prep.model import Done, Failed, Outcomes, R, Stepwise, T
from imagenet_prep.storage.object_store import are_used, prepare_before_use

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_OVER = b""
"""What a worker is told when a function gets no more tasks; another function follows."""

_NO_THREAD = os.EX_OSERR
"""The exit status of a worker that could not begin."""


@dataclass
class ProcessEngine:
    """Runs tasks on ``workers`` processes: forked ones, if this process can be forked."""

    workers: int
    _kept: list[_Worker[Any]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        prepare_before_use(self)
        weakref.finalize(self, _end, self._kept, os.getpid())

    def prepare(self) -> None:
        """Fork the workers of what will be mapped once this process can't be forked any more."""
        self._kept += [_start(None, can_fork=True) for _ in range(self.workers)]

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], moved: Callable[[T, int], None] | None = None
    ) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator stops the workers that are at work at once."""
        with contextlib.closing(_Pool(function, self.workers, moved, self._kept)) as pool:
            yield from pool.run(tasks)


@dataclass(slots=True, eq=False)
class _Worker(Generic[T]):
    process: BaseProcess
    connection: Connection
    task: T | None = None
    tries: int = 0
    is_kept: bool = False


class _Pool(Generic[T, R]):
    def __init__(
        self,
        function: Callable[[T], R],
        size: int,
        moved: Callable[[T, int], None] | None,
        kept: list[_Worker[Any]],
    ) -> None:
        self._function = function
        self._size = size
        self._moved = moved
        self._workers: list[_Worker[T]] = []
        self._kept = kept
        _return_memory()

    def run(self, tasks: Iterable[T]) -> Iterator[Done[T, R] | Failed[T]]:
        for task in tasks:
            while (worker := self._idle_worker()) is None:
                yield from self._collect()
            self._give(worker, task, tries=1)
        while any(worker.tries for worker in self._workers):
            yield from self._collect()

    def close(self) -> None:
        over = [each for each in self._workers if not (each.is_kept and not each.tries and _tell(each, _OVER))]
        self._kept += [each for each in self._workers if each not in over]
        _end(over, os.getpid())

    def _idle_worker(self) -> _Worker[T] | None:
        for worker in self._workers:
            if not worker.tries:
                return worker
        return self._start() if len(self._workers) < self._size else None

    def _start(self) -> _Worker[T]:
        if can_fork := not are_used():
            worker = _start(self._function, can_fork=True)
        else:
            function = ForkingPickler.dumps(self._function)
            worker = self._kept.pop() if self._kept else _start(None, can_fork=False)
            _tell(worker, function)
        worker.is_kept = not can_fork
        self._workers.append(worker)
        return worker

    def _give(self, worker: _Worker[T], task: T, tries: int) -> None:
        worker.task, worker.tries = task, tries
        _tell(worker, ForkingPickler.dumps(task))

    def _collect(self) -> Iterator[Done[T, R] | Failed[T]]:
        busy: dict[Any, _Worker[T]] = {worker.connection: worker for worker in self._workers if worker.tries}
        for connection in wait(list(busy)):
            worker = busy[connection]
            try:
                answer = worker.connection.recv_bytes()
            except (EOFError, OSError):  # an OSError if it died in the middle of its answer
                failure = self._replace(worker)
                if failure is not None:
                    yield failure
                continue
            task: T = worker.task  # type: ignore[assignment]
            succeeded, value = _read(answer)
            if succeeded is None:
                if self._moved is not None:
                    self._moved(task, value)
                continue
            worker.task, worker.tries = None, 0
            yield Done(task, value) if succeeded else Failed(task, value)

    def _replace(self, worker: _Worker[T]) -> Failed[T] | None:
        """Put a new worker in the place of one that is lost, and give it the task, if that may be tried again.

        Raises:
            PrepError: it could not begin; nor could another.
        """
        worker.process.kill()  # one that lives on without its pipe would be waited for without end
        worker.process.join()
        worker.connection.close()
        self._workers.remove(worker)
        exit_code = worker.process.exitcode
        worker.process.close()
        if exit_code == _NO_THREAD:
            raise no_worker("can't start new thread")
        if worker.tries < TRIES:
            self._give(self._start(), worker.task, worker.tries + 1)  # type: ignore[arg-type]
            return None
        return Failed(worker.task, died(_cause(exit_code)))  # type: ignore[arg-type]


def _cause(exit_code: int | None) -> str:
    if exit_code == -signal.SIGBUS:
        return "SIGBUS: an input was cut short while it was read, or its disk has a read error"
    if exit_code == -signal.SIGKILL:
        return "SIGKILL: the system may be out of memory"
    return f"exit status {exit_code}"


def _return_memory() -> None:
    """Give back to the system what has been freed: every worker would be charged with it too."""
    with contextlib.suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)


def _start(function: Callable[[Any], Any] | None, *, can_fork: bool) -> _Worker[Any]:
    """A new worker, for one function or for those that it will be told.

    Raises:
        PrepError: the system starts no more.
    """
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("fork" if can_fork else "spawn")
    alive, ours_alone = _lifeline()
    arguments = (function, theirs, alive, ours_alone if can_fork else None)
    process: BaseProcess = context.Process(target=_work, args=arguments, daemon=True)  # type: ignore[attr-defined]
    # A signal between the fork and the child's own handlers would run the parent's in the child.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        process.start()
    except OSError as error:  # a limit of processes, or of memory
        ours.close()
        raise no_worker(error.strerror or str(error)) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
    return _Worker(process, ours)


def _lifeline() -> tuple[Connection, Connection]:
    """A pipe whose writing end this process alone holds: when it dies, however it dies, every worker sees the end."""
    if os.getpid() not in _lifelines:
        _lifelines[os.getpid()] = multiprocessing.Pipe(duplex=False)
    return _lifelines[os.getpid()]


_lifelines: dict[int, tuple[Connection, Connection]] = {}


def _end(workers: list[_Worker[Any]], owner: int) -> None:
    """Stop workers at once; of a copy in a forked process, ``owner`` is another one, and nothing is done."""
    if os.getpid() != owner:
        return
    for worker in workers:
        worker.process.kill()
        worker.connection.close()
    for worker in workers:
        worker.process.join()
        worker.process.close()


def _tell(worker: _Worker[Any], message: bytes | memoryview) -> bool:
    """Send a worker a function, a task, or that no more of them come; whether it could be sent."""
    try:
        worker.connection.send_bytes(message)
    except OSError:  # it died while idle; the next collect finds out
        return False
    return True


def _work(
    function: Callable[[T], R] | None, connection: Connection, alive: Connection, parents: Connection | None
) -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's import would start a spinning thread for every core
    gc.freeze()  # a collection would write to what is shared with the parent, and so copy it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if parents is not None:  # what a fork brought along
        parents.close()
    try:
        threading.Thread(target=_die_with_parent, args=(alive.fileno(),), daemon=True).start()
    except RuntimeError:  # a limit of processes counts threads too
        os._exit(_NO_THREAD)
    with contextlib.suppress(EOFError, OSError):  # the parent has gone
        while True:
            function = function or ForkingPickler.loads(connection.recv_bytes())
            if isinstance(function, Stepwise):
                function = function.telling(lambda _, done: connection.send_bytes(_step(done)))
            while (task := connection.recv_bytes()) != _OVER:
                connection.send_bytes(_attempt(function, task))
            function = None


def _die_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)


# what the processes say to each other -------------------------------------------------------------------------


def _attempt(function: Callable[[T], R], task: bytes) -> memoryview:
    """A pickled task -> the pickled answer: whether it succeeded, and its result or its error."""
    try:
        return ForkingPickler.dumps((True, function(ForkingPickler.loads(task))))
    except Exception as error:  # noqa: BLE001 - a bug of ours must reach the parent as a value, with its traceback
        return ForkingPickler.dumps((False, fault(error)))


def _step(done: int) -> memoryview:
    """What a worker says before its answer: how much of its task is done."""
    return ForkingPickler.dumps((None, done))


def _read(answer: bytes) -> tuple[bool | None, Any]:
    """An answer as the worker gave it, or a step (None); one that can't be read is the failure of its task."""
    try:
        succeeded, value = ForkingPickler.loads(answer)
    except Exception as error:  # noqa: BLE001 - whatever reading it runs into
        return False, fault(error)
    return succeeded, value
