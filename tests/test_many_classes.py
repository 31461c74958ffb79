"""Histograms: round limits, each image in one bar, and small for sets with very many classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep.reporting.census import _COLUMNS, Census, join
from imagenet_prep.reporting.charts import BARS, Chart, draw_charts, edges_of

NUMBERS = st.lists(st.integers(1, 70_000), min_size=1, max_size=60)


def census(**columns: list[int]) -> Census:
    """A split of images with these values; the others are 1."""
    rows = np.ones(len(next(iter(columns.values()))), list(_COLUMNS.items()))
    rows["marks"] = 0
    for name, values in columns.items():
        rows[name] = values
    return join([("train-00000-of-00001", Census(rows))], ["train"])


def charts(found: Census) -> dict[str, Chart]:
    """The histograms of a split."""
    return {chart.key: chart for chart in draw_charts(found, {"train": 0}, "image", has_boxes=True)}


def test_a_chart_of_very_many_classes_is_small() -> None:
    """7,000 classes of 1 to 60 images are a few bars, and each class counts once."""
    classes = np.repeat(np.arange(7_000), np.arange(7_000) % 60 + 1)
    chart = charts(census(label=classes.tolist()))["images"]
    assert len(chart.bars) <= BARS
    assert sum(bar.counts[0] for bar in chart.bars) == 7_000
    assert chart.text == "train: 1 to 60, 30.4 on average."  # the last turn stops at 40


@given(NUMBERS, st.sampled_from((1, 0.05)))
def test_limits_are_round_and_few(values: list[int], step: float) -> None:
    """At most BARS bars, at equal distances that are 1, 2 or 5 times a power of ten times the step."""
    edges = edges_of(np.array(values, float), step)
    assert 2 <= len(edges) <= BARS + 1
    width = (edges[-1] - edges[0]) / (len(edges) - 1) / step
    assert float(f"{width:.0e}") == pytest.approx(width)
    assert f"{width:.0e}"[0] in "125"


@given(NUMBERS, NUMBERS)
def test_each_image_is_in_one_bar(widths: list[int], heights: list[int]) -> None:
    """Bars count what their own limits say, as NumPy counts it, and all of them together every image."""
    count = min(len(widths), len(heights))
    found = census(width=widths[:count], height=heights[:count], label=list(range(count)))
    for chart in charts(found).values():
        held = np.array([chart.is_in(bar, np.arange(count)) for bar in chart.bars])
        assert (held.sum(axis=0) == 1).all(), chart.key
        assert held.sum(axis=1).tolist() == [bar.counts[0] for bar in chart.bars]
        assert max(bar.heights[0] for bar in chart.bars) == pytest.approx(100)
    width = charts(found)["width"]
    for bar in width.bars:
        low, high = bar.low or 0, bar.high or 10**9
        assert bar.counts[0] == sum(low <= each < high for each in widths[:count])


def test_bars_have_plain_names() -> None:
    """Whole numbers are named with both ends, single ones alone, and the ends of a long tail with one."""
    boxes = [0] * 300 + [1] * 300 + [2] * 300 + [40]
    assert [bar.name for bar in charts(census(boxes=boxes))["boxes"].bars] == ["0", "1", "2 or more"]
    widths = [*range(100, 500), 1, 9000]
    assert [bar.name for bar in charts(census(width=widths))["width"].bars][:2] == ["under 120", "120 to 139"]
    assert charts(census(width=widths))["width"].bars[-1].name == "480 or more"
