"""kill -9 of a whole process group at random moments: a rerun ends with the bytes of an unbroken run."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.server import serve
from imagenet_prep.layout import parse_shard_name

CONVERT = ("--allow-incomplete", "--train-shards", "32", "--validation-shards", "16", "--workers", "2", "--quiet")


def run(arguments: Sequence[str], environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
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
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("checked.json", "annotate.json", "journal.jsonl")
    }


def kill_and_rerun(
    arguments: Sequence[str], data_dir: Path, moment: float, environment: dict[str, str] | None = None
) -> bool:
    """Kill the command's group after ``moment`` seconds, then run it to its end; say whether the kill met it alive."""
    process = run(arguments, environment)
    end = time.monotonic() + moment
    while time.monotonic() < end and process.poll() is None:
        for path in data_dir.glob("*-of-*"):  # at every moment, only whole shards stand under final names
            assert parse_shard_name(path.name)
        time.sleep(0.002)
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert run(arguments, environment).wait() == 0
    return alive


def moments(count: int, arguments: Sequence[str], environment: dict[str, str] | None = None) -> list[float]:
    """Random moments within the time that an unbroken run takes, start-up left out."""
    start = time.monotonic()
    assert run(arguments, environment).wait() == 0
    took = time.monotonic() - start
    start = time.monotonic()
    assert run(["--version"]).wait() == 0
    begin = time.monotonic() - start
    draw = random.Random(count)
    return [draw.uniform(min(begin, took / 2), took) for _ in range(count)]


def fresh(data_dir: Path, archives: Sequence[Path]) -> None:
    """An empty DATA_DIR with these archives."""
    shutil.rmtree(data_dir, ignore_errors=True)
    (data_dir / "raw-data").mkdir(parents=True)
    for archive in archives:
        os.link(archive, data_dir / "raw-data" / archive.name)


def test_convert_survives_twenty_kills(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Shards, indexes and manifest after a kill and a rerun are those of an unbroken run."""
    data_dir = tmp_path / "data"
    archives = [made_tiny.archives["train"], made_tiny.archives["validation"]]
    arguments = ["convert", str(data_dir), *CONVERT]
    fresh(data_dir, archives)
    times = moments(20, arguments)
    expected = digests(data_dir)
    assert sum("-of-" in name for name in expected) == 2 * 48  # shards and their indexes
    met = 0
    for moment in times:
        fresh(data_dir, archives)
        met += kill_and_rerun(arguments, data_dir, moment)
        assert digests(data_dir) == expected
    assert met >= 10


def test_untar_survives_fifteen_kills(tmp_path: Path, made_tiny: MadeSet) -> None:
    """The image folders after a kill and a rerun are those of an unbroken run."""
    data_dir = tmp_path / "data"
    archives = [made_tiny.archives["train"], made_tiny.archives["validation"]]
    arguments = ["untar", str(data_dir), "--workers", "2", "--quiet"]
    fresh(data_dir, archives)
    times = moments(15, arguments)
    expected = digests(data_dir)
    assert sum(name.endswith(".JPEG") for name in expected) == 380
    met = 0
    for moment in times:
        fresh(data_dir, archives)
        met += kill_and_rerun(arguments, data_dir, moment)
        assert digests(data_dir) == expected
    assert met >= 7


def test_download_survives_fifteen_kills(tmp_path: Path, made: MadeSet) -> None:
    """The archives after a kill and a rerun are the server's, byte for byte; what was kept is not fetched again."""
    source = tmp_path / "served"
    source.mkdir()
    for path in made.archives.values():
        os.link(path, source / path.name)
    data_dir = tmp_path / "data"
    with serve(source, "user", "secret") as url:
        environment = {"IMAGENET_USERNAME": "user", "IMAGENET_ACCESS_KEY": "secret"}
        arguments = ["download", str(data_dir), "--base-url", url, "--no-digest", "--quiet"]
        times = moments(15, arguments, environment)
        expected = digests(data_dir)
        assert len(expected) == 3
        met = 0
        for moment in times:
            shutil.rmtree(data_dir)
            met += kill_and_rerun(arguments, data_dir, moment, environment)
            assert digests(data_dir) == expected
    assert met >= 7


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_soon_and_says_how_to_go_on(
    tmp_path: Path, made: MadeSet, number: signal.Signals, status: int
) -> None:
    """SIGINT and SIGTERM end the run within seconds with 130 and 143, print the command, and leave no worker."""
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
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - start < 5
    assert process.returncode == status
    assert f"imagenet-prep convert {data_dir}" in errors
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert run(["convert", str(data_dir), *CONVERT]).wait() == 0
