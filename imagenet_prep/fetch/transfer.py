"""One file over HTTP: every byte of one version, once, over any number of runs and connections."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from pathlib import Path

import requests

from imagenet_prep.errors import NetworkError, SpaceError
from imagenet_prep.fetch.partial import PartialFile, Span
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.reply import (
    PROBE,
    Remote,
    RestartError,
    check_is_no_page,
    check_status,
    content_range,
    inspect,
    name_of,
    read_head,
    read_some,
    remote_of,
)
from imagenet_prep.fetch.session import Session
from imagenet_prep.model import Progress

_CHUNK = 1 << 20
_TICK = 0.1  # seconds between two looks at a running transfer
_GRACE = 2.0  # seconds that connections get to end after an interrupt


def fetch(
    session: Session,
    url: str,
    path: Path,
    progress: Progress,
    *,
    remote: Remote | None = None,
    connections: int = 1,
    pace: Pace | None = None,
) -> Remote:
    """Fetch ``url`` into the partial file ``path``, going on from what earlier runs left there.

    Args:
        session: who asks.
        url: what for.
        path: the partial file; a state file beside it says what is durable of it.
        progress: gets one bar, in bytes.
        remote: what ``inspect`` said of the URL, if it was asked already.
        connections: how many pieces to fetch at a time.
        pace: timing and budget of retries.

    Returns:
        The version of the file that ``path`` now holds whole.

    Raises:
        AccessError: the server refused, or sent a web page; what is on disk stays as it was.
        NetworkError: it can't be reached, or does not serve the file in a way that can be put together.
        SpaceError: the disk is full.
    """
    pace = pace or Pace()
    for is_last in (False, True):
        remote = remote or inspect(session, url, pace)
        with PartialFile(path, remote) as part:
            try:
                _Transfer(session, url, part, pace).run(connections, progress)
            except RestartError as restart:
                part.reset()
                if is_last:
                    raise _hopeless(url, restart) from None
                progress.note(f"{name_of(url)}: starting over: {restart}")
                remote, connections = None, 1  # one plain request is what any server understands
            else:
                return remote
    raise AssertionError("unreachable")


def _hopeless(url: str, restart: RestartError) -> NetworkError:
    return NetworkError(
        f"{name_of(url)}: the server doesn't go on where it broke off",
        f"started over once, then again: {restart}",
        "run the same command again later, or name another server with --base-url",
    )


class _Transfer:
    """Threads that fetch the pieces missing from a partial file, and the main thread that watches over them."""

    def __init__(self, session: Session, url: str, part: PartialFile, pace: Pace) -> None:
        self._session = session
        self._url = url
        self._part = part
        self._pace = pace
        self._pieces: deque[Span] = deque()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._live: set[requests.Response] = set()

    def run(self, connections: int, progress: Progress) -> None:
        """Fetch all that is missing; whatever ends this, what has arrived is durable."""
        gaps = self._part.gaps()
        if not self._part.remote.ranges:
            connections = 1
        self._pieces.extend(gaps if connections == 1 else _cut_up(gaps, self._pace.segment))
        count = min(connections, len(self._pieces))
        # daemons: one that hangs in a connection attempt must not keep an interrupted process alive
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        try:
            self._watch(threads, progress)
        finally:
            self._end(threads)
        if self._error is not None:
            raise self._error

    def _watch(self, threads: list[threading.Thread], progress: Progress) -> None:
        missing = sum(stop - start for start, stop in self._part.gaps())
        total, shown, saved_at = self._part.remote.total, 0, time.monotonic()
        progress.begin(name_of(self._url), total, "B", total - missing)
        try:
            for thread in threads:
                thread.start()
            while threads and not self._stop.is_set():
                threads[0].join(_TICK)
                threads = [thread for thread in threads if thread.is_alive()]
                received = self._part.received
                progress.advance(received - shown)
                shown = received
                if time.monotonic() - saved_at >= self._pace.save_every:
                    self._part.save()
                    saved_at = time.monotonic()
        finally:
            progress.end()

    def _end(self, threads: list[threading.Thread]) -> None:
        self._stop.set()
        for response in list(self._live):
            with contextlib.suppress(OSError, RuntimeError, TypeError, ValueError):  # it ended by itself meanwhile
                response.raw.shutdown()
        deadline = time.monotonic() + _GRACE
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        with contextlib.suppress(SpaceError):  # the state saved before stands, and the first error is what counts
            self._part.save()

    def _work(self) -> None:
        try:
            while not self._stop.is_set() and (piece := self._next_piece()):
                self._fetch_piece(*piece)
        except BaseException as error:  # noqa: BLE001 -- it crosses to the main thread, which raises it
            self._error = self._error or error
            self._stop.set()

    def _next_piece(self) -> Span | None:
        try:
            return self._pieces.popleft()
        except IndexError:  # asking first whether there is one would leave room for another thread in between
            return None

    def _fetch_piece(self, start: int, stop: int) -> None:
        patience = Patience(name_of(self._url), self._pace, self._stop.wait)
        while start < stop and not self._stop.is_set():
            try:
                with contextlib.closing(self._request(start, stop)) as body:
                    for data in body:
                        if self._stop.is_set():
                            return
                        self._part.write(start, data)
                        start += len(data)
                if start < stop:
                    raise CutError("the answer was too short")
            except CutError as cut:
                if not self._stop.is_set():
                    patience.wait(cut, self._part.received)

    def _request(self, start: int, stop: int) -> Generator[bytes, None, None]:
        """The bytes ``start`` to ``stop`` of the file, as far as the server sends them."""
        whole = (start, stop) == (0, self._part.remote.total)
        headers = {} if whole else {"Range": f"bytes={start}-{stop - 1}"}
        with self._session.get(self._url, headers) as response:
            self._live.add(response)
            try:
                data = _check(response, self._url, self._part.remote, start, stop)
                while start < stop and data:
                    yield data
                    start += len(data)
                    data = read_some(response, min(_CHUNK, stop - start)) if start < stop else b""
            finally:
                self._live.discard(response)


def _cut_up(gaps: list[Span], size: int) -> Iterator[Span]:
    for start, stop in gaps:
        for cut in range(start, stop, size):
            yield cut, min(cut + size, stop)


def _check(response: requests.Response, url: str, remote: Remote, start: int, stop: int) -> bytes:
    """The first bytes of an answer, once it is sure that they are those of ``remote`` from ``start``.

    Raises:
        AccessError, NetworkError, CutError: as check_status; a web page.
        RestartError: they belong to another version, or the server did not heed the range.
    """
    check_status(response, url)
    head = read_head(response, min(PROBE, stop - start))
    if response.status_code == 200:
        check_is_no_page(response, head, url)
        if (start, stop) != (0, remote.total):
            raise RestartError("the server sent the whole file where a part was asked for")
        length = response.headers.get("Content-Length", str(remote.total))
        total = int(length) if length.isdecimal() else -1
    else:
        check_is_no_page(response, head if start == 0 else b"", url)
        found = content_range(response)
        if found is None or found[:2] != (start, stop):
            raise RestartError("the server sent another part than was asked for")
        total = found[2]
    if not remote.is_same_version(remote_of(response, url, total, ranges=True)):
        raise RestartError("the file on the server has changed")
    return head
