"""A folder with files, perhaps in folders of classes and splits."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.model import Engine
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.named_files import source_texts
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.recipes.source_kinds import SourceKind, Text
from imagenet_prep.sources.folders import list_folder
from imagenet_prep.sources.names import below


def _list_inputs(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    base = need_path(file, key, below(root, source_texts(file, key)[0]), "folder")
    listing, remarks = list_folder(base, engine)
    return Inputs(listing, remarks, base, base, has_folders=True)


KIND = SourceKind("folders", 10, Text, _list_inputs, options=("class_folder",))
