"""Plain files -> read-only views: memory maps, or buffers where the system can't load a map."""

from __future__ import annotations

import contextlib
import errno
import functools
import mmap
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from imagenet_prep.errors import InputError
from imagenet_prep.storage.refusals import NOT_PLAIN, unreadable
from imagenet_prep.text import size_text

_NO_DEVICE = (errno.ENXIO, errno.ENODEV)
"""How a system refuses to open a socket, or a device that it does not have."""
_NOT_OPENED = (stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK)

_POPULATE_READ = 22  # madvise(2): linux/mman.h
_NO_MAPS = (errno.ENODEV, errno.ENOSYS, errno.EOPNOTSUPP)
_MOST_COPIED = 4 << 30  # bytes: a shard, never an archive

BUFFER = 2 << 20
"""Size of a buffer in bytes: larger buffers are hardly faster."""

BUFFERS = 4
"""The most buffers that wait for their views to be released."""

_ALIGNED = (
    64  # bytes: some processors copy half as fast from or to places that are not multiples of them
)

_waiting: deque[bytearray] = deque(maxlen=BUFFERS)


def open_plain(path: Path, buffering: int = -1) -> IO[bytes]:
    """Open a file for reading, without waiting for a pipe or reading a device without end.

    ``buffering`` is that of ``open``: a file that is read at once, whole, needs none.

    Raises:
        OSError: it can't be opened, or is not a plain file.
    """
    try:
        file = open(path, "rb", buffering, opener=_open_at_once)  # noqa: SIM115 - the caller closes it
    except OSError as error:
        if error.errno in _NO_DEVICE and stat.S_IFMT(path.stat().st_mode) in _NOT_OPENED:
            raise _not_plain(path) from error
        raise
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise _not_plain(path)


def _not_plain(path: Path) -> OSError:
    return OSError(errno.EINVAL, NOT_PLAIN, os.fspath(path))


def _open_at_once(name: str, flags: int) -> int:
    """Open a file, or a pipe without waiting for its writer."""
    return os.open(name, flags | os.O_NONBLOCK)


def map_file(path: Path, *, in_order: bool = False) -> memoryview:
    """A read-only view of a whole file; an empty file is an empty view. It stays mapped while any
    slice exists.

    ``in_order``: the file is read from start to end, so the system should read ahead.

    Raises:
        InputError: the file can't be opened.
    """
    try:
        with open_plain(path) as file:
            length = os.fstat(file.fileno()).st_size
            return (
                map_descriptor(file.fileno(), length, in_order=in_order)
                if length
                else memoryview(b"")
            )
    except OSError as error:
        raise unreadable(path, error) from error


def map_descriptor(descriptor: int, length: int, *, in_order: bool) -> memoryview:
    """The first ``length`` bytes, at least 1, of an open file; raises OSError.

    Some file systems, such as FUSE with direct_io, refuse shared maps, and others all maps: then
    the map is a private one, or a copy in memory.
    """
    for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
        try:
            return _map(descriptor, length, flags, in_order=in_order)
        except OSError as error:
            if error.errno not in _NO_MAPS:
                raise
    return _copy(descriptor, length)


if sys.version_info >= (3, 13):

    def _map(descriptor: int, length: int, flags: int, *, in_order: bool) -> memoryview:
        mapped = mmap.mmap(descriptor, length, flags=flags, prot=mmap.PROT_READ, trackfd=False)
        if in_order:
            mapped.madvise(mmap.MADV_SEQUENTIAL)
        return memoryview(mapped)

    def _populate(mapped: Any, start: int, length: int) -> None:
        mapped.madvise(_POPULATE_READ, start, length)

else:

    def _map(descriptor: int, length: int, flags: int, *, in_order: bool) -> memoryview:
        import ctypes
        import weakref

        system = ctypes.CDLL(
            None, use_errno=True
        )  # a private handle: settings of its functions affect nobody else
        system.mmap.restype = ctypes.c_void_p
        number, size = ctypes.c_int, ctypes.c_size_t
        system.mmap.argtypes = [ctypes.c_void_p, size, number, number, number, ctypes.c_ssize_t]
        system.munmap.argtypes, system.madvise.argtypes = (
            [ctypes.c_void_p, size],
            [ctypes.c_void_p, size, number],
        )
        address = system.mmap(None, length, mmap.PROT_READ, flags, descriptor, 0)
        if address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        if in_order:
            system.madvise(address, length, mmap.MADV_SEQUENTIAL)
        mapped = (ctypes.c_ubyte * length).from_address(address)
        weakref.finalize(
            mapped, system.munmap, address, length
        ).atexit = False  # others may still read at exit
        return memoryview(mapped).cast("B").toreadonly()

    def _populate(mapped: Any, start: int, length: int) -> None:
        import ctypes

        if _advise()(ctypes.addressof(mapped) + start, length, _POPULATE_READ) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    @functools.cache
    def _advise() -> Callable[[int, int, int], int]:
        """The system's madvise."""
        import ctypes

        advise = ctypes.CDLL(None, use_errno=True).madvise
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        return advise


