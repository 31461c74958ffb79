"""Compares two sets of shards: the records and features that differ; reads only what it needs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from imagenet_prep.checks.matching import FIRST, SECOND, Matching, Pairs, Unmatched
from imagenet_prep.checks.set_difference import Difference, DifferingRecord, SplitDifference
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
from imagenet_prep.checks.suspects import suspect_shards
from imagenet_prep.checks.value_text import differing_values
from imagenet_prep.errors import PrepError, UsageError
from imagenet_prep.model import Engine, Failed, Progress, R, Silent, T
from imagenet_prep.reading.compared_set import ComparedSet
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord.content import Value, content_of
from imagenet_prep.tfrecord.example import ExampleError

if TYPE_CHECKING:
    from imagenet_prep.checks.matching import Keys, Mask, Rows

Spot = tuple[str, int]
"""A shard, and the number of a record in it."""

LOOKED_INTO = 20
"""The default number of differing records to show by feature, and of names to list."""


def diff(  # noqa: PLR0913 - what to compare, by keyword
    first: AnyPath,
    second: AnyPath,
    *,
    engine: Engine | None = None,
    by_bytes: bool = False,
    reads_data: bool = False,
    look_into: int = LOOKED_INTO,
    progress: Progress | None = None,
) -> Difference:
    """Compare two sets of shards, or a set and the manifest of another, record by record.

    A shard with the same recorded digest in both sets is compared by size, index and last record.
    Otherwise names, lengths and CRCs are compared, from the index or from the records' headers.
    Records with other bytes are read and compared by feature: the encoding, such as the order of
    the features, makes no difference unless ``by_bytes``. The data of a shard in which the last
    verify of either set found faults is read; with ``reads_data``, the data of all.

    ``look_into`` is the number of differing records whose features are shown. Without an ``engine``
    this process compares all shards itself.

    Raises:
        UsageError: a set does not exist, or ``reads_data`` and neither has shards.
        InputError: a set has no shards, or its framing or manifest is damaged.
    """
    progress = progress or Silent()
    first_set = ComparedSet.read(first)
    second_set = ComparedSet.read(second)
    if reads_data and not (first_set.has_files or second_set.has_files):
        raise UsageError("--data reads shards", "expected a folder of shards, got two manifests")
    suspects = _suspects(first_set) | _suspects(second_set)
    unproved = {*first_set.shards, *second_set.shards} if reads_data else suspects
    first_set = first_set.without_trust(unproved)
    second_set = second_set.without_trust(unproved)
    read_places: list[AnyPath] = []
    for each in (first_set, second_set):
        if reads_data and each.has_files:
            read_places.append(each.place)
    comparison = _Comparison((first_set, second_set), by_bytes, look_into, engine, progress)
    shard_count = len(first_set.shards) + len(second_set.shards)
    progress.begin("diff", shard_count, "shards")
    split_names = sorted({*first_set.splits, *second_set.splits})
    splits = tuple(map(comparison.of_split, split_names))
    progress.end()
    problems = (*first_set.problems, *second_set.problems)
    return Difference(
        (first, second), splits, problems, by_bytes, tuple(sorted(suspects)), tuple(read_places)
    )


def _suspects(compared: ComparedSet) -> set[str]:
    if not compared.has_files:
        return set()
    return suspect_shards(Layout(compared.place), compared.shards)


class _Differing(NamedTuple):
    """A record that differs: its shard and number in both sets, its name,
    and the features if they are known.
    """

    spots: tuple[Spot, Spot]
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
        first_set, second_set = self.both
        names = first_set.of_split(split)
        other_names = second_set.of_split(split)
        if not (first_set.has_files and second_set.has_files):
            return self._of_manifest(split, names, other_names)
        equal_shards = self._recorded_as_same(names, other_names)
        self.progress.advance(2 * len(equal_shards))
        reports: dict[str, PairReport] = {}
        compare = ShardPair(self.both, self.by_bytes)
        to_compare = {*names, *other_names}.difference(equal_shards)
        for name, report in self._run(compare, sorted(to_compare)):
            reports[name] = report
            sets_with_shard = [side for side in self.both if name in side.shards]
            self.progress.advance(len(sets_with_shard))
        shards = len(names), len(other_names)
        records = self._count_records(FIRST, equal_shards, reports)
        other_records = self._count_records(SECOND, equal_shards, reports)
        return self._judged(split, shards, (records, other_records), reports)

    def _count_records(
        self, side: int, equal_shards: Sequence[str], reports: Mapping[str, PairReport]
    ) -> int:
        recorded = self.both[side].recorded
        in_equal_shards = sum(recorded[name].records for name in equal_shards)
        in_compared_shards = sum(report.records[side] for report in reports.values())
        return in_equal_shards + in_compared_shards

    def _recorded_as_same(self, names: Sequence[str], other_names: Sequence[str]) -> list[str]:
        """The shards that both sets record with one digest."""
        first_set, second_set = self.both
        equal_shards = []
        for name in sorted({*names}.intersection(other_names)):
            entry = first_set.recorded.get(name)
            other_entry = second_set.recorded.get(name)
            if entry is None or other_entry is None:
                continue
            if entry.digest == other_entry.digest:
                equal_shards.append(name)
        return equal_shards

    def _of_manifest(
        self, split: str, names: Sequence[str], other_names: Sequence[str]
    ) -> SplitDifference:
        """The differences to a manifest, which has a digest of each shard
        and nothing about its records.
        """
        digests, records = self._digests_of_shards(FIRST, names)
        other_digests, other_records = self._digests_of_shards(SECOND, other_names)
        other_shards: list[str] = []
        for name in sorted({*digests, *other_digests}):
            if digests.get(name) != other_digests.get(name):
                other_shards.append(name)
        return SplitDifference(
            split,
            shards=(len(digests), len(other_digests)),
            records=(records, other_records),
            other_shards=tuple(other_shards),
        )

    def _digests_of_shards(self, side: int, names: Sequence[str]) -> tuple[dict[str, str], int]:
        """The digests of shards by name, and their records in all."""
        digests: dict[str, str] = {}
        total = 0
        for name in names:
            digests[name], records = self.both[side].entry(name)
            total += records
            self.progress.advance()
        return digests, total

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
        recoded_in_place = sum(report.recoded for report in reports.values())
        names = self._names_of_free(FIRST, matching)
        other_names = self._names_of_free(SECOND, matching)

        differing = [*_differing_in_place(reports), *self._differing(matching, pairs)]
        differing.sort(key=lambda record: record.spots)
        shown_records: list[DifferingRecord] = []
        compared = 0
        feature_counts = Counter[str]()
        for number, record in enumerate(differing):
            shown_record = self._shown(record, number < self.look_into)
            shown_records.append(shown_record)
            features = _known_features(record, shown_record)
            if features is not None:
                compared += 1
                feature_counts.update(features)
        return SplitDifference(
            split,
            shards,
            records,
            moved=moved,
            encoded_differently=recoded + recoded_in_place,
            only=(names, other_names),
            differing=tuple(shown_records),
            compared=compared,
            differing_features=dict(feature_counts.most_common()),
        )

    def _names_of_free(self, side: int, matching: Matching) -> tuple[str, ...]:
        """The names of the records in only one set."""
        free_rows = matching.sides[side].free
        names = self._names(side, matching, free_rows)
        return tuple(names)

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
            last_pairs = matching.take_last()
            return moved, 0, [other_bytes, last_pairs]
        say_the_same = self._say_the_same(matching, other_bytes)
        differing = other_bytes.only(~say_the_same)
        equal_pairs = [named.only(same_bytes), other_bytes.only(say_the_same), equal]
        if matching.needs_content:
            equal_pairs.append(self._take_by_content(matching))
            if matching.has_free and len(equal.first):
                matching.release(equal_pairs.pop())
                matching.release(equal_pairs.pop())
                equal_pairs.append(self._take_by_content(matching))
        moved = recoded = 0
        for pairs in equal_pairs:
            moved += matching.have_moved(pairs)
            has_other_bytes = ~matching.are_equal(pairs)
            recoded += int(has_other_bytes.sum())
        last_pairs = matching.take_last()
        return moved, recoded, [differing, last_pairs]

    def _take_by_content(self, matching: Matching) -> Pairs:
        """Pair the records that are left by what they say."""
        digests = {}
        for number, side in enumerate(matching.sides):
            digests[side] = self._digests(number, matching, side.free, is_exact=True)
        return matching.take(digests.__getitem__)

    def _say_the_same(self, matching: Matching, pairs: Pairs) -> Mask:
        """Whether the records of each pair, which have one name, have the same features."""
        import numpy as np

        digests = self._digests(FIRST, matching, pairs.first, is_exact=False)
        other_digests = self._digests(SECOND, matching, pairs.second, is_exact=False)
        return np.equal(digests[pairs.first], other_digests[pairs.second])

    def _digests(self, side: int, matching: Matching, rows: Rows, *, is_exact: bool) -> Keys:
        """A number per row of a set for what its record says; 0 in rows that are not asked for."""
        import numpy as np

        row_count = len(matching.sides[side].numbers)
        digests = np.zeros(row_count, np.uint64)
        take_digests = ContentDigests(self.both, is_exact)
        for shard_rows, shard_digests in self._read(take_digests, side, matching, rows):
            digests[shard_rows] = np.array(shard_digests, np.uint64)
        return digests

    def _names(self, side: int, matching: Matching, rows: Rows) -> list[str]:
        """The names of records in the order of their places;
        a record without a name has its place.
        """
        names: dict[int, str] = {}
        read_names = RecordNames(self.both)
        for shard_rows, shard_names in self._read(read_names, side, matching, rows):
            row_numbers = shard_rows.tolist()
            names.update(zip(row_numbers, shard_names, strict=True))
        unmatched = matching.sides[side]
        names_in_order = []
        for row in sorted(names, key=unmatched.spot):
            name = names[row] or _place_in_words(unmatched.spot(row))
            names_in_order.append(name)
        return names_in_order

    def _differing(self, matching: Matching, pairs: Iterable[Pairs]) -> Iterator[_Differing]:
        """The differing records at different places."""
        side, other_side = matching.sides
        for rows in pairs:
            first_rows, second_rows = rows.first.tolist(), rows.second.tolist()
            counterparts = dict(zip(first_rows, second_rows, strict=True))
            in_order = sorted(counterparts, key=side.spot)
            names = self._names(FIRST, matching, rows.first)
            for row, name in zip(in_order, names, strict=True):
                spot = side.spot(row)
                other_spot = other_side.spot(counterparts[row])
                yield _Differing((spot, other_spot), name)

    def _read(
        self, function: Callable[[RecordsTask], R], side: int, matching: Matching, rows: Rows
    ) -> Iterator[tuple[Rows, R]]:
        """The outcome of a function for the rows of each shard."""
        rows_by_shard: dict[str, Rows] = {}

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
        spot, other_spot = record.spots
        features = None
        if is_looked_into:
            first_set, second_set = self.both
            values = self._values(first_set, spot)
            other_values = self._values(second_set, other_spot)
            features = differing_values(values, other_values)
        places = _place_in_words(spot), _place_in_words(other_spot)
        return DifferingRecord(record.name, places, features)

    def _values(self, side: ComparedSet, spot: Spot) -> Mapping[str, Value | str]:
        """The values of a record by feature; the reason if it can't be read."""
        shard, number = spot
        try:
            place = place_in(side.index(shard), number)
            data = side.sound_data(shard, place)
            content = content_of(data)
            return {key_in_words(key): value for key, value in content.items()}
        except PrepError as error:
            return {THE_RECORD: f"{error.what}: {error.detail}"}
        except ExampleError as error:
            digest = hashlib.sha256(data).hexdigest()[:12]
            return {THE_RECORD: f"{error}: {len(data):,} bytes, SHA-256 {digest}"}


def _unmatched(side: int, reports: Mapping[str, PairReport]) -> Unmatched:
    """The records of a set without a counterpart at their place."""
    columns = {shard: report.left[side] for shard, report in reports.items()}
    return Unmatched(sorted(reports), columns)


def _differing_in_place(reports: Mapping[str, PairReport]) -> Iterator[_Differing]:
    """The differing records at the same place in both sets."""
    for shard in sorted(reports):
        for record in reports[shard].differing:
            spot = shard, record.number
            yield _Differing((spot, spot), record.name, record.features)


def _place_in_words(spot: Spot) -> str:
    shard, number = spot
    return f"{shard} record {number}"


def _known_features(record: _Differing, shown: DifferingRecord) -> Sequence[str] | None:
    """The features that differ in a record; None if it was not compared by feature."""
    if record.features is not None:
        return record.features
    if shown.features is not None:
        return list(shown.features)
    return None
