"""merge_patterns: problems of single labels -> one, if a split's labels are wrong in one way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from imagenet_prep.checks.shard_check import ShardReport
from imagenet_prep.model import Problem, ProblemKind

LABEL_PATTERNS = {
    ProblemKind.ZERO_BASED_LABELS: (
        "labels count from 0: {} of {} records have their class's label minus 1",
        "make the set again with labels from 1, or add 1 to these labels when reading",
    ),
    ProblemKind.DEVKIT_LABELS: (
        (
            "labels are the devkit's ids: {} of {} records have the id of ILSVRC2012_devkit_t12 in "
            "place of the label"
        ),
        (
            "make the set again, or translate these labels: line N of "
            "imagenet_prep/ilsvrc2012/data/imagenet_2012_devkit_synsets.txt has the class of id N"
        ),
    ),
}
"""The message and the remedy for labels that are wrong in a well-known way."""

_ABOUT_LABELS = {*LABEL_PATTERNS, ProblemKind.WRONG_LABEL}


def has_pattern(reports: Sequence[ShardReport]) -> bool:
    """Whether any label in these shards is wrong in a well-known way."""
    patterns = LABEL_PATTERNS.keys()
    return any(patterns & report.counts.keys() for report in reports)


def merge_patterns(
    split: str, reports: Sequence[ShardReport], problems: Sequence[Problem]
) -> list[Problem]:
    """Merge labels that are wrong in one way throughout a split into one problem.

    If only a few records match such a pattern, that is chance: each keeps its own problem.
    """
    records = sum(report.records for report in reports)
    matches = {pattern: _count_kind(reports, pattern) for pattern in LABEL_PATTERNS}
    wrong_labels = sum(_count_kind(reports, kind) for kind in _ABOUT_LABELS)
    merged: list[Problem] = []
    for pattern, count in matches.items():
        if 2 * count > records:
            merged.append(_merge_pattern(pattern, split, matches, wrong_labels, records))
    if merged:
        return merged + [problem for problem in problems if problem.kind not in _ABOUT_LABELS]
    return [_without_pattern(problem) for problem in problems]


def _merge_pattern(
    pattern: ProblemKind,
    split: str,
    matches: Mapping[ProblemKind, int],
    wrong_labels: int,
    records: int,
) -> Problem:
    """The problem of all labels that match a pattern, and of the other wrong ones."""
    count = matches[pattern]
    if pattern is ProblemKind.DEVKIT_LABELS:
        # the devkit's id of one or two classes is also their label minus 1
        count += matches[ProblemKind.ZERO_BASED_LABELS]
    detail, remedy = LABEL_PATTERNS[pattern]
    text = detail.format(f"{count:,}", f"{records:,}")
    others = wrong_labels - count
    if others:
        text += f"; {others:,} {'has' if others == 1 else 'have'} another wrong label"
    return Problem(pattern, split, text, remedy, count=count)


def _count_kind(reports: Sequence[ShardReport], kind: ProblemKind) -> int:
    """The number of findings of one kind in all shards of a split."""
    return sum(report.counts.get(kind, 0) for report in reports)


def _without_pattern(problem: Problem) -> Problem:
    """The problem; if its label matches a pattern by chance, as that of any wrong label."""
    if problem.kind in LABEL_PATTERNS:
        return replace(problem, kind=ProblemKind.WRONG_LABEL)
    return problem
