"""A folder that is not the one of the shards: an export, raw data, the state, a folder above."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest
from made_sets import ENGINE, PART

import imagenet_prep
from imagenet_prep import convert, untar
from imagenet_prep.errors import InputError
from imagenet_prep.stages.diff import diff
from imagenet_prep.stages.export import export
from imagenet_prep.stages.repair import repair
from imagenet_prep.stages.status import status
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage.layout import Layout


@pytest.fixture
def tiny_set(tiny_data_dir: Path) -> Path:
    """A finished set."""
    convert(Layout(tiny_data_dir), ENGINE, PART)
    return tiny_data_dir


@pytest.fixture
def exported(tiny_set: Path, tmp_path: Path) -> Path:
    """An export to tars, whose names and images are those of ImageNet."""
    export(Layout(tiny_set), "webdataset", tmp_path / "tars", ENGINE)
    return tmp_path / "tars"


def test_an_export_to_parquet_is_not_taken_for_files_of_hugging_face(
    tiny_set: Path, tmp_path: Path
) -> None:
    """The files have the same names; names and labels in them are others."""
    pytest.importorskip("pyarrow")
    export(Layout(tiny_set), "parquet", tmp_path / "files", ENGINE)
    with pytest.raises(InputError, match="holds an export to parquet, and no shards"):
        convert(Layout(tmp_path / "new", raw=tmp_path / "files"), ENGINE, PART)


def test_an_export_is_not_taken_for_an_archive(exported: Path, tmp_path: Path) -> None:
    """One of its tars would be unpacked, and converted as if it were the whole."""
    places = [Layout(exported), Layout(tmp_path / "new", raw=exported)]
    calls = [
        *(partial(convert, layout, ENGINE, PART) for layout in places),
        *(partial(untar, layout, ENGINE) for layout in places),
        partial(verify, Layout(exported), ENGINE),
        partial(repair, Layout(exported), ENGINE, {}),
        partial(diff, exported, tmp_path, engine=ENGINE),
        partial(imagenet_prep.open, exported, "train"),
    ]
    for call in calls:
        with pytest.raises(InputError, match="holds an export to webdataset, and no") as caught:
            call()
        assert "tar -xf" not in caught.value.hint
    assert not [layout for layout in places if "tar -xf" in status(layout).following]


@pytest.mark.parametrize("inside", ["raw-data", "imagenet-prep", ".."])
def test_open_names_the_folder_of_the_shards(tiny_set: Path, tmp_path: Path, inside: str) -> None:
    """It is above a folder of the set, or below the one that is named."""
    folder = tmp_path / "sets" / "one"
    shutil.copytree(tiny_set, folder)
    (folder / inside).mkdir(exist_ok=True)
    with pytest.raises(InputError) as caught:
        imagenet_prep.open(folder.parent if inside == ".." else folder / inside, "train")
    assert caught.value.hint == f"name the folder that holds the shards: {folder}"
    imagenet_prep.open(caught.value.hint.partition(": ")[2], "train")
