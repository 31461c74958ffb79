"""Formats counts, sizes and names ("1,024 shards", "22.7 MB", "a, b, ..."), and parses sizes such as "100MB"."""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNITS = {"": 1, **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}}
_UNITS |= {f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)}

_PAGE_STARTS = (b"<!doctype", b"<html", b"<head", b"<body", b"<title", b"<meta", b"<script", b"<?xml", b"<!--")


def is_web_page(head: bytes) -> bool:
    """Whether a file that starts with these bytes is a web page or XML."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_PAGE_STARTS)


_DOCTYPES = tuple("<!DOCTYPE".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
"""A DOCTYPE in every encoding that expat accepts: the others are supersets of ASCII, or refused."""


def has_doctype(content: bytes) -> bool:
    """Whether XML may declare a document type; entities can only be declared there, so none can expand without it."""
    return any(word in content for word in _DOCTYPES)


def number_of(count: int, one: str, many: str = "") -> str:
    """A count with its noun; ``many`` is the plural if it is not ``one`` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def byte_count(text: str) -> int | None:
    """Parse a size such as 100MB (10^6) or 1.5GiB (2^30), at least 1 byte; None if it is not a size."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d+)?) ?([KMGT]i?B)?", text)
    return int(float(match[1]) * _UNITS[match[2] or ""]) or None if match else None


def size_text(count: float) -> str:
    """A number of bytes in a suitable unit, powers of 1000, to one decimal: "512 B", "3 kB", "22.7 MB"."""
    count = round(count)
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.95:
            return f"{f'{count:.1f}'.removesuffix('.0')} {unit}"
        count /= 1000
    return f"{f'{count:,.1f}'.removesuffix('.0')} TB"


def listed(names: Iterable[str], shown: int = 3) -> str:
    """The first of several names."""
    several = list(names)
    return ", ".join(several[:shown]) + (", ..." if len(several) > shown else "")
