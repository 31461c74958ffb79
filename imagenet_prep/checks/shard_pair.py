"""ShardPair: compares the shard of one name in two sets,
the task of one worker, and returns a PairReport.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from imagenet_prep.checks.matching import FIRST, SECOND
from imagenet_prep.model import Portable
from imagenet_prep.reading.compared_set import ComparedSet, RecordSpan
from imagenet_prep.tfrecord import crc32c
from imagenet_prep.tfrecord.content import (
    FEATURE_LISTS,
    FEATURES,
    Key,
    content_digest,
    differing_keys,
)
from imagenet_prep.tfrecord.example import ExampleError
from imagenet_prep.tfrecord.framing import Index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Both = tuple[ComparedSet, ComparedSet]

THE_RECORD = "the record"
"""Stands for the features of a record that can't be read."""


class Columns(NamedTuple):
    """Records of one shard: number, key of the name (0:
    no name), length and CRC in one number, offset and length.
    """

    numbers: NDArray[np.uint32]
    names: NDArray[np.uint64]
    identities: NDArray[np.uint64]
    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint64]


class RecordDifference(NamedTuple):
    """A record that differs from the one at the same place: its number, its name and the features
    that differ.

    The features are None if only bytes were compared.
    """

    number: int
    name: str
    features: tuple[str, ...] | None


class PairReport(Struct, frozen=True):
    """The records of two shards of one name.

    ``records`` are their numbers of records. ``recoded`` is the number of records that say the same
    at the same place, with other bytes. ``left`` are the records that have no counterpart at the
    same place.
    """

    records: tuple[int, int]
    recoded: int
    differing: tuple[RecordDifference, ...]
    left: tuple[Columns, Columns]


class ShardPair(Struct, Portable[str], frozen=True):
    """Compares shards by name; picklable. A shard that only one set has is listed.

    Args:
        both: the sets.
        by_bytes: records with other bytes differ, whatever they say.
    """

    both: Both
    by_bytes: bool = False

    def meeting_point(self, task: str, token: str) -> Path | None:
        """None: both sets are read where they are."""
        return None

    def __call__(self, name: str) -> PairReport:
        """Compare the shards of one name; raises InputError if the records
        of one can't be found.
        """
        first_index = self._index(FIRST, name)
        second_index = self._index(SECOND, name)
        counterparts = _Counterparts(first_index, second_index)
        features: dict[int, tuple[str, ...]] = {}
        if counterparts.numbers and not self.by_bytes:
            features = self._features(name, counterparts.numbers, first_index, second_index)
        recoded = {number for number, names in features.items() if not names}
        differing = counterparts.sure_numbers(recoded)
        names = first_index.names
        differences: list[RecordDifference] = []
        for number in differing:
            difference = RecordDifference(number, names[number], features.get(number))
            differences.append(difference)
        settled = recoded.union(differing)
        unsettled = [number for number in counterparts.unequal if number not in settled]
        first_left = _columns(first_index, unsettled)
        second_left = _columns(second_index, unsettled)
        return PairReport(
            records=(len(names), len(second_index.names)),
            recoded=len(recoded),
            differing=tuple(differences),
            left=(first_left, second_left),
        )

    def _index(self, side: int, name: str) -> Index:
        """The index of a shard in one of the sets; empty if the set doesn't have it."""
        compared_set = self.both[side]
        if name not in compared_set.shards:
            return Index()
        return compared_set.compared_index(name)

    def _features(
        self, name: str, numbers: Sequence[int], *indexes: Index
    ) -> dict[int, tuple[str, ...]]:
        """The features that differ in the records of these numbers, which both shards have."""
        streams: list[Iterator[memoryview | None]] = []
        for side, index in zip(self.both, indexes, strict=True):
            places = [place_in(index, number) for number in numbers]
            streams.append(side.data(name, places))
        features = map(differing_features, *streams)
        return dict(zip(numbers, features, strict=True))


