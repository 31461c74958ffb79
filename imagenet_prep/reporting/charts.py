"""draw_charts: a census -> the charts of the page, each with a title and the same facts as text."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from imagenet_prep.reporting.census import ASPECT_STEPS, BYTE_STEPS, MANY_BOXES, SIDE_STEPS, Census, SplitCensus, Spread
from imagenet_prep.reporting.drawing import STYLES, Style, draw, part_of, styles_of, tip_of
from imagenet_prep.reporting.page_facts import Subject, spread_text
from imagenet_prep.storage.layout import parse_shard_name
from imagenet_prep.text import number_of, size_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RATIOS = {"1:1": 1.0, "4:3": 4 / 3, "3:4": 3 / 4, "2:1": 2.0, "1:2": 1 / 2, "4:1": 4.0, "1:4": 1 / 4} | {
    name: ratio for k in (8, 16, 64) for name, ratio in ((f"{k}:1", float(k)), (f"1:{k}", 1 / k))
}
"""Ratios to mark on an axis, the most important first."""

MARKS = 1500
"""Shards drawn one by one in a chart; beyond that, the extremes of this many groups. Further tooltips are left out."""

TIMES = "\N{MULTIPLICATION SIGN}"


class Chart(NamedTuple):
    """A drawing for the page: ``title`` above it, ``text`` below it with the numbers, ``svg`` the drawing itself."""

    name: str
    title: str
    text: str
    svg: str


class Series(NamedTuple):
    """A split to draw: its number, its census, its style, and the sizes of its shards in bytes by number."""

    split: str
    number: int
    found: SplitCensus
    style: Style
    shards: Mapping[int, int]


def draw_charts(census: Census, subject: Subject) -> list[Chart]:
    """Every chart with something to draw."""
    series, thing = _series(census, subject), subject.thing
    boxes_text = _boxes_text(series, thing) if subject.has_boxes else ""
    charts = (
        ("classes", f"{thing.title()}s per class", _classes_text(series, thing, census.words), _draw_classes),
        ("sizes", "Width and height", _sizes_text(series), _draw_sizes),
        ("aspects", "Aspect ratios", _aspects_text(series), _draw_aspects),
        ("bytes", "Bytes per image", _bytes_text(series), _draw_bytes),
        ("boxes", f"Boxes per {thing}", boxes_text, _draw_boxes),
        ("shards", "Size of the shards", _shards_text(series), _draw_shards),
    )
    return [
        Chart(name, title, text, draw(name, title, functools.partial(onto, series=series)))
        for name, title, text, onto in charts
        if text
    ]


def _series(census: Census, subject: Subject) -> list[Series]:
    """The splits with records or shards, in order."""
    shards: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for name, size in census.shards.items():
        if parsed := parse_shard_name(name):
            shards[parsed[0]][parsed[1]] = size
    styles = enumerate(styles_of(subject.splits).items())
    return [
        Series(split, number, census.splits[split], style, shards[split])
        for number, (split, style) in styles
        if split in census.splits
    ]


def _add_tip(axes: Axes, left: float, right: float, text: str) -> None:
    """A tooltip for everything between two values of x."""
    axes.axvspan(left, right, facecolor="none", edgecolor="none", clip_on=False, gid=tip_of(text))


# the charts ----------------------------------------------------------------------------------------------------


def _draw_classes(axes: Axes, series: Sequence[Series]) -> None:
    """Images per class, the largest class first."""
    from matplotlib.ticker import MaxNLocator

    tops: dict[str, dict[int, int]] = {}
    for each in series:
        sizes = sorted(Counter(each.found.labels.values()).items(), reverse=True)
        counts = [count for count, _ in sizes]  # one step for all classes of one size: 70,000 would be 3 MB
        edges = list(itertools.accumulate((classes for _, classes in sizes), initial=0))
        axes.stairs(counts, [edge + 0.5 for edge in edges], **_style(each))
        tops[each.split] = dict(zip(edges, [*counts, 0], strict=True))
    every, held = sorted(set().union(*tops.values())), dict.fromkeys(tops, 0)
    for left, right in itertools.pairwise(every) if len(every) <= MARKS else ():
        held |= {split: steps[left] for split, steps in tops.items() if left in steps}
        text = ", ".join(f"{split} {count:,}" for split, count in held.items() if count)
        classes = f"{'class' if right == left + 1 else 'classes'} {_range(left + 1, right)}"
        _add_tip(axes, left + 0.5, right + 0.5, f"{classes}: {text} images each")
    axes.set_xlim(0.5, max(len(each.found.labels) for each in series) + 0.5)
    axes.set_ylim(0, 1.1 * max(max(each.found.labels.values(), default=0) for each in series))
    axes.set_xlabel("classes, the largest first")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
        axis.set_major_formatter("{x:,.0f}")


def _draw_sizes(axes: Axes, series: Sequence[Series]) -> None:
    """A square for each bin of width and height, in a stronger colour for more images."""
    from matplotlib.patches import Rectangle

    sides: Counter[tuple[int, int]] = Counter()
    for each in series:
        sides.update(each.found.sides)
    most, bins = max(sides.values()), sorted(sides)
    for x, y in bins:
        corner, side = ((x - 0.5) / SIDE_STEPS, (y - 0.5) / SIDE_STEPS), 1 / SIDE_STEPS
        alpha = 0.15 + 0.85 * (sides[x, y] / most) ** 0.4
        axes.add_patch(Rectangle(corner, side, side, facecolor=STYLES[0].colour, edgecolor="none", alpha=alpha))
        if len(bins) <= MARKS:
            size = f"{round(2 ** (x / SIDE_STEPS)):,} {TIMES} {round(2 ** (y / SIDE_STEPS)):,} pixels"
            tip = tip_of(f"about {size}: {number_of(sides[x, y], 'image')}")
            axes.add_patch(Rectangle(corner, side, side, facecolor="none", edgecolor="none", clip_on=False, gid=tip))
    lowest, highest = min(map(min, bins)) - 2, max(map(max, bins)) + 2
    ticks = [k for k in range(17) if lowest < k * SIDE_STEPS < highest]  # those at the corner would touch
    ticks = ticks[:: 1 if len(ticks) <= 6 else 2]
    places: list[float] = [*ticks] or [round((lowest + highest) / 2) / SIDE_STEPS]
    for axis, name in ((axes.xaxis, "width"), (axes.yaxis, "height")):
        axis.set_ticks(places, [f"{2**place:,.0f}" for place in places])
        axis.grid(True)
        axis.set_label_text(f"{name} in pixels")
    axes.set_xlim(lowest / SIDE_STEPS, highest / SIDE_STEPS)
    axes.set_ylim(lowest / SIDE_STEPS, highest / SIDE_STEPS)


def _draw_aspects(axes: Axes, series: Sequence[Series]) -> None:
    _draw_shares(axes, series, "aspects", lambda k: f"about {2 ** (k / ASPECT_STEPS):.2f} : 1")
    _name_ticks(axes, ASPECT_STEPS, _RATIOS)
    axes.set_xlabel("width : height")


def _draw_bytes(axes: Axes, series: Sequence[Series]) -> None:
    _draw_shares(axes, series, "sizes", lambda k: f"about {size_text(2 ** (k / BYTE_STEPS))}")
    sizes = [digit * 10**power for digit in (1, 3) for power in (5, 4, 6, 3, 7, 2, 8, 1, 0)]
    _name_ticks(axes, BYTE_STEPS, {size_text(size): size for size in sizes})
    axes.set_xlabel("size of the image file")


def _draw_boxes(axes: Axes, series: Sequence[Series]) -> None:
    names = [*map(str, range(MANY_BOXES)), f"{MANY_BOXES}+"]
    _draw_shares(axes, series, "boxes", lambda k: f"{names[k]} {'box' if k == 1 else 'boxes'}")
    most = max(max(each.found.boxes, default=0) for each in series)
    axes.set_xticks(range(most + 1), names[: most + 1])
    axes.set_xlabel("boxes")


def _draw_shares(axes: Axes, series: Sequence[Series], what: str, name_of: Callable[[int], str]) -> None:
    """A histogram of each split, in percent of the split; ``name_of`` describes a bin."""
    counters: list[tuple[Series, Counter[int]]] = [(each, getattr(each.found, what)) for each in series]
    held = sorted(set().union(*(counter for _, counter in counters)))
    bins = range(held[0], held[-1] + 1)
    for each, counter in counters:
        shares = [100 * counter[k] / counter.total() if counter[k] else math.nan for k in bins]
        axes.stairs(shares, [k - 0.5 for k in range(bins.start, bins.stop + 1)], **_style(each))
    for k in held:
        shown = [(each.split, 100 * counter[k] / counter.total()) for each, counter in counters if counter]
        text = ", ".join(f"{split} {share:.3g}%" for split, share in shown)
        _add_tip(axes, k - 0.5, k + 0.5, f"{name_of(k)}: {text}")
    axes.set_xlim(bins.start - 1.5, bins.stop + 0.5)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:g}%")


def _name_ticks(axes: Axes, steps: int, names: Mapping[str, float]) -> None:
    """Mark the values that fit on a logarithmic axis, the first ones first."""
    low, high = axes.get_xlim()
    shown: dict[str, float] = {}
    for name, value in names.items():
        place = math.log2(value) * steps
        if low <= place <= high and all(abs(place - other) > 0.12 * (high - low) for other in shown.values()):
            shown[name] = place
    axes.set_xticks(list(shown.values()), list(shown))


def _draw_shards(axes: Axes, series: Sequence[Series]) -> None:
    """Each shard's size at its number."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for each in series:
        few, style = len(each.shards) <= 100, each.style
        shown = _extremes(each.shards)
        axes.plot(
            shown,
            [each.shards[k] for k in shown],
            linestyle="none",
            marker=style.mark,
            markersize=6 if few else 2.5,
            markeredgewidth=0 if style.is_filled else 1.5,
            markerfacecolor=style.colour if style.is_filled else "none",
            color=style.colour,
            gid=part_of(each.number),
        )
    marked = sorted({number for each in series for number in _extremes(each.shards)})
    for k in marked if len(marked) <= MARKS else ():
        text = ", ".join(f"{each.split} {size_text(each.shards[k])}" for each in series if k in each.shards)
        _add_tip(axes, k - 0.5, k + 0.5, f"shard {k:,}: {text}")
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
    """The numbers of the shards to draw: the smallest and the largest of each group that shares a place."""
    numbers = sorted(shards)
    width = -(-len(numbers) // MARKS)
    found: set[int] = set()
    for start in range(0, len(numbers), width or 1):
        near = numbers[start : start + width]
        found |= {min(near, key=shards.__getitem__), max(near, key=shards.__getitem__)}
    return sorted(found)


def _style(series: Series) -> dict[str, Any]:
    style = series.style
    lines = {"linewidth": 1.8, "linestyle": style.line, "gid": part_of(series.number)}
    return {"fill": style.is_filled, "color": style.colour, "alpha": 0.75 if style.is_filled else 1, **lines}


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
    """The first class with this count, and how many others have it."""
    having = sorted(label for label, found in labels.items() if found == count)
    name = words.get(having[0]) or f"label {having[0]}"
    return name + (f" and {number_of(len(having) - 1, 'other')}" if len(having) > 1 else "")


def _sizes_text(series: Sequence[Series]) -> str:
    width, height = (sum((getattr(each.found, side) for each in series), Spread()) for side in ("width", "height"))
    if not width.count:
        return ""
    mean = f"{width.total / width.count:.0f} {TIMES} {height.total / height.count:.0f} pixels on average"
    return f"{mean}; width {spread_text(width)}, height {spread_text(height)}. A stronger colour means more images."


def _aspects_text(series: Sequence[Series]) -> str:
    aspects = sum((each.found.aspects for each in series), Counter[int]())
    wide, tall = (sum(aspects[k] for k in aspects if k * way > 0) for way in (1, -1))
    counts = {"wide": wide, "tall": tall, "about square": aspects.total() - wide - tall}
    return _join((f"{100 * count / aspects.total():.0f}% {name}" for name, count in counts.items() if aspects), ", ")


def _bytes_text(series: Sequence[Series]) -> str:
    sizes = {each.split: each.found.bytes for each in series if each.found.bytes.count}
    return _join(
        f"{split}: {size_text(found.total / found.count)} on average,"
        f" {size_text(found.least)} to {size_text(found.greatest)}"
        for split, found in sizes.items()
    )


def _boxes_text(series: Sequence[Series], thing: str) -> str:
    sentences = []
    for split, boxes in ((each.split, each.found.boxes) for each in series if each.found.boxes):
        share = f"{100 * (1 - boxes[0] / boxes.total()):.1f}% of the"
        share = "no" if boxes.keys() == {0} else "all" if 0 not in boxes else share
        sentences.append(f"{split}: {share} {thing}s have boxes")
    return _join(sentences)


def _shards_text(series: Sequence[Series]) -> str:
    sizes = {each.split: each.shards.values() for each in series if each.shards}
    return _join(
        f"{split}: {size_text(min(found))}" + (f" to {size_text(max(found))}" if len(found) > 1 else "")
        for split, found in sizes.items()
    )


def _join(parts: Iterable[str], mark: str = "; ") -> str:
    text = mark.join(parts)
    return f"{text}." if text else ""


def _range(low: float, high: float) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
