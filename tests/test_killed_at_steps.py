"""A command that was killed after any of its steps: its next run leaves no file of the killed one,
and two ranks that save one plan take nothing from each other.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from existing import existing
from power_cut import Commands, Tree, build, flat, read
from scenarios import FOLDER, Recording, record_scenario, scenarios
from syscalls import Operation, require_strace

from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import BusyError
from imagenet_prep.records import ShardWriter

pytestmark = pytest.mark.once

CONVERT = (
    "convert",
    ".",
    "--allow-incomplete",
    *("--train-shards", "2", "--validation-shards", "1", "--workers", "1"),
)
RECIPE = ("convert", ".", "--config", "recipe.yaml", "--workers", "1")
ROWS = """
import os, pathlib

def rows():
    for path in sorted(pathlib.Path("photos").iterdir()):
        yield {"image": path.read_bytes(), "name": path.name, "label": len(path.name) % 3}
    if os.path.exists("kill"):
        os.kill(os.getpid(), 9)
"""

SAMPLE = 4
"""So many steps of a command are tried here, except of a convert and a merge, which have all of
the places that write a plan.
"""

FOLLOWING = {
    "rank": ((*CONVERT, "--rank", "1/2"), ("merge", ".")),
    "overwrite-rank": ((*RECIPE, "--overwrite", "--rank", "1/2"), ("merge", ".")),
}
"""The commands that finish a set after a scenario."""


SCENARIOS = scenarios(shards=2, workers=1)


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    """What runs imagenet-prep many times."""
    with Commands() as commands:
        yield commands


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeSet:
    """A few tiny images."""
    folder = tmp_path_factory.mktemp("made")
    return make(folder, classes=2, per_class=4, validation=4, tiny=True)


def run_all(commands: Commands, lines: Sequence[Sequence[str]], folder: Path) -> None:
    """Run commands one after another; each ends with status 0."""
    for line in lines:
        status, printed = commands.run(line, folder)
        assert status == 0, printed


def without_marks(paths: Iterable[str]) -> frozenset[str]:
    """The paths with the numbers that differ between runs replaced."""
    marks = re.compile(r"[0-9a-f]{16}|[0-9]+-[0-9a-f]{8}\b")
    return frozenset(marks.sub("MARK", path) for path in paths)


def steps_with_strange_files(
    recording: Recording, known: frozenset[str]
) -> Iterator[tuple[Operation, Tree]]:
    """What lies there after each step that leaves files which a finished set lacks:
    once for each set of their names.
    """
    seen: set[frozenset[str]] = set()
    for operation, disk in recording.steps():
        tree = disk.tree()
        strange = without_marks(flat(tree)) - known
        if strange and strange not in seen:
            seen.add(strange)
            yield operation, tree


@pytest.mark.parametrize(
    "name", ["convert", "consume", "merge", "rank", "overwrite-rank", "overwrite"]
)
def test_nothing_stays_of_a_killed_run(
    name: str, tmp_path: Path, made: MadeSet, commands: Commands
) -> None:
    """After a kill at any step and the same command again,
    the folder has the files of an unbroken run and no other.
    """
    require_strace()
    scenario = SCENARIOS[name]
    recording = record_scenario(scenario, tmp_path, made, commands)
    work = tmp_path / name / "work" / FOLDER  # the same path: the plan holds it
    build(recording.end().tree(), work)
    run_all(commands, FOLLOWING.get(name, ()), work)
    known = without_marks(read(work))
    steps = list(steps_with_strange_files(recording, known))
    assert steps
    if name not in ("convert", "merge"):
        steps = random.Random(name).sample(steps, min(SAMPLE, len(steps)))
    for operation, tree in steps:
        shutil.rmtree(work)
        build(tree, work)
        run_all(commands, (scenario.command, *FOLLOWING.get(name, ())), work)
        assert without_marks(read(work)) == known, f"killed after {operation}"


def test_nothing_stays_of_rows_that_were_not_sealed(
    tmp_path: Path, made: MadeSet, commands: Commands
) -> None:
    """A kill while a Python function's rows are written: the next run removes what is there of
    them.
    """
    SCENARIOS["recipe"].prepare(tmp_path, made, commands)
    (tmp_path / "mine.py").write_text(ROWS)
    (tmp_path / "recipe.yaml").write_text("source: {python: 'mine:rows'}\nshards: 2\n")
    (tmp_path / "kill").touch()
    convert = (*RECIPE, "--allow-python")
    assert commands.run(convert, tmp_path)[0] == -signal.SIGKILL
    rows = tmp_path / "imagenet-prep/rows"
    (unfinished,) = rows.iterdir()
    (tmp_path / "kill").unlink()
    run_all(commands, [convert], tmp_path)
    (sealed,) = rows.iterdir()
    assert sealed != unfinished


KILLED_READER = """
import os, signal, sys
import imagenet_prep

