"""FileSlices: pieces of a file here and there, read or copied to another file."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from imagenet_prep.storage.durable import write_all
from imagenet_prep.storage.location import AnyPath, Location
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import RangedView, changed

Buffer = bytes | memoryview

_COPY_BLOCK = 1 << 20
_HEADERS = 16 << 10  # bytes of an object with a header: what costs no more time than 512


class FileSlices:
    """A file as read-only bytes, each slice one pread.

    For a header here and there, and for copies: through a map, every first touch of a page would cost a fault.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise unreadable(path, error) from error

    def __len__(self) -> int:
        return self._status().st_size

    def __getitem__(self, where: slice) -> bytes:
        return self._read(where.start, where.stop - where.start)

    def _status(self) -> os.stat_result:
        try:
            return os.fstat(self._descriptor)
        except OSError as error:
            raise unreadable(self.path, error) from error

    def _read(self, offset: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise unreadable(self.path, error) from error

    def __enter__(self) -> FileSlices:
        """Nothing to do: it is open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._descriptor)

    @property
    def stamp(self) -> tuple[int, int, int]:
        """Differs if the file was written to, or another one took its name: inode, size, modification time in ns."""
        status = self._status()
        return status.st_ino, status.st_size, status.st_mtime_ns

    @property
    def modified(self) -> int:
        """The modification time, in ns."""
        return self.stamp[2]

    def copy(self, offset: int, length: int, target: int) -> None:
        """Append a range to the file that is open as ``target``, within the kernel where it can.

        Raises:
            InputError: the file can't be read, or is shorter than it was when it was indexed.
            OSError: ``target`` can't be written.
        """
        copied = self._copy_in_kernel(offset, length, target)
        while copied < length:  # not offered here, or not between these two: the plain way, which also tells why
            content = self._read(offset + copied, min(length - copied, _COPY_BLOCK))
            if not content:
                raise changed(self.path, offset, length, copied)
            write_all(target, [content])
            copied += len(content)

    def _copy_in_kernel(self, offset: int, length: int, target: int) -> int:
        copied = 0
        if hasattr(os, "copy_file_range"):
            with contextlib.suppress(OSError):
                while copied < length:
                    count = os.copy_file_range(self._descriptor, target, length - copied, offset + copied)
                    if not count:
                        break
                    copied += count
        return copied


def slices_of(path: AnyPath) -> FileSlices | RangedView:
    """A file or an object to read a header here and there; raises InputError if it can't be opened."""
    if isinstance(path, Location):
        return path.store.view(path.key, least=_HEADERS)  # headers that lie close together come with one request
    return FileSlices(path)
