"""LocalStore: a folder of finished files, and one beside it for those that are not."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.storage.durable import begin_write_out, fsync_dir, sync_file_system, write_all
from imagenet_prep.storage.lock import is_current
from imagenet_prep.storage.mapped import map_file
from imagenet_prep.storage.store import Buffer

_WRITE_OUT = 1 << 20  # bytes that are worth telling the system to begin
_BEHIND = 256 << 20  # bytes before them of which it is told again: it passes over all pages that it is told of


@dataclass(frozen=True, slots=True)
class LocalStore:
    """Files in a folder.

    Args:
        folder: where they are.
        unfinished: where they lie until they are committed, on the same file system; whoever writes makes it, and
            removes what a killed process left in it.
    """

    folder: Path
    unfinished: Path

    @property
    def device(self) -> int:
        """The file system."""
        return self.folder.stat().st_dev

    def list(self) -> Sequence[str]:
        """All names in the folder, in order."""
        return sorted(os.listdir(self.folder)) if self.folder.is_dir() else []

    def size(self, name: str) -> int | None:
        """Bytes of a file, None if there is none."""
        path = self.folder / name
        return path.stat().st_size if path.exists() else None

    def read(self, name: str, offset: int = 0, length: int | None = None) -> memoryview:
        """A view of a memory map: what is not touched is never read, what is read is never copied."""
        whole = map_file(self.folder / name)
        return whole[offset:] if length is None else whole[offset : offset + length]

    def create(self, name: str) -> LocalSink:
        """A file of that name in the folder of unfinished ones, made by the first write."""
        return LocalSink(self.unfinished / name, self.folder)

    def delete(self, name: str) -> None:
        """Remove a file, if there is one."""
        (self.folder / name).unlink(missing_ok=True)

    def sync_names(self) -> None:
        """One fsync of the folder."""
        fsync_dir(self.folder)

    def sync(self) -> None:
        """One syncfs of the file system."""
        sync_file_system(self.folder)


class LocalSink:
    """A file among the unfinished ones: gathered writes, one fsync, a rename."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        self._folder = folder
        self._descriptor: int | None = None
        self._is_committed = False
        self._begun = 0  # up to where the system was told to write out
        self.size = 0

    def write(self, parts: Sequence[Buffer]) -> None:
        """Append all of ``parts``: gathered by the kernel, not copied here."""
        descriptor = self._open()
        write_all(descriptor, parts)
        self.size += sum(map(len, parts))
        if self.size - self._begun >= _WRITE_OUT:
            begin_write_out(descriptor, max(0, self._begun - _BEHIND))
            self._begun = self.size

    def rest(self) -> None:
        """Close the file until the next call."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def seal(self) -> None:
        """One fsync."""
        os.fsync(self._open())

    def commit(self, name: str = "") -> None:
        """One rename."""
        if not self.size:
            self._open()  # nothing may have been written
        if self._descriptor is not None and not is_current(self._descriptor, self._path):
            raise FileNotFoundError(errno.ENOENT, "it was removed while it was written", os.fspath(self._path))
        self.rest()
        self._path.replace(self._folder / (name or self._path.name))
        self._is_committed = True

    def discard(self) -> None:
        """Close and remove it; where that can't be done, it lies there and nobody takes it for a finished file."""
        with contextlib.suppress(OSError):
            self.rest()
        if not self._is_committed:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)

    def __enter__(self) -> LocalSink:
        """Nothing to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """Discard it."""
        self.discard()

    def _open(self) -> int:
        if self._descriptor is None:
            begin = os.O_APPEND if self.size else os.O_TRUNC  # a first try may lie there
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | begin, 0o666)
        return self._descriptor
