"""Converts images to shards: catalog, canonical order, plan, workers, journal, manifest."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.dataset import Dataset
from imagenet_prep.datasets.copies import (
    join_copies,
    samples_by_shard,
    were_copies,
    with_samples,
    without_damaged,
)
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.identity import find_changed
from imagenet_prep.datasets.plan import (
    PlannedSet,
    PlannedSplit,
    differences,
    plan_name,
    plan_of,
    read_planned,
)
from imagenet_prep.errors import OtherCopyError, UsageError, WriteError
from imagenet_prep.escaping import command
from imagenet_prep.model import Engine, Problem, Progress, ShardInfo, ShardPlan, Silent
from imagenet_prep.registry import ILSVRC2012, KNOWN_SPLITS, refuse_images, refuse_other_set
from imagenet_prep.shards.consumption import (
    begin_consuming,
    check_consumable,
    consuming_needs,
    finish_consuming,
    is_consumable,
    is_gone,
    refuse_gone,
    refuse_lost,
)
from imagenet_prep.shards.existing import ExistingShards, instead
from imagenet_prep.shards.finishing import find_lost, finish_set, refuse_superseded
from imagenet_prep.shards.run import (
    ConvertSummary,
    Made,
    Work,
    count_images,
    lay_out,
    make_shards,
    prepare_tasks,
    refusal_of,
    remove_unfinished,
    run_name,
    summary_of,
    unfinished_of,
)
from imagenet_prep.shards.share import Share
from imagenet_prep.sources.saved_catalog import PackedCatalog
from imagenet_prep.state.damaged_images import remove_damaged_images
from imagenet_prep.state.indexes import is_indexed, settle
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import RECIPE, usable_manifest
from imagenet_prep.state.plan_file import Plan, decode_plan, load_plan
from imagenet_prep.state.replacement import (
    Identity,
    Replacement,
    identity_of,
    next_generation,
    remove_other_lists,
)
from imagenet_prep.state.set_state import SetState, merge_command
from imagenet_prep.storage.files import claim, save_bytes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_or_none, open_store, remembering
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.space import Need, refuse_lack
from imagenet_prep.text import number_of, size_text


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
        ``overwrite``. DataProblemsError: some images are bad; every shard without a bad image is
        done.
    """
    progress, options = progress or Silent(), options or dataset.options
    layout = replace(layout, set_name=dataset.set_name)
    if share and options.consume:
        what = f"{share}: the raw data of several ranks can't give its space to shards"
        raise UsageError(what, "expected --consume without --rank", "use only one of them")
    with contextlib.nullcontext() if share else hold(layout.lock_paths):
        planned = _Conversion.find(layout, engine, options, dataset, share, progress).joined()
        with Journal(layout.journal_path, f"{share.name}-{run_name()}" if share else "") as journal:
            work = planned.compare(journal)
            todo, problems = work.make(journal)
            if share is None:
                more, more_problems = work.make_lost(journal)
                todo, problems = [*todo, *more], [*problems, *more_problems]
                finish_set(work.plan, layout, journal, refuse_images)
            else:
                refuse_superseded(work.plan, layout)
        summaries = tuple(summary_of(split, todo, journal) for split in work.splits)
        if not todo:
            _note_check(work, progress)
        if share:
            progress.note(f"{share} is done; when all ranks are, run: {merge_command(layout)}")
        elif options.consume:
            finish_consuming(work.splits, layout)
        for each in () if share else summaries:
            progress.note(f"{each.split}: Finished writing all {each.images} images in data set.")
        named_in = None if share else layout.damaged_images_path
        return ConvertSummary(summaries, tuple(problems), work.planned.notes, named_in)


def _note_check(work: _Conversion, progress: Progress) -> None:
    """Say that shards which were done before are kept,
    if the user asks for a check of all pixels.
    """
    is_strict = any(split.recorder.check == "strict" for split in work.splits)
    check = "strict" if is_strict else work.options.check
    if check in ("strict", "decode"):
        decode = command("verify", work.layout.data_dir, (("depth", "decode"),))
        progress.note(
            f"every shard was done before and is kept: check {check} decides only about shards "
            "that are made"
        )
        progress.note(f"to decode all images: {decode}")


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
    planned = _Conversion.find(layout, engine, options, dataset, share, progress)
    with Journal(layout.journal_path) as journal:
        work = planned.compare(journal)
        todo = work.still_to_make(journal)
    return tuple(work.needs(lay_out(work.splits, todo, layout, options)))