def kill(event, values):
    if event == "os.rename" and sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill)
print(imagenet_prep.open(".", sys.argv[1])[0].features)
"""


def test_nothing_stays_of_a_cached_index(tmp_path: Path) -> None:
    """A kill while the offsets of a shard without an index are cached:
    the next process that caches some removes what is there of them.
    """
    for name in ("first", "second"):
        with ShardWriter(tmp_path / name, shards=1) as writer:
            writer.write({"image": b"record"})
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    cache = tmp_path / "cache/imagenet-prep/index"
    for name, manner, status in (("first", "kill", -signal.SIGKILL), ("second", "", 0)):
        call = [sys.executable, "-c", KILLED_READER, name, manner]
        ended = subprocess.run(call, cwd=tmp_path, env=environment, check=False)
        assert ended.returncode == status
        (cached,) = cache.iterdir()
    assert cached.suffix == ".idx"


# ranks at the same time ---------------------------------------------------------------------------

STOPPED = """
import os, signal, sys
from imagenet_prep.cli import main

def stop(event, values):
    if event == "open" and "/boxes.bin." in str(values[0]) and not stopped:
        stopped.append(True)
        os.kill(os.getpid(), signal.SIGSTOP)

stopped = []
sys.addaudithook(stop)
main()
"""
"""The command, stopped before it creates a column of the plan, with others before it saved."""


@contextlib.contextmanager
def stopped_rank(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Rank 1 of 2, which waits in the middle of saving the plan; it is killed at the end."""
    call = [sys.executable, "-c", STOPPED, *CONVERT, "--rank", "1/2"]
    process = subprocess.Popen(call, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        yield process
    finally:
        process.kill()
        process.wait()


def go_on(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Let a stopped process come to its end; its status, and what it printed."""
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate(timeout=300)
    return process.returncode, errors


def test_ranks_that_save_one_plan_spare_each_other(
    tmp_path: Path, made: MadeSet, commands: Commands
) -> None:
    """A rank that saves the plan while another one does so and makes its shards finishes its own;
    the merged set is that of an unbroken run, with no other file.
    """
    archives, ranks, whole = SCENARIOS["convert"].prepare, tmp_path / "ranks", tmp_path / "whole"
    archives(ranks, made, commands)
    archives(whole, made, commands)
    with stopped_rank(ranks) as process:
        run_all(commands, [(*CONVERT, "--rank", "0/2")], ranks)
        status, errors = go_on(process)
        assert status == 0, errors
    run_all(commands, [("merge", ".")], ranks)
    run_all(commands, [CONVERT], whole)
    assert without_marks(read(ranks)) == without_marks(read(whole))
    for shard in existing(whole, "*-of-*"):
        assert (ranks / shard.name).read_bytes() == shard.read_bytes()


def test_a_rank_whose_plan_gave_way_says_so(
    tmp_path: Path, made: MadeSet, commands: Commands
) -> None:
    """A rank that still saves its plan when a run with other settings claims the folder ends as
    busy, and changes nothing.
    """
    SCENARIOS["convert"].prepare(tmp_path, made, commands)
    with stopped_rank(tmp_path) as process:
        run_all(commands, [(*CONVERT, "--set", "seed=7")], tmp_path)
        finished = read(tmp_path)
        status, errors = go_on(process)
        assert status == BusyError.exit_code, errors
    assert "another run has started" in errors
    assert read(tmp_path) == finished
