"""What only shows across the shards of ILSVRC2012: images twice or not at all, classes missing, labels all wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import pairwise

from imagenet_prep.checks.findings import Finding, Findings
from imagenet_prep.checks.shard_check import REMEDY_FOREIGN, ShardReport
from imagenet_prep.datasets import order
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.copies import find_copies
from imagenet_prep.ilsvrc2012.ordering import Ordering, check_order
from imagenet_prep.ilsvrc2012.part import WHOLE, Part
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.text import listed, number_of

LABEL_PATTERNS = {
    ProblemKind.ZERO_BASED_LABELS: (
        "labels count from 0: {} of {} records have the label of their class less one",
        "add 1 to image/class/label when reading, or make the set again with labels from 1",
    ),
    ProblemKind.DEVKIT_LABELS: (
        "labels are the devkit's ids: {} of {} records have the id of ILSVRC2012_devkit_t12 in place of the label",
        "translate them by data/imagenet_2012_devkit_synsets.txt, or make the set again",
    ),
}
"""What to say of labels that are wrong in a well-known way, and what to do."""

EXPLAINED = {ProblemKind.EXTRA_RECORD, ProblemKind.EXCHANGED_SHARD, ProblemKind.OTHER_CONVERSION}
"""Findings in a shard that explain why its images are there twice."""

TWICE = {ProblemKind.EXTRA_RECORD, ProblemKind.EXCHANGED_SHARD, ProblemKind.DUPLICATE}
"""Findings by the order of all shards that do."""


# every image once ----------------------------------------------------------------------------------------------


def check_unique(reports: Sequence[ShardReport], explained: Collection[str] = ()) -> list[Problem]:
    """Every file name once in a split; shards of which it is known already what they hold twice are left out."""
    reports = [each for each in reports if not EXPLAINED & each.counts.keys() and each.name not in explained]
    every = b"\0".join(report.names for report in reports).split(b"\0")
    every.sort()
    twice = {name for name, following in pairwise(every) if name == following and name}
    if not twice:
        return []
    first: dict[bytes, tuple[ShardReport, int]] = {}
    problems: list[Problem] = []
    for report in reports:
        findings = Findings(report.name, REMEDY_FOREIGN)
        for number, name in enumerate(report.filenames):
            if name in first:
                findings.add(_duplicate(report, number, *first[name]), report.place(number))
            elif name in twice:
                first[name] = report, number
        problems += findings.problems()
    return problems


def _duplicate(report: ShardReport, number: int, other: ShardReport, first: int) -> Finding:
    """What to say of a record whose image is in another one too: that may be the very same record."""
    where = f"record {first} of {other.name}"
    is_same = other is report and report.identity(number) == report.identity(first)
    detail = f"it is record {first} once more" if is_same else f"this image is also {where}"
    return Finding(ProblemKind.DUPLICATE, detail, got=where)


def check_facts(
    split: str,
    shards: Sequence[str],
    reports: Sequence[ShardReport],
    labels: Set[int],
    ordering: Ordering | None,
    *,
    is_part: bool,
) -> Iterator[Problem]:
    """Hold a split of which nothing is recorded against ILSVRC2012: every image once, every class, the order."""
    copies = find_copies(split, shards, reports)
    yield from copies.problems
    found = check_order(ordering, reports) if ordering else ()
    departures = [(problem, lost) for problem, lost in found if problem.subject not in copies.shards]
    strays = {problem.subject for problem, _ in departures if problem.kind in TWICE}
    yield from check_unique(reports, copies.shards | strays)
    is_all_read = all(report.is_whole for report in reports) and len(reports) == len(shards)
    has_labels = not any(LABEL_PATTERNS.keys() & report.counts.keys() for report in reports)
    gone = missing_classes(labels, WHOLE) if is_all_read and has_labels and not is_part else []
    for problem, lost in departures:
        if not lost or not gone or not all(facts.class_of(name, split) in gone for name in lost):
            yield problem
    if not is_part:
        own = [report for report in reports if report.name not in copies.overwritten | strays]
        yield from check_complete(split, shards, own, ordering, {name for _, lost in departures for name in lost})
    if gone:
        yield classes_problem(split, gone, WHOLE)


def check_complete(
    split: str, shards: Sequence[str], reports: Sequence[ShardReport], ordering: Ordering | None, named: set[str]
) -> Iterator[Problem]:
    """As many images as ILSVRC2012 has.

    What shards hold that are missing or can't be read to their end is taken as theirs by the original's partition.
    ``named`` are images whose loss has been found already.
    """
    whole = {report.name: report for report in reports if report.is_whole}
    edges = order.bounds(facts.IMAGES[split], len(shards)) if shards else []
    widths = {shard: stop - start for shard, (start, stop) in zip(shards, pairwise(edges), strict=True)}
    broken = [shard for shard in shards if shard not in whole]
    records = sum(report.records for report in whole.values())
    missing = facts.IMAGES[split] - records - sum(widths[shard] for shard in broken) - len(named)
    if missing > 0:
        names = sorted(_lost(split, whole, broken, ordering) - named)
        yield _missing_images(split, missing, names, records)
    elif missing < 0:
        expected = f"{facts.IMAGES[split]:,}"
        detail = f"{-missing:,} records too many: expected {expected}, got {records:,}"
        yield Problem(ProblemKind.WRONG_COUNT, split, detail, REMEDY_FOREIGN, expected=expected, got=f"{records:,}")


def _lost(split: str, whole: Mapping[str, ShardReport], broken: Sequence[str], ordering: Ordering | None) -> set[str]:
    """The names of lost images, where they can be known: of validation, unless they may be in shards not read."""
    if split != facts.VALIDATION or (broken and not (ordering and ordering.is_mostly)):
        return set()
    found = {name for report in whole.values() for name in report.filenames}
    if ordering is not None:
        found.update(name for shard in broken for name in ordering.planned[shard].split(b"\0"))
    names = (facts.validation_filename(number) for number in range(1, facts.IMAGES[split] + 1))
    return {name for name in names if name.encode() not in found}


def _missing_images(split: str, missing: int, names: Sequence[str], records: int) -> Problem:
    expected = f"{facts.IMAGES[split]:,}"
    what = f"{missing:,} of {expected} images {'is' if missing == 1 else 'are'} missing"
    if names:
        what += ": " + listed(names, 5)
    image = names[0] if len(names) == 1 else ""
    remedy = "get the missing shards, or make the set again; if a part is meant, verify with --allow-incomplete"
    return Problem(
        ProblemKind.MISSING_IMAGE,
        split,
        what,
        remedy,
        image=image,
        expected=expected,
        got=f"{records:,}",
        count=missing,
    )


def missing_classes(labels: Set[int], part: Part) -> list[str]:
    """The wnids of which there is no image, going by the labels that there are."""
    return [wnid for wnid, label in part.labels.items() if label not in labels]


def check_classes(
    split: str, reports: Sequence[ShardReport], labels: Set[int], part: Part, manifest: Manifest | None
) -> Iterator[Problem]:
    """Every class of a part whose shards could all be read has an image, unless its images may have been set aside."""
    has_labels = not any(LABEL_PATTERNS.keys() & report.counts.keys() for report in reports)
    if has_labels and manifest is not None and not manifest.has_set_aside and all(each.is_whole for each in reports):
        gone = missing_classes(labels, part)
        if gone:
            yield classes_problem(split, gone, part)


def classes_problem(split: str, wnids: Sequence[str], part: Part) -> Problem:
    """The problem that no image of these classes is there."""
    shown = listed(f"{wnid} ({facts.texts()[wnid]})" for wnid in wnids)
    what = number_of(len(wnids), "class has", "classes have")
    return Problem(
        ProblemKind.MISSING_CLASS,
        split,
        f"{what} no image: {shown}",
        "make the set again from all classes; if a part is meant, verify with --allow-incomplete",
        expected=str(len(part.labels)),
        got=str(len(part.labels) - len(wnids)),
        count=len(wnids),
    )


# one cause, one problem ----------------------------------------------------------------------------------------


def name_label_patterns(split: str, reports: Sequence[ShardReport], problems: Sequence[Problem]) -> list[Problem]:
    """The problems, labels that are wrong in one way throughout the split being one of them.

    Where only a few records seem to be wrong in such a way, that is chance: they have wrong labels and no more.
    """
    records = sum(report.records for report in reports)
    named = [kind for kind in LABEL_PATTERNS if 2 * _count(kind, reports) > records]
    kept = []
    for problem in problems:
        if named and problem.kind in (*LABEL_PATTERNS, ProblemKind.WRONG_LABEL):
            continue
        is_chance = problem.kind in LABEL_PATTERNS
        kept.append(dataclasses.replace(problem, kind=ProblemKind.WRONG_LABEL) if is_chance else problem)
    wrong = sum(_count(kind, reports) for kind in LABEL_PATTERNS)  # of a class or two a label is wrong in both ways
    counts = f"{wrong:,}", f"{records:,}"
    said = [(kind, *LABEL_PATTERNS[kind]) for kind in named]
    return [Problem(kind, split, what.format(*counts), remedy, count=wrong) for kind, what, remedy in said] + kept


def _count(kind: ProblemKind, reports: Sequence[ShardReport]) -> int:
    return sum(report.counts.get(kind, 0) for report in reports)
