"""Bounds of processor time and memory, whatever else the machine does."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple


@contextlib.contextmanager
def processor_time(seconds: float = 1.0) -> Iterator[None]:
    """Fail a block, as soon as it has computed for longer than that: waiting and other processes don't count."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it computed for more than {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Measured(NamedTuple):
    """How a command ended, what it said, and what it cost at its most: seconds of processor time, bytes of memory."""

    status: int
    out: str
    err: str
    seconds: float
    memory: int


def measure(folder: Path, *words: object, limit: int = 60) -> Measured:
    """Run a command of ours and measure it; one that waits is killed after ``limit`` seconds of real time."""
    call = [sys.executable, "-m", "imagenet_prep", *map(str, words)]
    out, err = folder / "measured.out", folder / "measured.err"
    with out.open("wb") as to_out, err.open("wb") as to_err:
        process = subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=to_out, stderr=to_err)
    status, usage = _wait(process, time.monotonic() + limit)
    process.returncode = os.waitstatus_to_exitcode(status)
    said = [path.read_text(errors="replace") for path in (out, err)]
    for path in (out, err):
        path.unlink()
    return Measured(process.returncode, *said, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _wait(process: subprocess.Popen[bytes], end: float) -> tuple[int, resource.struct_rusage]:
    while time.monotonic() < end:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            return status, usage
        time.sleep(0.01)
    process.kill()
    _, status, usage = os.wait4(process.pid, 0)
    return status, usage
