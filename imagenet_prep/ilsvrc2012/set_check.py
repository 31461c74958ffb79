"""check_set: finds the faults that only all shards of ILSVRC2012 show: lost or repeated images,
order, classes.

This works on shards from anywhere, without a manifest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.checked_dataset import SetFindings
from imagenet_prep.checks.checked_shards import Checked, check_totals
from imagenet_prep.checks.examiner import Examiner, Finding, Findings
from imagenet_prep.checks.inventory import Inventory
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
        if not is_part and _must_have_all_classes(split):
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


def _must_have_all_classes(split: _Split) -> bool:
    """Whether a class without an image is a fault: all records were read,
    and the manifest tells that no image was set aside.
    """
    manifest = split.inventory.manifest
    if manifest is None or manifest.has_set_aside:
        return False
    return bool(split.reports) and split.has_labels and split.is_all_read


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
    verdicts = [_is_canonical(split) for split in splits if split.shards]
    if False in verdicts:
        is_sound = None not in verdicts and not problems
        is_of_2016 = is_sound and _has_records_of_2016(splits, examiner)
        return ANOTHER_ORDER if is_of_2016 else "not canonical"
    return "canonical" if verdicts and all(verdicts) else "unknown"


def _is_canonical(split: _Split) -> bool | None:
    """Whether the images of a split are in the order of 2016; None if that is unknown."""
    manifest = split.inventory.manifest
    if split.is_proven and manifest is not None:
        settings = manifest.settings
        return (settings.get("seed"), settings.get("shuffle")) == (order.SEED, True)
    return split.ordering.is_canonical if split.ordering else None


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
    problems = [problem for report in split.reports for problem in report.problems]
    manifest, reports = split.inventory.manifest, split.reports
    if not split.is_proven:
        problems = _name_label_patterns(split, problems)
        if split.inventory.infos:
            problems += _check_unique(reports)
    if manifest is not None:
        is_sound = not problems and len(reports) == len(split.shards)
        if is_sound and split.name in manifest.totals:
            problems += check_totals(split.name, reports, len(split.labels), manifest)
        return problems
    if split.inventory.infos:
        # the conversion is unfinished, or its manifest damaged: only the journal knows the shards
        return problems
    return problems + list(_check_facts(split, is_part=is_part))


def _class_notes(split: _Split, *, is_part: bool) -> Iterator[str]:
    """Describe the few classes that a part lacks, and how another tool's shards are cut."""
    missing_classes, reports = split.missing_classes, split.reports
    if is_part and 0 < len(missing_classes) <= 5:
        yield f"{split.name}: no image of {', '.join(_with_words(missing_classes))}"
    if split.inventory.manifest is None and reports and not split.inventory.is_unfinished:
        sizes = [report.records for report in reports]
        if sizes != _original_sizes(sum(sizes), len(sizes)):
            yield f"{split.name}: the records per shard differ from the original's partition"


def _with_words(wnids: Iterable[str]) -> list[str]:
    """Each class with its words, as "n01440764 (tench, Tinca tinca)"."""
    return [f"{wnid} ({facts.texts()[wnid]})" for wnid in wnids]


def _original_sizes(images: int, shards: int) -> list[int]:
    """The records of each shard, as the original's script cuts so many images."""
    return [stop - start for start, stop in pairwise(order.bounds(images, shards))]


# a split without a record of it -------------------------------------------------------------------


def _check_facts(split: _Split, *, is_part: bool) -> Iterator[Problem]:
    """Compare it with ILSVRC2012: every image once, every class, the order."""
    copy_problems, copies = find_copies(split.name, split.reports)
    yield from copy_problems
    departures = _find_departures(split, copies)
    strays = {problem.subject for problem, _ in departures if problem.kind in TWICE}
    yield from _check_unique(split.reports, copies | strays)
    if is_part:
        for problem, _ in departures:
            yield problem
    else:
        yield from _check_whole(split, departures, strays)


