"""What a recipe's files are by their names: images, or arrays; and which are neither."""

from __future__ import annotations

import functools

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.layouts import counted
from imagenet_prep.recipes.reading import RecipeFile
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.text import listed, number_of

ENDINGS: dict[Content, tuple[str, ...]] = {
    "image": (".jpeg", ".jpg", ".png"),
    "pixels": (".jpeg", ".jpg", ".png", ".tif", ".tiff"),
    "array": (".npy", ".npz"),
}
_NOUNS: dict[Content, str] = {"image": "image", "pixels": "image", "array": "array"}
_OTHER_IMAGES = (".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".avif", ".jp2", ".ppm")


def decide(file: RecipeFile, listing: Catalog) -> Content:
    """What the files are: as the recipe says, else arrays if they all end as such, else numbers if it rescales.

    Raises:
        UsageError: the recipe has keys for another content.
    """
    recipe = file.recipe
    if recipe.content is not None:
        return recipe.content
    endings = listing.names.endings()
    has_arrays = any(is_of("array", each) for each in endings)
    if recipe.array is not None or (has_arrays and not any(is_of("pixels", each) for each in endings)):
        key = "images" if recipe.images is not None else "record" if recipe.record == "inception" else None
        if key is not None:
            raise file.fault((key,), "the files are arrays", "expected images, or no such key")
        return "array"
    return "image" if recipe.min_val is None else "pixels"


def is_of(content: Content, name: str) -> bool:
    """Whether a file's name, or the last 8 bytes of it, ends as those of a content do."""
    return name.lower().endswith(ENDINGS[content])


def keep(file: RecipeFile, inputs: Inputs, content: Content, *, skip_bad: bool) -> tuple[Catalog, list[str]]:
    """The files of this content, and what to tell the user of the others.

    In folders and tars other files are left out, but for images of a format that can't be read: those are among the
    ``obstacles`` of the inputs. With ``skip_bad`` they stay among the files, to be set aside one by one as bad. A
    pattern or a manifest that names another file is wrong.

    Raises:
        InputError: such a file is named, or nothing is left.
    """
    listing = inputs.listing
    import numpy as np

    if all(is_of(content, each) for each in listing.names.endings()):
        return listing, []
    fit, are_odd = (listing.names.chosen(functools.partial(accept, content)) for accept in (is_of, is_odd))
    odd, others = (listing.names.picked(np.flatnonzero(each)) for each in (are_odd, ~(fit | are_odd)))
    rows = np.flatnonzero(fit)
    if (odd and not skip_bad) or not len(rows) or (others and not inputs.has_folders):
        wrong = odd or others
        choice = f"convert or remove them, or say in {file.path} what the content is"
        error = InputError(
            f"{inputs.origin}: {_unreadable(len(wrong), content)}, {wrong[0]} first ({counted(wrong)})",
            f"expected names that end in {', '.join(ENDINGS[content])}, since content is {content}",
            f"{choice}; skip_bad: true, or --skip-bad, leaves them out" if odd and len(rows) else choice,
        )
        if not len(rows) or not inputs.has_folders:
            raise error
        inputs.obstacles.append(error)
    elif odd:
        rows = np.flatnonzero(fit | are_odd)
    if not others:
        return listing.picked(rows), []
    more = f" ({counted(others)})" if len(others) > 3 else ""
    noun = _NOUNS[content]
    left = number_of(len(others), f"file that is not an {noun} is", f"files that are not {noun}s are")
    return listing.picked(rows), [f"{left} left out: {listed(others)}{more}"]


def _unreadable(count: int, content: Content) -> str:
    noun = _NOUNS[content]
    return number_of(count, f"file can't be read as an {noun}", f"files can't be read as {noun}s")


def is_odd(content: Content, name: str) -> bool:
    """Whether a file is an image, of a format that this content can't be read from: data that would be missing."""
    return content != "array" and not is_of(content, name) and name.lower().endswith(_OTHER_IMAGES)
