"""The rules of the tests themselves: what skips, what loops over nothing, and what CI calls."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_server import CommandServer, run_forked
from existing import existing
from running import PROGRAM

pytestmark = pytest.mark.project

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent

ONE_OF_EACH = """
import pytest

def test_good():
    pass

@pytest.mark.skipif(True, reason="no mountain here")
def test_left_out():
    pass

@pytest.mark.xfail(strict=True)
def test_expected_to_fail():
    assert False
"""


def _pytest(folder: Path, workers: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a test file in some workers under this project's own settings and conftest."""
    shutil.copy2(TESTS / "conftest.py", folder)
    (folder / "test_one.py").write_text(ONE_OF_EACH)
    options = [
        "-n",
        str(workers),
        f"--config-file={ROOT / 'pyproject.toml'}",
        f"--rootdir={folder}",
    ]
    path = os.pathsep.join([str(ROOT), str(TESTS)])
    everything = {**os.environ, "PYTHONPATH": path, **environment}
    call = [sys.executable, "-m", "pytest", *options, "test_one.py"]
    return subprocess.run(call, cwd=folder, env=everything, capture_output=True, text=True)


def test_a_skip_fails_where_it_is_not_expected(tmp_path: Path) -> None:
    """With IMAGENET_PREP_SKIPS set, a skip that it does not list is named and fails the run;
    xfail is no skip.
    """
    refused = _pytest(tmp_path, 1, IMAGENET_PREP_SKIPS="test_other.py")
    assert refused.returncode == 1
    assert "test_one.py::test_left_out: Skipped: no mountain here" in refused.stdout
    assert "test_expected_to_fail" not in refused.stdout
    assert "1 passed, 1 skipped, 1 xfailed" in refused.stdout
    listed = "test_other.py test_one.py::test_left"
    assert _pytest(tmp_path, 0, IMAGENET_PREP_SKIPS=listed).returncode == 0


@pytest.mark.parametrize(
    ("words", "status"),
    [(("convert", "--help"), 0), (("verify", "nothing"), 2), (("no-such-command",), 2)],
)
def test_a_forked_command_is_what_a_new_one_is(
    tmp_path: Path, words: tuple[str, ...], status: int
) -> None:
    """Most tests fork their commands: status and both streams are a new process's,
    in the folder and environment.
    """
    environment = {**os.environ, "COLUMNS": "100"}
    forked = run_forked(words, tmp_path, environment)
    assert forked is not None
    new = subprocess.run(
        [*PROGRAM, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        new.returncode,
        new.stdout,
        new.stderr,
    )
    assert forked.returncode == status


def test_a_command_of_another_start_is_forked_from_another_process(tmp_path: Path) -> None:
    """What decides as an interpreter starts, decides for forked commands too;
    an environment that comes once gets no process that forks.
    """
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = {**os.environ, **ascii_only, "PYTHON_OF_THIS_TEST": str(tmp_path)}
    words = ("verify", "grüße 図")
    assert run_forked(words, tmp_path, environment) is None
    forked = run_forked(words, tmp_path, environment)
    assert forked is not None
    new = subprocess.run(
        [*PROGRAM, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (forked.returncode, forked.stderr) == (new.returncode, new.stderr)
    assert forked.stderr.isascii()


def _globs_looped_over(path: Path) -> list[str]:
    """Where a loop goes straight over what a pattern finds, sorted or not."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.For | ast.comprehension):
            continue
        over = node.iter
        if isinstance(over, ast.Call) and ast.unparse(over.func) == "sorted":
            over = over.args[0]
        attribute = over.func if isinstance(over, ast.Call) else None
        if isinstance(attribute, ast.Attribute) and attribute.attr in {"glob", "rglob", "iterdir"}:
            found.append(f"{path.name}:{over.lineno}: {ast.unparse(over)}")
    return found


def test_no_loop_passes_because_there_is_nothing_to_loop_over(tmp_path: Path) -> None:
    """Tests loop over existing(folder, pattern), which wants something there;
    list(...) says that nothing is fine.
    """
    assert [
        each for path in existing(TESTS, "test_*.py") for each in _globs_looped_over(path)
    ] == []
    looping = tmp_path / "looping.py"
    looping.write_text(
        "for a in sorted(b.glob('*')):\n    pass\n[a for a in b.iterdir()]\nfor a in "
        "list(b.glob('*')): pass\n"
    )
    assert _globs_looped_over(looping) == ["looping.py:1: b.glob('*')", "looping.py:3: b.iterdir()"]
    with pytest.raises(AssertionError, match="nothing in"):
        existing(tmp_path, "*.jpg")


def test_ci_calls_what_the_readme_calls() -> None:
    """Every make command of the README that needs no account is in .ci/run, word for word."""
    told = re.findall(r"^make (?:demo|test)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert set(told) == {"make demo", "make test"}
    calls = (ROOT / ".ci" / "run").read_text()
    assert [
        command for command in told if not re.search(rf"^part {command}$", calls, re.MULTILINE)
    ] == []


IN_MEMORY = ROOT / "scripts" / "in_memory.sh"


def test_a_folder_of_ones_own_for_temporary_files_is_kept(tmp_path: Path) -> None:
    """TMPDIR goes before memory; the command's status is that of the script."""
    asked = ["sh", "-c", 'echo "$TMPDIR"; exit 3']
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    ended = subprocess.run([IN_MEMORY, *asked], env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (3, f"{tmp_path}\n")


def test_temporary_files_in_memory_go_with_the_command() -> None:
    """Where memory has no room, they lie where they always do: the command is told no folder."""
    asked = ["sh", "-c", 'test -z "$TMPDIR" || { test -d "$TMPDIR" && echo "$TMPDIR"; }; exit 3']
    environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    ended = subprocess.run([IN_MEMORY, *asked], env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (3, "")
    assert ended.stdout == "" or ended.stdout.startswith("/dev/shm/imagenet-prep-")
    assert not ended.stdout or not Path(ended.stdout.strip()).exists()


def test_hand_made_mutants_can_be_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each one changes is there once, and so is its test;
    the modules and tests that mutmut takes are there.
    """
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    mutants = importlib.import_module("durable_mutants").MUTANTS
    assert len(mutants) <= 40
    for mutant in mutants:
        assert (ROOT / "imagenet_prep" / mutant.module).read_text().count(mutant.old) == 1, mutant
        file, _, test = mutant.test.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(), mutant
    settings = (ROOT / "pyproject.toml").read_text().partition("[tool.mutmut]")[2]
    paths = re.findall(r'"((?:imagenet_prep|tests)/[\w./]+\.py)', settings)
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_process_that_forks_ends_though_another_holds_its_channel() -> None:
    """Workers that a test leaves behind were forked with the channel:
    the suite ends all the same.
    """
    server = CommandServer()
    holder = os.fork()
    if holder == 0:
        signal.pause()
    try:
        server.close()
        assert server._process.returncode == 0
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
