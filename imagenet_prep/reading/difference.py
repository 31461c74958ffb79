"""Difference: what differs between two sets of shards, by split; places of records in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


def place_text(shard: str, number: int) -> str:
    """Where a record is, in words."""
    return f"{shard} record {number}"


@dataclass(frozen=True, slots=True)
class DifferingRecord:
    """A record that both sets have under one name, with other bytes.

    ``places`` are those in both sets: shard and number. ``features`` tells, by feature, the value of both in words; it
    is None of a record that was not looked into.
    """

    name: str
    places: tuple[str, str]
    features: dict[str, tuple[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class SplitDifference:
    """What differs in one split.

    Args:
        split: its name.
        shards: how many each set has.
        records: how many each set has.
        moved: how many records are the same, and have another shard or number in the other set.
        only: names of records that just one of them has, those of the first set and those of the second; a record
            without a name is told by its place.
        only_places: where these are, shard and number, in the same order.
        differing: records that both have, and that are not the same.
        other_shards: shards whose records differ, where one side is a manifest alone: which of them, it can't tell.
    """

    split: str
    shards: tuple[int, int]
    records: tuple[int, int]
    moved: int = 0
    only: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    only_places: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    differing: tuple[DifferingRecord, ...] = ()
    other_shards: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether both have the same records in the same places."""
        return not (self.moved or any(self.only) or self.differing or self.other_shards)


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two sets, by split."""

    places: tuple[Path, Path]
    splits: tuple[SplitDifference, ...]

    @property
    def is_same(self) -> bool:
        """Whether both have the same records in the same places."""
        return all(split.is_same for split in self.splits)

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        splits = [{**asdict(split), "is_same": split.is_same} for split in self.splits]
        return {"places": [*map(str, self.places)], "is_same": self.is_same, "splits": splits}
