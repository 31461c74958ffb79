"""RayEngine: the machines of a Ray cluster make the shards, an existing cluster or a local one.

Ray places the tasks, and retries tasks that lost their worker, their machine or their storage. A
machine without the package, the output folder or the raw data reports that and gets no more tasks:
the others finish. The run fails only when no machine can do the work, and the error names each of
them.
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
from imagenet_prep.engines import TRIES, ThreadEngine, available_cpus, died, fault
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.errors import NetworkError, PrepError, UsageError, WriteError
from imagenet_prep.model import Done, Failed, Outcomes, Portable, R, T

AHEAD = 2
"""The most unfinished tasks per slot of the cluster:
tasks beyond one per slot wait for the next free slot.
"""

PATIENCE = 30.0
"""Seconds until every machine sees a file made here; network file systems cache missing names."""

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray sends nothing to its makers
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",  # and reports no deaths on standard output
    "RAY_task_oom_retries": str(
        TRIES - 1
    ),  # for a cluster started here; Ray's own default has no limit
}
_ALONE: dict[str, Any] = {
    "include_dashboard": False,
    "_node_ip_address": "127.0.0.1",
    "object_store_memory": 100 << 20,  # it holds only unusually large tasks
}
_LOOK = 0.5  # seconds between checks of the cluster's size
_ANSWER = 10.0  # seconds in which the machine of an address must answer
_END = 5.0  # seconds to wait for cancelled tasks to end


class RayEngine:
    """Runs portable functions on a Ray cluster, and all others on this machine.

    Args:
        workers: the most tasks at once; None: one per CPU of the cluster, more as it grows.
        address: of the cluster, "auto" for the one that this machine belongs to; None: start one
            here.
    """

    has_machines = True
    """Each may read a copy of the images: see datasets.copies."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self._workers = workers
        self._address = address
        self._is_connected = False

    @property
    def workers(self) -> int:
        """The number of tasks that may run at once now."""
        self.connect()
        return self._workers or _slots(_nodes())

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator starts no other.

        Raises:
            UsageError: Ray is not installed, or no machine of the cluster can do this work.
            NetworkError: no cluster answers.
        """
        if not isinstance(function, Portable):
            # A process with foreign threads should not fork.
            here = ThreadEngine if self._is_connected else ProcessEngine
            yield from here(self._workers or available_cpus()).map(function, tasks)
            return
        self.connect()
        most = self._workers if self._address else None  # a shared cluster gets exactly that many
        with contextlib.closing(_Flight(function, most)) as flight:
            yield from flight.run(tasks)

    def connect(self) -> None:
        """Join the cluster, or start one, unless that is already done."""
        if self._is_connected:
            return
        _refuse_address(self._address)
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            import ray

            logging.getLogger("ray").setLevel(logging.ERROR)
            cpus = None if self._address else self._workers or available_cpus()
            alone = {} if self._address else _ALONE
            where = {"address": self._address or "local", "num_cpus": cpus, **alone}
            ray.init(
                logging_level=logging.ERROR, log_to_driver=False, ignore_reinit_error=True, **where
            )
        except ImportError as error:
            raise UsageError(
                "Ray is not installed", str(error), "pip install 'imagenet-prep[ray]'"
            ) from error
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _no_cluster(self._address or "this machine", error) from error
        finally:
            for number, handler in handlers.items():
                with contextlib.suppress(ValueError):  # not in the main thread
                    signal.signal(number, handler)
        self._is_connected = True


# the driver ---------------------------------------------------------------------------------------


class _Flight(Generic[T, R]):
    """All unfinished tasks, by Ray's references to their answers."""

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
            with contextlib.suppress(
                OSError
            ):  # if it can't be created, the task that writes there reports it
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
                self._mark = mark
        function = bytes(ForkingPickler.dumps(self._function))
        place = str(self._mark.absolute()) if self._mark else ""
        self._kit = ray.put(
            tuple(Kit(token, imagenet_prep.__version__, function, str(Path.cwd()), place, PATIENCE))
        )
        # A retry may run on another machine, whose storage is sound.
        tries = {"max_retries": TRIES - 1, "retry_exceptions": [WriteError]}
        self._remote = ray.remote(num_cpus=1, **tries)(_by_value())

    def _room(self) -> int:
        """The number of tasks that may be submitted now."""
        if time.monotonic() - self._looked > _LOOK:
            fit = [node for node in _nodes() if node["NodeID"] not in self._unfit]
            if self._unfit and not fit:
                raise UsageError(
                    (
                        "no machine of the Ray cluster can do this work: "
                        f"{'; '.join(self._unfit.values())}"
                    ),
                    f"expected the same as on {platform.node()}",
                    (
                        "every machine needs the same imagenet-prep, and the same folders from a "
                        "shared file system"
                    ),
                )
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
        import ray

        self._room()  # the last suitable machine may be gone
        try:
            ready = ray.wait(list(self._out), timeout=_LOOK)[0]
        except (
            SystemError
        ) as error:  # Ray's compiled code wraps an exception raised by a signal's handler
            raise error.__cause__ or error from None
        for reference in ready:
            task = self._out.pop(reference)
            try:
                lacking, node, machine, value = ray.get(reference)
            except Exception as error:  # noqa: BLE001 - an unreadable answer, or any failure of the task or of Ray
                yield Failed(task, _failure(error))
                continue
            if lacking:
                self._unfit[node] = f"{machine}: {lacking}"
                self._looked = -_LOOK
                yield from self._send(task)
            else:
                yield Done(task, value)


