"""records.write and records.read, held against TensorFlow's own messages, writers and readers."""

from __future__ import annotations

import array
import gzip
import importlib.util
import math
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tf_fixture
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imagenet_prep import records
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.records import SequenceExample, writer
from imagenet_prep.records.encoder import Encoder
from imagenet_prep.tfrecord import compression as compressed
from imagenet_prep.tfrecord.example import FloatList, Int64List, encode_example

tf = tf_fixture.tf
checked = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
every_compression = pytest.mark.parametrize("compression", [None, "gzip", "zlib"])

MOVIE = {
    "Age": 29,
    "Movie": ["The Shawshank Redemption", "Fight Club"],
    "Movie Ratings": [9.0, 9.7],
    "Suggestion": "Inception",
    "Suggestion Purchased": 1.0,
    "Purchase Price": 9.99,
}


def raw(tf: Any, path: Path, compression: str | None = None) -> list[bytes]:
    """The records of a file as TensorFlow reads them."""
    dataset = tf.data.TFRecordDataset(str(path), (compression or "").upper())
    return [record.numpy() for record in dataset]


# what TensorFlow writes ---------------------------------------------------------------------------

names = st.text(max_size=8).map(
    lambda text: text.replace("$", "") + "$"
)  # none begins with another one
int64s = st.integers(-(2**63), 2**63 - 1)
feature_values = (
    st.tuples(st.just("int64_list"), st.lists(int64s, min_size=1, max_size=5))
    | st.tuples(
        st.just("float_list"),
        st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5),
    )
    | st.tuples(st.just("bytes_list"), st.lists(st.binary(max_size=100), min_size=1, max_size=4))
    | st.none()
)
feature_maps = st.dictionaries(names, feature_values, max_size=6)
Values = dict[str, tuple[str, list[Any]] | None]


def as_value(feature: tuple[str, list[Any]] | None) -> Any:
    """A feature as records.read has it."""
    values = feature[1] if feature else []
    return values[0] if len(values) == 1 else values


def fill(example_features: Any, features: Values) -> None:
    """Put features into a message of TensorFlow's."""
    for name, feature in features.items():
        message = example_features.feature[name]
        if feature is not None:
            getattr(message, feature[0]).value.extend(feature[1])


@checked
@given(feature_maps)
def test_any_dictionary_is_written_as_tensorflow_writes_it(tf: Any, features: Values) -> None:
    """Values of every kind give the bytes of SerializeToString(deterministic=True);
    an empty list is unset.
    """
    example = tf.train.Example(features=tf.train.Features())
    fill(example.features, features)
    data = Encoder().encode({name: as_value(feature) for name, feature in features.items()}, 0)
    assert data == example.SerializeToString(deterministic=True)


@settings(checked, max_examples=30)
@given(st.lists(feature_maps, max_size=3), st.sampled_from(["", "GZIP", "ZLIB"]))
def test_files_of_tensorflow_are_read(
    tf: Any, tmp_path: Path, maps: list[Values], compression: str
) -> None:
    """What TFRecordWriter wrote, compressed or not, comes as the dictionaries that went in."""
    path = tmp_path / "theirs"
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for features in maps:
            example = tf.train.Example()
            fill(example.features, features)
            writer.write(example.SerializeToString())
    expected = [
        {name: as_value(feature) for name, feature in features.items()} for features in maps
    ]
    assert list(records.read(path)) == expected


