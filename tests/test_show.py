"""stages.show: any TFRecord file of Examples, readable."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import made_sets
import pytest
from existing import existing
from made_sets import inception_features
from PIL import Image
from running import command

from imagenet_prep.demo import photographs
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.model import Box, Item
from imagenet_prep.reading.damage_words import OTHER_CONTENT
from imagenet_prep.stages.show import save_image, show
from imagenet_prep.stages.verify import verify_file
from imagenet_prep.tfrecord.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    encode_example,
    encode_sequence_example,
)


def jpeg(width: int, height: int) -> bytes:
    """A grey JPEG."""
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (128, 128, 128)).save(buffer, "JPEG")
    return buffer.getvalue()


ITEM = Item(
    "n01440764_10026.JPEG", 1, "n01440764", "tench, Tinca tinca", (Box(0.1, 0.25, 0.5, 0.75),)
)
RECORD = encode_example(inception_features(ITEM, 40, 30, jpeg(40, 30)))


def write(path: Path, *records: bytes) -> Path:
    """A TFRecord file at ``path``."""
    made_sets.write(path, records)
    return path


def test_record_as_lines(tmp_path: Path) -> None:
    """A record is a heading and a line a feature; the image is shown by kind, bytes and pixels."""
    (shown,) = show(write(tmp_path / "f", RECORD))
    heading, *lines = shown.lines()
    assert heading == f"record 0 at byte 0: {len(RECORD):,} bytes, 15 features"
    table = {words[0]: (words[1], " ".join(words[2:])) for words in map(str.split, lines)}
    assert len(table) == len(lines) == 15
    assert table["image/encoded"] == ("bytes", f"JPEG, {len(jpeg(40, 30))} bytes, 40 x 30 pixels")
    assert table["image/class/text"] == ("bytes", "tench, Tinca tinca")
    assert table["image/class/label"] == ("int64", "1")
    assert table["image/object/bbox/ymax"] == ("float", "0.75")
    assert table["image/object/bbox/xmin"] == ("float", "0.1")


def test_odd_values(tmp_path: Path) -> None:
    """Long lists, binary bytes, control characters and numbers that JSON has not are all shown,
    and harmlessly.
    """
    features: dict[str, Feature] = {
        "many": Int64List(tuple(range(100))),
        "none": FloatList(()),
        "raw": BytesList((b"\xff\x00" * 50,)),
        "text": BytesList((b"\x1b[2J\n" + b"x" * 500,)),
        "nan": FloatList((float("nan"), float("inf"))),
        "broken": BytesList((b"\xff\xd8\xff\xe0",)),
    }
    (shown,) = show(write(tmp_path / "f", encode_example(features)))
    lines = {line.split()[0]: line for line in shown.lines()[1:]}
    assert lines["many"].endswith("0, 1, 2, 3, 4, 5, 6, 7, ... (100 values)")
    assert lines["none"].endswith("(no values)")
    assert "100 bytes: ff 00 ff 00" in lines["raw"]
    assert "its size can't be read" in lines["broken"]
    assert all(line.isprintable() and len(line) < 300 for line in shown.lines())
    value = json.loads(json.dumps(shown.as_dict(), allow_nan=False))["features"]
    assert value["nan"] == ["nan", "inf"]
    assert value["raw"] == [{"bytes": 100, "hex": "ff00" * 8}]
    assert value["broken"] == [{"image": "JPEG", "bytes": 4, "width": None, "height": None}]


def test_limit_and_record(tmp_path: Path) -> None:
    """A limit stops early; a record number picks one, at its offset."""
    records = [encode_example({"a": Int64List((i,))}) for i in range(5)]
    path = write(tmp_path / "f", *records)
    assert [shown.number for shown in show(path, limit=2)] == [0, 1]
    assert [shown.number for shown in show(path, limit=9)] == [0, 1, 2, 3, 4]
    (shown,) = show(path, record=3)
    assert (shown.number, shown.offset, shown.features["a"]) == (
        3,
        3 * (len(records[0]) + 16),
        Int64List((3,)),
    )


@pytest.mark.parametrize(
    "options", [{"record": 2}, {"record": -1}, {"limit": 0}, {"record": 1, "limit": 2}]
)
def test_impossible_requests(tmp_path: Path, options: dict[str, int]) -> None:
    """A record that isn't there, a senseless number,
    or a record and a limit together, is wrong usage.
    """
    with pytest.raises(UsageError):
        list(show(write(tmp_path / "f", RECORD, RECORD), **options))


def test_empty_file(tmp_path: Path) -> None:
    """An empty file is a TFRecord file without records;
    the command says so beside its empty output.
    """
    path = write(tmp_path / "f")
    assert list(show(path)) == []
    result = command("show", path)
    assert (result.stdout, result.stderr) == ("", f"{path} holds no records\n")


SEQUENCE = encode_sequence_example(
    {"title": BytesList((b"Fight Club",)), "unset": None},
    {
        "ratings": (FloatList((4.5, 3.0)), None, Int64List(())),
        "words": tuple(BytesList((f"w{k}".encode(),)) for k in range(12)),
        "frames": (Int64List((1,)), BytesList((jpeg(8, 9),))),
        "never": (),
    },
)


def test_one_feature_list_is_one(tmp_path: Path) -> None:
    """One feature of its context, one feature list: neither is many."""
    record = encode_sequence_example({"title": BytesList((b"a",))}, {"words": (Int64List((1,)),)})
    (shown,) = show(write(tmp_path / "f", record))
    assert shown.lines()[0].endswith(" bytes, 1 feature of its context, 1 feature list")


@pytest.mark.parametrize(
    ("options", "words"),
    [({"limit": 0}, "limit 0"), ({"record": -1}, "record -1")],
)
def test_only_the_wrong_option_is_named(
    tmp_path: Path, options: dict[str, int], words: str
) -> None:
    """The other one was not given."""
    with pytest.raises(UsageError) as caught:
        show(write(tmp_path / "f", RECORD), **options)
    assert caught.value.what == words


@pytest.mark.parametrize(
    ("count", "held"),
    [(0, "no record"), (1, "only record 0"), (2, "2 records: 0 to 1")],
)
def test_a_record_beyond_the_last(tmp_path: Path, count: int, held: str) -> None:
    """The error says which ones are there."""
    with pytest.raises(UsageError) as caught:
        next(show(write(tmp_path / "f", *[RECORD] * count), record=9))
    assert caught.value.detail == f"it holds {held}"


def test_sequence_as_lines(tmp_path: Path) -> None:
    """A SequenceExample is its context, then each feature list step by step, long ones cut."""
    example_, shown = show(write(tmp_path / "f", RECORD, SEQUENCE))
    assert example_.feature_lists is None
    heading, *lines = shown.lines()
    sizes = f"{len(SEQUENCE):,} bytes, 2 features of its context, 4 feature lists"
    assert heading == f"record 1 at byte {len(RECORD) + 16}: {sizes}"
    assert lines == [
        "  title  bytes  Fight Club",
        "  unset  (not set)",
        "  frames: 2 steps",
        "    0  int64  1",
        f"    1  bytes  JPEG, {len(jpeg(8, 9))} bytes, 8 x 9 pixels",
        "  never: 0 steps",
        "  ratings: 3 steps",
        "    0  float  4.5, 3",
        "    1  (not set)",
        "    2  int64  (no values)",
        "  words: 12 steps",
        *(f"    {k}  bytes  w{k}" for k in range(8)),
        "    ... (12 steps)",
    ]


@pytest.mark.parametrize("position", [0, 9, 20, -1])
def test_damaged_record(tmp_path: Path, position: int) -> None:
    """Damage anywhere is an InputError that names record and offset;
    records before it are shown.
    """
    start = len(RECORD) + 16
    path = write(tmp_path / "f", RECORD, RECORD)
    made_sets.flip(path, position if position < 0 else start + position)
    records = show(path)
    assert next(records).number == 0
    with pytest.raises(InputError) as caught:
        next(records)
    verb = "can't be read" if position in (0, 9) else "is damaged"
    assert f"record 1 at byte {start} {verb}" in caught.value.what
    assert caught.value.hint == "get a sound copy of it"


def test_record_behind_a_damaged_one(tmp_path: Path) -> None:
    """Damaged data don't hide a later record."""
    path = write(tmp_path / "f", RECORD, RECORD)
    made_sets.flip(path, 100)
    assert next(show(path, record=1)).number == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (photographs.tiny(1), "it starts as a JPEG image does"),
        (b"x".ljust(257, b"\0") + b"ustar\00000" + bytes(500), "it starts as a tar archive does"),
        ("name,größe\nx,1\n".encode() * 50, "it starts as a text file does"),
        (b"It was a bright cold day in April.", "it starts as a text file does"),
    ],
)
def test_what_is_no_shard_at_all(tmp_path: Path, content: bytes, words: str) -> None:
    """A file of another kind is not damaged, and there is no sound copy of it to get."""
    path = tmp_path / "x.jpg"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(show(path))
    assert str(caught.value).splitlines() == [f"{path} is not a TFRecord file", words]


