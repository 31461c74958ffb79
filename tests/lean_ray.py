"""Clusters of Ray without what no test looks at: each such process takes seconds of a processor.

They are the monitors of logs and of the cluster's size, the server of Ray's client, and the
dashboard, which Ray starts in part even where it is to be left out.
"""

from __future__ import annotations

from typing import Any

HOOK = {"RAY_START_HOOK": "lean_ray.leave_out"}
"""Variables with which ``ray start`` leaves them out."""

UNUSED = ("start_api_server", "start_log_monitor", "start_monitor", "start_ray_client_server")


def leave_out(*_: Any) -> None:
    """Let no machine that this process starts have one of them."""
    from ray._private.node import Node

    for name in UNUSED:
        assert hasattr(Node, name), f"Ray has no {name} any more: find what starts it now"
        setattr(Node, name, _nothing)


def _nothing(*_: Any, **__: Any) -> None:
    """Start nothing."""
