"""Patterns of file names: ``*`` and ``?`` within a folder, ``[...]`` one character of several, ``**/`` any folders."""

from __future__ import annotations

import re


def is_pattern(text: str) -> bool:
    """Whether a text holds one of the characters that make it a pattern."""
    return any(sign in text for sign in "*?[")


def split_pattern(pattern: str) -> tuple[str, str]:
    """The folders before the first pattern character, and the rest: ``a/b/*.png`` is ``a/b`` and ``*.png``."""
    parts = pattern.split("/")
    fixed = next((i for i, part in enumerate(parts) if is_pattern(part)), len(parts) - 1)
    return "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else ""), "/".join(parts[fixed:])


def depth_of(pattern: str) -> int | None:
    """How many folders deep a match can lie; None for any."""
    return None if "**" in pattern else pattern.count("/")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The expression whose full match a path must be. Names that begin with a dot match only where the pattern does.

    Raises:
        ValueError: a ``**`` that is not a whole part, a bracket that is not closed, or a range that runs backwards.
    """
    parts = pattern.split("/")
    expression = ""
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part == "**":
            expression += r"(?:[^/.][^/]*/)*" + (r"[^/.][^/]*" if is_last else "")
            continue
        if "**" in part:
            raise ValueError("** must stand alone between slashes")
        expression += _part(part) + ("" if is_last else "/")
    try:
        return re.compile(expression, re.DOTALL)
    except re.error as error:
        raise ValueError("a range in [...] that runs backwards") from error


def _part(part: str) -> str:
    out, position = "" if part.startswith(".") else r"(?!\.)", 0
    while position < len(part):
        sign = part[position]
        position += 1
        if sign == "*":
            out += "[^/]*"
        elif sign == "?":
            out += "[^/]"
        elif sign == "[":
            end = part.find("]", position + 1 + part.startswith(("!", "^"), position))
            if end < 0:
                raise ValueError("a [ that is not closed")
            inside = "".join(each if each in "-!^" else re.escape(each) for each in part[position:end])
            out += f"(?!/)[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
            position = end + 1
        else:
            out += re.escape(sign)
    return out
