"""Log: the file of --log-file, which gets each line that a command says, with its time."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d ")
_STAMP_LENGTH = 30


class Log:
    """A file that grows by whole lines, each written at once: several processes may share it.

    A failed write never ends the work: ``complain`` gets the first failure, and later lines are
    tried again.

    Args:
        path: a new file, or an older log.
        complain: gets a line that the log could not hold.

    Raises:
        OSError: the file can't be opened for writing.
    """

    def __init__(self, path: Path, complain: Callable[[str], None]) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptor = os.open(path, flags, 0o666)
        self._path = path
        self._complain = complain
        self._has_failed = False
        self._is_torn = False
        self._unended = ""

    def write(self, text: str) -> None:
        """Add text; what follows its last newline waits for the rest of its line."""
        *lines, self._unended = (self._unended + text).split("\n")
        for line in lines:
            self._write_line(line)

    def close(self) -> None:
        """Write a line that has not ended, and close the file."""
        if self._unended:
            self.write("\n")
        os.close(self._descriptor)

    def _write_line(self, line: str) -> None:
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        start = "\n" if self._is_torn else ""
        content = f"{start}{now} {line}\n".encode("utf-8", "backslashreplace")
        try:
            written = os.write(self._descriptor, content)
            self._is_torn = written < len(content)
            if self._is_torn:
                os.write(self._descriptor, content[written:])  # the system says why it stopped
                self._is_torn = False
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                reason = error.strerror or str(error)
                self._complain(
                    f"warning: the log {self._path} can't be written: {reason}; the work continues"
                )


def why_not_log(path: Path) -> str:
    """The reason that a log can't or must not be written at ``path``; empty if it can.

    A file that holds something else, such as a shard, is never appended to.
    """
    from imagenet_prep.cli.place_checks import folder_fault  # late: --help loads click alone

    try:
        if fault := folder_fault(path.parent):
            return fault
        if not os.path.lexists(path):
            return ""
        if not path.exists():
            return "it is a broken link"
        return _fault_of_file(path)
    except OSError as error:
        return error.strerror or str(error)


def _fault_of_file(path: Path) -> str:
    """The reason that no log can be appended to what is at ``path``; empty if one can."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return "it is a folder"
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
        return "it is a pipe, a socket or a disk; expected a file"
    if stat.S_ISREG(mode) and not _is_log(path):
        return "it exists and holds something else; expected a new file, or an older log"
    return ""


def _is_log(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_STAMP_LENGTH)
    return not head or _STAMP.match(head) is not None
