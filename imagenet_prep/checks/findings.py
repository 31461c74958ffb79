"""The problems of one shard, no more than a reader can use."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from imagenet_prep.model import Problem, ProblemKind

LIMIT = 20
"""Problems of one kind that are spelled out for one shard; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, wherever it is."""

    kind: ProblemKind
    detail: str
    expected: str = ""
    got: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a shard a record is: number from 0, byte offset of its header, file name of its image where known."""

    record: int
    offset: int
    image: str = ""

    def __str__(self) -> str:
        return f"record {self.record} at byte {self.offset}" + (f" ({printable(self.image)})" if self.image else "")


class Findings:
    """Gathers the problems of one shard; the same remedy helps against all of them."""

    def __init__(self, subject: str, remedy: str) -> None:
        self._subject = subject
        self._remedy = remedy
        self.counts: Counter[ProblemKind] = Counter()
        self._problems: list[Problem] = []

    def __len__(self) -> int:
        return self.counts.total()

    def __contains__(self, kind: ProblemKind) -> bool:
        return kind in self.counts

    def add(self, found: Finding, at: Place | None = None) -> None:
        """Take one more finding, and the place of its record if it is about one."""
        self.counts[found.kind] += 1
        if self.counts[found.kind] <= LIMIT:
            self._problems.append(problem(found, self._subject, self._remedy, at))

    def problems(self) -> tuple[Problem, ...]:
        """Those spelled out, as they were found, then one a kind that says how many more there are."""
        rest = tuple(
            Problem(kind, self._subject, f"and {count - LIMIT:,} more of this kind", self._remedy, count=count - LIMIT)
            for kind, count in self.counts.items()
            if count > LIMIT
        )
        return tuple(self._problems) + rest


def problem(found: Finding, subject: str, remedy: str, at: Place | None = None) -> Problem:
    """A finding about a subject, in words and in values."""
    detail = found.detail if at is None else f"{at}: {found.detail}"
    record, offset, image = (None, None, "") if at is None else (at.record, at.offset, printable(at.image))
    return Problem(found.kind, subject, detail, remedy, record, offset, image, found.expected, found.got)


def printable(text: str) -> str:
    """Text from a file in a form that can do a terminal no harm."""
    short = text if len(text) <= 200 else text[:200] + "..."
    return short if short.isprintable() else repr(short)
