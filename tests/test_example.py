"""The codec of Example and SequenceExample against TensorFlow's own protobuf."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest
import tf_fixture
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from imagenet_prep.tfrecord.example import (
    BytesList,
    ExampleError,
    Feature,
    FloatList,
    Int64List,
    SplitEntry,
    delimited,
    encode_entry,
    encode_example,
    encode_sequence_example,
    has_feature_lists,
    parse_example,
    parse_features,
    parse_sequence_example,
    varint,
)

tf = tf_fixture.tf

NO_EXAMPLE = r"^it is not a tf\.train\.Example$"


checked = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


Lists = dict[str, tuple[Feature | None, ...]]


# No name begins with another one: there protobuf's implementations don't agree on the order.
names = st.text(max_size=6).map(lambda text: text.replace("$", "") + "$")


features = (
    st.lists(st.binary(max_size=200), max_size=3).map(lambda values: BytesList(tuple(values)))
    | st.lists(st.floats(width=32), max_size=4).map(lambda values: FloatList(tuple(values)))
    | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(
        lambda values: Int64List(tuple(values))
    )
    | st.none()
)


contexts = st.dictionaries(names, features, max_size=4)


feature_lists = st.dictionaries(names, st.lists(features, max_size=4).map(tuple), max_size=4)


def _feature(tf: Any, feature: Feature | None) -> Any:
    match feature:
        case BytesList(values):
            return tf.train.Feature(
                bytes_list=tf.train.BytesList(value=[bytes(value) for value in values])
            )
        case FloatList(values):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        case Int64List(values):
            return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature()


def _to_tensorflow(tf: Any, context: dict[str, Feature | None], lists: Lists) -> Any:
    train = tf.train
    each = {
        name: train.FeatureList(feature=[_feature(tf, step) for step in steps])
        if steps
        else train.FeatureList()
        for name, steps in lists.items()
    }
    return train.SequenceExample(
        context=train.Features(
            feature={name: _feature(tf, feature) for name, feature in context.items()}
        ),
        feature_lists=train.FeatureLists(feature_list=each),
    )


def _written(features: Mapping[str, Feature | None]) -> dict[str, bytes]:
    """Each feature as it is encoded, so that NaN equals itself."""
    return {name: encode_entry("x", feature) for name, feature in features.items()}


def _written_by_tensorflow(features: Mapping[str, Any]) -> dict[str, bytes]:
    """The same of messages; what they hold and don't know goes."""
    for each in features.values():
        each.DiscardUnknownFields()
    return {
        name: delimited(1, delimited(1, b"x") + delimited(2, each.SerializeToString()))
        for name, each in features.items()
    }


@checked
@given(contexts, feature_lists)
def test_encoding_is_tensorflows(tf: Any, context: dict[str, Feature | None], lists: Lists) -> None:
    """Any context and feature lists encode to the very bytes of
    SerializeToString(deterministic=True).
    """
    message = _to_tensorflow(tf, context, lists)
    assert encode_sequence_example(context, lists) == message.SerializeToString(deterministic=True)


SORTED = (
    "0a590a090a0012051a030a01010a0b0a024d6f12051a030a01010a0e0a054d6f76696512051a030a01010a160a0d"
)
SORTED += (
    "4d6f76696520526174696e677312051a030a01010a0a0a016512051a030a01010a0b0a02c3a912051a030a0101"
)
"""An Example of protobuf 6 in pure Python, deterministic: it sorts names as C++ does."""
SORTED_LISTS = "407552fe591499088dee6a0bc888e463ee855c31c44b4730f72e98951ed1666e"
"""SHA-256 of its SequenceExample of the same names."""


def test_names_that_begin_with_another_are_sorted_as_in_cpp() -> None:
    """The shorter name comes first, as in protobuf's C++ and pure Python, in both parts."""
    one = Int64List((1,))
    context: dict[str, Feature | None] = {
        "Movie Ratings": one,
        "Movie": one,
        "Mo": one,
        "": one,
        "é": one,
        "e": one,
    }
    assert encode_example(context).hex() == SORTED
    lists: Lists = dict.fromkeys(context, (one, None))
    assert sha256(encode_sequence_example(context, lists)).hexdigest() == SORTED_LISTS


