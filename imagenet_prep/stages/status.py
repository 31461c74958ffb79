"""Finds the progress of each stage and the next command, from names,
sizes and state files, within a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, to_builtins

from imagenet_prep.checks.checked_dataset import CheckedDataset
from imagenet_prep.checks.verdict import Level, Verdict, load_verdict
from imagenet_prep.errors import PrepError
from imagenet_prep.escaping import command, command_line
from imagenet_prep.hints import Hint, as_text
from imagenet_prep.model import StageStatus
from imagenet_prep.registry import known_set
from imagenet_prep.state.set_state import SetState, merge_command
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none
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
        stages = to_builtins([*self.stages], enc_hook=as_text)
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
    dataset = known_set(state.records, state.manifest)
    stages = (*dataset.stages_before(layout), _convert(state), _verify(state))
    following = _following(state, dataset, stages)
    last_verify = load_verdict(layout)
    level = last_verify.verdict.level if last_verify and last_verify.is_current else None
    return Status(stages, following, find_holder(layout.lock_paths), level)


def _following(state: SetState, dataset: CheckedDataset, stages: Sequence[StageStatus]) -> str:
    """The next command."""
    layout = state.layout
    *_, convert, verify = stages
    if verify.state == "done":
        return command("report", layout.output_dir)
    if verify.state == "problems" and _is_mendable(state):
        return command("repair", layout.data_dir, layout.elsewhere(state.records.raw_dir))
    if state.kind == "part" and not state.missing:
        return merge_command(layout)
    folder_below = _set_below(state, stages[0])
    if folder_below is not None:
        return command("status", folder_below)
    if convert.state in ("done", "unknown") or state.strays:  # convert refuses strays
        return command("verify", layout.output_dir)
    return dataset.following(state.records, {stage.stage: stage.state for stage in stages})


def _set_below(state: SetState, first_stage: StageStatus) -> AnyPath | None:
    """The first folder below a new one that has a set: a folder in the prefix of a recipe's set is
    the set's own.
    """
    if state.kind != "nothing" or first_stage.state != "not started":
        return None
    return next(iter(state.layout.sets_below()), None)


# the stages ---------------------------------------------------------------------------------------


def _convert(state: SetState) -> StageStatus:
    if state.kind in ("nothing", "foreign"):
        if not state.sizes:
            return StageStatus("convert", "not started", "no shards")
        shards = number_of(len(state.sizes), "shard")
        return StageStatus(
            "convert", "unknown", f"{shards}, which no file in {state.layout.state_dir} lists"
        )
    if state.plan is None and not state.covers_plan:
        done = [name for name, info in state.infos.items() if state.sizes.get(name) == info.size]
        detail = f"{number_of(len(done), 'shard')} done; {state.sentence}"
        return StageStatus("convert", "partly", detail)
    return _convert_of_plan(state)


def _convert_of_plan(state: SetState) -> StageStatus:
    """The progress of convert towards the shards that the manifest or the plan names."""
    planned = _planned_names(state)
    missing = set(state.missing)
    done = [name for name in planned if name not in missing]
    detail = f"{len(done):,} of {number_of(len(planned), 'shard')}"
    unindexed = state.layout.without_index(done)
    if unindexed:
        detail += f", {len(unindexed):,} of them without an index"
    if state.covers_plan and not missing and not unindexed:
        return StageStatus("convert", "done", detail)
    says_all = state.covers_plan or (state.kind == "unfinished" and missing)
    return StageStatus("convert", "partly", detail if says_all else f"{detail}; {state.sentence}")


def _planned_names(state: SetState) -> list[str]:
    if state.covers_plan:
        return [*state.infos]
    return [*state.plan.fingerprints_by_name()] if state.plan else []


def _verify(state: SetState) -> StageStatus:
    if not state.sizes:
        return StageStatus("verify", "not started", "no shards")
    last_verify = load_verdict(state.layout)
    if last_verify is None:
        return StageStatus("verify", "not started", "the shards have not been verified yet")
    verdict = last_verify.verdict
    lacks_index = not verdict.problems and state.layout.without_index(state.infos)
    if not last_verify.is_current or lacks_index:
        what = "shards, indexes or the manifest"
        return StageStatus("verify", "partly", f"{what} have changed since the last verify")
    if verdict.problems:
        return StageStatus("verify", "problems", _problems_in_words(verdict, state))
    if not state.is_usable:
        return StageStatus("verify", "partly", state.sentence)
    if verdict.depth == "quick":
        return StageStatus("verify", "partly", verdict.conclusion)
    sentences = filter(None, (verdict.conclusion, verdict.remarks))
    return StageStatus("verify", "done", " ".join(sentences))


def _problems_in_words(verdict: Verdict, state: SetState) -> str:
    sentence = f"{verdict.conclusion} See {state.layout.problems_path}"
    if _is_mendable(state):
        return sentence
    problem = verdict.shown_problems[0]
    found = f"{problem.kind.value}: {problem.subject}: {problem.detail}"
    first = f"{sentence}. First problem: {found}"
    return Hint(f"{first}; to do: ", problem.remedy) if problem.remedy else first


# what next ----------------------------------------------------------------------------------------


def unknown(reason: PrepError, folder: AnyPath) -> Status:
    """The status of an inaccessible folder: the reason, and the command that shows its owner; for
    an object store, the one that tries again.
    """
    is_local = local_or_none(folder) is not None
    parts = [reason.what, reason.detail] if is_local else [reason.what, reason.detail, reason.hint]
    sentence = ": ".join(str(part) for part in parts if part)
    stages = tuple(StageStatus(stage, "unknown", sentence) for stage in ("convert", "verify"))
    following = command("status", folder)
    if is_local:
        following = command_line(["ls", "-la", str(folder)])
    return Status(stages, following)


def _is_mendable(state: SetState) -> bool:
    """Whether repair can fix a finding of the last verify;
    it can't remove extra files, or finish a set.
    """
    last_verify = load_verdict(state.layout)
    if last_verify is None or state.manifest is None or not state.covers_plan:
        return False
    verdict = last_verify.verdict
    subjects = verdict.faulty.keys() | {problem.subject for problem in verdict.problems}
    return not subjects.isdisjoint(state.manifest.shards)
