"""Which split each file is of, and which classes there are: folders, fractions, lists."""

from __future__ import annotations

import dataclasses
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError, PrepError
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.splits import apportion
from imagenet_prep.sources.fingerprint import fingerprint, names_and_sizes


def plan(root: Path, recipe: str, *names: str) -> RecipeDataset:
    """The plan of a recipe over empty files: nothing looks into them before records are made."""
    for name in names:
        path = root / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (root / "recipe.yaml").write_text(recipe)
    return load(root / "recipe.yaml", None, make_engine("threads", 1))


def splits(made: RecipeDataset) -> dict[str, list[str]]:
    """The names of each split, splits in their order."""
    return {each.name: list(each.catalog.names) for each in made.splits}


FOLDERS = "source: {folders: set}\n"


def test_folders_of_splits_come_in_their_order(tmp_path: Path) -> None:
    """Train, validation, test, whatever the order of their folders' names; classes are those of all splits."""
    names = ("test/a/1.jpg", "train/a/1.jpg", "train/b/2.jpg", "valid/b/3.jpg")
    made = plan(tmp_path, FOLDERS, *names)
    assert splits(made) == {"train": [*names[1:3]], "validation": [names[3]], "test": [names[0]]}
    assert list(splits(made)) == ["train", "validation", "test"]


@pytest.mark.parametrize(
    "names",
    [("val/a/1.jpg", "valid/a/2.jpg", "train/a/3.jpg"), ("val/a/1.jpg", "test/a/2.jpg"), ("train/1.jpg", "val/2.jpg")],
    ids=["two folders of one split", "no train", "no classes below"],
)
def test_folders_that_could_be_splits_or_classes_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Two folders of one split, splits without train, splits without classes: neither is made of them silently."""
    with pytest.raises(InputError, match="called as splits are, not as classes"):
        plan(tmp_path, FOLDERS, *names)


def test_words_of_classes_are_trimmed(tmp_path: Path) -> None:
    """A file of classes may have a byte order mark, blanks and empty lines; words are the name where there are none."""
    (tmp_path / "classes.txt").write_text("\ufeffb\t two words \r\n\n a\t\n", encoding="utf-8")
    made = plan(tmp_path, FOLDERS + "classes: classes.txt\n", "a/1.jpg", "b/1.jpg")
    items = [made.splits[0].catalog.item(row) for row in (0, 1)]
    assert {(item.label, item.wnid, item.text) for item in items} == {(1, "b", "two words"), (2, "a", "a")}


def test_a_label_beyond_16_bits(tmp_path: Path) -> None:
    """Of 70,000 classes the last one has its number; no two that share their last 16 bits are taken for each other."""
    (tmp_path / "classes.txt").write_text("".join(f"c{number}\n" for number in range(70_000)))
    catalog = plan(tmp_path, FOLDERS + "classes: classes.txt\n", "c69999/1.jpg", "c4463/1.jpg").splits[0].catalog
    low, high = catalog.item(0), catalog.item(1)
    assert (low.label, low.wnid, high.label, high.wnid) == (4464, "c4463", 70_000, "c69999")
    assert low.label + (1 << 16) == high.label
    classes = dict.fromkeys((70_000, 4464), ("c", "c"))
    other = dataclasses.replace(catalog, labels=np.array([70_000, 4464]), classes=classes)
    same = dataclasses.replace(catalog, classes=classes)
    assert fingerprint(other, [0, 1], "") != fingerprint(same, [0, 1], "")
    assert names_and_sizes(other) != names_and_sizes(same)


def test_a_list_of_no_classes_is_refused(tmp_path: Path) -> None:
    """A file of classes that names none is a mistake, and says so."""
    (tmp_path / "classes.txt").write_text("\t\n")
    with pytest.raises(PrepError, match="nothing in it"):
        plan(tmp_path, FOLDERS + "classes: classes.txt\n", "a/1.jpg")


LABELS = "source: {files: 'set/*.jpg'}\nlabels: {file: labels.csv}\n"


def test_a_column_of_a_reserved_name_is_reached_as_one_of_the_labels(tmp_path: Path) -> None:
    """A labels file may have a column "height": labels.height is that, height is the image's own."""
    (tmp_path / "labels.csv").write_text("path,label,height\nset/1.jpg,a,77\n")
    made = plan(tmp_path, LABELS + "record: {tall: labels.height, pixels: height}\n", "1.jpg")
    assert made.features.keys() == {"tall", "pixels"}
    assert made.splits[0].catalog.item(0).columns == {"labels.height": 77}


