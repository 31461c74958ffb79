"""What was counted, drawn: one chart for each thing, and the same in numbers below it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imagenet_prep.ilsvrc2012 import SPLITS
from imagenet_prep.layout import parse_shard_name
from imagenet_prep.reporting.census import ASPECT_STEPS, BYTE_STEPS, MANY_BOXES, SIDE_STEPS, Census, SplitCensus, Spread
from imagenet_prep.reporting.drawing import TRAIN, VALIDATION, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"train": TRAIN, "validation": VALIDATION}
_RATIOS = {"1:1": 1.0, "4:3": 4 / 3, "3:4": 3 / 4, "2:1": 2.0, "1:2": 1 / 2, "4:1": 4.0, "1:4": 1 / 4} | {
    name: ratio for k in (8, 16, 64) for name, ratio in ((f"{k}:1", float(k)), (f"1:{k}", 1 / k))
}
"""Ratios to mark on an axis, the most important first."""

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing for the page: ``title`` above it, ``text`` below it says what it shows in numbers, ``svg`` is it."""

    name: str
    title: str
    text: str
    svg: str


def draw_charts(census: Census) -> list[Chart]:
    """Every chart that there is something to draw for."""
    splits = {split: census.splits[split] for split in SPLITS if split in census.splits}
    charts = (
        ("classes", "Images a class", _classes_text(splits), lambda axes: _draw_classes(axes, splits)),
        ("sizes", "Width and height", _sizes_text(splits), lambda axes: _draw_sizes(axes, splits)),
        ("aspects", "Aspect ratios", _aspects_text(splits), lambda axes: _draw_aspects(axes, splits)),
        ("bytes", "Bytes an image", _bytes_text(splits), lambda axes: _draw_bytes(axes, splits)),
        ("boxes", "Boxes an image", _boxes_text(splits), lambda axes: _draw_boxes(axes, splits)),
        ("shards", "Size of the shards", _shards_text(census.shards), lambda axes: _draw_shards(axes, census.shards)),
    )
    return [Chart(name, title, text, draw(name, title, onto)) for name, title, text, onto in charts if text]


# the charts ----------------------------------------------------------------------------------------------------


def _draw_classes(axes: Axes, splits: Mapping[str, SplitCensus]) -> None:
    """Images a class, the largest class first."""
    from matplotlib.ticker import MaxNLocator

    for split, found in splits.items():
        counts = sorted(found.labels.values(), reverse=True)
        edges = [0.5 + k for k in range(len(counts) + 1)]
        axes.stairs(counts, edges, **_looks(split))
    axes.set_xlim(0.5, max(len(found.labels) for found in splits.values()) + 0.5)
    axes.set_ylim(0, 1.1 * max(max(found.labels.values(), default=0) for found in splits.values()))
    axes.set_xlabel("classes, the largest first")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
        axis.set_major_formatter("{x:,.0f}")


def _draw_sizes(axes: Axes, splits: Mapping[str, SplitCensus]) -> None:
    """A square for each bin of width and height, the stronger the more images."""
    from matplotlib.collections import PolyCollection

    sides: Counter[tuple[int, int]] = Counter()
    for found in splits.values():
        sides.update(found.sides)
    most = max(sides.values())
    bins = sorted(sides)
    squares = [_square(*each) for each in bins]
    alphas = [0.15 + 0.85 * (sides[each] / most) ** 0.4 for each in bins]
    axes.add_collection(PolyCollection(squares, facecolors=TRAIN, edgecolors="none", alpha=alphas))
    lowest, highest = min(map(min, bins)) - 2, max(map(max, bins)) + 2
    ticks = [2**k for k in range(17) if lowest <= k * SIDE_STEPS <= highest]
    ticks = ticks[:: 1 if len(ticks) <= 6 else 2]
    for axis, name in ((axes.xaxis, "width"), (axes.yaxis, "height")):
        axis.set_ticks([k.bit_length() - 1 for k in ticks], [f"{k:,}" for k in ticks])
        axis.grid(True)
        axis.set_label_text(f"{name} in pixels")
    axes.set_xlim(lowest / SIDE_STEPS, highest / SIDE_STEPS)
    axes.set_ylim(lowest / SIDE_STEPS, highest / SIDE_STEPS)


def _square(x: int, y: int) -> list[tuple[float, float]]:
    """A bin of width and height, its logarithms to base 2."""
    left, right = (x - 0.5) / SIDE_STEPS, (x + 0.5) / SIDE_STEPS
    low, high = (y - 0.5) / SIDE_STEPS, (y + 0.5) / SIDE_STEPS
    return [(left, low), (right, low), (right, high), (left, high)]


def _draw_aspects(axes: Axes, splits: Mapping[str, SplitCensus]) -> None:
    _draw_shares(axes, {split: found.aspects for split, found in splits.items()}, ASPECT_STEPS)
    _name_ticks(axes, _RATIOS)
    axes.set_xlabel("width : height")


def _draw_bytes(axes: Axes, splits: Mapping[str, SplitCensus]) -> None:
    _draw_shares(axes, {split: found.sizes for split, found in splits.items()}, BYTE_STEPS)
    sizes = [digit * 10**power for digit in (1, 3) for power in (5, 4, 6, 3, 7, 2, 8, 1, 0)]
    _name_ticks(axes, {size_text(size): size for size in sizes})
    axes.set_xlabel("size of the image file")


