"""draw_charts: a census -> histograms whose bars also say which images they count."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from imagenet_prep.reporting.census import UNLABELED, UNREAD, Census, Rows
from imagenet_prep.text import number_of, size_text

BARS = 20
"""Bars of a chart, at most; those at both ends have the rest,
which is under 1 % of the images each.
"""


class Bar(NamedTuple):
    """The images whose value is at least ``low`` and less than ``high`` (None: no limit).

    By split, ``counts`` are their numbers, and ``shares`` their percentages of the split.
    """

    low: float | None
    high: float | None
    name: str
    counts: dict[int, int]
    shares: dict[int, float]

    @property
    def token(self) -> str:
        """Its name in the address of the page: "500..550", "..150" or "800.."."""
        low = "" if self.low is None else f"{self.low:.15g}"
        high = "" if self.high is None else f"{self.high:.15g}"
        return f"{low}..{high}"


class Chart(Struct, frozen=True):
    """A histogram: ``values`` has the value of each row of the census, NaN where there is none.

    The height of a bar is a share of its split, relative to the tallest (``tallest``, in percent of
    the split of the number ``tallest_split``).
    """

    key: str
    title: str
    text: str
    bars: tuple[Bar, ...]
    tallest: float
    tallest_split: int
    values: NDArray[np.float64]

    def is_in(self, bar: Bar, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether a bar counts each of these rows."""
        values = self.values[rows]
        low = -math.inf if bar.low is None else bar.low
        high = math.inf if bar.high is None else bar.high
        return (values >= low) & (values < high)


class Measure(NamedTuple):
    """A chart to draw: its title, the smallest step between bars, and the text of one value."""

    title: str
    step: float
    text: Callable[[float], str]


def measures(thing: str) -> dict[str, Measure]:
    """The measures of a record, by key; ``thing`` is the word for a record."""
    return {
        "width": Measure("Width in pixels", 1, plain),
        "height": Measure("Height in pixels", 1, plain),
        "ratio": Measure("Width divided by height", 0.05, "{:.2f}".format),
        "bytes": Measure("File size", 1, size_text),
        "boxes": Measure(f"Boxes per {thing}", 1, plain),
        "images": Measure(f"{thing.title()}s per class", 1, plain),
    }


def plain(value: float) -> str:
    """A number, with one decimal if it is not whole."""
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}"


def draw_charts(
    census: Census, splits: Mapping[str, int], thing: str, *, has_boxes: bool
) -> list[Chart]:
    """Every chart with something to draw; ``splits`` are numbers by name."""
    values_by_key = _measure_rows(census, has_boxes=has_boxes)
    split_of = census.rows["split"]
    charts = []
    for key, measure in measures(thing).items():
        values = values_by_key[key]
        if not np.isnan(values).all():
            chart = _draw(key, measure, values, split_of, splits)
            charts.append(chart)
    return charts


def _measure_rows(census: Census, *, has_boxes: bool) -> dict[str, NDArray[np.float64]]:
    """By measure, the value of each row; NaN where it has none."""
    rows = census.rows
    width = rows["width"].astype(float)
    height = rows["height"].astype(float)
    width[width == 0] = np.nan
    height[height == 0] = np.nan
    file_size = rows["bytes"]
    is_read = rows["marks"] & UNREAD == 0
    file_sizes = np.where(file_size > 0, file_size, np.nan)
    box_counts = np.where(is_read & has_boxes, rows["boxes"], np.nan)
    return {
        "width": width,
        "height": height,
        "ratio": width / height,
        "bytes": file_sizes,
        "boxes": box_counts,
        "images": _class_sizes(rows),
    }


def _class_sizes(rows: Rows) -> NDArray[np.float64]:
    """For each row the number of images in its class and split; NaN without a label."""
    is_labelled = rows["marks"] & UNLABELED == 0
    classes = rows[["split", "label"]][is_labelled]
    _, class_of_row, counts = np.unique(classes, return_inverse=True, return_counts=True)
    sizes = np.full(len(rows), np.nan)
    sizes[is_labelled] = counts[class_of_row.ravel()]
    return sizes


