"""The facts of large reports, without shards: sizes, classes,
boxes, names and problems of made-up images.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from imagenet_prep.checks.verdict import SplitReport, Verdict
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.reporting.census import GREY, ROTATED, Census, TakeCensus, join
from imagenet_prep.reporting.charts import draw_charts
from imagenet_prep.reporting.marks_file import Mark, Marks, find_marked
from imagenet_prep.reporting.page_facts import Facts, Subject
from imagenet_prep.reporting.samples import Colours
from imagenet_prep.storage.layout import Layout

HOSTILE = """<script>alert(1)</script>"><img src=x onerror='alert(2)'>"""
"""A file name and the reason of a mark that are markup."""

SHARDS = 50


def make_census(count: int) -> Census:
    """Images of 1,000 classes in 50 shards: the sizes of photographs, by a seed."""
    random = np.random.default_rng(1)
    columns = TakeCensus(Layout("."))("absent-00000-of-00001").rows.dtype
    parts = []
    for shard in range(SHARDS):
        split = facts.SPLITS[shard % 5 == 4]
        rows = np.zeros(count // SHARDS, columns)
        rows["label"] = random.integers(1, 1001, len(rows))
        rows["width"] = random.choice([500, 375, 333, 640, 1024, 28], len(rows))
        rows["height"] = random.choice([500, 375, 333, 480], len(rows))
        rows["bytes"] = random.lognormal(11.5, 0.5, len(rows))
        rows["boxes"] = random.poisson(0.5, len(rows)) * (split == "train")
        rows["chance"] = random.integers(0, 1 << 32, len(rows))
        rows["marks"] = GREY * (random.random(len(rows)) < 0.02)
        rows["marks"] |= (ROTATED * (random.random(len(rows)) < 0.001)).astype("u2")
        numbers = random.integers(1, 100_000, len(rows))
        names = []
        for row, number in zip(rows, numbers.tolist(), strict=True):
            names.append(f"{facts.synsets()[row['label'] - 1]}_{number}.JPEG")
        if shard == 0:
            names[7] = HOSTILE
        shard_name = f"{split}-{shard:05d}-of-{SHARDS:05d}"
        part = Census(rows, [shard_name], ["".join(f"{name}\n" for name in names)])
        parts.append((shard_name, part))
    census = join(parts, facts.SPLITS)
    for label, wnid in enumerate(facts.synsets(), 1):
        census.words[label] = facts.texts()[wnid]
        census.wnids[label] = wnid
    return census


def make_facts(count: int) -> Facts:
    """The facts of such a set: three kinds of problems, 101 flagged images, no picture."""
    census = make_census(count)
    names = list(census.list_filenames())
    marks = {name: Mark("blurred", "blurred, score 0.9") for name in names[100:200]}
    marks[HOSTILE] = Mark(HOSTILE, HOSTILE)
    problems = (
        Problem(ProblemKind.WRONG_LABEL, census.shards[3], "one", record=5),
        Problem(ProblemKind.WRONG_LABEL, census.shards[3], "and 9 more of this kind", count=9),
        Problem(ProblemKind.TRUNCATED, census.shards[8], "all of it"),
        Problem(ProblemKind.MISSING_SHARD, "absent-00000-of-00001", "no image of the page"),
    )
    totals = [SplitReport(split, 1, count, count, 1000, 0, 10) for split in facts.SPLITS]
    verdict = Verdict("full", problems, tuple(totals), "damaged", "", has_manifest=False)
    subject = Subject("ILSVRC2012", facts.SPLITS, {})
    return Facts(
        name="large-set",
        is_file=False,
        paths={},
        subject=subject,
        verdict=verdict,
        manifest=None,
        census=census,
        charts=draw_charts(census, subject.numbers, "image", has_boxes=True),
        samples=(),
        more=(),
        pictures={},
        colours=Colours(0, 0, (), ()),
        copies=(),
        near=None,
        annotations={},
        marked=find_marked(Marks("flags.csv", marks, ()), census, "large-set", Path("shard")),
    )
