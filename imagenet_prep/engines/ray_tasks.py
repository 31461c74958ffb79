"""Flight: the unfinished tasks of a command on the machines of a Ray cluster.

Ray places the tasks, and retries tasks that lost their worker or their machine. A machine without
the package, the output folder, the raw data or the keys of an object store is named and gets no
more tasks: the others finish. A machine that reads another copy of the images is too, and what it
has done is done again. The run fails only when no machine can do the work, and the error names each
of them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import random
import secrets
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Generic

from imagenet_prep.engines.ray_machines import (
    LOOK,
    line_of,
    machine_names,
    nodes,
    slots,
    tell_if_busy,
)
from imagenet_prep.engines.ray_worker import UNREACHED, Kit
from imagenet_prep.engines.worker_faults import FEWER_WORKERS, TRIES, died, fault
from imagenet_prep.errors import (
    NetworkError,
    OtherCopyError,
    PrepError,
    UsageError,
    WriteError,
    in_a_line,
)
from imagenet_prep.escaping import escaped
from imagenet_prep.model import Done, Failed, Portable, R, T
from imagenet_prep.storage.refusals import AGAIN
from imagenet_prep.version import describe_version

AHEAD = 2
"""The most unfinished tasks per slot of the cluster:
tasks beyond one per slot wait for the next free slot.
"""

PATIENCE = 30.0
"""Seconds until every machine sees a file made here; network file systems cache missing names."""

_END = 5.0  # seconds to wait for cancelled tasks to end

_PASSING = (NetworkError, WriteError)
"""Errors that may be over soon: a machine that has worked before goes on."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Attempt(Generic[T]):
    """A task, and the machines where it failed so far."""

    task: T
    failures: list[tuple[str, PrepError]]


