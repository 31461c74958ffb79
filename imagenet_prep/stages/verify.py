"""Shards -> proof that they are right, or exactly what is wrong with them."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from imagenet_prep import ilsvrc2012, order
from imagenet_prep.checks.content import ImageNetExaminer
from imagenet_prep.checks.examiner import Examiner
from imagenet_prep.checks.flavours import INCEPTION, Flavour, recognise
from imagenet_prep.checks.inventory import Inventory, check_names, check_sizes, take_inventory
from imagenet_prep.checks.order import Ordering, examine_order
from imagenet_prep.checks.promise import PromiseExaminer, holders
from imagenet_prep.checks.shard import ShardCheck, ShardReport
from imagenet_prep.checks.verdict import Depth, SplitReport, Verdict, problem_dict, save_verdict
from imagenet_prep.checks.whole import (
    check_facts,
    check_totals,
    check_unique,
    fingerprint,
    group,
    missing_classes,
    name_label_patterns,
)
from imagenet_prep.errors import SpaceError, WorkerError, WriteError
from imagenet_prep.layout import Layout
from imagenet_prep.model import Engine, Failed, Problem, ProblemKind, Progress, Silent
from imagenet_prep.storage.atomic import atomic_file
from imagenet_prep.wording import number_of

PUBLISHED_SIZES = {
    "train-00000-of-01024": 143_009_929,
    "train-00001-of-01024": 144_699_468,
    "train-00002-of-01024": 138_428_833,
    "train-01022-of-01024": 143_137_777,
    "train-01023-of-01024": 143_315_487,
    "validation-00000-of-00128": 52_223_858,
    "validation-00001-of-00128": 51_019_711,
    "validation-00002-of-00128": 51_520_046,
    "validation-00126-of-00128": 52_508_270,
    "validation-00127-of-00128": 55_292_089,
}
"""Bytes of shards made by the scripts of 2016, from listings in Intel's model zoo documents, 2018."""


def verify(
    layout: Layout,
    engine: Engine,
    *,
    depth: Depth = "full",
    allow_incomplete: bool = False,
    progress: Progress | None = None,
) -> Verdict:
    """Check every shard, and the set as a whole.

    "quick" looks at names, sizes and indexes only; "full" reads every byte; "decode" decodes every image too.
    ``allow_incomplete`` takes shards without a manifest for a part of ILSVRC2012. The findings are kept in
    ``layout.problems_path`` and ``layout.verdict_path``; nothing else is written.

    Raises:
        InputError: there are no shards.
    """
    progress = progress or Silent()
    inventory, problems = take_inventory(layout)
    problems += check_names(inventory, layout)
    is_part = inventory.is_part or (inventory.manifest is None and allow_incomplete)
    if depth == "quick":
        problems += check_sizes(inventory, layout)
        problems += _missing_splits(inventory, is_part)
        verdict = Verdict(depth, (), _quick_totals(inventory), is_part, inventory.manifest is not None)
    else:
        verdict, found = _look_closely(inventory, layout, engine, depth, is_part, progress)
        problems += found
    kinds: defaultdict[str, set[ProblemKind]] = defaultdict(set)
    for problem in problems:
        kinds[problem.subject].add(problem.kind)
    verdict = dataclasses.replace(
        verdict,
        dataset=inventory.manifest.dataset if inventory.manifest else "ILSVRC2012",
        problems=tuple(group(problems)),
        faulty={name: tuple(sorted(kinds[name])) for name in inventory.expected if name in kinds},
        notes=(*_notes(inventory, is_part), *verdict.notes),
    )
    return dataclasses.replace(verdict, notes=(*verdict.notes, *_keep(verdict, layout)))


# every byte ----------------------------------------------------------------------------------------------------


