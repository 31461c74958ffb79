"""Checks of arguments, with messages that show what was given."""

from __future__ import annotations

import operator
from typing import Any

from imagenet_prep.errors import UsageError


def shown(value: object) -> str:
    """A value in a message, cut short."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``; raises UsageError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or isinstance(value, bool):
        end = ")" if "(" in name else ""
        raise UsageError(
            f"{name}{shown(value)}{end}", f"expected a whole number of at least {least}"
        )
    return number
