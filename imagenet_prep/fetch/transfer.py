"""fetch: one file over HTTP, each byte once, over any number of runs and connections."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from imagenet_prep.errors import NetworkError, PrepError
from imagenet_prep.fetch.addresses import host_of, name_of
from imagenet_prep.fetch.partial import (
    FrontHasher,
    PartialFile,
    Span,
    Spans,
    find_leftover,
)
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.reply import TOO_SHORT, Remote, RemoteFile, RestartError, inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.model import Progress, Silent
from imagenet_prep.text import number_of

# a quarter of it takes a tenth more processor time; a larger one exceeds the caches
_CHUNK = 1 << 20
_TICK = 0.1  # seconds between two checks of a running transfer
_IDLE = 0.02  # seconds between two checks of an idle connection for work
_GRACE = 0.5  # seconds that connections get to end after an interrupt; silent ones are abandoned
_REFUSALS = 3  # in a row; then a connection ends, if others work
_UNSAVED = 32 << 20  # bytes; then progress is made durable


class Fetched(Struct, frozen=True):
    """A complete, fetched file.

    ``algorithm`` and ``digest`` (hex) are those of the computed digest, "" if none is known.
    ``is_right`` is whether it matches the expected digest.
    """

    remote: Remote
    algorithm: str = ""
    digest: str = ""
    is_right: bool = True


class Manner(Struct, frozen=True):
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
    session: Session,
    url: str,
    path: Path,
    manner: Manner,
    *,
    remote: Remote | None = None,
    digests: Mapping[str, str] | None = None,
) -> Fetched:
    """Fetch ``url`` into the partial file ``path``, and resume from the bytes of earlier runs.

    If the server contradicts itself, it starts over with one connection. If that fails too and a
    digest is known, it starts over once more and takes each part as the server sends it: the digest
    decides.

    ``remote`` is the result of ``inspect``, if already known; ``digests`` are those that the file
    must have (hex), by algorithm: the fastest one is computed. A map file next to ``path`` lists
    the bytes present.

    Raises:
        AccessError, SpaceError: the server refused, or sent a web page; or the disk is full.
        NetworkError: it can't be reached, or its answers can't be put together.
    """
    digests = digests or {}
    has_digest = bool(digests)
    restarts = 2 if has_digest else 1
    inspect_again = partial(inspect, session, url, manner.pace, has_digest=has_digest)
    remote = remote or inspect_again()
    for attempt in range(3):
        source = RemoteFile(session, url, remote, manner.pace, has_digest, is_trusted=attempt == 2)
        with _open(path, remote, manner.progress, has_digest=has_digest) as part:
            try:
                return _fetch_and_hash(Connections(source, part), part, digests, manner)
            except RestartError as caught:
                restart = caught
                if attempt == restarts:
                    break
                _note_restart(manner.progress, remote, str(restart), part.size)
                part.reset()
        remote = inspect_again(was_seen=True, size=remote.total)
        is_unsteady = attempt > 0 or restart.is_about_ranges
        if is_unsteady or inspect_again(was_seen=True, size=remote.total) != remote:
            manner = replace(manner, connections=1)  # one answer must bring the whole file
    raise NetworkError(
        f"{name_of(url)} could not be fetched as a whole from {host_of(url)}",
        f"started over {'once' if restarts == 1 else 'twice'}, but {restart}",
        "run the same command again later, or name another server with --base-url",
    )


def fetch_span(source: RemoteFile, span: Span, path: Path, remote: Remote, manner: Manner) -> None:
    """Fetch a span of a file, called ``remote`` as a file of its own, into ``path``.
    Raises as ``fetch``.
    """
    with _open(path, remote, manner.progress) as part:
        try:
            Connections(source, part, span[0]).run(manner.connections, manner.progress)
        except RestartError as restart:
            raise source.refusal(restart) from None


def _fetch_and_hash(
    transfer: Connections, part: PartialFile, digests: Mapping[str, str], manner: Manner
) -> Fetched:
    """Fetch the missing bytes, and hash them meanwhile if a digest is known.
    Raises as ``Connections.run``.
    """
    if not digests:
        transfer.run(manner.connections, manner.progress)
        return Fetched(part.remote)
    with FrontHasher(part, digests) as front:
        transfer.run(manner.connections, manner.progress)
        digest = front.digest(manner.progress, f"checking {name_of(part.remote.url)}")
    return Fetched(part.remote, front.algorithm, digest, digest == digests[front.algorithm])


def _open(
    path: Path, remote: Remote, progress: Progress, *, has_digest: bool = False
) -> PartialFile:
    """The partial file at ``path``; a note says so if the bytes of an earlier run don't fit."""
    version, spans = find_leftover(path) or (remote, Spans())
    if spans.size and (obstacle := remote.obstacle(version, has_digest=has_digest)):
        _note_restart(progress, remote, obstacle, spans.size)
    return PartialFile(path, remote, has_digest=has_digest)


def _note_restart(progress: Progress, remote: Remote, reason: str, size: int) -> None:
    """Report why bytes are thrown away, while they still exist."""
    cost = f"; this deletes {number_of(size, 'byte')} already received" if size else ""
    progress.note(f"{name_of(remote.url)}: starting over ({reason}){cost}")


class Segment(Struct, eq=False):
    """The range of one request: its next byte and its end (exclusive)."""

    position: int
    stop: int

    @property
    def left(self) -> int:
        """The number of missing bytes."""
        return self.stop - self.position


