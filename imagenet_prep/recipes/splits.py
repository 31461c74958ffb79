"""Names of splits: the words that folders, files and values call them by, and the order of the
usual ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from imagenet_prep.recipes.mask_names import is_image_folder
from imagenet_prep.sources.names import Names

_SPLIT = re.compile(
    r"(?:(?:seg|data|set|images?|imgs?)[ _-])?"
    r"(train|training|trainval|val|valid|validation|dev|public[ _-]?test|"
    r"test|testing|eval|evaluation|hold[ _-]?out|private[ _-]?test)"
    r"(?:[ _-]?(?:set|data|split|folder|images?|imgs?))?"
    r"(?:[ _-]|\.X)?\d*(?-i:[AB])?",
    re.IGNORECASE,
)
_SPLIT_OF_WORD = {
    **dict.fromkeys(("train", "training", "trainval"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "publictest"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation", "holdout", "privatetest"), "test"),
}
"""The split that a word means, as Hugging Face's datasets and Kaggle's competitions have it."""

_TRAIN_AND_VAL = re.compile(r"train[ _-]val(?![a-z])", re.IGNORECASE)

_FILLING = frozenset(("set", "data", "images", "image", "imgs", "img", "split", "folder", "seg"))
"""Words that say nothing of a split."""


def split_name(folder: str) -> str:
    """The split that a folder is called as: "train" for train2017 or Training_set;
    "" if it is not.
    """
    match = _SPLIT.fullmatch(folder)
    return _SPLIT_OF_WORD[re.sub(r"[^a-z]", "", match[1].lower())] if match else ""


def name_as_split(folder: str) -> str:
    """The name of a split for a folder of any name:
    other characters than letters, digits and _ become hyphens.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "-", folder)
    return f"_{name[1:]}" if name.startswith("-") else name


def split_names(folders: Iterable[str]) -> dict[str, str]:
    """The split of each folder that is called as one, by its path; eval next to test is validation.

    A word within longer names counts where the names are the same without it, as in pets_train and
    pets_test. Folders of one split have its name, if they differ in numbers only; otherwise each
    has its own.
    """
    last = {folder: folder.rpartition("/")[2] for folder in folders}
    splits = _splits_by_a_word(last) | {
        folder: split_name(name) for folder, name in last.items() if split_name(name)
    }
    tests = [folder for folder, split in splits.items() if split == "test"]
    evals = [folder for folder in tests if "eval" in last[folder].lower()]
    if len(evals) == 1 and len(tests) > 1 and "validation" not in splits.values():
        splits[evals[0]] = "validation"
    words: dict[str, set[str]] = {}
    for folder, split in splits.items():
        words.setdefault(split, set()).add(re.sub(r"[\W\d_]", "", last[folder].lower()))
    return {
        folder: split if len(words[split]) == 1 else name_as_split(last[folder])
        for folder, split in splits.items()
    }


def _splits_by_a_word(names: Mapping[str, str]) -> dict[str, str]:
    """The split of each folder whose name is that of another except the word of the split;
    ``names`` by path.
    """
    alike: dict[tuple[str, ...], dict[str, str]] = {}
    for folder, name in names.items():
        joined = _TRAIN_AND_VAL.sub("trainval", name)
        words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", joined)]
        splits = [_SPLIT_OF_WORD[word] for word in words if word in _SPLIT_OF_WORD]
        rest = tuple(word for word in words if word not in _SPLIT_OF_WORD and word not in _FILLING)
        if len(splits) < 2:
            alike.setdefault(rest, {})[folder] = splits[0] if splits else "train"
    found: dict[str, str] = {}
    for rest, group in alike.items():
        is_named = any(
            set(re.findall(r"[a-z]+", names[folder].lower())) - {*rest, *_FILLING}
            for folder in group
        )
        if rest and is_named and len(group) > 1 and len(set(group.values())) == len(group):
            found |= group
    return found


def splits_above(names: Iterable[str]) -> dict[str, str]:
    """The folders of splits that all files are in, and the split that each is: train2017 is train;
    else none.
    """
    places: dict[str, str] = {}
    for name in names:
        folders = name.split("/")[:-1]
        place = next((place for place, each in enumerate(folders, 1) if split_name(each)), 0)
        places["/".join(folders[:place])] = split_name(folders[place - 1]) if place else ""
    if "" in places or len(places) < 2:
        return {}
    is_unique = len(set(places.values())) == len(places)
    return places if is_unique else {folder: name_as_split(folder) for folder in places}


def stem_of(name: str) -> str:
    """The name of a file without its folders and its ending."""
    last = name.rpartition("/")[2]
    return last.rpartition(".")[0] or last


# names and types of files -------------------------------------------------------------------------


def suffix_of(name: str) -> str:
    """The ending of a file's name as types are counted by: ".jpg";
    the whole name if it has none.
    """
    last = name.rpartition("/")[2]
    stem, dot, suffix = last.rpartition(".")
    return f".{suffix.lower()}" if dot and stem else last


def grouped(names: Iterable[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    """The names by their key, in their order."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(key(name), []).append(name)
    return found


def counted(names: Iterable[str], most: int = 8) -> str:
    """How many files there are of each type: "12 .gif, 3 .webp"."""
    found = Counter(map(suffix_of, names)).most_common()
    text = ", ".join(f"{count:,} {suffix}" for suffix, count in found[:most])
    return text + (
        f", {sum(count for _, count in found[most:]):,} others" if len(found) > most else ""
    )


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
    return (USUAL.index(split) if split in USUAL else len(USUAL)), split


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
    if "train" not in splits or len(splits) != len(set(splits.values())):
        return {}
    return splits if names.fewest_slashes() > classes_below else {}


def are_in_an_image_folder(names: Names) -> bool:
    """Whether all files are in one folder whose name says no more than that images are in it;
    names are sorted.
    """
    top = names[0].partition("/")[0] if len(names) else ""
    is_alone = is_image_folder(top) and len(names.below(f"{top}/")) == len(names)
    return is_alone and not any(name.count("/") > 1 for name in names)
