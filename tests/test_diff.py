"""diff: which records of two sets differ, where, and in which feature; what need not be read is not read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_sets import PART, converted, copied, data_of, edit_manifest, flip, write
from running import command, prep

from imagenet_prep import Layout, diff
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.reading.shard import Shard

TRAIN, VALIDATION = 0, 1
FIRST = "train-00000-of-00008"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """A set without boxes. Read only."""
    return converted(tmp_path_factory.mktemp("diff") / "plain", made_tiny)


def test_a_copy_is_the_same_and_no_shard_is_opened(
    plain: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the manifests say is enough where the sizes agree; with the manifest of a set elsewhere, too."""
    copy = copied(plain, tmp_path / "copy")
    monkeypatch.setattr(Shard, "open", pytest.fail)
    for second in (copy.data_dir, copy.manifest_path):
        found = diff(plain.data_dir, second)
        assert found.is_same
        assert [(each.split, each.records, each.shards) for each in found.splits] == [
            ("train", (300, 300), (8, 8)),
            ("validation", (80, 80), (8, 8)),
        ]


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
    """Bare shards, as another tool leaves them, are compared by their headers: same, and with one record changed."""
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
    assert (found.moved, found.only, diff(plain.data_dir, bare).splits[VALIDATION].is_same) == (0, ((), ()), True)


def test_boxes_differ_and_nothing_else(plain: Layout, sound: Layout, made_tiny: MadeSet) -> None:
    """Just the images with boxes differ, and just in the features of boxes; as many are looked into as was said."""
    found = diff(plain.data_dir, sound.data_dir, look_into=5).splits[TRAIN]
    with_boxes = {line.partition(b",")[0].decode() for line in made_tiny.boxes_csv.splitlines()}
    assert {record.name for record in found.differing} == with_boxes
    looked_into = [record.features for record in found.differing if record.features is not None]
    assert len(looked_into) == 5
    for features in looked_into:
        assert set(features) == {f"image/object/bbox/{each}" for each in ("label", "xmin", "xmax", "ymin", "ymax")}
        assert features["image/object/bbox/xmin"][0] == "[]"
    assert (found.moved, found.only) == (0, ((), ()))


def test_what_only_one_has(plain: Layout, tmp_path: Path) -> None:
    """A record that is missing, one that is there twice, and a split that is not there are told by name."""
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
    from imagenet_prep.tfrecord.example import Int64List, encode_example

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
    """A record whose data don't match their CRC is no feature of difference, but an error in words."""
    copy = copied(plain, tmp_path / "copy")
    copy.manifest_path.unlink()
    length = int.from_bytes(copy.shard_path(FIRST).read_bytes()[:8], "little")
    flip(copy.shard_path(FIRST), 12 + length // 2)
    flip(copy.shard_path(FIRST), 12 + length)  # its CRC too: else the headers are those of the other one
    (record,) = diff(plain.data_dir, copy.data_dir).splits[TRAIN].differing
    assert record.features is not None
    assert "the data does not match its CRC" in record.features["the record"][1]


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
        (lambda layout: layout.manifest_path.unlink(), "holds every shard of a set, but not its manifest"),
        (lose_split, "holds an unfinished set: 8 shards are not done, validation-00000-of-00008 first"),
        (add_other_count, "train-00000-of-00001 is not a shard of its manifest"),
    ],
)
def test_a_set_that_is_not_finished_is_never_equal(
    plain: Layout, tmp_path: Path, change: Callable[[Layout], object], problem: str
) -> None:
    """Its state is named, its shards are compared all the same, and the exit status is 3, in either order."""
    copy = copied(plain, tmp_path / "copy")
    change(copy)
    for places in ((plain.data_dir, copy.data_dir), (copy.data_dir, plain.data_dir), (copy.data_dir, copy.data_dir)):
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
        value["shards"] = {name: info for name, info in value["shards"].items() if not name.startswith("train")}

    edit_manifest(copy, older)
    train = diff(plain.data_dir, copy.data_dir).splits[TRAIN]
    assert (train.records, train.shards, train.is_same) == ((300, 300), (8, 8), True)
    data = data_of(copy.shard_path(FIRST))
    write(copy.shard_path(FIRST), [data[0].replace(b"RGB", b"RGX", 1), *data[1:]])
    assert len(diff(plain.data_dir, copy.data_dir).splits[TRAIN].differing) == 1


@pytest.mark.parametrize(("name", "error"), [("nope", UsageError), ("empty", InputError)])
def test_nothing_to_compare(plain: Layout, tmp_path: Path, name: str, error: type[Exception]) -> None:
    """A folder that is not there, or holds no shards, is named."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(error) as caught:
        diff(plain.data_dir, tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_the_command(plain: Layout, sound: Layout, tmp_path: Path) -> None:
    """Status 0 and a line for the same, 3 and names for others; JSON says the same; a damaged manifest is refused."""
    same = prep("diff", plain.data_dir, plain.data_dir)
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "Both sets hold the same records in the same places.")
    other = command("diff", plain.data_dir, sound.data_dir, "--limit", 1, status=3)
    assert "train: 300 records in 8 shards, 300 in 8" in other.stdout
    assert other.stdout.count("    image/object/bbox/xmin: [] / ") == 1
    assert "more\n" in other.stdout
    value = json.loads(prep("diff", plain.data_dir, sound.data_dir, "--json", "-").stdout)
    assert (value["is_same"], value["splits"][0]["is_same"], value["splits"][1]["is_same"]) == (False, False, True)
    broken = tmp_path / "manifest.json"
    broken.write_text(plain.manifest_path.read_text().replace('"records": ', '"records": 1', 1))
    refused = command("diff", plain.data_dir, broken, status=4)
    assert "error: " in refused.stderr
