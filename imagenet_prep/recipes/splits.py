"""Names of splits: the words that folders, files and values call them by, and the order of the
usual ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

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
    if match is None:
        return ""
    word = re.sub(r"[^a-z]", "", match[1].lower())
    return _SPLIT_OF_WORD[word]


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
    names = {folder: folder.rpartition("/")[2] for folder in folders}
    splits = _splits_by_a_word(names)
    for folder, name in names.items():
        if split := split_name(name):
            splits[folder] = split
    _call_eval_validation(splits, names)
    words_of: dict[str, set[str]] = {}
    for folder, split in splits.items():
        word = re.sub(r"[\W\d_]", "", names[folder].lower())
        words_of.setdefault(split, set()).add(word)
    return {
        folder: split if len(words_of[split]) == 1 else name_as_split(names[folder])
        for folder, split in splits.items()
    }


def _call_eval_validation(splits: dict[str, str], names: Mapping[str, str]) -> None:
    """Make eval next to test the validation split, if there is no other."""
    tests = [folder for folder, split in splits.items() if split == "test"]
    evals = [folder for folder in tests if "eval" in names[folder].lower()]
    if len(evals) == 1 and len(tests) > 1 and "validation" not in splits.values():
        splits[evals[0]] = "validation"


def _splits_by_a_word(names: Mapping[str, str]) -> dict[str, str]:
    """The split of each folder whose name is that of another except the word of the split;
    ``names`` by path.
    """
    groups: dict[tuple[str, ...], dict[str, str]] = {}  # by the other words of the names
    for folder, name in names.items():
        splits, other_words = _words_of_name(name)
        if len(splits) < 2:
            groups.setdefault(other_words, {})[folder] = splits[0] if splits else "train"
    split_of: dict[str, str] = {}
    for other_words, group in groups.items():
        has_distinct_splits = len(group) > 1 and len(set(group.values())) == len(group)
        if other_words and has_distinct_splits:
            group_names = [names[folder] for folder in group]
            if any(_has_split_word(name, other_words) for name in group_names):
                split_of |= group
    return split_of


def _words_of_name(name: str) -> tuple[list[str], tuple[str, ...]]:
    """The splits that words of a name mean, and its other words, except those that say nothing."""
    joined = _TRAIN_AND_VAL.sub("trainval", name)
    splits: list[str] = []
    other_words: list[str] = []
    for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", joined):
        lowered = word.lower()
        if lowered in _SPLIT_OF_WORD:
            splits.append(_SPLIT_OF_WORD[lowered])
        elif lowered not in _FILLING:
            other_words.append(lowered)
    return splits, tuple(other_words)


def _has_split_word(name: str, other_words: Collection[str]) -> bool:
    """Whether a name has a word next to those that it shares with others."""
    words = set(re.findall(r"[a-z]+", name.lower()))
    return bool(words - {*other_words, *_FILLING})


def splits_above(names: Iterable[str]) -> dict[str, str]:
    """The folders of splits that all files are in, and the split that each is: train2017 is train;
    else none.
    """
    split_of: dict[str, str] = {}
    for name in names:
        folders = name.split("/")[:-1]
        for depth, folder in enumerate(folders, 1):
            if split := split_name(folder):
                split_of["/".join(folders[:depth])] = split
                break
        else:
            return {}
    if len(split_of) < 2:
        return {}
    if len(set(split_of.values())) == len(split_of):
        return split_of
    return {folder: name_as_split(folder) for folder in split_of}


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
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(key(name), []).append(name)
    return groups


def counted(names: Iterable[str], most: int = 8) -> str:
    """How many files there are of each type: "12 .gif, 3 .webp"."""
    counts = Counter(map(suffix_of, names)).most_common()
    text = ", ".join(f"{count:,} {suffix}" for suffix, count in counts[:most])
    if len(counts) > most:
        text += f", {sum(count for _, count in counts[most:]):,} others"
    return text


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
