"""A look at a folder -> a recipe that is ready to use, with a comment at each choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import UsageError
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes.proposal import describe, render_recipe
from imagenet_prep.recipes.survey import survey_folder
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.storage.refusals import writing


@dataclass(frozen=True, slots=True)
class InitSummary:
    """What was proposed.

    Args:
        recipe: the file that was written.
        text: what is in it.
        found: what the folder holds, in words.
        classes: how many files each class has.
        passed: what was passed over, and why, in words.
    """

    recipe: Path
    text: str
    found: str
    classes: Mapping[str, int]
    passed: tuple[str, ...]


def init(folder: Path, output: Path | None, engine: Engine, *, progress: Progress | None = None) -> InitSummary:
    """Survey at a folder and write a recipe for it; by default to its own name with .yaml, in the current folder.

    Raises:
        InputError: there is nothing in the folder that a recipe could be made of, or something that it would misread;
            every obstacle is named, with the choices there are.
        UsageError: the recipe is there already, or the folder is a URL.
    """
    refuse_url(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is {'no folder' if folder.exists() else 'not there'}", "expected a folder of data")
    target = output or Path(f"{folder.resolve().name or 'recipe'}.yaml")
    if target.exists():
        raise UsageError(f"{target} is there already", "expected a new file", "name another one with --output")
    progress = progress or Silent()
    progress.note(f"looking at {folder}")
    survey = survey_folder(folder, engine)
    text = render_recipe(survey, folder, target)
    with writing(target):
        save_bytes(target, text.encode())
    return InitSummary(target, text, describe(survey), survey.classes or {}, survey.passed)
