"""is_made and prepare_before: the first request to an object store, after which a process can't be
forked.

The library of object stores does not survive a fork. This module is apart from object_store: a
command on local folders needs nothing else of it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from msgspec import Struct


class _FirstRequest(Struct):
    """Whether this process has made requests, and whether its parent had before the fork."""

    is_made: bool = False
    was_made_by_parent: bool = False


_state = _FirstRequest()
_lock = threading.Lock()
_engines: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def is_made() -> bool:
    """Whether this process has made a request: its forked children can't make any."""
    return _state.is_made


def was_made_by_parent() -> bool:
    """Whether this process was forked after a request: it can't make any."""
    return _state.was_made_by_parent


def prepare_before(engine: Any) -> None:
    """Register ``engine.prepare()`` to fork before this process makes its first request,
    if the engine still exists.
    """
    _engines[id(engine)] = engine


def make_ready() -> None:
    """Let the registered engines fork, unless a request was made before; a request follows."""
    with _lock:
        if not _state.is_made:
            for engine in list(_engines.values()):
                engine.prepare()
        _state.is_made = True


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _state.was_made_by_parent = _state.was_made_by_parent or _state.is_made
    _engines.clear()


os.register_at_fork(after_in_child=_after_fork)
