"""--raw: images are read from its folder and nowhere else; boxes may be where download put them."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from pathlib import Path

import pytest
from made_sets import ENGINE, PART, make_flowers
from running import command, command_here, error_lines, prep_here

from imagenet_prep import annotate, convert, repair, untar
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012.box_search import find_annotations
from imagenet_prep.ilsvrc2012.facts import ARCHIVES, SPLITS
from imagenet_prep.ilsvrc2012.raw_data import find_source
from imagenet_prep.model import ProblemKind
from imagenet_prep.pipeline import run
from imagenet_prep.stages.status import status
from imagenet_prep.stages.verify_raw import verify_raw
from imagenet_prep.storage import lock
from imagenet_prep.storage.layout import Layout

CALLS = {
    "convert": lambda layout: convert(layout, ENGINE, PART),
    "verify": lambda layout: verify_raw(layout, ENGINE, options=PART, depth="quick"),
    "untar": lambda layout: untar(layout, ENGINE),
    "run": lambda layout: run(layout, ENGINE, options=PART),
}


@pytest.fixture(params=["nothing", "flowers"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder without an image of ImageNet."""
    folder = tmp_path / "other"
    folder.mkdir()
    if request.param == "flowers":
        make_flowers(folder / "images", 2)
    return folder


def files(folder: Path) -> set[Path]:
    """Every file below a folder except locks."""
    paths = list(folder.rglob("*"))
    return {path for path in paths if path.is_file() and path.name != "lock"}


@pytest.mark.parametrize("name", CALLS)
def test_raw_data_of_the_data_dir_never_replaces_a_raw_folder(
    tiny_data_dir: Path, other: Path, name: str
) -> None:
    """A folder without images is refused by name, though DATA_DIR/raw-data has all of them."""
    before = files(tiny_data_dir)
    with pytest.raises(InputError) as caught:
        CALLS[name](Layout(tiny_data_dir, raw=other))
    assert str(other) in caught.value.what
    assert str(tiny_data_dir / "raw-data") in caught.value.hint
    assert files(tiny_data_dir) == before


@pytest.mark.parametrize("form", ["archives", "class tars", "Kaggle's zip"])
def test_no_form_of_images_is_read_beside_a_raw_folder(
    tmp_path: Path, tiny_data_dir: Path, form: str
) -> None:
    """Only boxes, which a copy may lack, are found where download put them."""
    own = tiny_data_dir / "raw-data"
    if form == "class tars":
        shutil.unpack_archive(
            own / ARCHIVES["train"].filename, own / ARCHIVES["train"].filename.removesuffix(".tar")
        )
    elif form == "Kaggle's zip":
        (own / "imagenet-object-localization-challenge.zip").touch()
    if form != "archives":
        for split in SPLITS:
            (own / ARCHIVES[split].filename).unlink()
    (tmp_path / "raw").mkdir()
    layout = Layout(tiny_data_dir, raw=tmp_path / "raw")
    assert find_source(Layout(tiny_data_dir), "train") is not None
    assert find_source(layout, "train") is None
    assert find_annotations(layout, "train") is not None


def test_a_finished_set_is_not_called_the_set_of_another_folder(
    tmp_path: Path, tiny_data_dir: Path
) -> None:
    """Other images in --raw are other inputs, also if a shard is gone; repair takes none of
    DATA_DIR/raw-data for them.
    """
    layout = Layout(tiny_data_dir)
    convert(layout, ENGINE, PART)
    made = make(tmp_path / "made", classes=4, per_class=5, validation=12, tiny=True)
    other = Layout(tiny_data_dir, raw=made.archives["train"].parent)
    with pytest.raises(UsageError, match="made from other inputs"):
        convert(other, ENGINE, PART)
    lost = layout.shard_path("train-00000-of-00008")
    lost.unlink()
    with pytest.raises(UsageError, match="made from other inputs"):
        convert(other, ENGINE, PART)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no train images in .*/empty"):
        repair(
            Layout(tiny_data_dir, raw=tmp_path / "empty"),
            ENGINE,
            {lost.name: [ProblemKind.MISSING_SHARD]},
        )
    assert not lost.exists()


def test_run_downloads_no_image_that_nothing_reads(
    tmp_path: Path, tiny_data_dir: Path, made_tiny: MadeSet
) -> None:
    """A raw folder without one split is refused before the download; no server is asked."""
    raw = tmp_path / "raw"
    raw.mkdir()
    shutil.copy(made_tiny.archives["train"], raw)
    with pytest.raises(InputError, match="raw lacks validation images") as caught:
        run(Layout(tiny_data_dir, raw=raw), ENGINE, options=PART)
    assert caught.value.hint.startswith(
        f"put them into {raw}; or leave out --raw, and run downloads"
    )


