"""Files that a list of names has, one a line."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.model import Engine
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.named_files import list_by_manifest, source_texts
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.recipes.source_kinds import SourceKind, Text
from imagenet_prep.sources.names import below


def _list_inputs(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    return list_by_manifest(below(root, source_texts(file, key)[0]), root, engine)


KIND = SourceKind("manifest", 30, Text, _list_inputs)
