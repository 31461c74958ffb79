"""Class tars: the train images as a tar a class in a folder, which is a copy of ImageNet, whole or in part."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from made_sets import ENGINE

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.raw_data import find_source
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import Silent
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.status import status
from imagenet_prep.storage.layout import Layout

FOLDER = "ILSVRC2012_img_train"
OPTIONS = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)


def _unpacked(layout: Layout, folder: str = FOLDER) -> Path:
    """Unpack the outer tar once, as people do."""
    path = layout.raw_dir / folder
    path.mkdir(parents=True)
    archive = layout.archive_path(facts.ARCHIVES["train"])
    with tarfile.open(archive) as tar:
        tar.extractall(path, filter="data")
    archive.unlink()
    return path


def _shards(layout: Layout) -> dict[str, bytes]:
    return {name: layout.shard_path(name).read_bytes() for name in layout.find_shards(facts.SPLITS)}


def test_class_tars_make_the_same_shards(tiny_data_dir: Path, tmp_path: Path) -> None:
    """Unpacking the outer tar changes no shard, and a conversion that began with it goes on from the class tars."""
    layout = Layout(tiny_data_dir, output=tmp_path / "out")
    convert(layout, ENGINE, OPTIONS)
    before = _shards(layout)
    _unpacked(layout, "train")
    assert [split.made for split in convert(layout, ENGINE, OPTIONS).splits] == [0, 0]
    other = Layout(tiny_data_dir, output=tmp_path / "other")
    convert(other, ENGINE, OPTIONS)
    assert _shards(other) == before
    assert "images in 10 class tars" in status(layout).stages[0].detail


def _cut(path: Path, other: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _exchanged(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def _flipped(path: Path, other: Path) -> None:
    content = bytearray(path.read_bytes())
    content[148] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut, "is damaged at byte"),
        (_exchanged, "holds a member foreign to this data set"),
        (_flipped, "wrong header checksum"),
    ],
)
def test_a_damaged_class_is_named(damage: object, said: str, tiny_data_dir: Path, made_tiny: MadeSet) -> None:
    """A class tar that is cut, changed, or of another class is refused with its name."""
    layout = Layout(tiny_data_dir)
    folder = _unpacked(layout)
    path, other = (folder / f"{wnid}.tar" for wnid in made_tiny.wnids[:2])
    assert callable(damage)
    damage(path, other)
    source = find_source(layout, "train")
    assert source is not None
    with pytest.raises(InputError) as caught:
        source.catalog(ENGINE, Silent())
    assert said in str(caught.value)
    assert path.name in str(caught.value)
