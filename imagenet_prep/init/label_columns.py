"""The columns of a table -> which of them can be classes or one-hot classes,
by their names and values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from imagenet_prep.init.column_words import (
    NO_CLASS,
    Columns,
    is_absence,
    is_id,
    rank_of,
    says_no_class,
    words_of,
)
from imagenet_prep.recipes.labels_file import LABELS
from imagenet_prep.recipes.one_hot_labels import one_hot_columns

_COORDINATE = re.compile(
    r"[xy][ _]?(min|max|c|center|[0-9])?|(min|max)[ _]?[xy]|left|top|right|bottom|bbox.*|box.*"
)
LARGEST_NUMBER = 100_000
"""Larger numbers are ids, not numbers of classes."""

_LONGEST = 120
"""The longest name of a class."""


class Candidate(Struct, frozen=True):
    """A column that can be the classes, or several that are one-hot.

    Args:
        columns: its name, or their names.
        classes: how many classes it gives.
        is_known: whether its name says that it holds classes.
        is_numeric: whether its values are numbers.
    """

    columns: tuple[str, ...]
    classes: int
    is_known: bool = False
    is_numeric: bool = False

    @property
    def is_hot(self) -> bool:
        """Whether each column is a class."""
        return len(self.columns) > 1

    @property
    def is_doubtful(self) -> bool:
        """Whether it may as well be a fact that is no class:
        numbers under a name that says nothing.
        """
        return self.is_numeric and not self.is_known

    @property
    def option(self) -> str:
        """The value of --label."""
        return ",".join(self.columns)


def class_candidates(columns: Columns, path: str) -> list[Candidate]:
    """The columns that can be classes, the likeliest first; ``path`` is the column of paths."""
    others = {name: cells for name, cells in columns.items() if name != path}
    hot = _hot_columns(others)
    candidates: list[Candidate] = []
    if hot:
        is_known = _is_exclusive(others, hot)
        candidates.append(Candidate(tuple(hot), len(hot), is_known=is_known))
    no_classes = {*hot, *_coordinates(others)}
    names = [name for name in others if name not in no_classes]
    names_of_no_ids = [name for name in names if not is_id(name)]
    candidates += _single_candidates(names_of_no_ids, others)
    if not candidates:  # ids, as of landmarks, are classes if no other column is
        ids = filter(is_id, names)
        candidates += _single_candidates(ids, others)
    return sorted(candidates, key=lambda candidate: _order(candidate, others))


def _hot_columns(columns: Columns) -> list[str]:
    """The columns that are a class each; none if it is one alone."""
    hot: list[str] = []
    for name in one_hot_columns(columns):
        if rank_of(name, columns) == NO_CLASS or is_absence(name):
            hot.append(name)
    if len(hot) < 2:
        return []
    return hot


def _single_candidates(names: Iterable[str], columns: Columns) -> list[Candidate]:
    """Each of some columns that can be the classes."""
    candidates: list[Candidate] = []
    for name in names:
        if not _may_be_classes(name, columns):
            continue
        distinct = _distinct(columns[name])
        is_known = rank_of(name, columns) < NO_CLASS
        is_numeric = all(map(_is_number, distinct))
        candidate = Candidate((name,), len(distinct), is_known, is_numeric)
        candidates.append(candidate)
    return candidates


def distinct_candidates(candidates: Sequence[Candidate], columns: Columns) -> list[Candidate]:
    """The candidates without those that only name the classes of an earlier one otherwise;
    numbers come first then.
    """
    kept: list[Candidate] = []
    for candidate in candidates:
        alike = [place for place, other in enumerate(kept) if _is_same(candidate, other, columns)]
        if not alike:
            kept.append(candidate)
        elif all(map(_is_number, columns[candidate.columns[0]])):
            kept[alike[0]] = candidate
    return kept


def _is_same(candidate: Candidate, other: Candidate, columns: Columns) -> bool:
    """Whether two columns give the same images the same classes, under other names."""
    if candidate.is_hot or other.is_hot:
        return False
    if candidate.classes != other.classes:
        return False
    cells = columns[candidate.columns[0]]
    cells_of_other = columns[other.columns[0]]
    pairs = set(zip(cells, cells_of_other, strict=True))
    return len(pairs) == candidate.classes


def usual_column(columns: Columns, path: str) -> str | None:
    """The column that is called label or class, in any case."""
    names = [name for name in columns if name != path]
    for usual_name in LABELS:
        if usual_name in names:
            return usual_name
    return next((name for name in names if name.lower() in LABELS), None)


def names_beside(columns: Columns, label: str) -> str | None:
    """The column of texts that names each number of a column of labels, one to one."""
    numbers = columns[label]
    if not all(map(_is_number, numbers)):
        return None
    for name, cells in columns.items():
        if name == label or not all(map(_is_word, cells)):
            continue
        if _names_each(numbers, cells):
            return name
    return None


def _names_each(numbers: Sequence[Any], names: Sequence[Any]) -> bool:
    """Whether each number has one name, and each name one number, of several lines."""
    pairs = set(zip(numbers, names, strict=True))
    if len(pairs) < 2 or len(pairs) == len(names):
        return False
    return len(pairs) == len(set(numbers)) == len(set(names))


def _order(candidate: Candidate, columns: Columns) -> tuple[int, bool, int]:
    """The key that sorts candidates, the likeliest first: by name, texts before numbers."""
    name = candidate.columns[0]
    rank = rank_of(name, columns)
    if candidate.is_hot:
        rank = NO_CLASS - candidate.is_known
    has_texts = any(map(_is_word, columns[name]))
    return rank, not has_texts, candidate.classes


# values -------------------------------------------------------------------------------------------


def _may_be_classes(name: str, columns: Columns) -> bool:
    """Whether a column can be the classes."""
    cells = columns[name]
    if any(isinstance(cell, (list, dict, float)) for cell in cells):
        return False
    distinct = _distinct(cells)
    if len(distinct) < 2 or any(map(_is_no_class, distinct)):
        return False
    is_repeated = len(distinct) < len(cells)
    if rank_of(name, columns) < NO_CLASS:
        if is_repeated or len(cells) < 3:
            return True
        sign, _ = separator_of(cells)
        return sign != ""
    if all(map(_is_number, distinct)):
        largest_number = max(abs(int(cell)) for cell in distinct)
        if largest_number > LARGEST_NUMBER:
            return False
    if name.lower() == "id" and len(words_of(name)) == 1:
        return is_repeated  # of the classes, as other columns name the files
    if says_no_class(name):
        return False
    return 2 * len(distinct) <= len(cells)


def _is_no_class(cell: Any) -> bool:
    """Whether a value is too long for a name, or a fraction."""
    return isinstance(cell, str) and (len(cell) > _LONGEST or _is_fraction(cell))


def _distinct(cells: Sequence[Any]) -> set[Any]:
    """The different values of a column; None is no value."""
    distinct: set[Any] = set()
    for cell in cells:
        distinct.add(str(cell) if isinstance(cell, (list, dict)) else cell)
    return distinct - {None}


def _is_number(cell: Any) -> bool:
    if isinstance(cell, str):
        return bool(re.fullmatch(r"-?\d{1,18}", cell))
    return isinstance(cell, int)


def _is_word(cell: Any) -> bool:
    """Whether a value is a text, and no number."""
    return isinstance(cell, str) and not _is_number(cell)


def _is_fraction(text: str) -> bool:
    if re.fullmatch(r"-?\d+\.0+", text):
        return False
    return bool(re.fullmatch(r"[-+]?\d*\.\d+([eE][-+]?\d+)?", text))


def _is_exclusive(columns: Columns, hot: Sequence[str]) -> bool:
    """Whether each row has a 1 in just one of the columns."""
    rows = zip(*(columns[name] for name in hot), strict=True)
    return all(sum(map(_is_yes, row)) == 1 for row in rows)


def _is_yes(cell: Any) -> bool:
    return str(cell).lower() in ("1", "1.0", "true", "yes")


def _coordinates(columns: Columns) -> set[str]:
    """The columns of numbers that are corners of boxes:
    by their names, or as two pairs, one above the other.
    """
    numbers = [name for name, cells in columns.items() if cells and all(map(_is_real, cells))]
    called_coordinates = {name for name in numbers if _COORDINATE.fullmatch(name.lower())}
    coordinates = _box_columns(columns, numbers)
    if len(called_coordinates) > 1:
        coordinates |= called_coordinates
    return coordinates


def _box_columns(columns: Columns, numbers: Sequence[str]) -> set[str]:
    """The columns of four corners, one after the other, of which each right one is larger."""
    coordinates: set[str] = set()
    for start in range(len(numbers) - 3):
        corners = numbers[start : start + 4]
        edges = [list(map(float, columns[name])) for name in corners]
        left, top, right, bottom = edges
        if _are_less(left, right) and _are_less(top, bottom):
            coordinates.update(corners)
    return coordinates


def _are_less(lower: Sequence[float], upper: Sequence[float]) -> bool:
    """Whether each number is less than its counterpart."""
    return all(low < high for low, high in zip(lower, upper, strict=True))


def _is_real(cell: Any) -> bool:
    if isinstance(cell, str):
        return bool(re.fullmatch(r"-?\d+(\.\d+)?", cell))
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def separator_of(cells: Iterable[Any]) -> tuple[str, bool]:
    """The sign between several labels in the cells of a column, and whether that is sure; ""
    without a sign of several.

    A semicolon or a bar is sure if a part is in two cells; commas and spaces may be in the name of
    a class.
    """
    texts = {cell for cell in cells if isinstance(cell, str)}
    for sign in (";", "|", ",", " "):
        parts = [part.strip() for text in texts for part in text.split(sign)]
        if len(parts) == len(texts):
            continue
        distinct_count = len(set(parts))
        if sign in ";|":
            return sign, len(parts) > distinct_count
        if len(texts) > distinct_count:
            return sign, False
    return "", False
