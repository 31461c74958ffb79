"""RayEngine: the machines of a Ray cluster make the shards, an existing cluster or a local one."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.engines.ray_machines import line_of, nodes, slots
from imagenet_prep.engines.ray_tasks import Flight
from imagenet_prep.engines.threads import ThreadEngine, available_cpus
from imagenet_prep.engines.worker_faults import TRIES
from imagenet_prep.errors import AccessError, NetworkError, PrepError, UsageError
from imagenet_prep.hints import install_extra
from imagenet_prep.model import Outcomes, Portable, R, T

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
_ITS_ADDRESS = "RAY_ADDRESS, or ray_address in Python"
_ANSWER = 10.0  # seconds in which the machine of an address must answer


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
        return self._workers or slots(nodes())

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the iterator starts no other.

        Raises:
            UsageError: Ray is not installed, or no machine of the cluster can do this work.
            NetworkError: no cluster answers.
        """
        if not isinstance(function, Portable):
            # A process with foreign threads should not fork.
            local_engine = ThreadEngine if self._is_connected else ProcessEngine
            yield from local_engine(self._workers or available_cpus()).map(function, tasks)
            return
        self.connect()
        limit = self._workers if self._address else None  # a shared cluster gets exactly that many
        with contextlib.closing(Flight(function, limit)) as flight:
            yield from flight.run(tasks)

    def connect(self) -> None:
        """Join the cluster, or start one, unless that is already done."""
        if self._is_connected:
            return
        _refuse_address(self._address)
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        try:
            with _unchanged_handlers():
                self._join()
        except ImportError as error:
            problem = "Ray can't be imported"
            if getattr(error, "name", "") == "ray":
                problem = "Ray is not installed"
            raise UsageError(problem, str(error), install_extra("ray")) from error
        except Exception as error:  # Ray documents none of those that it raises
            raise _no_cluster(self._address, error) from error
        self._is_connected = True

    def _join(self) -> None:
        import ray

        logging.getLogger("ray").setLevel(logging.ERROR)
        _take_token(self._address)
        if self._address:
            _knock(self._address)
            options: dict[str, Any] = {"address": self._address}
        else:
            cpus = self._workers or available_cpus()
            options = {"address": "local", "num_cpus": cpus, **_ALONE}
        ray.init(
            logging_level=logging.ERROR, log_to_driver=False, ignore_reinit_error=True, **options
        )


# joining a cluster --------------------------------------------------------------------------------


def _refuse_address(address: str | None) -> None:
    """Raise for an address of Ray's client, and for one that nobody listens on:
    Ray would retry forever.
    """
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or "://" in address or not port.isdecimal():
        raise UsageError(
            f"{address!r} is not an address of a Ray cluster",
            "expected HOST:PORT, such as 10.0.0.1:6379, or auto; not ray:// or http://",
            f"correct {_ITS_ADDRESS}, and run the command on a machine of the cluster",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
    except (OSError, OverflowError, UnicodeError) as error:  # UnicodeError: no name of a host
        raise _no_cluster(address, error) from error


@contextlib.contextmanager
def _unchanged_handlers() -> Iterator[None]:
    """Put back this process's handlers of signals, which Ray replaces."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(number, handler)


def _take_token(address: str | None) -> None:
    """Take part in token authentication as ``ray start --head`` does: whenever there is a token.

    Ray does that itself only for the address "auto". A cluster without authentication ignores the
    token. A cluster of this process alone gets a token of its own, because Ray would leave one in
    the user's home, which turns on the authentication of the next cluster that is started here.
    """
    if address is None:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        return
    with contextlib.suppress(ImportError, AttributeError):  # an older Ray knows RAY_AUTH_MODE alone
        from ray._private.authentication import authentication_token_setup as tokens

        tokens.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
        # Without a token that is required, Ray's compiled code would abort this process.
        tokens.ensure_token_if_auth_enabled(create_token_if_missing=False)


def _knock(address: str) -> None:
    """Raise Ray's exception at once if the cluster refuses this process:
    ``ray.init`` would try for 20 seconds, and forget the reason.
    """
    from ray._private import services
    from ray._raylet import GcsClient  # type: ignore[attr-defined]

    head = services.canonicalize_bootstrap_address(address)
    with _without_native_lines():
        GcsClient(address=head)


@contextlib.contextmanager
def _without_native_lines() -> Iterator[None]:
    """Hide what Ray's compiled code writes to standard error, which no setting of Ray hides."""
    sys.stderr.flush()
    standard_error = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)
        os.close(null)


def _no_cluster(address: str | None, error: Exception) -> PrepError:
    """The error for a cluster that this process can't join; without an address, can't start."""
    name = type(error).__name__
    if address is None:
        return NetworkError(
            "no Ray cluster can be started on this machine",
            line_of(error) or name,
            "remove this cause; or use the workers of this machine without Ray: --engine processes",
        )
    cluster = "the Ray cluster of this machine (auto)"
    if address != "auto":
        cluster = f"the Ray cluster at {address}"
    if name == "AuthenticationError":
        return AccessError(
            f"the authentication with {cluster} failed",
            line_of(error).partition(". ")[0],
            (
                "on this machine, put the head's token (ray get-auth-token) into ~/.ray/auth_token "
                "or RAY_AUTH_TOKEN, and set RAY_AUTH_MODE=token"
            ),
        )
    if "Version mismatch" in str(error):
        return UsageError(
            f"{cluster} has another version of Ray or Python",
            line_of(error),
            "install the same versions on every machine",
        )
    return NetworkError(
        f"this process can't join {cluster}",
        line_of(error) or name,
        f"check that it runs (ray status), and its address in {_ITS_ADDRESS}",
    )
