"""Plans -> finished shards: the work of workers, journal and disk, for convert and for repair."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.plan import PlannedSplit, plan_name
from imagenet_prep.errors import DataProblemsError, PrepError, UsageError, named
from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import Done, Engine, Problem, Progress, ShardInfo, ShardPlan
from imagenet_prep.shards.consumption import Consumption, consumed_step, is_gone
from imagenet_prep.shards.maker import Outcome, ShardMaker, ShardTask, expected_and_got
from imagenet_prep.shards.regroup import regroup
from imagenet_prep.shards.room import (
    HELD,
    PendingShards,
    available_memory,
    is_pass_better,
    shard_needs,
)
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import CHANGED_BOXES
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none, local_path
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.space import Need
from imagenet_prep.text import number_of


class SplitSummary(Struct, frozen=True):
    """One split's part of a ConvertSummary: this run ``made`` some of its ``shards``, the others
    existed before.

    ``repairs`` and ``warned`` are those of ShardInfo. ``changed_boxes`` counts the boxes of each
    image that a recipe "clipped" and "dropped".
    """

    split: str
    images: int
    shards: int
    made: int
    set_aside: int
    repairs: tuple[str, ...]
    changed_boxes: Mapping[str, Mapping[str, int]] = {}
    warned: tuple[str, ...] = ()

    @property
    def turned(self) -> int:
        """The number of images that were turned upright."""
        return count_changes(self.repairs)[TURNED]


class ConvertSummary(Struct, frozen=True):
    """The result of a conversion.

    ``problems`` are the images that ``on_damaged: skip`` set aside in this run. ``named_in`` is the
    file that names all of them, once the set is finished.
    """

    splits: tuple[SplitSummary, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    named_in: AnyPath | None = None

    @property
    def set_aside(self) -> int:
        """The number of images that ``on_damaged: skip`` set aside, in this run or before."""
        return sum(split.set_aside for split in self.splits)


def summary_of(split: PlannedSplit, todo: Sequence[ShardPlan], journal: Journal) -> SplitSummary:
    """The summary of a split's plans, of which those in ``todo`` were made now."""
    name = split.catalog.split
    infos = [info for plan in split.plans if (info := journal.get(plan_name(plan)))]
    return SplitSummary(
        split=name,
        images=sum(info.records for info in infos),
        shards=len(split.plans),
        made=sum(plan.split == name for plan in todo),
        set_aside=sum(len(info.set_aside) for info in infos),
        repairs=tuple(sorted(repair for info in infos for repair in info.repairs)),
        changed_boxes=split.facts.get(CHANGED_BOXES, {}),
        warned=tuple(sorted(warning for info in infos for warning in info.warned)),
    )


def refusal_of(problems: list[Problem], refused: int, progress: Progress) -> DataProblemsError:
    """The error for shards that bad images prevented; each image is noted."""
    for problem in problems:
        progress.note(f"bad image: {problem}")
    return DataProblemsError(
        f"{number_of(len(problems), 'image')} can't be converted, {problems[0].subject} first; "
        f"{number_of(refused, 'shard was', 'shards were')} not made",
        problems[0].detail,
        (
            "get sound copies of them, or leave them out: --on-damaged skip, "
            "in a recipe on_damaged: skip"
        ),
    )


SYNC_SECONDS = 1.0
"""Seconds between syncs of finished shards, which protect them from a power cut; a killed process
can't undo them.

Each sync covers the whole file system: two more syncs for the index of each shard would cost more
for small shards.
"""


class Work(Struct, frozen=True):
    """The work on one split: ``size`` is the bytes of its images.

    ``in_order``: its archive is read once from front to back, into a bundle per shard.
    ``consumption``: the archive gives its space to the bundles.
    """

    split: PlannedSplit
    plans: tuple[ShardPlan, ...]
    size: int
    in_order: bool
    consumption: Consumption | None = None

    @property
    def pending(self) -> PendingShards:
        """Its unfinished shards, in numbers."""
        images = sum(map(count_images, self.plans))
        return PendingShards(self.split.catalog.split, len(self.plans), images, self.size)

    def needs(self, layout: Layout) -> list[Need]:
        """The space that its shards and bundles need on the disk."""
        return shard_needs(
            layout, self.pending, in_order=self.in_order, keeps_size=self.split.recorder.keeps_size
        )

    @property
    def largest(self) -> int:
        """Bytes of the images of the largest shard."""
        return max(
            (self.split.catalog.size(self.split.rows(plan)) for plan in self.plans), default=0
        )

    def step(self, memory: int | None) -> int:
        """Bytes that a pass holds before writing them out;
        when consuming, they are on the disk twice.
        """
        most = memory or available_memory() // 4
        return most if self.consumption is None else min(most, consumed_step(self.size))


