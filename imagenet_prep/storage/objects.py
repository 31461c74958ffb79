"""Clients of s3://, gs:// and az:// by obstore, which this module alone imports, and the errors of their requests.

Each process makes its own clients, from its environment: a pickle holds the URL alone. A client that was used doesn't
survive a fork: the child's requests would wait for ever, so they are refused.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from imagenet_prep.errors import AccessError, InputError, NetworkError, PrepError, UsageError

RETRY_SECONDS = 120
"""How long a request is tried again, if ``IMAGENET_PREP_RETRY_SECONDS`` doesn't say otherwise."""

_TIMES_OUT = 120.0  # seconds for a part on a slow line
_SILENT = 20.0  # seconds
_STATUS = re.compile(r"status code: (\d{3})|HTTP status (?:client|server) error \((\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_SIGN_UP = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what else docs/object-stores.md names"
_SIGN_UP_ELSEWHERE = "docs/object-stores.md names the variables that are read"


@dataclass(slots=True)
class _State:
    """Of this process: whether it has made requests, and whether one that it was forked from had."""

    used: bool = False
    is_lost: bool = False


_state = _State()
_lock = threading.Lock()
_before_use: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def are_used() -> bool:
    """Whether this process has made a request: one that is forked from it can make none."""
    return _state.used


def prepare_before_use(engine: Any) -> None:
    """Have ``engine.prepare()`` called, if it lives then, before this process makes its first request: to fork."""
    _before_use[id(engine)] = engine


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _state.is_lost = _state.is_lost or _state.used
    client.cache_clear()
    _before_use.clear()


os.register_at_fork(after_in_child=_after_fork)


def library() -> Any:
    """The obstore module.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import obstore
        import obstore.store
    except ImportError as error:
        raise UsageError(
            "object stores take the obstore library", "it is not installed", "pip install 'imagenet-prep[cloud]'"
        ) from error
    return obstore


@functools.lru_cache(maxsize=64)
def client(scheme: str, bucket: str, options: tuple[tuple[str, Any], ...] = ()) -> Any:
    """The client of a bucket, by the environment of this process, with these options beside.

    Raises:
        UsageError: obstore is not installed.
        AccessError: the environment doesn't tell what it needs.
    """
    obstore = library()
    if _state.is_lost:
        raise UsageError(
            f"{scheme}://{bucket} can't be reached from a process that was forked from one that used it",
            "expected a new process, not a forked one",
            "start workers by spawn or forkserver: multiprocessing_context='spawn' of a PyTorch DataLoader",
        )
    seconds = _retry_seconds()
    from datetime import timedelta  # not above: every command of local folders knows this module

    backoff = {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=10), "base": 2}
    retry = {"max_retries": 50, "retry_timeout": timedelta(seconds=seconds), "backoff": backoff}
    silent = timedelta(seconds=min(_SILENT, max(seconds, 1)))
    http: dict[str, Any] = {"timeout": timedelta(seconds=_TIMES_OUT), "read_timeout": silent}
    if os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true", "yes") and scheme == "s3":
        http["allow_http"] = True
    make, name = {
        "s3": (obstore.store.S3Store, "bucket"),
        "gs": (obstore.store.GCSStore, "bucket"),
        "az": (obstore.store.AzureStore, "container_name"),
    }[scheme]
    with _lock:
        if not _state.used:
            for engine in list(_before_use.values()):
                engine.prepare()
        _state.used = True
        try:
            return make(**{name: bucket}, client_options=http, retry_config=retry, **dict(options))
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise AccessError(
                f"{scheme}://{bucket} can't be reached with what the environment says",
                "it lacks something, or holds what is not understood",
                _who(scheme),
            ) from error


def _retry_seconds() -> float:
    said = os.environ.get("IMAGENET_PREP_RETRY_SECONDS", "")
    try:
        return max(float(said), 0.0) if said else RETRY_SECONDS
    except ValueError:
        expected = "expected a number of seconds"
        raise UsageError(f"IMAGENET_PREP_RETRY_SECONDS is {said!r}", expected) from None


def sign(scheme: str, bucket: str, method: str, options: Mapping[str, Any]) -> str:
    """A URL that allows one request for a few minutes, by a client with these options; it is as good as a secret."""
    from datetime import timedelta

    chosen = client(scheme, bucket, tuple(sorted(options.items())))
    found: str = library().sign(chosen, method, "request", timedelta(minutes=5))
    return found


# what a store says ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def asking(url: str) -> Iterator[None]:
    """Turn what obstore says of a request into the error that names the object; see ``failure``."""
    exceptions = library().exceptions
    try:
        yield
    except (exceptions.AlreadyExistsError, PrepError):
        raise
    except (exceptions.BaseError, OSError) as error:
        raise failure(url, error) from None  # what it says holds addresses, and what the server answers


def failure(url: str, error: Exception) -> Exception:
    """The error for what obstore said of a request for an object: nothing of its text but status and code."""
    said = str(error)
    scheme, _, place = url.partition("://")
    found = _STATUS.search(said)
    status = int(found[1] or found[2]) if found else None
    code = _CODE.search(said)
    answer = f"status {status}" + (f", {code[1]}" if code else "") if status else ""
    if (code and code[1] == "NoSuchBucket") or "NoSuchBucket" in said or "ContainerNotFound" in said:
        what = f"there is no bucket {scheme}://{place.partition('/')[0]}"
        return InputError(what, answer, "make it, or name another one; AWS_ENDPOINT_URL says where it is looked for")
    if isinstance(error, FileNotFoundError) or status == 404:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    name = type(error).__name__
    if name in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
        detail = f"the store refuses these credentials for it: {answer or 'no right'}"
        return AccessError(f"no access to {url}", detail, _who(scheme))
    if status is None and re.search(r"169\.254\.|metadata|credential|InstanceProfile|token", said, re.IGNORECASE):
        return AccessError(f"no credentials for {url}", "the environment holds none that can be used", _who(scheme))
    if status is not None and status < 500 and status not in (408, 429):
        return InputError(f"the store refuses a request for {url}", answer, "check the URL and AWS_ENDPOINT_URL")
    reason = answer or _network_reason(said)
    hint = "run the same command again; AWS_ENDPOINT_URL says which server is asked, if it is not the store's own"
    return NetworkError(f"no answer that can be used for {url}", reason, hint)


def _who(scheme: str) -> str:
    return _SIGN_UP if scheme == "s3" else _SIGN_UP_ELSEWHERE


def _network_reason(said: str) -> str:
    for sign, reason in (
        ("dns error", "the name of the server is not known"),
        ("Connection refused", "the server takes no connections"),
        ("timed out", "the server was silent for too long"),
        ("timeout", "the server was silent for too long"),
        ("reset", "the connection was broken off"),
        ("body", "what came was cut short"),
    ):
        if sign in said:
            return reason
    return "the connection failed"
