"""Bytes of a ByteRange: archives are mapped once a process, so that an image is never copied; files are read.

FileSlices reads, or copies to another file, a piece of an archive here and there.
"""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.model import ByteRange
from imagenet_prep.storage.durable import write_all
from imagenet_prep.storage.mapped import map_file
from imagenet_prep.storage.refusals import unreadable

Buffer = bytes | memoryview

_COPY_BLOCK = 1 << 20


class FileSlices:
    """A file as read-only bytes, each slice one pread.

    For a header here and there, and for copies: through a map, every first touch of a page would cost a fault.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
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
            raise unreadable(self._path, error) from error

    def _read(self, offset: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise unreadable(self._path, error) from error

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
                raise _changed(ByteRange(self._path, offset, length), copied)
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


class Reader:
    """Reads ByteRanges; keeps the last two archives mapped. Belongs to one process."""

    def __init__(self) -> None:
        self._map = functools.lru_cache(maxsize=2)(map_file)

    def __reduce__(self) -> tuple[type[Reader], tuple[()]]:
        """A copy for another process maps again."""
        return Reader, ()

    def read(self, where: ByteRange) -> Buffer:
        """The bytes of a range: a slice of the archive's map, or, at offset 0, the content of a file of its own.

        Raises:
            InputError: the file is gone, or shorter than it was when it was indexed.
        """
        content: Buffer
        if where.offset == 0:  # in a tar a header comes first
            content = self._read_file(where)
        else:
            content = self._map(where.path)[where.offset : where.offset + where.length]
        if len(content) != where.length:
            raise _changed(where, len(content))
        return content

    @staticmethod
    def _read_file(where: ByteRange) -> bytes:
        try:
            return where.path.read_bytes()
        except OSError as error:
            raise unreadable(where.path, error) from error


def _changed(where: ByteRange, got: int) -> InputError:
    return InputError(
        f"{where.path} changed while it was read",
        f"expected {where.length} bytes at offset {where.offset}, got {got}",
        "run the same command again once nothing writes to it",
    )
