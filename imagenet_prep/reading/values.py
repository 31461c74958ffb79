"""The data of a record -> values: the rules by which features come back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from imagenet_prep.tfrecord.example import (
    Buffer,
    BytesList,
    Feature,
    FloatList,
    Int64List,
    join_pieces,
    parse_entry,
    parse_features,
    read_usual_entry,
    varint_in,
)
from imagenet_prep.tfrecord.inception import CHANNELS, COLORSPACE, FORMAT
from imagenet_prep.tfrecord.inception_reader import ImageRecord, read_canonical
from imagenet_prep.tfrecord.sequence_example import has_feature_lists, parse_sequence_example

T = TypeVar("T")

_WINDOW = 2048  # bytes of a record that are looked at together
_HEADER = 6  # bytes, at least as many as come before a feature
_SHORT = 256  # bytes of a feature that may be met again
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
        self._is_plain = not text and not lists
        self._known: dict[bytes, tuple[str, Any]] = {}  # features that were met before, by their bytes

    def example(self, data: Buffer) -> dict[str, Any]:
        """The dictionary of an Example.

        Raises:
            ExampleError: the data are no Example.
            ValueRuleError: they are a SequenceExample, or bytes that are to be text are not UTF-8.
        """
        view = memoryview(data)
        image = read_canonical(view) if self._is_plain else None
        if image is not None:
            return _of_image(image)
        found = self._one_by_one(view)
        if found is not None:
            return found
        if has_feature_lists(data):
            raise ValueRuleError("it is a tf.train.SequenceExample", "use records.read_sequences")
        return self._each(_value_of, parse_features(data))

    def _one_by_one(self, view: memoryview) -> dict[str, Any] | None:
        """The dictionary of an Example laid out as every writer known lays it out; None for any other one.

        Most features of a set are the same bytes in many records, a class or a size: those are looked up. Only what
        is new, or long, is parsed.
        """
        window, known = bytes(view[:_WINDOW]), self._known
        values: dict[str, Any] = {}
        base, end = 0, len(view)
        try:
            size, at = varint_in(window, 1)
            if window[0] != 0x0A or at + size != end:
                return None
            while base + at < end:
                if at + _HEADER > len(window):
                    base, at = base + at, 0
                    window = bytes(view[base : base + _WINDOW])
                if window[at] != 0x0A:
                    return None
                size, start = varint_in(window, at + 1)
                at = start + size
                entry = window[start:at]
                name, value = known.get(entry) or self._entry(
                    entry if at <= len(window) else view[base + start : base + at]
                )
                if name in values or base + at > end:
                    return None
                values[name] = value.copy() if type(value) is list else value
        except IndexError:
            return None
        return values

    def _entry(self, entry: Buffer) -> tuple[str, Any]:
        """Name and value of a feature, remembered if it is short."""
        found = self._usual(entry)
        if found is None:
            view = memoryview(entry)
            name, pieces = parse_entry(view, 0, len(view))
            ((name, value),) = self._each(_value_of, {name: join_pieces(view, pieces)}).items()
            found = name, value
        if len(entry) <= _SHORT and isinstance(entry, bytes):
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[entry] = found
        return found

    def _usual(self, entry: Buffer) -> tuple[str, Any] | None:
        usual = read_usual_entry(entry)
        if usual is None:
            return None
        name, values = usual
        if values and isinstance(values[0], bytes) and name in self._text:
            try:
                values = [values[0].decode()]
            except UnicodeDecodeError:
                return None
        return name, values[0] if len(values) == 1 and name not in self._lists else values

    def sequence_example(self, data: Buffer) -> SequenceExample:
        """Both dictionaries of a SequenceExample.

        Raises:
            ExampleError: the data are no SequenceExample.
            ValueRuleError: bytes that are to be text are not UTF-8.
        """
        context, feature_lists = parse_sequence_example(data)
        return SequenceExample(self._each(_value_of, context), self._each(_value_of_steps, feature_lists))

    def _each(self, convert: Callable[[T, bool, bool], Any], features: Mapping[str, T]) -> dict[str, Any]:
        values = {}
        for name, feature in features.items():
            try:
                values[name] = convert(feature, name in self._text, name in self._lists)
            except ValueRuleError as error:
                raise ValueRuleError(f"feature {name!r}: {error}", error.hint) from None
        return values


def _of_image(image: ImageRecord) -> dict[str, Any]:
    """What Decoder makes of a canonical record, in the order of its features."""
    boxes = image.boxes

    def value(column: list[Any]) -> Any:
        return column[0] if len(column) == 1 else column

    return {
        "image/channels": CHANNELS,
        "image/class/label": image.label,
        "image/class/synset": (image.wnid or "").encode(),
        "image/class/text": (image.text or "").encode(),
        "image/colorspace": COLORSPACE,
        "image/encoded": bytes(image.encoded),
        "image/filename": image.filename.encode(),
        "image/format": FORMAT,
        "image/height": image.height,
        "image/object/bbox/label": value(list(image.box_labels)),
        "image/object/bbox/xmax": value([box.xmax for box in boxes]),
        "image/object/bbox/xmin": value([box.xmin for box in boxes]),
        "image/object/bbox/ymax": value([box.ymax for box in boxes]),
        "image/object/bbox/ymin": value([box.ymin for box in boxes]),
        "image/width": image.width,
    }


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
