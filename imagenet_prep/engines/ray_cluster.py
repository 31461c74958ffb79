"""RayEngine: tasks on the machines of a Ray cluster, one that is there or one of this machine alone.

Ray places tasks, starts workers and notices those that are lost. What is done then is decided here, so that a task
counts as failed after as many deaths as with other engines, and no death of a machine is held against it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import queue
import secrets
import signal
import socket
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Generic

import imagenet_prep
from imagenet_prep.engines.answers import read
from imagenet_prep.engines.faults import TRIES, died, fault
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.engines.ray_worker import Kit
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import NetworkError, PrepError, UsageError
from imagenet_prep.model import Done, Failed, Outcomes, Portable, R, T

AHEAD = 2
"""Tasks that are out, in slots of the cluster: those beyond one a slot wait where a slot gets free next."""

LATE = 1.2
"""At the end, a task that is out so many times as long as is usual runs a second time (docs/scale.md)."""

PATIENCE = 30.0
"""Seconds in which a file made here shows on every machine; network file systems remember what was not there."""

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "^"}
"""Ray sends nothing to its makers; and of deaths it says nothing on standard output, which is what ours say goes to."""

_LATE_LEAST = 2.0  # seconds: below that a second run gains nothing
_NODES = 10  # machines that a task may lose before it counts as failed
_LOOK = 0.5  # seconds between looks at how large the cluster is, and at what is late
_ANSWER = 10.0  # seconds in which the machine of an address must answer
_END = 5.0  # seconds in which runs that were called off should be gone
_STORE = 100 << 20  # bytes of Ray's object store on this machine: it holds tasks that are larger than usual, no more


class RayEngine:
    """Runs portable functions on a Ray cluster, and all others on this machine.

    Args:
        workers: tasks at once at most; None: as many as the cluster has CPUs, more as it grows.
        address: of the cluster, "auto" for the one that this machine belongs to; None: one is started here.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self._workers = workers
        self._address = address
        self._is_connected = False

    @property
    def workers(self) -> int:
        """Tasks that may run at once now."""
        return self._workers or self._slots()

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], moved: Callable[[T, int], None] | None = None
    ) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator calls off what runs. There nothing is ``moved``.

        Raises:
            UsageError: Ray is not installed, or a machine of the cluster can't do this work.
            NetworkError: no cluster answers.
        """
        if not isinstance(function, Portable):
            here = ThreadEngine if self._is_connected else ProcessEngine  # what holds threads of others should not fork
            yield from here(self._workers or _cpus()).map(function, tasks, moved)
            return
        with contextlib.closing(_Flight(function, self)) as flight:
            yield from flight.run(tasks)

    def limit(self) -> int:
        """Tasks that may be out at once now; on a cluster of others ``workers`` is kept to exactly."""
        if self._workers and self._address:
            return self._workers
        return AHEAD * self._slots()

    def _slots(self) -> int:
        self.connect()
        import ray

        return max(1, int(ray.cluster_resources().get("CPU", 0)))

    def connect(self) -> None:
        """Join the cluster, or start one, if that isn't done yet."""
        if self._is_connected:
            return
        _refuse_address(self._address)
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            import ray
        except ImportError as error:
            raise UsageError("Ray is not installed", str(error), "pip install 'imagenet-prep[ray]'") from error
        logging.getLogger("ray").setLevel(logging.ERROR)
        try:
            if not ray.is_initialized():
                ray.init(logging_level=logging.ERROR, log_to_driver=False, **self._where())
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _no_cluster(self._address or "this machine", error) from error
        finally:
            for number, handler in handlers.items():
                with contextlib.suppress(ValueError):  # not in the main thread
                    signal.signal(number, handler)
        self._is_connected = True

    def _where(self) -> dict[str, Any]:
        if self._address:
            return {"address": self._address}
        alone = {"include_dashboard": False, "_node_ip_address": "127.0.0.1", "object_store_memory": _STORE}
        return {"address": "local", "num_cpus": self._workers or _cpus(), **alone}


