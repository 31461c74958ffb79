"""Notes and hints of a recipe's plan say what is so of this recipe: which folders are skipped, which
images become JPEGs, and which key to change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from made_boxes import coco_set, photograph
from made_folders import picture
from made_tars import save

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import PrepError
from imagenet_prep.recipes.loading import load

ENGINE = make_engine("threads", 1)


def notes(folder: Path, recipe: str) -> str:
    """The notes of a plan, a line each."""
    save(folder / "r.yaml", recipe)
    return "\n".join(load(folder / "r.yaml", None, ENGINE).notes)


def refusal(folder: Path, recipe: str) -> str:
    """The error against a recipe."""
    save(folder / "r.yaml", recipe)
    with pytest.raises(PrepError) as caught:
        load(folder / "r.yaml", None, ENGINE)
    return str(caught.value)


def save_images(folder: Path, *names: str) -> None:
    """Small images of these names."""
    for name in names:
        save(folder / name, picture(f"x.{name.rpartition('.')[2]}"))


def test_a_folder_that_splits_leave_out_is_not_called_empty(tmp_path: Path) -> None:
    """A folder with images in no split is counted as such; one without images is skipped."""
    save_images(tmp_path / "in", "cat/1.jpg", "dog/2.jpg", "extra/3.jpg")
    save(tmp_path / "in/notes/a.txt", "text")
    recipe = "source: {folders: in}\nsplits: {train: {files: ['*/*', '!extra/*']}}\n"
    found = notes(tmp_path, recipe)
    assert "1 folder without a file of this content is skipped: notes" in found
    assert "1 of 3 files is in no split, and is left out" in found


def test_only_images_of_splits_become_jpegs(tmp_path: Path) -> None:
    """One is singular, and a PNG that is in no split is no reason for a note."""
    save_images(tmp_path / "in", "cat/1.jpg", "dog/2.jpg", "dog/3.png")
    assert "1 .png becomes a JPEG" in notes(tmp_path, "source: {folders: in}\n")
    recipe = "source: {folders: in}\nsplits: {train: {files: '**/*.jpg'}}\n"
    assert "JPEG" not in notes(tmp_path, recipe)


@pytest.mark.parametrize("is_skipping", [False, True])
def test_files_of_another_content_are_told_apart(tmp_path: Path, is_skipping: bool) -> None:
    """Next to a text that a pattern names, --on-damaged skip leaves no image out: the hint does not
    speak of it, and with it the text is what is refused.
    """
    save_images(tmp_path / "in", "1.jpg")
    save(tmp_path / "in/2.ppm", b"P6 1 1 255 abc")
    save(tmp_path / "in/3.txt", "text")
    recipe = "source: {files: 'in/*'}\n"
    if is_skipping:
        recipe += "on_damaged: skip\n"
    error = refusal(tmp_path, recipe)
    name = "in/3.txt" if is_skipping else "in/2.ppm"
    assert f"1 file is not recognised as an image: {name}" in error
    assert "convert it to JPEG or PNG, or remove it" in error
    assert "or write content:" not in error
    assert "on_damaged: skip" not in error
    (tmp_path / "in/3.txt").unlink()
    if not is_skipping:
        assert "on_damaged: skip, or --on-damaged skip, leaves it out" in refusal(tmp_path, recipe)


def test_another_content_is_named_where_it_helps(tmp_path: Path) -> None:
    """An array alone can be read as one; next to an image, or with a key for images, it can't."""
    save(tmp_path / "in/1.npy", b"no image")
    recipe = "source: {files: 'in/*'}\ncontent: image\n"
    assert "or write content: array" in refusal(tmp_path, recipe)
    assert "or write content:" not in refusal(tmp_path, f"{recipe}record: inception\n")
    save_images(tmp_path / "in", "2.jpg")
    assert "or write content:" not in refusal(tmp_path, recipe)


