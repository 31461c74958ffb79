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
_LONG_NUMBER = re.compile(r"\d{4301}")


def parse_json(text: str) -> Any:
    """The value of a JSON text; raises UnicodeEncodeError for half of a surrogate pair, which the
    escapes of JSON can write and UTF-8 can't.
    """
    value = json.loads(text)
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
    return "a number has too many digits"  # Python 3.11 and later read at most 4,300


def json_line(error: Exception, text: str) -> int:
    """The line of a fault of a JSON text, from 1; 0 where it is not known."""
    if isinstance(error, json.JSONDecodeError):
        return error.lineno
    if isinstance(error, RecursionError):
        return 0
    faulty_part = _HALF_PAIR if isinstance(error, UnicodeEncodeError) else _LONG_NUMBER
    match = faulty_part.search(text)
    return text.count("\n", 0, match.start()) + 1 if match else 0
