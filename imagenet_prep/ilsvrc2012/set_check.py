"""check_set: finds the faults that only all shards of ILSVRC2012 show: lost or repeated images,
order, classes.

This works on shards from anywhere, without a manifest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence, Set
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.checked_dataset import SetFindings
from imagenet_prep.checks.examiner import Examiner, Finding, Findings
from imagenet_prep.checks.inventory import Checked, Inventory, check_totals
from imagenet_prep.checks.shard_check import REMEDY_FOREIGN, ShardReport
from imagenet_prep.datasets import order
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.completeness import find_encoded_again, repairs_of
from imagenet_prep.ilsvrc2012.order_check import Ordering, check_order, examine_order
from imagenet_prep.ilsvrc2012.record_check import INCEPTION, ImageNetExaminer
from imagenet_prep.ilsvrc2012.settings import WHOLE, Part
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.text import listed, number_of

LABEL_PATTERNS = {
    ProblemKind.ZERO_BASED_LABELS: (
        "labels count from 0: {} of {} records have their class's label minus 1",
        "add 1 to image/class/label when reading, or make the set again with labels from 1",
    ),
    ProblemKind.DEVKIT_LABELS: (
        (
            "labels are the devkit's ids: {} of {} records have the id of ILSVRC2012_devkit_t12 in "
            "place of the label"
        ),
        "translate them with imagenet_2012_devkit_synsets.txt, or make the set again",
    ),
}
"""The message and the remedy for labels that are wrong in a well-known way."""

ANOTHER_ORDER = "the records of 2016 in another order"
"""The order of sets that the scripts of 2016 made from an unsorted listing,
and of convert's with another seed.
"""

_REMEDY_COPY = "get the published images, and make the set again"
_REMEDY_PART = "for a part of the set, run verify with --allow-incomplete"

EXPLAINED = {ProblemKind.EXTRA_RECORD, ProblemKind.EXCHANGED_SHARD, ProblemKind.OTHER_CONVERSION}
"""Findings in a shard that explain repeated images."""

TWICE = {ProblemKind.EXTRA_RECORD, ProblemKind.EXCHANGED_SHARD, ProblemKind.DUPLICATE}
"""Findings by the order of all shards that explain them."""


class _Split(Struct, frozen=True):
    """The state of a split: the names of its shards, their findings, and all labels in their
    records.

    Args:
        ordering: the order of its shards; None if unknown, and not computed if ``is_proven``.
        is_proven: the shards hold exactly the records that convert wrote: no name repeats, and the
            order is right.
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
        return len(self.reports) == len(self.shards) and all(
            report.is_whole for report in self.reports
        )

    @property
    def missing_classes(self) -> list[str]:
        """The wnids without an image, by the labels found."""
        return [wnid for wnid, label in self.part.labels.items() if label not in self.labels]

    @property
    def has_labels(self) -> bool:
        """Whether labels identify classes; not if they are wrong in a well-known way."""
        return not any(LABEL_PATTERNS.keys() & report.counts.keys() for report in self.reports)


