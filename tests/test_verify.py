"""stages.verify and checks: every fault of a shard is found and named,
and a sound set is found sound.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from bounded import processor_time
from existing import existing
from hypothesis import given, settings
from hypothesis import strategies as st
from made_sets import ENGINE, PART, annotated, data_of, edit_manifest, flip, one_more, write

from imagenet_prep import pipeline
from imagenet_prep.checks.shard_check import ShardCheck, ShardReport
from imagenet_prep.cli import cli
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.model import Problem, ProblemKind, Silent
from imagenet_prep.stages.verify import verify
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord import compression as compressed
from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    encode_example,
    parse_example,
)
from imagenet_prep.tfrecord.inception_reader import read_record

tf = tf_fixture.tf

K = ProblemKind
SHARD = "train-00003-of-00008"


def records_of(path: Path) -> list[tfrecord.Framed]:
    """Every record of an undamaged shard."""
    return list(tfrecord.iter_records(memoryview(path.read_bytes())))


def framed(*records: bytes) -> bytes:
    """A TFRecord file."""
    return b"".join(
        b"".join((header, data, footer))
        for data in records
        for header, footer, _ in [tfrecord.frame(data)]
    )


Harm = Callable[[Layout, Path], object]
Records = list[tfrecord.Framed]


def put_index(half: int, content: bytes, layout: Layout, path: Path) -> None:
    """Write something else over a half of the index of SHARD."""
    layout.index_paths(SHARD)[half].write_bytes(content)


def move_index(layout: Layout, other: str) -> None:
    """Give SHARD the index of another shard."""
    for one, own in zip(layout.index_paths(other), layout.index_paths(SHARD), strict=True):
        shutil.copy(one, own)


def problems_of(layout: Layout) -> tuple[Problem, ...]:
    """What a full verify finds."""
    return verify(layout, ENGINE).problems


def the_problem(layout: Layout, kind: ProblemKind, subject: str = SHARD) -> Problem:
    """The one problem that a full verify finds;
    it must be of this kind, about this subject, with a remedy.
    """
    (problem,) = problems_of(layout)
    assert (problem.kind, problem.subject) == (kind, subject)
    assert problem.remedy
    return problem


# sound sets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", ["quick", "full", "decode"])
def test_sound_set_has_no_problems(layout: Layout, depth: str, made_tiny: MadeSet) -> None:
    """A part that agrees with its manifest has no problems at any depth,
    and the totals are those of its images.
    """
    before = sorted(layout.data_dir.rglob("*"))
    verdict = verify(layout, ENGINE, depth=depth)  # type: ignore[arg-type]
    assert verdict.problems == ()
    assert (verdict.level, verdict.has_manifest) == ("incomplete", True)
    assert "300 of 1,281,167 train images" in verdict.reason
    train, validation = verdict.totals
    assert (train.shards, train.records, train.expected, train.classes) == (8, 300, 300, 10)
    assert (validation.shards, validation.records, validation.expected) == (8, 80, 80)
    good_boxes = {image.filename for image in made_tiny.of("train")}
    lines = made_tiny.boxes_csv.decode().splitlines()
    assert train.boxes == sum(line.split(",")[0] in good_boxes for line in lines) > 100
    assert train.bytes == sum(path.stat().st_size for path in existing(layout.data_dir, "train-*"))
    assert sorted({*layout.data_dir.rglob("*")} - {layout.verdict_path}) == before


def test_compressed_sets(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Compressed shards are checked record by record, with or without a manifest;
    damaged streams are found.
    """
    layout = annotated(tmp_path, made_tiny, PART.replace(compression="gzip"))
    assert problems_of(layout) == ()
    path = layout.shard_path(SHARD)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert (
        "the file ends too early: it may be cut or damaged"
        in the_problem(layout, K.TRUNCATED).detail
    )
    path.write_bytes(content[:5000] + bytes((content[5000] ^ 4,)) + content[5001:])
    assert the_problem(layout, K.BAD_COMPRESSION).detail.startswith("record ")
    path.write_bytes(bytes((content[0] ^ 1,)) + content[1:])
    assert the_problem(layout, K.BAD_COMPRESSION).detail.startswith("record 0 at byte 0: ")
    path.write_bytes(content)
    shutil.rmtree(layout.state_dir)
    assert {problem.kind for problem in problems_of(layout)} == {K.MISSING_IMAGE, K.MISSING_CLASS}


