"""Which split a file belongs to: a pure function of its name, so that files that come later move none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import accumulate

_WHOLE = 1 << 64


class Shares:
    """Splits by fractions, in the order in which they are named.

    A name's SHA-256 (UTF-8), its first 8 bytes as a big-endian number over 2^64, falls in the range of one split.

    Args:
        fractions: of each split; they sum to 1.
    """

    def __init__(self, fractions: Mapping[str, float]) -> None:
        edges = [round(edge * _WHOLE) for edge in accumulate(fractions.values())]
        edges[-1] = _WHOLE
        self._edges = list(zip(edges, fractions, strict=True))

    def split_of(self, name: str) -> str:
        """The split of a name."""
        place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        return next(split for edge, split in self._edges if place < edge)
