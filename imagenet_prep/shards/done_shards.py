"""DoneShards: which shards of a plan are done, and the identity that their files had."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.model import OnDamaged, ShardInfo, ShardPlan
from imagenet_prep.state.indexes import is_indexed
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.replacement import Identity, identity_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_or_none


class DoneShards(Struct, frozen=True):
    """The shards of a set that are done.

    Args:
        layout: the paths of the set.
        on_damaged: whether images that were left out must be in their shards now.
        seen: the identity of each shard's file, on a disk, when the shard was found or made as the
            journal says.
    """

    layout: Layout
    on_damaged: OnDamaged
    seen: dict[str, Identity] = {}

    def list_unfinished(self, splits: Iterable[PlannedSplit], journal: Journal) -> list[ShardPlan]:
        """The shards of these splits that are not done."""
        unfinished: list[ShardPlan] = []
        for split in splits:
            for plan in split.plans:
                info = journal.get(plan_name(plan))
                if info is None or not self._is_done(plan, split, info):
                    unfinished.append(plan)
        return unfinished

    def _is_done(self, plan: ShardPlan, split: PlannedSplit, info: ShardInfo) -> bool:
        """Whether a shard is done: the journal lists it, and its size and its index agree."""
        if info.fingerprint != plan.fingerprint or not self._is_accepted(info, split):
            return False
        if self.layout.shards.size(info.name) != info.size:
            return False
        path = local_or_none(self.layout.shard_path(info.name))
        identity = identity_of(path) if path else None
        left_out = set(info.set_aside)
        planned_names = map(split.catalog.names.__getitem__, split.rows(plan))
        names = [name for name in planned_names if name not in left_out]
        is_done = is_indexed(self.layout, info, names)
        if is_done and identity is not None:
            self.seen[info.name] = identity
        return is_done

    def _is_accepted(self, info: ShardInfo, split: PlannedSplit) -> bool:
        """Whether this run accepts the images that a shard left out, or that it warned of."""
        if info.set_aside and self.on_damaged == "refuse":
            return False
        return not info.warned or split.recorder.check != "strict"