# one bit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "kind"),
    [(3, K.BAD_LENGTH), (9, K.BAD_LENGTH), (300, K.BAD_CRC), (-2, K.BAD_CRC)],
    ids=["length", "length CRC", "data", "data CRC"],
)
def test_a_flipped_bit_is_found(layout: Layout, place: int, kind: K) -> None:
    """It is one problem that names shard, record, byte offset and, if it still shows, the file;
    it is kept as JSON.
    """
    path = layout.shard_path(SHARD)
    record, following = records_of(path)[4:6]
    flip(path, (record if place > 0 else following).offset + place)
    problem = the_problem(layout, kind)
    filename = read_record(record.data).filename
    assert problem.detail.startswith(f"record 4 at byte {record.offset}")
    if kind is K.BAD_CRC:
        assert problem.detail.endswith(f" ({filename}): the data does not match its CRC")
    (line,) = layout.problems_path.read_text().splitlines()
    assert Problem(**json.loads(line)) == problem


# whole records and shards -------------------------------------------------------------------------


LAST = "record 37 at byte "
NO_IDX, NO_LIST = (rf"its index file .*\.{end} is missing" for end in ("idx", "list"))


@pytest.mark.parametrize("depth", ["quick", "full"])
@pytest.mark.parametrize(
    ("harm", "kind", "said"),
    [
        (lambda layout, path: path.unlink(), K.MISSING_SHARD, "it is missing: 38 records in "),
        (lambda layout, path: layout.index_paths(SHARD)[0].unlink(), K.BAD_INDEX, NO_IDX),
        (lambda layout, path: layout.index_paths(SHARD)[1].unlink(), K.BAD_INDEX, NO_LIST),
    ],
)
def test_what_is_missing(layout: Layout, harm: Harm, kind: K, said: str, depth: Any) -> None:
    """A shard that is gone, or a half of its index, is found by a quick look too."""
    harm(layout, layout.shard_path(SHARD))
    (problem,) = verify(layout, ENGINE, depth=depth).problems
    assert (problem.kind, problem.subject) == (kind, SHARD)
    assert re.match(said, problem.detail)


GARBAGE = (b"", b"\xff\x00 garbage", b"1 2 3\n", b"-" * (1 << 20))
STRAYS = ("train-00001-of-00004", "validation-00000-of-00008.tmp", "train-copy")


@pytest.mark.parametrize(
    ("harm", "subject", "kind", "said"),
    [
        (lambda layout, path: os.truncate(path, path.stat().st_size - 1), SHARD, K.TRUNCATED, LAST),
        (
            lambda layout, path: os.truncate(path, path.stat().st_size - 13),
            SHARD,
            K.TRUNCATED,
            LAST,
        ),
        (lambda layout, path: (path.unlink(), path.mkdir()), SHARD, K.UNREADABLE, ""),
        (
            lambda layout, path: move_index(layout, "train-00004-of-00008"),
            SHARD,
            K.BAD_INDEX,
            "its index file .* does not match its records$",
        ),
        *[
            (partial(put_index, half, content), SHARD, K.BAD_INDEX, "")
            for half in (0, 1)
            for content in GARBAGE
        ],
        *[
            (lambda layout, path, name=name: path.with_name(name).touch(), name, K.STRAY_FILE, "")
            for name in STRAYS
        ],
    ],
)
def test_other_files_than_were_written(
    layout: Layout, harm: Harm, subject: str, kind: K, said: str
) -> None:
    """A cut shard, a folder in its place, an index that is none or of another shard, a stray file:
    each is named.
    """
    harm(layout, layout.shard_path(SHARD))
    assert re.match(said, the_problem(layout, kind, subject).detail)


