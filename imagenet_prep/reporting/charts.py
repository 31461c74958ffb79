"""What was counted, drawn: one chart for each thing, and the same in numbers below it."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imagenet_prep.reporting import tips
from imagenet_prep.reporting.census import ASPECT_STEPS, BYTE_STEPS, MANY_BOXES, SIDE_STEPS, Census, SplitCensus
from imagenet_prep.reporting.drawing import LOOKS, Style, draw, looks, part_of
from imagenet_prep.reporting.feature_census import Spread
from imagenet_prep.reporting.subject import Subject
from imagenet_prep.storage.layout import parse_shard_name
from imagenet_prep.text import number_of, size_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RATIOS = {"1:1": 1.0, "4:3": 4 / 3, "3:4": 3 / 4, "2:1": 2.0, "1:2": 1 / 2, "4:1": 4.0, "1:4": 1 / 4} | {
    name: ratio for k in (8, 16, 64) for name, ratio in ((f"{k}:1", float(k)), (f"1:{k}", 1 / k))
}
"""Ratios to mark on an axis, the most important first."""

MARKS = 1500
"""Shards that are marked one by one in a chart; of more, the extremes of as many places."""

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing for the page: ``title`` above it, ``text`` below it says what it shows in numbers, ``svg`` is it."""

    name: str
    title: str
    text: str
    svg: str


@dataclass(frozen=True, slots=True)
class Series:
    """One split to draw: its number, what was counted, how it looks, and the sizes of its shards in bytes by number."""

    split: str
    number: int
    found: SplitCensus
    look: Style
    shards: Mapping[int, int]


def draw_charts(census: Census, subject: Subject) -> list[Chart]:
    """Every chart that there is something to draw for."""
    series, thing = _series(census, subject), subject.thing
    boxes_text = _boxes_text(series, thing) if subject.has_boxes else ""
    charts = (
        ("classes", f"{thing.title()}s a class", _classes_text(series, thing, census.words), _draw_classes),
        ("sizes", "Width and height", _sizes_text(series), _draw_sizes),
        ("aspects", "Aspect ratios", _aspects_text(series), _draw_aspects),
        ("bytes", "Bytes an image", _bytes_text(series), _draw_bytes),
        ("boxes", f"Boxes {'an image' if thing == 'image' else 'a record'}", boxes_text, _draw_boxes),
        ("shards", "Size of the shards", _shards_text(series), _draw_shards),
    )
    return [
        Chart(name, title, text, draw(name, title, functools.partial(onto, series=series)))
        for name, title, text, onto in charts
        if text
    ]


def _series(census: Census, subject: Subject) -> list[Series]:
    """The splits of which there is something, in order."""
    shards: dict[str, dict[int, int]] = {}
    for name, size in census.shards.items():
        parsed = parse_shard_name(name)
        if parsed is not None:
            shards.setdefault(parsed[0], {})[parsed[1]] = size
    return [
        Series(split, number, census.splits[split], look, shards.get(split, {}))
        for number, (split, look) in enumerate(looks(subject.splits).items())
        if split in census.splits
    ]


# the charts ----------------------------------------------------------------------------------------------------


def _draw_classes(axes: Axes, series: Sequence[Series]) -> None:
    """Images a class, the largest class first."""
    from matplotlib.ticker import MaxNLocator

    steps: dict[str, tips.Steps] = {}
    for each in series:
        sizes = Counter(each.found.labels.values())  # a step for all classes of one size: 70,000 would be 3 MB
        counts = sorted(sizes, reverse=True)
        edges = [0.5 + k for k in itertools.accumulate((sizes[count] for count in counts), initial=0)]
        axes.stairs(counts, edges, **_style(each))
        steps[each.split] = (counts, edges)
    tips.add_classes(axes, steps, "image")
    axes.set_xlim(0.5, max(len(each.found.labels) for each in series) + 0.5)
    axes.set_ylim(0, 1.1 * max(max(each.found.labels.values(), default=0) for each in series))
    axes.set_xlabel("classes, the largest first")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
        axis.set_major_formatter("{x:,.0f}")


