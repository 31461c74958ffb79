"""Words of faults that few states of a recipe's inputs reach: each says what was seen."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_tars import pack, save
from PIL import Image

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError, PrepError
from imagenet_prep.recipes.changed_settings import changed_settings
from imagenet_prep.recipes.classes import numbered
from imagenet_prep.recipes.labels_file import parse_labels
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.namesakes import refuse_namesakes
from imagenet_prep.recipes.python_rows import _is_picture
from imagenet_prep.recipes.recipe_file import read_recipe
from imagenet_prep.recipes.recipe_paths import fault_of_path
from imagenet_prep.recipes.row_source import TableRow, find_roles, gather
from imagenet_prep.recipes.shared_numbering import KnownNumbering, _hint_on_boxes, _NumberingCheck
from imagenet_prep.recipes.table_rows import Form, LabelsFault, read_rows
from imagenet_prep.recipes.typed_values import fitting_kind, typed
from imagenet_prep.state.numbering import Numbering
from imagenet_prep.tfrecord.example import BytesList, Int64List, encode_example
from imagenet_prep.tfrecord.framing import frame
from imagenet_prep.tfrecord.inception import EDGES


def image() -> bytes:
    """The bytes of a small PNG."""
    stream = io.BytesIO()
    Image.new("RGB", (8, 8)).save(stream, "PNG")
    return stream.getvalue()


PNG = image()


def record(**features: BytesList | Int64List) -> bytes:
    """A TFRecord of one Example."""
    data = encode_example(dict(features))
    head, tail, _ = frame(data)
    return head + data + tail


def rows_of(*rows: object) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


TABLE = "source: {table: t.jsonl}\n"
# Files, the recipe, and the words of its refusal.
REFUSED: dict[str, tuple[dict[str, bytes], str, str]] = {
    "a member that is no image's": (
        {"a.tar": pack({"README": b"x", "1.png": PNG})},
        "source: {webdataset: a.tar}\n",
        "has no image for README",
    ),
    "texts of two lines": (
        {"a.tar": pack({"1.png": PNG, "1.txt": b"a\nb", "1.json": b'{"txt": "c"}'})},
        "source: {webdataset: a.tar}\n",
        r"a.tar: 1.json says 'c', 1.txt says 'a\nb' for txt",
    ),
    "an Example of two images": (
        {"a.rec": record(i=BytesList((PNG, PNG)), l=Int64List((1,)))},
        "source: {tfrecord: a.rec}\n",
        "none of its features holds one image file (JPEG, PNG, ...): i, l\n"
        "expected TFRecords of Examples with one image file each\nif its pixels are raw, encode",
    ),
    "an Example without features": (
        {"a.rec": record()},
        "source: {tfrecord: a.rec}\n",
        "a.rec, record 0, can't be read: it has no features\n",
    ),
    "a row without a split where the recipe lists them": (
        {"t.jsonl": rows_of({"file_name": "a.png", "split": "x"}, {"file_name": "b.png"})},
        TABLE + "splits: {train: {value: x}}\n",
        "b.png has no split\nexpected a split in every row\n",
    ),
    "a text among labels": (
        {"t.jsonl": rows_of({"file_name": "a.png", "v": 1}, {"file_name": "b.png", "v": "x"})},
        "source: {table: t.jsonl, label: v}\n",
        "line 2: label: 'x' is a text, and other values are numbers\n",
    ),
    "no one-hot column": (
        {"l.csv": b"file,cat\na.png,2\nb.png,2\n"},
        "source: {files: '*.png'}\nlabels: {file: l.csv, one_hot: true}\n",
        "l.csv, line 1: one_hot: true finds no column of 0 and 1 (both, and nothing else)\n",
    ),
    "a folder twice": (
        {"i/a.png": PNG},
        "source: {files: 'i/*'}\nsplits: {train: {folder: [i, ./i/]}}\n",
        "splits.train.folder: i is named twice\nexpected each folder once",
    ),
    "columns without a name": (
        {"t.jsonl": b"{}\n"},
        "source: {table: t.jsonl, label: x}\n",
        "expected a column of this name, got none",
    ),
    "an image that its pattern leaves out": (
        {"i/__MACOSX/a.png": PNG},
        "source: {files: 'i/*/*.png'}\n",
        "png\nexpected at least one file; skipped: i/__MACOSX (macOS",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_what_was_seen(tmp_path: Path, name: str) -> None:
    """No cause that was not tested for, no advice that does not help."""
    files, recipe, words = REFUSED[name]
    for image_name in ("a.png", "b.png"):
        save(tmp_path / image_name, PNG)
    for path, content in files.items():
        save(tmp_path / path, content)
    (tmp_path / "r.yaml").write_text(recipe)
    with pytest.raises(PrepError) as caught:
        load(tmp_path / "r.yaml", None, make_engine("threads", 1))
    assert words in str(caught.value)


FAULTS: dict[str, tuple[Callable[[], object], str]] = {
    "a number among texts": (
        lambda: typed([1, "a"], [1, 2], is_text=False),
        "'a' is a text, and other values are numbers",
    ),
    "a text among values of two types": (
        lambda: typed([True, "a", 2], [1, 2, 3], is_text=False),
        "'a' is a text, and other values are numbers, true or false",
    ),
    "a text among true and false": (
        lambda: typed([True, "a"], [1, 2], is_text=False),
        "'a' is a text, and other values are true or false",
    ),
    "a number for a text": (
        lambda: typed([5], [1], is_text=False, kind="bytes"),
        "5 can't be read as a text: the recipe says `type: bytes`",
    ),
    "a long number": (
        lambda: typed(["9" * 50], [1], is_text=True),
        f"{'9' * 40}... is out of range",
    ),
    "a mapping": (
        lambda: typed([{}], [1], is_text=False),
        "the value is an object: expected a text",
    ),
    "a text after a cell": (
        lambda: read_rows(b'a,b\n1,"2"3\n', "csv"),
        "a quotation mark ends a cell, and the cell goes on after it",
    ),
    "JSON without a label": (
        lambda: read_rows(b'{"a.png": null}', "json"),
        'such as {"a.jpg": "cat"} or {"cat": ["a.jpg"]}, whose labels are texts or whole numbers',
    ),
    "JSON of 5,000 digits": (
        lambda: read_rows(b"[\n" + b"1" * 5000 + b"]", "json"),
        "at character 1 is a number of too many digits (1111111111..., of 5,000 digits): expected",
    ),
    "JSON lines with a key of 5,000 digits": (
        lambda: read_rows(b'{"file": "a.png", "age": ' + b"7" * 5000 + b"}", "jsonl"),
        "'age' has a number of too many digits (7777777777..., of 5,000 digits): expected at most",
    ),
    "a number that no float rounds to": (
        lambda: typed(["3.4028236e38"], [1], is_text=True),
        "3.4028236e38 does not fit in a 32-bit float",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_value_shows_it(name: str) -> None:
    """The value as it is written, and what was expected."""
    fail, words = FAULTS[name]
    with pytest.raises(LabelsFault) as caught:
        fail()
    assert words in caught.value.reason


AGES = {
    "a text": ("1", "x", "int64", "bytes"),
    "a fraction": ("1", "3.5", "int64", "float"),
    "a number of 20 digits": ("1", "9" * 20, "int64", "bytes"),
    "texts for floats": ("x", "y", "float", "bytes"),
}


@pytest.mark.parametrize("name", AGES)
def test_the_advised_type_fits_the_whole_column(tmp_path: Path, name: str) -> None:
    """The hint names a type with which every value of the column can be read."""
    first, second, written, advised = AGES[name]
    for image_name in ("a.png", "b.png"):
        save(tmp_path / image_name, PNG)
    (tmp_path / "l.csv").write_text(f"file,label,age\na.png,cat,{first}\nb.png,dog,{second}\n")
    recipe = tmp_path / "r.yaml"
    lines = "source: {files: '*.png'}\nlabels: l.csv\nrecord: {age: {from: age, type: %s}}\n"
    recipe.write_text(lines % written)
    with pytest.raises(PrepError) as caught:
        load(recipe, None, make_engine("threads", 1))
    assert caught.value.hint == f"correct it; or write type: {advised} in the recipe"
    recipe.write_text(lines % advised)
    assert load(recipe, None, make_engine("threads", 1))


def test_no_type_is_advised_for_a_column_that_fits_none() -> None:
    """JSON's texts among numbers are neither texts nor numbers."""
    assert fitting_kind([1, "a"], [1, 2], is_text=False) is None
    assert fitting_kind(["a", "b"], [1, 2], is_text=False) == "bytes"


