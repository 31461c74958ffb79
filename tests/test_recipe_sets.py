"""Any data set, the whole way: init, convert, verify, repair,
and what tf.data and our own reader make of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tf_fixture
from existing import existing
from made_sets import ENGINE, FLOWERS, data_of, make_flowers, write
from running import command

from imagenet_prep import ConvertOptions, Layout, convert, records, run, verify
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012.settings import SHIPPED
from imagenet_prep.model import ProblemKind
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.recipes import recipe_dataset
from imagenet_prep.recipes.loading import load, read
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.registry import imagenet_options
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.state.set_state import REWRITE

tf = tf_fixture.tf


def made(tmp_path: Path, recipe: str, name: str = "recipe.yaml") -> Layout:
    """The shards of a recipe that lies in ``tmp_path``."""
    path = tmp_path / name
    path.write_text(recipe)
    layout = Layout(tmp_path / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(path))
    return layout.one_set()


def contents(layout: Layout) -> dict[str, bytes]:
    """Every file of a set but what verify found."""
    found = ("verdict.json", "problems.jsonl")
    paths = (
        path
        for path in existing(layout.data_dir, "**/*")
        if path.is_file() and path.name not in found
    )
    return {str(path.relative_to(layout.data_dir)): path.read_bytes() for path in paths}


# four commands, no editing ------------------------------------------------------------------------


def test_a_folder_of_classes_in_four_commands(tmp_path: Path, tf: Any) -> None:
    """init, convert, verify, report on 5 classes x 40 images; tf.data reads the records."""
    flowers, recipe, out = (
        make_flowers(tmp_path / "flowers", 40),
        tmp_path / "flowers.yaml",
        tmp_path / "out",
    )
    command("init", flowers, "--output", recipe)
    command("convert", out, "--config", recipe)
    assert (
        "as listed: a quick check found nothing wrong."
        in command("verify", out, "--depth", "quick").stdout
    )
    verdict = command("verify", out).stdout
    assert "as listed: all 200 listed records are in." in verdict
    command("report", out)
    page = (out / "imagenet-prep" / "report.html").read_text()
    assert "flowers" in page
    assert command("status", out).stdout.splitlines()[-1].startswith("next: ")
    paths = sorted(str(path) for path in existing(out, "*-of-*"))
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/class/synset": tf.io.FixedLenFeature([], tf.string),
    }
    found = [
        tf.io.parse_single_example(record, features) for record in tf.data.TFRecordDataset(paths)
    ]
    assert len(found) == 200
    for record in found:
        assert (
            FLOWERS[int(record["image/class/label"]) - 1]
            == record["image/class/synset"].numpy().decode()
        )
    encoded = {record["image/encoded"].numpy() for record in found}
    assert encoded == {path.read_bytes() for path in existing(flowers, "**/*.jpg")}


# classic keys -------------------------------------------------------------------------------------

CLASSIC = """\
manifest_file: manifest.txt
input_file_pattern: arrays/*.npy
output_file_prefix: scans
num_shards: 5
min_val: -1000
max_val: 3000
"""


def test_the_keys_of_the_guides(tmp_path: Path) -> None:
    """100 arrays by manifest_file, input_file_pattern, output_file_prefix,
    num_shards, min_val, max_val alone.
    """
    rng = np.random.default_rng(1)
    arrays = {}
    (tmp_path / "arrays").mkdir()
    for number in range(100):
        arrays[f"arrays/{number:03d}.npy"] = rng.integers(-2000, 4000, (4, 5), dtype=np.int16)
        np.save(tmp_path / "arrays" / f"{number:03d}.npy", arrays[f"arrays/{number:03d}.npy"])
    layout = made(tmp_path, CLASSIC)
    paths = sorted(layout.data_dir.glob("scans-*-of-00005"))
    assert len(paths) == 5
    manifest = (tmp_path / "manifest.txt").read_text().split()
    assert sorted(manifest) == sorted(arrays)
    assert manifest != sorted(arrays)
    found = list(records.read(paths, lists=["values"]))
    assert len(found) == 100
    for record, name in zip(found, manifest, strict=True):
        values = np.array(record["values"], dtype=np.float32)
        expected = (np.clip(arrays[name].astype(np.float64), -1000, 3000) + 1000) / 4000
        assert values.min() >= 0
        assert values.max() <= 1
        np.testing.assert_allclose(values, expected.reshape(-1), atol=1e-6)
    assert verify(layout, ENGINE).problems == ()


# verify and repair --------------------------------------------------------------------------------


def test_repair_wants_the_same_recipe(tmp_path: Path) -> None:
    """Another recipe, or none, is refused before anything is replaced."""
    make_flowers(tmp_path / "flowers", 5)
    layout = made(tmp_path, "source: {folders: flowers}\nshards: 2\n")
    layout.shard_path("train-00000-of-00002").unlink()
    before = contents(layout)
    (tmp_path / "recipe.yaml").write_text("source: {folders: flowers}\nshards: 2\nquality: 50\n")
    differs = command("repair", layout.data_dir, status=4).stderr
    assert "other settings than the shards were made with: codec, quality\n" in differs
    assert "expected codec: not set, got " in differs
    recipe = tmp_path / "recipe.yaml"
    recipe.unlink()
    gone = command("repair", layout.data_dir, status=4).stderr
    assert f"{recipe}, the recipe of these shards, is not there" in gone
    recipe.symlink_to("gone")
    assert "is a broken link" in command("repair", layout.data_dir, status=4).stderr
    recipe.unlink()
    recipe.mkdir()
    assert "is not a file" in command("repair", layout.data_dir, status=4).stderr
    assert contents(layout) == before


def test_another_decoder_is_not_called_another_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The versions of libraries decide pixels too: the error names the setting and both values."""
    make_flowers(tmp_path / "flowers", 5)
    recipe = "source: {folders: flowers}\nshards: 2\ncontent: pixels\n"
    layout = made(tmp_path, recipe)
    layout.shard_path("train-00000-of-00002").unlink()
    monkeypatch.setattr(recipe_dataset, "codec", lambda: "Pillow 99")
    with pytest.raises(InputError) as caught:
        verify_and_repair(layout, ENGINE)
    assert caught.value.what.endswith("other settings than the shards were made with: codec")
    assert 'got "Pillow 99"' in caught.value.detail
    assert "versions of libraries" in caught.value.hint


def test_imagenet_is_not_begun_in_the_set_of_a_recipe(tmp_path: Path) -> None:
    """run and convert without --config name the recipe and the command,
    and leave everything as it is.
    """
    make_flowers(tmp_path / "flowers", 5)
    layout = made(tmp_path, "source: {folders: flowers}\nshards: 2\n", "flowers.yaml")
    for manifest in (True, False):
        if not manifest:
            layout.manifest_path.unlink()
        before = contents(layout)
        for stage in ("run", "convert"):
            refused = command(stage, layout.data_dir, status=2).stderr
            assert "holds the data set flowers, made with a recipe" in refused
            assert f"convert {layout.data_dir} --config {tmp_path}/flowers.yaml" in refused
            assert contents(layout) == before
    with pytest.raises(UsageError, match="data set flowers"):
        run(layout, ENGINE)


def test_a_set_that_is_not_finished_is_compared_with_its_plan(tmp_path: Path) -> None:
    """Without its manifest, plan and journal tell what the shards must be,
    and a damaged manifest is a finding.
    """
    make_flowers(tmp_path / "flowers", 5)
    layout = made(tmp_path, "source: {folders: flowers}\nshards: 2\n")
    layout.manifest_path.unlink()
    found = verify(layout, ENGINE)
    assert [problem.kind for problem in found.problems] == [ProblemKind.UNFINISHED]
    assert found.notes[0].startswith(
        "this conversion is not finished (2 of 2 shards done, but manifest.json is missing); "
        "to resume: imagenet-prep convert"
    )
    assert f"--config {tmp_path}/recipe.yaml" in found.notes[0]
    layout.shard_path("train-00000-of-00002").unlink()
    layout.manifest_path.write_bytes(b"{")
    kinds = [problem.kind.value for problem in verify(layout, ENGINE).problems]
    assert kinds == ["bad-manifest", "missing-shard"]


def test_nothing_is_removed_from_a_set_without_plan_and_manifest(tmp_path: Path) -> None:
    """What its shards should hold is not known: the advice is the command that keeps them."""
    make_flowers(tmp_path / "flowers", 5)
    layout = made(tmp_path, "source: {folders: flowers}\nshards: 2\n")
    before = contents(layout)
    layout.manifest_path.unlink()
    layout.plan_path.write_bytes(b"{}")
    remedies = {problem.remedy for problem in verify(layout, ENGINE).problems}
    assert remedies - {""} == {REWRITE}
    made(tmp_path, "source: {folders: flowers}\nshards: 2\n")
    assert contents(layout) == before


def test_a_folder_in_the_prefix_is_named(tmp_path: Path) -> None:
    """convert says where the shards are, if the recipe puts them below DATA_DIR;
    not among our own files.
    """
    make_flowers(tmp_path / "flowers", 2)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("source: {folders: flowers}\noutput_file_prefix: sets/fl\n")
    ran = command("convert", tmp_path / "out", "--config", recipe)
    assert f"the shards go to {tmp_path}/out/sets" in ran.stderr + ran.stdout
    command("verify", tmp_path / "out" / "sets")
    for folder in ("imagenet-prep", "raw-data", "a/imagenet-prep/b"):
        recipe.write_text(f"source: {{folders: flowers}}\noutput_file_prefix: {folder}/x\n")
        assert (
            "output_file_prefix"
            in command("convert", tmp_path / "other", "--config", recipe, status=2).stderr
        )


def test_an_empty_split_has_a_way_out(tmp_path: Path) -> None:
    """Fractions that leave a split without a file: the error says what to change."""
    make_flowers(tmp_path / "flowers", 1)
    places = "{a: {files: daisy/*}, b: {files: x/*}}"
    for splits, hint in (
        ("{train: 0.99, test: 0.01}", "larger fraction"),
        (places, "take that split"),
    ):
        (tmp_path / "recipe.yaml").write_text(f"source: {{folders: flowers}}\nsplits: {splits}\n")
        with pytest.raises(InputError, match=r"split .* is empty") as refused:
            load(tmp_path / "recipe.yaml", None, ENGINE)
        assert hint in refused.value.hint


def test_a_record_that_breaks_the_promise(tmp_path: Path) -> None:
    """A feature of another kind is named though every CRC is right."""
    make_flowers(tmp_path / "flowers", 4)
    layout = made(
        tmp_path, "source: {folders: flowers}\nshards: 1\nrecord: {image: encoded, label: label}\n"
    )
    path = layout.shard_path("train-00000-of-00001")
    data, changed = data_of(path), tmp_path / "changed"
    records.write(changed, [{**next(records.read(path)), "label": "daisy"}])
    write(path, [*data_of(changed), *data[1:]])
    kinds = {problem.kind: problem for problem in verify(layout, ENGINE).problems}
    assert "label holds bytes, expected int64" in kinds[ProblemKind.BAD_FIELD].detail
    assert kinds[ProblemKind.BAD_FIELD].record == 0


# ImageNet by its own recipe -----------------------------------------------------------------------


def test_imagenet_is_a_recipe(tiny_data_dir: Path, tmp_path: Path) -> None:
    """The recipe that ships says what convert does by itself;
    by it the shards are the same, byte for byte.
    """
    assert imagenet_options(read(SHIPPED)) == ConvertOptions()
    own, by_recipe = Layout(tiny_data_dir), tmp_path / "by-recipe"
    convert(own, ENGINE, ConvertOptions(train_shards=8, validation_shards=2, allow_incomplete=True))
    recipe = tmp_path / "imagenet.yaml"
    text = SHIPPED.read_text().replace("1024", "8").replace("128", "2")
    recipe.write_text(text.replace("allow_incomplete: false", "allow_incomplete: true"))
    command("convert", by_recipe, "--config", recipe, "--raw", tiny_data_dir / "raw-data")
    shards = {path.name: path.read_bytes() for path in existing(tiny_data_dir, "*-of-*")}
    assert {path.name: path.read_bytes() for path in existing(by_recipe, "*-of-*")} == shards
    assert len(shards) == 10
    manifest = load_manifest(Layout(by_recipe).manifest_path)
    assert manifest.dataset.kind == "ILSVRC2012"


def test_options_that_a_recipe_decides(tmp_path: Path) -> None:
    """An option beside --config that the recipe has a key for is an error that names both."""
    make_flowers(tmp_path / "flowers", 2)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("source: {folders: flowers}\n")
    failed = command("convert", tmp_path / "out", "--config", recipe, "--resize", "64", status=2)
    assert "--resize can't be used with --config" in failed.stderr
    assert not (tmp_path / "out").exists()
