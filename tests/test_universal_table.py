"""One table of all images: its columns become labels, splits, boxes,
masks and features, whatever form it has.
"""

from __future__ import annotations

import csv
import shlex
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_folders import picture
from made_rows import LABELLED, images, mask, read_split, table
from made_sets import ENGINE
from made_tars import in_memory, pack, save
from running import command_here, error_lines, prep_here

import imagenet_prep
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.structures.universal_table import choose_table
from imagenet_prep.recipes.loading import load
from imagenet_prep.stages.init import InitSummary, init

FORMS = ("csv", "tsv", "jsonl", "parquet")
TEXT = {"image/class/text", "labels.text", "note"}


def converted(folder: Path, recipe: str, status: int = 0) -> Path:
    """The shards of a recipe that lies in ``folder``."""
    (folder / "r.yaml").write_text(recipe)
    command_here("convert", folder / "out", "--config", folder / "r.yaml", status=status)
    return folder / "out"


def refusal(folder: Path, recipe: str) -> str:
    """What the listing of a recipe says that refuses it."""
    (folder / "r.yaml").write_text(recipe)
    with pytest.raises((InputError, UsageError)) as error:
        load(folder / "r.yaml", None, ENGINE)
    return " ".join(error.value.lines)


# labels, splits and other columns -----------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_table_gives_labels_splits_and_features(tmp_path: Path, form: str) -> None:
    """Every form gives each image its label, its split, its text and its other columns."""
    images(tmp_path / "data", LABELLED)
    save(tmp_path / "data" / f"metadata.{form}", table(LABELLED, form))
    out = converted(tmp_path, f"source: {{table: data/metadata.{form}}}\n")
    for split, name in (("train", "train"), ("val", "validation")):
        found = read_split(out, name, TEXT)
        rows = {row["file_name"]: row for row in LABELLED if row["split"] == split}
        assert found.keys() == rows.keys()
        for path, row in rows.items():
            assert found[path]["image/class/text"] == row["label"]
            assert found[path]["image/class/label"] == ["cat", "dog"].index(row["label"])
            assert found[path]["labels.text"] == row["text"]
            assert found[path]["age"] == row["age"]
            assert found[path]["image/encoded"] == picture(path)
    command_here("verify", out)


@pytest.mark.parametrize("form", FORMS)
def test_a_table_alone_makes_records_of_2016(tmp_path: Path, form: str) -> None:
    """With file_name and label only, records are Inception's, whose first label is 1."""
    rows = [{"file_name": row["file_name"], "label": row["label"]} for row in LABELLED]
    images(tmp_path, rows)
    save(tmp_path / f"t.{form}", table(rows, form))
    out = converted(tmp_path, f"source: {{table: t.{form}}}\n")
    found = read_split(out, "train", TEXT | {"image/class/synset"})
    assert {name: record["image/class/label"] for name, record in found.items()} == {
        row["file_name"]: 1 + ["cat", "dog"].index(row["label"]) for row in rows
    }


def test_numbers_stay_and_classes_give_the_order(tmp_path: Path) -> None:
    """Numeric labels are those of the records; `classes` orders texts."""
    rows = [{"file_name": f"{number}.jpg", "label": 3 * number, "x": 1} for number in range(3)]
    images(tmp_path, rows)
    save(tmp_path / "t.csv", table(rows, "csv"))
    found = read_split(converted(tmp_path, "source: {table: t.csv}\n"), "train", set())
    assert {name: record["image/class/label"] for name, record in found.items()} == {
        "0.jpg": 0,
        "1.jpg": 3,
        "2.jpg": 6,
    }
    other = tmp_path / "other"
    images(other, LABELLED)
    save(other / "t.jsonl", table(LABELLED, "jsonl"))
    found = read_split(
        converted(other, "source: {table: t.jsonl}\nclasses: [dog, cat]\n"), "train", TEXT
    )
    assert {
        record["image/class/text"]: record["image/class/label"] for record in found.values()
    } == {
        "dog": 0,
        "cat": 1,
    }


@pytest.mark.parametrize(
    ("column", "recipe"),
    [
        ("file_name", ""),
        ("image_file_name", ""),
        ("photo_file_name", ""),
        ("filename", ""),
        ("path", ""),
        ("image", ""),
        ("picture", ", image: picture"),
    ],
)
def test_the_column_of_images(tmp_path: Path, column: str, recipe: str) -> None:
    """Hugging Face's names and those of labels files are known, and `image` names any other."""
    rows = [{column: row["file_name"], "label": row["label"], "n": 1} for row in LABELLED]
    images(tmp_path, rows, column)
    save(tmp_path / "t.csv", table(rows, "csv"))
    out = converted(tmp_path, f"source: {{table: t.csv{recipe}}}\n")
    assert read_split(out, "train", set()).keys() == {row["file_name"] for row in LABELLED}


@pytest.mark.parametrize("label", ["species", False])
def test_the_column_of_labels(tmp_path: Path, label: str | bool) -> None:
    """`label` names the column of any name; false makes all of them features."""
    rows = [{"file_name": row["file_name"], "species": row["label"]} for row in LABELLED]
    images(tmp_path, rows)
    save(tmp_path / "t.csv", table(rows, "csv"))
    said = str(label).lower() if label is False else label
    record = "record: {image/filename: path, x: species}\n" if label is False else ""
    out = converted(tmp_path, f"source: {{table: t.csv, label: {said}}}\n{record}")
    found = read_split(out, "train", {"x", *TEXT})
    key = "x" if label is False else "image/class/text"
    assert {name: record[key] for name, record in found.items()} == {
        row["file_name"]: row["species"] for row in rows
    }


@pytest.mark.parametrize(
    "source",
    [
        "{train: train.csv, validation: val.csv}",
        "{train: [train.csv], validation: 'v*.csv'}",
    ],
)
def test_a_table_for_each_split(tmp_path: Path, source: str) -> None:
    """Tables by split, in one folder or each next to its images."""
    rows = {"train": LABELLED[:2], "validation": LABELLED[2:]}
    images(tmp_path, LABELLED)
    for split, name in (("train", "train"), ("validation", "val")):
        save(
            tmp_path / f"{name}.csv",
            table([{"file_name": r["file_name"], "label": r["label"]} for r in rows[split]], "csv"),
        )
    out = converted(tmp_path, f"source: {{table: {source}}}\n")
    for split, several in rows.items():
        assert read_split(out, split, set()).keys() == {row["file_name"] for row in several}


