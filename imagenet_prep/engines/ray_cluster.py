"""RayEngine: shards are made by the machines of a Ray cluster, one that is there or one of this machine alone.

Ray places the tasks, and tries again those that lost their worker, their machine or their storage. A machine that lacks
the package, the folder of the output or the raw data says so and gets no more tasks: the others finish. Only when no
machine can do the work the run fails, with the name of each.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Generic, NamedTuple

import imagenet_prep
from imagenet_prep.engines import ThreadEngine, available_cpus
from imagenet_prep.engines.faults import TRIES, died, fault
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.errors import NetworkError, PrepError, UsageError, WriteError
from imagenet_prep.model import Done, Failed, Outcomes, Portable, R, T

AHEAD = 2
"""Tasks that are out, in slots of the cluster: those beyond one a slot wait where a slot gets free next."""

PATIENCE = 30.0
"""Seconds in which a file made here shows on every machine; network file systems remember what was not there."""

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray sends nothing to its makers
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",  # and says nothing of deaths on standard output
    "RAY_task_oom_retries": str(TRIES - 1),  # of the cluster that is started here; Ray's own default is without end
}
_LOOK = 0.5  # seconds between looks at how large the cluster is
_ANSWER = 10.0  # seconds in which the machine of an address must answer
_END = 5.0  # seconds in which tasks that were cancelled should be gone
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
        self.connect()
        return self._workers or _slots(_nodes())

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], moved: Callable[[T, int], None] | None = None
    ) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator cancels what runs. There nothing is ``moved``.

        Raises:
            UsageError: Ray is not installed, or no machine of the cluster can do this work.
            NetworkError: no cluster answers.
        """
        if not isinstance(function, Portable):
            here = ThreadEngine if self._is_connected else ProcessEngine  # what holds threads of others should not fork
            yield from here(self._workers or available_cpus()).map(function, tasks, moved)
            return
        self.connect()
        most = self._workers if self._address else None  # on a cluster of others it is kept to exactly
        with contextlib.closing(_Flight(function, most)) as flight:
            yield from flight.run(tasks)

    def connect(self) -> None:
        """Join the cluster, or start one, if that isn't done yet."""
        if self._is_connected:
            return
        _refuse_address(self._address)
        for name, value in _ENVIRONMENT.items():
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
        return {"address": "local", "num_cpus": self._workers or available_cpus(), **alone}


# the driver ------------------------------------------------------------------------------------------------------


class _Flight(Generic[T, R]):
    """All tasks that are out, by Ray's references to their answers."""

    def __init__(self, function: Portable[T], most: int | None) -> None:
        self._function = function
        self._most = most
        self._out: dict[Any, T] = {}
        self._unfit: dict[str, str] = {}
        self._mark: Path | None = None
        self._kit: Any = None
        self._remote: Any = None
        self._limit, self._looked = 0, -_LOOK

    def run(self, tasks: Iterable[T]) -> Iterator[Done[T, R] | Failed[T]]:
        for task in tasks:
            if self._remote is None:
                self._begin(task)
            while len(self._out) >= self._room():
                yield from self._collect()
            yield from self._send(task)
        while self._out:
            yield from self._collect()

    def close(self) -> None:
        """Cancel what is out, and wait a little until it is gone."""
        import ray

        try:
            for reference in self._out:
                ray.cancel(reference)  # by force, an answer that is on its way would be a fatal error to Ray itself
            if self._out:
                ray.wait(list(self._out), num_returns=len(self._out), timeout=_END)
        finally:
            if self._mark is not None:
                self._mark.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # others are at work there
                    self._mark.parent.rmdir()

    def _begin(self, task: T) -> None:
        """Put on the cluster what every task needs; make the file by which a machine knows the folder of the output."""
        import ray

        token = secrets.token_hex(8)
        mark = self._function.meeting_point(task, token)
        if mark is not None:
            with contextlib.suppress(OSError):  # where it can't be made, the work that writes there says so
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
                self._mark = mark
        function = bytes(ForkingPickler.dumps(self._function))
        place = str(self._mark.absolute()) if self._mark else ""
        self._kit = ray.put(tuple(Kit(token, imagenet_prep.__version__, function, str(Path.cwd()), place, PATIENCE)))
        # Another try may go to another machine, whose storage is sound.
        tries = {"max_retries": TRIES - 1, "retry_exceptions": [WriteError]}
        self._remote = ray.remote(num_cpus=1, **tries)(_by_value())

    def _room(self) -> int:
        """How many tasks may be out now."""
        if time.monotonic() - self._looked > _LOOK:
            fit = [node for node in _nodes() if node["NodeID"] not in self._unfit]
            if self._unfit and not fit:
                raise _no_fit_machine(self._unfit.values())
            self._limit, self._looked = self._most or AHEAD * _slots(fit), time.monotonic()
        return self._limit

    def _send(self, task: T) -> Iterator[Failed[T]]:
        options: dict[str, Any] = {"name": f"imagenet-prep {type(self._function).__name__}"}
        if self._unfit:
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(self._unfit)})"}
        try:
            reference = self._remote.options(**options).remote(self._kit, self._function.sent(task))
        except Exception as error:  # noqa: BLE001 - every task yields exactly one outcome
            yield Failed(task, fault(error))
        else:
            self._out[reference] = task

    def _collect(self) -> Iterator[Done[T, R] | Failed[T]]:
        """Wait a little for an answer."""
        self._room()  # the last fit machine may have gone
        for reference in _wait(self._out):
            task = self._out.pop(reference)
            outcome = _outcome(task, reference)
            if isinstance(outcome, Unfit):
                self._unfit[outcome.node] = f"{outcome.machine}: {outcome.reason}"
                self._looked = -_LOOK
                yield from self._send(task)
            else:
                yield outcome


