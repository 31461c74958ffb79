"""What the page says: everything that is known, put in words and tables. The template only sets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from imagenet_prep.checks.examiner import Published
from imagenet_prep.checks.verdict import SplitReport, Verdict
from imagenet_prep.errors import Text
from imagenet_prep.model import Problem
from imagenet_prep.reporting.census import SHOWN_NAMES, Census
from imagenet_prep.reporting.duplicates import Copy
from imagenet_prep.reporting.feature_census import FeatureCensus, Spread
from imagenet_prep.reporting.samples import Sample
from imagenet_prep.reporting.subject import Subject
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.text import number_of, size_text

SHOWN_PROBLEMS = 200

_DEPTHS = {
    "quick": "Names, sizes and indexes were looked at, not every byte.",
    "full": "Every byte was read, every record and every image's header checked.",
    "decode": "Every byte was read, every record checked, every image decoded.",
}
_DEPTHS_BY_RECIPE = {
    **_DEPTHS,
    "full": "Every byte was read, and every record compared with what the recipe promises.",
    "decode": "Every byte was read, every record compared with what the recipe promises, every JPEG decoded.",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the page is made from.

    ``name`` is that of the folder, ``paths`` are ways to spell where it lies; ``of_classes`` are images by label,
    ``odd_samples`` by shard and number; ``duplicates`` are copies of one image each; ``annotations`` are what annotate
    counted, by split; ``subject`` is what is in it; ``worded`` says how a stage is called.
    """

    name: str
    paths: tuple[str, ...]
    verdict: Verdict
    manifest: Manifest | None
    census: Census
    samples: Sequence[Sample]
    of_classes: Mapping[int, Sequence[Sample]]
    odd_samples: Mapping[tuple[str, int], Sample]
    duplicates: Sequence[tuple[Copy, ...]]
    annotations: Mapping[str, Mapping[str, int]]
    subject: Subject
    worded: Callable[[Text], str] = str

    @property
    def title(self) -> str:
        """What the page is called: by its data set, and one of ILSVRC2012 by the folder."""
        return self.subject.name if self.subject.is_own else self.name

    @property
    def splits(self) -> list[str]:
        """The splits of which something was found, in order."""
        return [split for split in self.subject.splits if split in self.census.splits]


# the verdict ---------------------------------------------------------------------------------------------------


def summary(facts: Facts) -> str:
    """How much there is, in a line."""
    verdict = facts.verdict
    records = [total.records for total in verdict.totals if total.records is not None]
    shards = sum(total.shards for total in verdict.totals)
    size = size_text(sum(total.bytes for total in verdict.totals))
    return f"{number_of(sum(records), facts.subject.thing)} in {number_of(shards, 'shard')}, {size}"


@dataclass(frozen=True, slots=True)
class Banner:
    """The verdict: ``kind`` is good, part or bad."""

    kind: str
    title: str
    text: str
    notes: list[str]


def banner(facts: Facts) -> Banner:
    """The verdict, and what was noticed."""
    verdict, count = facts.verdict, len(facts.verdict.told)
    if count:
        kind, title = "bad", f"{count:,} {'problem' if count == 1 else 'problems'} found"
        text = "These shards are not as they should be. What is wrong, and what to do about it, is listed below."
    elif verdict.is_part:
        kind, title = "part", "A part, whole and right"
        text = f"These shards are whole and right as what they are: a part of {facts.subject.name}."
    else:
        kind, title, text = "good", "Whole and right", f"These shards are {facts.subject.name}, whole and right."
    depths = _DEPTHS_BY_RECIPE if facts.subject.is_own else _DEPTHS
    notes = [without_paths(note, facts.paths, facts.name) for note in verdict.notes]
    return Banner(kind, title, f"{text} {depths[verdict.depth]}", notes + gaps(facts.census, facts.paths, facts.name))


def gaps(census: Census, paths: Sequence[str], name: str) -> list[str]:
    """What the numbers of a page leave out; ``paths`` and ``name`` are those of Facts."""
    found = [f"{shard} could not be read to its end: {reason}" for shard, reason in sorted(census.faults.items())]
    shown = [f"Not counted below: {without_paths(gap, paths, name)}" for gap in found[:SHOWN_NAMES]]
    if len(found) > SHOWN_NAMES:
        shown.append(f"Not counted below: the rest of {number_of(len(found) - SHOWN_NAMES, 'more shard')}")
    if census.unread:
        shown.append(
            f"Not counted below: {number_of(census.unread, 'record that is', 'records that are')} no tf.train.Example"
        )
    return shown


def without_paths(text: str, paths: Sequence[str], name: str) -> str:
    """A finding that names files by where they lie in the folder: a page is passed on, and where it lay is private."""
    for path in paths:
        text = text.replace(path, name)
    return text


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the totals: how many there are, should be, and are in the whole set; None where unknown."""

    what: str
    got: int | str | None
    expected: int | None = None
    whole: int | None = None

    @property
    def differs(self) -> bool:
        """Whether there are others than there should be."""
        return None not in (self.got, self.expected) and self.got != self.expected


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals of one split."""

    split: str
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, total: SplitReport, facts: Facts) -> Totals:
        """What was counted, beside what the manifest records, if there is one."""
        published = facts.subject.published
        lines = _own_lines(total, facts) if published is None else _lines(total, facts, published[total.split])
        return cls(total.split, tuple(lines))


