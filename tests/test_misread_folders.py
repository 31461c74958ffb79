"""Folders that are no classes: what the error says of them, and the recipe that it proposes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from made_folders import picture
from made_sets import ENGINE
from made_tars import save

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.misread_folders import mask_folders

SPLIT_FOLDERS = ("cat/training/1.jpg", "cat/testing/2.jpg", "dog/training/3.jpg")
TRAIN = ("train/cat/1.jpg", "train/dog/2.jpg")


def refusal(folder: Path, names: Sequence[str], recipe: str) -> InputError:
    """The error for the images of these names in ``data``."""
    for name in names:
        save(folder / "data" / name, picture(name))
    (folder / "r.yaml").write_text(recipe)
    with pytest.raises(InputError) as caught:
        load(folder / "r.yaml", None, ENGINE)
    return caught.value


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("cat/1.jpg", "dog/2.jpg", "images/3.jpg"), "the folder images next to the classes is"),
        (
            ("cat/1.jpg", "dog/2.jpg", "images/3.jpg", "img/4.jpg"),
            "the folders images, img next to the classes are hardly classes",
        ),
        ((*TRAIN, "test/images/3.jpg"), "test/ holds images, and the other splits have no such"),
        (
            (*TRAIN, "test/images/3.jpg", "val/photos/4.jpg"),
            "val/, test/ hold photos, images, and the other splits have no such class",
        ),
    ],
)
def test_the_advice_can_be_copied(tmp_path: Path, names: Sequence[str], problem: str) -> None:
    """Each folder is named, and the recipe takes the splits that the error proposes."""
    recipe = "source: {folders: data}\n"
    error = refusal(tmp_path, names, recipe)
    assert problem in error.what
    advice = error.hint.removeprefix("a recipe can say: ").partition("; or classes")[0]
    advice, _, left_out = advice.partition(", which leaves ")
    assert bool(left_out) == ("next to the classes" in problem)
    (tmp_path / "r.yaml").write_text(f"{recipe}{advice}\n")
    assert load(tmp_path / "r.yaml", None, ENGINE).classes.names == ("cat", "dog")


def test_inner_folders_keep_their_names_in_the_advice(tmp_path: Path) -> None:
    """training is split train, in the folder training."""
    error = refusal(tmp_path, SPLIT_FOLDERS, "source: {folders: data, class_folder: inner}\n")
    _, _, advice = error.hint.partition("a recipe can say: ")
    lead, splits = advice.split(", and ")
    assert lead == "class_folder: first"
    (tmp_path / "r.yaml").write_text(f"source: {{folders: data, class_folder: first}}\n{splits}\n")
    dataset = load(tmp_path / "r.yaml", None, ENGINE)
    assert {split.name: len(split.catalog) for split in dataset.splits} == {"train": 2, "test": 1}


def test_images_beside_masks_are_all_in_the_advice() -> None:
    """The names of the folders, after what comes before them in the recipe."""
    folders = {"images": ["1.jpg"], "masks": ["1.png"], "more": ["2.jpg"]}
    fault = mask_folders(folders)
    assert fault is not None
    assert fault.choice.startswith(
        "only the images (source: {files: ['.../images/**/*', '.../more/**/*']}); or classes: "
    )
    del folders["more"]
    fault = mask_folders(folders)
    assert fault is not None
    assert "(source: {files: '.../images/**/*'})" in fault.choice
