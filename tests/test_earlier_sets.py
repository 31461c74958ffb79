"""Sets of versions that refused less: they are gone on with and repaired, where the same is not begun today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from existing import existing
from PIL import Image

from imagenet_prep.datasets import order
from imagenet_prep.engines import make_engine
from imagenet_prep.errors import UsageError
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.recipes import labels
from imagenet_prep.recipes.loading import load
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage.layout import Layout

ENGINE = make_engine("threads", 2)
MASKS = [f"{kind}/{number}.png" for kind in ("images", "masks") for number in range(4)]
SPLITS = [f"{kind}/{number}.png" for kind in ("train", "val") for number in range(4)]
MIXED = [f"{kind}/{number}{mask}.png" for kind in ("a", "b") for number in range(2) for mask in ("", "_mask")]
FEW = [f"{kind}/{number}.png" for kind in "ab" for number in range(2)]
PLACES = "source: {folders: in}\nrecord: inception\n"

SETS = {
    "masks": (MASKS, f"{PLACES}shards: 4\n", "look like images and their masks"),
    "masks-in-splits": (
        [*(f"train/{each}" for each in MASKS), *(f"val/{each}" for each in MASKS)],
        f"{PLACES}shards: 2\n",
        "look like images and their masks",
    ),
    "splits": (SPLITS, f"{PLACES}shards: 4\nsplits: {{only: 1.0}}\n", "are called as splits are"),
    "mixed": (MIXED, f"{PLACES}shards: 4\n", "are called as masks of others are"),
    "many-shards": (FEW, f"{PLACES}shards: 1025\n", "expected at most 1,024"),
}


@pytest.fixture(params=SETS)
def begun(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A folder with images, their recipe, and in out/ the set that an earlier version made; and today's word."""
    names, recipe, word = SETS[request.param]
    for number, name in enumerate(names):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6), (number, 0, 0)).save(path)
    (tmp_path / "recipe.yaml").write_text(recipe)
    with monkeypatch.context() as earlier:
        earlier.setattr(labels, "misread", lambda *_: None)
        earlier.setattr(order, "most_shards", lambda count: 99_999)
        plan = load(tmp_path / "recipe.yaml", None, ENGINE)
        convert(Layout(tmp_path / "out"), ENGINE, ConvertOptions(), dataset=plan)
    return tmp_path, word


def shards(folder: Path) -> dict[str, bytes]:
    """The bytes of each shard."""
    return {path.name: path.read_bytes() for path in existing(folder / "out", "*-of-*") if path.is_file()}


def run_convert(folder: Path, output: str = "out") -> subprocess.CompletedProcess[str]:
    """Convert by the command line, as a user goes on."""
    call = [sys.executable, "-m", "imagenet_prep", "convert", output, "--config", "recipe.yaml"]
    return subprocess.run(call, cwd=folder, capture_output=True, text=True)


def test_they_are_repaired(begun: tuple[Path, str]) -> None:
    """A shard that was damaged is made again with the bytes it had, and no other."""
    folder, _ = begun
    before = shards(folder)
    name = max(before, key=lambda each: len(before[each]))
    damaged = bytearray(before[name])
    damaged[50] ^= 1
    (folder / "out" / name).write_bytes(damaged)
    run = verify_and_repair(Layout(folder / "out"), ENGINE)
    assert (run.repair.made, run.verdict.problems) == ((name,), ())
    assert shards(folder) == before


@pytest.mark.parametrize("is_whole", [True, False])
def test_they_are_gone_on_with(begun: tuple[Path, str], is_whole: bool) -> None:
    """Whole or interrupted: what is missing is made, nothing else, and the bytes are the same."""
    folder, _ = begun
    before = shards(folder)
    stamps = {path: path.stat().st_mtime_ns for path in existing(folder / "out", "*-of-*")}
    lost = max(before, key=lambda each: len(before[each]))
    if not is_whole:
        (folder / "out/imagenet-prep/manifest.json").unlink()
        (folder / "out" / lost).unlink()
    ran = run_convert(folder)
    assert (ran.returncode, ran.stderr.count("Traceback")) == (0, 0), ran.stderr
    assert shards(folder) == before
    changed = {path.name for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp}
    assert changed == (set() if is_whole else {lost})
    assert verify(Layout(folder / "out"), ENGINE).problems == ()


def test_they_are_not_begun(begun: tuple[Path, str]) -> None:
    """Elsewhere, and where only a set of other images stands, the same recipe is refused, and nothing is changed."""
    folder, word = begun
    ran = run_convert(folder, "other")
    assert ran.returncode in (2, 4)
    assert word in ran.stderr
    assert not list((folder / "other").glob("*-of-*"))
    before = shards(folder)
    for path in existing(folder / "in", "**/*.png"):
        Image.new("RGB", (9, 9)).save(path, compress_level=0)
    ran = run_convert(folder)
    assert ran.returncode in (2, 4)
    assert word in ran.stderr
    assert shards(folder) == before


def test_many_shards_of_imagenet(tiny_data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for ImageNet: a set of more shards than are begun today is gone on with."""
    layout, options = (
        Layout(tiny_data_dir),
        ConvertOptions(validation_shards=1025, train_shards=8, allow_incomplete=True),
    )
    with pytest.raises(UsageError, match="1,025 validation shards of"):
        convert(layout, ENGINE, options)
    with monkeypatch.context() as earlier:
        earlier.setattr(order, "most_shards", lambda count: 99_999)
        convert(layout, ENGINE, options)
    assert [split.made for split in convert(layout, ENGINE, options).splits] == [0, 0]
