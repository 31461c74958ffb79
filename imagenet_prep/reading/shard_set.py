"""ShardSet: the finished shards of one split as one sequence of Records."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import math
import operator
import os
import tempfile
import time
import warnings
from abc import abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, SupportsIndex, TypeVar, overload

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.reading.shard import Record, Shard, remedy
from imagenet_prep.state.manifest import Manifest, find_set, load_manifest
from imagenet_prep.storage.files import find_plain, names_in
from imagenet_prep.storage.layout import Layout, grown_from, parse_shard_name, shard_name
from imagenet_prep.storage.location import AnyPath, Location, local_or_none, locate
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.compression import Compression
from imagenet_prep.tfrecord.framing import decode_index, encode_index

_S = TypeVar("_S", bound="RecordSequence")


class RecordSequence(Sequence[Record]):
    """The records of one split's shards, in order; each kind of set defines how it reads a record.

    ``split`` is the prefix of its shards' names; ``first_label`` the label of its first class.
    """

    def __init__(self, split: str) -> None:
        self.split = split
        self.first_label = 1
        self._starts: list[int] | None = None
        self._range: tuple[int, int] | None = None  # of a part: the numbers of its records in the whole
        self._opened: dict[int, Any] = {}  # maps of files, each opened on first use

    @abstractmethod
    def _count_shards(self) -> int:
        """The number of its shards."""

    @abstractmethod
    def _find_starts(self) -> list[int]:
        """The number of each shard's first record in the set, then the total; kept in ``_starts``."""

    @abstractmethod
    def _record(self, which: int, number: int) -> Record:
        """A record by the number of its shard, and its own number there."""

    @abstractmethod
    def _records(self, which: int) -> Iterator[Record]:
        """All records of a shard in order."""

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the maps."""
        return {**self.__dict__, "_opened": {}}

    def _described(self, place: str) -> str:
        part = f"[{self._range[0]:_}:{self._range[1]:_}]" if self._range else ""
        return f"{type(self).__name__}({place!r}, {self.split!r}){part}"

    def shard(self: _S, rank: int, world: int) -> _S:
        """The part of one of ``world`` readers: consecutive records, split evenly (sizes differ by one at most).

        Raises:
            ValueError: ``rank`` is not one of 0 to ``world`` - 1.
        """
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} is not one of the {world} from 0 to {world - 1}")
        part, (first, last) = copy.copy(self), self._bounds()
        part._opened = self._opened
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
        """Several records by their numbers, as PyTorch's DataLoader requests a batch."""
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
        """The number of the first record of each shard with a part in this set, then the total."""
        first, last = self._bounds()
        inner = [start - first for start in self._find_starts() if first < start < last]
        return [0, *inner, last - first]

    def _bounds(self) -> tuple[int, int]:
        return self._range or (0, self._find_starts()[-1])


def first_label_of(classes: Mapping[str, int] | None, settings: Mapping[str, Any]) -> int:
    """The label of the first class, from a manifest: 1 as in Inception's records, unless it says otherwise."""
    return first_label_among(classes.values()) if classes else int(settings.get("first_label", 1))


def first_label_among(labels: Collection[int]) -> int:
    """The label of the first class of a part of ImageNet: 1 with official labels, whether the part has it or not."""
    first = min(labels)
    return first if set(labels) == set(range(first, first + len(labels))) else 1


