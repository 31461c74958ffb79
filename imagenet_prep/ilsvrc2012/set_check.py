"""What the reports of all shards show together: every image once, in its order, every class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise

from imagenet_prep.checks.examiner import Examiner, SetFindings
from imagenet_prep.checks.inventory import Inventory
from imagenet_prep.checks.shard_check import ShardReport
from imagenet_prep.checks.whole import Checked, check_totals
from imagenet_prep.datasets import order
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.completeness import (
    check_classes,
    check_facts,
    check_unique,
    missing_classes,
    name_label_patterns,
)
from imagenet_prep.ilsvrc2012.ordering import Ordering, examine_order
from imagenet_prep.ilsvrc2012.part import Part
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.model import Problem


def check_set(inventory: Inventory, checked: Checked, examiner: Examiner, *, is_part: bool) -> SetFindings:
    """Whether every image is there once, in its order, and every class; see KnownSet."""
    assert isinstance(examiner, ImageNetExaminer)
    problems: list[Problem] = []
    notes: list[str] = []
    orderings: dict[str, Ordering | None] = {}
    for split in facts.SPLITS:
        shards = inventory.of(split)
        found, labels = checked.of(shards), checked.labels[split]
        is_proven = (  # the very records that convert wrote: no name is twice then, the order kept
            inventory.manifest is not None
            and len(found) == len(shards)
            and not any(report.problems for report in found)
        )
        if not is_proven:
            orderings[split] = examine_order(split, shards, found, examiner.part)
        problems += _check_split(inventory, split, found, labels, orderings, is_proven=is_proven, is_part=is_part)
        if not is_part and found and len(found) == len(shards):
            problems += check_classes(split, found, labels, examiner.part, inventory.manifest)
        notes += _class_notes(inventory, split, found, labels, examiner.part, is_part=is_part)
    has_records = any(report.records for report in checked.reports.values())
    return SetFindings(
        tuple(problems),
        tuple(notes),
        examiner.flavour.name if has_records else "none",
        examiner.flavour.differences,
        _order(inventory, orderings),
    )


def _order(inventory: Inventory, orderings: Mapping[str, Ordering | None]) -> str:
    """Whether the images are in the canonical order, as far as it can be known: by names, or as convert made it."""
    known: list[bool | None] = []
    for split in facts.SPLITS:
        if not inventory.of(split):
            continue
        if split in orderings:
            ordering = orderings[split]
            known.append(ordering.is_canonical if ordering else None)
        elif inventory.manifest is not None:
            settings = inventory.manifest.settings
            known.append((settings.get("seed"), settings.get("shuffle")) == (order.SEED, True))
    if False in known:
        return "not canonical"
    return "canonical" if known and all(known) else "unknown"


def _check_split(
    inventory: Inventory,
    split: str,
    reports: Sequence[ShardReport],
    labels: Set[int],
    orderings: Mapping[str, Ordering | None],
    *,
    is_proven: bool,
    is_part: bool,
) -> list[Problem]:
    """Every shard's own problems in order, and what only shows across the shards of a split."""
    own = [problem for report in reports for problem in report.problems]
    if not is_proven:
        own = name_label_patterns(split, reports, own)
        if inventory.infos:
            own += check_unique(reports)
    manifest, shards = inventory.manifest, inventory.of(split)
    if manifest is not None:
        if split in manifest.totals and not own and len(reports) == len(shards):
            own += check_totals(split, reports, len(labels), manifest)
        return own
    if inventory.infos:
        return own  # a conversion that is under way, or whose manifest is damaged: the journal knows all there is
    return own + list(check_facts(split, shards, reports, labels, orderings[split], is_part=is_part))


def _class_notes(
    inventory: Inventory, split: str, reports: Sequence[ShardReport], labels: Set[int], part: Part, *, is_part: bool
) -> Iterator[str]:
    """Which classes a part lacks, if it is nearly all of them; how another tool's shards are cut."""
    lacking = missing_classes(labels, part)
    if is_part and 0 < len(lacking) <= 5:
        yield f"{split}: no image of {', '.join(f'{wnid} ({facts.texts()[wnid]})' for wnid in lacking)}"
    if inventory.manifest is None and reports and not inventory.is_unfinished:
        edges = order.bounds(sum(report.records for report in reports), len(reports))
        if [stop - start for start, stop in pairwise(edges)] != [report.records for report in reports]:
            yield f"{split}: the records per shard are not those of the original's partition"