def _check_whole(
    split: _Split, departures: Sequence[_Departure], strays: Collection[str]
) -> Iterator[Problem]:
    """Compare it with all classes and images;
    the images that a missing class explains have no problem of their own.
    """
    whole = replace(split, part=WHOLE)
    missing_classes: list[str] = []
    if split.is_all_read and split.has_labels:
        missing_classes = whole.missing_classes
    for problem, lost_images in departures:
        if not _is_explained(lost_images, split.name, missing_classes):
            yield problem
    in_place = [report for report in split.reports if report.name not in strays]
    reported = {image for _, lost_images in departures for image in lost_images}
    yield from _check_complete(replace(split, reports=in_place), reported)
    yield from _classes_problem(whole, missing_classes)


_Departure: TypeAlias = tuple[Problem, tuple[str, ...]]
"""The fault of a shard by the order, and the images that it lost."""


def _find_departures(split: _Split, copies: Collection[str]) -> list[_Departure]:
    """The faults of shards by their order, each with the images it lost, except those of copies."""
    if split.ordering is None:
        return []
    departures = check_order(split.ordering, split.reports)
    return [departure for departure in departures if departure[0].subject not in copies]


def _is_explained(images: Sequence[str], split: str, missing_classes: Collection[str]) -> bool:
    """Whether there are lost images, and all are of classes that are missing as a whole."""
    if not images or not missing_classes:
        return False
    return all(facts.class_of(image, split) in missing_classes for image in images)


def _check_unique(reports: Sequence[ShardReport], explained: Collection[str] = ()) -> list[Problem]:
    """Check that every file name occurs once in a split;
    shards already known to repeat images are left out.
    """
    reports = [report for report in reports if report.name not in explained]
    reports = [report for report in reports if not EXPLAINED & report.counts.keys()]
    repeated = _repeated_names(reports)
    if not repeated:
        return []
    first_places: dict[bytes, tuple[ShardReport, int]] = {}
    problems: list[Problem] = []
    for report in reports:
        findings = Findings(report.name, REMEDY_FOREIGN)
        for number, name in enumerate(report.filenames):
            if name in first_places:
                findings.add(_duplicate(report, number, *first_places[name]), report.place(number))
            elif name in repeated:
                first_places[name] = report, number
        problems += findings.problems()
    return problems


def _repeated_names(reports: Sequence[ShardReport]) -> set[bytes]:
    """The file names that occur more than once in these shards."""
    names = b"\0".join(report.names for report in reports).split(b"\0")
    names.sort()
    return {name for name, following in pairwise(names) if name == following and name}


def _duplicate(
    report: ShardReport, number: int, first_report: ShardReport, first_number: int
) -> Finding:
    """The finding about an image in two records, which may be the same record."""
    first_place = f"record {first_number} of {first_report.name}"
    is_in_shard = first_report is report
    is_same = is_in_shard and report.identity(number) == report.identity(first_number)
    detail = f"it repeats record {first_number}" if is_same else f"this image is also {first_place}"
    return Finding(ProblemKind.DUPLICATE, detail, got=first_place)


def _check_complete(split: _Split, reported: set[str]) -> Iterator[Problem]:
    """Check that there are as many images as in ILSVRC2012.

    For shards that are missing or unreadable, the original's partition gives the count.
    ``reported`` are images whose loss has a problem of its own.
    """
    images = facts.IMAGES[split.name]
    whole = {report.name: report for report in split.reports if report.is_whole}
    broken = [shard for shard in split.shards if shard not in whole]
    records = sum(report.records for report in whole.values())
    missing = images - records - _count_planned(split, broken) - len(reported)
    expected, got = f"{images:,}", f"{records:,}"
    if missing > 0:
        names: list[str] = []
        if split.name == facts.VALIDATION and not broken:
            names = _missing_validation_images(split.part, whole.values(), reported)
        detail = f"{missing:,} of {expected} images {'is' if missing == 1 else 'are'} missing"
        if names:
            detail += f": {listed(names, 5)}"
        yield Problem(
            ProblemKind.MISSING_IMAGE,
            split.name,
            detail,
            f"get the missing shards, or make the set again; {_REMEDY_PART}",
            image=names[0] if len(names) == 1 else "",
            expected=expected,
            got=got,
            count=missing,
        )
    elif missing < 0:
        detail = f"{-missing:,} records too many: expected {expected}, got {got}"
        yield Problem(
            ProblemKind.WRONG_COUNT, split.name, detail, REMEDY_FOREIGN, expected=expected, got=got
        )


