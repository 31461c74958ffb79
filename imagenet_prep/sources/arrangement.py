"""Arrangement: rows of a table in another order; a long column is read and written from front to back, each time twice.

The first pass takes each row to the block that it is to lie in, the second brings the rows of a block, which fits in
memory, to their places. So a row costs the same however many there are; reads at random would cost more and more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from imagenet_prep.sources.names import Names, edges_of, gathered
from imagenet_prep.sources.numbers import Builder, Numbers, OnDisk, Rows, column_of, some

if TYPE_CHECKING:
    from imagenet_prep.sources.numbers import Values

_BLOCK = 1 << 20  # rows that are brought to their places together
_WINDOW = 1 << 19  # rows that are read together; 65,536 windows are enough for any table


class Arrangement:
    """Any rows of a table, in the order in which they are wanted; one for all of its columns."""

    def __init__(self, rows: Rows) -> None:
        import numpy as np

        every = some(rows, range(len(rows))) if isinstance(rows, OnDisk) else rows
        self._rows: Values = np.asarray(every, np.uint32)
        self._stop = int(self._rows.max()) + 1 if len(rows) else 0
        self._blocks = [range(start, min(start + _BLOCK, len(rows))) for start in range(0, len(rows), _BLOCK)]
        self._places: list[Values] = []  # in each block, by the window that their rows are in
        self._edges: list[list[int]] = []  # in each block, where the places of each window begin, and the last ones end
        for block in self._blocks:
            windows = (self._rows[block.start : block.stop] // _WINDOW).astype(np.uint16)  # of 16 bits quickly sorted
            self._places.append(np.argsort(windows, kind="stable").astype(np.uint32))
            self._edges.append([0, *np.cumsum(np.bincount(windows, minlength=-(-self._stop // _WINDOW))).tolist()])

    def column(self, column: Numbers) -> Numbers:
        """The values of these rows; of a column without values nothing."""
        import numpy as np

        if isinstance(column, OnDisk):
            return self._column(column.typecode, lambda window: some(column, window))
        return column_of(column.typecode, [np.asarray(column)[self._rows]] if len(column) else [])

    def names(self, names: Names) -> Names:
        """The names of these rows."""
        import numpy as np

        if not isinstance(names.joined, OnDisk):
            return names.picked(self._rows)
        lengths = self._column("H", lambda window: np.diff(names.joined_of(window)[1]))  # none has 8,192 bytes
        edges = [0]
        for block in self._blocks:
            edges.append(edges[-1] + int(some(lengths, block).sum(dtype=np.int64)))
        joined, ends = OnDisk.empty("B", edges[-1]), edges[:-1]
        for window, pieces in self._moves():
            source = names.joined_of(window)
            for number, _, near in pieces:
                found, _ = gathered(*source, near)
                joined.write(ends[number], found)
                ends[number] += len(found)
        starts = Builder("Q")
        starts.add(np.zeros(1, np.uint64))
        for block, places, (start, stop) in zip(self._blocks, self._places, pairwise(edges), strict=True):
            near = np.empty(len(block), np.uint32)
            near[places] = np.arange(len(block), dtype=np.uint32)
            found, ends_here = gathered(joined.read(start, stop), edges_of(some(lengths, block)[places]), near)
            joined.write(start, found)
            starts.add(ends_here[1:] + start)
        return Names(joined, starts.done())

    def _column(self, typecode: str, read: Callable[[range], Values]) -> OnDisk:
        """A column of what ``read`` gives for windows."""
        import numpy as np

        found = OnDisk.empty(typecode, len(self._rows))
        for window, pieces in self._moves():
            values = read(window).astype(typecode, copy=False)
            for number, first, near in pieces:
                found.write(self._blocks[number].start + first, values[near].data)
        for block, places in zip(self._blocks, self._places, strict=True):
            values = np.empty(len(block), typecode)
            values[places] = some(found, block)
            found.write(block.start, values.data)
        return found

    def _moves(self) -> Iterator[tuple[range, Iterator[tuple[int, int, Values]]]]:
        """Each window, and what the first pass takes from it."""
        for start in range(0, self._stop, _WINDOW):
            window = range(start, min(start + _WINDOW, self._stop))
            yield window, self._pieces(window)

    def _pieces(self, window: range) -> Iterator[tuple[int, int, Values]]:
        """For each block its number, how many rows of earlier windows it has, and which ones of this window."""
        place = window.start // _WINDOW
        for number, (block, places, edges) in enumerate(zip(self._blocks, self._places, self._edges, strict=True)):
            first, last = edges[place : place + 2]
            if first < last:
                rows = self._rows[block.start : block.stop]
                yield number, first, rows[places[first:last]] - window.start
