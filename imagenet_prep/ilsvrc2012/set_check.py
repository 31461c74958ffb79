"""check_set: finds the faults that only all shards of ILSVRC2012 show: lost or repeated images,
order, classes.

This works on shards from anywhere, without a manifest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.checked_dataset import SetFindings
from imagenet_prep.checks.checked_shards import Checked, check_totals
from imagenet_prep.checks.examiner import Examiner
from imagenet_prep.checks.inventory import Inventory
from imagenet_prep.checks.shard_check import ShardReport
from imagenet_prep.datasets import order
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part
from imagenet_prep.ilsvrc2012.completeness import (
    MAY_BE_ENCODED_AGAIN,
    find_encoded_again,
    repairs_of,
)
from imagenet_prep.ilsvrc2012.flavours import INCEPTION
from imagenet_prep.ilsvrc2012.label_patterns import has_pattern, merge_patterns
from imagenet_prep.ilsvrc2012.order_check import (
    Ordering,
    OrderProblem,
    check_order,
    count_planned,
    examine_order,
    original_sizes,
)
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.ilsvrc2012.repeated_images import check_unique, find_identical_shards
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.text import listed, number_of

ANOTHER_ORDER = "the records of 2016 in another order"
"""The order of sets that the scripts of 2016 made from an unsorted listing,
and of convert's with another seed.
"""

_REMEDY_COPY = "get the published images, and make the set again"
_REMEDY_PART = "if it is meant to be a part of ILSVRC2012, run verify with --allow-incomplete"
_AS_PLANNED = ", if the shards with other problems have as many records as in 2016"

_REPEATING = {ProblemKind.EXTRA_RECORD, ProblemKind.EXCHANGED_SHARD, ProblemKind.DUPLICATE}
"""Findings by the order of all shards that explain repeated images."""


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
        if len(self.reports) != len(self.shards):
            return False
        return all(report.is_whole for report in self.reports)

    @property
    def missing_classes(self) -> list[str]:
        """The wnids without an image, by the labels found."""
        return [wnid for wnid, label in self.part.labels.items() if label not in self.labels]

    @property
    def has_labels(self) -> bool:
        """Whether labels identify classes; not if they are wrong in a well-known way."""
        return not has_pattern(self.reports)


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
    repairs = repairs_of(inventory.infos.values())
    counts = find_encoded_again(repairs)
    if counts:
        detail = f"{MAY_BE_ENCODED_AGAIN}: {counts}"
        problems.append(Problem(ProblemKind.WRONG_CONTENT, facts.NAME, detail, _REMEDY_COPY))
    has_records = any(report.records for report in checked.reports.values())
    flavour = examiner.flavour
    return SetFindings(
        problems=tuple(problems),
        notes=tuple(notes),
        flavour=flavour.name if has_records else "none",
        differences=flavour.differences,
        order=_order(splits, examiner, problems),
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
    has_problems = any(report.problems for report in reports)
    is_proven = inventory.manifest is not None and len(reports) == len(shards) and not has_problems
    ordering = None
    if not is_proven:
        ordering = examine_order(split, shards, reports, part)
    labels = checked.labels[split]
    return _Split(split, inventory, reports, labels, part, ordering, is_proven)


def _order(
    splits: Sequence[_Split], examiner: ImageNetExaminer, problems: Sequence[Problem]
) -> str:
    """The order of the images, as far as known: by names, or as convert made it."""
    verdicts = [_is_canonical(split) for split in splits if split.shards]
    if False in verdicts:
        is_sound = None not in verdicts and not problems
        if is_sound and _has_records_of_2016(splits, examiner):
            return ANOTHER_ORDER
        return "not canonical"
    if not verdicts or None in verdicts:
        return "unknown"
    return "canonical"


def _is_canonical(split: _Split) -> bool | None:
    """Whether the images of a split are in the order of 2016; None if that is unknown."""
    manifest = split.inventory.manifest
    if split.is_proven and manifest is not None:
        settings = manifest.settings
        return (settings.get("seed"), settings.get("shuffle")) == (order.SEED, True)
    if not all(report.is_whole for report in split.reports):
        return None
    return split.ordering.is_canonical if split.ordering else None


def _has_records_of_2016(splits: Sequence[_Split], examiner: ImageNetExaminer) -> bool:
    """Whether records without a problem are those of 2016 in each feature;
    only a manifest tells of resized images.
    """
    flavour = examiner.flavour
    if flavour.name != INCEPTION.name or flavour.differences:
        return False
    if examiner.part.first is not None:
        return False  # other labels
    return all(_has_boxes_and_images_of_2016(split) for split in splits)


def _has_boxes_and_images_of_2016(split: _Split) -> bool:
    """Whether only train has boxes, of the whole set all,
    and the manifest tells of no image encoded again.
    """
    manifest = split.inventory.manifest
    if manifest is not None and manifest.settings.get("reencode"):
        return False
    boxes = sum(report.boxes for report in split.reports)
    if split.name == facts.VALIDATION or not split.reports:
        return boxes == 0
    records = sum(report.records for report in split.reports)
    if records == facts.IMAGES[split.name]:
        return boxes == facts.BOXES
    return boxes > 0


def _check_split(split: _Split, *, is_part: bool) -> list[Problem]:
    """Each shard's own problems in order, then those that only show across
    the shards of a split.
    """
    problems = [problem for report in split.reports for problem in report.problems]
    manifest = split.inventory.manifest
    reports = split.reports
    has_journal = bool(split.inventory.infos)
    if not split.is_proven:
        problems = merge_patterns(split.name, reports, problems)
        if has_journal:
            problems += check_unique(reports)
    if manifest is not None:
        is_sound = not problems and len(reports) == len(split.shards)
        if is_sound and split.name in manifest.totals:
            problems += check_totals(split.name, reports, len(split.labels), manifest)
        return problems
    if has_journal:
        # the conversion is unfinished, or its manifest damaged: only the journal knows the shards
        return problems
    return problems + list(_check_facts(split, is_part=is_part))


def _class_notes(split: _Split, *, is_part: bool) -> Iterator[str]:
    """Describe the few classes that a part lacks, and how another tool's shards are cut."""
    missing_classes = split.missing_classes
    if is_part and 0 < len(missing_classes) <= 5:
        classes = ", ".join(_with_words(missing_classes))
        yield f"{split.name}: no image of {classes}"
    inventory = split.inventory
    if inventory.manifest is not None or inventory.is_unfinished or not split.reports:
        return
    if not split.is_all_read:  # the lost records are reported as such
        return
    sizes = [report.records for report in split.reports]
    if sizes != original_sizes(sum(sizes), len(sizes)):
        yield f"{split.name}: the records per shard differ from the original's partition"


