"""Bytes of a ByteRange: archives are mapped once a process, so that an image is never copied; files are read."""

from __future__ import annotations

import functools
import mmap
import os
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.model import ByteRange

Buffer = bytes | memoryview


def map_file(path: Path) -> memoryview:
    """The whole of a file as a read-only memory map; an empty file is an empty view.

    Raises:
        InputError: the file can't be opened.
    """
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise InputError(f"{path} can't be read", error.strerror or str(error)) from error


class FileSlices:
    """A file as read-only bytes, each slice one pread.

    For a header here and there: through a map, every first touch of a page would cost a fault, which is several times
    as much.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{path} can't be read", error.strerror or str(error)) from error

    def __len__(self) -> int:
        return os.fstat(self._descriptor).st_size

    def __getitem__(self, where: slice) -> bytes:
        return os.pread(self._descriptor, where.stop - where.start, where.start)

    def __enter__(self) -> FileSlices:
        """Nothing to do: it is open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._descriptor)


class Reader:
    """Reads ByteRanges; keeps the last two archives mapped. Belongs to one process."""

    def __init__(self) -> None:
        self._map = functools.lru_cache(maxsize=2)(map_file)

    def __reduce__(self) -> tuple[type[Reader], tuple[()]]:
        """A copy for another process maps anew."""
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
            raise InputError(
                f"{where.path} changed while it was read",
                f"expected {where.length} bytes at offset {where.offset}, got {len(content)}",
                "run the same command again once nothing writes to it",
            )
        return content

    @staticmethod
    def _read_file(where: ByteRange) -> bytes:
        try:
            return where.path.read_bytes()
        except OSError as error:
            raise InputError(f"{where.path} can't be read", error.strerror or str(error)) from error