def _lines(total: SplitReport, facts: Facts, whole: Published) -> Iterator[Line]:
    made = facts.manifest.totals.get(total.split) if facts.manifest else None
    classes = made.classes if made else None if facts.verdict.is_part else whole.classes
    boxes = made.boxes if made else None
    if _has_set_aside(facts):  # they were counted with the images that were set aside
        classes, boxes = None, None
    yield Line("images", total.records, total.expected, whole.images)
    yield Line("classes", total.classes, classes, whole.classes)
    yield Line("boxes", total.boxes, boxes, whole.boxes)
    yield Line("shards", total.shards, made.shards if made else None, whole.shards)
    yield Line("size", size_text(total.bytes))


def _own_lines(total: SplitReport, facts: Facts) -> Iterator[Line]:
    """Classes and boxes are only there if records hold some; as many as expected if the recipe wrote them itself."""
    subject = facts.subject
    made = facts.manifest.totals.get(total.split) if facts.manifest else None
    found = facts.census.splits.get(total.split)
    classes = len(found.labels) if found else 0
    yield Line(f"{subject.thing}s", total.records, total.expected)
    if classes or subject.has_classes:
        is_known = made is not None and subject.has_classes and not _has_set_aside(facts)
        yield Line("classes", classes, made.classes if made and is_known else None)
    if subject.has_boxes:
        yield Line("boxes", total.boxes)
    yield Line("shards", total.shards, made.shards if made else None)
    yield Line("size", size_text(total.bytes))


def _has_set_aside(facts: Facts) -> bool:
    return facts.manifest is not None and facts.manifest.has_set_aside


def totals(facts: Facts) -> list[Totals]:
    """The totals of each split, in order."""
    found = {total.split: total for total in facts.verdict.totals}
    return [Totals.of(found[split], facts) for split in facts.subject.splits if split in found]


# problems ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Group:
    """Problems of one kind: ``total`` of them that stand for ``count`` findings.

    ``rows`` are those shown: subject, finding, remedy. ``remedy`` helps against all of them; "" if each has its own.
    """

    kind: str
    total: int
    count: int
    remedy: str
    rows: list[tuple[str, str, str]]

    @classmethod
    def of(cls, problems: Sequence[Problem], share: int, facts: Facts) -> Group:
        """The first ``share`` of these problems, all of one kind."""
        remedies = [without_paths(str(problem.remedy), facts.paths, facts.name) for problem in problems]
        common = remedies[0] if len(set(remedies)) == 1 else ""
        rows = [
            (problem.subject, without_paths(problem.detail, facts.paths, facts.name), "" if common else remedy)
            for problem, remedy in zip(problems[:share], remedies, strict=False)
        ]
        count = sum(problem.count for problem in problems)
        return cls(problems[0].kind.value, len(problems), count, common, rows)


def groups(facts: Facts) -> list[Group]:
    """The problems by kind, in the order in which they were found, SHOWN_PROBLEMS of them spelled out."""
    found: dict[str, list[Problem]] = {}
    for problem in facts.verdict.told:
        found.setdefault(problem.kind.value, []).append(problem)
    return [Group.of(problems, SHOWN_PROBLEMS // len(found), facts) for problems in found.values()]


# features ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """One feature that a recipe promises: how many records have it, how many values each, and what these are."""

    name: str
    kind: str
    is_optional: bool
    records: int
    differs: bool
    values: str
    bounds: str


def feature_rows(facts: Facts) -> Iterator[FeatureRow]:
    """A row for each feature, in order of names; none of ILSVRC2012, whose records are alike."""
    total = sum(found.records for found in facts.census.splits.values())
    for name, promised in sorted(facts.subject.features.items()):
        found = facts.census.features.named.get(name, FeatureCensus())
        kind, is_optional = str(promised.get("kind")), bool(promised.get("optional"))
        differs = found.values.count < total and not is_optional
        bounds = _bounds_text(found, kind) + (f", NaN in {found.not_numbers:,} records" if found.not_numbers else "")
        values = _between(found.values, "{:,.0f}")
        yield FeatureRow(name, kind, is_optional, found.values.count, differs, values, bounds)


def _bounds_text(found: FeatureCensus, kind: str) -> str:
    if kind == "bytes":
        text = _between(found.bounds, "{:,.0f}")
        return f"{text} {'byte' if text == '1' else 'bytes'}" if text else ""
    return _between(found.bounds, "{:,}" if kind == "int64" else "{:.6g}")


def _between(bounds: Spread, form: str) -> str:
    if bounds.least is None or bounds.greatest is None:
        return ""
    low, high = form.format(bounds.least), form.format(bounds.greatest)
    return low if low == high else f"{low} to {high}"


def other_features(facts: Facts) -> str:
    """A sentence on records that hold more than the recipe promises; "" if there are none."""
    others = facts.census.features.others
    return f"{others:,} {'record holds' if others == 1 else 'records hold'} other features, too." if others else ""


def number_text(value: int | str | None) -> str:
    """A number with its thousands apart; a dash where there is none."""
    return "\N{EN DASH}" if value is None else value if isinstance(value, str) else f"{value:,}"
