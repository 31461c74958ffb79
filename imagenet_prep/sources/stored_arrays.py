"""StoredArray: an array in a file, which is read an example at a time;
and arrays that a library or a map presents.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from msgspec import Struct

from imagenet_prep.errors import InputError, UsageError, missing_library
from imagenet_prep.images.arrays import DEFLATES_TO, MAX_BYTES, ArrayError
from imagenet_prep.storage.refusals import unreadable

HOLDS_OBJECTS = "its dtype is object"
"""The start of the reason against an array of pickled objects."""

SAVE_AS_NPZ = (
    "save images of one shape and their labels as two arrays of numbers, in a folder without other "
    "files: numpy.savez('data.npz', x=images, y=labels)"
)
CUT_OR_DAMAGED = "it is cut or damaged"
_INTACT = "get an intact copy of it"
INTACT_OR_NPZ = f"{_INTACT}; or {SAVE_AS_NPZ}"
"""Remedies for a file of arrays in a form that is not read."""

_IMAGES_FIRST = (
    "each record is one step of the first axis: save the array with the number of images there"
)

ARRAYS = "arrays"
"""The noun for what a file may hold, in messages."""

_LONGEST_REASON = 300


class OtherFormError(ArrayError):
    """A file that may be intact, in a form that is not read; ``remedy`` says what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


class StoredArray(Struct, frozen=True):
    """An array in a file: its shape and type, and how its bytes (C order) are opened.

    ``start`` is where they start; ``is_inside``: other bytes follow them.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    open: Callable[[], IO[bytes]]
    start: int = 0
    is_inside: bool = False

    @property
    def item_bytes(self) -> int:
        """The bytes of one example."""
        return prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def header(self) -> bytes:
        """The .npy header of one example."""
        from numpy.lib import format as npy

        facts = {
            "shape": self.shape[1:],
            "fortran_order": False,
            "descr": npy.dtype_to_descr(self.dtype),
        }
        head = io.BytesIO()
        npy.write_array_header_1_0(head, facts)
        return head.getvalue()

    def values(self) -> np.ndarray[Any, Any]:
        """All of it.

        Raises:
            InputError: it is damaged.
        """
        self.check()
        with damage_named(self.path), self.open() as file:
            file.seek(self.start)
            data = file.read(prod(self.shape) * self.dtype.itemsize)
            return np.frombuffer(data, self.dtype).reshape(self.shape)

    def check(self) -> None:
        """Read it to its end, where a compressed file has its checksum; a plain file has none.

        Raises:
            InputError: it is damaged, or of another length.
        """
        expected = self.start + prod(self.shape) * self.dtype.itemsize
        with damage_named(self.path), self.open() as file:
            if isinstance(file, (io.BufferedReader, ArrayStream)):
                size = file.seek(0, os.SEEK_END)
            else:
                blocks = iter(functools.partial(file.read, 1 << 20), b"")
                size = sum(map(len, blocks))
            if size != expected and not (self.is_inside and size > expected):
                raise ArrayError(f"its content has {size:,} bytes: expected {expected:,}")


class ArrayLike(Protocol):
    """Rows that can be sliced into arrays: an array, a memory map, or a data set of HDF5."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape; rows first."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its values."""
        ...

    def __getitem__(self, rows: slice) -> Any:
        """Some rows."""
        ...


class ArrayStream(io.RawIOBase):
    """The bytes of rows, in C order whatever their order in memory;
    rows are read when their bytes are.
    """

    def __init__(self, load: Callable[[], ArrayLike]) -> None:
        self._rows = load()
        self._row_bytes = prod(self._rows.shape[1:]) * self._rows.dtype.itemsize
        self._size = self._rows.shape[0] * self._row_bytes
        self._place = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte; the new place."""
        origins = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}
        self._place = origins[whence] + offset
        return self._place

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        stop = self._size if size < 0 else min(self._size, self._place + size)
        if stop <= self._place:
            return b""
        row_start, row_stop = self._place // self._row_bytes, -(-stop // self._row_bytes)
        rows = np.ascontiguousarray(self._rows[row_start:row_stop]).tobytes()
        start = row_start * self._row_bytes
        content = rows[self._place - start : stop - start]
        self._place = stop
        return content


