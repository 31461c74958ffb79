"""Files that a recipe names: by paths, by patterns, or in a list of names -> their listing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from imagenet_prep.errors import InputError, all_of
from imagenet_prep.model import Engine
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.recipe_file import Key, RecipeFile, shortened
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.folders import list_matching, look_up, read_file_list
from imagenet_prep.sources.names import below
from imagenet_prep.sources.patterns import compile_pattern, is_pattern, split_pattern
from imagenet_prep.sources.remarks import Remarks, missing_shards
from imagenet_prep.storage.location import AnyPath


def source_texts(file: RecipeFile, key: Key) -> list[str]:
    """The texts of the recipe's source, which can be one or several."""
    value = getattr(file.recipe.source, str(key[-1]))
    return [value] if isinstance(value, str) else list(value)


# patterns -----------------------------------------------------------------------------------------


def list_by_patterns(
    file: RecipeFile, key: Key, patterns: Sequence[str], root: Path, engine: Engine
) -> Inputs:
    """The files that match patterns, each once; all patterns start in one folder.

    Raises:
        InputError: a pattern matches no file.
        UsageError: a pattern is none, or starts in another folder.
    """
    rooted_patterns = [_root_pattern(file, key, pattern, root) for pattern in patterns]
    base = rooted_patterns[0][0]
    for folder, _ in rooted_patterns:
        if folder != base:
            raise file.fault(
                key,
                f"patterns from {base} and {folder}",
                "expected several patterns to be from one folder",
            )
    matches = [_match(file, key, base, pattern, engine) for _, pattern in rooted_patterns]
    listing = matches[0][0]
    if len(matches) > 1:
        joined = Catalog.join(match for match, _ in matches)
        listing = joined.picked(np.delete(np.arange(len(joined)), [*joined.names.repeated()]))
    return Inputs(listing, Remarks.join(remarks for _, remarks in matches), base, base)


def _match(
    file: RecipeFile, key: Key, base: Path, pattern: str, engine: Engine
) -> tuple[Catalog, Remarks]:
    """The files below a folder that match; raises InputError if there is none."""
    listing, remarks = list_matching(base, pattern, engine)
    if not len(listing):
        raise InputError(
            f"{file.place(key)}: no file matches {base / pattern}", "expected at least one"
        )
    return listing, remarks


def _root_pattern(file: RecipeFile, key: Key, pattern: str, root: Path) -> tuple[Path, str]:
    """The folder from which a pattern's files are named (it exists), and the pattern from there."""
    base, relative = split_root(pattern, root)
    try:
        compile_pattern(pattern.removeprefix("./"))
    except ValueError as error:
        raise file.fault(key, f"{shortened(pattern)!r} is not a pattern", str(error)) from error
    need_path(file, key, below(base, split_pattern(relative)[0]), "folder")
    if ".." in relative.split("/"):
        raise file.fault(
            key,
            f"{shortened(pattern)!r} is not a pattern",
            "expected .. before the first special sign only",
        )
    return base, relative


def split_root(pattern: str, root: Path) -> tuple[Path, str]:
    """The folder from which a pattern's files are named, and the pattern from there.

    That is the root of the data, or, for a pattern that leads out of it, the folders before its
    first special sign.
    """
    pattern = pattern.removeprefix("./").removeprefix(f"{root.as_posix().rstrip('/')}/")
    if not pattern.startswith("/") and ".." not in pattern.split("/"):
        return root, pattern
    fixed_folders, relative = split_pattern(pattern)
    return Path(os.path.normpath(below(root, fixed_folders))), relative


# lists and archives -------------------------------------------------------------------------------


def list_by_manifest(path: AnyPath, base: Path, engine: Engine) -> Inputs:
    """The files that a manifest names, in its order."""
    listing, remarks = look_up(read_file_list(path, base), base, engine)
    return Inputs(listing, remarks, base, path, is_ordered=True)


def find_archives(
    file: RecipeFile, key: Key, texts: Iterable[str], root: Path, engine: Engine
) -> tuple[list[Path], Path]:
    """The files that the recipe names by a path or a pattern, each once; and the folder where
    patterns start.

    Raises:
        InputError: one is missing.
    """
    archives: dict[Path, None] = {}
    base = root
    for text in texts:
        if not is_pattern(text):
            archives[need_path(file, key, below(root, text))] = None
            continue
        base, pattern = _root_pattern(file, key, text, root)
        listing, _ = _match(file, key, base, pattern, engine)
        archives |= dict.fromkeys(below(base, name) for name in listing.names)
    if faults := missing_shards(archives):
        raise all_of(faults)
    return list(archives), base


def archives_by_split(
    file: RecipeFile, key: Key, root: Path, engine: Engine
) -> tuple[dict[str, list[Path]], Path]:
    """The files that the recipe names by split ("": of no split), and the folder where patterns
    start.
    """
    value = getattr(file.recipe.source, str(key[-1]))
    texts_by_split = value if isinstance(value, dict) else {"": value}
    archives: dict[str, list[Path]] = {}
    base = root
    for split, split_texts in texts_by_split.items():
        texts = [split_texts] if isinstance(split_texts, str) else split_texts
        split_key = (*key, split) if split else key
        archives[split], base = find_archives(file, split_key, texts, root, engine)
    return archives, base


def origin_of(archives: dict[str, list[Path]], base: Path) -> Path:
    """The origin of the files, for the record: the only file, or the folder of several."""
    paths = [path for split_paths in archives.values() for path in split_paths]
    return paths[0] if len(paths) == 1 else base