def test_lines_of_words_have_a_key_of_their_own(tmp_path: Path) -> None:
    """A path, a space and a label: the advised key reads them."""
    save(tmp_path / "a.png", PNG)
    (tmp_path / "l.txt").write_text("a.png cat\n")
    recipe = tmp_path / "r.yaml"
    recipe.write_text("source: {files: '*.png'}\nlabels: {file: l.txt}\n")
    with pytest.raises(PrepError, match="expected path:label") as caught:
        load(recipe, None, make_engine("threads", 1))
    assert "format: words" in caught.value.hint
    recipe.write_text("source: {files: '*.png'}\nlabels: {file: l.txt, format: words}\n")
    assert load(recipe, None, make_engine("threads", 1))


def test_the_largest_float_is_one_as_numpy_writes_it() -> None:
    """It rounds to a float, though it is a little above."""
    assert typed(["3.4028235e38"], [1], is_text=True) == ("float", [3.4028235e38])


@pytest.mark.parametrize("make_cell", [lambda: float("nan"), lambda: [1.5, float("nan")]])
def test_rows_of_one_image_may_all_hold_nan(make_cell: Callable[[], Any]) -> None:
    """NaN differs from itself, and says the same in all rows of an image, in a list, too."""
    values = {"file_name": "a.png", "class": "x", "age": math.nan} | dict.fromkeys(EDGES, 9)
    roles = find_roles(values, "t", None, None)
    rows = [TableRow(values | {"age": make_cell()}, "t", "") for _ in range(2)]
    [image] = gather(rows, roles, is_text=False).images
    assert len(image.objects) == 2
    lines = (
        b'{"path": "a.png", "label": "x", "age": NaN}\n{"path": "a.png", "label": "y", "age": NaN}'
    )
    assert parse_labels(lines, "jsonl", several="lines").labels == [["x", "y"]]


