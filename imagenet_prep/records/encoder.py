"""Records -> bytes, with errors that name record and feature."""

from __future__ import annotations

import contextlib
import itertools
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.values import SequenceExample, ValueRuleError
from imagenet_prep.text import is_utf8
from imagenet_prep.tfrecord.example import (
    KINDS,
    BytesList,
    ExampleError,
    Feature,
    FloatList,
    Int64List,
    Kind,
    encode_example,
    encode_sequence_example,
    parse_fields,
    parse_sequence_example,
)

T = TypeVar("T")

_BYTES = (bytes, bytearray, memoryview)
_SCALARS = (int, float, str, *_BYTES)  # a bool is an int
_PLAIN = frozenset((*_SCALARS, bool))
_EXPECTED = "expected bool, int, float, str or bytes, or a flat list or an array of them"
_AS_TEXT = "as a text; if you give a schema, its kind is 'bytes'"
_CONVERT = (
    "convert it: str(value) for a text, list(value) for a set, numpy.asarray(value) for a tensor; "
    "of an image, write the bytes of its file"
)


class _Hints(NamedTuple):
    """The advice on None, and on a list within a list."""

    if_none: str
    if_nested: str


_OF_FEATURES = _Hints(
    if_none="put a value in place of None, or leave this feature out of the record",
    if_nested="flatten it: [1, 2, 3, 4] for [[1, 2], [3, 4]]; or write it as a feature list of a "
    "SequenceExample",
)
_OF_STEPS = _Hints(
    if_none="put a value in place of None; a step without values is []",
    if_nested="flatten each step: [[1, 2], [3]] has two",
)


class Message(Protocol):
    """A tf.train.Example or a tf.train.SequenceExample, recognised by its methods:
    TensorFlow is not imported.
    """

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """The bytes of the message."""
        ...


Writable = Mapping[str, Any] | SequenceExample | Message | bytes | bytearray | memoryview


class _FirstKind(NamedTuple):
    """The kind of a feature, and the first record with it.

    ``is_serialized``: the record was a message, whose kinds a schema does not change.
    """

    kind: Kind
    number: int
    is_serialized: bool


class Encoder:
    """Encodes records, and remembers the kind of each feature: readers expect one kind per name.

    Args:
        schema: the kind of each feature that should not be inferred.

    Raises:
        UsageError: the schema holds something other than a kind.
    """

    def __init__(self, schema: Mapping[str, Kind] | None = None) -> None:
        self._schema = dict(schema or {})
        self._first_kinds: dict[tuple[str, str], _FirstKind] = {}  # by part and name
        for name, kind in self._schema.items():
            if kind not in KINDS.values():
                raise UsageError(
                    f"schema: {name!r} is {kind!r}", f"expected one of {', '.join(KINDS.values())}"
                )

    def encode(self, record: Writable, number: int) -> bytes:
        """A tf.train.Example for a dictionary, a tf.train.SequenceExample for one of ours;
        ``number`` is for errors.

        Messages of TensorFlow and their bytes are written unchanged.

        Raises:
            UsageError: a value can't be stored, or its kind differs from earlier records; or the
                bytes are of neither message.
        """
        data = _serialized(record)
        if data is not None:
            self._remember(_parts(data, number, record), number, is_serialized=True)
            return data
        if isinstance(record, SequenceExample):
            context = self._convert(feature_of, record.context, number, "feature")
            feature_lists = self._convert(steps_of, record.feature_lists, number, "feature list")
            first_steps = {name: next(iter(steps), None) for name, steps in feature_lists.items()}
            self._remember({"feature": context, "feature list": first_steps}, number)
            return encode_sequence_example(context, feature_lists)
        if not isinstance(record, Mapping):
            raise UsageError(
                f"record {number} is of type {type(record).__name__}",
                "expected a dictionary, a SequenceExample, a message of tf.train, or its bytes",
                "several records: records.write takes a list of dictionaries or a generator, "
                "a writer takes one record a call",
            )
        features = self._convert(feature_of, record, number, "feature")
        self._remember({"feature": features}, number)
        return encode_example(features)

    def _convert(
        self,
        convert: Callable[[Any, Kind | None], T],
        record: Mapping[str, Any],
        number: int,
        part: str,
    ) -> dict[str, T]:
        """Every value, converted; None is left out."""
        converted = {}
        for name, value in record.items():
            if not isinstance(name, str):
                raise UsageError(
                    f"record {number}: a {part} has the name {name!r}", "expected a str"
                )
            if not is_utf8(name):
                raise UsageError(
                    f"record {number}: a {part} has the name {name!r}",
                    "expected a name that UTF-8 can express",
                )
            if value is None:
                continue
            try:
                converted[name] = convert(value, self._schema.get(name))
            except ValueRuleError as error:
                raise UsageError(
                    f"record {number}: {part} {name!r} can't be written", str(error), error.hint
                ) from None
        return converted

    def _remember(
        self,
        parts: Mapping[str, Mapping[str, Feature | None]],
        number: int,
        *,
        is_serialized: bool = False,
    ) -> None:
        """Compare the kinds of a record with those of earlier records, then keep them."""
        kinds: dict[tuple[str, str], _FirstKind] = {}
        for part, features in parts.items():
            for name, feature in features.items():
                if feature is None:
                    continue
                kind = KINDS[type(feature)]
                first = self._first_kinds.get((part, name))
                if first is None:
                    kinds[part, name] = _FirstKind(kind, number, is_serialized)
                elif kind != first.kind:
                    current = _FirstKind(kind, number, is_serialized)
                    raise _changed(part, name, current, first)
        self._first_kinds.update(kinds)


