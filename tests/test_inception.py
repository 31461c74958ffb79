"""The record of 2016: its bytes against TensorFlow's protobuf, its fields through Inception's own parsing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import tf_fixture
from hypothesis import given
from hypothesis import strategies as st
from made_sets import inception_features

from imagenet_prep.model import Box, Item
from imagenet_prep.tfrecord import inception
from imagenet_prep.tfrecord.example import encode_example

tf = tf_fixture.tf

BOXES = {
    "none": (),
    "one": (Box(0.006, 0.262, 0.7545, 0.994),),
    "many": tuple(Box(i / 100, 0.0, (i + 1) / 100, 1.0) for i in range(60)),
}
EDGES = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152]


def _item(boxes: tuple[Box, ...] = (), label: int = 127, name: str = "n02011460_10026.JPEG") -> Item:
    return Item(name, label, "n02011460", "bittern", boxes)


def _record(item: Item, width: int, height: int, encoded: bytes) -> bytes:
    head, tail = inception.record_parts(item, width, height, len(encoded))
    return head + encoded + tail


def _theirs(tf: Any, item: Item, width: int, height: int, encoded: bytes) -> bytes:
    """The record as build_imagenet_data.py's _convert_to_example makes it, serialized by TensorFlow."""

    def integers(*values: int) -> Any:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def floats(*values: float) -> Any:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    def text(value: bytes) -> Any:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    feature = {
        "image/height": integers(height),
        "image/width": integers(width),
        "image/colorspace": text(b"RGB"),
        "image/channels": integers(3),
        "image/class/label": integers(item.label),
        "image/class/synset": text(item.wnid.encode()),
        "image/class/text": text(item.text.encode()),
        "image/object/bbox/xmin": floats(*(box.xmin for box in item.boxes)),
        "image/object/bbox/xmax": floats(*(box.xmax for box in item.boxes)),
        "image/object/bbox/ymin": floats(*(box.ymin for box in item.boxes)),
        "image/object/bbox/ymax": floats(*(box.ymax for box in item.boxes)),
        "image/object/bbox/label": integers(*[item.label] * len(item.boxes)),
        "image/format": text(b"JPEG"),
        "image/filename": text(item.filename.encode()),
        "image/encoded": text(encoded),
    }
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    return bytes(example.SerializeToString(deterministic=True))


@pytest.mark.parametrize("boxes", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("length", EDGES)
def test_record_bytes_are_tensorflows(tf: Any, boxes: tuple[Box, ...], length: int) -> None:
    """With no box, one and many, and images of sizes where a length takes one byte more: equal to the last byte."""
    item, encoded = _item(boxes), b"\xff\xd8" + bytes(length)
    encoded = encoded[:length]
    assert _record(item, 500, 375, encoded) == _theirs(tf, item, 500, 375, encoded)


@pytest.mark.parametrize("size", EDGES[1:6])
def test_sizes_and_labels_at_varint_edges_are_tensorflows(tf: Any, size: int) -> None:
    """Widths, heights and labels where a varint grows by a byte are encoded as TensorFlow does."""
    item = _item(BOXES["one"], label=min(size, 1000))
    assert _record(item, size, size, b"jpeg") == _theirs(tf, item, size, size, b"jpeg")


@given(
    st.integers(1, 1000),
    st.integers(1, 65_535),
    st.integers(1, 65_535),
    st.binary(max_size=400),
    st.lists(st.builds(Box, *[st.floats(0, 1, width=32)] * 4), max_size=4),
)
def test_parts_are_the_features_encoded(label: int, width: int, height: int, encoded: bytes, boxes: list[Box]) -> None:
    """Cut around the image or spelled out as features, a record has the same bytes."""
    item = _item(tuple(boxes), label)
    assert _record(item, width, height, encoded) == encode_example(inception_features(item, width, height, encoded))


def test_no_feature_name_begins_with_another() -> None:
    """Their byte order is the same to every implementation of protobuf."""
    names = sorted(inception_features(_item(), 1, 1, b""))
    assert len(names) == 15
    assert not any(second.startswith(first) for first, second in itertools.pairwise(names))
