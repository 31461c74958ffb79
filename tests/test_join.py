"""open(..., join=FILE): a value of one's own for each record, by its file name."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import imagenet_prep
from imagenet_prep import Layout
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.raw import _joined


@pytest.fixture
def data(sound: Layout) -> Path:
    """A part of ImageNet. Read only."""
    return Path(sound.data_dir)


def saved(folder: Path, values: Any) -> Path:
    """A JSON file."""
    (folder / "values.json").write_text(values if isinstance(values, str) else json.dumps(values))
    return folder / "values.json"


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_values_come_in_the_order_of_the_records(
    tmp_path: Path, data: Path, compression: str
) -> None:
    """By file name, of the whole set and of a part; compressed shards, too."""
    if compression != "none":
        from imagenet_prep import records

        plain = imagenet_prep.open(data, "train")
        with records.ShardWriter(
            tmp_path / "set" / "train", shards=2, compression="gzip"
        ) as shards:
            for record in plain:
                shards.write(bytes(record.data))
        data = tmp_path / "set"
    names = [record.filename for record in imagenet_prep.open(data, "train")]
    path = saved(
        tmp_path,
        {
            name: [number, "x"]
            for number, name in sorted(enumerate(names), key=lambda each: each[1])
        },
    )
    found = imagenet_prep.open(data, "train", join=path)
    assert list(found.joined) == [[number, "x"] for number in range(len(names))]
    assert list(found.shard(1, 2).joined) == list(found.joined)[len(names) // 2 :]
    assert list(imagenet_prep.open(data, "train").joined) == []


def test_real_json_is_a_list_in_the_order_of_validation_names(tmp_path: Path, data: Path) -> None:
    """50,000 lists of labels; a set may have a part of the images."""
    path = saved(tmp_path, [[number, number + 1] for number in range(1, 50_001)])
    found = imagenet_prep.open(data, "validation", join=path)
    for record, labels in zip(found, found.joined, strict=True):
        assert record.filename == f"ILSVRC2012_val_{labels[0]:08d}.JPEG"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1]] * 49_999, "holds a list of 49,999 values"),
        ("{", "can't be read as JSON"),
        (3, "holds the JSON value 3"),
        (None, "holds the JSON value null"),
        ({}, "has no value for"),
        ("more", "names 1 image that"),
        ("fewer", "has no value for 1 record of"),
    ],
)
def test_other_values_are_refused(tmp_path: Path, data: Path, values: Any, message: str) -> None:
    """Another length or form, a record that is missing, a name that is unknown."""
    if values in ("more", "fewer"):
        names = [record.filename for record in imagenet_prep.open(data, "validation")]
        values = dict.fromkeys([*names, "other.JPEG"] if values == "more" else names[1:], 1)
    with pytest.raises(InputError, match=message):
        imagenet_prep.open(data, "validation", join=saved(tmp_path, values))


def test_records_without_names_are_not_to_be_named_in_the_file(tmp_path: Path) -> None:
    """Other tools leave the name out: no file can have values for such records."""

    class Nameless(list[SimpleNamespace]):
        split, compression = "train", "none"

    records: Any = Nameless([SimpleNamespace(filename="")])
    with pytest.raises(InputError, match=r"^1 record without a file name in the train shards"):
        _joined(records, saved(tmp_path, {"": 1}), tmp_path)


def test_what_can_not_be_joined(tmp_path: Path, data: Path) -> None:
    """A file that is not there; a list of validation labels to train images; raw data."""
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for name, fault in (
        ("none", "does not exist"),
        (".", "is not a file"),
        ("link", "is a broken"),
    ):
        with pytest.raises(
            InputError, match=rf"{fault}.*\nexpected the path of a JSON file in join="
        ):
            imagenet_prep.open(data, "validation", join=tmp_path / name)
    with pytest.raises(InputError, match="has no value for") as caught:
        imagenet_prep.open(data, "train", join=saved(tmp_path, [[0]] * 50_000))
    assert caught.value.hint == (
        "a list of 50,000 values is for the names ILSVRC2012_val_00000001.JPEG to "
        "ILSVRC2012_val_00050000.JPEG; for other names, give {file name: value}"
    )
    with pytest.raises(UsageError, match=r"^open\(join=\.\.\.\) with source='raw'"):
        imagenet_prep.open(data, "train", source="raw", join=tmp_path / "none.json")  # type: ignore[call-overload]
