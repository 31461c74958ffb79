"""PlanClaim: the right to decide what a folder holds, which the plan on its disk gives."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.plan_differences import differences
from imagenet_prep.errors import UsageError
from imagenet_prep.shards.existing import instead
from imagenet_prep.state.plan_file import Plan, decode_plan, load_plan
from imagenet_prep.storage.files import claim, save_bytes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_or_none


class PlanClaim(Struct, frozen=True):
    """A plan that claims a folder, where other ranks or another plan may be first.

    Args:
        layout: the folder and the set.
        plan: the plan of this run.
        plan_on_disk: the plan that was on the disk when this one was made.
        overwrites: whether another plan may give way because the user asks for it.
        is_rank: whether other ranks may follow the plan on the disk.
    """

    layout: Layout
    plan: Plan
    plan_on_disk: Plan | None
    overwrites: bool
    is_rank: bool

    def check(self) -> Plan | None:
        """The plan of the same shards that claims the folder, or None.

        Raises:
            UsageError: it is claimed for another plan, now or before this one was made.
        """
        claimed = load_plan(self.layout)
        if claimed is None or claimed.key == self.plan.key:
            return claimed
        is_known = self.plan_on_disk is not None and claimed.key == self.plan_on_disk.key
        if is_known and self._may_replace_plan:
            return None
        changes = ", ".join(differences(self.plan, claimed))
        raise UsageError(
            f"{self.layout.output_dir} is for a set with other images or settings",
            f"compared with its plan, {self.layout.plan_path}, these differ: {changes}",
            instead(
                self.layout, "make this set in its place with --overwrite", is_rank=self.is_rank
            ),
        )

    @property
    def _may_replace_plan(self) -> bool:
        """Whether the plan on the disk may give way:
        nobody else follows it, or that was asked for.
        """
        is_only_writer = not self.is_rank and local_or_none(self.layout.output_dir) is not None
        return self.overwrites or is_only_writer or self.plan.extends(self.plan_on_disk)

    def save(self, sample: Callable[[Plan | None], Plan]) -> None:
        """Write plan.json, or claim it where another rank may be first.

        ``sample`` returns the plan with the samples of the plan that was first.
        """
        path = self.layout.plan_path
        content = sample(self.plan_on_disk).encode()
        if self.plan_on_disk is not None:
            if self.plan_on_disk.encode() == content:
                return
            if self.plan_on_disk.key == self.plan.key or self._may_replace_plan:
                save_bytes(path, content)
                return
        claimed = claim(path, content)
        first = decode_plan(claimed)
        if first is None:  # an unreadable plan claims nothing
            save_bytes(path, content)
        elif first.key == self.plan.key and claimed != content:  # another copy was first
            replace(self, plan_on_disk=first).save(sample)
