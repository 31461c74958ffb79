"""Inventory: the shards that exist and those that should.
Checked: the totals of all shard reports.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from imagenet_prep.checks.checked_dataset import CheckedDataset, Published
from imagenet_prep.checks.examiner import LIMIT
from imagenet_prep.checks.shard_check import REMEDY_FOREIGN, ShardReport, remedy_own
from imagenet_prep.datasets import order
from imagenet_prep.datasets.plan_differences import differences
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command, mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import Problem, ProblemKind, ShardInfo
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import RESUME, SetState
from imagenet_prep.storage.files import scan
from imagenet_prep.storage.layout import Layout, parse_shard_name, shard_name, split_of
from imagenet_prep.text import listed, number_of

REMEDY_SETTINGS = Hint(
    "run the same ", mention("convert"), " again, with the settings that you want and --overwrite"
)
REMEDY_MANIFEST = Hint(
    "put back the manifest of this set, or move this one away and run the same ",
    mention("convert"),
    " again: finished shards are kept",
)
REMEDY_STRAY = "move it away: a glob over all shards would match it"
_MOST_MISSING = 99_999
"""Missing shards with a finding of their own each, if only names tell the number of shards."""


class Inventory(Struct, frozen=True):
    """The existing files (sizes in bytes by name) and the expected shards, by split, in order.

    ``images`` is the number of images that each split of the data set ``dataset`` should have.
    ``state`` is what the folder holds. Without a manifest that covers the plan, the expected shards
    are the planned ones.
    """

    dataset: str
    images: Mapping[str, int]
    sizes: Mapping[str, int]
    shards: Mapping[str, Sequence[str]]
    manifest: Manifest | None
    infos: Mapping[str, ShardInfo]
    state: SetState

    @property
    def is_unfinished(self) -> bool:
        """Whether the conversion has not finished, and the expected shards are the planned ones."""
        return self.manifest is None and self.state.plan is not None

    @property
    def expected(self) -> tuple[str, ...]:
        """The shards that should exist."""
        return tuple(itertools.chain.from_iterable(self.shards.values()))

    @property
    def present(self) -> tuple[str, ...]:
        """The expected shards that exist."""
        return tuple(name for name in self.expected if name in self.sizes)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the data set."""
        return tuple(self.images)

    def of(self, split: str) -> Sequence[str]:
        """The expected shards of one split."""
        return self.shards.get(split, ())


# existing and expected shards ---------------------------------------------------------------------


def take_inventory(state: SetState, dataset: CheckedDataset) -> Inventory:
    """Existing and expected shards: from the sound manifest, then from the plan, otherwise from the
    files' names.

    A manifest that is older than the plan does not count: the set is growing, or it is being
    replaced.

    Raises:
        InputError: no manifest lists the expected shards, and no shards exist.
    """
    manifest = state.manifest
    sizes = _list_files(state.records, dataset.splits)
    inventory = Inventory(
        dataset=dataset.name,
        images=dataset.images,
        sizes=sizes,
        shards={},
        manifest=None,
        infos=state.infos,
        state=state,
    )
    if manifest is not None and state.covers_plan:
        shards = _recorded_shards(dataset.splits, manifest)
        return replace(inventory, shards=shards, manifest=manifest, infos=manifest.shards)
    if not any(map(parse_shard_name, sizes)):
        raise _no_shards(state.records, dataset)
    if state.plan is not None:
        planned_images = {split: totals.images for split, totals in state.plan.totals.items()}
        planned_splits = dict.fromkeys((*dataset.splits, *state.plan.totals))
        planned_shards = {split: state.plan.names(split) for split in planned_splits}
        images = {**dataset.images, **planned_images}
        return replace(inventory, images=images, shards=planned_shards)
    existing_shards = {split: list(_set_of(split, sizes)) for split in dataset.splits}
    existing_infos = {name: info for name, info in state.infos.items() if name in sizes}
    return replace(inventory, shards=existing_shards, infos=existing_infos)


def _recorded_shards(splits: Iterable[str], manifest: Manifest) -> dict[str, list[str]]:
    """The names of the shards that a manifest counts, by split."""
    shards = {}
    for split in splits:
        if split in manifest.totals:
            count = manifest.totals[split].shards
            shards[split] = [shard_name(split, number, count) for number in range(count)]
    return shards