def _look_closely(
    inventory: Inventory, layout: Layout, engine: Engine, depth: Depth, is_part: bool, progress: Progress
) -> tuple[Verdict, list[Problem]]:
    """The verdict without its problems, and these."""
    flavour = INCEPTION if inventory.infos else recognise([layout.shard_path(name) for name in inventory.present])
    examiner: Examiner = ImageNetExaminer(flavour, decode=depth == "decode")
    if inventory.recipe is not None:
        held = holders(inventory.manifest.settings if inventory.manifest else {})
        examiner = PromiseExaminer(inventory.recipe["features"], depth == "decode", held)
    reports, problems = _check_shards(inventory, layout, engine, examiner, progress)
    orderings: dict[str, Ordering | None] = {}
    for split in inventory.splits:
        found = [reports[name] for name in inventory.of(split) if name in reports]
        if inventory.recipe is None and not _is_proven(inventory, split, found):
            orderings[split] = examine_order(split, inventory.of(split), found)
        problems += _check_split(inventory, split, found, orderings.get(split), is_part=is_part)
    verdict = Verdict(
        depth=depth,
        problems=(),
        totals=_totals(inventory, reports),
        is_part=is_part,
        has_manifest=inventory.manifest is not None,
        notes=tuple(_class_notes(inventory, reports, is_part)),
        flavour=_flavour(inventory, reports, flavour),
        differences=flavour.differences,
        order=_order(inventory, orderings),
        fingerprint=fingerprint(reports, inventory.expected),
    )
    return verdict, problems


def _flavour(inventory: Inventory, reports: Mapping[str, ShardReport], flavour: Flavour) -> str:
    if inventory.recipe is not None:
        return "recipe"
    return flavour.name if any(report.records for report in reports.values()) else "none"


def _check_shards(
    inventory: Inventory, layout: Layout, engine: Engine, examiner: Examiner, progress: Progress
) -> tuple[dict[str, ShardReport], list[Problem]]:
    """The report of each shard by name, in order; a shard whose check came to no end is a Problem."""
    compression = inventory.manifest.settings.get("compression") if inventory.manifest else None
    known = compression if compression in ("none", "gzip", "zlib") else None
    check = ShardCheck(layout, inventory.infos, known, examiner)
    reports: dict[str, ShardReport] = {}
    failures: list[Problem] = []
    progress.begin("verify", sum(inventory.sizes[name] for name in inventory.present), "B")
    for outcome in engine.map(check, inventory.present):
        if isinstance(outcome, Failed):
            if isinstance(outcome.error, WorkerError):
                raise outcome.error
            detail = str(outcome.error).replace("\n", "; ")
            failures.append(Problem(ProblemKind.UNREADABLE, outcome.task, detail, "check the disk, then verify again"))
        else:
            reports[outcome.task] = outcome.value
        progress.advance(inventory.sizes[outcome.task])
    progress.end()
    return {name: reports[name] for name in inventory.present if name in reports}, failures


# the set as a whole --------------------------------------------------------------------------------------------


def _check_split(
    inventory: Inventory, split: str, reports: Sequence[ShardReport], ordering: Ordering | None, *, is_part: bool
) -> list[Problem]:
    """Every shard's own problems in order, and what only shows across the shards of a split."""
    own = [problem for report in reports for problem in report.problems]
    if inventory.recipe is None and not _is_proven(inventory, split, reports):
        own = name_label_patterns(split, reports, own)
        if inventory.infos:
            own += check_unique(reports)  # not of a recipe, whose names may lack their folders and be there twice
    if inventory.manifest is not None:
        if split in inventory.manifest.totals and not own and len(reports) == len(inventory.of(split)):
            own += check_totals(split, reports, inventory.manifest)
        return own
    if inventory.infos:
        return own  # a conversion that is under way, or whose manifest is damaged: the journal knows all there is
    return own + list(check_facts(split, inventory.of(split), reports, ordering, is_part=is_part))


def _is_proven(inventory: Inventory, split: str, reports: Sequence[ShardReport]) -> bool:
    """Whether all shards of a split hold the very records that convert wrote: no name is twice then, the order kept."""
    is_all = len(reports) == len(inventory.of(split))
    return inventory.manifest is not None and is_all and not any(report.problems for report in reports)


def _missing_splits(inventory: Inventory, is_part: bool) -> list[Problem]:
    """Splits of which not one shard is there, where nothing tells how many there should be."""
    if is_part or inventory.manifest is not None:
        return []
    remedy = "get its shards; if a part is meant, verify with --allow-incomplete"
    missing = (split for split in inventory.splits if not inventory.of(split))
    return [Problem(ProblemKind.MISSING_SHARD, split, "not one shard of it is there", remedy) for split in missing]