@checked
@given(contexts, feature_lists)
def test_an_examples_parser_sees_the_context(
    context: dict[str, Feature | None], lists: Lists
) -> None:
    """That is how a sequence could pass for an Example;
    its second part tells them apart, be it empty.
    """
    data = encode_sequence_example(context, lists)
    is_set = {name: feature for name, feature in context.items() if feature is not None}
    assert _written(parse_example(data)) == _written(is_set)
    assert has_feature_lists(data)
    assert not has_feature_lists(encode_example(context))


# Messages with the right skeleton and anything inside: repeated fields, several kinds, unknown
# fields, cut lists.
scalars = st.builds(
    lambda field, value: varint(field << 3) + varint(value),
    st.integers(1, 3),
    st.integers(0, 2**64 - 1),
)


fixed = st.builds(
    lambda field, value: varint(field << 3 | 5) + value,
    st.integers(1, 3),
    st.binary(min_size=4, max_size=4),
)


lists = st.lists(
    scalars | fixed | st.builds(delimited, st.sampled_from([1, 1, 1, 2]), st.binary(max_size=12)),
    max_size=4,
).map(b"".join)


kinds = st.lists(st.builds(delimited, st.sampled_from([1, 2, 2, 3, 3, 4]), lists), max_size=3).map(
    b"".join
)


keys = st.builds(delimited, st.just(1), st.sampled_from([b"a", b"b", b"", b"\xff"]))


entries = st.lists(keys | st.builds(delimited, st.just(2), kinds), max_size=4).map(b"".join)


maps = st.lists(st.builds(delimited, st.sampled_from([1, 1, 1, 2]), entries), max_size=4).map(
    b"".join
)


wire_messages = st.lists(st.builds(delimited, st.just(1), maps), max_size=3).map(b"".join)


# The same for SequenceExamples.
steps = st.lists(
    st.builds(delimited, st.sampled_from([1, 1, 1, 2]), kinds) | scalars, max_size=4
).map(b"".join)
step_entries = st.lists(keys | st.builds(delimited, st.just(2), steps), max_size=4).map(b"".join)
step_maps = st.lists(
    st.builds(delimited, st.sampled_from([1, 1, 1, 2]), step_entries), max_size=4
).map(b"".join)
wire_sequences = st.lists(
    st.builds(delimited, st.sampled_from([1, 2, 2, 3]), step_maps) | scalars, max_size=4
).map(b"".join)


@settings(checked, max_examples=200)
@given(wire_messages, wire_sequences)
def test_odd_but_well_formed_bytes_mean_what_they_mean_to_tensorflow(
    tf: Any, example: bytes, sequence: bytes
) -> None:
    """Repeated, merged, replaced and unknown fields, as other writers may leave them,
    are read as TensorFlow does.
    """
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    with contextlib.suppress(DecodeError):
        theirs = tf.train.Example.FromString(example).features.feature
        assert _written(parse_features(example)) == _written_by_tensorflow(theirs)
    with contextlib.suppress(DecodeError):
        message = tf.train.SequenceExample.FromString(sequence)
        # An entry with an unknown field is set aside as a whole by upb, and by nothing else.
        parts = (message.context, message.feature_lists)
        assume(
            not any(
                unknown.field_number == 1 for part in parts for unknown in UnknownFieldSet(part)
            )
        )
        context, lists = parse_sequence_example(sequence)
        assert _written(context) == _written_by_tensorflow(message.context.feature)
        steps = {
            name: dict(enumerate(each.feature))
            for name, each in message.feature_lists.feature_list.items()
        }
        assert {name: _written(dict(enumerate(each))) for name, each in lists.items()} == {
            name: _written_by_tensorflow(each) for name, each in steps.items()
        }


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x0a\x05abc", id="a field past the end"),
        pytest.param(b"\x0a\x01", id="a field without its byte"),
        pytest.param(b"\x0a", id="a length is missing"),
        pytest.param(b"\xff" * 12, id="a number of too many bytes"),
        pytest.param(b"\x0b\x0c", id="wire type 3"),
        pytest.param(b"\x02\x00", id="a field of the number 0"),
        pytest.param(delimited(1, delimited(1, delimited(1, b"\xff\xfe"))), id="a name not UTF-8"),
        pytest.param(
            delimited(1, delimited(1, delimited(2, delimited(2, delimited(1, b"abc"))))),
            id="floats of 3 bytes",
        ),
        pytest.param(b"\x12\x05abc", id="feature lists past the end"),
        pytest.param(b"\x12", id="a length of feature lists is missing"),
        pytest.param(
            delimited(2, delimited(1, delimited(1, b"\xff\xfe"))), id="a list's name not UTF-8"
        ),
        pytest.param(
            delimited(2, delimited(1, delimited(2, b"\x0a\x02a"))), id="a step past the end"
        ),
    ],
)
def test_broken_bytes_are_refused(data: bytes) -> None:
    """What an Example's parser refuses, a SequenceExample's does too; the sentence is the same."""
    with pytest.raises(ExampleError, match=NO_EXAMPLE):
        parse_sequence_example(data)


