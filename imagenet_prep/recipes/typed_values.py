"""typed: the values of a column, texts or not -> whole numbers, floats or texts."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from imagenet_prep.recipes.table_rows import LabelsFault
from imagenet_prep.text import beginning
from imagenet_prep.tfrecord.example import Kind

_INT = re.compile(r"-?(0|[1-9]\d*)")
_FLOAT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_TOO_LARGE = 3.4028235677973366e38  # the least number that a 32-bit float rounds to infinity

INT64_RANGE = "expected -2**63 to 2**63 - 1"
"""The whole numbers that a record can hold, for messages."""


def typed(
    values: Sequence[Any], lines: Sequence[int], is_text: bool, kind: Kind | None = None
) -> tuple[Kind, list[Any]]:
    """The values of a column as one kind, and that kind: the one asked for, or the narrowest that
    fits all.

    A list stays one; None stays None. Texts that are all whole numbers are int64, all numbers
    float: but one that starts with a needless zero (a postcode) makes them texts.

    Raises:
        LabelsFault: a value that is not of that kind, or no value of a record.
    """
    line_of = _first_lines(values, lines)
    column_kind = kind or _narrowest(line_of, is_text)
    converted = {key: _as_kind(key[1], line, column_kind, is_text) for key, line in line_of.items()}

    def convert(single: Any) -> Any:
        if is_text:
            return converted[type(single), single]
        return _as_kind(single, 0, column_kind, is_text)  # 0.0 and -0.0 are one key

    cells: list[Any] = []
    for value in values:
        if value is None:
            cells.append(None)
        elif isinstance(value, list):
            cells.append([convert(single) for single in value])
        else:
            cells.append(convert(value))
    return column_kind, cells


def fitting_kind(values: Sequence[Any], lines: Sequence[int], is_text: bool) -> Kind | None:
    """The kind that fits all values of a column: the narrowest one; None if none does."""
    for kind in (None, "bytes"):
        with contextlib.suppress(LabelsFault):
            found, _ = typed(values, lines, is_text, kind)
            return found
    return None


def _first_lines(values: Sequence[Any], lines: Sequence[int]) -> dict[tuple[type, Any], int]:
    """The first line of each single value, by its type and the value.

    Raises:
        LabelsFault: no value of a record.
    """
    line_of: dict[tuple[type, Any], int] = {}
    for value, line in zip(values, lines, strict=True):
        for single in _flat(value):
            if not isinstance(single, (str, int, float)):
                expected = "expected a text, an integer, a float, or a list of them"
                raise LabelsFault(line, f"the value is {_type_in_words(single)}: {expected}")
            line_of.setdefault((type(single), single), line)
    return line_of


def _narrowest(line_of: Mapping[tuple[type, Any], int], is_text: bool) -> Kind:
    """The narrowest kind that fits all values, which are given with their first lines."""
    kinds = {_kind(value, is_text) for _, value in line_of}
    if "bytes" in kinds and len(kinds) > 1 and not is_text:
        line_of_text = {value: line for (_, value), line in line_of.items() if type(value) is str}
        text = min(line_of_text, key=lambda value: line_of_text[value])
        others = _others_in_words(line_of)
        reason = f"{_shown(text)} is a text, and other values are {others}"
        raise LabelsFault(
            line_of_text[text], reason, "let the column hold only texts, or only numbers"
        )
    return next((kind for kind in _KINDS if kind in kinds), "bytes")


def _others_in_words(values: Iterable[tuple[type, Any]]) -> str:
    """The types of the values that are no texts, for messages."""
    types = {value_type for value_type, _ in values if value_type is not str}
    if types == {bool}:
        return "true or false"
    return "numbers, true or false" if bool in types else "numbers"


_KINDS: tuple[Kind, ...] = ("bytes", "float", "int64")


def _flat(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        return value
    return () if value is None else (value,)


def flat_labels(labels: Iterable[Any]) -> list[Any]:
    """The labels of all lists and single values; None is none."""
    return list(itertools.chain.from_iterable(map(_flat, labels)))


def _kind(value: Any, is_text: bool) -> Kind:
    """The kind of a single value; texts of a labels file may be numbers."""
    if not is_text:
        if isinstance(value, str):
            return "bytes"
        return "int64" if isinstance(value, int) else "float"
    if _INT.fullmatch(value):
        return "int64"
    is_padded = len(value) > 1 and value[0] == "0" and value[1].isdigit()
    is_float = value.lower() == "nan" or (not is_padded and _FLOAT.fullmatch(value))
    return "float" if is_float else "bytes"


def _as_kind(value: Any, line: int, kind: Kind, is_text: bool) -> Any:
    """A single value as this kind; raises LabelsFault if it is of another one, or too large."""
    narrowest = _kind(value, is_text)
    if kind == "bytes" and (is_text or narrowest == "bytes"):
        return value
    if kind == "int64" and narrowest == "int64":
        if (is_text and len(value) > 20) or not -(1 << 63) <= int(value) < 1 << 63:
            raise LabelsFault(line, f"{_shown_number(value)} is out of range: {INT64_RANGE}")
        return int(value)
    if kind == "float" and narrowest != "bytes":
        return _as_float(value, line)
    type_name = "a text" if kind == "bytes" else kind
    problem = f"{_shown(value)} can't be read as {type_name}"
    raise LabelsFault(line, f"{problem}: the recipe says `type: {kind}`")


def _shown(value: Any) -> str:
    """A single value for messages: the beginning of a long one."""
    return beginning(repr(value), 80)


def _shown_number(value: Any) -> str:
    """A number for messages, without quotes: the beginning of a long one."""
    return beginning(str(value), 40)


def _type_in_words(value: Any) -> str:
    """The type of a value that no record holds, for messages."""
    names = {dict: "an object", list: "a list in a list", type(None): "a null in a list"}
    return names.get(type(value), f"of type {type(value).__name__}")


def _as_float(value: Any, line: int) -> float:
    """A number as a 32-bit float can hold it; infinity only where it is written as such a float."""
    with contextlib.suppress(OverflowError):
        number = float(value)
        is_infinity = isinstance(value, float) and math.isinf(value)
        if not abs(number) >= _TOO_LARGE or is_infinity:
            return number
    raise LabelsFault(line, f"{_shown_number(value)} does not fit in a 32-bit float")
