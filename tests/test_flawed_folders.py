"""Kept folders with an ordinary flaw: none comes out wrong."""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import kept_annotated  # noqa: F401 - enters its folders
import kept_by_folder  # noqa: F401 - the same
import kept_in_archives  # noqa: F401 - the same
import kept_in_tables  # noqa: F401 - the same
import pytest
from existing import existing
from kept_folders import KNOWN, Painter, Truth
from kept_trial import ASKED, RIGHT, try_folder
from made_sets import ENGINE

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.stages.init import init

Flaw = Callable[[Painter, Truth], None]
TEXTS = (".csv", ".txt", ".json", ".tsv", ".xml")


def texts_of(painter: Painter) -> list[Path]:
    """The tables and lists of a folder."""
    return [path for path in existing(painter.folder, "**/*") if path.suffix in TEXTS]


def rename(painter: Painter, truth: Truth, new_name: Callable[[Path], str]) -> None:
    """Give each image another name, in the truth too; tables keep the old ones."""
    names: dict[str, str] = {}
    for number, path in enumerate(painter.painted):
        image = Path(path)
        name = str(image.with_name(new_name(image)))
        if (painter.folder / path).is_file():
            (painter.folder / path).rename(painter.folder / name)
            painter.painted[number] = names[path] = name
    for one_truth in (truth, *truth.choices):
        for key in ("classes", "splits", "boxes", "masks", "object_masks"):
            facts = getattr(one_truth, key)
            setattr(one_truth, key, {names.get(path, path): facts[path] for path in facts})


def add_mark(painter: Painter, truth: Truth) -> None:
    """Windows' Notepad saved each text with a mark at its start."""
    for path in texts_of(painter):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def change_case(painter: Painter, truth: Truth) -> None:
    """The endings of the images are in capitals, and in tables they are not."""
    rename(painter, truth, lambda image: f"{image.stem}{image.suffix.upper()}")


def decompose(painter: Painter, truth: Truth) -> None:
    """The names have an accent, which macOS wrote as two characters, and tables have as one."""
    stems = {Path(path).stem for path in painter.painted}
    for path in texts_of(painter):
        text = path.read_text()
        for stem in sorted(stems, key=len, reverse=True):
            text = text.replace(stem, f"{stem}\u00e9")
        path.write_text(text)
    accent = unicodedata.normalize("NFD", "\u00e9")
    rename(painter, truth, lambda image: f"{image.stem}{accent}{image.suffix}")


def lose_an_image(painter: Painter, truth: Truth) -> None:
    """An image in the middle is not there."""
    images = [path for path in painter.painted if path in truth.classes]
    lost = images[len(images) // 2]
    (painter.folder / lost).unlink()
    for one_truth in (truth, *truth.choices):
        for key in ("classes", "splits", "boxes", "masks", "object_masks"):
            facts = dict(getattr(one_truth, key))
            facts.pop(lost, None)
            setattr(one_truth, key, facts)


def copy_within(painter: Painter, truth: Truth) -> None:
    """The folder has a copy of itself, as some zips of Kaggle do."""
    copied = painter.folder.with_name("copied")
    shutil.copytree(painter.folder, copied)
    copied.rename(painter.folder / "again")


def number_the_rows(painter: Painter, truth: Truth) -> None:
    """Pandas wrote the numbers of the rows, too."""
    for path in existing(painter.folder, "*.csv"):
        header, *rows = path.read_text().splitlines()
        numbered = [f"{number},{row}" for number, row in enumerate(rows)]
        path.write_text("\n".join([f"Unnamed: 0,{header}", *numbered]))


def number_the_rows_alone(painter: Painter, truth: Truth) -> None:
    """Pandas wrote the numbers of the rows without a name."""
    for path in existing(painter.folder, "**/*.csv"):
        header, *rows = path.read_text().splitlines()
        numbered = [f"{number},{row}" for number, row in enumerate(rows)]
        path.write_text("\n".join([f",{header}", *numbered]))


def add_a_stray(painter: Painter, truth: Truth) -> None:
    """An image of nobody is above all folders."""
    truth.left_out = {*truth.left_out, painter.paint("IMG_9999.jpg")}


def add_a_picture(painter: Painter, truth: Truth) -> None:
    """A picture is next to files of samples."""
    truth.left_out = {*truth.left_out, painter.paint("example.jpg")}


FLAWED: list[tuple[Flaw, str]] = [
    (add_mark, "cub_200"),
    (add_a_picture, "cifar_10_binary"),
    (add_a_picture, "detection_tfrecords"),
    (add_a_picture, "parquet_of_bytes_and_words"),
    (add_mark, "cifar_10_binary"),
    (add_mark, "labelimg_yolo"),
    (add_mark, "roboflow_createml"),
    (change_case, "cub_200"),
    (copy_within, "imagefolder_metadata"),
    (copy_within, "roboflow_coco"),
    (decompose, "breeds_by_bare_name"),
    (decompose, "chexpert"),
    (decompose, "food_101"),
    (decompose, "tiny_imagenet"),
    (lose_an_image, "food_101"),
    (lose_an_image, "isic_2018_lesions"),
    (lose_an_image, "mir_flickr"),
    (lose_an_image, "penn_fudan"),
    (lose_an_image, "resisc_45_splits"),
    (number_the_rows, "digit_recognizer"),
    (lose_an_image, "rows_of_masks_beside_images"),
    (number_the_rows_alone, "airbus_ships"),
    (number_the_rows_alone, "imet_collection"),
    (number_the_rows_alone, "numbers_of_folders"),
    (number_the_rows_alone, "open_images"),
    (add_a_stray, "blood_cells"),
    (add_a_stray, "train_val_extra"),
]


def test_a_picture_next_to_a_file_of_torch_is_asked_about(tmp_path: Path) -> None:
    """The file may have the images or the labels."""
    painter = Painter(tmp_path / "data")
    painter.paint("example.jpg")
    (tmp_path / "data" / "training.pt").write_bytes(b"PK\3\4")
    with pytest.raises(InputError, match=r"training\.pt may label the images"):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)


