"""Departure: the records of a shard and those that were written -> where and how they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

from msgspec import Struct

from imagenet_prep.model import ProblemKind
from imagenet_prep.text import number_of

R = TypeVar("R", bound=Hashable)


class Departure(Struct, frozen=True):
    """The first record in which a shard differs from the written one, and how it differs.

    ``words`` say how. ``lost`` are the numbers of written records that are missing.
    """

    kind: ProblemKind
    record: int
    words: str
    lost: tuple[int, ...] = ()


def first_difference(expected: Sequence[object], read: Sequence[object]) -> int | None:
    """The first position where two sequences differ, or None if they are equal."""
    if expected == read:
        return None
    for position, (expected_record, record) in enumerate(zip(expected, read, strict=False)):
        if expected_record != record:
            return position
    return min(len(expected), len(read))


def departure(written: list[R], read: list[R]) -> Departure | None:
    """How the records that were read differ from the written ones, compared by value;
    None if they are equal.
    """
    start = first_difference(written, read)
    if start is None:
        return None
    missing = len(written) - len(read)
    if missing > 0 and written[start + missing :] == read[start:]:
        words = "the record written here is missing"
        if missing > 1:
            words = f"{missing} records are missing from here on"
        lost = tuple(range(start, start + missing))
        return Departure(ProblemKind.MISSING_RECORD, start, words, lost)
    if missing < 0 and written[start:] == read[start - missing :]:
        words = "it was not written"
        if missing < -1:
            words = f"{-missing} records that were not written, from here on"
        return Departure(ProblemKind.EXTRA_RECORD, start, _repetition(read, start) or words)
    swapped = [*written[:start], *written[start : start + 2][::-1], *written[start + 2 :]]
    if read == swapped:
        words = f"records {start} and {start + 1} are swapped"
        return Departure(ProblemKind.SWAPPED_RECORDS, start, words)
    return _wide_departure(written, read, start)


def _repetition(read: Sequence[object], position: int) -> str:
    """The words for the record that the one at a position repeats; "" if it repeats none."""
    for number, record in enumerate(read):
        if record == read[position] and number != position:
            return f"it repeats record {number}"
    return ""


def _wide_departure(written: list[R], read: list[R], start: int) -> Departure:
    written_counts, read_counts = Counter(written), Counter(read)
    lost = written_counts - read_counts
    added = read_counts - written_counts
    if not lost and not added:
        words = "from here on the records are in another order"
        return Departure(ProblemKind.SWAPPED_RECORDS, start, words)
    if 2 * lost.total() > len(written):
        records = number_of(len(written), "record is", "records are")
        words = (
            f"{lost.total():,} of {records} not as written: perhaps a shard of another conversion"
        )
        return Departure(ProblemKind.OTHER_CONVERSION, start, words)
    lost_numbers = tuple(number for number, record in enumerate(written) if record in lost)
    if read == [record for record in written if record not in lost]:
        missing = number_of(len(lost_numbers), "record is", "records are")
        words = f"{missing} missing, this one first"
        return Departure(ProblemKind.MISSING_RECORD, start, words, lost_numbers)
    missing = number_of(lost.total(), "record is", "records are")
    others = number_of(added.total(), "was", "were")
    words = f"from here on {missing} missing and {others} not written"
    return Departure(ProblemKind.WRONG_CONTENT, start, words, lost_numbers)
