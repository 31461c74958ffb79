"""Converts images to shards: catalog, canonical order, plans, workers, journal, manifest."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from imagenet_prep.checks.dataset import Dataset
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.identity import find_changed
from imagenet_prep.datasets.plan import (
    Plan,
    PlannedSet,
    PlannedSplit,
    load_plan,
    plan_name,
    plan_of,
    splits_of_others,
)
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.model import Engine, Problem, Progress, ShardPlan, Silent
from imagenet_prep.registry import ILSVRC2012, KNOWN_SPLITS, refuse_other_set
from imagenet_prep.shards.consumption import (
    begin_consuming,
    check_consumable,
    consuming_needs,
    finish_consuming,
    is_gone,
    refuse_gone,
    refuse_lost,
)
from imagenet_prep.shards.run import (
    ConvertSummary,
    Made,
    Work,
    count_images,
    lay_out,
    make_shards,
    prepare_tasks,
    refusal_of,
    run_name,
    summary_of,
    take_in_parts,
    unfinished,
    unfinished_of,
)
from imagenet_prep.shards.share import Share
from imagenet_prep.sources.catalog import PackedCatalog
from imagenet_prep.state.indexes import filled, is_indexed, not_done, settle
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import RECIPE, usable_manifest
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import Layout, grown_from, parse_shard_name
from imagenet_prep.storage.location import local_or_none
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

    ``options`` are those of the data set, for ILSVRC2012 ``ConvertOptions``; None: the data set's own settings. With a
    ``share``, only its shards are written while other ranks write theirs: it holds no lock, and has its own journal.
    The last rank to finish writes the manifest, otherwise ``merge`` does.

    Finished shards are recognised by their fingerprint and never made again. An interrupted conversion resumes, and
    ends with the same bytes.

    Raises:
        IncompleteError: images of the data set are missing, and that is not allowed.
        InputError: an archive or the boxes file is corrupt.
        UsageError: shards exist that a recipe, other settings or another tool made; see ``overwrite``.
        DataProblemsError: some images are bad; every shard without a bad image is done.
        SpaceError, BusyError, WriteError: no space is left, another run works here, or the storage fails.
    """
    progress, options = progress or Silent(), options or dataset.options
    layout = dataclasses.replace(layout, set_name=dataset.set_name)
    part = f"{share.name}-{run_name()}" if share else ""
    if share and options.consume:
        raise UsageError(
            f"{share}: the raw data of several ranks can't give its space to shards",
            "expected --consume without --rank",
            "use only one of them",
        )
    with contextlib.nullcontext() if share else hold(layout.lock_paths):
        found = _Planning.find(layout, engine, options, dataset, share, progress)
        planned, plan, splits = found.planned, found.plan, found.splits
        with Journal(layout.journal_path, part) as journal:
            existing = _ExistingSet(layout, journal, options)
            changed = _changed(found, existing, engine)
            existing.remove_superseded(plan, changed)
            journal.forget(changed)
            rank = f"rank-{plan.key}-{run_name()}"
            with unfinished_of(layout, rank) if share else unfinished(layout, plan.key) as own:
                todo = existing.still_to_make(splits)
                works = lay_out(splits, todo, layout, options)
                consuming = None if share else _consuming_needs(planned, todo, layout, engine, options)
                refuse_lack(_needs(works, layout, engine, options), consuming)
                for path, content in planned.lists.items():
                    with writing(path):
                        path.parent.mkdir(parents=True, exist_ok=True)
                        save_bytes(path, content)
                is_only_writer = share is None and local_or_none(layout.output_dir) is not None
                replaces = options.overwrite or is_only_writer or plan.extends(found.before)
                plan.save(layout, found.before, found.packed, replaces=replaces)
                if share:
                    save_bytes(layout.rank_path(part), b"")
                if options.consume:
                    works = begin_consuming(works, layout, progress)
                tasks = prepare_tasks(works, own, options, progress, syncs=share is not None)
                total = sum(len(split.rows(plan)) for split in splits for plan in split.plans)
                progress.begin("convert", total, "images", done=total - sum(map(count_images, todo)))
                problems = _report(make_shards(tasks, own, engine, journal, progress), progress)
            if share is None:
                _refuse_superseded(plan, layout)
                filled(plan.manifest(), journal).save(layout.manifest_path)
                take_in_parts(layout, journal)
                plan.remove_other_rows(layout)
        summaries = tuple(summary_of(split, todo, journal) for split in splits)
        if share:
            _finish_if_last(plan, layout, share, progress)
            return ConvertSummary(summaries, tuple(problems), planned.notes)
        if options.consume:
            finish_consuming(splits, layout)
        for summary in summaries:
            progress.note(f"{summary.split}: Finished writing all {summary.images} images in data set.")
        return ConvertSummary(summaries, tuple(problems), planned.notes)


