"""Converts images to shards: catalog, canonical order, plans, workers, journal, manifest; merge ends a set of ranks."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.dataset import Dataset
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.identity import find_changed
from imagenet_prep.datasets.plan import Plan, PlannedSet, PlannedSplit, load_plan, plan_name, plan_of, splits_of_others
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.model import Engine, Problem, Progress, ShardInfo, ShardPlan, Silent
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
    SplitSummary,
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
from imagenet_prep.shards.share import Share, ranks_of
from imagenet_prep.sources.catalog import PackedCatalog
from imagenet_prep.state.indexes import filled, is_indexed, not_done, settle
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import RECIPE, Manifest, load_manifest, usable_manifest
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import Layout, grown_from, parse_shard_name, split_of
from imagenet_prep.storage.location import local_or_none
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.space import Need, refuse_lack
from imagenet_prep.text import listed, number_of


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

    With a ``share``, only its shards are written, without a lock and with its own journal; ``merge`` ends the set.

    Raises:
        IncompleteError, InputError: images are missing, or an archive or the boxes file is corrupt.
        UsageError: shards exist that a recipe, other settings or another tool made; see ``overwrite``.
        DataProblemsError: some images are bad; every shard without a bad image is done.
    """
    progress, options = progress or Silent(), options or dataset.options
    layout = replace(layout, set_name=dataset.set_name)
    if share and options.consume:
        what = f"{share}: the raw data of several ranks can't give its space to shards"
        raise UsageError(what, "expected --consume without --rank", "use only one of them")
    with contextlib.nullcontext() if share else hold(layout.lock_paths):
        work = _Conversion.find(layout, engine, options, dataset, share, progress)
        with Journal(layout.journal_path, f"{share.name}-{run_name()}" if share else "") as journal:
            changed = work.find_changed(journal)
            work.remove_superseded(journal, changed)
            journal.forget(changed)
            todo, problems = work.make(journal)
            _refuse_superseded(work.plan, layout)
            if share is None:
                _finish(work.plan, layout, journal)
        summaries = tuple(summary_of(split, todo, journal) for split in work.splits)
        if share:
            merge = command("merge", layout.data_dir, Layout(layout.data_dir, output=layout.output).elsewhere())
            progress.note(f"{share} is done; when all ranks are, run: {merge}")
        elif options.consume:
            finish_consuming(work.splits, layout)
        for each in () if share else summaries:
            progress.note(f"{each.split}: Finished writing all {each.images} images in data set.")
        return ConvertSummary(summaries, tuple(problems), work.planned.notes)


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
    layout = replace(layout, set_name=dataset.set_name)
    work = _Conversion.find(layout, engine, options, dataset, share, progress)
    with Journal(layout.journal_path) as journal:
        journal.forget(work.find_changed(journal))
        todo = work.still_to_make(journal)
    return tuple(work.needs(lay_out(work.splits, todo, layout, options)))