PLACES: dict[str, tuple[bytes, Form, str]] = {
    "a header below a count": (b"# x\n2\nname label\na.png 1\nb.png 2\n", "spaces", "x, line 3"),
    "keys of JSON lines": (b'{"name": "a.png"}\n', "jsonl", "x"),
    "a document of JSON": (b"\n[1]", "json", "x"),
    "lines that end with CR": (b"path,label\ra.png,\xe4\r", "csv", "x, line 2"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_fault_of_labels_is_placed_where_it_is(name: str) -> None:
    """In the line that has it, or in the whole file."""
    content, form, place = PLACES[name]
    with pytest.raises(LabelsFault) as caught:
        parse_labels(content, form)
    assert caught.value.place("x") == place


def test_the_advice_to_encode_is_for_pixels_that_pillow_takes() -> None:
    """Not for numbers, floats, channels that come first, or images that say more than an array."""
    arrays = [np.zeros((3, 8, 8), np.uint8), np.zeros((8, 8)), np.uint8(1), Image.new("P", (2, 2))]
    assert not any(map(_is_picture, arrays))
    assert all(map(_is_picture, [np.zeros((8, 8, 3), np.uint8), Image.new("L", (2, 2))]))


def test_a_name_may_have_brackets() -> None:
    """Its place follows in others, with brackets of its own."""
    names = ["d/a (1).png", "n/a (1).png"]
    with pytest.raises(PrepError, match=r"may be d/a \(1\)\.png, n/a"):
        refuse_namesakes("x.json", ["a (1).png (x.json: images[1] (id 2))"], names)
    with pytest.raises(PrepError, match=r"may be d/a\.png, n/a"):  # a name without a place
        refuse_namesakes("x", ["a.png"], ["d/a.png", "n/a.png"])


def test_a_pipe_is_called_so(tmp_path: Path) -> None:
    """A pipe is a file to many readers."""
    os.mkfifo(tmp_path / "a.tar")
    assert fault_of_path(tmp_path / "a.tar", "file") == "is a pipe"


def test_a_changed_setting_is_the_part_that_differs() -> None:
    """Mappings are searched; a setting that is not there is nothing.

    The settings of encoding again are named as in a recipe; those that follow from others come last.
    """
    recorded = {"order": {"train": {"seed": 1}}}
    planned = {"order": {"train": {"seed": 2}}, "codec": "Pillow 99"}
    first = 'expected codec: not set, got "Pillow 99"'
    inner = "expected order.train.seed: 1, got 2"
    assert changed_settings(recorded, planned) == (["order", "codec"], inner)
    assert changed_settings(recorded, {**recorded, "codec": "Pillow 99"}) == (["codec"], first)
    only_order = {**recorded, "codec": "Pillow 99"}
    assert changed_settings(only_order, planned) == (["order"], inner)
    encoded, other = {"reencode": {"quality": 80}}, {"reencode": {"quality": 90}}
    assert changed_settings(encoded, other) == (["quality"], "expected quality: 80, got 90")
    assert changed_settings({}, encoded) == (["quality"], "expected quality: not set, got 80")


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        ({"cat": 0, "dog": 1}, "classes: [cat, dog] and first_label: 0; or put a set of"),
        ({"1": 1, "9": 9}, "put a set of other classes elsewhere, with --output"),
    ],
)
def test_a_hint_on_classes_numbers_them_as_they_are(known: dict[str, int], hint: str) -> None:
    """It says the first label where the recipe says another; no list counts with gaps."""
    file = read_recipe(Path("r.yaml"), "source: {folders: a}\nfirst_label: 1\n")
    classes = numbered(["cat", "dog"], ["cat", "dog"], 1)
    numbering = Numbering(min(known.values()), known, {})
    check = _NumberingCheck(file, classes, KnownNumbering("train", numbering), False)
    with pytest.raises(InputError) as caught:
        check.refuse_difference()
    assert hint in caught.value.hint


def test_a_hint_on_boxes_numbers_them_as_they_are() -> None:
    """From the first label that is there; where no list does, another folder is the remedy."""
    assert _hint_on_boxes({1: "a"}, {1: "b"}).endswith("names: [a, b]")
    assert _hint_on_boxes({0: "a", 1: "b"}, {}).endswith("names: [a, b] and first_label: 0")
    assert _hint_on_boxes({1: "a", 3: "b"}, {}) == "put this set elsewhere, with --output"
