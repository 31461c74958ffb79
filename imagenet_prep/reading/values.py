"""The data of a record -> values: the rules for turning features into Python values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from imagenet_prep.state.numbering import INCEPTIONS_FIRST
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

_CACHED_FEATURES = 10_000

FeatureNames = bool | str | Collection[str]
"""Names of features: one or several, True for all and False for none."""

Convert = Callable[[T, bool, bool], Any]
"""A feature, or the steps of a feature list, to Python values: as text or not, as a list or not."""


OF_SEQUENCES = (
    "it is a tf.train.SequenceExample",
    "read it with imagenet_prep.records.read_sequences",
)
"""The fault of a record with feature lists, where one of features is read, and the remedy."""

OF_OBJECTS = "image/object/"
"""The beginning of features with a value per object, in the records of any program:
they are always lists.
"""


class Conventions(Struct, frozen=True):
    """The facts in a set's manifest about the values of its records.

    ``lists`` are the features that hold any number of values, ``first_label`` is the label of the
    first class.
    """

    lists: frozenset[str] = frozenset()
    first_label: int = INCEPTIONS_FIRST


USUAL = Conventions()
"""The conventions of records without a manifest."""


def any_number(features: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """The features of a manifest that hold any number of values: they are always lists."""
    names = [name for name, promise in features.items() if promise["values"] is None]
    return frozenset(names)


class SequenceExample(Struct, frozen=True):
    """A record with sequences: ``context`` is a dictionary,
    ``feature_lists`` has a list of steps per name.
    """

    context: Mapping[str, Any] = {}
    feature_lists: Mapping[str, Any] = {}


class ValueRuleError(ValueError):
    """A value that can't be stored in a feature; ``hint`` is the remedy, and may be empty."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


class Decoder:
    """Records as values: features in ``text`` are str and not bytes, those in ``lists`` are always
    lists.

    So are those of objects, by their names.
    """

    def __init__(self, text: FeatureNames = False, lists: FeatureNames = False) -> None:
        self._is_text = _chooser(text)
        self._is_in_lists = _chooser(lists)
        self._short = functools.lru_cache(_CACHED_FEATURES)(self._entry)

    def example(self, data: Buffer) -> dict[str, Any]:
        """The dictionary of an Example.

        Raises:
            ExampleError: the data is not an Example.
            ValueRuleError: it is a SequenceExample, or the bytes of a text are not UTF-8.
        """
        if has_feature_lists(data):
            raise ValueRuleError(*OF_SEQUENCES)
        return keep_last(map(self._named_value, iter_entries(data)))

    def _is_list(self, name: str) -> bool:
        return name.startswith(OF_OBJECTS) or self._is_in_lists(name)

    def _named_value(self, entry: Buffer) -> tuple[str, Any]:
        """Name and value of a feature; short ones are cached,
        since many records have the same bytes.
        """
        if len(entry) > SHORT:
            return self._entry(entry)
        name, value = self._short(entry)
        if type(value) is list:
            value = value.copy()  # the cached list stays as it is
        return name, value

    def _entry(self, entry: Buffer) -> tuple[str, Any]:
        name, feature = parse_entry(entry)
        return name, self._converted(_value_of, name, feature)

    def sequence_example(self, data: Buffer) -> SequenceExample:
        """Both dictionaries of a SequenceExample.

        Raises:
            ExampleError: the data is not a SequenceExample.
            ValueRuleError: the bytes of a text are not UTF-8.
        """
        features, feature_lists = parse_sequence_example(data)
        context: dict[str, Any] = {}
        for name, feature in features.items():
            context[name] = self._converted(_value_of, name, feature)
        sequences: dict[str, Any] = {}
        for name, steps in feature_lists.items():
            sequences[name] = self._converted(_value_of_steps, name, steps)
        return SequenceExample(context, sequences)

    def _converted(self, convert: Convert[T], name: str, feature: T) -> Any:
        try:
            return convert(feature, self._is_text(name), self._is_list(name))
        except ValueRuleError as error:
            raise ValueRuleError(f"feature {name!r}: {error}", error.hint) from None


def _chooser(names: FeatureNames) -> Callable[[str], bool]:
    """Whether an argument selects a name."""
    if isinstance(names, bool):
        return lambda _: names
    chosen = {names} if isinstance(names, str) else set(names)
    return chosen.__contains__


def _value_of(feature: Feature | None, as_text: bool, as_list: bool) -> Any:
    """The value of a feature: one value is itself unless ``as_list``;
    none or several are a list.
    """
    values = _values(feature, as_text)
    if as_list or len(values) != 1:
        return values
    return values[0]


def _value_of_steps(steps: Sequence[Feature | None], as_text: bool, as_lists: bool) -> list[Any]:
    """The steps of a feature list: values if every step has one and unless ``as_lists``,
    otherwise a list per step.
    """
    lists = [_values(step, as_text) for step in steps]
    if as_lists or any(len(values) != 1 for values in lists):
        return lists
    return [values[0] for values in lists]


def _values(feature: Feature | None, as_text: bool) -> list[Any]:
    match feature:
        case None:
            return []
        case BytesList(values):
            convert = _text if as_text else bytes
            return list(map(convert, values))
        case FloatList(values) | Int64List(values):
            return list(values)


def _text(value: Buffer) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        hint = "name only the features that are text, such as text={'image/class/text'}"
        raise ValueRuleError("its bytes are not text in UTF-8", hint) from None
