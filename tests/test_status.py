"""stages.status: how far each stage has come, told without opening an archive or a shard."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE, copied, make_flowers
from running import command

from imagenet_prep.cli import cli
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012.facts import ARCHIVES
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.status import StageStatus, status
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage.files import save_json
from imagenet_prep.storage.layout import Layout

INCOMPLETE = (
    "incomplete: the shards of ILSVRC2012 hold 300 of 1,281,167 train images, "
    "80 of 50,000 validation images, "
    "390 of 615,299 boxes."
)
PART = ConvertOptions(train_shards=8, validation_shards=4, allow_incomplete=True)


def stage(layout: Layout, name: str) -> StageStatus:
    """The status of one stage."""
    (found,) = (each for each in status(layout).stages if each.stage == name)
    return found


def states(layout: Layout) -> list[str]:
    """The states of all stages in order."""
    return [each.state for each in status(layout).stages]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """A DATA_DIR with the tiny set annotated and converted. Read only."""
    layout = Layout(tmp_path_factory.mktemp("sound") / "data")
    shutil.copytree(made_tiny.archives["train"].parent, layout.raw_dir)
    annotate(layout, ENGINE)
    convert(layout, ENGINE, PART)
    return layout


@pytest.fixture
def converted(tmp_path: Path, sound: Layout) -> Layout:
    """The test's own copy of ``sound``."""
    return copied(sound, tmp_path / "data")


def test_nothing_begun(tmp_path: Path) -> None:
    """In an empty or absent folder nothing has begun, and download comes next,
    its path quoted for the shell.
    """
    for folder in (tmp_path, tmp_path / "not there"):
        assert states(Layout(folder)) == ["not started"] * 5
        command = status(Layout(folder)).following
        assert shlex.split(command) == ["imagenet-prep", "download", str(folder)]
    assert status(Layout(Path("-dash"))).following == "imagenet-prep download ./-dash"


def test_an_interrupted_demo_is_continued_by_demo(tmp_path: Path) -> None:
    """Its folder is marked before anything is made: the real ImageNet is not the next step."""
    layout = Layout(tmp_path / "a demo")
    save_json(layout.demo_path, {"classes": 2, "per_class": 3})
    words = shlex.split(status(layout).following)
    folder = str(layout.data_dir)
    assert words == ["imagenet-prep", "demo", folder, "--classes", "2", "--per-class", "3"]
    command(*words[1:])
    assert states(layout)[3:] == ["done", "done"]


def test_download_under_way(tmp_path: Path) -> None:
    """One archive and a partial file of another are part of a download."""
    layout = Layout(tmp_path)
    layout.raw_partial_dir.mkdir(parents=True)
    layout.archive_path(ARCHIVES["validation"]).write_bytes(b"x")
    (layout.raw_partial_dir / f"{ARCHIVES['train'].filename}.part").write_bytes(b"x")
    found = stage(layout, "download")
    assert (found.state, found.detail) == (
        "partly",
        "1 of 3 archives, 0 of them checked, 1 started",
    )
    assert status(layout).following == f"imagenet-prep download {tmp_path}"
    layout.archive_path(ARCHIVES["validation"]).unlink()
    found = stage(layout, "download")
    assert (found.state, found.detail) == (
        "partly",
        "0 of 3 archives, 0 of them checked, 1 started",
    )


def test_checked_archives(tiny_data_dir: Path) -> None:
    """An archive counts as checked as long as it has not changed since."""
    layout = Layout(tiny_data_dir)
    path = layout.archive_path(ARCHIVES["train"])
    stat = path.stat()
    entry = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "md5": "0" * 32}
    layout.checked_path.write_text(json.dumps({path.name: entry}))
    assert stage(layout, "download").detail == "3 of 3 archives, 1 of them checked"
    os.utime(path)
    assert stage(layout, "download").detail == "3 of 3 archives, 0 of them checked"
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    layout.checked_path.write_text(json.dumps({path.name: {**entry, "md5": None}}))
    assert stage(layout, "download").detail == "3 of 3 archives, 0 of them checked"


