"""Shards found wrong or missing -> the same shards as they were, made again from the raw data."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from imagenet_prep.checks.index_check import agrees, corrected
from imagenet_prep.checks.inventory import manifest_fault, plan_fault
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.plan import PlannedSplit, plan_name
from imagenet_prep.errors import InputError
from imagenet_prep.images import pixels
from imagenet_prep.model import Done, Engine, ProblemKind, Progress, ShardInfo, ShardPlan, Silent
from imagenet_prep.reading.shard import Shard
from imagenet_prep.registry import known_set
from imagenet_prep.shards.run import Expected, Work, count_images, lay_out, make_shards, prepare_tasks, unfinished
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest, changed, load_unproven
from imagenet_prep.storage.files import Need, refuse_lack
from imagenet_prep.storage.layout import Layout, parse_shard_name
from imagenet_prep.storage.lock import hold
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.framing import FramingError, framing_digest

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
"""Problems that a shard can have though it has not changed since it was made: its image was taken with ``--check
header``; or another shard, which did change, now holds one of its images too."""


@dataclass(frozen=True, slots=True)
class RepairSummary:
    """What a repair did, by the names of shards in order.

    ``made`` again; ``unchanged`` since convert made them; ``corrected``: their entries in the manifest.
    """

    made: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    corrected: tuple[str, ...] = ()


def repair(
    layout: Layout,
    engine: Engine,
    faulty: Mapping[str, Collection[ProblemKind]],
    *,
    progress: Progress | None = None,
) -> RepairSummary:
    """Make the ``faulty`` shards of a verdict again, with the bytes that the manifest records.

    A shard is replaced only by one with the recorded digest, and its entries in journal and manifest stay as they
    are. One that can't be made again stays as it is, and so do files that are no shard of the set.

    Raises:
        InputError: there is no manifest; or the raw data is not what a shard was made from: all others are made then.
        SpaceError, BusyError, WriteError: as their names say.
    """
    progress = progress or Silent()
    with hold(layout.lock_paths):
        manifest, entries = read_manifest(layout)
        if entries:
            manifest.save(layout.manifest_path)
        kinds = {name: found for name, found in sorted(faulty.items()) if name in manifest.shards}
        unchanged = _unchanged(kinds, manifest, layout, engine)
        names = [name for name in kinds if name not in unchanged]
        if names:
            with Journal(layout.journal_path) as journal:
                work = _Repair(layout, engine, manifest, journal, progress)
                work.refuse_obstacles(names)
                splits = sorted({parsed[0] for parsed in map(parse_shard_name, names) if parsed})
                dataset = known_set(layout, manifest)
                options, planned = dataset.plan_again(layout, engine, manifest, splits, progress)
                work.make(names, planned, options)
        return RepairSummary(tuple(names), unchanged, entries)


def read_manifest(layout: Layout) -> tuple[Manifest, tuple[str, ...]]:
    """The manifest, without which nothing tells what a shard must be, and the shards whose entries were corrected.

    They are those that journal and index prove wrong; the file stays as it is.

    Raises:
        InputError: there is none, it can't be understood, or something else in it has changed, too.
    """
    manifest = load_unproven(layout.manifest_path)
    if manifest is not None:
        found = corrected(layout, manifest, Journal(layout.journal_path))
        if found is None:
            raise changed(layout.manifest_path)
        names = tuple(sorted(name for name, info in found.shards.items() if info != manifest.shards[name]))
        if fault := (names and manifest_fault(found)) or plan_fault(layout, found):
            raise changed(layout.manifest_path, fault)
        return found, names
    is_ours = layout.journal_path.exists()
    raise InputError(
        f"no manifest in {layout.state_dir}: nothing tells what each shard must be",
        "expected manifest.json, which imagenet-prep convert writes when every shard is done",
        "run the same imagenet-prep convert again: it makes what is missing, and the manifest"
        if is_ours
        else "name the folder with --output if the shards are elsewhere; of another tool's shards get sound copies",
    )


# which shards --------------------------------------------------------------------------------------------------


def _unchanged(
    kinds: Mapping[str, Collection[ProblemKind]], manifest: Manifest, layout: Layout, engine: Engine
) -> tuple[str, ...]:
    """The shards that are as they were made, whatever is said of their records."""
    doubtful = [name for name, found in kinds.items() if OF_RECORDS.issuperset(found)]
    results = engine.map(_Look(layout, manifest.shards), doubtful)
    return tuple(sorted(result.task for result in results if isinstance(result, Done) and result.value))


@dataclass(frozen=True, slots=True)
class _Look:
    """Says of shards, by name, whether they still hold the records that they were made of."""

    layout: Layout
    infos: dict[str, ShardInfo]

    def __call__(self, name: str) -> bool:
        lengths, crcs = array("Q"), array("I")
        try:
            for record in Shard.open(self.layout.shard_path(name)).framed():
                if not record.intact:
                    return False
                lengths.append(len(record.data))
                crcs.append(record.crc)
        except (FramingError, InputError):
            return False
        return framing_digest(lengths, crcs) == self.infos[name].digest


# the work ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Repair:
    """Makes shards of a set again, as its manifest says they were."""

    layout: Layout
    engine: Engine
    manifest: Manifest
    journal: Journal
    progress: Progress

    def refuse_obstacles(self, names: Sequence[str]) -> None:
        """Raise InputError for shards of which it isn't known what they must be, or that folders stand in for."""
        for name in names:
            # A damaged record, or a conversion that was stopped: without an index no guessing which of the two holds.
            info = self.manifest.shards[name]
            if self.journal.get(name) not in (None, info) and not agrees(self.layout, info):
                raise InputError(
                    f"manifest and journal in {self.layout.state_dir} contradict each other about {name}",
                    "expected the same entry in both, or an index that agrees with one of them",
                    "run the same imagenet-prep convert again: it makes that shard again, and keeps the others",
                )
            for path in (self.layout.shard_path(name), *self.layout.index_paths(name)):
                if path.is_dir():
                    what, hint = "expected a file, or nothing", "move it away and repair again"
                    raise InputError(f"{path} is a folder", what, hint)

    def make(self, names: Sequence[str], planned: Sequence[PlannedSplit], options: MakingOptions) -> None:
        """Make these shards, of the splits that they belong to."""
        wanted, progress = set(names), self.progress
        todo = [plan for split in planned for plan in split.plans if plan_name(plan) in wanted]
        works = lay_out(planned, todo, self.layout, options)
        with unfinished(self.layout) as own:
            self._check_room(todo, works)
            expected = Expected(self.manifest.shards, _other_codec(self.manifest))
            tasks = prepare_tasks(works, own, options, progress, expected=expected)
            progress.begin("repair", sum(map(count_images, todo)), "images")
            made = make_shards(tasks, own, self.engine, self.journal, progress)
            progress.end()
        if made.failures:
            progress.note(
                f"{len(made.outcomes)} of {number_of(len(todo), 'shard was', 'shards were')} made again; "
                "the others are as they were"
            )
            raise made.failures[0]

    def _check_room(self, todo: Sequence[ShardPlan], works: Sequence[Work]) -> None:
        """A shard takes the place of the one found, but first each worker writes one beside it."""
        sizes = {plan_name(plan): self.manifest.shards[plan_name(plan)].size for plan in todo}
        found = {path.name: path.stat().st_size for path in map(self.layout.shard_path, sizes) if path.is_file()}
        growth = sum(max(0, size - found.get(name, 0)) for name, size in sizes.items())
        bundles = sum(work.size for work in works if work.in_order)
        needed = growth + min(self.engine.workers, len(todo)) * max(sizes.values()) + bundles
        what = f"{number_of(len(todo), 'shard')} made again"
        refuse_lack([Need("repair", what, self.layout.output_dir, needed, self.engine.workers)])


def _other_codec(manifest: Manifest) -> str:
    """How what encodes images now differs from what did then; "" if it doesn't, or images were taken as they are."""
    how = manifest.settings.get("reencode")
    if not how or how.get("codec") == pixels.codec():
        return ""
    return f"re-encoded then by {how.get('codec')}; installed now: {pixels.codec()}"
