"""expected_words: the type of a setting and the error of msgspec for a
value -> the sentence of what fits.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union

from msgspec import Struct

from imagenet_prep.text import either

_NAMES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "",
}
_NAMES |= {"object": "a mapping", "array": "a list"}
"""The types of values by msgspec's names; null says nothing to a user."""


def expected_words(problem: str, kind: Any) -> str:
    """The values that a type allows: "expected auto, shuffled or sequential", "expected a whole
    number >= 1".

    Args:
        problem: msgspec's sentence, such as "Expected `int`, got `str`" or "Invalid enum value
            'x'".
        kind: the type of the value.
    """
    choices = [*_choices(kind)]
    if choices:
        return f"expected {either(choices)}"
    wanted = problem.removeprefix("Expected ").partition(", got `")[0]
    named, _, bound = wanted.partition("` ")
    alternatives = [_NAMES.get(name, name) for name in re.findall(r"\w+", named)]
    bound = (
        ", not empty"
        if bound.startswith("of length")
        else f" {bound}".replace(" matching", ", ").rstrip()
    )
    return f"expected {either(filter(None, alternatives))}{bound}"


def _choices(kind: Any) -> Iterator[str]:
    """Each value of a type that lists some, and the other types that it allows;
    nothing if it lists none.
    """
    types_of_kind = [*_alternatives(kind)]
    if not any(typing.get_origin(each) is Literal for each in types_of_kind):
        return
    for each in types_of_kind:
        if typing.get_origin(each) is Literal:
            yield from (_as_written(value) for value in typing.get_args(each))
        elif name := _NAMES[_name_of(each)]:
            yield name


def _alternatives(kind: Any) -> Iterator[Any]:
    """The types that a type allows, without annotations."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        yield from _alternatives(arguments[0])
    elif origin in (Union, types.UnionType):
        for each in arguments:
            yield from _alternatives(each)
    else:
        yield kind


def _name_of(kind: Any) -> str:
    """msgspec's name of a type."""
    plain = typing.get_origin(kind) or kind
    if plain in (type(None), list):
        return "null" if plain is type(None) else "array"
    return "object" if plain is dict or issubclass(plain, Struct) else str(plain.__name__)


def _as_written(value: object) -> str:
    """A value as the user writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
