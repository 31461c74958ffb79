"""Splits by the names of folders: several folders -> the split of each, and the order of the
usual ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from imagenet_prep.recipes.folder_words import (
    has_split_word,
    is_image_folder,
    name_as_split,
    split_name,
    words_of_name,
)
from imagenet_prep.sources.names import Names


def split_names(folders: Iterable[str]) -> dict[str, str]:
    """The split of each folder that is called as one, by its path; eval next to test is validation.

    A word within longer names counts where the names are the same without it, as in pets_train and
    pets_test. Folders of one split have its name, if they differ in numbers only; otherwise each
    has its own.
    """
    names = {folder: folder.rpartition("/")[2] for folder in folders}
    splits = _splits_by_a_word(names)
    for folder, name in names.items():
        split = split_name(name)
        if split:
            splits[folder] = split
    _call_eval_validation(splits, names)
    words_by_split: dict[str, set[str]] = {}
    for folder, split in splits.items():
        word = re.sub(r"[\W\d_]", "", names[folder].lower())
        words = words_by_split.setdefault(split, set())
        words.add(word)
    for folder, split in splits.items():
        differs_in_words = len(words_by_split[split]) > 1
        if differs_in_words:
            splits[folder] = name_as_split(names[folder])
    return splits


def _call_eval_validation(splits: dict[str, str], names: Mapping[str, str]) -> None:
    """Make eval next to test the validation split, if there is no other."""
    tests = [folder for folder, split in splits.items() if split == "test"]
    evals = [folder for folder in tests if "eval" in names[folder].lower()]
    has_validation = "validation" in splits.values()
    if len(evals) == 1 and len(tests) > 1 and not has_validation:
        splits[evals[0]] = "validation"


def _splits_by_a_word(names: Mapping[str, str]) -> dict[str, str]:
    """The split of each folder whose name is that of another except the word of the split;
    ``names`` by path.
    """
    groups: dict[tuple[str, ...], dict[str, str]] = {}  # by the other words of the names
    for folder, name in names.items():
        splits, other_words = words_of_name(name)
        if len(splits) < 2:
            group = groups.setdefault(other_words, {})
            group[folder] = splits[0] if splits else "train"
    split_of: dict[str, str] = {}
    for other_words, group in groups.items():
        distinct_splits = set(group.values())
        if not other_words or len(group) == 1 or len(distinct_splits) < len(group):
            continue
        group_names = [names[folder] for folder in group]
        if any(has_split_word(name, other_words) for name in group_names):
            split_of |= group
    return split_of


def splits_above(names: Iterable[str]) -> dict[str, str]:
    """The folders of splits that all files are in, and the split that each is: train2017 is train;
    else none.
    """
    split_of: dict[str, str] = {}
    for name in names:
        *folders, _ = name.split("/")
        for depth, folder in enumerate(folders, 1):
            split = split_name(folder)
            if split:
                path = "/".join(folders[:depth])
                split_of[path] = split
                break
        else:
            return {}
    if len(split_of) < 2:
        return {}
    distinct_splits = set(split_of.values())
    if len(distinct_splits) == len(split_of):
        return split_of
    return {folder: name_as_split(folder) for folder in split_of}


FOLDERS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "test": "test",
}
"""Folders that are splits if a set has no others, and the split that each is."""

USUAL = ("train", "validation", "test")
"""The usual splits, in their order."""


def place_of_split(split: str) -> tuple[int, str]:
    """The place of a split among others, as a key to sort by:
    the usual ones first, then by name.
    """
    place = len(USUAL)
    if split in USUAL:
        place = USUAL.index(split)
    return place, split


ONLY = "train"
"""The name of the split where there is but one."""

_MOST_SPLITS = 64


def split_folders(names: Names, classes_below: int) -> dict[str, str]:
    """The splits that a set's own folders are, by folder; none if one of them is no name of a
    split.

    Files are at least ``classes_below`` folders below their split's. ``names`` are sorted by their
    bytes.
    """
    tops: dict[str, range] = {}
    row = 0
    while row < len(names) and len(tops) < _MOST_SPLITS:
        top, slash, _ = names[row].partition("/")
        if not slash or top not in FOLDERS:
            return {}
        tops[top] = names.below(f"{top}/")
        row = tops[top].stop
    splits = {top: split for top, split in FOLDERS.items() if top in tops}
    distinct_splits = set(splits.values())
    if "train" not in splits or len(splits) != len(distinct_splits):
        return {}
    if names.fewest_slashes() <= classes_below:
        return {}
    return splits


def are_in_an_image_folder(names: Names) -> bool:
    """Whether all files are in one folder whose name says no more than that images are in it;
    names are sorted.
    """
    if not len(names):
        return False
    top, _, _ = names[0].partition("/")
    if not is_image_folder(top):
        return False
    rows_in_folder = names.below(f"{top}/")
    if len(rows_in_folder) < len(names):
        return False
    return not any(name.count("/") > 1 for name in names)
