"""Packer: what makes the files of another container from a shard. PackedFile: one of them on its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from imagenet_prep.exports.source_shard import SourceShard


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file that is whole: ``stored`` is its name where it was made, ``path`` the one it gets below the export.

    ``size`` is in bytes; ``crc`` is the CRC32C of what was written; it holds ``records``.
    """

    stored: str
    path: str
    size: int
    crc: int
    records: int


class Packer(Protocol):
    """What makes files of a container; picklable, and the same shard always gives the same bytes.

    ``key`` names the container. ``version`` is raised when the same records give other bytes.
    ``is_a_file_each``: each image becomes a file.
    """

    key: ClassVar[str]
    version: ClassVar[int]
    is_a_file_each: ClassVar[bool]

    def pack(self, shard: SourceShard, folder: Path) -> Sequence[PackedFile]:
        """Write all records of a shard to files in ``folder``, which is empty. Nothing need be durable.

        Raises:
            InputError: a record is damaged, or can't be put there.
            OSError, WriteError: as the system refuses.
        """
