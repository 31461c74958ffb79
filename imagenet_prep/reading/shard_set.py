"""ShardSet: the finished shards of one split as one sequence of Records."""

from __future__ import annotations

import contextlib
import itertools
import operator
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, SupportsIndex, overload

from imagenet_prep.errors import InputError, Phrase
from imagenet_prep.reading.shard import Record, Shard, remedy
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.layout import Layout, parse_shard_name, shard_name
from imagenet_prep.storage.plain import find_plain
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord.framing import Framed
from imagenet_prep.tfrecord.index import decode_index


def open(data_dir: str | os.PathLike[str], split: str) -> ShardSet:
    """The records of one split of a finished set, whoever made it: ``open("/data/imagenet", "train")``.

    Args:
        data_dir: the folder that holds the shards.
        split: what the names of its shards begin with: "train" for train-00000-of-01024.

    Raises:
        InputError: the folder can't be read, has no shards of this split or those of two sets, or lacks a shard.
    """
    return ShardSet(data_dir, split)


class ShardSet(Sequence[Record]):
    """The records of one split: in order by iteration, any of them by its number, each with its CRC checked.

    A plain shard's records are found by its index, where there is one that fits it, else by the headers of all its
    records. Of a compressed shard all that precedes a record has to be inflated before it: iterate over those. How
    many records there are is known from the manifest; of other makers' sets the first ``len`` or ``[]`` finds out.

    Shards are mapped when they are first read, and no file stays open. A set can be used by several threads and after a
    fork; pickled, it is small, and maps its shards again where it is unpickled.

    Raises:
        IndexError: there is no record of this number.
        InputError: a shard or a record is damaged, or a shard holds more or fewer records than were counted; the
            error names the file, and, of a record, its number there and its byte.
    """

    def __init__(self, data_dir: str | os.PathLike[str], split: str) -> None:
        self.split = split
        self._layout = Layout(Path(data_dir))
        self._names, self._counts = _find(self._layout, split)
        self._starts: list[int] | None = None
        self._opened: dict[int, _Indexed] = {}

    def __repr__(self) -> str:
        return f"ShardSet({str(self._layout.output_dir)!r}, {self.split!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the maps."""
        return {**self.__dict__, "_opened": {}}

    def __len__(self) -> int:
        return self._find_starts()[-1]

    @overload
    def __getitem__(self, index: SupportsIndex) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        starts, number = self._find_starts(), operator.index(index)
        number += starts[-1] if number < 0 else 0
        if not 0 <= number < starts[-1]:
            raise IndexError(f"{self!r} has no record {index}: it holds {starts[-1]:,}")
        which = bisect_right(starts, number) - 1
        return self._open(which).record(number - starts[which])

    def __iter__(self) -> Iterator[Record]:
        for which in range(len(self._names)):
            yield from self._open(which)

    def _find_starts(self) -> list[int]:
        """The number of each shard's first record within the set, and behind them that of all records."""
        if self._starts is None:
            counts = [len(self._open(k)) if count is None else count for k, count in enumerate(self._counts)]
            self._counts, self._starts = list(counts), list(itertools.accumulate(counts, initial=0))
        return self._starts

    def _open(self, which: int) -> _Indexed:
        found = self._opened.get(which)
        if found is None:  # two threads may come here at once: either's map will do
            name = self._names[which]
            shard = Shard.open(self._layout.shard_path(name))
            found = self._opened[which] = _Indexed(shard, self._layout.index_path(name), self._counts[which])
        return found


def _find(layout: Layout, split: str) -> tuple[list[str], list[int | None]]:
    """The shards of a split, and how many records each holds, where the manifest says so."""
    manifest = load_manifest(layout.manifest_path)
    recorded = {name: info.records for name, info in manifest.shards.items()} if manifest else {}
    try:
        present = frozenset(os.listdir(layout.output_dir))
    except OSError as error:
        raise unreadable(layout.output_dir, error) from error
    known = {**_counts_of(present), **_counts_of(recorded)}
    if split not in known:
        detail = f"expected files such as {shard_name(split, 0, 1024)}"
        detail += f"; there are those of {', '.join(sorted(known))}" if known else ""
        hint = "name the folder and the split that hold them"
        raise InputError(f"no {split} shards in {layout.output_dir}", detail, hint)
    count, *others = sorted(known[split])
    if others:
        sets = f"shards of sets of {count} and {others[0]}"
        raise InputError(
            f"{layout.output_dir} holds {split} {sets}", "expected those of one set", "move the others away"
        )
    names = [shard_name(split, k, count) for k in range(count)]
    missing = [name for name in names if name not in present]
    if missing:
        what = f"{layout.output_dir} lacks {len(missing):,} of {number_of(count, f'{split} shard')}"
        is_begun = manifest is None and layout.journal_path.exists()
        todo = Phrase("run the same {convert} again") if is_begun else remedy(layout.shard_path(missing[0]))
        raise InputError(what, f"the first one that is missing: {missing[0]}", todo)
    return names, [recorded.get(name) for name in names]


def _counts_of(names: Iterable[str]) -> dict[str, set[int]]:
    """Of how many shards the sets are to which shards of these names belong, by split."""
    counts: dict[str, set[int]] = {}
    for split, index, count in filter(None, map(parse_shard_name, names)):
        if index < count:
            counts.setdefault(split, set()).add(count)
    return counts


class _Indexed:
    """A shard, and where its records are: that is found out when it is first asked for."""

    def __init__(self, shard: Shard, index: Path, count: int | None) -> None:
        self._shard = shard
        self._index = index
        self._count = count
        self._offsets: array[int] | None = None

    def __len__(self) -> int:
        return len(self._find_offsets()) - 1

    def __iter__(self) -> Iterator[Record]:
        count = 0
        for record in self._shard:
            yield record
            count += 1
        self._check(count)

    def record(self, number: int) -> Record:
        """One of the records, by its number in the shard."""
        found = self._at(number, self._find_offsets())
        if found is None:  # the index is not this shard's own, or a record is damaged
            self._offsets = self._follow()
            found = self._at(number, self._offsets)
        assert found is not None, "a record that was followed"
        return self._shard.sound(found)

    def _at(self, number: int, offsets: array[int]) -> Framed | None:
        if self._shard.compression != "none":
            return next(itertools.islice(self._shard.followed(), number, None), None)
        return tfrecord.record_at(self._shard.view, number, offsets[number], offsets[number + 1])

    def _find_offsets(self) -> array[int]:
        if self._offsets is None:
            self._offsets = self._read_index() or self._follow()
            self._count = len(self._offsets) - 1
        return self._offsets

    def _read_index(self) -> array[int] | None:
        """What the index says, or None if there is none that fits the shard."""
        offsets = None
        with contextlib.suppress(InputError):  # verify finds fault with an index: here it only saves time
            offsets = decode_index(find_plain(self._index) or b"-")
        if offsets is None or self._count not in (None, len(offsets) - 1):
            return None
        fits = self._shard.compression != "none" or offsets[-1] == len(self._shard.view)
        return offsets if fits else None

    def _follow(self) -> array[int]:
        offsets = self._shard.offsets()
        self._check(len(offsets) - 1)
        return offsets

    def _check(self, found: int) -> None:
        """Refuse a shard that holds another number of records than were counted."""
        if self._count not in (None, found):
            what = f"{self._shard.path} holds {number_of(found, 'record')}"
            raise InputError(what, f"expected {self._count:,} by its manifest or its index", remedy(self._shard.path))
