"""Paths of a recipe: the folder where they start, and files and folders that must be there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.storage.files import kind_of
from imagenet_prep.storage.location import AnyPath

ROOT_VARIABLE = "DATAPATH"

P = TypeVar("P", bound=AnyPath)


def data_root(file: RecipeFile, root: Path | None) -> Path:
    """The folder of relative paths: ``root``, or DATAPATH of the environment, or the recipe's own
    folder.

    Raises:
        InputError: it is not there.
    """
    variable = os.environ.get(ROOT_VARIABLE)
    folder = file.path.parent
    if variable:
        folder = Path(variable)
    if root:
        folder = root
    if kind_of(folder) != "folder":
        origin = "--raw" if root else f"{ROOT_VARIABLE} of the environment"
        raise InputError(
            f"{folder} is not there", f"expected the folder of the data, as {origin} names it"
        )
    return Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links, and names would change


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
    path_type = kind_of(path)
    if path_type == expected:
        return path
    fault = "not there" if path_type == "nothing" else f"not a {expected}"
    hint = (
        f"paths are relative to --raw, else to {ROOT_VARIABLE} of the environment, "
        "else to the recipe"
    )
    raise InputError(
        f"{file.place(key)}: {path} is {fault}",
        f"expected the {expected} that the recipe names",
        hint,
    )
