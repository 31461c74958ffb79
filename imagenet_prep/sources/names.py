"""Names: the file names of a table's rows, as one blob of UTF-8 with start offsets; objects would
fill the memory.

A file name is bytes. Python decodes it by the locale (PEP 383); names in tables and records are
UTF-8 in every locale.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from imagenet_prep.storage.location import AnyPath, Location
from imagenet_prep.storage.store import FolderEntry, ObjectEntry

Column: TypeAlias = NDArray[Any]
"""One value per row."""

Rows: TypeAlias = Sequence[int] | Column
"""Row numbers: a range, or any others."""

CHUNK = 1 << 16
"""The number of rows handled together."""

_ENDING = 5  # bytes of the longest suffix tested
_WORD = 8
_SLASH = ord("/")


def chunks(count: int) -> Iterator[range]:
    """All rows, CHUNK at a time."""
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        yield range(start, stop)


def places_of(rows: Rows) -> Any:
    """Rows as an index of a column; a range gives a view."""
    if isinstance(rows, range) and rows.step == 1:
        return slice(rows.start, rows.stop)
    if not len(rows):
        return np.zeros(0, np.int64)
    return np.asarray(rows)


def edges_of(lengths: Column) -> Column:
    """Start offsets of consecutive pieces of these lengths, and the end of the last."""
    end = int(lengths.sum(dtype=np.int64))
    number_type = np.int32 if end < 1 << 31 else np.int64
    edges = np.zeros(len(lengths) + 1, number_type)
    np.cumsum(lengths, out=edges[1:])
    return edges


# names of files -----------------------------------------------------------------------------------

P = TypeVar("P", bound=AnyPath)

_IS_UTF8 = sys.getfilesystemencoding() == "utf-8"


def text_of(name: str) -> str:
    """The UTF-8 text of a name or path that the system gave;
    surrogate escapes stand for other bytes.
    """
    if _IS_UTF8:
        return name
    system_bytes = os.fsencode(name)
    return system_bytes.decode("utf-8", "surrogateescape")


def name_of(text: str) -> str:
    """The name or path for the system's calls, the inverse of ``text_of``."""
    if _IS_UTF8:
        return text
    system_bytes = text.encode("utf-8", "surrogateescape")
    return os.fsdecode(system_bytes)


def entry_name(entry: FolderEntry) -> str:
    """The text of an entry's name; a store's names are texts."""
    if _IS_UTF8 or isinstance(entry, ObjectEntry):
        return entry.name
    return text_of(entry.name)


def below(folder: P, text: str) -> P:
    """The path of a file below a folder, by the text of its name."""
    name = text if isinstance(folder, Location) else name_of(text)
    path: P = folder / name  # type: ignore[assignment]
    return path


def file_name(path: AnyPath) -> str:
    """The text of the last part of a path."""
    if isinstance(path, Location):
        return path.name
    return text_of(path.name)


def shown_name(path: AnyPath) -> str:
    r"""The last part of a path as text that every file can hold:
    bytes that are not UTF-8 become ``\xe9``.
    """
    name_bytes = file_name(path).encode("utf-8", "surrogateescape")
    return name_bytes.decode("utf-8", "backslashreplace")


