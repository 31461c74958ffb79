"""Shards -> proof that they are right, or exactly what is wrong with them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from imagenet_prep import ilsvrc2012, order
from imagenet_prep.checks.findings import Findings, place
from imagenet_prep.checks.inventory import Inventory, check_names, check_sizes, take_inventory
from imagenet_prep.checks.shard import REMEDY_FOREIGN, REMEDY_OWN, ShardCheck, ShardReport
from imagenet_prep.checks.verdict import Depth, SplitReport, Verdict, problem_dict, save_verdict
from imagenet_prep.errors import SpaceError, WorkerError, WriteError
from imagenet_prep.layout import Layout
from imagenet_prep.manifest import Manifest
from imagenet_prep.model import Engine, Failed, Problem, ProblemKind, Progress, ShardInfo, Silent
from imagenet_prep.storage import atomic_file

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


def verify(layout: Layout, engine: Engine, *, depth: Depth = "full", progress: Progress | None = None) -> Verdict:
    """Check every shard, and the set as a whole.

    "quick" looks at names, sizes and indexes only; "full" reads every byte; "decode" decodes every image too. The
    findings are kept in ``layout.problems_path``; nothing else is written.

    Raises:
        InputError: there are no shards.
    """
    progress = progress or Silent()
    inventory, problems = take_inventory(layout)
    problems += check_names(inventory)
    notes = _notes(inventory)
    if depth == "quick":
        problems += check_sizes(inventory, layout)
        totals = _quick_totals(inventory)
    else:
        reports, failures = _check_shards(inventory, layout, engine, depth, progress)
        problems += failures
        problems += _check_set(inventory, reports)
        totals = _totals(inventory, reports)
        notes += _partition_notes(inventory, reports)
    verdict = Verdict(
        depth=depth,
        problems=tuple(problems),
        totals=totals,
        is_part=inventory.is_part,
        has_manifest=inventory.manifest is not None,
        notes=tuple(notes),
    )
    return dataclasses.replace(verdict, notes=(*verdict.notes, *_keep(verdict, layout)))


# every byte ----------------------------------------------------------------------------------------------------


def _check_shards(
    inventory: Inventory, layout: Layout, engine: Engine, depth: Depth, progress: Progress
) -> tuple[dict[str, ShardReport], list[Problem]]:
    """The report of each shard by name, in order; a shard whose check came to no end is a Problem."""
    compression = inventory.manifest.settings.get("compression") if inventory.manifest else None
    known = compression if compression in ("none", "gzip", "zlib") else None
    check = ShardCheck(layout, inventory.infos, known, decode=depth == "decode")
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


def _check_set(inventory: Inventory, reports: Mapping[str, ShardReport]) -> list[Problem]:
    """Every shard's own problems in order, and what only shows across shards."""
    problems: list[Problem] = []
    for split in ilsvrc2012.SPLITS:
        names = inventory.of(split)
        found = [reports[name] for name in names if name in reports]
        own = [problem for report in found for problem in report.problems]
        own += _check_unique(found, inventory.infos)
        problems += own
        if inventory.manifest is None:
            problems += _check_against_facts(split, found)
        elif split in inventory.manifest.totals and not own and len(found) == len(names):
            problems += _check_against_manifest(split, found, inventory.manifest)
    return problems


def _check_unique(reports: Sequence[ShardReport], infos: Mapping[str, ShardInfo]) -> list[Problem]:
    """Every file name once in a split."""
    every = b"\0".join(report.names for report in reports).split(b"\0")
    every.sort()
    twice = {name for name, following in pairwise(every) if name == following and name}
    if not twice:
        return []
    first: dict[bytes, str] = {}
    problems: list[Problem] = []
    for report in reports:
        findings = Findings(report.name, REMEDY_OWN if report.name in infos else REMEDY_FOREIGN)
        for number, name in enumerate(report.names.split(b"\0")):
            if name in first:
                where = place(number, report.offsets[number], name.decode())
                findings.add(ProblemKind.DUPLICATE, f"{where}: this image is also {first[name]}")
            elif name in twice:
                first[name] = f"record {number} of {report.name}"
        problems += findings.problems()
    return problems


