"""make_progress: shows on standard error how far the work is: a bar, or plain lines for logs."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from imagenet_prep.cli.conversation import conversation
from imagenet_prep.cli.terminal import (
    escaped_sentences,
    fitted,
    log_lines,
    say,
    tell,
    terminal_width,
)
from imagenet_prep.escaping import escaped
from imagenet_prep.text import size_text

if TYPE_CHECKING:
    from tqdm import tqdm

    from imagenet_prep.model import Progress

PLAIN_SECONDS = 10.0
"""Seconds between plain lines."""


class Bars:
    """Draws one bar at a time on standard error."""

    _drawn: ClassVar[Bars | None] = None

    def __init__(self) -> None:
        self._bar: tqdm[Any] | None = None
        Bars._drawn = self

    @classmethod
    def abandon(cls) -> None:
        """Leave the bar unchanged: tqdm would draw it again at Python's exit,
        below the last line.
        """
        if cls._drawn is not None and cls._drawn._bar is not None:
            cls._drawn._bar.disable = True

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Start a bar."""
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # its monitor is a thread, and workers fork

        is_bytes = unit == "B"
        self._bar = tqdm(
            desc=escaped(label),
            total=total,
            initial=done,
            unit=unit if is_bytes else f" {unit}",
            unit_scale=is_bytes,
            dynamic_ncols=True,
            smoothing=0.05,
        )

    def advance(self, amount: int = 1) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(amount)

    def end(self) -> None:
        """Leave the bar at its last value."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            log_lines(text)
            lines = fitted(escaped_sentences(text), terminal_width(sys.stderr))
            self._bar.write("\n".join(lines), file=sys.stderr)
        else:
            tell(text, error=True)


class Lines:
    """Writes a plain line every ten seconds, and one at each end, for logs; ``write`` gets each."""

    def __init__(self, write: Callable[[str], None] = functools.partial(say, error=True)) -> None:
        self._write_line = write
        self._label = ""
        self._unit = ""
        self._total: int | None = None
        self._done = self._initial = 0
        self._started = self._written = 0.0

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Start counting."""
        self._label, self._total, self._unit = label, total, unit
        self._done = self._initial = done
        self._started = self._written = time.monotonic()

    def advance(self, amount: int = 1) -> None:
        """Count, and write a line when one is due."""
        self._done += amount
        now = time.monotonic()
        if now - self._written >= PLAIN_SECONDS:
            self._written = now
            self._write(now)

    def end(self) -> None:
        """Write the last line."""
        if self._label:
            self._write(time.monotonic())
            self._label = ""

    def note(self, text: str) -> None:
        """Write a line."""
        tell(text, error=True)

    def _write(self, now: float) -> None:
        rate = (self._done - self._initial) / max(now - self._started, 1e-9)
        line = f"{self._label}: "
        if self._total is None:
            line += self._amount(self._done)
        elif self._unit == "B":
            line += f"{self._amount(self._done)} of {self._amount(self._total)}"
        else:
            line += f"{self._done:,} of {self._amount(self._total)}"
        if self._done > self._initial:
            line += f", {self._amount(rate)}/s"
            if self._total is not None and self._total > self._done:
                line += f", {timedelta(seconds=int((self._total - self._done) / rate))} left"
        self._write_line(line)

    def _amount(self, amount: float) -> str:
        if self._unit == "B":
            return size_text(amount)
        count = f"{amount:,.0f}"
        unit = self._unit.removesuffix("s") if count == "1" else self._unit
        return f"{count} {unit}"


class LoggedBars(Bars):
    """Draws bars, and writes plain lines to the log."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = Lines(log_lines)

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Start a bar, and start counting."""
        super().begin(label, total, unit, done)
        self._lines.begin(label, total, unit, done)

    def advance(self, amount: int = 1) -> None:
        """Move the bar, and write a line when one is due."""
        super().advance(amount)
        self._lines.advance(amount)

    def end(self) -> None:
        """Leave the bar at its last value, and write the last line."""
        super().end()
        self._lines.end()


def make_progress(quiet: bool) -> Progress:
    """The progress display that suits standard error."""
    if quiet:
        from imagenet_prep.model import Silent

        return Silent()
    progress: Progress = Lines()
    if terminal_width(sys.stderr):  # a width of 0, as in some containers, shows no bar
        progress = LoggedBars() if conversation().log else Bars()
    _note_log(progress)
    return progress


def _note_log(progress: Progress) -> None:
    """Show as notes what engines log: the machines of a cluster, and what they did."""
    import logging

    class _Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            progress.note(record.getMessage())

    log = logging.getLogger("imagenet_prep.engines")
    log.handlers = [_Notes()]
    log.setLevel(logging.INFO)
