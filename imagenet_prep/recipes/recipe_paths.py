"""Paths of a recipe: the folder where they start, and files and folders that must be there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.sources.other_files import absence_in_words, other_file
from imagenet_prep.storage.files import kind_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none

ROOT_VARIABLE = "DATAPATH"

NOT_THERE = "is not there"
"""The problem of a path that leads to nothing."""

OUTSIDE = (
    "put the recipe into a folder that holds all of the data, or give that folder as --raw; "
    "and write all paths of the recipe from there"
)
"""The hint for a path that leads out of the folder of the data."""

P = TypeVar("P", bound=AnyPath)


def data_root(file: RecipeFile, root: Path | None) -> Path:
    """The folder of relative paths: ``root``, or DATAPATH of the environment, or the recipe's own
    folder.

    Raises:
        InputError: it is not there.
    """
    variable = os.environ.get(ROOT_VARIABLE)
    folder, origin = file.path.parent, "which holds the recipe"
    if variable:
        folder, origin = Path(variable), f"as {ROOT_VARIABLE} of the environment names it"
    if root:
        folder, origin = root, "as --raw names it"
    problem = fault_of_path(folder, "folder")
    if problem:
        hint = "correct it in the command"
        if variable and not root:
            hint = (
                f"correct {ROOT_VARIABLE}; or unset it, if paths start at the folder of the recipe"
            )
        expected = f"expected the folder of the data, {origin}"
        raise InputError(f"{folder} {problem}", expected, hint)
    return Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links, and names would change


def need_recorded_root(root: AnyPath, layout: Layout) -> None:
    """Raise InputError unless the folder that a plan names is there, for ``repair`` of its set."""
    problem = fault_of_path(root, "folder") if local_or_none(root) else ""
    if problem:
        moved = command("repair", layout.data_dir, (("raw", "FOLDER"), *layout.elsewhere()))
        raise InputError(
            f"{root} {problem}",
            "the set was made from this folder",
            Hint("if it was moved: ", moved),
        )


def is_root_named(root: object) -> bool:
    """Whether ``root`` or DATAPATH says what is put before relative paths:
    the recipe alone doesn't tell then.
    """
    return root is not None or bool(os.environ.get(ROOT_VARIABLE))


def need_path(file: RecipeFile, key: Key, path: P, expected: str = "file") -> P:
    """A file or a folder that the recipe names.

    Raises:
        InputError: it is not there.
    """
    problem = fault_of_path(path, expected)
    if not problem:
        return path
    hint = remedy_of_path(problem)
    database = path / "data.mdb"
    if expected == "file" and kind_of(database) == "file":
        hint = f"name the file of the database: {database}"
    raise InputError(
        f"{file.place(key)}: {path} {problem}",
        f"expected the {expected} that the recipe names",
        hint,
    )


def remedy_of_path(problem: str) -> str:
    """The hint for a problem of ``fault_of_path`` of a recipe's path: where such paths start."""
    if problem != NOT_THERE:
        return ""
    return (
        f"relative paths start at --raw, at {ROOT_VARIABLE} of the environment, "
        "or at the folder of the recipe"
    )


def fault_of_path(path: AnyPath, expected: str) -> str:
    """The problem of a path where a "file" or a "folder" is expected; "" if it is one."""
    path_type = kind_of(path)
    if path_type == expected:
        return ""
    if path_type == "nothing":
        return absence_in_words(path)
    if path_type == "other":
        return f"is {other_file(path.stat())}"
    return f"is not a {expected}"
