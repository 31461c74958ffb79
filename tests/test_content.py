"""What a record says: the same for every encoding of the same values,
another one for any other value.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
import tf_fixture
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep.tfrecord.content import content_digest, content_of, differing_keys, name_in
from imagenet_prep.tfrecord.example import (
    BytesList,
    ExampleError,
    Feature,
    FloatList,
    Int64List,
    delimited,
    encode_entry,
    encode_example,
    encode_sequence_example,
    varint,
)

tf = tf_fixture.tf

NAN, OTHER_NAN = b"\x00\x00\xc0\x7f", b"\x01\x00\xa0\x7f"
LONG_ONE = b"\x81\x80\x80\x80\x00"
"""The number 1 as a varint of five bytes."""


def example(*entries: bytes) -> bytes:
    """An Example of these entries, each with its tag and length, in this order."""
    return delimited(1, b"".join(entries))


def entry(name: str, feature: bytes) -> bytes:
    """The entry of a feature that is already encoded."""
    return delimited(1, delimited(1, name.encode()) + delimited(2, feature))


def fixed(number: float) -> bytes:
    """A float of a list, one by one: field 1 of wire type 5."""
    return b"\x0d" + struct.pack("<f", number)


A, B = encode_entry("a", Int64List((1, -2))), encode_entry("b", BytesList((b"x", b"y" * 300)))
FLOATS = encode_entry("f", FloatList((0.5, 2.0)))
STEPS = {"s": [Int64List((1,)), None], "t": [BytesList((b"x",))]}

SAME = {
    "the order of the map": (example(A, B), example(B, A)),
    "numbers one by one": (
        example(A),
        example(entry("a", delimited(3, b"\x08\x01\x08" + varint(-2)))),
    ),
    "floats one by one": (
        example(FLOATS),
        example(entry("f", delimited(2, fixed(0.5) + fixed(2.0)))),
    ),
    "a longer varint": (
        example(A),
        example(entry("a", delimited(3, delimited(1, LONG_ONE + varint(-2))))),
    ),
    "two messages of features": (example(A, B), example(A) + example(B)),
    "a list in two pieces": (
        example(A),
        example(
            entry("a", delimited(3, delimited(1, b"\x01")) + delimited(3, delimited(1, varint(-2))))
        ),
    ),
    "the last of two entries counts": (
        example(A, B),
        example(encode_entry("a", Int64List((7,))), B, A),
    ),
    "the value before the name": (
        example(A),
        example(
            delimited(
                1,
                delimited(2, delimited(3, delimited(1, b"\x01" + varint(-2)))) + delimited(1, b"a"),
            )
        ),
    ),
    "the order of feature lists": (
        encode_sequence_example({}, STEPS),
        delimited(1, b"")
        + b"".join(encode_sequence_example({}, {name: STEPS[name]})[2:] for name in ("t", "s")),
    ),
}

OTHER: dict[str, tuple[bytes, bytes]] = {
    "another number": (example(A), example(encode_entry("a", Int64List((1, -3))))),
    "the order of values": (example(A), example(encode_entry("a", Int64List((-2, 1))))),
    "a number and a float": (
        example(encode_entry("a", Int64List((1,)))),
        example(encode_entry("a", FloatList((1.0,)))),
    ),
    "empty lists of two kinds": (
        example(encode_entry("a", Int64List(()))),
        example(encode_entry("a", FloatList(()))),
    ),
    "an empty list and none": (
        example(encode_entry("a", Int64List(()))),
        example(encode_entry("a", None)),
    ),
    "a feature that is not set": (example(encode_entry("a", None)), example()),
    "the sign of zero": (
        example(encode_entry("a", FloatList((0.0,)))),
        example(encode_entry("a", FloatList((-0.0,)))),
    ),
    "the bits of NaN": (
        example(entry("a", delimited(2, delimited(1, NAN)))),
        example(entry("a", delimited(2, delimited(1, OTHER_NAN)))),
    ),
    "a later entry of the same name": (
        example(A, B),
        example(A, B, encode_entry("a", Int64List((7,)))),
    ),
    "a later kind of the same feature": (
        example(A),
        example(entry("a", delimited(3, delimited(1, b"\x01")) + delimited(1, delimited(1, b"x")))),
    ),
    "one value and a list of two": (
        example(encode_entry("a", BytesList((b"xy",)))),
        example(encode_entry("a", BytesList((b"x", b"y")))),
    ),
    "a long value": (
        example(encode_entry("a", BytesList((b"x" * 300,)))),
        example(encode_entry("a", BytesList((b"x" * 299 + b"y",)))),
    ),
    "the order of steps": (
        encode_sequence_example({}, STEPS),
        encode_sequence_example({}, {**STEPS, "s": STEPS["s"][::-1]}),
    ),
    "a field that no Example has": (example(A), example(A) + delimited(3, b"x")),
    "a field that no map has": (example(A), example(A, delimited(2, b"x"))),
    "a field that no entry has": (
        example(entry("a", b"")),
        example(delimited(1, delimited(1, b"a") + delimited(2, b"") + delimited(3, b"x"))),
    ),
    "a field that no feature has": (
        example(entry("a", b"")),
        example(entry("a", delimited(4, b"x"))),
    ),
    "a field that no list has": (
        example(entry("a", delimited(3, b""))),
        example(entry("a", delimited(3, delimited(2, b"x")))),
    ),
    "the order of fields of another message": (
        delimited(3, b"x") + delimited(4, b"y"),
        delimited(4, b"y") + delimited(3, b"x"),
    ),
}


def digest(data: bytes) -> int:
    """The digest of what a record says."""
    return content_digest(data, lambda value: value[-8:])


@pytest.mark.parametrize("name", SAME)
def test_another_encoding_says_the_same(name: str) -> None:
    """The contents of two encodings are equal, and so are their digests."""
    first, second = SAME[name]
    assert first != second
    assert content_of(first) == content_of(second)
    assert differing_keys(first, second) == []
    assert digest(first) == digest(second)


@pytest.mark.parametrize("name", OTHER)
def test_another_value_says_something_else(name: str) -> None:
    """The contents of two values differ in one key, and so do their digests."""
    first, second = OTHER[name]
    assert content_of(first) != content_of(second)
    assert len(differing_keys(first, second)) == 1
    assert digest(first) != digest(second)


FEATURES: st.SearchStrategy[dict[str, Feature | None]] = st.dictionaries(
    st.text(max_size=5),
    st.none()
    | st.lists(st.binary(max_size=400), max_size=3).map(lambda values: BytesList(tuple(values)))
    | st.lists(st.floats(width=32, allow_nan=False), max_size=3).map(
        lambda values: FloatList(tuple(values))
    )
    | st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=3).map(
        lambda values: Int64List(tuple(values))
    ),
    max_size=6,
)


@given(FEATURES, st.randoms(use_true_random=False))
def test_any_order_of_any_map_says_the_same(
    features: dict[str, Feature | None], random_order: random.Random
) -> None:
    """However a map is ordered, its content is that of the canonical encoding."""
    entries = [encode_entry(name, feature) for name, feature in features.items()]
    random_order.shuffle(entries)
    assert content_of(example(*entries)) == content_of(encode_example(features))
    assert {name for _, name in content_of(encode_example(features))} == features.keys()


@given(FEATURES, FEATURES)
def test_different_values_of_any_kind_differ(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Two contents are equal exactly if the canonical encodings are."""
    encoded = encode_example(first), encode_example(second)
    assert (content_of(encoded[0]) == content_of(encoded[1])) == (encoded[0] == encoded[1])
    assert bool(differing_keys(*encoded)) == (encoded[0] != encoded[1])


