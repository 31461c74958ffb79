"""check_set: finds the faults that only all shards of ILSVRC2012 show: lost or repeated images, order, classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from imagenet_prep.checks.dataset import SetFindings
from imagenet_prep.checks.examiner import Examiner, Finding, Findings
from imagenet_prep.checks.inventory import Checked, Inventory, check_totals
from imagenet_prep.checks.shard_check import REMEDY_FOREIGN, ShardReport
from imagenet_prep.datasets import order
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.ordering import Ordering, check_order, examine_order, find_copies
from imagenet_prep.ilsvrc2012.part import WHOLE, Part
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.text import listed, number_of

LABEL_PATTERNS = {
    ProblemKind.ZERO_BASED_LABELS: (
        "labels count from 0: {} of {} records have their class's label minus 1",
        "add 1 to image/class/label when reading, or make the set again with labels from 1",
    ),
    ProblemKind.DEVKIT_LABELS: (
        "labels are the devkit's ids: {} of {} records have the id of ILSVRC2012_devkit_t12 in place of the label",
        "translate them with imagenet_2012_devkit_synsets.txt, or make the set again",
    ),
}
"""The message and the remedy for labels that are wrong in a well-known way."""

EXPLAINED = {ProblemKind.EXTRA_RECORD, ProblemKind.EXCHANGED_SHARD, ProblemKind.OTHER_CONVERSION}
"""Findings in a shard that explain repeated images."""

TWICE = {ProblemKind.EXTRA_RECORD, ProblemKind.EXCHANGED_SHARD, ProblemKind.DUPLICATE}
"""Findings by the order of all shards that explain them."""


@dataclass(frozen=True, slots=True)
class _Split:
    """The state of a split: the names of its shards, their findings, and all labels in their records.

    Args:
        ordering: the order of its shards; None if unknown, and not computed if ``is_proven``.
        is_proven: the shards hold exactly the records that convert wrote: no name repeats, and the order is right.
    """

    name: str
    inventory: Inventory
    reports: Sequence[ShardReport]
    labels: Set[int]
    part: Part
    ordering: Ordering | None
    is_proven: bool

    @property
    def shards(self) -> Sequence[str]:
        """The names of all expected shards, as far as known."""
        return self.inventory.of(self.name)

    @property
    def is_all_read(self) -> bool:
        """Whether every shard could be read to its end."""
        return len(self.reports) == len(self.shards) and all(report.is_whole for report in self.reports)

    @property
    def missing_classes(self) -> list[str]:
        """The wnids without an image, by the labels found."""
        return [wnid for wnid, label in self.part.labels.items() if label not in self.labels]

    @property
    def has_labels(self) -> bool:
        """Whether labels identify classes; not if they are wrong in a well-known way."""
        return not any(LABEL_PATTERNS.keys() & report.counts.keys() for report in self.reports)


def check_set(inventory: Inventory, checked: Checked, examiner: Examiner, *, is_part: bool) -> SetFindings:
    """Check that every image occurs once, in order, and every class has one; see Dataset."""
    assert isinstance(examiner, ImageNetExaminer)
    splits = [_take(inventory, checked, examiner.part, split) for split in facts.SPLITS]
    problems: list[Problem] = []
    notes: list[str] = []
    for split in splits:
        problems += _check_split(split, is_part=is_part)
        if not is_part and split.reports:
            problems += _check_classes(split)
        notes += _class_notes(split, is_part=is_part)
    has_records = any(report.records for report in checked.reports.values())
    return SetFindings(
        tuple(problems),
        tuple(notes),
        examiner.flavour.name if has_records else "none",
        examiner.flavour.differences,
        _order(splits),
    )


def _take(inventory: Inventory, checked: Checked, part: Part, split: str) -> _Split:
    shards = inventory.of(split)
    reports = checked.of(shards)
    is_proven = (
        inventory.manifest is not None
        and len(reports) == len(shards)
        and not any(report.problems for report in reports)
    )
    ordering = None if is_proven else examine_order(split, shards, reports, part)
    return _Split(split, inventory, reports, checked.labels[split], part, ordering, is_proven)


def _order(splits: Sequence[_Split]) -> str:
    """The order of the images, as far as known: by names, or as convert made it."""
    known: list[bool | None] = []
    for split in splits:
        manifest = split.inventory.manifest
        if split.is_proven and manifest is not None and split.shards:
            settings = manifest.settings
            known.append((settings.get("seed"), settings.get("shuffle")) == (order.SEED, True))
        elif split.shards:
            known.append(split.ordering.is_canonical if split.ordering else None)
    if False in known:
        return "not canonical"
    return "canonical" if known and all(known) else "unknown"


def _check_split(split: _Split, *, is_part: bool) -> list[Problem]:
    """Each shard's own problems in order, then those that only show across the shards of a split."""
    own = [problem for report in split.reports for problem in report.problems]
    manifest, reports = split.inventory.manifest, split.reports
    if not split.is_proven:
        own = _name_label_patterns(split, own)
        if split.inventory.infos:
            own += _check_unique(reports)
    if manifest is not None:
        if split.name in manifest.totals and not own and len(reports) == len(split.shards):
            own += check_totals(split.name, reports, len(split.labels), manifest)
        return own
    if split.inventory.infos:
        return own  # the conversion is unfinished, or its manifest damaged: only the journal knows the shards
    return own + list(_check_facts(split, is_part=is_part))


