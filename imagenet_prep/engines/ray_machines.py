"""The machines of the Ray cluster that this process has joined: names, CPUs, and the head."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterable
from typing import Any

from imagenet_prep.errors import NetworkError

LOOK = 0.5
"""Seconds between looks at the cluster."""

_HEAD = 40.0  # seconds in which a lost head may come back: Ray gives it 60
_SETTLED = 2.0  # seconds until Ray counts the CPUs of ended tasks as free

_log = logging.getLogger(__name__)


def nodes() -> list[dict[str, Any]]:
    """The machines of the cluster that are up and accept tasks.

    Raises:
        NetworkError: the head is gone: it alone knows them.
    """
    import ray

    await_head()
    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]


def slots(nodes: Iterable[dict[str, Any]]) -> int:
    """The number of tasks that run at once on these machines."""
    return max(1, int(sum(node["Resources"]["CPU"] for node in nodes)))


def machine_names(node_ids: Iterable[str]) -> list[str]:
    """The name and the address of each machine, which may be gone.

    Raises:
        NetworkError: the head is gone: it alone knows the names.
    """
    import ray

    await_head()
    names = {
        node["NodeID"]: f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
        for node in ray.nodes()
    }
    return [names.get(node_id, node_id) for node_id in node_ids]


def await_head() -> None:
    """Wait a while for a head that is gone: Ray itself would end this process after a minute.

    Raises:
        NetworkError: it does not come back.
    """
    import ray

    address = ray.get_runtime_context().gcs_address
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + _HEAD
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=LOOK).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise _lost_head(address, error) from error
            time.sleep(LOOK)
        else:
            return


def _lost_head(address: str, error: OSError) -> NetworkError:
    return NetworkError(
        f"the head of the Ray cluster at {address} does not answer",
        line_of(error),
        "check the cluster (ray status), then run the same command again",
    )


def tell_if_busy() -> None:
    """Say what tasks wait for if no CPU is free, before any of this command's tasks has one."""
    import ray

    deadline = time.monotonic() + _SETTLED
    while ray.available_resources().get("CPU", 0) < 1:
        if time.monotonic() > deadline:
            _log.warning(
                "waiting for a free CPU of the Ray cluster: other work has all %d (ray status)",
                sum(node["Resources"]["CPU"] for node in nodes()),
            )
            return
        time.sleep(0.1)


def line_of(error: Exception) -> str:
    """The text of an exception as a line of limited length."""
    return " ".join(str(error).split())[:300]
