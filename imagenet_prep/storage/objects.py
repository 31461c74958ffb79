"""Objects of s3://, gs:// and az://: found, read by ranges, put and listed. The one module that imports obstore.

Whoever is in a process of its own makes its own clients, from the environment: what is sent to a worker holds the URL
alone. A client that was used doesn't survive a fork: the child's requests would wait for ever, so they are refused.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imagenet_prep.errors import AccessError, InputError, NetworkError, PrepError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from imagenet_prep.storage.object_path import ObjectPath

RETRY_SECONDS = 120
"""How long a request is tried again, if ``IMAGENET_PREP_RETRY_SECONDS`` doesn't say otherwise."""

PART = 8 << 20
"""Bytes of each part of an upload: S3 takes 10,000 of them, so 78 GiB an object."""

AT_ONCE = 4
"""Parts of an upload that are on their way at a time."""

_BETWEEN = 16 << 10  # bytes that are fetched and not used, sooner than to ask again
_TIMES_OUT = 120.0  # seconds for a part on a slow line
_SILENT = 20.0  # seconds
_STATUS = re.compile(r"status code: (\d{3})|HTTP status (?:client|server) error \((\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_SIGN_UP = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what else docs/object-stores.md names"
_SIGN_UP_ELSEWHERE = "docs/object-stores.md names the variables that are read"


@dataclass(frozen=True, slots=True)
class Found:
    """An object as a listing has it: name in its folder or below it, bytes, time of its last change in ns."""

    name: str
    size: int
    changed: int


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


def _library() -> Any:
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
    library = _library()
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
        "s3": (library.store.S3Store, "bucket"),
        "gs": (library.store.GCSStore, "bucket"),
        "az": (library.store.AzureStore, "container_name"),
    }[scheme]
    with _lock:
        if not _state.used:
            for engine in list(_before_use.values()):
                engine.prepare()
        _state.used = True
        try:
            return make(**{name: bucket}, client_options=http, retry_config=retry, **dict(options))
        except (library.exceptions.BaseError, ValueError) as error:
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


def _client(path: ObjectPath) -> Any:
    return client(path.scheme, path.bucket)


# requests ------------------------------------------------------------------------------------------------------


def find(path: ObjectPath) -> Found | None:
    """Size and time of an object, None if there is none."""
    try:
        with asking(path):
            found = _library().head(_client(path), path.key)
    except FileNotFoundError:
        return None
    return Found(path.name, found["size"], _nanoseconds(found["last_modified"]))


def get(path: ObjectPath, most: int = 1 << 40) -> memoryview:
    """All of an object of at most ``most`` bytes.

    Raises:
        FileNotFoundError: there is none.
        InputError: it is larger; nothing of it is kept.
    """
    with asking(path):
        found = _library().get(_client(path), path.key)
        if found.meta["size"] > most:
            raise InputError(f"{path} holds {found.meta['size']:,} bytes", f"expected at most {most:,} bytes")
        return memoryview(found.bytes())


def get_range(path: ObjectPath, start: int, stop: int) -> memoryview:
    """These bytes of an object, fewer where it is shorter; raises FileNotFoundError."""
    if start >= stop:
        return memoryview(b"")
    with asking(path):
        return memoryview(_library().get_range(_client(path), path.key, start=start, end=stop))


