"""Context and feature lists <-> tf.train.SequenceExample bytes, without TensorFlow.

Canonical as example.py has it: what ``SerializeToString(deterministic=True)`` gives, names in byte order. A context is
encoded as an Example's features are, under the same field number: an Example's parser reads it, and does not see the
rest. Messages: tensorflow/core/example/example.proto, feature.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from imagenet_prep.tfrecord.example import (
    Buffer,
    ExampleError,
    Feature,
    delimited,
    encode_example,
    encode_feature,
    parse_feature,
    parse_features,
    parse_fields,
)

_FEATURE_LISTS = 2  # the field that an Example has not

Steps = Sequence[Feature | None]
"""A feature list: one feature a step, None where it is not set."""


def encode_sequence_example(context: Mapping[str, Feature | None], feature_lists: Mapping[str, Steps]) -> bytes:
    """A whole SequenceExample; both of its parts are there even if they are empty."""
    entries = b"".join(_encode_entry(name, feature_lists[name]) for name in sorted(feature_lists, key=str.encode))
    return encode_example(context) + delimited(_FEATURE_LISTS, entries)


def _encode_entry(name: str, steps: Steps) -> bytes:
    features = b"".join(delimited(1, encode_feature(step)) for step in steps)
    return delimited(1, delimited(1, name.encode()) + delimited(2, features))


def has_feature_lists(data: Buffer) -> bool:
    """Whether a record says that it is a SequenceExample: to an Example's parser it is one with nothing but context.

    Raises:
        ExampleError: the bytes are neither.
    """
    view = memoryview(data)
    return any(field == _FEATURE_LISTS and wire == 2 for field, wire, _, _ in parse_fields(view, 0, len(view)))


def parse_sequence_example(data: Buffer) -> tuple[dict[str, Feature | None], dict[str, tuple[Feature | None, ...]]]:
    """The context and the feature lists of a SequenceExample; byte values are memoryviews into ``data``.

    Raises:
        ExampleError: the bytes are no well-formed SequenceExample.
    """
    view = memoryview(data)
    feature_lists: dict[str, tuple[Feature | None, ...]] = {}
    for field, wire, start, stop in parse_fields(view, 0, len(view)):
        if field != _FEATURE_LISTS or wire != 2:
            continue
        for inner, inner_wire, entry_start, entry_stop in parse_fields(view, start, stop):
            if inner == 1 and inner_wire == 2:
                name, steps = _parse_entry(view, entry_start, entry_stop)
                feature_lists.pop(name, None)  # the last entry of a name counts
                feature_lists[name] = steps
    return parse_features(data), feature_lists


def _parse_entry(view: memoryview, start: int, stop: int) -> tuple[str, tuple[Feature | None, ...]]:
    name = ""
    steps: list[Feature | None] = []  # of every piece of the list: protobuf joins them
    for field, wire, value_start, value_stop in parse_fields(view, start, stop):
        if field == 1 and wire == 2:
            try:
                name = str(view[value_start:value_stop], "utf-8")
            except UnicodeDecodeError:
                raise ExampleError("the name of a feature list is not UTF-8") from None
        elif field == 2 and wire == 2:
            pieces = parse_fields(view, value_start, value_stop)
            steps += [parse_feature(view, a, b) for inner, inner_wire, a, b in pieces if inner == 1 and inner_wire == 2]
    return name, tuple(steps)
