"""ShardSet: the finished shards of one split as one sequence of Records."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import operator
import os
import tempfile
import warnings
from abc import abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, SupportsIndex, TypeVar, overload

from imagenet_prep.errors import InputError
from imagenet_prep.reading.shard import Record, Shard, remedy
from imagenet_prep.state.manifest import Manifest, load_manifest
from imagenet_prep.storage.files import find_plain, names_in
from imagenet_prep.storage.layout import Layout, parse_shard_name, shard_name
from imagenet_prep.storage.location import AnyPath, Location, local_or_none, locate
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.compression import Compression
from imagenet_prep.tfrecord.framing import decode_index, encode_index

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


class ShardSet(RecordSequence):
    """The records of one split: in order by iteration, any of them by its number, each with its CRC checked.

    ``[i]`` is a Record; ``[i:j]`` and ``[[i, j, ...]]`` are lists of them. So it is a map-style data set of PyTorch
    and a RandomAccessDataSource of Grain.

    A plain shard's records are found by its index, where there is one that fits it, else by the headers of all its
    records; what they say is kept in the user's cache folder. Of a compressed shard all that precedes a record has to
    be inflated before it: iterate over those. How many records there are is known from the manifest; of other makers'
    sets the first ``len`` or ``[]`` finds out.

    ``split`` is what its shards' names begin with; ``first_label`` the label of its first class, as the manifest says,
    or 1.

    Shards are mapped when they are first read, and no file stays open. A set can be used by several threads and after a
    fork; pickled, it is small, and maps its shards again where it is unpickled.

    Raises:
        IndexError: there is no record of this number.
        InputError: a shard or a record is damaged, or a shard holds more or fewer records than were counted; the
            error names the file, and, of a record, its number there and its byte.
    """

    def __init__(self, data_dir: str | os.PathLike[str] | Location, split: str, *, check: bool = True) -> None:
        super().__init__(split)
        self._layout = Layout(locate(data_dir))
        self._check = check
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

    @property
    def paths(self) -> list[AnyPath]:
        """Its shards' files in order, those that it shares with other parts among them."""
        names = self._names
        if self._range:
            (first, last), starts = self._range, self._find_starts()
            names = names[max(bisect_right(starts, first) - 1, 0) : bisect_left(starts, last)]
        return [self._layout.shard_path(name) for name in names]

    @property
    def compression(self) -> Compression:
        """That of its first shard."""
        return self._open(0)._shard.compression

    def _find_starts(self) -> list[int]:
        if self._starts is None:
            counts = [self._open(k).count() if count is None else count for k, count in enumerate(self._counts)]
            self._counts, self._starts = list(counts), list(itertools.accumulate(counts, initial=0))
        return self._starts

    def _open(self, which: int) -> _Indexed:
        found = self._opened.get(which)
        if found is None:  # two threads may come here at once: either's map will do
            name = self._names[which]
            shard = Shard.open(self._layout.shard_path(name))
            index = self._layout.index_path(name)
            found = self._opened[which] = _Indexed(shard, index, self._counts[which], check=self._check)
        return found


def _find(layout: Layout, split: str, manifest: Manifest | None) -> tuple[list[str], list[int | None]]:
    """The shards of a split, and how many records each holds, where the manifest says so."""
    recorded = {name: info.records for name, info in manifest.shards.items()} if manifest else {}
    try:
        present = frozenset(names_in(layout.output_dir))
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
    lacking = count - sum(parsed[::2] == (split, count) and parsed[1] < count for parsed in _parsed(present))
    names = (shard_name(split, k, count) for k in range(count))
    if lacking:
        first = next(name for name in names if name not in present)
        what = f"{layout.output_dir} lacks {lacking:,} of {number_of(count, f'{split} shard')}"
        is_begun = manifest is None and layout.journal_path.exists()
        todo = "run the same imagenet-prep convert again" if is_begun else remedy(layout.shard_path(first))
        raise InputError(what, f"the first one that is missing: {first}", todo)
    found = list(names)
    return found, [recorded.get(name) for name in found]


def _parsed(names: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    return filter(None, map(parse_shard_name, names))


def _counts_of(names: Iterable[str]) -> dict[str, set[int]]:
    """Of how many shards the sets are to which shards of these names belong, by split."""
    counts: dict[str, set[int]] = {}
    for split, index, count in _parsed(names):
        if index < count:
            counts.setdefault(split, set()).add(count)
    return counts


def _warn_of_cost(shard: Shard) -> None:
    """Say once a process and place what a record of a compressed shard costs."""
    text = f"{shard.path.name} is compressed with {shard.compression}: each [i] inflates all records before it; iterate"
    warnings.warn(f"{text} over the set, or write it without compression", stacklevel=5)


class _Indexed:
    """A shard, and where its records are: that is found out when it is first asked for."""

    def __init__(self, shard: Shard, index: AnyPath, count: int | None, *, check: bool) -> None:
        self._shard = shard
        self._index = index
        self._count = count
        self._checks_data = check
        self._offsets: array[int] | None = None

    def count(self) -> int:
        """The number of its records."""
        return len(self._find_offsets()) - 1

    def records(self) -> Iterator[Record]:
        """All of them in order."""
        self._check((yield from self._shard.records(check=self._checks_data)))

    def record(self, number: int) -> Record:
        """One of the records, by its number in the shard."""
        offsets, shard = self._offsets or self._find_offsets(), self._shard
        if shard.compression == "none":
            data = shard.intact_at(offsets[number], offsets[number + 1], check=self._checks_data)
            if data is not None:
                return Record(shard, number, offsets[number], data)
        else:
            _warn_of_cost(shard)
        framed = next(itertools.islice(shard.followed(), number, None), None)
        if framed is None or shard.compression == "none":  # the index is not the shard's own, or the record is damaged
            self._offsets = self._follow()
        assert framed is not None, "a record that was followed"
        return shard.sound(framed)

    def _find_offsets(self) -> array[int]:
        if self._offsets is None:
            own = None
            with contextlib.suppress(InputError):  # verify finds fault with an index: here it only saves time
                own = decode_index(find_plain(self._index) or b"-")
            known = self._fitting(own) or self._fitting(_cached_offsets(self._shard.path))
            self._offsets = known or self._follow()
            self._count = len(self._offsets) - 1
        return self._offsets

    def _fitting(self, offsets: array[int] | None) -> array[int] | None:
        """What an index says, unless it can't be that of the shard."""
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
        """Refuse a shard that holds another number of records than were counted."""
        if self._count not in (None, found):
            what = f"{self._shard.path} holds {number_of(found, 'record')}"
            raise InputError(what, f"expected {self._count:,} by its manifest or its index", remedy(self._shard.path))


# indexes of other makers' shards ---------------------------------------------------------------------------------
#
# They are made when they are first needed, and kept in the user's cache folder: nothing is written beside shards that
# are not ours. A cached index is that of one state of a file: its place, size and time of change are in the name. It
# saves time and is not trusted: whoever reads a record compares its framing. So it need not be durable either.


def _cached_offsets(shard: AnyPath) -> array[int] | None:
    """Where each record of a shard begins and the last one ends, in bytes; None if that is not known."""
    local = local_or_none(shard)
    if local is None:
        return None
    try:
        return decode_index(_cache_path(local).read_bytes())
    except OSError:
        return None


def _keep_offsets(shard: AnyPath, offsets: array[int]) -> None:
    """Keep the offsets in the cache, but not those of remote shards; no space, or no right to write, is no error."""
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