def check_set(
    inventory: Inventory, checked: Checked, examiner: Examiner, *, is_part: bool
) -> SetFindings:
    """Check that every image occurs once, in order, and every class has one; see Dataset."""
    assert isinstance(examiner, ImageNetExaminer)
    splits = [_take(inventory, checked, examiner.part, split) for split in facts.SPLITS]
    problems: list[Problem] = []
    notes: list[str] = []
    for split in splits:
        problems += _check_split(split, is_part=is_part)
        manifest = split.inventory.manifest
        is_counted = (
            manifest is not None and not manifest.has_set_aside
        )  # no image may be set aside
        if not is_part and split.reports and split.has_labels and is_counted and split.is_all_read:
            problems += _classes_problem(split, split.missing_classes)
        notes += _class_notes(split, is_part=is_part)
    if counts := find_encoded_again(repairs_of(inventory.infos.values())):
        problems.append(
            Problem(ProblemKind.WRONG_CONTENT, facts.NAME, f"encoded again: {counts}", _REMEDY_COPY)
        )
    has_records = any(report.records for report in checked.reports.values())
    return SetFindings(
        tuple(problems),
        tuple(notes),
        examiner.flavour.name if has_records else "none",
        examiner.flavour.differences,
        _order(splits, examiner, problems),
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


def _order(
    splits: Sequence[_Split], examiner: ImageNetExaminer, problems: Sequence[Problem]
) -> str:
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
        has_records_of_2016 = (
            None not in known and not problems and _has_records_of_2016(splits, examiner)
        )
        return ANOTHER_ORDER if has_records_of_2016 else "not canonical"
    return "canonical" if known and all(known) else "unknown"


def _has_records_of_2016(splits: Sequence[_Split], examiner: ImageNetExaminer) -> bool:
    """Whether records without a problem are those of 2016 in each feature;
    only a manifest tells of resized images.
    """
    has_form = examiner.flavour.name == INCEPTION.name and not examiner.flavour.differences
    has_labels = examiner.part.first is None
    return has_form and has_labels and all(_has_boxes_and_images_of_2016(split) for split in splits)


def _has_boxes_and_images_of_2016(split: _Split) -> bool:
    """Whether only train has boxes, of the whole set all,
    and the manifest tells of no image encoded again.
    """
    manifest, boxes = split.inventory.manifest, sum(report.boxes for report in split.reports)
    if manifest is not None and manifest.settings.get("reencode"):
        return False
    if split.name == facts.VALIDATION or not split.reports:
        return boxes == 0
    records = sum(report.records for report in split.reports)
    return boxes == facts.BOXES if records == facts.IMAGES[split.name] else boxes > 0


def _check_split(split: _Split, *, is_part: bool) -> list[Problem]:
    """Each shard's own problems in order, then those that only show across
    the shards of a split.
    """
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
        # the conversion is unfinished, or its manifest damaged: only the journal knows the shards
        return own
    return own + list(_check_facts(split, is_part=is_part))


def _class_notes(split: _Split, *, is_part: bool) -> Iterator[str]:
    """Describe the few classes that a part lacks, and how another tool's shards are cut."""
    lacking, reports = split.missing_classes, split.reports
    if is_part and 0 < len(lacking) <= 5:
        yield (
            f"{split.name}: no image of "
            f"{', '.join(f'{wnid} ({facts.texts()[wnid]})' for wnid in lacking)}"
        )
    if split.inventory.manifest is None and reports and not split.inventory.is_unfinished:
        edges = order.bounds(sum(report.records for report in reports), len(reports))
        if [stop - start for start, stop in pairwise(edges)] != [
            report.records for report in reports
        ]:
            yield f"{split.name}: the records per shard differ from the original's partition"


# a split without a record of it -------------------------------------------------------------------


def _check_facts(split: _Split, *, is_part: bool) -> Iterator[Problem]:
    """Compare it with ILSVRC2012: every image once, every class, the order."""
    problems, copies = find_copies(split.name, split.reports)
    yield from problems
    found = check_order(split.ordering, split.reports) if split.ordering else ()
    departures = [(problem, lost) for problem, lost in found if problem.subject not in copies]
    strays = {problem.subject for problem, _ in departures if problem.kind in TWICE}
    yield from _check_unique(split.reports, copies | strays)
    whole = replace(split, part=WHOLE)
    gone = whole.missing_classes if split.is_all_read and split.has_labels and not is_part else []
    for each, lost in departures:
        if (
            not lost
            or not gone
            or not all(facts.class_of(name, split.name) in gone for name in lost)
        ):
            yield each
    if not is_part:
        own = replace(split, reports=[each for each in split.reports if each.name not in strays])
        yield from _check_complete(own, {name for _, lost in departures for name in lost})
    yield from _classes_problem(whole, gone)


def _check_unique(reports: Sequence[ShardReport], explained: Collection[str] = ()) -> list[Problem]:
    """Check that every file name occurs once in a split;
    shards already known to repeat images are left out.
    """
    reports = [
        each
        for each in reports
        if not EXPLAINED & each.counts.keys() and each.name not in explained
    ]
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

    For shards that are missing or unreadable, the original's partition gives the count. ``named``
    are images whose loss is already reported.
    """
    whole = {report.name: report for report in split.reports if report.is_whole}
    broken = [shard for shard in split.shards if shard not in whole]
    edges = order.bounds(facts.IMAGES[split.name], len(split.shards)) if split.shards else []
    widths = {
        shard: stop - start
        for shard, (start, stop) in zip(split.shards, pairwise(edges), strict=True)
    }
    records = sum(report.records for report in whole.values())
    missing = (
        facts.IMAGES[split.name] - records - sum(widths[shard] for shard in broken) - len(named)
    )
    expected, got = f"{facts.IMAGES[split.name]:,}", f"{records:,}"
    if missing > 0:
        found = {name for report in whole.values() for name in report.filenames}
        official = (
            split.part.validation_filenames()
            if split.name == facts.VALIDATION and not broken
            else ()
        )
        names = [name for name in official if name.encode() not in found and name not in named]
        what = f"{missing:,} of {expected} images {'is' if missing == 1 else 'are'} missing"
        what += ": " + listed(names, 5) if names else ""
        image = names[0] if len(names) == 1 else ""
        remedy = f"get the missing shards, or make the set again; {_REMEDY_PART}"
        yield Problem(
            ProblemKind.MISSING_IMAGE,
            split.name,
            what,
            remedy,
            image=image,
            expected=expected,
            got=got,
            count=missing,
        )
    elif missing < 0:
        detail = f"{-missing:,} records too many: expected {expected}, got {got}"
        yield Problem(
            ProblemKind.WRONG_COUNT, split.name, detail, REMEDY_FOREIGN, expected=expected, got=got
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
            f"make the set again from all classes; {_REMEDY_PART}",
            expected=str(len(split.part.labels)),
            got=str(len(split.part.labels) - len(wnids)),
            count=len(wnids),
        )


# one cause, one problem ---------------------------------------------------------------------------


def _name_label_patterns(split: _Split, problems: Sequence[Problem]) -> list[Problem]:
    """Merge labels that are wrong in one way throughout the split into one problem.

    If only a few records match such a pattern, that is chance: each keeps its own problem.
    """
    records = sum(report.records for report in split.reports)
    wrong = {
        kind: sum(report.counts.get(kind, 0) for report in split.reports) for kind in LABEL_PATTERNS
    }
    named = [kind for kind, count in wrong.items() if 2 * count > records]
    kept = []
    for each in problems:
        if named and each.kind in (*LABEL_PATTERNS, ProblemKind.WRONG_LABEL):
            continue
        is_chance = each.kind in LABEL_PATTERNS
        kept.append(replace(each, kind=ProblemKind.WRONG_LABEL) if is_chance else each)
    count = sum(wrong.values())  # a label of one or two classes is wrong in both ways
    said = [(kind, *LABEL_PATTERNS[kind]) for kind in named]
    return [
        Problem(kind, split.name, what.format(f"{count:,}", f"{records:,}"), remedy, count=count)
        for kind, what, remedy in said
    ] + kept


# shards that hold the same records ----------------------------------------------------------------

REMEDY_COPIES = "get intact copies of these shards, or a second set to compare them with"


def find_copies(split: str, reports: Sequence[ShardReport]) -> tuple[list[Problem], set[str]]:
    """A problem for each group of shards with the same records,
    and the names of all these shards.
    """
    same: defaultdict[str, list[str]] = defaultdict(list)
    for report in reports:
        if report.is_whole and report.records:
            same[report.digest].append(report.name)
    groups = [names for names in same.values() if len(names) > 1]
    problems = []
    for names in groups:
        said = " and ".join((", ".join(names[:-1]), names[-1]))
        detail = (
            f"{said} hold the same records: all except one are copies, but the original is unknown"
        )
        problems.append(Problem(ProblemKind.DUPLICATE, split, detail, REMEDY_COPIES))
    return problems, {name for names in groups for name in names}
