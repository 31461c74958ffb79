"""What is told of a conversion: a summary of each split, and its bad images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from imagenet_prep.datasets.plan import PlannedSplit, plan_name
from imagenet_prep.errors import DataProblemsError
from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import Problem, Progress, ShardPlan
from imagenet_prep.state.journal import Journal
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


def summary_of(split: PlannedSplit, todo: Sequence[ShardPlan], journal: Journal) -> SplitSummary:
    """What became of the plans of a split, of which those of ``todo`` were made now."""
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


def refusal_of(problems: list[Problem], refused: int, progress: Progress) -> DataProblemsError:
    """The error for shards that bad images kept from being made; each image is noted."""
    for problem in problems:
        progress.note(f"bad image: {problem}")
    return DataProblemsError(
        f"{number_of(len(problems), 'image')} can't be converted, {problems[0].subject} first; "
        f"{number_of(refused, 'shard was', 'shards were')} not made",
        problems[0].detail,
        "get sound copies of them, or leave them out: --skip-bad, in a recipe skip_bad: true",
    )
