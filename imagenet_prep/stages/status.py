"""Finds the progress of each stage and the next command, from names,
sizes and state files, within a second.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins

from imagenet_prep.checks.verdict import Level, load_verdict
from imagenet_prep.errors import PrepError
from imagenet_prep.escaping import command, quoted
from imagenet_prep.model import StageStatus
from imagenet_prep.registry import known_set
from imagenet_prep.state.plan_file import recorded_raw
from imagenet_prep.state.set_state import SetState, merge_command
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.lock import find_holder
from imagenet_prep.text import number_of


class Status(Struct, frozen=True):
    """Every stage in order, and the next step: a call, or a command of the system.

    ``running`` is the process that works here now, and its start time; "" if there is none.
    ``verdict`` is the level of the last verify, None if there is none of these shards.
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
    """Find the progress of each stage; reads no archive and no shard.
    A recipe's data set has only the last two.
    """
    layout = layout.one_set()
    state = SetState.read(layout)
    dataset = known_set(layout, state.manifest)
    convert, verify = _convert(state), _verify(state)
    stages = (*dataset.stages_before(layout), convert, verify)
    if verify.state == "done":
        following = command("report", layout.output_dir)
    elif verify.state == "problems" and _is_mendable(state):
        following = command("repair", layout.data_dir, layout.elsewhere(recorded_raw(layout)))
    elif state.kind == "part" and not state.missing:
        following = merge_command(layout)
    elif (
        state.kind == "nothing"
        and stages[0].state == "not started"
        and (below := layout.sets_below())
    ):
        following = command(
            "status", below[0]
        )  # a folder in the prefix of a recipe's set is the set's own
    elif convert.state in ("done", "unknown"):
        following = command("verify", layout.output_dir)
    else:
        following = dataset.following(layout, {stage.stage: stage.state for stage in stages})
    kept = load_verdict(layout)
    level = kept.verdict.level if kept and kept.is_current else None
    return Status(stages, following, find_holder(layout.lock_paths), level)


# the stages ---------------------------------------------------------------------------------------


def _convert(state: SetState) -> StageStatus:
    if state.kind in ("nothing", "foreign"):
        words = (
            f"{number_of(len(state.sizes), 'shard')} not made here" if state.sizes else "no shards"
        )
        return StageStatus("convert", "unknown" if state.sizes else "not started", words)
    if state.plan is None and not state.covers_plan:
        done = [name for name, info in state.infos.items() if state.sizes.get(name) == info.size]
        return StageStatus(
            "convert", "partly", f"{number_of(len(done), 'shard')} done; {state.sentence}"
        )
    planned = [*state.infos] if state.covers_plan else _planned(state)
    missing = set(state.missing)
    done = [name for name in planned if name not in missing]
    detail = f"{len(done):,} of {number_of(len(planned), 'shard')}"
    lost = len(state.layout.without_index(done))
    if lost:
        detail += f", {lost:,} of them without an index"
    if state.covers_plan and not missing and not lost:
        return StageStatus("convert", "done", detail)
    says_all = state.covers_plan or (state.kind == "unfinished" and missing)
    return StageStatus("convert", "partly", detail if says_all else f"{detail}; {state.sentence}")


def _planned(state: SetState) -> list[str]:
    return [*state.plan.fingerprints_by_name()] if state.plan else []


def _verify(state: SetState) -> StageStatus:
    if not state.sizes:
        return StageStatus("verify", "not started", "no shards")
    layout, kept = state.layout, load_verdict(state.layout)
    if kept is None:
        return StageStatus("verify", "not started", "the shards have not been verified yet")
    lacking = () if kept.verdict.problems else layout.without_index(state.infos)
    if not kept.is_current or lacking:
        return StageStatus("verify", "partly", "shards have changed since the last verify")
    verdict = kept.verdict
    if verdict.problems:
        detail = f"{verdict.conclusion} See {layout.problems_path}"
        if not _is_mendable(state):
            first = verdict.shown_problems[0]
            detail += f"; {first.subject}: {first.remedy or first.detail}"
        return StageStatus("verify", "problems", detail)
    if not state.is_usable:
        return StageStatus("verify", "partly", state.sentence)
    if verdict.depth == "quick":
        return StageStatus("verify", "partly", verdict.conclusion)
    return StageStatus(
        "verify", "done", " ".join(filter(None, (verdict.conclusion, verdict.remarks)))
    )


# what next ----------------------------------------------------------------------------------------


def unknown(reason: PrepError, folder: AnyPath) -> Status:
    """The status of an inaccessible folder: the reason, and the command that shows its owner."""
    said = ": ".join(str(part) for part in (reason.what, reason.detail) if part)
    stages = tuple(StageStatus(stage, "unknown", said) for stage in ("convert", "verify"))
    return Status(stages, f"ls -la {quoted(str(folder))}")


def _is_mendable(state: SetState) -> bool:
    """Whether repair can fix a finding of the last verify;
    it can't remove extra files, or finish a set.
    """
    kept = load_verdict(state.layout)
    if kept is None or state.manifest is None or not state.covers_plan:
        return False
    subjects = kept.verdict.faulty.keys() | {problem.subject for problem in kept.verdict.problems}
    return not subjects.isdisjoint(state.manifest.shards)
