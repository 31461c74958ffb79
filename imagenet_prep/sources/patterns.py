"""Patterns of file names: ``*`` and ``?`` within a folder,
``[...]`` one character of several, ``**/`` any folders.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

MAX_LENGTH = 4096
"""The maximum length of a pattern: no path of Linux is longer."""

_FOLDERS = r"(?:[^/.][^/]*/)*"
_LITERAL = r"\[([*?[])\]"
_VISIBLE = r"[^/.][^/]*"


def is_pattern(text: str) -> bool:
    """Whether a text contains a pattern character."""
    return any(sign in text for sign in "*?[")


def literal(text: str) -> str:
    """The pattern that matches exactly this text."""
    return re.sub(r"[*?\[]", r"[\g<0>]", text)


def split_pattern(pattern: str) -> tuple[str, str]:
    """Split a pattern before its first pattern character:
    ``a/b/*.png`` is ``a/b`` and ``*.png``.
    """
    parts = pattern.split("/")
    fixed = next((i for i, part in enumerate(parts) if is_pattern(part)), len(parts) - 1)
    return "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else ""), "/".join(
        parts[fixed:]
    )


def folder_of(pattern: str) -> str:
    """The folder that contains every match, with literal parts such as ``[*]``,
    where ``split_pattern`` stops.
    """
    folders = []
    for part in pattern.split("/")[:-1]:
        if is_pattern(re.sub(_LITERAL, "", part)):
            break
        folders.append(re.sub(_LITERAL, r"\1", part))
    return "/".join(folders)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that a path must match in full. Names that start with a dot match only an
    explicit dot.

    It never backtracks to an earlier ``*`` or ``**``: the text between two of them matches at its
    first occurrence, which leaves the most for the rest. So the time for a name grows with its
    length only.

    Raises:
        ValueError: a ``**`` that is not a whole part, an unclosed bracket, a reversed range, or a
            pattern longer than any path.
    """
    if len(pattern) > MAX_LENGTH:
        raise ValueError(f"longer than any path: {MAX_LENGTH:,} characters at most")
    numbers = itertools.count()  # of the groups of the expression
    runs: list[list[str]] = [[]]  # consecutive parts, between one ** and the next
    for part in pattern.split("/"):
        if part == "**":
            runs.append([])
        elif "**" in part:
            raise ValueError("** must be alone between slashes")
        else:
            runs[-1].append(_part(part, numbers))
    first, *others = (["/".join(run)] if run else [] for run in runs)
    return re.compile(_joined(first, others, numbers), re.DOTALL)


def _joined(first: list[str], others: list[list[str]], numbers: Iterator[int]) -> str:
    """The expression of runs with a ``**`` before each except the first;
    a run is one expression, or empty.
    """
    expression = "".join(f"{run}/" if others else run for run in first)
    for run in others[:-1]:
        expression += _once(f"{_FOLDERS}?{run[0]}/", numbers) if run else ""
    for run in others[-1:]:
        expression += _FOLDERS + (run[0] if run else _VISIBLE)
    return expression


def _once(expression: str, numbers: Iterator[int]) -> str:
    """An atomic group: the first match of ``expression``, never retried;
    (?>...) came with Python 3.11.
    """
    name = f"_{next(numbers)}"
    return f"(?=(?P<{name}>{expression}))(?P={name})"


def _part(part: str, numbers: Iterator[int]) -> str:
    """The expression of the characters between two slashes."""
    first, *others = _between_stars(part)
    expression = ("" if part.startswith(".") else r"(?!\.)") + first
    for run in others[:-1]:
        expression += _once(f"[^/]*?{run}", numbers) if run else ""
    for run in others[-1:]:
        expression += f"[^/]*{run}"
    return expression


def _between_stars(part: str) -> list[str]:
    """The expressions of the text before, between and after the stars of a part."""
    runs, position = [""], 0
    while position < len(part):
        sign = part[position]
        position += 1
        if sign == "*":
            runs.append("")
        elif sign == "?":
            runs[-1] += "[^/]"
        elif sign == "[":
            end = part.find("]", position + 1 + part.startswith(("!", "^"), position))
            if end < 0:
                raise ValueError("an unclosed [")
            runs[-1] += _one_of(part[position:end])
            position = end + 1
        else:
            runs[-1] += re.escape(sign)
    return runs


def _one_of(inside: str) -> str:
    """The expression of a bracket: one of its characters and ranges,
    or, after ! or ^, any other one.
    """
    expression = "(?!/)[" + ("^" if inside[0] in "!^" else "")
    position = int(inside[0] in "!^")
    while position < len(inside):
        low, high = inside[position], inside[position + 2 : position + 3]
        if high and inside[position + 1] == "-":
            if high < low:
                raise ValueError("a reversed range in [...]")
            expression += f"{re.escape(low)}-{re.escape(high)}"
            position += 3
        else:
            expression += re.escape(low)
            position += 1
    return f"{expression}]"
