"""Sampled images: the images of a shard that copies are compared by, and the refusal of others."""

from __future__ import annotations

from collections.abc import Sequence

from imagenet_prep.errors import OtherCopyError
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import Buffer
from imagenet_prep.tfrecord import crc32c

LOOKED_AT = 4096
"""The approximate number of images to compare, at least one per shard:
every one of a small set, or of a few shards.
"""

UNKNOWN = 0
"""The checksum of a sample that was damaged: a sound image may take its place."""


def spread(rows: Sequence[int], shards: int) -> Sequence[int]:
    """Some rows of a shard, evenly spread: as many as are compared if so many shards are."""
    count = min(len(rows), -(-LOOKED_AT // max(shards, 1)))
    return [rows[number * len(rows) // count] for number in range(count)]


def refuse_other_image(catalog: Catalog, row: int, data: Buffer, expected: int) -> None:
    """Raise OtherCopyError unless an image has the checksum of its sample."""
    if expected == UNKNOWN:
        return
    got = crc32c(data)
    if got != expected:
        raise other_image(catalog, row, expected, got)


def other_image(catalog: Catalog, row: int, expected: int, got: int) -> OtherCopyError:
    """The error for an image whose checksum is not that of its sample."""
    return OtherCopyError(
        f"{catalog.names[row]} has other bytes than when the set was planned",
        f"expected an image with the CRC-32C {expected:08x}, got {got:08x} ({catalog.place(row)})",
        "restore this image, or copy the raw data again (rsync --checksum); "
        "or, if this image is the right one, choose another folder with --output",
    )