def _no_shards(records: SetRecords, dataset: CheckedDataset) -> InputError:
    """The error for a folder without shards; it names the sets below, or the command to run."""
    layout = records.layout
    folders = layout.sets_below()
    if folders:
        return InputError(
            f"no shards in {layout.output_dir} itself",
            f"found the sets of recipes in {listed(map(str, folders))}",
            command("verify", folders[0]),
        )
    whose = f" of {dataset.name}" if layout.set_name else ""
    example_split = (*dataset.splits, "train")[0]
    following = dataset.following(records, {"convert": "partly", "annotate": "done"})
    return InputError(
        f"no shards in {layout.output_dir}{whose}",
        f"expected files such as {example_split}-00000-of-01024",
        Hint(following, "    (or name the folder that holds them)"),
    )


def _list_files(records: SetRecords, splits: Collection[str]) -> dict[str, int]:
    """Every file that a glob over train-* and validation-* matches,
    except shards of other sets, with its size.
    """
    layout = records.layout
    if not layout.output_dir.is_dir():
        return {}
    prefixes = tuple(f"{split}-" for split in splits)
    foreign_splits = records.foreign_splits.keys() - {*splits}
    sizes: dict[str, int] = {}
    with scan(layout.output_dir) as entries:
        for entry in entries:
            is_dangling = entry.is_symlink() and not Path(entry.path).exists()
            is_foreign = split_of(entry.name) in foreign_splits
            if entry.name.startswith(prefixes) and not is_dangling and not is_foreign:
                sizes[entry.name] = entry.stat().st_size
    return dict(sorted(sizes.items()))


def _set_of(split: str, names: Iterable[str]) -> Iterator[str]:
    """The shards of the set that most of ``names`` belong to.

    Raises:
        InputError: most of that set is missing.
    """
    existing: Counter[int] = Counter()
    examples: dict[int, str] = {}
    for name in names:
        parsed = parse_shard_name(name)
        if parsed is None or parsed[0] != split:
            continue
        _, number, count = parsed
        if number < count:
            existing[count] += 1
        if name.endswith(f"-of-{count:05d}"):
            examples.setdefault(count, name)
    if not existing:
        return
    count = max(existing, key=lambda total: (existing[total], total))
    if count - existing[count] > _MOST_MISSING:
        raise InputError(
            f"only {existing[count]:,} of {count:,} {split} shards exist",
            f"by their names, such as {examples[count]}",
            "name the folder that holds them all",
        )
    for number in range(count):
        yield shard_name(split, number, count)


def check_plan(state: SetState, manifest: Manifest) -> list[Problem]:
    """A problem if a manifest is not that of the plan in its folder;
    a set that grows or is replaced differs.
    """
    if not state.covers_plan:
        return []
    fault = plan_fault(state.records, manifest)
    if not fault:
        return []
    name = state.layout.manifest_path.name
    return [Problem(ProblemKind.BAD_MANIFEST, name, fault, REMEDY_MANIFEST)]


def plan_fault(records: SetRecords, manifest: Manifest) -> str:
    """How a manifest differs from the plan of its folder;
    "" if it doesn't, or if there is no plan.
    """
    plan = records.plan
    changes = differences(plan, manifest, or_else="") if plan else ()
    if not changes:
        return ""
    return (
        f"it is of a set with other settings or images than {records.layout.plan_path}: "
        f"these differ: {', '.join(changes)}"
    )


def check_state(state: SetState) -> list[Problem]:
    """A problem for a set that is not finished,
    unless missing shards or a damaged manifest say so already.
    """
    if state.kind not in ("part", "unfinished", "replacing"):
        return []
    if state.missing:
        is_reported = state.sizes.keys().isdisjoint(state.missing)
    else:
        is_reported = state.damage is not None
    if is_reported:
        return []
    name = state.layout.manifest_path.name
    return [Problem(ProblemKind.UNFINISHED, name, state.sentence, state.following)]


def check_counts(
    manifest: Manifest, published: Mapping[str, Published] | None
) -> Iterator[Problem]:
    """A problem for each split whose recorded numbers of images contradict each other,
    or the published ones.
    """
    for split in manifest.totals:
        expected = published[split].images if published else None
        fault = _count_fault(manifest, split, expected)
        if fault:
            yield Problem(ProblemKind.BAD_MANIFEST, "manifest.json", fault, REMEDY_SETTINGS)


