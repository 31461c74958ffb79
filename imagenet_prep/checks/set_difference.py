"""Difference: the records and features that differ between two sets, by split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, to_builtins

from imagenet_prep.storage.location import AnyPath


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
    say. ``read_shards`` are the shards whose data was read because a verify found faults in one of
    the sets; ``read_places`` are the folders of which every record was read.
    """

    places: tuple[AnyPath, AnyPath]
    splits: tuple[SplitDifference, ...]
    problems: tuple[str, ...] = ()
    by_bytes: bool = False
    read_shards: tuple[str, ...] = ()
    read_places: tuple[AnyPath, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether both are whole sets with the same records in the same places."""
        return not self.problems and all(split.is_same for split in self.splits)

    def as_dict(self) -> dict[str, Any]:
        """The differences as JSON-ready values."""
        splits = []
        for split in self.splits:
            fields = to_builtins(split)
            fields["is_same"] = split.is_same
            splits.append(fields)
        return {
            "places": [*map(str, self.places)],
            "is_same": self.is_same,
            "by_bytes": self.by_bytes,
            "compared_by": "data" if self.read_places else "manifests and checksums",
            "read_shards": [*self.read_shards],
            "problems": [*self.problems],
            "splits": splits,
        }
