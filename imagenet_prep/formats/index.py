"""The two files beside a shard: where each record is, and which.

``.idx`` has a line "offset length" in bytes a record, framing included, as NVIDIA DALI's tfrecord2idx writes it. DALI
takes no third column, so ``.list`` has a line "CRC name" a record: the masked CRC of its data, in hexadecimal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate


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
