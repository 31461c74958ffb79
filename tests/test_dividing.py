"""Which split each file is of, which classes there are, and how many:
folders, fractions, lists, totals.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from made_folders import CATS, arrays, images, picture, write
from made_sets import write_lists
from msgspec.structs import replace
from running import command

from imagenet_prep import Layout, PrepError, convert, make_engine, records, verify
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.errors import InputError
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.recipes.set_totals import wrong_totals
from imagenet_prep.sources.fingerprint import fingerprint, names_and_sizes
from imagenet_prep.stages.init import init

ENGINE = make_engine("threads", 2)


def plan(root: Path, recipe: str, *names: str) -> RecipeDataset:
    """The plan of a recipe over empty files: nothing looks into them before records are made."""
    write(root / "set", **dict.fromkeys(names, b""))
    (root / "recipe.yaml").write_text(recipe)
    return load(root / "recipe.yaml", None, ENGINE)


def splits(made: RecipeDataset) -> dict[str, list[str]]:
    """The names of each split, splits in their order."""
    return {each.name: list(each.catalog.names) for each in made.splits}


FOLDERS = "source: {folders: set}\n"
FILES = "source: {files: 'set/**/*.jpg'}\n"


def test_folders_of_splits_come_in_their_order(tmp_path: Path) -> None:
    """Train, validation, test, whatever the order of their folders' names;
    classes are those of all splits.
    """
    names = ("test/a/1.jpg", "train/a/1.jpg", "train/b/2.jpg", "valid/b/3.jpg")
    made = plan(tmp_path, FOLDERS, *names)
    assert splits(made) == {"train": [*names[1:3]], "validation": [names[3]], "test": [names[0]]}
    assert list(splits(made)) == ["train", "validation", "test"]


def test_words_of_classes_are_trimmed(tmp_path: Path) -> None:
    """A file of classes may have a byte order mark, blanks and empty lines;
    words are the name where there are none.
    """
    (tmp_path / "classes.txt").write_text("\ufeffb\t two words \r\n\n a\t\n", encoding="utf-8")
    made = plan(tmp_path, FOLDERS + "classes: classes.txt\n", "a/1.jpg", "b/1.jpg")
    items = [made.splits[0].catalog.item(row) for row in (0, 1)]
    assert {(item.label, item.wnid, item.text) for item in items} == {
        (1, "b", "two words"),
        (2, "a", "a"),
    }


def test_a_label_beyond_16_bits(tmp_path: Path) -> None:
    """Of 70,000 classes the last one has its number;
    no two that share their last 16 bits are taken for each other.
    """
    (tmp_path / "classes.txt").write_text("".join(f"c{number}\n" for number in range(70_000)))
    catalog = (
        plan(tmp_path, FOLDERS + "classes: classes.txt\n", "c69999/1.jpg", "c4463/1.jpg")
        .splits[0]
        .catalog
    )
    low, high = catalog.item(0), catalog.item(1)
    assert (low.label, low.wnid, high.label, high.wnid) == (4464, "c4463", 70_000, "c69999")
    assert low.label + (1 << 16) == high.label
    classes = dict.fromkeys((70_000, 4464), ("c", "c"))
    other = replace(catalog, labels=np.array([70_000, 4464]), classes=classes)
    same = replace(catalog, classes=classes)
    assert fingerprint(other, [0, 1], "") != fingerprint(same, [0, 1], "")
    assert names_and_sizes(other) != names_and_sizes(same)


LABELS = "source: {files: 'set/*.jpg'}\nlabels: {file: labels.csv}\n"


def test_a_column_of_a_reserved_name_is_reached_as_one_of_the_labels(tmp_path: Path) -> None:
    """A labels file may have a column "height":
    labels.height is that, height is the image's own.
    """
    (tmp_path / "labels.csv").write_text("path,label,height\nset/1.jpg,a,77\n")
    made = plan(tmp_path, LABELS + "record: {tall: labels.height, pixels: height}\n", "1.jpg")
    assert made.features.keys() == {"tall", "pixels"}
    assert made.splits[0].catalog.item(0).columns == {"labels.height": 77}


def test_what_is_done_to_numbers_decides_bytes(tmp_path: Path) -> None:
    """Bounds, and which array is taken, are among the settings that decide a record's bytes."""
    pixels = FOLDERS + "content: pixels\n"
    settings = [
        plan(tmp_path, pixels + more, "a/1.png").settings
        for more in (
            "",
            "min_val: 0\nmax_val: 1\n",
            "min_val: 0\nmax_val: 2\n",
            "min_val: -1\nmax_val: 1\n",
        )
    ]
    assert all(one != other for one, other in combinations(settings, 2))
    arrays = "source: {folders: arrays}\ncontent: array\n"
    write(tmp_path / "arrays", **{"a/1.npz": b""})
    one, other = (plan(tmp_path, arrays + f"array: {name}\n").settings for name in ("x", "y"))
    assert one != other