def get_ranges(path: ObjectPath, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
    """The bytes of several ranges as ``get_range`` gives them, ten requests at a time; neighbours come in one."""
    asked = [(start, stop) for start, stop in ranges if start < stop]
    if not asked:
        return [memoryview(b"") for _ in ranges]
    starts, stops = zip(*asked, strict=True)
    with asking(path):
        found = iter(_library().get_ranges(_client(path), path.key, starts=starts, ends=stops, coalesce=_BETWEEN))
        return [memoryview(next(found) if start < stop else b"") for start, stop in ranges]


def put(path: ObjectPath, content: bytes | memoryview, *, is_new: bool = False) -> bool:
    """Make an object, whole from one moment to the next; with ``is_new`` only where there is none, and say whether."""
    library = _library()
    try:
        with asking(path):
            library.put(_client(path), path.key, content, mode="create" if is_new else "overwrite", use_multipart=False)
    except library.exceptions.AlreadyExistsError:
        return False
    return True


def begin_upload(path: ObjectPath) -> Any:
    """A file to write to, in pieces of PART bytes, that becomes the object when it is closed."""
    with asking(path):
        return _library().open_writer(_client(path), path.key, buffer_size=PART, max_concurrency=AT_ONCE)


def delete(path: ObjectPath) -> None:
    """Delete an object, if there is one."""
    with asking(path), contextlib.suppress(FileNotFoundError):
        _library().delete(_client(path), path.key)


def has_below(path: ObjectPath) -> bool:
    """Whether there is an object whose name begins with the path and a slash."""
    with asking(path):
        return any(_library().list(_client(path), _prefix(path), chunk_size=1))


def list_folder(path: ObjectPath) -> tuple[list[str], list[Found]]:
    """The names of the folders in a folder, and its objects, both in order."""
    with asking(path):
        found = _library().list_with_delimiter(_client(path), _prefix(path))
    folders = sorted(each.rstrip("/").rpartition("/")[2] for each in found["common_prefixes"])
    return folders, _found(path, found["objects"])


def list_below(path: ObjectPath) -> Iterator[Found]:
    """Every object below a folder; names are relative to it."""
    with asking(path):
        for chunk in _library().list(_client(path), _prefix(path), chunk_size=1000):
            yield from _found(path, chunk)


def sign(path: ObjectPath, method: str, options: Mapping[str, Any]) -> str:
    """A URL that allows one request for a few minutes, of a client with these options; it is as good as a secret."""
    from datetime import timedelta

    with asking(path):
        chosen = client(path.scheme, path.bucket, tuple(sorted(options.items())))
        found: str = _library().sign(chosen, method, "request", timedelta(minutes=5))
        return found


def _prefix(path: ObjectPath) -> str | None:
    return f"{path.key}/" if path.key else None


def _found(path: ObjectPath, objects: Sequence[Mapping[str, Any]]) -> list[Found]:
    start = len(path.key) + 1 if path.key else 0
    found = (Found(each["path"][start:], each["size"], _nanoseconds(each["last_modified"])) for each in objects)
    return sorted((each for each in found if each.name), key=lambda each: each.name.encode("utf-8", "surrogatepass"))


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1000


# what a store says ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def asking(path: ObjectPath) -> Iterator[None]:
    """Turn what obstore says of a request into the error that names the object; see ``failure``."""
    exceptions = _library().exceptions
    try:
        yield
    except (exceptions.AlreadyExistsError, PrepError):
        raise
    except (exceptions.BaseError, OSError) as error:
        raise failure(path, error) from None  # what it says holds addresses, and what the server answers


def failure(path: ObjectPath, error: Exception) -> Exception:
    """The error for what obstore said of a request for an object: nothing of its text but status and code."""
    said = str(error)
    found = _STATUS.search(said)
    status = int(found[1] or found[2]) if found else None
    code = _CODE.search(said)
    answer = f"status {status}" + (f", {code[1]}" if code else "") if status else ""
    if (code and code[1] == "NoSuchBucket") or "NoSuchBucket" in said or "ContainerNotFound" in said:
        what = f"there is no bucket {path.scheme}://{path.bucket}"
        return InputError(what, answer, "make it, or name another one; AWS_ENDPOINT_URL says where it is looked for")
    if isinstance(error, FileNotFoundError) or status == 404:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    name = type(error).__name__
    if name in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
        detail = f"the store refuses these credentials for it: {answer or 'no right'}"
        return AccessError(f"no access to {path}", detail, _who(path.scheme))
    if status is None and re.search(r"169\.254\.|metadata|credential|InstanceProfile|token", said, re.IGNORECASE):
        return AccessError(
            f"no credentials for {path}", "the environment holds none that can be used", _who(path.scheme)
        )
    if status is not None and status < 500 and status not in (408, 429):
        return InputError(f"the store refuses a request for {path}", answer, "check the URL and AWS_ENDPOINT_URL")
    reason = answer or _network_reason(said)
    hint = "run the same command again; AWS_ENDPOINT_URL says which server is asked, if it is not the store's own"
    return NetworkError(f"no answer that can be used for {path}", reason, hint)


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
