"""SavedArray, the facts of an array, and ArrayFolder: raw arrays in a folder or store, each block
checked when read.

Each array is one file that holds its values and nothing else. Its facts are kept by the caller, in
a text with a check of its own.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from imagenet_prep.sources.names import Column, Names, edges_of
from imagenet_prep.storage.location import AnyPath, open_store
from imagenet_prep.storage.store import Buffer
from imagenet_prep.tfrecord import crc32c

BLOCK = 1 << 16
"""The bytes with one checksum. One row costs a block of each array;
a GB of rows has 16,000 checksums.
"""


class SavedArray(Struct, frozen=True):
    """The type of an array's values ("<i4"), their count,
    and the CRC-32C of each block of its bytes.
    """

    dtype: str
    count: int
    crcs: tuple[int, ...]

    @classmethod
    def describe(cls, values: Column) -> SavedArray:
        """The facts of an array in one piece of memory."""
        content = values.data.cast("B")
        starts = range(0, len(content), BLOCK)
        crcs = [crc32c(content[start : start + BLOCK]) for start in starts]
        return cls(values.dtype.str, len(values), tuple(crcs))


class DamagedArrayError(ValueError):
    """A saved array is gone, cut, or has other bytes than were saved."""


def array_file(array: str) -> str:
    """The name of the file of an array."""
    return f"{array}.bin"


class ArrayFolder:
    """Reads saved arrays in parts: memory maps of files, or the required ranges of objects.

    Raises:
        DamagedArrayError: a block that is read is not the saved one.
        InputError: the storage can't be read.
    """

    def __init__(self, folder: AnyPath, arrays: Mapping[str, SavedArray]) -> None:
        self._store = open_store(folder)
        self._arrays = arrays

    def count(self, name: str) -> int:
        """The number of values of an array."""
        return self._arrays[name].count

    def part(self, name: str, pieces: Sequence[range]) -> Column:
        """Some values of an array; every block that holds one of them is checked."""
        saved = self._arrays[name]
        dtype = np.dtype(saved.dtype)
        if any(piece.stop > saved.count for piece in pieces):
            problem = f"{array_file(name)} is too short: it has {saved.count:,} values"
            raise DamagedArrayError(problem)
        width = dtype.itemsize
        places = [range(piece.start * width, piece.stop * width) for piece in pieces if piece]
        runs = _runs_of_blocks(places)
        contents = self._read(name, runs)
        run_starts = [run.start * BLOCK for run in runs]
        parts: list[Column] = []
        for place in places:
            number = bisect_right(run_starts, place.start) - 1
            content = contents[number]
            run_start = run_starts[number]
            start = place.start - run_start
            stop = place.stop - run_start
            parts.append(np.frombuffer(content[start:stop], dtype))
        if len(parts) == 1:
            return parts[0]
        no_values = np.zeros(0, dtype)
        return np.concatenate([no_values, *parts])

    def _read(self, name: str, runs: Sequence[range]) -> Sequence[Buffer]:
        """The bytes of runs of blocks, checked."""
        saved = self._arrays[name]
        size = saved.count * np.dtype(saved.dtype).itemsize
        spans: list[tuple[int, int]] = []
        for run in runs:
            stop = min(run.stop * BLOCK, size)
            spans.append((run.start * BLOCK, stop))
        file = array_file(name)
        if spans and self._store.size(file) != size:
            raise DamagedArrayError(f"{file} is gone or has changed")
        contents = self._store.read_ranges(file, spans)
        for run, content in zip(runs, contents, strict=True):
            start = 0
            for block in run:
                stop = start + BLOCK
                if crc32c(content[start:stop]) != saved.crcs[block]:
                    first_byte = block * BLOCK
                    problem = f"{file} has another checksum, in the block at byte {first_byte:,}"
                    raise DamagedArrayError(problem)
                start = stop
        return contents

    def texts(self, name: str, starts: str, pieces: Sequence[range]) -> Names:
        """Some of the texts that are saved in two arrays, their bytes and where each starts."""
        spans, edges = self.spans(starts, pieces)
        blob = self.part(name, spans)
        return Names(blob, edges)

    def spans(self, starts: str, pieces: Sequence[range]) -> tuple[list[range], Column]:
        """The range of these rows in an array of texts,
        and the start offset of each row within the joined ranges.
        """
        edge_pieces = [range(piece.start, piece.stop + 1) for piece in pieces]
        offsets = self.part(starts, edge_pieces)
        if len(pieces) == 1:
            first_offset = offsets[0]
            span = range(int(first_offset), int(offsets[-1]))
            return [span], offsets - first_offset
        spans: list[range] = []
        lengths: list[Column] = [np.zeros(0, np.int64)]
        place = 0
        for piece in edge_pieces:
            edges = offsets[place : place + len(piece)]
            span = range(int(edges[0]), int(edges[-1]))
            spans.append(span)
            lengths.append(np.diff(edges))
            place += len(edges)
        return spans, edges_of(np.concatenate(lengths))


def _runs_of_blocks(places: Sequence[range]) -> list[range]:
    """The blocks that hold these ranges of bytes, neighbours joined."""
    runs: list[range] = []
    for place in sorted(places, key=operator.attrgetter("start")):
        start = place.start // BLOCK
        stop = -(-place.stop // BLOCK)  # rounded up
        if runs and start <= runs[-1].stop:
            last_run = runs.pop()
            start = last_run.start
            stop = max(last_run.stop, stop)
        runs.append(range(start, stop))
    return runs
