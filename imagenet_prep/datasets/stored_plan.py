"""Plan on the disk: written for a set that was listed, and read as the PlannedSet that it was."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from imagenet_prep import __version__
from imagenet_prep.datasets import order
from imagenet_prep.datasets.planned_set import (
    Asked,
    PlannedSet,
    PlannedSplit,
    plan_name,
    source_record,
)
from imagenet_prep.errors import InputError
from imagenet_prep.model import Progress, ShardInfo, ShardPlan
from imagenet_prep.state.manifest import Manifest, SplitTotals
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_or_none, locate

if TYPE_CHECKING:
    from imagenet_prep.sources.catalog import Catalog
    from imagenet_prep.sources.saved_catalog import PackedCatalog


def plan_of(
    planned: PlannedSet,
    layout: Layout,
    before: Plan | None,
    packed: Mapping[str, PackedCatalog],
) -> Plan:
    """The plan of a set that was listed, ``packed`` by split;
    known places from ``before`` are kept.
    """
    splits = {split.catalog.split: split for split in planned.splits}
    known = before.stamps if before else {}
    # a recipe's images are relative to its own folder, which ``recipe`` holds
    raw = layout.raw or (layout.own_raw_dir if layout.output and not planned.recipe else None)
    return Plan(
        dataset=planned.entry,
        settings=planned.settings,
        sources={name: source_record(split) for name, split in splits.items()},
        totals={
            name: SplitTotals(
                images=len(split.catalog),
                expected=planned.expected[name],
                classes=len(split.catalog.count_by_label().keys() - {0}),
                boxes=len(split.catalog.boxes) // 4,
                shards=len(split.plans),
                unlabelled=planned.count_unlabelled(split),
            )
            for name, split in splits.items()
        },
        fingerprints={
            name: tuple(plan.fingerprint for plan in split.plans) for name, split in splits.items()
        },
        expected=planned.expected,
        options=planned.options,
        raw=str(raw.resolve()) if raw else None,
        recipe=planned.recipe,
        stamps={name: {**known.get(name, {}), **split.stamps} for name, split in splits.items()},
        times={name: tuple(split.times) for name, split in splits.items()},
        rows={name: each.name for name, each in packed.items()},
        origins={name: str(split.source.resolve()) for name, split in splits.items()},
        notes=planned.notes,
        asked={"options": planned.asked.options, "raw": planned.asked.raw} if planned.asked else {},
    )


def shard_plans(plan: Plan, split: str) -> list[ShardPlan]:
    """The shards of a split, in order."""
    fingerprints = plan.fingerprints[split]
    edges = itertools.pairwise(order.bounds(plan.totals[split].images, len(fingerprints)))
    return [
        ShardPlan(split, number, len(fingerprints), start, stop, fingerprint)
        for number, (fingerprint, (start, stop)) in enumerate(zip(fingerprints, edges, strict=True))
    ]


def planned_shards(plan: Plan) -> dict[str, ShardInfo]:
    """Each shard of a plan by name, with the facts known before it is made."""
    shards: dict[str, ShardInfo] = {}
    for split in plan.fingerprints:
        for shard in shard_plans(plan, split):
            name = plan_name(shard)
            shards[name] = ShardInfo(name, shard.fingerprint, shard.stop - shard.start, 0, "")
    return shards


def planned_manifest(plan: Plan) -> Manifest:
    """The manifest to come, except for facts of finished shards."""
    values = dict(plan.settings), dict(plan.sources), dict(plan.totals)
    return Manifest(__version__, plan.dataset, *values, planned_shards(plan))


def knows(plan: Plan, shard: ShardPlan, times: str) -> bool:
    """Whether a shard is planned from exactly these items, in files of these times."""
    fingerprints, known = plan.fingerprints.get(shard.split, ()), plan.times.get(shard.split, ())
    if shard.index >= min(len(fingerprints), len(known)):
        return False
    return (fingerprints[shard.index], known[shard.index]) == (shard.fingerprint, times)


def read_planned(
    plan: Plan,
    layout: Layout,
    asked: Asked,
    names: Collection[str] | None = None,
    progress: Progress | None = None,
) -> PlannedSet | None:
    """The planned set, or its shards of these names. None: raw data has changed, or rows are lost.

    None also if all shards are requested and images are in files of their own, each of which may
    have changed. ``progress`` shows which rows are damaged.
    """
    try:
        splits = tuple(_read_split(plan, split, layout, asked, names) for split in asked.recorders)
    except (InputError, KeyError) as error:
        if progress is not None and isinstance(error, InputError):
            progress.note(f"warning: {error.what}: the raw data is listed again")
        return None
    if not all(split.catalog.is_current(trusts_folders=names is not None) for split in splits):
        return None
    return PlannedSet(
        plan.dataset, splits, plan.settings, plan.expected, plan.options, plan.notes, asked=asked
    )


def _read_split(
    plan: Plan, split: str, layout: Layout, asked: Asked, names: Collection[str] | None
) -> PlannedSplit:
    plans = shard_plans(plan, split)
    folder, pieces = layout.plan_path.with_name(plan.rows[split]), None
    if names is not None:
        plans = [shard for shard in plans if plan_name(shard) in names]
        pieces = [range(shard.start, shard.stop) for shard in plans]
    from imagenet_prep.sources.saved_catalog import load_catalog

    catalog = load_catalog(folder, folder.name, pieces)
    if names is not None:
        plans = _renumbered(plans, catalog, json.dumps(asked.deciding, sort_keys=True))
    digest = plan.sources[split]["names_and_sizes"]
    origin = locate(plan.origins[split])
    return PlannedSplit(
        catalog, origin, digest, asked.recorders[split], tuple(plans), plan.stamps[split]
    )


def _renumbered(plans: Sequence[ShardPlan], catalog: Catalog, settings: str) -> list[ShardPlan]:
    """The plans of shards whose rows a catalog has;
    raises InputError if they are not the planned rows.
    """
    from imagenet_prep.sources.fingerprint import Fingerprints

    found, start, fingerprints = [], 0, Fingerprints(catalog, settings)
    for plan in plans:
        stop = start + plan.stop - plan.start
        if fingerprints.compute(range(start, stop)) != plan.fingerprint:
            raise InputError(f"the rows of {plan_name(plan)} are not those that were planned")
        found.append(replace(plan, start=start, stop=stop))
        start = stop
    return found


def remove_other_rows(plan: Plan, layout: Layout) -> None:
    """Remove the rows of earlier plans: they are not needed once the set is finished."""
    for path in layout.plan_path.parent.glob("*/*"):
        if path.parent.name not in plan.rows.values():
            path.unlink(missing_ok=True)
            if (folder := local_or_none(path.parent)) is not None:
                with contextlib.suppress(OSError):
                    folder.rmdir()
