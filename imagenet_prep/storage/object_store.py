"""ObjectStore: objects of s3://, gs:// and az:// by obstore; a Sink is an upload in parts, streamed from memory.

S3 keeps the parts of an upload until a request aborts it. obstore can neither list nor abort uploads, but it signs
URLs with its credentials: the request is written into the endpoint of a client of its own, and the signature covers it.
Uploads to gs:// and az:// are not aborted: docs/object-stores.md says how their parts go.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from imagenet_prep.errors import InputError, NetworkError
from imagenet_prep.storage import objects
from imagenet_prep.storage.store import Buffer, Found, RemoteSink, RemoteStore

if TYPE_CHECKING:
    from datetime import datetime

PART = 8 << 20
"""Bytes of each part of an upload: S3 takes 10,000 of them, so 78 GiB an object."""

AT_ONCE = 4
"""Parts of an upload that are on their way at a time."""

_BETWEEN = 16 << 10  # bytes that are fetched and not used, sooner than to ask again
_SECONDS = 30


class Upload(NamedTuple):
    """An unfinished upload: the key of its object, and its id."""

    key: str
    id: str


@dataclass(frozen=True)
class ObjectStore(RemoteStore):
    """Objects of a bucket, or of a container of Azure.

    Picklable: it holds no client and no secret. Each process makes its clients from its own environment.
    """

    scheme: str = ""
    bucket: str = ""

    @property
    def root(self) -> str:
        """``s3://bucket``."""
        return f"{self.scheme}://{self.bucket}"

    def find(self, name: str) -> Found | None:
        """Size and time of an object, None if there is none."""
        if not self.key(name):
            return None
        try:
            with self._asking(name):
                found = objects.library().head(self._client, self.key(name))
        except FileNotFoundError:
            return None
        return Found(name.rpartition("/")[2], found["size"], _nanoseconds(found["last_modified"]))

    def get(self, name: str, most: int) -> memoryview:
        """All of an object; of a larger one nothing is kept."""
        with self._asking(name):
            found = objects.library().get(self._client, self.key(name))
            if found.meta["size"] > most:
                size = found.meta["size"]
                raise InputError(f"{self.url(name)} holds {size:,} bytes", f"expected at most {most:,} bytes")
            return memoryview(found.bytes())

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> Sequence[memoryview]:
        """Ten requests at a time; neighbours come in one."""
        asked = [(start, stop) for start, stop in ranges if start < stop]
        with self._asking(name):
            if len(asked) == 1:
                ((start, stop),) = asked
                found = iter([objects.library().get_range(self._client, self.key(name), start=start, end=stop)])
            elif asked:
                starts, stops = zip(*asked, strict=True)
                key, library = self.key(name), objects.library()
                found = iter(library.get_ranges(self._client, key, starts=starts, ends=stops, coalesce=_BETWEEN))
            return [memoryview(next(found) if start < stop else b"") for start, stop in ranges]

    def put(self, name: str, content: bytes | memoryview, *, is_new: bool = False) -> bool:
        """One request."""
        library, mode = objects.library(), "create" if is_new else "overwrite"
        try:
            with self._asking(name):
                library.put(self._client, self.key(name), content, mode=mode, use_multipart=False)
        except library.exceptions.AlreadyExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        """Delete an object, if there is one."""
        with self._asking(name), contextlib.suppress(FileNotFoundError):
            objects.library().delete(self._client, self.key(name))

    def list_folder(self, name: str = "") -> tuple[Sequence[str], Sequence[Found]]:
        """The names of the folders in a folder, and its objects, both in order."""
        with self._asking(name):
            found = objects.library().list_with_delimiter(self._client, self._prefix(name))
        folders = sorted(each.rstrip("/").rpartition("/")[2] for each in found["common_prefixes"])
        return folders, self._found(name, found["objects"])

    def list_below(self, name: str = "") -> Iterator[Found]:
        """Every object below a folder; names are relative to it."""
        with self._asking(name):
            for chunk in objects.library().list(self._client, self._prefix(name), chunk_size=1000):
                yield from self._found(name, chunk)

    def has_below(self, name: str) -> bool:
        """Whether the folder of this name holds an object: a request for one name."""
        with self._asking(name):
            return any(objects.library().list(self._client, self._prefix(name), chunk_size=1))

    def create(self, name: str) -> ObjectSink:
        """An upload, started by the first part that is full."""
        return ObjectSink(self, name)

    def start_upload(self, name: str) -> Any:
        """A file to write to, in pieces of PART bytes, that becomes the object when it is closed."""
        with self._asking(name):
            key = self.key(name)
            return objects.library().open_writer(self._client, key, buffer_size=PART, max_concurrency=AT_ONCE)

    @property
    def _client(self) -> Any:
        return objects.client(self.scheme, self.bucket)

    def _asking(self, name: str) -> contextlib.AbstractContextManager[None]:
        return objects.asking(self.url(name))

    def _prefix(self, name: str) -> str | None:
        key = self.key(name)
        return f"{key}/" if key else None

    def _found(self, folder: str, listed: Sequence[Mapping[str, Any]]) -> Sequence[Found]:
        start = len(self._prefix(folder) or "")
        found = (Found(each["path"][start:], each["size"], _nanoseconds(each["last_modified"])) for each in listed)
        return sorted(
            (each for each in found if each.name), key=lambda each: each.name.encode("utf-8", "surrogatepass")
        )

    # unfinished uploads ------------------------------------------------------------------------------------------

    def abandon(self, is_meant: Callable[[str], bool]) -> int:
        """Abort every upload to an object in the folder whose name ``is_meant``, so that nobody pays for its parts."""
        base, count = self._prefix("") or "", 0
        for each in list(self.find_uploads()):
            name = each.key.removeprefix(base)
            if each.key.startswith(base) and "/" not in name and is_meant(name):
                self._request("DELETE", each.key, f"uploadId={quote(each.id, safe='')}")
                count += 1
        return count

    def find_uploads(self) -> Iterator[Upload]:
        """Uploads to objects whose keys begin with the folder; none where the store is not S3."""
        if self.scheme != "s3":
            return
        from xml.etree import ElementTree

        marks = ""
        while True:
            query = f"uploads=&prefix={quote(self.folder, safe='')}{marks}"
            page = ElementTree.fromstring(self._request("GET", "", query))  # noqa: S314 - the store holds the data
            space = page.tag.partition("}")[0] + "}" if page.tag.startswith("{") else ""
            for each in page.iter(f"{space}Upload"):
                yield Upload(each.findtext(f"{space}Key") or "", each.findtext(f"{space}UploadId") or "")
            if page.findtext(f"{space}IsTruncated") != "true":
                return
            key, upload = (page.findtext(f"{space}Next{name}Marker") or "" for name in ("Key", "UploadId"))
            marks = f"&key-marker={quote(key, safe='')}&upload-id-marker={quote(upload, safe='')}"

    def _request(self, method: str, key: str, query: str) -> bytes:
        """Send a request that obstore has signed; stores ignore the parameter that obstore appends to it."""
        import urllib.error  # these two import a hundred modules, which no command of local folders needs
        import urllib.request

        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        server = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT")
        server = server or f"https://s3.{region}.amazonaws.com"
        place = f"{server.rstrip('/')}/{self.bucket}" + (f"/{quote(key)}" if key else "")
        options = {"endpoint": f"{place}?{query}&x-of=", "virtual_hosted_style_request": True}
        with self._asking(""):
            signed = objects.sign(self.scheme, self.bucket, method, options)
        request = urllib.request.Request(signed, method=method)  # noqa: S310 - see server
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                found: bytes = answer.read()
                return found
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return b"<none/>"
            raise NetworkError(
                f"uploads to {self.url('')} can't be listed or aborted", f"status {error.code}"
            ) from None
        except OSError:  # its text holds the signed address
            raise NetworkError(
                f"uploads to {self.url('')} can't be listed or aborted", "the connection failed"
            ) from None