def _draw(
    key: str,
    measure: Measure,
    values: NDArray[np.float64],
    split_of: NDArray[np.uint16],
    splits: Mapping[str, int],
) -> Chart:
    has_value = ~np.isnan(values)
    edges = edges_of(values[has_value], measure.step)
    weights = np.ones(len(values))
    if key == "images":
        weights = 1 / values  # a class is counted once, not per image
    counts_by_split: dict[int, list[int]] = {}
    texts = []
    for split, number in splits.items():
        in_split = has_value & (split_of == number)
        if in_split.any():
            split_values = values[in_split]
            split_weights = weights[in_split]
            counts_by_split[number] = _count_per_bar(edges, split_values, split_weights)
            spread_text = _spread_text(measure, split_values, split_weights)
            texts.append(f"{split}: {spread_text}")
    limits = list(_limits(edges, values[has_value], measure))
    bars = _bars(limits, counts_by_split)
    tallest, tallest_split = _tallest_of(bars)
    text = "; ".join(texts) + "."
    return Chart(key, measure.title, text, bars, tallest, tallest_split, values)


def _count_per_bar(
    edges: NDArray[np.float64], values: NDArray[np.float64], weights: NDArray[np.float64]
) -> list[int]:
    """The images of each bar; the bars at both ends also count the values beyond them."""
    bar_count = len(edges) - 1
    positions = np.searchsorted(edges, values, "right") - 1
    bar_of_value = np.clip(positions, 0, bar_count - 1)
    sums = np.bincount(bar_of_value, weights, bar_count)
    counts: list[int] = np.rint(sums).astype(int).tolist()
    return counts


def _spread_text(
    measure: Measure, values: NDArray[np.float64], weights: NDArray[np.float64]
) -> str:
    """The smallest and the largest value, and their mean; one value if all are the same."""
    low = measure.text(values.min())
    high = measure.text(values.max())
    if low == high:
        return low
    mean = np.average(values, weights=weights)
    return f"{low} to {high}, {measure.text(mean)} on average"


def _bars(
    limits: Sequence[tuple[float | None, float | None, str]],
    counts_by_split: Mapping[int, Sequence[int]],
) -> tuple[Bar, ...]:
    bars = []
    for position, (low, high, name) in enumerate(limits):
        counts = {split: counts[position] for split, counts in counts_by_split.items()}
        shares = {}
        for split, count in counts.items():
            shares[split] = 100 * count / sum(counts_by_split[split])
        bar = Bar(low, high, name, counts, shares)
        bars.append(bar)
    return tuple(bars)


def _tallest_of(bars: Iterable[Bar]) -> tuple[float, int]:
    """The largest share of a split in a bar, and the number of this split."""
    shares = []
    for bar in bars:
        for split, share in bar.shares.items():
            shares.append((share, -split))
    tallest, negative_split = max(shares)
    return tallest, -negative_split


def edges_of(values: NDArray[np.float64], smallest: float) -> NDArray[np.float64]:
    """Round numbers that part nearly all of these values into BARS bars at most; at least two."""
    low, high = np.quantile(values, (0.01, 0.99), method="nearest")
    for power, digit in itertools.product(range(20), (1, 2, 5)):
        step = smallest * digit * 10**power
        first_edge = np.floor(low / step)
        last_edge = np.floor(high / step) + 1
        if last_edge - first_edge <= BARS:
            break
    places = np.arange(first_edge, last_edge + 1)
    edges: NDArray[np.float64] = np.round(places * step, 6)
    return edges


def _limits(
    edges: NDArray[np.float64], values: NDArray[np.float64], measure: Measure
) -> Iterator[tuple[float | None, float | None, str]]:
    """Both limits and the name of each bar;
    the first and the last have none if values are beyond.
    """
    text = measure.text
    smallest, largest = values.min(), values.max()
    for low, high in itertools.pairwise(edges.tolist()):
        is_under = low == edges[0] and smallest < low
        is_over = high == edges[-1] and largest >= high
        if is_under and is_over:
            yield None, None, "any"
        elif is_under:
            yield None, high, f"under {text(high)}"
        elif is_over:
            yield low, None, f"{text(low)} or more"
        else:
            last_value = high - 1 if text is plain else high
            name = text(low)
            if last_value != low:
                name += f" to {text(last_value)}"
            yield low, high, name


def bar_label(bar: Bar, splits: Mapping[str, int], nouns: tuple[str, str]) -> str:
    """A bar as text: "400 to 499: train 12 images (5% of train)"."""
    counts = []
    for split, number in splits.items():
        if bar.counts.get(number):
            images = number_of(bar.counts[number], *nouns)
            counts.append(f"{split} {images} ({bar.shares[number]:.3g}% of {split})")
    return f"{bar.name}: {', '.join(counts) or 'none'}"
