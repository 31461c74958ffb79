"""Comparison: two sets, and what differs between them -> one page with both beside each other."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.reading.difference import Difference, DifferingRecord, SplitDifference, place_of
from imagenet_prep.reporting import tips
from imagenet_prep.reporting.census import Census, SplitCensus
from imagenet_prep.reporting.charts import Chart
from imagenet_prep.reporting.drawing import LOOKS, draw, part_of
from imagenet_prep.reporting.gallery import ShownSet, Tile
from imagenet_prep.reporting.lenient import printable
from imagenet_prep.reporting.odd import Place
from imagenet_prep.reporting.origin import origin
from imagenet_prep.reporting.page import as_it_is, fill
from imagenet_prep.reporting.samples import SHOWN_CLASSES, Sample
from imagenet_prep.reporting.wording import gaps, without_paths
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.text import listed, number_of, size_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

T = TypeVar("T")

LETTERS = ("A", "B")

SHOWN_NAMES = 48
"""Records of a kind that are named."""

DRAWN_CLASSES = 1000
"""Classes of a split whose sizes are drawn: those that differ most."""

_LEFT_OUT = ("order", "report by")  # what verify finds, and what is the same for both


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sets: ways to spell where it lies, what it holds, its manifest, images by shard and number."""

    shown: ShownSet
    paths: tuple[str, ...]
    census: Census
    manifest: Manifest | None
    pictures: Mapping[Place, Sample]

    def of(self, split: str) -> SplitCensus:
        """What it has of a split."""
        return self.census.splits.get(split, SplitCensus())


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that the page is made from; ``samples`` are at most as many images as it shows of both."""

    sides: tuple[Side, Side]
    difference: Difference
    samples: int


# what is shown -------------------------------------------------------------------------------------------------


def chosen_pairs(difference: Difference, samples: int) -> list[tuple[SplitDifference, DifferingRecord]]:
    """The records that both have, and that are shown: as many of each split, of those that were looked into."""
    looked_into = ([(split, each) for each in split.differing if each.features] for split in difference.splits)
    return _in_turn(looked_into, samples // 4)


def chosen_of_one(difference: Difference, side: int, samples: int) -> list[Place]:
    """The records that only this side has, and that are shown, as many of each split."""
    return _in_turn((map(place_of, split.only_places[side]) for split in difference.splits), samples // 4)


def pictured(difference: Difference, side: int, samples: int) -> list[Place]:
    """The records of this side whose images are shown."""
    pairs = [place_of(record.places[side]) for _, record in chosen_pairs(difference, samples)]
    return pairs + chosen_of_one(difference, side, samples)


def _in_turn(several: Iterable[Iterable[T]], count: int) -> list[T]:
    """So many at most: the first of each, the second of each, ..."""
    turns = itertools.chain.from_iterable(itertools.zip_longest(*several))
    return list(itertools.islice((each for each in turns if each is not None), count))


def render_comparison(comparison: Comparison) -> bytes:
    """The page, as UTF-8."""
    sides, difference = comparison.sides, comparison.difference
    things = {side.shown.subject.thing for side in sides}
    rows, numbers = _class_rows(sides), itertools.count(1)
    keys = [look.key for look in LOOKS[:2]]
    return fill(
        "comparison.html",
        names=[side.shown.name for side in sides],
        letters=LETTERS,
        keys=keys,
        thing=things.pop() if len(things) == 1 else "record",
        summaries=[_summary(side) for side in sides],
        is_same=difference.is_same,
        notes=[note for side in sides for note in _gaps(side, LETTERS[sides.index(side)])],
        outcomes=[_outcome(split) for split in difference.splits],
        totals=[(split.split, list(_totals(split, sides))) for split in difference.splits],
        charts=[(chart, as_it_is(chart.svg)) for chart in _charts(difference, sides)],
        classes=rows[:SHOWN_CLASSES],
        class_count=len(rows),
        differing_classes=sum(row.differs for row in rows),
        only=[each for each in (_only(comparison, side, numbers) for side in (0, 1)) if each.count],
        fields=_fields(comparison),
        looked_into=sum(1 for split in difference.splits for each in split.differing if each.features is not None),
        differing=sum(len(split.differing) for split in difference.splits),
        pairs=list(_pairs(comparison, numbers)),
        other_names=_other_names(comparison),
        origin=_origins(sides),
    )


# in numbers ----------------------------------------------------------------------------------------------------


def _summary(side: Side) -> str:
    records = sum(found.records for found in side.census.splits.values())
    shards = side.census.shards
    size = size_text(sum(shards.values()))
    return f"{number_of(records, side.shown.subject.thing)} in {number_of(len(shards), 'shard')}, {size}"


def _gaps(side: Side, letter: str) -> Iterator[str]:
    return (f"{letter}: {gap}" for gap in gaps(side.census, side.paths, side.shown.name))


def _outcome(split: SplitDifference) -> tuple[str, list[tuple[str, int]]]:
    """How many records of a split are the same, and how many are not, in which way."""
    changed, only = len(split.differing), [len(names) for names in split.only]
    same = split.records[0] - only[0] - changed - split.moved
    return split.split, [
        ("the same in both", same),
        ("the same, in another place", split.moved),
        ("with other content", changed),
        *((f"only in {letter}", count) for letter, count in zip(LETTERS, only, strict=True)),
    ]


def _totals(split: SplitDifference, sides: Sequence[Side]) -> Iterator[tuple[str, str, str]]:
    """What there is of a split in both."""
    found = [side.of(split.split) for side in sides]
    sizes = [
        sum(size for name, size in side.census.shards.items() if name.startswith(f"{split.split}-")) for side in sides
    ]
    numbers = {
        "shards": split.shards,
        "records": split.records,
        "classes": (len(found[0].labels), len(found[1].labels)),
        "boxes": (found[0].class_boxes.total(), found[1].class_boxes.total()),
    }
    yield from ((what, f"{first:,}", f"{second:,}") for what, (first, second) in numbers.items())
    yield "size", size_text(sizes[0]), size_text(sizes[1])


@dataclass(frozen=True, slots=True)
class ComparedClass:
    """A class: what both have of it, by split, and by how much the bars of both are filled."""

    label: int
    name: str
    wnid: str
    counts: tuple[Mapping[str, int], Mapping[str, int]]
    percents: tuple[float, float]

    @property
    def totals(self) -> tuple[int, int]:
        """What both have of it in all splits."""
        return sum(self.counts[0].values()), sum(self.counts[1].values())

    @property
    def more(self) -> str:
        """How many more the second one has, with its sign; "" if it has as many."""
        more = self.totals[1] - self.totals[0]
        return f"{more:+,}".replace("-", "\N{MINUS SIGN}") if more else ""

    @property
    def differs(self) -> bool:
        """Whether a split has more of it in one of the two."""
        return self.counts[0] != self.counts[1]


def _class_rows(sides: Sequence[Side]) -> list[ComparedClass]:
    """A row a class: those that differ first, by how much, then by label."""
    splits = list(
        dict.fromkeys(split for side in sides for split in side.shown.subject.splits if side.of(split).records)
    )
    labels = sorted({label for side in sides for split in splits for label in side.of(split).labels})
    counts = {
        label: tuple({split: side.of(split).labels[label] for split in splits} for side in sides) for label in labels
    }
    most = max((sum(each.values()) for pair in counts.values() for each in pair), default=1)
    rows = [
        ComparedClass(
            label,
            _either(side.census.words.get(label, "") for side in sides) or f"label {label}",
            _either(side.census.wnids.get(label, "") for side in sides),
            (first, second),
            (100 * sum(first.values()) / most, 100 * sum(second.values()) / most),
        )
        for label, (first, second) in counts.items()
    ]
    return sorted(rows, key=lambda row: (not row.differs, -_distance(row), row.label))


def _distance(row: ComparedClass) -> int:
    return sum(abs(count - row.counts[1][split]) for split, count in row.counts[0].items())


def _either(texts: Iterable[str]) -> str:
    """What both say, or what each of them does."""
    return " / ".join(dict.fromkeys(filter(None, texts)))


def _charts(difference: Difference, sides: Sequence[Side]) -> Iterator[Chart]:
    """A chart for each split of which classes have other sizes: these classes, the largest first."""
    for split in (each.split for each in difference.splits):
        labels = [side.of(split).labels for side in sides]
        differing = [label for label in {**labels[0], **labels[1]} if labels[0][label] != labels[1][label]]
        if differing:
            yield _chart(split, labels, differing, [side.census.words for side in sides])


def _chart(
    split: str, labels: Sequence[Counter[int]], differing: list[int], words: Sequence[Mapping[int, str]]
) -> Chart:
    def named(label: int) -> str:
        return _either(each.get(label, "") for each in words) or f"label {label}"

    ways = sorted(differing, key=lambda label: (-abs(labels[0][label] - labels[1][label]), label))
    drawn = sorted(ways[:DRAWN_CLASSES], key=lambda label: (-labels[0][label], -labels[1][label], label))
    most = [f"{named(label)} {labels[0][label]:,} and {labels[1][label]:,}" for label in ways]
    every = len({**labels[0], **labels[1]})
    text = f"{len(differing):,} of {number_of(every, 'class', 'classes')} differ: {listed(most, 3).removesuffix('...')}"
    text = f"{text}and others." if len(most) > 3 else f"{text}."
    if len(drawn) < len(differing):
        text += f" Shown are the {len(drawn):,} that differ most."
    title = f"Images a class in {split}, where they differ"

    def onto(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        edges = [0.5 + k for k in range(len(drawn) + 1)]
        for number, (look, counts) in enumerate(zip(LOOKS, labels, strict=False)):
            own = [counts[label] for label in drawn]
            alpha = 0.75 if look.is_filled else 1
            axes.stairs(
                own, edges, fill=look.is_filled, color=look.colour, linewidth=1.8, alpha=alpha, gid=part_of(number)
            )
        told = [f"{named(label)}: A {labels[0][label]:,}, B {labels[1][label]:,}" for label in drawn]
        tips.add_strips(axes, edges, told)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("classes, the largest of A first")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
            axis.set_major_formatter("{x:,.0f}")

    return Chart(f"classes-{split}", title, text, draw(f"classes-{split}", title, onto))


# records -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OnlyInOne:
    """The records that only one side has: how many, images of some, the names of some."""

    letter: str
    name: str
    count: int
    splits: str
    tiles: Sequence[Tile]
    names: Sequence[str]


def _only(comparison: Comparison, number: int, numbers: Iterator[int]) -> OnlyInOne:
    side, splits = comparison.sides[number], comparison.difference.splits
    chosen = chosen_of_one(comparison.difference, number, comparison.samples)
    tiles = [Tile.of(next(numbers), side.pictures[each], side.shown) for each in chosen if each in side.pictures]
    names = [name for split in splits for name in split.only[number]]
    counts = ", ".join(f"{len(split.only[number]):,} in {split.split}" for split in splits if split.only[number])
    shown = [*map(printable, names[:SHOWN_NAMES])]
    return OnlyInOne(LETTERS[number], side.shown.name, len(names), counts, tiles, shown)


def _fields(comparison: Comparison) -> list[tuple[str, int, str, str]]:
    """The features that differ: in how many of the records that were looked into, and the first one's values."""
    found: dict[str, tuple[int, str, str]] = {}
    for record in (each for split in comparison.difference.splits for each in split.differing):
        for name, values in (record.features or {}).items():
            feature = printable(name)
            count, *first = found.get(feature, (0, *_told(values, comparison)))
            found[feature] = (count + 1, first[0], first[1])
    return sorted(((feature, *told) for feature, told in found.items()), key=lambda row: (-row[1], row[0]))


