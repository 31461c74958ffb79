"""ProcessEngine: runs tasks on worker processes of this machine.

concurrent.futures is not used: there, one worker killed from outside (the OOM killer) breaks the
whole pool. Here a new worker retries its task. Workers are forked: they start in a millisecond and
share the parent's memory. The library of object stores does not survive a fork. So an engine forks
its workers just before the first request of its process, and keeps them from then on. A worker that
is needed later starts as a new Python process.
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
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic

from msgspec import Struct

from imagenet_prep.engines.worker_faults import FEWER_WORKERS, TRIES, died, fault, no_worker
from imagenet_prep.errors import PrepError
from imagenet_prep.model import Done, Failed, Outcomes, R, T
from imagenet_prep.storage import first_request
from imagenet_prep.storage.refusals import AGAIN

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
"""The signals of a process that did something invalid itself."""

_OVER = b""
"""The message that a function has no more tasks; another function follows."""

_NO_THREAD = os.EX_OSERR
"""The exit status of a worker that could not start."""


class ProcessEngine(Struct, weakref=True):
    """Runs tasks on ``workers`` processes, forked if this process can be forked."""

    workers: int
    _kept: list[_Worker[Any]] = []

    def __post_init__(self) -> None:
        first_request.prepare_before(self)
        weakref.finalize(self, _end, self._kept, os.getpid())

    def prepare(self) -> None:
        """Fork the workers that later calls of ``map`` will need,
        before this process can no longer be forked.
        """
        missing = self.workers - len(self._kept)
        self._kept += [_start(None, can_fork=True) for _ in range(missing)]

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator stops busy workers at once."""
        with contextlib.closing(_Pool(function, self.workers, self._kept)) as pool:
            yield from pool.run(tasks)


class _Worker(Struct, Generic[T], eq=False):
    process: BaseProcess
    connection: Connection
    task: T | None = None
    tries: int = 0
    is_kept: bool = False


class _Pool(Generic[T, R]):
    def __init__(self, function: Callable[[T], R], size: int, kept: list[_Worker[Any]]) -> None:
        self._function = function
        self._size = size
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
        over = [
            each
            for each in self._workers
            if not (each.is_kept and not each.tries and _tell(each, _OVER))
        ]
        self._kept += [each for each in self._workers if each not in over]
        _end(over, os.getpid())

    def _idle_worker(self) -> _Worker[T] | None:
        for worker in self._workers:
            if not worker.tries:
                return worker
        return self._start() if len(self._workers) < self._size else None

    def _start(self) -> _Worker[T]:
        if can_fork := not first_request.is_made():
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
        busy: dict[Any, _Worker[T]] = {
            worker.connection: worker for worker in self._workers if worker.tries
        }
        for connection in wait(list(busy)):
            worker = busy[connection]
            try:
                answer = worker.connection.recv_bytes()
            except (EOFError, OSError):  # an OSError if it died while sending its answer
                failure = self._replace(worker)
                if failure is not None:
                    yield failure
                continue
            task: T = worker.task  # type: ignore[assignment]
            succeeded, value = _read(answer)
            worker.task, worker.tries = None, 0
            yield Done(task, value) if succeeded else Failed(task, value)

    def _replace(self, worker: _Worker[T]) -> Failed[T] | None:
        """Replace a lost worker, and give the new one its task if a retry is allowed.

        Raises:
            PrepError: the worker could not start, and neither could another.
        """
        worker.process.kill()  # a worker that outlives its pipe would be waited for forever
        worker.process.join()
        worker.connection.close()
        self._workers.remove(worker)
        exit_code = worker.process.exitcode
        worker.process.close()
        if exit_code == _NO_THREAD:
            raise no_worker(RuntimeError("can't start new thread"))
        if worker.tries < TRIES:
            self._give(self._start(), worker.task, worker.tries + 1)  # type: ignore[arg-type]
            return None
        return Failed(worker.task, _died(exit_code))  # type: ignore[arg-type]


