"""pair_masks: a recipe's `mask` and the names of images -> the file of each image's mask."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.images import ENDINGS, mask_pixels
from imagenet_prep.recipes.folder_words import core_of, is_image_folder, is_mask_folder, unmasked
from imagenet_prep.recipes.recipe_paths import fault_of_path, remedy_of_path
from imagenet_prep.sources.names import below
from imagenet_prep.text import listed, number_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import Mask

LOSSLESS = tuple(ending for kind in mask_pixels.LOSSLESS for ending in ENDINGS[kind])
"""Endings of masks that keep their values."""

LOSSY = ENDINGS["JPEG"]

_ONE_MASK = "keep the right one, and move the others out of the folder of masks"

THRESHOLD = 128
"""The brightness that splits the two values of a mask in JPEG, where nobody says another."""

_AMBIGUOUS = Path()
"""Stands for several masks of one name."""


class MaskPairs(Struct):
    """Images and their masks.

    Args:
        paths: the mask of each image by its row.
        missing: the masks of no image, by their paths from the root.
        rows: the rows that are masks themselves, next to their images.
    """

    paths: dict[int, Path]
    missing: list[str]
    rows: frozenset[int] = frozenset()


def pair_masks(keys: Mask, names: Sequence[str], base: Path, root: Path) -> MaskPairs:
    """The mask of each image.

    Both have one name, except for their endings and suffixes. Folders count, too, except for words
    that only say what is in them: train_images/a.jpg has train_masks/a.png. If those differ, what
    follows the folder of masks counts.

    Args:
        keys: the recipe's key.
        names: those of the images, from ``base``.
        base: that folder.
        root: the folder of the recipe's paths.

    Raises:
        InputError: a folder is not there, several masks have the name of an image, or a mask is of
            a lossy format.
    """
    image_paths = [os.path.relpath(below(base, name), root) for name in names]
    mask_names = _find_masks(keys, root)
    mask_rows = _rows_of_masks(keys, image_paths, mask_names)
    images = {row: path for row, path in enumerate(image_paths) if row not in mask_rows}
    for path in images.values():
        mask_names.pop(path, None)
    masks_by_key = _paths_by_key(_usable(keys, mask_names), keys.suffix)
    mask_paths: dict[int, Path] = {}
    owners: dict[Path, int] = {}
    for row, image_path in images.items():
        image_key = reduced(image_path, keys.image_suffix)
        mask = _lookup(masks_by_key, image_key)
        if mask is None:
            continue
        if mask == _AMBIGUOUS:
            masks = _masks_of(_usable(keys, mask_names), image_key, keys.suffix)
            problem = f"several masks fit {names[row]}: {listed(masks)}"
            raise InputError(problem, "expected one mask for each image", _ONE_MASK)
        if owners.setdefault(mask, row) != row:
            problem = f"the mask {mask} fits {names[owners[mask]]} and {names[row]}"
            expected = "expected one image for each mask"
            hint = "give each image its own mask, or move one image away"
            raise InputError(problem, expected, hint)
        mask_paths[row] = root / mask
    if keys.unmasked == "error":
        bare = [path for row, path in images.items() if row not in mask_paths]
        _refuse_lossy(keys, mask_names, bare)
    unused_masks = set(masks_by_key.values()) - owners.keys() - {_AMBIGUOUS}
    return MaskPairs(mask_paths, sorted(map(str, unused_masks)), mask_rows)


def _rows_of_masks(
    keys: Mask, image_paths: Sequence[str], mask_names: Mapping[str, str]
) -> frozenset[int]:
    """The rows of images that are masks of others; none where images and masks share a folder, and
    differ in their endings.
    """
    rows = frozenset(row for row, path in enumerate(image_paths) if path in mask_names)
    if not keys.suffix and len(rows) == len(image_paths):
        return frozenset()
    return rows


def _find_masks(keys: Mask, root: Path) -> dict[str, str]:
    """The files of masks below the folders of a recipe:
    the path of each from its folder, by its path from the root.
    """
    names: dict[str, str] = {}
    suffix = (keys.suffix or "").lower()
    for text in [keys.folder] if isinstance(keys.folder, str) else keys.folder:
        folder = below(root, text)
        _need_folder(folder)
        for path in folder.rglob("*"):
            name = path.relative_to(folder).as_posix()
            is_hidden = name.startswith(".") or "/." in name
            is_image = path.suffix.lower() in (*LOSSLESS, *LOSSY)
            if is_image and path.stem.lower().endswith(suffix) and not is_hidden:
                names[os.path.relpath(path, root)] = name
    return names


def _need_folder(path: Path) -> None:
    """Raise InputError if a path is none of a folder."""
    problem = fault_of_path(path, "folder")
    if problem:
        expected = "expected the folder of masks that the recipe names"
        raise InputError(f"{path} {problem}", expected, remedy_of_path(problem))


def _usable(keys: Mask, names: dict[str, str]) -> dict[str, str]:
    """The masks that keep their values; raises InputError if all are JPEGs,
    and the recipe has no threshold.
    """
    if keys.threshold is not None:
        return names
    lossless = {path: name for path, name in names.items() if not path.lower().endswith(LOSSY)}
    if names and not lossless:
        threshold = (
            "; or, if they are black and white, write in the recipe's `mask`: "
            f"threshold: {THRESHOLD} (pixels from {THRESHOLD} on become 255, the others 0)"
        )
        raise lossy_fault(sorted(names), threshold)
    return lossless


def lossy_fault(paths: Sequence[str], other_way: str = "") -> InputError:
    """The error for masks in JPEG; ``other_way`` ends the hint."""
    hint = "get the masks as they were before JPEG: a PNG made of a JPEG has the wrong values, too"
    masks = number_of(len(paths), "mask is a JPEG by its name", "masks are JPEGs by their names")
    problem = f"{masks}, and JPEG doesn't keep the values of pixels: {listed(paths)}"
    return InputError(problem, f"expected {', '.join(mask_pixels.LOSSLESS)}", hint + other_way)


def _refuse_lossy(keys: Mask, mask_names: Mapping[str, str], bare_images: Sequence[str]) -> None:
    """Raise InputError if images without a mask have one in JPEG, next to masks that keep their
    values.
    """
    if keys.threshold is not None:
        return
    lossy = {path: name for path, name in mask_names.items() if path.lower().endswith(LOSSY)}
    masks_by_key = _paths_by_key(lossy, keys.suffix)
    masks = [_lookup(masks_by_key, reduced(path, keys.image_suffix)) for path in bare_images]
    found = sorted(str(mask) for mask in masks if mask not in (None, _AMBIGUOUS))
    if found:
        raise lossy_fault(found)


def _paths_by_key(candidates: Mapping[str, str], suffix: str | None) -> dict[str, Path]:
    """The masks by the names that their images can have."""
    paths: dict[str, Path] = {}
    for text, name in candidates.items():
        path = Path(text)
        for key in {reduced(text, suffix), reduced(name, suffix)}:
            if paths.setdefault(key, path) != path:
                paths[key] = _AMBIGUOUS
    return paths


def _lookup(masks_by_key: Mapping[str, Path], key: str) -> Path | None:
    """The mask of an image: that of the same folders, or of the last ones, or of its name alone."""
    parts = key.split("/")
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        if tail in masks_by_key:
            return masks_by_key[tail]
    return None


def _masks_of(candidates: Mapping[str, str], image_key: str, suffix: str | None) -> list[str]:
    """The masks that fit an image, as ``_lookup`` finds them."""
    parts = image_key.split("/")
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        masks = [
            text
            for text, name in candidates.items()
            if tail in (reduced(text, suffix), reduced(name, suffix))
        ]
        if masks:
            return sorted(masks)
    return []


def reduced(path: str, suffix: str | None) -> str:
    """A path without its ending and suffix, and without words of folders that only say what is in
    them.

    Where no suffix is known, any usual one of masks is taken off.
    """
    *folders, last = path.split("/")
    core_folders = []
    for folder in folders:
        if not is_image_folder(folder) and not is_mask_folder(folder):
            core_folders.append(core_of(folder))
    stem = last.rpartition(".")[0]
    if suffix is None:
        stem = unmasked(stem)
    elif stem.lower().endswith(suffix.lower()):
        stem = stem[: len(stem) - len(suffix)]
    return "/".join((*filter(None, core_folders), stem))
