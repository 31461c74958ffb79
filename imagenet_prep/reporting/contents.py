"""What the page says: everything that is known, put in words and tables. The template only sets it."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from imagenet_prep import ilsvrc2012
from imagenet_prep.checks.verdict import SplitReport, Verdict
from imagenet_prep.manifest import Manifest
from imagenet_prep.model import Box, Problem
from imagenet_prep.reporting.census import BROKEN, FOUR, GREY, PNG, ROTATED, SHOWN_NAMES, Census
from imagenet_prep.reporting.charts import TIMES, size_text
from imagenet_prep.reporting.samples import Sample

SHOWN_PROBLEMS = 200

MOST_OBLONG = 2.5
"""Images more oblong than this, either way, leave some of their place in the grid empty."""

_ODD = {
    GREY: ("Grey", "one colour component; the record says RGB and 3 channels all the same, as in 2016"),
    ROTATED: ("EXIF-rotated", "the EXIF orientation is not upright; width, height and boxes are those before turning"),
    FOUR: ("Four colour components", "CMYK or YCCK, not repaired: many decoders refuse it"),
    PNG: ("PNG", "not repaired: it is no JPEG, whatever its name says"),
    BROKEN: ("Not readable", "its header can't be read"),
}
_DEPTHS = {
    "quick": "Names, sizes and indexes were looked at, not every byte.",
    "full": "Every byte was read, every record and every image's header checked.",
    "decode": "Every byte was read, every record checked, every image decoded.",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the page is made from; ``name`` is that of the folder, ``paths`` are ways to spell where it lies."""

    name: str
    paths: tuple[str, ...]
    verdict: Verdict
    manifest: Manifest | None
    census: Census
    samples: Sequence[Sample]


# the verdict ---------------------------------------------------------------------------------------------------


def summary(verdict: Verdict) -> str:
    """How much there is, in a line."""
    records = [total.records for total in verdict.totals if total.records is not None]
    shards = sum(total.shards for total in verdict.totals)
    return f"{sum(records):,} images in {shards:,} shards, {size_text(sum(total.bytes for total in verdict.totals))}"


@dataclass(frozen=True, slots=True)
class Banner:
    """The verdict: ``kind`` is good, part or bad."""

    kind: str
    title: str
    text: str
    notes: list[str]


def banner(facts: Facts) -> Banner:
    """The verdict, and what was noticed."""
    verdict, count = facts.verdict, len(facts.verdict.problems)
    if count:
        kind, title = "bad", f"{count:,} {'problem' if count == 1 else 'problems'} found"
        text = "These shards are not as they should be. What is wrong, and what to do about it, is listed below."
    elif verdict.is_part:
        kind, title = "part", "A part, whole and right"
        text = "These shards are whole and right as what they are: a part of ILSVRC2012."
    else:
        kind, title, text = "good", "Whole and right", "These shards are ILSVRC2012, whole and right."
    notes = [_without_paths(note, facts) for note in verdict.notes]
    return Banner(kind, title, f"{text} {_DEPTHS[verdict.depth]}", notes + _gaps(facts))


def _gaps(facts: Facts) -> list[str]:
    """What the numbers of this page leave out."""
    census = facts.census
    gaps = [f"{name} could not be read to its end: {reason}" for name, reason in sorted(census.faults.items())]
    shown = [f"Not counted below: {_without_paths(gap, facts)}" for gap in gaps[:SHOWN_NAMES]]
    if len(gaps) > SHOWN_NAMES:
        shown.append(f"Not counted below: the rest of {len(gaps) - SHOWN_NAMES:,} more shards")
    if census.unread:
        shown.append(f"Not counted below: {census.unread:,} records that are no tf.train.Example")
    return shown


