"""What only shows across shards, whatever the data set: totals, one cause of many problems, one value for the set."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from imagenet_prep.checks.examiner import LIMIT
from imagenet_prep.checks.shard_check import ShardReport
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import split_of
from imagenet_prep.text import number_of

MANY = 50
"""So many problems of one kind in so many shards are grouped: the first are spelled out, the others counted."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in every shard: reports by name, and in each split the labels that some record has.

    A report is folded in as it comes, in any order; it keeps no labels of its own.
    """

    reports: dict[str, ShardReport] = field(default_factory=dict)
    labels: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, name: str, report: ShardReport) -> None:
        """Take in the report of a shard."""
        self.labels[split_of(name)].update(report.labels)
        self.reports[name] = dataclasses.replace(report, name=name, labels=(), counts=report.counts or _NONE)

    def of(self, names: Iterable[str]) -> list[ShardReport]:
        """The reports of these shards, as far as there are any."""
        return [self.reports[name] for name in names if name in self.reports]


_NONE: Mapping[ProblemKind, int] = {}


def check_totals(
    split: str, reports: Sequence[ShardReport], classes: int, manifest: Manifest, *, counts_alone: bool = False
) -> list[Problem]:
    """Sound shards add up to what the manifest says; ``counts_alone``: it need not know their classes and boxes."""
    totals = manifest.totals[split]
    expected = (totals.images, totals.classes, totals.boxes)
    found = (sum(r.records for r in reports), classes, sum(r.boxes for r in reports))
    set_aside = any(manifest.shards[report.name].set_aside for report in reports)
    if found == expected or ((counts_alone or set_aside) and found[0] == expected[0]):
        return []  # classes and boxes are counted with images set aside
    words = "%d records, %d classes, %d boxes"
    remedy = "run the same imagenet-prep convert again, with --overwrite"
    detail = f"expected {words % expected}, got {words % found}"
    return [Problem(ProblemKind.WRONG_COUNT, split, detail, remedy, expected=words % expected, got=words % found)]


def group(problems: Sequence[Problem]) -> list[Problem]:
    """The problems, of which those of a kind that fills many shards are spelled out for the first and then counted."""
    by_kind: dict[ProblemKind, list[Problem]] = {}
    for problem in problems:
        by_kind.setdefault(problem.kind, []).append(problem)
    grouped: list[Problem] = []
    for kind, each in by_kind.items():
        if len(each) <= MANY:
            grouped += each
            continue
        rest = each[LIMIT:]
        count, shards = sum(problem.count for problem in rest), len({problem.subject for problem in rest})
        detail = f"and {count:,} more of this kind in {number_of(shards, 'shard')}"
        grouped += [
            *each[:LIMIT],
            Problem(kind, rest[-1].subject.partition("-")[0], detail, rest[-1].remedy, count=count),
        ]
    return grouped


# the set as one value ------------------------------------------------------------------------------------------


def fingerprint(reports: Mapping[str, ShardReport], shards: Sequence[str]) -> str:
    """One digest (SHA-256, hex) over the whole set: name, number of records and digest of each shard, in order.

    It is the same for the same records in the same shards, whoever made them, compressed or not; "" if a shard is
    missing or can't be read to its end.
    """
    digest = hashlib.sha256()
    for shard in shards:
        report = reports.get(shard)
        if report is None or not report.is_whole:
            return ""
        digest.update(f"{shard} {report.records} {report.digest}\n".encode())
    return digest.hexdigest()
