"""ObjectStore: objects of s3://, gs:// and az:// through obstore; a Sink is a multipart upload from memory.

The parts of a killed upload are no object. A rule of the bucket removes them: obstore can't abort uploads.

Each process makes its own clients from its environment: a pickle holds only the URL. A used client does not survive a
fork: the child's requests would hang, so they are refused.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import Struct

from imagenet_prep.errors import AccessError, InputError, NetworkError, PrepError, UsageError
from imagenet_prep.storage.store import Buffer, Found, RemoteSink, RemoteStore

T = TypeVar("T")

PART = 8 << 20
"""Bytes of each part of an upload: S3 allows 10,000 parts, so 78 GiB per object."""

AT_ONCE = 4
"""Parts of an upload that are sent at once."""

_BETWEEN = 16 << 10  # fetching this many unused bytes is cheaper than another request

RETRY_SECONDS = 120
"""Seconds during which a request is retried, unless ``IMAGENET_PREP_RETRY_SECONDS`` is set."""

_TIMES_OUT = 120.0  # seconds for a part on a slow line
_SILENT = 20.0  # seconds
_STATUS = re.compile(r"status code: (\d{3})|HTTP status (?:client|server) error \((\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_PREFIX = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
"""The first word of a store's variables."""

_SIGN_UP = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_SIGN_UP_ELSEWHERE = "set GOOGLE_SERVICE_ACCOUNT, or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"


@dataclass(frozen=True)
class ObjectStore(RemoteStore):
    """Objects of a bucket, or of a container of Azure.

    Picklable: it holds neither client nor secret. Each process makes its clients from its own environment.
    """

    scheme: str = ""
    bucket: str = ""

    @property
    def root(self) -> str:
        """``s3://bucket``."""
        return f"{self.scheme}://{self.bucket}"

    def find(self, name: str) -> Found | None:
        """Size and time of an object, None if it does not exist."""
        if not self.key(name):
            return None
        try:
            with self._asking(name):
                found = load_library().head(self._client, self.key(name))
        except FileNotFoundError:
            return None
        return self._found(name, found)

    def get(self, name: str, most: int) -> memoryview:
        """The content of an object; a larger one raises InputError."""

        def fetch() -> memoryview:
            found = load_library().get(self._client, self.key(name))
            if (size := found.meta["size"]) > most:
                raise InputError(f"{self.url(name)} holds {size:,} bytes", f"expected at most {most:,} bytes")
            return memoryview(found.bytes())

        return persist(self.url(name), fetch)

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> Sequence[memoryview]:
        """Fetch ranges, ten requests at a time; neighbouring ranges share a request."""
        asked = [(start, stop) for start, stop in ranges if start < stop]
        with self._asking(name):
            if len(asked) == 1:
                ((start, stop),) = asked
                found = iter([load_library().get_range(self._client, self.key(name), start=start, end=stop)])
            elif asked:
                starts, stops = zip(*asked, strict=True)
                key = self.key(name)
                found = iter(load_library().get_ranges(self._client, key, starts=starts, ends=stops, coalesce=_BETWEEN))
            return [memoryview(next(found) if start < stop else b"") for start, stop in ranges]

    def put(self, name: str, content: bytes | memoryview, *, is_new: bool = False) -> bool:
        """Write an object in one request."""
        obstore, mode = load_library(), "create" if is_new else "overwrite"
        try:
            with self._asking(name):
                obstore.put(self._client, self.key(name), content, mode=mode, use_multipart=False)
        except obstore.exceptions.AlreadyExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""
        with self._asking(name), contextlib.suppress(FileNotFoundError):
            load_library().delete(self._client, self.key(name))

    def list_folder(self, name: str = "") -> Sequence[Found]:
        """The folders in a folder, then its objects, both sorted by name."""
        client, prefix, lead = self._client, self._prefix(name) or "", f"{name}/" if name else ""
        listed = persist(self.url(name), lambda: load_library().list_with_delimiter(client, prefix or None))
        names = sorted(each.rstrip("/").rpartition("/")[2] for each in listed["common_prefixes"])
        folders = [Found(each, self.url(lead + each)) for each in names]
        objects = {each["path"].removeprefix(prefix): each for each in listed["objects"]}
        ordered = sorted(filter(None, objects), key=lambda each: each.encode("utf-8", "surrogatepass"))
        return folders + [self._found(lead + each, objects[each]) for each in ordered]

    def has_below(self, name: str) -> bool:
        """Whether a folder of this name holds an object: a request for one name."""
        client, prefix = self._client, self._prefix(name)
        return persist(self.url(name), lambda: any(load_library().list(client, prefix, chunk_size=1)))

    def create(self, name: str) -> ObjectSink:
        """An upload; the first full part starts it."""
        return ObjectSink(self, name)

    def start_upload(self, name: str) -> Any:
        """A file to write in pieces of PART bytes; closing it creates the object."""
        with self._asking(name):
            key = self.key(name)
            return load_library().open_writer(self._client, key, buffer_size=PART, max_concurrency=AT_ONCE)

    @property
    def _client(self) -> Any:
        return client(self.scheme, self.bucket)

    def _asking(self, name: str) -> contextlib.AbstractContextManager[None]:
        return asking(self.url(name))

    def _prefix(self, name: str) -> str | None:
        key = self.key(name)
        return f"{key}/" if key else None

    def _found(self, name: str, meta: Mapping[str, Any]) -> Found:
        changed = int(meta["last_modified"].timestamp() * 1_000_000) * 1000
        return Found(name.rpartition("/")[2], self.url(name), meta["size"], changed)


