"""Lines appended to a file; to an object store, where nothing can be appended, one more object each time."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO, Protocol

from imagenet_prep.storage import objects
from imagenet_prep.storage.durable import fsync_dir, write_all
from imagenet_prep.storage.object_path import ObjectPath
from imagenet_prep.storage.refusals import writing


class Appender(Protocol):
    """A file that grows."""

    def append(self, lines: bytes) -> None:
        """Add whole lines."""

    def sync(self) -> None:
        """Make all of them durable."""

    def close(self) -> None:
        """No more will come."""


def append_to(path: Path) -> Appender:
    """What adds lines to a file, made if need be; in an object store, to objects beside it: see parts_of.

    Raises:
        WriteError: it can't be written.
    """
    return _Objects(path) if isinstance(path, ObjectPath) else _File(path)


def parts_of(path: Path) -> list[Path]:
    """The files beside ``path`` that are parts of it: ``journal-7.jsonl`` of ``journal.jsonl``; in order."""
    return sorted(path.parent.glob(f"{path.stem}-*{path.suffix}"))


class _File:
    def __init__(self, path: Path) -> None:
        self._path = path
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = path.open("a+b", buffering=0)
        if self._file.tell() == 0:
            fsync_dir(path.parent)
        else:
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def append(self, lines: bytes) -> None:
        with writing(self._path):
            write_all(self._file.fileno(), [lines])

    def sync(self) -> None:
        with writing(self._path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class _Objects:
    """An object each time that lines are synced; at the end one of all that this writer has put."""

    def __init__(self, path: ObjectPath) -> None:
        self._path = path
        self._writer = os.urandom(6).hex()
        self._new: list[bytes] = []
        self._put: list[tuple[ObjectPath, bytes]] = []

    def append(self, lines: bytes) -> None:
        self._new.append(lines)

    def sync(self) -> None:
        if self._new:
            self._put_part(b"".join(self._new))
            self._new = []

    def close(self) -> None:
        if len(self._put) > 1:
            before = self._put[:]
            self._put_part(b"".join(lines for _, lines in before))
            for path, _ in before:
                objects.delete(path)

    def _put_part(self, lines: bytes) -> None:
        # Later parts have later names: what a later one says of a shard counts.
        name = f"{self._path.stem}-{time.time_ns():019d}-{self._writer}{self._path.suffix}"
        path = self._path.with_name(name)
        objects.put(path, lines)
        self._put.append((path, lines))
