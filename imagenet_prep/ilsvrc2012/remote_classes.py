"""RemoteClasses: finds the tars of some classes inside the train archive on a server, and fetches each."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import requests

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import quoted
from imagenet_prep.fetch.partial import Span, finish, forget, kept_bytes
from imagenet_prep.fetch.patience import CutError, Pace
from imagenet_prep.fetch.reply import Remote, changed_error, content_range, name_of, no_parts_error, read_range
from imagenet_prep.fetch.session import Getter, Session, host_of
from imagenet_prep.fetch.transfer import Manner, fetch
from imagenet_prep.ilsvrc2012.official import ArchiveIndex, ClassTars, class_tars
from imagenet_prep.storage.durable import make_folder
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.local import map_file
from imagenet_prep.storage.location import local_path


class Window:
    """Presents a range of a remote file as a file of its own; requests and answers are shifted by the range's start.

    ``fetch`` can then fetch the range like any file, over several connections and runs. Its URL is only a name.

    Args:
        session: sends the requests.
        url: the remote file.
        total: the remote file's size in bytes.
        span: the range.
    """

    def __init__(self, session: Getter, url: str, total: int, span: Span) -> None:
        self.note = session.note
        self._session = session
        self._url = url
        self._total = total
        self._start, self._stop = span

    def remote(self, whole: Remote, url: str) -> Remote:
        """The version of the range, called ``url``, in this version of the file."""
        return Remote(url, self._stop - self._start, whole.etag, whole.last_modified)

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> requests.Response:
        """The answer for a part of the range, or all of it, as if the range were a file.

        Raises:
            CutError: the server sent different bytes.
        """
        asked = (headers or {}).get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        start = self._start + int(asked[0])
        stop = self._start + int(asked[2]) + 1 if asked[2] else self._stop
        response = self._session.get(self._url, {**(headers or {}), "Range": f"bytes={start}-{stop - 1}"})
        if response.status_code == 200:
            response.close()
            raise CutError("the server sent the whole file instead of a part", lasting=no_parts_error(self._url))
        found = content_range(response) if response.status_code == 206 else None
        if found is not None:
            if found[2] != self._total:
                response.close()
                raise CutError("the file on the server has changed", lasting=changed_error(self._url))
            moved = f"bytes {found[0] - self._start}-{found[1] - 1 - self._start}/{self._stop - self._start}"
            response.headers["Content-Range"] = moved
        return response


class RemoteSlices:
    """A file on a server as read-only bytes, for reading headers; each slice is one request.

    Args:
        session: sends the requests; consecutive ones share a connection.
        url: the file's address.
        remote: the file's version; bytes of another version are refused.
        pace: timing and budget of retries.

    A slice raises NetworkError if the server can't be reached, sends no parts, or has replaced the file.
    """

    def __init__(self, session: Getter, url: str, remote: Remote, pace: Pace) -> None:
        self.path = Path(host_of(url)) / name_of(url)
        self._session = session
        self._url = url
        self._remote = remote
        self._pace = pace

    def __len__(self) -> int:
        return self._remote.total

    def __getitem__(self, where: slice) -> bytes:
        return read_range(self._session, self._url, where.start, where.stop, self._remote, self._pace)


@dataclass(frozen=True, slots=True)
class _ClassFile:
    """The file's name, so that paths can be formed."""

    filename: str


@dataclass(frozen=True, slots=True)
class RemoteClasses:
    """The classes in the train archive on a server: offset and end of each one's tar, by wnid.

    No digest of a class is known. Instead, the headers before it are checked, and its own headers after it arrives;
    convert decodes each image.
    """

    session: Session
    url: str
    remote: Remote
    spans: Mapping[str, Span]
    manner: Manner

    @classmethod
    def find(cls, session: Session, url: str, remote: Remote, wanted: Collection[str], manner: Manner) -> RemoteClasses:
        """Walk the headers of the archive, one request each, until every wanted class is found.

        Raises:
            InputError: the archive is damaged, or lacks a class.
            NetworkError: the server can't be reached, or sends no parts of a file.
        """
        manner.progress.note(f"looking for {len(wanted):,} classes in {remote.url.rpartition('/')[2]}")
        view = RemoteSlices(session, url, remote, manner.pace)
        found = class_tars(view, wanted)
        lacking = [wnid for wnid in wanted if wnid not in found]
        if lacking:
            raise InputError(
                f"{view.path} has no {lacking[0]}.tar",
                f"expected {len(wanted):,} classes, {len(lacking):,} are missing",
                "check the address given with --base-url",
            )
        spans = {wnid: (offset, offset + length) for wnid, (offset, length) in found.items() if wnid in wanted}
        return cls(session, url, remote, spans, manner)

    @property
    def size(self) -> int:
        """Bytes of all class tars."""
        return sum(stop - start for start, stop in self.spans.values())

    def bytes_to_come(self, layout: Layout) -> int:
        """Bytes still to fetch."""
        kept = (kept_bytes(layout.part_path(_file(wnid)), self._remote_of(wnid)) for wnid in self.spans)
        return self.size - sum(kept)

    def fetch(self, layout: Layout, places: ClassTars) -> None:
        """Fetch each class tar, check it, and give it its final name.

        Raises:
            InputError: a class arrived damaged; it is set aside.
            AccessError, NetworkError, SpaceError: the download failed; received bytes are kept.
        """
        make_folder(local_path(places.path))
        for wnid in self.spans:
            partial, remote = layout.part_path(_file(wnid)), self._remote_of(wnid)
            fetch(self._window(wnid), remote.url, partial, self.manner, remote=remote)
            self._check(layout, wnid)
            finish(partial, local_path(places.tar(wnid)))

    def _window(self, wnid: str) -> Window:
        return Window(self.session, self.url, self.remote.total, self.spans[wnid])

    def _remote_of(self, wnid: str) -> Remote:
        return self._window(wnid).remote(self.remote, f"{self.remote.url}/{_file(wnid).filename}")

    def _check(self, layout: Layout, wnid: str) -> None:
        """Check a received class tar by its headers."""
        partial = layout.part_path(_file(wnid))
        try:
            found = len(ArchiveIndex("train")((partial, wnid, 0, None)))
            fault = "" if found else "it holds no image"
        except InputError as error:
            fault = f"{error.what}: {error.detail}"
        if not fault:
            return
        aside = layout.corrupt_path(_file(wnid), hashlib.sha256(map_file(partial)).hexdigest())
        partial.replace(aside)
        forget(partial)
        raise InputError(
            f"{wnid}.tar arrived damaged and is kept as {aside}",
            fault,
            f"run rm {quoted(str(aside))}, then the same command again",
        )


def _file(wnid: str) -> _ClassFile:
    return _ClassFile(f"{wnid}.tar")
