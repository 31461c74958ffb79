"""Work: the unfinished shards of a split, and how its images are best read."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.planned_set import PlannedSplit
from imagenet_prep.errors import UsageError
from imagenet_prep.model import ShardPlan
from imagenet_prep.shards.consumable import is_gone
from imagenet_prep.shards.consumption import Consumption, consumed_step
from imagenet_prep.shards.room import PendingShards, available_memory, is_pass_better, shard_needs
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_or_none
from imagenet_prep.storage.space import Need


class Work(Struct, frozen=True):
    """The work on one split: ``size`` is the bytes of its images.

    ``in_order``: its archive is read once from front to back, into a bundle per shard.
    ``consumption``: the archive gives its space to the bundles.
    """

    split: PlannedSplit
    plans: tuple[ShardPlan, ...]
    size: int
    in_order: bool
    consumption: Consumption | None = None

    @property
    def pending(self) -> PendingShards:
        """Its unfinished shards, in numbers."""
        images = sum(map(count_images, self.plans))
        return PendingShards(self.split.catalog.split, len(self.plans), images, self.size)

    def needs(self, layout: Layout) -> list[Need]:
        """The space that its shards and bundles need on the disk."""
        return shard_needs(
            layout, self.pending, in_order=self.in_order, keeps_size=self.split.recorder.keeps_size
        )

    @property
    def largest(self) -> int:
        """Bytes of the images of the largest shard."""
        split = self.split
        sizes = (split.catalog.size(split.rows(plan)) for plan in self.plans)
        return max(sizes, default=0)

    def step(self, memory: int | None) -> int:
        """Bytes that a pass holds before writing them out.

        When consuming, they are on the disk twice.
        """
        limit = memory or available_memory() // 4
        if self.consumption is None:
            return limit
        return min(limit, consumed_step(self.size))


def lay_out(
    splits: Sequence[PlannedSplit],
    todo: Sequence[ShardPlan],
    layout: Layout,
    options: MakingOptions,
    *,
    remedy: str = "",
) -> list[Work]:
    """The work of each split, and how its source is best read. ``remedy`` is that for shards in an
    object store whose source is read in order; "": that of convert.

    Raises:
        UsageError: the source can't be read in the requested order, or needs files next to shards
            in an object store.
    """
    works: list[Work] = []
    for split in splits:
        plans = tuple(plan for plan in todo if plan.split == split.catalog.split)
        size = sum(split.catalog.size(split.rows(plan)) for plan in plans)
        in_order = bool(plans) and _wants_pass(split, size, options)
        if in_order and local_or_none(layout.output_dir) is None:
            hint = "name a folder with --output, and copy the shards"
            if not split.catalog.is_in_order:  # otherwise no option changes it
                hint += ", or choose read_order: shuffled"
            raise UsageError(
                f"{split.source} is read in one pass, which writes local files first",
                f"expected a local folder for the shards, not {layout.output_dir}",
                remedy or hint,
            )
        works.append(Work(split, plans, size, in_order))
    return works


def count_images(plan: ShardPlan) -> int:
    """The number of images in a shard."""
    return plan.stop - plan.start


def _wants_pass(split: PlannedSplit, size: int, options: MakingOptions) -> bool:
    """Whether the ``size`` bytes of images to read come from one pass through their archive."""
    if options.consume:
        return True
    if is_gone(split):
        return False  # each shard reports it
    if split.catalog.is_in_order:
        if options.read_order == "shuffled":
            raise UsageError(
                f"{split.source} can't be read in a shuffled order",
                "expected read_order auto or sequential: each image requires reading everything "
                "before it in the file",
                "leave out read_order: shuffled",
            )
        return True
    if any(container.read_order == "alone" for container in split.catalog.containers):
        return False
    return is_pass_better(split.source, size, options)
