"""Folders that are no class folders: convert and init refuse what they would misread,
and name the choice.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from bounded import processor_time
from existing import existing
from made_sets import ENGINE
from PIL import Image
from running import command

from imagenet_prep import Layout, convert
from imagenet_prep.errors import InputError
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.misread_folders import mixed_masks
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.sources.names import Names
from imagenet_prep.sources.slices import Reader
from imagenet_prep.stages.init import InitSummary, init


def save(folder: Path, *names: str) -> None:
    """A small image of each name, of the format that it says; a text where it is none."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".txt", ".json", ".xml", ".csv"):
            path.write_text("x")
        elif path.suffix == ".npy":
            np.save(path, np.arange(3))
        else:
            Image.new("RGB", (8, 6), (len(name), 0, 0)).save(path)


def numbered(pattern: str, count: int = 6) -> list[str]:
    """Names of this pattern."""
    return [pattern.format(number) for number in range(count)]


def plan(folder: Path, recipe: str) -> RecipeDataset:
    """The plan of a recipe for the folder "in"."""
    (folder / "recipe.yaml").write_text(recipe)
    return load(folder / "recipe.yaml", None, ENGINE)


def proposed(folder: Path, structure: str | None = None) -> tuple[InitSummary, RecipeDataset]:
    """What init proposes for the folder "in", and its plan;
    the first record of each split is made too.
    """
    summary = init(folder / "in", folder / "r.yaml", ENGINE, structure=structure)
    made = load(summary.recipe, None, ENGINE)
    for split in made.splits:
        item = split.catalog.item(0)
        assert split.recorder.record(item, split.catalog.read(0, Reader())).parts
    return summary, made


def refused(folder: Path) -> str:
    """What init says against the folder "in"; nothing is written."""
    with pytest.raises(InputError) as caught:
        init(folder / "in", folder / "r.yaml", ENGINE)
    assert not (folder / "r.yaml").exists()
    return str(caught.value)


def refused_by_convert(folder: Path) -> str:
    """What convert says against the folder "in"."""
    with pytest.raises(InputError) as caught:
        plan(folder, "source: {folders: in}\n")
    return str(caught.value)


# masks and splits, which both refuse --------------------------------------------------------------

MISREAD = {
    "images and JPEGs as masks": ([*numbered("images/{}.jpg"), *numbered("masks/{}.jpg")], "masks"),
    "splits without classes": (
        [*numbered("train2017/{}.jpg"), *numbered("val2017/{}.jpg")],
        "called as splits are",
    ),
}


@pytest.mark.parametrize("name", MISREAD)
def test_what_is_no_class_is_refused(tmp_path: Path, name: str) -> None:
    """By convert and by init; the error names the choice, and listing the classes makes it."""
    names, said = MISREAD[name]
    save(tmp_path / "in", *names)
    text = refused_by_convert(tmp_path)
    assert said in text
    assert "classes: [" in text
    assert len(text.splitlines()) <= 3
    assert said in refused(tmp_path)
    classes = sorted({each.partition("/")[0] for each in names})
    assert plan(
        tmp_path, f"source: {{folders: in}}\nclasses: [{', '.join(classes)}]\n"
    ).classes.names == tuple(classes)


MASKED = {
    "images and masks": [*numbered("images/{}.jpg"), *numbered("masks/{}.png")],
    "Pascal VOC": [*numbered("JPEGImages/{}.jpg"), *numbered("SegmentationClass/{}.png")],
    "pairs under other names": [*numbered("frames/{}.jpg"), *numbered("gt/{}_mask.png")],
}


@pytest.mark.parametrize("name", MASKED)
def test_masks_are_no_class(tmp_path: Path, name: str) -> None:
    """convert refuses their folder as a class; init puts each into the record of its image."""
    save(tmp_path / "in", *MASKED[name])
    assert "look like images and their masks" in refused_by_convert(tmp_path)
    summary, made = proposed(tmp_path)
    assert summary.structure == "masks"
    assert "image/segmentation/class/encoded" in made.features
    assert [len(split.catalog) for split in made.splits] == [6]


SOUND = {
    "numbered alike": [*numbered("cat/{}.jpg"), *numbered("dog/{}.jpg")],
    "a class of labels": [*numbered("food/a{}.jpg"), *numbered("labels/b{}.jpg")],
    "a lone mask": [*numbered("cat/{}.jpg", 30), "cat/1_mask.jpg", *numbered("dog/{}.jpg", 30)],
    "images within classes": [*numbered("n1/images/{}.jpg"), *numbered("n2/images/{}.jpg")],
    "train among vehicles": [
        *numbered("train/{}.jpg"),
        *numbered("car/{}.jpg"),
        *numbered("plane/{}.jpg"),
    ],
}


