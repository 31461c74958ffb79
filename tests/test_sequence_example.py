"""The SequenceExample codec against TensorFlow's own protobuf."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import protobuf_oracle
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
    delimited,
    encode_example,
    encode_sequence_example,
    has_feature_lists,
    parse_example,
    parse_sequence_example,
    varint,
)

tf = tf_fixture.tf
checked = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

Lists = dict[str, tuple[Feature | None, ...]]

# No name begins with another one: there protobuf's implementations don't agree on the order.
names = st.text(max_size=6).map(lambda text: text.replace("$", "") + "$")
features = (
    st.lists(st.binary(max_size=200), max_size=3).map(lambda values: BytesList(tuple(values)))
    | st.lists(st.floats(width=32), max_size=4).map(lambda values: FloatList(tuple(values)))
    | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(lambda values: Int64List(tuple(values)))
    | st.none()
)
contexts = st.dictionaries(names, features, max_size=4)
feature_lists = st.dictionaries(names, st.lists(features, max_size=4).map(tuple), max_size=4)


def _feature(tf: Any, feature: Feature | None) -> Any:
    match feature:
        case BytesList(values):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(value) for value in values]))
        case FloatList(values):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        case Int64List(values):
            return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature()


def _to_tensorflow(tf: Any, context: dict[str, Feature | None], lists: Lists) -> Any:
    train = tf.train
    each = {
        name: train.FeatureList(feature=[_feature(tf, step) for step in steps]) if steps else train.FeatureList()
        for name, steps in lists.items()
    }
    return train.SequenceExample(
        context=train.Features(feature={name: _feature(tf, feature) for name, feature in context.items()}),
        feature_lists=train.FeatureLists(feature_list=each),
    )


Comparable = tuple[str, list[Any]] | None


def _comparable(feature: Feature | None) -> Comparable:
    """Kind and values; floats by their bits, so that NaN equals itself."""
    match feature:
        case BytesList(values):
            return "bytes_list", [bytes(value) for value in values]
        case FloatList(values):
            return "float_list", [struct.pack("<f", value) for value in values]
        case Int64List(values):
            return "int64_list", list(values)
    return None


def _comparable_tensorflow(feature: Any) -> Comparable:
    kind = feature.WhichOneof("kind")
    if kind is None:
        return None
    values = list(getattr(feature, kind).value)
    return kind, [struct.pack("<f", value) for value in values] if kind == "float_list" else values


def _ours(data: bytes) -> tuple[dict[str, Comparable], dict[str, list[Comparable]]]:
    context, lists = parse_sequence_example(data)
    return (
        {name: _comparable(feature) for name, feature in context.items()},
        {name: [_comparable(step) for step in steps] for name, steps in lists.items()},
    )


def _theirs(tf: Any, data: bytes) -> tuple[dict[str, Comparable], dict[str, list[Comparable]]]:
    from google.protobuf.unknown_fields import UnknownFieldSet

    message = tf.train.SequenceExample.FromString(data)
    # An entry with an unknown field is set aside as a whole by upb, and by nothing else.
    parts = (message.context, message.feature_lists)
    assume(not any(unknown.field_number == 1 for part in parts for unknown in UnknownFieldSet(part)))
    return (
        {name: _comparable_tensorflow(feature) for name, feature in message.context.feature.items()},
        {
            name: [_comparable_tensorflow(step) for step in steps.feature]
            for name, steps in message.feature_lists.feature_list.items()
        },
    )


@checked
@given(contexts, feature_lists)
def test_encoding_is_tensorflows(tf: Any, context: dict[str, Feature | None], lists: Lists) -> None:
    """Any context and feature lists encode to the very bytes of SerializeToString(deterministic=True)."""
    message = _to_tensorflow(tf, context, lists)
    assert encode_sequence_example(context, lists) == message.SerializeToString(deterministic=True)


@pytest.mark.parametrize("length", [0x7F, 0x80, 0x3FFF, 0x4000])
@pytest.mark.parametrize("past", range(-12, 1))
def test_lengths_at_the_ends_of_their_varints(tf: Any, length: int, past: int) -> None:
    """A step, a list and a context whose lengths are the last or first of a varint's length are as protobuf's."""
    feature = BytesList((bytes(length + past),))
    context: dict[str, Feature | None] = {"c": feature}
    lists: Lists = {"l": (feature, None), "m": (Int64List((length,)),)}
    expected = _to_tensorflow(tf, context, lists).SerializeToString(deterministic=True)
    assert encode_sequence_example(context, lists) == expected
    assert parse_sequence_example(expected) == (context, lists)


@pytest.mark.parametrize("steps", [0x7F // 2, 0x7F // 2 + 1, 0x3FFF // 2, 0x3FFF // 2 + 1])
def test_as_many_empty_steps_as_fill_a_varint(tf: Any, steps: int) -> None:
    """A list of steps that are not set, two bytes each, is as long as protobuf's."""
    lists: Lists = {"l": (None,) * steps}
    expected = _to_tensorflow(tf, {}, lists).SerializeToString(deterministic=True)
    assert encode_sequence_example({}, lists) == expected
    assert parse_sequence_example(expected) == ({}, lists)


