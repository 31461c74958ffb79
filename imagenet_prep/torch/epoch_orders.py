"""The order of an epoch: of shards that are read a few at a time, or of a sampler."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.arguments import shown

_NO_BATCHES = (
    "the Loader makes the batches itself: give it a sampler of single numbers, such as the one "
    "inside a BatchSampler: sampler=RandomSampler(dataset)"
)


def sampled_order(sampler: Iterable[int], *, seed: int, epoch: int) -> list[int]:
    """A sampler's indices for an epoch, with PyTorch's random numbers on
    the CPU seeded by both and restored.
    """
    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(epoch)
    (number,) = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(number))
        numbers = list(sampler)
    try:
        return [operator.index(number) for number in numbers]
    except TypeError:
        problem = f"the sampler gave {shown(numbers)}"
        expected = "expected whole numbers, each the number of one record"
        are_batches = any(isinstance(number, list | tuple) for number in numbers)
        hint = _NO_BATCHES if are_batches else ""
        raise UsageError(problem, expected, hint) from None


def epoch_order(starts: Sequence[int], *, seed: int, epoch: int, window: int) -> NDArray[np.int64]:
    """The numbers of all records, each once: shards in random order, and those of ``window`` shards
    well mixed.

    A spinning disk or network storage then reads ``window`` shards at a time and not all of them at
    once. The same arguments give the same order with any version of NumPy: it provides random bits,
    which are sorted.

    Args:
        starts: the number of each shard's first record, then the total.
        seed: any number from 0 up.
        epoch: any number from 0 up; each has an order of its own.
        window: a number of shards, from 1 up.
    """
    bits = np.random.PCG64(np.random.SeedSequence([seed, epoch]))

    def mixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        keys = bits.random_raw(len(numbers))
        order = np.argsort(keys, kind="stable")
        return numbers[order]

    shards = mixed(np.arange(len(starts) - 1))
    ordered = [np.zeros(0, dtype=np.int64)]
    for position in range(0, len(shards), window):
        numbers_by_shard: list[NDArray[np.int64]] = []
        for shard in shards[position : position + window]:
            numbers = np.arange(starts[shard], starts[shard + 1])
            numbers_by_shard.append(numbers)
        numbers_in_window = np.concatenate(numbers_by_shard)
        ordered.append(mixed(numbers_in_window))
    return np.concatenate(ordered)