# Where a varint becomes one byte longer, written by hand from the specification: protobuf.dev,
# "Base 128 Varints".
VARINTS = {
    0: "00",
    0x7F: "7f",
    0x80: "8001",
    0x3FFF: "ff7f",
    0x4000: "808001",
    0x1FFFFF: "ffff7f",
    0x200000: "80808001",
    0xFFFFFFF: "ffffff7f",
    0x10000000: "8080808001",
    (1 << 35) - 1: "ffffffff7f",
    1 << 35: "808080808001",
    (1 << 63) - 1: "ffffffffffffffff7f",
    -(1 << 63): "80808080808080808001",
    -1: "ffffffffffffffffff01",
}


LENGTHS = [0x7E, 0x7F, 0x80, 0x81, 0x3FFE, 0x3FFF, 0x4000, 0x4001, 0x1FFFFF, 0x200000]


@pytest.mark.parametrize("value", VARINTS)
def test_varints_at_the_ends_of_their_lengths(value: int) -> None:
    """The last value of each length and the first of the next one are written and read as the
    specification has it.
    """
    encoded = bytes.fromhex(VARINTS[value])
    assert varint(value) == encoded
    packed = delimited(
        1, delimited(1, delimited(1, b"i") + delimited(2, delimited(3, delimited(1, encoded))))
    )
    assert encode_example({"i": Int64List((value,))}) == packed
    assert parse_example(packed) == {"i": Int64List((value,))}


@pytest.mark.parametrize("past", range(-16, 1))
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths_at_the_ends_of_their_varints(tf: Any, length: int, past: int) -> None:
    """Lengths of a value and of all that holds it,
    on both sides of where a varint becomes longer, are protobuf's.
    """
    value = bytes(length + past)
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    example = tf.train.Example(features=tf.train.Features(feature={"a": feature}))
    expected = example.SerializeToString(deterministic=True)
    assert encode_example({"a": BytesList((value,))}) == expected
    assert parse_example(expected) == {"a": BytesList((value,))}
    assert SplitEntry("a").head(len(value)) + value == encode_entry("a", BytesList((value,)))


def test_a_varint_of_ten_bytes_is_the_longest() -> None:
    """Ten bytes are read, what stands above 64 bits is cut off; an eleventh byte is refused."""
    ten, eleven = b"\xff" * 9 + b"\x7f", b"\x80" * 10 + b"\x01"

    def parsed(number: bytes) -> dict[str, Feature]:
        return parse_example(
            delimited(1, delimited(1, delimited(2, delimited(3, b"\x08" + number))))
        )

    assert parsed(ten) == {"": Int64List((-1,))}
    with pytest.raises(ExampleError, match=NO_EXAMPLE):
        parsed(eleven)


def test_values_are_views_and_not_copies() -> None:
    """A parsed image shares the memory of the record: verifying 140 GB must not copy them."""
    record = bytearray(encode_example({"a": BytesList((b"xyz" + bytes(10_000),))}))
    feature = parse_example(memoryview(record))["a"]
    assert isinstance(feature, BytesList)
    record[record.index(b"xyz")] = ord("X")
    assert bytes(feature.values[0][:3]) == b"Xyz"