# rules of inference -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "feature"),
    [
        (True, ("int64_list", [1])),
        (7, ("int64_list", [7])),
        (-(2**63), ("int64_list", [-(2**63)])),
        ([True, 2], ("int64_list", [1, 2])),
        (0.5, ("float_list", [0.5])),
        (math.inf, ("float_list", [math.inf])),
        ([1, 2.5], ("float_list", [1.0, 2.5])),
        (1e-60, ("float_list", [0.0])),
        (3.4028235e38, ("float_list", [3.4028234663852886e38])),
        ("é", ("bytes_list", ["é".encode()])),
        (b"\xff", ("bytes_list", [b"\xff"])),
        (memoryview(b"abcd")[::2], ("bytes_list", [b"ac"])),
        (["a", b"\xff", memoryview(b"c")], ("bytes_list", [b"a", b"\xff", b"c"])),
        (range(3), ("int64_list", [0, 1, 2])),
        (array.array("d", [0.5, 1.5]), ("float_list", [0.5, 1.5])),
        (np.int8(-1), ("int64_list", [-1])),
        (np.uint64(2**63 - 1), ("int64_list", [2**63 - 1])),
        (np.float16(0.5), ("float_list", [0.5])),
        (np.bytes_(b"a\x00"), ("bytes_list", [b"a\x00"])),
        (np.arange(6, dtype=np.uint8).reshape(2, 3), ("int64_list", [0, 1, 2, 3, 4, 5])),
        (
            np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            ("float_list", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ),
        (np.arange(6).reshape(2, 3).T, ("int64_list", [0, 3, 1, 4, 2, 5])),
        (np.array(["a", "bc"]), ("bytes_list", [b"a", b"bc"])),
        (np.array(["a", b"b"], dtype=object), ("bytes_list", [b"a", b"b"])),
        ([np.int64(1), np.array(2), 3], ("int64_list", [1, 2, 3])),
        ([], None),
        (np.array([]), None),
    ],
    ids=lambda each: re.sub(r" at 0x\w+", "", repr(each)),  # the same in every run
)
def test_a_value_has_its_kind(tf: Any, value: Any, feature: tuple[str, list[Any]] | None) -> None:
    """bool and int are int64, float is float, text and bytes are bytes,
    arrays are lists in C order.
    """
    example = tf.train.Example()
    fill(example.features, {"a": feature})
    assert Encoder().encode({"a": value}, 0) == example.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1, "a"], "int, str: expected only numbers, or only text and bytes"),
        ([b"a", 0.5, True], "bool, bytes, float: expected only numbers"),
        ([1, None], "it holds None"),
        ([[1, 2], [3]], "a nested value, of type list"),
        ([np.arange(2)], "a nested value, of type ndarray"),
        (np.array([[1], [2, 3]], dtype=object), "a nested value, of type list"),
        (2**63, "it holds 9223372036854775808: expected -2**63 to 2**63 - 1"),
        ([1, -(2**63) - 1], "it holds -9223372036854775809: expected"),
        (np.array([2**63], dtype=np.uint64), "it holds 9223372036854775808: expected"),
        (10**5000, "an integer of 16,610 bits"),
        (3.5e38, "it holds 3.5e+38: expected -3.4e38 to 3.4e38"),
        ([math.inf, -1e39, 1.0], "it holds -1e+39: expected -3.4e38 to 3.4e38"),
        ([0.5, 10**400], "an integer of 1,329 bits: expected -3.4e38 to 3.4e38"),
        ("\ud800", "'\\ud800', which UTF-8 can't express"),
        (np.zeros(1, dtype="i4,i4"), "structured values, with the fields f0, f1"),
        ({"b": 1}, "a value of type dict"),
        (iter([1]), "a value of type list_iterator"),
        (1j, "a value of type complex"),
        (np.datetime64("2020-01-01"), "it holds datetime64"),
        (np.array(["2020-01-01"], dtype="datetime64[ns]"), "it holds datetime64"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_a_kind_is_refused(tmp_path: Path, value: Any, said: str) -> None:
    """The error names record, feature and what was found, and no file is left."""
    path = tmp_path / "file"
    with pytest.raises(UsageError) as caught:
        records.write(path, [{"a": 1}, {"b": 2, "the feature": value}])
    assert caught.value.what == "record 1: feature 'the feature' can't be written"
    assert said in caught.value.detail
    assert os.listdir(tmp_path) == []


ANY_VALUE = "expected bool, int, float, str or bytes, or a flat list or an array of them"
ODD_STEPS: list[tuple[Any, str]] = [
    (1, "it is of type int: expected a list of steps"),
    (np.array(1), "it is of type ndarray: expected a list of steps"),
    ([1, None], f"it holds None: {ANY_VALUE}\nput a value in place of None; a step without"),
    ([[1], ["a"]], "it holds values of type int, str: expected"),
    ([[[1]]], f"it holds a nested value, of type list: {ANY_VALUE}\nflatten each step"),
]
NO_EXAMPLES = (b"\xff\xd8\xff\xe0 no Example", b"a", b"\x08\x01", b"\x0a\x00\x22\x01a")
"""Bytes of something else, an image's for instance, would make a file that nobody reads."""


@pytest.mark.parametrize(
    ("found", "options", "said"),
    [
        (["a"], {}, "record 0 is of type str"),
        ([[("a", 1)]], {}, "record 0 is of type list"),
        ([{1: 1}], {}, "record 0: a feature has the name 1"),
        ([{"\ud800": 1}], {}, "expected a name that UTF-8 can express"),
        ([SequenceExample({}, {2: [1]})], {}, "record 0: a feature list has the name 2"),
        (MOVIE, {}, "records is of type dict\nexpected a list of records"),
        ({"a": 1}, {}, "write one record as a list: [record]"),
        (b"a", {}, "records is of type bytes"),
        ([{"a": [1, None]}], {}, "place of None, or leave this feature out of the record"),
        ([{"a": 1}], {"compression": "bz2"}, "compression 'bz2'"),
        ([{"a": 1}], {"schema": {"a": "int32"}}, "schema: 'a' is 'int32'"),
        ([{"a": 0.5}], {"schema": {"a": "int64"}}, "it holds float: expected int, since schema"),
        ([{"a": "1"}], {"schema": {"a": "int64"}}, "it holds str: expected int, since schema"),
        ([{"a": ["1"]}], {"schema": {"a": "float"}}, "it holds str: expected float or int"),
        ([{"a": [b"a", 1]}], {"schema": {"a": "bytes"}}, "it holds int: expected bytes or str"),
        *(
            (
                [SequenceExample({}, {"a": steps})],
                {},
                f"record 0: feature list 'a' can't be written\n{said}",
            )
            for steps, said in ODD_STEPS
        ),
        *(
            ([{"a": 1}, data], {}, "record 1 is bytes that are not a serialized")
            for data in NO_EXAMPLES
        ),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, found: Any, options: Any, said: str
) -> None:
    """The error says what was expected; a schema never converts a text to a number or back,
    nor cuts a fraction off.
    """
    with pytest.raises(UsageError, match=re.escape(said)):
        records.write(tmp_path / "file", found, **options)
    assert os.listdir(tmp_path) == []


def test_a_schema_decides_the_kind(tmp_path: Path, tf: Any) -> None:
    """Named features have the kind named, empty ones too; others are inferred."""
    path = tmp_path / "file"
    schema = {"price": "float", "tags": "bytes", "ids": "int64"}
    records.write(
        path, [{"price": 10, "tags": [], "ids": [], "n": 1}, {"price": 9.5, "n": 2}], schema=schema
    )
    first, second = (tf.train.Example.FromString(data).features.feature for data in raw(tf, path))
    kinds = {name: feature.WhichOneof("kind") for name, feature in first.items()}
    assert kinds == {
        "price": "float_list",
        "tags": "bytes_list",
        "ids": "int64_list",
        "n": "int64_list",
    }
    assert list(first["price"].float_list.value) == [10.0]
    assert list(second["price"].float_list.value) == [9.5]


def test_a_feature_keeps_its_kind(tmp_path: Path) -> None:
    """tf.data has one kind for a name, so a whole number among prices is refused,
    and the remedy named.
    """
    path = tmp_path / "file"
    prices = [{"price": 9.99}, {"price": []}, {"price": 10}]
    with pytest.raises(UsageError, match=r"record 2: .*'price' .*int64") as caught:
        records.write(path, prices)
    assert (
        caught.value.detail == "in record 0 it is of kind float: expected the same in all records"
    )
    assert caught.value.hint == "schema={'price': 'float'} makes it float everywhere"
    records.write(path, prices, schema={"price": "float"})
    assert [record["price"] for record in records.read(path)] == [pytest.approx(9.99), [], 10.0]
    with pytest.raises(UsageError, match=r"record 1: .*'a' .*bytes") as caught:
        records.write(path, [{"a": 1}, {"a": "1"}])
    assert caught.value.hint == ""
    messages = [encode_example({"a": kind((1,))}) for kind in (Int64List, FloatList)]
    with pytest.raises(UsageError, match=r"record 1: .*'a' .*float") as caught:
        records.write(path, messages, schema={"a": "float"})
    assert caught.value.hint == ""  # no schema changes the kind of a message
    with pytest.raises(UsageError, match=r"record 1: .*'a' .*float") as caught:
        records.write(path, [messages[0], {"a": 0.5}])
    assert caught.value.hint == ""


def test_a_record_that_is_several_or_another_message_is_described_as_it_is(tmp_path: Path) -> None:
    """A list is not advised where a list was refused, and a message is not called bytes."""
    with (
        records.open_writer(tmp_path / "file") as file,
        pytest.raises(UsageError, match="record 0 is of type list") as caught,
    ):
        file.write([{"a": 1}])
    assert caught.value.hint.endswith("a writer takes one record a call")

    class Other:
        def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
            return b"\x1a\x00"

    with pytest.raises(UsageError, match="record 0 is a message of type Other\n") as caught:
        records.write(tmp_path / "file", [Other()])
    assert caught.value.hint == ""


def test_long_records_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no reader takes is not written: beyond protobuf's limit, or,
    compressed, beyond our own reader's.
    """
    path = tmp_path / "file"
    monkeypatch.setattr(writer, "MAX_MESSAGE", 2000)
    monkeypatch.setattr(writer, "MAX_RECORD", 1000)
    records.write(path, [{"a": bytes(1500)}])
    for compression, size in ((None, 3000), ("gzip", 1500)):
        with pytest.raises(UsageError, match=r"record 1 has [0-9,]+ bytes"):
            records.write(path, [{"a": b""}, {"a": bytes(size)}], compression)
    assert writer.MAX_RECORD < compressed.MAX_RECORD


# files that are written ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["pipe", "link-to-pipe", "folder", "."])
def test_what_is_no_file_is_not_replaced(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe, which stands for any device, a folder: refused, and still there."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")  # never a device of the machine: a writer that is broken would replace it
    Path("link-to-pipe").symlink_to("pipe")
    Path("folder").mkdir()
    with pytest.raises(UsageError, match=r"is (a folder|a pipe|not a plain file)"):
        records.write(path, [{"a": 1}])
    assert not Path(path).is_file()
    assert sorted(os.listdir(tmp_path)) == ["folder", "link-to-pipe", "pipe"]


# reading ------------------------------------------------------------------------------------------


def test_bytes_stay_bytes_unless_they_are_said_to_be_text(tmp_path: Path) -> None:
    """Text is what the caller names: all of it, one feature, several, or none."""
    path = tmp_path / "file"
    records.write(path, [{"name": "é", "tags": ["a", "b"], "n": 1}])
    raw_values = {"name": "é".encode(), "tags": [b"a", b"b"], "n": 1}
    assert list(records.read(path)) == [raw_values]
    assert list(records.read(path, text="name")) == [{**raw_values, "name": "é"}]
    assert list(records.read(path, text={"tags", "other"})) == [{**raw_values, "tags": ["a", "b"]}]
    assert list(records.read(path, text=True)) == [{"name": "é", "tags": ["a", "b"], "n": 1}]


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    """The error says where they are, and how to read the rest as text."""
    path = tmp_path / "file"
    records.write(path, [{"image": b""}, {"image": b"\xff"}])
    found = records.read(path, text=True)
    assert next(found) == {"image": ""}
    with pytest.raises(UsageError) as caught:
        next(found)
    assert f"{path}: record 1 at byte" in caught.value.what
    assert caught.value.detail == "feature 'image': its bytes are not text in UTF-8"
    assert "text={'image/class/text'}" in caught.value.hint


def test_lists_are_lists_where_the_caller_says_so(tmp_path: Path) -> None:
    """A feature of one value is that value, unless it is named:
    then its shape never depends on the data.
    """
    path = tmp_path / "file"
    records.write(path, [{"a": [1], "b": 1}, {"a": [1, 2], "b": 2}, {"a": [], "b": 3}])
    assert [record["a"] for record in records.read(path)] == [1, [1, 2], []]
    assert [record["a"] for record in records.read(path, lists="a")] == [[1], [1, 2], []]
    assert [record["b"] for record in records.read(path, lists=["a"])] == [1, 2, 3]
    assert [record["b"] for record in records.read(path, lists=True)] == [[1], [2], [3]]


def test_several_files_are_read_in_order(tmp_path: Path) -> None:
    """A list in its own order, a pattern in the order of names; both may be mixed."""
    for number in (2, 0, 1):
        records.write(tmp_path / f"part-{number}", [{"n": number}], "gzip" if number else None)
    records.write(tmp_path / "other[1]", [{"n": 9}])

    def numbers(paths: Any) -> list[int]:
        return [record["n"] for record in records.read(paths)]

    assert numbers(str(tmp_path / "part-*")) == numbers(tmp_path / "part-?") == [0, 1, 2]
    assert numbers([tmp_path / "part-2", str(tmp_path / "part-0")]) == [2, 0]
    assert numbers([tmp_path / "other[1]", tmp_path / "part-*"]) == [9, 0, 1, 2]


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ("none", "none is missing"),
        ("none-*", r"none-\* is not a file, and matches nothing"),
        (["here", "none"], "none is missing"),
        ([], "no files to read"),
        (".", r"\. is a folder"),
        ("*", "folder is a folder"),
        ("", "an empty path"),
        (["", "x"], "an empty path"),
        ("link", "link is a broken link"),
    ],
)
def test_files_that_are_not_there_are_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: Any, said: str
) -> None:
    """A missing file, a pattern that matches none or a folder:
    refused by the call, before the first record.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    records.write("here", [{"a": 1}])
    (tmp_path / "link").symlink_to("none")
    with pytest.raises(UsageError, match=said):
        records.read(paths)
    with pytest.raises(UsageError, match=said):
        records.read_sequences(paths)


@pytest.mark.parametrize("paths", ["a", "a/*"])
def test_a_folder_of_shards_has_a_pattern_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: str
) -> None:
    """The pattern that the error advises reads the shards."""
    monkeypatch.chdir(tmp_path)
    with records.ShardWriter("a/train", shards=2) as shards:
        shards.write(n=1)
    Path("a/imagenet-prep").mkdir()
    with pytest.raises(UsageError, match="is a folder") as caught:
        records.read(paths)
    advised = re.fullmatch(r"for the shards of a split in a: '(.*)'", caught.value.hint)
    assert advised is not None
    assert [record["n"] for record in records.read(advised[1])] == [1]


@pytest.mark.parametrize("text", ["caf\udce9.jpg", "\ud83d"])
def test_the_advised_bytes_of_a_text_are_written(tmp_path: Path, text: str) -> None:
    """A name that is not UTF-8, and half of a pair of surrogates."""
    with pytest.raises(UsageError) as caught:
        records.write(tmp_path / "file", [{"a": text}])
    advised = re.fullmatch(r"write it as bytes: (text\.encode\(errors='\w+'\))", caught.value.hint)
    assert advised is not None
    assert records.write(tmp_path / "file", [{"a": eval(advised[1], {"text": text})}]) == 1


@pytest.mark.parametrize("value", [np.datetime64("2020-01-01"), np.array(["2020"], "M8[ns]")])
def test_times_are_written_as_texts(tmp_path: Path, value: Any) -> None:
    """The advised method gives texts."""
    with pytest.raises(UsageError, match=r"value\.astype\(str\)"):
        records.write(tmp_path / "file", [{"a": value}])
    assert records.write(tmp_path / "file", [{"a": value.astype(str)}]) == 1


@every_compression
@pytest.mark.parametrize("damage", ["data", "length", "cut"])
def test_damage_is_named(tmp_path: Path, compression: str | None, damage: str) -> None:
    """What is sound comes, then an error that names file, record and byte,
    and never a record that is not right.
    """
    path = tmp_path / "file"
    plain, end = tmp_path / "plain", 3 * 30
    records.write(plain, [{"a": 1}, {"a": 2}, {"a": 3}])
    content = bytearray(plain.read_bytes())
    assert len(content) == end
    if damage == "cut":
        del content[-1]
    else:
        content[end - 5 if damage == "data" else end - 30] ^= 1
    deflate: Any = {None: bytes, "gzip": gzip.compress, "zlib": zlib.compress}[compression]
    path.write_bytes(deflate(bytes(content)))
    found = records.read(path)
    assert [next(found)["a"], next(found)["a"]] == [1, 2]
    with pytest.raises(InputError) as caught:
        next(found)
    where = f" of its {compression} content" if compression else ""
    verb = "is damaged" if damage == "data" else "can't be read"
    assert caught.value.what == f"{path}: record 2 at byte 60{where} {verb}"
    assert caught.value.detail
    assert caught.value.hint


def test_reading_holds_one_record_at_a_time(tmp_path: Path) -> None:
    """Memory of this process's own, page cache aside, does not grow with the file:
    100 MB pass through 20.
    """
    path = tmp_path / "file"
    records.write(path, ({"a": bytes(1_000_000), "i": i} for i in range(100)), "gzip")
    script = (
        "import sys\nfrom imagenet_prep import records\n"
        "def own(): return int(next(l for l in open('/proc/self/status') if "
        "l.startswith('RssAnon')).split()[1])\n"
        "before = most = own()\n"
        "for record in records.read(sys.argv[1]):\n    most = max(most, own())\n"
        "print(record['i'], most - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
    )
    last, grown = map(int, done.stdout.split())
    assert last == 99
    assert grown < 20_000  # kB


# sequences ----------------------------------------------------------------------------------------

CLIP = SequenceExample(
    context={"title": "tench", "frames": 3},
    feature_lists={
        "frame": [b"\x00", b"\x01", b"\x02"],
        "boxes": [[0.5, 1], [], [0.25]],
        "labels": np.array([[1, 2], [3, 4]]),
    },
)


def test_sequences_are_written_as_tensorflow_writes_them(tmp_path: Path, tf: Any) -> None:
    """The bytes are those of a SequenceExample;
    all steps of a list are of one kind, an empty one too.
    """
    path = tmp_path / "clips"
    records.write(path, [CLIP])
    message = tf.train.SequenceExample()
    fill(message.context, {"title": ("bytes_list", [b"tench"]), "frames": ("int64_list", [3])})
    lists = {
        "frame": ("bytes_list", [[b"\x00"], [b"\x01"], [b"\x02"]]),
        "boxes": ("float_list", [[0.5, 1.0], [], [0.25]]),
        "labels": ("int64_list", [[1, 2], [3, 4]]),
    }
    for name, (kind, steps) in lists.items():
        for values in steps:
            chosen = getattr(message.feature_lists.feature_list[name].feature.add(), kind)
            chosen.SetInParent()
            chosen.value.extend(values)
    assert raw(tf, path) == [message.SerializeToString(deterministic=True)]


def test_sequences_of_tensorflow_are_read(tmp_path: Path, tf: Any) -> None:
    """Steps that are not set are empty; a list without steps is one."""
    path = tmp_path / "theirs"
    message = tf.train.SequenceExample()
    message.context.feature["unset"].SetInParent()
    message.feature_lists.feature_list["none"].SetInParent()
    steps = message.feature_lists.feature_list["steps"].feature
    steps.add()
    steps.add().int64_list.value.append(1)
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(message.SerializeToString())
    (found,) = records.read_sequences(path)
    assert found == SequenceExample({"unset": []}, {"none": [], "steps": [[], [1]]})


def test_a_sequence_does_not_pass_for_an_example(tmp_path: Path) -> None:
    """An Example's parser would silently drop the feature lists:
    read refuses, and names read_sequences.
    """
    path = tmp_path / "clips"
    records.write(path, [SequenceExample({"a": 1})])
    with pytest.raises(UsageError, match="record 0 at byte 0") as caught:
        next(records.read(path))
    assert "SequenceExample" in caught.value.detail
    assert "read_sequences" in caught.value.hint


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], []),
        ([[], []], [[], []]),
        ([1, 2.5], [1.0, 2.5]),
        (range(2), [0, 1]),
        (array.array("h", [1, 2]), [1, 2]),
        (np.arange(8).reshape(2, 2, 2), [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (["a", b"b"], [b"a", b"b"]),
        (None, "left out"),
    ],
    ids=repr,
)
def test_steps_follow_the_rules_of_values(tmp_path: Path, steps: Any, expected: Any) -> None:
    """The steps of an array are along its first axis, each taken in C order;
    None leaves the whole list out.
    """
    path = tmp_path / "file"
    records.write(path, [SequenceExample({}, {"a": steps})])
    (found,) = records.read_sequences(path)
    assert found.feature_lists.get("a", "left out") == expected


