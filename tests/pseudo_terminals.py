"""What a process writes to a pseudo-terminal until it ends."""

from __future__ import annotations

import contextlib
import os


def rest_shown(pid: int, terminal: int) -> tuple[bytes, int]:
    """What is still to come on the terminal of a child of ``pty.fork``,
    and the child's exit status; closes it.
    """
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while part := os.read(terminal, 4096):
            shown += part
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
