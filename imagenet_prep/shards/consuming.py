"""begin_consuming: the work of splits whose raw data gives its space to the shards."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import Progress
from imagenet_prep.shards.consumable import is_gone
from imagenet_prep.shards.consumption import Consumption, consumed_step
from imagenet_prep.shards.room import HELD, RECORD, PendingShards
from imagenet_prep.shards.work import Work
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
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
    shards = number_of(pending.shards, f"{pending.split} shard")
    words = f"{shards} in the space of the raw data"
    needed = RECORD * pending.images + twice + whole
    return [Need("convert", words, layout.output_dir, needed, 4 * pending.shards, pending.is_about)]


def consuming_needs(works: Sequence[Work], layout: Layout, workers: int) -> list[Need]:
    """The disk space needed to start consuming; resuming needs nothing beyond that."""
    needs: list[Need] = []
    for work in works:
        if is_gone(work.split):
            continue
        containers = work.split.catalog.containers
        wholes = [
            container.path.stat().st_size for container in containers if not container.is_sliced
        ]
        under_way = workers * work.largest
        whole = max(wholes, default=0)
        needs += consumed_needs(layout, work.pending, under_way=under_way, whole=whole)
    return needs


def begin_consuming(works: Sequence[Work], layout: Layout, progress: Progress) -> list[Work]:
    """The works, each with its consumption on record and its files claimed, old or new.

    Raises:
        InputError: a file is gone or has changed.
    """
    layout.shards.sync()  # finished shards must be durable: the space of their images is freed, too
    layout.indexes.sync()
    new_files: list[AnyPath] = []
    for work in works:
        if not is_gone(work.split):
            new_files += [container.path for container in work.split.catalog.containers]
    if new_files:
        size = sum(path.stat().st_size for path in new_files)
        other_files = f" and {len(new_files) - 1:,} more" if len(new_files) > 1 else ""
        progress.note(
            Hint(
                f"--consume: {new_files[0].name}{other_files} ({size:,} bytes): the shards take "
                "this space, and in the end these files are gone (",
                mention("download"),
                " fetches them again)",
            )
        )
    return [_claim(work, layout) for work in works]


def _claim(work: Work, layout: Layout) -> Work:
    if is_gone(work.split):
        consumption = Consumption.find(layout, work.split.catalog.split)
    else:
        consumption = Consumption.begin(work.split.catalog, work.plans, layout)
    if consumption is None or consumption.is_over:
        return work
    consumption.take_files()
    if not work.plans and not consumption.is_read:  # existing shards hold all images
        consumption.keep(consumption.total, (), None)
    if consumption.is_read:
        names = {plan_name(plan) for plan in work.plans}
        for name in consumption.shards.keys() - names:  # a crash left their bundles behind
            (consumption.paths.bundles / name).unlink(missing_ok=True)
    return replace(work, consumption=consumption)


def finish_consuming(splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Remove the rest of raw data and bundles, once all shards are made and on record."""
    for split in splits:
        consumption = Consumption.find(layout, split.catalog.split)
        if consumption is not None and consumption.is_read and not consumption.is_over:
            consumption.finish()