def foresee(
    layout: Layout,
    engine: Engine,
    options: MakingOptions | None = None,
    *,
    dataset: Dataset = ILSVRC2012,
    share: Share | None = None,
    progress: Progress | None = None,
) -> tuple[Need, ...]:
    """Estimate the disk space that unfinished shards require; the images are listed, and nothing is written.

    Raises:
        IncompleteError, InputError, UsageError: as ``convert``, if the data set is not as expected.
    """
    progress, options = progress or Silent(), options or dataset.options
    layout = dataclasses.replace(layout, set_name=dataset.set_name)
    found = _Planning.find(layout, engine, options, dataset, share, progress)
    with Journal(layout.journal_path) as journal:
        existing = _ExistingSet(layout, journal, options)
        journal.forget(_changed(found, existing, engine))
        todo = existing.still_to_make(found.splits)
    return tuple(_needs(lay_out(found.splits, todo, layout, options), layout, engine, options))


@dataclass(frozen=True, slots=True)
class _Planning:
    """A set to make: ``plan`` is ``before``, the plan on the disk, if nothing had to be listed again.

    ``splits`` hold only the shards for this call; ``packed`` is the saved part of a new plan, by split.
    """

    planned: PlannedSet
    plan: Plan
    before: Plan | None
    splits: Sequence[PlannedSplit]
    packed: Mapping[str, PackedCatalog]

    @classmethod
    def find(
        cls,
        layout: Layout,
        engine: Engine,
        options: MakingOptions,
        dataset: Dataset,
        share: Share | None,
        progress: Progress,
    ) -> _Planning:
        """Plan a data set that belongs in this folder, and check that it can be consumed; shows its notes."""
        refuse_other_set(layout, dataset)
        before = load_plan(layout)
        planned = _read_again(before, layout, options, dataset, share)
        if planned is not None and before is not None:
            found = cls(planned, before, before, planned.splits, {})
        else:
            planned = dataset.plan(layout, engine, options, progress)
            packed = {split.catalog.split: split.catalog.pack() for split in planned.splits}
            plan = plan_of(planned, layout, before, packed)
            splits = share.of_splits(planned.splits) if share else planned.splits
            found = cls(planned, plan, before, splits, packed)
        refuse_lost(before, planned.splits, layout)
        if options.consume:
            check_consumable(planned.splits, layout)
        for note in planned.notes:
            progress.note(note)
        return found


def _read_again(
    before: Plan | None, layout: Layout, options: MakingOptions, dataset: Dataset, share: Share | None
) -> PlannedSet | None:
    """The set as planned before, if settings and raw data are unchanged; for a rank, only its shards.

    A rank does not check separate image files: it reads images that another rank listed.
    """
    asked = dataset.ask(layout, options) if before and not options.consume else None
    if before is None or asked is None or before.asked != {"options": asked.options, "raw": asked.raw}:
        return None
    return before.read(layout, asked, set(share.of(before.shards())) if share else None)


def _needs(works: Sequence[Work], layout: Layout, engine: Engine, options: MakingOptions) -> list[Need]:
    if options.consume:
        return consuming_needs(works, layout, engine.workers)
    return [need for work in works for need in work.needs(layout)]


def _consuming_needs(
    planned: PlannedSet, todo: Sequence[ShardPlan], layout: Layout, engine: Engine, options: MakingOptions
) -> list[Need] | None:
    """The needs if raw data gave its space to the shards; None if it can't, or already does."""
    if options.consume or planned.entry.kind == RECIPE or planned.entry.classes:
        return None
    with contextlib.suppress(UsageError):
        with contextlib.suppress(InputError):  # an archive is unchecked: convert names the command
            check_consumable(planned.splits, layout)
        works = lay_out(planned.splits, todo, layout, options.replace(consume=True))
        return consuming_needs(works, layout, engine.workers)
    return None