@pytest.mark.parametrize(
    "record", [b"\xff", RECORD + b"\x12\x02\x0a\x05"], ids=["no Example", "no feature lists"]
)
def test_records_that_are_no_examples(tmp_path: Path, record: bytes) -> None:
    """They are damage, and nothing of them is left out; a copy of the file would not help."""
    with pytest.raises(InputError, match="can't be read") as caught:
        list(show(write(tmp_path / "f", record)))
    assert caught.value.hint == OTHER_CONTENT
    assert verify_file(tmp_path / "f").problems[0].remedy == OTHER_CONTENT


def test_a_record_that_is_a_file_of_another_kind(tmp_path: Path) -> None:
    """The error says what the record starts as."""
    with pytest.raises(InputError) as caught:
        list(show(write(tmp_path / "f", photographs.tiny(1))))
    assert caught.value.detail == ("it is not a tf.train.Example: it starts as a JPEG image does")


def test_a_folder_is_told_from_a_file(tmp_path: Path) -> None:
    """With the command that shows one of its shards; a name that isn't there is said not to be."""
    with pytest.raises(UsageError) as caught:
        show(tmp_path)
    assert str(caught.value).splitlines() == [f"{tmp_path} is a folder", "expected a TFRecord file"]
    for number in (1, 0):
        write(tmp_path / f"train-0000{number}-of-00002", RECORD)
    with pytest.raises(UsageError) as caught:
        show(tmp_path)
    first = tmp_path / "train-00000-of-00002"
    assert caught.value.hint == f"name one of its shards: imagenet-prep show {first}"
    with pytest.raises(UsageError, match="nowhere does not exist"):
        show(tmp_path / "nowhere")


