"""Names, those of a table's rows in one piece of memory, or of a file; and what is asked of them many at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from imagenet_prep.sources import numbers as cols
from imagenet_prep.sources.numbers import Builder, Numbers, OnDisk, Places, Rows, blocks, chunks, some

if TYPE_CHECKING:
    from imagenet_prep.sources.numbers import Values

_WORD = 8  # bytes of names that are looked at together; no name holds a zero
_ENDING = (1 << 40) - 1  # of those the last five: no ending that is asked for has more


@dataclass(slots=True)
class Names:
    """File names in one piece: as objects, 1.3 million would take a hundred megabytes."""

    joined: bytearray | OnDisk = field(default_factory=bytearray)
    starts: Numbers = field(default_factory=lambda: array("Q", [0]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> str:
        if isinstance(self.joined, bytearray) and row >= 0:
            return self.joined[self.starts[row] : self.starts[row + 1]].decode()
        return self.encoded(row).decode()

    def __iter__(self) -> Iterator[str]:
        for rows in chunks(len(self)):
            yield from self.texts(rows)

    def parts(self) -> tuple[bytes, Numbers]:
        """All names in one, and how long each is."""
        import numpy as np

        joined, edges = self.joined_of(range(len(self)))
        return joined, cols.column_of("I", [np.diff(edges)])

    @classmethod
    def of_parts(cls, joined: bytes, lengths: Numbers) -> Names:
        """The names that have these parts."""
        builder = NamesBuilder()
        builder.add(joined, edges_of(some(lengths, range(len(lengths)))))
        return builder.done()

    def append(self, name: str) -> None:
        """Add one, in memory."""
        assert isinstance(self.joined, bytearray)
        assert isinstance(self.starts, array)
        self.joined += name.encode()
        self.starts.append(len(self.joined))

    def encoded(self, row: int) -> bytes:
        """A name in UTF-8."""
        row = row + len(self) if row < 0 else row
        start, stop = self.starts[row : row + 2]
        return self._bytes(start, stop)

    def _bytes(self, start: int, stop: int) -> bytes:
        if isinstance(self.joined, OnDisk):
            return self.joined.read(start, stop)
        return bytes(memoryview(self.joined)[start:stop])

    # many at a time --------------------------------------------------------------------------------------------

    def joined_of(self, rows: range) -> tuple[bytes, Values]:
        """The bytes of some rows, and where each begins in them, and the last one ends."""
        edges = some(self.starts, range(rows.start, rows.stop + 1)).astype("i8")
        return self._bytes(int(edges[0]), int(edges[-1])), edges - edges[0]

    def some(self, rows: range | Places) -> tuple[bytes | memoryview, Values]:
        """The bytes of any rows, one name behind the other, and where each begins in them, and the last one ends."""
        return self.joined_of(rows) if isinstance(rows, range) else self.gathered(rows)

    def texts(self, rows: range) -> list[str]:
        """Some of them."""
        joined, edges = self.joined_of(rows)
        if joined.isascii():  # one decoding in place of many
            text = joined.decode("ascii")
            return [text[start:stop] for start, stop in pairwise(edges.tolist())]
        return [joined[start:stop].decode() for start, stop in pairwise(edges.tolist())]

    def encoded_of(self, rows: range | Places) -> list[bytes]:
        """Some of them in UTF-8."""
        found, edges = self.some(rows)
        joined = bytes(found)
        return [joined[start:stop] for start, stop in pairwise(edges.tolist())]

    def gathered(self, rows: Places) -> tuple[memoryview, Values]:
        """What ``joined_of`` gives, of any rows."""
        import numpy as np

        starts = np.empty(len(rows), np.int64)
        lengths = np.empty(len(rows), np.int64)
        for window, places in rows.windows():
            edges, near = some(self.starts, range(window.start, window.stop + 1)), rows.rows[places] - window.start
            starts[places] = edges[near]
            lengths[places] = edges[near + 1] - edges[near]
        edges = edges_of(lengths)
        found = np.empty(int(edges[-1]), np.uint8)
        for window, places in rows.windows():
            begin, end = (int(self.starts[row]) for row in (window.start, window.stop))
            source = np.frombuffer(self._bytes(begin, end), np.uint8)
            _move(source, starts[places] - begin, found, edges[:-1][places], lengths[places])
        return found.data, edges

    def picked(self, rows: Rows) -> Names:
        """Those of ``rows``, in that order."""
        if isinstance(rows, range) and rows == range(len(self)):
            return self
        builder = NamesBuilder()
        for block in blocks(rows):
            builder.add(*self.some(block))
        return builder.done()

    # what is asked of them -------------------------------------------------------------------------------------

    def compared(self) -> Iterator[tuple[int, Values]]:
        """How each is to the one behind it by their bytes, -1, 0 (the same) or 1: from which row on, and for some."""
        for rows in chunks(len(self)):
            yield rows.start, _compared(*self.joined_of(range(rows.start, min(rows.stop + 1, len(self)))))

    def first_twice(self) -> int | None:
        """The first row whose name the next row has too."""
        import numpy as np

        last: Values | None = None
        for rows, tails in self._tails():
            tails = tails if last is None else np.concatenate((last, tails))
            first = rows.stop - len(tails)
            for row in (np.flatnonzero(tails[:-1] == tails[1:]) + first).tolist():
                if self.encoded(row) == self.encoded(row + 1):
                    return int(row)
            last = tails[-1:]
        return None

    def find(self, name: bytes, start: int = 0, stop: int | None = None) -> int:
        """Where a name is or would be among ``start`` to ``stop``, which are in the order of their bytes."""
        return bisect_left(range(len(self)), name, start, len(self) if stop is None else stop, key=self.encoded)

    def below(self, lead: str) -> range:
        """The rows whose names begin with ``lead``, a folder and a slash; names are in the order of their bytes."""
        start = self.find(lead.encode())
        return range(start, self.find(f"{lead[:-1]}0".encode(), start))

    def folders(self, rows: Rows, lead: str) -> Iterator[tuple[range, str | None, int]]:
        """Places that follow each other among the rows and lie in one folder behind ``lead``; all names begin with it.

        With them the folder, None for a single one that lies in none, and the most slashes that one of the names has.
        """
        import numpy as np

        place, behind = 0, len(lead.encode())
        for block in blocks(rows):
            found, edges = self.some(block)
            joined, begin = bytes(found), edges[:-1] + behind
            slashes = np.flatnonzero(np.frombuffer(joined, np.uint8) == ord("/"))
            firsts = np.searchsorted(slashes, edges)
            ends = np.append(slashes, [len(joined)] * (lead.count("/") + 1))[firsts[:-1] + lead.count("/")]
            lengths = np.where(ends < edges[1:], ends - begin, -1)
            starts = np.append(0, np.flatnonzero(_differ(joined, begin, lengths)) + 1)
            deepest = np.maximum.reduceat(np.diff(firsts), starts).tolist()
            for (start, stop), most in zip(pairwise([*starts.tolist(), len(block)]), deepest, strict=True):
                folder = joined[begin[start] : begin[start] + lengths[start]].decode() if lengths[start] >= 0 else None
                yield range(place + start, place + stop), folder, most
            place += len(block)

    def holding(self, words: Sequence[bytes]) -> Iterator[str]:
        """Those near which one of these words stands, in letters of any case; all that hold one are among them."""
        for rows in chunks(len(self)):
            joined = self.joined_of(rows)[0].lower()
            if any(all(letter in joined for letter in word) and word in joined for word in words):  # letters are quick
                yield from self.texts(rows)

    def chosen(self, accept: Callable[[str], bool]) -> Values:
        """For each whether ``accept`` takes it, which looks at no more than its last 5 bytes."""
        import numpy as np

        found = np.zeros(len(self), np.bool_)
        known: dict[int, bool] = {}
        for rows, tails in self._endings():
            distinct, which = np.unique(tails, return_inverse=True)
            for tail in distinct.tolist():
                if tail not in known:
                    known[tail] = accept(_ending(tail))
            found[rows.start : rows.stop] = np.array([known[tail] for tail in distinct.tolist()], np.bool_)[which]
        return found

    def endings(self) -> set[str]:
        """The last 5 bytes that there are; of names of less than 8 bytes all."""
        import numpy as np

        found: set[int] = set()
        for _, tails in self._endings():
            first = tails[0]
            found.update((int(first), *np.unique(tails[tails != first]).tolist()))  # most often all are the same
        return set(map(_ending, found))

    def _endings(self) -> Iterator[tuple[range, Values]]:
        """The last 5 bytes of each as a number; of a name of less than 8 bytes all."""
        import numpy as np

        for rows, tails in self._tails():
            yield rows, np.where(tails & np.uint64(0xFF), tails & np.uint64(_ENDING), tails)  # short ones end in zeros

    def _tails(self) -> Iterator[tuple[range, Values]]:
        """The last 8 bytes of each as a number; of a shorter one all of it."""
        import numpy as np

        for rows in chunks(len(self)):
            joined, edges = self.joined_of(rows)
            begin = np.maximum(edges[1:] - _WORD, edges[:-1])
            yield rows, _words(joined, begin, edges[1:] - begin)


def _ending(tail: int) -> str:
    return tail.to_bytes(_WORD, "big").strip(b"\0").decode("utf-8", "replace")


def _words(joined: bytes, begin: Values, left: Values) -> Values:
    """The 8 bytes at each place as a number that compares as they do; zeros behind what is ``left`` of a name there."""
    import numpy as np

    every = np.ndarray(len(joined) + 1, ">u8", joined + bytes(_WORD), strides=(1,))
    if left.min(initial=_WORD) >= _WORD:
        whole: Values = every[begin].astype(np.uint64)
        return whole
    unused = 8 * (_WORD - np.clip(left, 0, _WORD)).astype(np.uint64)
    found = every[np.minimum(begin, len(joined))].astype(np.uint64) >> np.minimum(unused, 63)
    shortened: Values = np.where(unused > 63, np.uint64(0), found << np.minimum(unused, 63))
    return shortened


def _compared(joined: bytes, edges: Values) -> Values:
    """For each name but the last -1, 0 or 1: whether it is less than the next one, the same, or more."""
    import numpy as np

    lengths = np.diff(edges)
    signs = np.zeros(max(len(lengths) - 1, 0), np.int8)
    for place in range(0, int(lengths.max(initial=0)), _WORD):
        words = _words(joined, edges[:-1] + place, lengths - place)
        steps = (words[:-1] > words[1:]).view(np.int8) - (words[:-1] < words[1:]).view(np.int8)
        signs = np.where(signs == 0, steps, signs)
        if signs.all():
            break
    return signs


def _differ(joined: bytes, begin: Values, lengths: Values) -> Values:
    """For each piece of ``joined`` but the last whether the next one is another, or none: that has a length below 0."""
    found: Values = (lengths[1:] != lengths[:-1]) | (lengths[1:] < 0)
    for place in range(0, int(lengths.max(initial=0)), _WORD):
        words = _words(joined, begin + place, lengths - place)
        found |= words[1:] != words[:-1]
    return found


def edges_of(lengths: Values) -> Values:
    """Where pieces of these lengths begin, one behind the other, and the last one ends."""
    import numpy as np

    edges = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=edges[1:])
    return edges


def gathered(joined: bytes, edges: Values, rows: Values) -> tuple[memoryview, Values]:
    """Some of the names in memory, in the order of ``rows``: their bytes, and where each begins, and the last ends."""
    import numpy as np

    starts = edges[rows]
    lengths = edges[rows + 1] - starts
    found_edges = edges_of(lengths)
    found = np.empty(int(found_edges[-1]), np.uint8)
    _move(np.frombuffer(joined, np.uint8), starts, found, found_edges[:-1], lengths)
    return found.data, found_edges


def _move(source: Values, starts: Values, target: Values, places: Values, lengths: Values) -> None:
    """Copy pieces from ``starts`` of one array to ``places`` of another: all that are of one length together."""
    import numpy as np

    if len(lengths) and lengths.min() == lengths.max():
        _move_alike(source, starts, target, places, int(lengths[0]))
        return
    ordered = np.argsort(lengths.astype(np.uint16), kind="stable")  # a name has less than 8192 bytes
    edges = np.flatnonzero(np.diff(lengths[ordered])) + 1
    for group in np.split(ordered, edges):
        _move_alike(source, starts[group], target, places[group], int(lengths[group[0]]) if len(group) else 0)


def _move_alike(source: Values, starts: Values, target: Values, places: Values, length: int) -> None:
    """The same for pieces of one length."""
    import numpy as np

    if length:
        form = np.dtype((np.void, length))
        pieces = np.ndarray(len(source) - length + 1, form, source, strides=(1,))
        np.ndarray(len(target) - length + 1, form, target, strides=(1,))[places] = pieces[starts]


def names_of(texts: Iterable[str]) -> Names:
    """The names that texts are."""
    found = Names()
    for text in texts:
        found.append(text)
    return found


class NamesBuilder:
    """Puts names together from the first row to the last."""

    def __init__(self) -> None:
        self._joined, self._starts = Builder("B"), Builder("Q")
        self._starts.add(array("Q", [0]))

    def add(self, joined: bytes | memoryview, edges: Values) -> None:
        """Append some: their bytes, and where each begins in them, and the last one ends."""
        self._starts.add(edges[1:] + len(self._joined))
        self._joined.add_bytes(joined)

    def add_all(self, names: Names) -> None:
        """Append all of another one."""
        for rows in chunks(len(names)):
            self.add(*names.joined_of(rows))

    def done(self) -> Names:
        """The names; the builder is of no use any more."""
        joined = self._joined.done()
        return Names(joined if isinstance(joined, OnDisk) else bytearray(joined), self._starts.done())