class ShardSet(RecordSequence):
    """The records of one split: in order by iteration, or any of them by its number; each CRC is checked.

    ``[i]`` is a Record; ``[i:j]`` and ``[[i, j, ...]]`` are lists of them. So a ShardSet is a map-style data set of
    PyTorch and a RandomAccessDataSource of Grain.

    A plain shard's records are located by its index, if a matching one exists. Otherwise all headers are read once, and
    their positions cached in the user's cache folder. A record of a compressed shard requires inflating everything
    before it: iterate over those. The number of records comes from the manifest; sets of other makers are counted at
    the first ``len`` or ``[]``.

    ``split`` is the prefix of its shards' names; ``first_label`` the label of its first class from the manifest, or 1.

    Shards are mapped on first use, and no file stays open. Several threads can share a set, also after a fork. A
    pickled set is small, and maps its shards again after unpickling.

    Raises:
        IndexError: no record has this number.
        InputError: a shard or a record is damaged, or a shard holds more or fewer records than recorded; the error
            names the file, and for a record its number there and its byte.
    """

    def __init__(self, data_dir: str | os.PathLike[str] | Location, split: str, *, check: bool = True) -> None:
        super().__init__(split)
        self._layout = find_set(Layout(locate(data_dir)), split)
        self._check = check
        self._joined: Sequence[Any] = ()
        self._opened: dict[int, _Indexed] = {}
        manifest = load_manifest(self._layout.manifest_path)
        self._names, self._counts = _find(self._layout, split, manifest)
        if manifest is not None:
            self.first_label = first_label_of(manifest.dataset.classes, manifest.settings)

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
        """The values that ``open(..., join=FILE)`` found, one per record, in their order; none without it."""
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
        return self._open(0)._shard.compression

    def _find_starts(self) -> list[int]:
        if self._starts is None:
            counts = [self._open(k).count() if count is None else count for k, count in enumerate(self._counts)]
            self._counts, self._starts = list(counts), list(itertools.accumulate(counts, initial=0))
        return self._starts

    def _open(self, which: int) -> _Indexed:
        found = self._opened.get(which)
        if found is None:  # two threads may be here at once: either map will do
            name = self._names[which]
            shard = Shard.open(self._layout.shard_path(name))
            index = self._layout.index_path(name)
            found = self._opened[which] = _Indexed(shard, index, self._counts[which], check=self._check)
        return found


def _find(layout: Layout, split: str, manifest: Manifest | None) -> tuple[list[str], list[int | None]]:
    """The shards of a split, and the number of records in each, if the manifest says so."""
    recorded = {name: info.records for name, info in manifest.shards.items()} if manifest else {}
    try:
        present = frozenset(names_in(layout.output_dir))
    except OSError as error:
        raise unreadable(layout.output_dir, error) from error
    known = {**_counts_of(present), **_counts_of(recorded)}
    if not split or not isinstance(split, str):
        there = f"there are {', '.join(sorted(known)) or 'no shards'} in {layout.output_dir}"
        raise UsageError(
            "open needs the name of a split", there, f"imagenet_prep.open({str(layout.output_dir)!r}, 'train')"
        )
    parts = sorted((each for each in known if grown_from(each)[0] == split), key=grown_from)
    if split not in known:
        detail = f"expected files such as {shard_name(split, 0, 1024)}"
        detail += f"; found: {', '.join(sorted(known))}" if known else ""
        hint = "name the folder and the split that hold them"
        raise InputError(f"no {split} shards in {layout.output_dir}", detail, hint)
    found = [
        name
        for part in (parts if split in parts else [split])
        for name in _complete(layout, part, known[part], present)
    ]
    return found, [recorded.get(name) for name in found]


def _complete(layout: Layout, split: str, counts: Collection[int], present: Collection[str]) -> list[str]:
    """The shards of a split, all of them; raises InputError if one is missing, or if they are of two sets."""
    count, *others = sorted(counts)
    if others:
        sets = f"shards of sets of {count} and {others[0]}"
        raise InputError(
            f"{layout.output_dir} holds {split} {sets}", "expected those of one set", "move the others away"
        )
    lacking = count - sum(parsed[::2] == (split, count) and parsed[1] < count for parsed in _parsed(present))
    names = (shard_name(split, k, count) for k in range(count))
    if lacking:
        first = next(name for name in names if name not in present)
        what = f"{layout.output_dir} lacks {lacking:,} of {number_of(count, f'{split} shard')}"
        is_begun = not layout.manifest_path.exists() and layout.journal_path.exists()
        todo = "run the same imagenet-prep convert again" if is_begun else remedy(layout.shard_path(first))
        raise InputError(what, f"the first missing one: {first}", todo)
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


_warned: set[str] = set()


def _warn_of_cost(shard: Shard) -> None:
    """Warn once per process and folder about the cost of a record of a compressed shard."""
    folder = str(shard.path.parent)
    if folder in _warned:
        return
    _warned.add(folder)
    text = f"{folder} is compressed with {shard.compression}: each [i] inflates all records before it; iterate"
    warnings.warn(f"{text} over the set, or write it without compression", stacklevel=5)