def _failure(error: Exception) -> PrepError:
    """The error of a task, from Ray's."""
    from ray import exceptions

    if isinstance(
        error,
        (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError, exceptions.NodeDiedError),
    ):
        return died(_line(error))
    cause = error.cause if isinstance(error, exceptions.RayTaskError) else None
    return fault(cause if isinstance(cause, Exception) else error)


def _nodes() -> list[dict[str, Any]]:
    """The machines of the cluster that are up and accept tasks."""
    import ray

    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]


def _slots(nodes: Iterable[dict[str, Any]]) -> int:
    return max(1, int(sum(node["Resources"]["CPU"] for node in nodes)))


def _refuse_address(address: str | None) -> None:
    """Raise for an address of Ray's client, and for one that nobody listens on:
    Ray would retry forever.
    """
    if address is None or address == "auto":
        return
    if "://" in address:
        raise UsageError(
            f"an address of Ray's client ({address})",
            (
                "expected that of the cluster itself, such as 10.0.0.1:6379, or auto: "
                "this process joins the cluster"
            ),
            "run the command on a machine of the cluster",
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(
            f"{address} is not an address of a Ray cluster", "expected HOST:PORT, or auto"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(where: str, error: Exception) -> PrepError:
    return NetworkError(
        f"no Ray cluster at {where}",
        _line(error),
        "check that it runs (ray status), and RAY_ADDRESS",
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


# a worker -----------------------------------------------------------------------------------------


class Kit(NamedTuple):
    """The data that a worker needs in addition to tasks, sent once per machine as plain values for
    any version.

    ``name`` is unique; ``function`` is pickled; ``folder`` is the driver's working folder, for
    relative paths. ``mark`` is a file that the driver made, or ""; every machine should see it
    within ``patience`` seconds.
    """

    name: str
    version: str
    function: bytes
    folder: str
    mark: str
    patience: float


_kept: tuple[str, str, Any] = ("", "", None)
"""The name of a kit, what this machine lacks for it, and its function:
a reader keeps archives open between tasks.
"""


def _by_value() -> Callable[[Any, Any], Any]:
    """The function that runs there first: Ray sends its code,
    so it also runs without this package.
    """

    def run(kit: Any, task: Any) -> Any:
        """The thing that this machine lacks or "", its node, its name,
        and the result if it lacks nothing.
        """
        import platform

        import ray

        here = (ray.get_runtime_context().get_node_id(), platform.node())
        try:
            from imagenet_prep.engines import ray_cluster
        except ImportError as error:
            return (f"imagenet-prep can't be imported there: {error}", *here, None)
        lacking, value = ray_cluster.answer(kit, task)
        return (lacking, *here, value)

    return run


def answer(kit: tuple[str, str, bytes, str, str, float], task: Any) -> tuple[str, Any]:
    """The thing that this machine lacks for a task, or "", and the result if it lacks nothing.

    Raises:
        PrepError: the function raised; the error is converted to a PrepError.
    """
    global _kept
    if _kept[0] != kit[0]:
        lacking = _lacking(Kit(*kit))
        _kept = kit[0], lacking, None if lacking else ForkingPickler.loads(kit[2])
    _, lacking, function = _kept
    if kit[4] and not os.path.exists(kit[4]):  # noqa: PTH110 - as it was sent
        lacking = lacking or "the command that asked for this work has ended"
    lacking = lacking or next(
        (f"it lacks {path}" for path in function.inputs(task) if not path.exists()), ""
    )
    try:
        return lacking, None if lacking else function(task)
    except Exception as error:  # noqa: BLE001 - a bug reaches the driver with its traceback
        raise fault(error) from None


def _lacking(kit: Kit) -> str:
    """The reason that this machine can't work; empty if it can."""
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # NumPy's import would start a spinning thread for every core
    if imagenet_prep.__version__ != kit.version:
        return (
            f"imagenet-prep {imagenet_prep.__version__} is installed there, and {kit.version} here"
        )
    with contextlib.suppress(
        OSError
    ):  # then relative paths don't resolve, and the next lines report it
        os.chdir(kit.folder)
    until = time.monotonic() + kit.patience
    while kit.mark and not os.path.exists(kit.mark):  # noqa: PTH110 - as it was sent
        if time.monotonic() > until:
            return f"it has another folder {os.path.dirname(kit.mark)} than this machine"  # noqa: PTH120
        time.sleep(0.2)
    return ""