def _with_words(wnids: Iterable[str]) -> list[str]:
    """Each class with its words, as "n01440764 (tench, Tinca tinca)"."""
    words = facts.texts()
    return [f"{wnid} ({words[wnid]})" for wnid in wnids]


# a split without a record of it -------------------------------------------------------------------


def _check_facts(split: _Split, *, is_part: bool) -> Iterator[Problem]:
    """Compare it with ILSVRC2012: every image once, every class, the order."""
    problems, identical_shards = find_identical_shards(split.name, split.reports)
    yield from problems
    order_problems = _check_order_of(split, identical_shards)
    repeating_shards: set[str] = set()
    for order_problem in order_problems:
        if order_problem.problem.kind in _REPEATING:
            repeating_shards.add(order_problem.problem.subject)
    repeating_shards |= identical_shards
    yield from check_unique(split.reports, repeating_shards)
    if is_part:
        for order_problem in order_problems:
            yield order_problem.problem
    else:
        yield from _check_whole(split, order_problems, repeating_shards)


def _check_order_of(split: _Split, identical_shards: Collection[str]) -> list[OrderProblem]:
    """The faults of shards by their order, except those of identical shards."""
    if split.ordering is None:
        return []
    order_problems = check_order(split.ordering, split.reports)
    return [
        order_problem
        for order_problem in order_problems
        if order_problem.problem.subject not in identical_shards
    ]


def _check_whole(
    split: _Split, order_problems: Sequence[OrderProblem], repeating_shards: Collection[str]
) -> Iterator[Problem]:
    """Compare it with all classes and images;
    the images that a missing class explains have no problem of their own.
    """
    whole = replace(split, part=WHOLE)
    missing_classes: list[str] = []
    if split.is_all_read and split.has_labels:
        missing_classes = whole.missing_classes
    reported_images: set[str] = set()
    for order_problem in order_problems:
        lost_images = order_problem.lost_images
        reported_images.update(lost_images)
        if not _is_explained(lost_images, split.name, missing_classes):
            yield order_problem.problem
    in_place = [report for report in split.reports if report.name not in repeating_shards]
    yield from _check_complete(replace(split, reports=in_place), reported_images)
    yield from _classes_problem(whole, missing_classes)