def _count_fault(manifest: Manifest, split: str, published_images: int | None) -> str:
    """How the numbers of a split contradict each other, or the published one; "" if they don't."""
    totals = manifest.totals[split]
    images_per_shard = []
    for number in range(totals.shards):
        info = manifest.shards[shard_name(split, number, totals.shards)]
        images_per_shard.append(info.records + len(info.set_aside))
    image_count = sum(images_per_shard)
    bounds = order.bounds(image_count, totals.shards)
    if [stop - start for start, stop in pairwise(bounds)] != images_per_shard:
        return f"its records per {split} shard are not those of the partition"
    source = manifest.sources.get(split)
    if not isinstance(source, dict) or source.get("images") != image_count:
        return (
            f"its sources do not give the {image_count:,} {split} images that its shards "
            "were made from"
        )
    expected = image_count if published_images is None else published_images
    if totals.expected != expected:
        return f"it expects {totals.expected:,} {split} images, and not {expected:,}"
    return ""


# names and sizes ----------------------------------------------------------------------------------


def check_names(inventory: Inventory) -> list[Problem]:
    """Missing shards, files that a glob would match as shards,
    and shards that belong to no set of the folder.
    """
    missing = [name for name in inventory.expected if name not in inventory.sizes]
    problems = [_missing(name, inventory) for name in missing]
    expected = set(inventory.expected)
    by_size = {inventory.infos[name].size: name for name in missing if name in inventory.infos}
    for name, size in inventory.sizes.items():
        if name not in expected:
            problems.append(_stray(name, by_size.get(size), inventory))
    return problems + _orphans(inventory.state)


def _missing(name: str, inventory: Inventory) -> Problem:
    info = inventory.infos.get(name)
    if info is not None:
        content = f"{info.records:,} images in {info.size:,} bytes"
        remedy = remedy_own(inventory.state) if inventory.state.covers_plan else RESUME
    elif inventory.is_unfinished or inventory.infos:
        content, remedy = "it has not been made yet", RESUME
    else:
        content, remedy = f"a part of {inventory.dataset}", REMEDY_FOREIGN
    detail = f"it is missing: {content}"
    return Problem(ProblemKind.MISSING_SHARD, name, detail, remedy, expected=content)


def _stray(name: str, twin: str | None, inventory: Inventory) -> Problem:
    """A file that is not expected; ``twin`` is a missing shard of its size.

    A shard that the journal lists is never moved away.
    """
    if twin is not None:
        detail = f"it has the size of {twin}, which is missing"
        remedy = f"rename it to {twin} and verify again"
    elif name in inventory.state.journalled:
        detail, remedy = "the journal lists it, and the manifest is older", RESUME
    else:
        detail, remedy = "it is not a shard of this set", REMEDY_STRAY
    return Problem(ProblemKind.STRAY_FILE, name, detail, remedy, expected=twin or "", got=name)


def _orphans(state: SetState) -> list[Problem]:
    """A problem if the folder has sets with prefixes, and shards that belong to none of them:
    a state is lost.
    """
    if not state.orphans or not state.has_prefixes:
        return []
    splits = listed(dict.fromkeys(split_of(name) for name in state.orphans))
    count = number_of(len(state.orphans), "shard")
    return [
        Problem(
            ProblemKind.STRAY_FILE,
            state.orphans[0],
            f"{count} of {splits} belong to no set of this folder: the state of their set is lost",
            "put back its folder below imagenet-prep/sets, or run its convert again",
            count=len(state.orphans),
        )
    ]


