"""join_other_set: the problems of shards that are all of another set than their manifest -> one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from imagenet_prep.checks.set_checks import plan_fault, remedy_own
from imagenet_prep.checks.shard_check import OTHER_RECORDS, ShardReport
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.state.set_state import SetState
from imagenet_prep.text import number_of


def join_other_set(
    problems: Sequence[Problem], reports: Collection[ShardReport], state: SetState
) -> list[Problem]:
    """The problems, with one problem of the manifest in place of those of the shards if every
    shard holds other records than it lists.

    A manifest that is not that of its plan is reported already.
    """
    shard_names = {problem.subject for problem in problems if _is_of_other_set(problem)}
    filled = [report for report in reports if report.records]
    if state.manifest is None or not _are_of_other_set(filled, shard_names):
        return [*problems]
    others = [problem for problem in problems if not _is_of_other_set(problem)]
    if state.covers_plan and plan_fault(state.records, state.manifest):
        return others
    shards = number_of(len(filled), "shard")
    others_are = "the shard is" if len(filled) == 1 else "the shards are"
    detail = f"it lists other records than the {shards} here: it is of another set, or {others_are}"
    name = state.layout.manifest_path.name
    return [*others, Problem(ProblemKind.BAD_MANIFEST, name, detail, _remedy(state))]


def _is_of_other_set(problem: Problem) -> bool:
    """Whether a problem says that a shard holds other records than those that were written."""
    is_of_other = problem.kind is ProblemKind.OTHER_CONVERSION
    return is_of_other or problem.detail.startswith(OTHER_RECORDS)


def _are_of_other_set(reports: Sequence[ShardReport], other_shards: Collection[str]) -> bool:
    """Whether all shards are of another set; a single record is no proof, nor is one shard of which
    it is not known how many records differ.
    """
    if any(report.name not in other_shards for report in reports):
        return False
    if len(reports) == 1:
        (report,) = reports
        return ProblemKind.OTHER_CONVERSION in report.counts and report.records > 1
    return bool(reports)


def _remedy(state: SetState) -> str:
    """The ways out: the shards are right, or the manifest is."""
    layout = state.layout
    if not state.covers_plan:
        return remedy_own(state)
    elsewhere = layout.elsewhere(state.records.raw_dir)
    repair = command("repair", layout.data_dir, elsewhere)
    return Hint(
        f"restore the folder {layout.state_dir} that belongs to these shards; "
        "or, to replace them by those that the manifest lists: ",
        repair,
    )
