"""Compares two sets of shards: the records and features that differ; reads only what it needs."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, to_builtins

from imagenet_prep.checks.matching import FIRST, SECOND, Matching, Pairs, Unmatched
from imagenet_prep.checks.shard_pair import (
    THE_RECORD,
    Both,
    ContentDigests,
    PairReport,
    RecordNames,
    RecordsTask,
    ShardPair,
    key_in_words,
    place_in,
)
from imagenet_prep.checks.value_text import differing_values
from imagenet_prep.errors import PrepError
from imagenet_prep.model import Engine, Failed, Progress, R, Silent, T
from imagenet_prep.reading.compared_set import ComparedSet
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord.content import Value, content_of
from imagenet_prep.tfrecord.example import ExampleError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOOKED_INTO = 20
"""The default number of differing records to show by feature, and of names to list."""


class DifferingRecord(Struct, frozen=True):
    """A record that both sets hold with different features; if bytes are compared, with different
    bytes.

    ``name`` is that of its image; a record without a name has its place. ``places`` are its shard
    and number in both sets. ``features`` holds both values as text, by feature; None for a record
    beyond the requested number.
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
        encoded_differently: the number of equal records with other bytes: their features say the
            same.
        only: names of records in only one set, for the first and the second set; a record without a
            name is listed by its place.
        differing: records that both sets hold with different features.
        compared: the number of differing records that were compared feature by feature: all at the
            same place in both sets, and the shown ones.
        differing_features: the number of compared records by feature that differs.
        other_shards: shards whose bytes differ, if one side is only a manifest, which can't show
            which records, and whether they say the same.
    """

    split: str
    shards: tuple[int, int]
    records: tuple[int, int]
    moved: int = 0
    encoded_differently: int = 0
    only: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    differing: tuple[DifferingRecord, ...] = ()
    compared: int = 0
    differing_features: Mapping[str, int] = {}
    other_shards: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether both have the same records in the same places."""
        return not (self.moved or any(self.only) or self.differing or self.other_shards)


class Difference(Struct, frozen=True):
    """The differences between two sets, by split.

    ``problems`` says of each set that is not finished what it lacks: the shards that it has are
    compared all the same. ``by_bytes``: records with other bytes count as differing, whatever they
    say.
    """

    places: tuple[AnyPath, AnyPath]
    splits: tuple[SplitDifference, ...]
    problems: tuple[str, ...] = ()
    by_bytes: bool = False

    @property
    def is_same(self) -> bool:
        """Whether both are whole sets with the same records in the same places."""
        return not self.problems and all(split.is_same for split in self.splits)

    def as_dict(self) -> dict[str, Any]:
        """The differences as JSON-ready values."""
        return {
            "places": [*map(str, self.places)],
            "is_same": self.is_same,
            "by_bytes": self.by_bytes,
            "problems": [*self.problems],
            "splits": [{**to_builtins(split), "is_same": split.is_same} for split in self.splits],
        }


def diff(
    first: AnyPath,
    second: AnyPath,
    *,
    engine: Engine | None = None,
    by_bytes: bool = False,
    look_into: int = LOOKED_INTO,
    progress: Progress | None = None,
) -> Difference:
    """Compare two sets of shards, or a set and the manifest of another, record by record.

    A shard with the same recorded digest in both sets is compared by size, index and last record.
    Otherwise names, lengths and CRCs are compared, from the index or from the records' headers.
    Records with other bytes are read and compared by feature: the encoding, such as the order of
    the features, makes no difference unless ``by_bytes``. verify proves that a record's bytes match
    its CRC.

    ``look_into`` is the number of differing records whose features are shown. Without an ``engine``
    this process compares all shards itself.

    Raises:
        UsageError: a set does not exist.
        InputError: a set has no shards, or its framing or manifest is damaged.
    """
    progress = progress or Silent()
    both = ComparedSet.read(first), ComparedSet.read(second)
    comparison = _Comparison(both, by_bytes, look_into, engine, progress)
    progress.begin("diff", sum(len(side.shards) for side in both), "shards")
    split_names = sorted({*both[FIRST].splits, *both[SECOND].splits})
    splits = tuple(map(comparison.of_split, split_names))
    progress.end()
    problems = (*both[FIRST].problems, *both[SECOND].problems)
    return Difference((first, second), splits, problems, by_bytes)


class _Differing(NamedTuple):
    """A record that differs: its shard and number in both sets, its name,
    and the features if they are known.
    """

    spots: tuple[tuple[str, int], tuple[str, int]]
    name: str
    features: tuple[str, ...] | None = None


