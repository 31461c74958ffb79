"""ShardSet: the finished shards of one split as one sequence of Records."""

from __future__ import annotations

import copy
import itertools
import operator
import os
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex, TypeVar, overload

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.reading.absent_sets import (
    missing_shards,
    no_folder,
    no_split_named,
    no_such_split,
    refuse_no_folder,
)
from imagenet_prep.reading.indexed import IndexedShard, find_recorded
from imagenet_prep.reading.left_out import MappedRecords, OnDamagedRecord
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.values import Conventions, any_number
from imagenet_prep.state.manifest import ILSVRC2012, find_set
from imagenet_prep.state.numbering import Numbering
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout, grown_from, parse_shard_name, shard_name
from imagenet_prep.storage.location import AnyPath, Location, locate
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord.compression import Compression

T = TypeVar("T")
_S = TypeVar("_S", bound="RecordSequence")


class RecordSequence(Sequence[Record]):
    """The records of one split's shards, in order; each kind of set defines how it reads a record.

    ``split`` is the prefix of its shards' names. ``unlabelled`` is the number of records without a
    label, by the set's manifest.
    """

    def __init__(self, split: str) -> None:
        self.split = split
        self.unlabelled = 0
        self._numbering = Numbering()
        self._complete: Callable[[Numbering], Numbering] | None = None
        self._starts: list[int] | None = None
        # of a part: the numbers of its records in the whole
        self._range: tuple[int, int] | None = None
        self._opened: dict[int, Any] = {}  # maps of files, each opened on first use

    @abstractmethod
    def _count_shards(self) -> int:
        """The number of its shards."""

    @abstractmethod
    def _find_starts(self) -> list[int]:
        """The number of each shard's first record in the set, then the total;
        kept in ``_starts``.
        """

    @abstractmethod
    def _record(self, shard_number: int, number: int) -> Record:
        """A record by the number of its shard, and its own number there."""

    @abstractmethod
    def _records(self, shard_number: int) -> Iterator[Record]:
        """All records of a shard in order."""

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the maps."""
        return {**self.__dict__, "_opened": {}}

    @property
    def first_label(self) -> int:
        """The label of the first class, from the manifest, or 1: records give ``class_index``
        counted from it.

        Set it for a set without a manifest whose labels count from another number.
        """
        return self._numbering.first_label

    @first_label.setter
    def first_label(self, label: int) -> None:
        self._numbering, self._opened = replace(self._numbering, first_label=label), {}

    @property
    def class_names(self) -> Mapping[int, str]:
        """The name of each class by its label, those without a record too;
        empty if the set has no names.
        """
        return self._named.names

    @property
    def class_texts(self) -> Mapping[int, str]:
        """The words of each class by its label: its name, where the recipe had no other words."""
        numbering = self._named
        return {label: numbering.texts.get(name, name) for label, name in numbering.names.items()}

    @property
    def object_names(self) -> Mapping[int, str]:
        """The name of each class of objects by its label in a recipe's set;
        empty in other sets, ImageNet's too.
        """
        return self._numbering.objects

    def name_classes(self, complete: Callable[[Numbering], Numbering]) -> None:
        """Let a function complete names and words of classes,
        which the manifest of ILSVRC2012 does not repeat.
        """
        self._complete = complete

    @property
    def _named(self) -> Numbering:
        """The numbering with all names; they are looked up on first use."""
        if self._complete is not None:
            self._numbering, self._complete = self._complete(self._numbering), None
        return self._numbering

    def _described(self, place: str) -> str:
        part = f"[{self._range[0]:_}:{self._range[1]:_}]" if self._range else ""
        return f"{type(self).__name__}({place!r}, {self.split!r}){part}"

    def shard(self: _S, rank: int, world: int) -> _S:
        """The part of one of ``world`` readers: consecutive records, split evenly (sizes differ by
        one at most).

        Raises:
            ValueError: ``rank`` is not one of 0 to ``world`` - 1.
        """
        if not 0 <= rank < world:
            raise ValueError(f"shard(rank={rank}, world={world}): expected 0 <= rank < world")
        part = copy.copy(self)
        part._opened = self._opened
        start, stop = self._bounds()
        count = stop - start
        part._range = start + count * rank // world, start + count * (rank + 1) // world
        return part

    def __len__(self) -> int:
        start, stop = self._bounds()
        return stop - start

    @overload
    def __getitem__(self, index: SupportsIndex) -> Record: ...

    @overload
    def __getitem__(self, index: slice | Iterable[SupportsIndex]) -> list[Record]: ...

    def __getitem__(
        self, index: SupportsIndex | slice | Iterable[SupportsIndex]
    ) -> Record | list[Record]:
        try:
            number = operator.index(index)  # type: ignore[arg-type]
        except TypeError:
            if isinstance(index, slice):
                return self.__getitems__(range(*index.indices(len(self))))
            if isinstance(index, Iterable) and not isinstance(index, str | bytes):
                return self.__getitems__(index)
            raise
        starts = self._starts or self._find_starts()
        start, stop = self._range or (0, starts[-1])
        position = number + (stop if number < 0 else start)
        if not start <= position < stop:
            records = number_of(stop - start, "record")
            raise IndexError(f"{self!r} has no record {number}; it has {records}, numbered from 0")
        shard_number = bisect_right(starts, position) - 1
        return self._record(shard_number, position - starts[shard_number])

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> list[Record]:
        """Several records by their numbers, as PyTorch's DataLoader requests a batch."""
        return [self[index] for index in indices]

    def map(
        self, function: Callable[[Record], T], *, on_damaged: OnDamagedRecord = "raise"
    ) -> MappedRecords[T]:
        """``function`` of every record, each when it is asked for: a source for Grain, and a
        sequence.

        Args:
            function: what to make of a record: its pixels and its label, for example.
            on_damaged: "raise" the error of a damaged record or image, or "skip" it: see
                MappedRecords.

        Raises:
            UsageError: another policy.
        """
        return MappedRecords(self, function, on_damaged)

    def __iter__(self) -> Iterator[Record]:
        if self._range is None:
            for shard_number in range(self._count_shards()):
                yield from self._records(shard_number)
            return
        starts = self._find_starts()
        start, stop = self._range
        for shard_number in _shards_between(starts, start, stop):
            shard_start, shard_stop = starts[shard_number : shard_number + 2]
            if start <= shard_start and shard_stop <= stop:
                yield from self._records(shard_number)
                continue
            for position in range(max(start, shard_start), min(stop, shard_stop)):
                yield self._record(shard_number, position - shard_start)

    @property
    def starts(self) -> list[int]:
        """The number of the first record of each shard with a part in this set, then the total."""
        start, stop = self._bounds()
        inner = [position - start for position in self._find_starts() if start < position < stop]
        return [0, *inner, stop - start]

    def _bounds(self) -> tuple[int, int]:
        return self._range or (0, self._find_starts()[-1])


