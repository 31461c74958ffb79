"""group_near: perceptual hashes of images -> the groups of images that look alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from imagenet_prep.errors import UsageError
from imagenet_prep.hints import install_extra

if TYPE_CHECKING:
    from PIL.Image import Image

NEAR = 3
"""Bits in which the 64-bit perceptual hashes of near-duplicates differ at most."""


def require_imagehash() -> None:
    """Check that the library for near-duplicates is installed.

    Raises:
        UsageError: it is not.
    """
    try:
        import imagehash  # noqa: F401
    except ImportError as error:
        hint = install_extra("report")
        raise UsageError("near-duplicates require ImageHash", str(error), hint) from error


def hash_of(image: Image) -> int:
    """The perceptual hash of an image, 64 bits."""
    from imagehash import phash

    bits = phash(image).hash
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def group_near(hashes: NDArray[np.uint64]) -> list[list[int]]:
    """The positions of hashes that differ in NEAR bits at most, directly or through others.

    Two such hashes agree in at least one of NEAR + 1 bands of bits, so only hashes with a common
    band are compared.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    unique, position_of_hash = np.unique(hashes, return_inverse=True)
    pairs = np.concatenate(list(_near_pairs(unique)), axis=1)
    ones = np.ones(pairs.shape[1])
    graph = coo_array((ones, tuple(pairs)), (len(unique), len(unique)))
    _, group_of_unique = connected_components(graph, directed=False)
    group_of_hash = group_of_unique[position_of_hash].tolist()
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for position, group in enumerate(group_of_hash):
        groups[group].append(position)
    return [group for group in groups.values() if len(group) > 1]


def _near_pairs(hashes: NDArray[np.uint64]) -> Iterator[NDArray[np.intp]]:
    """Positions of hashes that differ in NEAR bits at most: arrays of the shape (2, pairs)."""
    yield np.empty((2, 0), np.intp)
    width = 64 // (NEAR + 1)
    mask = np.uint64((1 << width) - 1)
    for band_number in range(NEAR + 1):
        shift = np.uint64(band_number * width)
        band = hashes >> shift & mask
        order = np.argsort(band, kind="stable")
        for distance in range(1, len(hashes)):
            is_same = band[order[distance:]] == band[order[:-distance]]
            same = np.flatnonzero(is_same)
            if not len(same):
                break
            pairs = np.stack([order[same], order[same + distance]])
            changed_bits = hashes[pairs[0]] ^ hashes[pairs[1]]
            changed_bytes = changed_bits.view(np.uint8).reshape(-1, 8)
            bit_counts = np.unpackbits(changed_bytes, axis=1).sum(1)
            yield pairs[:, bit_counts <= NEAR]