class ObjectSink(RemoteSink):
    """An object on its way: some parts of it in memory, those before them uploaded; there is none until ``commit``.

    One that is smaller than a part goes in one request when it is committed.
    """

    def __init__(self, store: ObjectStore, name: str) -> None:
        super().__init__(store, name)
        self._objects = store
        self._count = 0  # bytes held
        self._upload: Any = None
        self._is_committed = False

    def write(self, parts: Sequence[Buffer]) -> None:
        """Append all of ``parts``: held until there are enough of them for a part of the upload."""
        for part in parts:
            super().write([part])
            self._count += len(part)
            if self._count >= PART:
                self._send()

    def commit(self, name: str = "") -> None:
        """Send the rest, and have the store make one object of all parts."""
        if self._upload is None:
            super().commit(name)
        else:
            assert name in ("", self._name), "an upload has its name from its first part on"
            self._send()
            with objects.asking(self._objects.url(self._name)):
                self._upload.close()
        self._is_committed = True

    def discard(self) -> None:
        """Let the store forget the parts; where no request reaches it, the next run does."""
        is_started, self._upload = self._upload is not None, None
        super().discard()
        if is_started and not self._is_committed:
            with contextlib.suppress(Exception):
                self._objects.abandon(self._name.__eq__)

    def _send(self) -> None:
        held, self._held, self._count = b"".join(self._held), [], 0
        if self._upload is None:
            self._upload = self._objects.start_upload(self._name)
        with objects.asking(self._objects.url(self._name)):
            self._upload.write(held)


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1000
