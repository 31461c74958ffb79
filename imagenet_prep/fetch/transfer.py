"""fetch: one file over HTTP, each byte once, over any number of runs and connections."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import requests

from imagenet_prep.errors import NetworkError, PrepError
from imagenet_prep.fetch import reply
from imagenet_prep.fetch.digests import FrontHasher
from imagenet_prep.fetch.partial import PartialFile, find_leftover
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.session import Getter, host_of
from imagenet_prep.model import Progress, Silent
from imagenet_prep.text import number_of

_CHUNK = 1 << 20  # a quarter of it takes a tenth more processor time; a larger one exceeds the caches
_TICK = 0.1  # seconds between two checks of a running transfer
_IDLE = 0.02  # seconds between two checks of an idle connection for work
_GRACE = 0.5  # seconds that connections get to end after an interrupt; silent ones are abandoned
_REFUSALS = 3  # in a row; then a connection ends, if others work


@dataclass(frozen=True, slots=True)
class Fetched:
    """A complete, fetched file.

    ``algorithm`` and ``digest`` (hex) are those of the computed digest, "" if none is known. ``is_right`` is whether
    it matches the expected digest.
    """

    remote: reply.Remote
    algorithm: str = ""
    digest: str = ""
    is_right: bool = True


@dataclass(frozen=True, slots=True)
class Manner:
    """How to fetch a file.

    Args:
        progress: gets a bar of the bytes, then one of the bytes left to hash, and a line per wait.
        connections: the number of segments to fetch at a time.
        pace: timing and budget of retries.
    """

    progress: Progress = field(default_factory=Silent)
    connections: int = 4
    pace: Pace = field(default_factory=Pace)


def fetch(
    session: Getter,
    url: str,
    path: Path,
    manner: Manner,
    *,
    remote: reply.Remote | None = None,
    digests: Mapping[str, str] | None = None,
) -> Fetched:
    """Fetch ``url`` into the partial file ``path``, and resume from the bytes of earlier runs.

    Args:
        session: sends the requests.
        url: the file; its redirect target may expire, and is then requested again.
        path: the partial file; two map files next to it list the bytes present.
        manner: the connections, the pace and the progress.
        remote: the result of ``inspect``, if already known.
        digests: the digests that the file must have (hex), by algorithm; the fastest one is computed.

    Raises:
        AccessError: the server refused, or sent a web page; bytes on disk stay as they were.
        NetworkError: it can't be reached, or its answers can't be put together.
        SpaceError: the disk is full.
    """
    progress, pace, digests = manner.progress, manner.pace, digests or {}
    for is_last in (False, True):
        remote = remote or reply.inspect(session, url, pace, was_seen=is_last)
        if is_last and reply.inspect(session, url, pace, was_seen=True) != remote:
            manner = replace(manner, connections=1)  # each answer has its own version: one must bring the whole file
        left = find_leftover(path)
        if left and (obstacle := left.obstacle(remote, has_digest=bool(digests))):
            _note_restart(progress, url, obstacle, left.size)
        with PartialFile(path, remote, has_digest=bool(digests)) as part:
            transfer = Connections(session, url, part, pace, has_digest=bool(digests))
            try:
                return _fetch_and_hash(transfer, part, digests, manner)
            except reply.RestartError as restart:
                if is_last:
                    raise _hopeless(url, restart) from None
                _note_restart(progress, url, str(restart), part.size)
                part.reset()
                remote = None
                manner = replace(manner, connections=1) if restart.is_about_ranges else manner
    raise AssertionError("unreachable")


def _fetch_and_hash(transfer: Connections, part: PartialFile, digests: Mapping[str, str], manner: Manner) -> Fetched:
    """Fetch the missing bytes, and hash them meanwhile if a digest is known. Raises as ``Connections.run``."""
    if not digests:
        transfer.run(manner.connections, manner.progress)
        return Fetched(part.remote)
    with FrontHasher(part, digests) as front:
        transfer.run(manner.connections, manner.progress)
        digest = front.digest(manner.progress, f"checking {reply.name_of(part.remote.url)}")
    return Fetched(part.remote, front.algorithm, digest, digest == digests[front.algorithm])


def _note_restart(progress: Progress, url: str, reason: str, size: int) -> None:
    """Report why bytes are thrown away, while they still exist."""
    cost = f"; {size:,} bytes already received are thrown away" if size else ""
    progress.note(f"{reply.name_of(url)}: starting over: {reason}{cost}")


def _hopeless(url: str, restart: reply.RestartError) -> NetworkError:
    return NetworkError(
        f"{reply.name_of(url)}: the server can't resume the transfer",
        f"started over once, then failed again: {restart}",
        "run the same command again later, or name another server with --base-url",
    )


@dataclass(eq=False, slots=True)
class Segment:
    """The range of one request: its next byte, its end (exclusive), and when bytes last arrived."""

    position: int
    stop: int
    heard: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> int:
        """The number of missing bytes."""
        return self.stop - self.position


class Segments:
    """The missing bytes of a partial file, which any number of threads take segment by segment, from the start.

    If none is left, a second connection also fetches a silent one; both write the same bytes. With one connection,
    each gap is one segment.
    """

    def __init__(self, part: PartialFile, connections: int, pace: Pace) -> None:
        self._part = part
        self._size = pace.segment if connections > 1 else part.remote.total
        self._silent = pace.silent
        self._taken: list[Segment] = []
        self._lock = threading.Lock()

    def count(self) -> int:
        """The number of missing segments."""
        return sum(-(-stop // self._size) - start // self._size for start, stop in self._part.gaps())

    def take(self) -> Segment | None:
        """Take the next segment; None if none is free now."""
        with self._lock:
            segment = self._free() or self._silent_one()
            if segment is not None:
                self._taken.append(segment)
            return segment

    def _free(self) -> Segment | None:
        taken = {each.position // self._size for each in self._taken}
        for start, stop in self._part.gaps():
            while start < stop:
                end = min(stop, (start // self._size + 1) * self._size)
                if start // self._size not in taken:
                    return Segment(start, end)
                start = end
        return None

    def _silent_one(self) -> Segment | None:
        longest = min(self._taken, key=lambda each: each.heard, default=None)
        if longest is None or not longest.left or time.monotonic() - longest.heard < self._silent:
            return None
        longest.heard = time.monotonic()  # a third connection must wait as long again
        return Segment(longest.position, longest.stop)

    def let_go(self, segment: Segment) -> None:
        """Return a segment; any thread may take its missing bytes."""
        with self._lock:
            self._taken.remove(segment)


@dataclass(eq=False, slots=True)
class _Connection:
    """One of the threads: whether it receives bytes, and its refusals in a row."""

    patience: Patience
    is_working: bool = False
    refusals: int = 0


class Connections:
    """A transfer of the missing bytes of a partial file.

    Args:
        session: sends the requests.
        url: the file's address.
        part: the partial file.
        pace: timing and budget of retries.
        has_digest: whether a digest will check the file.
    """

    def __init__(self, session: Getter, url: str, part: PartialFile, pace: Pace, *, has_digest: bool) -> None:
        self._session = session
        self._url = url
        self._part = part
        self._pace = pace
        self._has_digest = has_digest
        self._obstacle = self._find_obstacle()
        self._segments = Segments(part, 1, pace)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._note: Callable[[str], object] = session.note
        self._lock = threading.Lock()
        self._all: list[_Connection] = []

    def _find_obstacle(self) -> str:
        """Why an interrupted transfer can't resume, and each byte must arrive in one request; "" if it can."""
        if not self._part.remote.ranges:
            return "the server sends the file only as a whole"
        return "" if self._has_digest or self._part.remote.has_validator else reply.NO_VALIDATOR

    def run(self, connections: int, progress: Progress) -> None:
        """Fetch all missing bytes over so many connections; however it ends, received bytes are durable.

        Raises:
            AccessError, NetworkError, SpaceError, WriteError: the error that ended it.
            RestartError: the received bytes are worthless.
        """
        self._note = progress.note
        self._segments = Segments(self._part, 1 if self._obstacle else connections, self._pace)
        count = min(1 if self._obstacle else connections, self._segments.count())
        self._all = [_Connection(self._patience()) for _ in range(count)]
        # daemons: a thread that hangs in a connection attempt must not keep an interrupted process alive
        threads = [threading.Thread(target=self._work, args=(each,), daemon=True) for each in self._all]
        try:
            self._watch(threads, progress)
        finally:
            self._end(threads)
        if self._error is not None:
            raise self._error

    def _patience(self) -> Patience:
        return Patience(
            reply.name_of(self._url),
            self._pace,
            self._stop.wait,
            note=self._note,
            kept=lambda: self._part.size,
            was_answered=True,
        )

    def _watch(self, threads: list[threading.Thread], progress: Progress) -> None:
        total, shown, saved_at = self._part.remote.total, 0, time.monotonic()
        progress.begin(reply.name_of(self._url), total, "B", self._part.size)
        try:
            for thread in threads:
                thread.start()
            is_whole = False
            while threads and not is_whole and not self._stop.is_set():
                threads[0].join(_TICK)
                threads = [thread for thread in threads if thread.is_alive()]
                is_whole = self._part.size >= total  # don't wait for silent threads without work
                received = self._part.received
                progress.advance(received - shown)
                shown = received
                self._part.note()
                if time.monotonic() - saved_at >= self._pace.save_every:
                    self._part.save()
                    saved_at = time.monotonic()
        finally:
            progress.end()

    def _end(self, threads: list[threading.Thread]) -> None:
        self._stop.set()
        deadline = time.monotonic() + _GRACE
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        with contextlib.suppress(PrepError):  # the last saved map remains valid, and the first error counts
            self._part.save()

    # run by each thread ----------------------------------------------------------------------------------------------

    def _work(self, connection: _Connection) -> None:
        try:
            while connection in self._all and not self._stop.is_set() and self._part.size < self._part.remote.total:
                segment = self._segments.take()
                if segment is None:
                    self._stop.wait(_IDLE)  # another thread may return a segment, or fall silent
                else:
                    self._fetch(connection, segment)
        except BaseException as error:  # noqa: BLE001 -- it crosses to the main thread, which raises it
            self._error = self._error or error
            self._stop.set()

    def _fetch(self, connection: _Connection, segment: Segment) -> None:
        cut = None
        try:
            self._request(connection, segment)
        except CutError as error:
            cut = error
        self._segments.let_go(segment)
        connection.is_working = False
        if cut is None or self._stop.is_set():
            return
        if self._obstacle and segment.position:
            raise reply.RestartError(f"{cut.reason}, and {self._obstacle}")
        self._retry(connection, cut)

    def _retry(self, connection: _Connection, cut: CutError) -> None:
        """Wait before the next request, or end this connection if others can do its work."""
        connection.refusals += cut.kind == "refused"
        if connection.refusals >= _REFUSALS and self._leave_to(connection, lambda other: other.is_working):
            return
        try:
            connection.patience.wait(cut, self._part.received)
        except Exception:  # another connection may still succeed: only the last one raises
            if not self._leave_to(connection, lambda other: True):
                raise

    def _leave_to(self, connection: _Connection, can: Callable[[_Connection], bool]) -> bool:
        """End a connection if another one can do its work; report it if that one already works."""
        with self._lock:
            others = [each for each in self._all if each is not connection]
            if not any(can(each) for each in others):
                return False
            self._all.remove(connection)
        if any(each.is_working for each in others):
            at_a_time = number_of(len(others), "connection")
            self._note(f"{reply.name_of(self._url)}: {host_of(self._url)} accepts no more than {at_a_time} at a time")
        return True

    def _request(self, connection: _Connection, segment: Segment) -> None:
        """Fetch the bytes of a segment, as many as the server sends.

        Raises:
            CutError: bytes are missing.
        """
        span = {} if self._is_whole(segment) else {"Range": f"bytes={segment.position}-{segment.stop - 1}"}
        with self._session.get(self._url, span) as response:
            body = reply.Body(response, self._pace)
            data = self._check(response, body, segment)
            while data and not self._stop.is_set():
                connection.is_working, connection.refusals = True, 0
                self._part.write(segment.position, data)
                segment.position, segment.heard = segment.position + len(data), time.monotonic()
                if not segment.left:
                    body.release()
                    return
                data = body.read(min(_CHUNK, segment.left))
        raise CutError("the answer was too short")

    def _is_whole(self, segment: Segment) -> bool:
        return (segment.position, segment.stop) == (0, self._part.remote.total)

    def _check(self, response: requests.Response, body: reply.Body, segment: Segment) -> bytes:
        """The first bytes of an answer, once they are known to belong to the segment.

        Raises:
            AccessError: the answer is a web page.
            InputError: it is encoded, and no digest can check it.
            CutError: any other fault; if it persists, RestartError, AccessError or NetworkError.
        """
        reply.check_status(response, self._url, was_seen=True)
        if not self._has_digest:
            reply.refuse_encoding(response, self._url)
        head = body.head(min(reply.PROBE, segment.left))
        remote = self._part.remote
        reply.check_is_no_page(response, head, self._url, is_start=response.status_code != 206 or not segment.position)
        if response.status_code == 206:
            total = reply.part_total(response, segment.position, segment.stop)
        else:
            if not self._is_whole(segment):
                raise reply.no_parts("the server sent the whole file instead of a part")
            is_told = "Content-Length" in response.headers
            length = reply.content_length(response) if is_told else remote.total
            total = -1 if length is None else length
        found = reply.remote_of(response, self._url, total, remote.ranges)
        if found != remote and not found.may_join(remote, has_digest=self._has_digest):
            is_alone = self._is_whole(segment) and not self._part.size and total == remote.total
            if not (is_alone and self._has_digest):
                reason = "the file on the server has changed"
                raise CutError(reason, lasting=reply.RestartError(reason))
            self._part.remote = found  # no bytes of another version exist
        return head
