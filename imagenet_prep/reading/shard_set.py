"""ShardSet: the finished shards of one split as one sequence of Records."""

from __future__ import annotations

import copy
import errno
import itertools
import operator
import os
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex, TypeVar, overload

from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.reading.indexed import IndexedShard, find_recorded
from imagenet_prep.reading.left_out import MappedRecords, OnDamagedRecord
from imagenet_prep.reading.shard import Record, remedy
from imagenet_prep.reading.values import Conventions, any_number
from imagenet_prep.state.manifest import ILSVRC2012, find_set
from imagenet_prep.state.numbering import Numbering
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout, grown_from, parse_shard_name, shard_name
from imagenet_prep.storage.location import AnyPath, Location, locate
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.text import number_of
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
        self._range: tuple[int, int] | None = (
            None  # of a part: the numbers of its records in the whole
        )
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
    def _record(self, which: int, number: int) -> Record:
        """A record by the number of its shard, and its own number there."""

    @abstractmethod
    def _records(self, which: int) -> Iterator[Record]:
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
            raise ValueError(f"rank {rank} is not one of the {world} from 0 to {world - 1}")
        part, (first, last) = copy.copy(self), self._bounds()
        part._opened = self._opened
        part._range = (
            first + (last - first) * rank // world,
            first + (last - first) * (rank + 1) // world,
        )
        return part

    def __len__(self) -> int:
        first, last = self._bounds()
        return last - first

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
        first, last = self._range or (0, starts[-1])
        at = number + (last if number < 0 else first)
        if not first <= at < last:
            raise IndexError(f"{self!r} has no record {number}: it holds {last - first:,}")
        which = bisect_right(starts, at) - 1
        return self._record(which, at - starts[which])

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
            for which in range(self._count_shards()):
                yield from self._records(which)
            return
        (first, last), starts = self._range, self._find_starts()
        for which in range(bisect_right(starts, first) - 1, bisect_left(starts, last)):
            start, stop = (
                min(max(each, starts[which]), starts[which + 1]) for each in (first, last)
            )
            if (start, stop) == (starts[which], starts[which + 1]):
                yield from self._records(which)
            else:
                yield from (self._record(which, at - starts[which]) for at in range(start, stop))

    @property
    def starts(self) -> list[int]:
        """The number of the first record of each shard with a part in this set, then the total."""
        first, last = self._bounds()
        inner = [start - first for start in self._find_starts() if first < start < last]
        return [0, *inner, last - first]

    def _bounds(self) -> tuple[int, int]:
        return self._range or (0, self._find_starts()[-1])


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
        self._layout = find_set(Layout(locate(data_dir)), split)
        self._check = check
        self._joined: Sequence[Any] = ()
        self._opened: dict[int, IndexedShard] = {}
        state = SetState.read(self._layout)
        self._names, manifest = _find(state, split), state.manifest
        self._recorded = [find_recorded(manifest, name) for name in self._names]
        self._lists = any_number(manifest.dataset.features if manifest else {})
        self._numbering = Numbering.find(manifest)
        self.is_imagenet = manifest is not None and manifest.dataset.kind == ILSVRC2012
        totals = manifest.totals if manifest else {}
        self.unlabelled = sum(
            total.unlabelled for part, total in totals.items() if grown_from(part)[0] == split
        )

    def __repr__(self) -> str:
        return self._described(str(self._layout.output_dir))

    def _count_shards(self) -> int:
        return len(self._names)

    def _record(self, which: int, number: int) -> Record:
        return (self._opened.get(which) or self._open(which)).record(number)

    def _records(self, which: int) -> Iterator[Record]:
        return self._open(which).records()

    def join(self, values: Sequence[Any]) -> None:
        """Keep a value of each record as ``joined``."""
        self._joined = values

    @property
    def joined(self) -> Sequence[Any]:
        """The values that ``open(..., join=FILE)`` found, one per record, in their order;
        none without it.
        """
        first, last = self._bounds()
        return self._joined[first:last]

    @property
    def paths(self) -> list[AnyPath]:
        """Its shards' files in order, including those that it shares with other parts."""
        names = self._names
        if self._range:
            (first, last), starts = self._range, self._find_starts()
            names = names[max(bisect_right(starts, first) - 1, 0) : bisect_left(starts, last)]
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
        for which in shards:
            if self._recorded[which]:
                self._open(which).compare()

    def _find_starts(self) -> list[int]:
        if self._starts is None:
            counts = [
                each.records if each else self._open(k).count()
                for k, each in enumerate(self._recorded)
            ]
            self._starts = list(itertools.accumulate(counts, initial=0))
        return self._starts

    def _open(self, which: int) -> IndexedShard:
        shard = self._opened.get(which)
        if shard is None:  # two threads may be here at once: either map will do
            name, recorded, starts = self._names[which], self._recorded[which], self._starts
            count = starts[which + 1] - starts[which] if starts else None
            conventions = Conventions(self._lists, self.first_label)
            shard = IndexedShard(
                self._layout, name, recorded, count, check=self._check, conventions=conventions
            )
            self._opened[which] = shard
        return shard


def _find(state: SetState, split: str) -> list[str]:
    """The shards of a split."""
    layout, present = state.layout, frozenset((*state.sizes, *state.orphans))
    if state.kind == "nothing" and not layout.output_dir.exists():
        raise unreadable(
            layout.output_dir, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        )
    known = {**_counts_of(present), **_counts_of(state.manifest.shards if state.manifest else ())}
    if not split or not isinstance(split, str):
        there = f"there are {', '.join(sorted(known)) or 'no shards'} in {layout.output_dir}"
        raise UsageError(
            "open needs the name of a split",
            there,
            f"imagenet_prep.open({str(layout.output_dir)!r}, 'train')",
        )
    state.refuse_unusable([split])
    parts = sorted((each for each in known if grown_from(each)[0] == split), key=grown_from)
    if split not in known:
        detail = f"expected files such as {shard_name(split, 0, 1024)}"
        detail += f"; found: {', '.join(sorted(known))}" if known else ""
        hint = "name the folder and the split that hold them"
        raise InputError(f"no {split} shards in {layout.output_dir}", detail, hint)
    parts = parts if split in parts else [split]
    return [name for part in parts for name in _complete(layout, part, known[part], present)]


def _complete(
    layout: Layout, split: str, counts: Collection[int], present: Collection[str]
) -> list[str]:
    """The shards of a split, all of them; raises InputError if one is missing,
    or if they are of two sets.
    """
    count, *others = sorted(counts)
    if others:
        sets = f"shards of sets of {count} and {others[0]}"
        raise InputError(
            f"{layout.output_dir} holds {split} {sets}",
            "expected those of one set",
            "move the others away",
        )
    lacking = count - sum(
        parsed[::2] == (split, count) and parsed[1] < count for parsed in _parsed(present)
    )
    names = (shard_name(split, k, count) for k in range(count))
    if lacking:
        first = next(name for name in names if name not in present)
        what = f"{layout.output_dir} lacks {lacking:,} of {number_of(count, f'{split} shard')}"
        raise InputError(what, f"the first missing one: {first}", remedy(layout.shard_path(first)))
    return list(names)


def _parsed(names: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    return filter(None, map(parse_shard_name, names))


def _counts_of(names: Iterable[str]) -> dict[str, set[int]]:
    """The sizes of the sets that these shards belong to, by split."""
    counts: dict[str, set[int]] = {}
    for split, index, count in _parsed(names):
        if index < count:
            counts.setdefault(split, set()).add(count)
    return counts
