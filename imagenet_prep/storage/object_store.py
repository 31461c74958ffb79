"""ObjectStore: objects of s3://, gs:// and az:// through obstore; a Sink is a multipart upload from
memory.

The parts of a killed upload are no object. A rule of the bucket removes them: obstore can't abort
uploads.

Each process makes its own clients from its environment: a pickle holds only the URL. A used client
does not survive a fork: the child's requests would hang, so they are refused.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from msgspec import Struct

from imagenet_prep.errors import AccessError, UsageError, WriteError
from imagenet_prep.hints import Hint
from imagenet_prep.storage import first_request
from imagenet_prep.storage.asking import (
    IncompleteAnswerError,
    Right,
    asking,
    endpoint_variable,
    load_library,
    persist,
    retry_seconds,
    who,
)
from imagenet_prep.storage.store import Buffer, ObjectEntry, RemoteSink, RemoteStore, too_large

T = TypeVar("T")

PART = 8 << 20
"""Bytes of each part of an upload: S3 allows 10,000 parts, so 78 GiB per object."""

AT_ONCE = 4
"""Parts of an upload that are sent at once."""

_BETWEEN = 16 << 10  # fetching this many unused bytes is cheaper than another request

_MOST_LISTED = 2000
"""The entries of a folder whose list is remembered."""

_TIMES_OUT = 120.0  # seconds for a part on a slow line
_SILENT = 20.0  # seconds
_PREFIX = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
"""The first word of a store's variables."""


