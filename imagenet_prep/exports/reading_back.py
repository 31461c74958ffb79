"""Reading files back: the CRC32C of what lies there."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.storage.mapped import map_file
from imagenet_prep.tfrecord.crc import crc32c

_MAPPED = 1 << 20  # bytes from which a map costs less than a copy: half of it


def crc_of(path: Path) -> int:
    """The CRC32C of a whole file; raises OSError, or InputError, if it can't be read."""
    return crc32c(map_file(path, in_order=True) if path.stat().st_size >= _MAPPED else path.read_bytes())
