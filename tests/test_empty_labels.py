"""An empty label means no label: no source makes a class of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from kept_folders import Painter
from kept_in_archives import arrow, framed, mds, parquet_of
from made_folders import painted, picture
from made_rows import images, table
from made_sets import ENGINE
from made_tars import in_memory, pack, save
from test_class_numbers import make

import imagenet_prep
from imagenet_prep import verify
from imagenet_prep.errors import InputError
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.recipes.loading import load
from imagenet_prep.stages.init import init
from imagenet_prep.tfrecord.example import BytesList

Labels = Sequence[Any]


def image_rows(labels: Labels) -> list[dict[str, Any]]:
    """A row for each label, with an image in it."""
    return [
        {"image": {"bytes": picture(f"{number}.jpg"), "path": f"{number}.jpg"}, "label": label}
        for number, label in enumerate(labels)
    ]


def path_rows(folder: Path, labels: Labels) -> list[dict[str, Any]]:
    """A row for each label, with the path of an image."""
    rows = [{"file_name": f"i/{number}.jpg", "label": row} for number, row in enumerate(labels)]
    images(folder, rows)
    return rows


def samples(folder: Path, members: Sequence[tuple[str, bytes]]) -> str:
    """A WebDataset tar of an image and this member in each sample."""
    files: dict[str, bytes] = {}
    for number, (ending, content) in enumerate(members):
        files |= {f"{number}.jpg": picture(f"{number}.jpg"), f"{number}.{ending}": content}
    save(folder / "data", pack(files))
    return "source: {webdataset: data, label: LABEL}"


def in_cls(folder: Path, labels: Labels) -> str:
    """Each label in a .cls."""
    members = [("cls", str(label).encode()) for label in labels]
    return samples(folder, members).replace("LABEL", "cls")


def in_txt(folder: Path, labels: Labels) -> str:
    """Each label in a .txt."""
    members = [("txt", str(label).encode()) for label in labels]
    return samples(folder, members).replace("LABEL", "txt")


def in_json(folder: Path, labels: Labels) -> str:
    """Each label in a .json."""
    members = [("json", json.dumps({"label": label}).encode()) for label in labels]
    return samples(folder, members).replace("LABEL", "label")


def in_parquet(folder: Path, labels: Labels) -> str:
    """Labels in Parquet."""
    save(folder / "data", parquet_of(pa.Table.from_pylist(image_rows(labels))))
    return "source: {parquet: data}"


def in_arrow(folder: Path, labels: Labels) -> str:
    """Labels in Arrow."""
    save(folder / "data.arrow", arrow(pa.Table.from_pylist(image_rows(labels))))
    return "source: {arrow: data.arrow}"


def in_mds(folder: Path, labels: Labels) -> str:
    """Labels in MDS."""
    rows = [{"x": row["image"]["bytes"], "y": row["label"].encode()} for row in image_rows(labels)]
    mds(Painter(folder), "data/", rows, {"x": "jpeg", "y": "str"})
    return "source: {mds: data/shard.00000.mds}"


def in_npz(folder: Path, labels: Labels) -> str:
    """Labels in NumPy's .npz."""
    x, y = painted(len(labels), 8, 8, 3), np.array(labels)
    save(folder / "data.npz", in_memory(lambda file: np.savez(file, x=x, y=y)))
    return "source: {arrays: data.npz}"


def in_examples(folder: Path, labels: Labels) -> str:
    """Labels in TFRecords."""
    examples = [
        {
            "image/encoded": BytesList((row["image"]["bytes"],)),
            "label": BytesList((row["label"].encode(),)),
        }
        for row in image_rows(labels)
    ]
    save(folder / "data", framed(examples))
    return "source: {tfrecord: data}"


def in_table(folder: Path, labels: Labels, ending: str) -> str:
    """Labels in a table with paths of images."""
    save(folder / f"data.{ending}", table(path_rows(folder, labels), ending))
    return f"source: {{table: data.{ending}}}"


def in_file(folder: Path, labels: Labels, ending: str) -> str:
    """Labels in a file of labels."""
    rows = path_rows(folder, labels)
    if ending == "json":
        content = json.dumps({row["file_name"]: row["label"] for row in rows}).encode()
        keys = "file: data.json"
    else:
        content = table(rows, ending)
        keys = f"file: data.{ending}, path: file_name"
    save(folder / f"data.{ending}", content)
    return f"source: {{files: 'i/*.jpg'}}\nlabels: {{{keys}}}"


TEXTS: dict[str, Callable[[Path, Labels], str]] = {
    "cls": in_cls,
    "txt": in_txt,
    "json": in_json,
    "parquet": in_parquet,
    "arrow": in_arrow,
    "mds": in_mds,
    "npz": in_npz,
    "tfrecord": in_examples,
    "table of lines": partial(in_table, ending="jsonl"),
    "table of Parquet": partial(in_table, ending="parquet"),
    "CSV table": partial(in_table, ending="csv"),
    "file of lines": partial(in_file, ending="jsonl"),
    "JSON file": partial(in_file, ending="json"),
    "CSV file": partial(in_file, ending="csv"),
}
"""How a recipe is made of images with labels that are texts, by where the labels are."""

