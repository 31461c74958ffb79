"""Images -> shards: catalog, canonical order, plans, workers, journal, manifest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from imagenet_prep import __version__
from imagenet_prep.checks.index_check import is_indexed
from imagenet_prep.datasets.dataset import Dataset, MakingOptions
from imagenet_prep.datasets.identity import is_begun, recognise, remember
from imagenet_prep.datasets.plan import PlannedSet, PlannedSplit, plan_name, source_record
from imagenet_prep.errors import DataProblemsError, InputError, Phrase, UsageError, all_of
from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import Engine, Problem, Progress, ShardInfo, ShardPlan, Silent
from imagenet_prep.registry import ILSVRC2012, KNOWN_SPLITS
from imagenet_prep.shards.consuming import (
    begin_consuming,
    check_consumable,
    consuming_needs,
    finish_consuming,
    is_gone,
    refuse_gone,
)
from imagenet_prep.shards.maker import ShardTask
from imagenet_prep.shards.run import Work, count_images, lay_out, make_shards, prepare_tasks, unfinished
from imagenet_prep.state.beginning import Beginning, save_beginning
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest, SplitTotals, usable_manifest
from imagenet_prep.storage.layout import Layout, parse_shard_name
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.space import Need, refuse_lack
from imagenet_prep.text import number_of


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """One split's part of a ConvertSummary: ``made`` of ``shards`` were made by this run, the others were there."""

    split: str
    images: int
    shards: int
    made: int
    set_aside: int
    repairs: tuple[str, ...]

    @property
    def turned(self) -> int:
        """How many images were turned upright."""
        return count_changes(self.repairs)[TURNED]


