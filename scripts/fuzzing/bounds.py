"""What one input costs: processor time, and memory beyond what the process had."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 1.0
"""Of processor time that an input may take: that of the wall means nothing on a machine that
does other work too.
"""

MEGABYTES = 300
"""That the process may grow by, at its highest, beyond what it had at the start."""


class CostError(Exception):
    """An input took too long or too much memory."""


class Meter:
    """Runs one input after the other, and keeps the worst of what they took."""

    def __init__(self, run: Callable[[bytes], object]) -> None:
        self._run = run
        _forget_peak()
        self._begin = _memory()
        self.inputs = 0
        self.slowest = 0.0
        self.megabytes = 0.0

    def __call__(self, data: bytes) -> None:
        """Run an input; raises CostError beyond a bound, and whatever the target finds."""
        begin = time.process_time()
        self.inputs += 1
        try:
            self._run(data)
        finally:
            seconds = time.process_time() - begin
            self.slowest = max(self.slowest, seconds)
            self.megabytes = max(self.megabytes, _peak() - self._begin)
        if seconds > SECONDS:
            raise CostError(f"{seconds:.2f} s for one input, expected at most {SECONDS:g}")
        if self.megabytes > MEGABYTES:
            raise CostError(
                f"{self.megabytes:.0f} MB more than at the start, expected at most {MEGABYTES}"
            )


_STATUS = os.open("/proc/self/status", os.O_RDONLY)
"""proc(5). What getrusage tells of a process begins with the memory of the
one that it was forked from.
"""


def _forget_peak() -> None:
    """Let the highest memory be counted from here on (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def _memory() -> float:
    """The memory that the process has now, in MB."""
    return _value(b"VmRSS:")


def _peak() -> float:
    """The highest memory that the process had since that was forgotten, in MB."""
    return _value(b"VmHWM:")


def _value(name: bytes) -> float:
    status = os.pread(_STATUS, 4096, 0)
    return int(status[status.index(name) + len(name) :].split(None, 1)[0]) / 1024