def test_an_image_that_is_known_by_its_bytes_is_noted(tmp_path: Path) -> None:
    """Its name has no ending of an image."""
    save_images(tmp_path / "in", "cat/1.jpg", "dog/2.jpg")
    (tmp_path / "in/dog/2.jpg").rename(tmp_path / "in/dog/2")
    found = notes(tmp_path, "source: {folders: in}\n")
    assert "1 file is an image by the first bytes, not by the name: dog/2" in found


def test_a_split_of_loose_files_has_no_misread_folders(tmp_path: Path) -> None:
    """There is no folder that could be misread: the loose file is the only obstacle."""
    save_images(tmp_path / "in", "a/cat/1.jpg", "b/2.jpg")
    recipe = "source: {folders: in}\nsplits: {train: {folder: a}, test: {folder: b}}\n"
    assert refusal(tmp_path, recipe).startswith("b/2.jpg is in no class folder\n")


def test_loose_files_are_counted(tmp_path: Path) -> None:
    """The other one is one other file, and three are three."""
    save_images(tmp_path / "in", "cat/1.jpg", "a.jpg", "b.jpg")
    recipe = "source: {folders: in}\n"
    assert "a.jpg is in no class folder (and 1 other file)" in refusal(tmp_path, recipe)
    save_images(tmp_path / "in", "c.jpg")
    assert "a.jpg is in no class folder (and 2 other files)" in refusal(tmp_path, recipe)


HINTS: Mapping[str, tuple[str, str]] = {
    "places": (
        "source: {files: 'in/*.jpg'}\nsplits: {a: {files: 'in/1*'}, b: {files: 'in/9*'}}\n",
        "correct what `splits` says of b, or take that split out",
    ),
    "fractions": (
        "source: {files: 'in/*.jpg'}\nsplits: {a: 0.999999, b: 0.000001}\n",
        "give b a larger fraction, or take `splits` out",
    ),
    "fractions of each class": (
        "source: {folders: classes}\nsplits: {a: 0.5, b: 0.5}\nstratified: true\n",
        "add files to the classes, or take `stratified` out",
    ),
}


@pytest.mark.parametrize("name", HINTS)
def test_an_empty_split_names_the_key_that_makes_it(tmp_path: Path, name: str) -> None:
    """Each way to divide has its own hint."""
    recipe, hint = HINTS[name]
    save_images(tmp_path, "in/1.jpg", "in/2.jpg", "classes/x/1.jpg", "classes/y/2.jpg")
    error = refusal(tmp_path, recipe)
    assert "split b is empty" in error
    assert hint in error


def test_an_empty_split_of_annotations_names_boxes(tmp_path: Path) -> None:
    """The recipe has no key `splits`, so the hint does not name it."""
    coco_set(tmp_path / "coco")
    path = tmp_path / "coco/annotations/instances_train2017.json"
    save(path.with_name("b.json"), '{"images": [], "annotations": [], "categories": []}')
    recipe = (
        "source: {files: 'coco/*2017/*.jpg'}\n"
        "boxes: {coco: {train: coco/annotations/instances_train2017.json, b: "
        "coco/annotations/b.json}}\n"
    )
    error = refusal(tmp_path, recipe)
    assert "split b is empty" in error
    assert "correct what `boxes` says of b, or take that split out" in error
    assert "`splits`" not in error


def test_a_split_without_labels_names_its_own_file(tmp_path: Path) -> None:
    """Of two labels files, the ones that were read are named."""
    save_images(tmp_path, "in/1.jpg", "in/2.jpg")
    save(tmp_path / "a.csv", "path,label\nin/1.jpg,x\n")
    save(tmp_path / "b.csv", "path,label\nin/2.jpg,\n")
    recipe = (
        "source: {files: 'in/*'}\nlabels: {file: {train: a.csv, test: b.csv}, unlabelled: skip}\n"
    )
    error = refusal(tmp_path, recipe)
    assert "no file of split test has a label" in error
    assert f"expected at least one label in {tmp_path}/a.csv, {tmp_path}/b.csv" in error


