"""Conversation: one call of a command: where its JSON goes, and the log of what it says."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from imagenet_prep.cli.log_file import Log

OUTPUT = Path("-")
"""The value of --json that means standard output."""


class Conversation:
    """The options that every command has, except --quiet, and the start of the call.

    Attributes:
        command: its name; "" until it is known.
        writes_lines: whether its JSON is a line for each record, and not one object.
        json_file: the value of --json.
        lines: the open file of --json, for a command that writes lines.
        log: the open file of --log-file.
        started: a monotonic time.
        is_concluded: whether its outcome was written, or couldn't be.
        leaves_nothing: whether it works in a temporary folder, which it removes.
    """

    def __init__(self) -> None:
        self.command = ""
        self.writes_lines = False
        self.json_file: Path | None = None
        self.lines: TextIO | None = None
        self.log: Log | None = None
        self.started = time.monotonic()
        self.is_concluded = False
        self.leaves_nothing = False

    @property
    def has_json_output(self) -> bool:
        """Whether standard output is for JSON alone."""
        return self.json_file == OUTPUT

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return round(time.monotonic() - self.started, 3)

    def log_text(self, text: str) -> None:
        """Add text to the log, if there is one."""
        if self.log is not None:
            self.log.write(text)

    def end(self, status: int) -> None:
        """Log the exit status, and close the files."""
        self.log_text(f"exit status {status} after {self.seconds:,.1f} s\n")
        self.close()

    def close(self) -> None:
        """Close the files."""
        for file in (self.lines, self.log):
            if file is not None:
                file.close()
        self.lines = self.log = None


_current = Conversation()


def begin_conversation() -> None:
    """Start a call: nothing of an earlier call of this process is left."""
    global _current
    _current.close()
    _current = Conversation()


def conversation() -> Conversation:
    """The call that this process answers."""
    return _current


def json_text(value: Mapping[str, Any], indent: int | None = None) -> str:
    """A value as JSON, which escapes everything that controls a terminal, except DEL."""
    import json

    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")
