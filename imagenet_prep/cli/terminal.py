"""Prints everything that a person reads, with terminal controls escaped.

This module alone writes to standard output and standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from imagenet_prep.cli.conversation import conversation
from imagenet_prep.errors import PrepError, WorkerError
from imagenet_prep.escaping import CommandLine, escaped, rerun, traced
from imagenet_prep.hints import Hint, lines_of


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
        if is_coloured:
            text = click.style(text, fg=colour)
        stream.write(text + end)
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
        text = Hint(line_lead, escaped_sentences(line))
        first_line, *hanging_lines = fitted(text, width, hang)
        log_lines(line_lead + line)
        if not error and conversation().has_json_output:
            continue
        if line_lead:
            _show(line_lead, error=error, colour=colour, end="")
        shown_text = first_line[len(line_lead) :]
        _show(shown_text, *hanging_lines, error=error, colour=text_colour)


def escaped_sentences(text: str) -> str:
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
        detail_lines = str(error.detail).split("\n")
        say("error: ", colour="red", end="", error=True)
        say(error.what, *detail_lines, _BUG, error=True)
    else:
        tell(*error.lines, lead="error: ", colour="red", error=True)


def show_bug(error: Exception) -> None:
    """Print the traceback of an error that no part of the package expects."""
    lines = traced(error).split("\n")
    say(*lines, _BUG, error=True)


def terminal_width(stream: TextIO) -> int:
    """The columns of a stream's terminal; 0 if it is no terminal or its width is unknown."""
    try:
        if stream.isatty():
            return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        pass
    return 0


def fitted(text: str, width: int, hang: int = 2) -> list[str]:
    """Wrap a line to at most ``width`` columns, except longer words; later lines are indented by
    ``hang``.

    A command of a ``Hint`` keeps a line of its own, however long, so that it can be copied. A width
    of 0 disables wrapping.
    """
    if not width or len(text) <= width:
        return [text]
    indent_width = len(text) - len(text.lstrip(" "))
    indent = " " * indent_width
    hanging = indent + " " * hang
    lines: list[str] = []
    parts = [*lines_of(text)]
    for number, part in enumerate(parts):
        if isinstance(part, CommandLine):
            command_indent = hanging if lines else indent
            lines.append(command_indent + part)
            return lines + _fitted_after(parts[number + 1 :], width, hanging)
        sentence = part.strip(" ")
        lines += _wrapped(sentence, width, indent, hanging)
    return lines


def _fitted_after(parts: Sequence[str], width: int, indent: str) -> list[str]:
    """The lines of what follows a command."""
    sentence, following = "", parts
    if parts and not isinstance(parts[0], CommandLine):
        sentence, *following = parts
        sentence = sentence.removeprefix("; ").removeprefix(", ").lstrip(" ")
    text = Hint(indent, sentence, *following)
    if not text.strip(" "):
        return []
    return fitted(text, width, 0)


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
