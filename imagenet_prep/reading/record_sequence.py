"""RecordSequence: the records of one split, by number and in order, wherever they are taken from."""

from __future__ import annotations

import copy
import operator
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex, TypeVar, overload

from imagenet_prep.reading.shard import Record

_S = TypeVar("_S", bound="RecordSequence")


class RecordSequence(Sequence[Record]):
    """The records of the shards of one split, one after the other; a kind of set says how it comes by one of them.

    ``split`` is what its shards' names begin with; ``first_label`` the label of its first class.
    """

    def __init__(self, split: str) -> None:
        self.split = split
        self.first_label = 1
        self._starts: list[int] | None = None
        self._range: tuple[int, int] | None = None  # of a part: its records' numbers within the whole
        self._opened: dict[int, Any] = {}  # maps of files, each made when it is first needed

    @abstractmethod
    def _count_shards(self) -> int:
        """The number of its shards."""

    @abstractmethod
    def _find_starts(self) -> list[int]:
        """The number of each shard's first record within the set, and behind them that of all; kept in ``_starts``."""

    @abstractmethod
    def _record(self, which: int, number: int) -> Record:
        """A record by the number of its shard, and its own there."""

    @abstractmethod
    def _records(self, which: int) -> Iterator[Record]:
        """All records of a shard in order."""

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the maps."""
        return {**self.__dict__, "_opened": {}}

    def _described(self, place: str) -> str:
        part = f"[{self._range[0]:_}:{self._range[1]:_}]" if self._range else ""
        return f"{type(self).__name__}({place!r}, {self.split!r}){part}"

    def shard(self: _S, rank: int, world: int) -> _S:
        """The part of one of ``world`` readers: neighbours in order, as many for each as for the others, or one more.

        Raises:
            ValueError: ``rank`` is not one of 0 to ``world`` - 1.
        """
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} is not one of the {world} from 0 to {world - 1}")
        part, (first, last) = copy.copy(self), self._bounds()
        part._range = first + (last - first) * rank // world, first + (last - first) * (rank + 1) // world
        return part

    def __len__(self) -> int:
        first, last = self._bounds()
        return last - first

    @overload
    def __getitem__(self, index: SupportsIndex) -> Record: ...

    @overload
    def __getitem__(self, index: slice | Iterable[SupportsIndex]) -> list[Record]: ...

    def __getitem__(self, index: SupportsIndex | slice | Iterable[SupportsIndex]) -> Record | list[Record]:
        try:
            number = operator.index(index)  # type: ignore[arg-type]
        except TypeError:
            if isinstance(index, slice):
                return self.__getitems__(range(*index.indices(len(self))))
            if isinstance(index, Iterable) and not isinstance(index, str | bytes):
                return self.__getitems__(index)
            raise
        starts = self._starts or self._find_starts()
        first, last = self._range or (0, starts[-1])
        at = number + (last if number < 0 else first)
        if not first <= at < last:
            raise IndexError(f"{self!r} has no record {number}: it holds {last - first:,}")
        which = bisect_right(starts, at) - 1
        return self._record(which, at - starts[which])

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> list[Record]:
        """Several records by their numbers: what PyTorch's DataLoader asks for to make a batch."""
        return [self[index] for index in indices]

    def __iter__(self) -> Iterator[Record]:
        if self._range is None:
            for which in range(self._count_shards()):
                yield from self._records(which)
            return
        (first, last), starts = self._range, self._find_starts()
        for which in range(bisect_right(starts, first) - 1, bisect_left(starts, last)):
            start, stop = (min(max(each, starts[which]), starts[which + 1]) for each in (first, last))
            if (start, stop) == (starts[which], starts[which + 1]):
                yield from self._records(which)
            else:
                yield from (self._record(which, at - starts[which]) for at in range(start, stop))

    @property
    def starts(self) -> list[int]:
        """The number of the first record of each shard that has a part in this set, and behind them that of all."""
        first, last = self._bounds()
        inner = [start - first for start in self._find_starts() if first < start < last]
        return [0, *inner, last - first]

    def _bounds(self) -> tuple[int, int]:
        return self._range or (0, self._find_starts()[-1])


def first_label_of(classes: Mapping[str, int] | None, settings: Mapping[str, Any]) -> int:
    """The label of the first class, by what a manifest says: 1 as in Inception's records, unless it tells another."""
    return first_label_among(classes.values()) if classes else int(settings.get("first_label", 1))


def first_label_among(labels: Collection[int]) -> int:
    """The label of the first class of a part of ImageNet: with official labels that is 1, be it in the part or not."""
    first = min(labels)
    return first if set(labels) == set(range(first, first + len(labels))) else 1