def test_status_counts_the_raw_folder_that_is_named(tmp_path: Path, tiny_data_dir: Path) -> None:
    """Archives are those that convert would read; folders of DATA_DIR/raw-data are no part of
    another folder; the next command is about DATA_DIR/raw-data.
    """
    untar(Layout(tiny_data_dir), ENGINE)
    (tmp_path / "raw").mkdir()
    found = status(Layout(tiny_data_dir, raw=tmp_path / "raw"))
    download, extracted, *_ = found.stages
    assert (download.state, download.detail) == ("partly", "1 of 3 archives, 0 of them checked")
    assert extracted.state == "unknown"
    assert f"{tiny_data_dir / 'raw-data'}, which --raw replaces" in extracted.detail
    assert " of " not in extracted.detail
    assert found.following == f"imagenet-prep status {tiny_data_dir}"


def test_the_command_names_the_folder(tmp_path: Path, tiny_data_dir: Path) -> None:
    """By the command line: the exit status is 4, and no total of other images is printed."""
    flowers = make_flowers(tmp_path / "flowers", 3)
    words = ("verify", tiny_data_dir, "--raw", flowers, "--depth", "quick", "--allow-incomplete")
    ended = command(*words, status=4)
    assert ended.stdout == ""
    assert f"no images of ImageNet in {flowers}" in ended.stderr


def test_the_advice_on_data_dirs_own_raw_data_names_data_dir(tiny_data_dir: Path) -> None:
    """Its raw-data alone is named; download refuses that folder as DATA_DIR."""
    folder = tiny_data_dir / "raw-data"
    ended = command("verify", "--raw", folder, "--depth", "quick", status=3)
    assert f"imagenet-prep download {tiny_data_dir} --only " in ended.stdout
    assert f"download {folder}" not in ended.stdout


@pytest.mark.parametrize("name", ["annotate", "convert", "run", "untar"])
def test_a_data_dir_in_place_of_its_raw_data_is_not_to_be_downloaded_again(
    tmp_path: Path, tiny_data_dir: Path, name: str
) -> None:
    """The archives are one folder below the one that --raw names: the advice names that."""
    calls = {**CALLS, "annotate": lambda layout: annotate(layout, ENGINE)}
    with pytest.raises(InputError) as caught:
        calls[name](Layout(tmp_path / "new", raw=tiny_data_dir))
    below = tiny_data_dir / "raw-data"
    assert caught.value.hint == f"run the same command with --raw {below}"
    calls[name](Layout(tmp_path / "new", raw=below))


@pytest.fixture
def read_only(tiny_data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DATA_DIR on a file system that is mounted read-only."""
    access = os.access

    def refuse(path: Path) -> None:
        if path.is_relative_to(tiny_data_dir):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    def is_allowed(path: Path, mode: int) -> bool:
        is_below = Path(path).is_relative_to(tiny_data_dir)
        return access(path, mode) and not (is_below and mode & os.W_OK)

    monkeypatch.setattr(lock, "refuse_blocked", refuse)
    monkeypatch.setattr(os, "access", is_allowed)
    return tiny_data_dir


@pytest.mark.parametrize("stage", ["annotate", "convert", "run", "run --output", "untar"])
def test_a_data_dir_that_can_only_be_read_is_read_from_another(
    tmp_path: Path, read_only: Path, stage: str
) -> None:
    """The advised command reads the raw data there and writes elsewhere."""
    stage, *output = stage.split()
    options = ["--allow-incomplete"] if stage in ("convert", "run") else []
    if output:
        options += [*output, tmp_path / "shards"]
    hint = error_lines(prep_here(stage, read_only, *options))[-1]
    _, *advised = shlex.split(hint.partition("folder: ")[2])
    assert advised[:2] == [stage, "NEW_FOLDER"]
    assert advised[-2:] == ["--raw", str(read_only / "raw-data")]
    command_here(*advised, cwd=tmp_path)


def test_shards_of_a_data_dir_that_can_only_be_read_go_elsewhere(
    tmp_path: Path, read_only: Path
) -> None:
    """Convert with --output writes nothing into DATA_DIR, not even a lock."""
    before = files(read_only)
    convert(Layout(read_only, output=tmp_path / "shards"), ENGINE, PART)
    assert files(read_only) == before