def test_fractions_are_no_values_of_splits(tmp_path: Path) -> None:
    """A column of weights is not among the values that --split can name."""
    painter = Painter(tmp_path / "data")
    images = painter.paint_all("{}.jpg", 4)
    rows = [f"{image},{'ab'[at % 2]},0.{at % 2 * 8 + 1}" for at, image in enumerate(images)]
    painter.write("t.csv", "\n".join(["file,label,weight", *rows]))
    with pytest.raises(UsageError) as caught:
        init(
            tmp_path / "data",
            tmp_path / "r.yaml",
            ENGINE,
            options=InitOptions(splits={"train": "q"}),
        )
    assert "0.1" not in str(caught.value)


COCO: dict[str, tuple[dict[str, object], str]] = {
    "key points alone": ({"keypoints": [1, 1, 2]}, "neither bbox nor segmentation, only keypoints"),
    "numbers of classes alone": ({}, "its annotations have neither bbox nor segmentation"),
    "some images": ({"bbox": [1, 1, 5, 5]}, "to read them, for 2 of 6 images: imagenet-prep init"),
}


@pytest.mark.parametrize("name", COCO)
def test_coco_that_is_not_read_says_why(tmp_path: Path, name: str) -> None:
    """What its annotations lack, or the command that reads those that there are."""
    keys, said = COCO[name]
    painter = Painter(tmp_path / "data")
    images = painter.paint_all("{}.jpg", 6)
    numbers = range(2 if "bbox" in keys else 6)
    annotations = [{"id": n, "image_id": n, "category_id": 1, **keys} for n in numbers]
    content = {
        "images": [{"id": n, "file_name": images[n], "width": 16, "height": 12} for n in numbers],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "cat"}],
    }
    painter.write("coco.json", json.dumps(content))
    with pytest.raises(InputError) as caught:
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert said in str(caught.value)
    if "bbox" in keys:
        made = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE, structure="coco")
        assert "unannotated: skip" in made.text


@pytest.mark.parametrize(("flaw", "name"), FLAWED, ids=lambda part: getattr(part, "__name__", part))
def test_a_flaw_is_harmless_or_asked_about(tmp_path: Path, flaw: Flaw, name: str) -> None:
    """The set is right, or a command of the message makes it right."""

    def build(painter: Painter) -> Truth:
        truth = KNOWN[name](painter)
        flaw(painter, truth)
        return truth

    outcome, why = try_folder(build, tmp_path)
    assert outcome in (RIGHT, ASKED), f"{flaw.__doc__}\n{why}"
