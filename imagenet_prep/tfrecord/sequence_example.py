"""Context and feature lists <-> tf.train.SequenceExample bytes, without TensorFlow.

Canonical as example.py has it: what ``SerializeToString(deterministic=True)`` gives, names in byte order. A context is
encoded as an Example's features are, under the same field number: an Example's parser reads it, and does not see the
rest. Messages: tensorflow/core/example/example.proto, feature.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from imagenet_prep.tfrecord.example import (
    Buffer,
    Feature,
    delimited,
    encode_example,
    encode_feature,
    parse_feature,
    parse_features,
    parse_fields,
    parse_map,
)

_FEATURE_LISTS = 2  # the field that an Example has not

Steps = Sequence[Feature | None]
"""A feature list: one feature a step, None where it is not set."""


def encode_sequence_example(context: Mapping[str, Feature | None], feature_lists: Mapping[str, Steps]) -> bytes:
    """A whole SequenceExample; both of its parts are there even if they are empty."""
    entries = b""
    for name in sorted(feature_lists, key=str.encode):
        features = b"".join(delimited(1, encode_feature(step)) for step in feature_lists[name])
        entries += delimited(1, delimited(1, name.encode()) + delimited(2, features))
    return encode_example(context) + delimited(_FEATURE_LISTS, entries)


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
    for name, pieces in parse_map(view, _FEATURE_LISTS, "feature list").items():  # protobuf joins pieces
        parts = [part for piece in pieces for part in parse_fields(view, *piece)]
        steps = [(a, b) for inner, wire, a, b in parts if inner == 1 and wire == 2]
        feature_lists[name] = tuple(parse_feature(view, *step) for step in steps)
    return parse_features(data), feature_lists
