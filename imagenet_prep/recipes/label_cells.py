"""label_of_cell, as_classes, parts_of_cell: the cells of a column of labels -> labels, or lists of
them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Any

_WHOLE = re.compile(r"(-?\d+)\.0+")
_LIST = re.compile(r"\[.*\]", re.DOTALL)


def label_of_cell(cell: Any) -> Any:
    """The label, or the list of labels, in a cell; None for an empty text, for blanks alone, and
    for a list without labels.
    """
    if isinstance(cell, list):
        labels = [label for label in cell if not _is_blank(label)]
        return labels or None
    return None if _is_blank(cell) else cell


def labels_of_cells(cells: Sequence[Any]) -> list[Any]:
    """The label of each cell, by ``label_of_cell``."""
    return [label_of_cell(cell) for cell in cells]


def are_mixed(cells: Iterable[Any]) -> bool:
    """Whether there are texts and whole numbers among cells."""
    return set(map(type, cells)) >= {int, str}


def texts_if_mixed(cells: list[Any]) -> list[Any]:
    """Cells of texts and whole numbers as texts; other cells as they are."""
    if not are_mixed(cells):
        return cells
    return [None if cell is None else str(cell) for cell in cells]


def _is_blank(value: Any) -> bool:
    """Whether a value is an empty text, or one of blanks alone."""
    return isinstance(value, str) and not value.strip()


def as_classes(labels: list[Any]) -> list[Any]:
    """Labels as classes are: 2.000 is 2, and "['a', 'b']",
    as pandas writes a list, is that list.
    """
    texts = {label for label in labels if isinstance(label, str)}
    if not texts:
        return labels
    if all(map(_WHOLE.fullmatch, texts)):
        return [None if label is None else _WHOLE.sub(r"\1", label) for label in labels]
    if not all(map(_LIST.fullmatch, texts)):
        return labels
    lists: dict[str, list[str] | None] = {}
    for text in texts:
        try:
            written_list = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return labels
        texts_in_list = list(map(str, written_list))
        lists[text] = label_of_cell(texts_in_list)
    return [None if label is None else lists[label] for label in labels]


def parts_of_cell(label: Any, separator: str) -> list[str] | None:
    """The labels in one cell; None for none."""
    if label is None:
        return None
    parts = str(label).split(separator)
    stripped_parts = map(str.strip, parts)
    labels = [*filter(None, stripped_parts)]
    return labels or None


def are_all(values: Iterable[Any], types: type | tuple[type, ...]) -> bool:
    """Whether all values are of these types."""
    return all(isinstance(value, types) for value in values)


def are_same(first_value: Any, value: Any) -> bool:
    """Whether two cells hold the same; NaN, which is not equal to itself, is the same as NaN."""
    return bool(first_value == value) or repr(first_value) == repr(value)


def shown_value(value: Any) -> str:
    """A cell, for messages."""
    return "empty" if value is None else str(value)