def segments_of(gaps: Iterable[Span], size: int) -> Iterator[Segment]:
    """Divide gaps into segments that end at multiples of ``size``."""
    for start, stop in gaps:
        while start < stop:
            end = min(stop, (start // size + 1) * size)
            yield Segment(start, end)
            start = end


class _Connection(Struct, eq=False):
    """One of the threads: whether it receives bytes, and its refusals in a row."""

    patience: Patience
    is_working: bool = False
    refusals: int = 0


class Connections:
    """A transfer of the missing bytes of a partial file.

    Args:
        source: the file on the server.
        part: the partial file.
        offset: the place of its first byte in the source.
    """

    def __init__(self, source: RemoteFile, part: PartialFile, offset: int = 0) -> None:
        self._source = source
        self._part = part
        self._offset = offset
        self._name = name_of(part.remote.url)
        self._obstacle = part.remote.why_whole(has_digest=source.has_digest)
        # threads take segments from its start, and put back unfinished ones
        self._waiting: deque[Segment] = deque()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._note: Callable[[str], object] = source.session.note
        self._lock = threading.Lock()
        self._all: list[_Connection] = []

    def run(self, connections: int, progress: Progress) -> None:
        """Fetch all missing bytes over so many connections; however it ends, received bytes are
        durable.

        Raises:
            AccessError, NetworkError, SpaceError, WriteError: the error that ended it.
            RestartError: the received bytes are worthless.
        """
        self._note, pace = progress.note, self._source.pace
        connections = 1 if self._obstacle else connections
        size = pace.segment if connections > 1 else self._part.remote.total
        self._waiting.extend(segments_of(self._part.gaps(), size))
        for _ in range(min(connections, len(self._waiting))):
            noted = self._source.session.noted
            patience = Patience(
                self._name, pace, self._stop.wait, self._note, lambda: self._part.size, noted
            )
            self._all.append(_Connection(patience))
        # daemons: a thread that hangs in a connection attempt must not keep an interrupted process
        # alive
        threads = [
            threading.Thread(target=self._work, args=(connection,), daemon=True)
            for connection in self._all
        ]
        try:
            self._watch(threads, progress)
        finally:
            self._end(threads)
        if self._error is not None:
            raise self._error

    def _watch(self, threads: list[threading.Thread], progress: Progress) -> None:
        total = self._part.remote.total
        shown = saved = 0
        saved_at = time.monotonic()
        progress.begin(self._name, total, "B", self._part.size)
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
                unsaved_seconds = time.monotonic() - saved_at
                if received - saved >= _UNSAVED or unsaved_seconds >= self._source.pace.save_every:
                    self._part.save()
                    saved, saved_at = received, time.monotonic()
        finally:
            progress.end()

    def _end(self, threads: list[threading.Thread]) -> None:
        self._stop.set()
        deadline = time.monotonic() + _GRACE
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        # the last saved map remains valid, and the first error counts
        with contextlib.suppress(PrepError):
            self._part.save()

    # run by each thread ---------------------------------------------------------------------------

    def _work(self, connection: _Connection) -> None:
        try:
            while (
                connection in self._all
                and not self._stop.is_set()
                and self._part.size < self._part.remote.total
            ):
                try:
                    segment = self._waiting.popleft()
                except IndexError:
                    self._stop.wait(_IDLE)  # another thread may put one back
                else:
                    self._fetch(connection, segment)
        except BaseException as error:  # noqa: BLE001 -- it crosses to the main thread, which raises it
            self._error = self._error or error
            self._stop.set()

    def _fetch(self, connection: _Connection, segment: Segment) -> None:
        try:
            self._request(connection, segment)
        except CutError as cut:
            self._waiting.appendleft(segment)
            connection.is_working = False
            if self._stop.is_set():
                return
            if self._obstacle and segment.position:
                reason = f"{cut.reason}, and {self._obstacle}"
                raise RestartError(reason, is_break=True) from None
            self._retry(connection, cut)

    def _retry(self, connection: _Connection, cut: CutError) -> None:
        """Wait before the next request, or end this connection if others can do its work."""
        connection.refusals += cut.kind == "refused"
        if connection.refusals >= _REFUSALS and self._leave_to(
            connection, cut, lambda other: other.is_working
        ):
            return
        try:
            connection.patience.wait(cut, self._part.received)
        except Exception:  # another connection may still succeed: only the last one raises
            if not self._leave_to(connection, cut, lambda other: True):
                raise

    def _leave_to(
        self, connection: _Connection, cut: CutError, can: Callable[[_Connection], bool]
    ) -> bool:
        """End a connection if another one can do its work; report it if that one already works.

        The report is made under the lock, so that the last one names the last count.
        """
        with self._lock:
            remaining = [active for active in self._all if active is not connection]
            if not any(map(can, remaining)):
                return False
            self._all.remove(connection)
            if any(active.is_working for active in remaining):
                self._note(f"{self._name}: {self._why_fewer(cut, len(remaining))}")
        return True

    def _why_fewer(self, cut: CutError, remaining: int) -> str:
        count = number_of(remaining, "connection")
        if cut.kind == "refused":
            return f"{host_of(self._source.url)} seems to accept no more than {count} at a time"
        return f"{cut.reason}; {count} left"

    def _request(self, connection: _Connection, segment: Segment) -> None:
        """Fetch the bytes of a segment, as many as the server sends.

        Raises:
            CutError: bytes are missing.
        """
        start, stop = self._offset + segment.position, self._offset + segment.stop
        with self._source.open(start, stop, is_first=not self._part.size) as (body, remote):
            if remote != self._source.remote:  # no bytes of another version exist
                self._source = replace(self._source, remote=remote)
                self._part.remote = remote
            while not self._stop.is_set() and (data := body.read(min(_CHUNK, segment.left))):
                connection.is_working, connection.refusals = True, 0
                self._part.write(segment.position, data)
                segment.position += len(data)
                if not segment.left:
                    body.release()
                    return
        raise CutError(TOO_SHORT)
