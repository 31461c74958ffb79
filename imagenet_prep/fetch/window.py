"""Window, a range of a file on a server as a file of its own; RemoteSlices, such a file read here and there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import requests

from imagenet_prep.fetch.partial import Span
from imagenet_prep.fetch.patience import CutError, Pace
from imagenet_prep.fetch.reply import Remote, changed_error, content_range, name_of, no_parts_error, read_range
from imagenet_prep.fetch.session import Getter, host_of


class Window:
    """Answers requests for a file by a range of another one: what is asked for and what comes is moved by its start.

    So ``fetch`` gets the range like any file, over several connections and runs. Its URL is only a name then.

    Args:
        session: who asks.
        url: of the file that the range is of.
        total: its bytes.
        span: the range.
    """

    def __init__(self, session: Getter, url: str, total: int, span: Span) -> None:
        self.note = session.note
        self._session = session
        self._url = url
        self._total = total
        self._start, self._stop = span

    def remote(self, whole: Remote, url: str) -> Remote:
        """The version of the range, called ``url``, of this version of the file."""
        return Remote(url, self._stop - self._start, whole.etag, whole.last_modified)

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> requests.Response:
        """The answer for a part of the range, or for all of it, as if the range were a file.

        Raises:
            CutError: the server sent something else.
        """
        asked = (headers or {}).get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        start = self._start + int(asked[0])
        stop = self._start + int(asked[2]) + 1 if asked[2] else self._stop
        response = self._session.get(self._url, {**(headers or {}), "Range": f"bytes={start}-{stop - 1}"})
        if response.status_code == 200:
            response.close()
            raise CutError(
                "the server sent the whole file where a part was asked for", lasting=no_parts_error(self._url)
            )
        found = content_range(response) if response.status_code == 206 else None
        if found is not None:
            if found[2] != self._total:
                response.close()
                raise CutError("the file on the server has changed", lasting=changed_error(self._url))
            moved = f"bytes {found[0] - self._start}-{found[1] - 1 - self._start}/{self._stop - self._start}"
            response.headers["Content-Range"] = moved
        return response


class RemoteSlices:
    """A file on a server as read-only bytes, each slice one request: for a header here and there.

    Args:
        session: who asks; requests that follow each other go over one connection.
        url: of the file.
        remote: the version of it: bytes of another one are refused.
        pace: timing and budget of retries.

    A slice raises NetworkError if the server can't be reached, serves no parts, or has another file by now.
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
