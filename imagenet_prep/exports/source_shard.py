"""SourceShard: one finished shard, whose records go to another container."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.reading.shard import Record, Shard, remedy
from imagenet_prep.tfrecord.framing import framing_digest


@dataclass(frozen=True, slots=True)
class SourceShard:
    """Shard ``index`` of the ``count`` of a split: its file, of ``size`` bytes, and the digest on record ("": none)."""

    path: Path
    split: str
    index: int
    count: int
    size: int
    digest: str = ""

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.path.name

    def records(self) -> Iterator[Record]:
        """Every record, its CRC checked, and in the end that they are those on record.

        Raises:
            InputError: the shard can't be opened; a record is damaged, which the error names; or the records are not
                those that were written.
        """
        shard = Shard.open(self.path, in_order=True)
        lengths, crcs = array("Q"), array("I")
        for framed in shard.followed():
            yield shard.sound(framed)
            lengths.append(len(framed.data))
            crcs.append(framed.crc)
        if self.digest and framing_digest(lengths, crcs) != self.digest:
            raise InputError(
                f"{self.path} does not hold the records that its manifest says",
                f"expected the digest {self.digest[:12]}, got that of {len(crcs):,} sound records that are others",
                remedy(self.path),
            )
