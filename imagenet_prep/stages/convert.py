"""Converts images to shards: catalog, canonical order, plan, workers, journal, manifest."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.copies import samples_by_shard, were_copies
from imagenet_prep.datasets.dataset import Dataset
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.identity import find_changed
from imagenet_prep.datasets.kept_notes import note_of_call
from imagenet_prep.datasets.planned_set import PlannedSet, PlannedSplit, plan_name
from imagenet_prep.datasets.stored_plan import plan_again, plan_of, warn_of_listing
from imagenet_prep.errors import OtherCopyError, UsageError, WriteError
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012.planned_boxes import commands_for_boxes
from imagenet_prep.model import Engine, Problem, Progress, ShardPlan, Silent
from imagenet_prep.registry import ILSVRC2012, KNOWN_SPLITS, refuse_images, refuse_other_set
from imagenet_prep.shards.consumable import (
    check_consumable,
    is_consumable,
    is_gone,
    refuse_gone,
    refuse_lost,
)
from imagenet_prep.shards.consuming import begin_consuming, consuming_needs, finish_consuming
from imagenet_prep.shards.convert_summary import (
    ConvertSummary,
    notes_on_check,
    refusal_of,
    summary_of,
)
from imagenet_prep.shards.done_shards import DoneShards
from imagenet_prep.shards.existing import ExistingShards
from imagenet_prep.shards.finishing import find_lost, finish_set, refuse_superseded
from imagenet_prep.shards.plan_claim import PlanClaim
from imagenet_prep.shards.plan_saving import PlanSaving, forget_samples
from imagenet_prep.shards.run import Made, make_shards, prepare_tasks
from imagenet_prep.shards.share import Share
from imagenet_prep.shards.superseded import freed_space, remove_superseded
from imagenet_prep.shards.unfinished import remove_unfinished, run_name, unfinished_of
from imagenet_prep.shards.unproven import UnprovenShards
from imagenet_prep.shards.work import Work, count_images, lay_out
from imagenet_prep.sources.saved_catalog import PackedCatalog
from imagenet_prep.state.indexes import settle
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import RECIPE
from imagenet_prep.state.plan_file import Plan, load_plan
from imagenet_prep.state.replacement import Replacement, next_generation
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import SetState, merge_command
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import remembering
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.space import Need, refuse_lack
from imagenet_prep.text import number_of


def convert(
    layout: Layout,
    engine: Engine,
    options: MakingOptions | None = None,
    *,
    dataset: Dataset = ILSVRC2012,
    share: Share | None = None,
    progress: Progress | None = None,
) -> ConvertSummary:
    """Write every unfinished shard of a data set, and the manifest.

    With a ``share``, only its shards are written, without a lock and with its own journal;
    ``merge`` ends the set.

    Raises:
        IncompleteError, InputError: images are missing, or an archive or the boxes file is corrupt.
        UsageError: shards exist that a recipe, other settings or another tool made; see
            ``overwrite``.
        DataProblemsError: some images are bad; every shard without a bad image is done.
    """
    progress, options = progress or Silent(), options or dataset.options
    layout = replace(layout, set_name=dataset.set_name)
    if share and options.consume:
        raise UsageError(
            f"--consume can't be used by {share}: other ranks may still read the raw data",
            "expected --consume or --rank, not both",
            "leave out one of the two",
        )
    lock = hold(layout.lock_paths, instead=layout.advice_if_read_only)
    with contextlib.nullcontext() if share else lock:
        planned = _Conversion.plan_set(layout, engine, options, dataset, share, progress)
        planned = planned.joined()
        part = f"{share.name}-{run_name()}" if share else ""
        with Journal(layout.journal_path, part) as journal:
            conversion = planned.compare(journal)
            shards, problems = conversion.make(journal)
            if share is None:
                lost_shards, problems_of_lost = conversion.make_lost(journal)
                shards += lost_shards
                problems += problems_of_lost
            conversion.finish(journal)
        return conversion.summarize(shards, problems, journal)


def foresee(
    layout: Layout,
    engine: Engine,
    options: MakingOptions | None = None,
    *,
    dataset: Dataset = ILSVRC2012,
    share: Share | None = None,
    progress: Progress | None = None,
) -> tuple[Need, ...]:
    """Estimate the disk space that unfinished shards require; the images are listed, and nothing is
    written.

    Raises:
        IncompleteError, InputError, UsageError: as ``convert``, if the data set is not as expected.
    """
    progress, options = progress or Silent(), options or dataset.options
    layout = replace(layout, set_name=dataset.set_name)
    planned = _Conversion.plan_set(layout, engine, options, dataset, share, progress)
    with Journal(layout.journal_path) as journal:
        conversion = planned.compare(journal)
        shards = conversion.list_unfinished(journal)
    works = lay_out(conversion.splits, shards, layout, options)
    needs = conversion.needs(works)
    return tuple(needs)


class _Conversion(Struct, frozen=True):
    """A set to make: ``plan`` is ``plan_on_disk`` if nothing had to be listed
    again.

    ``splits`` hold only the shards for this call; ``packed`` is the saved part of a new plan, by
    split. ``replacement`` lists the shards of an older set that give way. ``is_again`` says that
    this call made the shards before.
    """

    records: SetRecords
    engine: Engine
    options: MakingOptions
    share: Share | None
    progress: Progress
    planned: PlannedSet
    plan: Plan
    plan_on_disk: Plan | None
    splits: Sequence[PlannedSplit]
    packed: Mapping[str, PackedCatalog]
    done: DoneShards
    replacement: Replacement | None = None
    is_again: bool = False

    @property
    def layout(self) -> Layout:
        """The folder, and which of its sets."""
        return self.records.layout

    @classmethod
    def plan_set(
        cls,
        layout: Layout,
        engine: Engine,
        options: MakingOptions,
        dataset: Dataset,
        share: Share | None,
        progress: Progress,
    ) -> _Conversion:
        """Plan a data set that belongs in this folder, and check that it can be consumed;
        shows its notes.
        """
        records = SetRecords(layout)
        refuse_other_set(records, dataset)
        plan_on_disk = records.plan
        if plan_on_disk is None and layout.plan_path.is_file():
            warn_of_listing(f"{layout.plan_path} can't be understood", progress)
        with remembering(layout.raw_dir):
            planned_again = _plan_again(records, dataset, options, share, progress)
            planned = planned_again or dataset.plan(records, engine, options, progress)
        splits = planned.splits
        packed: dict[str, PackedCatalog] = {}
        plan = plan_on_disk
        if plan is None or planned_again is None:
            for split in splits:
                catalog = split.catalog
                packed[catalog.split] = PackedCatalog.pack(catalog)
            plan = plan_of(planned, layout, plan_on_disk, packed)
            if share:
                splits = share.of_splits(splits)
        refuse_lost(plan_on_disk, planned.splits, layout)
        if options.consume:
            check_consumable(planned.splits, layout)
        notes = tuple(note_of_call(note, layout) for note in planned.notes)
        for note in notes:
            progress.note(note)
        planned = replace(planned, notes=notes)
        return cls(
            records=records,
            engine=engine,
            options=options,
            share=share,
            progress=progress,
            planned=planned,
            plan=plan,
            plan_on_disk=plan_on_disk,
            splits=splits,
            packed=packed,
            done=DoneShards(layout, options.on_damaged),
        )

    # existing shards ------------------------------------------------------------------------------

    def joined(self) -> _Conversion:
        """The conversion; after the plan that another rank has claimed since,
        if it is of the same shards.
        """
        if self.share is None or self.plan is self.plan_on_disk:
            return self
        claimed = load_plan(self.layout)
        if claimed is None or claimed.fingerprints != self.plan.fingerprints:
            return self
        return replace(self, plan_on_disk=claimed)

    def compare(self, journal: Journal) -> _Conversion:
        """The conversion, with the shards that it replaces and its generation; the journal forgets
        changed shards.

        Raises:
            UsageError: shards exist that were made differently, or shards of another set.
            InputError: the raw data of a shard to make is gone.
        """
        layout, plan_on_disk = self.layout, self.plan_on_disk
        changed = self._find_changed(journal)
        records = SetRecords(layout)  # ranks may have changed them while the images were listed
        existing = ExistingShards.find(
            records, self.plan, plan_on_disk, journal, changed, KNOWN_SPLITS
        )
        pending = Replacement.pending(layout, plan_on_disk, self.plan)
        overwrites = self.options.overwrite or pending is not None
        if existing.foreign:  # another rank may have claimed the folder since, and made them
            self._claim.check()
        existing.refuse_foreign(layout, self.plan, overwrite=overwrites)
        if not overwrites:
            existing.refuse_replaced(records, self.plan, changed, commands_for_boxes)
        replaced = existing.replaced if overwrites else ()
        journal.forget({*changed, *replaced})
        replacement = Replacement.plan_or_continue(layout, replaced, pending)
        generation = plan_on_disk.generation if plan_on_disk else ""
        if self._starts_generation(replacement, pending):
            generation = next_generation(plan_on_disk, self.plan)
        plan = replace(self.plan, generation=generation)
        return replace(self, records=records, plan=plan, replacement=replacement)

    def _starts_generation(
        self, replacement: Replacement | None, pending: Replacement | None
    ) -> bool:
        """Whether the plan starts a new generation: it replaces shards of another plan."""
        if replacement is not None:
            return replacement is not pending
        if not self.options.overwrite or self.plan_on_disk is None:
            return False
        return not self.plan.extends(self.plan_on_disk)  # another rank has removed its shards

    def _find_changed(self, journal: Journal) -> Mapping[str, str]:
        """The finished shards that the plan would not make, each with the evidence;
        see datasets.identity.
        """
        layout, splits = self.layout, self.planned.splits
        plan_on_disk = self.plan_on_disk
        fingerprints = set().union(*self.plan.fingerprints.values())
        settle(layout, journal, fingerprints)
        changed: dict[str, str] = {}
        if self.plan is plan_on_disk:
            for name, fingerprint in self.plan.fingerprints_by_name().items():
                info = journal.get(name)
                if info is not None and info.fingerprint != fingerprint:
                    changed[name] = ""
        else:
            is_rank = self.share is not None
            may_be_copy = is_rank or bool(plan_on_disk and were_copies(plan_on_disk))
            changed = find_changed(
                splits, plan_on_disk, layout, journal, self.engine, may_be_copy=may_be_copy
            )
        gone_splits = [split for split in splits if is_gone(split)]
        unfinished_shards = self.done.list_unfinished(gone_splits, journal)
        waiting = {*map(plan_name, unfinished_shards), *changed}
        refuse_gone(splits, waiting, layout, consume=self.options.consume)
        return changed

    # the work -------------------------------------------------------------------------------------

    def list_unfinished(self, journal: Journal) -> list[ShardPlan]:
        """The unfinished shards of this call.

        Raises:
            UsageError: a file in the place of one is a shard of another set.
        """
        unfinished_shards = self.done.list_unfinished(self.splits, journal)
        if not (self.options.overwrite or self.replacement or self.is_again):
            reads_images = not self.options.consume and not any(map(is_gone, self.splits))
            own = UnprovenShards(self.records, self.plan_on_disk, journal, reads_images)
            own.refuse(self.splits, unfinished_shards, is_rank=self.share is not None)
        return unfinished_shards

    def needs(self, works: Sequence[Work]) -> list[Need]:
        """The disk space that the works require."""
        if self.options.consume:
            return consuming_needs(works, self.layout, self.engine.workers)
        needs: list[Need] = []
        for work in works:
            needs += work.needs(self.layout)
        return needs

    def _consuming_needs(self, works: Sequence[Work]) -> list[Need] | None:
        """The disk space if the raw data gives its own to the shards; None if it can't, whether or
        not its digests are known.
        """
        entry, options, layout = self.plan.dataset, self.options, self.layout
        if self.share or options.consume or options.overwrite:
            return None
        if entry.kind == RECIPE or entry.classes:
            return None
        if SetState.judge(self.records).kind == "finished":
            return None
        if not is_consumable(self.planned.splits, layout):
            return None
        return consuming_needs(works, layout, self.engine.workers)

    def make(self, journal: Journal) -> tuple[list[ShardPlan], list[Problem]]:
        """Save the plan, remove what it replaces, and make the unfinished shards.

        Returns them, and the images set aside. Whatever refuses the conversion comes before the
        first write.

        Raises:
            Exception: the error of the first shard that could not be made, after all others are
                done.
        """
        layout, plan, options = self.layout, self.plan, self.options
        todo = self.list_unfinished(journal)
        works = lay_out(self.splits, todo, layout, options)
        freed = freed_space(self.replacement, plan, layout, self.progress)
        needs = [*self.needs(works), *freed]
        refuse_lack(needs, consuming=self._consuming_needs(works))
        self._claim.check()
        name = run_name()
        if self.share:
            name = f"rank-{plan.key}-{name}"
        with unfinished_of(layout, name) as run_layout:
            saved_samples = self._saving.save(todo, run_layout.partial_dir)
            samples = samples_by_shard(saved_samples)
            if self.share is None or self.replacement:
                remove_unfinished(layout, plan.key, run_layout.run)
            self._claim.check()
            remove_superseded(self.replacement, plan, layout, is_locked=self.share is None)
            if self.share:
                rank_path = layout.rank_path(journal.part)
                save_bytes(rank_path, b"")
            if options.consume:
                works = begin_consuming(works, layout, self.progress)
            is_rank = self.share is not None
            tasks = prepare_tasks(works, run_layout, options, self.progress, syncs=is_rank)
            tasks = (replace(task, sample=samples.get(task.name, {})) for task in tasks)
            shards = [shard for split in self.splits for shard in split.plans]
            total = sum(map(count_images, shards))
            done = total - sum(map(count_images, todo))
            self.progress.begin("convert", total, "images", done=done)
            made = make_shards(tasks, run_layout, self.engine, journal, self.progress)
        self.progress.end()
        return todo, self._accept(made)

    def _accept(self, made: Made) -> list[Problem]:
        """The images that were set aside.

        Raises:
            Exception: the error of the first shard that could not be made.
        """
        for outcome in made.outcomes:
            if outcome.info is not None and outcome.identity is not None:
                self.done.seen[outcome.info.name] = outcome.identity
        self._raise_failures(made)
        problems: list[Problem] = []
        refused_shards = 0
        for outcome in made.outcomes:
            problems += outcome.problems
            refused_shards += outcome.info is None
        if refused_shards:
            damaged = {problem.subject for problem in problems}
            forget_samples(self._claim, self.splits, damaged)
            raise refusal_of(problems, refused_shards, self.progress)
        return problems

    def _raise_failures(self, made: Made) -> None:
        """Raise the error of a wrong copy, or the first error; of a wrong copy, the shards that
        this run made are removed: not every image is sampled.
        """
        for error in made.failures:
            if isinstance(error, OtherCopyError):
                self._remove_made(made)
                raise error
        if made.failures:
            raise made.failures[0]

    def _remove_made(self, made: Made) -> None:
        for outcome in made.outcomes:
            if outcome.info is not None:
                path = self.layout.shard_path(outcome.info.name)
                path.unlink(missing_ok=True)

    def make_lost(self, journal: Journal) -> tuple[list[ShardPlan], list[Problem]]:
        """Look at every shard once more, and make those again that vanished or changed during the
        conversion.

        Raises:
            WriteError: some are gone again.
        """
        lost = find_lost(self.plan, self.layout, journal, self.done.seen)
        if not lost:
            return [], []
        count = number_of(len(lost), "shard")
        pronoun = "it" if len(lost) == 1 else "them"
        self.progress.note(
            f"{count} vanished or changed during the conversion, {lost[0]} first: "
            f"making {pronoun} again"
        )
        journal.forget(lost)
        for name in lost:
            self.done.seen.pop(name, None)
        plan_on_disk = self._claim.check() or self.plan
        again = replace(self, replacement=None, plan_on_disk=plan_on_disk, is_again=True)
        todo, problems = again.make(journal)
        lost = find_lost(self.plan, self.layout, journal, self.done.seen)
        if lost:
            count = number_of(len(lost), "shard")
            raise WriteError(
                f"{count} of {self.layout.output_dir} vanished or changed again, {lost[0]} first",
                "expected that only this command writes in this folder",
                "find out which program removes or changes shards, then run the same command again",
            )
        return todo, problems

    def finish(self, journal: Journal) -> None:
        """Write the manifest; ``merge`` does it for ranks."""
        if self.share is None:
            finish_set(self.plan, self.layout, journal, refuse_images)
        else:
            refuse_superseded(self.plan, self.layout)

    # the plan on the disk -------------------------------------------------------------------------

    @property
    def _claim(self) -> PlanClaim:
        """The claim of its plan to the folder."""
        return PlanClaim(
            layout=self.layout,
            plan=self.plan,
            plan_on_disk=self.plan_on_disk,
            overwrites=self.options.overwrite,
            is_rank=self.share is not None,
        )

    @property
    def _saving(self) -> PlanSaving:
        """The plan with what must be durable before it."""
        is_rank = self.share is not None
        has_machines = is_rank or getattr(self.engine, "has_machines", False)
        return PlanSaving(self._claim, self.planned, self.packed, self.replacement, has_machines)

    # the result -----------------------------------------------------------------------------------

    def summarize(
        self, shards: Sequence[ShardPlan], problems: Sequence[Problem], journal: Journal
    ) -> ConvertSummary:
        """The summary of a conversion that made these shards; consumed raw data is removed."""
        layout, progress = self.layout, self.progress
        if not shards and self.share is None:  # verify requires the merged set
            for note in notes_on_check(self.options.check, self.splits, layout):
                progress.note(note)
        if self.share:
            merging = merge_command(layout)
            progress.note(Hint(f"{self.share} is done; when all ranks are done, run: ", merging))
        elif self.options.consume:
            finish_consuming(self.splits, layout)
        splits = tuple(summary_of(split, shards, journal) for split in self.splits)
        notes = self.planned.notes
        if self.share:
            return ConvertSummary(splits, tuple(problems), notes)
        for split in splits:
            progress.note(split.conclusion)
        return ConvertSummary(splits, tuple(problems), notes, layout.damaged_images_path)


def _plan_again(
    records: SetRecords,
    dataset: Dataset,
    options: MakingOptions,
    share: Share | None,
    progress: Progress,
) -> PlannedSet | None:
    """The set as planned before, without a new listing, if that is possible; for a rank, only its
    shards.
    """
    if records.plan is None or options.consume:
        return None
    names: set[str] | None = None
    if share is not None:
        names = set(share.of(records.plan.fingerprints_by_name()))
    return plan_again(records, dataset, options, names, progress)
