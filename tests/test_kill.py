"""kill -9 of a whole process group at random moments:
a rerun ends with the bytes of an unbroken run.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from bounded import kill_group
from existing import existing
from file_server import serve
from power_cut import Commands
from running import command
from scenarios import scenarios

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.storage.layout import parse_shard_name

pytestmark = pytest.mark.once

CONVERT = (
    "--allow-incomplete",
    "--train-shards",
    "32",
    "--validation-shards",
    "16",
    "--workers",
    "2",
    "--quiet",
)


def run(
    arguments: Sequence[str], environment: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start the command line in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "imagenet_prep", *arguments],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, the record of checks left out: it holds times."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in existing(folder, "**/*")
        if path.is_file() and path.name not in ("checked.json", "annotate.json", "journal.jsonl")
    }


def kill_often(
    count: int,
    arguments: Sequence[str],
    data_dir: Path,
    prepare: Callable[[], None],
    environment: dict[str, str] | None = None,
) -> dict[str, str]:
    """Kill the command ``count`` times, each time run it to its end and compare;
    return what an unbroken run leaves.
    """
    prepare()
    began = time.monotonic()
    assert run(["--version"]).wait() == 0
    started = time.monotonic()
    assert run(arguments, environment).wait() == 0
    begin, took = started - began, time.monotonic() - started
    expected = digests(data_dir)
    draw = random.Random(count)
    met = tries = 0
    while met < count:
        tries += 1
        assert tries < 10 * count, "the kills come too late"
        prepare()
        moment, start = draw.uniform(min(begin, took / 2), took), time.monotonic()
        process = run(arguments, environment)
        while time.monotonic() - start < moment and process.poll() is None:
            for path in list(
                data_dir.glob("*-of-*")
            ):  # none yet, or some: only whole shards stand under final names
                assert parse_shard_name(path.name)
            time.sleep(0.002)
        if process.poll() is None:
            met += 1
        else:  # it had come to its end before the kill
            took = min(took, time.monotonic() - start)
        kill_group(process)
        command(*arguments, **(environment or {}))
        assert digests(data_dir) == expected
    return expected


def fresh(data_dir: Path, archives: Sequence[Path]) -> None:
    """An empty DATA_DIR with these archives."""
    shutil.rmtree(data_dir, ignore_errors=True)
    (data_dir / "raw-data").mkdir(parents=True)
    for archive in archives:
        os.link(archive, data_dir / "raw-data" / archive.name)


@pytest.mark.parametrize(
    ("verb", "options", "sign", "count"),
    [("convert", CONVERT, "-of-", 3 * 48), ("untar", ("--workers", "2", "--quiet"), ".JPEG", 380)],
)
def test_a_command_survives_kills(
    tmp_path: Path, made_tiny: MadeSet, verb: str, options: tuple[str, ...], sign: str, count: int
) -> None:
    """Shards, with two files of index each, and image folders after a kill and a rerun:
    those of an unbroken run.
    """
    data_dir = tmp_path / "data"
    archives = [made_tiny.archives["train"], made_tiny.archives["validation"]]
    expected = kill_often(
        4, [verb, str(data_dir), *options], data_dir, lambda: fresh(data_dir, archives)
    )
    assert sum(sign in name for name in expected) == count


@pytest.mark.parametrize("name", ["grow", "overwrite", "overwrite-grown"])
def test_a_set_that_changes_survives_kills(tmp_path: Path, made_tiny: MadeSet, name: str) -> None:
    """A set that grows, or that --overwrite replaces,
    is after a kill and a rerun that of an unbroken run.
    """
    before, data_dir = tmp_path / "before", tmp_path / "data"
    scenario = scenarios(shards=8, workers=2)[name]
    with Commands() as commands:
        scenario.prepare(before, made_tiny, commands)

    def prepare() -> None:
        shutil.rmtree(data_dir, ignore_errors=True)
        shutil.copytree(before, data_dir)

    places = {".": str(data_dir), "recipe.yaml": str(data_dir / "recipe.yaml")}
    kill_often(3, [places.get(word, word) for word in scenario.command], data_dir, prepare)


def test_download_survives_kills(tmp_path: Path, made: MadeSet) -> None:
    """The archives after a kill and a rerun are the server's, byte for byte."""
    source = tmp_path / "served"
    source.mkdir()
    for path in made.archives.values():
        os.link(path, source / path.name)
    data_dir = tmp_path / "data"
    with serve(source, "user", "secret") as url:
        environment = {"IMAGENET_USERNAME": "user", "IMAGENET_ACCESS_KEY": "secret"}
        arguments = ["download", str(data_dir), "--base-url", url, "--no-digest", "--quiet"]
        expected = kill_often(
            4, arguments, data_dir, lambda: shutil.rmtree(data_dir, ignore_errors=True), environment
        )
    assert len(expected) == 3


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_soon_and_says_how_to_go_on(
    tmp_path: Path, made: MadeSet, number: signal.Signals, status: int
) -> None:
    """SIGINT and SIGTERM end the run within seconds with 130 and 143,
    print the command, and leave no worker.
    """
    data_dir = tmp_path / "data"
    fresh(data_dir, [made.archives["train"], made.archives["validation"]])
    arguments = ["convert", str(data_dir), *CONVERT[:-1], "--check", "decode"]
    process = subprocess.Popen(
        [sys.executable, "-m", "imagenet_prep", *arguments],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any(data_dir.glob("train-*")):
        time.sleep(0.005)
    start = time.monotonic()
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=600)
    assert time.monotonic() - start < 20
    assert process.returncode == status
    assert f"imagenet-prep convert {data_dir}" in errors
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    command("convert", data_dir, *CONVERT)
