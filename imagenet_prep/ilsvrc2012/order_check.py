"""examine_order: compares shards with the order of 2016, which the names of the images tell, and
finds what deviates.

If nearly all shards follow it, a deviating shard shows its fault: it was exchanged, or a record was
lost, repeated or swapped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from imagenet_prep.checks.departure import departure
from imagenet_prep.checks.examiner import Finding, problem
from imagenet_prep.checks.shard_check import REMEDY_FOREIGN, ShardReport
from imagenet_prep.datasets import order
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import Part
from imagenet_prep.model import Problem, ProblemKind


class Ordering(Struct, frozen=True):
    """The order of a split's shards.

    ``planned`` holds the names of each shard in canonical order, joined by NUL. ``is_canonical``
    tells whether all shards have theirs, None if some are missing. ``is_mostly_canonical`` tells
    whether at least half of them do, and ``words`` how many.
    """

    planned: Mapping[str, bytes]
    is_canonical: bool | None
    is_mostly_canonical: bool
    words: str


class OrderProblem(Struct, frozen=True):
    """The fault of a shard by the order, and the images that it lost."""

    problem: Problem
    lost_images: tuple[str, ...] = ()


def original_sizes(images: int, shards: int) -> list[int]:
    """The records of each shard, as the original's script cuts so many images."""
    return [stop - start for start, stop in pairwise(order.bounds(images, shards))]


def count_planned(split: str, all_shards: Sequence[str], shards: Collection[str]) -> int:
    """The records that the original's partition gives ``shards``, which are some of a split's."""
    if not shards:
        return 0
    sizes = original_sizes(facts.IMAGES[split], len(all_shards))
    size_of = dict(zip(all_shards, sizes, strict=True))
    return sum(size_of[shard] for shard in shards)


def examine_order(
    split: str, shards: Sequence[str], reports: Sequence[ShardReport], part: Part
) -> Ordering | None:
    """Compare the fully read shards of a split with the canonical order; None if that is unknown.

    The order covers the official validation images of a part, or the train images present: if one
    of them is missing, all others move.
    """
    names = _listing(split, reports, part, is_complete=len(reports) == len(shards))
    if not names or not shards:
        return None
    places = order.shuffled(len(names), order.SEED)
    edges = order.bounds(len(names), len(shards))
    bounds = pairwise(edges)
    planned: dict[str, bytes] = {}
    for shard, (start, stop) in zip(shards, bounds, strict=True):
        planned[shard] = b"\0".join(names[place] for place in places[start:stop])
    equal_shards = sum(planned[report.name] == report.names for report in reports)
    is_canonical = equal_shards == len(shards) if len(reports) == len(shards) else None
    is_mostly_canonical = 2 * equal_shards >= len(shards) > 1
    words = f"by the order of 2016, which {equal_shards:,} of {len(shards):,} shards have"
    return Ordering(planned, is_canonical, is_mostly_canonical, words)


def _listing(
    split: str, reports: Sequence[ShardReport], part: Part, *, is_complete: bool
) -> list[bytes]:
    """Every name of the split in the order of the original's listing;
    empty if not all are known.
    """
    distinct_names: set[bytes] = set()  # a repeated record counts once
    for report in reports:
        distinct_names.update(report.filenames)
    if split == facts.VALIDATION:
        return _validation_listing(list(distinct_names), part, is_complete=is_complete)
    if not is_complete or b"" in distinct_names:
        return []
    return sorted(distinct_names)


def _validation_listing(names: list[bytes], part: Part, *, is_complete: bool) -> list[bytes]:
    """The validation images by class, then by name; the official ones if most are there."""
    if not all(facts.validation_number(name.decode()) for name in names):
        return []
    if not is_complete or 2 * len(names) > part.images(facts.VALIDATION, 0):
        names = [name.encode() for name in part.validation_filenames()]
    wnids = facts.validation_wnids()

    def class_and_name(name: bytes) -> tuple[str, bytes]:
        number = int(name[15:23])  # in ILSVRC2012_val_00000001.JPEG
        return wnids[number - 1], name

    return sorted(names, key=class_and_name)


def check_order(ordering: Ordering, reports: Sequence[ShardReport]) -> Iterator[OrderProblem]:
    """Find the fault of each of the few deviating shards, and the images it lost."""
    if not ordering.is_mostly_canonical:
        return
    present_shards = {report.name for report in reports}
    shards_by_names = {names: shard for shard, names in ordering.planned.items() if names}
    for report in reports:
        planned = ordering.planned[report.name]
        if planned == report.names:
            continue
        right_name = shards_by_names.get(report.names)
        if right_name is not None:
            detail = f"this is {right_name} under a wrong name"
            finding = Finding(ProblemKind.EXCHANGED_SHARD, detail, report.name, right_name)
            remedy = f"rename it to {right_name}"
            if right_name in present_shards:
                remedy = (
                    f"move the shard that is named {right_name} away, "
                    f"then rename this one to {right_name}"
                )
            exchanged = problem(finding, report.name, remedy)
            yield OrderProblem(exchanged)
        elif report.is_whole:
            planned_names = planned.split(b"\0")
            yield from _check_records(planned_names, report, ordering, reports)


def _check_records(
    planned: list[bytes], report: ShardReport, ordering: Ordering, reports: Sequence[ShardReport]
) -> Iterator[OrderProblem]:
    """The fault of a shard that deviates in a few records."""
    deviation = departure(planned, report.filenames)
    if deviation is None or deviation.kind is ProblemKind.OTHER_CONVERSION:
        return
    lost_images = tuple(planned[number].decode() for number in deviation.lost)
    image = ""
    if deviation.kind is ProblemKind.MISSING_RECORD:
        image = lost_images[0]
    detail = f"{deviation.words}, {ordering.words}"
    finding = Finding(deviation.kind, detail, image)
    if deviation.kind is ProblemKind.EXTRA_RECORD and report.records == len(planned) + 1:
        stray = report.filenames[deviation.record]
        finding = _stray(stray, report.name, ordering, reports) or finding
    place = report.place(deviation.record, image)
    yield OrderProblem(problem(finding, report.name, REMEDY_FOREIGN, place), lost_images)


def _stray(
    name: bytes, shard: str, ordering: Ordering, reports: Sequence[ShardReport]
) -> Finding | None:
    """The finding about a record that belongs to another shard, which may have it too."""
    filenames = {report.name: report.filenames for report in reports}
    for home, joined_names in ordering.planned.items():
        if home == shard:
            continue
        names = joined_names.split(b"\0")
        if name in names:
            place = f"record {names.index(name)} of {home}"
            if name not in filenames.get(home, ()):
                detail = f"this image belongs to {home}, {ordering.words}"
                return Finding(ProblemKind.EXTRA_RECORD, detail)
            detail = f"this image is also {place}, where it belongs {ordering.words}"
            return Finding(ProblemKind.DUPLICATE, detail, got=place)
    return None
