"""Space of a file given back to the file system, a range at a time: its length stays, what was there reads as zeros."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import tempfile
from pathlib import Path

_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # fallocate(2): linux/falloc.h
_NOT_HERE = (errno.EOPNOTSUPP, errno.ENOSYS)


def punch(path: Path, start: int, stop: int) -> None:
    """Give back the bytes of ``path`` from ``start`` to ``stop``; what was there is gone.

    Raises:
        OSError: the system refused; of what was asked nothing or some of it is done.
    """
    descriptor = os.open(path, os.O_WRONLY)
    try:
        _punch(descriptor, start, stop)
    finally:
        os.close(descriptor)


def can_punch(folder: Path) -> bool:
    """Whether the file system of ``folder`` gives space back, tried on a file of no name: nothing appears there.

    Raises:
        OSError: nothing can be written there.
    """
    if sys.platform != "linux":
        return False
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(1 << 12))
        file.flush()
        try:
            _punch(file.fileno(), 0, 1 << 12)
        except OSError as error:
            if error.errno in _NOT_HERE:
                return False
            raise
    return True


def _punch(descriptor: int, start: int, stop: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    call = getattr(libc, "fallocate64", None) or libc.fallocate  # musl has one, of 64 bits, everywhere
    mode, offset, length = ctypes.c_int(_PUNCH_HOLE | _KEEP_SIZE), ctypes.c_int64(start), ctypes.c_int64(stop - start)
    while call(ctypes.c_int(descriptor), mode, offset, length) != 0:
        if ctypes.get_errno() != errno.EINTR:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