LISTS = {name: TEXTS[name] for name in ("json", "parquet", "table of lines", "file of lines")}
"""The same for lists of labels."""


def indices_by_class(folder: Path, recipe: str) -> dict[str | None, list[int | None]]:
    """The class of each image of a set that convert makes, and verify finds right."""
    layout = make(folder, f"{recipe}\n")
    assert verify(layout, ENGINE).problems == ()
    found = imagenet_prep.open(str(layout.output_dir), "train")
    classes: dict[str | None, list[int | None]] = {}
    for record in found:
        name = None
        if record.class_index is not None:
            name = found.class_names[record.class_index]
        classes.setdefault(name, []).append(record.class_index)
    return classes


@pytest.mark.parametrize("blank", ["", "  "], ids=["empty", "blanks"])
@pytest.mark.parametrize("source", TEXTS)
def test_an_empty_text_is_no_class(tmp_path: Path, source: str, blank: str) -> None:
    """The classes are those of the other images, and start with 0."""
    recipe = TEXTS[source](tmp_path, [blank, "cat", "dog", "cat"])
    assert indices_by_class(tmp_path, recipe) == {None: [None], "cat": [0, 0], "dog": [1]}


@pytest.mark.parametrize("source", ["cls", "json", "file of lines"])
def test_an_empty_text_among_numbers_is_no_class(tmp_path: Path, source: str) -> None:
    """Other labels stay numbers."""
    recipe = TEXTS[source](tmp_path, ["", 2, 0, 2])
    assert indices_by_class(tmp_path, recipe) == {None: [None], "0": [0], "2": [2, 2]}


@pytest.mark.parametrize("source", LISTS)
def test_an_empty_text_in_a_list_is_no_class(tmp_path: Path, source: str) -> None:
    """A list of empty texts, and one of nothing, are no label either."""
    recipe = LISTS[source](tmp_path, [["", "cat"], ["dog"], [""], []])
    layout = make(tmp_path, f"{recipe}\n")
    assert verify(layout, ENGINE).problems == ()
    dataset = load(tmp_path / "recipe.yaml", None, ENGINE)
    assert dataset.classes.names == ("cat", "dog")
    several = dataset.splits[0].catalog.columns["label.list"]
    assert sorted(map(list, several)) == [[], [], [0], [1]]


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv"])
@pytest.mark.parametrize("policy", ["skip", "error"])
def test_the_policy_for_no_label_includes_empty_labels(
    tmp_path: Path, ending: str, policy: str
) -> None:
    """`unlabelled: skip` leaves them out, `unlabelled: error` refuses them."""
    recipe = in_file(tmp_path, [" ", "cat", "dog"], ending)
    recipe = recipe.replace("labels: {", f"labels: {{unlabelled: {policy}, ")
    if policy == "error":
        with pytest.raises(InputError, match=r"no label for i/0\.jpg"):
            make(tmp_path, recipe)
    else:
        layout = make(tmp_path, recipe)
        found = imagenet_prep.open(str(layout.output_dir), "train")
        assert {record.class_index for record in found} == {0, 1}


@pytest.mark.parametrize("words", [("", "dog"), (" ", "dog")])
def test_a_number_that_a_file_calls_by_nothing_keeps_its_number(
    tmp_path: Path, words: tuple[str, str]
) -> None:
    """Hugging Face's ClassLabel can have an empty name: the class is called by its number."""
    features = {"label": {"_type": "ClassLabel", "names": list(words)}}
    rows = pa.Table.from_pylist(image_rows([0, 1, 0])).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    save(tmp_path / "data", parquet_of(rows))
    assert indices_by_class(tmp_path, "source: {parquet: data}") == {"0": [0, 0], "dog": [1]}


@pytest.mark.parametrize("source", ["cls", "parquet"])
def test_init_asks_about_empty_labels(tmp_path: Path, source: str) -> None:
    """init names the sample without a label, and the option that makes such records."""
    TEXTS[source](tmp_path, ["cat", "", "dog", "cat"])
    path = tmp_path / "data"
    recipe = tmp_path / "r.yaml"
    ending = ".tar" if source == "cls" else ".parquet"
    path.rename(path.with_suffix(ending))
    with pytest.raises(InputError, match=r"1\.jpg has no (cls|label)"):
        init(tmp_path, recipe, ENGINE)
    label = "cls" if source == "cls" else "label"
    init(tmp_path, recipe, ENGINE, options=InitOptions(label=label))
    assert load(recipe, None, ENGINE).classes.names == ("cat", "dog")