def test_a_column_of_several_labels_is_named(tmp_path: Path) -> None:
    """A record asks for a label, and files have lists of them: the hint names the column."""
    save_images(tmp_path, "in/1.jpg", "in/2.jpg")
    save(tmp_path / "a.csv", "path,label\nin/1.jpg,x|y\nin/2.jpg,y\n")
    recipe = (
        "source: {files: 'in/*'}\nlabels: {file: a.csv, several: '|'}\n"
        "record: {image: encoded, label: label}\n"
    )
    error = refusal(tmp_path, recipe)
    assert "record.label: no column 'label'" in error
    assert "a file can have several labels here: write label.list" in error


@pytest.mark.parametrize(
    ("keys", "other", "remedy"),
    [
        ("content: pixels\n", "content: pixels", "write content: image"),
        ("min_val: 0\nmax_val: 1\n", "min_val and max_val", "remove min_val and max_val"),
        (
            "content: pixels\nmin_val: 0\nmax_val: 1\n",
            "content: pixels",
            "write content: image and remove min_val and max_val",
        ),
    ],
)
def test_boxes_of_pixels_name_what_excludes_them(
    tmp_path: Path, keys: str, other: str, remedy: str
) -> None:
    """The error names what the recipe says, and both ways out of it."""
    save(tmp_path / "in/a.jpg", photograph(80, 48))
    save(tmp_path / "b.csv", "file,xmin,ymin,xmax,ymax,class\na.jpg,1,1,9,9,cat\n")
    boxes = "source: {files: 'in/*'}\nboxes: {csv: b.csv}\n"
    error = refusal(tmp_path, f"{boxes}{keys}")
    assert f"boxes: it can't be combined with {other}\n" in error
    assert error.endswith(f"{remedy}, or remove `boxes`")
    save(tmp_path / "r.yaml", f"{boxes}content: image\n")
    load(tmp_path / "r.yaml", None, ENGINE)


def test_manifests_with_images_that_have_no_annotation(tmp_path: Path) -> None:
    """The images that would be skipped are counted."""
    for name in "abc":
        save(tmp_path / f"in/{name}.jpg", photograph(80, 48))
    save(tmp_path / "b.csv", "file,xmin,ymin,xmax,ymax,class\na.jpg,1,1,9,9,cat\n")
    save(tmp_path / "m-train.txt", "in/a.jpg\nin/b.jpg\n")
    save(tmp_path / "m-test.txt", "in/c.jpg\n")
    recipe = (
        "manifest_file: m.txt\nsplits: {train: 0.5, test: 0.5}\n"
        "boxes: {csv: b.csv, unannotated: skip}\n"
    )
    error = refusal(tmp_path, recipe)
    assert "m-train.txt and m-test.txt list 2 images without annotation: " in error
    save(tmp_path / "m-test.txt", "in/a.jpg\n")
    save(tmp_path / "m-train.txt", "in/b.jpg\n")
    error = refusal(tmp_path, recipe)
    assert "boxes: m-train.txt lists 1 image without annotation: in/b.jpg" in error
    assert error.endswith("remove this image from m-train.txt")


FILES = 'source: {files: "in/*.jpg"}\n'
TABLE = "source: {table: t.csv}\n"
ADVISED_KEYS = {
    "labels of another machine": (
        f"{FILES}labels: l.csv\n",
        {"l.csv": "file,label\nq/train/1.jpg,cat\nq/train/2.jpg,dog\n"},
        "without q/train/, write in the recipe (strip: q/train/)",
    ),
    "a table of another machine": (
        TABLE,
        {"t.csv": "file_name,label\n/data/1.jpg,cat\n/data/2.jpg,dog\n"},
        "2 images are there without /data/: write in the recipe (strip: /data/)",
    ),
    "classes from 0": (
        f"{FILES}labels: l.csv\nclasses: [cat, dog]\nrecord: inception\n",
        {"l.csv": "file,label\n1.jpg,0\n2.jpg,1\n"},
        "if 0 is the first class, write in the recipe: (first_label: 0)",
    ),
}


