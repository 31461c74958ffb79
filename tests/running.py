"""Commands of ours in processes of their own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_server import PATIENCE, run_forked

PROGRAM = (sys.executable, "-m", "imagenet_prep")


def prep(
    *words: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, nobody at the keyboard: forked from a process with all modules,
    where that is the same.

    A command that starts anew, with an import of everything, is ``subprocess.run([*PROGRAM,
    ...])``.
    """
    ran = run_forked([*map(str, words)], cwd or Path.cwd(), {**os.environ, **environment})
    if ran is not None:
        return ran
    return subprocess.run(
        [*PROGRAM, *map(str, words)],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **environment},
    )


def command(
    *words: object, status: int = 0, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command, which must end with this status."""
    ran = prep(*words, cwd=cwd, **environment)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran


def prep_here(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as ``prep`` does, but in this process, which takes a tenth of the time;
    with one worker, a thread.
    """
    from imagenet_prep import cli

    words = (*words, "--workers", 1) if words[0] in ("convert", "verify", "repair") else words
    said, told = io.StringIO(), io.StringIO()
    with threads_for_processes(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd or Path.cwd())
        patch.setattr(sys, "argv", ["imagenet-prep", *map(str, words)])
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
            status = cli._status()
    return subprocess.CompletedProcess(sys.argv, status, said.getvalue(), told.getvalue())


@contextmanager
def threads_for_processes() -> Iterator[None]:
    """Commands in this process work on threads: to fork it for each step takes most of the time."""
    from imagenet_prep import engines

    make_engine = engines.make_engine

    def make_threads(name: str, workers: int | None) -> Any:
        return make_engine("threads" if name == "processes" else name, workers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "make_engine", make_threads)
        yield


def command_here(
    *words: object, status: int = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which must end with this status."""
    ran = prep_here(*words, cwd=cwd)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran


def error_lines(result: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines of an error message."""
    lines = result.stderr.splitlines()
    return lines[next(i for i, line in enumerate(lines) if line.startswith("error: ")) :]


_HOLD = """
import sys
from pathlib import Path
from imagenet_prep.storage.lock import hold
with hold([Path(path) for path in sys.argv[1:]]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(*locks: Path) -> Iterator[int]:
    """The id of another process, which holds these locks until it is killed as the block ends."""
    call = [sys.executable, "-c", _HOLD, *locks]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield holder.pid
        holder.kill()
