"""ExistingShards: the shards in a folder that a new plan keeps, replaces, or must not touch."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from imagenet_prep.datasets.plan_differences import changed_images, differences
from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import CommandLine
from imagenet_prep.hints import Hint
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import ILSVRC2012, RECIPE, Manifest
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.state.replacement import Replacement
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import Layout, grown_from, split_of
from imagenet_prep.text import number_of


class ExistingShards(Struct, frozen=True):
    """The shards in a folder, compared with a plan; nothing is written.

    Args:
        sizes: bytes of each shard by name, without those of other sets.
        replaced: recorded shards that the plan does not have, or makes from other items or
            settings.
        foreign: shards without any record.
    """

    sizes: Mapping[str, int]
    replaced: tuple[str, ...]
    foreign: tuple[str, ...]

    @classmethod
    def find(
        cls,
        records: SetRecords,
        plan: Plan,
        plan_on_disk: Plan | None,
        journal: Journal,
        changed: Collection[str],
        known_splits: Collection[str],
    ) -> ExistingShards:
        """Compare what is there with a plan.

        Args:
            records: of the set.
            plan: the new plan.
            plan_on_disk: at the start, or since another rank claimed the folder.
            journal: of the set.
            changed: finished shards whose images changed, whatever their fingerprint says.
            known_splits: splits of shards that are ours or foreign, in addition to those of the
                plans.

        Raises:
            UsageError: another set of the folder has a split of the plan; or finished shards are of
                a split that is not planned.
        """
        layout = records.layout
        recorded = _Recorded.gather(records, plan, plan_on_disk, journal)
        splits = {*known_splits, *recorded.all_planned_splits} - recorded.foreign_splits
        splits_of_set = set(map(_base_split, splits))
        sizes: dict[str, int] = {}
        replaced: list[str] = []
        foreign: list[str] = []
        for name, size in layout.find_shards().items():
            split = _base_split(split_of(name))
            is_recorded = recorded.is_recorded(name)
            if not is_recorded and split not in splits_of_set:
                continue
            sizes[name] = size
            if journal.get(name) is not None and split not in recorded.planned_splits:
                raise _of_another_set(layout, plan, split_of(name))
            if name in changed or recorded.is_replaced(name):
                replaced.append(name)
            elif not is_recorded and recorded.is_foreign(name):
                foreign.append(name)
        return cls(sizes, tuple(replaced), tuple(foreign))

    def refuse_foreign(self, layout: Layout, plan: Plan, *, overwrite: bool) -> None:
        """Raise UsageError rather than mix a set with shards of another program,
        or replace them unasked.
        """
        if not self.foreign:
            return
        planned = plan.fingerprints_by_name()
        may_replace = all(name in planned for name in self.foreign)
        if may_replace and overwrite:
            return
        folder = layout.state_dir.name
        copy = (
            "if they were made by imagenet-prep, "
            f"copy also the folder {folder} that was next to them"
        )
        hint = f"{copy}; or move them away, or choose another folder with --output"
        grows = any(grown_from(split_of(name))[1] > 1 for name in planned)
        if may_replace and not grows and not layout.rank_parts():  # --overwrite grows nothing
            hint = (
                f"{copy}; or move them away, choose another folder with --output, "
                "or let --overwrite replace those in the way"
            )
        shards = f"the shard {self.foreign[0]}"
        if len(self.foreign) > 1:
            shards = f"{number_of(len(self.foreign), 'shard')} (first: {self.foreign[0]})"
        raise UsageError(
            f"{layout.output_dir} holds {shards}, which no file in {layout.state_dir} lists",
            "expected only shards that convert made here",
            hint,
        )

    def refuse_replaced(
        self,
        records: SetRecords,
        plan: Plan,
        changed: Mapping[str, str],
        boxes_command: Callable[[Layout, str], CommandLine],
    ) -> None:
        """Raise UsageError for finished shards that were made differently; ``changed`` has the
        evidence by name. ``boxes_command`` makes the file of a split's boxes again.
        """
        if not self.replaced:
            return
        evidence = next((changed[name] for name in self.replaced if changed.get(name)), "")
        count = number_of(len(self.replaced), "shard was", "shards were")
        recorded_set = records.usable_manifest or records.plan
        changes = differences(plan, recorded_set) if recorded_set is not None else []
        boxes_hint = ""
        if lost_split := _split_without_boxes(recorded_set, plan, changes):
            boxes_hint = Hint(
                "bring the boxes back, then run the same convert: ",
                boxes_command(records.layout, lost_split),
                "    (--overwrite would leave the boxes out)",
            )
        has_other_images = bool(evidence) or _has_other_images(plan, changes)
        overwrite = _to_make_again(changes, has_other_images=has_other_images)
        raise UsageError(
            f"{count} made from other inputs or with other settings, {self.replaced[0]} first",
            evidence or _in_words(changes),
            boxes_hint or instead(records.layout, overwrite),
        )


def _to_make_again(changes: Sequence[str], *, has_other_images: bool) -> str:
    """The advice to make shards again, or to undo what these changes say."""
    overwrite = "make the shards again with --overwrite"
    if has_other_images:
        return f"if images changed by mistake, restore them; or {overwrite}"
    if changes and all(map(_IS_OPTION.match, changes)):
        return f"give the earlier settings again, {overwrite}"
    return overwrite


def instead(layout: Layout, overwrite: str, *, is_rank: bool = False) -> str:
    """The advice where a set is in the way: ``overwrite`` only if no work of ranks would go."""
    if is_rank or layout.rank_parts():
        overwrite = "give all ranks the same images and settings"
    return f"{overwrite}, or choose another folder with --output"


def _base_split(split: str) -> str:
    """The split that a growth belongs to; any other split is its own."""
    return grown_from(split)[0]


class _Recorded(Struct, frozen=True):
    """The shards that plans, journal, manifest and an unfinished replacement record."""

    layout: Layout
    journal: Journal
    manifest: Manifest | None
    planned: Mapping[str, str]
    planned_splits: frozenset[str]
    all_planned_splits: frozenset[str]
    planned_on_disk: Mapping[str, str]
    pending: frozenset[str]
    foreign_splits: frozenset[str]

    @classmethod
    def gather(
        cls, records: SetRecords, plan: Plan, plan_on_disk: Plan | None, journal: Journal
    ) -> _Recorded:
        """Read them; raises UsageError if another set has a split of the plan."""
        layout = records.layout
        foreign_splits = records.foreign_splits
        prefix = ""
        if plan.dataset.kind == RECIPE:
            prefix = "give this set another output_file_prefix in its recipe, or "
        for split in plan.totals.keys() & foreign_splits.keys():
            raise UsageError(
                f"another set in {layout.output_dir} has {split} shards too",
                f"its plan and manifest are in {foreign_splits[split].state_dir}",
                f"{prefix}choose another folder with --output",
            )
        pending = frozenset[str]()
        replacement = Replacement.find(layout, plan_on_disk) if plan_on_disk else None
        if replacement is not None and plan_on_disk is not None:
            pending = frozenset(replacement.remaining(layout, plan_on_disk))
        return cls(
            layout=layout,
            journal=journal,
            manifest=records.usable_manifest,
            planned=plan.fingerprints_by_name(),
            planned_splits=frozenset(map(_base_split, plan.totals)),
            all_planned_splits=frozenset(plan.totals).union(
                plan_on_disk.totals if plan_on_disk else ()
            ),
            planned_on_disk=plan_on_disk.fingerprints_by_name() if plan_on_disk else {},
            pending=pending,
            foreign_splits=frozenset(foreign_splits),
        )

    def is_recorded(self, name: str) -> bool:
        """Whether a shard is known to be of a set that was made here."""
        is_known = name in self.planned_on_disk or name in self.pending
        return is_known or self._recorded_fingerprint(name) is not None

    def is_replaced(self, name: str) -> bool:
        """Whether a recorded shard is not as planned now."""
        if name in self.pending:
            return True
        fingerprint = self._recorded_fingerprint(name)
        if fingerprint is None:  # a killed run left it: it is made again in its place, if planned
            return name in self.planned_on_disk and name not in self.planned
        return fingerprint != self.planned.get(name)

    def is_foreign(self, name: str) -> bool:
        """Whether another program made a shard.

        A crash leaves an index without an entry: that shard is made again.
        """
        return name not in self.planned or not self.layout.index_path(name).exists()

    def _recorded_fingerprint(self, name: str) -> str | None:
        info = self.journal.get(name)
        if info is None and self.manifest is not None:
            info = self.manifest.shards.get(name)
        return info.fingerprint if info else None


def _of_another_set(layout: Layout, plan: Plan, split: str) -> UsageError:
    """The error for finished shards of a split that is not planned."""
    shards = f"{layout.output_dir} holds finished {split} shards"
    if plan.dataset.kind == RECIPE:
        return UsageError(
            f"{shards}, which this recipe does not make",
            f"expected only shards of {', '.join(plan.totals)}",
            f"for another set, give it its own prefix in the recipe: output_file_prefix: "
            f"{plan.dataset.name}; or choose another folder with --output",
        )
    return UsageError(
        f"{shards}, but their raw data is missing",
        f"expected the {split} images in {layout.raw_dir} too",
        "put their archive or folder back, or choose another folder with --output",
    )


def _split_without_boxes(
    recorded_set: Manifest | Plan | None, plan: Plan, changes: Sequence[str]
) -> str:
    """The first split whose finished shards have boxes, and whose file of boxes is gone; or "".

    --overwrite would lose the boxes. Boxes alone don't make other images those of the shards.
    """
    if recorded_set is None or plan.dataset.kind != ILSVRC2012:
        return ""
    if _has_other_images(plan, changes):
        return ""
    for split, totals in plan.totals.items():
        if any(change.startswith(f"{split}_boxes") for change in changes):
            continue  # an option decides about its boxes
        recorded_totals = recorded_set.totals.get(split)
        had_boxes = recorded_totals is not None and recorded_totals.boxes > 0
        if had_boxes and totals.boxes == 0:
            return split
    return ""


def _has_other_images(plan: Plan, changes: Sequence[str]) -> bool:
    """Whether the images themselves are among the differences to the recorded set."""
    starts = tuple(map(changed_images, plan.totals))
    return any(change.startswith(starts) for change in changes)


_IS_OPTION = re.compile(r"(--|number of \S+ shards \()")
"""The beginning of a difference that an option of convert, or a key of a recipe, makes."""


def _in_words(changes: Sequence[str]) -> str:
    """The differences to the recorded set; none if it is unknown."""
    if not changes:
        return "an input or an option changed since then"
    return f"changed since then: {', '.join(changes)}"
