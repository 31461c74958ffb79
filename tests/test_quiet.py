"""--quiet: every command prints its result or nothing, and what is wrong all the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_server import serve
from made_sets import make_flowers
from running import command

from imagenet_prep.cli.commands import cli
from imagenet_prep.demo.archives import MadeSet

pytestmark = pytest.mark.once

PART = "--allow-incomplete --train-shards 4 --validation-shards 2"
ACCOUNT = {"IMAGENET_USERNAME": "user", "IMAGENET_ACCESS_KEY": "key"}

CALLS = {
    "run": f"new --raw raw --base-url URL --no-digest {PART}",
    "download": "new --only boxes --base-url URL --no-digest",
    "untar": "new --raw raw",
    "annotate": "new --raw raw",
    "init": "flowers --output recipe.yaml",
    "convert": f"new --raw raw {PART}",
    "merge": "ranked",
    "repair": "made",
    "diff": "made made",
    "export": "webdataset made out",
    "demo": "new --classes 2 --per-class 2",
}
"""Commands that print nothing with --quiet."""

RESULTS = {"verify": "made", "report": "made --samples 2"}
"""Commands whose result is what they print."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Path:
    """A finished set, one that ranks made, raw data and class folders.
    Read only: work in a copy.
    """
    folder = tmp_path_factory.mktemp("quiet")
    shutil.copytree(made_tiny.archives["train"].parent, folder / "raw")
    make_flowers(folder / "flowers", 2)
    for words in ("made", "ranked --rank 0/1"):
        command("convert", *words.split(), "--raw", "raw", *PART.split(), cwd=folder)
    return folder


@pytest.fixture
def copy(tmp_path: Path, place: Path) -> Path:
    """The test's own copy."""
    return Path(shutil.copytree(place, tmp_path / "copy"))


@pytest.fixture
def url(place: Path) -> Iterator[str]:
    """A server of the raw data."""
    with serve(place / "raw", "user", "key") as address:
        yield address


def test_no_command_is_forgotten() -> None:
    """Every command that knows --quiet is in one of the tables."""
    quiet = {
        name
        for name, each in cli.commands.items()
        if any(param.name == "quiet" for param in each.params)
    }
    assert quiet == {*CALLS, *RESULTS}


@pytest.mark.parametrize("name", CALLS)
def test_a_quiet_command_prints_nothing(name: str, copy: Path, url: str) -> None:
    """Neither to standard output nor to standard error, if its status is 0."""
    words = CALLS[name].replace("URL", url).split()
    ended = command(name, *words, "-q", cwd=copy, **ACCOUNT)
    assert (ended.stdout, ended.stderr) == ("", "")


@pytest.mark.parametrize("name", RESULTS)
def test_a_quiet_result_is_only_that(name: str, copy: Path) -> None:
    """What the command is for goes to standard output, and nothing to standard error."""
    ended = command(name, *RESULTS[name].split(), "-q", cwd=copy)
    assert ended.stdout
    assert ended.stderr == ""


def test_what_repair_can_not_mend_is_told(copy: Path) -> None:
    """With --quiet, a status other than 0 comes with the findings."""
    (copy / "made" / "train-00007-of-00009").write_bytes(b"")
    ended = command("repair", "made", "-q", cwd=copy, status=3)
    assert "train-00007-of-00009" in ended.stdout
    assert ended.stderr == ""


def test_a_quiet_diff_tells_by_its_status(copy: Path) -> None:
    """Sets that differ are status 3, and --json is printed all the same."""
    command("convert", "other", "--raw", "raw", *PART.replace("4", "3").split(), "-q", cwd=copy)
    ended = command("diff", "made", "other", "-q", cwd=copy, status=3)
    assert (ended.stdout, ended.stderr) == ("", "")
    assert command(
        "diff", "made", "other", "-q", "--json", "-", cwd=copy, status=3
    ).stdout.startswith("{")
