"""Pieces: what is fetched next, by which connection; gaps in, pieces out that never overlap."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from imagenet_prep.fetch.spans import Span, Spans

_WORTH = 64 << 10  # bytes: half of a piece that is fetched by two must be worth a request
_SOON = 0.3  # seconds: a piece that is done by then is left to who fetches it
_SILENT = 3.0  # seconds: what is too small to be shared is taken from who has been silent for so long


@dataclass(slots=True, eq=False)
class Piece:
    """A part of the file that one connection fetches; ``stop`` may come closer while it does.

    Args:
        start: where it began.
        position: the next byte to write.
        stop: where it ends (exclusive).
        since: when it was begun, as time.monotonic.
        heard: when bytes last came.
        patience: seconds of silence until all that is left of it may be taken over.
    """

    start: int
    position: int
    stop: int
    since: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    patience: float = field(default_factory=lambda: _SILENT)

    @property
    def left(self) -> int:
        """How many bytes are missing."""
        return self.stop - self.position

    def seconds_left(self, now: float) -> float:
        """How long it will take at its speed so far; endless if for a while nothing has come."""
        done, age = self.position - self.start, now - self.since
        if not done:
            return 0.0 if age < _SOON else float("inf")
        return self.left * age / done


class Pieces:
    """The missing bytes of a file, divided among connections as they ask.

    Pieces shrink towards the end. Where nothing is left to take, a connection gets half of the piece that would take
    longest, or what is too small to be halved of one that is silent. Any number of threads may use it.

    Args:
        gaps: what is missing.
        connections: among how many it is divided; with one, each gap is one piece.
        largest, smallest: the bytes of a piece.
    """

    def __init__(self, gaps: Iterable[Span], connections: int, *, largest: int, smallest: int) -> None:
        self._lock = threading.Lock()
        self._free = Spans(gaps)
        self._taken: list[Piece] = []
        self._connections = connections
        self._largest = largest
        self._smallest = min(smallest, largest)

    @property
    def is_done(self) -> bool:
        """Whether nothing is missing any more, but for what is being written."""
        with self._lock:
            return not self._free.size and not any(piece.left for piece in self._taken)

    def count(self) -> int:
        """How many connections are of use: no more than there are pieces of the smallest size."""
        return min(self._connections, sum(-(-(stop - start) // self._smallest) for start, stop in self._free))

    def take(self, *, alone: bool = False) -> Piece | None:
        """The next piece, the first one of what is missing; None if there is none to be had now.

        ``alone``: only if nobody else has one.
        """
        with self._lock:
            if alone and any(piece.left for piece in self._taken):
                return None
            piece = self._first() or self._half() or self._rest()
            if piece is not None:
                self._taken.append(piece)
            return piece

    def _first(self) -> Piece | None:
        gap = next(iter(self._free), None)
        if gap is None:
            return None
        start, stop = gap
        if self._connections > 1:
            share = self._free.size // (2 * self._connections)
            size = min(self._largest, max(self._smallest, share))
            stop = start + size if stop - start - size >= self._smallest // 2 else stop  # no crumbs
        self._free.remove(start, stop)
        return Piece(start, start, stop)

    def _half(self) -> Piece | None:
        now = time.monotonic()
        large = (piece for piece in self._taken if piece.left >= 2 * _WORTH)
        slowest = max(large, key=lambda piece: piece.seconds_left(now), default=None)
        if slowest is None or slowest.seconds_left(now) < _SOON:
            return None
        middle = slowest.stop - slowest.left // 2
        piece = Piece(middle, middle, slowest.stop)
        slowest.stop = middle
        return piece

    def _rest(self) -> Piece | None:
        now = time.monotonic()
        for silent in self._taken:
            if silent.left and now - silent.heard > silent.patience:
                # twice the patience: two connections must not take it from each other for ever
                piece = Piece(silent.position, silent.position, silent.stop, patience=2 * silent.patience)
                silent.stop = silent.position
                return piece
        return None

    def claim(self, piece: Piece, size: int) -> int:
        """How many of the next ``size`` bytes of a piece are to be written: the rest is another connection's by now."""
        with self._lock:
            size = min(size, piece.left)
            piece.position += size
            piece.heard = time.monotonic()
            return size

    def let_go(self, piece: Piece) -> None:
        """Be done with a piece; what is missing of it is anyone's."""
        with self._lock:
            self._taken.remove(piece)
            self._free.add(piece.position, piece.stop)