def _wait(references: Iterable[Any]) -> list[Any]:
    """The next that is ready, if one is within a moment."""
    import ray

    try:
        ready: list[Any] = ray.wait(list(references), timeout=_LOOK)[0]
    except SystemError as error:  # what a signal's handler raised, Ray's compiled code passes on within one
        raise error.__cause__ or error from None
    return ready


def _outcome(task: T, reference: Any) -> Done[T, Any] | Failed[T] | Unfit:
    """What Ray's answer means for a task."""
    import ray
    from ray import exceptions

    try:
        found = ray.get(reference)
    except exceptions.RayTaskError as error:
        return Failed(task, fault(error.cause if isinstance(error.cause, Exception) else error))
    except (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError, exceptions.NodeDiedError) as error:
        return Failed(task, died(_line(error)))
    except Exception as error:  # noqa: BLE001 - what can't be read, and whatever else Ray runs into
        return Failed(task, fault(error))
    return Unfit(*found[1:]) if found[0] == _UNFIT else Done(task, found[1])


def _nodes() -> list[dict[str, Any]]:
    """The machines of the cluster that are up and take tasks."""
    import ray

    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]


def _slots(nodes: Iterable[dict[str, Any]]) -> int:
    return max(1, int(sum(node["Resources"]["CPU"] for node in nodes)))


def _no_fit_machine(reasons: Iterable[str]) -> PrepError:
    return UsageError(
        f"no machine of the Ray cluster can do this work: {'; '.join(reasons)}",
        f"expected what {platform.node()} has",
        "every machine needs the same imagenet-prep, and the same folders from a shared file system",
    )


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
    return NetworkError(f"no Ray cluster at {where}", _line(error), "check that it runs (ray status), and RAY_ADDRESS")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


# a worker --------------------------------------------------------------------------------------------------------

_UNFIT = "unfit"


class Unfit(NamedTuple):
    """A machine that can't do the work: Ray's name of the node, its own, and what it lacks."""

    node: str
    machine: str
    reason: str


class Kit(NamedTuple):
    """What a worker needs beside tasks, sent once a machine; plain, so that another version can read it, and say so.

    ``name`` tells it from any other; ``function`` is pickled; ``folder`` is the driver's own, for relative paths;
    ``mark`` is a file that the driver made, or ""; it should show everywhere within ``patience`` seconds.
    """

    name: str
    version: str
    function: bytes
    folder: str
    mark: str
    patience: float


_kept: tuple[str, Callable[[Any], Any] | str] | None = None
"""The name of a kit, and its function, or what this machine lacks: a reader keeps its archives open between tasks."""


def _by_value() -> Callable[[Any, Any], Any]:
    """What runs there first: Ray sends its code, and not its name, so that it also runs where this package lacks."""

    def run(kit: Any, task: Any) -> Any:
        import platform

        import ray

        here = (ray.get_runtime_context().get_node_id(), platform.node())
        try:
            from imagenet_prep.engines import ray_cluster
        except ImportError as error:
            return ("unfit", *here, f"imagenet-prep can't be imported there: {error}")
        return ray_cluster.answer(kit, task, *here)

    return run


def answer(kit: tuple[str, str, bytes, str, str, float], task: Any, node: str, machine: str) -> tuple[Any, ...]:
    """A task's result, or what this machine lacks.

    Raises:
        PrepError: whatever the function raised, as an error of ours.
    """
    global _kept
    if _kept is None or _kept[0] != kit[0]:
        _kept = kit[0], _lacking(Kit(*kit)) or ForkingPickler.loads(kit[2])
    function = _kept[1]
    lacking = function if isinstance(function, str) else _missing(function, task)
    if isinstance(function, str) or lacking:
        return _UNFIT, node, machine, lacking
    try:
        return "done", function(task)
    except Exception as error:  # noqa: BLE001 - a bug of ours reaches the driver with its traceback
        raise fault(error) from None


def _lacking(kit: Kit) -> str:
    """What keeps this machine from working; empty if nothing does."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's import would start a spinning thread for every core
    if imagenet_prep.__version__ != kit.version:
        return f"imagenet-prep {imagenet_prep.__version__} is installed there, and {kit.version} here"
    with contextlib.suppress(OSError):  # then relative paths lead nowhere, and the next lines say so
        os.chdir(kit.folder)
    until = time.monotonic() + kit.patience
    while kit.mark and not os.path.exists(kit.mark):  # noqa: PTH110 - as it was sent
        if time.monotonic() > until:
            return f"it has another folder {os.path.dirname(kit.mark)} than this machine"  # noqa: PTH120
        time.sleep(0.2)
    return ""


def _missing(function: Any, task: Any) -> str:
    """What a task reads and this machine lacks; empty if all is there."""
    return next((f"it lacks {path}" for path in function.inputs(task) if not path.exists()), "")
