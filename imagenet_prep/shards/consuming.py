"""begin_consuming: the work of splits whose raw data gives its space to the shards."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.model import Progress
from imagenet_prep.shards.consumable import is_gone
from imagenet_prep.shards.consumption import Consumption, consumed_step
from imagenet_prep.shards.room import HELD, RECORD, PendingShards
from imagenet_prep.shards.work import Work
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.space import Need
from imagenet_prep.text import number_of


def consumed_needs(
    layout: Layout, pending: PendingShards, *, under_way: int, whole: int
) -> list[Need]:
    """The space for pending shards in addition to the raw data that gives its space to them.

    It includes the framing of records. Raw data and bundles, or bundles and shards, exist twice for
    a while: a step of the pass, or the bytes held until the next sync with the shards
    ``under_way``. It also includes ``whole``, the largest file that can only be freed as a whole.
    """
    if not pending.shards:
        return []
    size = pending.size
    twice = max(min(size, consumed_step(size)), min(size, HELD + under_way))
    what = f"{number_of(pending.shards, f'{pending.split} shard')} in the space of the raw data"
    needed = RECORD * pending.images + twice + whole
    return [Need("convert", what, layout.output_dir, needed, 4 * pending.shards, pending.is_about)]


def consuming_needs(works: Sequence[Work], layout: Layout, workers: int) -> list[Need]:
    """The disk space needed to start consuming; resuming needs nothing beyond that."""
    needs = []
    for work in works:
        if not is_gone(work.split):
            wholes = (
                each.path.stat().st_size
                for each in work.split.catalog.containers
                if not each.is_sliced
            )
            whole = max(wholes, default=0)
            needs += consumed_needs(
                layout, work.pending, under_way=workers * work.largest, whole=whole
            )
    return needs


def begin_consuming(works: Sequence[Work], layout: Layout, progress: Progress) -> list[Work]:
    """The works, each with its consumption on record and its files claimed, old or new.

    Raises:
        InputError: a file is gone or has changed.
    """
    layout.shards.sync()  # finished shards must be durable: the space of their images is freed, too
    layout.indexes.sync()
    fresh = [
        each.path
        for work in works
        if not is_gone(work.split)
        for each in work.split.catalog.containers
    ]
    if fresh:
        more = f" and {len(fresh) - 1:,} more" if len(fresh) > 1 else ""
        what = f"{fresh[0].name}{more}, {sum(path.stat().st_size for path in fresh):,} bytes"
        then = (
            "give their space to the shards; then they are gone (imagenet-prep download fetches "
            "them)"
        )
        progress.note(f"--consume: {what} {then}")
    return [_claim(work, layout) for work in works]


def _claim(work: Work, layout: Layout) -> Work:
    is_new = not is_gone(work.split)
    found = (
        Consumption.begin(work.split.catalog, work.plans, layout)
        if is_new
        else Consumption.find(layout, work.split.catalog.split)
    )
    if found is None or found.is_over:
        return work
    found.take_files()
    if not work.plans and not found.is_read:  # existing shards hold all images
        found.keep(found.total, (), None)
    if found.is_read:
        for name in found.shards.keys() - set(
            map(plan_name, work.plans)
        ):  # a crash left their bundles behind
            (found.paths.bundles / name).unlink(missing_ok=True)
    return replace(work, consumption=found)


def finish_consuming(splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Remove the rest of raw data and bundles, once all shards are made and on record."""
    for split in splits:
        found = Consumption.find(layout, split.catalog.split)
        if found is not None and found.is_read and not found.is_over:
            found.finish()
