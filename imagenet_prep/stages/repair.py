"""Makes wrong or missing shards again from the raw data, with their recorded bytes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.set_checks import REMEDY_MANIFEST, plan_fault
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name, refuse_other_images
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command, mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import Done, Engine, ProblemKind, Progress, ShardInfo, ShardPlan, Silent
from imagenet_prep.reading.shard import Shard
from imagenet_prep.registry import known_set
from imagenet_prep.shards.run import make_shards, prepare_tasks
from imagenet_prep.shards.unfinished import find_unfinished, remove_unfinished, unfinished
from imagenet_prep.shards.work import Work, count_images, lay_out
from imagenet_prep.state.export_record import refuse_export
from imagenet_prep.state.indexes import agrees
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.plan_file import load_plan
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.space import Need, refuse_lack
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.framing import OVERHEAD, FramingError, Index

_REMEDY_STORE = "copy the set to a local folder, repair it there, and copy the repaired shards back"

OF_RECORDS = frozenset(
    {
        ProblemKind.BAD_EXAMPLE,
        ProblemKind.BAD_FIELD,
        ProblemKind.BAD_BOX,
        ProblemKind.WRONG_LABEL,
        ProblemKind.BAD_IMAGE,
        ProblemKind.SIZE_MISMATCH,
        ProblemKind.DUPLICATE,
    }
)
"""Problems of shards that may be unchanged: an image was accepted with ``--check header``; or
another shard, which did change, now holds one of its images too.
"""


class RepairSummary(Struct, frozen=True):
    """The result of a repair, by shard names in order.

    ``made``: made again; ``unchanged``: still as convert made them.
    """

    made: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


def repair(
    layout: Layout,
    engine: Engine,
    faulty: Mapping[str, Collection[ProblemKind]],
    *,
    progress: Progress | None = None,
) -> RepairSummary:
    """Make the ``faulty`` shards of a verdict again, with the bytes that the manifest records.

    Only a shard with the recorded digest replaces another. Its entries in journal and manifest stay
    unchanged. A shard that can't be made again stays, and so do files that are no shards of the
    set.

    Raises:
        InputError: there is no manifest; or a shard's raw data has changed: then all other shards
            are made.
        SpaceError, BusyError, WriteError: no space is left, another run works here, or the storage
            fails.
    """
    progress = progress or Silent()
    layout = layout.one_set()
    with hold(layout.lock_paths):
        records = SetRecords(layout)
        layout = replace(layout, raw=layout.raw or records.raw_dir)
        records = records.at(layout)
        manifest = require_manifest(records)
        kinds = {name: faulty[name] for name in sorted(faulty) if name in manifest.shards}
        unchanged = _unchanged(kinds, manifest, layout, engine)
        names = [name for name in kinds if name not in unchanged]
        if names:
            with Journal(layout.journal_path) as journal:
                work = _Repair(records, engine, manifest, journal, progress)
                work.run(names)
        else:
            remove_unfinished(layout, _plan_key(layout))
        return RepairSummary(tuple(names), unchanged)


def require_manifest(records: SetRecords) -> Manifest:
    """The manifest, which defines every shard.

    Raises:
        InputError: there is none, it can't be read or has changed, or the plan has other settings.
    """
    layout = records.layout
    state = SetState.judge(records)
    if state.manifest is not None and state.covers_plan:
        if fault := plan_fault(records, state.manifest):
            raise InputError(
                f"{layout.manifest_path} is not the manifest of this set", fault, REMEDY_MANIFEST
            )
        return state.manifest
    if state.damage is not None:
        then = Hint(state.damage.remedy, "; then run ", mention("repair"), " again")
        raise InputError(
            state.damage.detail, "expected the manifest as imagenet-prep convert wrote it", then
        )
    if state.kind in ("nothing", "foreign"):
        raise _nothing_to_repair(state)
    raise InputError(
        state.sentence,
        "expected a finished set, whose manifest.json lists each shard",
        state.following,
    )


def _nothing_to_repair(state: SetState) -> InputError:
    """The error for a folder without shards, or with shards whose content is not recorded."""
    layout = state.layout
    expected = f"expected {layout.manifest_path}, which convert writes when every shard is done"
    if state.kind == "foreign":
        return InputError(
            f"{layout.output_dir} holds shards, and no record of what each should hold",
            expected,
            Hint(
                "if convert made them, copy also their folder, imagenet-prep; otherwise get sound "
                "copies of the damaged shards, or make the set again in another folder with ",
                mention("convert"),
            ),
        )
    refuse_export(layout.output_dir)
    below = layout.sets_below()
    hint = Hint("give the folder of that set: ", command("repair", below[0])) if below else ""
    what = f"{layout.output_dir} holds no shards"
    if below:
        what = f"{what}; found a set in {below[0]}"
    return InputError(what, expected, hint or "give the folder in which convert made the shards")


def _plan_key(layout: Layout) -> str:
    """The key of the plan, whose ranks may be running: they hold no lock."""
    plan = load_plan(layout)
    return plan.key if plan is not None else ""


# which shards -------------------------------------------------------------------------------------


def _unchanged(
    kinds: Mapping[str, Collection[ProblemKind]], manifest: Manifest, layout: Layout, engine: Engine
) -> tuple[str, ...]:
    """The shards that are unchanged since they were made, whatever their records hold."""
    doubtful = [name for name in kinds if OF_RECORDS.issuperset(kinds[name])]
    check = _RecordCheck(layout, manifest.shards)
    unchanged: list[str] = []
    for outcome in engine.map(check, doubtful):
        if isinstance(outcome, Done) and outcome.value:
            unchanged.append(outcome.task)
    return tuple(sorted(unchanged))


class _RecordCheck(Struct, frozen=True):
    """Checks whether a shard still holds the records that it was made with."""

    layout: Layout
    infos: dict[str, ShardInfo]

    def __call__(self, name: str) -> bool:
        index = Index()
        path = self.layout.shard_path(name)
        try:
            for record in Shard.open(path).framed():
                if not record.intact:
                    return False
                index.add(len(record.data) + OVERHEAD, record.crc, "")
        except (FramingError, InputError):
            return False
        return index.digest == self.infos[name].digest


# the work -----------------------------------------------------------------------------------------


class _Repair(Struct, frozen=True):
    """Makes shards of a set again, as its manifest records them."""

    records: SetRecords
    engine: Engine
    manifest: Manifest
    journal: Journal
    progress: Progress

    @property
    def layout(self) -> Layout:
        """The folder, and which of its sets."""
        return self.records.layout

    def run(self, names: Sequence[str]) -> None:
        """Make these shards, once nothing speaks against it."""
        self.refuse_obstacles(names)
        split_names = {split_of(name) for name in names}
        splits = sorted(split_names - {""})
        dataset = known_set(self.records, self.manifest)
        dataset.refuse_without_source()
        plan = dataset.plan(self.records, self.engine, dataset.options, self.progress, splits)
        for split in plan.splits:
            refuse_other_images(split, self.manifest, self.layout)
        self.make(names, plan.splits, dataset.options)

    def refuse_obstacles(self, names: Sequence[str]) -> None:
        """Raise InputError for shards whose content is unknown, or whose place a folder takes."""
        for name in names:
            # A damaged record, or a stopped conversion: without an index, either entry may be
            # right.
            info = self.manifest.shards[name]
            is_contradicted = self.journal.get(name) not in (None, info)
            if is_contradicted and not agrees(self.layout, info):
                raise InputError(
                    (
                        f"manifest.json and journal.jsonl in {self.layout.state_dir} list "
                        f"different content of {name}"
                    ),
                    "expected the same content in both, or an index that agrees with manifest.json",
                    Hint(
                        "run the same ",
                        mention("convert"),
                        " again: it keeps that shard or makes it again, and writes the manifest",
                    ),
                )
            for path in (self.layout.shard_path(name), *self.layout.index_paths(name)):
                if path.is_dir():
                    raise InputError(
                        f"{path} is a folder",
                        "expected a file, or nothing",
                        "move it away and run repair again",
                    )

    def make(
        self, names: Sequence[str], planned: Sequence[PlannedSplit], options: MakingOptions
    ) -> None:
        """Make these shards, which belong to these splits."""
        progress = self.progress
        to_make = set(names)
        plans = itertools.chain.from_iterable(split.plans for split in planned)
        todo = [plan for plan in plans if plan_name(plan) in to_make]
        works = lay_out(planned, todo, self.layout, options, remedy=_REMEDY_STORE)
        self._check_room(todo, works)
        with unfinished(self.layout, _plan_key(self.layout)) as layout:
            tasks = prepare_tasks(works, layout, options, progress, expected=self.manifest.shards)
            progress.begin("repair", sum(map(count_images, todo)), "images")
            made = make_shards(tasks, layout, self.engine, self.journal, progress)
            progress.end()
        if made.failures:
            shards = number_of(len(todo), "shard was", "shards were")
            progress.note(
                f"{len(made.outcomes)} of {shards} made again; the other shards are unchanged"
            )
            raise made.failures[0]

    def _check_room(self, todo: Sequence[ShardPlan], works: Sequence[Work]) -> None:
        """Check the space: each worker first writes a new shard next to the old one,
        and what killed runs left goes.
        """
        layout, workers = self.layout, self.engine.workers
        sizes = []
        growth = 0
        for plan in todo:
            name = plan_name(plan)
            size = self.manifest.shards[name].size
            sizes.append(size)
            path = layout.shard_path(name)
            present_size = path.stat().st_size if path.is_file() else 0
            growth += max(0, size - present_size)
        unfinished_shards = min(workers, len(todo)) * max(sizes)
        bundles = sum(work.size for work in works if work.in_order)
        folders = find_unfinished(layout, _plan_key(layout))
        freed = sum(map(_bytes_below, folders))
        needed = growth + unfinished_shards + bundles - freed
        shards = number_of(len(todo), "shard")
        need = Need("repair", f"{shards} made again", layout.output_dir, needed, workers)
        refuse_lack([need])


def _bytes_below(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        if path.is_file():
            size += path.stat().st_size
    return size
