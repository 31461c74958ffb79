"""RawVerdict: what is known of a copy of images before it is converted;
RawListing, which a data set makes of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol

from msgspec import Struct, field

from imagenet_prep.checks.raw_check import ImageFindings, RawSplit
from imagenet_prep.checks.verdict import (
    Depth,
    Level,
    ReasonedLevel,
    as_json,
    conclusion_of,
    remarks_of,
)
from imagenet_prep.model import Problem
from imagenet_prep.text import listed, number_of

_SHOWN = 10
"""Problems of a kind beyond this number are printed as a count."""


class RawListing(Protocol):
    """A copy of a data set, as it was listed: what is there, what is missing, and what is foreign.

    Args:
        dataset: the name of the data set.
        splits: those that are there.
        problems: what keeps convert from reading the copy, and what is missing.
        depth: that of the check of its images.
        notes: remarks that are not problems.
        skipped: how many files are no images of the data set, and are skipped.
    """

    @property
    def dataset(self) -> str: ...  # noqa: D102 - each is described above
    @property
    def splits(self) -> tuple[RawSplit, ...]: ...  # noqa: D102
    @property
    def problems(self) -> tuple[Problem, ...]: ...  # noqa: D102
    @property
    def depth(self) -> Depth: ...  # noqa: D102
    @property
    def notes(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def skipped(self) -> int: ...  # noqa: D102

    def judge(self, findings: ImageFindings) -> tuple[tuple[Problem, ...], ReasonedLevel]:
        """The problems of all images together,
        and the level of the copy if there are no problems.
        """
        ...


class RawTotal(Struct, frozen=True):
    """The totals of one split; ``expected`` is None if nobody knows how
    many images there should be.
    """

    split: str
    place: str
    images: int
    expected: int | None
    classes: int
    boxes: int
    bytes: int

    @classmethod
    def take(cls, split: RawSplit) -> RawTotal:
        """The totals of a split that was listed."""
        catalog = split.catalog
        classes = len(catalog.count_by_label().keys() - {0})
        size = catalog.size(range(len(catalog)))
        return cls(
            split.name,
            split.place,
            len(catalog),
            split.expected,
            classes,
            len(catalog.boxes) // 4,
            size,
        )


class RawVerdict(Struct, frozen=True):
    """The result of verify for images that are not converted yet.

    Args:
        raw: the folder.
        depth: how thorough the check was.
        problems: every finding.
        totals: one per split that is there.
        level: how complete and sound the copy is, in the words of ``Verdict``.
        reason: why, as a sentence without its first capital; "" if the problems say it.
        counts: the number of "damaged", "warned" and "odd" images, and of "skipped" files; without
            those that are 0.
        notes: remarks that are not problems.
        odd: images that convert changes, with their former format; the first 10,000.
        warned: unusual images whose pixels are whole, with what is unusual; the first 10,000.
        twins: pairs of images with the same bytes; the first 10,000.
        dataset: its name.
    """

    raw: str
    depth: Depth
    problems: tuple[Problem, ...]
    totals: tuple[RawTotal, ...]
    level: Level = field(name="verdict")
    reason: str
    counts: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    twins: tuple[tuple[str, str], ...] = ()
    dataset: str = ""

    @property
    def conclusion(self) -> str:
        """The level and the reason for it, in a line."""
        unread = "images" if self.depth == "quick" else ""
        return conclusion_of(self.level, self.reason, len(self.problems), unread)

    @property
    def remarks(self) -> str:
        """The counts in a line; "" if all are 0."""
        return remarks_of(self.counts)

    @property
    def shown_problems(self) -> tuple[Problem, ...]:
        """The problems to print: the first ones of each kind, then how many more there are."""
        shown: list[Problem] = []
        for _, group in itertools.groupby(
            sorted(self.problems, key=attrgetter("kind")), key=attrgetter("kind")
        ):
            shown += _first(list(group))
        return tuple(shown)

    def as_dict(self) -> dict[str, Any]:
        """The verdict as JSON-ready values."""
        return as_json(self)


def _first(problems: Sequence[Problem]) -> list[Problem]:
    if len(problems) <= _SHOWN:
        return [*problems]
    unshown = problems[_SHOWN:]
    count = sum(problem.count for problem in unshown)
    subjects = dict.fromkeys(problem.subject for problem in unshown)
    unshown_words = number_of(
        len(unshown), "more problem of this kind", "more problems of this kind"
    )
    detail = f"{listed(subjects)}; --json FILE lists all"
    return [
        *problems[:_SHOWN],
        Problem(unshown[0].kind, f"and {unshown_words}", detail, count=count),
    ]
