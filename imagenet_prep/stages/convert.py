"""Converts images to shards: catalog, canonical order, plan, workers, journal, manifest."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.copies import (
    join_copies,
    samples_by_shard,
    were_copies,
    with_samples,
    without_damaged,
)
from imagenet_prep.datasets.dataset import Dataset
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.identity import find_changed
from imagenet_prep.datasets.planned_set import PlannedSet, PlannedSplit, plan_name
from imagenet_prep.datasets.stored_plan import plan_of, read_planned
from imagenet_prep.errors import OtherCopyError, UsageError, WriteError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
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
from imagenet_prep.shards.convert_summary import ConvertSummary, refusal_of, summary_of
from imagenet_prep.shards.done_shards import DoneShards
from imagenet_prep.shards.existing import ExistingShards
from imagenet_prep.shards.finishing import find_lost, finish_set, refuse_superseded
from imagenet_prep.shards.plan_claim import PlanClaim
from imagenet_prep.shards.run import Made, make_shards, prepare_tasks
from imagenet_prep.shards.share import Share
from imagenet_prep.shards.superseded import freed_space, remove_superseded
from imagenet_prep.shards.unfinished import remove_unfinished, run_name, unfinished_of
from imagenet_prep.shards.work import Work, count_images, lay_out
from imagenet_prep.sources.saved_catalog import PackedCatalog
from imagenet_prep.state.indexes import settle
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import RECIPE
from imagenet_prep.state.plan_file import Plan, load_plan
from imagenet_prep.state.replacement import (
    Replacement,
    next_generation,
)
from imagenet_prep.state.set_state import SetState, merge_command
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import remembering
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.refusals import writing
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
        what = f"{share}: the raw data of several ranks can't give its space to shards"
        raise UsageError(what, "expected --consume without --rank", "use only one of them")
    with contextlib.nullcontext() if share else hold(layout.lock_paths):
        planned = _Conversion.plan_set(layout, engine, options, dataset, share, progress).joined()
        part = f"{share.name}-{run_name()}" if share else ""
        with Journal(layout.journal_path, part) as journal:
            conversion = planned.compare(journal)
            shards, problems = conversion.make(journal)
            if share is None:
                lost_shards, more_problems = conversion.make_lost(journal)
                shards += lost_shards
                problems += more_problems
            conversion.finish(journal)
        if not shards:
            _note_check(conversion, progress)
        if share:
            progress.note(
                Hint(f"{share} is done; when all ranks are, run: ", merge_command(layout))
            )
        elif options.consume:
            finish_consuming(conversion.splits, layout)
        splits = tuple(summary_of(split, shards, journal) for split in conversion.splits)
        for split in () if share else splits:
            progress.note(f"{split.split}: Finished writing all {split.images} images in data set.")
        named_in = None if share else layout.damaged_images_path
        return ConvertSummary(splits, tuple(problems), conversion.planned.notes, named_in)


def _note_check(conversion: _Conversion, progress: Progress) -> None:
    """Say that shards which were done before are kept,
    if the user asks for a check of all pixels.
    """
    is_strict = any(split.recorder.check == "strict" for split in conversion.splits)
    check = "strict" if is_strict else conversion.options.check
    if check in ("strict", "decode"):
        decode = command("verify", conversion.layout.data_dir, (("depth", "decode"),))
        progress.note(
            f"every shard was done before and is kept: check {check} decides only about shards "
            "that are made"
        )
        progress.note(Hint("to decode all images: ", decode))


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
    return tuple(conversion.needs(works))


class _Conversion(Struct, frozen=True):
    """A set to make: ``plan`` is ``before``, the plan on the disk, if nothing had to be listed
    again.

    ``splits`` hold only the shards for this call; ``packed`` is the saved part of a new plan, by
    split. ``replacement`` lists the shards of an older set that give way.
    """

    layout: Layout
    engine: Engine
    options: MakingOptions
    share: Share | None
    progress: Progress
    planned: PlannedSet
    plan: Plan
    before: Plan | None
    splits: Sequence[PlannedSplit]
    packed: Mapping[str, PackedCatalog]
    done: DoneShards
    replacement: Replacement | None = None

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
        refuse_other_set(layout, dataset)
        before = load_plan(layout)
        if before is None and layout.plan_path.is_file():
            progress.note(f"warning: {layout.plan_path} is damaged: the raw data is listed again")
        with remembering(layout.raw_dir):
            kept = _read_again(before, layout, options, dataset, share, progress)
            planned = kept or dataset.plan(layout, engine, options, progress)
        splits = planned.splits
        packed: dict[str, PackedCatalog] = {}
        if kept is not None and before is not None:
            plan = before
        else:
            for split in planned.splits:
                packed[split.catalog.split] = PackedCatalog.pack(split.catalog)
            plan = plan_of(planned, layout, before, packed)
            if share:
                splits = share.of_splits(planned.splits)
        refuse_lost(before, planned.splits, layout)
        if options.consume:
            check_consumable(planned.splits, layout)
        for note in planned.notes:
            progress.note(note)
        return cls(
            layout=layout,
            engine=engine,
            options=options,
            share=share,
            progress=progress,
            planned=planned,
            plan=plan,
            before=before,
            splits=splits,
            packed=packed,
            done=DoneShards(layout, options.on_damaged),
        )

    # existing shards ------------------------------------------------------------------------------

    def joined(self) -> _Conversion:
        """The conversion; after the plan that another rank has claimed since,
        if it is of the same shards.
        """
        if self.share is None or self.plan is self.before:
            return self
        claimed = load_plan(self.layout)
        if claimed is None or claimed.fingerprints != self.plan.fingerprints:
            return self
        return replace(self, before=claimed)

    def compare(self, journal: Journal) -> _Conversion:
        """The conversion, with the shards that it replaces and its generation; the journal forgets
        changed shards.

        Raises:
            UsageError: shards exist that were made differently, or shards of another set.
            InputError: the raw data of a shard to make is gone.
        """
        layout, before = self.layout, self.before
        changed = self._find_changed(journal)
        existing = ExistingShards.find(layout, self.plan, before, journal, changed, KNOWN_SPLITS)
        is_resumed = before is not None and before.fingerprints == self.plan.fingerprints
        pending = Replacement.find(layout, before) if before and is_resumed else None
        overwrite = self.options.overwrite or pending is not None
        if existing.foreign:  # another rank may have claimed the folder since, and made them
            self._claim.check()
        existing.refuse_foreign(layout, self.plan, overwrite=overwrite)
        if not overwrite:
            existing.refuse_replaced(layout, self.plan, changed)
        replaced = existing.replaced if overwrite else ()
        journal.forget({*changed, *replaced})
        generation = before.generation if before else ""
        replacement: Replacement | None = None
        # A killed run or another rank may have listed the replaced shards.
        if pending is not None and pending.shards.keys() >= set(replaced):
            replacement = pending
        elif replaced:
            generation = next_generation(before, self.plan)
            replacement = Replacement.plan(layout, replaced)
        elif self.options.overwrite and before is not None and not self.plan.extends(before):
            generation = next_generation(before, self.plan)  # another rank has removed them all
        plan = replace(self.plan, generation=generation)
        return replace(self, plan=plan, replacement=replacement)

    def _find_changed(self, journal: Journal) -> Mapping[str, str]:
        """The finished shards that the plan would not make, each with the evidence;
        see datasets.identity.
        """
        layout, splits = self.layout, self.planned.splits
        settle(layout, journal, set().union(*self.plan.fingerprints.values()))
        changed: dict[str, str] = {}
        if self.plan is self.before:
            for name, fingerprint in self.plan.fingerprints_by_name().items():
                info = journal.get(name)
                if info is not None and info.fingerprint != fingerprint:
                    changed[name] = ""
        else:
            may_be_copy = self.share is not None or bool(self.before and were_copies(self.before))
            changed = find_changed(
                splits, self.before, layout, journal, self.engine, may_be_copy=may_be_copy
            )
        gone = [split for split in splits if is_gone(split)]
        waiting = {*map(plan_name, self.done.list_unfinished(gone, journal)), *changed}
        refuse_gone(splits, waiting, layout, consume=self.options.consume)
        return changed

    # the work -------------------------------------------------------------------------------------

    def list_unfinished(self, journal: Journal) -> list[ShardPlan]:
        """The unfinished shards of this call."""
        return self.done.list_unfinished(self.splits, journal)

    def needs(self, works: Sequence[Work]) -> list[Need]:
        """The disk space that the works require."""
        if self.options.consume:
            return consuming_needs(works, self.layout, self.engine.workers)
        return [need for work in works for need in work.needs(self.layout)]

    @property
    def _may_consume(self) -> bool:
        """Whether the raw data could give its space to the shards, once its digests are known."""
        entry, options, layout = self.plan.dataset, self.options, self.layout
        if self.share or options.consume or options.overwrite:
            return False
        if entry.kind == RECIPE or entry.classes:
            return False
        if SetState.read(layout).kind == "finished":
            return False
        return is_consumable(self.planned.splits, layout)

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
        refuse_lack([*self.needs(works), *freed], may_consume=self._may_consume)
        self._claim.check()
        name = run_name()
        if self.share:
            name = f"rank-{plan.key}-{name}"
        with unfinished_of(layout, name) as run_layout:
            samples = samples_by_shard(self._save_plan(todo))
            if self.share is None or self.replacement:
                remove_unfinished(layout, plan.key, run_layout.run)
            self._claim.check()
            remove_superseded(self.replacement, plan, layout, is_locked=self.share is None)
            if self.share:
                save_bytes(layout.rank_path(journal.part), b"")
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
        for error in made.failures:
            if isinstance(error, OtherCopyError):
                self._remove_made(made)
                raise error
        if made.failures:
            raise made.failures[0]
        problems = [problem for outcome in made.outcomes for problem in outcome.problems]
        refused_shards = sum(outcome.info is None for outcome in made.outcomes)
        if refused_shards:
            self._forget_samples({problem.subject for problem in problems})
            raise refusal_of(problems, refused_shards, self.progress)
        return problems

    def _forget_samples(self, damaged: Collection[str]) -> None:
        """Let sound images take the place of damaged ones that were sampled."""
        claimed = self._claim.check()
        if claimed is not None and claimed.samples:
            plan = without_damaged(claimed, self.splits, damaged)
            save_bytes(self.layout.plan_path, plan.encode())

    def _remove_made(self, made: Made) -> None:
        """Remove the shards that this run made from a wrong copy: not every image is sampled."""
        for outcome in made.outcomes:
            if outcome.info is not None:
                self.layout.shard_path(outcome.info.name).unlink(missing_ok=True)

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
        self.progress.note(f"{count} vanished or changed since: made again, {lost[0]} first")
        journal.forget(lost)
        for name in lost:
            self.done.seen.pop(name, None)
        before = self._claim.check() or self.plan
        todo, problems = replace(self, replacement=None, before=before).make(journal)
        lost = find_lost(self.plan, self.layout, journal, self.done.seen)
        if lost:
            count = number_of(len(lost), "shard")
            raise WriteError(
                f"{count} of {self.layout.output_dir} vanished twice, {lost[0]} first",
                "expected that nothing else writes there",
                "find out what removes or changes them, then run the same command again",
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
            before=self.before,
            overwrites=self.options.overwrite,
            is_rank=self.share is not None,
        )

    def _save_plan(self, todo: Sequence[ShardPlan]) -> Plan:
        """Make rows, the list of replaced shards and the plan durable, in this order.

        Returns the plan that claims the folder.
        """
        plan, layout = self.plan, self.layout
        for packed in self.packed.values():
            packed.save(layout.plan_path.with_name(packed.name))
        # If it is claimed, another rank has listed the replaced shards, or removed them.
        if not self._claim.check() and self.replacement is not None:
            self.replacement.claim(layout, plan.generation)
        self._claim.save(functools.partial(self._with_samples, todo))
        claimed = self._claim.check()
        for path, lines in self.planned.lists.items():
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                save_bytes(path, lines)
        return claimed or self.plan

    def _with_samples(self, todo: Sequence[ShardPlan], before: Plan | None) -> Plan:
        """The plan, with the samples of the copy that was first; see datasets.copies."""
        if not self.packed:  # nothing was listed: the plan is the one on the disk
            return self.plan
        if before is not None and self.options.overwrite and self.share is None:
            before = replace(before, samples={})  # the images of this run are the right ones
        present: list[PlannedSplit] = []
        if todo:
            present = [split for split in self.planned.splits if not is_gone(split)]
        plan = join_copies(self.plan, before, present)
        has_machines = self.share is not None or getattr(self.engine, "has_machines", False)
        return with_samples(plan, present) if has_machines else plan


def _read_again(
    before: Plan | None,
    layout: Layout,
    options: MakingOptions,
    dataset: Dataset,
    share: Share | None,
    progress: Progress,
) -> PlannedSet | None:
    """The set as planned before, if settings and raw data are unchanged; for a rank, only its
    shards.

    A rank does not check separate image files: it reads images that another rank listed.
    """
    if before is None or options.consume:
        return None
    asked = dataset.ask(layout, options)
    if asked is None or before.asked != {"options": asked.options, "raw": asked.raw}:
        return None
    names = set(share.of(before.fingerprints_by_name())) if share else None
    return read_planned(before, layout, asked, names, progress)
