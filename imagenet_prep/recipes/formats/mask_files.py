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
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed
from imagenet_prep.recipes.formats.runs import is_table
from imagenet_prep.recipes.mask_folders import LOSSLESS
from imagenet_prep.recipes.mask_names import is_image_folder, is_mask_folder
from imagenet_prep.recipes.object_masks import Runs
from imagenet_prep.recipes.splits import stem_of
from imagenet_prep.sources.names import below, text_of
from imagenet_prep.storage.files import read_plain

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_PAIRED = 0.9
"""The least share of files in folders of masks that belong to an image."""


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    root = images.roots.root
    names = images.class_names(keys).order
    if len(names) > 1:
        raise InputError(
            f"boxes: names: {len(names)} names", "expected one: files of masks have no classes"
        )
    paths = [os.path.relpath(below(images.roots.base, name), root) for name in images.names]
    by_image, missing = group_masks(paths, _mask_paths(keys.places, root))
    images.file.columns = columns_named("area")
    images.file.polygons = "masks"
    for row, path in enumerate(paths):
        if path in by_image:
            images.mark(
                row, _read(root, path, by_image[path], images, names[0] if names else NAMELESS)
            )
    images.missing += missing


def _mask_paths(folders: Sequence[str], root: Path) -> list[str]:
    """The files in folders of masks, below these folders, by their paths from the root."""
    paths: list[str] = []
    for text in folders:
        folder = need_annotations(below(root, text), "folder")
        paths += _in_mask_folders(os.path.relpath(path, root) for path in folder.rglob("*"))
    return sorted(paths)


def _read(
    root: Path, path: str, files: Sequence[str], images: AnnotatedImages, class_name: str
) -> Marked:
    """An image with an object for each file: its box is the one around its pixels."""
    image = Marked(path, path)
    for name in files:
        file = below(root, name)
        data = read_plain(file)
        try:
            pixels = mask_pixels.decode_mask(data)
        except ImageError as error:
            raise fault(str(file), str(error)) from error
        size = pixels.shape[1], pixels.shape[0]
        image.size = image.size or size
        if size != image.size:
            raise fault(
                str(file),
                f"{size[0]} x {size[1]} pixels",
                f"expected {image.size[0]} x {image.size[1]}",
            )
        images.file.add_pixels(
            image, class_name, pixels, Runs(file=text_of(name), length=len(data)), str(file)
        )
        image.mask_files.append(file)
    return image


def group_masks(
    images: Sequence[str], files: Sequence[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """The files of each image's objects, by the paths of both; and the files of no image.

    Both are in one folder, except for folders that only say what is in them, and an image is alone
    in its own; or the folder of its files has its name.
    """
    counts = Counter(map(_place_of_image, images))
    owners = {place: image for image in images if counts[place := _place_of_image(image)] == 1}
    owners |= {f"{_place_of_image(image)}/{stem_of(image)}".lstrip("/"): image for image in images}
    grouped: dict[str, list[str]] = {}
    missing: list[str] = []
    for file in files:
        owner = owners.get(
            "/".join(folder for folder in file.split("/")[:-1] if not is_mask_folder(folder))
        )
        if owner is None:
            missing.append(file)
        else:
            grouped.setdefault(owner, []).append(file)
    return grouped, missing


def _place_of_image(path: str) -> str:
    """The folders of an image without those that only say that images are in them."""
    return "/".join(folder for folder in path.split("/")[:-1] if not is_image_folder(folder))


# init ---------------------------------------------------------------------------------------------


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """Folders of masks, of which some image has several."""
    files = list(_in_mask_folders(folder.names))
    if not files or not folder.images:
        return None
    by_image, missing = group_masks(folder.images, files)
    most = max(map(len, by_image.values()), default=0)
    if most < 2 or len(missing) > (1 - _PAIRED) * len(files):
        return None
    top = os.path.commonpath([name.rpartition("/")[0] for name in files])
    tables = [name for name in folder.names if is_table(name, _head(folder.path / name))]
    return Proposed({"mask_files": [top or "."]}, tables, is_certain=True)


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
