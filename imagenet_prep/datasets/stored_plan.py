"""Plan on the disk: written for a set that was listed, and read as the PlannedSet that it was."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from imagenet_prep import __version__
from imagenet_prep.datasets import order
from imagenet_prep.datasets.dataset import Dataset
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
from imagenet_prep.state.plan_file import Plan, Stamps
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none, locate, real_path

if TYPE_CHECKING:
    from imagenet_prep.sources.catalog import Catalog
    from imagenet_prep.sources.saved_catalog import PackedCatalog


def plan_of(
    planned: PlannedSet,
    layout: Layout,
    plan_on_disk: Plan | None,
    packed: Mapping[str, PackedCatalog],
) -> Plan:
    """The plan of a set that was listed, ``packed`` by split.

    Places that ``plan_on_disk`` knows are kept.
    """
    sources: dict[str, Mapping[str, Any]] = {}
    totals: dict[str, SplitTotals] = {}
    fingerprints: dict[str, tuple[str, ...]] = {}
    times: dict[str, tuple[str, ...]] = {}
    origins: dict[str, str] = {}
    for split in planned.splits:
        name = split.catalog.split
        sources[name] = source_record(split)
        totals[name] = _totals_of(planned, split)
        fingerprints[name] = split.fingerprints
        times[name] = tuple(split.times)
        origin = split.source.resolve()
        origins[name] = str(origin)
    rows = {name: catalog.name for name, catalog in packed.items()}
    asked: Mapping[str, Any] = {}
    if planned.asked is not None:
        asked = {"options": planned.asked.options, "raw": planned.asked.raw}
    raw_dir = _recorded_raw_dir(planned, layout)
    stamps = _known_stamps(planned, plan_on_disk)
    return Plan(
        dataset=planned.entry,
        settings=planned.settings,
        sources=sources,
        totals=totals,
        fingerprints=fingerprints,
        expected=planned.expected,
        options=planned.options,
        raw=raw_dir,
        recipe=planned.recipe,
        stamps=stamps,
        times=times,
        rows=rows,
        origins=origins,
        notes=planned.notes,
        asked=asked,
    )


def _known_stamps(planned: PlannedSet, plan_on_disk: Plan | None) -> Stamps:
    """The stamps of the containers of each split, with those that the plan on the disk knows."""
    known_stamps: Stamps = {}
    if plan_on_disk is not None:
        known_stamps = plan_on_disk.stamps
    stamps: dict[str, Mapping[str, str]] = {}
    for split in planned.splits:
        name = split.catalog.split
        stamps[name] = {**known_stamps.get(name, {}), **split.stamps}
    return stamps


def _totals_of(planned: PlannedSet, split: PlannedSplit) -> SplitTotals:
    catalog = split.catalog
    labels = set(catalog.count_by_label())
    labels.discard(0)
    unlabelled = planned.count_unlabelled(split)
    return SplitTotals(
        images=len(catalog),
        expected=planned.expected[catalog.split],
        classes=len(labels),
        boxes=split.boxes,
        shards=len(split.plans),
        unlabelled=unlabelled,
    )


def _recorded_raw_dir(planned: PlannedSet, layout: Layout) -> str | None:
    """The folder of raw data, if one was given, or if the shards are not in DATA_DIR."""
    raw_dir = layout.raw
    # A recipe's images are relative to its own folder, which ``recipe`` holds.
    if not raw_dir and layout.output and not planned.recipe:
        raw_dir = layout.own_raw_dir
    if not raw_dir:
        return None
    resolved = real_path(raw_dir)
    return str(resolved)


def shard_plans(plan: Plan, split: str) -> list[ShardPlan]:
    """The shards of a split, in order."""
    fingerprints = plan.fingerprints[split]
    count = len(fingerprints)
    bounds = order.bounds(plan.totals[split].images, count)
    shards: list[ShardPlan] = []
    for number, (start, stop) in enumerate(itertools.pairwise(bounds)):
        shard = ShardPlan(split, number, count, start, stop, fingerprints[number])
        shards.append(shard)
    return shards


def planned_shards(plan: Plan) -> dict[str, ShardInfo]:
    """Each shard of a plan by name, with the facts known before it is made."""
    shards: dict[str, ShardInfo] = {}
    for split in plan.fingerprints:
        for shard in shard_plans(plan, split):
            name = plan_name(shard)
            records = shard.stop - shard.start
            shards[name] = ShardInfo(name, shard.fingerprint, records, 0, "")
    return shards


def planned_manifest(plan: Plan) -> Manifest:
    """The manifest to come, except for facts of finished shards."""
    settings = dict(plan.settings)
    sources = dict(plan.sources)
    totals = dict(plan.totals)
    shards = planned_shards(plan)
    return Manifest(__version__, plan.dataset, settings, sources, totals, shards)


def knows(plan: Plan, shard: ShardPlan, times: str) -> bool:
    """Whether a shard is planned from exactly these items, in files of these times."""
    planned_fingerprints = plan.fingerprints.get(shard.split, ())
    planned_times = plan.times.get(shard.split, ())
    count = min(len(planned_fingerprints), len(planned_times))
    if shard.index >= count:
        return False
    has_same_items = planned_fingerprints[shard.index] == shard.fingerprint
    has_same_times = planned_times[shard.index] == times
    return has_same_items and has_same_times


def read_planned(
    plan: Plan,
    layout: Layout,
    inputs: Asked,
    names: Collection[str] | None = None,
    progress: Progress | None = None,
) -> PlannedSet | None:
    """The planned set, or its shards of these names. None: raw data has changed, or rows are lost.

    None also if all shards are requested and images are in files of their own, each of which may
    have changed. ``progress`` shows which rows are damaged.
    """
    splits: list[PlannedSplit] = []
    try:
        for split_name in inputs.recorders:
            split = _read_split(plan, split_name, layout, inputs, names)
            splits.append(split)
    except KeyError:
        return None
    except InputError as error:
        if progress is not None:
            warn_of_listing(error.what, progress)
        return None
    trusts_folders = names is not None
    for split in splits:
        if not split.catalog.is_current(trusts_folders=trusts_folders):
            return None
    return PlannedSet(
        plan.dataset,
        tuple(splits),
        plan.settings,
        plan.expected,
        plan.options,
        plan.notes,
        asked=inputs,
    )


def warn_of_listing(fault: str, progress: Progress) -> None:
    """Note that a fault of what a plan stored costs another listing."""
    progress.note(f"warning: {fault}; so the raw data is listed again, which only takes time")


def plan_again(
    records: SetRecords,
    dataset: Dataset,
    options: Any,
    names: Collection[str] | None,
    progress: Progress,
) -> PlannedSet | None:
    """The set as the plan on the disk has it, if settings and raw data are unchanged; for a rank,
    only the shards of these ``names``.

    A rank does not check separate image files: it reads images that another rank listed.
    """
    plan = records.plan
    inputs = dataset.ask(records.layout, options)
    if plan is None or inputs is None:
        return None
    asked = {"options": inputs.options, "raw": inputs.raw}
    if plan.asked != asked:
        return None
    return read_planned(plan, records.layout, inputs, names, progress)


def _read_split(
    plan: Plan, split: str, layout: Layout, inputs: Asked, names: Collection[str] | None
) -> PlannedSplit:
    from imagenet_prep.sources.saved_catalog import load_catalog

    shards = shard_plans(plan, split)
    rows_name = plan.rows[split]
    folder = layout.plan_path.with_name(rows_name)
    if names is None:
        catalog = load_catalog(folder, folder.name)
    else:
        shards = [shard for shard in shards if plan_name(shard) in names]
        pieces = [range(shard.start, shard.stop) for shard in shards]
        catalog = load_catalog(folder, folder.name, pieces)
        settings = json.dumps(inputs.deciding, sort_keys=True)
        shards = _move_to_pieces(shards, catalog, settings, folder)
    origin = locate(plan.origins[split])
    digest = plan.sources[split]["names_and_sizes"]
    recorder = inputs.recorders[split]
    stamps = plan.stamps[split]
    return PlannedSplit(catalog, origin, digest, recorder, tuple(shards), stamps)


def _move_to_pieces(
    shards: Sequence[ShardPlan], catalog: Catalog, settings: str, folder: AnyPath
) -> list[ShardPlan]:
    """The plans of shards for a catalog of ``folder`` that has only their rows, in this order.

    Raises:
        InputError: they are not the planned rows.
    """
    from imagenet_prep.sources.fingerprint import Fingerprints

    fingerprints = Fingerprints(catalog, settings)
    moved: list[ShardPlan] = []
    start = 0
    for shard in shards:
        count = shard.stop - shard.start
        stop = start + count
        fingerprint = fingerprints.compute(range(start, stop))
        if fingerprint != shard.fingerprint:
            shard_name = plan_name(shard)
            raise InputError(f"{folder} lists other images for {shard_name} than plan.json")
        moved_shard = replace(shard, start=start, stop=stop)
        moved.append(moved_shard)
        start = stop
    return moved


def remove_other_rows(plan: Plan, layout: Layout) -> None:
    """Remove the rows of earlier plans: they are not needed once the set is finished."""
    plan_folder = layout.plan_path.parent
    planned_names = set(plan.rows.values())
    for path in plan_folder.glob("*/*"):
        if path.parent.name in planned_names:
            continue
        path.unlink(missing_ok=True)
        folder = local_or_none(path.parent)
        if folder is not None:
            with contextlib.suppress(OSError):
                folder.rmdir()
