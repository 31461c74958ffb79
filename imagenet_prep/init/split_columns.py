"""The columns of a table -> the one that says which split each image is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from imagenet_prep.init.column_words import Columns, words_of
from imagenet_prep.recipes.folder_words import split_name

_NAMES = frozenset(("split", "set", "subset", "partition", "usage", "phase", "data set"))
"""Words in the names of columns of splits."""

_MOST_SPLITS = 12
_SHORT_WORDS = {
    **{"trn": "train", "tr": "train"},
    **{"vld": "validation", "va": "validation"},
    **{"tst": "test", "te": "test"},
}
"""The split that a short word means."""

_SPLITS_OF_NUMBERS = {
    ("0", "1"): ("train", "test"),
    ("1", "2"): ("train", "test"),
    ("0", "1", "2"): ("train", "validation", "test"),
    ("1", "2", "3"): ("train", "validation", "test"),
}

_YES, _NO = frozenset(("1", "true", "yes")), frozenset(("0", "false", "no"))
_SPLITS_OF_YES_AND_NO = {
    "valid": ("validation", "train"),
    "val": ("validation", "train"),
    "validation": ("validation", "train"),
    "test": ("test", "train"),
    "train": ("train", "test"),
    "training": ("train", "test"),
}
"""The splits that yes and no mean in a column such as is_valid."""


class SplitColumn(Struct, frozen=True):
    """A column that says which split an image is of.

    Args:
        name: what it is called.
        splits: the split of each value.
        is_sure: whether words say so; numbers may mean something else.
    """

    name: str
    splits: Mapping[str, str]
    is_sure: bool = True

    @property
    def is_usual(self) -> bool:
        """Whether all values are names of splits, which a recipe need not explain."""
        return all(split_name(value) == split for value, split in self.splits.items())


def find_split_column(columns: Columns, value_by_split: Mapping[str, str]) -> SplitColumn | None:
    """The column of splits: the one that has the values that the user names, by split, or whose
    name or values say so.
    """
    if not value_by_split:
        for name, cells in columns.items():
            column = _splits_in(name, cells)
            if column is not None:
                return column
        return None
    split_by_value = {value: split for split, value in value_by_split.items()}
    likeliest_first = sorted(columns, key=lambda name: not _is_called_split(name))
    for name in likeliest_first:
        if split_by_value.keys() <= _texts_of(columns[name]):
            return SplitColumn(name, split_by_value)
    return None


def _texts_of(cells: Sequence[Any]) -> set[str]:
    """The different values of a column."""
    return {str(cell) for cell in cells if cell is not None}


def _is_called_split(name: str) -> bool:
    """Whether a column is called as splits are."""
    words = words_of(name)
    return not _NAMES.isdisjoint([*words, " ".join(words)])


def _splits_in(name: str, cells: Sequence[Any]) -> SplitColumn | None:
    """A column as one of splits; None if it is none."""
    texts = _texts_of(cells)
    if not 2 <= len(texts) <= _MOST_SPLITS:
        return None
    splits = _splits_of_yes_and_no(name, texts) or _splits_of_words(texts)
    if splits:
        return SplitColumn(name, splits)
    numbers = tuple(sorted(texts))
    if numbers in _SPLITS_OF_NUMBERS and _is_called_split(name):
        splits = dict(zip(numbers, _SPLITS_OF_NUMBERS[numbers], strict=True))
        return SplitColumn(name, splits, is_sure=False)
    return None


def _splits_of_yes_and_no(name: str, texts: set[str]) -> dict[str, str]:
    """The splits that yes and no mean, by the name of their column; none otherwise."""
    words = words_of(name)
    if len(words) != 2 or words[0] != "is":
        return {}
    if words[1] not in _SPLITS_OF_YES_AND_NO:
        return {}
    split_of_yes, split_of_no = _SPLITS_OF_YES_AND_NO[words[1]]
    splits: dict[str, str] = {}
    for text in sorted(texts):
        if text.lower() in _YES:
            splits[text] = split_of_yes
        elif text.lower() in _NO:
            splits[text] = split_of_no
        else:
            return {}
    return splits


def _splits_of_words(texts: set[str]) -> dict[str, str]:
    """The split that each text means; none if one means no split, or two mean the same."""
    splits: dict[str, str] = {}
    for text in sorted(texts):
        split = _SHORT_WORDS.get(text.lower()) or split_name(text)
        if not split or split in splits.values():
            return {}
        splits[text] = split
    if "train" not in splits.values():
        return {}
    return splits
