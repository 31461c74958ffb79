"""Tables whose rows name an image each, with its label, boxes and masks."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.model import Engine
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.named_files import archives_by_split, origin_of
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.recipes.source_kinds import BySplit, SourceKind


def _list_inputs(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    from imagenet_prep.recipes.row_files import list_rows
    from imagenet_prep.recipes.row_tables import read_tables

    tables, base = archives_by_split(file, key, root, engine)
    assert file.recipe.source is not None
    rows = read_tables(file.recipe.source, tables)
    return list_rows(file, rows, root, engine, origin_of(tables, base))


KIND = SourceKind("table", 120, BySplit, _list_inputs, options=("label", "image"), has_rows=True)