@dataclass(frozen=True)
class ObjectStore(RemoteStore):
    """Objects of a bucket, or of a container of Azure.

    Picklable: it holds neither client nor secret. Each process makes its clients from its own
    environment.
    """

    scheme: str = ""
    bucket: str = ""

    @property
    def root(self) -> str:
        """``s3://bucket``."""
        return f"{self.scheme}://{self.bucket}"

    def find(self, name: str) -> ObjectEntry | None:
        """Size and time of an object, None if it does not exist."""
        entries = self._listed_above(name)
        if entries is None:
            return self.look(name)
        url = self.url(name)
        return next((entry for entry in entries if entry.is_file() and entry.path == url), None)

    def look(self, name: str) -> ObjectEntry | None:
        """The same by a request, whatever was listed."""
        if not self.key(name):
            return None
        try:
            meta = self._ask(
                name, "read", lambda: load_library().head(self._client, self.key(name))
            )
        except FileNotFoundError:
            return None
        return self._entry(name, meta)

    def get(self, name: str, max_bytes: int) -> memoryview:
        """The content of an object; a larger one raises InputError."""

        def fetch() -> memoryview:
            answer = load_library().get(self._client, self.key(name))
            size = answer.meta["size"]
            if size > max_bytes:
                raise too_large(self.url(name), size, max_bytes)
            return memoryview(answer.bytes())

        if self._listed_above(name) is not None and self.find(name) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.url(name))
        return self._ask(name, "read", fetch)

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> Sequence[memoryview]:
        """Fetch ranges, ten requests at a time; neighbouring ranges share a request."""
        full_ranges = [(start, stop) for start, stop in ranges if start < stop]

        def fetch() -> Sequence[Any]:
            key = self.key(name)
            if len(full_ranges) == 1:
                ((start, stop),) = full_ranges
                return [load_library().get_range(self._client, key, start=start, end=stop)]
            starts, stops = zip(*full_ranges, strict=True)
            contents: Sequence[Any] = load_library().get_ranges(
                self._client, key, starts=starts, ends=stops, coalesce=_BETWEEN
            )
            return contents

        parts = iter(self._ask(name, "read", fetch) if full_ranges else ())
        return [memoryview(next(parts) if start < stop else b"") for start, stop in ranges]

    def put(self, name: str, content: bytes | memoryview, *, is_new: bool = False) -> bool:
        """Write an object in one request; with ``is_new``, another object's content decides who was
        first.

        A retried request meets its own object if only the answer was lost.
        """
        obstore = load_library()
        mode = "create" if is_new else "overwrite"
        _forget_lists()
        try:
            put = functools.partial(
                obstore.put, self._client, self.key(name), mode=mode, use_multipart=False
            )
            self._ask(name, "write", lambda: put(content))
        except obstore.exceptions.AlreadyExistsError:
            return self.load(name) == content
        return True

    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""
        _forget_lists()
        with contextlib.suppress(FileNotFoundError):
            self._ask(name, "delete", lambda: load_library().delete(self._client, self.key(name)))

    def list_folder(self, name: str = "") -> Sequence[ObjectEntry]:
        """The folders in a folder, then its objects, both sorted by name."""
        entries = self._listed(name)
        return self._list(name) if entries is None else entries

    def _list(self, name: str) -> Sequence[ObjectEntry]:
        client = self._client
        prefix = self._prefix(name) or ""
        answer = self._ask(
            name, "list", lambda: load_library().list_with_delimiter(client, prefix or None)
        )
        lead = f"{name}/" if name else ""
        folder_keys = answer["common_prefixes"]
        folder_names = sorted(key.rstrip("/").rpartition("/")[2] for key in folder_keys)
        folders = [ObjectEntry(folder, self.url(lead + folder)) for folder in folder_names]
        metas = {meta["path"].removeprefix(prefix): meta for meta in answer["objects"]}
        object_names = sorted(filter(None, metas), key=_bytes_of_key)
        return folders + [self._entry(lead + child, metas[child]) for child in object_names]

    def has_below(self, name: str) -> bool:
        """Whether a folder of this name holds an object: a request for one name."""
        entries = self._listed_above(name)
        if entries is not None:
            return _has_folder(entries, self.url(name))
        client, prefix = self._client, self._prefix(name)
        return self._ask(
            name, "list", lambda: any(load_library().list(client, prefix, chunk_size=1))
        )

    @contextlib.contextmanager
    def remembering(self, name: str) -> Iterator[None]:
        """While the block runs, list each folder from ``name`` on once; what this process writes is
        seen.

        So a search for one of many possible names is a few requests.
        """
        outer_lists = _state.lists
        _state.lists = {self.url(name): None}
        try:
            yield
        finally:
            _state.lists = outer_lists

    def _listed_above(self, name: str) -> Sequence[ObjectEntry] | None:
        """The entries of the folder that a name is in, if lists are remembered there."""
        whole, key = replace(self, folder=""), self.key(name)
        return whole._listed(key.rpartition("/")[0])

    def _listed(self, name: str) -> Sequence[ObjectEntry] | None:
        """The entries of a folder; None if its list is not remembered, or too long for that."""
        lists, url = _state.lists, self.url(name)
        top = next(iter(lists), "")
        if not top or not (url == top or url.startswith(f"{top}/")):
            return None
        entries = lists.get(url)
        if entries is None:
            entries_above = self._listed_above(name) if url != top else None
            may_exist = entries_above is None or _has_folder(entries_above, url)
            entries = self._list(name) if may_exist else ()
            lists[url] = entries
        return entries if len(entries) <= _MOST_LISTED else None

    def create(self, name: str) -> ObjectSink:
        """An upload; the first full part starts it."""
        return ObjectSink(self, name)

    def start_upload(self, name: str) -> Any:
        """A file to write in pieces of PART bytes; closing it creates the object."""
        with asking(self.url(name), "write"):
            key = self.key(name)
            return load_library().open_writer(
                self._client, key, buffer_size=PART, max_concurrency=AT_ONCE
            )

    @property
    def _client(self) -> Any:
        return client(self.scheme, self.bucket)

    def _ask(self, name: str, right: Right, request: Callable[[], T]) -> T:
        return persist(self.url(name), right, request)

    def _prefix(self, name: str) -> str | None:
        key = self.key(name)
        return f"{key}/" if key else None

    def _entry(self, name: str, meta: Mapping[str, Any]) -> ObjectEntry:
        changed = int(meta["last_modified"].timestamp() * 1_000_000) * 1000
        return ObjectEntry(name.rpartition("/")[2], self.url(name), meta["size"], changed)


def _has_folder(entries: Sequence[ObjectEntry], url: str) -> bool:
    return any(entry.is_dir() and entry.path == url for entry in entries)


