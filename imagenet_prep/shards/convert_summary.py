"""ConvertSummary: what a conversion made, by split; and its refusal of bad images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.errors import DataProblemsError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import Problem, Progress, ShardPlan
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import CHANGED_BOXES
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import number_of

SOUND_COPY = "get a sound copy of it"
"""The remedy for a damaged image."""

HOW_TO_LEAVE_OUT = "--on-damaged skip (in a recipe: on_damaged: skip)"
"""The option of a command, and the key of a recipe, that leave out bad images."""

LEAVE_OUT = "; or leave out the image: "
"""The words between another remedy and HOW_TO_LEAVE_OUT."""


class SplitSummary(Struct, frozen=True):
    """One split's part of a ConvertSummary: this run ``made`` some of its ``shards``, the others
    existed before.

    ``repairs`` and ``warned`` are those of ShardInfo. ``changed_boxes`` counts the boxes of each
    image that a recipe "clipped" and "dropped". ``size`` is the number of bytes of the shards.
    """

    split: str
    images: int
    shards: int
    made: int
    set_aside: int
    repairs: tuple[str, ...]
    changed_boxes: Mapping[str, Mapping[str, int]] = {}
    warned: tuple[str, ...] = ()
    size: int = 0

    @property
    def turned(self) -> int:
        """The number of images that were turned upright."""
        return count_changes(self.repairs)[TURNED]

    @property
    def conclusion(self) -> str:
        """The last line about the split: that of the scripts of 2016 if no image was set aside."""
        images = number_of(self.images, "image")
        if self.set_aside:
            return f"{self.split}: Finished writing {images}, {self.set_aside:,} set aside."
        if self.images == 1:
            return f"{self.split}: Finished writing {images}."
        return f"{self.split}: Finished writing all {images} in data set."


class ConvertSummary(Struct, frozen=True):
    """The result of a conversion.

    ``problems`` are the images that ``on_damaged: skip`` set aside in this run. ``named_in`` is the
    file that names all of them, once the set is finished.
    """

    splits: tuple[SplitSummary, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    named_in: AnyPath | None = None

    @property
    def set_aside(self) -> int:
        """The number of images that ``on_damaged: skip`` set aside, in this run or before."""
        return sum(split.set_aside for split in self.splits)


def summary_of(split: PlannedSplit, todo: Sequence[ShardPlan], journal: Journal) -> SplitSummary:
    """The summary of a split's plans, of which those in ``todo`` were made now."""
    name = split.catalog.split
    infos = [info for plan in split.plans if (info := journal.get(plan_name(plan)))]
    return SplitSummary(
        split=name,
        images=sum(info.records for info in infos),
        shards=len(split.plans),
        made=sum(plan.split == name for plan in todo),
        set_aside=sum(len(info.set_aside) for info in infos),
        repairs=tuple(sorted(repair for info in infos for repair in info.repairs)),
        changed_boxes=split.facts.get(CHANGED_BOXES, {}),
        warned=tuple(sorted(warning for info in infos for warning in info.warned)),
        size=sum(info.size for info in infos),
    )


def notes_on_check(check: str, splits: Sequence[PlannedSplit], layout: Layout) -> Sequence[str]:
    """The notes if a user asks for a check of all pixels, and every shard was done before."""
    if any(split.recorder.check == "strict" for split in splits):
        check = "strict"
    if check not in ("strict", "decode"):
        return ()
    kept = f"every shard was done before and is kept: the check {check} applies only to new shards"
    decode = command("verify", layout.output_dir, (("depth", "decode"),))
    return kept, Hint("to decode all images: ", decode)


def refusal_of(problems: list[Problem], refused: int, progress: Progress) -> DataProblemsError:
    """The error for shards that bad images prevented; each image is noted."""
    for problem in problems:
        progress.note(f"bad image: {problem}")
    return DataProblemsError(
        f"{number_of(len(problems), 'image')} can't be converted, {problems[0].subject} first; "
        f"{number_of(refused, 'shard was', 'shards were')} not made",
        problems[0].detail,
        _remedy_of(problems),
    )


def _remedy_of(problems: Sequence[Problem]) -> str:
    """The remedy for bad images: that of the only one or of all, or of the first."""
    remedy = problems[0].remedy
    if len(problems) == 1:
        return remedy
    remedies = {problem.remedy for problem in problems}
    copy_or_leave = f"{SOUND_COPY}{LEAVE_OUT}"
    if len(remedies) > 1 and all(text.startswith(copy_or_leave) for text in remedies):
        remedy = f"{copy_or_leave}{HOW_TO_LEAVE_OUT}"
    if remedy.startswith(copy_or_leave):
        remedy = remedy.replace(SOUND_COPY, "get sound copies of them")
    remedy = remedy.replace("accepts it unchanged", "accepts them unchanged")
    return remedy.replace(LEAVE_OUT, "; or leave out these images: ")