class _Conversion(Struct, frozen=True):
    """A set to make: ``plan`` is ``before``, the plan on the disk, if nothing had to be listed again.

    ``splits`` hold only the shards for this call; ``packed`` is the saved part of a new plan, by split.
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
        """Plan a data set that belongs in this folder, and check that it can be consumed; shows its notes."""
        refuse_other_set(layout, dataset)
        before = load_plan(layout)
        if before is None and layout.plan_path.exists():
            progress.note(f"warning: {layout.plan_path} is damaged: the raw data is listed again")
        planned = _read_again(before, layout, options, dataset, share, progress)
        if planned is not None and before is not None:
            plan, splits, packed = before, planned.splits, {}
        else:
            planned = dataset.plan(layout, engine, options, progress)
            packed = {split.catalog.split: split.catalog.pack() for split in planned.splits}
            plan = plan_of(planned, layout, before, packed)
            splits = share.of_splits(planned.splits) if share else planned.splits
        refuse_lost(before, planned.splits, layout)
        if options.consume:
            check_consumable(planned.splits, layout)
        for note in planned.notes:
            progress.note(note)
        return cls(layout, engine, options, share, progress, planned, plan, before, splits, packed)

    # existing shards -----------------------------------------------------------------------------------------------

    def find_changed(self, journal: Journal) -> Mapping[str, str]:
        """The finished shards that the plan would not make, each with the evidence; see datasets.identity.

        Raises:
            UsageError: such shards exist, or shards of another set.
            InputError: the raw data of a shard to make is gone.
        """
        layout, splits = self.layout, self.planned.splits
        settle(layout, journal, set().union(*self.plan.fingerprints.values()))
        if self.plan is self.before:
            done = ((name, journal.get(name), each.fingerprint) for name, each in self.plan.shards().items())
            changed = {name: "" for name, info, fingerprint in done if info and info.fingerprint != fingerprint}
        else:
            changed = find_changed(splits, self.before, layout, journal, self.engine)
        gone = [split for split in splits if is_gone(split)]
        waiting = {*map(plan_name, self.still_to_make(journal, gone)), *changed}
        refuse_gone(splits, waiting, layout, consume=self.options.consume)
        self._refuse_strangers(journal, changed)
        return changed

    def _refuse_strangers(self, journal: Journal, changed: Mapping[str, str]) -> None:
        """Raise UsageError rather than replace a shard that was made differently, or mix sets."""
        planned, folder = self.plan.shards(), self.layout.output_dir
        prefixes = {*KNOWN_SPLITS, *self.plan.totals} - self._splits_of_others()
        foreign, others = [], []
        for name in sorted(path.name for path in folder.glob("*-of-*")):
            parsed, info = parse_shard_name(name), journal.get(name)
            if parsed is None or (info is None and parsed[0] not in prefixes):
                continue
            if info is not None and grown_from(parsed[0])[0] not in self.plan.totals:
                raise self._of_another_set(parsed[0])
            if info is None:
                # A crash leaves an index without a journal entry: the shard is made again.
                if name not in planned or not self.layout.index_path(name).exists():
                    foreign.append(name)
            elif name in changed or name not in planned:
                others.append(name)
        if foreign and not (self.options.overwrite and all(name in planned for name in foreign)):
            may_replace = not self.options.overwrite and all(name in planned for name in foreign)
            raise UsageError(
                f"{folder} holds {number_of(len(foreign), 'shard')} not made here, {foreign[0]} first",
                "expected none, or only those of an earlier run",
                "move them away, choose another folder with --output, or let --overwrite replace those in the way"
                if may_replace
                else "move them away, or choose another folder with --output",
            )
        if others and not self.options.overwrite:
            raise UsageError(
                f"{number_of(len(others), 'finished shard was', 'finished shards were')} made from other inputs "
                f"or with other settings, {others[0]} first",
                self._find_differences(next((changed[name] for name in others if changed.get(name)), None)),
                "make them again with --overwrite, or choose another folder with --output",
            )

    def _of_another_set(self, split: str) -> UsageError:
        """The error for finished shards of a split that is not planned."""
        plan, what = self.plan, f"{self.layout.output_dir} holds finished {split} shards"
        if plan.dataset.kind == RECIPE:
            return UsageError(
                f"{what} of another recipe",
                f"expected only shards of {', '.join(plan.totals)}",
                f"give this set its own prefix in the recipe: output_file_prefix: {plan.dataset.name}; "
                "or choose another folder with --output",
            )
        return UsageError(
            f"{what}, but their raw data is missing",
            f"expected the {split} images in {self.layout.raw_dir} too",
            "put their archive or folder back, or choose another folder with --output",
        )

    def _splits_of_others(self) -> set[str]:
        """The splits of the other sets in the folder; raises UsageError if the set to be made has one of them."""
        others = splits_of_others(self.layout)
        for split in self.plan.totals.keys() & others.keys():
            raise UsageError(
                f"{self.layout.output_dir} holds the {split} shards of another set",
                f"expected none: that set is recorded in {others[split].state_dir}",
                "give this set another output_file_prefix in its recipe, or choose another folder with --output",
            )
        return {*others}

    def _find_differences(self, reason: str | None) -> str:
        """The difference between the recorded set and the one to make: only images, or settings as well."""
        other = usable_manifest(self.layout.manifest_path) or load_plan(self.layout)
        if reason or other is None:
            return reason or "an input or an option changed since then"
        return f"changed since then: {', '.join(self.plan.differences(other))}"

    def remove_superseded(self, journal: Journal, changed: Mapping[str, str]) -> None:
        """Remove what would contradict the new shards: an old manifest; with --overwrite, the shards they replace.

        This comes first: at every moment, a glob over train-* must find only one set. A shard to make again loses its
        index, so that it no longer counts as done, whatever the journal says.
        """
        layout = self.layout
        planned = {name: info.fingerprint for name, info in self.plan.shards().items()}
        manifest = usable_manifest(layout.manifest_path)
        recorded = {name: info.fingerprint for name, info in manifest.shards.items()} if manifest else None
        if layout.manifest_path.exists() and (changed or recorded != planned):
            with writing(layout.manifest_path):
                layout.manifest_path.unlink()
        if not self.options.overwrite:
            return
        strangers = set(journal.names()) - planned.keys()
        for name in strangers:
            layout.shard_path(name).unlink(missing_ok=True)
        for path in (path for name in (*strangers, *changed) for path in layout.index_paths(name)):
            path.unlink(missing_ok=True)
        if changed and layout.index_dir.exists():
            layout.indexes.sync_names()

    # the work ------------------------------------------------------------------------------------------------------

    def still_to_make(self, journal: Journal, splits: Iterable[PlannedSplit] | None = None) -> list[ShardPlan]:
        """The unfinished shards, of these splits or of this call."""
        found = ((plan, split) for split in (self.splits if splits is None else splits) for plan in split.plans)
        return [plan for plan, split in found if not self._is_done(plan, split, journal.get(plan_name(plan)))]

    def _is_done(self, plan: ShardPlan, split: PlannedSplit, info: ShardInfo | None) -> bool:
        """Whether a shard is done: the journal lists it, its size is as recorded, and its index agrees."""
        if info is None or info.fingerprint != plan.fingerprint or (info.set_aside and not self.options.skip_bad):
            return False
        if self.layout.shards.size(info.name) != info.size:
            return False
        left_out = set(info.set_aside)
        names = [name for name in map(split.catalog.names.__getitem__, split.rows(plan)) if name not in left_out]
        return is_indexed(self.layout, info, names)

    def needs(self, works: Sequence[Work]) -> list[Need]:
        """The disk space that the works require."""
        if self.options.consume:
            return consuming_needs(works, self.layout, self.engine.workers)
        return [need for work in works for need in work.needs(self.layout)]

    def make(self, journal: Journal) -> tuple[list[ShardPlan], list[Problem]]:
        """Save the plan and make the unfinished shards; returns them, and the images set aside.

        Raises:
            Exception: the error of the first shard that could not be made, after all others are done.
        """
        layout, plan, options, share = self.layout, self.plan, self.options, self.share
        name = f"rank-{plan.key}-{run_name()}"
        with unfinished_of(layout, name) if share else unfinished(layout, plan.key) as own:
            todo = self.still_to_make(journal)
            works = lay_out(self.splits, todo, layout, options)
            entry = plan.dataset
            is_fixed = share or options.consume or layout.output or entry.kind == RECIPE or entry.classes
            refuse_lack(self.needs(works), may_consume=not is_fixed)
            self._save()
            if share:
                save_bytes(layout.rank_path(journal.part), b"")
            if options.consume:
                works = begin_consuming(works, layout, self.progress)
            tasks = prepare_tasks(works, own, options, self.progress, syncs=share is not None)
            total = sum(count_images(each) for split in self.splits for each in split.plans)
            done = total - sum(map(count_images, todo))
            self.progress.begin("convert", total, "images", done=done)
            made = make_shards(tasks, own, self.engine, journal, self.progress)
        self.progress.end()
        if made.failures:
            raise made.failures[0]
        problems = [problem for outcome in made.outcomes for problem in outcome.problems]
        if refused := sum(outcome.info is None for outcome in made.outcomes):
            raise refusal_of(problems, refused, self.progress)
        return todo, problems

    def _save(self) -> None:
        """Save the plan and the lists that it refers to."""
        for path, content in self.planned.lists.items():
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                save_bytes(path, content)
        is_only_writer = self.share is None and local_or_none(self.layout.output_dir) is not None
        replaces = self.options.overwrite or is_only_writer or self.plan.extends(self.before)
        self.plan.save(self.layout, self.before, self.packed, replaces=replaces)


def _read_again(
    before: Plan | None,
    layout: Layout,
    options: MakingOptions,
    dataset: Dataset,
    share: Share | None,
    progress: Progress,
) -> PlannedSet | None:
    """The set as planned before, if settings and raw data are unchanged; for a rank, only its shards.

    A rank does not check separate image files: it reads images that another rank listed.
    """
    asked = dataset.ask(layout, options) if before and not options.consume else None
    if before is None or asked is None or before.asked != {"options": asked.options, "raw": asked.raw}:
        return None
    return before.read(layout, asked, set(share.of(before.shards())) if share else None, progress)


# records of the set ----------------------------------------------------------------------------------------------


def _refuse_superseded(plan: Plan, layout: Layout) -> None:
    """Raise UsageError if another run has claimed the set since, with --overwrite."""
    claimed = load_plan(layout)
    if claimed is not None and claimed.key != plan.key:
        raise UsageError(
            f"another convert claimed {layout.output_dir} for a set of other images or settings",
            f"expected no other imagenet-prep convert there; these differ: {', '.join(plan.differences(claimed))}",
            "run one of them again with --overwrite, after the other has ended",
        )


def _finish(plan: Plan, layout: Layout, journal: Journal) -> Manifest:
    """Write the manifest of a set whose shards are all done, and remove the records of ranks and of older plans."""
    manifest = filled(plan.manifest(), journal)
    manifest.save(layout.manifest_path)
    take_in_parts(layout, journal)
    plan.remove_other_rows(layout)
    return manifest


# merge -----------------------------------------------------------------------------------------------------------


def merge(layout: Layout, *, progress: Progress | None = None) -> ConvertSummary:
    """Finish a set whose shards the ranks of ``convert`` made; it reads no raw data and makes no shard.

    The remains of killed ranks are removed, and the records of all ranks become one. A finished set stays unchanged.

    Raises:
        InputError: no rank has made anything there; or shards are missing: the error names the ranks to run again.
        BusyError, SpaceError, WriteError: another run works here, no space is left, or the storage fails.
    """
    progress, layout = progress or Silent(), layout.one_set()
    with hold(layout.lock_paths):
        plan = load_plan(layout)
        if plan is None or (layout.manifest_path.exists() and not layout.rank_parts()):
            return _finished_before(layout)
        planned = plan.manifest()
        with Journal(layout.journal_path) as journal:
            settle(layout, journal, {info.fingerprint for info in planned.shards.values()})
            if missing := not_done(layout, planned, journal):
                raise _unfinished(layout, planned, missing)
            manifest = _finish(plan, layout, journal)
        progress.note(f"{number_of(len(manifest.shards), 'shard')}, all done: see {layout.manifest_path}")
    return _summary(manifest)


def _finished_before(layout: Layout) -> ConvertSummary:
    manifest = load_manifest(layout.manifest_path)
    if manifest is None:
        raise InputError(
            f"no rank has started a set in {layout.output_dir}",
            f"expected {layout.plan_path}, which the first rank of a job array writes",
            "run imagenet-prep convert with --rank first; without --rank, no merge is needed",
        )
    return _summary(manifest)


def _unfinished(layout: Layout, planned: Manifest, missing: list[str]) -> InputError:
    found = ranks_of(set(missing), planned.shards, layout.rank_parts())
    hint = "run them again, or the same imagenet-prep convert without --rank: finished shards are kept"
    detail = "expected all shards"
    if found is not None:
        ranks, world = found
        detail = f"they belong to {'ranks' if len(ranks) > 1 else 'rank'} {listed(map(str, ranks), 20)} of {world}"
    of = number_of(len(planned.shards), "shard is", "shards are")
    return InputError(f"{len(missing):,} of {of} not done, {missing[0]} first", detail, hint)


def _summary(manifest: Manifest) -> ConvertSummary:
    aside = Counter[str]()
    for name, info in manifest.shards.items():
        aside[split_of(name)] += len(info.set_aside)
    totals = manifest.totals.items()
    splits = (SplitSummary(split, each.images, each.shards, 0, aside[split], ()) for split, each in totals)
    return ConvertSummary(tuple(splits), (), ())
