"""list_recipe: a recipe and its files -> RecipeListing:
its images, and whatever would keep convert from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from imagenet_prep.checks.raw_check import ImageFindings, RawSplit, check_as
from imagenet_prep.checks.verdict import Depth, ReasonedLevel
from imagenet_prep.errors import InputError
from imagenet_prep.images.grades import Check
from imagenet_prep.model import Engine, Problem, Progress
from imagenet_prep.recipes.classes import class_notes
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_dataset import RecipeDataset, SplitPlan
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recorders.recorder import Recorder
from imagenet_prep.sources.names import shown_name
from imagenet_prep.sources.obstacles import NoFilesError, collecting, refuse
from imagenet_prep.storage.location import AnyPath


class RecipeListing(Struct, frozen=True):
    """The files of a recipe as they were listed; see RawListing.
    ``expected`` are the numbers that the recipe gives.
    """

    dataset: str
    splits: tuple[RawSplit, ...]
    problems: tuple[Problem, ...]
    depth: Depth
    notes: tuple[str, ...] = ()
    skipped: int = 0
    expected: Mapping[str, Any] = {}

    def judge(self, findings: ImageFindings) -> tuple[tuple[Problem, ...], ReasonedLevel]:
        """Complete if the recipe gives the number of images of all splits; see RawListing."""
        if self.depth == "quick":
            return (), ReasonedLevel("complete", "")
        image_count = sum(len(split.catalog) for split in self.splits)
        sound = f"all {image_count:,} images listed are sound."
        if image_count == 1:
            sound = "the 1 image listed is sound."
        if self.depth == "full":
            reason = f"{sound} They were not decoded: --depth decode finds damage inside."
            return (), ReasonedLevel("as listed", reason)
        is_known_by_split = all(split.expected is not None for split in self.splits)
        if is_known_by_split or "images" in self.expected:
            return (), ReasonedLevel("complete", f"{sound} Their number is that of the recipe.")
        unknown = (
            f'How many images "{self.dataset}" should have is not known: '
            "its recipe has no `expected` number."
        )
        return (), ReasonedLevel("as listed", f"{sound} {unknown}")


def list_recipe(
    file: RecipeFile, root: AnyPath | None, engine: Engine, progress: Progress, depth: Depth | None
) -> RecipeListing:
    """List the files of a recipe, below ``root`` if there is one.

    Raises:
        UsageError: the recipe is wrong.
    """
    path = PurePosixPath(shown_name(file.path))
    name = path.stem
    with collecting() as obstacles:
        try:
            dataset = load(file, root, engine, progress=progress)
        except InputError as error:
            if not (isinstance(error, NoFilesError) and obstacles.problems):
                refuse(error, subject=file.path.name)
            problems = tuple(obstacles.listed(file.path.name))
            return RecipeListing(name, (), problems, depth or "decode")
    notes_on_classes = class_notes(dataset.classes.names, dataset.classes.numbers)
    notes = (*dataset.notes, *notes_on_classes, *dataset.warnings)
    splits = tuple(_raw_split(split, dataset, depth) for split in dataset.splits)
    problems = tuple(obstacles.listed(file.path.name))
    depth = depth or _depth_of(splits)
    return RecipeListing(name, splits, problems, depth, notes, dataset.skipped, dataset.expected)


def _depth_of(splits: Sequence[RawSplit]) -> Depth:
    """The depth of the recipe's own checks."""
    if any(split.recorder.check == "header" for split in splits):
        return "full"
    return "decode"


def _raw_split(split: SplitPlan, dataset: RecipeDataset, depth: Depth | None) -> RawSplit:
    """A split with the check of its images."""
    total = dataset.expected.get(split.prefix)
    expected = total.get("images") if isinstance(total, Mapping) else None
    if len(dataset.splits) == 1 and expected is None:
        expected = dataset.expected.get("images")
    check = _check_of(split.recorder, depth)
    recorder = check_as(split.recorder, check)
    origin = shown_name(split.origin)
    return RawSplit(split.prefix, origin, split.catalog, recorder, expected)


def _check_of(recorder: Recorder, depth: Depth | None) -> Check:
    """The recipe's own check, unless a depth is asked for:
    no less than convert does, except with "full". Convert decodes what it encodes again.
    """
    if depth == "full":
        return "header"
    is_decoded = depth == "decode" or recorder.how is not None
    if is_decoded and recorder.check == "header":
        return "decode"
    return recorder.check