def _count_planned(split: _Split, shards: Sequence[str]) -> int:
    """The records that the original's partition gives these shards of a split."""
    if not split.shards:
        return 0
    sizes = _original_sizes(facts.IMAGES[split.name], len(split.shards))
    size_of = dict(zip(split.shards, sizes, strict=True))
    return sum(size_of[shard] for shard in shards)


def _missing_validation_images(
    part: Part, reports: Iterable[ShardReport], reported: set[str]
) -> list[str]:
    """The official names that no record has, except those already reported."""
    present = {name for report in reports for name in report.filenames}
    missing = [name for name in part.validation_filenames() if name.encode() not in present]
    return [name for name in missing if name not in reported]


def _classes_problem(split: _Split, wnids: Sequence[str]) -> Iterator[Problem]:
    """The problem of classes without an image, if there are any."""
    if wnids:
        classes_have = number_of(len(wnids), "class has", "classes have")
        yield Problem(
            ProblemKind.MISSING_CLASS,
            split.name,
            f"{classes_have} no image: {listed(_with_words(wnids))}",
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
    matches = {pattern: _count_kind(split, pattern) for pattern in LABEL_PATTERNS}
    # a label of one or two classes matches both patterns
    count = sum(matches.values())
    merged: list[Problem] = []
    for pattern, (detail, remedy) in LABEL_PATTERNS.items():
        if 2 * matches[pattern] > records:
            text = detail.format(f"{count:,}", f"{records:,}")
            merged.append(Problem(pattern, split.name, text, remedy, count=count))
    about_labels = {*LABEL_PATTERNS, ProblemKind.WRONG_LABEL}
    if merged:
        return merged + [problem for problem in problems if problem.kind not in about_labels]
    return [_without_pattern(problem) for problem in problems]


def _count_kind(split: _Split, kind: ProblemKind) -> int:
    """The number of findings of one kind in all shards of a split."""
    return sum(report.counts.get(kind, 0) for report in split.reports)


def _without_pattern(problem: Problem) -> Problem:
    """The problem; if its label matches a pattern by chance, as that of any wrong label."""
    if problem.kind in LABEL_PATTERNS:
        return replace(problem, kind=ProblemKind.WRONG_LABEL)
    return problem


# shards that hold the same records ----------------------------------------------------------------

REMEDY_COPIES = "get intact copies of these shards, or a second set to compare them with"


def find_copies(split: str, reports: Sequence[ShardReport]) -> tuple[list[Problem], set[str]]:
    """A problem for each group of shards with the same records,
    and the names of all these shards.
    """
    shards_by_digest: defaultdict[str, list[str]] = defaultdict(list)
    for report in reports:
        if report.is_whole and report.records:
            shards_by_digest[report.digest].append(report.name)
    groups = [shards for shards in shards_by_digest.values() if len(shards) > 1]
    problems = []
    for shards in groups:
        *all_but_one, final = shards
        detail = (
            f"{', '.join(all_but_one)} and {final} hold the same records: "
            "all except one are copies, but the original is unknown"
        )
        problems.append(Problem(ProblemKind.DUPLICATE, split, detail, REMEDY_COPIES))
    return problems, {shard for shards in groups for shard in shards}
