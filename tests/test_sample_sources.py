"""Sources with labels of their own: faults of their files, and the keys that say more of them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from made_folders import arrays, batch, framed, parquet, picture, tarred

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import PrepError
from imagenet_prep.recipes.loading import load
from imagenet_prep.sources.array_files import open_arrays
from imagenet_prep.sources.slices import Reader

ENGINE = make_engine("threads", 1)


def save(folder: Path, recipe: str, **files: bytes) -> Path:
    """A recipe next to files."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "r.yaml").write_text(recipe)
    return folder / "r.yaml"


FLIPPED = framed("1.jpg", "2.jpg")
FLIPPED = FLIPPED[:40] + bytes([FLIPPED[40] ^ 1]) + FLIPPED[41:]


@pytest.mark.parametrize(
    ("source", "content", "reason"),
    [
        ("tfrecord: f", FLIPPED, "record 0, can't be read"),
        ("tfrecord: f", b"\x1f\x8b" + bytes(40), "record 0, can't be read"),
        ("tfrecord: {'a/b': f}", framed("1.jpg"), "no name of a split"),
        ("tfrecord: f, label: other", framed("1.jpg"), "has no column other"),
        ("folders: f, label: other", b"", "folders has no labels of its own"),
        ("parquet: f", b"PAR1" + bytes(20), "damaged"),
        ("webdataset: f", tarred({"1.jpg": picture("1.jpg"), "1.json": b"{"}), "1.json can't be read"),
        ("arrays: f", pickle.dumps({"data": np.array([print, print])}), "its pickle names builtins.print"),
        ("arrays: f", arrays(x=(2**4, 8, 8), y=(3,)), "no array of images with labels for each"),
        ("arrays: f", b"\0\0\x08\3" + b"\0\0\3\xff" * 3 + bytes(4), "claims"),
        ("arrays: f", b"nothing", "can't be read as arrays"),
    ],
    ids=range(11),
)
def test_a_fault_names_file_and_reason(tmp_path: Path, source: str, content: bytes, reason: str) -> None:
    """Nothing is taken of a file that is damaged, or that would run code."""
    with pytest.raises(PrepError) as caught:
        load(save(tmp_path, f"source: {{{source}}}\n", f=content), None, ENGINE)
    assert reason in str(caught.value)
    assert "f" in str(caught.value)


def test_a_label_can_be_named_or_left_as_a_column(tmp_path: Path) -> None:
    """CIFAR-100's coarse labels have their own words; with false both are columns."""
    meta = pickle.dumps({"fine_label_names": ["cat", "dog"], "coarse_label_names": ["a", "b"]}, 2)
    files = {"train": batch(fine_labels=[0, 1], coarse_labels=[1, 1]), "meta": meta}
    for label, names in (("coarse_labels", ("b",)), ("fine_labels", ("cat", "dog")), ("false", ())):
        made = load(save(tmp_path, f"source: {{arrays: [train, meta], label: {label}}}\n", **files), None, ENGINE)
        assert made.classes.names == names


def test_files_that_call_a_label_differently_are_refused(tmp_path: Path) -> None:
    """Their labels don't mean the same."""
    other = parquet("1.jpg", first="cow")
    recipe = "source: {parquet: ['a', 'b']}\n"
    with pytest.raises(PrepError, match="label 0 is cow, and cat elsewhere"):
        load(save(tmp_path, recipe, a=parquet("1.jpg"), b=other), None, ENGINE)


def test_a_file_that_changes_after_its_listing_is_found(tmp_path: Path) -> None:
    """An .npz that lost examples gives no shorter image."""
    made = load(save(tmp_path, "source: {arrays: f.npz}\n", **{"f.npz": arrays(x=(4, 8, 8), y=(4,))}), None, ENGINE)
    (tmp_path / "f.npz").write_bytes(arrays(x=(2, 8, 8), y=(2,)))
    catalog = made.splits[0].catalog
    assert len(catalog.read(0, Reader())) == catalog.lengths[0]
    with pytest.raises(PrepError, match=r"f\.npz can't be read as arrays"):
        catalog.read(3, Reader())


def test_every_value_of_a_picture_is_kept(tmp_path: Path) -> None:
    """Grey, with a channel, RGB, RGBA, and channels first: the PNG has the array's values."""
    from PIL import Image

    from imagenet_prep.images.arrays import png_of

    for shape in ((7, 9), (7, 9, 1), (7, 9, 2), (7, 9, 3), (7, 9, 4), (3, 7, 9), (1, 7, 9)):
        values = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
        np.save(tmp_path / "a.npy", values)
        (tmp_path / "a.png").write_bytes(png_of((tmp_path / "a.npy").read_bytes()))
        found = np.asarray(Image.open(tmp_path / "a.png"))
        expected = values.transpose(1, 2, 0) if shape[2:] == (9,) else values
        assert (found.reshape(expected.shape) == expected).all()
    assert open_arrays(tmp_path / "a.npy")["a"].shape == (1, 7, 9)
    assert picture("a.png")
