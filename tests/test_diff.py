"""diff: which records of two sets differ, where, and in which feature;
what need not be read is not read.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from existing import existing
from made_sets import ENGINE, PART, converted, copied, data_of, edit_manifest, flip, write
from running import command, prep

from imagenet_prep import Layout, diff, make_engine
from imagenet_prep.checks.set_difference import Difference
from imagenet_prep.cli.printing.difference_text import SAME
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.model import Engine
from imagenet_prep.reading.shard import Shard
from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord.example import (
    BytesList,
    FloatList,
    Int64List,
    delimited,
    encode_example,
    encode_sequence_example,
    iter_entries,
)

tf = tf_fixture.tf

TRAIN, VALIDATION = 0, 1
FIRST = "train-00000-of-00008"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """A set without boxes. Read only."""
    return converted(tmp_path_factory.mktemp("diff") / "plain", made_tiny)


def test_a_copy_is_the_same_and_no_shard_is_opened(
    plain: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the manifests say is enough where the sizes agree;
    with the manifest of a set elsewhere, too.
    """
    copy = copied(plain, tmp_path / "copy")
    monkeypatch.setattr(Shard, "open", pytest.fail)
    for second in (copy.data_dir, copy.manifest_path):
        found = diff(plain.data_dir, second)
        assert found.is_same
        assert [(each.split, each.records, each.shards) for each in found.splits] == [
            ("train", (300, 300), (8, 8)),
            ("validation", (80, 80), (8, 8)),
        ]


def change_a_record(shard: Path) -> None:
    """Another value, with its CRC."""
    data = data_of(shard)
    write(shard, [data[0].replace(b"RGB", b"RGX", 1), *data[1:]])


