"""Formats counts, sizes and names ("1,024 shards", "22.7 MB", "a,
b or c"), and parses sizes such as "100MB".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral

_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)}
_UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}
"""Bytes by unit, in small letters: B, kB, MB, GB, TB, and KiB, MiB, GiB, TiB."""

INSTALL = "pip install -e"
"""Installs the package from its clone, whose code then runs: ``make`` does the same. Messages and
documents share this line."""

_PAGE_STARTS = (
    b"<!doctype",
    b"<html",
    b"<head",
    b"<body",
    b"<title",
    b"<meta",
    b"<script",
    b"<?xml",
    b"<!--",
)


def is_web_page(head: bytes) -> bool:
    """Whether a file that starts with these bytes is a web page or XML."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_PAGE_STARTS)


_DOCTYPES = tuple("<!DOCTYPE".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
"""A DOCTYPE in every encoding that expat accepts: the others are supersets of ASCII, or refused."""


def has_doctype(content: bytes) -> bool:
    """Whether XML may declare a document type; entities can only be declared there,
    so none can expand without it.
    """
    return any(word in content for word in _DOCTYPES)


def nearest_words(word: str, names: Iterable[str]) -> str:
    """The question whether a mistyped word is another; "" if no name is like it."""
    import difflib

    near = difflib.get_close_matches(word.casefold(), list(names), 1)
    return f"Did you mean {near[0]!r}?" if near else ""


def number_of(count: int, one: str, many: str = "") -> str:
    """A count with its noun; ``many`` is the plural if it is not ``one`` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def row_text(number: int) -> str:
    """A row of a table by its number from 0, as messages count rows: from 1."""
    return f"row {number + 1:,}"


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can express a text: not the bytes of a path that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


MOST_DIGITS = 18
"""The digits of the longest number that is read from a text."""


def parse_whole(text: str) -> int | None:
    """The whole number that a text has in ASCII digits; None for another text, and for more than 18
    digits, which count and number nothing: Python refuses to read more than 4,300.
    """
    is_whole = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    return int(text) if is_whole else None


def beginning(text: str, most: int) -> str:
    """A text for a message, cut short if it has more than ``most`` characters."""
    return text if len(text) <= most else f"{text[:most]}..."


SIZES = "expected a whole number of bytes above 0, perhaps with a unit: 100MB, 2 kB or 1.5GiB"
"""The grammar of sizes, for messages."""

_SIZE = re.compile(
    r"(\d{1,15}|\d{1,3}(?:,\d{3}){1,4})(?:\.(\d{1,15}))? ?([a-z]*)", re.ASCII | re.IGNORECASE
)


def parse_size(size: object) -> int | None:
    """Bytes of a size as users and this program write it; None if it is no size, less than a byte,
    or 1.5 bytes.

    Args:
        size: a number of bytes, or a text such as "100MB" (10^6), "1.5GiB" (2^30) or "22.7 MB";
            units in any case.
    """
    if isinstance(size, Integral) and not isinstance(size, bool):
        count = int(size)
        return count if count > 0 else None
    return _parse_size_text(size) if isinstance(size, str) else None


def _parse_size_text(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[3].lower()) if match else None
    if match is None or unit is None:
        return None
    whole, decimals = match[1].replace(",", ""), match[2] or ""
    if decimals and unit == 1:  # "1.5" without the unit that was meant
        return None
    return int(whole + decimals) * unit // 10 ** len(decimals) or None


def size_text(count: float) -> str:
    """A number of bytes in a suitable unit, powers of 1000, to one decimal:
    "512 B", "3 kB", "22.7 MB".
    """
    count = round(count)
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.95:
            return f"{f'{count:.1f}'.removesuffix('.0')} {unit}"
        count /= 1000
    return f"{f'{count:,.1f}'.removesuffix('.0')} TB"


def either(names: Iterable[str]) -> str:
    """The alternatives of a choice: "a", "a or b", "a, b or c"."""
    alternatives = list(names)
    final = alternatives.pop()
    return f"{', '.join(alternatives)} or {final}" if alternatives else final


def one_of(names: Iterable[str], shown: int = 20) -> str:
    """The names that are expected, for messages: "a" if there is no other, or "one of a, b"."""
    all_names = list(names)
    return all_names[0] if len(all_names) == 1 else f"one of {listed(all_names, shown)}"


def listed(names: Iterable[str], shown: int = 3) -> str:
    """The first of several names."""
    all_names = list(names)
    return ", ".join(all_names[:shown]) + (", ..." if len(all_names) > shown else "")
