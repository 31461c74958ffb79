"""Spans: which bytes of a file are there, as few spans as they can be; bytes in, gaps and the front out. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Span = tuple[int, int]
"""Start and stop (exclusive)."""


class Spans:
    """A set of byte positions, kept as sorted spans that are apart from each other."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        self.size = 0
        for start, stop in spans:
            self.add(start, stop)

    def __iter__(self) -> Iterator[Span]:
        return zip(self._starts, self._stops, strict=True)

    def add(self, start: int, stop: int) -> None:
        """Add the positions from ``start`` to ``stop``; an empty span adds none."""
        if start >= stop:
            return
        first = bisect_left(self._stops, start)  # the first span that touches the new one
        last = bisect_right(self._starts, stop)  # the first one behind it that does not
        if first < last:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self.size += (stop - start) - sum(self._stops[first:last]) + sum(self._starts[first:last])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def remove(self, start: int, stop: int) -> None:
        """Take the positions from ``start`` to ``stop`` out."""
        spans = [span for old in self for span in ((old[0], min(old[1], start)), (max(old[0], stop), old[1]))]
        self.clear()
        for span in spans:
            self.add(*span)

    def clear(self) -> None:
        """Forget all of them."""
        self._starts, self._stops, self.size = [], [], 0

    def gaps(self, total: int) -> list[Span]:
        """The spans below ``total`` that are missing."""
        edges = [0, *(edge for span in self for edge in span), total]
        return [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop]

    @property
    def front(self) -> int:
        """How many bytes are there from the beginning on without a gap."""
        return self._stops[0] if self._starts and self._starts[0] == 0 else 0