@dataclass(frozen=True, slots=True)
class ConvertSummary:
    """What a conversion did. ``problems`` are the images that ``skip_bad`` set aside in this run."""

    splits: tuple[SplitSummary, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def set_aside(self) -> int:
        """How many images are missing from the shards because ``skip_bad`` set them aside, in this run or before."""
        return sum(split.set_aside for split in self.splits)


def convert(
    layout: Layout,
    engine: Engine,
    options: MakingOptions | None = None,
    *,
    dataset: Dataset = ILSVRC2012,
    progress: Progress | None = None,
) -> ConvertSummary:
    """Write every shard of a data set that is not done yet, and the manifest.

    ``options`` are those of the data set, for ILSVRC2012 ``ConvertOptions``; None: as the data set says itself.

    Finished shards are recognised by their fingerprint and never made again. Interrupted at any moment, the next call
    goes on from there and ends with the same bytes.

    Raises:
        IncompleteError: images of the data set are missing, and that is not allowed.
        InputError: an archive or the boxes file is corrupt.
        UsageError: shards are there that were made by a recipe, with other settings, or by another tool; see
            ``overwrite``.
        DataProblemsError: bad images; every shard without one is done.
        SpaceError, BusyError, WriteError: as their names say.
    """
    progress, options = progress or Silent(), options or dataset.options
    with hold(layout.lock_paths):
        planned = dataset.plan(layout, engine, options, progress)
        _refuse_doubtful(planned, layout)
        if options.consume:
            check_consumable(planned.splits, layout)
        notes = tuple(map(progress.worded, planned.notes))
        for note in notes:
            progress.note(note)
        with Journal(layout.journal_path) as journal:
            planned, changed = _compared(planned, layout, journal, engine, options)
            splits = planned.splits
            _remove_superseded(layout, journal, splits, changed, options)
            journal.forget(changed)
            with unfinished(layout) as own:
                todo = _still_to_make(splits, layout, journal, options)
                works = lay_out(splits, todo, layout, options)
                refuse_lack(_needs(works, layout, engine, options))
                dataset.prepare()
                save_beginning(layout, _beginning(planned, layout), dataset.recipe_file)
                remember(splits, todo, layout, journal)
                if options.consume:
                    works = begin_consuming(works, layout, progress)
                tasks = prepare_tasks(works, own, options, progress)
                problems = _run(tasks, own, splits, todo, engine, journal, progress)
        summaries = tuple(_summary(split, todo, journal) for split in splits)
        _manifest(planned, journal, summaries).save(layout.manifest_path)
        if options.consume:
            finish_consuming(splits, layout)
        for summary in summaries:
            progress.note(f"{summary.split}: Finished writing all {summary.images} images in data set.")
        for note in planned.closing:
            progress.note(note)
        return ConvertSummary(summaries, tuple(problems), notes)


def foresee(
    layout: Layout,
    engine: Engine,
    options: MakingOptions | None = None,
    *,
    dataset: Dataset = ILSVRC2012,
    progress: Progress | None = None,
) -> tuple[Need, ...]:
    """What the shards that are not done yet will take of the disk; the images are listed, and nothing is written.

    Raises:
        IncompleteError, InputError, UsageError: as ``convert``, where the data set is not as it should be.
    """
    progress, options = progress or Silent(), options or dataset.options
    planned = dataset.plan(layout, engine, options, progress)
    _refuse_doubtful(planned, layout)
    if options.consume:
        check_consumable(planned.splits, layout)
    for note in planned.notes:
        progress.note(progress.worded(note))
    with Journal(layout.journal_path) as journal:
        planned, changed = _compared(planned, layout, journal, engine, options)
        journal.forget(changed)
        splits = planned.splits
        todo = _still_to_make(splits, layout, journal, options)
    return tuple(_needs(lay_out(splits, todo, layout, options), layout, engine, options))


def _needs(works: Sequence[Work], layout: Layout, engine: Engine, options: MakingOptions) -> list[Need]:
    if options.consume:
        return consuming_needs(works, layout, engine.workers)
    return [need for work in works for need in work.needs(layout)]


# what is there already -----------------------------------------------------------------------------------------


def _refuse_doubtful(planned: PlannedSet, layout: Layout) -> None:
    """Raise what speaks against beginning a set, unless shards of this very set are done: then it is gone on with.

    Versions that saw none of it began such sets. Only a shard with images proves that it is this one.
    """
    if not planned.doubts:
        return
    plans = [(plan, split) for split in planned.splits for plan in split.plans if plan.start < plan.stop]
    with Journal(layout.journal_path) as journal:
        begun = any(is_begun(plan, split, journal) for plan, split in plans)
    if not begun:
        inputs = [each for each in planned.doubts if isinstance(each, InputError)]
        raise all_of(inputs) if inputs else planned.doubts[0]


def _compared(
    planned: PlannedSet, layout: Layout, journal: Journal, engine: Engine, options: MakingOptions
) -> tuple[PlannedSet, Mapping[str, str]]:
    """The set whose plans know which finished shards are theirs, and those that differ; see ``recognise``."""
    manifest = usable_manifest(layout.manifest_path)
    journal.forget_contradicted(manifest.shards if manifest else {})
    splits, changed = recognise(planned.splits, layout, journal, engine)
    planned = dataclasses.replace(planned, splits=splits)
    refuse_gone(splits, _waiting(splits, changed, layout, journal, options), layout, options)
    _refuse_strangers(layout, journal, planned, changed, options)
    return planned, changed


def _refuse_strangers(
    layout: Layout, journal: Journal, dataset: PlannedSet, changed: Mapping[str, str], options: MakingOptions
) -> None:
    """Raise UsageError rather than replace a shard that was made otherwise, or leave one beside the new set."""
    splits = dataset.splits
    planned = {plan_name(plan) for split in splits for plan in split.plans}
    prefixes = {*KNOWN_SPLITS, *(split.catalog.split for split in splits)}
    foreign, others = [], []
    for path in sorted(layout.output_dir.glob("*-of-*")):
        parsed = parse_shard_name(path.name)
        info = journal.get(path.name)
        if parsed is None or (info is None and parsed[0] not in prefixes):
            continue
        if info is not None and parsed[0] not in {split.catalog.split for split in splits}:
            raise UsageError(
                f"{layout.output_dir} holds finished {parsed[0]} shards, and there is nothing to make them from",
                f"expected the {parsed[0]} images in {layout.raw_dir} too",
                Phrase("put their archive or folder back, or choose another folder with {output}"),
            )
        if info is None:
            # An index without a journal entry is what a crash leaves between the two: the shard is made again.
            if path.name not in planned or not layout.index_path(path.name).exists():
                foreign.append(path.name)
        elif path.name in changed or path.name not in planned:
            others.append(path.name)
    if foreign and not (options.overwrite and all(name in planned for name in foreign)):
        raise UsageError(
            f"{layout.output_dir} holds {number_of(len(foreign), 'shard')} not made here, {foreign[0]} first",
            "expected none, or only those of an earlier run",
            Phrase("move them away, or choose another folder with {output}")
            if options.overwrite or any(name not in planned for name in foreign)
            else Phrase(
                "move them away, choose another folder with {output}, or let {overwrite} replace those in the way"
            ),
        )
    if others and not options.overwrite:
        raise UsageError(
            f"{number_of(len(others), 'finished shard was', 'finished shards were')} made from other inputs "
            f"or with other settings, {others[0]} first",
            _what_differs(layout, dataset, next((changed[name] for name in others if changed.get(name)), None)),
            Phrase("make them again with {overwrite}, or choose another folder with {output}"),
        )


def _what_differs(layout: Layout, dataset: PlannedSet, reason: str | None) -> str:
    """In what the set on record differs from the one to be made: images alone, or what the manifest tells."""
    if reason:
        return reason
    manifest = usable_manifest(layout.manifest_path)
    if manifest is None:
        return "an input or an option changed since then"
    then, now = manifest.settings, dataset.settings
    found = [name for name in sorted({*then, *now}) if then.get(name) != now.get(name)]
    found += ["classes"] if manifest.dataset.classes != dataset.entry.classes else []
    for split in dataset.splits:
        name, totals = split.catalog.split, manifest.totals.get(split.catalog.split)
        if totals is None or totals.shards != len(split.plans):
            found.append(f"number of {name} shards")
        if totals is not None and totals.boxes != len(split.catalog.boxes) // 4:
            found.append(f"{name} boxes")
        if manifest.sources.get(name) != source_record(split):
            found.append(f"{name} images")
    if not found:
        return "boxes or columns of some images changed since then, or the time of a file that an earlier version knew"
    return f"changed since then: {', '.join(found)}"


def _remove_superseded(
    layout: Layout,
    journal: Journal,
    splits: Sequence[PlannedSplit],
    changed: Mapping[str, str],
    options: MakingOptions,
) -> None:
    """Remove what would contradict the shards to come: a manifest of others; with --overwrite, ours of another count.

    First, and not at the end: a glob over train-* must find one set only, at every moment.
    """
    planned = {plan_name(plan): plan.fingerprint for split in splits for plan in split.plans}
    manifest = usable_manifest(layout.manifest_path)
    recorded = {name: info.fingerprint for name, info in manifest.shards.items()} if manifest else None
    if layout.manifest_path.exists() and (changed or recorded != planned):
        with writing(layout.manifest_path):
            layout.manifest_path.unlink()
    if options.overwrite:
        for name in set(journal.names()) - set(planned):
            layout.shard_path(name).unlink(missing_ok=True)
            for path in layout.index_paths(name):
                path.unlink(missing_ok=True)


def _still_to_make(
    splits: Sequence[PlannedSplit], layout: Layout, journal: Journal, options: MakingOptions
) -> list[ShardPlan]:
    found = ((plan, split) for split in splits for plan in split.plans)
    return [plan for plan, split in found if not _is_done(plan, split, layout, journal, options)]


def _is_done(plan: ShardPlan, split: PlannedSplit, layout: Layout, journal: Journal, options: MakingOptions) -> bool:
    """Whether a shard need not be made: the journal says so, its size is the recorded one, its index agrees."""
    info = journal.get(plan_name(plan))
    if info is None or info.fingerprint != plan.fingerprint or (info.set_aside and not options.skip_bad):
        return False
    if layout.shards.size(info.name) != info.size:
        return False
    left_out = set(info.set_aside)
    names = [name for name in map(split.catalog.names.__getitem__, split.rows(plan)) if name not in left_out]
    return is_indexed(layout, info, names)


def _waiting(
    splits: Sequence[PlannedSplit],
    changed: Mapping[str, str],
    layout: Layout,
    journal: Journal,
    options: MakingOptions,
) -> set[str]:
    """The names of the shards to make of raw data that is gone."""
    plans = ((plan, split) for split in splits if is_gone(split) for plan in split.plans)
    names = {plan_name(plan) for plan, split in plans if not _is_done(plan, split, layout, journal, options)}
    return names | set(changed)


def _beginning(planned: PlannedSet, layout: Layout) -> Beginning:
    shards = {split.catalog.split: len(split.plans) for split in planned.splits}
    entry = planned.entry
    return Beginning(shards, planned.options, layout.raw, entry.name, entry.classes, planned.expected)


# the work ------------------------------------------------------------------------------------------------------


def _run(
    tasks: Iterator[ShardTask],
    layout: Layout,
    splits: Sequence[PlannedSplit],
    todo: Sequence[ShardPlan],
    engine: Engine,
    journal: Journal,
    progress: Progress,
) -> list[Problem]:
    """Make the shards of ``todo``; raise at the end if some could not be made, once all others are done.

    Returns:
        The images set aside.
    """
    total = sum(len(split.catalog) for split in splits)
    progress.begin("convert", total, "images", done=total - sum(map(count_images, todo)))
    made = make_shards(tasks, layout, engine, journal, progress)
    progress.end()
    if made.failures:
        raise made.failures[0]
    problems = [problem for outcome in made.outcomes for problem in outcome.problems]
    refused = sum(outcome.info is None for outcome in made.outcomes)
    if refused:
        raise _refusal(problems, refused, progress)
    return problems


def _summary(split: PlannedSplit, todo: Sequence[ShardPlan], journal: Journal) -> SplitSummary:
    name = split.catalog.split
    infos = [info for plan in split.plans if (info := journal.get(plan_name(plan)))]
    return SplitSummary(
        split=name,
        images=sum(info.records for info in infos),
        shards=len(split.plans),
        made=sum(plan.split == name for plan in todo),
        set_aside=sum(len(info.set_aside) for info in infos),
        repairs=tuple(sorted(repair for info in infos for repair in info.repairs)),
    )


def _refusal(problems: list[Problem], refused: int, progress: Progress) -> DataProblemsError:
    for problem in problems:
        progress.note(f"bad image: {problem.worded(progress.worded)}")
    return DataProblemsError(
        f"{number_of(len(problems), 'image')} can't be converted, {problems[0].subject} first; "
        f"{number_of(refused, 'shard was', 'shards were')} not made",
        problems[0].detail,
        Phrase("get sound copies of them, or leave them out: {skip_bad}, in a recipe skip_bad: true"),
    )


# the record of it ----------------------------------------------------------------------------------------------


def _manifest(planned: PlannedSet, journal: Journal, summaries: Sequence[SplitSummary]) -> Manifest:
    turned = {each.split: each.turned for each in summaries if each.turned}
    infos: dict[str, ShardInfo] = {}
    splits = planned.splits
    for split in splits:
        infos.update((plan_name(plan), info) for plan in split.plans if (info := journal.get(plan_name(plan))))
    return Manifest(
        version=__version__,
        dataset=dataclasses.replace(planned.entry, turned=turned),
        settings=dict(planned.settings),
        sources={split.catalog.split: source_record(split) for split in splits},
        totals={
            split.catalog.split: SplitTotals(
                images=sum(infos[plan_name(plan)].records for plan in split.plans),
                expected=planned.expected[split.catalog.split],
                classes=len(split.catalog.count_by_label().keys() - {0}),
                boxes=len(split.catalog.boxes) // 4,
                shards=len(split.plans),
            )
            for split in splits
        },
        shards=infos,
    )
