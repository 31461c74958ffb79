"""Which split each file is of, and which classes there are: folders, fractions, lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError
from imagenet_prep.recipes.classes import MAX_CLASSES, check_count
from imagenet_prep.recipes.plan import Plan, load
from imagenet_prep.recipes.splitting import Shares


def plan(root: Path, recipe: str, *names: str) -> Plan:
    """The plan of a recipe over empty files: nothing looks into them before records are made."""
    for name in names:
        path = root / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (root / "recipe.yaml").write_text(recipe)
    return load(root / "recipe.yaml", None, make_engine("threads", 1))


def splits(made: Plan) -> dict[str, list[str]]:
    """The names of each split, splits in their order."""
    return {each.name: list(each.catalog.filenames()) for each in made.splits}


FOLDERS = "source: {folders: set}\n"


def test_folders_of_splits_come_in_their_order(tmp_path: Path) -> None:
    """Train, validation, test, whatever the order of their folders' names; classes are those of all splits."""
    names = ("test/a/1.jpg", "train/a/1.jpg", "train/b/2.jpg", "valid/b/3.jpg")
    made = plan(tmp_path, FOLDERS, *names)
    assert splits(made) == {"train": [*names[1:3]], "validation": [names[3]], "test": [names[0]]}
    assert list(splits(made)) == ["train", "validation", "test"]


@pytest.mark.parametrize(
    "names",
    [
        ("val/a/1.jpg", "valid/a/2.jpg", "train/a/3.jpg"),
        ("val/a/1.jpg", "test/a/2.jpg"),
        ("train/a/1.jpg", "val/a/2.jpg", "other/a/3.jpg"),
    ],
    ids=["two folders of one split", "no train", "a folder that is no split"],
)
def test_other_folders_are_no_splits(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Two folders of one split, splits without train, a stranger among them: then all of it is one split."""
    assert list(splits(plan(tmp_path, FOLDERS, *names))) == ["train"]


def test_a_split_has_class_folders_in_it(tmp_path: Path) -> None:
    """Where classes are folders, train/ with images right in it is a class called train, and no split."""
    made = plan(tmp_path, FOLDERS, "train/1.jpg", "val/2.jpg")
    assert splits(made) == {"train": ["train/1.jpg", "val/2.jpg"]}
    assert made.splits[0].catalog.item(1).wnid == "val"


def test_the_folder_of_a_split_is_a_whole_folder(tmp_path: Path) -> None:
    """{folder: a} is what lies in a/, and nothing of ab/."""
    recipe = FOLDERS + "splits: {train: {folder: a}, test: {folder: ab/}}\n"
    made = plan(tmp_path, recipe, "a/x/1.jpg", "ab/x/2.jpg", "abc/x/3.jpg")
    assert splits(made) == {"train": ["a/x/1.jpg"], "test": ["ab/x/2.jpg"]}
    assert made.notes == ("1 of 3 files are in no split, and are left out",)


def test_a_manifests_split_keeps_its_order(tmp_path: Path) -> None:
    """Files that a manifest lists stay in that order; a split by pattern beside it is shuffled."""
    (tmp_path / "test.txt").write_text("a/2.jpg\na/1.jpg\n")
    recipe = FOLDERS + "splits: {train: {files: 'b/*'}, test: {manifest: test.txt}}\n"
    made = plan(tmp_path, recipe, "a/1.jpg", "a/2.jpg", "b/1.jpg")
    assert splits(made) == {"train": ["b/1.jpg"], "test": ["a/2.jpg", "a/1.jpg"]}
    assert [each.shuffle for each in made.splits] == [True, False]


def test_every_name_has_a_split() -> None:
    """Fractions that add up to a little less than 1 in floating point leave no name over."""
    fractions = {str(number): 0.1 for number in range(10)}
    assert sum(fractions.values()) < 1
    shares = Shares(fractions)
    assert shares._edges[-1] == (1 << 64, "9")
    assert {shares.split_of(str(number)) for number in range(1000)} == set(fractions)


def test_words_of_classes_are_trimmed(tmp_path: Path) -> None:
    """A file of classes may have a byte order mark, blanks and empty lines; words are the name where there are none."""
    (tmp_path / "classes.txt").write_text("\ufeffb\t two words \r\n\n a\t\n", encoding="utf-8")
    made = plan(tmp_path, FOLDERS + "classes: classes.txt\n", "a/1.jpg", "b/1.jpg")
    items = [made.splits[0].catalog.item(row) for row in (0, 1)]
    assert {(item.label, item.wnid, item.text) for item in items} == {(1, "b", "two words"), (2, "a", "a")}


def test_labels_have_an_end() -> None:
    """65,535 classes have labels of 16 bits; one more is refused."""
    check_count(range(MAX_CLASSES), Path("set"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="65,536 classes"):
        check_count(range(MAX_CLASSES + 1), Path("set"))  # type: ignore[arg-type]
