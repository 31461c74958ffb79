"""The record of 2016: its bytes against TensorFlow's protobuf,
and the quick way to read it against the general one.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import tf_fixture
from existing import existing
from hypothesis import given, settings
from hypothesis import strategies as st
from made_sets import data_of, inception_features

from imagenet_prep import Layout
from imagenet_prep.model import Box, Item
from imagenet_prep.tfrecord import inception, inception_reader
from imagenet_prep.tfrecord.example import (
    BytesList,
    ExampleError,
    Feature,
    FloatList,
    Int64List,
    delimited,
    encode_entry,
    encode_example,
    parse_example,
)
from imagenet_prep.tfrecord.inception_reader import (
    CANONICAL,
    ImageRecord,
    RecordError,
    read_features,
    read_head,
    read_image,
    read_record,
)

tf = tf_fixture.tf

BOXES = {
    "none": (),
    "one": (Box(0.006, 0.262, 0.7545, 0.994),),
    "many": tuple(Box(i / 100, 0.0, (i + 1) / 100, 1.0) for i in range(60)),
}
EDGES = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152]


def _item(
    boxes: tuple[Box, ...] = (), label: int = 127, name: str = "n02011460_10026.JPEG"
) -> Item:
    return Item(name, label, "n02011460", "bittern", boxes)


def _record(item: Item, width: int, height: int, encoded: bytes) -> bytes:
    head, tail = inception.record_parts(item, width, height, len(encoded))
    return head + encoded + tail


def _theirs(tf: Any, item: Item, width: int, height: int, encoded: bytes) -> bytes:
    """The record as build_imagenet_data.py's _convert_to_example makes it,
    serialized by TensorFlow.
    """

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
    """With no box, one and many, and images of sizes where a length takes one byte more:
    equal to the last byte.
    """
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
def test_parts_are_the_features_encoded(
    label: int, width: int, height: int, encoded: bytes, boxes: list[Box]
) -> None:
    """Cut around the image or spelled out as features, a record has the same bytes."""
    item = _item(tuple(boxes), label)
    assert _record(item, width, height, encoded) == encode_example(
        inception_features(item, width, height, encoded)
    )


def test_no_feature_name_begins_with_another() -> None:
    """Their byte order is the same to every implementation of protobuf."""
    names = sorted(inception_features(_item(), 1, 1, b""))
    assert len(names) == 15
    assert not any(second.startswith(first) for first, second in itertools.pairwise(names))


# reading it ---------------------------------------------------------------------------------------


FLOATS = st.floats(width=32, allow_nan=False)
NUMBERS = st.integers(0, 1 << 27)
ITEMS = st.builds(
    Item,
    filename=st.text(max_size=140),
    label=st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(1, 1000),
    wnid=st.text(max_size=12),
    text=st.text(max_size=200),
    boxes=st.lists(st.builds(Box, FLOATS, FLOATS, FLOATS, FLOATS), max_size=40).map(tuple),
)


ENDS_OF_THREE_BYTES = (16_383, 16_384, 2_097_151 - 900, 2_097_151)


@pytest.mark.parametrize(
    "length", [0, 127, 16_000, *ENDS_OF_THREE_BYTES, 20_000, 110_000, 2_097_152, 3_000_000]
)
def test_a_head_is_read_at_once_or_left_alone(length: int) -> None:
    """What read_head tells is what read_record tells; whatever byte before the image is another
    one, it tells no less.

    It tells nothing at all of what is rare: very small and very large images.
    """
    item = Item("n01440764_7.JPEG", 7, "n01440764", "tench, Tinca tinca", ())
    head, tail = inception.record_parts(item, 500, 375, length)
    data = bytearray(head + bytes(length) + tail)
    found = read_head(memoryview(data))
    usual = ((7, "n01440764", "tench, Tinca tinca"), len(head), len(head) + length)
    assert found == (usual if 16_384 <= length <= 2_097_151 - 900 else found and usual)
    assert (found is None) == (length < 16_384 or length > 2_097_151 - 900)
    for position in (*range(4), *range(len(head) - 35, len(head))) if found else ():
        for change in (0x01, 0x80, 0x7F):
            data[position] ^= change
            assert _as_the_whole(data)
            data[position] ^= change


def _as_the_whole(data: bytearray) -> bool:
    """Whether the head of a record is left alone, or tells what the general parser does."""
    found = read_head(memoryview(data))
    if found is None:
        return True
    record = read_features(parse_example(memoryview(data)))
    (label, wnid, text), start, stop = found
    return (label, wnid, text, data[start:stop]) == (
        record.label,
        record.wnid,
        record.text,
        record.encoded,
    )


@settings(deadline=None)
@given(item=ITEMS, width=NUMBERS, height=NUMBERS, encoded=st.binary(max_size=400))
def test_reader_reads_what_was_written(item: Item, width: int, height: int, encoded: bytes) -> None:
    """A record reads as the item that it was made from,
    by the quick way and by the general parser alike.
    """
    head, tail = inception.record_parts(item, width, height, len(encoded))
    data = memoryview(head + encoded + tail)
    expected = ImageRecord(
        item.filename,
        item.label,
        item.wnid,
        item.text,
        width,
        height,
        item.boxes,
        (item.label,) * len(item.boxes),
        memoryview(encoded),
        CANONICAL,
    )
    assert read_record(data) == expected
    assert read_features(parse_example(data)) == expected
    quick = inception_reader.read_canonical(data)
    assert quick is None or quick == expected


def test_records_of_ours_take_the_quick_way(sound: Layout) -> None:
    """The quick way is taken by every record that convert writes:
    the slow one would hide that it is broken.
    """
    for path in existing(sound.data_dir, "*-of-*"):
        for data in map(memoryview, data_of(path)):
            assert inception_reader.read_canonical(data) == read_features(parse_example(data))


def test_what_stands_before_the_images_name_counts() -> None:
    """A value in front of the name of its entry is joined to the one behind it, as protobuf has it:
    two images.
    """
    item = Item("a.JPEG", 1, "n01440764", "tench", ())
    features = inception_features(item, 4, 3, b"image")
    value = delimited(2, delimited(1, delimited(1, b"other")))
    doubled = delimited(
        1,
        value + delimited(1, b"image/encoded") + delimited(2, delimited(1, delimited(1, b"image"))),
    )
    head, tail = (
        b"".join(encode_entry(name, features[name]) for name in sorted(features) if is_there(name))
        for is_there in ("image/encoded".__gt__, "image/encoded".__lt__)
    )
    data = memoryview(delimited(1, head + doubled + tail))
    with pytest.raises(RecordError, match="holds 2 values"):
        read_record(data)


@pytest.mark.parametrize("boxes", [(), (Box(0.1, 0.2, 0.3, 0.4), Box(0.5, 0.5, 1, 1))])
def test_reader_of_every_flipped_bit(boxes: tuple[Box, ...]) -> None:
    """Whichever bit of a record is flipped, the quick way never reads what
    the general parser doesn't.
    """
    item = Item("n01440764_1.JPEG", 300, "n01440764", "tench", boxes)
    head, tail = inception.record_parts(item, 20, 300, 5)
    content = bytearray(head + b"12345" + tail)
    for position in range(len(content)):
        for bit in range(8):
            content[position] ^= 1 << bit
            assert_same_reading(bytes(content))
            content[position] ^= 1 << bit
    for junk in (b"\0", b"\x0a\x00", head + b"12345" + tail):
        assert_same_reading(bytes(content) + junk)
    entries = encode_example(inception_features(item, 20, 300, b"12345"))[3:]
    assert delimited(1, entries) == content
    for name, feature in (("image/class/label", Int64List((7,))), ("image/width", FloatList(()))):
        again = delimited(
            1, entries + encode_entry(name, feature)
        )  # the last entry of a name counts
        assert_same_reading(again)


def assert_same_reading(content: bytes) -> None:
    """The quick way reads what the general parser reads, or leaves it to that."""
    view = memoryview(content)
    quick = inception_reader.read_canonical(view)
    try:
        slow = read_features(parse_example(view))
    except (ExampleError, RecordError):
        assert quick is None
    else:
        assert quick is None or repr(quick.boxes) == repr(
            slow.boxes
        )  # NaN is like NaN in print only
        assert quick is None or quick._replace(boxes=()) == slow._replace(boxes=())


BOX = "image/object/bbox/"


def test_what_other_makers_leave_out() -> None:
    """Only image and label must be there; the rest is None, or empty."""
    features = {"image/encoded": BytesList((b"?",)), "image/class/label": Int64List((7,))}
    record = read_record(memoryview(encode_example(features)))
    assert record[:8] == ("", 7, None, None, None, None, (), ())
    assert (bytes(record.encoded), record.traits.features, record.traits.channels) == (
        b"?",
        set(features),
        None,
    )
    for name in features:
        with pytest.raises(RecordError, match="is missing"):
            read_features({other: feature for other, feature in features.items() if other != name})


@pytest.mark.parametrize(
    ("name", "feature", "reason"),
    [
        ("image/class/label", Int64List((1, 2)), "holds 2 values, expected 1"),
        ("image/class/label", Int64List(()), "holds 0 values, expected 1"),
        ("image/encoded", BytesList((b"a", b"b")), "holds 2 values, expected 1"),
        ("image/filename", BytesList((b"\xff.JPEG",)), "is not UTF-8"),
        ("image/class/text", BytesList((b"t\xe9nch",)), "is not UTF-8"),
        (f"{BOX}xmin", FloatList((0.1, 0.2)), "lengths: xmin 2, ymin 1, xmax 1, ymax 1, label 1"),
        (f"{BOX}label", Int64List((1, 1)), "lengths: xmin 1, ymin 1, xmax 1, ymax 1, label 2"),
        (f"{BOX}label", Int64List(()), "lengths: xmin 1, ymin 1, xmax 1, ymax 1, label 0"),
    ],
    ids=str,
)
def test_values_that_can_not_be_used_are_named(name: str, feature: Feature, reason: str) -> None:
    """Several values or none where one belongs, bytes that are no text, lists of boxes that differ:
    each by name.
    """
    item = Item("a.JPEG", 1, "n01440764", "tench", (Box(0.1, 0.2, 0.3, 0.4),))
    features = {**inception_features(item, 4, 3, b"image"), name: feature}
    with pytest.raises(RecordError) as caught:
        read_record(memoryview(encode_example(features)))
    assert name.startswith(caught.value.feature)
    assert reason in caught.value.reason


def test_missing_edges_of_boxes_are_named() -> None:
    """A list that is missing does not differ in length; labels are named only if there are some."""
    box = {f"{BOX}{edge}": FloatList((0.1,)) for edge in ("xmin", "ymin", "xmax", "ymax")}
    features = {"image/encoded": BytesList((b"image",)), **box}
    del features[f"{BOX}ymin"], features[f"{BOX}ymax"]
    with pytest.raises(RecordError) as caught:
        read_image(memoryview(encode_example(features)))
    assert str(caught.value) == "image/object/bbox lacks ymin, ymax"
    features |= box | {f"{BOX}xmin": FloatList((0.1, 0.2))}
    with pytest.raises(RecordError) as caught:
        read_image(memoryview(encode_example(features)))
    assert str(caught.value) == (
        "image/object/bbox has lists of different lengths: xmin 2, ymin 1, xmax 1, ymax 1"
    )
