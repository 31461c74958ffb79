"""epoch_order: all records of a set in an order that is random, and reads a few shards at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def epoch_order(starts: Sequence[int], *, seed: int, epoch: int, window: int) -> NDArray[np.int64]:
    """The numbers of all records, each once: shards in random order, and those of ``window`` shards well mixed.

    A disk that turns, or one behind a network, then reads ``window`` shards at a time and not all of them at once. The
    same arguments give the same order, whatever the version of NumPy: it gives random bits, and they are sorted.

    Args:
        starts: the number of each shard's first record, and behind them that of all records.
        seed: any number from 0 on.
        epoch: any number from 0 on; each has an order of its own.
        window: a number of shards, from 1 on.
    """
    import numpy as np

    bits = np.random.PCG64(np.random.SeedSequence([seed, epoch]))

    def mixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return numbers[np.argsort(bits.random_raw(len(numbers)), kind="stable")]

    shards = mixed(np.arange(len(starts) - 1))
    ordered = [np.zeros(0, dtype=np.int64)]
    for first in range(0, len(shards), window):
        several = [np.arange(starts[shard], starts[shard + 1]) for shard in shards[first : first + window]]
        ordered.append(mixed(np.concatenate(several)))
    return np.concatenate(ordered)