def _bytes_of_key(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


class ObjectSink(RemoteSink):
    """An unfinished object: recent parts in memory, earlier parts uploaded; it does not exist
    before ``commit``.

    An object smaller than a part is sent in one request on commit.
    """

    def __init__(self, store: ObjectStore, name: str) -> None:
        super().__init__(store, name)
        self._objects = store
        self._count = 0  # bytes held
        self._digest = hashlib.sha256()  # of the bytes sent
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
            self._finish()

    def discard(self) -> None:
        """Send no more: an upload that was not closed is no object."""
        self._upload = None
        super().discard()

    def _send(self) -> None:
        part = b"".join(self._held)
        self._held, self._count = [], 0
        self._digest.update(part)
        url = self._objects.url(self._name)
        if self._upload is None:
            self._upload = persist(url, "write", lambda: self._start(part))
        else:
            with asking(url, "write"):
                self._upload.write(part)

    def _start(self, part: bytes) -> Any:
        """An upload whose first part is sent: one that could not start is of no further use."""
        upload = self._objects.start_upload(self._name)
        upload.write(part)
        return upload

    def _finish(self) -> None:
        """Make one object of all parts.

        A cut answer, one that is an error with status 200, and "no such upload" to a repeated
        request leave open whether it was made: its content decides.

        Raises:
            WriteError: the store did not make it.
        """
        try:
            with asking(self._objects.url(self._name), "write"):
                self._upload.close()
        except (IncompleteAnswerError, FileNotFoundError) as error:
            if not self._is_there():
                raise WriteError(
                    f"the upload of {self._objects.url(self._name)} was not completed",
                    "the store's last answer was cut short or is an error",
                    "try again",
                ) from error

    def _is_there(self) -> bool:
        """Whether the object holds the bytes that were sent."""
        if self._objects.size(self._name) != self.size:
            return False
        digest = hashlib.sha256()
        for start in range(0, self.size, PART):
            digest.update(*self._objects.read_ranges(self._name, [(start, start + PART)]))
        return digest.digest() == self._digest.digest()


# clients ------------------------------------------------------------------------------------------


class _State(Struct):
    """``lists`` holds the entries of folders by URL, the topmost one first; see
    ObjectStore.remembering.
    """

    lists: dict[str, Sequence[ObjectEntry] | None] = {}


_state = _State()


def _forget_lists() -> None:
    _state.lists = dict.fromkeys(list(_state.lists)[:1])


def _after_fork() -> None:
    _state.lists = {}
    client.cache_clear()


os.register_at_fork(after_in_child=_after_fork)


def _patience() -> tuple[dict[str, Any], dict[str, Any]]:
    """The timeouts and retries of requests."""
    seconds = retry_seconds()
    backoff = {
        "init_backoff": timedelta(seconds=0.1),
        "max_backoff": timedelta(seconds=10),
        "base": 2,
    }
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
    from imagenet_prep.storage.aws_profiles import read_profile

    obstore = load_library()
    if first_request.was_made_by_parent():
        raise UsageError(
            (
                f"{scheme}://{bucket} can't be reached from a forked process: "
                "its parent already used an object store"
            ),
            "expected a new process, not a forked one",
            (
                "start workers by spawn, with multiprocessing_context='spawn' in a PyTorch "
                "DataLoader, and put the script's work below if __name__ == '__main__':"
            ),
        )
    _check_endpoint(scheme)
    http, retry = _patience()
    if os.environ.get(f"{_PREFIX[scheme]}_ALLOW_HTTP", "").lower() in ("1", "true", "yes"):
        http["allow_http"] = True
    else:
        _refuse_http(scheme, bucket)
    profile = read_profile() if scheme == "s3" else {}
    make, name = {
        "s3": (obstore.store.S3Store, "bucket"),
        "gs": (obstore.store.GCSStore, "bucket"),
        "az": (obstore.store.AzureStore, "container_name"),
    }[scheme]
    first_request.make_ready()
    try:
        return make(**{name: bucket}, client_options=http, retry_config=retry, **profile)
    except (obstore.exceptions.BaseError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise AccessError(
            f"{scheme}://{bucket} can't be used with the settings of this process",
            f"the library of object stores (obstore) reports: {reason}",
            Hint(f"check the environment variables {_PREFIX[scheme]}_..., or ", who(scheme)),
        ) from error


def _check_endpoint(scheme: str) -> None:
    """Raise UsageError for a server without https:// or http://, where obstore would panic."""
    name = endpoint_variable(scheme)
    address = os.environ.get(name, "")
    if address and not address.lower().startswith(("http://", "https://")):
        raise UsageError(
            f"{name} is {address!r}",
            "expected an address that starts with https:// or http://",
            f"set {name}=https://{address} if that server has TLS, otherwise "
            f"{name}=http://{address} and {_PREFIX[scheme]}_ALLOW_HTTP=true",
        )


def _refuse_http(scheme: str, bucket: str) -> None:
    """Raise AccessError for a server without TLS that the environment does not allow:
    obstore would only fail.
    """
    name = endpoint_variable(scheme)
    if os.environ.get(name, "").lower().startswith("http:"):
        raise AccessError(
            f"{scheme}://{bucket} is on a server without TLS: {name} starts with http:",
            f"expected {_PREFIX[scheme]}_ALLOW_HTTP=true with it, or an https: address",
            f"set {_PREFIX[scheme]}_ALLOW_HTTP=true if you trust the network to that server",
        )