def change_a_byte(shard: Path) -> None:
    """A byte of an image, below its old CRC."""
    flip(shard, int.from_bytes(shard.read_bytes()[:8], "little") // 2)


@pytest.mark.parametrize("change", [change_a_record, change_a_byte])
def test_equal_manifests_are_no_word_of_equal_data(
    plain: Layout, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """Data that changed below an unchanged manifest: the line says what was compared, and the
    command that it names finds the record; so does diff after a verify.
    """
    copy = copied(plain, tmp_path / "copy")
    change(copy.shard_path(FIRST))
    outcome = tmp_path / "outcome.json"
    printed = command("diff", plain.data_dir, copy.data_dir, "--json", outcome).stdout
    assert "Both sets" not in printed
    assert "By their manifests and checksums" in printed
    assert "diff --data reads every record" in printed
    assert json.loads(outcome.read_text())["compared_by"] == "manifests and checksums"
    for other in (copy.data_dir, copy.manifest_path):
        read = diff(plain.data_dir, other, reads_data=True)
        assert read.is_same == (other == copy.manifest_path)
        assert read.as_dict()["compared_by"] == "data"
    assert not diff(plain.manifest_path, copy.data_dir, reads_data=True).is_same
    assert (
        "Every record was read: "
        in command("diff", plain.data_dir, plain.data_dir, "--data").stdout
    )
    command("verify", copy.data_dir, status=3)
    found = diff(copy.data_dir, plain.data_dir)
    assert (found.read_shards, len(found.splits[TRAIN].differing)) == ((FIRST,), 1)


def test_two_manifests_have_no_data(plain: Layout) -> None:
    """Two manifests can't be compared by data."""
    with pytest.raises(UsageError, match="--data reads shards"):
        diff(plain.manifest_path, plain.manifest_path, reads_data=True)


@pytest.mark.parametrize("with_index", [False, True])
def test_an_exchanged_shard_of_the_same_size_differs(
    plain: Layout, tmp_path: Path, made_tiny: MadeSet, with_index: bool
) -> None:
    """A shard of another set, with other labels, under the name that the manifest lists."""
    copy, other = copied(plain, tmp_path / "copy"), tmp_path / "other"
    options = PART.replace(relabel=0)
    theirs = converted(other, made_tiny, options)
    assert theirs.shard_path(FIRST).stat().st_size == copy.shard_path(FIRST).stat().st_size
    shutil.copy2(theirs.shard_path(FIRST), copy.shard_path(FIRST))
    for mine, their in zip(copy.index_paths(FIRST), theirs.index_paths(FIRST), strict=True):
        if with_index:
            shutil.copy2(their, mine)
    found = diff(plain.data_dir, copy.data_dir).splits[TRAIN]
    assert found.differing


def test_without_manifest_and_index_headers_tell(plain: Layout, tmp_path: Path) -> None:
    """Bare shards, as another tool leaves them, are compared by their headers:
    same, and with one record changed.
    """
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in plain.find_shards(("train", "validation")):
        (bare / name).write_bytes(plain.shard_path(name).read_bytes())
    assert diff(plain.data_dir, bare).is_same
    data = data_of(bare / FIRST)
    write(bare / FIRST, [data[0].replace(b"RGB", b"RGX", 1), *data[1:]])
    found = diff(plain.data_dir, bare).splits[TRAIN]
    assert not found.is_same
    assert [record.features for record in found.differing] == [{"image/colorspace": ("RGB", "RGX")}]
    assert (found.moved, found.only, diff(plain.data_dir, bare).splits[VALIDATION].is_same) == (
        0,
        ((), ()),
        True,
    )


def test_boxes_differ_and_nothing_else(plain: Layout, sound: Layout, made_tiny: MadeSet) -> None:
    """Just the images with boxes differ, and just in the features of boxes;
    as many are looked into as was said.
    """
    found = diff(plain.data_dir, sound.data_dir, look_into=5).splits[TRAIN]
    with_boxes = {line.partition(b",")[0].decode() for line in made_tiny.boxes_csv.splitlines()}
    assert {record.name for record in found.differing} == with_boxes
    looked_into = [record.features for record in found.differing if record.features is not None]
    assert len(looked_into) == 5
    for features in looked_into:
        assert set(features) == {
            f"image/object/bbox/{each}" for each in ("label", "xmin", "xmax", "ymin", "ymax")
        }
        assert features["image/object/bbox/xmin"][0] == "[]"
    assert (found.moved, found.only) == (0, ((), ()))


def test_what_only_one_has(plain: Layout, tmp_path: Path) -> None:
    """A record that is missing, one that occurs twice,
    and a split that is not there are told by name.
    """
    copy = copied(plain, tmp_path / "copy")
    data = data_of(copy.shard_path(FIRST))
    write(copy.shard_path(FIRST), [*data[1:], data[1]])
    for name in copy.find_shards(("validation",)):
        copy.shard_path(name).unlink()
    train, validation = diff(plain.data_dir, copy.data_dir).splits
    names = [record.filename for record in Shard.open(plain.shard_path(FIRST))]
    assert train.only == ((names[0],), (names[1],))
    assert train.moved == len(names) - 1
    assert (validation.shards, len(validation.only[0]), validation.only[1]) == ((8, 0), 80, ())


def test_a_manifest_alone_names_the_shards(plain: Layout, sound: Layout) -> None:
    """Of a set that is not at hand it is told which shards are not the same."""
    train, validation = diff(plain.data_dir, sound.manifest_path).splits
    assert train.other_shards == tuple(f"train-{each:05d}-of-00008" for each in range(8))
    assert validation.is_same


def test_records_of_any_kind(tmp_path: Path) -> None:
    """Records without a name are known by what they are; damaged data is said to be damaged."""
    one, other = (tmp_path / each for each in ("one", "other"))
    records = [encode_example({"x": Int64List([number])}) for number in range(4)]
    for folder, chosen in ((one, records), (other, [*records[:2], records[3], records[2]])):
        folder.mkdir()
        write(folder / "train-00000-of-00001", chosen)
    (train,) = diff(one, other).splits
    assert (train.moved, train.only, train.differing) == (2, ((), ()), ())
    write(other / "train-00000-of-00001", records[:3])
    assert diff(one, other).splits[0].only == (("train-00000-of-00001 record 3",), ())


def test_damaged_data_are_said_to_be(plain: Layout, tmp_path: Path) -> None:
    """A record whose data don't match their CRC is no feature of difference,
    but an error in words.
    """
    copy = copied(plain, tmp_path / "copy")
    copy.manifest_path.unlink()
    length = int.from_bytes(copy.shard_path(FIRST).read_bytes()[:8], "little")
    flip(copy.shard_path(FIRST), 12 + length // 2)
    flip(
        copy.shard_path(FIRST), 12 + length
    )  # its CRC too: else the headers are those of the other one
    (record,) = diff(plain.data_dir, copy.data_dir).splits[TRAIN].differing
    assert record.features is not None
    assert "its length or its data does not match its CRC" in record.features["the record"][1]


def lose_split(layout: Layout) -> None:
    """Every shard of one planned split is gone, and the manifest."""
    layout.manifest_path.unlink()
    for name in layout.find_shards(["validation"]):
        layout.shard_path(name).unlink()


def add_other_count(layout: Layout) -> None:
    """A shard of another count lies beside the set."""
    write(layout.shard_path("train-00000-of-00001"), data_of(layout.shard_path(FIRST)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda layout: layout.manifest_path.unlink(),
            "holds every shard of a set, but manifest.json is missing",
        ),
        (
            lose_split,
            "holds an unfinished set: 8 shards are not done, validation-00000-of-00008 first",
        ),
        (add_other_count, "train-00000-of-00001 is not in manifest.json"),
    ],
)
def test_a_set_that_is_not_finished_is_never_equal(
    plain: Layout, tmp_path: Path, change: Callable[[Layout], object], problem: str
) -> None:
    """Its state is named, its shards are compared all the same,
    and the exit status is 3, in either order.
    """
    copy = copied(plain, tmp_path / "copy")
    change(copy)
    for places in (
        (plain.data_dir, copy.data_dir),
        (copy.data_dir, plain.data_dir),
        (copy.data_dir, copy.data_dir),
    ):
        found = diff(*places)
        assert not found.is_same
        assert all(problem in said for said in found.problems)
        assert problem in command("diff", *places, status=3).stdout
        assert found.splits[TRAIN].records[0] >= 300
    assert json.loads(command("diff", *places, "--json", "-", status=3).stdout)["problems"]
    assert command("diff", *places, "--quiet", status=3).stdout == ""


def test_shards_that_an_older_manifest_lacks_are_compared(plain: Layout, tmp_path: Path) -> None:
    """A split that came after the manifest was written holds records, not none."""
    copy = copied(plain, tmp_path / "copy")

    def older(value: dict[str, Any]) -> None:
        value["dataset"]["splits"].remove("train")
        del value["totals"]["train"]
        value["shards"] = {
            name: info for name, info in value["shards"].items() if not name.startswith("train")
        }

    edit_manifest(copy, older)
    train = diff(plain.data_dir, copy.data_dir).splits[TRAIN]
    assert (train.records, train.shards, train.is_same) == ((300, 300), (8, 8), True)
    data = data_of(copy.shard_path(FIRST))
    write(copy.shard_path(FIRST), [data[0].replace(b"RGB", b"RGX", 1), *data[1:]])
    assert len(diff(plain.data_dir, copy.data_dir).splits[TRAIN].differing) == 1


@pytest.mark.parametrize(("name", "error"), [("nope", UsageError), ("empty", InputError)])
def test_nothing_to_compare(
    plain: Layout, tmp_path: Path, name: str, error: type[Exception]
) -> None:
    """A folder that is not there, or holds no shards, is named."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(error) as caught:
        diff(plain.data_dir, tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_a_file_that_is_no_manifest(plain: Layout, tmp_path: Path) -> None:
    """A shard in place of its folder, or any other file: it is not to be removed."""
    shard = plain.shard_path(FIRST)
    with pytest.raises(UsageError, match="is one shard") as caught:
        diff(plain.data_dir, shard)
    assert caught.value.hint == f"name its folder: {plain.data_dir}"
    (tmp_path / "notes.txt").write_text("text")
    with pytest.raises(InputError, match=r"notes.txt can't be understood") as caught:
        diff(plain.data_dir, tmp_path / "notes.txt")
    assert caught.value.hint == "name another file, or the folder that holds the shards"


def test_the_command(plain: Layout, sound: Layout, tmp_path: Path) -> None:
    """Status 0 and a line for the same, 3 and names for others;
    JSON says the same; a damaged manifest is refused.
    """
    same = prep("diff", plain.data_dir, plain.data_dir)
    assert (same.returncode, same.stdout.splitlines()[-1]) == (
        0,
        SAME,
    )
    other = command("diff", plain.data_dir, sound.data_dir, "--limit", 1, status=3)
    assert "train: 300 records in 8 shards, 300 in 8" in other.stdout
    assert other.stdout.count("    image/object/bbox/xmin: [] / ") == 1
    assert "more\n" in other.stdout
    value = json.loads(prep("diff", plain.data_dir, sound.data_dir, "--json", "-").stdout)
    assert (value["is_same"], value["splits"][0]["is_same"], value["splits"][1]["is_same"]) == (
        False,
        False,
        True,
    )
    broken = tmp_path / "manifest.json"
    broken.write_text(plain.manifest_path.read_text().replace('"records": ', '"records": 1', 1))
    refused = command("diff", plain.data_dir, broken, status=4)
    assert "error: " in refused.stderr


# whatever the encoding ----------------------------------------------------------------------------

ONE = "train-00000-of-00001"


def shuffled_map(data: bytes, seed: int) -> bytes:
    """The same Example with the entries of its map in another order."""
    entries = [delimited(1, bytes(entry)) for entry in iter_entries(data)]
    before = list(entries)
    while entries == before:
        random.Random(seed).shuffle(entries)
        seed += 1000
    return delimited(1, b"".join(entries))


def bare(
    layout: Layout, folder: Path, change: Callable[[bytes, int], bytes] = lambda data, _: data
) -> Path:
    """The shards of a set alone, as another program leaves them, each record changed."""
    folder.mkdir()
    for name in layout.find_shards():
        data = data_of(layout.shard_path(name))
        write(folder / name, [change(record, number) for number, record in enumerate(data)])
    return folder


def two_sets(folder: Path, first: Sequence[bytes], second: Sequence[bytes]) -> tuple[Path, Path]:
    """Two folders with one shard each."""
    places = folder / "one", folder / "other"
    for place, records in zip(places, (first, second), strict=True):
        place.mkdir()
        write(place / ONE, records)
    return places


def numbered(count: int, **constant: BytesList) -> list[bytes]:
    """Records without a name of their own: a number, and values that all share."""
    return [
        encode_example({"x": Int64List((number,)), "y": FloatList((0.5,)), **constant})
        for number in range(count)
    ]


def facts(found: Difference) -> tuple[bool, int, int, int, int]:
    """Whether both are the same; records that moved, are encoded differently,
    and differ, and are in one set alone.
    """
    (split,) = found.splits
    alone = len(split.only[0]) + len(split.only[1])
    return found.is_same, split.moved, split.encoded_differently, len(split.differing), alone


@pytest.mark.parametrize(
    "engine", [None, ENGINE, make_engine("processes", 2)], ids=["here", "threads", "processes"]
)
def test_a_set_is_the_same_as_itself_with_every_map_shuffled(
    plain: Layout, tmp_path: Path, engine: Engine | None
) -> None:
    """No record differs, and the number of records with another encoding is told;
    with --bytes each of them differs.
    """
    other = bare(plain, tmp_path / "other", shuffled_map)
    found = diff(plain.data_dir, other, engine=engine)
    assert found.is_same
    assert [
        (split.encoded_differently, split.differing, split.moved) for split in found.splits
    ] == [
        (300, (), 0),
        (80, (), 0),
    ]
    by_bytes = diff(plain.data_dir, other, engine=engine, by_bytes=True, look_into=1)
    assert [(len(split.differing), split.encoded_differently) for split in by_bytes.splits] == [
        (300, 0),
        (80, 0),
    ]
    assert not by_bytes.is_same
    assert by_bytes.splits[TRAIN].differing[0].features == {}


def test_the_command_tells_encodings(plain: Layout, tmp_path: Path) -> None:
    """Status 0 and the number of records; with --bytes status 3,
    and a line that says that no feature differs.
    """
    other = bare(plain, tmp_path / "other", shuffled_map)
    same = command("diff", plain.data_dir, other, "--workers", 2)
    assert same.stdout.count("  the same records, encoded differently: 300\n") == 1
    assert same.stdout.splitlines()[-1] == SAME
    by_bytes = command("diff", plain.data_dir, other, "--bytes", "--limit", 1, status=3).stdout
    assert "  300 records with other bytes:\n" in by_bytes
    assert by_bytes.count("    the same features, encoded differently\n") == 2
    value = json.loads(command("diff", plain.data_dir, other, "--json", "-").stdout)
    assert (value["is_same"], value["by_bytes"], value["splits"][0]["encoded_differently"]) == (
        True,
        False,
        300,
    )
    assert command("diff", plain.data_dir, other, "--bytes", "--quiet", status=3).stdout == ""


@pytest.mark.parametrize(
    "change", [lambda data, _: data, shuffled_map], ids=["the same bytes", "other maps"]
)
def test_compressed_shards_of_another_program(
    plain: Layout, tmp_path: Path, change: Callable[[bytes, int], bytes]
) -> None:
    """Shards compressed by gzip are compared record by record with plain ones;
    in either order of both sets.
    """
    other = bare(plain, tmp_path / "other", change)
    for path in existing(other, "*"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    for places in ((plain.data_dir, other), (other, plain.data_dir)):
        found = diff(*places)
        assert found.is_same
        assert found.splits[TRAIN].encoded_differently == (300 if change is shuffled_map else 0)


def test_records_moved_and_encoded_differently(plain: Layout, tmp_path: Path) -> None:
    """Records of one name in other shards are the same in any encoding;
    one that differs is told by feature.
    """
    other = tmp_path / "other"
    other.mkdir()
    data = [
        record
        for name in plain.find_shards(["train"])
        for record in data_of(plain.shard_path(name))
    ]
    moved = [shuffled_map(record, number) for number, record in enumerate(data)]
    random.Random(5).shuffle(moved)
    moved[7] = moved[7].replace(b"RGB", b"RGX", 1)
    names = [f"train-{number:05d}-of-00003" for number in range(3)]
    for number, name in enumerate(names):
        write(other / name, moved[number::3])
    found = diff(plain.data_dir, other).splits[TRAIN]
    assert (found.moved, found.encoded_differently, found.only) == (299, 299, ((), ()))
    (record,) = found.differing
    assert record.places[1] == f"{names[1]} record 2"
    assert record.features == {"image/colorspace": ("RGB", "RGX")}
    assert found.differing_features == {"image/colorspace": 1}
    for path in existing(other, "*"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert diff(plain.data_dir, other).splits[TRAIN] == found
    by_bytes = diff(plain.data_dir, other, by_bytes=True).splits[TRAIN]
    assert (by_bytes.moved, by_bytes.encoded_differently, len(by_bytes.differing)) == (0, 0, 300)


RECORDS = numbered(50)
SHUFFLED = [shuffled_map(record, number) for number, record in enumerate(RECORDS)]
NAMED = numbered(50, **{"image/filename": BytesList((b"%s",))})
STRANGE = encode_example({"x": Int64List((99,))})


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (RECORDS, RECORDS, (True, 0, 0, 0, 0)),
        (RECORDS, SHUFFLED, (True, 0, 50, 0, 0)),
        (RECORDS, RECORDS[::-1], (False, 50, 0, 0, 0)),
        (RECORDS, SHUFFLED[::-1], (False, 50, 50, 0, 0)),
        (RECORDS, RECORDS[1:], (False, 49, 0, 0, 1)),
        (RECORDS, SHUFFLED[1:], (False, 49, 49, 0, 1)),
        (RECORDS, [*SHUFFLED[:10], STRANGE, *SHUFFLED[11:]], (False, 0, 49, 1, 0)),
        (NAMED, [shuffled_map(record, 7) for record in NAMED[::-1]], (False, 50, 50, 0, 0)),
        (NAMED, NAMED[::-1], (False, 50, 0, 0, 0)),
        ([RECORDS[0]] * 3, [SHUFFLED[0]] * 4, (False, 0, 3, 0, 1)),
        ([RECORDS[0], SHUFFLED[0]], [SHUFFLED[0], RECORDS[0]], (True, 0, 2, 0, 0)),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_records_that_no_name_tells_apart(
    tmp_path: Path,
    first: Sequence[bytes],
    second: Sequence[bytes],
    expected: tuple[bool, int, int, int, int],
    compressed: bool,
) -> None:
    """Records without a name, or with one for all, are matched by their bytes,
    then by what they say.
    """
    places = two_sets(tmp_path, first, second)
    if compressed:
        (places[1] / ONE).write_bytes(gzip.compress((places[1] / ONE).read_bytes()))
    assert facts(diff(*places)) == expected


def with_one_checksum(**others: BytesList) -> tuple[bytes, bytes]:
    """Two Examples of one length and one CRC-32C: their values differ by its polynomial."""
    first = encode_example(
        {"a": Int64List((1,)), "b": Int64List(()), "x": BytesList((bytes(300),)), **others}
    )
    second, polynomial = (
        bytearray(first),
        0x82F63B78 << 1 | 1,
    )  # reflected: the highest power is the first bit
    for place, byte in enumerate(polynomial.to_bytes(5, "little"), first.index(bytes(300)) + 100):
        second[place] ^= byte
    return first, bytes(second)


@pytest.mark.parametrize(
    "others", [{}, {"image/filename": BytesList((b"%s",))}], ids=["no name", "one name for all"]
)
def test_records_with_one_checksum_are_told_apart(
    tmp_path: Path, others: dict[str, BytesList]
) -> None:
    """Among many records of one length some share a checksum:
    where bytes leave records over, contents decide.
    """
    first, second = with_one_checksum(**others)
    assert tfrecord.frame(first) == tfrecord.frame(second)
    assert first != second
    one = [first, shuffled_map(second, 1)]
    encodings = (shuffled_map(first, seed) for seed in range(2, 50))
    other = [
        next(each for each in encodings if tfrecord.frame(each) != tfrecord.frame(one[1])),
        second,
    ]
    assert facts(diff(*two_sets(tmp_path, one, other))) == (True, 0, 2, 0, 0)


@pytest.mark.parametrize(
    ("first", "second", "features"),
    [
        (
            encode_example({"x": Int64List((1,))}),
            encode_example({"x": FloatList((1.0,))}),
            {"x": ("1 (int64)", "1 (float)")},
        ),
        (
            encode_example({"x": Int64List(())}),
            encode_example({"x": FloatList(())}),
            {"x": ("[] (int64)", "[] (float)")},
        ),
        (encode_example({"x": Int64List(())}), encode_example({}), {"x": ("[]", "none")}),
        (
            encode_example({"x": FloatList((0.0,))}),
            encode_example({"x": FloatList((-0.0,))}),
            {"x": ("0", "-0")},
        ),
        (
            encode_sequence_example({}, {"s": [Int64List((1,)), Int64List((2, 3))]}),
            encode_sequence_example({}, {"s": [Int64List((1,)), Int64List((2, 4))]}),
            {"feature list s": ("[1, [2, 3]]", "[1, [2, 4]]")},
        ),
    ],
)
def test_values_as_text(
    tmp_path: Path, first: bytes, second: bytes, features: dict[str, tuple[str, str]]
) -> None:
    """Two values that differ are never shown by the same text;
    the kind is shown where it alone differs.
    """
    (record,) = diff(*two_sets(tmp_path, [first], [second])).splits[0].differing
    assert (record.name, record.features) == (f"{ONE} record 0", features)


def test_bits_that_no_text_shows(tmp_path: Path) -> None:
    """Two floats that are printed alike are shown with different digests."""
    numbers = FloatList((0.1,)), FloatList((0.1 + 2**-27,))
    places = two_sets(tmp_path, *([encode_example({"x": number})] for number in numbers))
    (record,) = diff(*places).splits[0].differing
    assert record.features is not None
    first, second = record.features["x"]
    assert first != second
    assert first.startswith("0.1 (SHA-256 ")


def test_records_of_no_example(tmp_path: Path) -> None:
    """Data that is no Example is the same if its bytes are;
    otherwise the record differs as a whole.
    """
    places = two_sets(tmp_path, [b"\xff text"], [b"\xfe text"])
    assert diff(places[0], places[0]).is_same
    (record,) = diff(*places).splits[0].differing
    assert record.features is not None
    assert "not a tf.train.Example" in record.features["the record"][0]


def test_a_manifest_alone_tells_bytes(plain: Layout, sound: Layout) -> None:
    """The shards with other bytes are named, and that a manifest doesn't
    tell whether features differ.
    """
    told = command("diff", plain.data_dir, sound.manifest_path, status=3).stdout
    assert "  8 shards with other bytes: train-00000-of-00008, " in told
    assert "a manifest doesn't tell whether their features differ" in told


def test_features_that_differ_are_counted(plain: Layout, sound: Layout, made_tiny: MadeSet) -> None:
    """The number of records in which each feature differs covers records
    beyond those that are shown.
    """
    found = diff(plain.data_dir, sound.data_dir, look_into=1).splits[TRAIN]
    with_boxes = len({line.partition(b",")[0] for line in made_tiny.boxes_csv.splitlines()})
    edges = ("label", "xmin", "xmax", "ymin", "ymax")
    assert found.differing_features == {f"image/object/bbox/{edge}": with_boxes for edge in edges}
    told = command("diff", plain.data_dir, sound.data_dir, status=3).stdout
    assert f"    image/object/bbox/xmin differs in {with_boxes} records\n" in told


def test_tensorflow_writes_the_same_records(tf: Any, plain: Layout, tmp_path: Path) -> None:
    """The records that TensorFlow serialises and writes,
    plain or compressed, are the same as ours.
    """
    for compression in ("", "GZIP", "ZLIB"):
        folder = tmp_path / f"written{compression}"
        folder.mkdir()
        for name in plain.find_shards():
            with tf.io.TFRecordWriter(
                str(folder / name), tf.io.TFRecordOptions(compression)
            ) as writer:
                for record in data_of(plain.shard_path(name)):
                    example = tf.train.Example()
                    for entry in random.Random(1).sample([*iter_entries(record)], 15):
                        example.MergeFromString(delimited(1, delimited(1, bytes(entry))))
                    writer.write(example.SerializeToString(deterministic=False))
        assert diff(plain.data_dir, folder).is_same


def test_no_other_record_is_read(
    plain: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a shard in which one record has other bytes, the data of this record alone is read."""
    from imagenet_prep.checks import shard_pair

    compared: list[tuple[str, ...]] = []
    original = shard_pair.differing_features

    def counted(*data: Any) -> tuple[str, ...]:
        compared.append(original(*data))
        return compared[-1]

    other = bare(plain, tmp_path / "other")
    data = data_of(other / FIRST)
    write(other / FIRST, [*data[:5], shuffled_map(data[5], 1), *data[6:]])
    monkeypatch.setattr(shard_pair, "differing_features", counted)
    assert diff(plain.data_dir, other).splits[TRAIN].encoded_differently == 1
    assert compared == [()]
