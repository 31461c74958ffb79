"""The two files beside a shard: where each record is, and which.

``.idx`` has a line "offset length" in bytes a record, framing included, as NVIDIA DALI's tfrecord2idx writes it. DALI
takes no third column, so ``.list`` has a line "CRC name" a record: the masked CRC of its data, in hexadecimal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from imagenet_prep.tfrecord.framing import OVERHEAD, Buffer, framing_digest


@dataclass(slots=True)
class Index:
    """The records of a shard in order: offset, length with framing, data CRC as stored, file name."""

    offsets: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    crcs: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, length: int, crc: int, name: str) -> None:
        """Append the record that begins where the last one ends."""
        self.offsets.append(self.offsets[-1] + self.lengths[-1] if self.offsets else 0)
        self.lengths.append(length)
        self.crcs.append(crc)
        self.names.append(name)

    @property
    def digest(self) -> str:
        """The digest of the shard."""
        return framing_digest((length - OVERHEAD for length in self.lengths), self.crcs)

    @property
    def identities(self) -> list[tuple[int, int]]:
        """What tells a record from any other: length and CRC."""
        return list(zip(self.lengths, self.crcs, strict=True))

    @property
    def places(self) -> Iterable[tuple[int, int, int]]:
        """Offset, length and CRC of each record."""
        return zip(self.offsets, self.lengths, self.crcs, strict=True)

    def encode(self) -> tuple[bytes, bytes]:
        """The content of both files."""
        return encode_index(self.offsets, self.lengths), encode_listing(self.crcs, self.names)


def decode(offsets: Buffer, listing: Buffer) -> Index | None:
    """Both files of an index, or None if they are not as they are written, byte for byte."""
    content = bytes(offsets), bytes(listing)
    try:
        pairs = [(int(offset), int(length)) for offset, length in map(bytes.split, content[0].splitlines())]
        lines = [line.split(" ", 1) for line in content[1].decode().split("\n")[:-1]]  # names may hold other separators
        crcs = [int(crc, 16) for crc, _ in lines]
    except ValueError:
        return None
    if len(pairs) != len(crcs) or any(crc >> 32 for crc in crcs) or any(length < OVERHEAD for _, length in pairs):
        return None
    index = Index([each for each, _ in pairs], [each for _, each in pairs], crcs, [name for _, name in lines])
    return index if content == index.encode() else None


def encode_index(offsets: Iterable[int], lengths: Iterable[int]) -> bytes:
    """The content of an ``.idx``."""
    return "".join(map("%d %d\n".__mod__, zip(offsets, lengths, strict=True))).encode()


def decode_index(content: bytes) -> array[int] | None:
    """The offset of each record and that of the end; None unless they follow one another from 0 on without a gap."""
    try:
        numbers = array("Q", map(int, content.split()))
        ends = array("Q", accumulate(numbers[1::2], initial=0))
    except (ValueError, OverflowError):
        return None
    return ends if ends[:-1] == numbers[::2] else None


def encode_listing(crcs: Iterable[int], names: Iterable[str]) -> bytes:
    """The content of a ``.list``."""
    return "".join(map("%08x %s\n".__mod__, zip(crcs, names, strict=True))).encode()