def _draw_shares(axes: Axes, counters: Mapping[str, Counter[int]], steps: int) -> None:
    """Histograms on a logarithmic axis, each in percent of its own split."""
    every = [each for counter in counters.values() for each in counter]
    first, last = min(every) - 1, max(every) + 1
    edges = [(k - 0.5) / steps for k in range(first, last + 2)]
    for split, counter in counters.items():
        total = counter.total() or 1
        shares = [100 * counter[k] / total if counter[k] else math.nan for k in range(first, last + 1)]
        axes.stairs(shares, edges, **_looks(split))
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


def _draw_boxes(axes: Axes, splits: Mapping[str, SplitCensus]) -> None:
    """A bar for each number of boxes, in percent of each split."""
    most = max(max(found.boxes, default=0) for found in splits.values())
    for split, found in splits.items():
        for k in sorted(found.boxes):
            axes.stairs([100 * found.boxes[k] / found.records], [k - 0.35, k + 0.35], **_looks(split))
    names = [f"{k}+" if k == MANY_BOXES else str(k) for k in range(most + 1)]
    axes.set_xticks(range(most + 1), names)
    axes.set_xlim(-0.6, most + 0.6)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("boxes")
    axes.yaxis.set_major_formatter("{x:g}%")


def _draw_shards(axes: Axes, shards: Mapping[str, int]) -> None:
    """Each shard's size in its place."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    most = 0
    for split in SPLITS:
        sizes = {
            found[1]: size for name, size in shards.items() if (found := parse_shard_name(name)) and found[0] == split
        }
        most = max(most, *sizes, 0)
        few = len(sizes) <= 100
        axes.plot(
            sorted(sizes),
            [sizes[k] for k in sorted(sizes)],
            linestyle="none",
            marker="o" if split == "train" else "D",
            markersize=6 if few else 2.5,
            markeredgewidth=0 if split == "train" else 1.5,
            markerfacecolor=TRAIN if split == "train" else "none",
            color=_COLOURS[split],
        )
    axes.set_xlim(-0.02 * most - 0.5, 1.02 * most + 0.5)
    axes.set_ylim(0, 1.1 * max(shards.values()) or 1)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: size_text(value)))
    axes.set_xlabel("number of the shard")


def _looks(split: str) -> dict[str, Any]:
    """Train is filled, validation an outline over it."""
    is_train = split == "train"
    return {"fill": is_train, "color": _COLOURS[split], "alpha": 0.75 if is_train else 1, "linewidth": 1.8}


# the same in numbers -------------------------------------------------------------------------------------------


def _classes_text(splits: Mapping[str, SplitCensus]) -> str:
    counts = {split: found.labels.values() for split, found in splits.items() if found.labels}
    return _join(
        f"{split}: {len(found):,} {'class' if len(found) == 1 else 'classes'}"
        f" of {_range(min(found), max(found))} images"
        for split, found in counts.items()
    )


def _sizes_text(splits: Mapping[str, SplitCensus]) -> str:
    width, height = Spread(), Spread()
    for found in splits.values():
        width.merge(found.width)
        height.merge(found.height)
    if not width.count:
        return ""
    mean = f"{width.total / width.count:.0f} {TIMES} {height.total / height.count:.0f} pixels on average"
    sides = f"width {_range(width.least, width.greatest)}, height {_range(height.least, height.greatest)}"
    return f"{mean}; {sides}. The stronger a square, the more images."


def _aspects_text(splits: Mapping[str, SplitCensus]) -> str:
    aspects: Counter[int] = Counter()
    for found in splits.values():
        aspects.update(found.aspects)
    total = aspects.total()
    if not total:
        return ""
    wide = sum(count for each, count in aspects.items() if each > 0)
    tall = sum(count for each, count in aspects.items() if each < 0)
    square = total - wide - tall
    shares = (
        f"{100 * count / total:.0f}% {name}"
        for count, name in ((wide, "wide"), (tall, "tall"), (square, "about square"))
    )
    return f"{', '.join(shares)}."


def _bytes_text(splits: Mapping[str, SplitCensus]) -> str:
    return _join(
        f"{split}: {size_text(found.bytes.total / found.bytes.count)} on average,"
        f" {size_text(found.bytes.least or 0)} to {size_text(found.bytes.greatest or 0)}"
        for split, found in splits.items()
        if found.bytes.count
    )


def _boxes_text(splits: Mapping[str, SplitCensus]) -> str:
    return _join(
        f"{split}: {_share(found.records - found.boxes[0], found.records)} have boxes"
        for split, found in splits.items()
        if found.records
    )


def _shards_text(shards: Mapping[str, int]) -> str:
    sizes = {split: [size for name, size in shards.items() if name.startswith(f"{split}-")] for split in SPLITS}
    return _join(
        f"{split}: {size_text(min(found))}" + (f" to {size_text(max(found))}" if len(found) > 1 else "")
        for split, found in sizes.items()
        if found
    )


def _share(count: int, total: int) -> str:
    return "no images" if not count else "all images" if count == total else f"{100 * count / total:.1f}% of the images"


def _join(sentences: Iterable[str]) -> str:
    text = "; ".join(sentences)
    return f"{text}." if text else ""


def _range(low: int | None, high: int | None) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def size_text(count: float) -> str:
    """A number of bytes for people, decimal."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if count >= 99.5 or count == int(count) else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
