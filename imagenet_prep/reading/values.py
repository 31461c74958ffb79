"""The data of a record -> values: the rules by which features come back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from imagenet_prep.tfrecord.example import (
    SHORT,
    Buffer,
    BytesList,
    Feature,
    FloatList,
    Int64List,
    has_feature_lists,
    iter_entries,
    keep_last,
    parse_entry,
    parse_sequence_example,
)

T = TypeVar("T")

_MOST = 10_000  # features that are remembered

Names = bool | str | Collection[str]
"""Names of features: a single one or several, True for all and False for none."""


@dataclass(frozen=True, slots=True)
class SequenceExample:
    """A record with sequences: ``context`` as a dictionary of its own, ``feature_lists`` a list of steps a name."""

    context: Mapping[str, Any] = field(default_factory=dict)
    feature_lists: Mapping[str, Any] = field(default_factory=dict)


class ValueRuleError(ValueError):
    """A value that has no place in a feature; ``hint`` says what to do about it, and may be empty."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


class _Chosen:
    """The names that an argument means."""

    def __init__(self, names: Names) -> None:
        self._all = names is True
        self._names = {names} if isinstance(names, str) else set() if isinstance(names, bool) else set(names)

    def __contains__(self, name: str) -> bool:
        return self._all or name in self._names


class Decoder:
    """Records as values: those named in ``text`` are str and not bytes, those in ``lists`` are always lists."""

    def __init__(self, text: Names = False, lists: Names = False) -> None:
        self._text = _Chosen(text)
        self._lists = _Chosen(lists)
        self._short = functools.lru_cache(_MOST)(self._entry)

    def example(self, data: Buffer) -> dict[str, Any]:
        """The dictionary of an Example.

        Raises:
            ExampleError: the data are no Example.
            ValueRuleError: they are a SequenceExample, or bytes that are to be text are not UTF-8.
        """
        if has_feature_lists(data):
            raise ValueRuleError("it is a tf.train.SequenceExample", "use records.read_sequences")
        return keep_last(map(self._named_value, iter_entries(data)))

    def _named_value(self, entry: Buffer) -> tuple[str, Any]:
        """Name and value of a feature; short ones are looked up, since many records have the same bytes."""
        if len(entry) > SHORT:
            return self._entry(entry)
        name, value = self._short(entry)
        return name, value.copy() if type(value) is list else value

    def _entry(self, entry: Buffer) -> tuple[str, Any]:
        name, feature = parse_entry(entry)
        return name, self._converted(_value_of, name, feature)

    def sequence_example(self, data: Buffer) -> SequenceExample:
        """Both dictionaries of a SequenceExample.

        Raises:
            ExampleError: the data are no SequenceExample.
            ValueRuleError: bytes that are to be text are not UTF-8.
        """
        context, feature_lists = parse_sequence_example(data)
        return SequenceExample(self._each(_value_of, context), self._each(_value_of_steps, feature_lists))

    def _each(self, convert: Callable[[T, bool, bool], Any], features: Mapping[str, T]) -> dict[str, Any]:
        return {name: self._converted(convert, name, feature) for name, feature in features.items()}

    def _converted(self, convert: Callable[[T, bool, bool], Any], name: str, feature: T) -> Any:
        try:
            return convert(feature, name in self._text, name in self._lists)
        except ValueRuleError as error:
            raise ValueRuleError(f"feature {name!r}: {error}", error.hint) from None


def _value_of(feature: Feature | None, as_text: bool, as_list: bool) -> Any:
    """The value of a feature: a single one as it is unless ``as_list``, else a list, empty if nothing is set."""
    values = _values(feature, as_text)
    return values[0] if len(values) == 1 and not as_list else values


def _value_of_steps(steps: Sequence[Feature | None], as_text: bool, as_lists: bool) -> list[Any]:
    """The steps of a feature list: single values if every step has one and unless ``as_lists``, else a list a step."""
    values = [_values(step, as_text) for step in steps]
    is_flat = not as_lists and all(len(each) == 1 for each in values)
    return [each[0] for each in values] if is_flat else values


def _values(feature: Feature | None, as_text: bool) -> list[Any]:
    match feature:
        case None:
            return []
        case BytesList(values):
            return [_text(value) if as_text else bytes(value) for value in values]
        case FloatList(values) | Int64List(values):
            return list(values)


def _text(value: Buffer) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        hint = "name the features that are text: text={...}"
        raise ValueRuleError("its bytes are not UTF-8", hint) from None