class _Counterparts:
    """The records of two shards at the same place.

    ``unequal`` are the numbers of all records, of either shard, without an equal record at the same
    place. ``numbers`` are those whose data is compared: their names agree, or one of them has none.
    """

    def __init__(self, first_index: Index, second_index: Index) -> None:
        self._names = first_index.names, second_index.names
        self._counts = Counter(first_index.names), Counter(second_index.names)
        first, second = first_index.identities, second_index.identities
        shortest, longest = sorted((len(first), len(second)))
        self.unequal = [number for number in range(shortest) if first[number] != second[number]]
        self.numbers = [number for number in self.unequal if self._may_be_one(number)]
        self.unequal += range(shortest, longest)

    def sure_numbers(self, recoded: Collection[int]) -> list[int]:
        """The numbers in order of the pairs that differ, whatever other shards hold: not recoded,
        and with a name of their own.
        """
        differing = [number for number in self.numbers if number not in recoded]
        return sorted(filter(self._is_sure, differing))

    def _is_sure(self, number: int) -> bool:
        """Whether both records have one name, which no other record of their shards has."""
        first_name, second_name = (names[number] for names in self._names)
        if not first_name or first_name != second_name:
            return False
        return all(counts[first_name] == 1 for counts in self._counts)

    def _may_be_one(self, number: int) -> bool:
        """Whether both records may say the same: their names agree, or one of them has none.

        Bytes that the other shard has elsewhere rule nothing out: copies of one record may have two
        encodings.
        """
        first_name, second_name = (names[number] for names in self._names)
        return first_name == second_name or not first_name or not second_name


def place_in(index: Index, number: int) -> RecordSpan:
    """The place of a record of an index."""
    return RecordSpan(number, index.offsets[number], index.lengths[number])


def differing_features(
    first_data: memoryview | None, second_data: memoryview | None
) -> tuple[str, ...]:
    """The names of the features that differ in the data of two records of other bytes;
    None is damaged data.
    """
    if first_data is None or second_data is None:
        return (THE_RECORD,)
    try:
        keys = differing_keys(first_data, second_data)
        return tuple(map(key_in_words, keys))
    except ExampleError:
        return (THE_RECORD,)


def key_in_words(key: Key) -> str:
    """The name of a feature, as it is shown."""
    part, name = key
    if part == FEATURES:
        return name
    if part == FEATURE_LISTS:
        return f"feature list {name}"
    return "fields that no Example has"


def _columns(index: Index, numbers: Sequence[int]) -> Columns:
    import numpy as np

    kept = [number for number in numbers if number < len(index.names)]
    names = [name_key(index.names[number]) for number in kept]
    offsets = [index.offsets[number] for number in kept]
    lengths = np.array([index.lengths[number] for number in kept], np.uint64)
    crcs = np.array([index.crcs[number] for number in kept], np.uint64)
    return Columns(
        np.array(kept, np.uint32),
        np.array(names, np.uint64),
        lengths << np.uint64(32) | crcs,
        np.array(offsets, np.uint64),
        lengths,
    )


def name_key(name: str) -> int:
    """A number of 64 bits for a name; 0 for "" alone."""
    if not name:
        return 0
    encoded_name = name.encode(errors="surrogateescape")
    return _number_of(encoded_name) or 1


# records in other places --------------------------------------------------------------------------


class RecordsTask(NamedTuple):
    """Some records of a shard of one of both sets."""

    side: int
    shard: str
    places: tuple[RecordSpan, ...]


class ContentDigests(Struct, Portable[RecordsTask], frozen=True):
    """Computes a digest of what each of some records says.

    With ``is_exact`` long values count by their SHA-256, otherwise by their CRC, as in an index:
    many times as fast, and enough for two records with one name.
    """

    both: Both
    is_exact: bool

    def meeting_point(self, task: RecordsTask, token: str) -> Path | None:
        """None: both sets are read where they are."""
        return None

    def __call__(self, task: RecordsTask) -> list[int]:
        """A number of 64 bits per record; no two damaged records have the same."""
        return list(self._digests(task))

    def _digests(self, task: RecordsTask) -> Iterator[int]:
        digest_of_long = _sha256 if self.is_exact else _crc
        records = self.both[task.side].data(task.shard, task.places)
        for place, data in zip(task.places, records, strict=True):
            try:
                if data is not None:
                    yield content_digest(data, digest_of_long)
                else:
                    spot = repr((task.side, task.shard, place.number))
                    yield _number_of(spot.encode())
            except ExampleError:
                yield _number_of(data)


def _number_of(data: bytes | memoryview | None) -> int:
    digest = hashlib.blake2b(data or b"", digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _sha256(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()


def _crc(data: bytes) -> bytes:
    return crc32c(data).to_bytes(4, "little")


class RecordNames(Struct, Portable[RecordsTask], frozen=True):
    """Lists the names of some records."""

    both: Both

    def meeting_point(self, task: RecordsTask, token: str) -> Path | None:
        """None: both sets are read where they are."""
        return None

    def __call__(self, task: RecordsTask) -> list[str]:
        """A name for each record, "" for a record without one."""
        index = self.both[task.side].index(task.shard)
        names = index.names
        return [names[place.number] for place in task.places]