@pytest.mark.parametrize("name", SOUND)
def test_what_may_be_classes_is_taken(tmp_path: Path, name: str) -> None:
    """A single odd name is no sign."""
    save(tmp_path / "in", *SOUND[name])
    classes = sorted({each.partition("/")[0] for each in SOUND[name]})
    assert plan(tmp_path, "source: {folders: in}\n").classes.names == tuple(classes)
    assert proposed(tmp_path)[1].classes.names == tuple(classes)


def test_folders_within_classes(tmp_path: Path) -> None:
    """init refuses what would lose the inner names;
    a recipe of one's own is told, and takes the first folder.
    """
    save(
        tmp_path / "in",
        *numbered("dog/husky/{}.jpg"),
        *numbered("dog/poodle/{}.jpg"),
        *numbered("cat/{}.jpg"),
    )
    said = refused(tmp_path)
    assert "dog/husky, dog/poodle" in said
    assert "(classes: cat, dog)" in said
    made = plan(tmp_path, "source: {folders: in}\n")
    assert made.classes.names == ("cat", "dog")
    assert any(
        "dog/husky, dog/poodle are only told apart by their paths" in note for note in made.notes
    )


# formats ------------------------------------------------------------------------------------------


def test_other_formats_become_jpegs_and_a_recipe_says_so_before(tmp_path: Path) -> None:
    """One TIFF does not turn photographs into numbers:
    it becomes a JPEG, as init and convert say.
    """
    save(
        tmp_path / "in",
        *numbered("cat/{}.jpg"),
        *numbered("dog/{}.jpg"),
        "dog/scan.tif",
        "dog/x.webp",
    )
    summary, made = proposed(tmp_path)
    assert "# 1 .tif, 1 .webp become JPEGs" in summary.text
    assert "1 .tif, 1 .webp become JPEGs" in made.notes


def test_a_recipe_that_takes_fewer_files_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """init counts what its recipe takes, and refuses one that loses files."""
    save(tmp_path / "in", *numbered("{}.jpg"), "x.png")
    monkeypatch.setattr(
        "imagenet_prep.init.source_text._patterns", lambda proposal, where: ["in/*.png"]
    )
    assert "convert would read 1 file by it, not 7" in (said := refused(tmp_path)), said
    assert not [*tmp_path.glob("*.yaml")]


def test_formats_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    """Every type with its number, by init and by convert;
    with on_damaged: skip they are set aside and recorded.
    """
    save(tmp_path / "in", *numbered("cat/{}.jpg"), *numbered("dog/{}.jpg"))
    save(tmp_path / "in", *numbered("dog/a{}.ppm", 3), *numbered("cat/b{}.jp2", 2), "cat/c.pgm")
    (tmp_path / "in/cat/c.pgm").rename(tmp_path / "in/cat/c.heic")
    for said in (refused(tmp_path), refused_by_convert(tmp_path)):
        assert "3 .ppm, 2 .jp2, 1 .heic" in said
    made = plan(tmp_path, "source: {folders: in}\non_damaged: skip\nshards: 2\n")
    summary = convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(made.path))
    assert (summary.splits[0].images, summary.set_aside) == (12, 6)


def test_many_files_are_told_from_masks_in_no_time() -> None:
    """The time grows with the number of files, and not with its square:
    there are sets of millions.
    """
    names = [f"img_{number}.jpg" for number in range(200_000)]
    with processor_time(3):
        assert mixed_masks(Names.take(names)) is None
    assert mixed_masks(Names.take(["a.jpg", "a_mask.png", "b.jpg", "b_mask.png"])) is not None


def test_every_obstacle_is_named_in_one_pass(tmp_path: Path) -> None:
    """Links, odd names, odd formats and loose files: one error of three lines has them all."""
    save(
        tmp_path / "in", *numbered("cat/{}.jpg"), *numbered("dog/{}.jpg"), "loose.jpg", "dog/x.ppm"
    )
    (tmp_path / "in/link").symlink_to("cat")
    (tmp_path / "in/nowhere").symlink_to("gone")
    (tmp_path / "in/cat/self.jpg").symlink_to("self.jpg")
    os.mkfifo(tmp_path / "in/cat/pipe.jpg")
    (tmp_path / "in/cat/a\nb.jpg").write_bytes(b"")
    save(tmp_path / "in", "cat/0_mask.jpg", "cat/1_mask.jpg", "cat/2_mask.jpg")
    for said in (refused_by_convert(tmp_path), refused(tmp_path)):
        assert len(said.splitlines()) == 3, said
        for part in (
            *(
                "in/link is a link",
                "in/nowhere can't be read",
                "self.jpg can't be read",
                "pipe.jpg is a pipe",
            ),
            *(
                "can't be used: 'cat/a\\nb.jpg'",
                ": dog/x.ppm",
                "loose.jpg is in no class folder",
            ),
            "3 of 15 files have the names of masks",
        ):
            assert part in said, part


