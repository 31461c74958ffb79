"""Where a recipe may write: the folder of its shards, and a manifest that it has made. Nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.reading import RecipeFile
from imagenet_prep.recipes.rules import prefix_of
from imagenet_prep.storage.files import kind_of
from imagenet_prep.storage.layout import RAW_NAME, STATE_NAME, Layout
from imagenet_prep.storage.location import AnyPath, local_or_none


def shards_dir(file: RecipeFile, output: AnyPath) -> AnyPath:
    """The folder of the shards, as ``output_file_prefix`` says: ``output`` itself, or one below it.

    Raises:
        UsageError: an absolute prefix leads out of ``output``, or to a folder that has another purpose.
    """
    folder, name = prefix_of(file)
    key, prefix = ("output_file_prefix",), file.recipe.output_file_prefix
    if folder.startswith("/"):
        inside = _below(Path(folder), output)
        if inside is None:
            hint = f"give {folder} as DATA_DIR, and write output_file_prefix: {name}"
            raise file.fault(
                key, f"{prefix!r} leads out of {output}", "expected a name, or a path below DATA_DIR", hint
            )
        if {RAW_NAME, STATE_NAME} & set(inside.parts):
            raise file.fault(key, f"{prefix!r} can't be", f"expected no folder {RAW_NAME} or {STATE_NAME} in it")
    return output / folder


def find_manifest(name: str, root: Path, layout: Layout | None) -> AnyPath:
    """The ``manifest_file`` of this name: below the root of the data, else where ``place_manifest`` once put it."""
    path = root / name
    inside = None if layout is None or kind_of(path) != "nothing" else _below(path, root)
    if layout is None or inside is None:
        return path
    kept = layout.lists_dir / inside
    return kept if kind_of(kept) != "nothing" else path


def place_manifest(file: RecipeFile, name: str, root: Path, layout: Layout | None, *, is_raw: bool) -> AnyPath:
    """Where a ``manifest_file`` that is not there is to be made.

    As its name says, below the root of the data or DATA_DIR. Where ``--raw`` named that root, which is never written
    to, it has a place among what belongs to the shards.

    Raises:
        InputError: it would lie elsewhere.
    """
    path = root / name
    if layout is not None and _below(path, layout.data_dir) is not None:
        return path
    inside = _below(path, root)
    if inside is None:
        line = file.lines[("manifest_file",)]
        raise InputError(
            f"{file.path}, line {line}: {path} is not there, and would be made outside the data",
            f"expected a path below {root}",
            "name one that is there, or one below that folder",
        )
    return path if layout is None or not is_raw else layout.lists_dir / inside


def _below(path: Path, folder: AnyPath) -> Path | None:
    """The path from ``folder`` to ``path``, links followed; None if it leads out."""
    local = local_or_none(folder)
    if local is None:
        return None
    found, base = Path(os.path.realpath(path)), Path(os.path.realpath(local))  # resolve() fails at a link to itself
    return found.relative_to(base) if found.is_relative_to(base) else None