def _shards_between(starts: Sequence[int], start: int, stop: int) -> range:
    """The numbers of the shards with a record from ``start`` up to ``stop``;
    ``starts`` has the number of each shard's first record, then the total.
    """
    first_shard = bisect_right(starts, start) - 1
    return range(first_shard, bisect_left(starts, stop))


class ShardSet(RecordSequence):
    """The records of one split: in order by iteration, or any of them by its number; each CRC is
    checked.

    ``[i]`` is a Record; ``[i:j]`` and ``[[i, j, ...]]`` are lists of them. So a ShardSet is a
    map-style data set of PyTorch and a RandomAccessDataSource of Grain.

    A plain shard's records are located by its index, if a matching one exists. Otherwise all
    headers are read once, and their positions cached in the user's cache folder. A record of a
    compressed shard requires inflating everything before it: iterate over those. The number of
    records comes from the manifest; sets of other makers are counted at the first ``len`` or
    ``[]``.

    ``split`` is the prefix of its shards' names; ``first_label`` the label of its first class from
    the manifest, or 1; ``class_names`` the name of each class by its label.

    Shards are mapped on first use, and no file stays open. Several threads can share a set, also
    after a fork. A pickled set is small, and maps its shards again after unpickling.

    Raises:
        IndexError: no record has this number.
        InputError: a shard or a record is damaged, or a shard holds more or fewer records than
            recorded; the error names the file, and for a record its number there and its byte.
    """

    def __init__(
        self, data_dir: str | os.PathLike[str] | Location, split: str, *, check: bool = True
    ) -> None:
        super().__init__(split)
        folder_layout = Layout(locate(data_dir))
        refuse_no_folder(folder_layout.output_dir)
        self._layout = find_set(folder_layout, split)
        self._check = check
        self._joined: Sequence[Any] = ()
        self._opened: dict[int, IndexedShard] = {}
        state = SetState.read(self._layout)
        manifest = state.manifest
        self._names = _find_shards(state, split)
        self._recorded = [find_recorded(manifest, name) for name in self._names]
        self._lists = any_number(manifest.dataset.features if manifest else {})
        self._numbering = Numbering.find(manifest)
        self.is_imagenet = manifest is not None and manifest.dataset.kind == ILSVRC2012
        for name, totals in manifest.totals.items() if manifest else ():
            if grown_from(name)[0] == split:
                self.unlabelled += totals.unlabelled

    def __repr__(self) -> str:
        return self._described(str(self._layout.output_dir))

    def _count_shards(self) -> int:
        return len(self._names)

    def _record(self, shard_number: int, number: int) -> Record:
        return (self._opened.get(shard_number) or self._open(shard_number)).record(number)

    def _records(self, shard_number: int) -> Iterator[Record]:
        return self._open(shard_number).records()

    def join(self, values: Sequence[Any]) -> None:
        """Keep a value of each record as ``joined``."""
        self._joined = values

    @property
    def joined(self) -> Sequence[Any]:
        """The values that ``open(..., join=FILE)`` found, one per record, in their order;
        none without it.
        """
        start, stop = self._bounds()
        return self._joined[start:stop]

    @property
    def paths(self) -> list[AnyPath]:
        """Its shards' files in order, including those that it shares with other parts."""
        names = self._names
        if self._range:
            shard_numbers = _shards_between(self._find_starts(), *self._range)
            names = [names[shard_number] for shard_number in shard_numbers]
        return [self._layout.shard_path(name) for name in names]

    @property
    def compression(self) -> Compression:
        """The compression of its first shard."""
        return self._open(0).shard.compression

    @property
    def is_counted(self) -> bool:
        """Whether the manifest counts the records of every shard:
        otherwise the first ``len`` reads the shards.
        """
        return all(self._recorded)

    @property
    def counts(self) -> list[int]:
        """How many records each shard of the split has, empty ones included."""
        return [stop - start for start, stop in itertools.pairwise(self._find_starts())]

    def compare(self, shards: Iterable[int]) -> None:
        """Compare shards with their manifest without reading all of them: size, index, first and
        last record.

        Raises:
            InputError: one of them is not the recorded shard.
        """
        for shard_number in shards:
            if self._recorded[shard_number]:
                self._open(shard_number).compare()

    def _find_starts(self) -> list[int]:
        if self._starts is None:
            counts = [
                recorded.records if recorded else self._open(shard_number).count()
                for shard_number, recorded in enumerate(self._recorded)
            ]
            self._starts = list(itertools.accumulate(counts, initial=0))
        return self._starts

    def _open(self, shard_number: int) -> IndexedShard:
        shard = self._opened.get(shard_number)
        if shard is not None:
            return shard
        count = None
        if self._starts:
            start, stop = self._starts[shard_number : shard_number + 2]
            count = stop - start
        shard = IndexedShard(
            self._layout,
            self._names[shard_number],
            self._recorded[shard_number],
            count,
            check=self._check,
            conventions=Conventions(self._lists, self.first_label),
        )
        self._opened[shard_number] = shard  # of two threads that are here at once, either's
        return shard