@pytest.mark.parametrize(
    ("change", "kind", "number", "said"),
    [
        (lambda records: records[:-3], K.MISSING_RECORD, -3, "3 records are missing from here on"),
        (lambda records: [], K.MISSING_RECORD, 0, "38 records are missing from here on"),
        (lambda records: records[:5] + records[4:], K.EXTRA_RECORD, 5, "it repeats record 4"),
    ],
)
def test_other_records_than_were_written(
    layout: Layout, change: Callable[[Records], Records], kind: K, number: int, said: str
) -> None:
    """Records left out or doubled, each of them sound,
    are named by number, offset and file name.
    """
    path = layout.shard_path(SHARD)
    records = records_of(path)
    changed, number = change(records), number % len(records)
    write(path, [record.data for record in changed])
    problem, offset = the_problem(layout, kind), records[number].offset
    filename = read_record((records if kind is K.MISSING_RECORD else changed)[number].data).filename
    assert (problem.record, problem.offset, problem.image) == (number, offset, filename)
    assert problem.detail.startswith(f"record {number} at byte {offset} ({filename}): {said}")
    assert f"expected {len(records)} records" in problem.detail


def test_exchanged_shards(layout: Layout) -> None:
    """Two shards that carry each other's names are both named, and what they really are."""
    names = [SHARD, "train-00006-of-00008"]
    one, other = map(layout.shard_path, names)
    one.rename(layout.data_dir / "aside")
    other.rename(one)
    (layout.data_dir / "aside").rename(other)
    for problem, name, true in zip(problems_of(layout), names, reversed(names), strict=True):
        assert (problem.kind, problem.subject) == (K.EXCHANGED_SHARD, name)
        assert problem.detail == f"it holds the records of {true}"


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_renamed_shard(layout: Layout, depth: str) -> None:
    """A shard under a name outside the set is a stray that is recognised as the missing one."""
    layout.shard_path(SHARD).rename(layout.data_dir / "train-00009-of-00016")
    missing, stray = verify(layout, ENGINE, depth=depth).problems  # type: ignore[arg-type]
    assert (missing.kind, missing.subject) == (K.MISSING_SHARD, SHARD)
    assert (stray.kind, stray.subject) == (K.STRAY_FILE, "train-00009-of-00016")
    assert SHARD in stray.detail
    assert missing.remedy == stray.remedy  # repair would leave the stray file


def test_a_lost_shard_of_bare_shards(layout: Layout) -> None:
    """Without a manifest the names of the other shards tell that one is missing."""
    shutil.rmtree(layout.state_dir)
    layout.shard_path(SHARD).unlink()
    (problem,) = (each for each in problems_of(layout) if each.kind is K.MISSING_SHARD)
    assert problem.detail == ("it is missing: the names of the other shards say that there are 8")


def test_quick_finds_a_wrong_size(layout: Layout) -> None:
    """A quick look finds a shard of another size, and no more."""
    path = layout.shard_path(SHARD)
    path.write_bytes(path.read_bytes()[:-1])
    flip(layout.shard_path("train-00000-of-00008"), 300)
    (problem,) = verify(layout, ENGINE, depth="quick").problems
    assert (problem.kind, problem.subject) == (K.WRONG_SIZE, SHARD)


# manifests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("totals", {"train": {"images": "many"}}, "can't be understood"),
        ("totals", {}, "does not list"),
        ("shards", {}, "does not list"),
        ("schema", 99, "can't be understood"),
    ],
)
def test_damaged_manifest(layout: Layout, field: str, value: object, word: str) -> None:
    """A manifest that can't be used is a problem, and the shards are held against the journal."""
    edit_manifest(layout, lambda manifest: manifest.update({field: value}))
    first, *others = problems_of(layout)
    assert (first.kind, first.subject) == (K.BAD_MANIFEST, "manifest.json")
    assert word in first.detail
    assert others == []