class ObjectSink(RemoteSink):
    """An unfinished object: recent parts in memory, earlier parts uploaded; it does not exist before ``commit``.

    An object smaller than a part is sent in one request on commit.
    """

    def __init__(self, store: ObjectStore, name: str) -> None:
        super().__init__(store, name)
        self._objects = store
        self._count = 0  # bytes held
        self._upload: Any = None

    def write(self, parts: Sequence[Buffer]) -> None:
        """Append all of ``parts``; they are held until they fill a part of the upload."""
        for part in parts:
            super().write([part])
            self._count += len(part)
            if self._count >= PART:
                self._send()

    def commit(self, name: str = "") -> None:
        """Send the rest; the store then makes one object of all parts."""
        if self._upload is None:
            super().commit(name)
        else:
            assert name in ("", self._name), "an upload has its name from its first part"
            self._send()
            with asking(self._objects.url(self._name)):
                self._upload.close()

    def discard(self) -> None:
        """Send no more: an upload that was not closed is no object."""
        self._upload = None
        super().discard()

    def _send(self) -> None:
        held, self._held, self._count = b"".join(self._held), [], 0
        if self._upload is None:
            self._upload = self._objects.start_upload(self._name)
        with asking(self._objects.url(self._name)):
            self._upload.write(held)


# clients --------------------------------------------------------------------------------------------------------


class _State(Struct):
    """Whether this process has made requests, and whether its parent had before the fork."""

    used: bool = False
    is_lost: bool = False


_state = _State()
_lock = threading.Lock()
_before_use: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def are_used() -> bool:
    """Whether this process has made a request: its forked children can't make any."""
    return _state.used


def prepare_before_use(engine: Any) -> None:
    """Register ``engine.prepare()`` to fork before this process makes its first request, if the engine still exists."""
    _before_use[id(engine)] = engine


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _state.is_lost = _state.is_lost or _state.used
    client.cache_clear()
    _before_use.clear()


os.register_at_fork(after_in_child=_after_fork)