# existing shards -------------------------------------------------------------------------------------------------


def _changed(found: _Planning, existing: _ExistingSet, engine: Engine) -> Mapping[str, str]:
    """The finished shards that the plan would not make, each with the evidence; see ``find_changed``.

    Raises:
        UsageError: such shards exist, or shards of another set.
        InputError: the raw data of a shard to make is gone.
    """
    planned, plan = found.planned, found.plan
    settle(
        existing.layout, existing.journal, {fingerprint for each in plan.fingerprints.values() for fingerprint in each}
    )
    if plan is found.before:
        done = ((name, existing.journal.get(name), each.fingerprint) for name, each in plan.shards().items())
        changed = {name: "" for name, info, fingerprint in done if info and info.fingerprint != fingerprint}
    else:
        changed = find_changed(planned.splits, found.before, existing.layout, existing.journal, engine)
    gone = [split for split in planned.splits if is_gone(split)]
    waiting = {*map(plan_name, existing.still_to_make(gone)), *changed}
    refuse_gone(planned.splits, waiting, existing.layout, consume=existing.options.consume)
    existing.refuse_strangers(plan, changed)
    return changed


@dataclass(frozen=True, slots=True)
class _ExistingSet:
    """Existing shards, according to the journal; and the settings of the conversion."""

    layout: Layout
    journal: Journal
    options: MakingOptions

    def refuse_strangers(self, plan: Plan, changed: Mapping[str, str]) -> None:
        """Raise UsageError rather than replace a shard that was made differently, or mix sets."""
        planned = plan.shards()
        prefixes = {*KNOWN_SPLITS, *plan.totals} - self._splits_of_others(plan)
        foreign, others = [], []
        for name in sorted(path.name for path in self.layout.output_dir.glob("*-of-*")):
            parsed = parse_shard_name(name)
            info = self.journal.get(name)
            if parsed is None or (info is None and parsed[0] not in prefixes):
                continue
            is_other = grown_from(parsed[0])[0] not in plan.totals
            if info is not None and is_other and plan.dataset.kind == RECIPE:
                raise UsageError(
                    f"{self.layout.output_dir} holds finished {parsed[0]} shards of another recipe",
                    f"expected only shards of {', '.join(plan.totals)}",
                    f"give this set its own prefix in the recipe: output_file_prefix: {plan.dataset.name}; "
                    "or choose another folder with --output",
                )
            if info is not None and is_other:
                raise UsageError(
                    f"{self.layout.output_dir} holds finished {parsed[0]} shards, but their raw data is missing",
                    f"expected the {parsed[0]} images in {self.layout.raw_dir} too",
                    "put their archive or folder back, or choose another folder with --output",
                )
            if info is None:
                # A crash leaves an index without a journal entry: the shard is made again.
                if name not in planned or not self.layout.index_path(name).exists():
                    foreign.append(name)
            elif name in changed or name not in planned:
                others.append(name)
        if foreign and not (self.options.overwrite and all(name in planned for name in foreign)):
            raise UsageError(
                f"{self.layout.output_dir} holds {number_of(len(foreign), 'shard')} not made here, {foreign[0]} first",
                "expected none, or only those of an earlier run",
                "move them away, or choose another folder with --output"
                if self.options.overwrite or any(name not in planned for name in foreign)
                else "move them away, choose another folder with --output, or let --overwrite replace those in the way",
            )
        if others and not self.options.overwrite:
            raise UsageError(
                f"{number_of(len(others), 'finished shard was', 'finished shards were')} made from other inputs "
                f"or with other settings, {others[0]} first",
                self._find_differences(plan, next((changed[name] for name in others if changed.get(name)), None)),
                "make them again with --overwrite, or choose another folder with --output",
            )

    def _splits_of_others(self, plan: Plan) -> set[str]:
        """The splits of the other sets in the folder; raises UsageError if the set to be made has one of them."""
        others = splits_of_others(self.layout)
        for split in plan.totals.keys() & others.keys():
            raise UsageError(
                f"{self.layout.output_dir} holds the {split} shards of another set",
                f"expected none: that set is recorded in {others[split].state_dir}",
                "give this set another output_file_prefix in its recipe, or choose another folder with --output",
            )
        return {*others}

    def _find_differences(self, plan: Plan, reason: str | None) -> str:
        """The difference between the recorded set and the one to make: only images, or settings as well."""
        other = usable_manifest(self.layout.manifest_path) or load_plan(self.layout)
        if reason or other is None:
            return reason or "an input or an option changed since then"
        return f"changed since then: {', '.join(plan.differences(other))}"

    def remove_superseded(self, plan: Plan, changed: Mapping[str, str]) -> None:
        """Remove what would contradict the new shards: an old manifest; with --overwrite, the shards they replace.

        This comes first: at every moment, a glob over train-* must find only one set. A shard to make again loses its
        index, so that it no longer counts as done, whatever the journal says.
        """
        planned = {name: info.fingerprint for name, info in plan.shards().items()}
        manifest = usable_manifest(self.layout.manifest_path)
        recorded = {name: info.fingerprint for name, info in manifest.shards.items()} if manifest else None
        if self.layout.manifest_path.exists() and (changed or recorded != planned):
            with writing(self.layout.manifest_path):
                self.layout.manifest_path.unlink()
        if not self.options.overwrite:
            return
        strangers = set(self.journal.names()) - planned.keys()
        for name in strangers:
            self.layout.shard_path(name).unlink(missing_ok=True)
        for name in (*strangers, *changed):
            for path in self.layout.index_paths(name):
                path.unlink(missing_ok=True)
        if changed and self.layout.index_dir.exists():
            self.layout.indexes.sync_names()

    def still_to_make(self, splits: Iterable[PlannedSplit]) -> list[ShardPlan]:
        """The unfinished shards."""
        found = ((plan, split) for split in splits for plan in split.plans)
        return [plan for plan, split in found if not self._is_done(plan, split)]

    def _is_done(self, plan: ShardPlan, split: PlannedSplit) -> bool:
        """Whether a shard is done: the journal lists it, its size is as recorded, and its index agrees."""
        info = self.journal.get(plan_name(plan))
        if info is None or info.fingerprint != plan.fingerprint or (info.set_aside and not self.options.skip_bad):
            return False
        if self.layout.shards.size(info.name) != info.size:
            return False
        left_out = set(info.set_aside)
        names = [name for name in map(split.catalog.names.__getitem__, split.rows(plan)) if name not in left_out]
        return is_indexed(self.layout, info, names)