def _died(exit_code: int | None) -> PrepError:
    """The error of a task whose workers ended with this status, negative for a signal."""
    if exit_code == -signal.SIGBUS:
        cause = "SIGBUS: an input may have been cut short while it was read, or its disk may fail"
        return died(cause, f"check the input and its disk {AGAIN}")
    if exit_code == -signal.SIGKILL:
        cause = "SIGKILL: the system may be out of memory"
        return died(cause, f"free some memory, or try {FEWER_WORKERS}, {AGAIN}")
    cause = f"exit status {exit_code}"
    if exit_code is not None and exit_code < 0:
        with contextlib.suppress(ValueError):  # a signal without a name
            cause = signal.Signals(-exit_code).name
    if -(exit_code or 0) in _CRASHES:
        cause += ": a library may have crashed"
    return died(
        cause, "run the same command again; if that fails too, report it as a bug of imagenet-prep"
    )


def _return_memory() -> None:
    """Return freed memory to the system: otherwise every worker is charged for it too."""
    with contextlib.suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)


def _start(function: Callable[[Any], Any] | None, *, can_fork: bool) -> _Worker[Any]:
    """A new worker, for one function or for those that it receives later.

    Raises:
        PrepError: the system can't start another process.
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
        raise no_worker(error) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
    return _Worker(process, ours)


def _lifeline() -> tuple[Connection, Connection]:
    """A pipe whose writing end only this process holds:
    however it dies, every worker sees the end.
    """
    if os.getpid() not in _lifelines:
        _lifelines[os.getpid()] = multiprocessing.Pipe(duplex=False)
    return _lifelines[os.getpid()]


_lifelines: dict[int, tuple[Connection, Connection]] = {}


def _end(workers: list[_Worker[Any]], owner: int) -> None:
    """Stop workers at once; in a forked copy, where this process is not ``owner``, do nothing."""
    if os.getpid() != owner:
        return
    for worker in workers:
        worker.process.kill()
        worker.connection.close()
    for worker in workers:
        worker.process.join()
        worker.process.close()


def _tell(worker: _Worker[Any], message: bytes | memoryview) -> bool:
    """Send a worker a function, a task, or the end of tasks; returns whether that succeeded."""
    try:
        worker.connection.send_bytes(message)
    except OSError:  # it died while idle; the next collect notices
        return False
    return True


def _work(
    function: Callable[[T], R] | None,
    connection: Connection,
    alive: Connection,
    parents: Connection | None,
) -> None:
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # NumPy's import would start a spinning thread for every core
    gc.freeze()  # a collection would write to memory shared with the parent, and so copy it
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole group; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if parents is not None:  # inherited by the fork
        parents.close()
    try:
        threading.Thread(target=_die_with_parent, args=(alive.fileno(),), daemon=True).start()
    except RuntimeError:  # a limit of processes counts threads too
        os._exit(_NO_THREAD)
    with contextlib.suppress(EOFError, OSError):  # the parent has gone
        while True:
            function = function or ForkingPickler.loads(connection.recv_bytes())
            while (task := connection.recv_bytes()) != _OVER:
                connection.send_bytes(_attempt(function, task))
            function = None


def _die_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)


# messages between the processes -------------------------------------------------------------------


def _attempt(function: Callable[[T], R], task: bytes) -> memoryview:
    """A pickled task -> the pickled answer: whether it succeeded, and its result or its error."""
    try:
        return ForkingPickler.dumps((True, function(ForkingPickler.loads(task))))
    except Exception as error:  # noqa: BLE001 - a bug must reach the parent as a value, with its traceback
        return ForkingPickler.dumps((False, fault(error)))


def _read(answer: bytes) -> tuple[bool, Any]:
    """The answer of a worker; an unreadable one becomes the failure of its task."""
    try:
        succeeded, value = ForkingPickler.loads(answer)
    except Exception as error:  # noqa: BLE001 - any failure to read it
        return False, fault(error)
    return succeeded, value