def _find_shards(state: SetState, split: str) -> list[str]:
    """The shards of a split, then those of its growths."""
    layout = state.layout
    present = frozenset((*state.sizes, *state.orphans))
    if state.kind == "nothing" and not layout.output_dir.exists():
        raise no_folder(layout.output_dir)
    recorded = state.manifest.shards if state.manifest else ()
    counts = {**_counts_of(present), **_counts_of(recorded)}
    if not split or not isinstance(split, str):
        raise no_split_named(layout.output_dir, counts)
    state.refuse_unusable([split])
    if split not in counts:
        raise no_such_split(layout, split, counts)
    shard_names: list[str] = []
    for part in _split_and_growths(split, counts):
        shard_names += _complete(layout, part, counts[part], present)
    return shard_names


def _split_and_growths(split: str, splits: Iterable[str]) -> list[str]:
    """The split and its growths in their order; a growth that is named itself comes alone."""
    parts = [name for name in splits if grown_from(name)[0] == split]
    if split not in parts:
        return [split]
    return sorted(parts, key=grown_from)


def _complete(
    layout: Layout, split: str, counts: Collection[int], present: Collection[str]
) -> list[str]:
    """The shards of a split, all of them; raises InputError if one is missing,
    or if they are of two sets.
    """
    count = min(counts)
    if len(counts) > 1:
        patterns = [f"{split}-*-of-{count:05}" for count in sorted(counts)]
        sets = f"{len(patterns)} sets: {listed(patterns)}"
        raise InputError(
            f"{layout.output_dir} holds the {split} shards of {sets}",
            "expected the shards of one set",
            "keep the shards of one set, and move the others to another folder",
        )
    lacking = count
    for present_split, number, total in _parse_names(present):
        lacking -= (present_split, total) == (split, count) and number < count
    names = (shard_name(split, number, count) for number in range(count))
    if lacking:
        missing = next(name for name in names if name not in present)
        part = f"{lacking:,} of {number_of(count, f'{split} shard')}"
        raise missing_shards(layout, part, missing)
    return list(names)


def _parse_names(names: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Split, number and number of shards of each shard."""
    return filter(None, map(parse_shard_name, names))


def _counts_of(names: Iterable[str]) -> dict[str, set[int]]:
    """The sizes of the sets that these shards belong to, by split."""
    counts: dict[str, set[int]] = {}
    for split, number, count in _parse_names(names):
        if number < count:
            counts.setdefault(split, set()).add(count)
    return counts
