"""A program of a user who types strictly: mypy reads it as theirs (tests/test_release.py),
nothing runs it.
"""

from __future__ import annotations

from pathlib import Path

import imagenet_prep
from imagenet_prep import (
    ConvertOptions,
    Layout,
    PrepError,
    annotate,
    convert,
    diff,
    make_engine,
    repair,
    verify,
)


def make(folder: Path) -> list[str]:
    """Shards, and what is wrong with them."""
    layout, engine = Layout(folder), make_engine("processes", workers=2)
    annotate(layout, engine)
    try:
        summary = convert(layout, engine, ConvertOptions(train_shards=8, allow_incomplete=True))
    except PrepError as error:
        return [error.what, str(error.exit_code)]
    made: int = sum(split.made for split in summary.splits)
    verdict = verify(layout, engine)
    kinds: list[str] = [problem.kind.value for problem in verdict.problems]
    again = repair(layout, engine, verdict.faulty)
    return [*kinds, str(made), str(again.made)]


def read(folder: Path) -> int:
    """The pixels of a split."""
    records = imagenet_prep.open(folder, "train")
    total = 0
    for record in records.shard(0, 2):
        label: int | None = record.label
        name: str = record.filename
        view: memoryview = record.encoded
        shape: tuple[int, ...] = record.array().shape
        boxes: list[float] = [box.xmin for box in record.boxes]
        total += (label or 0) + len(name) + len(view) + shape[0] + len(boxes)
    return total + len(records[2:4]) + len(records[[0, 1]])


def compare(first: Path, second: Path) -> list[str]:
    """The names of records that differ."""
    found = diff(first, second)
    return [record.name for split in found.splits for record in split.differing]