def test_a_pipe_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """Commands that take a TFRecord file, a manifest or a folder say what they found."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="pipe is neither a file nor a folder"):
        show(pipe)
    for arguments in (("verify", pipe), ("diff", pipe, tmp_path), ("export", "mds", pipe, "out")):
        ran = command(*arguments, status=2)
        assert f"{pipe} is neither a file nor a folder" in ran.stderr


def test_save_image(tmp_path: Path) -> None:
    """The image is saved as PNG of the same size, the box drawn on its edges and nowhere else."""
    png = tmp_path / "x.png"
    save_image(write(tmp_path / "f", RECORD), 0, png)
    with Image.open(png) as image:
        assert (image.format, image.size, image.mode) == ("PNG", (40, 30), "RGB")
        left, top = round(0.1 * 39), round(0.25 * 29)
        assert image.getpixel((left, top)) == (255, 64, 0)
        assert image.getpixel((left + 5, top + 5)) != (255, 64, 0)
        assert image.getpixel((0, 0)) != (255, 64, 0)
    assert sorted(path.name for path in existing(tmp_path, "*")) == ["f", "x.png"]


@pytest.mark.parametrize(
    "edges",
    [
        {"xmin": 0.1, "ymin": 0.1, "xmax": 1.5, "ymax": 0.9},
        {"xmin": 0.1, "ymin": 0.1, "xmax": 0.5},
        {"xmin": 0.1, "ymin": 0.1, "xmax": float("nan"), "ymax": 0.9},
    ],
    ids=str,
)
def test_a_box_that_can_not_be_drawn_is_left_out(tmp_path: Path, edges: dict[str, float]) -> None:
    """A box beyond its image, back to front, without an edge or no number:
    the image is saved without it.
    """
    image: dict[str, Feature] = {"image/encoded": BytesList((jpeg(40, 30),))}
    boxes: dict[str, Feature] = {
        f"image/object/bbox/{name}": FloatList((value,)) for name, value in edges.items()
    }
    for name, features in (("plain", image), ("boxed", {**image, **boxes})):
        save_image(write(tmp_path / name, encode_example(features)), 0, tmp_path / f"{name}.png")
    assert (tmp_path / "plain.png").read_bytes() == (tmp_path / "boxed.png").read_bytes()


@pytest.mark.parametrize("value", [b"no image", jpeg(8, 8)[:150]])
def test_no_image_to_save(tmp_path: Path, value: bytes) -> None:
    """Without an image, or with one that does not decode, nothing is written."""
    path = write(tmp_path / "f", encode_example({"a": BytesList((value,))}))
    with pytest.raises(InputError):
        save_image(path, 0, tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()
