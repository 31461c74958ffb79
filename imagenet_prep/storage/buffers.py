"""A file's bytes in order, in buffers that are used again: no page of a map has to be found, and no memory grows."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from imagenet_prep.storage.plain import open_plain
from imagenet_prep.storage.refusals import unreadable

SIZE = 2 << 20
"""Bytes of a buffer: more would hardly be faster."""

MOST = 4
"""Buffers that may be waiting until nobody holds a view of them."""

_waiting: deque[bytearray] = deque(maxlen=MOST)


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
