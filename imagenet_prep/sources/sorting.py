"""The order of rows by label and name, found a part at a time: all names as objects would fill the memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from imagenet_prep.sources.names import Names
from imagenet_prep.sources.numbers import Numbers, Places, chunks, some

if TYPE_CHECKING:
    from imagenet_prep.sources.numbers import Values

MOST = 1 << 19
"""About how many rows are sorted together."""

_SAMPLED = 1 << 8  # of so many rows one tells where the parts end


def is_sorted(names: Names, labels: Numbers) -> bool:
    """Whether rows come by label, then by the bytes of their names, and none is there twice."""
    import numpy as np

    for first, signs in names.compared():
        if len(labels):
            found = some(labels, range(first, first + len(signs) + 1)).astype(np.int64)
            signs = np.where(found[:-1] == found[1:], signs, np.sign(found[:-1] - found[1:]))
        if (signs >= 0).any():
            return False
    return True


def sorted_rows(names: Names, labels: Numbers) -> Iterator[Values]:
    """All rows by label, then by the bytes of their names, some at a time; rows that have both in common stay."""
    import numpy as np

    count = len(names)
    edges = []
    if count > MOST:
        sample = sorted(_keys(names, labels, Places(range(0, count, _SAMPLED))))
        edges = sample[MOST // _SAMPLED :: MOST // _SAMPLED]
    parts = np.zeros(count, np.uint16)
    for rows in chunks(count) if edges else ():
        parts[rows.start : rows.stop] = [bisect_right(edges, key) for key in _keys(names, labels, rows)]
    for part in range(len(edges) + 1):
        found = np.flatnonzero(parts == part)
        keys = _keys(names, labels, Places(found))
        yield found[sorted(range(len(found)), key=keys.__getitem__)]


def _keys(names: Names, labels: Numbers, rows: range | Places) -> list[bytes]:
    """What compares as label and name do."""
    import numpy as np

    found = names.encoded_of(rows)
    if not len(labels):
        return found
    lead = some(labels, rows).astype(np.dtype(">u4")).tobytes()
    return [lead[4 * place : 4 * place + 4] + name for place, name in enumerate(found)]
