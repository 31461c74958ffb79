"""Checks of arguments, with messages that show what was given."""

from __future__ import annotations

import operator
from types import BuiltinFunctionType, FunctionType
from typing import Any

from imagenet_prep.errors import UsageError
from imagenet_prep.text import beginning


def shown(value: object) -> str:
    """A value in a message, cut short; a function or an object without a text of its own by its
    name.
    """
    text = repr(value)
    if type(value).__repr__ is object.__repr__:
        text = f"{type(value).__name__}(...)"
    elif isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        text = value.__name__
    return beginning(text, 100)


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``; raises UsageError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or isinstance(value, bool):
        end = ")" if "(" in name else ""
        expected = f"expected a whole number of at least {least}"
        if isinstance(value, float) and value.is_integer():
            expected += f": {value:.0f} (an int), not {shown(value)} (a float)"
        raise UsageError(f"{name}{shown(value)}{end}", expected)
    return number