@given(st.binary(max_size=200))
def test_any_bytes_have_a_content_or_are_refused(data: bytes) -> None:
    """Bytes without a content are refused by one kind of error;
    any others are equal to themselves.
    """
    try:
        found = content_of(data)
    except ExampleError:
        return
    assert found == content_of(data)
    assert name_in(memoryview(data)) == name_in(memoryview(data))


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (example(encode_entry("image/filename", BytesList((b"a.jpg",)))), "a.jpg"),
        (example(A, encode_entry("image/filename", BytesList((b"a.jpg",))), B), "a.jpg"),
        (
            example(*(encode_entry("image/filename", BytesList((name,))) for name in (b"a", b"b"))),
            "b",
        ),
        (example(encode_entry("image/filename", BytesList((b"a", b"b")))), ""),
        (example(encode_entry("image/filename", BytesList((b"\xff",)))), ""),
        (example(encode_entry("image/filename", Int64List((1,)))), ""),
        (example(A), ""),
        (b"\x0a\x05no", ""),
    ],
)
def test_the_name_in_a_record(data: bytes, name: str) -> None:
    """It is the one text of image/filename; a record without one has none, whatever else it is."""
    assert name_in(memoryview(data)) == name


def test_a_name_that_is_not_utf_8_is_refused() -> None:
    """No Example has such a name: protobuf refuses it."""
    with pytest.raises(ExampleError, match=r"not a tf\.train\.Example"):
        content_of(example(delimited(1, delimited(1, b"\xff") + delimited(2, b""))))


@pytest.mark.parametrize("name", SAME)
def test_tensorflow_reads_the_same(tf: Any, name: str) -> None:
    """TensorFlow parses both encodings into equal messages,
    and its own serialisation says the same.
    """
    first, second = (tf.train.SequenceExample.FromString(data) for data in SAME[name])
    assert first == second
    assert content_of(first.SerializeToString(deterministic=False)) == content_of(SAME[name][0])
