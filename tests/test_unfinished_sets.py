"""Sets that are not finished: open, export and feature_spec refuse them,
and name the command that finishes them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from made_folders import picture
from made_folders import write as write_files
from made_sets import ENGINE, PART
from running import command

import imagenet_prep
from imagenet_prep import Layout, convert, export
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.recipes.recipe_set import RecipeSet

pytestmark = pytest.mark.once

SHARD = "train-00003-of-00008"


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by path."""
    return {str(path): path.read_bytes() for path in list(folder.glob("**/*")) if path.is_file()}


def lose_manifest(layout: Layout) -> None:
    """Every shard is done, and the manifest is gone."""
    layout.manifest_path.unlink()


def lose_manifest_and_shard(layout: Layout) -> None:
    """A shard is missing, too."""
    layout.manifest_path.unlink()
    layout.shard_path(SHARD).unlink()


def lose_planned_split(layout: Layout) -> None:
    """A whole split that was planned is absent."""
    layout.manifest_path.unlink()
    for name in layout.find_shards(["validation"]):
        layout.shard_path(name).unlink()


def lose_plan_too(layout: Layout) -> None:
    """Shards, and a journal that lists them."""
    layout.manifest_path.unlink()
    layout.plan_path.unlink()


def add_shard_of_another_count(layout: Layout) -> None:
    """A shard that the manifest does not have."""
    shutil.copy(layout.shard_path(SHARD), layout.shard_path("train-00000-of-00001"))


def add_growth_of_before(layout: Layout) -> None:
    """A shard of a growth that the manifest does not have."""
    shutil.copy(layout.shard_path(SHARD), layout.shard_path("train-grown2-00000-of-00001"))


def damage_manifest(layout: Layout) -> None:
    """A manifest with another digit."""
    path = layout.manifest_path
    path.write_bytes(path.read_bytes().replace(b'"records": ', b'"records": 1', 1))


STATES: list[tuple[Callable[[Layout], None], str, str]] = [
    (
        lose_manifest,
        "holds every shard of a set, but manifest.json is missing",
        "imagenet-prep convert again",
    ),
    (
        lose_manifest_and_shard,
        f"unfinished set: 1 shard is not done, {SHARD} first",
        "imagenet-prep convert again",
    ),
    (
        lose_planned_split,
        "unfinished set: 8 shards are not done, validation-0",
        "imagenet-prep convert again",
    ),
    (
        lose_plan_too,
        "lists shards, but plan.json and manifest.json are gone",
        "imagenet-prep convert again",
    ),
    (
        add_shard_of_another_count,
        "train-00000-of-00001 is not in manifest.json",
        "imagenet-prep verify",
    ),
    (
        add_growth_of_before,
        "train-grown2-00000-of-00001 is not in manifest.json",
        "imagenet-prep verify",
    ),
    (damage_manifest, "manifest.json has changed since it was written", "convert again"),
]


def refuse_all(layout: Layout, out: Path, sentence: str, hint: str) -> None:
    """Every reader refuses the set with this sentence and hint, and no file changes."""
    before = everything(layout.output_dir)
    readers: list[Callable[[], object]] = [
        lambda: imagenet_prep.open(layout.output_dir, "train"),
        *(
            lambda name=name: export(layout, name, out, ENGINE)
            for name in ("webdataset", "folders", "tfds", "croissant")
        ),
    ]
    for read in readers:
        with pytest.raises(InputError, match=sentence) as caught:
            read()
        assert hint in caught.value.hint
    assert everything(layout.output_dir) == before
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "sentence", "hint"), STATES, ids=[change.__name__ for change, _, _ in STATES]
)
def test_a_set_that_is_not_finished_is_refused(
    tmp_path: Path, layout: Layout, change: Callable[[Layout], None], sentence: str, hint: str
) -> None:
    """An unfinished or contradictory set is never read as another program's,
    and nothing of it is exported.
    """
    change(layout)
    refuse_all(layout, tmp_path / "out", sentence, hint)