def test_conversion_under_way(converted: Layout) -> None:
    """Without a manifest the journal tells what is done,
    and the conversion's own note how many are planned.
    """
    converted.manifest_path.unlink()
    lines = converted.journal_path.read_text().splitlines(keepends=True)
    train = [line for line in lines if "train-" in line and "digest" in line]
    converted.journal_path.write_text("".join(train[:5]) + train[5][:20])
    assert stage(converted, "convert").detail == "5 of 12 shards"
    repeated = "--train-shards 8 --validation-shards 4 --allow-incomplete"
    assert status(converted).following == f"imagenet-prep convert {converted.data_dir} {repeated}"
    for damage in (b"[]", b'{"shards": 1, "options": []}', b"\xff"):
        converted.plan_path.write_bytes(damage)
        # Then nobody knows how many there should be.
        detail = stage(converted, "convert").detail
        assert detail.startswith("5 shards done; ")
        assert detail.endswith("plan.json can't be understood")
        assert status(converted).following == f"imagenet-prep convert {converted.data_dir}"


def test_the_command_that_goes_on_has_every_option(tiny_data_dir: Path, tmp_path: Path) -> None:
    """What an interrupted conversion was told is told again:
    else it would be refused, or make another set.
    """
    layout = Layout(tmp_path / "d", raw=tiny_data_dir / "raw-data")
    options = PART.replace(seed=7, check="header", resize=32, on_damaged="skip", overwrite=True)
    convert(layout, ENGINE, options)
    layout.manifest_path.unlink()
    layout.shard_path("train-00001-of-00008").unlink()
    words = shlex.split(status(Layout(layout.data_dir)).following)
    assert words[:5] == ["imagenet-prep", "convert", str(layout.data_dir), "--raw", str(layout.raw)]
    given = (
        "--set seed=7 --check header --resize 32 --on-damaged skip --overwrite --train-shards 8 "
        "--validation-shards 4"
    )
    assert " ".join(words[5:]) == f"{given} --allow-incomplete"
    assert stage(Layout(layout.data_dir), "convert").detail == "11 of 12 shards"


def test_lost_index(converted: Layout) -> None:
    """A shard without its index is not done, whatever the last verify said."""
    verify(converted, ENGINE)
    converted.index_paths("train-00001-of-00008")[1].unlink()
    found = stage(converted, "convert")
    assert (found.state, found.detail) == ("partly", "12 of 12 shards, 1 of them without an index")
    assert stage(converted, "verify").state == "partly"
    assert status(converted).following.startswith(f"imagenet-prep convert {converted.data_dir} ")


def test_what_repair_can_not_mend(converted: Layout) -> None:
    """A file too many and a damaged manifest are for the user:
    status says what to do, and verify comes after it.
    """
    stray = converted.data_dir / "train-00009-of-00008"
    stray.write_bytes(b"x")
    assert verify(converted, ENGINE).problems
    todo = f"{stray.name}: it is not a shard of this set; to do: move each stray file away"
    assert todo in stage(converted, "verify").detail
    assert status(converted).following == f"imagenet-prep verify {converted.data_dir}"
    stray.unlink()
    converted.manifest_path.write_bytes(b"{")
    assert verify(converted, ENGINE).problems
    assert "to do: remove manifest.json and" in stage(converted, "verify").detail
    assert status(converted).following.split()[1] == "convert"


def test_verified(converted: Layout) -> None:
    """A verdict counts while no shard has changed since; a quick look is not the whole of it."""
    verify(converted, ENGINE, depth="quick")
    assert stage(converted, "verify").state == "partly"
    verify(converted, ENGINE)
    assert stage(converted, "verify") == StageStatus(
        "verify", "done", f"{INCOMPLETE} repaired: 3 images"
    )
    assert status(converted).following == f"imagenet-prep report {converted.data_dir}"
    os.utime(converted.shard_path("train-00001-of-00008"))
    assert stage(converted, "verify").state == "partly"
    converted.verdict_path.write_bytes(b'{"schema": 1}')
    assert stage(converted, "verify").state == "not started"


def test_foreign_shards(tmp_path: Path) -> None:
    """Shards without any record of ours can only be verified."""
    (tmp_path / "train-00000-of-00001").write_bytes(b"")
    found = stage(Layout(tmp_path), "convert")
    assert (found.state, found.detail) == (
        "unknown",
        f"1 shard, which no file in {tmp_path / 'imagenet-prep'} lists",
    )
    assert status(Layout(tmp_path)).following == f"imagenet-prep verify {tmp_path}"


