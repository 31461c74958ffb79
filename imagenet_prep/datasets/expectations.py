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


def expected_words(problem: str, setting_type: Any) -> str:
    """The values that a type allows: "expected auto, shuffled or sequential", "expected a whole
    number >= 1".

    Args:
        problem: msgspec's sentence, such as "Expected `int`, got `str`" or "Invalid enum value
            'x'".
        setting_type: the type of the value.
    """
    choices = [*_choices(setting_type)]
    if choices:
        return f"expected {either(choices)}"
    expectation = problem.removeprefix("Expected ").partition(", got `")[0]
    type_names, _, bound = expectation.partition("` ")
    alternatives = [_NAMES.get(name, name) for name in re.findall(r"\w+", type_names)]
    bound_words = f" {bound}".replace(" matching", ", ").rstrip()
    if bound.startswith("of length"):
        bound_words = ", not empty"
    return f"expected {either(filter(None, alternatives))}{bound_words}"


def _choices(setting_type: Any) -> Iterator[str]:
    """Each value of a type that lists some, and the other types that it allows;
    nothing if it lists none.
    """
    alternatives = [*_alternatives(setting_type)]
    if not any(map(_is_literal, alternatives)):
        return
    for alternative in alternatives:
        if _is_literal(alternative):
            yield from map(_as_written, typing.get_args(alternative))
            continue
        name = _NAMES[_name_of(alternative)]
        if name:
            yield name


def _is_literal(setting_type: Any) -> bool:
    return typing.get_origin(setting_type) is Literal


def _alternatives(setting_type: Any) -> Iterator[Any]:
    """The types that a type allows, without annotations."""
    origin, arguments = typing.get_origin(setting_type), typing.get_args(setting_type)
    if origin is Annotated:
        yield from _alternatives(arguments[0])
    elif origin in (Union, types.UnionType):
        for argument in arguments:
            yield from _alternatives(argument)
    else:
        yield setting_type


def _name_of(setting_type: Any) -> str:
    """msgspec's name of a type."""
    plain_type = typing.get_origin(setting_type) or setting_type
    if plain_type is type(None):
        return "null"
    if plain_type is list:
        return "array"
    if plain_type is dict or issubclass(plain_type, Struct):
        return "object"
    return str(plain_type.__name__)


def _as_written(choice: object) -> str:
    """A value as the user writes it."""
    return str(choice).lower() if isinstance(choice, bool) else str(choice)
