"""hot_labels: columns of a table that are classes, with a 1 where a row is of one -> the classes of
each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imagenet_prep.recipes.table_rows import LabelsFault

_ON = frozenset(("1", "1.0", "true", "yes"))
NO_HOT_COLUMN = "one_hot: true finds no column of 0 and 1 (both, and nothing else)"
"""The reason that a table has no one-hot columns."""

_OFF = frozenset(("0", "0.0", "-1", "-1.0", "false", "no"))


def one_hot_columns(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """The columns that hold nothing but zeros (or -1) and ones, and both of them."""
    hot_names: list[str] = []
    for name, column in columns.items():
        texts: set[str] = set()
        for value in column:
            if value is None:
                texts.add("0")
            elif not isinstance(value, list):
                texts.add(str(value).lower())
        has_both = texts & _ON and texts & _OFF
        if has_both and texts <= _ON | _OFF:
            hot_names.append(name)
    return hot_names


def hot_labels(columns: Mapping[str, Sequence[Any]], lines: Sequence[int]) -> list[Any]:
    """The class of each row, which is the name of the column that holds its 1; a list of them if a
    row has several.

    Raises:
        LabelsFault: a column holds another value.
    """
    labels = _hot_columns(columns, lines)
    most_labels = max(map(len, labels), default=0)
    if most_labels > 1:
        return [names or None for names in labels]
    return [names[0] if names else None for names in labels]


def _hot_columns(columns: Mapping[str, Sequence[Any]], lines: Sequence[int]) -> list[list[str]]:
    """The names of the columns that hold a 1, by row; raises LabelsFault for another value."""
    labels: list[list[str]] = [[] for _ in lines]
    for name, column in columns.items():
        for row, value in enumerate(column):
            text = str(value).lower()
            if text in _ON:
                labels[row].append(name)
            elif value is not None and text not in _OFF:
                raise LabelsFault(lines[row], f"the column {name} holds {value!r}: expected 0 or 1")
    return labels
