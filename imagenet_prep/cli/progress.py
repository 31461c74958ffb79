"""Progress as a person sees it: a tqdm bar on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, ClassVar

from imagenet_prep.cli.terminal import fitted, say, tell, terminal_width
from imagenet_prep.escaping import escaped
from imagenet_prep.model import Progress, Silent
from imagenet_prep.text import size_text

if TYPE_CHECKING:
    from tqdm import tqdm

PLAIN_SECONDS = 10.0
"""How often a plain line is written."""


class Bars:
    """Draws one bar at a time on standard error."""

    _drawn: ClassVar[Bars | None] = None

    def __init__(self) -> None:
        self._bar: tqdm[Any] | None = None
        Bars._drawn = self

    @classmethod
    def abandon(cls) -> None:
        """Leave the bar as it is: tqdm would draw it once more when Python ends, below the last words."""
        if cls._drawn is not None and cls._drawn._bar is not None:
            cls._drawn._bar.disable = True

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Start a bar."""
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # its monitor is a thread, and workers are forked

        class Narrow(tqdm):  # type: ignore[type-arg]
            """Leaves the last columns free: what the terminal shows of Ctrl-C breaks no line."""

            @staticmethod
            def format_meter(  # type: ignore[override]
                n: float, total: float, elapsed: float, ncols: int | None = None, **more: Any
            ) -> str:
                return tqdm.format_meter(n, total, elapsed, ncols and max(ncols - 2, 1), **more)

        is_bytes = unit == "B"
        self._bar = Narrow(
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
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.write("\n".join(fitted(escaped(text), terminal_width(sys.stderr))), file=sys.stderr)
        else:
            tell(text, error=True)


class Lines:
    """Writes a plain line every ten seconds, and one at each end: for logs."""

    def __init__(self) -> None:
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
        """Count, and write a line if it is time to."""
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
                line += f", {_duration((self._total - self._done) / rate)} left"
        say(line, error=True)

    def _amount(self, value: float) -> str:
        if self._unit == "B":
            return size_text(value)
        count = f"{value:,.0f}"
        return f"{count} {self._unit.removesuffix('s') if count == '1' else self._unit}"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


def make_progress(quiet: bool) -> Progress:
    """The progress that suits where standard error goes."""
    if quiet:
        return Silent()
    return Bars() if terminal_width(sys.stderr) else Lines()  # in one that says 0, as some containers' do, no bar shows
