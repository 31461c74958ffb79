"""The canonical order of a split's images, computed from their names alone, and the shards that deviate from it.

If nearly all shards follow that order, a deviating shard shows its fault: it was exchanged or overwritten, or a record
was lost, repeated or swapped. This works on shards from anywhere, without a manifest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from imagenet_prep.checks.examiner import Finding, problem
from imagenet_prep.checks.shard_check import REMEDY_FOREIGN, ShardReport, departure
from imagenet_prep.datasets import order
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.part import Part
from imagenet_prep.model import Problem, ProblemKind


@dataclass(frozen=True, slots=True)
class Ordering:
    """The order of a split's shards.

    ``planned`` holds the names of each shard in canonical order, joined by NUL. ``is_canonical`` tells whether all
    shards have theirs, ``is_mostly`` whether half of them do.
    """

    planned: Mapping[str, bytes]
    is_canonical: bool
    is_mostly: bool


def examine_order(split: str, shards: Sequence[str], reports: Sequence[ShardReport], part: Part) -> Ordering | None:
    """Compare the fully read shards of a split with the canonical order; None if that is unknown.

    The order covers the official validation images of a part, or the train images present: if one of them is missing,
    all others move.
    """
    names = _listing(split, reports, part, is_complete=len(reports) == len(shards))  # a repeated record counts once
    if not names or not shards:
        return None
    picked = order.shuffled(len(names), order.SEED)
    edges = pairwise(order.bounds(len(names), len(shards)))
    planned = {
        shard: b"\0".join(names[i] for i in picked[start:stop])
        for shard, (start, stop) in zip(shards, edges, strict=True)
    }
    equal = sum(planned[report.name] == report.names for report in reports)
    return Ordering(planned, equal == len(shards), 2 * equal >= len(shards) > 1)


def _listing(split: str, reports: Sequence[ShardReport], part: Part, *, is_complete: bool) -> list[bytes]:
    """Every name of the split in the order of the original's listing; empty if not all are known."""
    found = list({name for report in reports for name in report.filenames})
    if split == facts.TRAIN:
        return sorted(found) if is_complete and all(found) else []
    if not all(facts.validation_number(name.decode()) for name in found):
        return []
    if not is_complete or 2 * len(found) > part.images(split, 0):
        found = [name.encode() for name in part.validation_filenames()]
    return sorted(found, key=lambda name: (facts.validation_wnids()[int(name[15:23]) - 1], name))


def check_order(ordering: Ordering, reports: Sequence[ShardReport]) -> Iterator[tuple[Problem, tuple[str, ...]]]:
    """Find the fault of each of the few deviating shards, and the images it lost."""
    if not ordering.is_mostly:
        return
    owners = {names: shard for shard, names in ordering.planned.items() if names}
    for report in reports:
        planned = ordering.planned[report.name]
        if planned == report.names:
            continue
        owner = owners.get(report.names)
        if owner is not None:
            found = Finding(ProblemKind.EXCHANGED_SHARD, f"this is {owner} under a wrong name", report.name, owner)
            yield problem(found, report.name, f"rename it to {owner}"), ()
        elif report.is_whole:
            yield from _check_records(planned.split(b"\0"), report, ordering)


def _check_records(
    planned: list[bytes], report: ShardReport, ordering: Ordering
) -> Iterator[tuple[Problem, tuple[str, ...]]]:
    found = departure(planned, report.filenames)
    if found is None or found.kind is ProblemKind.OTHER_CONVERSION:
        return
    lost = tuple(planned[number].decode() for number in found.lost)
    name = lost[0] if found.kind is ProblemKind.MISSING_RECORD else ""
    finding = Finding(found.kind, f"{found.way}, by the order of all other shards", name)
    if found.kind is ProblemKind.EXTRA_RECORD and report.records == len(planned) + 1:
        finding = _stray(report.filenames[found.record], report.name, ordering) or finding
    yield problem(finding, report.name, REMEDY_FOREIGN, report.place(found.record, name)), lost


def _stray(name: bytes, shard: str, ordering: Ordering) -> Finding | None:
    """The finding about a record that belongs to another shard."""
    for home, names in ordering.planned.items():
        if home != shard and name in names.split(b"\0"):
            where = f"record {names.split(bytes(1)).index(name)} of {home}"
            detail = f"this image is also {where}, where it belongs by the order of all other shards"
            return Finding(ProblemKind.DUPLICATE, detail, got=where)
    return None


# shards that hold the same records -----------------------------------------------------------------------------
#
# The names in a shard prove its place in the canonical order: the order of 2016 fixes the position of each of its
# images in the sorted listing. No other shard is required, so this works even if the images that a copy overwrote are
# no longer known.

REMEDY_COPIES = "get intact copies of these shards, or a second set to compare them with"

FEW = 8
"""The minimum number of records whose canonical order can't be chance."""

MANY = 8
"""The maximum number of copies in a part for which the total is guessed: each try takes a second."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Shards that hold the same records.

    ``shards`` are all of them, including those in their own place; ``overwritten`` are the known copies.
    """

    problems: tuple[Problem, ...]
    shards: frozenset[str]
    overwritten: frozenset[str]


def find_copies(split: str, shards: Sequence[str], reports: Sequence[ShardReport]) -> Copies:
    """Find shards of a split with the same records; the canonical order identifies copies, if it can."""
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
    """The shards in their own place, if most are; otherwise the order is a different one and proves nothing.

    The total is known for the whole data set; for a part, it varies with the lengths of copies.
    """
    found = sum(report.records for report in reports)
    counts = set(range(found - copies, found + copies + 1)) if copies <= MANY else set()
    if 2 * found > facts.IMAGES[split]:
        counts.add(facts.IMAGES[split])
    listed = {  # the sort key of the original's listing, per record: the class, then the name
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
    """The indices that sort the values."""
    return sorted(range(len(values)), key=values.__getitem__)


def _same(split: str, names: Sequence[str]) -> Problem:
    listed = " and ".join((", ".join(names[:-1]), names[-1]))
    detail = f"{listed} hold the same records: all except one are copies, but the original is unknown"
    return Problem(ProblemKind.DUPLICATE, split, detail, REMEDY_COPIES)