def test_a_feature_list_keeps_its_kind(tmp_path: Path) -> None:
    """As a feature does; a feature of the same name may be of another kind,
    and a schema is for both.
    """
    path = tmp_path / "file"
    changing = [SequenceExample({"a": "x"}, {"a": [1]}), SequenceExample({}, {"a": [0.5]})]
    with pytest.raises(UsageError, match=r"record 1: .*'a' .*float"):
        records.write(path, changing)
    with pytest.raises(UsageError, match=r"record 0: .*'a'"):
        records.write(path, changing, schema={"a": "float"})
    assert records.write(
        path, [SequenceExample({}, each.feature_lists) for each in changing], schema={"a": "float"}
    )


# the page -----------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "records.md").read_text()


def test_the_page_is_right(
    tmp_path: Path, tf: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each block of docs/records.md runs, one after the other, and prints what stands below it."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    printed, shown = "", 0
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S):
        if language:
            assert printed == "", "what a block prints stands below it"
        if "import DataLoader" in block and not importlib.util.find_spec("torch"):
            break
        if language == "python":
            exec(block, names)
            printed = capsys.readouterr().out
        elif language == "sh":
            call = [sys.executable, "-m", *block.replace("imagenet-prep", "imagenet_prep").split()]
            printed = subprocess.run(call, capture_output=True, text=True, check=True).stdout
        else:
            assert block == printed
            printed, shown = "", shown + 1
    assert shown >= 5