@pytest.mark.tensorflow  # its messages, by another implementation of protobuf
def test_names_that_begin_with_another_are_sorted_as_in_cpp() -> None:
    """The shorter name comes first, as in protobuf's C++ and pure Python, in both parts."""
    one = Int64List((1,))
    context: dict[str, Feature | None] = {"Movie Ratings": one, "Movie": one, "Mo": one, "": one, "é": one, "e": one}
    lists: Lists = dict.fromkeys(context, (one, None))
    plain = ("int64_list", [1])
    expected = protobuf_oracle.serialize(
        [
            (dict.fromkeys(context, plain), {name: [plain, None] for name in lists}),
            (dict.fromkeys(context, plain), None),
        ]
    )
    assert [encode_sequence_example(context, lists), encode_example(context)] == expected


@checked
@given(contexts, feature_lists)
def test_parsing_undoes_encoding(context: dict[str, Feature | None], lists: Lists) -> None:
    """What was encoded is parsed back: empty lists, unset features and NaN included."""
    assert _ours(encode_sequence_example(context, lists)) == (
        {name: _comparable(feature) for name, feature in context.items()},
        {name: [_comparable(step) for step in steps] for name, steps in lists.items()},
    )


@checked
@given(contexts, feature_lists)
def test_an_examples_parser_sees_the_context(context: dict[str, Feature | None], lists: Lists) -> None:
    """That is how a sequence could pass for an Example; its second part tells them apart, be it empty."""
    data = encode_sequence_example(context, lists)
    seen = {name: _comparable(feature) for name, feature in parse_example(data).items()}
    assert seen == {name: _comparable(feature) for name, feature in context.items() if feature is not None}
    assert has_feature_lists(data)
    assert not has_feature_lists(encode_example(context))


@checked
@given(st.binary(max_size=300))
def test_random_bytes_raise_nothing_but_example_error(data: bytes) -> None:
    """Bytes of any kind are parsed or refused, with one kind of error."""
    with contextlib.suppress(ExampleError):
        parse_sequence_example(data)
    with contextlib.suppress(ExampleError):
        has_feature_lists(data)


