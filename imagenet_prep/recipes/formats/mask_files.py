"""A file for each object: ID/images/ID.png has ID/masks/0.png, ID/masks/1.png;
or images/ID.png has masks/ID/0.png.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.errors import InputError
from imagenet_prep.images import mask_pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.recipes.annotated_images import AnnotatedImages, need_annotations
from imagenet_prep.recipes.box_files import Marked, columns_named
from imagenet_prep.recipes.box_policy import NAMELESS, fault
from imagenet_prep.recipes.folder_words import is_image_folder, is_mask_folder
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed
from imagenet_prep.recipes.formats.runs import is_table
from imagenet_prep.recipes.mask_folders import LOSSLESS
from imagenet_prep.recipes.object_masks import Runs
from imagenet_prep.recipes.path_parts import stem_of
from imagenet_prep.sources.names import below, text_of
from imagenet_prep.storage.files import read_plain
from imagenet_prep.text import listed

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_PAIRED = 0.5
"""The least share of files in folders of masks that belong to an image."""


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    root = images.roots.root
    names = images.class_names(keys).order
    if len(names) > 1:
        problem = f"`names` in the recipe's `boxes` has {len(names)} names: {listed(names)}"
        expected = "expected one name, for all objects: a file of a mask doesn't tell a class"
        raise InputError(problem, expected, f"keep one of them, such as names: [{names[0]}]")
    class_name = names[0] if names else NAMELESS
    image_paths = [os.path.relpath(below(images.roots.base, name), root) for name in images.names]
    masks_by_image, missing = group_masks(image_paths, _mask_paths(keys.places, root))
    images.file.columns = columns_named("area")
    images.file.polygons = "masks"
    for row, image_path in enumerate(image_paths):
        if image_path in masks_by_image:
            mask_paths = masks_by_image[image_path]
            images.mark(row, _read(root, image_path, mask_paths, images, class_name))
    images.missing += missing


def _mask_paths(folders: Sequence[str], root: Path) -> list[str]:
    """The files in folders of masks, below these folders, by their paths from the root."""
    paths: list[str] = []
    for text in folders:
        folder = need_annotations(below(root, text), "folder")
        paths += _in_mask_folders(os.path.relpath(path, root) for path in folder.rglob("*"))
    return sorted(paths)


def _read(
    root: Path,
    image_path: str,
    mask_paths: Sequence[str],
    images: AnnotatedImages,
    class_name: str,
) -> Marked:
    """An image with an object for each file: its box is the one around its pixels."""
    image = Marked(image_path, image_path)
    for mask_path in mask_paths:
        file = below(root, mask_path)
        data = read_plain(file)
        try:
            pixels = mask_pixels.decode_mask(data)
        except ImageError as error:
            raise fault(str(file), str(error), hint=error.remedy or "replace the mask") from error
        height, width = pixels.shape
        image.size = image.size or (width, height)
        if image.size != (width, height):
            expected = f"expected {image.size[0]} x {image.size[1]}, as in {mask_paths[0]}"
            raise fault(str(file), f"the mask has {width} x {height} pixels", expected)
        outline = Runs(file=text_of(mask_path), length=len(data))
        images.file.add_pixels(image, class_name, pixels, outline, str(file))
        image.mask_files.append(file)
    return image


def group_masks(
    images: Sequence[str], masks: Sequence[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """The masks of each image's objects, by the paths of both; and the masks of no image.

    Both are in one folder, except for folders that only say what is in them, and an image is alone
    in its own; or the folder of its masks has its name.
    """
    images_by_folder = _images_by_folder(images)
    masks_by_image: dict[str, list[str]] = {}
    missing: list[str] = []
    for mask in masks:
        folders = [folder for folder in mask.split("/")[:-1] if not is_mask_folder(folder)]
        image = images_by_folder.get("/".join(folders))
        if image is None:
            missing.append(mask)
        else:
            masks_by_image.setdefault(image, []).append(mask)
    return masks_by_image, missing


def _images_by_folder(images: Sequence[str]) -> dict[str, str]:
    """The image of each folder of masks, whose name has no words for masks."""
    folders = [_folder_of_image(image) for image in images]
    image_counts = Counter(folders)
    images_by_folder: dict[str, str] = {}
    for folder, image in zip(folders, images, strict=True):
        if image_counts[folder] == 1:
            images_by_folder[folder] = image
    for folder, image in zip(folders, images, strict=True):
        images_by_folder[f"{folder}/{stem_of(image)}".lstrip("/")] = image
    return images_by_folder


def _folder_of_image(path: str) -> str:
    """The folders of an image without those that only say that images are in them."""
    return "/".join(folder for folder in path.split("/")[:-1] if not is_image_folder(folder))


# init ---------------------------------------------------------------------------------------------


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """Folders of masks, of which some image has several."""
    masks = list(_in_mask_folders(folder.names))
    if not masks or not folder.images:
        return None
    masks_by_image, missing = group_masks(folder.images, masks)
    if len(missing) > (1 - _PAIRED) * len(masks):
        return None
    most_masks = max(map(len, masks_by_image.values()), default=0)
    if most_masks < 2:
        return None
    mask_folders = [name.rpartition("/")[0] for name in masks]
    common_folder = os.path.commonpath(mask_folders)
    tables = [name for name in folder.names if is_table(name, _head(folder.path / name))]
    return Proposed({"mask_files": [common_folder or "."]}, tables, is_certain=True)


def _head(path: Path) -> bytes:
    """The first bytes of a table; none of another file."""
    if path.suffix.lower() != ".csv":
        return b""
    with path.open("rb") as file:
        return file.read(1 << 10)


def _in_mask_folders(names: Iterable[str]) -> Iterator[str]:
    """The images in folders of masks, of a format that keeps their values."""
    for name in names:
        if name.lower().endswith(LOSSLESS) and any(map(is_mask_folder, name.split("/")[:-1])):
            yield name


FORMAT = Format(
    "mask_files",
    "masks of objects",
    "object-masks",
    (),
    lambda name, ends: False,
    _mark,
    usage={
        "a file for each object": (
            "`boxes: {mask_files: FOLDERS}`, as in Data Science Bowl 2018: boxes and "
            "[masks](#masks-of-objects)"
        )
    },
    propose=_propose,
)
