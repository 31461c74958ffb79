"""The kinds of sources. A kind is one new module ``from_KEY`` with its ``KIND``; KEY is the
recipe's key in `source`.

The recipe's type has a key for each kind, ``rules`` checks the keys next to it, ``find_inputs``
lists its files, and ``list_samples`` reads those that have labels of their own.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from imagenet_prep.model import Engine

if TYPE_CHECKING:
    from imagenet_prep.recipes.inputs import Inputs
    from imagenet_prep.recipes.joined_samples import Samples
    from imagenet_prep.recipes.recipe_file import Key, RecipeFile

Text = Annotated[str, Meta(min_length=1)]
Paths = Text | list[Text]
BySplit = Text | list[Text] | dict[str, Paths]

OPTIONS = ("tar_folders", "class_folder", "label", "image")
"""The keys of `source` that only make sense with some kinds."""


class SourceKind(Struct, frozen=True):
    """A kind of source.

    Args:
        key: its key in the recipe's `source`.
        rank: its place where messages and the documentation list all kinds; the lowest is first.
        value: the type of its value in a recipe.
        list_inputs: lists its files.
        options: the keys among ``OPTIONS`` that it has a use for.
        read_samples: reads the images and labels of files that hold both, by the splits that names
            tell; None for other kinds.
        has_rows: whether it has rows with labels, boxes and masks.
        may_have_boxes: whether its samples may have boxes, where it has no such rows.
        recognises: whether a file is one of the kind, by its name and its first 32 bytes; None
            where names alone tell it.
        structure: its name for ``init --as``, where that is not the key.
    """

    key: str
    rank: int
    value: Any
    list_inputs: Callable[[RecipeFile, Key, Path, Engine], Inputs]
    options: Sequence[str] = ()
    read_samples: Callable[[Sequence[Path], Engine], dict[str, Samples]] | None = None
    has_rows: bool = False
    may_have_boxes: bool = False
    recognises: Callable[[str, bytes], bool] | None = None
    structure: str = ""


@functools.cache
def source_kinds() -> Mapping[str, SourceKind]:
    """Every kind by its key, in the order of their ranks; imports all of their modules."""
    modules = [name.removesuffix(".py") for name in os.listdir(__path__[0])]
    kinds: list[SourceKind] = [
        importlib.import_module(f"{__name__}.{module}").KIND
        for module in modules
        if module.startswith("from_")
    ]
    kinds.sort(key=lambda kind: kind.rank)
    return {kind.key: kind for kind in kinds}


def kinds_with_samples() -> list[str]:
    """The keys of the kinds whose files have labels of their own."""
    return [key for key, kind in source_kinds().items() if kind.read_samples is not None]


def kinds_with_option(option: str) -> list[str]:
    """The keys of the kinds that have a use for a key among ``OPTIONS``."""
    return [key for key, kind in source_kinds().items() if option in kind.options]
