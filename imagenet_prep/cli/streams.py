"""prepare_streams: standard streams that raise this package's errors if they can't be written."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import TextIO

from imagenet_prep.errors import PrepError, SpaceError, WriteError


class ReaderGoneError(BaseException):
    """The reader of the output exited: ``| head``.
    Like KeyboardInterrupt, no ``except Exception`` may swallow it.
    """


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
            "expected a place to print to",
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
    from imagenet_prep.storage.refusals import STORAGE_FAULTS  # only an error waits for its import

    remedy = STORAGE_FAULTS.get(error.errno or 0, "redirect it to another file: > FILE")
    return WriteError("standard output can't be written", error.strerror or str(error), remedy)
