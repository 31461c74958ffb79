"""draw_parts: the parts that RandomResizedCrop draws of many images, at a tenth of the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from imagenet_prep.images.parts import ImagePart
from imagenet_prep.torch.crops import RandomResizedCrop

ATTEMPTS = 5
"""Attempts that are computed for all images; few need more."""

UNSURE = 2e-6
"""The share of a side by which PyTorch's float32 may be apart:
it may be rounded to another whole number then.
"""

Draw = tuple[ImagePart, bool]
"""A part, and whether to mirror it."""


def draw_parts(
    crop: RandomResizedCrop, seeds: Sequence[int], sizes: Sequence[tuple[int, int]]
) -> list[Draw]:
    """What ``choose`` and ``draw_flip`` draw after each seed, for images of these heights and
    widths.

    PyTorch's Mersenne twister is NumPy's. The crop itself draws few parts, those that could come
    out differently.
    """
    numbers = _random_numbers(seeds)
    shares = (numbers & 0xFFFFFF) / 2**24
    limits = np.array(sizes, np.float64).T[:, :, None]  # height and width of each image
    sides = _sides_of_attempts(crop, shares, limits[0] * limits[1])
    rounded = np.round(sides)
    side_fits = (rounded > 0) & (rounded <= limits)
    fits = side_fits.all(0)
    distances = np.abs(sides - rounded)
    is_unsure = (distances > 0.5 - UNSURE * sides).any(0)
    images = np.arange(len(seeds))
    attempt = fits.argmax(1)  # the one that the crop takes
    is_tried = np.arange(ATTEMPTS) <= attempt[:, None]
    has_doubt = (is_unsure & is_tried).any(1)
    is_sure = fits[images, attempt] & ~has_doubt
    chosen = rounded[:, images, attempt]
    position = 2 * attempt + 2
    drawn = np.stack([numbers[images, position], numbers[images, position + 1]])
    room = limits[:, :, 0] - chosen + 1
    room = np.where(is_sure, room, 1).astype(np.uint64)
    corners = drawn % room
    parts = np.concatenate([corners.astype(np.int64), chosen.astype(np.int64)])
    flips = shares[images, position + 2] < crop.flip
    draws: list[Draw] = []
    for part, is_flipped in zip(parts.T.tolist(), flips.tolist(), strict=True):
        draws.append((ImagePart(*part), is_flipped))
    for image in np.flatnonzero(~is_sure).tolist():
        generator = torch.Generator().manual_seed(seeds[image])
        height, width = sizes[image]
        drawn_part = crop.choose(height, width, generator)
        draws[image] = drawn_part, crop.draw_flip(generator)
    return draws


def _sides_of_attempts(crop: RandomResizedCrop, shares: Any, image_area: Any) -> Any:
    """The heights and widths that are drawn, before rounding, by image and attempt."""
    area_shares = shares[:, : 2 * ATTEMPTS : 2]
    ratio_shares = shares[:, 1 : 2 * ATTEMPTS : 2]
    least_scale, most_scale = crop.scale
    scale = least_scale + area_shares * (most_scale - least_scale)
    area = image_area * scale
    least_log, most_log = np.log(crop.ratio)
    log_ratio = least_log + ratio_shares * (most_log - least_log)
    ratio = np.exp(log_ratio)
    return np.sqrt([area / ratio, area * ratio])


def _random_numbers(seeds: Sequence[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """The first numbers of 32 bits after each seed:
    two for each attempt, two for a place, and one for a flip.
    """
    count = 2 * ATTEMPTS + 3
    bits = np.random.MT19937()
    seeder = np.random.RandomState(bits)
    numbers = np.empty((len(seeds), count), np.uint64)
    for row, seed in zip(numbers, seeds, strict=True):
        seeder.seed(seed & 0xFFFFFFFF)  # PyTorch takes these bits too
        row[:] = bits.random_raw(count)
    return numbers
