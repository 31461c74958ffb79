"""steps_to_fault: a value that can't be converted, and msgspec's place of it -> its keys and list
positions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec


def steps_to_fault(place: str, value: object, kind: Any) -> list[str | int]:
    """The keys and list positions of msgspec's place of an error, such as $.a.b[0]; msgspec writes
    [...] for a key of a mapping that has any.
    """
    steps: list[str | int] = []
    for name, number in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", place):
        if number == "...":
            steps.append(_faulty_key(value, kind, steps))
        else:
            steps.append(name or int(number))
    return steps


def _faulty_key(value: Any, kind: Any, steps: Sequence[str | int]) -> str:
    """The first key of the mapping at ``steps`` of a value whose own value can't be converted."""
    mapping = value
    for step in steps:
        mapping = mapping[step]
    for name in mapping:
        try:
            msgspec.convert(_with_part(value, steps, {name: mapping[name]}), kind)
        except msgspec.ValidationError:
            return str(name)
    return ""


def _with_part(value: Any, steps: Sequence[str | int], part: object) -> Any:
    """A copy of a value with another part at ``steps``."""
    if not steps:
        return part
    copy = value.copy()
    copy[steps[0]] = _with_part(value[steps[0]], steps[1:], part)
    return copy
