"""What a recipe expects in all: convert refuses less, and verify names what was set aside; nested tars hold classes."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_folders import CATS, TARS, arrays, images, picture, tarred, write

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.engines import make_engine
from imagenet_prep.errors import PrepError
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.init import init
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage.layout import Layout

ENGINE = make_engine("threads", 1)


def save(folder: Path, recipe: str, **files: bytes | None) -> Path:
    """Files and a recipe."""
    write(folder, **{name: picture(name) if content is None else content for name, content in files.items()})
    (folder / "r.yaml").write_text(recipe)
    return folder / "r.yaml"


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("images: 4, classes: 2", ""),
        ("images: 5", "5 images expected, 4 found"),
        ("classes: 3", "3 classes expected, 2"),
        ("train: {classes: 3}", "3 classes expected, 2 found in train"),
        ("test: {images: 3}", "expected.test: no such split"),
        ("images: 0", "expected.images: 0 can't be"),
    ],
)
def test_convert_compares_the_totals(tmp_path: Path, said: str, part: str) -> None:
    """Fewer images or classes than the recipe expects are refused, with the line."""
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
    assert part in str(caught.value)


def test_verify_names_what_was_set_aside(tmp_path: Path) -> None:
    """A class whose only image is bad is left out, and verify says that it is missing."""
    files = {"data/a/1.jpg": picture("1.jpg"), "data/b/2.jpg": picture("2.jpg"), "data/c/3.jpg": b"\xff\xd8 cut"}
    recipe = save(tmp_path, "source: {folders: data}\nexpected: {images: 3, classes: 3}\nskip_bad: true\n", **files)
    layout = Layout(tmp_path / "out")
    convert(layout, ENGINE, MakingOptions(skip_bad=True), dataset=RecipeSet.read(recipe))
    details = {problem.detail for problem in verify(layout, ENGINE).problems}
    assert details == {"expected 3 images, got 2", "expected 3 classes, got 2"}


def test_totals_of_a_split_and_classes_that_it_lacks(tmp_path: Path) -> None:
    """verify compares the totals of each split; init, convert and verify name the classes that a split lacks."""
    paths = (*(f"train/{name}/{number}.jpg" for name in "abc" for number in range(2)), "val/a/1.jpg", "val/b/1.jpg")
    files = {f"data/{path}": picture(path) for path in paths}
    said = "expected: {train: {images: 6}, validation: {images: 2, classes: 2}}\noutput_file_prefix: set\n"
    recipe = save(tmp_path, f"source: {{folders: data}}\nskip_bad: true\n{said}", **files)
    warning = "warning: split validation lacks 1 of 3 classes: c"
    assert init(tmp_path / "data", tmp_path / "p.yaml", ENGINE).warnings == (warning,)
    (tmp_path / "data/val/b/1.jpg").write_bytes(b"\xff\xd8 cut")
    layout = Layout(tmp_path / "out", set_name="set")
    notes = convert(layout, ENGINE, MakingOptions(skip_bad=True), dataset=RecipeSet.read(recipe)).notes
    assert warning in notes
    verdict = verify(layout, ENGINE)
    details = {(problem.subject, problem.detail) for problem in verdict.problems}
    assert details == {("set-validation", f"expected 2 {what}, got 1") for what in ("images", "classes")}
    assert "warning: split set-validation lacks 2 of 3 classes: label 2, label 3" in verdict.notes


def test_a_missing_class_of_a_tar_of_tars_is_named(tmp_path: Path) -> None:
    """ImageNet-21k's tar of class tars is read in place, and its published totals are compared."""
    recipe = "source: {tar: fall11_whole.tar}\nexpected: {images: 3, classes: 2}\n"
    made = load(save(tmp_path, recipe, **{"fall11_whole.tar": tarred(TARS)}), None, ENGINE)
    assert made.classes.names == ("n00000001", "n00000002")
    del (whole := dict(TARS))["n00000002.tar"]
    with pytest.raises(PrepError, match="3 images expected, 2 found"):
        load(save(tmp_path, recipe, **{"fall11_whole.tar": tarred(whole)}), None, ENGINE)


def test_the_proposed_splits_work_when_they_are_uncommented(tmp_path: Path) -> None:
    """The line that init writes as a comment is a recipe's line."""
    save(tmp_path, "", **{f"data/{name}/{number}.jpg": None for name in "ab" for number in range(15)})
    text = init(tmp_path / "data", tmp_path / "p.yaml", ENGINE).text
    assert "# splits: {train: 0.9, validation: 0.1}" in text
    (tmp_path / "p.yaml").write_text(text.replace("# splits: {", "splits: {"))
    made = load(tmp_path / "p.yaml", None, ENGINE)
    assert [split.name for split in made.splits] == ["train", "validation"]


def test_several_arrays_in_a_file_are_a_choice(tmp_path: Path) -> None:
    """The message names the arrays and the key, and asks for no sound copies."""
    recipe = save(tmp_path, "source: {files: '*.npz'}\n", **{"a.npz": arrays(x_train=(2, 2), y_train=(2,))})
    with pytest.raises(PrepError, match="holds 2 arrays: x_train, y_train") as caught:
        load(recipe, None, ENGINE)
    assert "write array: x_train" in str(caught.value)


def test_a_second_recipe_in_the_same_folder_is_told_how(tmp_path: Path) -> None:
    """Two recipes without a prefix need different folders; with a prefix both sets are right in one."""
    files = {f"data/{name}": content for name, content in images(*CATS).items()}
    layout = Layout(tmp_path / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(save(tmp_path, "source: {folders: data}\n", **files)))
    second = save(tmp_path, "source: {folders: data}\nsplits: {b: 1.0}\n")
    with pytest.raises(PrepError, match="of another recipe") as caught:
        convert(layout, ENGINE, dataset=RecipeSet.read(second))
    assert "output_file_prefix: r;" in str(caught.value)
    second.write_text(second.read_text() + "output_file_prefix: r\n")
    convert(layout, ENGINE, dataset=RecipeSet.read(second))
    assert [verify(each, ENGINE).problems for each in layout.sets()] == [(), ()]
