"""Share: the part of a set's shards that one of several parallel ranks makes or checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.errors import UsageError
from imagenet_prep.storage.layout import by_number

_NAME = re.compile("rank-([0-9]+)-of-([0-9]+)-").match


class Share(Struct, frozen=True):
    """Every ``world``-th shard from number ``rank`` on, counted over all splits.

    So all ranks get equally many shards of every split, in any order of their runs. The journal
    knows which shards are done, by any rank: ranks may be run again with another ``world``.

    Raises:
        UsageError: ``rank`` is not one of the ranks.
    """

    rank: int
    world: int

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world:
            expected = "expected at least one rank"
            if self.world > 0:
                expected = f"expected a rank from 0 to {self.world - 1}"
            raise UsageError(
                f"rank {self.rank} of {self.world}",
                expected,
                "give --rank R/W, ranks counted from 0",
            )

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.world}"

    @property
    def name(self) -> str:
        """The prefix of its files' names."""
        return f"rank-{self.rank}-of-{self.world}"

    def of(self, names: Iterable[str]) -> list[str]:
        """Its part of all shards of a set."""
        return sorted(names, key=by_number)[self.rank :: self.world]

    def of_splits(self, splits: Sequence[PlannedSplit]) -> tuple[PlannedSplit, ...]:
        """The splits, each with only its own plans."""
        names = [plan_name(plan) for split in splits for plan in split.plans]
        names_of_rank = set(self.of(names))
        splits_of_rank: list[PlannedSplit] = []
        for split in splits:
            plans = tuple(plan for plan in split.plans if plan_name(plan) in names_of_rank)
            splits_of_rank.append(replace(split, plans=plans))
        return tuple(splits_of_rank)


def ranks_of(
    names: Collection[str], shards: Iterable[str], parts: Iterable[str]
) -> tuple[list[int], int] | None:
    """The ranks that these shards belong to, and the number of all ranks; None if no file of a rank
    shows that.

    Args:
        names: of some shards.
        shards: all of the set.
        parts: names of the ranks' files.
    """
    matches = filter(None, map(_NAME, parts))
    worlds = [int(match[2]) for match in matches]
    if not worlds:
        return None
    world = max(worlds, key=worlds.count)
    ranks = set[int]()
    for number, name in enumerate(sorted(shards, key=by_number)):
        if name in names:
            ranks.add(number % world)
    return sorted(ranks), world
