"""Folders are splits, classes or neither: what init makes of names,
what it asks, and what convert refuses.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE
from made_tars import pack
from PIL import Image

from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.recipes.folder_roles import FolderTree, roles_of
from imagenet_prep.recipes.folder_words import is_no_class, split_name
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.misread_folders import in_flow, misread
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_file import read_recipe
from imagenet_prep.recipes.splits import split_folders, split_names
from imagenet_prep.sources.names import Names
from imagenet_prep.stages.init import init

Truth = Mapping[str, Mapping[str, str | None]]
"""By split the class of each image, by its path; None: no class."""


def of(folder: str, *classes: str, count: int = 2) -> dict[str, str | None]:
    """Images of class folders below a folder, each with its class."""
    return {
        f"{folder}{name}/{name}{number}.jpg": name for name in classes for number in range(count)
    }


def flat(*folders: str, count: int = 2) -> dict[str, str | None]:
    """Images without a class, directly in folders."""
    return {f"{folder}/x{number}.jpg": None for folder in folders for number in range(count)}


def paint(folder: Path, names: list[str], texts: Mapping[str, str] = {}) -> None:
    """A small image of each name, and text files."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6), (len(name), 0, 0)).save(path)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def classes_of(made: RecipeDataset) -> dict[str, dict[str, str | None]]:
    """By split the class of each image, as the records have it."""
    found: dict[str, dict[str, str | None]] = {}
    for split in made.splits:
        catalog = split.catalog
        labels = catalog.labels.tolist()
        names = [catalog.classes[label][0] if label > 0 else None for label in labels]
        found[split.name] = dict(zip(catalog.names, names, strict=True))
    return found


def run_init(folder: Path, data: str, *options: str) -> tuple[RecipeDataset, str]:
    """The plan of the recipe that init writes with these options, and what init says."""
    earlier = [*folder.glob("r[.-]*")] if (folder / "r.yaml").exists() else []
    for path in earlier:
        path.unlink()
    structure, splits = None, {}
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option == "--as":
            structure = value
        elif option == "--split":
            name, _, where = value.partition("=")
            splits[name] = where
    summary = init(
        folder / data,
        folder / "r.yaml",
        ENGINE,
        structure=structure,
        options=InitOptions(splits=splits),
    )
    return load(summary.recipe, None, ENGINE), "\n".join((*summary.evidence, *summary.passed))


def by_path(found: Truth, lead: str = "in/") -> dict[str, tuple[str, str | None]]:
    """The split and class of each image, by its path from the folder of the data."""
    pairs = (
        (path, split, name) for split, images in found.items() for path, name in images.items()
    )
    return {path.removeprefix(lead): (split, name) for path, split, name in pairs}


def names_of(found: Mapping[str, object], paths: Iterable[str]) -> dict[str, str]:
    """The name in a listing of each path: names start at a folder that all are in."""
    names = {}
    for path in paths:
        ends = [name for name in found if path.endswith(f"/{name}")]
        if path in found or ends:
            names[path] = path if path in found else ends[0]
    return names


def assert_same(made: RecipeDataset, truth: Truth) -> None:
    """The records have each image once, by the end of its path, with its split and class."""
    found, right = by_path(classes_of(made)), by_path(truth)
    assert len(found) == len(right)
    assert {path: found[name] for path, name in names_of(found, right).items()} == right


def commands_in(text: str) -> list[list[str]]:
    """The options of each command of init that a message names for the folder "in"."""
    found = re.findall(r"imagenet-prep init (\S+/in(?:/\S+)?(?: --\w+ (?:'[^']*'|[^\s;]+))+)", text)
    commands = [shlex.split(each) for each in found]
    for words in commands:
        if "--output" in words:
            place = words.index("--output")
            del words[place : place + 2]
    return commands


# what init takes ----------------------------------------------------------------------------------

TRAIN = of("train/", "cat", "dog")
VAL = of("val/", "cat", "dog")


def divided(
    others: Mapping[str, str | None] = {}, said: str = "", **splits: dict[str, str | None]
) -> tuple[dict[str, str | None], Truth, str]:
    """The images of a folder, what its splits are, and what init says:
    images in no split are left out.
    """
    images = {path: name for several in splits.values() for path, name in several.items()}
    return {**images, **others}, splits, said


