"""What is told of a conversion: a summary of each split, its bad images, and the manifest that it will have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from imagenet_prep import __version__
from imagenet_prep.datasets.plan import PlannedSet, PlannedSplit, plan_name, source_record
from imagenet_prep.errors import DataProblemsError
from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import Problem, Progress, ShardInfo, ShardPlan
from imagenet_prep.shards.run import count_images
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest, SplitTotals
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


def manifest_to_come(planned: PlannedSet) -> Manifest:
    """The manifest of a planned set, but for what only finished shards tell."""
    splits = planned.splits
    plans = {plan_name(plan): plan for split in splits for plan in split.plans}
    return Manifest(
        version=__version__,
        dataset=planned.entry,
        settings=dict(planned.settings),
        sources={split.catalog.split: source_record(split) for split in splits},
        totals={
            split.catalog.split: SplitTotals(
                images=len(split.catalog),
                expected=planned.expected[split.catalog.split],
                classes=len(split.catalog.count_by_label().keys() - {0}),
                boxes=len(split.catalog.boxes) // 4,
                shards=len(split.plans),
            )
            for split in splits
        },
        shards={name: ShardInfo(name, plan.fingerprint, count_images(plan), 0, "") for name, plan in plans.items()},
    )