def test_a_table_in_each_folder(tmp_path: Path) -> None:
    """Paths start at the folder of their own table: two tables may both name 0.jpg."""
    for split in ("train", "val"):
        rows = [{"file_name": f"{number}.jpg", "label": number % 2} for number in range(4)]
        images(tmp_path / split, rows)
        save(tmp_path / split / "metadata.jsonl", table(rows, "jsonl"))
    source = "{train: train/metadata.jsonl, validation: val/metadata.jsonl}"
    out = converted(tmp_path, f"source: {{table: {source}}}\n")
    assert read_split(out, "train", set()).keys() == {f"train/{number}.jpg" for number in range(4)}
    assert read_split(out, "validation", set()).keys() == {
        f"val/{number}.jpg" for number in range(4)
    }


def test_shares_divide_a_table_too(tmp_path: Path) -> None:
    """`splits` of the recipe counts more than the column."""
    rows = [
        {"file_name": f"{number}.jpg", "label": number % 2, "split": "train"}
        for number in range(40)
    ]
    images(tmp_path, rows)
    save(tmp_path / "t.csv", table(rows, "csv"))
    out = converted(tmp_path, "source: {table: t.csv}\nsplits: {train: 0.5, test: 0.5}\n")
    train, test = (read_split(out, split, set()).keys() for split in ("train", "test"))
    assert train
    assert test
    assert train | test == {row["file_name"] for row in rows}


