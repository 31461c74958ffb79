"""The Example codec against TensorFlow's own protobuf."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest
import tf_fixture
from hypothesis import HealthCheck, given, settings
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
    parse_example,
    varint,
)

tf = tf_fixture.tf
checked = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# No name begins with another one: there protobuf's implementations don't agree on the order.
names = st.text(max_size=8).map(lambda text: text.replace("$", "") + "$")
byte_lists = st.lists(st.binary(max_size=200), max_size=4).map(lambda values: BytesList(tuple(values)))
float_lists = st.lists(st.floats(width=32), max_size=5).map(lambda values: FloatList(tuple(values)))
int_lists = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5).map(lambda values: Int64List(tuple(values)))
feature_maps = st.dictionaries(names, byte_lists | float_lists | int_lists, max_size=6)


def _to_tensorflow(tf: Any, features: dict[str, Feature]) -> Any:
    converted = {}
    for name, feature in features.items():
        match feature:
            case BytesList(values):
                converted[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(v) for v in values]))
            case FloatList(values):
                converted[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
            case Int64List(values):
                converted[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Example(features=tf.train.Features(feature=converted))


def _comparable(features: dict[str, Feature]) -> dict[str, tuple[str, list[bytes] | list[int]]]:
    """Kind and values by name; floats by their bits, so that NaN equals itself."""
    result: dict[str, tuple[str, list[bytes] | list[int]]] = {}
    for name, feature in features.items():
        match feature:
            case BytesList(values):
                result[name] = "bytes_list", [bytes(value) for value in values]
            case FloatList(values):
                result[name] = "float_list", [struct.pack("<f", value) for value in values]
            case Int64List(values):
                result[name] = "int64_list", list(values)
    return result


def _comparable_tensorflow(example: Any) -> dict[str, tuple[str, list[bytes] | list[int]]]:
    result: dict[str, tuple[str, list[bytes] | list[int]]] = {}
    for name, feature in example.features.feature.items():
        kind = feature.WhichOneof("kind")
        if kind == "float_list":
            result[name] = kind, [struct.pack("<f", value) for value in feature.float_list.value]
        elif kind is not None:
            result[name] = kind, list(getattr(feature, kind).value)
    return result


@checked
@given(feature_maps)
def test_encoding_is_tensorflows(tf: Any, features: dict[str, Feature]) -> None:
    """Any features encode to the very bytes of SerializeToString(deterministic=True)."""
    assert encode_example(features) == _to_tensorflow(tf, features).SerializeToString(deterministic=True)


@checked
@given(feature_maps)
def test_parsing_undoes_encoding(features: dict[str, Feature]) -> None:
    """What was encoded is parsed back, empty lists and NaN included."""
    assert _comparable(parse_example(encode_example(features))) == _comparable(features)


@checked
@given(st.binary(max_size=300))
def test_random_bytes_raise_nothing_but_example_error(data: bytes) -> None:
    """Bytes of any kind are parsed or refused, with one kind of error."""
    with contextlib.suppress(ExampleError):
        parse_example(data)


# Messages with the right skeleton and anything inside: repeated fields, several kinds, unknown fields, cut lists.
scalars = st.builds(
    lambda field, value: varint(field << 3) + varint(value), st.integers(1, 3), st.integers(0, 2**64 - 1)
)
fixed = st.builds(
    lambda field, value: varint(field << 3 | 5) + value, st.integers(1, 3), st.binary(min_size=4, max_size=4)
)
lists = st.lists(
    scalars | fixed | st.builds(delimited, st.sampled_from([1, 1, 1, 2]), st.binary(max_size=12)), max_size=4
).map(b"".join)
kinds = st.lists(st.builds(delimited, st.sampled_from([1, 2, 2, 3, 3, 4]), lists), max_size=3).map(b"".join)
keys = st.builds(delimited, st.just(1), st.sampled_from([b"a", b"b", b"", b"\xff"]))
entries = st.lists(keys | st.builds(delimited, st.just(2), kinds), max_size=4).map(b"".join)
maps = st.lists(st.builds(delimited, st.sampled_from([1, 1, 1, 2]), entries), max_size=4).map(b"".join)
wire_messages = st.lists(st.builds(delimited, st.just(1), maps), max_size=3).map(b"".join)


@st.composite
def damaged_examples(draw: st.DrawFn) -> bytes:
    """A good Example with some bytes replaced, or cut."""
    data = bytearray(encode_example(draw(feature_maps)))
    for _ in range(draw(st.integers(1, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@settings(checked, max_examples=300)
@given(wire_messages)
def test_odd_but_well_formed_bytes_mean_what_they_mean_to_tensorflow(tf: Any, data: bytes) -> None:
    """Repeated, merged, replaced and unknown fields, as other writers may leave them, are read as TensorFlow does."""
    from google.protobuf.message import DecodeError

    try:
        theirs = tf.train.Example.FromString(data)
    except DecodeError:
        return
    assert _comparable(parse_example(data)) == _comparable_tensorflow(theirs)


@settings(checked, max_examples=200)
@given(damaged_examples())
def test_damaged_bytes_never_mean_something_else(tf: Any, data: bytes) -> None:
    """Damaged bytes that both TensorFlow and this parser take have the same meaning to both."""
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    try:
        ours = parse_example(data)
        theirs = tf.train.Example.FromString(data)
    except (ExampleError, DecodeError):
        return
    if any(unknown.field_number == 1 for unknown in UnknownFieldSet(theirs.features)):
        return  # an entry with an unknown field, which upb alone sets aside as a whole: C++ keeps the rest of it
    assert _comparable(ours) == _comparable_tensorflow(theirs)


def test_unpacked_lists_are_taken() -> None:
    """Floats and integers one by one, as old writers have them, are lists all the same; a mixture too."""
    floats = b"".join(varint(1 << 3 | 5) + struct.pack("<f", value) for value in (0.5, -2.0))
    floats += delimited(1, struct.pack("<f", 3.0))
    integers = b"".join(varint(1 << 3) + varint(value) for value in (1, -1, 1 << 40)) + delimited(1, b"\x07\x08")
    entries = delimited(1, delimited(1, b"f") + delimited(2, delimited(2, floats)))
    entries += delimited(1, delimited(1, b"i") + delimited(2, delimited(3, integers)))
    assert parse_example(delimited(1, entries)) == {
        "f": FloatList((0.5, -2.0, 3.0)),
        "i": Int64List((1, -1, 1 << 40, 7, 8)),
    }


_ONE, _TWO = delimited(1, delimited(1, b"one")), delimited(1, delimited(1, b"two"))  # bytes lists in a Feature
_FLOATS = [delimited(2, delimited(1, struct.pack("<f", value))) for value in (1.0, 2.0)]
_INTEGERS = [delimited(3, delimited(1, varint(value))) for value in (1, 2)]


@pytest.mark.parametrize(
    ("pieces", "feature"),
    [
        ([_ONE + _TWO], BytesList((b"one", b"two"))),
        ([_ONE, _TWO], BytesList((b"one", b"two"))),
        (_FLOATS, FloatList((1.0, 2.0))),
        ([b"".join(_INTEGERS)], Int64List((1, 2))),
        ([_ONE, *_INTEGERS], Int64List((1, 2))),
        ([_ONE, _INTEGERS[0], _TWO], BytesList((b"two",))),
        ([_ONE, b""], BytesList((b"one",))),
    ],
)
def test_a_feature_in_pieces_is_one_feature(tf: Any, pieces: list[bytes], feature: Feature) -> None:
    """Lists of one kind are joined, of several kinds the last one counts, as TensorFlow has it."""
    entry = delimited(1, b"a") + b"".join(delimited(2, piece) for piece in pieces)
    data = delimited(1, delimited(1, entry))
    assert _comparable(parse_example(data)) == _comparable({"a": feature})
    assert _comparable_tensorflow(tf.train.Example.FromString(data)) == _comparable({"a": feature})


def test_a_later_entry_without_a_value_takes_a_feature_away() -> None:
    """The last entry of a name counts, even if it sets nothing."""
    first = encode_entry("a", Int64List((1,)))
    assert parse_example(delimited(1, first + delimited(1, delimited(1, b"a")))) == {}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a\x05abc", "past the end"),
        (b"\x0a\x01", "past the end"),
        (b"\x0a", "does not end"),
        (b"\xff" * 12, "does not end"),
        (b"\x0b\x0c", "wire type 3"),
        (b"\x02\x00", "number 0"),
        (delimited(1, delimited(1, delimited(1, b"\xff\xfe"))), "not UTF-8"),
        (delimited(1, delimited(1, delimited(2, delimited(2, delimited(1, b"abc"))))), "multiple of 4"),
    ],
)
def test_broken_bytes_are_refused_with_a_reason(data: bytes, reason: str) -> None:
    """The error says what is wrong."""
    with pytest.raises(ExampleError, match=reason):
        parse_example(data)


# Where a varint becomes one byte longer, written by hand from the specification: protobuf.dev, "Base 128 Varints".
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
    """The last value of each length and the first of the next one are written and read as the specification has it."""
    encoded = bytes.fromhex(VARINTS[value])
    assert varint(value) == encoded
    packed = delimited(1, delimited(1, delimited(1, b"i") + delimited(2, delimited(3, delimited(1, encoded)))))
    assert encode_example({"i": Int64List((value,))}) == packed
    assert parse_example(packed) == {"i": Int64List((value,))}


@pytest.mark.parametrize("past", range(-16, 1))
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths_at_the_ends_of_their_varints(tf: Any, length: int, past: int) -> None:
    """Lengths of a value and of all that holds it, on both sides of where a varint becomes longer, are protobuf's."""
    value = bytes(length + past)
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    example = tf.train.Example(features=tf.train.Features(feature={"a": feature}))
    expected = example.SerializeToString(deterministic=True)
    assert encode_example({"a": BytesList((value,))}) == expected
    assert parse_example(expected) == {"a": BytesList((value,))}
    assert SplitEntry("a").head(len(value)) + value == encode_entry("a", BytesList((value,)))