# Messages with the right skeleton and anything inside: repeated fields, several kinds, unknown fields, merged entries.
values = st.builds(lambda value: varint(1 << 3) + varint(value), st.integers(0, 2**64 - 1))
value_lists = st.lists(values | st.builds(delimited, st.just(1), st.binary(max_size=8)), max_size=3).map(b"".join)
wire_features = st.lists(st.builds(delimited, st.sampled_from([1, 2, 3, 3, 4]), value_lists), max_size=3).map(b"".join)
wire_steps = st.lists(st.builds(delimited, st.sampled_from([1, 1, 1, 2]), wire_features) | values, max_size=4).map(
    b"".join
)
keys = st.builds(delimited, st.just(1), st.sampled_from([b"a", b"b", b"", b"\xff"]))
entries = st.lists(keys | st.builds(delimited, st.just(2), wire_steps), max_size=4).map(b"".join)
maps = st.lists(st.builds(delimited, st.sampled_from([1, 1, 1, 2]), entries), max_size=4).map(b"".join)
wire_messages = st.lists(st.builds(delimited, st.sampled_from([1, 2, 2, 3]), maps) | values, max_size=4).map(b"".join)


@settings(checked, max_examples=400)
@given(wire_messages)
def test_odd_but_well_formed_bytes_mean_what_they_mean_to_tensorflow(tf: Any, data: bytes) -> None:
    """Repeated, merged, replaced and unknown fields, as other writers may leave them, are read as TensorFlow does."""
    from google.protobuf.message import DecodeError

    try:
        theirs = _theirs(tf, data)
    except DecodeError:
        return
    assert _ours(data) == theirs


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good SequenceExample with some bytes replaced, or cut."""
    data = bytearray(encode_sequence_example(draw(contexts), draw(feature_lists)))
    for _ in range(draw(st.integers(1, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@settings(checked, max_examples=200)
@given(damaged())
def test_damaged_bytes_never_mean_something_else(tf: Any, data: bytes) -> None:
    """Damaged bytes that both TensorFlow and this parser take have the same meaning to both."""
    from google.protobuf.message import DecodeError

    try:
        ours, theirs = _ours(data), _theirs(tf, data)
    except (ExampleError, DecodeError):
        return
    assert ours == theirs


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x12\x05abc", "past the end"),
        (b"\x12", "does not end"),
        (delimited(2, delimited(1, delimited(1, b"\xff\xfe"))), "name of a feature list is not UTF-8"),
        (delimited(2, delimited(1, delimited(2, b"\x0a\x02a"))), "past the end"),
    ],
)
def test_broken_bytes_are_refused_with_a_reason(data: bytes, reason: str) -> None:
    """The error says what is wrong."""
    with pytest.raises(ExampleError, match=reason):
        parse_sequence_example(data)


def test_feature_lists_are_of_their_own_wire_type() -> None:
    """A number under the field of the feature lists is a field that nobody knows, and makes no SequenceExample."""
    stranger = varint(2 << 3) + varint(1)
    assert not has_feature_lists(stranger)
    assert parse_sequence_example(stranger + encode_example({"a": Int64List((1,))})) == ({"a": Int64List((1,))}, {})


def test_a_step_is_of_its_own_field() -> None:
    """What a later version may put beside the steps of a list is no step."""
    step, stranger = (delimited(field, delimited(3, delimited(1, varint(7)))) for field in (1, 2))
    entry = delimited(1, b"a") + delimited(2, step + stranger)
    assert parse_sequence_example(delimited(2, delimited(1, entry))) == ({}, {"a": (Int64List((7,)),)})


def test_a_list_in_pieces_is_one_list() -> None:
    """The steps of a list that is set twice in one entry are joined; of two entries of one name the last one counts."""
    step = [delimited(1, delimited(3, delimited(1, varint(number)))) for number in (1, 2, 3)]
    joined = delimited(1, delimited(1, b"a") + delimited(2, step[0]) + delimited(2, step[1]))
    replacing = delimited(1, delimited(1, b"a") + delimited(2, step[2]))
    assert parse_sequence_example(delimited(2, joined)) == ({}, {"a": (Int64List((1,)), Int64List((2,)))})
    assert parse_sequence_example(delimited(2, joined) + delimited(2, replacing)) == ({}, {"a": (Int64List((3,)),)})
