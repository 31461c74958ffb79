"""Two sets of shards -> which records differ, and in which feature; nothing is read that need not be."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from imagenet_prep.errors import PrepError
from imagenet_prep.model import Progress, Silent
from imagenet_prep.reading.difference import Difference, DifferingRecord, SplitDifference, place_text
from imagenet_prep.reading.record_list import ComparedSet
from imagenet_prep.reading.values import Decoder

LOOKED_INTO = 20
"""How many records that differ are taken apart, and how many names are told, if nothing else is said."""

_SHOWN = 60  # characters of a value


class _Spot(NamedTuple):
    shard: str
    number: int
    offset: int
    length: int
    crc: int

    @property
    def words(self) -> str:
        return place_text(self.shard, self.number)


def diff(first: Path, second: Path, *, look_into: int = LOOKED_INTO, progress: Progress | None = None) -> Difference:
    """Compare two sets of shards, or a set and the manifest of another, record by record.

    A shard whose digest is on record, or follows from its framing, as that of the other set is not opened. Of others
    names, lengths and CRCs are compared: as indexes have them, else as the headers of the records. Just the first
    ``look_into`` records that differ are read whole. That the bytes of a record are what its CRC says is for verify.

    Raises:
        UsageError: one of the two is not there.
        InputError: one holds no shards, or its framing or manifest is damaged.
    """
    progress = progress or Silent()
    both = ComparedSet.of(first), ComparedSet.of(second)
    splits = sorted({*both[0].splits, *both[1].splits})
    progress.begin("diff", len(both[0].shards) + len(both[1].shards), "shards")
    found = []
    for split in splits:
        found.append(_compare(split, both, look_into, progress))
    progress.end()
    return Difference((first, second), tuple(found))


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
    differing = (key for key in in_both if ours[key][3:] != theirs[key][3:])
    return replace(
        found,
        moved=sum(ours[key][:2] != theirs[key][:2] and ours[key][3:] == theirs[key][3:] for key in in_both),
        only=(_told(ours, theirs), _told(theirs, ours)),
        only_places=(_places(ours, theirs), _places(theirs, ours)),
        differing=tuple(
            _differing(key[0], (ours[key], theirs[key]), both if number < look_into else None)
            for number, key in enumerate(differing)
        ),
    )


_Key = tuple[str, int]
"""What a record is found by in the other set: its name, and how often that came before; without a name its CRC."""


def _rows(side: ComparedSet, names: Iterable[str], progress: Progress) -> Iterator[tuple[_Key, _Spot]]:
    seen: Counter[str] = Counter()
    for shard in names:
        index = side.records(shard)
        for number, (name, place) in enumerate(zip(index.names, index.places, strict=True)):
            known = name or f"\0{place[2]:08x} {place[1]}"
            yield (known, seen[known]), _Spot(shard, number, *place)
            seen[known] += 1
        progress.advance()


def _told(ours: dict[_Key, _Spot], theirs: dict[_Key, _Spot]) -> tuple[str, ...]:
    """What just one side has, by name or place."""
    return tuple(place.words if key[0][0] == "\0" else key[0] for key, place in ours.items() if key not in theirs)


def _places(ours: dict[_Key, _Spot], theirs: dict[_Key, _Spot]) -> tuple[str, ...]:
    return tuple(place.words for key, place in ours.items() if key not in theirs)


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
