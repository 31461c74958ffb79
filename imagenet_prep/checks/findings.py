"""The problems of one shard, no more than a reader can use."""

from __future__ import annotations

from collections import Counter

from imagenet_prep.model import Problem, ProblemKind

LIMIT = 20
"""Problems of one kind that are spelled out for one shard; the rest are counted."""


class Findings:
    """Gathers the problems of one shard; the same remedy helps against all of them."""

    def __init__(self, subject: str, remedy: str) -> None:
        self._subject = subject
        self._remedy = remedy
        self._counts: Counter[ProblemKind] = Counter()
        self._problems: list[Problem] = []

    def __len__(self) -> int:
        return self._counts.total()

    def __contains__(self, kind: ProblemKind) -> bool:
        return kind in self._counts

    def add(self, kind: ProblemKind, detail: str) -> None:
        """Take one more finding."""
        self._counts[kind] += 1
        if self._counts[kind] <= LIMIT:
            self._problems.append(Problem(kind, self._subject, detail, self._remedy))

    def problems(self) -> tuple[Problem, ...]:
        """Those spelled out, as they were found, then one a kind that says how many more there are."""
        rest = tuple(
            Problem(kind, self._subject, f"and {count - LIMIT:,} more of this kind", self._remedy)
            for kind, count in self._counts.items()
            if count > LIMIT
        )
        return tuple(self._problems) + rest


def place(number: int, offset: int, filename: str = "") -> str:
    """Where in a shard a record is: its number from 0, the byte offset of its header, its file name where known."""
    return f"record {number} at byte {offset}" + (f" ({printable(filename)})" if filename else "")


def printable(text: str) -> str:
    """Text from a file in a form that can do a terminal no harm."""
    short = text if len(text) <= 200 else text[:200] + "..."
    return short if short.isprintable() else repr(short)