def _refuse_superseded(plan: Plan, layout: Layout) -> None:
    """Raise UsageError if another run has claimed the set since, with --overwrite."""
    claimed = load_plan(layout)
    if claimed is not None and claimed.key != plan.key:
        raise UsageError(
            f"another convert claimed {layout.output_dir} for a set of other images or settings",
            f"expected no other imagenet-prep convert there; these differ: {', '.join(plan.differences(claimed))}",
            "run one of them again with --overwrite, after the other has ended",
        )


# the work ------------------------------------------------------------------------------------------------------


def _report(made: Made, progress: Progress) -> list[Problem]:
    """Return the images set aside; raise if some shards could not be made, after all others are done."""
    progress.end()
    if made.failures:
        raise made.failures[0]
    problems = [problem for outcome in made.outcomes for problem in outcome.problems]
    refused = sum(outcome.info is None for outcome in made.outcomes)
    if refused:
        raise refusal_of(problems, refused, progress)
    return problems


# records of the set ----------------------------------------------------------------------------------------------


def _finish_if_last(plan: Plan, layout: Layout, share: Share, progress: Progress) -> None:
    """Write the manifest if the shards of all ranks are done, otherwise note how many are missing."""
    _refuse_superseded(plan, layout)
    to_come = plan.manifest()
    with Journal(layout.journal_path) as journal:
        settle(layout, journal, {info.fingerprint for info in to_come.shards.values()})
        left = not_done(layout, to_come, journal)
        if not left:
            filled(to_come, journal).save(layout.manifest_path)
    of = number_of(len(to_come.shards), "shard")
    if not left:
        progress.note(f"{share} was the last: all {of} are done, and the manifest is written")
        return
    merge = command("merge", layout.data_dir, Layout(layout.data_dir, output=layout.output).elsewhere())
    left_over = f"{len(left):,} of {of}"
    progress.note(f"{share!s} is done; other ranks have {left_over} to make, then run: {merge}")