# every class by share -----------------------------------------------------------------------------

STRATIFIED = FOLDERS + "splits: {train: 0.8, validation: 0.1, test: 0.1}\nstratified: true\n"


def test_stratified_splits_divide_each_class(tmp_path: Path) -> None:
    """Each split gets its fraction of each class, by hash;
    a class of three files has one in each split.
    """
    sizes = {"a": 40, "b": 10, "c": 3}
    names = [f"{folder}/{number}.jpg" for folder, size in sizes.items() for number in range(size)]
    found = splits(plan(tmp_path, STRATIFIED, *names))
    counts = {
        split: [sum(name[0] == folder for name in own) for folder in sizes]
        for split, own in found.items()
    }
    assert counts == {"train": [32, 8, 1], "validation": [4, 1, 1], "test": [4, 1, 1]}
    by_hash = sorted(
        (f"b/{number}.jpg" for number in range(10)), key=lambda name: sha256(name.encode()).digest()
    )
    assert [name for name in found["train"] if name[0] == "b"] == sorted(by_hash[:8])
    assert set(found["test"]) >= {by_hash[-1]}


TWO = ("x/1.jpg", "y/2.jpg")
LIKE_SPLITS = "called as splits are, not as classes"
REFUSED = {
    "two folders of one split": (
        FOLDERS,
        ("val/a/1.jpg", "valid/a/2.jpg", "train/a/3.jpg"),
        LIKE_SPLITS,
    ),
    "no train": (FOLDERS, ("val/a/1.jpg", "test/a/2.jpg"), LIKE_SPLITS),
    "no classes below": (FOLDERS, ("train/1.jpg", "val/2.jpg"), LIKE_SPLITS),
    "beside": (FOLDERS, ("train/a/1.jpg", "val/a/2.jpg", "3.jpg"), "3.jpg is in no class folder"),
    "no fractions": (
        FOLDERS + "stratified: true\n",
        TWO,
        "line 2: stratified: it requires splits by fractions",
    ),
    "no labels": (
        FILES + STRATIFIED[len(FOLDERS) :],
        TWO,
        "line 3: stratified: it requires labels, and there are none",
    ),
    "nothing left": (
        FOLDERS + "splits: {a: 0.5, b: 0.5}\nstratified: true\n",
        TWO,
        "split b is empty",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_divided_is_refused(tmp_path: Path, name: str) -> None:
    """What could be splits or classes, a file in neither, and stratified without fractions,
    classes or enough files.
    """
    recipe, names, words = REFUSED[name]
    with pytest.raises(PrepError) as caught:
        plan(tmp_path, recipe, *names)
    assert words in str(caught.value)


def test_the_folder_of_a_split_is_a_whole_folder(tmp_path: Path) -> None:
    """{folder: a} is what lies in a/, and nothing of ab/."""
    recipe = FOLDERS + "splits: {train: {folder: a}, test: {folder: ab/}}\n"
    made = plan(tmp_path, recipe, "a/x/1.jpg", "ab/x/2.jpg", "abc/x/3.jpg")
    assert splits(made) == {"train": ["a/x/1.jpg"], "test": ["ab/x/2.jpg"]}
    assert made.notes == ("1 of 3 files is in no split, and is left out",)


def save(folder: Path, recipe: str, **files: bytes | None) -> Path:
    """Files and a recipe."""
    write(
        folder,
        **{name: picture(name) if content is None else content for name, content in files.items()},
    )
    (folder / "r.yaml").write_text(recipe)
    return folder / "r.yaml"


# options ------------------------------------------------------------------------------------------


def test_a_compression_is_known_in_any_case(tmp_path: Path) -> None:
    """TensorFlow writes GZIP: a recipe, the option and records.write take it as it takes gzip."""
    recipe = save(
        tmp_path, "source: {folders: .}\ncompression: GZIP\n", **images("a/1.png", "b/1.png")
    )
    assert RecipeSet.read(recipe).options.compression == "gzip"
    records.write(tmp_path / "x.tfrecord", [{"a": 1}], "GZIP")
    assert (tmp_path / "x.tfrecord").read_bytes()[:2] == b"\x1f\x8b"
    (tmp_path / "none").mkdir()
    said = command("convert", tmp_path / "none", "--set", "compression=GZIP", status=4).stderr
    assert "no images of ImageNet in" in said


def test_on_damaged_works_beside_a_recipe(tmp_path: Path) -> None:
    """The option that a refusal proposes can be given with --config,
    and the command to go on with names it.
    """
    files = images(*(f"in/{name}/{number}.png" for name in "ab" for number in range(3)))
    files["in/a/1.png"] = b"\x89PNG\r\n\x1a\nno more"
    words = (
        "convert",
        tmp_path / "out",
        "--config",
        save(tmp_path, "source: {folders: in}\nshards: 2\n", **files),
    )
    assert "--on-damaged skip" in command(*words, status=3).stderr
    assert "set aside: 1 image" in command(*words, "--on-damaged", "skip", status=3).stdout
    assert "incomplete: 5 of 6 listed records are in." in command("verify", tmp_path / "out").stdout
    (tmp_path / "out/imagenet-prep/manifest.json").unlink()
    assert command("status", tmp_path / "out").stdout.splitlines()[-1].endswith("--on-damaged skip")


# manifests ----------------------------------------------------------------------------------------


def test_a_complete_manifest_needs_no_folder_of_the_pattern(tmp_path: Path) -> None:
    """The manifest names the files; that the folder of input_file_pattern
    is gone makes no difference.
    """
    names = [f"set/{number}.png" for number in (2, 0, 1)]
    (tmp_path / "m.txt").write_text("\n".join(names))
    for pattern in ("gone/*.png", f"{tmp_path}/gone/*.png", "/nowhere/at/all/*.png"):
        made = plan(
            tmp_path,
            f"manifest_file: m.txt\ninput_file_pattern: {pattern}\n",
            "0.png",
            "1.png",
            "2.png",
        )
        assert list(made.splits[0].catalog.names) == names


def test_a_manifest_a_split_is_made_and_used_again(tmp_path: Path) -> None:
    """manifest_file with splits: one of each is written, and then says what that split holds;
    half of them is none.
    """
    recipe = (
        "manifest_file: lists/m.txt\ninput_file_pattern: set/*.png\nsplits: {train: 0.75, test: "
        "0.25}\n"
    )
    first = plan(tmp_path, recipe, *(f"{number}.png" for number in range(40)))
    write_lists(first)
    lists = {
        split: (tmp_path / f"lists/m-{split}.txt").read_text().splitlines()
        for split in ("train", "test")
    }
    assert lists == splits(first)
    assert not (tmp_path / "lists/m.txt").exists()
    lists["test"].append(lists["train"].pop())
    for split, names in lists.items():
        (tmp_path / f"lists/m-{split}.txt").write_text("\n".join(names))
    again = plan(tmp_path, recipe, "new.png")
    assert splits(again) == lists
    assert again.manifest is None
    assert not any(split.shuffle for split in again.splits)
    (tmp_path / "lists/m-test.txt").unlink()
    with pytest.raises(InputError, match=r"m-test\.txt .*m-train\.txt"):
        plan(tmp_path, recipe)


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("images: 4, classes: 2", ""),
        ("images: 5", "images: 5 expected, 4 found"),
        ("images: 5", "get the missing images, or correct"),
        ("images: 3", "images: 3 expected, 4 found"),
        ("images: 3", "remove the extra images, or correct"),
        ("classes: 3", "classes: 3 expected, 2"),
        ("train: {classes: 3}", "classes: 3 expected, 2 found in train"),
        ("test: {images: 3}", "expected.test: there is no split test"),
        ("images: 0", "expected.images: 0 is not valid"),
    ],
)
def test_convert_compares_the_totals(tmp_path: Path, said: str, part: str) -> None:
    """Other totals than the recipe expects are refused, with the line and what helps."""
    recipe = save(
        tmp_path,
        f"source: {{folders: data}}\nexpected: {{{said}}}\n",
        **{f"data/{n}": c for n, c in images(*CATS).items()},
    )
    if not part:
        layout = Layout(tmp_path / "out")
        convert(layout, ENGINE, dataset=RecipeSet.read(recipe))
        assert verify(layout, ENGINE).problems == ()
        return
    with pytest.raises(PrepError, match=r"r\.yaml, line 2: ") as caught:
        load(recipe, None, ENGINE)
    assert part in f"{caught.value} {caught.value.hint}"