# messages of others -------------------------------------------------------------------------------


def test_messages_of_tensorflow_are_written_as_they_are(tf: Any, tmp_path: Path) -> None:
    """An Example, a SequenceExample and the bytes of one go to the file as
    TensorFlow serialized them.
    """
    example = tf.train.Example()
    example.features.feature["a"].int64_list.value.extend([1, 2])
    sequence = tf.train.SequenceExample()
    sequence.feature_lists.feature_list["s"].feature.add().float_list.value.append(0.5)
    written: list[Any] = [
        example,
        example.SerializeToString(),
        sequence,
        bytearray(sequence.SerializeToString()),
        {"a": 3},
    ]
    assert records.write(tmp_path / "x", written) == 5
    of_example, of_sequence = example.SerializeToString(), sequence.SerializeToString()
    assert raw(tf, tmp_path / "x")[:4] == [of_example, of_example, of_sequence, of_sequence]
    with records.ShardWriter(tmp_path / "set", shards=1) as shards:
        shards.write(example)
    assert list(records.read(shards.paths)) == [{"a": [1, 2]}]


def test_serialized_records_keep_the_kinds_too(tmp_path: Path) -> None:
    """A feature has one kind in a file, whoever encoded the record;
    empty bytes are the Example of nothing.
    """
    (other,) = [Encoder().encode({"price": 9.99}, 0)]
    with pytest.raises(UsageError, match=r"'price' .*float"):
        records.write(tmp_path / "x", [{"price": 10}, other])
    assert records.write(tmp_path / "x", [b"", other]) == 2
    assert list(records.read(tmp_path / "x")) == [{}, {"price": pytest.approx(9.99)}]


@pytest.mark.parametrize("stray", [b"abc", bytes(20)])
def test_bytes_after_the_last_record_are_no_damaged_record(tmp_path: Path, stray: bytes) -> None:
    """The records are sound; there is no other one."""
    path = tmp_path / "file"
    records.write(path, [{"a": 1}])
    path.write_bytes(path.read_bytes() + stray)
    with pytest.raises(InputError, match="record 1 at byte 30 can't be read") as caught:
        list(records.read(path))
    assert caught.value.detail.endswith(", or other bytes follow the last record")


def test_a_damaged_stream_is_not_located(tmp_path: Path) -> None:
    """A damaged gzip file may give no record at all: its first record need not be the damaged one."""
    path = tmp_path / "file"
    records.write(path, [{"a": number} for number in range(9)], compression="gzip")
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="file is damaged, or is not a TFRecord file"):
        list(records.read(path))
