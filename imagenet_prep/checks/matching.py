"""Matching: pairs the records of two sets at different places, by columns of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from imagenet_prep.reading.compared_set import RecordSpan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from imagenet_prep.checks.shard_pair import Columns

    Rows = NDArray[np.intp]
    Keys = NDArray[np.uint64]
    Mask = NDArray[np.bool_]

FIRST, SECOND = 0, 1


class Pairs(NamedTuple):
    """Rows of the first and of the second set:
    each is the counterpart of the one at the same position.
    """

    first: Rows
    second: Rows

    def only(self, chosen: Mask) -> Pairs:
        """Some of the pairs."""
        first = self.first[chosen]
        second = self.second[chosen]
        return Pairs(first, second)


class Unmatched:
    """The records of one set that still have no counterpart, as columns: 40 bytes per record.

    Args:
        shards: the names of all shards of both sets.
        columns: the records of each shard.

    ``is_free``: which records have no counterpart. ``has_own_name``: which have a name that no
    other one of them has.
    """

    def __init__(self, shards: Sequence[str], columns: Mapping[str, Columns]) -> None:
        import numpy as np

        self._shards = shards
        parts: list[Columns] = []
        counts: list[int] = []
        for shard in shards:
            part = columns.get(shard)
            counts.append(0)
            if part is not None:
                counts[-1] = len(part.numbers)
                parts.append(part)
        shard_numbers = np.arange(len(shards), dtype=np.uint64)
        self.shards = np.repeat(shard_numbers, counts)
        self.numbers = _joined([part.numbers for part in parts], np.uint32)
        self.names: Keys = _joined([part.names for part in parts], np.uint64)
        self.identities: Keys = _joined([part.identities for part in parts], np.uint64)
        self._offsets = _joined([part.offsets for part in parts], np.uint64)
        self._lengths = _joined([part.lengths for part in parts], np.uint64)
        self.is_free = np.ones(len(self.numbers), bool)
        _, inverse, occurrences = np.unique(self.names, return_inverse=True, return_counts=True)
        occurs_once = occurrences[inverse] == 1
        self.has_own_name = np.asarray(occurs_once & (self.names != 0), bool)

    @property
    def free(self) -> Rows:
        """The rows of the records without a counterpart."""
        import numpy as np

        return np.flatnonzero(self.is_free)

    @property
    def spots(self) -> Keys:
        """Shard and number of each record in one number."""
        import numpy as np

        shards = self.shards << np.uint64(32)
        return np.asarray(shards | self.numbers, np.uint64)

    @property
    def weak(self) -> Mask:
        """Whether each record has no counterpart, and no name of its own."""
        import numpy as np

        return np.asarray(self.is_free & ~self.has_own_name, bool)

    def by_shard(self, rows: Rows) -> Iterator[tuple[str, Rows, tuple[RecordSpan, ...]]]:
        """The rows of each shard among some rows, and their places in ascending order."""
        import numpy as np

        if not len(rows):
            return
        order = np.argsort(self.spots[rows])
        rows_in_order = rows[order]
        shards, starts = np.unique(self.shards[rows_in_order], return_index=True)
        rows_by_shard = np.split(rows_in_order, starts[1:])
        for shard, rows_of_shard in zip(shards.tolist(), rows_by_shard, strict=True):
            numbers = self.numbers[rows_of_shard].tolist()
            offsets = self._offsets[rows_of_shard].tolist()
            lengths = self._lengths[rows_of_shard].tolist()
            places = map(RecordSpan, numbers, offsets, lengths)
            yield self._shards[shard], rows_of_shard, tuple(places)

    def spot(self, row: int) -> tuple[str, int]:
        """The shard and the number of a record."""
        shard = int(self.shards[row])
        return self._shards[shard], int(self.numbers[row])


def _joined(columns: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    """The columns of several shards as one; an empty one of this kind of number without shards."""
    import numpy as np

    if not columns:
        return np.zeros(0, kind)
    return np.concatenate(columns)


class Matching:
    """Pairs records of both sets by one key after another;
    a record that has a counterpart is not paired again.
    """

    def __init__(self, first_side: Unmatched, second_side: Unmatched) -> None:
        self.sides = first_side, second_side

    def take(
        self,
        keys_of: Callable[[Unmatched], Keys],
        first_mask: Mask | None = None,
        second_mask: Mask | None = None,
    ) -> Pairs:
        """Pair the records of equal keys, in order,
        among those without a counterpart, and of the masks.
        """
        import numpy as np

        all_rows: list[Rows] = []
        all_keys: list[Keys] = []
        for side, mask in zip(self.sides, (first_mask, second_mask), strict=True):
            is_wanted = side.is_free
            if mask is not None:
                is_wanted = is_wanted & mask
            rows = np.flatnonzero(is_wanted)
            all_rows.append(rows)
            all_keys.append(keys_of(side)[rows])
        positions = _pairs(*all_keys)
        first_rows, second_rows = all_rows
        pairs = Pairs(first_rows[positions.first], second_rows[positions.second])
        for side, paired_rows in zip(self.sides, pairs, strict=True):
            side.is_free[paired_rows] = False
        return pairs

    def take_named(self) -> Pairs:
        """Pair records by names that occur once in both sets."""
        first_side, second_side = self.sides
        return self.take(_names, first_side.has_own_name, second_side.has_own_name)

    def take_equal(self) -> Pairs:
        """Pair records without a name of their own by their bytes: length and CRC.

        Among very many records of one length, two that differ may have one CRC: ``release`` undoes
        the pairs.
        """
        first_side, second_side = self.sides
        by_name_and_bytes = self.take(_names_and_bytes, *self._without_own_name)
        first_nameless = self.take(_bytes, first_side.names == 0, None)
        second_nameless = self.take(_bytes, None, second_side.names == 0)
        return self._join(by_name_and_bytes, first_nameless, second_nameless)

    def take_last(self) -> Pairs:
        """Pair records by names that occur several times;
        records without a name by their places.
        """
        first_side, second_side = self.sides
        named = self.take(_names, first_side.names != 0, second_side.names != 0)
        first_nameless = self.take(_spots, first_side.names == 0, None)
        second_nameless = self.take(_spots, None, second_side.names == 0)
        return self._join(named, first_nameless, second_nameless)

    def release(self, pairs: Pairs) -> None:
        """Make the records of some pairs free again."""
        for side, rows in zip(self.sides, pairs, strict=True):
            side.is_free[rows] = True

    def are_equal(self, pairs: Pairs) -> Mask:
        """Whether the records of each pair have the same bytes: length and CRC."""
        import numpy as np

        first_side, second_side = self.sides
        first_identities = first_side.identities[pairs.first]
        second_identities = second_side.identities[pairs.second]
        return np.asarray(first_identities == second_identities, bool)

    def have_moved(self, pairs: Pairs) -> int:
        """The number of pairs whose records have different places."""
        first_side, second_side = self.sides
        first_spots = first_side.spots[pairs.first]
        second_spots = second_side.spots[pairs.second]
        return int((first_spots != second_spots).sum())

    @property
    def has_free(self) -> bool:
        """Whether both sets have a record without a counterpart."""
        return all(side.is_free.any() for side in self.sides)

    @property
    def needs_content(self) -> bool:
        """Whether a record that is left can only be paired by its content:
        one without a name of its own.
        """
        if not self.has_free:
            return False
        return any(mask.any() for mask in self._without_own_name)

    @property
    def _without_own_name(self) -> tuple[Mask, Mask]:
        first_side, second_side = self.sides
        return first_side.weak, second_side.weak

    def _join(self, *pairs: Pairs) -> Pairs:
        import numpy as np

        first = np.concatenate([pair.first for pair in pairs])
        second = np.concatenate([pair.second for pair in pairs])
        return Pairs(first, second)


# the keys by which records are paired -------------------------------------------------------------


def _names(side: Unmatched) -> Keys:
    return side.names


def _bytes(side: Unmatched) -> Keys:
    return side.identities


def _names_and_bytes(side: Unmatched) -> Keys:
    return side.names ^ side.identities


def _spots(side: Unmatched) -> Keys:
    return side.spots


def _pairs(first_keys: Keys, second_keys: Keys) -> Pairs:
    """The positions of equal keys: the first of a key with the first of it,
    the second with the second, and so on.
    """
    import numpy as np

    first_order = np.argsort(first_keys, kind="stable")
    second_order = np.argsort(second_keys, kind="stable")
    first_sorted = first_keys[first_order]
    second_sorted = second_keys[second_order]
    place_of_first = np.searchsorted(first_sorted, first_sorted, "left")
    occurrence = np.arange(len(first_keys)) - place_of_first
    position = np.searchsorted(second_sorted, first_sorted, "left") + occurrence
    end_of_key = np.searchsorted(second_sorted, first_sorted, "right")
    has_counterpart = position < end_of_key
    second_positions = position[has_counterpart]
    return Pairs(first_order[has_counterpart], second_order[second_positions])
