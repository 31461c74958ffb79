"""Values of objects are lists in every reader, for no box, one and several;
other single values stay single.
"""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from existing import existing
from made_boxes import coco_set
from made_sets import ENGINE
from made_tars import unpack

import imagenet_prep
from imagenet_prep import Layout, convert, export, records
from imagenet_prep.recipes.recipe_set import RecipeSet

USUAL = ("image/object/class/label", "image/object/bbox/xmin")
RECIPE = (
    "source: {files: train2017/*.jpg}\nboxes: {coco: annotations/instances_train2017.json, "
    "unannotated: empty}\n"
    "splits: {train: {files: train2017/*}}\nshards: 2\n"
)
OWN = ("kinds", "left")
"""Names that a recipe chooses: only the manifest tells that they are of objects."""

OWN_RECIPE = (
    RECIPE + "record: {picture: encoded, file: path, kinds: boxes.label, left: boxes.xmin}\n"
)
SETS = [(USUAL, RECIPE), (OWN, OWN_RECIPE)]


def _opened(folder: Path) -> list[dict[str, Any]]:
    return [record.features for record in imagenet_prep.open(folder / "out", "train")]


def _by_number(folder: Path) -> list[dict[str, Any]]:
    found = imagenet_prep.open(folder / "out", "train")
    return [found[number].features for number in range(len(found))]


def _sent(folder: Path) -> list[dict[str, Any]]:
    return [
        pickle.loads(pickle.dumps(record)).features
        for record in imagenet_prep.open(folder / "out", "train")
    ]


def _read(folder: Path) -> list[dict[str, Any]]:
    return list(records.read(str(folder / "out" / "train-*")))


def _read_with_a_choice(folder: Path) -> list[dict[str, Any]]:
    read = records.read(sorted((folder / "out").glob("train-*")), lists="image/nothing")
    return list(read)


def _raw(folder: Path) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = imagenet_prep.open(
            folder / "raw", "train", source="raw", config=folder / "recipe.yaml"
        )
    return [record.features for record in found]


def _exported(folder: Path) -> list[dict[str, Any]]:
    out = export(Layout(folder / "out"), "webdataset", folder / "tars", ENGINE).out
    members = [pair for path in existing(out, "*train-*.tar") for pair in unpack(path).items()]
    return [json.loads(content) for name, content in members if name.endswith(".json")]


@pytest.mark.parametrize(
    "read", [_opened, _by_number, _sent, _read, _read_with_a_choice, _raw, _exported]
)
@pytest.mark.parametrize(("names", "recipe"), SETS, ids=["usual names", "names of its own"])
def test_always_lists(
    tmp_path: Path,
    names: tuple[str, str],
    recipe: str,
    read: Callable[[Path], list[dict[str, Any]]],
) -> None:
    """Images with 0 to 3 objects: each number of values, all in lists,
    and as many labels as edges.
    """
    coco_set(tmp_path, 8)
    (tmp_path / "recipe.yaml").write_text(recipe)
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(tmp_path / "recipe.yaml"))
    found = read(tmp_path)
    assert len(found) == 8
    labels, edges = ([each[name] for each in found] for name in names)
    assert all(isinstance(values, list) for values in (*labels, *edges))
    assert sorted(map(len, labels)) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert list(map(len, labels)) == list(map(len, edges))
    singles = {
        type(value)
        for each in found
        for name, value in each.items()
        if name in ("image/height", "file")
    }
    assert list not in singles


def test_of_any_program(tmp_path: Path) -> None:
    """Without a manifest the names of the Object Detection API tell it."""
    with records.ShardWriter(tmp_path / "train", shards=1) as writer:
        writer.write({"image/object/bbox/label": 7, "image/class/label": 7})
    (found,) = records.read(tmp_path / "train-00000-of-00001")
    assert found == {"image/object/bbox/label": [7], "image/class/label": 7}


def test_parquet_is_as_before(tmp_path: Path) -> None:
    """Columns of objects are lists, of one value too."""
    from pyarrow import parquet

    coco_set(tmp_path, 8)
    (tmp_path / "recipe.yaml").write_text(OWN_RECIPE)
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(tmp_path / "recipe.yaml"))
    out = export(Layout(tmp_path / "out"), "parquet", tmp_path / "parquet", ENGINE).out
    rows = [
        row for path in existing(out, "*.parquet") for row in parquet.read_table(path).to_pylist()
    ]
    assert sorted(len(row["kinds"]) for row in rows) == [0, 0, 1, 1, 2, 2, 3, 3]
