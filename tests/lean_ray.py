"""Clusters of Ray without what no test looks at: each such process takes seconds of a processor.

They are the monitors of logs and of the cluster's size, the server of Ray's client, and the
dashboard, which Ray starts in part even where it is to be left out; on each machine, its agent and
the one that installs packages for tasks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HOOK = {"RAY_START_HOOK": "lean_ray.leave_out"}
"""Variables with which ``ray start`` leaves them out."""

UNUSED = ("start_api_server", "start_log_monitor", "start_monitor", "start_ray_client_server")

PORTS = {
    "dashboard_agent": (
        "metrics_agent_port",
        "metrics_export_port",
        "dashboard_agent_listen_port",
    ),
    "runtime_env_agent": ("runtime_env_agent_port",),
}
"""The agents of a machine, and the ports that its raylet waits for."""


def leave_out(*_: Any) -> None:
    """Let no machine that this process starts have one of them."""
    from ray._private import services
    from ray._private.node import Node

    for name in UNUSED:
        assert hasattr(Node, name), f"Ray has no {name} any more: find what starts it now"
        setattr(Node, name, _nothing)
    assert hasattr(services, PYTHON), f"Ray has no {PYTHON} any more: find what starts its agents"
    setattr(services, PYTHON, _python_of)


PYTHON = "_build_python_executable_command_memory_profileable"
"""Ray's function for the first words of each program of its own."""


def _python_of(component: str, *_: Any) -> list[str]:
    """The first words of a program; of an agent, those of one that does nothing."""
    if component not in PORTS:
        return [sys.executable, "-u"]
    agent = Path(__file__).with_name("lean_agent.py")
    return [sys.executable, "-I", "-S", str(agent), *PORTS[component]]


def _nothing(*_: Any, **__: Any) -> None:
    """Start nothing."""
