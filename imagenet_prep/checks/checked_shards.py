"""Checked: the reports of all shards together -> totals, problems in groups, and a fingerprint."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from imagenet_prep.checks.examiner import LIMIT
from imagenet_prep.checks.shard_check import ShardReport
from imagenet_prep.errors import PrepError, in_a_line
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import split_of
from imagenet_prep.text import listed, number_of

MANY = 50
"""More problems of one kind, in more shards, are grouped:
the first are listed, the others counted.
"""


class Checked(Struct, frozen=True):
    """The findings in every shard: reports by name, and the labels that occur in each split.

    Reports are added in any order and keep no labels of their own.
    """

    reports: dict[str, ShardReport] = {}
    labels: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, name: str, report: ShardReport) -> None:
        """Add the report of a shard."""
        self.labels[split_of(name)].update(report.labels)
        self.reports[name] = replace(report, name=name, labels=(), counts=report.counts or _NONE)

    def of(self, names: Iterable[str]) -> list[ShardReport]:
        """The existing reports of these shards."""
        return [self.reports[name] for name in names if name in self.reports]


_NONE: Mapping[ProblemKind, int] = {}


def check_totals(
    split: str,
    reports: Sequence[ShardReport],
    classes: int,
    manifest: Manifest,
    *,
    counts_alone: bool = False,
) -> list[Problem]:
    """The totals of sound shards, compared with the manifest;
    ``counts_alone``: it may lack their classes and boxes.
    """
    totals = manifest.totals[split]
    records = sum(report.records for report in reports)
    boxes = sum(report.boxes for report in reports)
    expected = _totals_text(totals.images, totals.classes, totals.boxes)
    got = _totals_text(records, classes, boxes)
    if got == expected:
        return []
    has_set_aside = any(manifest.shards[report.name].set_aside for report in reports)
    # Classes and boxes are counted with images set aside.
    if (counts_alone or has_set_aside) and records == totals.images:
        return []
    remedy = Hint("run the same ", mention("convert"), " again, with --overwrite")
    detail = f"expected {expected}, got {got}"
    return [Problem(ProblemKind.WRONG_COUNT, split, detail, remedy, expected=expected, got=got)]


def _totals_text(records: int, classes: int, boxes: int) -> str:
    counts = (
        number_of(records, "record"),
        number_of(classes, "class", "classes"),
        number_of(boxes, "box", "boxes"),
    )
    return ", ".join(counts)


def failed_check(name: str, error: Exception) -> Problem:
    """The finding for a shard whose check failed; the hint of the error is its remedy."""
    if not isinstance(error, PrepError):
        return Problem(ProblemKind.UNREADABLE, name, str(error) or repr(error), "verify again")
    detail = in_a_line(PrepError(error.what, error.detail))
    return Problem(ProblemKind.UNREADABLE, name, detail, error.hint or "verify again")


def group(problems: Sequence[Problem]) -> list[Problem]:
    """The problems; a kind with many shards is listed for the first ones and then counted."""
    problems_by_kind: dict[ProblemKind, list[Problem]] = {}
    for problem in problems:
        problems_by_kind.setdefault(problem.kind, []).append(problem)
    grouped: list[Problem] = []
    for kind, problems_of_kind in problems_by_kind.items():
        if len(problems_of_kind) <= MANY:
            grouped += problems_of_kind
        else:
            grouped += problems_of_kind[:LIMIT]
            grouped.append(_count_problems(kind, problems_of_kind[LIMIT:]))
    return grouped


def _count_problems(kind: ProblemKind, problems: Sequence[Problem]) -> Problem:
    """One problem for several of a kind."""
    count = sum(problem.count for problem in problems)
    subjects = dict.fromkeys(problem.subject for problem in problems)
    noun = "file" if kind is ProblemKind.STRAY_FILE else "shard"
    detail = f"and {count:,} more of this kind in {number_of(len(subjects), noun)}"
    splits = dict.fromkeys(map(_split_in, subjects))
    return Problem(kind, listed(splits), detail, problems[-1].remedy, count=count)


def _split_in(subject: str) -> str:
    """The split that a shard belongs to, or that the name of another file starts with."""
    return split_of(subject) or subject.partition("-")[0]


# the set as one value -----------------------------------------------------------------------------


def fingerprint(reports: Mapping[str, ShardReport], shards: Sequence[str]) -> str:
    """One digest (SHA-256, hex) of the whole set: name, number of records and digest of each shard,
    in order.

    Equal records in equal shards have equal fingerprints, whatever made or compressed them. It is
    "" if a shard is missing or can't be read to its end.
    """
    digest = hashlib.sha256()
    for shard in shards:
        report = reports.get(shard)
        if report is None or not report.is_whole:
            return ""
        digest.update(f"{shard} {report.records} {report.digest}\n".encode())
    return digest.hexdigest()
