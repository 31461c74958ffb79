"""Arrays of a whole set -> Samples: which array holds the images,
which the labels, and what splits and classes are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.images import arrays as npy
from imagenet_prep.model import Engine
from imagenet_prep.recipes import downsampled
from imagenet_prep.recipes.joined_samples import (
    Samples,
    join_samples,
    split_of,
    usual_label,
    words_beside_split,
)
from imagenet_prep.recipes.table_rows import are_all
from imagenet_prep.sources import array_files
from imagenet_prep.sources.array_files import ArrayFile
from imagenet_prep.sources.array_formats import counts_from_1
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.names import shown_name
from imagenet_prep.sources.stored_arrays import HOLDS_OBJECTS, StoredArray
from imagenet_prep.storage.files import read_plain
from imagenet_prep.text import listed

FILE = "file"
"""The column of the names of files, where each file holds the images of one class."""

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


def list_arrays(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    """The images and labels that have one split in their names,
    or are in one file, belong together.
    """
    words = _words_in(paths)
    class_names: dict[int, str] = {}
    ordered_names: list[str] = []
    for path in paths:
        if path.name == downsampled.SYNSETS:
            class_names, words["labels"] = downsampled.read_synsets(path)
        elif path.name in NAMES:
            ordered_names = _read_names(path)
    array_paths = [path for path in paths if path.name not in NAMES]
    arrays, notes = open_all(array_paths)
    parts: dict[str, list[Samples]] = {}
    for (split, _), members in group_arrays(arrays).items():
        array = members[0]
        if len(members) == 1 and not array.is_images:
            place = f"the array {array.name} of {array.path.name}"
            notes.append(f"{place}: not read, no images go with it")
            continue
        part = _classes_of_files(members) or _of_arrays(members, words)
        split_parts = parts.setdefault(split, [])
        split_parts.append(part)
    for split_parts in parts.values():
        first_part = split_parts[0]
        first_part.passed += notes
        first_part.class_names = class_names
    are_from_1 = all(counts_from_1(array.path.name) for array in arrays)
    all_parts = list(itertools.chain(*parts.values()))
    _name_classes(all_parts, ordered_names, are_from_1=are_from_1)
    return {split: join_samples(split_parts) for split, split_parts in parts.items()}


def _read_names(path: Path) -> list[str]:
    """The names of classes in a text, one a line."""
    text = read_plain(path).decode("utf-8", "replace")
    stripped_lines = (line.strip() for line in text.split("\n"))
    return [name for name in stripped_lines if name]


def _words_in(paths: Sequence[Path]) -> dict[str, dict[int, str]]:
    """The names of classes, by column, in the first file of metadata that has some."""
    for path in paths:
        if "meta" in path.name:
            words = array_files.names_of_classes(path)
            if words:
                return words
    return {}


def _name_classes(
    parts: Sequence[Samples], names_in_file: Sequence[str], *, are_from_1: bool
) -> None:
    """Give the classes of all parts the names of a file, or of an array, which are in the order of
    their numbers.

    Numbers count from 0; or from 1, if one is as large as there are names, or if ``are_from_1`` and
    none is 0.
    """
    labelled_parts = [part for part in parts if part.label is not None]
    numbers: list[Any] = []
    for part in labelled_parts:
        numbers += part.columns[str(part.label)]
    if not numbers or not are_all(numbers, int):
        return
    lowest = min(numbers)
    highest = max(numbers)
    for part in labelled_parts:
        label = str(part.label)
        words = part.words.get(label, {})
        names = names_in_file
        if not names and 0 in words:
            names = list(words.values())
        if names and highest <= len(names):
            starts_at_1 = are_from_1 and lowest > 0
            first_number = int(highest == len(names) or starts_at_1)
            part.words = {**part.words, label: dict(enumerate(names, first_number))}


# which arrays belong together ---------------------------------------------------------------------


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
    means: list[str] = []
    other_statistics: list[str] = []
    for array in arrays:
        if not _is_statistic(array, shapes):
            examples.append(array)
        elif array.name == "mean":
            means.append(array.path.name)
        else:
            other_statistics.append(array.path.name)
    notes: list[str] = []
    if means:
        notes.append(f"the mean image of {listed(means)}: not read")
    if other_statistics:
        names = listed(other_statistics)
        notes.append(f"{names}: not read, a value for each pixel, and no image")
    return examples, notes


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


def _classes_of_files(members: Sequence[FoundArray]) -> Samples | None:
    """The images of files that are a class each; None for other files."""
    if not are_class_files(members):
        return None
    parts: list[Samples] = []
    for array in members:
        part = _images_of(array)
        class_name = class_of_file(array.path)
        part.columns[FILE] = [class_name] * len(part.names)
        part.label = FILE
        parts.append(part)
    return join_samples(parts)


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


# images and labels --------------------------------------------------------------------------------


def _of_arrays(members: Sequence[FoundArray], words: Mapping[str, dict[int, str]]) -> Samples:
    """The examples of an array of images, with one value of each other array."""
    images, value_arrays, class_texts = _sort_by_role(members)
    samples = _images_of(images)
    columns = {array.column: _values(array.stored) for array in value_arrays}
    label = _name_label(columns)
    if label is not None:
        columns[label] = _class_numbers(columns[label])
        downsampled.refuse_labels(images.path, columns[label])
    samples.columns = columns
    samples.label = label
    samples.words = dict(words)
    if label is not None and len(class_texts) == 1:
        (texts,) = class_texts
        samples.words[label] = dict(enumerate(_values(texts.stored)))
    return samples


def _sort_by_role(
    members: Sequence[FoundArray],
) -> tuple[FoundArray, list[FoundArray], list[FoundArray]]:
    """The array of images, those with a value for each of them, and texts of another number.

    Raises:
        InputError: there is no array of images, or several; or an array has another length.
    """
    images = [array for array in members if array.is_images]
    count = images[0].stored.shape[0] if images else 0
    class_texts: list[FoundArray] = []
    value_arrays: list[FoundArray] = []
    for array in members:
        is_of_examples = array.stored.shape[:1] == (count,)
        if array.is_text and not is_of_examples:
            class_texts.append(array)
        elif not array.is_images:
            value_arrays.append(array)
    are_values_of_images = all(array.stored.shape[:1] == (count,) for array in value_arrays)
    if len(images) == 1 and are_values_of_images:
        return images[0], value_arrays, class_texts
    shapes = ", ".join(f"{array.name} {array.stored.shape}" for array in members)
    raise InputError(
        f"{members[0].path} has no array of images with labels for each: {shapes}",
        "expected an array of N images and one of N labels in each split",
    )


def _name_label(columns: dict[str, list[Any]]) -> str | None:
    """The column of labels: one with a usual name, or the only one, which is called "label" then:
    y_train and y_test are one column.
    """
    usual = usual_label(columns)
    if usual is not None or len(columns) != 1:
        return usual
    (name,) = columns
    columns["label"] = columns.pop(name)
    return "label"


def _images_of(images: FoundArray) -> Samples:
    """The examples of an array alone."""
    path = images.path
    stored = images.stored
    stored.check()
    count, *item_shape = stored.shape
    is_picture = npy.is_picture(tuple(item_shape), stored.dtype)
    ending = ".png" if is_picture else ".npy"
    length = len(stored.header) + stored.item_bytes
    stamp = path.stat().st_mtime_ns
    folder = f"{shown_name(path)}/{images.name}"
    names = [f"{folder}/{number:06}{ending}" for number in range(count)]
    builder = CatalogBuilder(ArrayFile(path))
    for number, name in enumerate(names):
        builder.append(name, number, length, stamp)
    return Samples(builder.sorted(), names, {})


def _values(stored: StoredArray) -> list[Any]:
    """The values of an array, one or a list for each example; bytes as texts."""
    array = stored.values()
    if array.size == len(array):
        array = array.reshape(-1)
    values: list[Any] = array.tolist()
    for number, value in enumerate(values):
        if isinstance(value, bytes):
            values[number] = value.decode("utf-8", "replace")
    return values


def _class_numbers(labels: list[Any]) -> list[Any]:
    """One-hot labels, and whole numbers that are stored as floats, as numbers;
    other labels as they are.
    """
    if are_all(labels, list):
        are_one_hot = all(set(label) <= {0, 1} and sum(label) == 1 for label in labels)
        if are_one_hot:
            return [label.index(1) for label in labels]
    elif are_all(labels, float):
        are_whole = all(label.is_integer() for label in labels)
        if are_whole:
            return [int(label) for label in labels]
    return labels


# whether files hold sets --------------------------------------------------------------------------

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