class _Conversion(Struct, frozen=True):
    """A set to make: ``plan`` is ``before``, the plan on the disk, if nothing had to be listed
    again.

    ``splits`` hold only the shards for this call; ``packed`` is the saved part of a new plan, by
    split. ``replacement`` lists the shards of an older set that give way. ``seen`` has the identity
    of each shard's file, on a disk, when the shard was found or made as the journal says.
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
    replacement: Replacement | None = None
    seen: dict[str, Identity] = {}

    @classmethod
    def find(
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
            again = _read_again(before, layout, options, dataset, share, progress)
            planned = again or dataset.plan(layout, engine, options, progress)
        if again is not None and before is not None:
            plan, splits, packed = before, planned.splits, {}
        else:
            packed = {
                split.catalog.split: PackedCatalog.pack(split.catalog) for split in planned.splits
            }
            plan = plan_of(planned, layout, before, packed)
            splits = share.of_splits(planned.splits) if share else planned.splits
        refuse_lost(before, planned.splits, layout)
        if options.consume:
            check_consumable(planned.splits, layout)
        for note in planned.notes:
            progress.note(note)
        return cls(layout, engine, options, share, progress, planned, plan, before, splits, packed)

    # existing shards ------------------------------------------------------------------------------

    def joined(self) -> _Conversion:
        """The conversion; after the plan that another rank has claimed since,
        if it is of the same shards.
        """
        claimed = load_plan(self.layout) if self.share and self.plan is not self.before else None
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
            self._check_claim()
        existing.refuse_foreign(layout, self.plan, overwrite=overwrite)
        if not overwrite:
            existing.refuse_replaced(layout, self.plan, changed)
        replaced = existing.replaced if overwrite else ()
        journal.forget({*changed, *replaced})
        generation, replacement = before.generation if before else "", None
        if pending is not None and pending.shards.keys() >= set(
            replaced
        ):  # a killed run or another rank listed them
            replacement = pending
        elif replaced:
            generation, replacement = (
                next_generation(before, self.plan),
                Replacement.plan(layout, replaced),
            )
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
        if self.plan is self.before:
            changed: Mapping[str, str] = {
                name: ""
                for name, fingerprint in self.plan.fingerprints_by_name().items()
                if (info := journal.get(name)) and info.fingerprint != fingerprint
            }
        else:
            may_be_copy = self.share is not None or bool(self.before and were_copies(self.before))
            changed = find_changed(
                splits, self.before, layout, journal, self.engine, may_be_copy=may_be_copy
            )
        gone = [split for split in splits if is_gone(split)]
        waiting = {*map(plan_name, self.still_to_make(journal, gone)), *changed}
        refuse_gone(splits, waiting, layout, consume=self.options.consume)
        return changed

    # the work -------------------------------------------------------------------------------------

    def still_to_make(
        self, journal: Journal, splits: Iterable[PlannedSplit] | None = None
    ) -> list[ShardPlan]:
        """The unfinished shards, of these splits or of this call."""
        found = (
            (plan, split)
            for split in (self.splits if splits is None else splits)
            for plan in split.plans
        )
        return [
            plan
            for plan, split in found
            if not self._is_done(plan, split, journal.get(plan_name(plan)))
        ]

    def _is_done(self, plan: ShardPlan, split: PlannedSplit, info: ShardInfo | None) -> bool:
        """Whether a shard is done: the journal lists it,
        its size is as recorded, and its index agrees.
        """
        if info is None or info.fingerprint != plan.fingerprint:
            return False
        if info.set_aside and self.options.on_damaged == "refuse":
            return False
        if info.warned and split.recorder.check == "strict":
            return False
        if self.layout.shards.size(info.name) != info.size:
            return False
        path = local_or_none(self.layout.shard_path(info.name))
        identity = identity_of(path) if path else None
        left_out = set(info.set_aside)
        names = [
            name
            for name in map(split.catalog.names.__getitem__, split.rows(plan))
            if name not in left_out
        ]
        is_done = is_indexed(self.layout, info, names)
        if is_done and identity is not None:
            self.seen[info.name] = identity
        return is_done

    def needs(self, works: Sequence[Work]) -> list[Need]:
        """The disk space that the works require."""
        if self.options.consume:
            return consuming_needs(works, self.layout, self.engine.workers)
        return [need for work in works for need in work.needs(self.layout)]

    @property
    def _may_consume(self) -> bool:
        """Whether the raw data could give its space to the shards, once its digests are known."""
        entry, options, layout = self.plan.dataset, self.options, self.layout
        if (
            self.share
            or options.consume
            or options.overwrite
            or entry.kind == RECIPE
            or entry.classes
        ):
            return False
        return SetState.read(layout).kind != "finished" and is_consumable(
            self.planned.splits, layout
        )

    def make(self, journal: Journal) -> tuple[list[ShardPlan], list[Problem]]:
        """Save the plan, remove what it replaces, and make the unfinished shards.

        Returns them, and the images set aside. Whatever refuses the conversion comes before the
        first write.

        Raises:
            Exception: the error of the first shard that could not be made, after all others are
                done.
        """
        layout, plan, options = self.layout, self.plan, self.options
        todo = self.still_to_make(journal)
        works = lay_out(self.splits, todo, layout, options)
        refuse_lack([*self.needs(works), *self._freed()], may_consume=self._may_consume)
        self._check_claim()
        name = run_name()
        with unfinished_of(layout, f"rank-{plan.key}-{name}" if self.share else name) as own:
            samples = samples_by_shard(self._claim(todo))
            if self.share is None or self.replacement:
                remove_unfinished(layout, plan.key, own.run)
            self._remove_superseded()
            if self.share:
                save_bytes(layout.rank_path(journal.part), b"")
            if options.consume:
                works = begin_consuming(works, layout, self.progress)
            tasks = prepare_tasks(works, own, options, self.progress, syncs=self.share is not None)
            tasks = (replace(task, sample=samples.get(task.name, {})) for task in tasks)
            total = sum(count_images(shard) for split in self.splits for shard in split.plans)
            done = total - sum(map(count_images, todo))
            self.progress.begin("convert", total, "images", done=done)
            made = make_shards(tasks, own, self.engine, journal, self.progress)
        self.progress.end()
        for outcome in made.outcomes:
            if outcome.info is not None and outcome.identity is not None:
                self.seen[outcome.info.name] = outcome.identity
        if other := [each for each in made.failures if isinstance(each, OtherCopyError)]:
            self._remove_made(made)
            raise other[0]
        if made.failures:
            raise made.failures[0]
        problems = [problem for outcome in made.outcomes for problem in outcome.problems]
        if refused := sum(outcome.info is None for outcome in made.outcomes):
            self._forget_samples({problem.subject for problem in problems})
            raise refusal_of(problems, refused, self.progress)
        return todo, problems

    def _forget_samples(self, damaged: Collection[str]) -> None:
        """Let sound images take the place of damaged ones that were sampled."""
        claimed = self._check_claim()
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
        lost = find_lost(self.plan, self.layout, journal, self.seen)
        if not lost:
            return [], []
        self.progress.note(
            f"{number_of(len(lost), 'shard')} vanished or changed since: made again, "
            f"{lost[0]} first"
        )
        journal.forget(lost)
        for name in lost:
            self.seen.pop(name, None)
        before = self._check_claim() or self.plan
        todo, problems = replace(self, replacement=None, before=before).make(journal)
        if lost := find_lost(self.plan, self.layout, journal, self.seen):
            raise WriteError(
                (
                    f"{number_of(len(lost), 'shard')} of {self.layout.output_dir} vanished twice, "
                    f"{lost[0]} first"
                ),
                "expected that nothing else writes there",
                "find out what removes or changes them, then run the same command again",
            )
        return todo, problems

    # the plan on the disk -------------------------------------------------------------------------

    def _freed(self) -> list[Need]:
        """The space of the replaced shards: they are removed before the first new shard is made."""
        if self.replacement is None:
            return []
        remaining = self.replacement.remaining(self.layout, self.plan)
        if not remaining:
            return []
        count, size = len(remaining), sum(self.replacement.shards[name][0] for name in remaining)
        shards = number_of(count, "shard")
        self.progress.note(
            f"--overwrite: {shards} of an older set are removed first ({size_text(size)})"
        )
        return [Need("convert", "replaced shards", self.layout.output_dir, -size, -3 * count)]

    def _check_claim(self) -> Plan | None:
        """The plan of the same shards that claims the folder, or None.

        Raises:
            UsageError: it is claimed for another plan, now or before this one was made.
        """
        claimed = load_plan(self.layout)
        if claimed is None or claimed.key == self.plan.key:
            return claimed
        is_known = self.before is not None and claimed.key == self.before.key
        if is_known and self._may_replace_plan:
            return None
        raise UsageError(
            f"{self.layout.output_dir} is claimed for a set of other images or settings",
            (
                f"expected those of {self.layout.plan_path}, but these differ: "
                f"{self._differences(claimed)}"
            ),
            instead(
                self.layout,
                "make this set in its place with --overwrite",
                is_rank=self.share is not None,
            ),
        )

    @property
    def _may_replace_plan(self) -> bool:
        """Whether the plan on the disk may give way:
        nobody else follows it, or that was asked for.
        """
        is_only_writer = self.share is None and local_or_none(self.layout.output_dir) is not None
        return self.options.overwrite or is_only_writer or self.plan.extends(self.before)

    def _differences(self, other: Plan) -> str:
        return ", ".join(differences(self.plan, other))

    def _claim(self, todo: Sequence[ShardPlan]) -> Plan:
        """Make rows, the list of replaced shards and the plan durable, in this order.

        Returns the plan that claims the folder.
        """
        plan, layout = self.plan, self.layout
        for packed in self.packed.values():
            packed.save(layout.plan_path.with_name(packed.name))
        is_claimed = (
            self._check_claim()
        )  # then another rank has listed the replaced shards, or removed them
        if self.replacement is not None and not is_claimed:
            self.replacement.claim(layout, plan.generation)
        self._save_plan(todo)
        claimed = self._check_claim()
        for path, lines in self.planned.lists.items():
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                save_bytes(path, lines)
        return claimed or self.plan

    def _save_plan(self, todo: Sequence[ShardPlan]) -> None:
        """Write plan.json, or claim it where another rank may be first."""
        path, content = self.layout.plan_path, self._with_samples(todo).encode()
        if self.before is not None and self.before.encode() == content:
            return
        is_same_set = self.before is not None and self.before.key == self.plan.key
        if is_same_set or (self.before is not None and self._may_replace_plan):
            save_bytes(path, content)
            return
        claimed = claim(path, content)
        first = decode_plan(claimed)
        if first is None:  # an unreadable plan claims nothing
            save_bytes(path, content)
        elif first.key == self.plan.key and claimed != content:  # another copy was first
            replace(self, before=first)._save_plan(todo)

    def _with_samples(self, todo: Sequence[ShardPlan]) -> Plan:
        """The plan, with the samples of the copy that was first; see datasets.copies."""
        if not self.packed:  # nothing was listed: the plan is the one on the disk
            return self.plan
        before = self.before
        if before is not None and self.options.overwrite and self.share is None:
            before = replace(before, samples={})  # the images of this run are the right ones
        there = [split for split in self.planned.splits if todo and not is_gone(split)]
        plan = join_copies(self.plan, before, there)
        has_machines = self.share is not None or getattr(self.engine, "has_machines", False)
        return with_samples(plan, there) if has_machines else plan

    def _remove_superseded(self) -> None:
        """Remove what contradicts the claimed plan: an old manifest,
        then the files on the list of replaced shards.
        """
        layout, planned = self.layout, self.plan.fingerprints_by_name()
        self._check_claim()
        manifest = usable_manifest(layout.manifest_path)
        recorded = (
            {name: info.fingerprint for name, info in manifest.shards.items()} if manifest else None
        )
        if layout.manifest_path.is_file() and (self.replacement or recorded != planned):
            with writing(layout.manifest_path):
                layout.manifest_path.unlink(missing_ok=True)
                open_store(layout.state_dir).sync_names()
            remove_damaged_images(layout)
        remove_other_lists(layout, self.plan)
        replacement = Replacement.find(layout, self.plan)
        if replacement is not None:
            replacement.finish(layout, self.plan, is_locked=self.share is None)


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
    asked = dataset.ask(layout, options) if before and not options.consume else None
    if (
        before is None
        or asked is None
        or before.asked != {"options": asked.options, "raw": asked.raw}
    ):
        return None
    names = set(share.of(before.fingerprints_by_name())) if share else None
    return read_planned(before, layout, asked, names, progress)