def _load_pages(view: memoryview, start: int, length: int) -> bool:
    """Load a part of a file's map: using it soon costs no page faults.

    Returns whether it is loaded. It is not if the disk fails, or the file was cut short: using it
    would end the process. So it would if the file is cut short later, or if the system has dropped
    the pages meanwhile and the disk fails then. Systems before Linux 5.14 can't load it.
    """
    is_map = not isinstance(view.obj, (bytes, bytearray))
    if sys.platform != "linux" or not is_map or not length:
        return False
    page_start = start - start % mmap.PAGESIZE
    try:
        _populate(view.obj, page_start, start + length - page_start)
    except OSError:
        return False
    return True


def _copy(descriptor: int, length: int) -> memoryview:
    """A file's bytes; fewer if it was cut short meanwhile."""
    if length > _MOST_COPIED:
        reason = (
            "its file system has no memory maps, and the file is too large for memory: "
            f"{size_text(length)}"
        )
        raise OSError(errno.EOPNOTSUPP, reason)
    content, size = bytearray(length), 0
    while count := os.preadv(descriptor, [memoryview(content)[size:]], size):
        size += count
    return memoryview(content)[:size].toreadonly()


FileState = tuple[int, int, int]
"""Device, inode and size in bytes: a file that replaces another has other
ones as long as that is open or mapped.
"""


def find_state(file: Path | int) -> FileState:
    """The state of a file or descriptor; raises OSError."""
    status = os.stat(file)  # noqa: PTH116 - or a descriptor
    return status.st_dev, status.st_ino, status.st_size


def refuse_replaced(path: Path, file: Path | int, opened: FileState) -> None:
    """Raise InputError if ``file``, found at ``path``, is not the one that was opened there."""
    try:
        state = find_state(file)
    except OSError as error:
        raise unreadable(path, error) from error
    if state != opened:
        raise InputError(
            f"{path} was changed or replaced while it was open",
            "expected the same file",
            "open the set, or run the command, again",
        )


@contextlib.contextmanager
def buffered(
    path: Path, view: memoryview, opened: FileState | None = None
) -> Iterator[Callable[[int], memoryview]]:
    """A function from an offset to the file's bytes there, read-only: ``BUFFER`` bytes, fewer at
    the file's end.

    They are a slice of ``view``, the file's map, if the system can load it first. Otherwise they
    are read into a buffer. A buffer is reused once no slice of it exists. A caller that keeps
    slices of many buffers then gets slices of ``view``: nothing kept is ever overwritten, and
    keeping costs no memory.

    Raises:
        InputError: the file can't be opened, or the returned function can't read it.
    """
    used_buffers: list[bytearray] = []  # the buffer of the last read

    def read(offset: int) -> memoryview:
        window = view[offset : offset + BUFFER]
        if _load_pages(view, offset, len(window)):
            return window
        give_back()
        buffer = _take()
        if buffer is None:
            return view[offset : offset + BUFFER]
        used_buffers.append(buffer)
        skip = offset % _ALIGNED
        place = _aligned(buffer)
        return place[skip : os.preadv(file.fileno(), [place], offset - skip)].toreadonly()

    def give_back() -> None:
        _waiting.extend(used_buffers)
        used_buffers.clear()

    try:
        with open_plain(path) as file:
            if opened is not None:
                refuse_replaced(path, file.fileno(), opened)
            yield read
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        give_back()


def _aligned(buffer: bytearray) -> memoryview:
    import ctypes

    start = -ctypes.addressof(ctypes.c_char.from_buffer(buffer)) % _ALIGNED
    return memoryview(buffer)[start : start + BUFFER]


def _take() -> bytearray | None:
    """The latest buffer without views, which is still in the CPU cache.
    None if too many are in use.
    """
    viewed_buffers: list[bytearray] = []
    try:
        while True:
            buffer = _waiting.pop()
            try:
                buffer.pop()  # fails while a view exists
            except BufferError:
                viewed_buffers.append(buffer)
            else:
                buffer.append(0)
                return buffer
    except IndexError:  # no buffer waits
        return bytearray(BUFFER + _ALIGNED) if len(viewed_buffers) < BUFFERS else None
    finally:
        _waiting.extend(reversed(viewed_buffers))
