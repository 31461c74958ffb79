"""Worker processes on this machine.

Why not concurrent.futures: there one worker killed from outside (the OOM killer) breaks the whole pool. Here its task
is tried again by a new worker. Workers are forked: they start in a millisecond and share what the parent has read. Once
the parent has talked to an object store they are started anew: that library survives no fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic

from imagenet_prep.engines.answers import attempt, read
from imagenet_prep.engines.faults import TRIES, died, no_worker
from imagenet_prep.model import Done, Failed, Outcomes, R, T
from imagenet_prep.storage.objects import are_used

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_NO_THREAD = os.EX_OSERR
"""The exit status of a worker that could not begin."""


@dataclass(slots=True)
class ProcessEngine:
    """Runs tasks on ``workers`` processes: forked ones, if this process can be forked."""

    workers: int

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator stops the workers at once."""
        with contextlib.closing(_Pool(function, self.workers)) as pool:
            yield from pool.run(tasks)


@dataclass(slots=True)
class _Worker(Generic[T]):
    process: BaseProcess
    connection: Connection
    task: T | None = None
    tries: int = 0


class _Pool(Generic[T, R]):
    def __init__(self, function: Callable[[T], R], size: int) -> None:
        self._function = function
        self._size = size
        self._workers: list[_Worker[T]] = []
        # Only this process holds the writing end: when it dies, however it dies, every worker sees the end of file.
        self._lifeline = multiprocessing.Pipe(duplex=False)
        _return_memory()

    def run(self, tasks: Iterable[T]) -> Iterator[Done[T, R] | Failed[T]]:
        for task in tasks:
            while (worker := self._idle_worker()) is None:
                yield from self._collect()
            self._give(worker, task, tries=1)
        while any(worker.tries for worker in self._workers):
            yield from self._collect()

    def close(self) -> None:
        for end in self._lifeline:
            end.close()
        for worker in self._workers:
            worker.process.kill()
            worker.connection.close()
        for worker in self._workers:
            worker.process.join()
            worker.process.close()

    def _idle_worker(self) -> _Worker[T] | None:
        for worker in self._workers:
            if not worker.tries:
                return worker
        return self._start() if len(self._workers) < self._size else None

    def _start(self) -> _Worker[T]:
        ours, theirs = multiprocessing.Pipe()
        can_fork = not are_used()
        context = multiprocessing.get_context("fork" if can_fork else "spawn")
        alive, ours_alone = self._lifeline
        arguments = (self._function, theirs, alive, ours_alone if can_fork else None)
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
        worker: _Worker[T] = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _give(self, worker: _Worker[T], task: T, tries: int) -> None:
        worker.task, worker.tries = task, tries
        with contextlib.suppress(BrokenPipeError):  # it died while idle; the next collect finds out
            worker.connection.send(task)

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
            task = worker.task
            worker.task, worker.tries = None, 0
            succeeded, value = read(answer)
            yield Done(task, value) if succeeded else Failed(task, value)  # type: ignore[arg-type]

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


def _work(function: Callable[[T], R], connection: Connection, alive: Connection, parents: Connection | None) -> None:
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
            connection.send_bytes(attempt(function, connection.recv_bytes()))


def _die_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)
