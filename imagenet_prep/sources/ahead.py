"""Rows of a catalog -> their bytes, in turn; of an object store those of the next rows are fetched meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.container import Reader
from imagenet_prep.sources.slices import Buffer
from imagenet_prep.storage.object_path import any_object

_AT_ONCE = 8
_HELD = 32 << 20  # bytes of rows that were asked for and not taken yet


def read_in_turn(catalog: Catalog, rows: Sequence[int], reader: Reader) -> Iterator[Buffer]:
    """The bytes of each row.

    Raises:
        InputError: those of a row are not there any more.
        NetworkError, AccessError: as their names say.
    """
    if any_object(container.path for container in catalog.containers):
        return _fetched(catalog, rows, reader)
    return (catalog.read(row, reader) for row in rows)


def _fetched(catalog: Catalog, rows: Sequence[int], reader: Reader) -> Iterator[Buffer]:
    pool = ThreadPoolExecutor(_AT_ONCE)
    waiting: deque[tuple[int, Future[Buffer]]] = deque()
    held = 0
    try:
        for row in rows:
            length = catalog.lengths[row]
            while waiting and (held + length > _HELD or len(waiting) >= 4 * _AT_ONCE):
                taken, future = waiting.popleft()
                held -= taken
                yield future.result()
            waiting.append((length, pool.submit(catalog.read, row, reader)))
            held += length
        while waiting:
            yield waiting.popleft()[1].result()
    finally:
        pool.shutdown(cancel_futures=True)
