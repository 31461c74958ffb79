"""Files that a recipe names: by paths, by patterns, or in a list of names -> their listing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from imagenet_prep.errors import InputError, all_of
from imagenet_prep.model import Engine
from imagenet_prep.recipes.inputs import Inputs, skipped_in_words
from imagenet_prep.recipes.path_parts import counted
from imagenet_prep.recipes.recipe_file import Key, RecipeFile, shortened
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.file_lists import look_up, read_file_list
from imagenet_prep.sources.folders import list_matching
from imagenet_prep.sources.names import below
from imagenet_prep.sources.patterns import compile_pattern, is_pattern, split_pattern
from imagenet_prep.sources.remarks import Remarks, missing_shards
from imagenet_prep.storage.location import AnyPath


def source_texts(file: RecipeFile, key: Key) -> list[str]:
    """The texts of the recipe's source, which can be one or several."""
    texts = getattr(file.recipe.source, str(key[-1]))
    if isinstance(texts, str):
        return [texts]
    return list(texts)


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
    base, _ = rooted_patterns[0]
    for folder, _ in rooted_patterns:
        if folder != base:
            problem = f"the patterns start in {base} and in {folder}"
            expected = "expected all patterns to start in one folder"
            shared_folder = os.path.commonpath([base, folder])
            hint = (
                f"give --raw {shlex.quote(shared_folder)}, and write all paths of the recipe from "
                "that folder"
            )
            raise file.fault(key, problem, expected, hint)
    listings: list[Catalog] = []
    all_remarks: list[Remarks] = []
    for _, pattern in rooted_patterns:
        matches, remarks = _match(file, key, base, pattern, engine)
        listings.append(matches)
        all_remarks.append(remarks)
    listing = listings[0]
    if len(listings) > 1:
        joined = Catalog.join(listings)
        repeated_rows = [*joined.names.repeated()]
        rows = np.delete(np.arange(len(joined)), repeated_rows)
        listing = joined.picked(rows)
    return Inputs(listing, Remarks.join(all_remarks), base, base)


def _match(
    file: RecipeFile, key: Key, base: Path, pattern: str, engine: Engine
) -> tuple[Catalog, Remarks]:
    """The files below a folder that match; raises InputError if there is none."""
    listing, remarks = list_matching(base, pattern, engine)
    if not len(listing):
        problem = f"{file.place(key)}: no file matches {base / pattern}"
        skipped = skipped_in_words(remarks)
        expected = "; ".join(["expected at least one", *skipped])
        raise InputError(problem, expected, _hint_on_pattern(base, pattern))
    return listing, remarks


def _hint_on_pattern(base: Path, pattern: str) -> str:
    """The files in the folder where a pattern starts, for one that matches none."""
    fixed_folders, _ = split_pattern(pattern)
    folder = below(base, fixed_folders)
    names = [path.name for path in folder.iterdir() if path.is_file()]
    visible_names = [name for name in names if not name.startswith(".")]
    if visible_names:
        return f"correct the pattern: {folder} holds {counted(visible_names, 3)}"
    if names:
        return f"{folder} holds only hidden files, whose names start with a dot"
    return ""


def _root_pattern(file: RecipeFile, key: Key, pattern: str, root: Path) -> tuple[Path, str]:
    """The folder from which a pattern's files are named (it exists), and the pattern from there."""
    base, relative = split_root(pattern, root)
    problem = f"{shortened(pattern)!r} is not a pattern"
    try:
        compile_pattern(pattern.removeprefix("./"))
    except ValueError as error:
        raise file.fault(key, problem, str(error)) from error
    fixed_folders, _ = split_pattern(relative)
    need_path(file, key, below(base, fixed_folders), "folder")
    if ".." in relative.split("/"):
        problem = f"{shortened(pattern)!r} has .. after a folder with *, ? or ["
        raise file.fault(key, problem, "expected .. only before the first such folder")
    return base, relative


def split_root(pattern: str, root: Path) -> tuple[Path, str]:
    """The folder from which a pattern's files are named, and the pattern from there.

    That is the root of the data, or, for a pattern that leads out of it, the folders before its
    first special sign.
    """
    lead = f"{root.as_posix().rstrip('/')}/"
    pattern = pattern.removeprefix("./").removeprefix(lead)
    leads_out = pattern.startswith("/") or ".." in pattern.split("/")
    if not leads_out:
        return root, pattern
    fixed_folders, relative = split_pattern(pattern)
    folder = os.path.normpath(below(root, fixed_folders))
    return Path(folder), relative


# lists and archives -------------------------------------------------------------------------------


def list_by_manifest(path: AnyPath, base: Path, engine: Engine, base_key: str = "") -> Inputs:
    """The files that a manifest names, in its order; ``base_key`` as in ``read_file_list``."""
    file_list = read_file_list(path, base, base_key)
    listing, remarks = look_up(file_list, base, engine)
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
            path = need_path(file, key, below(root, text))
            archives[path] = None
            continue
        base, pattern = _root_pattern(file, key, text, root)
        listing, _ = _match(file, key, base, pattern, engine)
        for name in listing.names:
            path = below(base, name)
            archives[path] = None
    faults = missing_shards(archives)
    if faults:
        raise all_of(faults)
    return list(archives), base


def archives_by_split(
    file: RecipeFile, key: Key, root: Path, engine: Engine
) -> tuple[dict[str, list[Path]], Path]:
    """The files that the recipe names by split ("": of no split), and the folder where patterns
    start.
    """
    texts_by_split = getattr(file.recipe.source, str(key[-1]))
    if not isinstance(texts_by_split, dict):
        texts_by_split = {"": texts_by_split}
    archives: dict[str, list[Path]] = {}
    base = root
    for split, texts in texts_by_split.items():
        if isinstance(texts, str):
            texts = [texts]
        split_key = (*key, split) if split else key
        archives[split], base = find_archives(file, split_key, texts, root, engine)
    return archives, base


def origin_of(archives: dict[str, list[Path]], base: Path) -> Path:
    """The origin of the files, for the record: the only file, or the folder of several."""
    paths = [path for split_paths in archives.values() for path in split_paths]
    if len(paths) == 1:
        return paths[0]
    return base
