"""Matching: pairs the records of two sets at different places, by columns of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

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
        return Pairs(self.first[chosen], self.second[chosen])


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

        parts = [columns[shard] for shard in shards if shard in columns]
        counts = [len(columns[shard].numbers) if shard in columns else 0 for shard in shards]
        self._shards = shards
        self.shards = np.repeat(np.arange(len(shards), dtype=np.uint64), counts)
        self.numbers = np.concatenate([part.numbers for part in parts] or [np.zeros(0, np.uint32)])
        self.names, self.identities, self._offsets, self._lengths = (
            np.concatenate([part[column] for part in parts] or [np.zeros(0, np.uint64)])
            for column in range(1, 5)
        )
        self.is_free = np.ones(len(self.numbers), bool)
        _, inverse, occurrences = np.unique(self.names, return_inverse=True, return_counts=True)
        self.has_own_name = np.asarray((occurrences[inverse] == 1) & (self.names != 0), bool)

    @property
    def free(self) -> Rows:
        """The rows of the records without a counterpart."""
        import numpy as np

        return np.flatnonzero(self.is_free)

    @property
    def spots(self) -> Keys:
        """Shard and number of each record in one number."""
        import numpy as np

        return np.asarray(self.shards << np.uint64(32) | self.numbers, np.uint64)

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
        ordered = rows[np.argsort(self.spots[rows])]
        shards, starts = np.unique(self.shards[ordered], return_index=True)
        for shard, of_shard in zip(shards.tolist(), np.split(ordered, starts[1:]), strict=True):
            columns = (self.numbers[of_shard], self._offsets[of_shard], self._lengths[of_shard])
            places = map(RecordSpan, *(column.tolist() for column in columns))
            yield self._shards[shard], of_shard, tuple(places)

    def spot(self, row: int) -> tuple[str, int]:
        """The shard and the number of a record."""
        return self._shards[int(self.shards[row])], int(self.numbers[row])


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

        masks = [
            side.is_free if mask is None else side.is_free & mask
            for side, mask in self._with(first_mask, second_mask)
        ]
        rows = [np.flatnonzero(mask) for mask in masks]
        keys = [keys_of(side)[chosen] for side, chosen in zip(self.sides, rows, strict=True)]
        positions = _pairs(*keys)
        pairs = Pairs(rows[FIRST][positions.first], rows[SECOND][positions.second])
        for side, paired in zip(self.sides, pairs, strict=True):
            side.is_free[paired] = False
        return pairs

    def take_named(self) -> Pairs:
        """Pair records by names that occur once in both sets."""
        return self.take(lambda side: side.names, *(side.has_own_name for side in self.sides))

    def take_equal(self) -> Pairs:
        """Pair records without a name of their own by their bytes: length and CRC.

        Among very many records of one length, two that differ may have one CRC: ``release`` undoes
        the pairs.
        """
        return self._join(
            self.take(lambda side: side.names ^ side.identities, *self._without_own_name),
            self.take(lambda side: side.identities, self.sides[FIRST].names == 0, None),
            self.take(lambda side: side.identities, None, self.sides[SECOND].names == 0),
        )

    def take_last(self) -> Pairs:
        """Pair records by names that occur several times;
        records without a name by their places.
        """
        first_side, second_side = self.sides
        return self._join(
            self.take(lambda side: side.names, first_side.names != 0, second_side.names != 0),
            self.take(lambda side: side.spots, first_side.names == 0, None),
            self.take(lambda side: side.spots, None, second_side.names == 0),
        )

    def release(self, pairs: Pairs) -> None:
        """Make the records of some pairs free again."""
        for side, rows in zip(self.sides, pairs, strict=True):
            side.is_free[rows] = True

    def are_equal(self, pairs: Pairs) -> Mask:
        """Whether the records of each pair have the same bytes: length and CRC."""
        import numpy as np

        first_side, second_side = self.sides
        return np.asarray(
            first_side.identities[pairs.first] == second_side.identities[pairs.second], bool
        )

    def have_moved(self, pairs: Pairs) -> int:
        """The number of pairs whose records have different places."""
        first_side, second_side = self.sides
        return int((first_side.spots[pairs.first] != second_side.spots[pairs.second]).sum())

    @property
    def has_free(self) -> bool:
        """Whether both sets have a record without a counterpart."""
        return all(side.is_free.any() for side in self.sides)

    @property
    def needs_content(self) -> bool:
        """Whether a record that is left can only be paired by its content:
        one without a name of its own.
        """
        return self.has_free and any(mask.any() for mask in self._without_own_name)

    @property
    def _without_own_name(self) -> tuple[Mask, Mask]:
        first_side, second_side = self.sides
        return first_side.weak, second_side.weak

    def _join(self, *pairs: Pairs) -> Pairs:
        import numpy as np

        return Pairs(*(np.concatenate(rows) for rows in zip(*pairs, strict=True)))

    def _with(
        self, first_mask: Mask | None, second_mask: Mask | None
    ) -> Iterator[tuple[Unmatched, Mask | None]]:
        return zip(self.sides, (first_mask, second_mask), strict=True)


def _pairs(first_keys: Keys, second_keys: Keys) -> Pairs:
    """The positions of equal keys: the first of a key with the first of it,
    the second with the second, and so on.
    """
    import numpy as np

    orders = np.argsort(first_keys, kind="stable"), np.argsort(second_keys, kind="stable")
    ordered = first_keys[orders[FIRST]], second_keys[orders[SECOND]]
    occurrence = np.arange(len(first_keys)) - np.searchsorted(
        ordered[FIRST], ordered[FIRST], "left"
    )
    position = np.searchsorted(ordered[SECOND], ordered[FIRST], "left") + occurrence
    has_counterpart = position < np.searchsorted(ordered[SECOND], ordered[FIRST], "right")
    return Pairs(orders[FIRST][has_counterpart], orders[SECOND][position[has_counterpart]])
