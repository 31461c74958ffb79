"""One policy for what is damaged: convert refuses it or leaves it out,
counts it, and names it in a file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from existing import existing
from made_sets import ENGINE, make_flowers
from running import command

import imagenet_prep
from imagenet_prep import Layout, PrepError, convert, verify
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.errors import DataProblemsError
from imagenet_prep.model import Problem, ProblemKind, Silent
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.shards.convert_summary import refusal_of
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.merge import merge
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.location import locate

pytestmark = pytest.mark.once

IMAGES = 300
DAMAGED = ("0007.jpg", "0150.jpg", "0299.jpg")
RECIPE = "source: {folders: flowers}\nrecord: inception\nshards: 6\n"
SKIP = MakingOptions(on_damaged="skip")


@pytest.fixture(scope="module")
def flowers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 300 images of which 3 are cut short, and a recipe for them. Read only."""
    folder = tmp_path_factory.mktemp("damaged")
    make_flowers(folder / "flowers", IMAGES // 5)
    for name in DAMAGED:
        cut_short(folder, name)
    (folder / "recipe.yaml").write_text(RECIPE)
    return folder


@pytest.fixture
def folder(flowers: Path, tmp_path: Path) -> Path:
    """The test's own copy."""
    return Path(shutil.copytree(flowers, tmp_path / "work"))


def cut_short(folder: Path, name: str) -> None:
    """Remove the second half of an image."""
    (image,) = folder.glob(f"flowers/*/{name}")
    content = image.read_bytes()
    image.write_bytes(content[: len(content) // 2])


def make(folder: Path, options: MakingOptions = SKIP, share: Share | None = None) -> Layout:
    """Convert the folder to folder/out."""
    layout = Layout(folder / "out")
    convert(layout, ENGINE, options, dataset=RecipeSet.read(folder / "recipe.yaml"), share=share)
    return layout


def named(layout: Layout) -> list[dict[str, Any]]:
    """The lines of damaged-images.jsonl."""
    return [json.loads(line) for line in layout.damaged_images_path.read_bytes().splitlines()]


def names(layout: Layout) -> list[str]:
    """The images that the file names, sorted."""
    return sorted(line["image"].rpartition("/")[2] for line in named(layout))


def test_both_policies(folder: Path) -> None:
    """Refused: status 3, no manifest, no file of names.
    Skipped: status 3, 297 records, and 3 names with reasons.
    """
    words = ("convert", "out", "--config", "recipe.yaml")
    refused = command(*words, status=3, cwd=folder)
    assert "3 images can't be converted" in refused.stderr
    assert "--on-damaged skip (in a recipe: on_damaged: skip)" in refused.stderr
    layout = Layout(folder / "out")
    assert not layout.manifest_path.exists()
    assert not layout.damaged_images_path.exists()
    skipped = command(*words, "--on-damaged", "skip", status=3, cwd=folder).stdout
    assert "set aside: 3 images" in skipped
    assert "out/imagenet-prep/damaged-images.jsonl names each image that was set aside" in skipped
    assert names(layout) == sorted(DAMAGED)
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    for line in named(layout):
        info = manifest.shards[line["shard"]]
        assert line["split"] == "train"
        assert (
            dict(zip(info.set_aside, info.faults, strict=True))[line["image"]]
            == line["reason"]
            != ""
        )
    assert len(imagenet_prep.open(folder / "out", "train")) == IMAGES - len(DAMAGED)
    assert (
        "incomplete: 297 of 300 listed records are in."
        in command("verify", "out", cwd=folder).stdout
    )


def test_the_command_line_wins_over_the_recipe(folder: Path) -> None:
    """A recipe says skip, the call says refuse: the set is refused,
    and the command to go on with says so too.
    """
    (folder / "recipe.yaml").write_text(RECIPE + "on_damaged: skip\n")
    words = ("convert", "out", "--config", "recipe.yaml")
    refused = command(*words, "--on-damaged", "refuse", status=3, cwd=folder).stderr
    assert "3 images can't be converted" in refused
    assert (
        command("status", "out", cwd=folder).stdout.splitlines()[-1].endswith("--on-damaged refuse")
    )
    assert "set aside: 3 images" in command(*words, status=3, cwd=folder).stdout


def test_an_unknown_policy_is_refused(folder: Path) -> None:
    """The message names both values."""
    said = command(
        "convert", "out", "--config", "recipe.yaml", "--on-damaged", "ignore", status=2, cwd=folder
    ).stderr
    assert "'refuse'" in said
    assert "'skip'" in said


# the file of names stays right --------------------------------------------------------------------


def _resumed(folder: Path) -> Layout:
    layout = make(folder)
    layout.shard_path("train-00001-of-00006").unlink()
    layout.manifest_path.unlink()
    for _ in range(2):  # of a finished set, too
        layout.damaged_images_path.unlink()
        make(folder)
    return layout


def _refused_first(folder: Path) -> Layout:
    with pytest.raises(DataProblemsError):
        make(folder, MakingOptions())
    return make(folder)


def _of_ranks(folder: Path) -> Layout:
    for rank in range(2):
        make(folder, share=Share(rank, 2))
        assert not Layout(folder / "out").damaged_images_path.exists()
    layout = Layout(folder / "out")
    for _ in range(2):  # merged again, it writes the file that somebody removed
        layout.damaged_images_path.unlink(missing_ok=True)
        merge(layout)
    return layout


def _repaired(folder: Path) -> Layout:
    layout = make(folder)
    for name in load_manifest(layout.manifest_path).shards:  # type: ignore[union-attr]
        layout.shard_path(name).write_bytes(b"")
    assert verify_and_repair(layout, ENGINE).verdict.problems == ()
    return layout


def _of_another_seed(folder: Path) -> Layout:
    make(folder)
    (folder / "recipe.yaml").write_text(RECIPE + "seed: 7\n")
    return make(folder, SKIP.replace(overwrite=True))


@pytest.mark.parametrize(
    "history", [_resumed, _refused_first, _of_ranks, _repaired, _of_another_seed]
)
def test_the_names_are_those_of_the_manifest(
    folder: Path, history: Callable[[Path], Layout]
) -> None:
    """After any history the file names exactly what the manifest leaves out, shard by shard."""
    layout = history(folder)
    assert names(layout) == sorted(DAMAGED)
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    recorded = [
        (name, image) for name, info in sorted(manifest.shards.items()) for image in info.set_aside
    ]
    assert [(line["shard"], line["image"]) for line in named(layout)] == recorded
    assert verify(layout, ENGINE).problems == ()


def test_each_history_gives_the_same_file(flowers: Path, tmp_path: Path) -> None:
    """Byte for byte, as the manifest: nothing in it tells where the images were."""
    found = set()
    for number, history in enumerate((make, _resumed, _of_ranks)):
        folder = Path(shutil.copytree(flowers, tmp_path / str(number)))
        layout = history(folder)
        found.add((layout.manifest_path.read_bytes(), layout.damaged_images_path.read_bytes()))
    assert len(found) == 1


def test_a_grown_set_names_the_images_of_all_its_parts(folder: Path) -> None:
    """New files bring a damaged one: the earlier names stay,
    and its split is the one that has grown.
    """
    (folder / "recipe.yaml").write_text(RECIPE + "grow: true\n")
    make(folder)
    extra = make_flowers(folder / "more", 10)
    for image in existing(extra, "*/*.jpg"):
        image.rename(folder / "flowers" / image.parent.name / f"1{image.name}")
    cut_short(folder, "10042.jpg")
    layout = make(folder)
    assert names(layout) == sorted([*DAMAGED, "10042.jpg"])
    assert {line["split"] for line in named(layout)} == {"train"}
    assert any(line["shard"].startswith("train-grown2-") for line in named(layout))


def _mended(folder: Path) -> None:
    shutil.rmtree(folder / "flowers")
    make_flowers(folder / "flowers", IMAGES // 5)


@pytest.mark.parametrize("options", [MakingOptions(overwrite=True), SKIP.replace(overwrite=True)])
def test_a_set_without_damage_has_no_file(folder: Path, options: MakingOptions) -> None:
    """Sound images come in their place: the names of the older set are gone."""
    layout = make(folder)
    assert layout.damaged_images_path.exists()
    _mended(folder)
    make(folder, options)
    assert not layout.damaged_images_path.exists()
    assert verify(layout, ENGINE).level == "as listed"


def test_a_stopped_successor_leaves_no_names_of_the_older_set(folder: Path) -> None:
    """An --overwrite that is refused after it began has removed the manifest,
    and the names with it.
    """
    layout = make(folder)
    (folder / "recipe.yaml").write_text(RECIPE + "seed: 7\n")
    with pytest.raises(PrepError):
        make(folder, MakingOptions(overwrite=True))
    assert not layout.manifest_path.exists()
    assert not layout.damaged_images_path.exists()


def test_in_an_object_store_too(folder: Path, objects: Any) -> None:
    """The file lies beside the manifest there, and says the same."""
    here = make(folder)
    there = Layout(locate(f"{objects.new_bucket()}/out"))
    convert(there, ENGINE, SKIP, dataset=RecipeSet.read(folder / "recipe.yaml"))
    assert there.damaged_images_path.read_bytes() == here.damaged_images_path.read_bytes()


def _order_of_writes(layout: Layout) -> Sequence[float]:
    return [
        path.stat().st_mtime_ns
        for path in (Path(layout.damaged_images_path), Path(layout.manifest_path))
    ]


def test_the_names_come_before_the_manifest(folder: Path) -> None:
    """A finished set has its names: they are written first."""
    first, last = _order_of_writes(make(folder))
    assert first <= last


@pytest.mark.parametrize(
    ("count", "other_way", "words"),
    [
        (1, "", "a sound copy of it"),
        (2, "", "sound copies of them"),
        (2, ", or convert it to PNG", "a sound copy of it, or convert it to PNG"),
    ],
)
def test_the_remedy_counts_bad_images(count: int, other_way: str, words: str) -> None:
    """One image is no "them", and none of its ways is lost."""
    remedy = f"get a sound copy of it{other_way}; or leave out the image: on_damaged: skip"
    problems = [
        Problem(ProblemKind.BAD_IMAGE, f"{number}.jpg", "cut", remedy) for number in range(count)
    ]
    refusal = refusal_of(problems, 1, Silent())
    assert refusal.hint.startswith(f"get {words}")
    images = "the image" if count == 1 else "these images"
    assert refusal.hint.endswith(f"; or leave out {images}: on_damaged: skip")
