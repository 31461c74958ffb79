"""find_inputs: a recipe's source -> Inputs, its files."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.errors import InputError, all_of
from imagenet_prep.model import Engine
from imagenet_prep.recipes.classic_inputs import list_classic
from imagenet_prep.recipes.inputs import Inputs, hint_on_hidden, skipped_in_words
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.recipes.source_kinds import source_kinds
from imagenet_prep.sources.folders import HIDDEN
from imagenet_prep.sources.obstacles import NoFilesError
from imagenet_prep.storage.layout import Layout


def find_inputs(
    file: RecipeFile,
    root: Path,
    engine: Engine,
    *,
    layout: Layout | None = None,
    is_raw: bool = False,
) -> Inputs:
    """List the files of a recipe's source.

    Args:
        file: the recipe.
        root: the folder of relative paths.
        engine: lists files.
        layout: where the shards go.
        is_raw: whether nothing may be written below ``root``.

    Raises:
        InputError: there are none, or they can't be read; the error names file, line or path.
        UsageError: a pattern is none.
    """
    source = file.recipe.source
    key: Key
    if source is None:
        key = ("input_file_pattern",)
        inputs = list_classic(file, root, engine, layout, is_raw=is_raw)
    else:
        key = ("source", source.kind)
        inputs = source_kinds()[source.kind].list_inputs(file, key, root, engine)
    if not len(inputs.listing):
        if inputs.obstacles:
            raise all_of(inputs.obstacles)
        raise _no_files(file.place(key), inputs)
    return inputs


def _no_files(place: str, inputs: Inputs) -> InputError:
    """The error for a source without a file, or whose files are all skipped."""
    skipped = [*inputs.notes, *skipped_in_words(inputs.remarks)]
    if not skipped:
        return NoFilesError(f"{place}: no files in {inputs.origin}", "expected at least one file")
    problem = f"{place}: no file in {inputs.origin} can be used"
    hint = hint_on_hidden(inputs.remarks.passed.get(HIDDEN, ()))
    return NoFilesError(problem, "; ".join(skipped), hint)