def refuse_single(records: object) -> None:
    """Raise UsageError for one record in place of several: its keys or bytes are no records."""
    is_message = callable(getattr(records, "SerializeToString", None))
    if is_message or isinstance(records, (Mapping, SequenceExample, str, *_BYTES)):
        raise UsageError(
            f"records is of type {type(records).__name__}",
            "expected a list of records, or a generator",
            "write one record as a list: [record]",
        )


def _serialized(record: object) -> bytes | None:
    """The bytes of a record that is already encoded; None otherwise."""
    serialize = getattr(record, "SerializeToString", None)
    data = serialize() if callable(serialize) else record
    return bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else None


def _parts(data: bytes, number: int, record: object) -> dict[str, Mapping[str, Feature | None]]:
    """The features of a message, and the first step of each of its feature lists.

    Raises:
        UsageError: the bytes are not such a message, but an image's, for instance.
    """
    try:
        fields = parse_fields(memoryview(data), 0, len(data))
        if any(field not in (1, 2) or wire != 2 for field, wire, _, _ in fields):
            raise ExampleError
        context, feature_lists = parse_sequence_example(data)
    except ExampleError:
        if not isinstance(record, _BYTES):
            raise UsageError(
                f"record {number} is a message of type {type(record).__name__}",
                "expected an Example or a SequenceExample of tf.train",
            ) from None
        raise UsageError(
            f"record {number} is bytes that are not a serialized tf.train.Example",
            "expected a serialized Example or SequenceExample",
            "to write other bytes, put them in a dictionary: {'image': data}",
        ) from None
    first_steps = {name: next(iter(steps), None) for name, steps in feature_lists.items()}
    return {"feature": context, "feature list": first_steps}


def _changed(part: str, name: str, current: _FirstKind, first: _FirstKind) -> UsageError:
    what = f"record {current.number}: {part} {name!r} is of kind {current.kind}"
    expected = "expected the same in all records"
    detail = f"in record {first.number} it is of kind {first.kind}: {expected}"
    hint = ""
    is_inferred = not (current.is_serialized or first.is_serialized)
    if is_inferred and "bytes" not in (current.kind, first.kind):
        hint = f"schema={{{name!r}: 'float'}} makes it float everywhere"
    return UsageError(what, detail, hint)


# values -> features: the rules by which a value gets its kind -------------------------------------


def feature_of(value: Any, kind: Kind | None = None) -> Feature | None:
    """The feature of a value, of the given kind or an inferred one; None for an empty list without
    a kind.

    Raises:
        ValueRuleError: the value has no kind or several, or is too large.
    """
    values = _flat(value)
    return _build(values, kind or _infer(values))


def steps_of(value: Any, kind: Kind | None = None) -> tuple[Feature | None, ...]:
    """The features of a list of steps, all of one kind.

    Raises:
        ValueRuleError: a step is not a feature, or the value is not a list.
    """
    if isinstance(value, _SCALARS) or not (isinstance(value, Sequence) or _is_array(value)):
        found = f"it is of type {type(value).__name__}"
        hint = "a step is a value or a flat list: [1, 2] and [[1, 2], [3]] have two steps"
        raise ValueRuleError(f"{found}: expected a list of steps", hint)
    steps = [_flat(step, _OF_STEPS) for step in value]
    kind = kind or _infer(itertools.chain.from_iterable(steps))
    return tuple(_build(step, kind) for step in steps)


def _flat(value: Any, hints: _Hints = _OF_FEATURES) -> list[Any]:
    """A flat list of plain values: a single value becomes a list of one,
    an array is read in C order.
    """
    if isinstance(value, _SCALARS):
        return [value]
    if _is_array(value):
        value = _unwrapped(value.reshape(-1) if _dimensions(value) > 1 else value)
    if not isinstance(value, Sequence):
        return [_plain(value, hints)]
    if _PLAIN.issuperset(map(type, value)):  # usually a long list of numbers
        return list(value)
    return [_plain(item, hints) for item in value]