def test_manifest_that_may_not_be_read(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest for which the right is missing may be sound:
    that is an error, and nothing is to be removed.
    """
    true_open = os.open

    def refuse(path: Any, *given: Any, **options: Any) -> int:
        if isinstance(path, str | Path) and Path(path) == layout.manifest_path:
            raise PermissionError(13, "Permission denied", str(path))
        return true_open(path, *given, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InputError, match="Permission denied") as caught:
        verify(layout, ENGINE)
    assert "remove" not in str(caught.value)


def test_a_conversion_under_way(layout: Layout) -> None:
    """Without a manifest yet, what is missing is to be made,
    and a damaged shard is made by convert.
    """
    layout.manifest_path.unlink()
    layout.shard_path("train-00005-of-00008").unlink()
    flip(layout.shard_path(SHARD), 300)
    missing, damaged = problems_of(layout)
    assert (missing.kind, missing.subject) == (K.MISSING_SHARD, "train-00005-of-00008")
    assert missing.remedy.startswith(
        "run the same imagenet-prep convert again: it makes what is missing; "
    )
    assert damaged.remedy == (
        "remove each damaged shard before you run the same imagenet-prep convert again: "
        "it keeps shards that are there, and makes those that are missing"
    )


def test_a_quick_look_proves_little(layout: Layout) -> None:
    """A quick look never calls a set whole; of foreign shards it names those of 0 bytes,
    and a split without any.
    """
    quick = verify(layout, ENGINE, depth="quick")
    assert quick.level == "incomplete"
    assert quick.conclusion.endswith(" A quick check does not read the content of the shards.")
    shutil.rmtree(layout.state_dir)
    for path in existing(layout.data_dir, "validation-*"):
        path.unlink()
    layout.shard_path(SHARD).write_bytes(b"")
    found = [
        (problem.kind, problem.subject)
        for problem in verify(layout, ENGINE, depth="quick").problems
    ]
    assert found == [(K.WRONG_SIZE, SHARD), (K.MISSING_SHARD, "validation")]


def test_shards_without_a_record(tmp_path: Path) -> None:
    """Empty files are no set of anything, even if a part is expected."""
    for index in range(3):
        (tmp_path / f"train-{index:05d}-of-00003").write_bytes(b"")
    verdict = verify(Layout(tmp_path), ENGINE, allow_incomplete=True)
    assert [problem.detail for problem in verdict.problems] == ["it holds no record"] * 3
    quick = verify(Layout(tmp_path), ENGINE, depth="quick", allow_incomplete=True)
    for problem in (*verdict.problems, *quick.problems):
        assert problem.remedy.endswith("fewer images than shards: then some shards hold no record")
    assert verdict.flavour == "none"


def test_manifest_of_another_partition(layout: Layout) -> None:
    """Shards whose record counts are not those of the partition can't be what convert made."""

    def move_one(manifest: dict[str, Any]) -> None:
        one_more(manifest["shards"][SHARD], "records")
        one_more(manifest["shards"]["train-00004-of-00008"], "records", -1)

    edit_manifest(layout, move_one)
    detail = "its train shards have other numbers of records than convert gives them"
    assert problems_of(layout)[0].detail == detail


# what records say ---------------------------------------------------------------------------------


def rewritten(
    layout: Layout, number: int, change: Callable[[dict[str, Feature]], object]
) -> ShardReport:
    """The report of SHARD, as another tool's, once the features of one
    record are changed and soundly framed.
    """
    path = layout.shard_path(SHARD)
    data = [bytes(record.data) for record in records_of(path)]
    features = parse_example(memoryview(data[number]))
    change(features)
    data[number] = encode_example(features)
    path.write_bytes(framed(*data))
    layout.index_path(SHARD).unlink(missing_ok=True)
    return ShardCheck(layout, ImageNetExaminer())(SHARD)


def put(name: str, feature: Feature) -> Callable[[dict[str, Feature]], object]:
    """A change that sets one feature."""
    return lambda features: features.__setitem__(name, feature)


BOX = "image/object/bbox/"
FOUR = {f"{BOX}{edge}": FloatList((0.5,)) for edge in ("xmin", "ymin", "xmax", "ymax")}


def put_box(*corners: float) -> Callable[[dict[str, Feature]], object]:
    """A change that sets the one box."""

    def change(features: dict[str, Feature]) -> None:
        for edge, value in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True):
            features[f"{BOX}{edge}"] = FloatList((value,))
        features[f"{BOX}label"] = features["image/class/label"]

    return change