def lay_out(
    splits: Sequence[PlannedSplit],
    todo: Sequence[ShardPlan],
    layout: Layout,
    options: MakingOptions,
) -> list[Work]:
    """The work of each split, and how its source is best read.

    Raises:
        UsageError: the source can't be read in the requested order, or needs files next to shards
            in an object store.
    """
    works = []
    for split in splits:
        plans = tuple(plan for plan in todo if plan.split == split.catalog.split)
        size = sum(split.catalog.size(split.rows(plan)) for plan in plans)
        in_order = bool(plans) and _wants_pass(split, size, options)
        if in_order and local_or_none(layout.output_dir) is None:
            raise UsageError(
                f"{split.source} is read in one pass, and its images go to files first",
                f"expected a folder of this machine for the shards, not {layout.output_dir}",
                (
                    "name a folder with --output, and copy the shards, or leave out read_order: "
                    "sequential"
                ),
            )
        works.append(Work(split, plans, size, in_order))
    return works


def count_images(plan: ShardPlan) -> int:
    """The number of images in a shard."""
    return plan.stop - plan.start


def _wants_pass(split: PlannedSplit, left: int, options: MakingOptions) -> bool:
    if options.consume:
        return True
    if is_gone(split):
        return False  # each shard reports it
    if split.catalog.is_in_order:
        if options.read_order == "shuffled":
            raise UsageError(
                f"{split.source} can't be read in a shuffled order",
                (
                    "expected read_order auto or sequential: each image requires reading "
                    "everything "
                    "before it in the file"
                ),
                "leave the option out",
            )
        return True
    if any(each.read_order == "alone" for each in split.catalog.containers):
        return False
    return is_pass_better(split.source, left, options)


@contextlib.contextmanager
def unfinished(layout: Layout, spared: str = "") -> Iterator[Layout]:
    """The layout with a folder of this run's own for unfinished files and the parts of shards,
    removed at the end.

    Leftovers of other runs are removed first: this process holds the layout's locks, so their
    drivers are dead. A worker that outlives its driver, here or on another machine, can't name
    files any more. Ranks hold no locks: those with the key ``spared`` make the same shards, and may
    be running. In an object store nothing is left.
    """
    remove_unfinished(layout, spared)
    with unfinished_of(layout, run_name()) as own:
        yield own


@contextlib.contextmanager
def unfinished_of(layout: Layout, run: str) -> Iterator[Layout]:
    """The layout for a run of this name, without touching the files of others."""
    own = replace(layout, run=run)
    partial = local_or_none(own.partial_dir)
    if partial is None:
        yield layout
        return
    for folder in (layout.output_dir, partial, layout.index_dir):
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
    try:
        yield own
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        with contextlib.suppress(OSError):
            partial.parent.rmdir()


def take_in_parts(layout: Layout, journal: Journal) -> None:
    """Merge the records of a finished set's ranks into one, and remove their other files;
    running ranks then stop.
    """
    if not layout.rank_parts():
        return
    remove_unfinished(layout)
    journal.take_in()
    for path in layout.plan_path.parent.glob(
        "*rank-*"
    ):  # the mark of a rank that was killed may be unfinished
        path.unlink(missing_ok=True)


def run_name() -> str:
    """A unique name for a run, which shows the process and the machine."""
    host = re.sub(r"[^A-Za-z0-9.-]", "_", os.uname().nodename)
    return f"{host}-{os.getpid()}-{os.urandom(4).hex()}"


def find_unfinished(layout: Layout, spared: str = "", own: str = "") -> list[Path]:
    """The folders of unfinished files of other runs than ``own``,
    except ranks with the key ``spared``.
    """
    partials = local_or_none(layout.partials_dir)
    folders = list(partials.glob("*")) if partials else []
    others = [folder for folder in folders if folder.name != own]
    return [
        folder for folder in others if not (spared and folder.name.startswith(f"rank-{spared}-"))
    ]


def remove_unfinished(layout: Layout, spared: str = "", own: str = "") -> None:
    """Rename each run's unfinished files out of reach in one step, then remove them;
    see ``find_unfinished``.
    """
    for path in find_unfinished(layout, spared, own):
        gone = path.with_name(f"gone-{os.urandom(8).hex()}")
        with writing(path), contextlib.suppress(FileNotFoundError):
            path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    if (partials := local_or_none(layout.partials_dir)) is not None:
        with contextlib.suppress(OSError):
            partials.rmdir()


