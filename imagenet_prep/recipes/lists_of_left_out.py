"""Errors for images that a recipe leaves out, since they have no annotation or mask, and that the
list of a split names.
"""

from __future__ import annotations

from collections.abc import Collection

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.recipes.classic_inputs import manifest_names
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.file_lists import FileList
from imagenet_prep.text import listed, number_of


def listed_without_annotation(
    file: RecipeFile, key: str, inputs: Inputs, skipped: Collection[str]
) -> UsageError:
    """The error for images that ``skip`` would leave out, and that the list of a split names."""
    list_names = manifest_names(file)
    names = inputs.listing.names
    faulty_lists: list[str] = []
    for split, rows in inputs.divided.items():
        if any(names[row] in skipped for row in rows):
            faulty_lists.append(list_names[split])
    lists = " and ".join(faulty_lists)
    verb = "lists" if len(faulty_lists) == 1 else "list"
    annotation, option = _what_is_skipped(file)
    images = number_of(len(skipped), "image")
    pronoun = "this image" if len(skipped) == 1 else "these images"
    return file.fault(
        (key,),
        f"{lists} {verb} {images} without {annotation}: {listed(sorted(skipped))}",
        f"`{option}` can't leave out images that a list names",
        f"remove {pronoun} from {lists}",
    )


def refuse_left_out(file: RecipeFile, inputs: Inputs, listing: Catalog, line: FileList) -> None:
    """Raise InputError if a line of a list names an image that ``skip`` leaves out: it is among
    all files of the source, and not in the ``listing``.
    """
    all_names = inputs.listing.names
    (row,) = match(line.names, all_names, inputs.base, line.path, file.recipe.strip)
    if row < 0 or all_names[row] in set(listing.names):
        return
    annotation, option = _what_is_skipped(file)
    raise InputError(
        f"{line.path}, line {line.lines[0]}: {all_names[row]} is an image without {annotation}",
        f"`{option}` can't leave out images that a list names",
        "remove this line",
    )


def _what_is_skipped(file: RecipeFile) -> tuple[str, str]:
    """The noun for what the left out images lack, and the words of the recipe for that."""
    if file.recipe.mask and file.recipe.boxes:
        return "annotation or mask", "skip"
    if file.recipe.mask:
        return "mask", "unmasked: skip"
    return "annotation", "unannotated: skip"