# names of rows ------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Names(Sequence[str]):
    """Names by row: ``blob`` holds their bytes (uint8),
    row ``row`` from ``starts[row]`` to ``starts[row + 1]``.
    """

    blob: Column = field(default_factory=lambda: np.zeros(0, np.uint8))
    starts: Column = field(default_factory=lambda: np.zeros(1, np.int64))

    @classmethod
    def take(cls, texts: Iterable[str]) -> Names:
        """Names from texts."""
        names = [text.encode() for text in texts]
        joined = bytearray().join(names)
        blob = np.frombuffer(joined, np.uint8)
        lengths = np.fromiter(map(len, names), np.int64, len(names))
        return cls(blob, edges_of(lengths))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return self.encoded(row).decode()

    def __iter__(self) -> Iterator[str]:
        for rows in chunks(len(self)):
            yield from self._texts(rows)

    def encoded(self, row: int) -> bytes:
        """The UTF-8 bytes of a name."""
        if row < 0:
            row += len(self)
        start = self.starts.item(row)
        stop = self.starts.item(row + 1)
        name: bytes = self.blob[start:stop].tobytes()
        return name

    def slices(self, rows: range) -> list[bytes]:
        """The UTF-8 bytes of consecutive names."""
        joined, edges = self._joined(rows)
        return [joined[start:stop] for start, stop in pairwise(edges)]

    def _texts(self, rows: range) -> list[str]:
        joined, edges = self._joined(rows)
        if joined.isascii():  # decode once, not per name
            text = joined.decode("ascii")
            return [text[start:stop] for start, stop in pairwise(edges)]
        return [joined[start:stop].decode() for start, stop in pairwise(edges)]

    def _joined(self, rows: range) -> tuple[bytes, list[int]]:
        """The bytes of consecutive names, their start offsets, and the end of the last."""
        edges = self.starts[rows.start : rows.stop + 1]
        start = edges[0]
        joined = self.blob[start : edges[-1]]
        edges_in_joined = edges - start
        return joined.tobytes(), edges_in_joined.tolist()

    def picked(self, rows: Rows) -> Names:
        """The names of ``rows``, in that order; a range shares their memory."""
        if isinstance(rows, range) and rows.step == 1:
            if not rows:
                return Names()
            starts = self.starts[rows.start : rows.stop + 1]
            start = starts[0]
            shared_bytes = self.blob[start : starts[-1]]
            return Names(shared_bytes, starts - start)
        return self._copied(places_of(rows))

    def _copied(self, places: Any) -> Names:
        """The names of any rows, in memory of their own."""
        all_lengths = np.diff(self.starts)
        lengths = all_lengths[places]
        edges = edges_of(lengths)
        blob = np.empty(edges[-1], np.uint8)
        for part in chunks(len(lengths)):
            of_part = slice(part.start, part.stop)
            start = edges[part.start]
            stop = edges[part.stop]
            shifts = self.starts[places[of_part]] - edges[of_part]
            byte_places = np.repeat(shifts, lengths[of_part])
            byte_places = byte_places + np.arange(start, stop)
            blob[start:stop] = self.blob[byte_places]
        return Names(blob, edges)

    # queries --------------------------------------------------------------------------------------

    def repeated(self) -> Iterator[int]:
        """The rows whose name equals that of the next row."""
        count = len(self)
        for rows in chunks(count):
            stop = min(rows.stop + 1, count)  # with the first row of the next chunk
            names = self.slices(range(rows.start, stop))
            for row, (name, next_name) in enumerate(pairwise(names), rows.start):
                if name == next_name:
                    yield row

    def first_twice(self) -> int | None:
        """The first row whose name equals that of the next row."""
        return next(self.repeated(), None)

    def find(self, name: bytes, start: int = 0) -> int:
        """The row of a name, present or not, from row ``start`` on;
        names are sorted by their bytes.
        """
        rows = range(len(self))
        return bisect_left(rows, name, start, key=self.encoded)

    def below(self, lead: str) -> range:
        """The rows whose names start with ``lead``, a folder and a slash;
        names are sorted by their bytes.
        """
        start = self.find(lead.encode())
        next_lead = f"{lead[:-1]}0"  # "0" comes after "/"
        stop = self.find(next_lead.encode(), start)
        return range(start, stop)

    def folders(
        self, rows: Rows, lead: str, *, whole: bool = False
    ) -> Iterator[tuple[range, str | None, int]]:
        """Runs of consecutive rows that share a folder after ``lead``, with which all names start.

        Each run has its folder (None for a single name in no folder) and the maximum number of
        slashes in a name. The folder is the first one, or with ``whole`` the path of all.
        """
        lead_length = len(lead.encode())
        start, folder, most_slashes = 0, b"", 0  # of the current run
        count = len(rows)
        for block in chunks(count):
            part = rows[block.start : block.stop]
            picked_names = self.picked(part)  # a range shares their memory
            names = picked_names.slices(range(len(part)))
            for place, name in enumerate(names, block.start):
                is_same = folder and name.startswith(folder, lead_length)
                if whole and is_same:  # not in a folder further down
                    is_same = name.find(b"/", lead_length + len(folder)) < 0
                if not is_same:
                    if place > start:
                        yield range(start, place), _folder(folder), most_slashes
                    slash = name.rfind(b"/") if whole else name.find(b"/", lead_length)
                    folder = name[lead_length : slash + 1]
                    start, most_slashes = place, 0
                most_slashes = max(most_slashes, name.count(b"/"))
        if count > start:
            yield range(start, count), _folder(folder), most_slashes

    def fewest_slashes(self) -> int:
        """The fewest slashes that a name has; 0 if there is no name."""
        fewest_by_chunk: list[int] = []
        for rows in chunks(len(self)):
            edges = self.starts[rows.start : rows.stop + 1]
            start = edges[0]
            joined = self.blob[start : edges[-1]]
            slashes_before = np.zeros(len(joined) + 1, np.int64)
            np.cumsum(joined == _SLASH, out=slashes_before[1:])
            slashes = np.diff(slashes_before[edges - start])
            fewest_by_chunk.append(int(slashes.min()))
        return min(fewest_by_chunk, default=0)

    def holding(self, words: Sequence[bytes]) -> Iterator[str]:
        """Candidate rows for names with one of these words, in any case;
        every real match is included.
        """
        for rows in chunks(len(self)):
            joined, _ = self._joined(rows)
            joined = joined.lower()
            for word in words:
                has_letters = all(letter in joined for letter in word)  # this is fast
                if has_letters and word in joined:
                    yield from self._texts(rows)
                    break

    def chosen(self, accept: Callable[[str], bool]) -> Column:
        """Whether ``accept`` accepts each name; it sees only the last 5 bytes."""
        is_accepted = np.zeros(len(self), np.bool_)
        for rows, tails in self._tails():
            distinct_tails, numbers = np.unique(tails, return_inverse=True)
            endings = map(_text, distinct_tails.tolist())
            answers = np.array([accept(ending) for ending in endings])
            is_accepted[rows.start : rows.stop] = answers[numbers]
        return is_accepted

    def endings(self) -> set[str]:
        """The distinct last 5 bytes."""
        distinct_tails: set[int] = set()
        for _, tails in self._tails():
            first_tail = tails[0]  # usually all are equal
            distinct_tails.add(int(first_tail))
            other_tails = tails[tails != first_tail]
            distinct_tails.update(np.unique(other_tails).tolist())
        return set(map(_text, distinct_tails))

    def _tails(self) -> Iterator[tuple[range, Column]]:
        """The last 5 bytes of each name as a number;
        shorter names are padded with leading zeros.
        """
        for rows in chunks(len(self)):
            edges = self.starts[rows.start : rows.stop + 1].astype(np.int64)
            starts = edges[:-1, None]
            stops = edges[1:, None]
            places = stops - np.arange(_ENDING, 0, -1)
            last_bytes = self.blob[np.maximum(places, 0)]
            tails = np.zeros((len(rows), _WORD), np.uint8)
            tails[:, -_ENDING:] = np.where(places >= starts, last_bytes, 0)
            numbers = tails.view(">u8")[:, 0]
            yield rows, numbers.astype(np.uint64)


def _text(tail: int) -> str:
    padded = tail.to_bytes(_WORD, "big")
    ending = padded.lstrip(b"\0")
    return ending.decode("utf-8", "replace")


def _folder(lead: bytes) -> str | None:
    return lead[:-1].decode() if lead else None
