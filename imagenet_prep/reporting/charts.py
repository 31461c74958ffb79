"""draw_charts: a census -> histograms whose bars also say which images they count."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from imagenet_prep.reporting.census import UNLABELED, UNREAD, Census
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


class Chart(Struct, frozen=True):
    """A histogram: ``values`` has the value of each row of the census, NaN where there is none.

    The height of a bar is a share of its split, relative to the tallest (``tallest``, in percent of
    a split).
    """

    key: str
    title: str
    text: str
    bars: tuple[Bar, ...]
    tallest: float
    values: NDArray[np.float64]

    def is_in(self, bar: Bar, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether a bar counts each of these rows."""
        values = self.values[rows]
        low, high = (
            (-math.inf if bar.low is None else bar.low),
            (math.inf if bar.high is None else bar.high),
        )
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
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def draw_charts(
    census: Census, splits: Mapping[str, int], thing: str, *, has_boxes: bool
) -> list[Chart]:
    """Every chart with something to draw; ``splits`` are numbers by name."""
    rows = census.rows
    size, width, height = rows["bytes"], rows["width"].astype(float), rows["height"].astype(float)
    width[width == 0] = height[height == 0] = np.nan
    read, labeled = rows["marks"] & UNREAD == 0, rows["marks"] & UNLABELED == 0
    values = {
        "width": width,
        "height": height,
        "ratio": width / height,
        "bytes": np.where(size > 0, size, np.nan),
        "boxes": np.where(read & has_boxes, rows["boxes"], np.nan),
        "images": np.full(len(rows), np.nan),
    }
    _, classes, counts = np.unique(
        rows[["split", "label"]][labeled], return_inverse=True, return_counts=True
    )
    values["images"][labeled] = counts[classes.ravel()]
    return [
        _draw(key, measure, values[key], rows["split"], splits)
        for key, measure in measures(thing).items()
        if not np.isnan(values[key]).all()
    ]


def _draw(
    key: str,
    measure: Measure,
    values: NDArray[np.float64],
    split_of: NDArray[np.uint16],
    splits: Mapping[str, int],
) -> Chart:
    known = ~np.isnan(values)
    edges = edges_of(values[known], measure.step)
    weights = (
        1 / values if key == "images" else np.ones(len(values))
    )  # a class is counted once, not per image
    counts, texts = {}, []
    for split, number in splits.items():
        own = known & (split_of == number)
        if own.any():
            bins = np.clip(np.searchsorted(edges, values[own], "right") - 1, 0, len(edges) - 2)
            counts[number] = (
                np.rint(np.bincount(bins, weights[own], len(edges) - 1)).astype(int).tolist()
            )
            mean = np.average(values[own], weights=weights[own])
            low, high = measure.text(values[own].min()), measure.text(values[own].max())
            texts.append(
                f"{split}: "
                + (low if low == high else f"{low} to {high}, {measure.text(mean)} on average")
            )
    shares = {number: [100 * count / sum(own) for count in own] for number, own in counts.items()}
    bars = tuple(
        Bar(
            *limits,
            *({number: own[k] for number, own in each.items()} for each in (counts, shares)),
        )
        for k, limits in enumerate(_limits(edges, values[known], measure))
    )
    return Chart(
        key, measure.title, "; ".join(texts) + ".", bars, max(map(max, shares.values())), values
    )


def edges_of(values: NDArray[np.float64], smallest: float) -> NDArray[np.float64]:
    """Round numbers that part nearly all of these values into BARS bars at most; at least two."""
    low, high = np.quantile(values, (0.01, 0.99), method="nearest")
    steps = (smallest * digit * 10**power for power in range(20) for digit in (1, 2, 5))
    step = next(step for step in steps if np.floor(high / step) - np.floor(low / step) < BARS)
    edges: NDArray[np.float64] = np.round(
        np.arange(np.floor(low / step), np.floor(high / step) + 2) * step, 6
    )
    return edges


def _limits(
    edges: NDArray[np.float64], values: NDArray[np.float64], measure: Measure
) -> Iterator[tuple[float | None, float | None, str]]:
    """Both limits and the name of each bar;
    the first and the last have none if values are beyond.
    """
    text, last = measure.text, len(edges) - 2
    for k in range(last + 1):
        low, high = float(edges[k]), float(edges[k + 1])
        is_under, is_over = k == 0 and values.min() < low, k == last and values.max() >= high
        if is_under and is_over:
            yield None, None, "any"
        elif is_under:
            yield None, high, f"under {text(high)}"
        elif is_over:
            yield low, None, f"{text(low)} or more"
        else:
            last_value = high - 1 if text is plain else high
            yield (
                low,
                high,
                text(low) if last_value == low else f"{text(low)} to {text(last_value)}",
            )


def bar_label(bar: Bar, splits: Mapping[str, int], nouns: tuple[str, str]) -> str:
    """A bar as text: "400 to 499: train 12 images (5%), validation none"."""
    parts = [
        f"{split} {number_of(bar.counts[number], *nouns)} ({bar.shares[number]:.3g}%)"
        for split, number in splits.items()
        if bar.counts.get(number)
    ]
    return f"{bar.name}: {', '.join(parts) or 'none'}"
