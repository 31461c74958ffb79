"""Folders as people bring them: init, convert and verify make the right set,
or refuse and name what decides.
"""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from existing import existing
from made_folders import FOLDERS, Labels, Made, colour, write
from PIL import Image

from imagenet_prep import Layout, PrepError, convert, make_engine, verify
from imagenet_prep.errors import UsageError
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.init import init

ENGINE = make_engine("threads", 1)
Example = dict[str, list[bytes | int]]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_right_or_refused(tmp_path: Path, name: str) -> None:
    """Right classes, counts and labels by a reader of its own;
    or a refusal with the line, or with the choice.
    """
    made, data = FOLDERS[name], tmp_path / "data"
    made.save(data)
    if made.refused:
        with pytest.raises(PrepError) as caught:
            init(data, tmp_path / "r.yaml", ENGINE, structure=made.structure)
        for part in made.refused:
            assert part in str(caught.value)
        assert not (tmp_path / "r.yaml").exists()
        return
    layout = convert_as_proposed(made, tmp_path)
    assert verify(layout, ENGINE).problems == ()
    check(layout.output_dir, made)


def convert_as_proposed(made: Made, folder: Path) -> Layout:
    """The set of the recipe that init writes for the folder ``data``; init says what it must."""
    summary = init(folder / "data", folder / "r.yaml", ENGINE, structure=made.structure)
    said = "\n".join((summary.found, *summary.evidence, *summary.passed, summary.labels))
    for part in made.said:
        assert part in said
    layout = Layout(folder / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(summary.recipe))
    return layout


def test_a_layout_that_there_is_not_is_refused_at_once(tmp_path: Path) -> None:
    """Before the folder is looked at: an archive in it that can't be read is not named."""
    write(tmp_path, **{"a.tar": b"cut"})
    with pytest.raises(UsageError, match=r"structure .*imagefolder"):
        init(tmp_path, tmp_path / "r.yaml", ENGINE, structure="imagefolder")


def check(folder: Path, made: Made) -> None:
    """Every split has its images, each with its own pixels and its own label."""
    found = {path.name.rpartition("-0000")[0] for path in existing(folder, "*-of-*")}
    assert {name.rpartition("-0000")[0] or name for name in found} == set(made.right)
    for split, labels in made.right.items():
        records = [each for path in existing(folder, f"{split}-*-of-*") for each in read(path)]
        if len(labels) < len(records):  # names that occur in several tars
            assert Counter(text(each) for each in records) == {"cat": 1, "dog": 1}
            continue
        check_split(records, labels)


def check_split(records: list[Example], labels: Labels) -> None:
    """One record for each name."""
    assert sorted(map(name_of, records)) == sorted(labels)
    for record in records:
        name = name_of(record)
        label = labels[name]
        if isinstance(label, tuple):
            assert record["image/class/text"] == [each.encode() for each in label]
            assert record["image/class/label"] == ["abc".index(each) for each in label]
        elif isinstance(label, int):
            assert record.get("image/class/label", record.get("label")) == [label]
        elif label is not None:
            assert text(record) == label
        else:
            assert "image/class/label" not in record
        if "image/encoded" in record:
            encoded = record["image/encoded"][0]
            assert isinstance(encoded, bytes)
            image = Image.open(io.BytesIO(encoded))
            pixel = image.convert("RGB").getpixel((4, 4))
            assert isinstance(pixel, tuple)
            expected = (colour(name)[0],) * 3 if image.mode == "L" else colour(name)
            assert max(abs(one - other) for one, other in zip(pixel, expected, strict=True)) < 8


def name_of(record: Example) -> str:
    """The name of a record's file, without its folders."""
    value = record.get("image/filename", record.get("filename"))
    assert value is not None
    assert isinstance(value[0], bytes)
    return value[0].decode().rpartition("/")[2]


def text(record: Example) -> str:
    """The name of a record's class."""
    value = record.get("image/class/text") or record["image/class/synset"]
    assert isinstance(value[0], bytes)
    return value[0].decode()


# a reader of TFRecords and of Examples, by their specifications -----------------------------------


def read(path: Path) -> Iterator[Example]:
    """The Examples of a shard."""
    content, place = path.read_bytes(), 0
    while place < len(content):
        (length,) = struct.unpack_from("<Q", content, place)
        yield example(content[place + 12 : place + 12 + length])
        place += length + 16


def example(content: bytes) -> Example:
    """The features of an Example by name: bytes and whole numbers."""
    found: Example = {}
    for _, features in fields(content):
        for _, entry in fields(bytes(features)):  # type: ignore[arg-type]
            parts = dict(fields(bytes(entry)))  # type: ignore[arg-type]
            values: list[bytes | int] = []
            for kind, several in fields(bytes(parts.get(2, b""))):  # type: ignore[arg-type]
                for _, value in fields(bytes(several)):  # type: ignore[arg-type]
                    packed = kind == 3 and isinstance(value, bytes)
                    values += varints(bytes(value)) if packed else [value]  # type: ignore[arg-type]
            found[bytes(parts[1]).decode()] = values  # type: ignore[arg-type]
    return found


def fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Number and value of each field of a protobuf message."""
    place = 0
    while place < len(message):
        key, place = varint(message, place)
        value, place = varint(message, place)
        if key & 7 == 2:
            yield key >> 3, message[place : place + value]
            place += value
        else:
            yield key >> 3, value


def varint(message: bytes, place: int) -> tuple[int, int]:
    """A number and where it ends."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def varints(content: bytes) -> list[int]:
    """All numbers."""
    found, place = [], 0
    while place < len(content):
        value, place = varint(content, place)
        found.append(value)
    return found
