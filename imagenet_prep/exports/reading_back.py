"""Reading files back: the CRC32C of what lies on the disk, through one buffer."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.tfrecord.crc import crc32c

_BUFFER = 1 << 20


def crc_of(path: Path) -> int:
    """The CRC32C of a whole file; raises OSError."""
    crc, view = 0, memoryview(bytearray(_BUFFER))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(view):
            crc = crc32c(view[:count], crc)
    return crc