def _plain(value: Any, hints: _Hints) -> Any:
    """One value as a Python object: NumPy's and similar wrappers are removed."""
    if not isinstance(value, _SCALARS) and hasattr(value, "tolist") and not _is_array(value):
        value = _unwrapped(value)
    if isinstance(value, _SCALARS):
        return value
    if value is None:
        raise ValueRuleError(f"it holds None: {_EXPECTED}", hints.if_none)
    if isinstance(value, Sequence) or _is_array(value):
        nested = f"it holds a nested value, of type {type(value).__name__}"
        raise ValueRuleError(f"{nested}: {_EXPECTED}", hints.if_nested)
    raise ValueRuleError(f"it holds a value of type {type(value).__name__}: {_EXPECTED}", _CONVERT)


def _is_array(value: Any) -> bool:
    """Whether a value is an array of at least one dimension, of NumPy or a similar library."""
    return hasattr(value, "tolist") and not isinstance(value, _SCALARS) and _dimensions(value) > 0


def _dimensions(array: Any) -> int:
    return int(getattr(array, "ndim", 1))  # array.array has one dimension, but no ndim


def _unwrapped(array: Any) -> Any:
    """An array's values as Python objects; times are refused, which would lose their unit, and
    values of several fields.
    """
    dtype = getattr(array, "dtype", None)
    if fields := getattr(dtype, "names", None):
        found = f"it holds NumPy's structured values, with the fields {', '.join(fields)}"
        raise ValueRuleError(
            f"{found}: {_EXPECTED}", f"write each as a feature: value[{fields[0]!r}]"
        )
    if getattr(dtype, "kind", None) in ("m", "M"):
        raise ValueRuleError(f"it holds {dtype}: {_EXPECTED}", "write texts: value.astype(str)")
    return array.tolist()


def _infer(values: Iterable[Any]) -> Kind | None:
    """The one kind of all values; whole numbers among floats are floats,
    and an empty list has no kind.
    """
    types = {type(value) for value in values}
    kinds = set(map(_kind, types))
    if kinds == {"int64", "float"}:
        return "float"
    if len(kinds) > 1:
        names = ", ".join(sorted(type_.__name__ for type_ in types))
        expected = "expected only numbers, or only text and bytes"
        raise ValueRuleError(f"it holds values of type {names}: {expected}")
    return kinds.pop() if kinds else None


def _kind(type_: type) -> Kind:
    if issubclass(type_, int):
        return "int64"
    return "float" if issubclass(type_, float) else "bytes"


def _build(values: list[Any], kind: Kind | None) -> Feature | None:
    match kind:
        case "int64":
            return Int64List(tuple(map(_int64, values)))
        case "float":
            return FloatList(_floats(values))
        case "bytes":
            return BytesList(tuple(map(_bytes, values)))
    return None


def _int64(value: Any) -> int:
    if not isinstance(value, int):
        raise ValueRuleError(_not_as_in_schema(value, "int", "int64"))
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueRuleError(
            f"it holds {_shown(value)}: expected -2**63 to 2**63 - 1",
            f"write this feature in all records {_AS_TEXT}",
        )
    return int(value)


def _floats(values: list[Any]) -> tuple[float, ...]:
    """Floats, rounded to 32 bits; only values that would become infinite are refused."""
    try:
        struct.pack(f"<{len(values)}f", *values)
    except (OverflowError, struct.error):
        raise ValueRuleError(*_not_float(values)) from None
    return tuple(map(float, values))


def _not_float(values: list[Any]) -> tuple[str, str]:
    """The fault of values that can't be packed, and the remedy."""
    for value in values:
        if not isinstance(value, (int, float)):
            return _not_as_in_schema(value, "float or int", "float"), ""
    largest = max((number for number in values if abs(number) < math.inf), key=abs)
    return (
        f"it holds {_shown(largest)}: expected -3.4e38 to 3.4e38, a float has 32 bits",
        f"in all records, scale this feature, or write it {_AS_TEXT}",
    )


def _shown(number: float) -> str:
    """A number for an error message: Python refuses to print a very long one."""
    if isinstance(number, int) and number.bit_length() > 128:
        return f"an integer of {number.bit_length():,} bits"
    return str(number)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return utf8(value)
    if isinstance(value, _BYTES):
        return bytes(value)
    raise ValueRuleError(_not_as_in_schema(value, "bytes or str", "bytes"))


def _not_as_in_schema(value: Any, expected: str, kind: Kind) -> str:
    """The fault of a value of another type: inferred kinds fit every value."""
    return f"it holds {type(value).__name__}: expected {expected}, since schema says {kind!r}"


def utf8(text: str) -> bytes:
    """A text as bytes.

    Raises:
        ValueRuleError: it has half a surrogate pair.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        character = text[error.start]
        handler = "surrogatepass"
        with contextlib.suppress(UnicodeEncodeError):
            text.encode(errors="surrogateescape")
            handler = "surrogateescape"  # of a file whose name is not UTF-8
        raise ValueRuleError(
            f"it holds the character {character!r}, which UTF-8 can't express",
            f"write it as bytes: text.encode(errors={handler!r})",
        ) from None
