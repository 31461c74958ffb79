"""make_shards: tasks -> finished shards: workers, journal and disk, for convert and for repair."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.planned_set import plan_name
from imagenet_prep.errors import PrepError, named
from imagenet_prep.model import Done, Engine, Progress, ShardInfo
from imagenet_prep.shards.maker import Outcome, ShardMaker, ShardTask, expected_and_got
from imagenet_prep.shards.regroup import name_archives, regroup
from imagenet_prep.shards.room import HELD
from imagenet_prep.shards.work import Work
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.state.journal import Journal
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path
from imagenet_prep.storage.refusals import writing
from imagenet_prep.text import size_text

SYNC_SECONDS = 1.0
"""Seconds between syncs of finished shards, which protect them from a power cut; a killed process
can't undo them.

Each sync covers the whole file system: two more syncs for the index of each shard would cost more
for small shards.
"""


def prepare_tasks(
    works: Sequence[Work],
    layout: Layout,
    options: MakingOptions,
    progress: Progress,
    *,
    expected: Mapping[str, ShardInfo] | None = None,
    syncs: bool = False,
) -> Iterator[ShardTask]:
    """The task of each shard, one at a time, after the archives that are read in one pass.

    ``expected`` are the entries that shards must match when they are made again. ``syncs`` is as in
    ShardTask.
    """
    catalogs = [_prepared(work, layout, options, progress) for work in works]
    return (
        ShardTask(
            plan_name(plan),
            plan.fingerprint,
            layout,
            catalog.whole(work.split.rows(plan)),
            work.split.recorder,
            compression=options.compression,
            on_damaged=options.on_damaged,
            expected=expected[plan_name(plan)] if expected else None,
            bundle=_bundles_of(work, layout) / plan_name(plan) if work.in_order else None,
            syncs=syncs,
        )
        for work, catalog in zip(works, catalogs, strict=True)
        for plan in work.plans
    )


def _prepared(work: Work, layout: Layout, options: MakingOptions, progress: Progress) -> Catalog:
    """The catalog, after a pass through the archive that bundles the images of each shard,
    if that is necessary.
    """
    catalog, consumption = work.split.catalog, work.consumption
    if not work.in_order:
        return catalog
    if consumption is None:
        names = set(map(plan_name, work.plans))
        if catalog.is_in_order:
            rows = [row for plan in work.plans for row in work.split.rows(plan)]
            progress.note(
                f"{name_archives(catalog, rows)} can only be read from start to end: the images "
                f"({size_text(work.size)}) are first copied to {layout.partials_dir}, into one "
                "file for each shard"
            )
    else:
        names = set(map(plan_name, work.plans) if consumption.is_read else consumption.shards)
        catalog = replace(catalog, containers=consumption.containers())
    shards = [
        (plan_name(plan), work.split.rows(plan))
        for plan in work.split.plans
        if plan_name(plan) in names
    ]
    memory = work.step(options.memory)
    return regroup(
        catalog,
        shards,
        _bundles_of(work, layout),
        memory=memory,
        progress=progress,
        keeper=consumption,
    )


def _bundles_of(work: Work, layout: Layout) -> Path:
    return work.consumption.paths.bundles if work.consumption else local_path(layout.bundle_dir)


class Made(Struct, frozen=True):
    """The result of the work: an outcome for each finished shard, an error for each other one."""

    outcomes: tuple[Outcome, ...]
    failures: tuple[Exception, ...]


def make_shards(
    tasks: Iterator[ShardTask], layout: Layout, engine: Engine, journal: Journal, progress: Progress
) -> Made:
    """Make the shards of all tasks; each is journalled once in place,
    and a failing one stops no other.
    """
    outcomes: dict[str, Outcome] = {}
    failures: list[Exception] = []
    unsynced: list[ShardTask] = []
    bundled = 0  # bytes of shards whose bundles still exist
    synced = time.monotonic()
    with contextlib.closing(engine.map(ShardMaker(), tasks)) as results:
        for result in results:
            task = result.task
            if not isinstance(result, Done):
                failures.append(named(result.error, task.name))
                continue
            outcome: Outcome = result.value
            is_again = task.name in outcomes
            outcomes[task.name] = outcome
            if outcome.info is not None:
                unsynced.append(task)
                if task.bundle:
                    bundled += outcome.info.size
                _record(outcome.info, journal, progress)
            progress.advance(0 if is_again else len(task.catalog))
            if time.monotonic() - synced > SYNC_SECONDS or bundled > HELD:
                _sync(layout, journal, unsynced)
                synced = time.monotonic()
                bundled = 0
    _sync(layout, journal, unsynced)
    return Made(tuple(outcomes.values()), tuple(failures))


def _record(info: ShardInfo, journal: Journal, progress: Progress) -> None:
    """Write the line of a finished shard, unless it is there; note if it differs without reason."""
    before = journal.get(info.name)
    if before is not None and _is_other(info, before):
        progress.note(
            f"{info.name} differs from the earlier shard of the same inputs: "
            f"{expected_and_got(before, info)}; an image may have changed "
            "and kept its size and time, or a library may encode it differently now"
        )
    if info != before:
        journal.append(info)


def _is_other(info: ShardInfo, before: ShardInfo) -> bool:
    """Whether a shard has other records than before, although inputs and settings are the same."""
    if info.fingerprint != before.fingerprint or info.set_aside != before.set_aside:
        return False
    return info.digest != before.digest


def _sync(layout: Layout, journal: Journal, unsynced: list[ShardTask]) -> None:
    """Make the indexes and names of these shards durable, then the journal that lists them; bundles
    are removed last.

    Raises:
        WriteError: the disk failed. None of these shards counts as done: their indexes are removed.
    """
    try:
        with writing(layout.index_dir):
            stores = {store.device: store for store in (layout.shards, layout.indexes)}
            for store in stores.values():
                store.sync()
    except PrepError:
        for task in unsynced:
            for path in layout.index_paths(task.name):
                with contextlib.suppress(OSError):
                    path.unlink()
        raise
    journal.sync()
    for task in unsynced:
        if task.bundle:
            task.bundle.unlink(missing_ok=True)
    unsynced.clear()