def load_library() -> Any:
    """The obstore module.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import obstore
        import obstore.store
    except ImportError as error:
        raise UsageError(
            "object stores require the obstore library", "it is not installed", "pip install 'imagenet-prep[cloud]'"
        ) from error
    return obstore


def _patience() -> tuple[dict[str, Any], dict[str, Any]]:
    """The timeouts and retries of requests."""
    from datetime import timedelta  # imported here: every command on local folders imports this module

    seconds = _retry_seconds()
    backoff = {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=10), "base": 2}
    silent = timedelta(seconds=min(_SILENT, max(seconds, 1)))
    return (
        {"timeout": timedelta(seconds=_TIMES_OUT), "read_timeout": silent},
        {"max_retries": 50, "retry_timeout": timedelta(seconds=seconds), "backoff": backoff},
    )


@functools.lru_cache(maxsize=64)
def client(scheme: str, bucket: str) -> Any:
    """The client of a bucket, from the environment of this process.

    Raises:
        UsageError: obstore is not installed.
        AccessError: the environment lacks something.
    """
    obstore = load_library()
    if _state.is_lost:
        raise UsageError(
            f"{scheme}://{bucket} can't be reached from a forked process: its parent already used it",
            "expected a new process, not a forked one",
            "start workers by spawn or forkserver: multiprocessing_context='spawn' for a PyTorch DataLoader",
        )
    http, retry = _patience()
    if os.environ.get(f"{_PREFIX[scheme]}_ALLOW_HTTP", "").lower() in ("1", "true", "yes"):
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
            return make(**{name: bucket}, client_options=http, retry_config=retry)
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise AccessError(
                f"{scheme}://{bucket} can't be reached with the environment variables as they are",
                "one is missing, or has an invalid value",
                _who(scheme),
            ) from error


def _retry_seconds() -> float:
    said = os.environ.get("IMAGENET_PREP_RETRY_SECONDS", "")
    try:
        return max(float(said), 0.0) if said else RETRY_SECONDS
    except ValueError:
        expected = "expected a number of seconds"
        raise UsageError(f"IMAGENET_PREP_RETRY_SECONDS is {said!r}", expected) from None


# errors of a store ----------------------------------------------------------------------------------------------


class IncompleteAnswerError(NetworkError):
    """An answer ended early; obstore leaves the retry to its caller."""


def persist(url: str, request: Callable[[], T]) -> T:
    """The answer to a request; one that was cut short is retried as long as other requests are."""
    end, pause = time.monotonic() + _retry_seconds(), 0.1
    while True:
        try:
            with asking(url):
                return request()
        except IncompleteAnswerError:
            if time.monotonic() + pause > end:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 10)


@contextlib.contextmanager
def asking(url: str) -> Iterator[None]:
    """Turn obstore's exceptions into the error that names the object; see ``failure``."""
    exceptions = load_library().exceptions
    try:
        yield
    except (exceptions.AlreadyExistsError, PrepError):
        raise
    except (exceptions.BaseError, OSError) as error:
        raise failure(url, error) from None  # its message contains addresses and the server's answer


def failure(url: str, error: Exception) -> Exception:
    """The error for obstore's exception about an object, with only the status and code of its message."""
    said = str(error)
    scheme, _, place = url.partition("://")
    found = _STATUS.search(said)
    status = int(found[1] or found[2]) if found else None
    code = _CODE.search(said)
    answer = f"status {status}" + (f", {code[1]}" if code else "") if status else ""
    if (code and code[1] == "NoSuchBucket") or "NoSuchBucket" in said or "ContainerNotFound" in said:
        what = f"the bucket {scheme}://{place.partition('/')[0]} does not exist"
        return InputError(what, answer, f"create it, or use another one{_which_server(scheme)}")
    if isinstance(error, FileNotFoundError) or status == 404:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    name = type(error).__name__
    if name in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
        is_signed = scheme != "s3" or os.environ.get("AWS_ACCESS_KEY_ID")
        reason = (
            "the store refuses these credentials"
            if is_signed
            else "no credentials were given, or the store refuses them"
        )
        return AccessError(f"no access to {url}", f"{reason}: {answer or 'access denied'}", _who(scheme))
    if status is None and re.search(r"169\.254\.|metadata|credential|InstanceProfile|token", said, re.IGNORECASE):
        return AccessError(f"no credentials for {url}", "the environment has none that work", _who(scheme))
    if status is not None and status < 500 and status not in (408, 429):
        return InputError(f"the store refuses a request for {url}", answer, f"check the URL{_which_server(scheme)}")
    kind, reason = (NetworkError, answer) if answer else _network_fault(said)
    return kind(f"no usable answer for {url}", reason, f"run the same command again{_which_server(scheme)}")


def _who(scheme: str) -> str:
    return _SIGN_UP if scheme == "s3" else _SIGN_UP_ELSEWHERE


def _which_server(scheme: str) -> str:
    return "; AWS_ENDPOINT_URL selects another server than AWS" if scheme == "s3" else ""


def _network_fault(said: str) -> tuple[type[NetworkError], str]:
    for sign, reason in (
        ("dns error", "the name of the server is unknown"),
        ("Connection refused", "the server refuses connections"),
        ("TimedOut", "the server was silent for too long"),
        ("timed out", "the server was silent for too long"),
        ("Connection reset", "the connection was reset"),
        ("IncompleteMessage", "the server closed the connection without an answer"),
    ):
        if sign in said:
            return NetworkError, reason
    if "response body" in said:
        return IncompleteAnswerError, "the answer was cut short"
    return NetworkError, "the connection failed"