def _refuse_address(address: str | None) -> None:
    """Raise for an address of Ray's client, and for one where nobody listens: Ray would try for ever."""
    if address is None or address == "auto":
        return
    if "://" in address:
        raise UsageError(
            f"an address of Ray's client ({address})",
            "expected that of the cluster itself, such as 10.0.0.1:6379, or auto: this process becomes a part of it",
            "run the command on a machine of the cluster",
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"{address} is not an address of a Ray cluster", "expected HOST:PORT, or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(where: str, error: Exception) -> PrepError:
    return NetworkError(f"no Ray cluster at {where}", _line(error), "check that it runs (ray status), and its address")


@dataclass(eq=False, slots=True)
class _Sent(Generic[T]):
    """A task that is out: its pickle, how often it lost a worker and a machine, and its runs."""

    task: T
    data: bytes
    sent: float = 0.0
    workers_lost: int = 0
    nodes_lost: int = 0
    runs: dict[int, Any] = field(default_factory=dict)


class _Flight(Generic[T, R]):
    """All that is out."""

    def __init__(self, function: Portable[T], engine: RayEngine) -> None:
        self._function = function
        self._engine = engine
        self._sent: dict[int, _Sent[T]] = {}  # by the number of each of its runs
        self._answers: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._times: deque[float] = deque(maxlen=101)
        self._token: Path | None = None
        self._folder: Path | None = None  # made for it
        self._remote: Any = None
        self._kit: Any = None
        self._runs = 0
        self._limit, self._slots, self._looked = 0, 0, -_LOOK
        self._called_off: set[int] = set()

    def run(self, tasks: Iterable[T]) -> Iterator[Done[T, R] | Failed[T]]:
        for task in tasks:
            if self._remote is None:
                self._begin(task)
            while self._out() >= self._most():
                yield from self._collect()
            yield from self._send_first(task)
        while self._sent:
            yield from self._collect()
            self._run_late_again()

    def close(self) -> None:
        """Call off what is out, and wait a little until it is gone."""
        try:
            if self._sent:
                self._call_off(list(self._sent))
            until = time.monotonic() + _END
            while self._called_off and time.monotonic() < until:
                with contextlib.suppress(queue.Empty):
                    self._called_off.discard(self._answers.get(timeout=0.1)[0])
        finally:
            if self._token is not None:
                self._token.unlink(missing_ok=True)
            if self._folder is not None:
                with contextlib.suppress(OSError):
                    self._folder.rmdir()

    def _begin(self, task: T) -> None:
        """Join the cluster; put there what every task needs."""
        self._engine.connect()
        import ray

        token = secrets.token_hex(8)
        self._meet(self._function.meeting_point(task, token))
        function = bytes(ForkingPickler.dumps(self._function))
        place = str(self._token.absolute()) if self._token else ""
        kit = Kit(token, imagenet_prep.__version__, function, str(Path.cwd()), place, PATIENCE)
        self._kit = ray.put(tuple(kit))
        name = f"imagenet-prep {type(self._function).__name__}"
        # Whether to try again is decided here: Ray counts neither deaths by lack of memory nor those of machines apart.
        self._remote = ray.remote(num_cpus=1, max_retries=0)(_sent_by_value()).options(name=name)

    def _meet(self, point: Path | None) -> None:
        """Make an empty file there; where that can't be, work that writes there will say so."""
        if point is None:
            return
        with contextlib.suppress(OSError):
            if not point.parent.exists():
                point.parent.mkdir(parents=True)
                self._folder = point.parent
            point.touch()
            self._token = point

    def _most(self) -> int:
        if time.monotonic() - self._looked > _LOOK:
            self._limit, self._slots, self._looked = self._engine.limit(), self._engine.workers, time.monotonic()
        return self._limit

    def _out(self) -> int:
        return len(self._sent)

    def _send_first(self, task: T) -> Iterator[Failed[T]]:
        try:
            data = bytes(ForkingPickler.dumps(self._function.sent(task)))
        except Exception as error:  # noqa: BLE001 - every task yields exactly one outcome
            yield Failed(task, fault(error))
            return
        self._send(_Sent(task, data))

    def _send(self, sent: _Sent[T]) -> None:
        self._runs += 1
        number, answers = self._runs, self._answers
        reference = self._remote.remote(self._kit, sent.data)
        sent.runs[number] = reference
        sent.sent = time.monotonic()
        self._sent[number] = sent
        reference.future().add_done_callback(lambda answer: answers.put((number, answer)))

    def _collect(self) -> Iterator[Done[T, R] | Failed[T]]:
        """Wait for an answer, or for the time to look at what is late."""
        try:
            number, answer = self._answers.get(timeout=_LOOK)
        except queue.Empty:
            return
        self._called_off.discard(number)
        sent = self._sent.pop(number, None)
        if sent is None:  # called off
            return
        del sent.runs[number]
        outcome = self._outcome(sent, answer)
        if outcome is not None:
            self._times.append(time.monotonic() - sent.sent)
            self._call_off(list(sent.runs))
            yield outcome

    def _outcome(self, sent: _Sent[T], answer: Any) -> Done[T, R] | Failed[T] | None:
        """What a run's answer means for its task; None: nothing yet, since another run of it is out."""
        from ray import exceptions

        try:
            found = answer.result()
        except (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError) as error:
            sent.workers_lost += 1
            return self._lost(sent, error)
        except exceptions.RayTaskError as error:  # before any code of ours: its arguments could not be read there
            return Failed(sent.task, fault(error))
        except exceptions.RayError as error:
            sent.nodes_lost += 1
            return self._lost(sent, error)
        if isinstance(found, tuple):
            raise _unfit(*found)
        succeeded, value = read(found)
        return Done(sent.task, value) if succeeded else Failed(sent.task, value)

    def _lost(self, sent: _Sent[T], error: Exception) -> Failed[T] | None:
        if sent.runs:
            return None
        if sent.workers_lost < TRIES and sent.nodes_lost < _NODES:
            self._send(sent)
            return None
        return Failed(sent.task, died(_line(error)))

    def _run_late_again(self) -> None:
        """When slots are idle and no task is left: a second run of what is out for long. The first to end counts."""
        self._most()
        idle = self._slots - len(self._sent)
        if not self._times or idle <= 0:
            return
        usual = max(_LATE_LEAST, LATE * statistics.median(self._times))
        now, alone = time.monotonic(), [each for each in self._sent.values() if len(each.runs) == 1]
        late = [each for each in alone if now - each.sent > usual and not each.workers_lost]  # it may be what kills
        for each in late[:idle]:
            self._send(each)

    def _call_off(self, numbers: list[int]) -> None:
        import ray

        for number in numbers:
            sent = self._sent.pop(number)
            self._called_off.add(number)
            ray.cancel(sent.runs.pop(number), force=True)


def _sent_by_value() -> Callable[[Any, bytes], Any]:
    """What runs there first: Ray sends its code, and not its name, so that it also runs where this package lacks."""

    def run(kit: Any, task: bytes) -> Any:
        try:
            from imagenet_prep.engines import ray_worker
        except ImportError as error:
            import platform

            return platform.node(), f"imagenet-prep can't be imported there: {error}"
        return ray_worker.run(kit, task)

    return run


def _unfit(machine: str, reason: str) -> PrepError:
    return UsageError(
        f"a machine of the Ray cluster can't do this work: {machine}",
        f"{reason} ({platform.node()})",
        "every machine needs the same imagenet-prep, and the same folders from a shared file system",
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _cpus() -> int:
    from imagenet_prep.engines import available_cpus

    return available_cpus()
