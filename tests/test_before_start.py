"""Before the start: what each step takes of the disk, said by --dry-run,
refused by run where it doesn't fit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from copies_of_imagenet import write_hugging_face
from existing import existing
from fault_server import FaultServer, fault_server
from kaggle_copies import tree, write_zip
from made_sets import ENGINE
from running import command, prep
from stand_ins import TOKEN, stand_in

from imagenet_prep import ConvertOptions, DownloadOptions, Layout, run
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import NetworkError, SpaceError
from imagenet_prep.fetch.addresses import host_of
from imagenet_prep.fetch.credentials import Token
from imagenet_prep.fetch.providers import HuggingFaceSite, KaggleSite
from imagenet_prep.ilsvrc2012.class_parts import find_part
from imagenet_prep.ilsvrc2012.facts import ARCHIVES, IMAGES
from imagenet_prep.model import Silent
from imagenet_prep.pipeline import foresee
from imagenet_prep.stages import convert, untar
from imagenet_prep.stages.convert import convert as make
from imagenet_prep.storage.space import Need

pytestmark = pytest.mark.once

SMALL = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)


def _by_name(needs: tuple[Need, ...]) -> dict[str, tuple[int, int]]:
    return {f"{need.step}: {need.what}": (need.size, need.files) for need in needs}


@pytest.fixture
def server(made_tiny: MadeSet) -> Iterator[FaultServer]:
    """A server of the small archives that lets everyone in."""
    with fault_server(made_tiny.archives["train"].parent) as server:
        yield server


@pytest.fixture
def with_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[int], None]:
    """What sets the number of free bytes of every file system."""
    found = os.statvfs(tmp_path)

    def set_free(free: int) -> None:
        monkeypatch.setattr(
            os, "statvfs", lambda _: os.statvfs_result((1, 1, *found[2:4], free, *found[5:]))
        )

    return set_free


# the whole of ImageNet ----------------------------------------------------------------------------


def test_every_step_of_the_whole(tmp_path: Path) -> None:
    """Without a byte of it there: the published sizes, and what folders and shards of them take."""
    found = _by_name(
        foresee(
            Layout(tmp_path / "new"), extract=True, options=ConvertOptions(read_order="shuffled")
        )
    )
    train, validation = (ARCHIVES[split].about for split in ("train", "validation"))
    assert found == {
        "download: ILSVRC2012_img_train.tar": (train, 1),
        "download: ILSVRC2012_img_val.tar": (validation, 1),
        "download: ILSVRC2012_bbox_train_v2.tar.gz": (20_000_000, 1),
        "untar: image folders of train": (train + 2048 * IMAGES["train"], 1_281_167 + 1000),
        "untar: image folders of validation": (validation + 2048 * 50_000, 50_000 + 1000),
        "annotate: boxes of train": (50_000_000, 1),
        "convert: 1,024 train shards": (train + 1024 * IMAGES["train"], 3 * 1024),
        "convert: 128 validation shards": (validation + 1024 * 50_000, 3 * 128),
    }
    assert not (tmp_path / "new").exists()


def test_what_is_there_is_counted_off(tmp_path: Path) -> None:
    """Half of an archive, class folders, boxes and shards that are there are not needed again."""
    layout = Layout(tmp_path / "data")
    layout.images_dir("train").mkdir(parents=True)
    for wnid in find_part("imagenette").labels:
        (layout.images_dir("train") / wnid).mkdir()
    (layout.raw_partial_dir / "train").mkdir(parents=True)  # untar has begun
    layout.boxes_csv.write_text("n01440764_18.JPEG,0.0060,0.2620,0.7545,0.9940\n")
    with layout.archive_path(ARCHIVES["train"]).open("wb") as file:
        file.truncate(ARCHIVES["train"].about)
    for index in range(512):
        layout.shard_path(f"train-{index:05d}-of-01024").touch()
    layout.shard_path("train-00000-of-00512").touch()
    found = _by_name(foresee(layout, extract=True, options=ConvertOptions(read_order="sequential")))
    size, images = ARCHIVES["train"].about, IMAGES["train"]
    assert [name for name in found if name.startswith("download")] == [
        "download: ILSVRC2012_img_val.tar"
    ]
    assert found["untar: image folders of train"][1] == images * 99 // 100 + 990
    assert "annotate: boxes of train" not in found
    assert found["convert: 512 train shards"] == (size // 2 + 1024 * (images // 2), 3 * 512)
    assert found["convert: bundles for train shards"] == (
        (size // 2 + 1024 * (images // 2)) // 8,
        512,
    )


# it must hold -------------------------------------------------------------------------------------


def test_no_step_takes_more(tiny_data_dir: Path) -> None:
    """What convert and untar said that they need is what they take, and no more;
    after that nothing.
    """
    layout = Layout(tiny_data_dir)
    folders = untar.foresee(layout, ENGINE)
    shards = convert.foresee(layout, ENGINE, SMALL.replace(read_order="shuffled"))
    assert not layout.state_dir.exists()
    before = set(existing(tiny_data_dir, "**/*"))
    make(layout, ENGINE, SMALL)
    made = [
        path for path in existing(tiny_data_dir, "**/*") if path not in before and path.is_file()
    ]
    (size, files), *rest = (
        (sum(need.size for need in needs), sum(need.files for need in needs))
        for needs in (shards, folders)
    )
    taken = sum(path.stat().st_size for path in made if "-of-" in path.name)
    assert size - 1024 * 380 < taken <= size
    assert len([path for path in made if "-of-" in path.name]) == files == 18
    assert convert.foresee(layout, ENGINE, SMALL) == ()
    layout.shard_path("train-00001-of-00004").unlink()
    assert _by_name(convert.foresee(layout, ENGINE, SMALL)).keys() == {"convert: 1 train shard"}
    untar.untar(layout, ENGINE)
    images = existing(layout.own_raw_dir, "*/*/*.JPEG")
    assert sum(path.stat().st_size for path in images) <= rest[0][0]
    assert sum(need.size for need in untar.foresee(layout, ENGINE)) == 0


@pytest.mark.parametrize("missing", ["download", "shards"])
def test_run_fetches_nothing_that_could_not_be_converted(
    server: FaultServer, tmp_path: Path, with_free: Callable[[int], None], missing: str
) -> None:
    """Room for archives and not for shards: refused before a byte is fetched;
    with room for both, done.
    """
    layout = Layout(tmp_path / "data")
    archives = sum(path.stat().st_size for path in existing(server.folder, "*img*"))
    fetching = DownloadOptions(base_url=server.url, check_digest=False)
    with_free(archives // 2 if missing == "download" else archives + archives // 2)
    with pytest.raises(SpaceError):
        run(layout, ENGINE, fetching=fetching, options=SMALL)
    assert server.gets() == []
    assert not layout.own_raw_dir.exists()
    with_free(4 * archives)
    progress = Silent()
    assert (
        run(layout, ENGINE, fetching=fetching, options=SMALL, progress=progress).verify.problems
        == ()
    )
    assert any(
        note.startswith(f"{host_of(server.url)}: ") and " to download" in note
        for note in progress.notes
    )
    assert any(": all steps require about " in note for note in progress.notes)


# the copies of others -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["kaggle", "huggingface"])
def test_a_site_is_asked_for_sizes_alone(tmp_path: Path, made_tiny: MadeSet, kind: str) -> None:
    """Its list of files tells the sizes; nothing is fetched or written,
    and that a part comes whole is said.
    """
    if kind == "kaggle":
        write_zip(tmp_path / "files", tree(made_tiny))
    else:
        write_hugging_face(tmp_path / "files", made_tiny)
    files = {path.name: path.read_bytes() for path in existing(tmp_path / "files", "*")}
    layout, progress = Layout(tmp_path / "data"), Silent()
    options = SMALL.replace(classes="imagenette")
    with stand_in(kind, tmp_path / "served", files) as site:
        token = Token(TOKEN, "the test")
        who = KaggleSite(site.url, token) if kind == "kaggle" else HuggingFaceSite(site.url, token)
        found = _by_name(
            foresee(layout, fetching=DownloadOptions(site=who), options=options, progress=progress)
        )
        assert site.parts() == []
    if kind == "kaggle":
        assert found["download: imagenet-object-localization-challenge.zip"] == (
            sum(map(len, files.values())),
            1,
        )
        assert "annotate: boxes of train" in found
    else:
        wanted = [len(content) for name, content in files.items() if not name.startswith("test")]
        assert found["download: 6 files of Hugging Face"] == (sum(wanted), 6)
        assert "annotate: boxes of train" not in found
        assert "convert: bundles for train shards" in found
    assert not layout.data_dir.exists()
    assert [
        note for note in progress.notes if "offers no single classes: all 1,000 are fetched" in note
    ]


def test_a_site_that_can_not_be_asked(tmp_path: Path) -> None:
    """Without a network nothing is told of the copy."""
    fetching = DownloadOptions(site=HuggingFaceSite("http://127.0.0.1:9/"))
    with pytest.raises(NetworkError, match="no connection to"):
        foresee(Layout(tmp_path / "data"), fetching=fetching, options=SMALL)


# the command line ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["run", "convert"])
def test_a_dry_run_does_nothing(tiny_data_dir: Path, stage: str) -> None:
    """It prints a table of 80 columns at most, ends with status 0,
    and leaves everything as it was.
    """
    few = ("--train-shards", "4", "--validation-shards", "2", "--allow-incomplete")

    def seen() -> list[tuple[str, int]]:
        return [
            (str(path), path.stat().st_mtime_ns) for path in existing(tiny_data_dir.parent, "**/*")
        ]

    before = seen()
    done = command(stage, tiny_data_dir, "--dry-run", *few)
    assert seen() == before
    assert done.stdout.endswith("It fits.\n")
    lines = done.stdout.splitlines()
    folder = tiny_data_dir if stage == "convert" else tiny_data_dir / "raw-data"
    assert lines[0] == f"on the file system of {folder}:"
    assert all(len(line) <= 80 for line in lines[1:])
    assert [line.split()[0] for line in lines if line.split()[0] in ("needed", "free")] == [
        "needed",
        "free",
    ]


def test_a_dry_run_that_does_not_fit(tmp_path: Path, small_disk: Path) -> None:
    """The same table, then the error, and the status of a disk that is full; nothing is made."""
    done = prep("run", small_disk / "imagenet", "--dry-run", "--output", tmp_path / "shards")
    assert list(small_disk.iterdir()) == []
    assert done.returncode == 7
    rooms = re.findall("(?m)^on the file system of (.*):$", done.stdout)
    assert rooms == [str(small_disk), str(tmp_path)]
    assert "It fits" not in done.stdout
    assert done.stderr.startswith(
        f"error: not enough space in {small_disk} for ILSVRC2012_img_train.tar, "
    )
    assert len(done.stderr.splitlines()) == 3
