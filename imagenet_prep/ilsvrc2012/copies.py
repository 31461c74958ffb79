"""Shards that hold the same records, in a set of which nothing is recorded: which of them is the copy?

A shard in the canonical order shows that it is in its own place by its names alone: the order of 2016 says which of its
images comes first, second, ... in the sorted listing. That takes no other shard, and so it works though the images
that the copy overwrote are not known any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from imagenet_prep.checks.shard_check import REMEDY_FOREIGN, ShardReport
from imagenet_prep.datasets import order
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Problem, ProblemKind

REMEDY_COPIES = "get sound copies of these shards, or a second set to compare them with"

FEW = 8
"""Fewer records than these can be in the canonical order by chance."""

MANY = 8
"""Of more copies in a part it is not tried out how many images there were: each try costs a second."""


@dataclass(frozen=True, slots=True)
class Copies:
    """What was found of shards that hold the same records.

    ``shards`` are all of them, those in their own place too; ``overwritten`` the ones known to be copies.
    """

    problems: tuple[Problem, ...]
    shards: frozenset[str]
    overwritten: frozenset[str]


def find_copies(split: str, shards: Sequence[str], reports: Sequence[ShardReport]) -> Copies:
    """Shards of a split that hold the same records, the copies named where the canonical order tells them."""
    same: defaultdict[str, list[ShardReport]] = defaultdict(list)
    for report in reports:
        if report.is_whole and report.records:
            same[report.digest].append(report)
    groups = [group for group in same.values() if len(group) > 1]
    if not groups:
        return Copies((), frozenset(), frozenset())
    copies = sum(len(group) - 1 for group in groups)
    placed = _in_place(split, shards, reports, copies)
    problems: list[Problem] = []
    for group in groups:
        names = [report.name for report in group]
        original = [name for name in names if name in placed]
        if len(original) == 1:
            detail = f"this is a copy of {original[0]}, which is in its own place"
            problems += [
                Problem(ProblemKind.EXCHANGED_SHARD, name, detail, REMEDY_FOREIGN, expected=name, got=original[0])
                for name in names
                if name not in placed
            ]
        else:
            problems.append(_same(split, names))
    named = frozenset(problem.subject for problem in problems) - {split}
    return Copies(tuple(problems), frozenset(report.name for group in groups for report in group), named)


def _in_place(split: str, shards: Sequence[str], reports: Sequence[ShardReport], copies: int) -> set[str]:
    """The shards that are in their own place, if most are: if not, the order is another one and tells nothing.

    How many images there were is known of a whole; of a part, but for what copies are longer or shorter by.
    """
    found = sum(report.records for report in reports)
    counts = set(range(found - copies, found + copies + 1)) if copies <= MANY else set()
    if 2 * found > facts.IMAGES[split]:
        counts.add(facts.IMAGES[split])
    listed = {  # what the original's listing was sorted by, of each record: the class, then the name
        report.name: [(facts.class_of(name.decode(), split) or "", name) for name in report.filenames]
        for report in reports
        if report.records >= FEW
    }
    ranks = {name: _ranks(values) for name, values in listed.items()}
    best: set[str] = set()
    for count in sorted(counts):
        picked = order.shuffled(count, order.SEED)
        rows = {
            name: picked[start:stop]
            for name, (start, stop) in zip(shards, pairwise(order.bounds(count, len(shards))), strict=True)
        }
        best = max(best, {name for name, own in ranks.items() if own == _ranks(rows[name])}, key=len)
    return best if 2 * len(best) >= len(shards) else set()


def _ranks(values: Sequence[Any]) -> list[int]:
    """The numbers of the values from the least to the greatest."""
    return sorted(range(len(values)), key=values.__getitem__)


def _same(split: str, names: Sequence[str]) -> Problem:
    listed = " and ".join((", ".join(names[:-1]), names[-1]))
    detail = f"{listed} hold the same records: all but one are copies, and nothing tells which"
    return Problem(ProblemKind.DUPLICATE, split, detail, REMEDY_COPIES)
