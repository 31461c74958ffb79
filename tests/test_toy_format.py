"""A format of annotations is one new file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_boxes import photograph
from made_tars import save
from running import command, prep

import imagenet_prep
from imagenet_prep import records

TOY = '''
"""Ticks: name|class|left|top|right|bottom."""

from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.formats import Format


def _read(path):
    rows = [line.split("|") for line in path.read_text().splitlines()]
    return [Drawn(row[0], str(path), [DrawnObject(row[1], tuple(map(float, row[2:])), str(path))]) for row in rows]


FORMAT = Format(
    "ticks",
    "Ticks",
    "ticks",
    (".ticks",),
    lambda name, ends: b"|" in ends,
    lambda keys, images: images.mark_named(keys.places, _read),
)
'''


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with a copy of the package, an image and a file of ticks."""
    package = tmp_path / "imagenet_prep"
    shutil.copytree(Path(imagenet_prep.__file__).parent, package)
    save(tmp_path / "data/a.jpg", photograph(80, 40))
    save(tmp_path / "data/all.ticks", "a.jpg|dog|8|4|40|20\n")
    return tmp_path


def test_a_format_is_one_new_file(copied: Path) -> None:
    """With it the recipe has a key, init recognises the files,
    and convert and verify read their boxes.
    """
    save(copied / "imagenet_prep/recipes/formats/ticks.py", TOY)
    said = command("init", "data", cwd=copied, PYTHONPATH=str(copied)).stdout
    assert "data/all.ticks" in (copied / "data.yaml").read_text(), said
    command("convert", "out", "--config", "data.yaml", cwd=copied, PYTHONPATH=str(copied))
    command("verify", "out", cwd=copied, PYTHONPATH=str(copied))
    (record,) = records.read(
        str(copied / "out/train-*"), lists=True, text={"image/object/class/text"}
    )
    assert record["image/object/class/text"] == ["dog"]
    assert record["image/object/bbox/xmin"] == pytest.approx([0.1])


def test_without_it_the_key_is_unknown(copied: Path) -> None:
    """The error names the formats that there are."""
    save(copied / "data.yaml", "source: {files: data/*.jpg}\nboxes: {ticks: data/all.ticks}\n")
    refused = prep("convert", "out", "--config", "data.yaml", cwd=copied, PYTHONPATH=str(copied))
    assert refused.returncode == 2
    assert "boxes.ticks: no such key" in refused.stderr
    assert "coco" in refused.stderr