def _is_explained(images: Sequence[str], split: str, missing_classes: Collection[str]) -> bool:
    """Whether there are lost images, and all are of classes that are missing as a whole."""
    if not images or not missing_classes:
        return False
    return all(facts.class_of(image, split) in missing_classes for image in images)


def _check_complete(split: _Split, reported_images: set[str]) -> Iterator[Problem]:
    """Check that there are as many images as in ILSVRC2012.

    For shards that are missing or unreadable, the original's partition gives the count.
    ``reported_images`` are those whose loss has a problem of its own.
    """
    images = facts.IMAGES[split.name]
    whole_reports = [report for report in split.reports if report.is_whole]
    whole_shards = {report.name for report in whole_reports}
    broken_shards = set(split.shards) - whole_shards
    records = sum(report.records for report in whole_reports)
    planned = count_planned(split.name, split.shards, broken_shards)
    missing = images - records - planned - len(reported_images)
    if missing < 0:
        is_known = not broken_shards and not reported_images
        problem = _too_many(split.name, -missing, records if is_known else None)
    elif missing > 0:
        names = [] if broken_shards else _find_missing(split, whole_reports, reported_images)
        problem = _missing_images(split, records, missing, names)
    else:
        return
    if broken_shards:
        problem = replace(problem, detail=problem.detail + _AS_PLANNED)
    yield problem


def _too_many(split: str, surplus: int, records: int | None) -> Problem:
    """The problem of records beyond those of ILSVRC2012; ``records`` in all, None if unknown."""
    detail = f"{number_of(surplus, 'record')} too many"
    expected = got = ""
    if records is not None:
        expected, got = f"{facts.IMAGES[split]:,}", f"{records:,}"
        detail += f": expected {expected}, got {got}"
    remedy = "get a sound copy of these shards"
    return Problem(ProblemKind.WRONG_COUNT, split, detail, remedy, expected=expected, got=got)


def _missing_images(
    whole_split: _Split, records: int, missing: int, names: Sequence[str]
) -> Problem:
    """The problem of missing images; ``names`` are their names, empty if unknown.

    A missing shard has a problem of its own, unless all are missing.
    """
    split = whole_split.name
    make_again = "get the missing shards, or make the set again"
    if whole_split.shards:
        make_again = "make the set again from all images"
    expected = f"{facts.IMAGES[split]:,}"
    verb = "is" if missing == 1 else "are"
    detail = f"{missing:,} of {expected} images {verb} missing"
    if names:
        detail += f": {listed(names, 5)}"
    return Problem(
        ProblemKind.MISSING_IMAGE,
        split,
        detail,
        f"{make_again}; {_REMEDY_PART}",
        image=names[0] if len(names) == 1 else "",
        expected=expected,
        got=f"{records:,}",
        count=missing,
    )


def _find_missing(
    split: _Split, reports: Iterable[ShardReport], reported_images: set[str]
) -> list[str]:
    """The official names of validation that no record has, except those already reported."""
    if split.name != facts.VALIDATION:
        return []
    known_names = {name.encode() for name in reported_images}
    for report in reports:
        known_names.update(report.filenames)
    return [name for name in split.part.validation_filenames() if name.encode() not in known_names]


def _classes_problem(split: _Split, wnids: Sequence[str]) -> Iterator[Problem]:
    """The problem of classes without an image, if there are any."""
    missing = len(wnids)
    if not missing:
        return
    classes = len(split.part.labels)
    remedy = "make the set again from all images"
    if split.inventory.manifest is None:  # a manifest tells which classes there should be
        remedy += f"; {_REMEDY_PART}"
    classes_have = number_of(missing, "class has", "classes have")
    yield Problem(
        ProblemKind.MISSING_CLASS,
        split.name,
        f"{classes_have} no image: {listed(_with_words(wnids))}",
        remedy,
        expected=str(classes),
        got=str(classes - missing),
        count=missing,
    )
