"""group_arrays: the arrays of files -> those that belong together; and whether files of arrays are
sets, or classes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.images import arrays as npy
from imagenet_prep.recipes import downsampled
from imagenet_prep.recipes.joined_samples import split_of, words_beside_split
from imagenet_prep.sources import array_files
from imagenet_prep.sources.stored_arrays import HOLDS_OBJECTS, StoredArray
from imagenet_prep.text import listed, number_of

NAMES = (downsampled.SYNSETS, "batches.meta.txt", "class_names.txt", "fine_label_names.txt")
"""Texts next to arrays that name the classes."""

_IMAGES = re.compile(r"(^|[^a-z])(x|images?|data|features|imgs?)([^a-z]|$)")
_STATISTICS = re.compile(r"(^|[^a-z])(mean|avg|average|std|stddev|var|variance)([^a-z]|$)")

_PAIRED = (
    {"input", "inputs", "output", "outputs", "target", "targets", "mask", "masks"}
    | {"label", "labels", "depth", "gt", "noisy", "clean", "left", "right", "lr", "hr"}
    | {"low", "high", "source", "before", "after"}
)
"""Names of arrays that belong together by their numbers, and are no classes."""

_UNNAMED = re.compile(r"arr_\d+")
_NUMBERED = re.compile(r"[\W_]*\d+$")
_CHANNELS = (1, 3, 4)
_LEAST_FLAT = 64  # values of an image in one row


class FoundArray(Struct, frozen=True):
    """An array, and the name that it has in its file."""

    path: Path
    name: str
    stored: StoredArray

    @property
    def column(self) -> str:
        """The name of a column of its values."""
        _, _, last_name = self.name.rpartition(".")
        return last_name

    @property
    def known_as(self) -> str:
        """The words that tell its split and its part."""
        if self.path.suffix in (".npz", ".mat"):
            return self.name
        return f"{self.path.stem} {self.name}"

    @property
    def is_text(self) -> bool:
        """Whether its values are texts."""
        return self.stored.dtype.kind in "US"

    @property
    def is_images(self) -> bool:
        """Whether it holds examples, not labels."""
        dimensions = len(self.stored.shape)
        if self.is_text or dimensions < 2:
            return False
        has_single_values = self.stored.dtype.itemsize == self.stored.item_bytes
        if has_single_values:
            return False
        if dimensions > 2:
            return True
        return _IMAGES.search(self.known_as.lower()) is not None

    @property
    def is_flat(self) -> bool:
        """Whether it is rows of bytes, each of which may be a square image."""
        shape = self.stored.shape
        if len(shape) != 2:
            return False
        width = shape[1]
        side = round(width**0.5)
        return width >= _LEAST_FLAT and side**2 == width

    @property
    def split(self) -> str:
        """The split that its name, or that of its file, says; "" for none."""
        split = split_of(self.known_as) or split_of(self.path.stem)
        if not split and "data_batch" in self.path.name:
            return "train"
        return split


def open_all(paths: Sequence[Path]) -> tuple[list[FoundArray], list[str]]:
    """The arrays of all files, and notes on those that are no examples, such as the mean image.

    Raises:
        InputError: a file can't be read.
    """
    downsampled.refuse_two_forms(paths)
    arrays: list[FoundArray] = []
    for path in paths:
        for name, stored in array_files.open_arrays(path).items():
            arrays.append(FoundArray(path, name, stored))
    shapes = {array.stored.shape[1:] for array in arrays}
    examples: list[FoundArray] = []
    statistics: list[str] = []
    for array in arrays:
        if _is_statistic(array, shapes):
            statistics.append(f"{array.name} of {array.path.name}")
        else:
            examples.append(array)
    if not statistics:
        return examples, []
    arrays_are = number_of(len(statistics), "array of statistics is", "arrays of statistics are")
    return examples, [f"{arrays_are} not read: {listed(statistics)}"]


def _is_statistic(array: FoundArray, shapes: set[tuple[int, ...]]) -> bool:
    """Whether it is the mean image of a set, or the like: it has the shape of one image."""
    shape = array.stored.shape
    if array_files.is_downsampled(array.path.name):
        return array.name == "mean"
    if not _STATISTICS.search(array.known_as.lower()):
        return False
    is_of_channels = len(shape) == 1 and shape[0] in _CHANNELS
    is_small = not shape or is_of_channels
    if is_small and array.stored.dtype.kind == "f":
        return True
    return shape in shapes


def group_arrays(arrays: Sequence[FoundArray]) -> dict[tuple[str, str], list[FoundArray]]:
    """The arrays that belong together, by their split and,
    if it holds images and labels, their file.
    """
    groups: dict[tuple[str, str], list[FoundArray]] = {}
    by_path: dict[Path, list[FoundArray]] = {}
    for array in arrays:
        by_path.setdefault(array.path, []).append(array)
    for path, members in by_path.items():
        pairs = _unnamed_pairs(members)
        are_images = {array.is_images for array in members}
        file_name = path.name if len(are_images) == 2 else ""
        for array in members:
            split = array.split or pairs.get(array.name, "")
            group = groups.setdefault((split, file_name), [])
            group.append(array)
    return groups


def _unnamed_pairs(members: Sequence[FoundArray]) -> dict[str, str]:
    """The splits of four arrays without names, saved in the order of Keras:
    images, labels, images, labels.
    """
    if len(members) != 4 or not all(_UNNAMED.fullmatch(array.name) for array in members):
        return {}
    ordered = sorted(members, key=lambda array: array.name)
    lengths = [array.stored.shape[:1] for array in ordered]
    train_images, train_labels, test_images, test_labels = lengths
    are_pairs = train_images == train_labels and test_images == test_labels
    are_in_order = [array.is_images for array in ordered] == [True, False, True, False]
    if not (are_pairs and are_in_order) or train_images <= test_images:
        return {}
    splits = ("train", "train", "test", "test")
    return {array.name: split for array, split in zip(ordered, splits, strict=True)}


# files that are classes, or sets ------------------------------------------------------------------


def class_of_file(path: Path) -> str:
    """The class that a file of arrays is called by: its name without words of splits."""
    if not split_of(path.stem):
        return path.stem
    words = words_beside_split(path.stem)
    return "_".join(words)


def are_class_files(arrays: Sequence[FoundArray]) -> bool:
    """Whether each file holds the images of the class that it is called by:
    one array of images in each, all alike.
    """
    paths = {array.path for array in arrays}
    if len(arrays) < 2 or len(paths) < len(arrays):
        return False
    if not _are_alike(arrays) or not all(map(_is_stack, arrays)):
        return False
    names: set[str] = set()
    words: set[str] = set()
    for path in paths:
        name = _NUMBERED.sub("", class_of_file(path)).lower()
        names.add(name)
        words.update(re.split(r"[^a-z]+", name))
    if len(names) < len(arrays) or "" in names:
        return False
    if words & _PAIRED:
        return False
    return not any(map(_IMAGES.search, names))


def _are_alike(arrays: Sequence[FoundArray]) -> bool:
    """Whether all items have the shape and the type of those of the first array."""
    types = {(array.stored.shape[1:], array.stored.dtype) for array in arrays}
    return len(types) == 1


def _is_stack(array: FoundArray) -> bool:
    if array.is_flat:
        return True
    shape = array.stored.shape
    return len(shape) == 4 and npy.is_picture(shape[1:], array.stored.dtype)


def rival_files(paths: Sequence[Path]) -> list[Path]:
    """Files that are a whole set each, by their names: bloodmnist.npz, pathmnist.npz;
    not part1.npz, part2.npz.
    """
    array_paths = [path for path in paths if path.name not in NAMES]
    arrays, _ = open_all(array_paths)
    paths_by_split: dict[str, dict[str, Path]] = {}
    for (split, file_name), members in group_arrays(arrays).items():
        if not file_name:
            continue
        path = members[0].path
        words = re.split(r"[\W_\d]+", path.stem)
        name = "_".join(word for word in words if not split_of(word))
        path_by_name = paths_by_split.setdefault(split, {})
        path_by_name.setdefault(name.lower(), path)
    for path_by_name in paths_by_split.values():
        if len(path_by_name) > 1:
            return list(path_by_name.values())
    return []


MOST_FILES = 512
"""So many files of arrays may be the files of a whole set; more are examples."""


def are_sets(paths: Sequence[Path]) -> bool:
    """Whether files of arrays hold the images of a whole set, by their shapes: with labels for
    each, or a class each.

    Otherwise each file is one example. A file of pickled objects is none.
    """
    if len(paths) > MOST_FILES:
        return False
    try:
        arrays, _ = open_all(paths)
    except InputError as error:
        return HOLDS_OBJECTS in error.detail
    has_images = False
    for members in group_arrays(arrays).values():
        if not any(array.is_images or array.is_flat for array in members):
            continue
        has_images = True
        if not are_class_files(members) and not _has_labels(members):
            return False
    return has_images


def _has_labels(members: Sequence[FoundArray]) -> bool:
    """Whether one array has images, and another one value,
    or a row of one-hot values, for each of them.
    """
    images = [array for array in members if array.is_images]
    if len(images) != 1:
        return False
    value_counts: list[int] = []
    for array in members:
        if not array.is_images and array.stored.shape:
            value_counts.append(array.stored.shape[0])
    image_count = images[0].stored.shape[0]
    return image_count in value_counts