TAKEN: dict[str, tuple[dict[str, str | None], Truth, str]] = {
    # other names of splits
    "Train, Valid, TEST": divided(
        train=of("Train/", "a", "b"), validation=of("Valid/", "a", "b"), test=of("TEST/", "b")
    ),
    "training and testing": divided(train=of("training/", "0", "1"), test=of("testing/", "0", "1")),
    "train_set and val set": divided(
        train=of("train_set/", "a", "b"), validation=of("val set/", "a", "b")
    ),
    "train2017 and val2017": divided(
        train=of("train2017/", "a", "b"), validation=of("val2017/", "a", "b")
    ),
    "dev and eval": divided(
        train=of("train/", "a", "b"), validation=of("dev/", "a"), test=of("eval/", "b")
    ),
    "eval and test": divided(
        train=of("train/", "a", "b"), validation=of("eval/", "a"), test=of("test/", "b")
    ),
    "holdout": divided(train=of("train/", "a", "b"), test=of("holdout/", "b")),
    "seg_train/seg_train": divided(
        flat("seg_pred/seg_pred"),
        train=of("seg_train/seg_train/", "a", "b"),
        test=of("seg_test/seg_test/", "a", "b"),
        said="seg_pred: 2 images without a class, left out",
    ),
    "a word within longer names": divided(
        train=of("pets_train/", "a", "b"), test=of("pets_test/", "a", "b")
    ),
    "train/images": divided(
        train=of("train/images/", "a", "b"), validation=of("val/images/", "a", "b")
    ),
    # places of splits
    "one level above": divided(
        train=of("data/set/train/", "a", "b"), validation=of("data/set/val/", "a")
    ),
    "within the classes": divided(
        train={f"{name}/train/{number}.jpg": name for name in "abc" for number in "12"},
        test={f"{name}/test/{number}.jpg": name for name in "abc" for number in "12"},
    ),
    "val next to the classes of train": divided(
        train=of("", "a", "b"), validation=of("val/", "a", "b")
    ),
    "parts with the same classes": divided(
        train=of("images_part_1/", "a", "b") | of("images_part_2/", "a", "b"),
        said="in each of images_part_1, images_part_2",
    ),
    "folds": divided(
        train={
            path: name
            for fold in range(1, 6)
            for path, name in of(f"fold{fold}/", "a", "b").items()
        }
    ),
    # splits with other classes, or none
    "a class that only val has": divided(
        train=of("train/", "a", "b"), validation=of("val/", "b", "c")
    ),
    "splits without a common class": divided(
        train=of("train/", "a", "b"), test=of("test/", "c", "d")
    ),
    **{
        f"test/{name}": divided(
            flat(f"test/{name}"),
            train=TRAIN,
            said=(
                "test: 2 images without a class, left out; for records without labels: "
                "imagenet-prep init "
            ),
        )
        for name in ("images", "unknown", "all", "0")
    },
    "val/images": divided(
        flat("val/images"), train=TRAIN, said="val: 2 images without a class, left out"
    ),
    "test of loose images": divided(
        flat("test"), train=TRAIN, validation=VAL, said="test: 2 images"
    ),
    "test/unknown next to classes": divided(
        flat("test/unknown"),
        train=of("", "a", "b"),
        said="test: 2 images without a class, left out",
    ),
    "query and gallery next to splits": divided(
        of("query/", "1", "2") | of("gallery/", "1", "2"),
        train=TRAIN,
        validation=VAL,
        said="query: 4 images without a class, left out",
    ),
    "Tiny ImageNet without lists": divided(
        flat("val/images", "test/images"),
        train={f"train/{name}/images/{name}{n}.jpg": name for name in "ab" for n in "12"},
        said="val: 2 images without a class, left out",
    ),
    # names that are words of splits, and no splits
    "a train among vehicles": divided(train=of("", "car", "plane", "train")),
    "good in train, more in test": divided(
        train=of("train/", "good"), test=of("test/", "good", "scratch")
    ),
    # no classes at all
    "train, val and extra of images": divided(
        train=flat("train/images"),
        validation=flat("val/images"),
        extra=flat("extra/images"),
        said="without a class",
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_folders_that_are_sure_are_taken(tmp_path: Path, name: str) -> None:
    """Each image gets its split and its class;
    what is left out is named, with a command that takes it.
    """
    images, truth, said = TAKEN[name]
    paint(tmp_path / "in", list(images))
    made, text = run_init(tmp_path, "in")
    assert_same(made, truth)
    assert said in text
    commands = commands_in(text)
    assert len(commands) == text.count("imagenet-prep init ")
    for folder, *options in commands:
        left, _ = run_init(tmp_path, str(Path(folder).relative_to(tmp_path)), *options)
        assert {name for split in classes_of(left).values() for name in split.values()} == {None}


# what init asks -----------------------------------------------------------------------------------

ASKED: dict[str, tuple[dict[str, str | None], list[Truth]]] = {
    "test next to a class": (
        of("", "a", "b", "test"),
        [{"train": of("", "a", "b")}, {"train": of("", "a", "b", "test")}],
    ),
    "Caltech's clutter": (
        of("", "accordion", "anchor", "BACKGROUND_Google"),
        [
            {"train": of("", "accordion", "anchor")},
            {"train": of("", "accordion", "anchor", "BACKGROUND_Google")},
        ],
    ),
    "Caltech-256's clutter": (
        of("", "001.ak47", "002.flag", "257.clutter"),
        [
            {"train": of("", "001.ak47", "002.flag")},
            {"train": of("", "001.ak47", "002.flag", "257.clutter")},
        ],
    ),
    **{
        f"{name} next to classes": (
            of("", "a", "b", name),
            [{"train": of("", "a", "b")}, {"train": of("", "a", "b", name)}],
        )
        for name in ("thumbnails", "previews", "augmented", "query", "depth", "images")
    },
    "rgb and depth": (
        flat("rgb", "depth"),
        [
            {"train": flat("rgb")},
            {"train": {path: path.split("/")[0] for path in flat("rgb", "depth")}},
        ],
    ),
    "splits without classes": (
        flat("train", "val"),
        [
            {"train": flat("train"), "validation": flat("val")},
            {"train": {path: path.split("/")[0] for path in flat("train", "val")}},
        ],
    ),
    "one class in each split": (
        of("train/", "a") | of("val/", "a"),
        [
            {"train": of("train/", "a"), "validation": of("val/", "a")},
            {
                "train": dict.fromkeys(of("train/", "a")),
                "validation": dict.fromkeys(of("val/", "a")),
            },
        ],
    ),
    "domains of the same classes": (
        of("art/", "a", "b") | of("photo/", "a", "b"),
        [{"train": of("art/", "a", "b") | of("photo/", "a", "b")}],
    ),
    "a copy of all classes next to them": (
        of("", "a", "b") | of("pets/", "a", "b"),
        [{"train": of("", "a", "b")}],
    ),
    "a part of the test that has a name": (
        TRAIN | of("test/", "cat", "dog") | of("test_easy/", "cat"),
        [
            {"train": TRAIN, "test": of("test/", "cat", "dog")},
            {
                "train": TRAIN,
                "test": of("test/", "cat", "dog"),
                "test_easy": of("test_easy/", "cat"),
            },
        ],
    ),
    "a loose image": (of("", "a", "b") | {"x.jpg": None}, [{"train": of("", "a", "b")}]),
    "a loose image next to splits": (
        TRAIN | VAL | {"x.jpg": None},
        [{"train": TRAIN, "validation": VAL}],
    ),
    "folders of days": (
        flat("2021-05-01", "2021-05-02"),
        [{"train": flat("2021-05-01", "2021-05-02")}],
    ),
    "folders of thousands": (flat("00000", "01000"), [{"train": flat("00000", "01000")}]),
    "batches": (flat("batch_1", "batch_2"), [{"train": flat("batch_1", "batch_2")}]),
    "classes in names": (
        {f"images/{name}_{n}.jpg": None for name in ("great_pyrenees", "pug") for n in "123"},
        [
            {
                "train": {
                    f"images/{name}_{n}.jpg": name
                    for name in ("great_pyrenees", "pug")
                    for n in "123"
                }
            },
            {
                "train": {
                    f"images/{name}_{n}.jpg": None
                    for name in ("great_pyrenees", "pug")
                    for n in "123"
                }
            },
        ],
    ),
    "classes in the names of train": (
        {f"train/{name}.{n}.jpg": None for name in ("cat", "dog") for n in "12"}
        | flat("test1", count=1),
        [{"train": {f"train/{name}.{n}.jpg": name for name in ("cat", "dog") for n in "12"}}],
    ),
    "kinds within classes": (
        {"a/x/1.jpg": "x", "a/y/2.jpg": "y", "b/z/3.jpg": "z"},
        [
            {"train": {"a/x/1.jpg": "x", "a/y/2.jpg": "y", "b/z/3.jpg": "z"}},
            {"train": {"a/x/1.jpg": "a/x", "a/y/2.jpg": "a/y", "b/z/3.jpg": "b/z"}},
            {"train": {"a/x/1.jpg": "a", "a/y/2.jpg": "a", "b/z/3.jpg": "b"}},
        ],
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_folders_that_are_not_sure_are_a_question(tmp_path: Path, name: str) -> None:
    """init takes none of its readings, and each of the commands that it names makes one:
    every right one is there.
    """
    images, truths = ASKED[name]
    paint(tmp_path / "in", list(images))
    with pytest.raises(InputError) as caught:
        run_init(tmp_path, "in")
    assert not [*tmp_path.glob("*.yaml")]
    found = [
        classes_of(run_init(tmp_path, "in", *options)[0])
        for _, *options in commands_in(str(caught.value))
    ]
    assert found
    shown = [by_path(each) for each in found]
    for truth in truths:
        assert any(has_same(each, truth) for each in shown), (truth, str(caught.value))


def has_same(found: Mapping[str, tuple[str, str | None]], truth: Truth) -> bool:
    """Whether the images found are those of a truth, by the ends of their paths."""
    right = by_path(truth)
    if len(found) != len(right):
        return False
    names = names_of(found, right)
    return len(names) == len(right) and {path: found[name] for path, name in names.items()} == right


# --split ------------------------------------------------------------------------------------------

LISTS = {
    "meta/train.txt": "a/a0\nb/b0\n",
    "meta/test.txt": "a/a1\nb/b1\n",
    "meta/classes.txt": "a\nb\n",
}
LISTED: Truth = {
    "train": {"images/a/a0.jpg": "a", "images/b/b0.jpg": "b"},
    "test": {"images/a/a1.jpg": "a", "images/b/b1.jpg": "b"},
}


def test_lists_next_to_class_folders_are_the_splits(tmp_path: Path) -> None:
    """Food-101's meta/train.txt names images without their endings,
    from the folder of the classes.
    """
    paint(tmp_path / "in", list(of("images/", "a", "b")), LISTS)
    made, _ = run_init(tmp_path, "in")
    assert_same(made, LISTED)


TABLES = {
    "commas and a header": ("csv", ",Filename,Label\n", "{number},{name}/{file},{name}\n"),
    "tabs": ("tsv", "", "{name}/{file}\t{name}\n"),
    "blanks": ("txt", "", "{name}/{file} {name}\n"),
}


@pytest.mark.parametrize("form", TABLES)
def test_tables_next_to_class_folders_are_the_splits(tmp_path: Path, form: str) -> None:
    """EuroSAT's train.csv has more columns than names, and its classes are those of the folders."""
    ending, header, line = TABLES[form]
    images = of("images/", "a", "b")
    texts = {}
    for split, number in (("train", 0), ("test", 1)):
        lines = [line.format(number=number, name=name, file=f"{name}{number}.jpg") for name in "ab"]
        texts[f"{split}.{ending}"] = header + "".join(lines)
    paint(tmp_path / "in", list(images), texts)
    made, _ = run_init(tmp_path, "in")
    assert_same(made, LISTED)


def test_the_comment_of_splits_says_what_divides_them(tmp_path: Path) -> None:
    """Lists that init writes next to the recipe are no folders."""
    texts = {
        "train.csv": ",Filename\n0,a/a0.jpg\n1,b/b0.jpg\n",
        "test.csv": ",Filename\n0,a/a1.jpg\n1,b/b1.jpg\n",
    }
    paint(tmp_path / "in", list(of("images/", "a", "b")), texts)
    made, _ = run_init(tmp_path, "in")
    assert_same(made, LISTED)
    assert "splits:   # by lists of names\n" in (tmp_path / "r.yaml").read_text()


def test_lists_that_share_an_image_are_no_splits(tmp_path: Path) -> None:
    """All images are in one split then; so they are where a line names no image."""
    for text in (LISTS["meta/train.txt"], "a/none\n"):
        paint(tmp_path / "in", list(of("images/", "a", "b")), LISTS | {"meta/test.txt": text})
        made, _ = run_init(tmp_path, "in")
        assert_same(made, {"train": of("images/", "a", "b")})


def test_several_ways_to_split_are_a_question(tmp_path: Path) -> None:
    """DTD has ten: each command takes one; without lists, all images are in one split."""
    texts = {
        f"labels/{name.rpartition('/')[2][:-4]}{number}.txt": text
        for number, (name, text) in enumerate([*LISTS.items()][:2] * 2)
        for number in [number // 2 + 1]
    }
    paint(tmp_path / "in", list(of("images/", "a", "b")), texts)
    with pytest.raises(InputError, match="2 ways to split the images") as caught:
        run_init(tmp_path, "in")
    commands = commands_in(str(caught.value))
    assert [options[:2] for _, *options in commands] == [
        ["--split", "train=labels/train1.txt"],
        ["--split", "train=labels/train2.txt"],
        ["--as", "class-folders"],
    ]
    for _, *options in commands[:2]:
        assert_same(run_init(tmp_path, "in", *options)[0], LISTED)
    assert_same(run_init(tmp_path, "in", *commands[2][1:])[0], {"train": of("images/", "a", "b")})


def test_oxford_pets(tmp_path: Path) -> None:
    """The class is in the name of each image, and trainval.txt and
    test.txt have the name without its ending.
    """
    names = [
        f"images/{name}_{number}.jpg" for name in ("Bengal", "great_pyrenees") for number in (1, 2)
    ]
    rows = [f"{Path(name).stem} 1 1 1\n" for name in names]
    texts = {
        "list.txt": "#Image CLASS-ID SPECIES BREED\n" + "".join(rows),
        "trainval.txt": rows[0] + rows[2],
        "test.txt": rows[1] + rows[3],
    }
    paint(tmp_path / "in", names, {f"annotations/{name}": text for name, text in texts.items()})
    with pytest.raises(InputError) as caught:
        run_init(tmp_path, "in")
    assert ["--as", "file-names"] in [options for _, *options in commands_in(str(caught.value))]
    made, _ = run_init(tmp_path, "in", "--as", "file-names")
    classes = {name: Path(name).stem.rpartition("_")[0] for name in names}
    assert_same(
        made,
        {
            split: {name: classes[name] for name in names[place::2]}
            for place, split in enumerate(("train", "test"))
        },
    )


@pytest.mark.parametrize(
    "pattern", ["IMG_{:04}.jpg", "{}.jpg", "frame ({}).jpg", "DSC{:05}.jpg", "x-{}.jpg"]
)
def test_names_of_cameras_are_no_classes(tmp_path: Path, pattern: str) -> None:
    """Two of their words in one folder make no classes: all images have none."""
    names = [pattern.format(number) for number in range(3)] + [
        f"image_{number}.jpg" for number in range(3)
    ]
    paint(tmp_path / "in", names)
    made, _ = run_init(tmp_path, "in")
    assert_same(made, {"train": dict.fromkeys(names)})


def test_split_takes_folders_of_any_name(tmp_path: Path) -> None:
    """Folders that no name of a split calls so: without --split they are a question,
    with it they are splits.
    """
    paint(tmp_path / "in", list(of("one/", "a", "b") | of("two/", "a", "b")))
    with pytest.raises(InputError):
        run_init(tmp_path, "in")
    made, _ = run_init(tmp_path, "in", "--split", "train=one", "--split", "test=two")
    assert_same(made, {"train": of("one/", "a", "b"), "test": of("two/", "a", "b")})
    recipe = (tmp_path / "r.yaml").read_text()
    assert "splits:   # by the folders\n  train: {folder: one}\n  test: {folder: two}\n" in recipe


@pytest.mark.parametrize("top", ["größe", "-a", "été"])
def test_folders_of_any_script_become_splits(tmp_path: Path, top: str) -> None:
    """Two folders called train are two splits,
    whose names have letters that the names of shards can have.
    """
    paint(
        tmp_path / "in", [f"{folder}/train/{n}.jpg" for folder in (top, "small") for n in range(2)]
    )
    made, _ = run_init(tmp_path, "in", "--as", "unlabelled")
    assert len(made.splits) == 2
    assert sum(len(split.catalog) for split in made.splits) == 4


def test_split_takes_lists_of_any_name(tmp_path: Path) -> None:
    """Lists that are called otherwise are taken by their names;
    images in none are left out, and counted.
    """
    paint(
        tmp_path / "in",
        list(of("", "a", "b")),
        {"x.lst": "a/a0.jpg\nb/b0.jpg\n", "y.lst": "a/a1.jpg\n"},
    )
    made, text = run_init(tmp_path, "in", "--split", "train=x.lst", "--split", "test=y.lst")
    assert_same(made, {"train": {"a/a0.jpg": "a", "b/b0.jpg": "b"}, "test": {"a/a1.jpg": "a"}})
    assert "1 image in no list of a split, left out" in text


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        (
            ["train=none", "test=two"],
            "and no such value in a column that init can read as splits\nexpected a file that lists images, or one of one, two",
        ),
        (["train=one", "test=l.txt"], "train=one is a folder, test=l.txt is a list file"),
    ],
)
def test_a_split_that_is_nothing_is_refused(tmp_path: Path, splits: list[str], said: str) -> None:
    """The error names the folders that there are; no recipe is written."""
    paint(
        tmp_path / "in",
        list(of("one/", "a", "b") | of("two/", "a", "b")),
        {"l.txt": "one/a/a0.jpg\n"},
    )
    with pytest.raises(UsageError) as caught:
        run_init(tmp_path, "in", *[word for split in splits for word in ("--split", split)])
    assert said in str(caught.value)
    assert not (tmp_path / "r.yaml").exists()


NAMED = {"a0.jpg": "x", "a1.jpg": "y", "b0.jpg": "x", "b1.jpg": "y"}
CLASS_TABLE = "filename,label\n" + "".join(f"{name},{label}\n" for name, label in NAMED.items())

UNUSED: dict[str, tuple[dict[str, str | None], dict[str, str], list[str], str]] = {
    "class folders and a list with a line of no image": (
        of("", "a", "b"),
        {"x.lst": "a/a0.jpg\nb/b0.jpg\n", "y.lst": "a/a1.jpg\nb/none.jpg\n"},
        ["--split", "train=x.lst", "--split", "test=y.lst"],
        "y.lst, line 2: b/none.jpg is no image in ",
    ),
    "a table and a list with a line of no image": (
        dict.fromkeys(NAMED),
        {"l.csv": CLASS_TABLE, "x.lst": "a0.jpg\nb0.jpg\n", "y.lst": "none.jpg\n"},
        ["--split", "train=x.lst", "--split", "test=y.lst"],
        "y.lst, line 1: none.jpg is no image in ",
    ),
    "lists of classes": (
        {f"{name[0]}/{name}": None for name in NAMED},
        {"car.txt": "a0\nb0\n", "bus.txt": "a1\nb1\n"},
        ["--as", "class-lists", "--split", "train=a", "--split", "test=b"],
        "--split train=a and --split test=b do not divide ",
    ),
    "class folders and a list that leads out": (
        of("", "a", "b"),
        {"x.lst": "a/a0.jpg\nb/b0.jpg\n", "y.lst": "a/a1.jpg\n../x.jpg\n"},
        ["--split", "train=x.lst", "--split", "test=y.lst"],
        "y.lst, line 2: ../x.jpg",
    ),
}


@pytest.mark.parametrize("name", UNUSED)
def test_a_split_that_no_recipe_would_have_is_refused(tmp_path: Path, name: str) -> None:
    """The splits that a user names are those of the recipe, or the command says why not;
    no recipe is written.
    """
    images, texts, options, said = UNUSED[name]
    paint(tmp_path / "in", list(images), texts)
    with pytest.raises(UsageError) as caught:
        run_init(tmp_path, "in", *options)
    assert said in str(caught.value)
    assert not (tmp_path / "r.yaml").exists()
    if "x.lst" not in texts:
        assert "without --split: imagenet-prep init" in str(caught.value)
        return
    bad_list = tmp_path / "in" / "y.lst"
    assert caught.value.hint == f"correct {bad_list} and run the same command again"
    bad_list.write_text("a1.jpg\n" if "l.csv" in texts else "a/a1.jpg\n")
    made, _ = run_init(tmp_path, "in", *options)
    assert {split.name: len(split.catalog) for split in made.splits} == {"train": 2, "test": 1}


def test_split_takes_folders_of_any_name_next_to_a_table(tmp_path: Path) -> None:
    """The labels come from the table, and the splits from the folders that the user names."""
    images = {f"{name[0]}/{name}": label for name, label in NAMED.items()}
    paint(tmp_path / "in", list(images), {"l.csv": CLASS_TABLE})
    made, _ = run_init(
        tmp_path, "in", "--as", "with-labels", "--split", "train=a", "--split", "test=b"
    )
    divided = {
        split: {path: label for path, label in images.items() if path.startswith(folder)}
        for split, folder in (("train", "a/"), ("test", "b/"))
    }
    assert_same(made, divided)


@pytest.mark.parametrize(
    "folder", ["null", "True", "a: b", "it's", "p1", "größe", "7", "a\nb", "*x", "a, b"]
)
def test_a_folder_in_a_hint_is_read_back(tmp_path: Path, folder: str) -> None:
    """The lines that a message gives for a recipe mean the folders that they name."""
    splits = {"train": {"folder": [folder, "p2"]}}
    (tmp_path / "r.yaml").write_text(f"source: {{folders: in}}\nsplits: {in_flow(splits)}\n")
    assert read_recipe(tmp_path / "r.yaml").recipe.splits == splits


@pytest.mark.parametrize("names", [("null", "query"), ("a, b", "query"), ("1e3", "gallery", "x")])
def test_the_classes_in_a_hint_are_read_back(tmp_path: Path, names: tuple[str, ...]) -> None:
    """A hint lists the folders as classes; their names come back as they are,
    whatever YAML makes of them.
    """
    trees = {"": FolderTree.take([f"{name}/{number}.jpg" for name in names for number in range(2)])}
    wrong = misread(trees, {"": "train"}, is_divided=False)
    assert wrong is not None
    listing = wrong.choice.rpartition("or ")[2].partition(", if")[0]
    (tmp_path / "r.yaml").write_text(f"source: {{folders: in}}\n{listing}\n")
    assert read_recipe(tmp_path / "r.yaml").recipe.classes == list(names)


# lists of data sets -------------------------------------------------------------------------------

BIRDS = of("images/", "001.Albatross", "002.Auklet")
CUB = {
    "images.txt": "".join(f"{number} {path[7:]}\n" for number, path in enumerate(BIRDS, 1)),
    "image_class_labels.txt": "1 1\n2 1\n3 2\n4 2\n",
    "train_test_split.txt": "1 1\n2 0\n3 1\n4 0\n",
    "classes.txt": "1 001.Albatross\n2 002.Auklet\n",
}


@pytest.mark.parametrize("home", ["", "CUB_200_2011/"])
def test_cub(tmp_path: Path, home: str) -> None:
    """Numbers of images in images.txt are those of train_test_split.txt:
    init writes a list of each split.
    """
    paint(
        tmp_path / "in",
        [home + path for path in BIRDS],
        {home + name: text for name, text in CUB.items()},
    )
    made, text = run_init(tmp_path, "in")
    train, test = list(BIRDS.items())[::2], list(BIRDS.items())[1::2]
    assert_same(made, {"train": dict(train), "test": dict(test)})
    assert "the recipe names r-train.txt, r-test.txt next to it" in text
    assert (tmp_path / "r-train.txt").read_text() == "".join(f"{path[7:]}\n" for path, _ in train)


CUB_AT_FAULT = {
    "a line of no image": (
        "images.txt",
        "5 001.Albatross/none.jpg\n",
        "1 image that no class folder has",
    ),
    "a number that comes twice": (
        "images.txt",
        "1 001.Albatross/again.jpg\n",
        "images.txt, line 5: the number 1 is in a line before, too",
    ),
    "an image of no split": (
        "train_test_split.txt",
        "",
        "has no 0 or 1 for 4 images: numbers .* of images.txt",
    ),
    "other classes": (
        "image_class_labels.txt",
        "1 1\n2 1\n3 2\n",
        "image_class_labels.txt has no line for image 4, 002",
    ),
}


@pytest.mark.parametrize("name", CUB_AT_FAULT)
def test_lists_of_cub_at_fault_are_refused(tmp_path: Path, name: str) -> None:
    """Nothing is written: neither the recipe nor its lists."""
    file, text, said = CUB_AT_FAULT[name]
    text = CUB[file] + text if file == "images.txt" else text
    paint(tmp_path / "in", list(BIRDS), CUB | {file: text})
    with pytest.raises(InputError, match=said):
        run_init(tmp_path, "in")
    assert [path.name for path in existing(tmp_path, "*")] == ["in"]


def test_lists_that_init_would_write_over_are_kept(tmp_path: Path) -> None:
    """A file of that name is there already: init refuses, and leaves it as it is."""
    paint(tmp_path / "in", list(BIRDS), CUB)
    (tmp_path / "r-test.txt").write_text("mine\n")
    with pytest.raises(UsageError, match=r"r-test\.txt .*exists"):
        run_init(tmp_path, "in")
    assert sorted(path.name for path in existing(tmp_path, "*")) == ["in", "r-test.txt"]
    assert (tmp_path / "r-test.txt").read_text() == "mine\n"


TINY_TRAIN: dict[str, str | None] = {
    f"train/{name}/images/{name}_{n}.jpg": name for name in ("n1", "n2") for n in "01"
}
TINY_VAL: dict[str, str | None] = {"val/images/val_0.jpg": "n2", "val/images/val_1.jpg": "n1"}
ANNOTATIONS = "".join(f"{path[11:]}\t{name}\t0\t0\t9\t9\n" for path, name in TINY_VAL.items())


@pytest.mark.parametrize("home", ["", "tiny-imagenet-200/"])
def test_tiny_imagenet(tmp_path: Path, home: str) -> None:
    """val/val_annotations.txt has the classes of val;
    the images of test have none, and are left out.
    """
    names = [home + path for path in (*TINY_TRAIN, *TINY_VAL, *flat("test/images"))]
    paint(
        tmp_path / "in",
        names,
        {f"{home}val/val_annotations.txt": ANNOTATIONS, f"{home}wnids.txt": "n1\nn2\n"},
    )
    made, text = run_init(tmp_path, "in")
    right = {"train": TINY_TRAIN, "validation": TINY_VAL}
    assert_same(
        made,
        {
            split: {home + path: name for path, name in each.items()}
            for split, each in right.items()
        },
    )
    assert "val_annotations.txt has the classes of val" in text
    assert "2 images without a class, left out: " in text


def test_a_table_next_to_a_split(tmp_path: Path) -> None:
    """GTSRB: class folders in Train, loose images in Test, and Test.csv with ClassId and Path;
    Meta is no split.
    """
    train = {f"Train/{name}/{name}_{n}.png": name for name in ("0", "1") for n in "01"}
    test: dict[str, str | None] = {"Test/00.png": "1", "Test/01.png": "0"}
    rows = "".join(f"1,{path},{name}\n" for path, name in test.items())
    texts = {
        "Test.csv": "Width,Path,ClassId\n" + rows,
        "Meta.csv": "Path,ClassId\nMeta/0.png,0\nMeta/1.png,1\n",
    }
    paint(tmp_path / "in", [*train, *test, "Meta/0.png", "Meta/1.png"], texts)
    made, text = run_init(tmp_path, "in")
    assert_same(made, {"train": dict(train), "test": test})
    assert "2 images without a class, left out: Meta/0.png, Meta/1.png" in text


def test_a_list_that_lacks_an_image_is_a_question(tmp_path: Path) -> None:
    """The image is named, and the command leaves out that image alone."""
    text, rest = ANNOTATIONS.split("\n", 1)
    paint(tmp_path / "in", list(TINY_TRAIN | TINY_VAL), {"val/val_annotations.txt": f"{text}\n"})
    with pytest.raises(InputError, match=r"val_annotations.txt has no class for 1 image: val/"):
        run_init(tmp_path, "in")
    made, _ = run_init(tmp_path, "in", "--as", "labelled-splits")
    (lacking,) = (path for path in TINY_VAL if path.endswith(rest.split("\t")[0]))
    named = {path: label for path, label in TINY_VAL.items() if path != lacking}
    assert_same(made, {"train": TINY_TRAIN, "validation": named})


# recipes by hand ----------------------------------------------------------------------------------

BY_HAND: dict[str, tuple[dict[str, str | None], str, Truth]] = {
    "Train and Valid": (
        of("Train/", "a", "b") | of("Valid/", "a", "b"),
        "splits: {train: {folder: Train}, validation: {folder: Valid}}",
        {"train": of("Train/", "a", "b"), "validation": of("Valid/", "a", "b")},
    ),
    "val/images": (
        TRAIN | flat("val/images"),
        "splits: {train: {folder: train}}",
        {"train": TRAIN},
    ),
    "test/0": (
        TRAIN | VAL | flat("test/0"),
        "splits: {train: {folder: train}, validation: {folder: val}}",
        {"train": TRAIN, "validation": VAL},
    ),
    "extra": (
        of("train/", "a", "b") | of("extra/", "a", "b"),
        "splits: {train: {folder: train}}",
        {"train": of("train/", "a", "b")},
    ),
    "one level above": (
        of("data/", "a", "b"),
        "source: {folders: .../data}",
        {},
    ),
    "splits within classes": (
        {f"{name}/{split}/1.jpg": name for name in "ab" for split in ("train", "test")},
        "splits: {train: {files: '*/train/**/*'}, test: {files: '*/test/**/*'}}",
        {split: {f"{name}/{split}/1.jpg": name for name in "ab"} for split in ("train", "test")},
    ),
    "parts": (
        of("p1/", "a", "b") | of("p2/", "a", "b"),
        "splits: {train: {folder: [p1, p2]}}",
        {"train": of("p1/", "a", "b") | of("p2/", "a", "b")},
    ),
    "query": (
        of("", "a", "b", "query"),
        "splits: {train: {files: ['*/**/*', '!query/**/*']}}",
        {"train": of("", "a", "b")},
    ),
    "val next to classes": (
        of("", "a", "b") | of("val/", "a", "b"),
        "splits: {train: {files: ['*/**/*', '!val/**/*']}, validation: {folder: val}}",
        {"train": of("", "a", "b"), "validation": of("val/", "a", "b")},
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("source", ["folders", "tar"])
def test_a_recipe_by_hand_never_takes_the_wrong_folders(
    tmp_path: Path, name: str, source: str
) -> None:
    """What would be wrong classes is refused, with the key of the recipe that decides:
    it is right with that key.
    """
    images, key, truth = BY_HAND[name]
    paint(tmp_path / "in", list(images))
    recipe = "source: {folders: in}\n"
    if source == "tar":
        content = {path: (tmp_path / "in" / path).read_bytes() for path in images}
        (tmp_path / "t.tar").write_bytes(pack(content))
        recipe = "source: {tar: t.tar}\n"
    (tmp_path / "r.yaml").write_text(recipe)
    with pytest.raises(InputError) as caught:
        load(tmp_path / "r.yaml", None, ENGINE)
    advised = key
    if source == "folders":
        advised = key.replace(".../", f"{tmp_path / 'in'}/")
    assert f"a recipe can say: {advised}" in str(caught.value)
    assert "; or classes: [" in str(caught.value) or "leaves them out; " in str(caught.value)
    if truth:
        (tmp_path / "r.yaml").write_text(f"{recipe}{key}\n")
        assert_same(load(tmp_path / "r.yaml", None, ENGINE), truth)


def test_a_recipe_that_lists_its_classes_decides(tmp_path: Path) -> None:
    """With classes: [a, b, query] the folders are what the recipe says,
    whatever their names are.
    """
    images = of("", "a", "b", "query")
    paint(tmp_path / "in", list(images))
    (tmp_path / "r.yaml").write_text("source: {folders: in}\nclasses: [a, b, query]\n")
    assert_same(load(tmp_path / "r.yaml", None, ENGINE), {"train": images})


def test_a_split_by_hand_of_no_class_is_refused(tmp_path: Path) -> None:
    """splits: {test: {folder: test}} with test/images alone would be a class "images"."""
    paint(tmp_path / "in", list(TRAIN | flat("test/images")))
    recipe = "source: {folders: in}\nsplits: {train: {folder: train}, test: {folder: test}}\n"
    (tmp_path / "r.yaml").write_text(recipe)
    with pytest.raises(
        InputError, match=r"test/ holds images, and the other splits have no such class"
    ):
        load(tmp_path / "r.yaml", None, ENGINE)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("{files: ['[']}", "is not a pattern"),
        ("{folder: [train, none]}", "no file of split train is in none/"),
    ],
)
def test_places_that_find_nothing_are_refused(tmp_path: Path, place: str, said: str) -> None:
    """A pattern that is none, and a folder of several that has no file."""
    paint(tmp_path / "in", list(TRAIN))
    (tmp_path / "r.yaml").write_text(f"source: {{folders: in}}\nsplits: {{train: {place}}}\n")
    with pytest.raises(PrepError, match=said):
        load(tmp_path / "r.yaml", None, ENGINE)


# names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "folders"),
    [
        (
            "train",
            [
                "train",
                "Train",
                "TRAINING",
                "train_set",
                "train set",
                "trainset",
                "train2017",
                "seg_train",
            ],
        ),
        ("train", ["train-images", "training_data", "train_01", "trainval", "trainA"]),
        ("validation", ["val", "Valid", "validation", "dev", "val2017", "valid set", "PublicTest"]),
        (
            "test",
            [
                "test",
                "testing",
                "Test1",
                "eval",
                "evaluation",
                "holdout",
                "hold-out",
                "PrivateTest",
            ],
        ),
        (
            "",
            [
                "trainer",
                "tests",
                "contest",
                "valley",
                "devil",
                "testa",
                "seg",
                "set",
                "images",
                "protest 1",
            ],
        ),
    ],
)
def test_names_of_splits(split: str, folders: list[str]) -> None:
    """Words in any case, with usual additions; no other word that starts so."""
    assert {folder: split_name(folder) for folder in folders} == dict.fromkeys(folders, split)


@pytest.mark.parametrize(
    ("folders", "splits"),
    [
        (["rps", "rps-test-set", "rps-validation"], ["train", "test", "validation"]),
        (["asl_alphabet_train", "asl_alphabet_test"], ["train", "test"]),
        (["crash test", "test tube"], []),
        (["val", "valid", "train"], ["val", "valid", "train"]),
        (["train_1", "train_2", "test"], ["train", "train", "test"]),
        (["trainA", "trainB", "testA", "testB"], ["trainA", "trainB", "testA", "testB"]),
        (["eval", "test"], ["validation", "test"]),
        (["eval", "val"], ["test", "validation"]),
    ],
)
def test_names_of_several_splits(folders: list[str], splits: list[str]) -> None:
    """A word within names counts where they are the same without it;
    two folders of one split keep their names.
    """
    assert split_names(folders) == dict(zip(folders, splits, strict=False))


def test_names_that_are_no_classes() -> None:
    """Copies, parts of a search and folders of all images; words that may be classes stay."""
    assert all(
        map(
            is_no_class,
            ["Thumbs", "query", "gallery", "depth", "RGB", "images", "257.clutter", "pred"],
        )
    )
    assert not any(
        map(is_no_class, ["normal", "background", "photo", "raw", "label", "sample rate", "others"])
    )


def test_folders_of_many_files_are_known_by_their_ends() -> None:
    """split_folders looks at the edges of folders alone where their names are those of splits."""
    names = Names.take(
        [
            f"{split}/c{number:03}/{row}.jpg"
            for split in ("train", "val")
            for number in range(300)
            for row in range(3)
        ]
    )
    assert split_folders(names, 1) == {"train": "train", "val": "validation"}
    assert split_folders(Names.take(["train/a/1.jpg", "val/2.jpg"]), 1) == {}
    assert split_folders(Names.take(["train/1.jpg", "val/2.jpg"]), 0) == {
        "train": "train",
        "val": "validation",
    }


def test_slashes_are_counted_in_bytes() -> None:
    """The fewest of all names, whatever their letters; more names than are counted at once."""
    assert Names.take(["a/b/c", "ä/ö"]).fewest_slashes() == 1
    assert Names.take(["a/b", "c"]).fewest_slashes() == 0
    assert Names.take(["a/b/c"] * 70_000 + ["d/e"]).fewest_slashes() == 1
    assert Names.take([]).fewest_slashes() == 0


def test_roles_of_one_folder() -> None:
    """A folder of images alone, and no folder at all, have no classes."""
    assert not roles_of(FolderTree.take(["images/1.jpg"])).classes
    assert roles_of(FolderTree.take(["1.jpg"])).loose == 1
