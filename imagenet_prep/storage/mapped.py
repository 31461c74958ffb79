"""A file -> its bytes as a memory map that keeps no descriptor open: as many files may be mapped as there are."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

from imagenet_prep.storage.plain import open_plain
from imagenet_prep.storage.refusals import unreadable


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