def check_sizes(inventory: Inventory, layout: Layout) -> list[Problem]:
    """Shards whose size is 0 or differs from the recorded one, or that have no index."""
    problems = []
    remedy = remedy_own(inventory.state)
    for name in inventory.present:
        info = inventory.infos.get(name)
        size = inventory.sizes[name]
        if info is None:
            if size == 0:
                detail = "it has 0 bytes"
                empty = Problem(ProblemKind.WRONG_SIZE, name, detail, REMEDY_FOREIGN, got="0")
                problems.append(empty)
            continue
        if size != info.size:
            problems.append(
                Problem(
                    ProblemKind.WRONG_SIZE,
                    name,
                    f"expected {info.size} bytes, got {size}",
                    remedy,
                    expected=str(info.size),
                    got=str(size),
                )
            )
        for path in layout.index_paths(name):
            if not path.is_file():
                detail = f"it has no index: expected {path}"
                problems.append(Problem(ProblemKind.BAD_INDEX, name, detail, remedy))
    return problems


# all shards together ------------------------------------------------------------------------------


MANY = 50
"""More problems of one kind, in more shards, are grouped:
the first are listed, the others counted.
"""


class Checked(Struct, frozen=True):
    """The findings in every shard: reports by name, and the labels that occur in each split.

    Reports are added in any order and keep no labels of their own.
    """

    reports: dict[str, ShardReport] = {}
    labels: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, name: str, report: ShardReport) -> None:
        """Add the report of a shard."""
        self.labels[split_of(name)].update(report.labels)
        self.reports[name] = replace(report, name=name, labels=(), counts=report.counts or _NONE)

    def of(self, names: Iterable[str]) -> list[ShardReport]:
        """The existing reports of these shards."""
        return [self.reports[name] for name in names if name in self.reports]


_NONE: Mapping[ProblemKind, int] = {}


def check_totals(
    split: str,
    reports: Sequence[ShardReport],
    classes: int,
    manifest: Manifest,
    *,
    counts_alone: bool = False,
) -> list[Problem]:
    """The totals of sound shards, compared with the manifest;
    ``counts_alone``: it may lack their classes and boxes.
    """
    totals = manifest.totals[split]
    records = sum(report.records for report in reports)
    boxes = sum(report.boxes for report in reports)
    expected = _totals_text(totals.images, totals.classes, totals.boxes)
    got = _totals_text(records, classes, boxes)
    if got == expected:
        return []
    has_set_aside = any(manifest.shards[report.name].set_aside for report in reports)
    # Classes and boxes are counted with images set aside.
    if (counts_alone or has_set_aside) and records == totals.images:
        return []
    remedy = Hint("run the same ", mention("convert"), " again, with --overwrite")
    detail = f"expected {expected}, got {got}"
    return [Problem(ProblemKind.WRONG_COUNT, split, detail, remedy, expected=expected, got=got)]


def _totals_text(records: int, classes: int, boxes: int) -> str:
    return f"{records} records, {classes} classes, {boxes} boxes"


def group(problems: Sequence[Problem]) -> list[Problem]:
    """The problems; a kind with many shards is listed for the first ones and then counted."""
    problems_by_kind: dict[ProblemKind, list[Problem]] = {}
    for problem in problems:
        problems_by_kind.setdefault(problem.kind, []).append(problem)
    grouped: list[Problem] = []
    for kind, problems_of_kind in problems_by_kind.items():
        if len(problems_of_kind) <= MANY:
            grouped += problems_of_kind
        else:
            grouped += problems_of_kind[:LIMIT]
            grouped.append(_count_problems(kind, problems_of_kind[LIMIT:]))
    return grouped


def _count_problems(kind: ProblemKind, problems: Sequence[Problem]) -> Problem:
    """One problem for several of a kind."""
    count = sum(problem.count for problem in problems)
    shards = len({problem.subject for problem in problems})
    detail = f"and {count:,} more of this kind in {number_of(shards, 'shard')}"
    last_problem = problems[-1]
    split = last_problem.subject.partition("-")[0]
    return Problem(kind, split, detail, last_problem.remedy, count=count)


# the set as one value -----------------------------------------------------------------------------


def fingerprint(reports: Mapping[str, ShardReport], shards: Sequence[str]) -> str:
    """One digest (SHA-256, hex) of the whole set: name, number of records and digest of each shard,
    in order.

    Equal records in equal shards have equal fingerprints, whatever made or compressed them. It is
    "" if a shard is missing or can't be read to its end.
    """
    digest = hashlib.sha256()
    for shard in shards:
        report = reports.get(shard)
        if report is None or not report.is_whole:
            return ""
        digest.update(f"{shard} {report.records} {report.digest}\n".encode())
    return digest.hexdigest()
