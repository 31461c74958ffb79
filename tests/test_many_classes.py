"""Charts of sets with very many classes or shards stay small, and show what there is."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from imagenet_prep.reporting.census import Census, SplitCensus
from imagenet_prep.reporting.charts import MARKS, _extremes, draw_charts
from imagenet_prep.reporting.page_facts import Subject
from imagenet_prep.storage.layout import shard_name

SUBJECT = Subject("many", ("train",))


def census(classes: int, shards: int) -> Census:
    """What a set of so many classes and shards holds: a few images a class, shards of a few sizes."""
    labels = Counter({label: 700 + label % 600 for label in range(classes)})
    found = SplitCensus(records=labels.total(), labels=labels)
    return Census({"train": found}, shards={shard_name("train", k, shards): 100 + k % 7 for k in range(shards)})


@pytest.mark.parametrize(("classes", "shards"), [(70_000, 8), (10, 100_001)])
def test_charts_of_many_are_small(classes: int, shards: int) -> None:
    """A page with a path through 70,000 classes, or with 100,001 marks, took megabytes."""
    charts = {chart.name: chart for chart in draw_charts(census(classes, shards), SUBJECT)}
    assert f"{classes:,} classes" in charts["classes"].text
    assert sum(len(chart.svg) for chart in charts.values()) < 400_000


@pytest.mark.parametrize("count", [0, 1, 100, MARKS, MARKS + 1, 10 * MARKS + 7])
def test_the_extremes_are_marked(count: int) -> None:
    """All shards as long as they are few; of many the smallest and the largest are among them, spread evenly."""
    sizes = {k: 1000 + k % 97 for k in range(count)}
    if count > MARKS:
        sizes |= {count // 2: 1, count // 3: 10**6}
    marked = _extremes(sizes)
    assert marked == sorted(set(marked))
    assert len(marked) <= 2 * MARKS
    if count <= MARKS:
        assert marked == sorted(sizes)
    else:
        assert {count // 2, count // 3} <= set(marked)
        assert max(b - a for a, b in itertools.pairwise(marked)) <= 2 * (count // MARKS + 1)
