"""The index of a shard: does it agree, and where does a shard that has changed leave it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LINE = 42  # two numbers of up to 20 digits, a space, a newline


@dataclass(frozen=True, slots=True)
class Departure:
    """The first record in which a shard differs from what was written, and in which way."""

    record: int
    way: str


def read_index(path: Path, records: int) -> list[tuple[int, int]] | None:
    """Offset and length in bytes of each record as an index says; None if it is no index.

    Nothing is read of a file that is too long for an index of about ``records`` records.

    Raises:
        OSError: it can't be read.
    """
    if path.stat().st_size > (2 * records + 1000) * _LINE:
        return None
    try:
        return [(int(offset), int(length)) for offset, length in map(bytes.split, path.read_bytes().splitlines())]
    except ValueError:
        return None


def first_difference(expected: Sequence[object], found: Sequence[object]) -> int | None:
    """Where two sequences part, or None if they are equal."""
    if expected == found:
        return None
    pairs = enumerate(zip(expected, found, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(expected), len(found)))


def departure(written: list[int], found: list[int]) -> Departure | None:
    """How the records found differ from those written, judged by their lengths; None if these don't tell."""
    k = first_difference(written, found)
    if k is None:
        return None
    missing = len(written) - len(found)
    if missing > 0 and written[k + missing :] == found[k:]:
        return Departure(k, f"{missing} missing from here on" if missing > 1 else "the record written here is missing")
    if missing < 0 and written[k:] == found[k - missing :]:
        return Departure(k, f"{-missing} that were not written, from here on" if missing < -1 else "it was not written")
    swapped = [*written[:k], *written[k : k + 2][::-1], *written[k + 2 :]]
    if found == swapped:
        return Departure(k, f"records {k} and {k + 1} are swapped")
    return Departure(k, f"expected a record of {written[k]} bytes" if k < len(written) else "expected the end")