def _check_against_facts(split: str, reports: Sequence[ShardReport]) -> list[Problem]:
    records, classes = sum(report.records for report in reports), len(_labels(reports))
    if (records, classes) == (ilsvrc2012.IMAGES[split], ilsvrc2012.CLASSES):
        return []
    detail = (
        f"expected {ilsvrc2012.IMAGES[split]:,} records in {ilsvrc2012.CLASSES} classes, got {records:,} in {classes}"
    )
    return [Problem(ProblemKind.WRONG_COUNT, split, detail, "get the missing shards, or make the set anew")]


def _check_against_manifest(split: str, reports: Sequence[ShardReport], manifest: Manifest) -> list[Problem]:
    totals = manifest.totals[split]
    expected = (totals.images, totals.classes, totals.boxes)
    found = (sum(r.records for r in reports), len(_labels(reports)), sum(r.boxes for r in reports))
    set_aside = any(manifest.shards[report.name].set_aside for report in reports)
    if found == expected or (set_aside and found[0] == expected[0]):
        return []  # classes and boxes are counted with the images that were set aside
    words = "%d records, %d classes, %d boxes"
    remedy = "run the same imagenet-prep convert again, with --overwrite"
    return [Problem(ProblemKind.WRONG_COUNT, split, f"expected {words % expected}, got {words % found}", remedy)]


def _labels(reports: Iterable[ShardReport]) -> set[int]:
    return {label for report in reports for label in report.labels}


# totals and notes ----------------------------------------------------------------------------------------------


def _totals(inventory: Inventory, reports: Mapping[str, ShardReport]) -> tuple[SplitReport, ...]:
    return tuple(
        SplitReport(
            split,
            shards=len(found),
            records=sum(report.records for report in found),
            expected=_expected(inventory, split),
            classes=len(_labels(found)),
            boxes=sum(report.boxes for report in found),
            bytes=sum(inventory.sizes[report.name] for report in found),
        )
        for split, found in _by_split(inventory, reports)
    )


def _quick_totals(inventory: Inventory) -> tuple[SplitReport, ...]:
    rows = []
    for split in ilsvrc2012.SPLITS:
        present = [name for name in inventory.of(split) if name in inventory.sizes]
        totals = inventory.manifest.totals.get(split) if inventory.manifest else None
        size = sum(inventory.sizes[name] for name in present)
        classes, boxes = (totals.classes, totals.boxes) if totals else (None, None)
        records = sum(inventory.infos[name].records for name in present) if totals else None
        rows.append(SplitReport(split, len(present), records, _expected(inventory, split), classes, boxes, size))
    return tuple(rows)


def _by_split(inventory: Inventory, reports: Mapping[str, ShardReport]) -> Iterator[tuple[str, list[ShardReport]]]:
    for split in ilsvrc2012.SPLITS:
        yield split, [reports[name] for name in inventory.of(split) if name in reports]


def _expected(inventory: Inventory, split: str) -> int:
    if inventory.manifest is None:
        return ilsvrc2012.IMAGES[split]
    totals = inventory.manifest.totals.get(split)
    return totals.images if totals else 0


def _notes(inventory: Inventory) -> list[str]:
    manifest = inventory.manifest
    if manifest is None:
        unfinished = ": the conversion has not come to its end" if inventory.infos else ""
        return [f"no manifest{unfinished}; held against ILSVRC2012 as a whole"]
    if inventory.is_part:
        counts = (
            f"{_expected(inventory, split):,} of {images:,} {split} images"
            for split, images in ilsvrc2012.IMAGES.items()
        )
        return [f"this is a part of ILSVRC2012, held against its own record: {', '.join(counts)}"]
    known = [name for name in inventory.present if name in PUBLISHED_SIZES]
    equal = sum(inventory.sizes[name] == PUBLISHED_SIZES[name] for name in known)
    return [f"{equal} of {len(known)} shards have the size of those published in 2018"] if known else []


def _partition_notes(inventory: Inventory, reports: Mapping[str, ShardReport]) -> list[str]:
    """Whether another tool's shards are cut as the original's were: for information."""
    if inventory.manifest is not None:
        return []
    notes = []
    for split, found in _by_split(inventory, reports):
        edges = order.bounds(sum(report.records for report in found), len(found)) if found else []
        if [stop - start for start, stop in pairwise(edges)] != [report.records for report in found]:
            notes.append(f"{split}: the records per shard are not those of the original's partition")
    return notes


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