class _Comparison(Struct, frozen=True):
    """Compares two sets split by split."""

    both: Both
    by_bytes: bool
    look_into: int
    engine: Engine | None
    progress: Progress

    def of_split(self, split: str) -> SplitDifference:
        """The differences in one split."""
        names = self.both[FIRST].of_split(split), self.both[SECOND].of_split(split)
        if not all(side.has_files for side in self.both):
            return self._of_manifest(split, names)
        equal_shards = self._recorded_as_same(names)
        self.progress.advance(2 * len(equal_shards))
        reports: dict[str, PairReport] = {}
        to_compare = sorted({*names[FIRST], *names[SECOND]} - {*equal_shards})
        for name, report in self._run(ShardPair(self.both, self.by_bytes), to_compare):
            reports[name] = report
            self.progress.advance(sum(name in side.shards for side in self.both))
        shards = len(names[FIRST]), len(names[SECOND])
        records = (
            self._count_records(FIRST, equal_shards, reports),
            self._count_records(SECOND, equal_shards, reports),
        )
        return self._judged(split, shards, records, reports)

    def _count_records(
        self, side: int, equal_shards: Sequence[str], reports: Mapping[str, PairReport]
    ) -> int:
        recorded = self.both[side].recorded
        in_equal_shards = sum(recorded[name].records for name in equal_shards)
        return in_equal_shards + sum(report.records[side] for report in reports.values())

    def _recorded_as_same(self, names: Sequence[Sequence[str]]) -> list[str]:
        """The shards that both sets record with one digest."""
        equal_shards = []
        for name in sorted(set(names[FIRST]) & set(names[SECOND])):
            entries = [side.recorded.get(name) for side in self.both]
            digests = {entry.digest for entry in entries if entry is not None}
            if None not in entries and len(digests) == 1:
                equal_shards.append(name)
        return equal_shards

    def _of_manifest(self, split: str, names: Sequence[Sequence[str]]) -> SplitDifference:
        """The differences to a manifest, which has a digest of each shard
        and nothing about its records.
        """
        digests: list[dict[str, str]] = []
        counts = []
        for side, shard_names in zip(self.both, names, strict=True):
            entries = {name: side.entry(name) for name in shard_names}
            digests.append({name: digest for name, (digest, _) in entries.items()})
            counts.append(sum(records for _, records in entries.values()))
            self.progress.advance(len(shard_names))
        other_shards = [
            name
            for name in sorted({*digests[FIRST], *digests[SECOND]})
            if digests[FIRST].get(name) != digests[SECOND].get(name)
        ]
        shards = len(digests[FIRST]), len(digests[SECOND])
        records = counts[FIRST], counts[SECOND]
        return SplitDifference(split, shards, records, other_shards=tuple(other_shards))

    def _judged(
        self,
        split: str,
        shards: tuple[int, int],
        records: tuple[int, int],
        reports: Mapping[str, PairReport],
    ) -> SplitDifference:
        """The differences of a split, from the comparison of its shards."""
        matching = Matching(_unmatched(FIRST, reports), _unmatched(SECOND, reports))
        moved, recoded, pairs = self._match(matching)
        only = (
            tuple(self._names(FIRST, matching, matching.sides[FIRST].free)),
            tuple(self._names(SECOND, matching, matching.sides[SECOND].free)),
        )
        differing = [*_differing_in_place(reports), *self._differing(matching, pairs)]
        differing.sort(key=lambda record: record.spots)
        shown = tuple(
            self._shown(record, number < self.look_into) for number, record in enumerate(differing)
        )
        features_by_record = map(_known_features, differing, shown)
        compared = [features for features in features_by_record if features is not None]
        feature_counts = Counter(itertools.chain.from_iterable(compared))
        return SplitDifference(
            split,
            shards,
            records,
            moved=moved,
            encoded_differently=recoded + sum(report.recoded for report in reports.values()),
            only=only,
            differing=shown,
            compared=len(compared),
            differing_features=dict(feature_counts.most_common()),
        )

    def _match(self, matching: Matching) -> tuple[int, int, list[Pairs]]:
        """Pair the records at different places: how many moved, and have another encoding;
        and those that differ.
        """
        named = matching.take_named()
        equal = matching.take_equal()
        same_bytes = matching.are_equal(named)
        other_bytes = named.only(~same_bytes)
        if self.by_bytes:
            moved = len(equal.first) + int(same_bytes.sum())
            return moved, 0, [other_bytes, matching.take_last()]
        say_the_same = self._say_the_same(matching, other_bytes)
        equal_pairs = [named.only(same_bytes), other_bytes.only(say_the_same), equal]
        if matching.needs_content:
            equal_pairs.append(self._take_by_content(matching))
            if matching.has_free and len(equal.first):
                matching.release(equal_pairs.pop())
                matching.release(equal_pairs.pop())
                equal_pairs.append(self._take_by_content(matching))
        moved = sum(matching.have_moved(pairs) for pairs in equal_pairs)
        recoded = sum(int((~matching.are_equal(pairs)).sum()) for pairs in equal_pairs)
        return moved, recoded, [other_bytes.only(~say_the_same), matching.take_last()]

    def _take_by_content(self, matching: Matching) -> Pairs:
        """Pair the records that are left by what they say."""
        digests = {
            side: self._digests(number, matching, side.free, is_exact=True)
            for number, side in enumerate(matching.sides)
        }
        return matching.take(digests.__getitem__)

    def _say_the_same(self, matching: Matching, pairs: Pairs) -> NDArray[np.bool_]:
        """Whether the records of each pair, which have one name, have the same features."""
        import numpy as np

        digests, other_digests = (
            self._digests(side, matching, pairs[side], is_exact=False) for side in (FIRST, SECOND)
        )
        return np.equal(digests[pairs.first], other_digests[pairs.second])

    def _digests(
        self, side: int, matching: Matching, rows: NDArray[np.intp], *, is_exact: bool
    ) -> NDArray[np.uint64]:
        """A number per row of a set for what its record says; 0 in rows that are not asked for."""
        import numpy as np

        digests = np.zeros(len(matching.sides[side].numbers), np.uint64)
        take_digests = ContentDigests(self.both, is_exact)
        for shard_rows, shard_digests in self._read(take_digests, side, matching, rows):
            digests[shard_rows] = np.array(shard_digests, np.uint64)
        return digests

    def _names(self, side: int, matching: Matching, rows: NDArray[np.intp]) -> list[str]:
        """The names of records in the order of their places;
        a record without a name has its place.
        """
        names: dict[int, str] = {}
        for shard_rows, shard_names in self._read(RecordNames(self.both), side, matching, rows):
            names.update(zip(shard_rows.tolist(), shard_names, strict=True))
        unmatched = matching.sides[side]
        return [
            names[row] or _place_in_words(unmatched.spot(row))
            for row in sorted(names, key=unmatched.spot)
        ]

    def _differing(self, matching: Matching, pairs: Iterable[Pairs]) -> Iterator[_Differing]:
        """The differing records at different places."""
        side, other_side = matching.sides
        for rows in pairs:
            counterparts = dict(zip(rows.first.tolist(), rows.second.tolist(), strict=True))
            in_order = sorted(counterparts, key=side.spot)
            names = self._names(FIRST, matching, rows.first)
            for row, name in zip(in_order, names, strict=True):
                yield _Differing((side.spot(row), other_side.spot(counterparts[row])), name)

    def _read(
        self,
        function: Callable[[RecordsTask], R],
        side: int,
        matching: Matching,
        rows: NDArray[np.intp],
    ) -> Iterator[tuple[NDArray[np.intp], R]]:
        """The outcome of a function for the rows of each shard."""
        rows_by_shard: dict[str, NDArray[np.intp]] = {}

        def tasks() -> Iterator[RecordsTask]:
            for shard, shard_rows, places in matching.sides[side].by_shard(rows):
                rows_by_shard[shard] = shard_rows
                yield RecordsTask(side, shard, places)

        for task, outcome in self._run(function, tasks()):
            yield rows_by_shard.pop(task.shard), outcome

    def _run(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[T, R]]:
        """The outcome of each task; raises the error of a task that fails."""
        if self.engine is None:
            for task in tasks:
                yield task, function(task)
            return
        for outcome in self.engine.map(function, tasks):
            if isinstance(outcome, Failed):
                raise outcome.error
            yield outcome.task, outcome.value

    def _shown(self, record: _Differing, is_looked_into: bool) -> DifferingRecord:
        places = _place_in_words(record.spots[FIRST]), _place_in_words(record.spots[SECOND])
        features = None
        if is_looked_into:
            features = differing_values(*map(self._values, self.both, record.spots))
        return DifferingRecord(record.name, places, features)

    def _values(self, side: ComparedSet, spot: tuple[str, int]) -> Mapping[str, Value | str]:
        """The values of a record by feature; the reason if it can't be read."""
        shard, number = spot
        try:
            data = side.sound_data(shard, place_in(side.index(shard), number))
            return {key_in_words(key): value for key, value in content_of(data).items()}
        except PrepError as error:
            return {THE_RECORD: f"{error.what}: {error.detail}"}
        except ExampleError as error:
            digest = hashlib.sha256(data).hexdigest()[:12]
            return {THE_RECORD: f"no Example ({error}): {len(data):,} bytes, SHA-256 {digest}"}


def _unmatched(side: int, reports: Mapping[str, PairReport]) -> Unmatched:
    """The records of a set without a counterpart at their place."""
    return Unmatched(
        sorted(reports), {shard: report.left[side] for shard, report in reports.items()}
    )


def _differing_in_place(reports: Mapping[str, PairReport]) -> Iterator[_Differing]:
    """The differing records at the same place in both sets."""
    for shard in sorted(reports):
        for record in reports[shard].differing:
            spot = shard, record.number
            yield _Differing((spot, spot), record.name, record.features)


def _place_in_words(spot: tuple[str, int]) -> str:
    shard, number = spot
    return f"{shard} record {number}"


def _known_features(record: _Differing, shown: DifferingRecord) -> Sequence[str] | None:
    """The features that differ in a record; None if it was not compared by feature."""
    if record.features is not None:
        return record.features
    if shown.features is not None:
        return list(shown.features)
    return None