def test_ranks_that_are_not_merged_are_refused(tmp_path: Path, made_tiny: MadeSet) -> None:
    """One rank of two, then both: the error names merge, and after it the set is read."""
    raw, data = made_tiny.archives["train"].parent, tmp_path / "data"
    options = (
        "--raw",
        raw,
        "--allow-incomplete",
        "--train-shards",
        8,
        "--validation-shards",
        8,
        "--workers",
        1,
    )
    command("convert", data, *options, "--rank", "0/2")
    refuse_all(
        Layout(data),
        tmp_path / "out",
        "holds shards of ranks that are not merged: 8 shards not done",
        "merge",
    )
    command("convert", data, *options, "--rank", "1/2")
    refuse_all(
        Layout(data),
        tmp_path / "out",
        "ranks that are not merged: all shards are done",
        "imagenet-prep merge",
    )
    command("merge", data)
    assert len(imagenet_prep.open(data, "train")) == 300


def test_the_command_says_how_to_finish(tmp_path: Path, layout: Layout, made_tiny: MadeSet) -> None:
    """export ends with status 4 and the command; after that command it exports the set."""
    lose_manifest(layout)
    refused = command("export", "webdataset", layout.data_dir, tmp_path / "out", status=4)
    assert "run the same imagenet-prep convert again" in refused.stderr
    convert(Layout(layout.data_dir, raw=made_tiny.archives["train"].parent), ENGINE, PART)
    command("export", "webdataset", layout.data_dir, tmp_path / "out")


def test_another_makers_set_is_read(tmp_path: Path, sound: Layout) -> None:
    """Shards without any record, and shards with the manifest alone, are sets to read."""
    bare, moved = tmp_path / "bare", tmp_path / "moved"
    for folder in (bare, moved):
        folder.mkdir()
        for name in sound.find_shards():
            shutil.copy(sound.shard_path(name), folder)
    (moved / "imagenet-prep").mkdir()
    shutil.copy(sound.manifest_path, moved / "imagenet-prep")
    expected = [bytes(record.data) for record in imagenet_prep.open(sound.data_dir, "train")]
    for folder in (bare, moved):
        assert [bytes(record.data) for record in imagenet_prep.open(folder, "train")] == expected
        records = (
            export(Layout(folder), "webdataset", tmp_path / f"{folder.name}-out", ENGINE)
            .splits[0]
            .records
        )
        assert records == len(expected)


def make_two_sets(folder: Path) -> None:
    """The sets "day" and "night", in folder/out."""
    for name in ("day", "night"):
        images = [f"{kind}/{name}-{number}.jpg" for kind in ("cat", "dog") for number in range(3)]
        write_files(folder / name, **{image: picture(image) for image in images})
        recipe = folder / f"{name}.yaml"
        recipe.write_text(f"source: {{folders: {name}}}\noutput_file_prefix: {name}\nshards: 2\n")
        convert(Layout(folder / "out"), ENGINE, dataset=RecipeSet.read(recipe))


def test_a_lost_state_of_one_of_two_sets_is_named(tmp_path: Path) -> None:
    """Shards whose set has lost its state are not left out of an export without a word."""
    make_two_sets(tmp_path)
    shutil.rmtree(tmp_path / "out" / "imagenet-prep" / "sets" / "night")
    refused = command("export", "webdataset", tmp_path / "out", tmp_path / "tars", status=4)
    assert "2 shards belong to none of its sets: night-00000-of-00002, " in refused.stderr
    assert not (tmp_path / "tars").exists()


@pytest.mark.tensorflow
def test_feature_spec_of_one_of_two_sets(tmp_path: Path) -> None:
    """The error names the argument that chooses, which is not that of Layout."""
    from imagenet_prep.tensorflow import feature_spec

    make_two_sets(tmp_path)
    with pytest.raises(UsageError, match="several sets: day, night") as caught:
        feature_spec(tmp_path / "out")
    assert caught.value.detail == "expected one of their splits: day, night"
    assert caught.value.hint.endswith(f"feature_spec({str(tmp_path / 'out')!r}, split='day')")
    assert feature_spec(tmp_path / "out", split="night").keys() > {"image/encoded"}
    with pytest.raises(InputError, match=r"nowhere does not exist\nexpected a folder of shards"):
        feature_spec(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"day.yaml is a file\nexpected a folder of shards"):
        feature_spec(tmp_path / "day.yaml")


@pytest.mark.tensorflow
def test_feature_spec_refuses_an_unfinished_set(layout: Layout) -> None:
    """The features of a recipe's set whose manifest is lost are not those of Inception."""
    from imagenet_prep.tensorflow import dataset, feature_spec

    lose_manifest(layout)
    for read in (
        lambda: feature_spec(layout.data_dir),
        lambda: dataset(layout.data_dir, "train", batch_size=2),
    ):
        with pytest.raises(InputError, match=r"but manifest.json is missing"):
            read()
