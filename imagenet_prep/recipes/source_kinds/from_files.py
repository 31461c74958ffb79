"""Files that match a pattern, or several."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.model import Engine
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.named_files import list_by_patterns, source_texts
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.recipes.source_kinds import Paths, SourceKind


def _list_inputs(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    return list_by_patterns(file, key, source_texts(file, key), root, engine)


KIND = SourceKind("files", 20, Paths, _list_inputs)