def test_empty_and_private_folders_are_passed_over(tmp_path: Path) -> None:
    """Those of macOS and of a conversion, with a note, by both; they are no classes."""
    private = ("__MACOSX/cat/x.jpg", "imagenet-prep/plan/x.jpg", "cat/imagenet-prep/plan/x.jpg")
    save(tmp_path / "in", *numbered("cat/{}.jpg"), *numbered("dog/{}.jpg"), "notes/a.txt", *private)
    (tmp_path / "in/lily").mkdir()
    (tmp_path / "in/.DS_Store").write_bytes(b"")
    made = plan(tmp_path, "source: {folders: in}\n")
    assert made.classes.names == ("cat", "dog")
    ours = "the state of a conversion is there"
    assert "__MACOSX is skipped: macOS keeps its own data there" in made.notes
    assert f"cat/imagenet-prep, imagenet-prep are skipped: {ours}" in made.notes
    assert "2 folders without a file of this content are skipped: lily, notes" in made.notes
    summary, _ = proposed(tmp_path)
    assert summary.passed == (
        *(
            "1 .txt file, not read: notes/a.txt",
            "1 hidden file or folder: .DS_Store",
            "1 empty folder: lily",
            "__MACOSX: macOS keeps its own data there",
            f"cat/imagenet-prep, imagenet-prep: {ours}",
        ),
    )


# labels of other tools, which only init can see ---------------------------------------------------


def test_annotations_beside_class_folders_are_named(tmp_path: Path) -> None:
    """They are lost without a word of the user: with --as the folders are the classes,
    and what is not read is said.
    """
    save(
        tmp_path / "in", *numbered("cat/{}.jpg"), *numbered("dog/{}.jpg"), *numbered("boxes/{}.xml")
    )
    for path in existing(tmp_path / "in/boxes", "*"):
        path.write_text("<annotation/>")
    assert "has Pascal VOC annotations: boxes/0.xml" in refused(tmp_path)
    summary, made = proposed(tmp_path, "class-folders")
    assert made.classes.names == ("cat", "dog")
    assert any("has Pascal VOC annotations: boxes/0.xml" in each for each in summary.passed)


# files of labels ----------------------------------------------------------------------------------


def test_a_table_of_something_else_is_passed_over(tmp_path: Path) -> None:
    """And named; so is one whose columns are not needed, since the folders are the classes."""
    save(tmp_path / "in", *numbered("cat/{}.jpg"), *numbered("dog/d{}.jpg"))
    (tmp_path / "in/prices.csv").write_text("item,price\napple,1\n")
    lines = ["file,width", *numbered("{}.jpg,8"), *numbered("d{}.jpg,8")]
    (tmp_path / "in/sizes.csv").write_text("\n".join(lines) + "\n")
    summary, made = proposed(tmp_path)
    assert made.classes.names == ("cat", "dog")
    assert "1 .csv file, not read: prices.csv" in summary.passed
    assert "sizes.csv is not used: it names 12 of 12 images, and has no class" in summary.passed
    assert "# sizes.csv is not used: it names 12 of 12 images, and has no class\n" in summary.text


# what the command says ----------------------------------------------------------------------------


def test_init_prints_classes_with_counts(tmp_path: Path) -> None:
    """All of a few, the first of very many; and what it passed over."""
    save(
        tmp_path / "in",
        *numbered("rose/{}.jpg", 4),
        *numbered("tulip/{}.jpg", 2),
        "rose/a.txt",
        "rose/b.txt",
    )
    said = command("init", "in", cwd=tmp_path).stdout
    assert "images per class: rose (4), tulip (2)\nlabels: rose is 1, tulip is 2\n" in said
    assert "skipped: 2 .txt files, not read: rose/a.txt, rose/b.txt\n" in said
    save(tmp_path / "many", *[f"c{i:03}/1.jpg" for i in range(120)])
    said = command("init", "many", cwd=tmp_path).stdout
    assert "images per class: c000 (1), c001 (1), " in said
    assert "c019 (1), ... (120 in all)\n" in said
    assert "c020 (1)" not in said