def prepare_tasks(
    works: Sequence[Work],
    layout: Layout,
    options: MakingOptions,
    progress: Progress,
    *,
    expected: Mapping[str, ShardInfo] | None = None,
    syncs: bool = False,
) -> Iterator[ShardTask]:
    """The task of each shard, one at a time, after the archives that are read in one pass.

    ``expected`` are the entries that shards must match when they are made again. ``syncs`` is as in
    ShardTask.
    """
    catalogs = [_prepared(each, layout, options, progress) for each in works]
    return (
        ShardTask(
            plan_name(plan),
            plan.fingerprint,
            layout,
            catalog.whole(work.split.rows(plan)),
            work.split.recorder,
            compression=options.compression,
            on_damaged=options.on_damaged,
            expected=expected[plan_name(plan)] if expected else None,
            bundle=_bundles_of(work, layout) / plan_name(plan) if work.in_order else None,
            syncs=syncs,
        )
        for work, catalog in zip(works, catalogs, strict=True)
        for plan in work.plans
    )


def _prepared(work: Work, layout: Layout, options: MakingOptions, progress: Progress) -> Catalog:
    """The catalog, after a pass through the archive that bundles the images of each shard,
    if that is necessary.
    """
    catalog, consumption = work.split.catalog, work.consumption
    if not work.in_order:
        return catalog
    if consumption is None:
        names = set(map(plan_name, work.plans))
        if catalog.is_in_order:
            room = (
                f"{work.size:,} bytes of images go to a bundle per shard in "
                f"{layout.partials_dir} first"
            )
            progress.note(f"{work.split.source.name} can only be read in its order: {room}")
    else:
        names = set(map(plan_name, work.plans) if consumption.is_read else consumption.shards)
        catalog = replace(catalog, containers=consumption.containers())
    shards = [
        (plan_name(plan), work.split.rows(plan))
        for plan in work.split.plans
        if plan_name(plan) in names
    ]
    memory = work.step(options.memory)
    return regroup(
        catalog,
        shards,
        _bundles_of(work, layout),
        memory=memory,
        progress=progress,
        keeper=consumption,
    )


def _bundles_of(work: Work, layout: Layout) -> Path:
    return work.consumption.paths.bundles if work.consumption else local_path(layout.bundle_dir)


class Made(Struct, frozen=True):
    """The result of the work: an outcome for each finished shard, an error for each other one."""

    outcomes: tuple[Outcome, ...]
    failures: tuple[Exception, ...]


def make_shards(
    tasks: Iterator[ShardTask], layout: Layout, engine: Engine, journal: Journal, progress: Progress
) -> Made:
    """Make the shards of all tasks; each is journalled once in place,
    and a failing one stops no other.
    """
    outcomes: dict[str, Outcome] = {}
    failures: list[Exception] = []
    unsynced: list[ShardTask] = []
    held = 0
    synced = time.monotonic()
    with contextlib.closing(engine.map(ShardMaker(), tasks)) as results:
        for result in results:
            task = result.task
            if not isinstance(result, Done):
                failures.append(named(result.error, task.name))
                continue
            made: Outcome = result.value
            is_again = task.name in outcomes
            outcomes[task.name] = made
            if made.info is not None:
                unsynced.append(task)
                held += made.info.size if task.bundle else 0
                before = journal.get(made.info.name)
                if before is not None and _is_other(made.info, before):
                    progress.note(
                        f"{made.info.name} differs from the one made before from the same inputs: "
                        f"{expected_and_got(before, made.info)}; its images changed and kept "
                        "length and time, or a "
                        "library makes other bytes of them"
                    )
                if made.info != before:
                    journal.append(made.info)
            progress.advance(0 if is_again else len(task.catalog))
            if time.monotonic() - synced > SYNC_SECONDS or held > HELD:
                _sync(layout, journal, unsynced)
                synced, held = time.monotonic(), 0
    _sync(layout, journal, unsynced)
    return Made(tuple(outcomes.values()), tuple(failures))


def _is_other(made: ShardInfo, before: ShardInfo) -> bool:
    """Whether a shard has other records than before, although inputs and settings are the same."""
    was_meant = (made.fingerprint, made.set_aside) == (before.fingerprint, before.set_aside)
    return was_meant and made.digest != before.digest


def _sync(layout: Layout, journal: Journal, unsynced: list[ShardTask]) -> None:
    """Make the indexes and names of these shards durable, then the journal that lists them; bundles
    are removed last.

    Raises:
        WriteError: the disk failed. None of these shards counts as done: their indexes are removed.
    """
    try:
        with writing(layout.index_dir):
            stores = {store.device: store for store in (layout.shards, layout.indexes)}
            for store in stores.values():
                store.sync()
    except PrepError:
        for path in (path for task in unsynced for path in layout.index_paths(task.name)):
            with contextlib.suppress(OSError):
                path.unlink()
        raise
    journal.sync()
    for task in unsynced:
        if task.bundle:
            task.bundle.unlink(missing_ok=True)
    unsynced.clear()
