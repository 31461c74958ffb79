"""Canonical shuffle and shard partition: pure functions, the same on every machine.

The record set of 2016 was made by ``build_imagenet_data.py`` (tensorflow/models, Inception) under
Python 2 from a sorted listing: its order is this one.
"""

from __future__ import annotations

import math
import random
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from imagenet_prep.sources.names import Column

SEED = 12345
"""The seed of 2016."""

LANES = 8
"""The threads of the original: it cut the images into 8 lanes,
and each lane into shards/8 shards.
"""


_DRAWN = 1 << 16  # numbers drawn at a time
# an eighth of the square root of the rest is swapped at once: in 2 of 100 batches two swaps collide
_APART = 8
_FEWEST = 64  # fewer are faster one by one


def most_shards(count: int) -> int:
    """The most shards for ``count`` images: one each, or the 1024 of 2016, some of them empty."""
    return max(count, 1024)


def shuffled(count: int, seed: int) -> array[int]:
    """The indices 0 to ``count`` - 1 as Python 2's ``random.shuffle`` orders them after
    ``random.seed(seed)``.

    Python 3's own shuffle draws differently.
    """
    import numpy as np

    draw = random.Random(seed).random
    indices = array("I", [0]) * count
    order = np.asarray(indices)
    order[:] = np.arange(count, dtype=np.uint32)
    for top in range(count - 1, 0, -_DRAWN):
        places = np.arange(top, max(top - _DRAWN, 0), -1)
        drawn = np.array([draw() for _ in range(len(places))])
        _swap(order, top, (drawn * (places + 1)).astype(np.int64))
    return indices


def _swap(order: Column, top: int, partners: Column) -> None:
    """Swap the items at ``top``, ``top`` - 1, ... with the items at ``partners``, one by one.

    Batches are small enough that swaps in one rarely collide: without a collision their order makes
    no difference.
    """
    items = memoryview(order.data)
    step = max(math.isqrt(top) // _APART, 1)
    for start in range(0, len(partners), step):
        batch = partners[start : start + step]
        high = top - start
        low = high - len(batch)
        if len(batch) >= _FEWEST and _is_apart(batch, low):
            swapped = order[batch]
            order[batch] = order[low + 1 : high + 1][::-1]
            order[low + 1 : high + 1] = swapped[::-1]
            continue
        for i, j in zip(range(high, low, -1), batch.tolist(), strict=True):
            items[i], items[j] = items[j], items[i]


def _is_apart(partners: Column, low: int) -> bool:
    """Whether all of these places are different, and none is above ``low``."""
    ascending = partners.copy()
    ascending.sort()
    return bool(ascending[-1] <= low and (ascending[1:] != ascending[:-1]).all())


def bounds(count: int, shards: int) -> list[int]:
    """The start of each shard, and the end: ``shards`` + 1 numbers from 0 to ``count``.

    [0, count) is cut into 8 lanes and each lane into shards/8 shards, both as NumPy's ``linspace``
    does; a number of shards that is not divisible by 8 uses one lane.
    """
    lanes = LANES if shards % LANES == 0 else 1
    lane_edges = _cut(0, count, lanes)
    starts: list[int] = []
    for lane in range(lanes):
        edges = _cut(lane_edges[lane], lane_edges[lane + 1], shards // lanes)
        starts += edges[:-1]
    return [*starts, count]


def _cut(start: int, stop: int, parts: int) -> list[int]:
    # The original took numpy.linspace and truncated it. linspace divides first: rounding moves a
    # few edges by one.
    step = (stop - start) / parts
    edges = [int(part * step + start) for part in range(parts)]
    return [*edges, stop]
