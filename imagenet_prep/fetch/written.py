"""WrittenLog: which spans of a file were written, believed after a kill without any sync, as long as the system is up.

What a process has written is in the system's cache, which outlives it: only the end of the system loses it. Each boot
has an id of its own; a log of another boot, or of another file, counts for nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.fetch.spans import Span
from imagenet_prep.storage.durable import write_all
from imagenet_prep.storage.files import find_plain

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LONGEST = 1 << 20  # bytes of a log that is written again, shorter, when there is an occasion


def log_path(path: Path) -> Path:
    """Where the log of the partial file ``path`` is kept."""
    return path.with_name(f"{path.name}.written")


def boot_id() -> str:
    """What tells this boot of the system from every other; "" where the system doesn't say."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


class WrittenLog:
    """The log of an open partial file: a line a write, each with its own checksum, appended and never synced.

    Its first line says for which file, of which version and in which boot it holds. Without a boot id no log is kept.

    Args:
        path: the partial file.
        file: its descriptor.
        version: the version of the remote file, as its state has it.
        spans: what is there to begin with.
    """

    def __init__(self, path: Path, file: int, version: Any, spans: Iterable[Span]) -> None:
        self._path = path
        self._head = _head(os.fstat(file), version)
        self._log: int | None = None
        self._size = 0
        if boot_id():
            self._begin(spans)

    def close(self) -> None:
        """Leave the log as it is."""
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def drop(self) -> None:
        """Remove the log: what it says is not to be believed any more."""
        self.close()
        forget(self._path)

    def add(self, start: int, stop: int) -> None:
        """Say that a span was written."""
        if self._log is not None:
            self._append([(start, stop)])

    def shorten(self, spans: Iterable[Span]) -> None:
        """Say ``spans`` in place of all that was said so far, if that has become long."""
        if self._log is not None and self._size > _LONGEST:
            self.close()
            self._begin(spans)

    def _begin(self, spans: Iterable[Span]) -> None:
        """Put a new log in the place of the one before, in one step: a kill leaves the one or the other."""
        new = _new_path(self._path)
        self._log = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0
        write_all(self._log, [_line(self._head)])
        self._append(spans)
        new.replace(log_path(self._path))

    def _append(self, spans: Iterable[Span]) -> None:
        assert self._log is not None
        lines = b"".join(_line(f"{start} {stop}") for start, stop in spans)
        write_all(self._log, [lines] if lines else [])
        self._size += len(lines)


def written_spans(path: Path, version: Any | None) -> tuple[Any, list[Span]] | None:
    """Of which version the log of ``path`` is, and its spans; None if there is none to be believed.

    ``version`` is the one that it must be of; None: of any.
    """
    try:
        lines = (find_plain(log_path(path)) or b"").split(b"\n")[:-1]
        said = json.loads(_checked(lines[0]) if lines else "null")
        found = said["version"] if isinstance(said, dict) else None
        if found is None or version not in (None, found) or not boot_id():
            return None
        if said != json.loads(_head(path.stat(), found)):
            return None
    except (InputError, KeyError, OSError, RecursionError, ValueError):
        return None
    return found, [span for line in lines[1:] if (span := _span(_checked(line)))]


def forget(path: Path) -> None:
    """Remove the log of ``path``."""
    for each in (log_path(path), _new_path(path)):
        with contextlib.suppress(FileNotFoundError):
            each.unlink()


def _new_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.written.new")


def _head(status: os.stat_result, version: Any) -> str:
    """The first line: a copy of the file elsewhere is another one."""
    return json.dumps({"boot": boot_id(), "file": [status.st_dev, status.st_ino], "version": version}, sort_keys=True)


def _line(text: str) -> bytes:
    return f"{text} {zlib.crc32(text.encode()):08x}\n".encode()


def _checked(line: bytes) -> str:
    """The text of a line; "" if it isn't the one that was written."""
    text, _, checksum = line.decode("ascii", errors="replace").rpartition(" ")
    return text if checksum == f"{zlib.crc32(text.encode()):08x}" else ""


def _span(text: str) -> Span | None:
    start, _, stop = text.partition(" ")
    return (int(start), int(stop)) if start.isdecimal() and stop.isdecimal() and int(start) < int(stop) else None