def _without_paths(text: str, facts: Facts) -> str:
    """A finding that names files by where they lie in the folder: a page is passed on, and where it lay is private."""
    for path in facts.paths:
        text = text.replace(path, facts.name)
    return text


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the totals: how many there are, should be, and are in all of ILSVRC2012; None where unknown."""

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
        """What verify counted, beside what the manifest records, if there is one."""
        split, manifest = total.split, facts.manifest
        made = manifest.totals.get(split) if manifest else None
        set_aside = manifest is not None and any(info.set_aside for info in manifest.shards.values())
        classes = made.classes if made else None if facts.verdict.is_part else ilsvrc2012.CLASSES
        boxes = made.boxes if made else None
        if set_aside:  # they were counted with the images that were set aside
            classes, boxes = None, None
        whole_boxes = ilsvrc2012.BOXES if split == ilsvrc2012.TRAIN else None
        return cls(
            split,
            (
                Line("images", total.records, total.expected, ilsvrc2012.IMAGES[split]),
                Line("classes", total.classes, classes, ilsvrc2012.CLASSES),
                Line("boxes", total.boxes, boxes, whole_boxes),
                Line("shards", total.shards, made.shards if made else None, ilsvrc2012.SHARDS[split]),
                Line("size", size_text(total.bytes)),
            ),
        )


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
        remedies = [_without_paths(problem.remedy, facts) for problem in problems]
        common = remedies[0] if len(set(remedies)) == 1 else ""
        rows = [
            (problem.subject, _without_paths(problem.detail, facts), "" if common else remedy)
            for problem, remedy in zip(problems[:share], remedies, strict=False)
        ]
        count = sum(problem.count for problem in problems)
        return cls(problems[0].kind.value, len(problems), count, common, rows)


def groups(facts: Facts) -> list[Group]:
    """The problems by kind, in the order in which they were found, SHOWN_PROBLEMS of them spelled out."""
    found: dict[str, list[Problem]] = {}
    for problem in facts.verdict.problems:
        found.setdefault(problem.kind.value, []).append(problem)
    return [Group.of(problems, SHOWN_PROBLEMS // len(found), facts) for problems in found.values()]


# images --------------------------------------------------------------------------------------------------------


def classes(census: Census) -> list[tuple[int, str, list[int]]]:
    """Label, words, and images of each split: a row a class."""
    splits = [census.splits[split] for split in ilsvrc2012.SPLITS if split in census.splits]
    labels = sorted(set().union(*(found.labels for found in splits)))
    return [(label, census.words.get(label, ""), [found.labels[label] for found in splits]) for label in labels]


@dataclass(frozen=True, slots=True)
class Tile:
    """A sample in the grid.

    ``ratio`` is the image's width / height, ``shape`` that of its place; ``url`` is its thumbnail, "" if there is none;
    ``boxes`` are CSS.
    """

    title: str
    filename: str
    details: str
    alt: str
    ratio: float
    shape: float
    url: str
    boxes: list[str]

    @classmethod
    def of(cls, sample: Sample, words: Mapping[int, str]) -> Tile:
        """A sample with the words of its class."""
        width, height = sample.size
        ratio = width / height
        known = words.get(sample.label) if sample.label is not None else None
        title = known or ("no label" if sample.label is None else f"label {sample.label}")
        filename = sample.filename or f"record {sample.number} of {sample.shard}"
        count = len(sample.boxes)
        boxes = "no box" if not count else "1 box" if count == 1 else f"{count:,} boxes"
        details = f"{width} {TIMES} {height}, {boxes}"
        return cls(
            title,
            filename,
            details,
            f"{title}: {filename}, {details}",
            ratio,
            min(MOST_OBLONG, max(1 / MOST_OBLONG, ratio)),
            f"data:image/jpeg;base64,{base64.b64encode(sample.thumbnail).decode()}" if sample.thumbnail else "",
            [_place(box) for box in sample.boxes],
        )


def _place(box: Box) -> str:
    edges = (box.xmin, box.ymin, box.xmax - box.xmin, box.ymax - box.ymin)
    names = ("left", "top", "width", "height")
    return ";".join(f"{name}:{100 * edge:.4f}%" for name, edge in zip(names, edges, strict=True))


@dataclass(frozen=True, slots=True)
class OddRow:
    """Odd images of one kind: ``names`` are the first of ``count``."""

    title: str
    meaning: str
    count: int
    names: list[str]


def odd_images(facts: Facts) -> Iterator[OddRow]:
    """A row for each kind of odd image that there is."""
    for kind, (title, meaning) in _ODD.items():
        odd = facts.census.odd.get(kind)
        if odd is not None:
            names = [name or f"record {number} of {shard}" for shard, number, name in odd.first]
            yield OddRow(title, meaning, odd.count, names)
    infos = facts.manifest.shards.values() if facts.manifest else ()
    for title, meaning, names in (
        (
            "Repaired",
            "a PNG or a JPEG of four components, decoded and encoded as an RGB JPEG",
            sorted(name for info in infos for name in info.repairs),
        ),
        ("Set aside", "damaged, and left out by --skip-bad", sorted(name for info in infos for name in info.set_aside)),
    ):
        if names:
            yield OddRow(title, meaning, len(names), names[:SHOWN_NAMES])


def number_text(value: int | str | None) -> str:
    """A number with its thousands apart; a dash where there is none."""
    return "\N{EN DASH}" if value is None else value if isinstance(value, str) else f"{value:,}"
