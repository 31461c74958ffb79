"""EpochPlace: how far an epoch is, whatever the number of ranks.
divide: what is left of it for a rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from imagenet_prep.errors import UsageError


@dataclass(frozen=True)
class EpochPlace:
    """The batches of an epoch that were given.

    Attributes:
        epoch: its number.
        given: each rank was given this many batches, the first ones of its part.
        ahead: numbers of further batches that this rank was given, which arrived before others
        (``in_order=False``). rank: whose place this is; None, if all ranks have the same.
        world: the number of ranks that ``given`` counts for.
        batch_size: the images per batch that ``given`` counts for.
        before: earlier parts of the epoch: a number of ranks, and the records that each of them was
            given.
    """

    epoch: int = 0
    given: int = 0
    ahead: frozenset[int] = frozenset()
    rank: int | None = None
    world: int = 1
    batch_size: int = 1
    before: tuple[tuple[int, int], ...] = ()

    @property
    def is_start(self) -> bool:
        """Whether no batch of this part of the epoch was given."""
        return not self.given and not self.ahead

    def after(self, batch: int) -> EpochPlace:
        """The place after one more batch, by its number in the rank's part."""
        if self.rank is None:
            return replace(self, given=batch + 1)
        ahead = self.ahead | {batch}
        next_batch = self.given
        while next_batch in ahead:
            ahead -= {next_batch}
            next_batch += 1
        return replace(self, given=next_batch, ahead=ahead)

    def for_ranks(self, rank: int, world: int, batch_size: int) -> EpochPlace:
        """The same place for another number of ranks or other batches: what no rank was given is
        divided again.

        Raises:
            UsageError: batches arrived out of order, and this is another rank, world or batch size.
        """
        if (self.world, self.batch_size) == (world, batch_size) and self.rank in (None, rank):
            return self
        if self.is_start:
            return replace(self, rank=None, world=world, batch_size=batch_size)
        if self.ahead or (self.rank is not None and self.world > 1):
            raise UsageError(
                f"the state is of rank {self.rank} of {self.world} with batches of "
                f"{self.batch_size}, given in any order (in_order=False)",
                f"it can't continue as rank {rank} of {world} with batches of {batch_size}",
                "load the state of each rank into that rank, with the same world and batch_size; "
                "states of a Loader without in_order=False can be loaded by any ranks",
            )
        this_part = self.world, self.given * self.batch_size
        return EpochPlace(
            self.epoch, world=world, batch_size=batch_size, before=(*self.before, this_part)
        )


def share(count: int, world: int, *, drop_last: bool) -> int:
    """The records of each rank: dropped at the end, or some twice,
    if they are not a multiple of ``world``.
    """
    return count // world if drop_last else -(-count // world)


def count_batches(count: int, batch_size: int, *, drop_last: bool) -> int:
    """The batches of a rank's ``count`` records."""
    return count // batch_size if drop_last else -(-count // batch_size)


def remainder(
    order: Sequence[int], earlier_parts: Sequence[tuple[int, int]], *, drop_last: bool
) -> Sequence[int]:
    """The records of an epoch that no rank was given in its earlier parts, in order."""
    for world, records_per_rank in earlier_parts:
        count = share(len(order), world, drop_last=drop_last)
        remaining: list[int] = []
        for rank in range(world):
            stop = min((rank + 1) * count, len(order))
            remaining.extend(order[rank * count + records_per_rank : stop])
        remaining.extend(order[world * count :])
        order = remaining
    return order
