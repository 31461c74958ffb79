"""The files in tars, perhaps a folder for each tar."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.model import Engine
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.named_files import find_archives, source_texts
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.recipes.source_kinds import Paths, SourceKind
from imagenet_prep.sources.remarks import Remarks
from imagenet_prep.sources.skipped import Skipped
from imagenet_prep.sources.tars import list_tars


def _list_inputs(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    source = file.recipe.source
    assert source is not None
    archives, base = find_archives(file, key, source_texts(file, key), root, engine)
    skipped = Skipped()
    listing = list_tars(archives, engine, folder_each=source.tar_folders, skipped=skipped)
    notes = [f"skipped in archives: {skipped.text}"] if skipped.entries else []
    origin = archives[0] if len(archives) == 1 else base
    return Inputs(listing, Remarks(), root, origin, has_folders=True, notes=notes)


KIND = SourceKind("tar", 40, Paths, _list_inputs, options=("tar_folders", "class_folder"))
