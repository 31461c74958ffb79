"""What users bring from the TFRecord guides: their manifests, label files, short options and spellings."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_sets import write_lists
from PIL import Image
from running import command

from imagenet_prep import records
from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_set import RecipeSet

ENGINE = make_engine("threads", 2)


def plan(folder: Path, recipe: str) -> RecipeDataset:
    """The plan of a recipe that lies in ``folder``."""
    (folder / "recipe.yaml").write_text(recipe)
    return load(folder / "recipe.yaml", None, ENGINE)


def save_images(folder: Path, names: list[str]) -> None:
    """A small image of each name."""
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6), (number, 0, 0)).save(path)


# options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["GZIP"])
def test_a_compression_is_known_in_any_case(tmp_path: Path, spelling: str) -> None:
    """TensorFlow writes GZIP: a recipe, the option and records.write take it as it takes gzip."""
    save_images(tmp_path, ["a/1.png", "b/1.png"])
    (tmp_path / "recipe.yaml").write_text(f"source: {{folders: .}}\ncompression: {spelling}\n")
    assert RecipeSet.read(tmp_path / "recipe.yaml").options.compression == "gzip"
    records.write(tmp_path / "x.tfrecord", [{"a": 1}], spelling)
    assert (tmp_path / "x.tfrecord").read_bytes()[:2] == b"\x1f\x8b"
    (tmp_path / "none").mkdir()
    said = command("convert", tmp_path / "none", "--set", f"compression={spelling}", status=4).stderr
    assert "no images of ImageNet in" in said


def test_skip_bad_works_beside_a_recipe(tmp_path: Path) -> None:
    """The option that a refusal proposes can be given with --config, and the command to go on with names it."""
    save_images(tmp_path, [f"in/{name}/{number}.png" for name in "ab" for number in range(3)])
    (tmp_path / "in/a/1.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    (tmp_path / "recipe.yaml").write_text("source: {folders: in}\nshards: 2\n")
    words = ("convert", tmp_path / "out", "--config", tmp_path / "recipe.yaml")
    assert "--skip-bad" in command(*words, status=3).stderr
    assert "set aside: 1 image" in command(*words, "--skip-bad", status=3).stdout
    assert 'The shards of "recipe" are whole and right.' in command("verify", tmp_path / "out").stdout
    (tmp_path / "out/imagenet-prep/manifest.json").unlink()
    assert command("status", tmp_path / "out").stdout.splitlines()[-1].endswith("--skip-bad")


# manifests -----------------------------------------------------------------------------------------------------


def test_a_complete_manifest_needs_no_folder_of_the_pattern(tmp_path: Path) -> None:
    """The manifest names the files; that the folder of input_file_pattern is gone makes no difference."""
    save_images(tmp_path, [f"kept/{number}.png" for number in range(3)])
    (tmp_path / "m.txt").write_text("".join(f"kept/{number}.png\n" for number in (2, 0, 1)))
    for pattern in ("gone/*.png", f"{tmp_path}/gone/*.png", "/nowhere/at/all/*.png"):
        made = plan(tmp_path, f"manifest_file: m.txt\ninput_file_pattern: {pattern}\n")
        assert list(made.splits[0].catalog.names) == [f"kept/{number}.png" for number in (2, 0, 1)]


SPLIT = "manifest_file: lists/m.txt\ninput_file_pattern: in/*.png\nsplits: {train: 0.75, test: 0.25}\n"


def contents(made: RecipeDataset) -> dict[str, list[str]]:
    """The files of each split, in order."""
    return {split.name: list(split.catalog.names) for split in made.splits}


def test_a_manifest_a_split_is_made_and_used_again(tmp_path: Path) -> None:
    """manifest_file with splits: one of each is written, and from then on it says what that split holds."""
    save_images(tmp_path, [f"in/{number}.png" for number in range(40)])
    first = plan(tmp_path, SPLIT)
    write_lists(first)
    lists = {split: (tmp_path / f"lists/m-{split}.txt").read_text().splitlines() for split in ("train", "test")}
    assert lists == contents(first)
    assert not (tmp_path / "lists/m.txt").exists()
    save_images(tmp_path, ["in/new.png"])
    moved = lists["train"].pop()
    lists["test"].append(moved)
    for split, names in lists.items():
        (tmp_path / f"lists/m-{split}.txt").write_text("\n".join(names))
    again = plan(tmp_path, SPLIT)
    assert contents(again) == lists
    assert again.manifest is None
    assert not any(split.shuffle for split in again.splits)


def test_a_manifest_that_is_missing_among_those_of_splits(tmp_path: Path) -> None:
    """Half of the manifests would be half of a set: the one that is not there is named."""
    save_images(tmp_path, [f"in/{number}.png" for number in range(40)])
    write_lists(plan(tmp_path, SPLIT))
    (tmp_path / "lists/m-test.txt").unlink()
    with pytest.raises(InputError, match=r"m-test\.txt is not there, and m-train\.txt is"):
        plan(tmp_path, SPLIT)