@pytest.mark.parametrize("count", [0x7F // 4, 0x7F // 4 + 1, 0x3FFF // 4, 0x3FFF // 4 + 1])
@pytest.mark.parametrize("fewer", range(3))
def test_a_split_list_of_floats_is_the_entry_cut_before_its_values(count: int, fewer: int) -> None:
    """The same for a list of floats, where the lengths of the value and of the lists round it change theirs."""
    feature = FloatList(tuple(range(count - fewer)))
    packed = struct.pack(f"<{count - fewer}f", *feature.values)
    assert SplitEntry("a", b"\x12").head(len(packed)) + packed == encode_entry("a", feature)


def test_a_varint_of_ten_bytes_is_the_longest() -> None:
    """Ten bytes are read, what stands above 64 bits is cut off; an eleventh byte is refused."""
    ten, eleven = b"\xff" * 9 + b"\x7f", b"\x80" * 10 + b"\x01"

    def parsed(number: bytes) -> dict[str, Feature]:
        return parse_example(delimited(1, delimited(1, delimited(2, delimited(3, b"\x08" + number)))))

    assert parsed(ten) == {"": Int64List((-1,))}
    with pytest.raises(ExampleError, match="does not end"):
        parsed(eleven)


@given(st.integers(0, 2**64 - 1))
def test_varints_are_shortest(value: int) -> None:
    """A varint has as many bytes as its value has groups of seven bits, and reads back."""
    encoded = varint(value)
    assert len(encoded) == max(1, (value.bit_length() + 6) // 7)
    assert sum((byte & 0x7F) << 7 * i for i, byte in enumerate(encoded)) == value


@given(names, st.integers(0, 40_000))
def test_a_split_entry_is_the_entry_cut_before_its_value(name: str, length: int) -> None:
    """Head and value together are the whole entry."""
    value = bytes(length)
    assert SplitEntry(name).head(length) + value == encode_entry(name, BytesList((value,)))


def test_values_are_views_and_not_copies() -> None:
    """A parsed image shares the memory of the record: verifying 140 GB must not copy them."""
    record = bytearray(encode_example({"a": BytesList((b"xyz" + bytes(10_000),))}))
    feature = parse_example(memoryview(record))["a"]
    assert isinstance(feature, BytesList)
    record[record.index(b"xyz")] = ord("X")
    assert bytes(feature.values[0][:3]) == b"Xyz"