def _check_classes(split: _Split) -> Iterator[Problem]:
    """Check that each class of a part has an image, if all shards could be read and no image may be set aside."""
    manifest = split.inventory.manifest
    if split.has_labels and manifest is not None and not manifest.has_set_aside and split.is_all_read:
        yield from _classes_problem(split, split.missing_classes)


def _class_notes(split: _Split, *, is_part: bool) -> Iterator[str]:
    """Describe the few classes that a part lacks, and how another tool's shards are cut."""
    lacking, reports = split.missing_classes, split.reports
    if is_part and 0 < len(lacking) <= 5:
        yield f"{split.name}: no image of {', '.join(f'{wnid} ({facts.texts()[wnid]})' for wnid in lacking)}"
    if split.inventory.manifest is None and reports and not split.inventory.is_unfinished:
        edges = order.bounds(sum(report.records for report in reports), len(reports))
        if [stop - start for start, stop in pairwise(edges)] != [report.records for report in reports]:
            yield f"{split.name}: the records per shard differ from the original's partition"


# a split without a record of it ---------------------------------------------------------------------------------


def _check_facts(split: _Split, *, is_part: bool) -> Iterator[Problem]:
    """Compare it with ILSVRC2012: every image once, every class, the order."""
    copies = find_copies(split.name, split.shards, split.reports)
    yield from copies.problems
    found = check_order(split.ordering, split.reports) if split.ordering else ()
    departures = [(problem, lost) for problem, lost in found if problem.subject not in copies.shards]
    strays = {problem.subject for problem, _ in departures if problem.kind in TWICE}
    yield from _check_unique(split.reports, copies.shards | strays)
    whole = dataclasses.replace(split, part=WHOLE)
    gone = whole.missing_classes if split.is_all_read and split.has_labels and not is_part else []
    for problem, lost in departures:
        if not lost or not gone or not all(facts.class_of(name, split.name) in gone for name in lost):
            yield problem
    if not is_part:
        doubtful = copies.overwritten | strays
        own = dataclasses.replace(split, reports=[each for each in split.reports if each.name not in doubtful])
        yield from _check_complete(own, {name for _, lost in departures for name in lost})
    yield from _classes_problem(whole, gone)


def _check_unique(reports: Sequence[ShardReport], explained: Collection[str] = ()) -> list[Problem]:
    """Check that every file name occurs once in a split; shards already known to repeat images are left out."""
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
    """The finding about an image in two records, which may be the same record."""
    where = f"record {first} of {other.name}"
    is_same = other is report and report.identity(number) == report.identity(first)
    detail = f"it repeats record {first}" if is_same else f"this image is also {where}"
    return Finding(ProblemKind.DUPLICATE, detail, got=where)


