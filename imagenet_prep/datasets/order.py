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


_DRAWN = 1 << 16  # numbers at a time


def most_shards(count: int) -> int:
    """The most shards for ``count`` images: one each, or the 1024 of 2016, of which some are empty then."""
    return max(count, 1024)


def shuffled(count: int, seed: int) -> array[int]:
    """The indices 0 to ``count`` - 1 as Python 2's ``random.shuffle`` orders them after ``random.seed(seed)``.

    Python 3's own shuffle draws differently.
    """
    import numpy as np

    state = random.Random(seed).getstate()[1]
    draw = np.random.RandomState()  # draws what Python's Random does, many at a time
    draw.set_state(("MT19937", np.array(state[:-1], np.uint32), state[-1], 0, 0.0))
    order = array("I", np.arange(count, dtype=np.uint32).tobytes())
    for last in range(count - 1, 0, -_DRAWN):
        places = np.arange(last, max(last - _DRAWN, 0), -1)
        others = (draw.random_sample(len(places)) * (places + 1)).astype(np.int64)
        for i, j in zip(places.tolist(), others.tolist(), strict=True):
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