@pytest.mark.parametrize(
    ("change", "kind", "word"),
    [
        (
            lambda features: features.pop("image/class/text"),
            K.BAD_FIELD,
            "image/class/text is missing",
        ),
        (
            put("image/height", FloatList((16.0,))),
            K.BAD_FIELD,
            "image/height holds float, expected int64",
        ),
        (
            put("image/colorspace", BytesList((b"grey",))),
            K.BAD_FIELD,
            "image/colorspace: expected 'RGB', got 'grey'",
        ),
        (
            put("image/format", BytesList((b"PNG",))),
            K.BAD_FIELD,
            "image/format: expected 'JPEG', got 'PNG'",
        ),
        (put("image/filename", BytesList((b"\xff",))), K.BAD_FIELD, "image/filename is not UTF-8"),
        (
            put("image/filename", BytesList((b"cat\x1b[2J.jpg",))),
            K.BAD_FIELD,
            "expected <wnid>_<number>.JPEG",
        ),
        (
            put("image/filename", BytesList((b"n01440764_1.JPEG",))),
            K.WRONG_LABEL,
            "an image of n01440764: expected 1, got",
        ),
        (put("image/class/label", Int64List((0,))), K.WRONG_LABEL, "got 0"),
        (
            put("image/class/synset", BytesList((b"n1",))),
            K.WRONG_LABEL,
            "image/class/synset: expected",
        ),
        (
            put("image/class/text", BytesList((b"a cat",))),
            K.WRONG_LABEL,
            "image/class/text: expected",
        ),
        (
            put("image/height", Int64List((17,))),
            K.SIZE_MISMATCH,
            "image/height: expected 16, as in its JPEG, got 17",
        ),
        (put("image/encoded", BytesList((b"\x89PNG\r\n\x1a\n",))), K.BAD_IMAGE, "not a JPEG"),
        (lambda f: f.update(FOUR), K.BAD_BOX, "lengths: xmin 1, ymin 1, xmax 1, ymax 1, label 0"),
        (
            lambda f: f.update({**FOUR, f"{BOX}label": Int64List((7,))}),
            K.BAD_BOX,
            "label of box 0: expected",
        ),
        (put_box(0.6, 0.0, 0.5, 1.0), K.BAD_BOX, "box 0"),
        (put_box(-0.1, 0, 1, 1), K.BAD_BOX, "box 0"),
        (put_box(0, 0, 1, 1.5), K.BAD_BOX, "box 0"),
        (put_box(float("nan"), 0, 1, 1), K.BAD_BOX, "box 0"),
    ],
)
def test_wrong_field(
    layout: Layout, change: Callable[[dict[str, Feature]], object], kind: K, word: str
) -> None:
    """A record that contradicts the tables, its image or the format is
    named with what was expected.
    """
    boxless = next(
        r.number for r in records_of(layout.shard_path(SHARD)) if not read_record(r.data).boxes
    )
    problems = rewritten(layout, boxless, change).problems
    matching = [problem for problem in problems if problem.kind is kind and word in problem.detail]
    assert matching, problems
    assert matching[0].detail.startswith(f"record {boxless} at byte ")
    assert all(problem.detail.isprintable() for problem in problems)


def test_cut_and_broken_images(layout: Layout) -> None:
    """An image without its end is found at once, one with a broken inside by decoding."""
    data = read_record(records_of(layout.shard_path(SHARD))[0].data).encoded
    broken = bytearray(data)
    broken[-40:-2] = b"\xff\xfe" * 19
    (problem,) = rewritten(layout, 0, put("image/encoded", BytesList((bytes(data[:-2]),)))).problems
    assert (problem.kind, "cut short" in problem.detail) == (K.BAD_IMAGE, True)
    assert rewritten(layout, 0, put("image/encoded", BytesList((bytes(broken),)))).problems == ()
    (problem,) = ShardCheck(layout, ImageNetExaminer(decode=True))(SHARD).problems
    assert (problem.kind, "does not decode" in problem.detail) == (K.BAD_IMAGE, True)


def test_many_problems_are_counted(layout: Layout) -> None:
    """Of many problems of one kind in a shard 20 are spelled out and the rest counted."""
    path = layout.shard_path(SHARD)
    path.write_bytes(framed(*[b"\xff"] * 50))
    problems = [
        problem
        for problem in ShardCheck(layout, ImageNetExaminer())(SHARD).problems
        if problem.kind is K.BAD_EXAMPLE
    ]
    assert len(problems) == 21
    assert problems[-1].detail == "and 30 more of this kind"


# garbage ------------------------------------------------------------------------------------------


