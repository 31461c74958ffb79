"""Compares two sets of shards: the records and features that differ; reads only what it needs."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.model import Progress, ShardInfo, Silent
from imagenet_prep.reading.shard import Record, Shard
from imagenet_prep.reading.values import Decoder
from imagenet_prep.state.indexes import not_done, read_written
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout, parse_shard_name
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord.framing import OVERHEAD, Framed, Index

LOOKED_INTO = 20
"""The default number of differing records to compare by feature, and of names to list."""

_SHOWN = 60  # characters of a value


class _Spot(NamedTuple):
    shard: str
    number: int
    offset: int
    length: int
    crc: int

    @property
    def words(self) -> str:
        return f"{self.shard} record {self.number}"


class DifferingRecord(Struct, frozen=True):
    """A record that both sets hold under one name, with different bytes.

    ``places`` are its shard and number in both sets. ``features`` holds both values as text, by feature; None if the
    record was not compared by feature.
    """

    name: str
    places: tuple[str, str]
    features: dict[str, tuple[str, str]] | None = None


class SplitDifference(Struct, frozen=True):
    """The differences in one split.

    Args:
        split: its name.
        shards: the number of shards in each set.
        records: the number of records in each set.
        moved: the number of equal records with another shard or number in the other set.
        only: names of records in only one set, for the first and the second set; a record without a name is listed by
            its place.
        differing: records that both sets hold with different bytes.
        other_shards: shards whose records differ, if one side is only a manifest, which can't show which records.
    """

    split: str
    shards: tuple[int, int]
    records: tuple[int, int]
    moved: int = 0
    only: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    differing: tuple[DifferingRecord, ...] = ()
    other_shards: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether both have the same records in the same places."""
        return not (self.moved or any(self.only) or self.differing or self.other_shards)


