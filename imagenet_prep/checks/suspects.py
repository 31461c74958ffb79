"""suspect_shards: the shards of a set in which the last verify found faults."""

from __future__ import annotations

from collections.abc import Collection

from imagenet_prep.checks.verdict import load_verdict
from imagenet_prep.storage.layout import Layout, split_of


def suspect_shards(layout: Layout, names: Collection[str]) -> set[str]:
    """The shards among ``names`` that a current verdict names; those of a whole split if it names
    this split.
    """
    subjects: set[str] = set()
    for set_layout in layout.sets():
        kept = load_verdict(set_layout)
        if kept is not None and kept.is_current:
            subjects.update(kept.verdict.faulty)
            for problem in kept.verdict.problems:
                subjects.add(problem.subject)
    return {name for name in names if not subjects.isdisjoint((name, split_of(name)))}
