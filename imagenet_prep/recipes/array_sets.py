"""Arrays of a whole set -> Samples: which array holds the images,
which the labels, and what splits and classes are.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.images import arrays as npy
from imagenet_prep.model import Engine
from imagenet_prep.recipes import downsampled
from imagenet_prep.recipes.array_groups import (
    NAMES,
    FoundArray,
    are_class_files,
    class_of_file,
    group_arrays,
    open_all,
)
from imagenet_prep.recipes.joined_samples import (
    Samples,
    join_samples,
    usual_label,
)
from imagenet_prep.recipes.label_cells import are_all
from imagenet_prep.sources import array_files
from imagenet_prep.sources.array_files import ArrayFile
from imagenet_prep.sources.array_formats import counts_from_1
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.names import shown_name
from imagenet_prep.sources.obstacles import NoFilesError
from imagenet_prep.sources.stored_arrays import SAVE_AS_NPZ, StoredArray
from imagenet_prep.storage.files import read_plain
from imagenet_prep.text import listed

FILE = "file"
"""The column of the names of files, where each file holds the images of one class."""


def list_arrays(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    """The images and labels that have one split in their names,
    or are in one file, belong together.
    """
    metadata = _read_metadata(paths)
    array_paths = [path for path in paths if path.name not in NAMES]
    arrays, notes = open_all(array_paths)
    if array_paths and not arrays and not notes:
        raise NoFilesError(
            f"no array in {listed(map(str, array_paths))}",
            "expected a file of arrays, or a pickle with an array or a dictionary of arrays",
            SAVE_AS_NPZ,
        )
    parts, notes_on_unread = _parts_of_splits(arrays, metadata.words)
    notes += notes_on_unread
    if arrays and not parts:
        raise _no_images(arrays)
    for split_parts in parts.values():
        first_part = split_parts[0]
        first_part.passed += notes
        first_part.class_names = metadata.class_names
    are_from_1 = all(counts_from_1(array.path.name) for array in arrays)
    all_parts = list(itertools.chain(*parts.values()))
    _name_classes(all_parts, metadata.ordered_names, are_from_1=are_from_1)
    return {split: join_samples(split_parts) for split, split_parts in parts.items()}


def _read_names(path: Path) -> list[str]:
    """The names of classes in a text, one a line."""
    text = read_plain(path).decode("utf-8-sig", "replace")
    stripped_lines = (line.strip() for line in text.split("\n"))
    return [name for name in stripped_lines if name]


class _Metadata(NamedTuple):
    """The names of classes that files give: words by column, WordNet ids by label, and the names
    in the order of their numbers.
    """

    words: dict[str, dict[int, str]]
    class_names: dict[int, str]
    ordered_names: list[str]


def _read_metadata(paths: Sequence[Path]) -> _Metadata:
    """The names of classes in all files of metadata."""
    words = _words_in(paths)
    class_names: dict[int, str] = {}
    ordered_names: list[str] = []
    for path in paths:
        if path.name == downsampled.SYNSETS:
            class_names, words["labels"] = downsampled.read_synsets(path)
        elif path.name in NAMES:
            ordered_names = _read_names(path)
    return _Metadata(words, class_names, ordered_names)


def _parts_of_splits(
    arrays: Sequence[FoundArray], words: Mapping[str, dict[int, str]]
) -> tuple[dict[str, list[Samples]], list[str]]:
    """The examples by split, and notes on arrays without images."""
    parts: dict[str, list[Samples]] = {}
    notes: list[str] = []
    for (split, _), members in group_arrays(arrays).items():
        array = members[0]
        if len(members) == 1 and not array.is_images:
            place = f"the array {array.name} of {array.path.name}"
            notes.append(f"{place} is not read: no images go with it")
            continue
        part = _classes_of_files(members) or _of_arrays(members, words)
        split_parts = parts.setdefault(split, [])
        split_parts.append(part)
    return parts, notes


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
        names = names_in_file or _names_from_0(part)
        if names and highest <= len(names):
            starts_at_1 = are_from_1 and lowest > 0
            first_number = int(highest == len(names) or starts_at_1)
            part.words = {**part.words, str(part.label): dict(enumerate(names, first_number))}


def _names_from_0(part: Samples) -> list[str]:
    """The names of the classes that a part has itself, if they count from 0."""
    words = part.words.get(str(part.label), {})
    return list(words.values()) if 0 in words else []


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
    if not images:
        raise _no_images(members)
    count = images[0].stored.shape[0]
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
    raise _not_of_images(members, images)


def _not_of_images(members: Sequence[FoundArray], images: Sequence[FoundArray]) -> InputError:
    """The error for several arrays of images, or for arrays of another length than theirs."""
    paths = listed(dict.fromkeys(str(array.path) for array in members))
    shapes = ", ".join(map(_name_and_shape, members))
    if len(images) > 1:
        names = listed(array.name for array in images)
        return InputError(
            f"{paths}: {len(images)} arrays hold images, {names}: {shapes}",
            "expected one array of images in each split",
            "save each with its labels in a folder of its own, and run init for each folder",
        )
    return InputError(
        f"{paths}: the arrays have different lengths: {shapes}",
        f"expected a value for each image of {images[0].name}",
        "correct these files, and run the same command again",
    )


def _no_images(arrays: Sequence[FoundArray]) -> InputError:
    """The error for files without an array of images."""
    paths = listed(dict.fromkeys(str(array.path) for array in arrays))
    shapes = listed(map(_name_and_shape, arrays)) or "there is none"
    return InputError(
        f"{paths}: no array holds images: {shapes}",
        "expected an array of N images: N x height x width, or N x height x width x channels; or "
        "one image in each row of an array with x, images or data in its name",
    )


def _name_and_shape(array: FoundArray) -> str:
    """An array for a message: "x_train of shape 10 x 28 x 28"."""
    sides = " x ".join(map(str, array.stored.shape))
    return f"{array.name} of shape {sides}" if sides else f"{array.name}, a single value"


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