class Difference(Struct, frozen=True):
    """The differences between two sets, by split.

    ``problems`` says of each set that is not finished what it lacks: the shards that it has are compared all the same.
    """

    places: tuple[Path, Path]
    splits: tuple[SplitDifference, ...]
    problems: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether both are whole sets with the same records in the same places."""
        return not self.problems and all(split.is_same for split in self.splits)

    def as_dict(self) -> dict[str, Any]:
        """The differences as JSON-ready values."""
        splits = [{**to_builtins(split), "is_same": split.is_same} for split in self.splits]
        places = [*map(str, self.places)]
        return {"places": places, "is_same": self.is_same, "problems": [*self.problems], "splits": splits}


def diff(first: Path, second: Path, *, look_into: int = LOOKED_INTO, progress: Progress | None = None) -> Difference:
    """Compare two sets of shards, or a set and the manifest of another, record by record.

    Of a shard with the same recorded digest in both sets, size, index and last record are looked at. Otherwise names,
    lengths and CRCs are compared, from the index or from the records' headers. Only the first ``look_into`` differing
    records are read whole. verify proves that a record's bytes match its CRC.

    Raises:
        UsageError: a set does not exist.
        InputError: a set has no shards, or its framing or manifest is damaged.
    """
    progress = progress or Silent()
    both = ComparedSet.of(first), ComparedSet.of(second)
    splits = sorted({*both[0].splits, *both[1].splits})
    progress.begin("diff", len(both[0].shards) + len(both[1].shards), "shards")
    found = tuple(_compare(split, both, look_into, progress) for split in splits)
    progress.end()
    return Difference((first, second), found, (*both[0].problems, *both[1].problems))


def _compare(split: str, both: tuple[ComparedSet, ComparedSet], look_into: int, progress: Progress) -> SplitDifference:
    names = both[0].of_split(split), both[1].of_split(split)
    shared = set(names[0]) & set(names[1])
    same = {name for name in shared if both[0].digest(name) == both[1].digest(name)}
    counts = [sum(side.count(name) for name in own) for side, own in zip(both, names, strict=True)]
    progress.advance(2 * len(same))
    found = SplitDifference(split, (len(names[0]), len(names[1])), (counts[0], counts[1]))
    left = [[name for name in own if name not in same] for own in names]
    if not all(side.has_files for side in both):
        progress.advance(sum(map(len, left)))
        return replace(found, other_shards=tuple(sorted({*left[0], *left[1]})))
    rows = [dict(_rows(side, own, progress)) for side, own in zip(both, left, strict=True)]
    ours, theirs = rows
    in_both = [key for key in ours if key in theirs]
    alone = [[_name(row) for row in mine.items() if row[0] not in other] for mine, other in (rows, rows[::-1])]
    differing = (key for key in in_both if ours[key][3:] != theirs[key][3:])
    return replace(
        found,
        moved=sum(ours[key][:2] != theirs[key][:2] and ours[key][3:] == theirs[key][3:] for key in in_both),
        only=(tuple(alone[0]), tuple(alone[1])),
        differing=tuple(
            _differing(key[0], (ours[key], theirs[key]), both if number < look_into else None)
            for number, key in enumerate(differing)
        ),
    )


_Key = tuple[str, int]
"""The key of a record in the other set: its name and how often it came before; without a name, its CRC."""


def _rows(side: ComparedSet, names: Iterable[str], progress: Progress) -> Iterator[tuple[_Key, _Spot]]:
    seen: Counter[str] = Counter()
    for shard in names:
        index = side.records(shard)
        for number, (name, place) in enumerate(zip(index.names, index.places, strict=True)):
            known = name or f"\0{place[2]:08x} {place[1]}"
            yield (known, seen[known]), _Spot(shard, number, *place)
            seen[known] += 1
        progress.advance()


def _name(row: tuple[_Key, _Spot]) -> str:
    """The name of a record; without a name, its place."""
    (name, _), place = row
    return place.words if name[0] == "\0" else name


def _differing(name: str, places: tuple[_Spot, _Spot], both: tuple[ComparedSet, ComparedSet] | None) -> DifferingRecord:
    words = places[0].words, places[1].words
    if both is None:
        return DifferingRecord(name, words)
    values = []
    for side, place in zip(both, places, strict=True):
        try:
            values.append(side.record(place.shard, place.number, place.offset, place.length).parse(Decoder().example))
        except PrepError as error:
            values.append({"the record": f"{error.what}: {error.detail}"})
    nothing = object()
    features = {
        feature: (_in_words(values[0].get(feature, nothing)), _in_words(values[1].get(feature, nothing)))
        for feature in sorted({*values[0], *values[1]})
        if values[0].get(feature, nothing) != values[1].get(feature, nothing)
    }
    return DifferingRecord(name, words, features)


def _in_words(value: object) -> str:
    if type(value) is object:
        return "none"
    if isinstance(value, bytes) and len(value) > _SHOWN:
        return f"{len(value):,} bytes, SHA-256 {hashlib.sha256(value).hexdigest()[:12]}"
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, list):
        shown = ", ".join(map(_in_words, itertools.islice(value, 8)))
        return f"[{shown}{', ...' if len(value) > 8 else ''}]"
    return f"{value:.7g}" if isinstance(value, float) else str(value)


# the sets ---------------------------------------------------------------------------------------------------------


class ComparedSet(Struct, frozen=True):
    """A set of shards to compare.

    Args:
        place: the folder, or the manifest.
        shards: the size of each in bytes by name; the recorded size if there is only a manifest.
        recorded: the recorded entries of shards whose files have the recorded size, index and last record.
        homes: the set of each recorded shard.
        has_files: whether there are shards, not only a manifest.
        problems: why a set of the folder is not a whole one.
    """

    place: AnyPath
    shards: Mapping[str, int]
    recorded: Mapping[str, ShardInfo]
    homes: Mapping[str, Layout]
    has_files: bool
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, place: AnyPath) -> ComparedSet:
        """Open a folder of shards, made by any tool, or a manifest anywhere.

        Raises:
            UsageError: the place does not exist.
            InputError: it has no shards, or the manifest that is named is damaged.
        """
        if place.is_file():
            manifest = load_manifest(place)
            assert manifest is not None, "the file exists"
            return cls(place, {name: info.size for name, info in manifest.shards.items()}, manifest.shards, {}, False)
        if not place.is_dir():
            raise UsageError(f"{place} does not exist", "expected a folder of shards, or a manifest.json")
        layout = Layout(place)
        sizes = layout.find_shards()
        if not sizes:
            raise InputError(f"{place} holds no shards", "expected files such as train-00000-of-01024")
        states = [SetState.read(each) for each in layout.sets()]
        known: dict[str, ShardInfo] = {}
        homes: dict[str, Layout] = {}
        for state in states:
            infos = state.manifest.shards if state.manifest else {}
            exchanged = set(not_done(state.layout, state.manifest, infos)) if state.manifest else set[str]()
            present = {name: info for name, info in infos.items() if name not in exchanged}
            known.update(present)
            homes.update(dict.fromkeys(present, state.layout))
        problems = tuple(state.sentence for state in states if not state.is_usable and state.kind != "nothing")
        return cls(place, sizes, known, homes, True, problems)

    def of_split(self, split: str) -> list[str]:
        """The shards of one split, in order."""
        parsed = ((parse_shard_name(name), name) for name in self.shards)
        return [name for place, name in sorted((each, name) for each, name in parsed if each and each[0] == split)]

    @property
    def splits(self) -> list[str]:
        """The names of all splits."""
        return sorted({parsed[0] for parsed in map(parse_shard_name, self.shards) if parsed})

    def digest(self, name: str) -> str:
        """The digest of a shard: recorded, or computed from its framing without reading an image."""
        info = self.recorded.get(name)
        return info.digest if info else self.records(name).digest

    def count(self, name: str) -> int:
        """The number of records in a shard."""
        info = self.recorded.get(name)
        return info.records if info else len(self.records(name).lengths)

    def records(self, name: str) -> Index:
        """The records of a shard in order: from its index if that matches, otherwise from the headers.

        A record without a name has "".

        Raises:
            InputError: from some byte on, no record can be found.
        """
        layout, info = self.homes.get(name, Layout(self.place)), self.recorded.get(name)
        index = read_written(layout, info) if info else None
        return index or _by_headers(Shard.open(layout.shard_path(name)))

    def record(self, name: str, number: int, offset: int, length: int) -> Record:
        """A record by its number, its byte offset and its length in bytes with framing.

        Raises:
            InputError: its data is damaged.
        """
        shard = Shard.open(Layout(self.place).shard_path(name))
        if shard.compression != "none":
            return next(shard.sound(each) for each in shard.followed() if each.number == number)
        data = shard.intact_at(offset, offset + length)
        damaged = Framed(number, offset, shard.view[:0], 0, False)
        return shard.sound(damaged) if data is None else Record(shard, number, offset, data)


def _by_headers(shard: Shard) -> Index:
    index = Index()
    for number, (offset, data, crc) in enumerate(shard.stored()):
        index.add(len(data) + OVERHEAD, crc, _name_of(Record(shard, number, offset, data)))
    return index


def _name_of(record: Record) -> str:
    """The file name of a record's image; "" if the record has no image."""
    try:
        return record.filename
    except InputError:
        return ""