def test_damaged_state_files(converted: Layout) -> None:
    """State files that hold garbage never keep status from answering."""
    for path in (converted.manifest_path, converted.journal_path, converted.checked_path):
        path.write_bytes(b'{"\xff')
    assert stage(converted, "convert").state == "partly"


def test_a_part_without_a_manifest(converted: Layout, tmp_path: Path) -> None:
    """Of shards that are taken for a part nobody can say that they are all;
    a split that is not there is named.
    """
    for path in existing(converted.data_dir, "*-of-*"):
        shutil.copy(path, tmp_path / path.name)
    assert verify(Layout(tmp_path), ENGINE, allow_incomplete=True).problems == ()
    found = stage(Layout(tmp_path), "verify")
    unknown = "part: some records of ILSVRC2012, intact. How many there should be is not recorded."
    assert (found.state, found.detail) == ("done", unknown)
    for path in existing(tmp_path, "validation-*"):
        path.unlink()
    assert verify(Layout(tmp_path), ENGINE, allow_incomplete=True).problems == ()
    assert stage(Layout(tmp_path), "verify").detail == f"{unknown} There is no validation shard."


# the data set of a recipe -------------------------------------------------------------------------

RECIPE = (
    "source: {folders: images}\nsplits: {train: 0.7, validation: 0.3}\nshards: {train: 3, "
    "validation: 2}\n"
)


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    """A recipe, flowers.yaml, beside its folder of 24 images in 2 classes."""
    make_flowers(tmp_path / "images", 12, ("daisy", "rose"))
    (tmp_path / "flowers.yaml").write_text(RECIPE)
    return tmp_path / "flowers.yaml"


def convert_recipe(recipe: Path, layout: Layout) -> Layout:
    """The same layout, once the recipe's shards are there."""
    convert(layout, ENGINE, dataset=RecipeSet.read(recipe))
    return layout.one_set()


def test_a_damaged_set_of_a_recipe_is_repaired(flowers: Path, tmp_path: Path) -> None:
    """Lost shards, and problems that verify found, lead to repair,
    with the places that it needs.
    """
    layout = convert_recipe(flowers, Layout(tmp_path / "d", raw=tmp_path, output=tmp_path / "o"))
    repair = f"imagenet-prep repair {tmp_path}/d --raw {tmp_path} --output {tmp_path}/o"
    layout.shard_path("train-00001-of-00003").unlink()
    assert stage(layout, "convert") == StageStatus("convert", "partly", "4 of 5 shards")
    assert status(layout).following == repair.replace("repair", "convert") + f" --config {flowers}"
    assert verify(Layout(tmp_path / "o"), ENGINE).problems
    assert stage(layout, "verify").state == "problems"
    assert status(layout).following == repair


def test_a_recipe_under_way(flowers: Path, tmp_path: Path) -> None:
    """Before there is a manifest the journal tells which shards stand;
    no number is ILSVRC2012's.
    """
    layout = convert_recipe(flowers, Layout(tmp_path / "out"))
    layout.manifest_path.unlink()
    layout.shard_path("train-00001-of-00003").unlink()
    found = status(layout)
    assert found.stages == (
        StageStatus("convert", "partly", "4 of 5 shards"),
        StageStatus("verify", "not started", "the shards have not been verified yet"),
    )
    assert found.following == f"imagenet-prep convert {tmp_path}/out --config {flowers}"
    layout.journal_path.unlink()
    assert stage(layout, "convert") == StageStatus("convert", "partly", "0 of 5 shards")
    convert_recipe(flowers, layout)
    assert states(layout) == ["done", "not started"]


def test_raw_data_of_another_data_dir(tiny_data_dir: Path, tmp_path: Path) -> None:
    """The folder of --output alone tells how to go on: raw data of another DATA_DIR is named."""
    layout = Layout(tiny_data_dir, output=tmp_path / "b")
    convert(layout, ENGINE, PART)
    layout.manifest_path.unlink()
    layout.shard_path("train-00001-of-00008").unlink()
    words = shlex.split(status(Layout(tmp_path / "b")).following)[2:]
    assert words[:3] == [str(tmp_path / "b"), "--raw", str(tiny_data_dir / "raw-data")]
    assert cli.main(["convert", *words], standalone_mode=False) == 0
    assert layout.manifest_path.exists()
