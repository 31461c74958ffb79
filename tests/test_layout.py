"""DATA_DIR -> every path: names of shards, and which of two places is read."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from pathlib import Path

import pytest

import imagenet_prep
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.ilsvrc2012.box_search import find_boxes_csv
from imagenet_prep.ilsvrc2012.facts import ARCHIVES
from imagenet_prep.storage.layout import MAX_SHARDS, Layout, by_number, parse_shard_name, shard_name


@pytest.mark.parametrize(
    ("name", "split", "index", "count"),
    [
        ("train-00007-of-01024", "train", 7, 1024),
        ("my-set-00000-of-00001", "my-set", 0, 1),
        ("train-99999-of-100001", "train", 99_999, 100_001),
        ("train-100000-of-100001", "train", 100_000, 100_001),
        ("train-9999998-of-9999999", "train", 9_999_998, MAX_SHARDS),
    ],
)
def test_a_shard_has_its_name(name: str, split: str, index: int, count: int) -> None:
    """Split, index and number of shards, each of five digits as patterns of 2016 have it,
    or of more where it takes.
    """
    assert shard_name(split, index, count) == name
    assert parse_shard_name(name) == (split, index, count)


def test_shards_are_in_the_order_of_their_numbers() -> None:
    """Not in that of their characters, where there are more than five digits;
    other names are in theirs.
    """
    names = [shard_name("a", number, 100_002) for number in (99_998, 99_999, 100_000, 100_001)]
    names = ["a", *names, "b-00000-of-00002", "b-00001-of-00002", "c"]
    assert sorted(names, key=by_number) == names != sorted(names)


@pytest.mark.parametrize(
    "name",
    [
        "train-0-of-1",
        "train-000000-of-001024",
        "train-000000-of-100001",
        "train-00000-of-10000000",
        f"train-00000-of-{'9' * 5000}",
        "train-\u0661\u0661\u0661\u0661\u0661-of-\u0662\u0662\u0662\u0662\u0662",
        "-00000-of-01024",
        "train-00000-of-01024.tmp",
        "train-00000-of-01024\n",
        "",
    ],
)
def test_what_is_no_shards_name(name: str) -> None:
    """Other digits, something before or after, or half of it: no shard."""
    assert parse_shard_name(name) is None


def test_shards_are_those_of_the_splits(tmp_path: Path) -> None:
    """What lies under the name of a shard of these splits is found with its size;
    a link to nothing is not.
    """
    for name, size in {
        "train-00000-of-00002": 3,
        "train-00001-of-00002": 0,
        "test-00000-of-00001": 5,
    }.items():
        (tmp_path / name).write_bytes(bytes(size))
    (tmp_path / "train-00000-of-00002.partial").touch()
    (tmp_path / "train-00000-of-00009").symlink_to(tmp_path / "nowhere")
    layout = Layout(tmp_path)
    assert layout.find_shards(["train"]) == {"train-00000-of-00002": 3, "train-00001-of-00002": 0}
    assert layout.find_shards(["test", "validation"]) == {"test-00000-of-00001": 5}
    assert Layout(tmp_path / "none").find_shards(["train"]) == {}


def test_an_archive_is_read_where_it_is(tmp_path: Path) -> None:
    """The raw folder comes first; boxes that it lacks may be where download put them,
    and images may not.
    """
    layout, archive = Layout(tmp_path / "data", raw=tmp_path / "raw"), ARCHIVES["boxes"]
    in_raw, own = (
        tmp_path / "raw" / archive.filename,
        tmp_path / "data" / "raw-data" / archive.filename,
    )
    for path in (in_raw, own):
        path.parent.mkdir(parents=True)
    assert layout.extra_path(archive) == in_raw
    own.touch()
    assert layout.archive_path(archive) == in_raw
    assert layout.extra_path(archive) == own
    in_raw.touch()
    assert layout.extra_path(archive) == in_raw


def test_boxes_are_read_where_they_are(tmp_path: Path) -> None:
    """What annotate made here comes before what lies in the raw folder;
    each split has boxes of its own.
    """
    layout = Layout(tmp_path / "data", raw=tmp_path / "raw")
    for folder in (layout.own_raw_dir, layout.raw_dir):
        folder.mkdir(parents=True)
    assert find_boxes_csv(layout, "train") is None
    there = layout.raw_dir / layout.boxes_csv.name
    there.touch()
    assert find_boxes_csv(layout, "train") == there
    assert find_boxes_csv(layout, "validation") is None
    layout.boxes_csv.touch()
    assert find_boxes_csv(layout, "train") == layout.boxes_csv
    layout.validation_boxes_csv.touch()
    assert find_boxes_csv(layout, "validation") == layout.validation_boxes_csv


def test_both_folders_have_a_lock(tmp_path: Path) -> None:
    """DATA_DIR is locked, and the folder of the shards where that is another."""
    locks = Layout(tmp_path / "data", output=tmp_path / "out").lock_paths
    assert {path.parent.parent for path in locks} == {tmp_path / "data", tmp_path / "out"}


@pytest.mark.parametrize("folder", ["plain", "with blank", "it's", "$HOME", "-x", "a;b"])
def test_a_command_can_be_copied(folder: str) -> None:
    """A shell reads the folder as the one argument that it is, and none of it as an option."""
    words = shlex.split(command("verify", Path(folder), (("depth", "quick"),)))
    assert words == [
        "imagenet-prep",
        "verify",
        f"./{folder}" if folder.startswith("-") else folder,
        "--depth",
        "quick",
    ]


def test_a_folder_that_may_not_be_searched_is_named(tmp_path: Path) -> None:
    """Where the sets are looked for, as well as where the shards are."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    user = os.geteuid()
    with contextlib.suppress(PermissionError):
        os.seteuid(65534)
    try:
        with pytest.raises(InputError, match=f"^{re.escape(str(closed))}.* can't be read"):
            imagenet_prep.open(closed, "train")
    finally:
        os.seteuid(user)
