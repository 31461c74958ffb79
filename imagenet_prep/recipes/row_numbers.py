"""The numbers of rows that pandas writes before the other columns of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

Rows = Iterator[tuple[int, list[str]]]
"""The line on which each row starts, and its cells."""

_INDEX = re.compile(r"(Unnamed: \d+(\.\d+)*)?")

_FEWEST_OTHERS = 2
"""With one other column, the numbers can be those of classes or images."""

_UNNAMED = "index"
"""The name of a first column without one."""


def is_index(name: str) -> bool:
    """Whether pandas calls the numbers of rows so: not at all, or "Unnamed: 0"."""
    return _INDEX.fullmatch(name.strip()) is not None


def names_an_index(names: object) -> bool:
    """Whether a recipe's column or columns have the name of such numbers."""
    several = names if isinstance(names, (list, tuple)) else (names,)
    texts = [name for name in several if isinstance(name, str) and name]
    return any(name == _UNNAMED or is_index(name) for name in texts)


def count_of_numbers(read: Callable[[], Rows]) -> int:
    """How many of the first columns have no name and only numbers of rows, each once."""
    _, header = next(read(), (1, []))
    count = 0
    while count + _FEWEST_OTHERS < len(header) and is_index(header[count]):
        if not _are_row_numbers(read(), count):
            break
        count += 1
    return count


def _are_row_numbers(rows: Rows, column: int) -> bool:
    """Whether the cells of a column below its name are whole numbers, each once, and not none."""
    seen: set[str] = set()
    for _, cells in islice(rows, 1, None):
        cell = cells[column].strip() if column < len(cells) else ""
        if not cell.isdecimal() or cell in seen:
            return False
        seen.add(cell)
    return bool(seen)