def test_totals_of_a_split_and_classes_that_it_lacks(tmp_path: Path) -> None:
    """verify compares the totals of each split, set-aside images too;
    all commands name classes that a split lacks.
    """
    paths = (
        *(f"train/{name}/{number}.jpg" for name in "abc" for number in range(2)),
        "val/a/1.jpg",
        "val/b/1.jpg",
    )
    files = {f"data/{path}": picture(path) for path in paths}
    said = (
        "expected: {images: 8, train: {images: 6}, validation: {images: 2, classes: "
        "2}}\noutput_file_prefix: set\n"
    )
    recipe = save(tmp_path, f"source: {{folders: data}}\non_damaged: skip\n{said}", **files)
    warning = "warning: split validation lacks 1 of 3 classes: c"
    assert init(tmp_path / "data", tmp_path / "p.yaml", ENGINE).warnings == (warning,)
    (tmp_path / "data/val/b/1.jpg").write_bytes(b"\xff\xd8 cut")
    layout = Layout(tmp_path / "out", set_name="set")
    notes = convert(
        layout, ENGINE, MakingOptions(on_damaged="skip"), dataset=RecipeSet.read(recipe)
    ).notes
    assert warning in notes
    verdict = verify(layout, ENGINE)
    details = {(problem.subject, problem.detail) for problem in verdict.problems}
    assert details == {("set-validation", "expected 2 classes, got 1")}
    (remedy,) = {problem.remedy for problem in verdict.problems}
    assert remedy.startswith("get the missing classes and make the set again, or correct")
    (too_many,) = wrong_totals({"images": 3}, {"train": 4}, {"train": {1}})
    assert too_many.remedy.startswith("remove the extra images and make the set again, or correct")
    assert "warning: split set-validation lacks 2 of 3 classes: label 2, label 3" in verdict.notes


