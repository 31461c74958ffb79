"""Finds the progress of each stage and the next command, from names, sizes and state files, within a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, to_builtins

from imagenet_prep.checks.verdict import Level, load_verdict
from imagenet_prep.datasets.plan import load_plan, recorded_raw
from imagenet_prep.errors import PrepError
from imagenet_prep.escaping import command, quoted
from imagenet_prep.model import StageStatus
from imagenet_prep.registry import known_set
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest, usable_manifest
from imagenet_prep.storage.layout import Layout, parse_shard_name
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.lock import find_holder
from imagenet_prep.text import number_of


class Status(Struct, frozen=True):
    """Every stage in order, and the next step: a call, or a command of the system.

    ``running`` is the process that works here now, and its start time; "" if there is none. ``verdict`` is the level of
    the last verify, None if there is none of these shards.
    """

    stages: tuple[StageStatus, ...]
    following: str
    running: str = ""
    verdict: Level | None = None

    def as_dict(self) -> dict[str, Any]:
        """The status as JSON-ready values."""
        stages = to_builtins([*self.stages])
        return {
            "running": self.running,
            "stages": stages,
            "verdict": self.verdict,
            "next_command": self.following,
        }


def status(layout: Layout) -> Status:
    """Find the progress of each stage; reads no archive and no shard. A recipe's data set has only the last two."""
    layout = layout.one_set()
    manifest = usable_manifest(layout.manifest_path)
    dataset = known_set(layout, manifest)
    sizes = layout.find_shards(dataset.splits)
    convert, verify = _convert(layout, manifest, sizes), _verify(layout, manifest, sizes)
    stages = (*dataset.stages_before(layout), convert, verify)
    if verify.state == "done":
        following = command("report", layout.output_dir)
    elif verify.state == "problems" and _is_mendable(layout, manifest):
        following = command("repair", layout.data_dir, layout.elsewhere(recorded_raw(layout)))
    elif convert.state in ("done", "unknown"):
        following = command("verify", layout.output_dir)
    else:
        following = dataset.following(layout, {stage.stage: stage.state for stage in stages})
    kept = load_verdict(layout)
    level = kept.verdict.level if kept and kept.is_current else None
    return Status(stages, following, find_holder(layout.lock_paths), level)


# the stages ----------------------------------------------------------------------------------------------------


def _convert(layout: Layout, manifest: Manifest | None, sizes: Mapping[str, int]) -> StageStatus:
    recorded, plan = _recorded(layout, manifest), load_plan(layout)
    if not recorded and plan is None:
        words = f"{number_of(len(sizes), 'shard')} not made here" if sizes else "no shards"
        return StageStatus("convert", "unknown" if sizes else "not started", words)
    done = [name for name, size in recorded.items() if sizes.get(name) == size]
    names = {parsed[0]: parsed[2] for parsed in map(parse_shard_name, recorded) if parsed}
    counts = {split: totals.shards for split, totals in plan.totals.items()} if plan else names
    planned = len(recorded) if manifest else sum(counts.values())
    detail = f"{len(done):,} of {number_of(planned, 'shard')}"
    lost = len(layout.without_index(done))
    if lost:
        detail += f", {lost:,} of them without an index"
    is_done = manifest and len(done) - lost >= planned
    return StageStatus("convert", "done" if is_done else "partly", detail)


def _recorded(layout: Layout, manifest: Manifest | None) -> dict[str, int]:
    """The recorded size of each finished shard: from the manifest, or before it exists from the journal."""
    if manifest is not None:
        return {name: info.size for name, info in manifest.shards.items()}
    journal = Journal(layout.journal_path)
    return {name: info.size for name in journal.names() if (info := journal.get(name))}


def _verify(layout: Layout, manifest: Manifest | None, sizes: Mapping[str, int]) -> StageStatus:
    if not sizes:
        return StageStatus("verify", "not started", "no shards")
    kept = load_verdict(layout)
    if kept is None:
        return StageStatus("verify", "not started", "the shards have not been verified yet")
    lacking = () if kept.verdict.problems else layout.without_index(_recorded(layout, manifest))
    if not kept.is_current or lacking:
        return StageStatus("verify", "partly", "shards have changed since the last verify")
    verdict = kept.verdict
    if verdict.problems:
        detail = f"{verdict.conclusion} See {layout.problems_path}"
        if not _is_mendable(layout, manifest):
            first = verdict.shown_problems[0]
            detail += f"; {first.subject}: {first.remedy or first.detail}"
        return StageStatus("verify", "problems", detail)
    if verdict.depth == "quick":
        return StageStatus("verify", "partly", verdict.conclusion)
    return StageStatus("verify", "done", " ".join(filter(None, (verdict.conclusion, verdict.remarks))))


# what next -----------------------------------------------------------------------------------------------------


def unknown(reason: PrepError, folder: AnyPath) -> Status:
    """The status of an inaccessible folder: the reason, and the command that shows its owner."""
    said = ": ".join(str(part) for part in (reason.what, reason.detail) if part)
    stages = tuple(StageStatus(stage, "unknown", said) for stage in ("convert", "verify"))
    return Status(stages, f"ls -la {quoted(str(folder))}")


def _is_mendable(layout: Layout, manifest: Manifest | None) -> bool:
    """Whether repair can fix a finding of the last verify; it can't remove extra files."""
    kept = load_verdict(layout)
    if kept is None or manifest is None:
        return False
    found = kept.verdict.faulty.keys() | {problem.subject for problem in kept.verdict.problems}
    return not found.isdisjoint({*manifest.shards, layout.manifest_path.name})