def test_absurd_length(layout: Layout) -> None:
    """A length of 2^63 with a right CRC is a problem, plain or compressed;
    nothing of that size is asked for.
    """
    size = struct.pack("<Q", 1 << 63)
    header = size + struct.pack("<I", tfrecord.mask(tfrecord.crc32c(size)))
    path = layout.shard_path(SHARD)
    content = path.read_bytes()
    path.write_bytes(content + header + b"xx")
    number = len(list(tfrecord.iter_records(memoryview(content))))
    (problem,) = ShardCheck(layout, ImageNetExaminer())(SHARD).problems
    assert problem.detail.startswith(
        f"record {number} at byte {len(content)}: expected {1 << 63:,} bytes"
    )
    path.write_bytes(zlib.compress(content + header + b"xx"))
    (problem,) = ShardCheck(layout, ImageNetExaminer())(SHARD).problems
    assert (problem.kind, f"{1 << 63:,} bytes" in problem.detail) == (K.BAD_LENGTH, True)


def test_plain_file_that_begins_like_a_compressed_one() -> None:
    """A plain length field that happens to spell a gzip or zlib header is not taken for one."""
    for length in (0x8B1F, 0x9C78):
        view = memoryview(framed(bytes(length)))
        assert compressed.detect(view) == "none"
        assert [len(record.data) for record in compressed.iter_records(view, "none")] == [length]


@settings(deadline=None)
@given(
    records=st.lists(st.binary(max_size=300), max_size=5),
    junk=st.binary(max_size=10),
    data=st.data(),
)
def test_compressed_records(records: list[bytes], junk: bytes, data: st.DataObject) -> None:
    """Compressed records come back as they were; a cut or changed file
    ends in a FramingError or in fewer records.
    """
    content = zlib.compress(framed(*records))
    found = list(compressed.iter_records(memoryview(content), "zlib"))
    assert [bytes(record.data) for record in found] == records
    assert all(record.intact for record in found)
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(tfrecord.FramingError):
        list(compressed.iter_records(memoryview(content[:cut] + junk), "zlib"))


@pytest.mark.parametrize("junk", [b"x", b"\0", b"<html>no such file</html>"])
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_bytes_after_a_compressed_stream(compression: str, junk: bytes) -> None:
    """The stream is whole: it is not said to be damaged or cut short, as other bytes follow it."""
    deflate = {"gzip": gzip.compress, "zlib": zlib.compress}[compression]
    content = deflate(framed(b"one")) + deflate(framed(b"two"))
    found = compressed.iter_records(memoryview(content + junk), compression)
    assert [bytes(next(found).data) for _ in range(2)] == [b"one", b"two"]
    with pytest.raises(compressed.CompressionError) as caught:
        next(found)
    assert caught.value.reason == (
        f"the {compression} stream ends, and the bytes after it are not another whole one"
    )
    with pytest.raises(
        tfrecord.TruncatedError, match=f"read as {compression}, the file ends too early"
    ):
        list(compressed.iter_records(memoryview(content[:-1]), compression))


def test_content_that_ends_in_a_header() -> None:
    """The compressed file is whole: its content ends there."""
    content = zlib.compress(framed(b"one") + b"x")
    with pytest.raises(tfrecord.TruncatedError) as caught:
        list(compressed.iter_records(memoryview(content), "zlib"))
    assert caught.value.reason == (
        "the content ends 1 byte into a 12-byte header, or other bytes follow the last record"
    )


# other tools --------------------------------------------------------------------------------------


def test_foreign_set_written_by_tensorflow(tmp_path: Path, sound: Layout, tf: Any) -> None:
    """Shards of TensorFlow's own writer verify without a manifest;
    that they are a part is all there is to say.
    """
    for path in existing(sound.data_dir, "*-of-00008")[::2]:
        split, index = path.name.split("-")[0], int(path.name.split("-")[1]) // 2
        with tf.io.TFRecordWriter(str(tmp_path / f"{split}-{index:05d}-of-00004")) as writer:
            for data in data_of(path):
                example = tf.train.Example.FromString(data)
                writer.write(example.SerializeToString())
    verdict = verify(Layout(tmp_path), ENGINE)
    assert [(problem.kind, problem.subject) for problem in verdict.problems] == [
        (kind, split) for kind in (K.MISSING_IMAGE, K.MISSING_CLASS) for split in facts.SPLITS
    ]
    assert verdict.problems[0].detail == "1,281,019 of 1,281,167 images are missing"
    assert verdict.problems[0].remedy == (
        "make the set again from all images; "
        "if it is meant to be a part of ILSVRC2012, run verify with --allow-incomplete"
    )
    assert verdict.problems[1].detail.startswith(
        "49,960 of 50,000 images are missing: ILSVRC2012_val_0000"
    )
    assert not verdict.has_manifest
    assert verdict.level == "incomplete"
    quick = verify(Layout(tmp_path), ENGINE, depth="quick")
    assert (quick.problems, quick.level) == ((), "foreign")
    assert [split.records for split in quick.totals] == [None, None]


