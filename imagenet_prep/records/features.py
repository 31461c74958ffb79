"""Values -> features: the rules by which a value gets its kind."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from imagenet_prep.reading.values import SequenceExample, ValueRuleError
from imagenet_prep.tfrecord.example import BytesList, Feature, FloatList, Int64List, Kind

_BYTES = (bytes, bytearray, memoryview)
_SCALARS = (int, float, str, *_BYTES)  # a bool is an int
_PLAIN = frozenset((*_SCALARS, bool))
_EXPECTED = "expected bool, int, float, str or bytes, or a flat list or an array of them"


class Message(Protocol):
    """A tf.train.Example or a tf.train.SequenceExample, known by what it can do: TensorFlow is not imported."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """The bytes of the message."""
        ...


Writable = Mapping[str, Any] | SequenceExample | Message | bytes | bytearray | memoryview


def feature_of(value: Any, kind: Kind | None = None) -> Feature | None:
    """The feature of a value, of the kind given or else inferred; None for an empty list, whose kind nobody knows.

    Raises:
        ValueRuleError: the value is of no kind, of several, or too large.
    """
    values = _flat(value)
    return _build(values, kind or _infer(values))


def steps_of(value: Any, kind: Kind | None = None) -> tuple[Feature | None, ...]:
    """The features of a list of steps, all of one kind.

    Raises:
        ValueRuleError: as for one feature, or it is no list.
    """
    if isinstance(value, _SCALARS) or not (isinstance(value, Sequence) or _is_array(value)):
        raise ValueRuleError(f"it is of type {type(value).__name__}: expected a list of steps")
    steps = [_flat(step) for step in value]
    kind = kind or _infer([each for step in steps for each in step])
    return tuple(_build(step, kind) for step in steps)


def _flat(value: Any) -> list[Any]:
    """Plain values one after the other: a single one is a list of one, an array is taken in C order."""
    if isinstance(value, _SCALARS):
        return [value]
    if _is_array(value):
        value = _unwrapped(value.reshape(-1) if _dimensions(value) > 1 else value)
    if not isinstance(value, Sequence):
        return [_plain(value)]
    if _PLAIN.issuperset(map(type, value)):  # a long list of numbers, as a rule
        return list(value)
    return [_plain(each) for each in value]


def _plain(value: Any) -> Any:
    """One value as Python has it: what NumPy and its like wrap is unwrapped."""
    if not isinstance(value, _SCALARS) and hasattr(value, "tolist") and not _is_array(value):
        value = _unwrapped(value)
    if isinstance(value, _SCALARS):
        return value
    if value is None:
        raise ValueRuleError(f"it holds None: {_EXPECTED}", "leave it out; a step without values is []")
    if isinstance(value, Sequence) or _is_array(value):
        hint = "flatten it, or write a SequenceExample"
        raise ValueRuleError(f"it holds a {type(value).__name__} within a list: {_EXPECTED}", hint)
    raise ValueRuleError(f"it holds a value of type {type(value).__name__}: {_EXPECTED}")


def _is_array(value: Any) -> bool:
    """Whether a value is an array of at least one dimension: NumPy's, or like it."""
    return hasattr(value, "tolist") and not isinstance(value, _SCALARS) and _dimensions(value) > 0


def _dimensions(array: Any) -> int:
    return int(getattr(array, "ndim", 1))  # array.array has one, and does not say so


def _unwrapped(array: Any) -> Any:
    """An array's values as Python has them; not times, which would become integers of any unit, or objects."""
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "kind", None) in ("m", "M"):
        raise ValueRuleError(f"it holds {dtype}: {_EXPECTED}", "write a number or a text")
    return array.tolist()


def _infer(values: Iterable[Any]) -> Kind | None:
    """The one kind of all values; whole numbers among floats are floats, and nothing is of no kind."""
    types = {type(value) for value in values}
    kinds = {_kind(each) for each in types}
    if kinds == {"int64", "float"}:
        return "float"
    if len(kinds) > 1:
        names = " and ".join(sorted(each.__name__ for each in types))
        raise ValueRuleError(f"it holds {names}: expected values of one kind")
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
        raise ValueRuleError(f"it holds {type(value).__name__}: expected int64")
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueRuleError(f"it holds {_shown(value)}: expected -2**63 to 2**63 - 1", "write it as a text")
    return int(value)


def _floats(values: list[Any]) -> tuple[float, ...]:
    """Floats that 32 bits can hold, if less exactly; only what would become infinite is refused."""
    try:
        struct.pack(f"<{len(values)}f", *values)
    except (OverflowError, struct.error):
        raise ValueRuleError(*_not_float(values)) from None
    return tuple(map(float, values))


def _not_float(values: list[Any]) -> tuple[str, str]:
    """What is wrong with values that can't be packed, and what to do."""
    for value in values:
        if not isinstance(value, (int, float)):
            return f"it holds {type(value).__name__}: expected float", ""
    largest = max((each for each in values if abs(each) < math.inf), key=abs)
    return (
        f"it holds {_shown(largest)}: expected at most 3.4e38, a float has 32 bits",
        "scale it, or write it as a text",
    )


def _shown(number: float) -> str:
    """A number for an error: Python refuses to spell out a very long one."""
    if isinstance(number, int) and number.bit_length() > 128:
        return f"an integer of {number.bit_length():,} bits"
    return str(number)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return utf8(value)
    if isinstance(value, _BYTES):
        return bytes(value)
    raise ValueRuleError(f"it holds {type(value).__name__}: expected bytes or str")


def utf8(text: str) -> bytes:
    """A text as bytes.

    Raises:
        ValueRuleError: it has half a surrogate pair.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueRuleError(f"{text!r} can't be written as UTF-8", "write its bytes") from None