class Flight(Generic[T, R]):
    """All unfinished tasks, by Ray's references to their answers."""

    def __init__(self, function: Portable[T], most_tasks: int | None) -> None:
        self._function = function
        self._most_tasks = most_tasks
        self._out: dict[Any, _Attempt[T]] = {}
        self._unfit: dict[str, PrepError] = {}
        self._reads_other_copy: set[str] = set()
        self._tasks_done: dict[str, list[bytes]] = {}  # small: all tasks of a set come here
        self._mark: Path | None = None
        self._kit: Any = None
        self._remote: Any = None
        self._limit, self._looked = 0, -LOOK

    def run(self, tasks: Iterable[T]) -> Iterator[Done[T, R] | Failed[T]]:
        """The outcome of every task, in any order: the latest one counts.

        A task has several if a machine that did it turns out to read another copy of the images.
        """
        for task in tasks:
            if self._remote is None:
                self._begin(task)
            while len(self._out) >= self._room():
                yield from self._collect()
            yield from self._send(_Attempt(task, []))
        while self._out:
            yield from self._collect()
        with contextlib.suppress(NetworkError):  # the head is lost, but all is done
            names = machine_names(self._tasks_done)
            counts = map(len, self._tasks_done.values())
            machines = [f"{name} {count}" for name, count in zip(names, counts, strict=True)]
            _log.info("shards by machine: %s", ", ".join(sorted(machines)) or "none")

    def close(self) -> None:
        """Let no waiting task start, and give the running ones a little time; Ray ends their
        workers with this process.

        ``ray.cancel`` is not used: an answer that crosses it on its way aborts the whole process,
            Ray 2.5x.
        """
        import ray

        if self._mark is not None:
            self._mark.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others are at work there
                self._mark.parent.rmdir()
        if self._out:
            ray.wait(list(self._out), num_returns=len(self._out), timeout=_END)

    def _begin(self, task: T) -> None:
        """Put on the cluster what every task needs;
        create the file that identifies the output folder.
        """
        import ray

        token = secrets.token_hex(8)
        mark = self._function.meeting_point(task, token)
        if mark is not None:
            # If it can't be created, the task that writes there reports it.
            with contextlib.suppress(OSError):
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
                self._mark = mark
        function = bytes(ForkingPickler.dumps(self._function))
        place = str(self._mark.absolute()) if self._mark else ""
        self._kit = ray.put(
            tuple(Kit(token, describe_version(), function, str(Path.cwd()), place, PATIENCE))
        )
        self._remote = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_by_value(_store_variables()))
        tell_if_busy()

    def _room(self) -> int:
        """The number of tasks that may be submitted now."""
        if time.monotonic() - self._looked > LOOK:
            fit = [node for node in nodes() if node["NodeID"] not in self._unfit]
            if self._unfit and not fit:
                raise _nobody(list(self._unfit.values()))
            self._limit, self._looked = self._most_tasks or AHEAD * slots(fit), time.monotonic()
        return self._limit

    def _send(self, attempt: _Attempt[T], node: str = "") -> Iterator[Failed[T]]:
        """Submit a task, to a certain machine if that is still there."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options: dict[str, Any] = {"name": f"imagenet-prep {type(self._function).__name__}"}
        if node:
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=True)
        elif self._unfit:
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(self._unfit)})"}
        try:
            task = self._function.sent(attempt.task)
            reference = self._remote.options(**options).remote(self._kit, task)
        except Exception as error:  # noqa: BLE001 - every task yields exactly one outcome
            yield Failed(attempt.task, fault(error))
        else:
            self._out[reference] = attempt

    def _collect(self) -> Iterator[Done[T, R] | Failed[T]]:
        """Wait a little for an answer."""
        import ray

        self._room()  # the last suitable machine may be gone
        try:
            ready = ray.wait(list(self._out), timeout=LOOK)[0]
        except SystemError as error:
            # Ray's compiled code wraps an exception raised by a signal's handler.
            raise error.__cause__ or error from None
        for reference in ready:
            yield from self._take(self._out.pop(reference), reference)

    def _take(self, attempt: _Attempt[T], reference: Any) -> Iterator[Done[T, R] | Failed[T]]:
        """The outcome of an attempt that has ended, unless the task runs once more."""
        import ray

        try:
            lacking, node, value, unset = ray.get(reference)
        except Exception as error:  # noqa: BLE001 - an unreadable answer, or any failure of the task or of Ray
            yield Failed(attempt.task, _failure(error))
            return
        if isinstance(value, PrepError):
            yield from self._fail(attempt, node, value, unset)
        elif lacking:
            self._exclude(node, UsageError(lacking))
            yield from self._send(attempt)
        else:
            yield from self._blame(attempt.failures)
            task = zlib.compress(ForkingPickler.dumps(attempt.task), 1)
            self._tasks_done.setdefault(node, []).append(task)
            if node in self._reads_other_copy:
                yield from self._do_again(node)
            else:
                yield Done(attempt.task, value)

    def _blame(self, failures: Sequence[tuple[str, PrepError]]) -> Iterator[Failed[T]]:
        """Exclude the machines where a task failed that another machine has done."""
        for node, error in failures:
            if node not in self._tasks_done or not isinstance(error, _PASSING):
                self._exclude(node, error)
            if isinstance(error, OtherCopyError):
                self._reads_other_copy.add(node)
                yield from self._do_again(node)

    def _do_again(self, node: str) -> Iterator[Failed[T]]:
        """Undo what a machine has made of another copy, and let others do it."""
        for compressed in self._tasks_done.pop(node, []):
            task = ForkingPickler.loads(zlib.decompress(compressed))
            self._function.undo(task)
            yield from self._send(_Attempt(task, []))

    def _fail(
        self, attempt: _Attempt[T], node: str, error: PrepError, unset: str
    ) -> Iterator[Failed[T]]:
        """Try a task on another machine: if that one can do it, the first one lacks something.

        A machine that has done nothing yet and doesn't reach the data gets no second task.
        """
        if node not in self._tasks_done and isinstance(error, UNREACHED):
            not_set = f"not set there, but here: {unset}" if unset else ""
            detail = "; ".join(filter(None, (error.detail, not_set)))
            self._exclude(node, type(error)(error.what, detail, error.hint))
            yield from self._send(attempt)
            return
        attempt.failures.append((node, error))
        may_retry = len(attempt.failures) < TRIES or isinstance(error, OtherCopyError)
        machines = self._untried(attempt)
        if not machines and isinstance(error, WriteError):
            machines = [node]
        if machines and may_retry:
            yield from self._send(attempt, random.choice(machines))
        else:
            yield Failed(attempt.task, error)

    def _untried(self, attempt: _Attempt[T]) -> list[str]:
        """The machines that may do a task: those that have done another one, or else any."""
        unfit = {*self._unfit, *(node for node, _ in attempt.failures)}
        untried = [node["NodeID"] for node in nodes() if node["NodeID"] not in unfit]
        return [node for node in untried if node in self._tasks_done] or untried

    def _exclude(self, node: str, error: PrepError) -> None:
        """Give a machine no more tasks, and say why."""
        if node in self._unfit:
            return
        (name,) = machine_names([node])
        reason = type(error)(f"{name}: {error.what}", error.detail, error.hint)
        self._unfit[node] = reason
        self._looked = -LOOK
        _log.warning("warning: a machine of the Ray cluster gets no more work: %s", _told(reason))


def _nobody(reasons: Sequence[PrepError]) -> PrepError:
    """The error for a cluster without a machine that can work."""
    error_types = {type(reason) for reason in reasons}
    error_type = error_types.pop() if len(error_types) == 1 else UsageError
    return error_type(
        f"no machine of the Ray cluster can do this work: {'; '.join(map(_told, reasons))}",
        f"expected each machine to be set up as {platform.node()} is",
        (
            "every machine needs the same imagenet-prep, the same folders from a shared file "
            "system, and the same keys and addresses of object stores"
        ),
    )


def _told(reason: PrepError) -> str:
    return escaped(in_a_line(reason))


def _failure(error: Exception) -> PrepError:
    """The error of a task, from Ray's."""
    from ray import exceptions

    if isinstance(
        error,
        (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError, exceptions.NodeDiedError),
    ):
        hint = f"see what ended it (ray status), {AGAIN}"
        if isinstance(error, exceptions.OutOfMemoryError):  # the cluster decides how often it tries
            hint = f"try {FEWER_WORKERS}, or machines with more memory, {AGAIN}"
        return died(line_of(error), hint)
    may_be_bug = isinstance(error, (exceptions.RayTaskError, exceptions.RaySystemError))
    if isinstance(error, exceptions.RayError) and not may_be_bug:
        hint = f"check the cluster (ray status), {AGAIN}"
        return NetworkError("Ray could not finish a task", line_of(error), hint)
    cause = error.cause if isinstance(error, exceptions.RayTaskError) else None
    return fault(cause if isinstance(cause, Exception) else error)


def _store_variables() -> list[str]:
    """The names of the variables for object stores that are set here."""
    return sorted(name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_")))


def _by_value(variables: Sequence[str]) -> Callable[[Any, Any], Any]:
    """The function that runs there first: Ray sends its code,
    so it also runs without this package.
    """

    def run(kit: Any, task: Any) -> Any:
        """The thing that this machine lacks or "", its node, the result or the error,
        and the names of the ``variables`` that are not set there.
        """
        import os

        import ray

        node = ray.get_runtime_context().get_node_id()
        unset = ", ".join(name for name in variables if name not in os.environ)
        try:
            from imagenet_prep.engines import ray_worker
        except ImportError as error:
            return f"imagenet-prep can't be imported there: {error}", node, None, unset
        lacking, value = ray_worker.answer(kit, task)
        return lacking, node, value, unset

    return run