def _draw_sizes(axes: Axes, series: Sequence[Series]) -> None:
    """A square for each bin of width and height, the stronger the more images."""
    from matplotlib.collections import PolyCollection

    sides: Counter[tuple[int, int]] = Counter()
    for each in series:
        sides.update(each.found.sides)
    most = max(sides.values())
    bins = sorted(sides)
    squares = [_square(*place) for place in bins]
    alphas = [0.15 + 0.85 * (sides[place] / most) ** 0.4 for place in bins]
    axes.add_collection(PolyCollection(squares, facecolors=LOOKS[0].colour, edgecolors="none", alpha=alphas))
    told = [f"{round(2 ** (x / SIDE_STEPS)):,} {TIMES} {round(2 ** (y / SIDE_STEPS)):,} pixels" for x, y in bins]
    texts = [f"about {size}: {number_of(sides[place], 'image')}" for size, place in zip(told, bins, strict=True)]
    tips.add_squares(axes, squares, texts)
    lowest, highest = min(map(min, bins)) - 2, max(map(max, bins)) + 2
    ticks = [k for k in range(17) if lowest < k * SIDE_STEPS < highest]  # at the corner they would touch
    ticks = ticks[:: 1 if len(ticks) <= 6 else 2]
    places: list[float] = [*ticks] or [round((lowest + highest) / 2) / SIDE_STEPS]
    for axis, name in ((axes.xaxis, "width"), (axes.yaxis, "height")):
        axis.set_ticks(places, [f"{2**place:,.0f}" for place in places])
        axis.grid(True)
        axis.set_label_text(f"{name} in pixels")
    axes.set_xlim(lowest / SIDE_STEPS, highest / SIDE_STEPS)
    axes.set_ylim(lowest / SIDE_STEPS, highest / SIDE_STEPS)


def _square(x: int, y: int) -> list[tuple[float, float]]:
    """A bin of width and height, its logarithms to base 2."""
    left, right = (x - 0.5) / SIDE_STEPS, (x + 0.5) / SIDE_STEPS
    low, high = (y - 0.5) / SIDE_STEPS, (y + 0.5) / SIDE_STEPS
    return [(left, low), (right, low), (right, high), (left, high)]


def _draw_aspects(axes: Axes, series: Sequence[Series]) -> None:
    _draw_shares(axes, [(each, each.found.aspects) for each in series], ASPECT_STEPS, lambda ratio: f"{ratio:.2f} : 1")
    _name_ticks(axes, _RATIOS)
    axes.set_xlabel("width : height")


def _draw_bytes(axes: Axes, series: Sequence[Series]) -> None:
    _draw_shares(axes, [(each, each.found.sizes) for each in series], BYTE_STEPS, size_text)
    sizes = [digit * 10**power for digit in (1, 3) for power in (5, 4, 6, 3, 7, 2, 8, 1, 0)]
    _name_ticks(axes, {size_text(size): size for size in sizes})
    axes.set_xlabel("size of the image file")


def _draw_shares(
    axes: Axes, counters: Sequence[tuple[Series, Counter[int]]], steps: int, named: Callable[[float], str]
) -> None:
    """Histograms on a logarithmic axis, each in percent of its own split."""
    every = [each for _, counter in counters for each in counter]
    first, last = min(every) - 1, max(every) + 1
    edges = [(k - 0.5) / steps for k in range(first, last + 2)]
    for series, counter in counters:
        total = counter.total() or 1
        shares = [100 * counter[k] / total if counter[k] else math.nan for k in range(first, last + 1)]
        axes.stairs(shares, edges, **_style(series))
    tips.add_shares(axes, {each.split: counter for each, counter in counters}, range(first, last + 1), steps, named)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:g}%")


def _name_ticks(axes: Axes, names: Mapping[str, float]) -> None:
    """Mark those values on a logarithmic axis that there is room for, the first ones first."""
    low, high = axes.get_xlim()
    shown: dict[str, float] = {}
    for name, value in names.items():
        place = math.log2(value)
        if low <= place <= high and all(abs(place - other) > 0.12 * (high - low) for other in shown.values()):
            shown[name] = place
    axes.set_xticks(list(shown.values()), list(shown))


def _draw_boxes(axes: Axes, series: Sequence[Series]) -> None:
    """A bar for each number of boxes, in percent of each split."""
    most = max(max(each.found.boxes, default=0) for each in series)
    for each in series:
        for k in sorted(each.found.boxes):
            share = 100 * each.found.boxes[k] / each.found.records
            axes.stairs([share], [k - 0.35, k + 0.35], **_style(each))
    names = [f"{k}+" if k == MANY_BOXES else str(k) for k in range(most + 1)]
    boxes = {each.split: each.found.boxes for each in series}
    for k, name in enumerate(names):
        if any(found[k] for found in boxes.values()):
            tips.add_strip(
                axes, k - 0.5, k + 0.5, f"{name} {'box' if name == '1' else 'boxes'}: {tips.shares(boxes, k)}"
            )
    axes.set_xticks(range(most + 1), names)
    axes.set_xlim(-0.6, most + 0.6)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("boxes")
    axes.yaxis.set_major_formatter("{x:g}%")


