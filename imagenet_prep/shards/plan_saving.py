"""PlanSaving: a plan and its rows -> durable files, under the claim of the plan to its folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.copies import join_copies, with_samples, without_damaged
from imagenet_prep.datasets.planned_set import PlannedSet, PlannedSplit
from imagenet_prep.model import ShardPlan
from imagenet_prep.shards.consumable import is_gone
from imagenet_prep.shards.plan_claim import PlanClaim
from imagenet_prep.sources.saved_catalog import PackedCatalog
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.state.replacement import Replacement
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.refusals import writing


class PlanSaving(Struct, frozen=True):
    """A plan to save.

    Args:
        claim: of the plan to its folder.
        planned: the set that it is the plan of.
        packed: the saved rows of each split; empty if the plan is the one on the disk.
        replacement: the shards of an older set that give way.
        has_machines: whether several machines make the set, from copies of the images.
    """

    claim: PlanClaim
    planned: PlannedSet
    packed: Mapping[str, PackedCatalog]
    replacement: Replacement | None
    has_machines: bool

    def save(self, todo: Sequence[ShardPlan], unfinished: AnyPath) -> Plan:
        """Make rows, the list of replaced shards and the plan durable, in this order.

        Returns the plan that claims the folder. ``todo`` are the shards to make, and ``unfinished``
        is the run's folder of unfinished files.
        """
        claim = self.claim
        for packed in self.packed.values():
            packed.save(claim.layout.plan_path.with_name(packed.name), unfinished)
        # If it is claimed, another rank has listed the replaced shards, or removed them.
        is_claimed = claim.check() is not None
        if not is_claimed and self.replacement is not None:
            self.replacement.claim(claim.layout, claim.plan.generation)
        claim.save(lambda plan_on_disk: self._with_samples(todo, plan_on_disk))
        claimed_plan = claim.check()
        for path, lines in self.planned.lists.items():
            with writing(path):
                save_bytes(path, lines)
        return claimed_plan or claim.plan

    def _with_samples(self, todo: Sequence[ShardPlan], plan_on_disk: Plan | None) -> Plan:
        """The plan, with the samples of the copy that was first; see datasets.copies."""
        claim = self.claim
        if not self.packed:  # nothing was listed: the plan is the one on the disk
            return claim.plan
        if plan_on_disk is not None and claim.overwrites and not claim.is_rank:
            plan_on_disk = replace(
                plan_on_disk, samples={}
            )  # the images of this run are the right ones
        present: list[PlannedSplit] = []
        if todo:
            present = [split for split in self.planned.splits if not is_gone(split)]
        plan = join_copies(claim.plan, plan_on_disk, present)
        return with_samples(plan, present) if self.has_machines else plan


def forget_samples(
    claim: PlanClaim, splits: Sequence[PlannedSplit], damaged: Collection[str]
) -> None:
    """Let sound images take the place of damaged ones that were sampled."""
    claimed_plan = claim.check()
    if claimed_plan is not None and claimed_plan.samples:
        plan = without_damaged(claimed_plan, splits, damaged)
        save_bytes(claim.layout.plan_path, plan.encode())