def test_several_arrays_in_a_file_are_a_choice(tmp_path: Path) -> None:
    """The message names the arrays and the key, and asks for no sound copies."""
    recipe = save(
        tmp_path, "source: {files: '*.npz'}\n", **{"a.npz": arrays(x_train=(2, 2), y_train=(2,))}
    )
    with pytest.raises(PrepError, match=r"2 arrays.*x_train, y_train") as caught:
        load(recipe, None, ENGINE)
    assert "write array: x_train" in str(caught.value)


def test_a_second_recipe_in_the_same_folder_is_told_how(tmp_path: Path) -> None:
    """Two recipes without a prefix need different folders;
    with a prefix both sets are right in one.
    """
    files = {f"data/{name}": content for name, content in images(*CATS).items()}
    layout = Layout(tmp_path / "out")
    convert(
        layout, ENGINE, dataset=RecipeSet.read(save(tmp_path, "source: {folders: data}\n", **files))
    )
    second = save(tmp_path, "source: {folders: data}\nsplits: {b: 1.0}\n")
    with pytest.raises(PrepError, match="which this recipe does not make") as caught:
        convert(layout, ENGINE, dataset=RecipeSet.read(second))
    assert "output_file_prefix: r;" in str(caught.value)
    second.write_text(second.read_text() + "output_file_prefix: r\n")
    convert(layout, ENGINE, dataset=RecipeSet.read(second))
    assert [verify(each, ENGINE).problems for each in layout.sets()] == [(), ()]
