"""check_names, check_sizes ...: an Inventory and its SetState -> Problems of a whole set, found
without a look into a shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec.structs import replace

from imagenet_prep.checks.checked_dataset import Published
from imagenet_prep.checks.inventory import Inventory
from imagenet_prep.checks.shard_check import (
    REMEDY_EMPTY,
    REMEDY_FOREIGN,
    index_fault,
    remedy_at,
)
from imagenet_prep.datasets import order
from imagenet_prep.datasets.plan_differences import differences
from imagenet_prep.escaping import command, mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.state.manifest import KEPT, Manifest
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import RESUME, SetState
from imagenet_prep.storage.files import kind_in_words, kind_of
from imagenet_prep.storage.layout import STATE_NAME, Layout, shard_name, split_of
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.text import listed, number_of

REMEDY_COUNTS = Hint(
    "restore the manifest.json that convert wrote for these shards; "
    "or, if you still have the raw data, run the same ",
    mention("convert"),
    " again with --overwrite",
)
REMEDY_MANIFEST = Hint(
    "restore the manifest.json that convert wrote for these shards; "
    "or, if you still have the raw data, move this manifest.json away and run the same ",
    mention("convert"),
    f" again: it {KEPT}",
)
REMEDY_STRAY = "move each stray file away: a pattern for all shards, such as train-*, matches it"

REMEDY_RENAME = "rename each stray file to the missing shard that has its size, and verify again"


def remedy_own(state: SetState) -> str:
    """The remedy for a shard that was made here;
    before the conversion has finished, repair can't be used.

    Without plan and manifest, or with the manifest of another set, it is not known what a shard
    should hold: none should be removed or made again.
    """
    if state.is_without_records:
        return state.following
    if not state.covers_plan:
        return Hint(
            "remove each damaged shard before you run the same ",
            mention("convert"),
            " again: it keeps shards that are there, and makes those that are missing",
        )
    if plan_fault(state.records, state.manifest):
        return REMEDY_MANIFEST  # repair refuses a manifest of another set
    layout = state.layout
    elsewhere = layout.elsewhere(state.records.raw_dir)
    return Hint("make it again: ", command("repair", layout.data_dir, elsewhere))


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


def plan_fault(records: SetRecords, manifest: Manifest | None) -> str:
    """How a manifest differs from the plan of its folder;
    "" if it doesn't, or if one of them is missing.
    """
    plan = records.plan
    changes = differences(plan, manifest, or_else="") if plan and manifest else ()
    if not changes:
        return ""
    return (
        f"it is of a set with other settings or images than {records.layout.plan_path}: "
        f"these differ: {', '.join(changes)}"
    )


def check_state(state: SetState) -> list[Problem]:
    """A problem for a set that is not finished, or whose plan and manifest can't be used,
    unless missing shards, strays or a damaged manifest say so already.
    """
    lacks_records = state.kind == "contradictory" and state.manifest is None and not state.strays
    if not lacks_records and state.kind not in ("part", "unfinished", "replacing"):
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
            yield Problem(ProblemKind.BAD_MANIFEST, "manifest.json", fault, REMEDY_COUNTS)


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
        return f"its {split} shards have other numbers of records than convert gives them"
    source = manifest.sources.get(split)
    if not isinstance(source, dict) or source.get("images") != image_count:
        return (
            f"its shards were made from {number_of(image_count, f'{split} image')}, "
            "and the number of images in its sources differs"
        )
    expected = image_count if published_images is None else published_images
    if totals.expected != expected:
        return f"it expects {totals.expected:,} {split} images instead of {expected:,}"
    return ""


# names and sizes ----------------------------------------------------------------------------------


def check_names(inventory: Inventory) -> list[Problem]:
    """Missing shards, files that a glob would match as shards,
    and shards that belong to no set of the folder.
    """
    missing = [name for name in inventory.expected if name not in inventory.sizes]
    expected = set(inventory.expected)
    by_size = {inventory.infos[name].size: name for name in missing if name in inventory.infos}
    stray_problems: list[Problem] = []
    renamed: set[str] = set()
    for name, size in inventory.sizes.items():
        if name not in expected:
            twin = by_size.pop(size, None)  # one file alone can be renamed to it
            stray_problems.append(_stray(name, twin, inventory))
            if twin is not None:
                renamed.add(twin)
    problems: list[Problem] = []
    for name in missing:
        problem = _missing(name, inventory)
        if name in renamed:
            problem = replace(problem, remedy=REMEDY_RENAME)
        problems.append(problem)
    return problems + stray_problems + _orphans(inventory.state)


def _missing(name: str, inventory: Inventory) -> Problem:
    info = inventory.infos.get(name)
    if info is not None:
        content = f"{number_of(info.records, 'record')} in {info.size:,} bytes"
        remedy = _remedy_missing(inventory.state)
    elif inventory.is_unfinished or inventory.infos:
        content, remedy = "it has not been made yet", _remedy_missing(inventory.state)
    else:
        content, remedy = _told_by_names(name, inventory), REMEDY_FOREIGN
    local = local_or_none(inventory.state.layout.shard_path(name))
    is_link = local is not None and local.is_symlink()
    detail = f"it is {'a broken link' if is_link else 'missing'}: {content}"
    return Problem(ProblemKind.MISSING_SHARD, name, detail, remedy, expected=content)


def _told_by_names(name: str, inventory: Inventory) -> str:
    """Why a shard that nothing records should be there."""
    _, _, count = name.rpartition("-of-")
    for other in inventory.sizes:
        if split_of(other) == split_of(name) and other.endswith(f"-of-{count}"):
            return f"the names of the other shards say that there are {int(count):,}"
    return f"{inventory.dataset} has this shard"


def _remedy_missing(state: SetState) -> str:
    """The command that makes a missing shard of this set: repair, convert, or that of its rank."""
    if state.covers_plan:
        return remedy_own(state)
    return state.following if state.kind == "part" else RESUME


def _stray(name: str, twin: str | None, inventory: Inventory) -> Problem:
    """A file that is not expected; ``twin`` is a missing shard of its size.

    A shard that the journal lists is never moved away.
    """
    if twin is not None:
        detail = f"it has the size of {twin}, which is missing"
        remedy = REMEDY_RENAME
    elif name in inventory.state.journalled:
        detail, remedy = "the journal lists it, and the manifest is older", RESUME
    else:
        detail, remedy = "it is not a shard of this set", REMEDY_STRAY
    return Problem(ProblemKind.STRAY_FILE, name, detail, remedy, expected=twin or "", got=name)


def _orphans(state: SetState) -> list[Problem]:
    """A problem if the folder has sets with prefixes, and shards that belong to none of them:
    their state may be lost.
    """
    if not state.orphans or not state.has_prefixes:
        return []
    splits = listed(dict.fromkeys(split_of(name) for name in state.orphans))
    verb = "belongs" if len(state.orphans) == 1 else "belong"
    count = number_of(len(state.orphans), "shard")
    return [
        Problem(
            ProblemKind.STRAY_FILE,
            state.orphans[0],
            f"{count} of {splits} {verb} to no set of this folder: the manifest that lists them is "
            "lost, or another program made them",
            f"restore that manifest below {state.layout.output_dir / STATE_NAME}, "
            "or move these shards to another folder",
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
                empty = Problem(ProblemKind.WRONG_SIZE, name, detail, REMEDY_EMPTY, got="0")
                problems.append(empty)
            continue
        if size != info.size:
            problems.append(_wrong_size(layout.shard_path(name), info.size, size, remedy))
        for path in layout.index_paths(name):
            fault = index_fault(path)
            if fault:
                problem_remedy = remedy_at(path, remedy)
                problems.append(Problem(ProblemKind.BAD_INDEX, name, fault, problem_remedy))
    return problems


def _wrong_size(path: AnyPath, expected: int, got: int, remedy: str) -> Problem:
    """The problem of a shard of another size, or of something in its place that has no size."""
    if kind_of(path) != "file":
        detail = f"it is {kind_in_words(path)}"
        return Problem(ProblemKind.UNREADABLE, path.name, detail, remedy_at(path, remedy))
    return Problem(
        ProblemKind.WRONG_SIZE,
        path.name,
        f"expected {expected} bytes, got {got}",
        remedy,
        expected=str(expected),
        got=str(got),
    )
