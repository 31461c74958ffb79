"""Local files read: opened without waiting, mapped without keeping a descriptor, or through buffers used again."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from imagenet_prep.storage.refusals import unreadable

SIZE = 2 << 20
"""Bytes of a buffer: more would hardly be faster."""

MOST = 4
"""Buffers that may be waiting until nobody holds a view of them."""

_waiting: deque[bytearray] = deque(maxlen=MOST)


def open_plain(path: Path) -> IO[bytes]:
    """Open a file to read it, without waiting for a pipe or reading from a device without end.

    Raises:
        OSError: it can't be opened, or is not a plain file.
    """
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115 - the caller closes it
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "it is not a plain file", os.fspath(path))


def _open_at_once(name: str, flags: int) -> int:
    """Open a file; a pipe too, whether or not anyone writes to it."""
    return os.open(name, flags | os.O_NONBLOCK)


def map_file(path: Path, *, in_order: bool = False) -> memoryview:
    """The whole of a file, read-only; an empty file is an empty view. It stays mapped while any slice of it lives.

    ``in_order``: the file will be read from its beginning to its end, and the system should read ahead.

    Raises:
        InputError: the file can't be opened.
    """
    try:
        with open_plain(path) as file:
            length = os.fstat(file.fileno()).st_size
            return map_descriptor(file.fileno(), length, in_order=in_order) if length else memoryview(b"")
    except OSError as error:
        raise unreadable(path, error) from error


if sys.version_info >= (3, 13):

    def map_descriptor(descriptor: int, length: int, *, in_order: bool) -> memoryview:
        """The first ``length`` bytes, at least 1, of an open file; raises OSError."""
        mapped = mmap.mmap(descriptor, length, access=mmap.ACCESS_READ, trackfd=False)
        if in_order:
            mapped.madvise(mmap.MADV_SEQUENTIAL)
        return memoryview(mapped)

else:

    def map_descriptor(descriptor: int, length: int, *, in_order: bool) -> memoryview:
        """The first ``length`` bytes, at least 1, of an open file; raises OSError."""
        import ctypes
        import weakref

        system = ctypes.CDLL(None, use_errno=True)  # of its own: what is set on its functions is set nowhere else
        system.mmap.restype = ctypes.c_void_p
        number, size = ctypes.c_int, ctypes.c_size_t
        system.mmap.argtypes = [ctypes.c_void_p, size, number, number, number, ctypes.c_ssize_t]
        system.munmap.argtypes, system.madvise.argtypes = [ctypes.c_void_p, size], [ctypes.c_void_p, size, number]
        address = system.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        if in_order:
            system.madvise(address, length, mmap.MADV_SEQUENTIAL)
        mapped = (ctypes.c_ubyte * length).from_address(address)
        weakref.finalize(mapped, system.munmap, address, length).atexit = False  # at exit others may still read
        return memoryview(mapped).cast("B").toreadonly()


@contextlib.contextmanager
def buffered(path: Path, view: memoryview) -> Iterator[Callable[[int], memoryview]]:
    """What gives the bytes of a file from an offset on, read-only: ``SIZE`` of them, at the file's end fewer.

    A buffer is read into again once no slice of it is alive. Whoever keeps slices of many gets those of ``view``, the
    file's map, from then on: so nothing that is kept is ever written over, and keeping costs no memory.

    Raises:
        InputError: the file can't be opened, or, by what is given, read.
    """
    taken: list[bytearray] = []  # the one that was read into last

    def read(offset: int) -> memoryview:
        give_back()
        buffer = _take()
        if buffer is None:
            return view[offset : offset + SIZE]
        taken.append(buffer)
        return memoryview(buffer)[: os.preadv(file.fileno(), [buffer], offset)].toreadonly()

    def give_back() -> None:
        _waiting.extend(taken)
        taken.clear()

    try:
        with open_plain(path) as file:
            yield read
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        give_back()


def _take() -> bytearray | None:
    """The buffer last used of those that nobody holds a view of: the cache has it. None if too many are held."""
    held: list[bytearray] = []
    try:
        while True:
            buffer = _waiting.pop()
            try:
                buffer.pop()  # refused while there is a view
            except BufferError:
                held.append(buffer)
            else:
                buffer.append(0)
                return buffer
    except IndexError:  # none waits
        return bytearray(SIZE) if len(held) < MOST else None
    finally:
        _waiting.extend(reversed(held))
