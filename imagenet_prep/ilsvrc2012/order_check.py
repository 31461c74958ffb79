"""examine_order: compares shards with the order of 2016, which the names of the images tell, and
finds what deviates.

If nearly all shards follow it, a deviating shard shows its fault: it was exchanged, or a record was
lost, repeated or swapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from imagenet_prep.checks.examiner import Finding, problem
from imagenet_prep.checks.shard_check import REMEDY_FOREIGN, ShardReport, departure
from imagenet_prep.datasets import order
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.settings import Part
from imagenet_prep.model import Problem, ProblemKind


class Ordering(Struct, frozen=True):
    """The order of a split's shards.

    ``planned`` holds the names of each shard in canonical order, joined by NUL. ``is_canonical``
    tells whether all shards have theirs, ``is_mostly`` whether half of them do.
    """

    planned: Mapping[str, bytes]
    is_canonical: bool
    is_mostly: bool


def examine_order(
    split: str, shards: Sequence[str], reports: Sequence[ShardReport], part: Part
) -> Ordering | None:
    """Compare the fully read shards of a split with the canonical order; None if that is unknown.

    The order covers the official validation images of a part, or the train images present: if one
    of them is missing, all others move.
    """
    names = _listing(
        split, reports, part, is_complete=len(reports) == len(shards)
    )  # a repeated record counts once
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


def _listing(
    split: str, reports: Sequence[ShardReport], part: Part, *, is_complete: bool
) -> list[bytes]:
    """Every name of the split in the order of the original's listing;
    empty if not all are known.
    """
    names = list({name for report in reports for name in report.filenames})
    if split == facts.TRAIN:
        return sorted(names) if is_complete and all(names) else []
    if not all(facts.validation_number(name.decode()) for name in names):
        return []
    if not is_complete or 2 * len(names) > part.images(split, 0):
        names = [name.encode() for name in part.validation_filenames()]
    return sorted(names, key=lambda name: (facts.validation_wnids()[int(name[15:23]) - 1], name))


def check_order(
    ordering: Ordering, reports: Sequence[ShardReport]
) -> Iterator[tuple[Problem, tuple[str, ...]]]:
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
            finding = Finding(
                ProblemKind.EXCHANGED_SHARD,
                f"this is {owner} under a wrong name",
                report.name,
                owner,
            )
            yield problem(finding, report.name, f"rename it to {owner}"), ()
        elif report.is_whole:
            yield from _check_records(planned.split(b"\0"), report, ordering)


def _check_records(
    planned: list[bytes], report: ShardReport, ordering: Ordering
) -> Iterator[tuple[Problem, tuple[str, ...]]]:
    deviation = departure(planned, report.filenames)
    if deviation is None or deviation.kind is ProblemKind.OTHER_CONVERSION:
        return
    lost = tuple(planned[number].decode() for number in deviation.lost)
    name = lost[0] if deviation.kind is ProblemKind.MISSING_RECORD else ""
    finding = Finding(deviation.kind, f"{deviation.way}, by the order of all other shards", name)
    if deviation.kind is ProblemKind.EXTRA_RECORD and report.records == len(planned) + 1:
        finding = _stray(report.filenames[deviation.record], report.name, ordering) or finding
    yield problem(finding, report.name, REMEDY_FOREIGN, report.place(deviation.record, name)), lost


def _stray(name: bytes, shard: str, ordering: Ordering) -> Finding | None:
    """The finding about a record that belongs to another shard."""
    for home, names in ordering.planned.items():
        if home != shard and name in names.split(b"\0"):
            where = f"record {names.split(bytes(1)).index(name)} of {home}"
            detail = (
                f"this image is also {where}, where it belongs by the order of all other shards"
            )
            return Finding(ProblemKind.DUPLICATE, detail, got=where)
    return None
