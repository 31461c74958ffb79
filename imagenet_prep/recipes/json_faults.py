"""parse_json; json_reason, json_line: its error -> the reason for a message, without the words of
Python, and the line.
"""

from __future__ import annotations

import json
import re
from typing import Any

_HALF_PAIR = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_MOST_DIGITS = 4300  # Python 3.11 and later read no longer number
_LONG_NUMBER = re.compile(rf"\d{{{_MOST_DIGITS + 1},}}")
_KEY = re.compile(r'"([^"\\]{1,80})"\s*:\s*\[?[^"\[\]{}]{0,200}\Z')
_SHOWN = 10


class _LongNumberError(ValueError):
    """A number that has more digits than Python reads; the text names it."""


def parse_json(text: str) -> Any:
    """The value of a JSON text; raises UnicodeEncodeError for half of a surrogate pair, which the
    escapes of JSON can write and UTF-8 can't.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise _LongNumberError(_long_number(text)) from error
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def json_reason(error: Exception) -> str:
    """The reason that a text is not JSON, without a line of its own."""
    if isinstance(error, json.JSONDecodeError):
        column = error.pos - error.doc.rfind("\n", 0, error.pos)
        if error.pos == len(error.doc):
            return f"not JSON: {error.msg}, and there is no more text"
        return f"not JSON: {error.msg}, at character {column}"
    if isinstance(error, RecursionError):
        return "its JSON is nested too deep"
    if isinstance(error, UnicodeEncodeError):
        return "a text holds half of a surrogate pair: UTF-8 can't store it"
    if isinstance(error, UnicodeError):
        return f"not JSON: {error}"
    return str(error)


def _long_number(text: str) -> str:
    """The reason that a number can't be read, with its start and the key before it."""
    match = _LONG_NUMBER.search(text)
    if match is None:
        return "a number has too many digits"
    line_start = text.rfind("\n", 0, match.start()) + 1
    key = _KEY.search(text, max(0, match.start() - 300), match.start())
    place = f"{key[1]!r} has" if key else f"at character {match.start() - line_start + 1} is"
    digits = f"{match[0][:_SHOWN]}..., of {len(match[0]):,} digits"
    return f"{place} a number of too many digits ({digits}): expected at most {_MOST_DIGITS:,}"


def json_line(error: Exception, text: str) -> int:
    """The line of a fault of a JSON text, from 1; 0 where it is not known."""
    if isinstance(error, json.JSONDecodeError):
        return error.lineno
    if isinstance(error, RecursionError):
        return 0
    faulty_part = _HALF_PAIR if isinstance(error, UnicodeEncodeError) else _LONG_NUMBER
    match = faulty_part.search(text)
    return text.count("\n", 0, match.start()) + 1 if match else 0
