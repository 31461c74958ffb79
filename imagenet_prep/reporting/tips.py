"""Values that a chart tells where the pointer is: parts that can't be seen, each with its words as its title."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from imagenet_prep.reporting.drawing import tip_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 1500
"""Parts of one chart; of more, none: the page would grow, and they could not be told apart."""

Steps = tuple[Sequence[int], Sequence[float]]
"""Values, and the edges between which each of them holds."""


def add_strip(axes: Axes, left: float, right: float, text: str) -> None:
    """Words for all that is drawn between two values of x."""
    axes.axvspan(left, right, facecolor="none", edgecolor="none", clip_on=False, gid=tip_of(text))


def add_strips(axes: Axes, edges: Sequence[float], texts: Sequence[str]) -> None:
    """Words for what is drawn between one edge and the next."""
    if len(texts) <= MOST:
        for (left, right), text in zip(itertools.pairwise(edges), texts, strict=True):
            add_strip(axes, left, right, text)


def add_shares(
    axes: Axes, counters: Mapping[str, Counter[int]], bins: range, steps: int, named: Callable[[float], str]
) -> None:
    """Words for each bin of a logarithmic axis that holds something: what it is about, and each split's share of it."""
    for k in bins:
        if any(counter[k] for counter in counters.values()):
            text = f"about {named(2 ** (k / steps))}: {shares(counters, k)}"
            add_strip(axes, (k - 0.5) / steps, (k + 0.5) / steps, text)


def shares(counters: Mapping[str, Counter[int]], key: int) -> str:
    """The share that one value has in each split: "train 12.5%, validation 8.3%"."""
    return ", ".join(
        f"{split} {100 * counter[key] / counter.total():.3g}%" for split, counter in counters.items() if counter
    )


def add_classes(axes: Axes, splits: Mapping[str, Steps], thing: str) -> None:
    """Words for the classes that have as many images as one another in every split."""
    edges = sorted({edge for _, own in splits.values() for edge in own})
    texts = []
    for left, right in itertools.pairwise(edges):
        first, last = math.ceil(left), math.floor(right)
        held = [
            f"{split} {values[at]:,}"
            for split, (values, own) in splits.items()
            if 0 <= (at := bisect_right(own, left) - 1) < len(values)
        ]
        place = f"class {first:,}" if first == last else f"classes {first:,} to {last:,}"
        texts.append(f"{place}: {', '.join(held)} {thing}s each")
    add_strips(axes, edges, texts)


def add_squares(axes: Axes, squares: Sequence[Sequence[tuple[float, float]]], texts: Sequence[str]) -> None:
    """Words for each of these squares."""
    from matplotlib.patches import Polygon

    if len(squares) <= MOST:
        for square, text in zip(squares, texts, strict=True):
            axes.add_patch(Polygon(square, facecolor="none", edgecolor="none", clip_on=False, gid=tip_of(text)))