_CHECK_SECONDS = 1.0
"""How often records by number check that their shard was not replaced: a check costs as much as a record."""


class _Indexed:
    """A shard and the positions of its records, which are found on first use."""

    def __init__(self, shard: Shard, index: AnyPath, count: int | None, *, check: bool) -> None:
        self._shard = shard
        self._index = index
        self._count = count
        self._checks_data = check
        self._offsets: array[int] | None = None
        self._checked = -math.inf

    def count(self) -> int:
        """The number of its records."""
        return len(self._find_offsets()) - 1

    def records(self) -> Iterator[Record]:
        """All of its records in order."""
        self._check((yield from self._shard.records(check=self._checks_data)))

    def record(self, number: int) -> Record:
        """One of the records, by its number in the shard."""
        offsets, shard = self._offsets or self._find_offsets(), self._shard
        if (now := time.monotonic()) - self._checked > _CHECK_SECONDS:
            shard.refuse_replaced()
            self._checked = now
        if shard.compression == "none":
            data = shard.intact_at(offsets[number], offsets[number + 1], check=self._checks_data)
            if data is not None:
                return Record(shard, number, offsets[number], data)
        else:
            _warn_of_cost(shard)
        framed = next(itertools.islice(shard.followed(), number, None), None)
        if framed is None or shard.compression == "none":  # the index is of another shard, or the record is damaged
            self._offsets = self._follow()
        assert framed is not None, "a record that was followed"
        return shard.sound(framed)

    def _find_offsets(self) -> array[int]:
        if self._offsets is None:
            own = None
            with contextlib.suppress(InputError):  # verify reports a bad index: here it only saves time
                own = decode_index(find_plain(self._index) or b"-")
            known = self._fitting(own) or self._fitting(_cached_offsets(self._shard.path))
            self._offsets = known or self._follow()
            self._count = len(self._offsets) - 1
        return self._offsets

    def _fitting(self, offsets: array[int] | None) -> array[int] | None:
        """The offsets of an index, unless they can't be those of the shard."""
        if offsets is None or self._count not in (None, len(offsets) - 1):
            return None
        fits = self._shard.compression != "none" or offsets[-1] == len(self._shard.view)
        return offsets if fits else None

    def _follow(self) -> array[int]:
        offsets = self._shard.offsets()
        self._check(len(offsets) - 1)
        _keep_offsets(self._shard.path, offsets)
        return offsets

    def _check(self, found: int) -> None:
        """Refuse a shard whose number of records differs from the recorded one."""
        if self._count not in (None, found):
            what = f"{self._shard.path} holds {number_of(found, 'record')}"
            raise InputError(what, f"expected {self._count:,} by its manifest or its index", remedy(self._shard.path))


# indexes of other makers' shards ---------------------------------------------------------------------------------
#
# They are made on first use, and kept in the user's cache folder: nothing is written next to shards of other makers. A
# cached index belongs to one state of a file: path, size and modification time are in its name. It saves time and is
# not trusted: reading a record compares its framing. So it does not have to be durable either.


def _cached_offsets(shard: AnyPath) -> array[int] | None:
    """The start of each record of a shard and the end of the last one, in bytes; None if they are not cached."""
    local = local_or_none(shard)
    if local is None:
        return None
    try:
        return decode_index(_cache_path(local).read_bytes())
    except OSError:
        return None


def _keep_offsets(shard: AnyPath, offsets: array[int]) -> None:
    """Cache the offsets, except those of remote shards; a full disk or a missing permission is no error."""
    local = local_or_none(shard)
    if local is None:
        return
    content = encode_index(offsets[:-1], (stop - start for start, stop in pairwise(offsets)))
    with contextlib.suppress(OSError):
        path = _cache_path(local)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(content)
                file.flush()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise


def _cache_path(shard: Path) -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    folder = Path(home) if home and Path(home).is_absolute() else Path("~/.cache").expanduser()
    status = shard.stat()
    state = f"{shard.resolve()}\n{status.st_size}\n{status.st_mtime_ns}".encode("utf-8", "surrogateescape")
    return folder / "imagenet-prep" / "index" / f"{hashlib.sha256(state).hexdigest()[:32]}.idx"