def stored_rows(path: Path, load: Callable[[], ArrayLike]) -> StoredArray:
    """The array that ``load`` presents, opened again wherever it is read.

    Raises:
        ArrayError: its rows have no bytes, or too many.
    """
    rows = load()
    shape, opened = tuple(map(int, rows.shape)), functools.partial(_stream, load)
    stored = StoredArray(path, shape, np.dtype(rows.dtype), opened)
    check_rows(stored)
    check_claim(path, stored.shape, stored.dtype)
    return stored


def check_rows(stored: StoredArray) -> None:
    """Raise ArrayError unless an array, which may be a single value, has rows that a record can
    hold.
    """
    if min(stored.shape, default=0) < 0:
        raise ArrayError(f"its shape {stored.shape} has a negative number")
    if stored.shape and not stored.item_bytes:
        found = f"its shape {stored.shape} of {stored.dtype} has rows of 0 bytes"
        raise OtherFormError(found, INTACT_OR_NPZ)
    if stored.item_bytes > MAX_BYTES:
        found = f"its shape {stored.shape} has rows of {stored.item_bytes:,} bytes"
        raise OtherFormError(f"{found}: expected at most {MAX_BYTES:,}", _IMAGES_FIRST)


def check_claim(path: Path, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Raise ArrayError for an array of more bytes than its file can hold, deflated."""
    claimed = prod(map(int, shape)) * dtype.itemsize
    check_expansion("it", claimed, path.stat().st_size)


def check_expansion(name: str, claimed: int, size: int) -> None:
    """Raise ArrayError if ``size`` bytes would expand to more than deflated data can."""
    if claimed > DEFLATES_TO * size:
        raise OtherFormError(
            f"{name} has too few bytes for its arrays: {size:,} bytes, "
            f"even compressed, can't hold {claimed:,}",
            f"perhaps not all of its images were written: write it again, or {INTACT_OR_NPZ}",
        )


def _stream(load: Callable[[], ArrayLike]) -> IO[bytes]:
    return ArrayStream(load)  # type: ignore[return-value]


def need_library(name: str, extra: str, files: str) -> Any:
    """Import a library that an extra brings.

    Raises:
        UsageError: it is not installed, or can't be imported.
    """
    import importlib

    top = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == top:
            raise missing_library(top, f"reads {files}", extra) from error
        problem = f"{top}, which reads {files}, can't be imported"
        raise UsageError(problem, str(error), f"install {top} again") from error


@contextlib.contextmanager
def damage_named(path: Path, noun: str = ARRAYS) -> Iterator[None]:
    """Turn any failure to read a file, or of a library, into an error that names the file;
    it may hold a ``noun``.
    """
    try:
        yield
    except (InputError, UsageError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            raise unreadable(path, error) from error
        reason = str(error)[:_LONGEST_REASON]  # shapes may have numbers of any length
        if isinstance(error, (LookupError, struct.error)) and not path.stat().st_size:
            reason = "it is empty"
        elif isinstance(error, (LookupError, struct.error)):
            reason = "it is cut, damaged, or in a form that imagenet-prep can't read"
        elif isinstance(error, zipfile.BadZipFile):
            reason = f"its zip can't be read: {reason}"
        elif isinstance(error, RecursionError):
            reason = "its parts are nested too deeply"
        hint = remedy_of(error)
        if noun == ARRAYS and not isinstance(
            error, ArrayError
        ):  # the library may not read its form
            hint = INTACT_OR_NPZ
        raise InputError(f"{path} can't be read as {noun}", reason, hint) from error


def remedy_of(error: Exception) -> str:
    """The advice about a file that can't be read."""
    if not isinstance(error, ArrayError):
        return _INTACT
    if str(error).startswith(HOLDS_OBJECTS):
        return SAVE_AS_NPZ
    return error.remedy or _INTACT