# archives -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_members_of_an_archive_are_read_in_place(tmp_path: Path, kind: str) -> None:
    """`images.tar/a/1.jpg` is a member, next to plain files;
    bytes are those of the member; repair reads them again.
    """
    contents = {row["file_name"]: picture(row["file_name"]) for row in LABELLED}
    save(tmp_path / "plain.jpg", picture("plain.jpg"))
    if kind == "tar":
        save(tmp_path / "in" / "images.tar", pack(contents))
    else:
        (tmp_path / "in").mkdir()
        with zipfile.ZipFile(tmp_path / "in" / "images.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
    rows = [
        {"file_name": f"in/images.{kind}/{row['file_name']}", "label": row["label"]}
        for row in LABELLED
    ]
    rows.append({"file_name": "plain.jpg", "label": "cat"})
    save(tmp_path / "t.jsonl", table(rows, "jsonl"))
    out = converted(tmp_path, "source: {table: t.jsonl}\n")
    found = read_split(out, "train", set())
    assert found.keys() == {row["file_name"] for row in rows}
    for name, content in contents.items():
        if name.endswith(".jpg"):
            assert found[f"in/images.{kind}/{name}"]["image/encoded"] == content
    shard = next(out.glob("*-of-*"))
    before = shard.read_bytes()
    shard.write_bytes(before[:100] + b"?" + before[101:])
    command_here("repair", out)
    assert shard.read_bytes() == before


# boxes --------------------------------------------------------------------------------------------

BOXES = {
    "1.jpg": [("dog", 1, 2, 9, 12), ("cat", 0, 0, 16, 16)],
    "2.jpg": [],
    "3.jpg": [("cat", 4, 4, 8, 6)],
}
"""Class, xmin, ymin, xmax, ymax in pixels of images of 16 x 16."""


def nested_rows(keys: tuple[str, str] = ("bbox", "categories")) -> list[dict[str, Any]]:
    """The boxes as Hugging Face's objects: x, y, width, height."""
    return [
        {
            "file_name": name,
            "objects": {
                keys[0]: [[x, y, right - x, bottom - y] for _, x, y, right, bottom in boxes],
                keys[1]: [label for label, *_ in boxes],
            },
        }
        for name, boxes in BOXES.items()
    ]


def flat_rows() -> list[dict[str, Any]]:
    """A row for each box; an image without boxes has a row of empty cells."""
    rows: list[dict[str, Any]] = []
    edges = ("class", "xmin", "ymin", "xmax", "ymax")
    for name, boxes in BOXES.items():
        rows += [{"file_name": name, **dict(zip(edges, box, strict=True))} for box in boxes]
        rows += [] if boxes else [{"file_name": name, **dict.fromkeys(edges)}]
    return rows


def listed_rows() -> list[dict[str, Any]]:
    """The boxes as a list of objects."""
    rows = nested_rows()
    for row in rows:
        pairs = zip(row["objects"]["bbox"], row["objects"]["categories"], strict=True)
        row["objects"] = [{"bbox": box, "category": label, "id": 1} for box, label in pairs]
    return rows


@pytest.mark.parametrize(
    ("rows", "form"),
    [
        (nested_rows(), "jsonl"),
        (nested_rows(("bbox", "category")), "parquet"),
        (nested_rows(), "csv"),
        (listed_rows(), "jsonl"),
        (flat_rows(), "csv"),
        (flat_rows(), "jsonl"),
        (flat_rows(), "parquet"),
    ],
    ids=[
        "objects",
        "objects-parquet",
        "objects-csv",
        "list",
        "box-a-row-csv",
        "box-a-row-jsonl",
        "box-a-row-parquet",
    ],
)
def test_boxes(tmp_path: Path, rows: list[dict[str, Any]], form: str) -> None:
    """Both forms of boxes give each object its class and its corners, in the order of the table."""
    images(tmp_path, rows)
    save(tmp_path / f"t.{form}", table(rows, form))
    out = converted(tmp_path, f"source: {{table: t.{form}}}\n")
    found = read_split(out, "train", {"image/object/class/text"})
    for name, boxes in BOXES.items():
        record = found[name]
        assert record["image/object/class/text"] == [label for label, *_ in boxes]
        assert record["image/object/class/label"] == [
            ["cat", "dog"].index(label) + 1 for label, *_ in boxes
        ]
        for place, edge in enumerate(("xmin", "ymin", "xmax", "ymax"), 1):
            assert record[f"image/object/bbox/{edge}"] == [box[place] / 16 for box in boxes]
    command_here("verify", out)


@pytest.mark.parametrize(
    ("form", "keys", "texts"),
    [
        ("jsonl", "", ["7", "0"]),
        ("csv", "", ["7", "0"]),
        ("jsonl", "boxes: {names: [a, b, c, d, e, f, g, h]}\n", ["h", "a"]),
    ],
)
def test_numbers_of_boxes_stay(tmp_path: Path, form: str, keys: str, texts: list[str]) -> None:
    """Classes that are numbers keep them; `names` names them from 0."""
    rows = [
        {
            "file_name": "1.jpg",
            "objects": {"bbox": [[0, 0, 8, 8], [2, 2, 9, 9]], "categories": [7, 0]},
        }
    ]
    images(tmp_path, rows)
    save(tmp_path / f"t.{form}", table(rows, form))
    found = read_split(
        converted(tmp_path, f"source: {{table: t.{form}}}\n{keys}"),
        "train",
        {"image/object/class/text"},
    )
    assert found["1.jpg"]["image/object/class/label"] == [7, 0]
    assert found["1.jpg"]["image/object/class/text"] == texts


def test_names_number_the_classes_of_boxes(tmp_path: Path) -> None:
    """`boxes: {names, first_label}` orders classes that are texts."""
    rows = nested_rows()
    images(tmp_path, rows)
    save(tmp_path / "t.jsonl", table(rows, "jsonl"))
    out = converted(
        tmp_path, "source: {table: t.jsonl}\nboxes: {names: [dog, cat], first_label: 5}\n"
    )
    assert read_split(out, "train", set())["1.jpg"]["image/object/class/label"] == [5, 6]


@pytest.mark.parametrize(("policy", "count"), [("clip", 1), ("drop", 0)])
def test_impossible_boxes(tmp_path: Path, policy: str, count: int) -> None:
    """A box that leads out is refused with its row, clipped or dropped, as elsewhere."""
    rows = [{"file_name": "1.jpg", "objects": {"bbox": [[8, 8, 100, 4]], "categories": ["a"]}}]
    images(tmp_path, rows)
    save(tmp_path / "t.jsonl", table(rows, "jsonl"))
    said = refusal(tmp_path, "source: {table: t.jsonl}\n")
    assert (
        "t.jsonl, line 1: a box of xmin 8, ymin 8, xmax 108, ymax 12 leads out of the image of 16 x 16 pixels"
        in said
    )
    out = converted(tmp_path, f"source: {{table: t.jsonl}}\nboxes_outside: {policy}\n")
    assert len(read_split(out, "train", set())["1.jpg"]["image/object/bbox/xmin"]) == count


def test_labels_and_boxes_together(tmp_path: Path) -> None:
    """A row of one box may label its image too."""
    rows = [
        {**row, "label": "x" if row["file_name"] == "1.jpg" else "y", "width": 16, "height": 16}
        for row in flat_rows()
    ]
    images(tmp_path, rows)
    save(tmp_path / "t.csv", table(rows, "csv"))
    found = read_split(converted(tmp_path, "source: {table: t.csv}\n"), "train", TEXT)
    assert {name: record["image/class/text"] for name, record in found.items()} == {
        "1.jpg": "x",
        "2.jpg": "y",
        "3.jpg": "y",
    }
    assert len(found["1.jpg"]["image/object/bbox/xmin"]) == 2


# paths of another machine -------------------------------------------------------------------------


FOREIGN = {
    "of a disk": ("/mnt/disk/", "--strip /mnt/disk/"),
    "of a bucket": ("s3://bucket/sets/", "--strip s3://bucket/sets/"),
    "of Windows": ("C:\\data\\", "--strip 'C:\\data\\'"),
    "of a folder that is not here": ("raw/", "--strip raw/"),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("given", ["data/metadata.jsonl", "data"])
def test_folders_of_another_machine_are_named_with_the_command(
    tmp_path: Path, name: str, given: str
) -> None:
    """The refusal has the command with --strip, and the records that it leads to are right."""
    prefix, option = FOREIGN[name]
    images(tmp_path / "data", LABELLED)
    box = {"bbox": [[1, 1, 9, 9]], "categories": ["paw"]}
    rows = [{**row, "file_name": prefix + row["file_name"], "objects": box} for row in LABELLED]
    save(tmp_path / "data/metadata.jsonl", table(rows, "jsonl"))
    refused = prep_here("init", given, cwd=tmp_path)
    assert refused.returncode == 4
    counts, _, advice = error_lines(refused)[-1].partition(": imagenet-prep ")
    assert counts == f"  4 of 4 images, with {prefix} removed from their paths"
    assert advice == f"init {given} {option}"
    command_here(*shlex.split(advice), cwd=tmp_path)
    (recipe,) = tmp_path.glob("*.yaml")
    command_here("convert", "out", "--config", recipe.name, cwd=tmp_path)
    found = read_split(tmp_path / "out", "validation", TEXT)
    assert {path: record["image/class/text"] for path, record in found.items()} == {
        "b/1.jpg": "cat",
        "b/3.jpg": "dog",
    }


@pytest.mark.parametrize(
    ("count", "line"),
    [
        (
            2,
            "  2 of 4 images, with /mnt/disk/ removed from their paths: imagenet-prep init t.jsonl --strip /mnt/disk/",
        ),
        (1, None),
    ],
)
def test_folders_are_named_if_half_of_the_images_are_there(
    tmp_path: Path, count: int, line: str | None
) -> None:
    """The line counts the images that are there without these folders;
    with fewer than half of them there is none.
    """
    images(tmp_path, LABELLED[:count])
    rows = [{**row, "file_name": f"/mnt/disk/{row['file_name']}"} for row in LABELLED]
    save(tmp_path / "t.jsonl", table(rows, "jsonl"))
    lines = error_lines(prep_here("init", "t.jsonl", cwd=tmp_path))
    assert [text for text in lines if "init t.jsonl" in text] == ([line] if line else [])
    again = error_lines(prep_here("init", "t.jsonl", "--strip", "/mnt/disk/", cwd=tmp_path))
    assert not [text for text in again if "init t.jsonl" in text]


def test_the_start_of_another_machine_is_taken_off_masks_too(tmp_path: Path) -> None:
    """As it is off the paths of images."""
    rows = [
        {"file_name": f"/home/me/{number}.jpg", "mask": f"/home/me/{number}.png"}
        for number in range(2)
    ]
    for number in range(2):
        save(tmp_path / f"{number}.jpg", picture(f"{number}.jpg"))
        save(tmp_path / f"{number}.png", mask(np.full((16, 16), number)))
    save(tmp_path / "t.csv", table(rows, "csv"))
    found = read_split(
        converted(tmp_path, "source: {table: t.csv}\nstrip: /home/me/\n"), "train", set()
    )
    assert found["1.jpg"]["image/segmentation/class/encoded"] == mask(np.full((16, 16), 1))


# masks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["mask", "mask_file_name"])
def test_masks(tmp_path: Path, column: str) -> None:
    """The mask of each row is in its record, the same bytes."""
    rows = [{"file_name": f"{number}.jpg", column: f"masks/{number}.png"} for number in range(3)]
    images(tmp_path, rows)
    for number in range(3):
        save(tmp_path / "masks" / f"{number}.png", mask(np.full((16, 16), number)))
    save(tmp_path / "t.csv", table(rows, "csv"))
    found = read_split(converted(tmp_path, "source: {table: t.csv}\n"), "train", set())
    for number in range(3):
        record = found[f"{number}.jpg"]
        assert record["image/segmentation/class/encoded"] == mask(np.full((16, 16), number))


def test_a_row_without_a_label_makes_a_record_without_one(tmp_path: Path) -> None:
    """An empty label is no class, as -1 is: the others keep their numbers,
    and convert counts such records.
    """
    rows = ({"file_name": "a.jpg", "label": "cat"}, {"file_name": "b.jpg", "label": ""})
    images(tmp_path, rows)
    save(tmp_path / "t.csv", table(rows, "csv"))
    (tmp_path / "r.yaml").write_text("source: {table: t.csv}\n")
    said = command_here("convert", tmp_path / "out", "--config", tmp_path / "r.yaml")
    assert "1 record has no label: b.jpg" in said.stdout + said.stderr
    found = imagenet_prep.open(tmp_path / "out", "train")
    assert {record.filename: record.class_index for record in found} == {"a.jpg": 0, "b.jpg": None}


# refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("file_name,label\n1.jpg,a\n", "t.csv, line 2: {}/1.jpg is not there"),
        (
            "file_name,label\nthere.jpg,a\n1.jpg,b\n2.jpg,c\n",
            "t.csv, line 3: 2 files of 3 do not exist: {}/1.jpg, ",
        ),
        (
            "file_name,label\nthere.jpg,a\nthere.jpg,b\n",
            "t.csv, line 3: 'there.jpg' is in {}/t.csv, line 2 already",
        ),
        (
            "file_name,label\nthere.jpg,a\n./there.jpg,b\n",
            "t.csv, line 3: ./there.jpg is the same file as there.jpg in {}/t.csv, line 2",
        ),
        ("file_name,label\n/etc/passwd,a\n", "t.csv, line 2: /etc/passwd is outside of the data"),
        ("file_name,label\n../x.jpg,a\n", "x.jpg is outside of the data"),
        (
            "name,label\nthere.jpg,a\n",
            "no column has a usual name for the paths of images expected a column such as file_name or path, got name, label",
        ),
        (
            "file_name,label\nfolder,a\nthere.jpg,b\n1.jpg,c\n",
            "t.csv, line 2: 2 files of 3 can't be read: {}/folder is a folder, 1.jpg "
            "expected every image that a row names",
        ),
        (
            f"file_name,label\n{'x' * 300}.jpg,a\n",
            f"{'x' * 300}.jpg can't be read: File name too long",
        ),
        ("file_name,label\n,a\n", "t.csv, line 2: no value for file_name"),
        (
            "file_name,label\n1.jpg,a\n",
            "correct the rows, or bring the files back; relative paths start at {}",
        ),
        ("file_name,label\n", "t.csv has no row"),
        ("", "t.csv"),
        (
            "file_name,xmin,ymin\nthere.jpg,1,1\n",
            "it has xmin, ymin, and no xmax, ymax expected a column for each of xmin, ymin, xmax, ymax",
        ),
        ("file_name,xmax\nthere.jpg,1\n", "it has xmax, and no xmin, ymin, ymax"),
        (
            "file_name,xmin,ymin,xmax,ymax\nthere.jpg,1,1,2,2\n",
            "no column has a usual name for the class of each box",
        ),
        (
            "file_name,label,xmin,ymin,xmax,ymax\nthere.jpg,a,1,1,2,2\n",
            "expected a column class or category; label is the class of the whole image",
        ),
        (
            "file_name,xmin,ymin,xmax,ymax,class\nthere.jpg,1,1,2,,a\n",
            "t.csv, line 2: ymax is empty",
        ),
        (
            "file_name,xmin,ymin,xmax,ymax,class\nthere.jpg,1,1,2,x,a\n",
            "t.csv, line 2: ymax is 'x'",
        ),
        (
            "file_name,xmin,ymin,xmax,ymax,class\nthere.jpg,.1,.1,.2,.5,a\n",
            "line 2: the corners of all boxes are below 2, as in this box: "
            "xmin 0.1, ymin 0.1, xmax 0.2, ymax 0.5",
        ),
        (
            "file_name,xmin,ymin,xmax,ymax,class\nthere.jpg,.1,.1,.2,.5,a\nother.jpg,.1,.1,.9,1,a\n",
            "the corners of all boxes are below 2",
        ),
        (
            "file_name,xmin,ymin,xmax,ymax,class,width,height\nthere.jpg,1,1,9,9,a,20,20\n",
            "t.csv, line 2: width x height is 20 x 20 expected 16 x 16, the size of ",
        ),
        (
            "file_name,xmin,ymin,xmax,ymax,class,label\nthere.jpg,1,1,9,9,a,x\nthere.jpg,1,1,9,9,a,y\n",
            "t.csv, line 3: label is 'y', and 'x' in {}/t.csv, line 2",
        ),
        (
            "file_name,xmin,ymin,xmax,ymax,class,width,height\nthere.jpg,1,1,9,9,a,16,16\n"
            "there.jpg,1,1,9,9,a,16,17\n",
            "t.csv, line 3: size is 16 x 17, and 16 x 16 in {}/t.csv, line 2",
        ),
        (
            'file_name,objects\nthere.jpg,"{""bbox"": [[1,2,3,4]], ""categories"": [1, 2]}"\n',
            "t.csv, line 2: objects has 1 box and 2 classes",
        ),
        (
            'file_name,objects\nthere.jpg,"{""bbox"": [[1,2,3,4]], ""categories"": 1}"\n',
            "t.csv, line 2: objects: categories is 1 (int)",
        ),
        (
            'file_name,objects\nthere.jpg,"{""bbox"": [[1,2,3,4]], ""category"": 1}"\n',
            "t.csv, line 2: objects: category is 1 (int)",
        ),
        (
            'file_name,objects\nthere.jpg,"{""bbox"": [[1,2,3,4]], ""categories"": [null]}"\n',
            "t.csv, line 2: the class of a box is null",
        ),
        (
            'file_name,objects\nthere.jpg,"{""bbox"": [[1,2,3,4]], ""categories"": [""""]}"\n',
            "the class of a box is '' (str) expected a text that is not empty",
        ),
        (
            'file_name,objects\nthere.jpg,"{""bbox"": [[1,2,3,4]], '
            '""categories"": [4611686018427387904]}"\n',
            "the class of a box is 4611686018427387904 expected 0 to 2**62 - 1",
        ),
        (
            "file_name,objects\nthere.jpg,2\n",
            "t.csv, line 2: the column objects, which is read as boxes, is 2 (int) expected "
            "{{bbox: [[x, y, width, height], ...], categories: [...]}} correct it, or rename the "
            "column if it holds no boxes; then run",
        ),
        (
            "file_name,objects\nthere.jpg,[1]\n",
            "t.csv, line 2: the column objects, which is read as boxes, holds 1 (int)",
        ),
        (
            "file_name,objects\nthere.jpg,{\n",
            "t.csv, line 2: the column objects, which is read as boxes: not JSON",
        ),
        (
            'file_name,objects\nthere.jpg,"{""bbox"": [[1,2,3]], ""categories"": [1]}"\n',
            "a bbox is [1, 2, 3] (list) expected a list of four numbers in pixels, [x, y, ",
        ),
        (
            'file_name,objects\nthere.jpg,"{""bbox"": [[1,2,3,4]]}"\n',
            "which is read as boxes, has values for bbox expected {{bbox: [[x, y, width, height], ...], categories: [...]}}",
        ),
        (
            f'file_name,objects\nthere.jpg,"{{""bbox"": [[1,2,3,1{"0" * 400}]], ""categories"": [1]}}"\n',
            "a number of a bbox is 1000",
        ),
        (
            'file_name,objects\nthere.jpg,"{""bbox"": null, ""categories"": [1]}"\n',
            "the column objects, which is read as boxes, has values for categories expected",
        ),
        ("file_name,split\nthere.jpg,a/b\n", "the split is 'a/b'"),
        ("file_name,split\nthere.jpg,.a\n", "the first a letter, a digit or _"),
        ("file_name,split\nthere.jpg,train\nother.jpg,\n", "t.csv, line 3: other.jpg has no split"),
        ("file_name,mask\nthere.jpg,m.png\n", "t.csv, line 2: the mask {}/m.png is not there"),
        (
            "file_name,mask\nthere.jpg,there.jpg\n",
            "the mask there.jpg is no PNG by its name expected a PNG whose pixels are class numbers",
        ),
        ("file_name,mask\nthere.jpg,folder\n", "the mask {}/folder is not a file"),
        (
            "file_name,mask\nthere.jpg,m.png\nother.jpg,\n",
            "other.jpg has no mask expected a mask in every row, or in none: 1 image has one",
        ),
        (
            "file_name,mask\nthere.jpg,../m.png\n",
            "m.png is outside of the data expected a path below {}",
        ),
        ("file_name,mask\nthere.jpg,/etc/m.png\n", "the mask /etc/m.png is outside of the data"),
        ("file_name,mask\nthere.jpg,m.png\nother.jpg,\n", "t.csv, line 3: other.jpg has no mask"),
        (
            "file_name,label\nimages.tar/x.jpg,a\n",
            "t.csv, line 2: {}/images.tar/x.jpg is not in images.tar",
        ),
        ("file_name,label\nthere.txt,a\n", "1 file is not recognised as an image: there.txt"),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_its_line(
    tmp_path: Path, content: str, said: str
) -> None:
    """The error names the table, the line, what is wrong and what is right."""
    for name in ("there.jpg", "other.jpg"):
        save(tmp_path / name, picture(name))
    save(tmp_path / "there.txt", b"words")
    (tmp_path / "folder").mkdir()
    save(tmp_path / "images.tar", pack({"y.jpg": picture("y.jpg")}))
    save(tmp_path / "t.csv", content.encode())
    assert said.format(tmp_path) in refusal(tmp_path, "source: {table: t.csv}\n")


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (
            "source: {table: t.csv}\nrecord: inception\n",
            "the rows of the source have boxes or masks",
        ),
        (
            "source: {table: t.csv}\nboxes: {csv: t.csv}\n",
            "the rows of the source have boxes or masks already",
        ),
        ("source: {table: t.csv, tar: x.tar}\n", "it has tar and table"),
        ("source: {table: t.csv, label: none}\n", "no column none for the labels"),
        ("source: {table: t.csv, image: none}\n", "no column none for the images"),
        ("source: {files: t.csv, image: none}\n", "it can't be combined with files"),
        ("source: {table: t.txt}\n", "t.txt is no table by its name"),
        ("source: {table: gone.csv}\n", "gone.csv is not there"),
        (
            "source: {table: {train: t.csv, test: t.jsonl}}\n",
            "t.csv and t.jsonl have different formats",
        ),
        (
            "source: {table: {train: t.csv, test: t.csv}}\n",
            "t.csv, line 2: split is 'test', and 'train' in",
        ),
        ("source: {table: images.parquet}\n", "images.parquet has a column of bytes"),
        ("source: {table: images.parquet}\n", "write `parquet` in place of `table`"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(tmp_path: Path, recipe: str, said: str) -> None:
    """Keys that contradict the table, and files that are none."""
    save(tmp_path / "there.jpg", picture("there.jpg"))
    save(tmp_path / "t.csv", b"file_name,xmin,ymin,xmax,ymax,class\nthere.jpg,1,1,9,9,a\n")
    save(tmp_path / "t.txt", b"")
    save(tmp_path / "t.jsonl", b'{"file_name": "there.jpg"}\n')
    rows = [{"image": {"bytes": picture("1.jpg"), "path": "1.jpg"}, "label": 1}]
    save(
        tmp_path / "images.parquet",
        in_memory(lambda file: pq.write_table(pa.Table.from_pylist(rows), file)),
    )
    assert said in refusal(tmp_path, recipe)


SPLITS = "source: {table: t.csv}\nsplits: {train: {value: TRN}, test: {value: TST}}\n"


def test_splits_by_value_need_the_column_split(tmp_path: Path) -> None:
    """A column of another name is renamed, as the hint says; an empty one is called so."""
    for name in ("1.jpg", "2.jpg"):
        save(tmp_path / name, picture(name))
    content = b"file_name,subset\n1.jpg,TRN\n2.jpg,TST\n"
    save(tmp_path / "t.csv", content)
    said = refusal(tmp_path, SPLITS)
    assert "the rows of `source` have no column named `split` expected a column named" in said
    assert "rename the column that holds them to split" in said
    save(tmp_path / "t.csv", content.replace(b"subset", b"split"))
    load(tmp_path / "r.yaml", None, ENGINE)
    save(tmp_path / "t.csv", b"file_name,split\n1.jpg,\n2.jpg,\n")
    assert "the column `split` is empty in every row" in refusal(tmp_path, SPLITS)


def test_a_parquet_file_of_paths_is_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read as images, it has none; the command that is advised reads it."""
    rows = [{"picture": "1.jpg", "label": "a"}, {"picture": "2.jpg", "label": "b"}]
    for row in rows:
        save(tmp_path / row["picture"], picture(row["picture"]))
    content = in_memory(lambda file: pq.write_table(pa.Table.from_pylist(rows), file))
    save(tmp_path / "t.parquet", content)
    said = refusal(tmp_path, "source: {parquet: t.parquet}\n")
    advised = f"imagenet-prep init {tmp_path}/t.parquet"
    assert f"if a column has the paths of image files: {advised}; otherwise" in said
    monkeypatch.chdir(tmp_path)
    init(tmp_path / "t.parquet", tmp_path / "t.yaml", ENGINE)
    assert "table: t.parquet" in (tmp_path / "t.yaml").read_text()


def test_mixed_labels_are_refused(tmp_path: Path) -> None:
    """Texts and numbers in one column."""
    rows = [{"file_name": "1.jpg", "label": "a"}, {"file_name": "2.jpg", "label": 2}]
    images(tmp_path, rows)
    save(tmp_path / "t.jsonl", table(rows, "jsonl"))
    said = refusal(tmp_path, "source: {table: t.jsonl}\n")
    assert "is a text, and other values are numbers" in said


# init ---------------------------------------------------------------------------------------------


def proposed(folder: Path, data: Path) -> tuple[InitSummary, Path]:
    """The recipe that init writes for a table or a folder,
    and the shards that convert makes of it.
    """
    summary = init(data, folder / "r.yaml", ENGINE)
    command_here("convert", folder / "out", "--config", folder / "r.yaml")
    return summary, folder / "out"


def test_the_choice_of_a_table_counts_the_images_with_boxes(tmp_path: Path) -> None:
    """The example of the page: two boxes of two classes in one image, and an image without any."""
    data = tmp_path / "bx"
    for name in ("1.jpg", "2.jpg"):
        save(data / name, picture(name))
    boxes = b"1.jpg,1,2,6,8,car\n1.jpg,6,2,7,6,dog\n2.jpg,,,,,\n"
    save(data / "metadata.csv", b"file_name,xmin,ymin,xmax,ymax,class\n" + boxes)
    said = prep_here("init", "bx", cwd=tmp_path).stderr
    assert "1 of 2 images, 2 classes: imagenet-prep init bx --as universal-table" in said
    assert "2 boxes in 1 image\n" in said
    summary, _ = proposed(tmp_path, data / "metadata.csv")
    assert summary.structure == "universal-table"


@pytest.mark.parametrize("form", FORMS)
def test_init_takes_a_table(tmp_path: Path, form: str) -> None:
    """`init TABLE` and convert: labels, splits and columns, in two commands."""
    images(tmp_path / "data", LABELLED)
    save(tmp_path / "data" / f"t.{form}", table(LABELLED, form))
    summary, out = proposed(tmp_path, tmp_path / "data" / f"t.{form}")
    assert summary.structure == "universal-table"
    assert f"table: data/t.{form}" in summary.text
    for split, name in (("train", "train"), ("val", "validation")):
        found = read_split(out, name, {"image/class/text", "text"})
        rows = [row for row in LABELLED if row["split"] == split]
        assert {
            path: (record["image/class/text"], record["age"], record["text"])
            for path, record in found.items()
        } == {row["file_name"]: (row["label"], row["age"], row["text"]) for row in rows}


VALUES = "file_name,label,split\na.jpg,x,one\nb.jpg,y,two\nc.jpg,x,one\n"
ASKED = InitOptions(splits={"train": "one", "test": "two"})


@pytest.mark.parametrize("data", ["data/t.csv", "data"])
def test_split_takes_values_of_the_column(tmp_path: Path, data: str) -> None:
    """--split train=one: the recipe says which value each split is,
    for a table alone and for one in a folder.
    """
    rows = list(csv.DictReader(VALUES.splitlines()))
    images(tmp_path / "data", rows)
    save(tmp_path / "data" / ("t.csv" if data.endswith("csv") else "metadata.csv"), VALUES.encode())
    summary = init(tmp_path / data, tmp_path / "r.yaml", ENGINE, options=ASKED)
    assert (
        "splits:   # by the values of the column\n  train: {value: one}\n  test: {value: two}\n"
        in summary.text
    )
    command_here("convert", tmp_path / "out", "--config", tmp_path / "r.yaml")
    assert read_split(tmp_path / "out", "train", set()).keys() == {"a.jpg", "c.jpg"}
    assert read_split(tmp_path / "out", "test", set()).keys() == {"b.jpg"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            VALUES.replace(",split", ",other"),
            "t.csv has the value one\nto run init without --split: ",
        ),
        (
            VALUES.replace("two", "three"),
            "t.csv has the value two\nexpected one of one, three\nto run init without --split: ",
        ),
        (
            VALUES + "photos/1.jpg,a,three\n",
            "t.csv\nexpected --split NAME=VALUE for each value",
        ),
    ],
)
def test_a_split_that_the_table_lacks_is_refused(tmp_path: Path, content: str, said: str) -> None:
    """Values that no row has, or that --split does not name: no recipe is written."""
    images(tmp_path / "data", list(csv.DictReader(content.splitlines())))
    save(tmp_path / "data" / "t.csv", content.encode())
    with pytest.raises(PrepError) as caught:
        init(tmp_path / "data" / "t.csv", tmp_path / "r.yaml", ENGINE, options=ASKED)
    assert said in str(caught.value)
    assert not (tmp_path / "r.yaml").exists()


def test_the_recipe_of_a_table_is_named_like_it(tmp_path: Path) -> None:
    """By default it is in the current folder."""
    images(tmp_path, LABELLED)
    save(tmp_path / "birds.csv", table(LABELLED, "csv"))
    command_here("init", "birds.csv", cwd=tmp_path)
    command_here("convert", "out", "--config", "birds.yaml", cwd=tmp_path)


def test_init_takes_a_parquet_of_images_as_before(tmp_path: Path) -> None:
    """A Parquet file that holds images stays a source of its own, with the user's label."""
    rows = [
        {"image": {"bytes": picture(f"{n}.jpg"), "path": f"{n}.jpg"}, "label": n % 2}
        for n in range(4)
    ]
    save(
        tmp_path / "images.parquet",
        in_memory(lambda file: pq.write_table(pa.Table.from_pylist(rows), file)),
    )
    summary, _ = proposed(tmp_path, tmp_path / "images.parquet")
    assert "parquet: images.parquet" in summary.text
    path = tmp_path / "images.parquet"
    choice = choose_table(path, ENGINE, InitOptions(label="label"))
    assert choice.proposal.options == {"label": "label"}
    with pytest.raises(UsageError, match="is for paths, and "):
        choose_table(path, ENGINE, InitOptions(image="image"))


def test_bytes_that_are_no_images_are_not_called_so(tmp_path: Path) -> None:
    """A table of paths with the digest of each file: the error says how it can be read."""
    path = tmp_path / "t.parquet"
    rows = [{"file_name": "1.jpg", "md5": b"12"}]
    save(path, in_memory(lambda file: pq.write_table(pa.Table.from_pylist(rows), file)))
    for options in (InitOptions(), InitOptions(image="file_name")):
        with pytest.raises(InputError, match="the column md5 are not images"):
            choose_table(path, ENGINE, options)


def test_images_of_an_unknown_format_in_a_table_are_to_be_converted(tmp_path: Path) -> None:
    """An icon is an image, in a format that can't be read: the error doesn't say that it is none."""
    path = tmp_path / "t.parquet"
    rows = [{"image": b"\0\0\1\0\1\0"}]
    save(path, in_memory(lambda file: pq.write_table(pa.Table.from_pylist(rows), file)))
    with pytest.raises(InputError) as caught:
        choose_table(path, ENGINE, InitOptions())
    assert "not images in a known format\nexpected JPEG, PNG" in str(caught.value)
    assert caught.value.hint.startswith("convert these images to PNG or JPEG; or, if")


@pytest.mark.parametrize("name", ["t.txt", "t.xlsx", "gone.csv"])
def test_init_of_another_file_is_refused(tmp_path: Path, name: str) -> None:
    """It says what it takes."""
    if name != "gone.csv":
        save(tmp_path / name, b"x")
    with pytest.raises(UsageError, match=r"a folder .*a table"):
        init(tmp_path / name, tmp_path / "r.yaml", ENGINE)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lead", ["", "train/"])
def test_init_takes_hugging_faces_metadata(tmp_path: Path, form: str, lead: str) -> None:
    """A metadata file among the images, with boxes or with labels, is the surest reading."""
    data = tmp_path / "data"
    rows = nested_rows()
    images(data / lead, rows)
    save(data / f"{lead}metadata.{form}", table(rows, form))
    summary, out = proposed(tmp_path, data)
    assert summary.structure == "universal-table"
    found = read_split(out, "train", {"image/object/class/text"})
    assert {name: record["image/object/class/text"] for name, record in found.items()} == {
        name: [label for label, *_ in boxes] for name, boxes in BOXES.items()
    }


@pytest.mark.parametrize(
    "names", [("train/metadata.csv", "test/metadata.csv"), ("train.csv", "test.csv")]
)
def test_init_takes_a_metadata_of_each_split(tmp_path: Path, names: tuple[str, str]) -> None:
    """In the folder of each split, or above; a table called as a split is of that split."""
    data = tmp_path / "data"
    for name, split, count in zip(names, ("train", "test"), (6, 4), strict=True):
        folder = "" if "/" in name else f"{split}/"
        rows = [
            {"file_name": f"{folder}{n}.jpg", "label": "ab"[n % 2], "age": n} for n in range(count)
        ]
        for n in range(count):
            save(data / split / f"{n}.jpg", picture(f"{n}.jpg"))
        save(data / name, table(rows, "csv"))
    summary, out = proposed(tmp_path, data)
    assert summary.structure == "universal-table"
    for split, count in (("train", 6), ("test", 4)):
        found = read_split(out, split, {"image/class/text"})
        assert {path: record["image/class/text"] for path, record in found.items()} == {
            f"{split}/{n}.jpg": "ab"[n % 2] for n in range(count)
        }


def test_captions_over_class_folders_are_no_rival(tmp_path: Path) -> None:
    """A table without a class next to class folders: the folders are the classes."""
    rows = [
        {"file_name": f"{name}/{n}.jpg", "text": f"{name} {n}"}
        for name in ("cat", "dog")
        for n in range(5)
    ]
    images(tmp_path / "data", rows)
    save(tmp_path / "data" / "metadata.csv", table(rows, "csv"))
    summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert summary.structure == "class-folders"
    assert summary.classes == {"cat": 5, "dog": 5}


def test_images_in_no_row_are_named(tmp_path: Path) -> None:
    """They would be lost: init refuses, and its command leaves them out."""
    images(tmp_path / "data", [*LABELLED, {"file_name": "more.jpg"}])
    save(tmp_path / "data" / "metadata.jsonl", table(LABELLED, "jsonl"))
    with pytest.raises(InputError, match=r"1 image .*metadata.jsonl: more.jpg"):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE, structure="universal-table")
    assert summary.classes == {"cat": 2, "dog": 2}


def test_a_lost_image_of_metadata_is_named(tmp_path: Path) -> None:
    """The table's line, and the image."""
    images(tmp_path / "data", LABELLED[1:])
    save(tmp_path / "data" / "metadata.csv", table(LABELLED, "csv"))
    with pytest.raises(InputError, match=r"metadata.csv, line 2: .*/a/1.jpg "):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)


def test_a_table_called_as_a_split_is_of_it(tmp_path: Path) -> None:
    """`init test.csv` makes a split test, and names the tables next to it that it doesn't read."""
    rows = [{"file_name": row["file_name"], "label": row["label"]} for row in LABELLED]
    images(tmp_path, rows)
    save(tmp_path / "test.csv", table(rows, "csv"))
    save(tmp_path / "train.csv", table(rows, "csv"))
    summary, out = proposed(tmp_path, tmp_path / "test.csv")
    assert len(read_split(out, "test", set())) == 4
    assert summary.passed[0].startswith("train.csv: not read")


def test_paths_of_windows_are_found(tmp_path: Path) -> None:
    """Backslashes between folders."""
    images(tmp_path, LABELLED)
    rows = [
        {"file_name": row["file_name"].replace("/", "\\"), "label": row["label"]}
        for row in LABELLED
    ]
    save(tmp_path / "t.csv", table(rows, "csv"))
    out = converted(tmp_path, "source: {table: t.csv}\n")
    assert read_split(out, "train", set()).keys() == {row["file_name"] for row in LABELLED}


def test_a_table_whose_paths_start_elsewhere_is_left_to_other_layouts(tmp_path: Path) -> None:
    """Bare names in a table above the images: a labels file, as before."""
    data = tmp_path / "data"
    rows = [{"file_name": f"{number}.jpg", "label": "ab"[number % 2]} for number in range(6)]
    images(data / "images", rows)
    save(data / "metadata.csv", table(rows, "csv"))
    summary, out = proposed(tmp_path, data)
    assert summary.structure == "with-labels"
    assert summary.classes == {"a": 3, "b": 3}
    assert len(read_split(out, "train", set())) == 6


def test_the_recipe_of_a_table_has_the_columns_that_are_named(tmp_path: Path) -> None:
    """A class column and an image column of any name are keys of the source."""
    rows = [{"photo": row["file_name"], "species": row["label"]} for row in LABELLED]
    images(tmp_path, rows, "photo")
    save(tmp_path / "t.csv", table(rows, "csv"))
    choice = choose_table(tmp_path / "t.csv", ENGINE, InitOptions(label="species", image="photo"))
    assert choice.proposal.options == {"label": "species", "image": "photo"}


def test_a_table_without_a_column_of_images_names_the_option(tmp_path: Path) -> None:
    """There is no recipe yet to write it in: the command names a column of paths, if one is."""
    path = tmp_path / "t.csv"
    for content, column in (
        ("number,species\n1,x\n", "COLUMN"),
        ("before,after\na.png,b.png\n", "before"),
        ("old_file_name,new_file_name\na.png,b.png\n", "old_file_name"),
    ):
        path.write_text(content)
        with pytest.raises(InputError) as caught:
            choose_table(path, ENGINE, InitOptions())
        advised = f"name the column of the images: imagenet-prep init {path} --image {column}"
        assert caught.value.hint == advised


def test_a_column_of_images_with_any_name_is_found(tmp_path: Path) -> None:
    """The only column whose values are all names of images has the paths."""
    rows = [{"photo": row["file_name"], "species": row["label"]} for row in LABELLED]
    images(tmp_path, rows, "photo")
    save(tmp_path / "t.csv", table(rows, "csv"))
    choice = choose_table(tmp_path / "t.csv", ENGINE, InitOptions(label="species"))
    assert choice.proposal.options == {"label": "species", "image": "photo"}


def test_a_layout_that_one_table_cannot_have_is_refused(tmp_path: Path) -> None:
    """It is never ignored in silence, and no recipe is written."""
    images(tmp_path, LABELLED)
    save(tmp_path / "t.csv", table(LABELLED, "csv"))
    refused = prep_here("init", "t.csv", "--as", "coco", "-q", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: --as coco can't be used with a table, ")
    assert not (tmp_path / "t.yaml").exists()


def test_init_names_no_recipe_that_it_did_not_write(tmp_path: Path) -> None:
    """A table of files that are no images: the hint names no recipe, and no other content."""
    save(tmp_path / "data" / "0.ppm", picture("0.ppm"))
    save(tmp_path / "data" / "metadata.csv", b"file_name,label\n0.ppm,a\n")
    refused = prep_here("init", "data", cwd=tmp_path)
    assert refused.returncode == 4
    assert "convert it to JPEG or PNG, or remove it\n" in refused.stderr
    assert "data.yaml" not in refused.stderr


def test_tables_of_other_splits_are_named_as_a_recipe_takes_them(tmp_path: Path) -> None:
    """The note has the key `source` with each table: a recipe with it reads all."""
    rows = [{"file_name": row["file_name"], "label": row["label"]} for row in LABELLED]
    images(tmp_path / "data", rows)
    save(tmp_path / "data/train.csv", table(rows[:3], "csv"))
    save(tmp_path / "data/test.csv", table(rows[3:], "csv"))
    recipe = tmp_path / "r.yaml"
    summary = init(tmp_path / "data/train.csv", recipe, ENGINE)
    (note,) = summary.passed
    source = note.partition("in a recipe, ")[2].partition(" takes a table")[0]
    assert source == "source: {table: {train: data/train.csv, test: data/test.csv}}"
    recipe.write_text(f"{source}\n")
    command_here("convert", tmp_path / "out", "--config", recipe)
    assert len(read_split(tmp_path / "out", "test", set())) == len(rows) - 3