def _draw_shards(axes: Axes, series: Sequence[Series]) -> None:
    """Each shard's size in its place."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for each in series:
        few, look = len(each.shards) <= 100, each.look
        shown = _extremes(each.shards)
        axes.plot(
            shown,
            [each.shards[k] for k in shown],
            linestyle="none",
            marker=look.mark,
            markersize=6 if few else 2.5,
            markeredgewidth=0 if look.is_filled else 1.5,
            markerfacecolor=look.colour if look.is_filled else "none",
            color=look.colour,
            gid=part_of(each.number),
        )
    marked = sorted({number for each in series for number in _extremes(each.shards)})
    texts = (
        ", ".join(f"{each.split} {size_text(each.shards[k])}" for each in series if k in each.shards) for k in marked
    )
    for k, text in zip(marked, texts, strict=True) if len(marked) <= tips.MOST else ():
        tips.add_strip(axes, k - 0.5, k + 0.5, f"shard {k:,}: {text}")
    most = max((number for each in series for number in each.shards), default=0)
    largest = max(size for each in series for size in each.shards.values())
    axes.set_xlim(-0.02 * most - 0.5, 1.02 * most + 0.5)
    axes.set_ylim(0, 1.1 * largest or 1)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: size_text(value)))
    axes.set_xlabel("number of the shard")


def _extremes(shards: Mapping[int, int]) -> list[int]:
    """The numbers of the shards to mark: of as many neighbours as fall on one place the smallest and the largest."""
    numbers = sorted(shards)
    width = -(-len(numbers) // MARKS)
    found: set[int] = set()
    for start in range(0, len(numbers), width or 1):
        near = numbers[start : start + width]
        found |= {min(near, key=shards.__getitem__), max(near, key=shards.__getitem__)}
    return sorted(found)


def _style(series: Series) -> dict[str, Any]:
    look = series.look
    lines = {"linewidth": 1.8, "linestyle": look.line, "gid": part_of(series.number)}
    return {"fill": look.is_filled, "color": look.colour, "alpha": 0.75 if look.is_filled else 1, **lines}


# the same in numbers -------------------------------------------------------------------------------------------


def _classes_text(series: Sequence[Series], thing: str, words: Mapping[int, str]) -> str:
    return _join(
        f"{each.split}: {number_of(len(found), 'class', 'classes')} of {_range(min(counts), max(counts))} {thing}s"
        + (f", the smallest {_having(found, min(counts), words)}, the largest {_having(found, max(counts), words)}")
        * (min(counts) < max(counts))
        for each in series
        if (found := each.found.labels) and (counts := found.values())
    )


def _having(labels: Counter[int], count: int, words: Mapping[int, str]) -> str:
    """The first class of so many, and how many more there are."""
    having = sorted(label for label, found in labels.items() if found == count)
    name = words.get(having[0]) or f"label {having[0]}"
    return name + (f" and {number_of(len(having) - 1, 'other')}" if len(having) > 1 else "")


def _sizes_text(series: Sequence[Series]) -> str:
    width, height = Spread(), Spread()
    for each in series:
        width.merge(each.found.width)
        height.merge(each.found.height)
    if not width.count:
        return ""
    mean = f"{width.total / width.count:.0f} {TIMES} {height.total / height.count:.0f} pixels on average"
    sides = f"width {_range(width.least, width.greatest)}, height {_range(height.least, height.greatest)}"
    return f"{mean}; {sides}. The stronger a square, the more images."


def _aspects_text(series: Sequence[Series]) -> str:
    aspects: Counter[int] = Counter()
    for each in series:
        aspects.update(each.found.aspects)
    total = aspects.total()
    if not total:
        return ""
    wide = sum(count for ratio, count in aspects.items() if ratio > 0)
    tall = sum(count for ratio, count in aspects.items() if ratio < 0)
    square = total - wide - tall
    shares = (
        f"{100 * count / total:.0f}% {name}"
        for count, name in ((wide, "wide"), (tall, "tall"), (square, "about square"))
    )
    return f"{', '.join(shares)}."


def _bytes_text(series: Sequence[Series]) -> str:
    sizes = {each.split: each.found.bytes for each in series if each.found.bytes.count}
    return _join(
        f"{split}: {size_text(found.total / found.count)} on average,"
        f" {size_text(found.least or 0)} to {size_text(found.greatest or 0)}"
        for split, found in sizes.items()
    )


def _boxes_text(series: Sequence[Series], thing: str) -> str:
    sentences = []
    for split, found in ((each.split, each.found) for each in series if each.found.records):
        share = f"{100 * (found.records - found.boxes[0]) / found.records:.1f}% of the"
        share = "no" if found.boxes[0] == found.records else "all" if not found.boxes[0] else share
        sentences.append(f"{split}: {share} {thing}s have boxes")
    return _join(sentences)


def _shards_text(series: Sequence[Series]) -> str:
    sizes = {each.split: each.shards.values() for each in series if each.shards}
    return _join(
        f"{split}: {size_text(min(found))}" + (f" to {size_text(max(found))}" if len(found) > 1 else "")
        for split, found in sizes.items()
    )


def _join(sentences: Iterable[str]) -> str:
    text = "; ".join(sentences)
    return f"{text}." if text else ""


def _range(low: float | None, high: float | None) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
