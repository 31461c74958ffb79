"""Remedies are followed: what an error proposes is not refused in its turn, and loses nothing."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from existing import existing
from running import command, error_lines

from imagenet_prep import Layout
from imagenet_prep.cli import cli
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import SpaceError
from imagenet_prep.fetch.target import Target
from imagenet_prep.model import Silent
from imagenet_prep.shards import consuming

pytestmark = pytest.mark.once

PART = ("--allow-incomplete", "--train-shards", "4", "--validation-shards", "2", "--workers", "1")


@pytest.fixture
def place(tmp_path: Path, made_tiny: MadeSet, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the test, which is the current one,
    with archives in data/raw-data whose digests are known.
    """
    layout = Layout(tmp_path / "data")
    shutil.copytree(made_tiny.archives["train"].parent, layout.raw_dir)
    for path in existing(layout.raw_dir, "*"):
        Target(
            layout, path.name, None, {"md5": hashlib.md5(path.read_bytes()).hexdigest()}
        ).check_present(Silent())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shards(folder: Path) -> dict[str, bytes]:
    """The bytes of every shard."""
    return {path.name: path.read_bytes() for path in existing(folder, "*-of-*")}


# no space -----------------------------------------------------------------------------------------


def nothing(place: Path) -> list[str]:
    """Archives in DATA_DIR, and no shard yet."""
    return ["convert", "data"]


def raw_elsewhere(place: Path) -> list[str]:
    """Archives in another folder."""
    Path("data/raw-data").rename("raw")
    return ["convert", "data", "--raw", "raw"]


def another_output(place: Path) -> list[str]:
    """Shards in another folder."""
    return ["convert", "data", "--output", "out"]


def image_folders(place: Path) -> list[str]:
    """Folders in place of archives."""
    command("untar", "data", "--workers", 1)
    for archive in existing(place / "data/raw-data", "*_img_*.tar"):
        archive.unlink()
    return ["convert", "data"]


def hard_links(place: Path) -> list[str]:
    """Archives that have another name elsewhere."""
    for path in existing(place / "data/raw-data", "*.tar"):
        os.link(path, place / path.name)
    return ["convert", "data"]


def finished(place: Path) -> list[str]:
    """A finished set that lost a shard."""
    command("convert", "data", *PART)
    Path("data/train-00001-of-00004").unlink()
    return ["convert", "data"]


def replaced(place: Path) -> list[str]:
    """A finished set with other settings."""
    command("convert", "data", "--allow-incomplete", "--train-shards", 3, "--validation-shards", 2)
    return ["convert", "data", "--overwrite"]


@pytest.mark.parametrize(
    ("prepare", "may_consume"),
    [
        (nothing, True),
        *(
            (each, False)
            for each in (
                raw_elsewhere,
                another_output,
                image_folders,
                hard_links,
                finished,
                replaced,
            )
        ),
    ],
)
def test_consume_is_proposed_only_where_it_is_not_refused(
    prepare: Callable[[Path], list[str]],
    may_consume: bool,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full disk where --consume would fit: every command of the hint, run where there is space,
    makes the shards that it was to make.
    """
    words = [*prepare(place), *PART]
    monkeypatch.setattr(consuming, "consumed_needs", lambda *_, **__: [])
    found = os.statvfs(place)
    monkeypatch.setattr(sys, "argv", ["imagenet-prep", *words])
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda _: os.statvfs_result((1, 1, 0, 0, 0, *found[5:])))
        with pytest.raises(SpaceError) as caught:
            cli.main(words, standalone_mode=False)
    assert ("--consume" in caught.value.hint) is may_consume
    for remedy in (part.rpartition(": ")[2] for part in reversed(caught.value.hint.split("; "))):
        copy = place / f"copy-{remedy.endswith('--consume')}"
        shutil.copytree(place / "data", copy / "data")
        if Path("raw").exists():
            shutil.copytree("raw", copy / "raw")
        command(*shlex.split(remedy)[1:], cwd=copy)
        output = copy / ("out" if "--output" in words else "data")
        assert {f"train-0000{number}-of-00004" for number in range(4)} < shards(output).keys()


def test_consume_is_not_proposed_where_it_does_not_fit(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs some space too: of a small set as much as the shards do."""
    words = ["convert", "data", *PART]
    found = os.statvfs(place)
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda _: os.statvfs_result((1, 1, 9, 9, 9, *found[5:])))
        for call in (words, [*words, "--consume"]):
            patch.setattr(sys, "argv", ["imagenet-prep", *call])
            with pytest.raises(SpaceError) as caught:
                cli.main(call, standalone_mode=False)
            remedy = f"then run: {shlex.join(['imagenet-prep', *call])}"
            assert caught.value.hint.endswith(remedy)


# raw data that moved ------------------------------------------------------------------------------


def test_raw_data_that_moved_is_asked_for(place: Path) -> None:
    """The hint is never the command that was refused, nor names a folder that is gone;
    with the right one it works.
    """
    Path("data/raw-data").rename("raw")
    command("convert", "data", "--raw", "raw", *PART)
    made = shards(place / "data")
    Path("data/train-00001-of-00004").unlink()
    Path("data").rename("moved")
    known = error_lines(command("convert", "moved", *PART, status=4))[-1]
    assert f"--raw {place / 'raw'} " in known
    Path("raw").rename("raw-moved")
    Path("empty").mkdir()
    for more in ([], ["--raw", "empty"]):
        hint = error_lines(command("convert", "moved", *more, *PART, status=4))[-1]
        assert "--raw FOLDER " in hint
    command(*shlex.split(hint.replace("FOLDER", "raw-moved"))[1:])
    assert shards(place / "moved") == made
