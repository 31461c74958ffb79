"""Bounds of processor time and memory, whatever else the machine does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

_LOADED = 4
"""What takes a second of processor time alone takes up to so many beside others:
they share caches and cores.
"""


@contextlib.contextmanager
def processor_time(seconds: float = 1.0) -> Iterator[None]:
    """Fail a block, as soon as it has computed for far longer than that:
    waiting and other processes don't count.
    """
    seconds *= _LOADED

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it computed for more than {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextlib.contextmanager
def bounded(seconds: int = 10) -> Iterator[None]:
    """End what hangs: the alarm raises here, whatever is waited for."""

    def ring(number: int, frame: object) -> None:
        raise AssertionError(f"still not at its end after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has forked, and wait until none is left:
    till then, one may hold a lock.
    """
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.killpg(process.pid, signal.SIGKILL)
            process.poll()  # who is dead and was not waited for is still one of the group
            time.sleep(0.002)


class Measured(NamedTuple):
    """How a command ended, what it said, and what it cost at its most:
    seconds of processor time, bytes of memory.
    """

    status: int
    out: str
    err: str
    seconds: float
    memory: int


_LAUNCHER = """
import json, os, subprocess, sys, time
result, limit, *call = sys.argv[1:]
process = subprocess.Popen(call, stdin=subprocess.DEVNULL)
end = time.monotonic() + float(limit)
pid = 0
while not pid:
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        time.sleep(0.01)
        if time.monotonic() > end:
            os.kill(process.pid, 9)
process.returncode = os.waitstatus_to_exitcode(status)
with open(result, "w") as file:
    json.dump([process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024], file)
"""
# A process begins with the peak of the one that starts it: that of pytest, which may have loaded
# TensorFlow, is no command's. So a small one stands between.


def measure(folder: Path, *words: object, limit: int = 60) -> Measured:
    """Run a command of ours and measure it; one that waits is killed after
    ``limit`` seconds of real time.
    """
    out, err, result = (folder / f"measured.{name}" for name in ("out", "err", "result"))
    call = [
        sys.executable,
        "-c",
        _LAUNCHER,
        result,
        limit,
        sys.executable,
        "-m",
        "imagenet_prep",
        *words,
    ]
    with out.open("wb") as to_out, err.open("wb") as to_err:
        subprocess.run(list(map(str, call)), stdout=to_out, stderr=to_err, check=True)
    said = [path.read_text(errors="replace") for path in (out, err)]
    status, seconds, memory = json.loads(result.read_bytes())
    for path in (out, err, result):
        path.unlink()
    return Measured(status, *said, seconds, memory)