@pytest.mark.parametrize("case", ADVISED_KEYS)
def test_an_advised_key_helps(tmp_path: Path, case: str) -> None:
    """The key that an error has word for word is enough."""
    recipe, files, advice = ADVISED_KEYS[case]
    save_images(tmp_path, "in/1.jpg", "in/2.jpg", "1.jpg", "2.jpg")
    for name, text in files.items():
        save(tmp_path / name, text)
    (key,) = re.findall(
        re.escape(advice).replace(r"\(", "(").replace(r"\)", ")"), refusal(tmp_path, recipe)
    )
    notes(tmp_path, f"{recipe}{key}\n")


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        ({"l.csv": "file,label\nx1.jpg,cat\n"}, "correct the paths, or get these files"),
        (
            {"l.csv": "file,label\n1.jpg,cat\n1.jpg,dog\n"},
            "write labels: {file: ..., several: lines}",
        ),
    ],
)
def test_advice_on_labels_fits_them(tmp_path: Path, files: Mapping[str, str], advice: str) -> None:
    """No key that can't help is named."""
    save_images(tmp_path, "in/1.jpg", "in/2.jpg")
    for name, text in files.items():
        save(tmp_path / name, text)
    error = refusal(tmp_path, f"{FILES}labels: l.csv\n")
    assert advice in error
    assert "strip" not in error
    several = f"{FILES}labels: {{file: l.csv, several: lines, unlabelled: skip}}\n"
    if "several" in advice:
        notes(tmp_path, several)


def test_annotations_in_folders_of_their_own_are_read_from_each(tmp_path: Path) -> None:
    """The folders that the error names, in `boxes`."""
    save_images(tmp_path, "in/train/1.jpg", "in/val/2.jpg")
    for folder, name in (("one", "1"), ("two", "2")):
        save(tmp_path / f"ann/{folder}/{name}.xml", VOC.format(name))
    images = 'source: {files: "in/**/*.jpg"}\n'
    error = refusal(tmp_path, f"{images}boxes: {{voc: ann}}\n")
    folders = re.findall(r"in the recipe's `boxes`: (.*)", error)[0]
    notes(tmp_path, f"{images}boxes: {{voc: [{folders}]}}\n")


def test_a_column_that_holds_two_things_is_the_recipes_fault(tmp_path: Path) -> None:
    """The file of labels needs no correction."""
    save_images(tmp_path, "in/1.jpg")
    save(tmp_path / "l.csv", "file,label\n1.jpg,cat\n")
    error = refusal(tmp_path, f"{FILES}labels: {{file: l.csv, label: label, split: label}}\n")
    assert (
        "the recipe's `labels` names 'label' as the column of the splits and of the labels" in error
    )
    assert error.endswith("correct `labels` in the recipe")


def test_patterns_of_two_folders_start_above_both(tmp_path: Path) -> None:
    """With the advised --raw, and paths from there, both are read."""
    recipe, other = tmp_path / "here", tmp_path / "there"
    save_images(tmp_path, "here/1.jpg", "there/2.jpg")
    error = refusal(recipe, f'source: {{files: ["*.jpg", "{other}/*.jpg"]}}\n')
    (root,) = re.findall(r"give --raw (\S+),", error)
    save(recipe / "r.yaml", 'source: {files: ["here/*.jpg", "there/*.jpg"]}\n')
    load(recipe / "r.yaml", Path(root), ENGINE)


VOC = (
    "<annotation><filename>{}.jpg</filename><size><width>16</width><height>16</height>"
    "<depth>3</depth></size><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
    "<xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>"
)