def test_foreign_set_of_two_counts(layout: Layout) -> None:
    """Without a manifest the set is the larger one:
    what belongs to another is stray, what it lacks is missing.
    """
    shutil.rmtree(layout.state_dir)
    layout.shard_path(SHARD).rename(layout.data_dir / "train-00003-of-00009")
    first, second, *_ = problems_of(layout)
    assert (first.kind, first.subject) == (K.MISSING_SHARD, SHARD)
    assert (second.kind, second.subject) == (K.STRAY_FILE, "train-00003-of-00009")


def test_a_name_that_speaks_of_millions_is_no_set(tmp_path: Path) -> None:
    """One file can't make verify list millions that are missing:
    it says how many there are, and stops.
    """
    (tmp_path / "train-00000-of-9999999").touch()
    with (
        processor_time(),
        pytest.raises(InputError, match=r"1 of 9,999,999 train shards"),
    ):
        verify(Layout(tmp_path), ENGINE)


def test_an_interrupted_conversion_is_said_to_be_one(layout: Layout) -> None:
    """First that it is not finished, and how to go on;
    then every shard that it set out to make is looked for.
    """
    manifest = load_manifest(layout.manifest_path)
    layout.manifest_path.unlink()
    gone = [
        "train-00001-of-00008",
        *(name for name in manifest.shards if name.startswith("validation")),
    ]
    for name in gone:
        layout.shard_path(name).unlink()
    journal = layout.journal_path
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(
        b"".join(line for line in lines if not any(name.encode() in line for name in gone))
    )
    verdict = verify(layout, ENGINE, progress=Silent())
    count = f"{len(manifest.shards) - len(gone)} of {len(manifest.shards)} shards"
    command = "imagenet-prep convert"
    assert verdict.notes[0].startswith(
        f"this conversion is not finished ({count} done); to resume: {command} "
    )
    assert [problem.subject for problem in verdict.problems] == gone
    assert not any(
        "2018" in note or "partition" in note or "manifest" in note for note in verdict.notes
    )
    assert [total.expected for total in verdict.totals] == [
        total.images for total in manifest.totals.values()
    ]
    words = shlex.split(verdict.notes[0].partition("to resume: imagenet-prep ")[2])
    assert cli.main(words, standalone_mode=False) == 0
    assert verify(layout, ENGINE).problems == ()


def test_many_missing_shards_are_one_line(
    layout: Layout, made_tiny: MadeSet, capfd: pytest.CaptureFixture[str]
) -> None:
    """More than three are told as how many and the first, on the terminal and the page;
    the verdict names each.
    """
    gone = [f"validation-{index:05d}-of-00008" for index in range(4)]
    for name in gone:
        layout.shard_path(name).unlink()
    assert cli.main(["verify", str(layout.data_dir)], standalone_mode=False) == 3
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("missing-shard")] == [
        f"missing-shard: 4 shards: {', '.join(gone[:3])}, ..."
    ]
    raw = made_tiny.archives["train"].parent
    to_do = f"to do: make it again: imagenet-prep repair {layout.data_dir} --raw {raw}"
    assert lines[-3:] == [to_do, "incomplete: 1 problem found.", "repaired: 3 images"]
    value = json.loads(layout.verdict_path.read_bytes())
    assert [problem["subject"] for problem in value["problems"]] == gone
    page = pipeline.report(layout, ENGINE, samples=0).path.read_text()
    assert str(raw) not in page  # the place of raw data is private
    assert f"<td>{', '.join(gone[:3])}, ...</td>" in page


def test_the_rest_of_many_missing_shards_is_not_told_twice(tmp_path: Path) -> None:
    """Of a thousand only some are spelled out in the verdict;
    a person is told their number, once.
    """
    (tmp_path / "train-00000-of-01024").touch()
    first, *others = verify(Layout(tmp_path), ENGINE, depth="quick").shown_problems
    assert (first.subject, first.count) == ("1,023 shards", 1023)
    assert [problem.kind for problem in others] == [K.WRONG_SIZE]
