"""A function of the user's that yields rows, which convert sealed."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.model import Engine
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.recipes.source_kinds import SourceKind, Text


def _list_inputs(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    from imagenet_prep.recipes.python_source import read_sealed
    from imagenet_prep.recipes.row_files import list_rows

    assert file.recipe.source is not None
    assert file.sealed is not None, "refused before"
    rows = read_sealed(file.recipe.source, file.sealed, root)
    return list_rows(file, rows, root, engine, file.sealed)


KIND = SourceKind("python", 130, Text, _list_inputs, options=("label",), has_rows=True)
