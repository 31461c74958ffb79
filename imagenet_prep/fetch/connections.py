"""Connections: threads that fetch the missing pieces of a file, and the main thread that watches over them."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Literal

import requests

from imagenet_prep.errors import SpaceError
from imagenet_prep.fetch.body import Body
from imagenet_prep.fetch.front import Front
from imagenet_prep.fetch.looks import refuse_encoding
from imagenet_prep.fetch.partial import PartialFile
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.pieces import Piece, Pieces
from imagenet_prep.fetch.reply import (
    NO_VALIDATOR,
    PROBE,
    Remote,
    RestartError,
    check_is_no_page,
    check_status,
    content_length,
    content_range,
    name_of,
    remote_of,
)
from imagenet_prep.fetch.session import Getter, host_of
from imagenet_prep.fetch.versions import Ask, Versions
from imagenet_prep.model import Progress
from imagenet_prep.text import number_of

_BUFFER = 1 << 20
_TICK = 0.1  # seconds between two looks at a running transfer
_IDLE = 0.02  # seconds between two looks of a connection for something to do
_GRACE = 2.0  # seconds that connections get to end after an interrupt
_CALM = 10  # of that many seconds, one may be spent on saving
_BACKLOG = range(32 << 20, 256 << 20)  # bytes that the digest is behind: so that it should not fall back further
_REFUSALS = 3  # in a row: then a connection ends, if others work


@dataclass(eq=False, slots=True)
class _Connection:
    """One of the threads: whether it ever got bytes, whether it does or still asks for some, and refusals in a row."""

    patience: Patience
    has_worked: bool = False
    state: Literal["asking", "working", "over"] = "asking"
    refusals: int = 0


class Connections:
    """A transfer of what is missing of a part.

    Args:
        session: who asks.
        url: what for.
        part: where it goes.
        versions: which answers may be put to it.
        pace: timing and budget of retries.
        front: what computes the digest that will tell if the file is right; None if none is known.
    """

    def __init__(
        self, session: Getter, url: str, part: PartialFile, versions: Versions, pace: Pace, front: Front | None
    ) -> None:
        self._session = session
        self._url = url
        self._part = part
        self._versions = versions
        self._pace = pace
        self._front = front
        self._obstacle = _obstacle(part.remote, front is not None)
        self._pieces = Pieces([], 1, largest=1, smallest=1)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._live: set[requests.Response] = set()
        self._notes: SimpleQueue[str] = SimpleQueue()
        self._lock = threading.Lock()
        self._all: list[_Connection] = []

    def run(self, connections: int, progress: Progress) -> None:
        """Fetch all that is missing over so many connections; whatever ends this, what has arrived is durable.

        Raises:
            AccessError, NetworkError, SpaceError, WriteError: what ended it.
            RestartError: nothing can come of what is there.
        """
        connections = 1 if self._obstacle else connections
        self._pieces = Pieces(self._part.gaps(), connections, largest=self._pace.segment, smallest=self._pace.crumb)
        self._all = [_Connection(self._patience()) for _ in range(self._pieces.count())]
        # daemons: one that hangs in a connection attempt must not keep an interrupted process alive
        threads = [threading.Thread(target=self._work, args=(each,), daemon=True) for each in self._all]
        try:
            self._watch(threads, progress)
        finally:
            self._end(threads)
        self._tell(progress)
        if self._error is not None:
            raise self._error

    def _patience(self) -> Patience:
        return Patience(
            name_of(self._url),
            self._pace,
            self._stop.wait,
            note=self._notes.put,
            kept=lambda: self._part.size,
            was_answered=True,
        )

    def _watch(self, threads: list[threading.Thread], progress: Progress) -> None:
        saves = _Saves(self._part, self._pace)
        total, shown, is_whole = self._part.remote.total, 0, False
        progress.begin(name_of(self._url), total, "B", self._part.size)
        try:
            for thread in threads:
                thread.start()
            while threads and not is_whole and not self._stop.is_set():
                threads[0].join(_TICK)
                threads = [thread for thread in threads if thread.is_alive()]
                is_whole = self._part.size >= total  # who is silent, and has nothing left to fetch, is not waited for
                received = self._part.received
                progress.advance(received - shown)
                shown = received
                self._tell(progress)
                saves.save_if_due()
        finally:
            progress.end()

    def _tell(self, progress: Progress) -> None:
        with contextlib.suppress(Empty):
            while True:
                progress.note(self._notes.get_nowait())

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

    # what each thread does ---------------------------------------------------------------------------------------

    def _work(self, connection: _Connection) -> None:
        buffer = memoryview(bytearray(_BUFFER))
        try:
            while not (self._stop.is_set() or connection.state == "over" or self._pieces.is_done):
                piece = self._pieces.take(alone=self._is_ahead())
                if piece is None:
                    self._stop.wait(_IDLE)  # another one may give a piece back, or become slow
                else:
                    self._fetch_piece(connection, piece, buffer)
        except BaseException as error:  # noqa: BLE001 -- it crosses to the main thread, which raises it
            self._error = self._error or error
            self._stop.set()

    def _is_ahead(self) -> bool:
        """Whether the digest is what the file waits for, though not far behind: it is fast as long as caches hold it.

        To fetch more at once would then only take processors and memory from it. What came in another order than the
        digest's, or was there before, can't be kept close.
        """
        return self._front is not None and self._front.backlog in _BACKLOG

    def _fetch_piece(self, connection: _Connection, piece: Piece, buffer: memoryview) -> None:
        try:
            self._request(connection, piece, buffer)
        except CutError as cut:
            self._pieces.let_go(piece)
            if self._stop.is_set():
                return
            if self._obstacle and piece.position:
                raise RestartError(f"{cut.reason}, and {self._obstacle}") from None
            self._wait(connection, cut)
        else:
            self._pieces.let_go(piece)

    def _wait(self, connection: _Connection, cut: CutError) -> None:
        """Wait before the next request; or let this connection end, if others do its work."""
        connection.state = "asking"
        connection.refusals += cut.kind == "refused"
        is_one_too_many = cut.kind == "refused" and (not connection.has_worked or connection.refusals >= _REFUSALS)
        if is_one_too_many and self._is_left_to_others(connection, "working"):
            return
        try:
            connection.patience.wait(cut, self._part.received)
        except Exception:  # another one may still be heard: the last of them has the last word
            if not self._is_left_to_others(connection, "working", "asking"):
                raise

    def _is_left_to_others(self, connection: _Connection, *states: str) -> bool:
        """End a connection if another one is in one of these states; say so if that one works."""
        with self._lock:
            others = [each.state for each in self._all if each is not connection and each.state != "over"]
            if not set(states).intersection(others):
                return False
            connection.state = "over"
        if "working" in others:
            at_a_time = number_of(len(others), "connection")
            self._notes.put(f"{name_of(self._url)}: {host_of(self._url)} takes no more than {at_a_time} at a time")
        return True

    def _request(self, connection: _Connection, piece: Piece, buffer: memoryview) -> None:
        """Fetch the bytes of a piece, as far as the server sends them.

        Raises:
            CutError: something is missing.
        """
        start, stop = piece.position, piece.stop
        with self._session.get(self._url, self._range(start, stop)) as response:
            self._live.add(response)
            try:
                body = Body(response, self._pace)
                self._receive(connection, piece, buffer, body, self._check(response, body, buffer, start, stop))
            finally:
                self._live.discard(response)
        if piece.left:
            raise CutError("the answer was too short")

    def _range(self, start: int, stop: int) -> dict[str, str]:
        return {} if (start, stop) == (0, self._part.remote.total) else {"Range": f"bytes={start}-{stop - 1}"}

    def _receive(self, connection: _Connection, piece: Piece, buffer: memoryview, body: Body, count: int) -> None:
        """Write what comes, of which ``count`` bytes are in the buffer already."""
        while count:
            connection.has_worked, connection.state, connection.refusals = True, "working", 0
            offset = piece.position
            self._part.write(offset, buffer[: self._pieces.claim(piece, count)])
            if self._stop.is_set() or not piece.left:
                break
            count = body.read_into(buffer[: min(_BUFFER, piece.left)])
        body.release()

    def _check(self, response: requests.Response, body: Body, buffer: memoryview, start: int, stop: int) -> int:
        """Make sure that an answer is the bytes from ``start`` to ``stop``; how many of them are in the buffer then.

        Raises:
            AccessError: a web page.
            InputError: it is encoded, and no digest would tell.
            CutError: anything else; if it stays, RestartError, AccessError or NetworkError.
        """
        check_status(response, self._url, was_seen=True)
        if self._front is None:
            refuse_encoding(response, self._url)
        count = body.fill(buffer[: min(PROBE, stop - start)])
        head = bytes(buffer[:count])
        if response.status_code == 200:
            check_is_no_page(response, head, self._url)
            if (start, stop) != (0, self._part.remote.total):
                raise _no_ranges("the server sent the whole file where a part was asked for")
            is_told = "Content-Length" in response.headers
            total = content_length(response) if is_told else self._part.remote.total
        else:
            check_is_no_page(response, head if start == 0 else b"", self._url)
            total = _total(response, start, stop)
        self._versions.admit(
            remote_of(response, self._url, -1 if total is None else total, ranges=self._part.remote.ranges)
        )
        return count


class _Saves:
    """When a part is saved: every few seconds, and earlier if much has come and saving takes little time."""

    def __init__(self, part: PartialFile, pace: Pace) -> None:
        self._part = part
        self._pace = pace
        self._received = 0
        self._at = time.monotonic()
        self._cost = 0.0

    def save_if_due(self) -> None:
        """Save the part if it is time to."""
        now, received = time.monotonic(), self._part.received
        is_much = received - self._received >= self._pace.save_bytes and now - self._at >= _CALM * self._cost
        if is_much or now - self._at >= self._pace.save_every:
            self._part.save()
            self._received, self._at = received, time.monotonic()
            self._cost = self._at - now


def ask_for(session: Getter, url: str, pace: Pace) -> Ask:
    """What fetches a small block of a file."""

    def ask(start: int, stop: int) -> tuple[Remote, bytes]:
        with session.get(url, {"Range": f"bytes={start}-{stop - 1}"}) as response:
            check_status(response, url, was_seen=True)
            if response.status_code == 200:
                raise _no_ranges("the server sent the whole file where a part was asked for")
            total = _total(response, start, stop)
            block, body = memoryview(bytearray(stop - start)), Body(response, pace)
            if body.fill(block) < len(block):
                raise CutError("the answer was too short")
            body.release()
            return remote_of(response, url, total, ranges=True), bytes(block)

    return ask


def _total(response: requests.Response, start: int, stop: int) -> int:
    """The size of the file, of which an answer says to be the part that was asked for, or how that begins."""
    found = content_range(response)
    is_beginning = found and found[0] == start and found[1] < stop and content_length(response) == found[1] - start
    if found is None or (found[:2] != (start, stop) and not is_beginning):
        raise _no_ranges("the server sent another part than was asked for")
    return found[2]


def _no_ranges(reason: str) -> CutError:
    return CutError(reason, lasting=RestartError(reason, is_about_ranges=True))


def _obstacle(remote: Remote, has_digest: bool) -> str:
    """Why a transfer that broke off can't go on, and each byte must come in one request; "" if it can."""
    if not remote.ranges:
        return "the server sends the file only as a whole"
    if not has_digest and not remote.has_validator:
        return NO_VALIDATOR
    return ""
