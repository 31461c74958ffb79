"""check_unique: the shards of a split -> the problems of images that are in two records.

find_identical_shards: shards that hold the same records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import pairwise

from imagenet_prep.checks.examiner import Finding, Findings
from imagenet_prep.checks.shard_check import REMEDY_FOREIGN, ShardReport
from imagenet_prep.model import Problem, ProblemKind

_EXPLAINED = {
    ProblemKind.EXTRA_RECORD,
    ProblemKind.EXCHANGED_SHARD,
    ProblemKind.OTHER_CONVERSION,
}
"""Findings in a shard that explain repeated images."""

_REMEDY_COPIES = "get intact copies of these shards, or a second set to compare them with"


def check_unique(
    reports: Sequence[ShardReport], explained_shards: Collection[str] = ()
) -> list[Problem]:
    """Check that every file name occurs once in a split;
    shards already known to repeat images are left out.
    """
    unexplained = [report for report in reports if report.name not in explained_shards]
    unexplained = [report for report in unexplained if not _EXPLAINED & report.counts.keys()]
    repeated = _repeated_names(unexplained)
    if not repeated:
        return []
    first_places: dict[bytes, tuple[ShardReport, int]] = {}
    problems: list[Problem] = []
    for report in unexplained:
        findings = Findings(report.name, REMEDY_FOREIGN)
        for number, name in enumerate(report.filenames):
            if name in first_places:
                first_report, first_number = first_places[name]
                finding = _duplicate(report, number, first_report, first_number)
                findings.add(finding, report.place(number))
            elif name in repeated:
                first_places[name] = report, number
        problems += findings.problems()
    return problems


def _repeated_names(reports: Sequence[ShardReport]) -> set[bytes]:
    """The file names that occur more than once in these shards."""
    names = b"\0".join(report.names for report in reports).split(b"\0")
    names.sort()
    return {name for name, following in pairwise(names) if name == following and name}


def _duplicate(
    report: ShardReport, number: int, first_report: ShardReport, first_number: int
) -> Finding:
    """The finding about an image in two records, which may be the same record."""
    first_place = f"record {first_number} of {first_report.name}"
    is_in_shard = first_report is report
    if is_in_shard and report.identity(number) == report.identity(first_number):
        detail = f"it repeats record {first_number}"
    else:
        detail = f"this image is also {first_place}"
    return Finding(ProblemKind.DUPLICATE, detail, got=first_place)


def find_identical_shards(
    split: str, reports: Sequence[ShardReport]
) -> tuple[list[Problem], set[str]]:
    """A problem for each group of shards with the same records,
    and the names of all these shards.
    """
    shards_by_digest: defaultdict[str, list[str]] = defaultdict(list)
    for report in reports:
        if report.is_whole and report.records:
            shards_by_digest[report.digest].append(report.name)
    problems: list[Problem] = []
    identical_shards: set[str] = set()
    for shards in shards_by_digest.values():
        if len(shards) > 1:
            problems.append(_identical(split, shards))
            identical_shards.update(shards)
    return problems, identical_shards


def _identical(split: str, shards: Sequence[str]) -> Problem:
    """The problem of several shards with the same records."""
    *all_but_one, final = shards
    detail = (
        f"{', '.join(all_but_one)} and {final} hold the same records: "
        "at most one of these shards is right"
    )
    return Problem(ProblemKind.DUPLICATE, split, detail, _REMEDY_COPIES)