def _order(inventory: Inventory, orderings: Mapping[str, Ordering | None]) -> str:
    """Whether the images are in the canonical order, as far as it can be known: by names, or as convert made it."""
    known: list[bool | None] = []
    for split in inventory.splits if inventory.recipe is None else ():
        if not inventory.of(split):
            continue
        if split in orderings:
            ordering = orderings[split]
            known.append(ordering.is_canonical if ordering else None)
        elif inventory.manifest is not None:
            settings = inventory.manifest.settings
            known.append((settings.get("seed"), settings.get("shuffle")) == (ilsvrc2012.SEED, True))
    if False in known:
        return "not canonical"
    return "canonical" if known and all(known) else "unknown"


def _totals(inventory: Inventory, reports: Mapping[str, ShardReport]) -> tuple[SplitReport, ...]:
    rows = []
    for split in inventory.splits:
        found = [reports[name] for name in inventory.of(split) if name in reports]
        rows.append(
            SplitReport(
                split=split,
                shards=len(found),
                records=sum(report.records for report in found),
                expected=inventory.images(split),
                classes=len({label for report in found for label in report.labels}),
                boxes=sum(report.boxes for report in found),
                bytes=sum(inventory.sizes[report.name] for report in found),
            )
        )
    return tuple(rows)


def _quick_totals(inventory: Inventory) -> tuple[SplitReport, ...]:
    rows = []
    for split in inventory.splits:
        present = [name for name in inventory.of(split) if name in inventory.sizes]
        totals = inventory.manifest.totals.get(split) if inventory.manifest else None
        size = sum(inventory.sizes[name] for name in present)
        classes, boxes = (totals.classes, totals.boxes) if totals else (None, None)
        records = sum(inventory.infos[name].records for name in present) if totals else None
        rows.append(SplitReport(split, len(present), records, inventory.images(split), classes, boxes, size))
    return tuple(rows)


# what is worth knowing -----------------------------------------------------------------------------------------


def _notes(inventory: Inventory, is_part: bool) -> Iterator[str]:
    if inventory.manifest is None:
        what = "a part of it, whatever is there" if is_part else "a whole"
        if inventory.infos:
            yield "no manifest that could be used; each shard is held against the journal of the conversion"
        else:
            yield f"no manifest; held against ILSVRC2012 as {what}"
    elif is_part:
        counts = (
            f"{inventory.images(split):,} of {images:,} {split} images" for split, images in ilsvrc2012.IMAGES.items()
        )
        yield f"this is a part of ILSVRC2012, held against its own record: {', '.join(counts)}"
    known = [name for name in inventory.present if name in PUBLISHED_SIZES]
    if known and not is_part and inventory.recipe is None:
        equal = sum(inventory.sizes[name] == PUBLISHED_SIZES[name] for name in known)
        yield f"{equal} of {number_of(len(known), 'shard has', 'shards have')} the size of those published in 2018"


def _class_notes(inventory: Inventory, reports: Mapping[str, ShardReport], is_part: bool) -> Iterator[str]:
    """Which classes a part lacks, if it is nearly all of them; how another tool's shards are cut."""
    for split in inventory.splits:
        found = [reports[name] for name in inventory.of(split) if name in reports]
        lacking = missing_classes(found)
        if is_part and 0 < len(lacking) <= 5:
            yield f"{split}: no image of {', '.join(f'{wnid} ({ilsvrc2012.texts()[wnid]})' for wnid in lacking)}"
        if inventory.manifest is None and found:
            edges = order.bounds(sum(report.records for report in found), len(found))
            if [stop - start for start, stop in pairwise(edges)] != [report.records for report in found]:
                yield f"{split}: the records per shard are not those of the original's partition"


def _keep(verdict: Verdict, layout: Layout) -> list[str]:
    """Keep the findings for other commands; a folder that can't be written to is only worth a note."""
    path = layout.problems_path
    try:
        if verdict.problems:
            with atomic_file(path) as file:
                file.writelines(json.dumps(problem_dict(problem)).encode() + b"\n" for problem in verdict.problems)
        else:
            path.unlink(missing_ok=True)
        save_verdict(verdict, layout)
    except OSError as error:
        return [f"the findings were not kept in {path}: {error.strerror}"]
    except (SpaceError, WriteError) as error:
        return [f"the findings were not kept in {path}: {error.detail}"]
    return []
