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
_UNCLOSED = "an unclosed [: expected ] after one character or more; [[] stands for the sign ["


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
    fixed = 0
    while fixed < len(parts) - 1 and not is_pattern(parts[fixed]):
        fixed += 1
    folder = "/".join(parts[:fixed])
    if not folder and pattern.startswith("/"):
        folder = "/"
    return folder, "/".join(parts[fixed:])


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
        raise ValueError(
            f"it has {len(pattern):,} characters: expected at most {MAX_LENGTH:,}, the longest path"
        )
    numbers = itertools.count()  # of the groups of the expression
    runs: list[list[str]] = [[]]  # consecutive parts, between one ** and the next
    for part in pattern.split("/"):
        if part == "**":
            runs.append([])
        elif "**" in part:
            raise ValueError("** must have nothing else between its slashes: a/**/*.jpg")
        else:
            runs[-1].append(_part(part, numbers))
    return re.compile(_join_runs(["/".join(run) for run in runs], numbers), re.DOTALL)


def _join_runs(runs: list[str], numbers: Iterator[int]) -> str:
    """The expression of runs with a ``**`` between each two; a run is one expression, or empty."""
    head, *inner = runs
    if not inner:
        return head
    tail = inner.pop()
    expression = f"{head}/" if head else ""
    for run in filter(None, inner):
        expression += _once(f"{_FOLDERS}?{run}/", numbers)
    return expression + _FOLDERS + (tail or _VISIBLE)


def _once(expression: str, numbers: Iterator[int]) -> str:
    """An atomic group: the first match of ``expression``, never retried;
    (?>...) came with Python 3.11.
    """
    name = f"_{next(numbers)}"
    return f"(?=(?P<{name}>{expression}))(?P={name})"


def _part(part: str, numbers: Iterator[int]) -> str:
    """The expression of the characters between two slashes."""
    head, *inner = _between_stars(part)
    expression = head if part.startswith(".") else rf"(?!\.){head}"
    if not inner:
        return expression
    tail = inner.pop()
    for run in filter(None, inner):
        expression += _once(f"[^/]*?{run}", numbers)
    return f"{expression}[^/]*{tail}"


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
                raise ValueError(_UNCLOSED)
            runs[-1] += _one_of(part[position:end])
            position = end + 1
        else:
            runs[-1] += re.escape(sign)
    return runs


def _one_of(inside: str) -> str:
    """The expression of a bracket: one of its characters and ranges,
    or, after ! or ^, any other one.
    """
    is_negative = inside[0] in "!^"
    expression = "(?!/)[^" if is_negative else "(?!/)["
    position = int(is_negative)
    while position < len(inside):
        low, high = inside[position], inside[position + 2 : position + 3]
        if high and inside[position + 1] == "-":
            if high < low:
                raise ValueError(f"a reversed range in [...]: {low}-{high}, expected {high}-{low}")
            expression += f"{re.escape(low)}-{re.escape(high)}"
            position += 3
        else:
            expression += re.escape(low)
            position += 1
    return f"{expression}]"
