"""Where a recipe may write: the folder of its shards, and its manifest."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_lines import flow
from imagenet_prep.sources.names import below
from imagenet_prep.sources.other_files import absence_in_words
from imagenet_prep.storage.files import kind_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none, real_path


def shards_dir(file: RecipeFile, layout: Layout) -> AnyPath:
    """The folder of the shards, as ``output_file_prefix`` says: that of the layout itself, or one
    below it.

    Raises:
        UsageError: an absolute prefix leads out of that folder, or to a folder that has another
            purpose.
    """
    output = layout.output_dir
    folder, set_name = rules.prefix_of(file)
    if folder.startswith("/"):
        relative = _path_within(Path(folder), output)
        if relative is None:
            option = "--output" if layout.output else "DATA_DIR"
            raise file.fault(
                ("output_file_prefix",),
                f"{file.recipe.output_file_prefix!r} leads out of {output}",
                f"expected a name, or a path below {output}",
                f"give {folder} as {option}, and write output_file_prefix: {flow(set_name)}",
            )
        rules.check_own_folder(file, relative.parts)
    return output / folder


def find_manifest(name: str, root: Path, layout: Layout | None) -> AnyPath:
    """The ``manifest_file`` of this name: below the root of the data,
    else where ``place_manifest`` once put it.
    """
    path = below(root, name)
    if layout is None or kind_of(path) != "nothing":
        return path
    relative = _path_within(path, root)
    if relative is None:
        return path
    kept_manifest = layout.lists_dir / relative
    return kept_manifest if kind_of(kept_manifest) != "nothing" else path


def place_manifest(
    file: RecipeFile, name: str, root: Path, layout: Layout | None, *, is_raw: bool
) -> AnyPath:
    """The path for a ``manifest_file`` that does not exist yet.

    As its name says, below the root of the data or DATA_DIR. Where ``--raw`` named that root, which
    is never written to, it has a place among what belongs to the shards.

    Raises:
        InputError: it would be elsewhere.
    """
    path = below(root, name)
    if layout is not None and _path_within(path, layout.data_dir) is not None:
        return path
    relative = _path_within(path, root)
    if relative is None:
        place = file.place(("manifest_file",))
        raise InputError(
            f"{place}: manifest_file: {path} {absence_in_words(path)}, and would be made outside "
            "the data",
            f"expected a path below {root}",
            "name an existing file, or one below that folder",
        )
    return path if layout is None or not is_raw else layout.lists_dir / relative


def _path_within(path: Path, folder: AnyPath) -> Path | None:
    """The path from ``folder`` to ``path``, links followed; None if it leads out."""
    local_folder = local_or_none(folder)
    if local_folder is None:
        return None
    full_path, root = real_path(path), real_path(local_folder)
    return full_path.relative_to(root) if full_path.is_relative_to(root) else None
