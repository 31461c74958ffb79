"""Prints everything that a person reads, bars included, with terminal controls escaped.

This module alone writes to standard output and standard error.
"""

from __future__ import annotations

import errno
import functools
import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

import click

from imagenet_prep.cli.conversation import conversation
from imagenet_prep.errors import PrepError, SpaceError, WorkerError, WriteError
from imagenet_prep.escaping import CommandLine, escaped, rerun, traced
from imagenet_prep.hints import Hint, lines_of
from imagenet_prep.text import size_text

if TYPE_CHECKING:
    from tqdm import tqdm

    from imagenet_prep.model import Progress


class ReaderGoneError(BaseException):
    """The reader of the output exited: ``| head``.
    Like KeyboardInterrupt, no ``except Exception`` may swallow it.
    """


def say(*lines: str, error: bool = False, colour: str | None = None, end: str = "\n") -> None:
    """Print lines, each escaped, to standard output or standard error, and log them.

    Where standard output is for JSON, lines for it are only logged.

    Raises:
        ReaderGoneError: the reader has exited.
        SpaceError, WriteError: standard output can't be written. Failures of standard error are
            ignored.
    """
    log_lines(*lines, end=end)
    if error or not conversation().has_json_output:
        _show(*lines, error=error, colour=colour, end=end)


def log_lines(*lines: str, end: str = "\n") -> None:
    """Log lines, each escaped, and print nothing."""
    for line in lines:
        conversation().log_text(escaped(line) + end)


def log_start() -> None:
    """Log which version answers which call, and where."""
    if conversation().log is not None:
        import socket

        from imagenet_prep.version import describe_version

        process = f"process {os.getpid()} on {socket.gethostname()}"
        log_lines(Hint(f"imagenet-prep {describe_version()}, {process}: ", rerun()))


def print_json(*lines: str) -> None:
    """Print lines of JSON to standard output; they are not logged."""
    _show(*lines)


def complain(line: str) -> None:
    """Print a line about the log to standard error; it is not logged."""
    _show(line, error=True)


def _show(*lines: str, error: bool = False, colour: str | None = None, end: str = "\n") -> None:
    stream = sys.stderr if error else sys.stdout
    is_coloured = colour is not None and stream.isatty() and not os.environ.get("NO_COLOR")
    for line in lines:
        text = escaped(line)
        stream.write((click.style(text, fg=colour) if is_coloured else text) + end)
    stream.flush()


def tell(
    *lines: str, error: bool = False, colour: str | None = None, lead: str = "", hang: int = 2
) -> None:
    """Print lines of prose like ``say``, wrapped at spaces to fit the terminal (see ``fitted``).

    ``lead`` goes before the first line, and only ``lead`` is in ``colour``.
    """
    width = terminal_width(sys.stderr if error else sys.stdout)
    text_colour = None if lead else colour
    for number, line in enumerate(lines):
        line_lead = lead if number == 0 else ""
        text = Hint(line_lead, _escaped_sentences(line))
        first_line, *hanging_lines = fitted(text, width, hang)
        log_lines(line_lead + line)
        if not error and conversation().has_json_output:
            continue
        if line_lead:
            _show(line_lead, error=error, colour=colour, end="")
        shown_text = first_line[len(line_lead) :]
        _show(shown_text, *hanging_lines, error=error, colour=text_colour)


def _escaped_sentences(text: str) -> str:
    """A text with its sentences escaped; its commands are safe as they are quoted."""
    if not isinstance(text, Hint):
        return escaped(text)
    parts: list[str] = []
    for part in text.parts:
        parts.append(part if isinstance(part, CommandLine) else escaped(part))
    return Hint(*parts)


_BUG = "This is a bug in imagenet-prep. Please report it with the lines above."


def show_error(error: PrepError) -> None:
    """Print an error; one of a worker with its traceback."""
    if isinstance(error, WorkerError):
        say("error: ", colour="red", end="", error=True)
        say(error.what, *str(error.detail).split("\n"), _BUG, error=True)
    else:
        tell(*error.lines, lead="error: ", colour="red", error=True)


def show_bug(error: Exception) -> None:
    """Print the traceback of an error that no part of the package expects."""
    say(*traced(error).split("\n"), _BUG, error=True)


def terminal_width(stream: TextIO) -> int:
    """The columns of a stream's terminal; 0 if it is no terminal or its width is unknown."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return 0


def fitted(text: str, width: int, hang: int = 2) -> list[str]:
    """Wrap a line to at most ``width`` columns, except longer words; later lines are indented by
    ``hang``.

    A command of a ``Hint`` keeps a line of its own, however long, so that it can be copied. A width
    of 0 disables wrapping.
    """
    if not width or len(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip(" ")))
    hanging = indent + " " * hang
    lines: list[str] = []
    parts = [*lines_of(text)]
    for number, part in enumerate(parts):
        if isinstance(part, CommandLine):
            lines.append((hanging if lines else indent) + part)
            return lines + _fitted_after(parts[number + 1 :], width, hanging)
        lines += _wrapped(part.strip(" "), width, indent, hanging)
    return lines


def _fitted_after(parts: Sequence[str], width: int, indent: str) -> list[str]:
    """The lines of what follows a command."""
    if not parts or isinstance(parts[0], CommandLine):
        sentence, following = "", parts
    else:
        sentence, following = parts[0].removeprefix("; ").removeprefix(", ").lstrip(" "), parts[1:]
    text = Hint(indent, sentence, *following)
    return fitted(text, width, 0) if text.strip(" ") else []


def _wrapped(text: str, width: int, indent: str, hanging: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=hanging,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )


def prepare_streams() -> None:
    """Replace the standard streams with streams that raise this package's errors;
    a closed one keeps its number.
    """
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # otherwise the next open file, such as a shard, would receive a library's output
    os.close(null)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - as long as the process lives
    sys.stdout = _Closed() if sys.stdout is None else _wrap_stream(sys.stdout, _cannot_write)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - as long as the process lives
    sys.stderr = _wrap_stream(sys.stderr, lambda error: None)


class _Stream(io.TextIOWrapper):
    """A standard stream that turns the system's write errors into errors of this package."""

    def __init__(
        self, stream: io.TextIOWrapper, refusal: Callable[[OSError], PrepError | None]
    ) -> None:
        encoding = stream.encoding
        super().__init__(stream.detach(), encoding, errors="backslashreplace", line_buffering=True)
        self._refusal = refusal

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._give_up(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Discard pending output: otherwise Python tries to write it again at exit,
        and complains.
        """
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from None
        refusal = self._refusal(error)
        if refusal is not None:
            raise refusal from None


class _Closed(io.StringIO):
    """Standard output that was closed at the start: it raises an error at the first write."""

    def write(self, text: str, /) -> int:
        raise WriteError(
            "standard output is closed",
            "expected somewhere to print the outcome; finished work is kept",
            "redirect it: > FILE, or > /dev/null",
        )


def is_closed() -> bool:
    """Whether standard output was closed at the start."""
    return isinstance(sys.stdout, _Closed)


def _wrap_stream(stream: TextIO, refusal: Callable[[OSError], PrepError | None]) -> TextIO:
    return _Stream(stream, refusal) if isinstance(stream, io.TextIOWrapper) else stream


def _cannot_write(error: OSError) -> PrepError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SpaceError("no space left while writing to standard output")
    return WriteError("standard output can't be written", error.strerror or str(error))


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
            lines = fitted(_escaped_sentences(text), terminal_width(sys.stderr))
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
