"""The two files beside a shard: where each record is, and which.

``.idx`` has a line "offset length" in bytes a record, framing included, as NVIDIA DALI's tfrecord2idx writes it. DALI
takes no third column, so ``.list`` has a line "CRC name" a record: the masked CRC of its data, in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Iterable


def encode_index(offsets: Iterable[int], lengths: Iterable[int]) -> bytes:
    """The content of an ``.idx``."""
    return "".join(map("%d %d\n".__mod__, zip(offsets, lengths, strict=True))).encode()


def encode_listing(crcs: Iterable[int], names: Iterable[str]) -> bytes:
    """The content of a ``.list``."""
    return "".join(map("%08x %s\n".__mod__, zip(crcs, names, strict=True))).encode()
