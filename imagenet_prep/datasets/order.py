"""Canonical shuffle and shard partition: pure functions, the same on every machine.

The record set of 2016 was made by ``build_imagenet_data.py`` (tensorflow/models, Inception) under Python 2 from a
sorted listing: its order is this one.
"""

from __future__ import annotations

import random
from array import array

SEED = 12345
"""Of the shuffle of 2016."""

LANES = 8
"""The threads of the original: it cut the images in 8 lanes, and each lane in shards/8 shards."""


def most_shards(count: int) -> int:
    """The most shards for ``count`` images: one each, or the 1024 of 2016, of which some are empty then."""
    return max(count, 1024)


def shuffled(count: int, seed: int) -> array[int]:
    """The indices 0 to ``count`` - 1 as Python 2's ``random.shuffle`` orders them after ``random.seed(seed)``.

    Python 3's own shuffle draws differently.
    """
    draw = random.Random(seed).random
    order = array("I", range(count))
    for i in range(count - 1, 0, -1):
        j = int(draw() * (i + 1))
        order[i], order[j] = order[j], order[i]
    return order


def bounds(count: int, shards: int) -> list[int]:
    """Where each shard starts: ``shards`` + 1 numbers from 0 to ``count``.

    [0, count) is cut in 8 lanes and each lane in shards/8 shards, both at ``int(start + k * (stop - start) / parts)``;
    a number of shards that is not divisible by 8 uses one lane.
    """
    lanes = LANES if shards % LANES == 0 else 1
    lane_edges = _cut(0, count, lanes)
    starts = [
        edge for lane in range(lanes) for edge in _cut(lane_edges[lane], lane_edges[lane + 1], shards // lanes)[:-1]
    ]
    return [*starts, count]


def _cut(start: int, stop: int, parts: int) -> list[int]:
    # The original took numpy.linspace and truncated it: start + k * step in double precision.
    return [int(start + k * (stop - start) / parts) for k in range(parts)] + [stop]
