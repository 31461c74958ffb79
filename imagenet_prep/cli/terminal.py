"""Where everything goes that a person reads: each line with what steers a terminal written out, or not at all.

The one place of the package that writes to standard output and standard error.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Callable
from typing import TextIO

import click

from imagenet_prep.errors import PrepError, SpaceError, WriteError
from imagenet_prep.escaping import escaped

_AS_SHOWN = "imagenet_prep.as_shown"


class ReaderGoneError(BaseException):
    """Whoever read our output has gone: ``| head``. Like KeyboardInterrupt, no ``except Exception`` may swallow it."""


def say(*lines: str, error: bool = False, colour: str | None = None, end: str = "\n") -> None:
    """Print lines, escaped one by one, to standard output, or to standard error.

    Raises:
        ReaderGoneError: nobody reads there any more.
        SpaceError, WriteError: standard output can't be written. That standard error can't is nothing to stop for.
    """
    stream = sys.stderr if error else sys.stdout
    for line in lines:
        text = escaped(line)
        stream.write((click.style(text, fg=colour) if colour and stream.isatty() else text) + end)
    stream.flush()


def prepare_streams() -> None:
    """Put streams of ours in the place of the standard ones; where one is closed, nothing else gets its number."""
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # else the next file opened, a shard say, would get what a library prints
    os.close(null)
    codecs.register_error(_AS_SHOWN, _as_shown)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - as long as the process lives
    sys.stdout = _Closed() if sys.stdout is None else _ours(sys.stdout, _cannot_write)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - as long as the process lives
    sys.stderr = _ours(sys.stderr, lambda error: None)


class _Stream(io.TextIOWrapper):
    """A standard stream that says in an error of ours what the system has against writing to it."""

    def __init__(self, stream: io.TextIOWrapper, refusal: Callable[[OSError], PrepError | None]) -> None:
        encoding = stream.encoding
        super().__init__(stream.detach(), encoding, errors=_AS_SHOWN, line_buffering=True)
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
        """Let what is still to be written go nowhere: Python would try it once more at its end, and complain."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from None
        refusal = self._refusal(error)
        if refusal is not None:
            raise refusal from None


class _Closed(io.StringIO):
    """Standard output that was closed before we began: an error as soon as there is something to say."""

    def write(self, text: str, /) -> int:
        raise WriteError(
            "standard output is closed",
            "expected somewhere to print the outcome; what was done is kept",
            "send it somewhere: > FILE, or > /dev/null",
        )


def _ours(stream: TextIO, refusal: Callable[[OSError], PrepError | None]) -> TextIO:
    return _Stream(stream, refusal) if isinstance(stream, io.TextIOWrapper) else stream


def _cannot_write(error: OSError) -> PrepError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SpaceError("no space left while writing the output")
    return WriteError("standard output can't be written", error.strerror or str(error))


def _as_shown(error: UnicodeError) -> tuple[str | bytes, int]:
    """What a stream's encoding can't hold: a byte of a name as that byte, anything else written out."""
    assert isinstance(error, UnicodeEncodeError)
    char = error.object[error.start]
    if "\udc80" <= char <= "\udcff":
        return bytes([ord(char) & 0xFF]), error.start + 1
    return char.encode("unicode_escape").decode("ascii"), error.start + 1