def _check_complete(split: _Split, named: set[str]) -> Iterator[Problem]:
    """Check that there are as many images as in ILSVRC2012.

    For shards that are missing or unreadable, the original's partition gives the count. ``named`` are images whose
    loss is already reported.
    """
    whole = {report.name: report for report in split.reports if report.is_whole}
    broken = [shard for shard in split.shards if shard not in whole]
    edges = order.bounds(facts.IMAGES[split.name], len(split.shards)) if split.shards else []
    widths = {shard: stop - start for shard, (start, stop) in zip(split.shards, pairwise(edges), strict=True)}
    records = sum(report.records for report in whole.values())
    missing = facts.IMAGES[split.name] - records - sum(widths[shard] for shard in broken) - len(named)
    if missing > 0:
        names = sorted(_lost(split, whole, broken) - named)
        yield _missing_images(split.name, missing, names, records)
    elif missing < 0:
        expected = f"{facts.IMAGES[split.name]:,}"
        detail = f"{-missing:,} records too many: expected {expected}, got {records:,}"
        yield Problem(
            ProblemKind.WRONG_COUNT, split.name, detail, REMEDY_FOREIGN, expected=expected, got=f"{records:,}"
        )


def _lost(split: _Split, whole: Mapping[str, ShardReport], broken: Sequence[str]) -> set[str]:
    """The names of lost images, if known: those of validation, unless they may be in unread shards."""
    ordering = split.ordering
    if split.name != facts.VALIDATION or (broken and not (ordering and ordering.is_mostly)):
        return set()
    found = {name for report in whole.values() for name in report.filenames}
    if ordering is not None:
        found.update(name for shard in broken for name in ordering.planned[shard].split(b"\0"))
    names = (facts.validation_filename(number) for number in range(1, facts.IMAGES[split.name] + 1))
    return {name for name in names if name.encode() not in found}


def _missing_images(split: str, missing: int, names: Sequence[str], records: int) -> Problem:
    expected = f"{facts.IMAGES[split]:,}"
    what = f"{missing:,} of {expected} images {'is' if missing == 1 else 'are'} missing"
    if names:
        what += ": " + listed(names, 5)
    image = names[0] if len(names) == 1 else ""
    remedy = "get the missing shards, or make the set again; for a part of the set, run verify with --allow-incomplete"
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


def _classes_problem(split: _Split, wnids: Sequence[str]) -> Iterator[Problem]:
    """The problem of classes without an image, if there are any."""
    if wnids:
        shown = listed(f"{wnid} ({facts.texts()[wnid]})" for wnid in wnids)
        what = number_of(len(wnids), "class has", "classes have")
        yield Problem(
            ProblemKind.MISSING_CLASS,
            split.name,
            f"{what} no image: {shown}",
            "make the set again from all classes; for a part of the set, run verify with --allow-incomplete",
            expected=str(len(split.part.labels)),
            got=str(len(split.part.labels) - len(wnids)),
            count=len(wnids),
        )


# one cause, one problem ----------------------------------------------------------------------------------------


def _name_label_patterns(split: _Split, problems: Sequence[Problem]) -> list[Problem]:
    """Merge labels that are wrong in one way throughout the split into one problem.

    If only a few records match such a pattern, that is chance: each keeps its own problem.
    """
    records = sum(report.records for report in split.reports)
    wrong = {kind: sum(report.counts.get(kind, 0) for report in split.reports) for kind in LABEL_PATTERNS}
    named = [kind for kind, count in wrong.items() if 2 * count > records]
    kept = []
    for problem in problems:
        if named and problem.kind in (*LABEL_PATTERNS, ProblemKind.WRONG_LABEL):
            continue
        is_chance = problem.kind in LABEL_PATTERNS
        kept.append(dataclasses.replace(problem, kind=ProblemKind.WRONG_LABEL) if is_chance else problem)
    count = sum(wrong.values())  # a label of one or two classes is wrong in both ways
    said = [(kind, *LABEL_PATTERNS[kind]) for kind in named]
    return [
        Problem(kind, split.name, what.format(f"{count:,}", f"{records:,}"), remedy, count=count)
        for kind, what, remedy in said
    ] + kept
