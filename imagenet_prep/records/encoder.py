"""Records -> bytes, with errors that name record and feature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.values import SequenceExample, ValueRuleError
from imagenet_prep.records.features import Writable, feature_of, steps_of, utf8
from imagenet_prep.tfrecord.example import KINDS, ExampleError, Feature, Kind, encode_example, parse_fields
from imagenet_prep.tfrecord.sequence_example import encode_sequence_example, parse_sequence_example

T = TypeVar("T")


class Encoder:
    """Encodes records, and remembers which kind each feature had: a reader expects one kind under one name.

    Args:
        schema: the kind of features, where it is not to be inferred.

    Raises:
        UsageError: the schema holds something else than a kind.
    """

    def __init__(self, schema: Mapping[str, Kind] | None = None) -> None:
        self._schema = dict(schema or {})
        self._seen: dict[tuple[str, str], tuple[Kind, int]] = {}
        for name, kind in self._schema.items():
            if kind not in KINDS.values():
                raise UsageError(f"schema: {name!r} is {kind!r}", f"expected one of {', '.join(KINDS.values())}")

    def encode(self, record: Writable, number: int) -> bytes:
        """A tf.train.Example for a dictionary, a tf.train.SequenceExample for one of ours; ``number`` is for errors.

        What TensorFlow encoded, messages and their bytes, is taken as it is.

        Raises:
            UsageError: a value fits no feature, or is of another kind than that feature had before; or bytes are of
                neither message.
        """
        data = _serialized(record)
        if data is not None:
            self._remember(_parts(data, number), number)
            return data
        if isinstance(record, SequenceExample):
            context = self._each(feature_of, record.context, number, "feature")
            feature_lists = self._each(steps_of, record.feature_lists, number, "feature list")
            first_steps = {name: next(iter(steps), None) for name, steps in feature_lists.items()}
            self._remember({"feature": context, "feature list": first_steps}, number)
            return encode_sequence_example(context, feature_lists)
        if not isinstance(record, Mapping):
            raise UsageError(
                f"record {number} is of type {type(record).__name__}",
                "expected a dictionary, a SequenceExample, or one that tf.train made",
                "write takes many records: a list of dictionaries, or a generator",
            )
        features = self._each(feature_of, record, number, "feature")
        self._remember({"feature": features}, number)
        return encode_example(features)

    def _each(
        self, convert: Callable[[Any, Kind | None], T], values: Mapping[str, Any], number: int, part: str
    ) -> dict[str, T]:
        """Every value converted but None, which is left out."""
        converted = {}
        for name, value in values.items():
            if not isinstance(name, str):
                raise UsageError(f"record {number}: a {part} has the name {name!r}", "expected a str")
            if value is None:
                continue
            try:
                utf8(name)
                converted[name] = convert(value, self._schema.get(name))
            except ValueRuleError as error:
                raise UsageError(f"record {number}: {part} {name!r} can't be written", str(error), error.hint) from None
        return converted

    def _remember(self, parts: Mapping[str, Mapping[str, Feature | None]], number: int) -> None:
        """Hold the kinds of a record against those of the records before, then keep them."""
        kinds: dict[tuple[str, str], tuple[Kind, int]] = {}
        for part, features in parts.items():
            for name, feature in features.items():
                if feature is not None:
                    kind = KINDS[type(feature)]
                    before, since = kinds[part, name] = self._seen.get((part, name), (kind, number))
                    if kind != before:
                        raise _changed(part, name, number, kind, since, before)
        self._seen.update(kinds)


def _serialized(record: object) -> bytes | None:
    """The bytes of a record that is encoded already; None if it isn't."""
    serialize = getattr(record, "SerializeToString", None)
    data = serialize() if callable(serialize) else record
    return bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else None


def _parts(data: bytes, number: int) -> dict[str, Mapping[str, Feature | None]]:
    """The features of a message, and the first step of each of its feature lists.

    Raises:
        UsageError: the bytes are no such message: an image's own, for instance.
    """
    try:
        fields = parse_fields(memoryview(data), 0, len(data))
        if any(field not in (1, 2) or wire != 2 for field, wire, _, _ in fields):
            raise ExampleError("it has fields that no Example has")
        context, feature_lists = parse_sequence_example(data)
    except ExampleError as error:
        raise UsageError(
            f"record {number} is of bytes that are not a serialized tf.train.Example: {error}",
            "expected those of an Example or a SequenceExample",
            "to write other bytes, put them in a dictionary: {'image': data}",
        ) from None
    first_steps = {name: next(iter(steps), None) for name, steps in feature_lists.items()}
    return {"feature": context, "feature list": first_steps}


def _changed(part: str, name: str, number: int, kind: Kind, since: int, before: Kind) -> UsageError:
    return UsageError(
        f"record {number}: {part} {name!r} is of kind {kind}",
        f"in record {since} it is of kind {before}: expected the same in all records",
        "" if "bytes" in (kind, before) else f"schema={{{name!r}: 'float'}} makes it float everywhere",
    )