@dataclass(frozen=True, slots=True)
class Pair:
    """A record that both have, with other content: its images, and each feature that differs."""

    name: str
    split: str
    places: str
    tiles: Sequence[Tile]
    features: Sequence[tuple[str, str, str]]


def _pairs(comparison: Comparison, numbers: Iterator[int]) -> Iterator[Pair]:
    for split, record in chosen_pairs(comparison.difference, comparison.samples):
        tiles = []
        for letter, side, place in zip(LETTERS, comparison.sides, map(place_of, record.places), strict=True):
            if place in side.pictures:
                tiles.append(Tile.of(next(numbers), side.pictures[place], side.shown, f"{letter}: {side.shown.name}"))
        features = [(printable(name), *_told(values, comparison)) for name, values in (record.features or {}).items()]
        yield Pair(_name(record), split.split, ", ".join(dict.fromkeys(record.places)), tiles, features)


def _told(values: tuple[str, str], comparison: Comparison) -> tuple[str, str]:
    """Values of a feature, or that a record is damaged: without what is private to where the two sets lie."""
    first, second = comparison.sides
    return (
        without_paths(printable(values[0]), first.paths, first.shown.name),
        without_paths(printable(values[1]), second.paths, second.shown.name),
    )


def _other_names(comparison: Comparison) -> list[str]:
    """Records that differ and are not shown, the first of them."""
    shown = {id(record) for _, record in chosen_pairs(comparison.difference, comparison.samples)}
    rest = (each for split in comparison.difference.splits for each in split.differing if id(each) not in shown)
    return [_name(each) for each in itertools.islice(rest, SHOWN_NAMES)]


def _name(record: DifferingRecord) -> str:
    """Its name; one without a name was found by what it is, and can't differ."""
    return printable(record.name)


# where they come from ------------------------------------------------------------------------------------------


def _origins(sides: Sequence[Side]) -> list[tuple[str, str, str, bool]]:
    """What the manifests say of both, a row each: name, values, and whether they are to be compared by letters."""
    blank = Verdict("quick", (), (), is_part=False, has_manifest=False)
    told = [
        {name: (value, exact) for name, value, exact in origin(blank, side.manifest, is_own=side.shown.subject.is_own)}
        for side in sides
    ]
    names = [name for name in {**told[0], **told[1]} if name not in _LEFT_OUT]
    nothing = ("", False)
    return [
        (
            name,
            told[0].get(name, nothing)[0],
            told[1].get(name, nothing)[0],
            any(each.get(name, nothing)[1] for each in told),
        )
        for name in names
    ]