def test_what_is_done_to_numbers_decides_bytes(tmp_path: Path) -> None:
    """Bounds, and which array is taken, are among the settings that decide a record's bytes."""
    pixels = FOLDERS + "content: pixels\n"
    settings = [
        plan(tmp_path, pixels + more, "a/1.png").settings
        for more in ("", "min_val: 0\nmax_val: 1\n", "min_val: 0\nmax_val: 2\n", "min_val: -1\nmax_val: 1\n")
    ]
    assert all(one != other for one, other in combinations(settings, 2))
    arrays = "source: {folders: arrays}\ncontent: array\n"
    (tmp_path / "arrays" / "a").mkdir(parents=True)
    (tmp_path / "arrays" / "a" / "1.npz").touch()
    one, other = (plan(tmp_path, arrays + f"array: {name}\n").settings for name in ("x", "y"))
    assert one != other


# every class by share ------------------------------------------------------------------------------------------

STRATIFIED = FOLDERS + "splits: {train: 0.8, validation: 0.1, test: 0.1}\nstratified: true\n"


def test_stratified_splits_divide_each_class(tmp_path: Path) -> None:
    """Each split gets its fraction of each class, by hash; a class of three files has one in each split."""
    sizes = {"a": 40, "b": 10, "c": 3}
    names = [f"{folder}/{number}.jpg" for folder, size in sizes.items() for number in range(size)]
    found = splits(plan(tmp_path, STRATIFIED, *names))
    counts = {split: [sum(name[0] == folder for name in own) for folder in sizes] for split, own in found.items()}
    assert counts == {"train": [32, 8, 1], "validation": [4, 1, 1], "test": [4, 1, 1]}
    by_hash = sorted((f"b/{number}.jpg" for number in range(10)), key=lambda name: sha256(name.encode()).digest())
    assert [name for name in found["train"] if name[0] == "b"] == sorted(by_hash[:8])
    assert set(found["test"]) >= {by_hash[-1]}


@pytest.mark.parametrize("fractions", [(0.9, 0.1), (0.98, 0.01, 0.01), (1 / 3, 1 / 3, 1 / 3), (1.0,)])
def test_every_file_of_a_class_has_a_split(fractions: tuple[float, ...]) -> None:
    """No file is left over; each split is within one file of its fraction, or has the one file that it must have."""
    for count in range(200):
        found = apportion(count, fractions)
        assert sum(found) == count
        assert count < len(fractions) or min(found) >= 1
        wanted = [max(count * fraction, 1) for fraction in fractions]
        assert all(given < most + len(fractions) for given, most in zip(found, wanted, strict=True))


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (FOLDERS + "stratified: true\n", "line 2: stratified: there are no fractions"),
        ("source: {files: 'set/**/*.jpg'}\n" + STRATIFIED[len(FOLDERS) :], "line 3: stratified: there are no labels"),
        (FOLDERS + "splits: {a: 0.5, b: 0.5}\nstratified: true\n", "no file is in split b"),
    ],
)
def test_stratified_needs_fractions_and_classes(tmp_path: Path, recipe: str, words: str) -> None:
    """Without them, or with a split that gets nothing, the error names the line."""
    with pytest.raises(PrepError) as caught:
        plan(tmp_path, recipe, "x/1.jpg", "y/2.jpg")
    assert words in str(caught.value)


def test_a_file_beside_the_splits_is_not_left_out(tmp_path: Path) -> None:
    """One that lies in no folder is in no split: it is named."""
    with pytest.raises(InputError, match=r"3\.jpg is in no class folder"):
        plan(tmp_path, FOLDERS, "train/a/1.jpg", "val/a/2.jpg", "3.jpg")


def test_the_folder_of_a_split_is_a_whole_folder(tmp_path: Path) -> None:
    """{folder: a} is what lies in a/, and nothing of ab/."""
    recipe = FOLDERS + "splits: {train: {folder: a}, test: {folder: ab/}}\n"
    made = plan(tmp_path, recipe, "a/x/1.jpg", "ab/x/2.jpg", "abc/x/3.jpg")
    assert splits(made) == {"train": ["a/x/1.jpg"], "test": ["ab/x/2.jpg"]}
    assert made.notes == ("1 of 3 files are in no split, and are left out",)
