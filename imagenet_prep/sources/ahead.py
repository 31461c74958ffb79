"""Rows of a catalog -> their bytes, in turn; of an object store those of the next rows are fetched meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.container import Container, Reader
from imagenet_prep.sources.slices import Buffer
from imagenet_prep.sources.tars import Archive
from imagenet_prep.storage.location import local_or_none

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_AT_ONCE = 8
_TOGETHER = 32  # rows that are asked for in one call, of an archive ten at a time
_BATCHES = 4
_HELD = 32 << 20  # bytes of rows that were asked for and not taken yet


def read_in_turn(catalog: Catalog, rows: Sequence[int], reader: Reader) -> Iterator[Buffer]:
    """The bytes of each row.

    Raises:
        InputError: those of a row are not there any more.
        NetworkError, AccessError: as their names say.
    """
    if any(local_or_none(container.path) is None for container in catalog.containers):
        return _fetched(catalog, rows, reader)
    return (catalog.read(row, reader) for row in rows)


def _fetched(catalog: Catalog, rows: Sequence[int], reader: Reader) -> Iterator[Buffer]:
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(_AT_ONCE)
    waiting: deque[tuple[int, Iterator[Buffer]]] = deque()
    held = 0
    try:
        for batch in _batches(catalog, rows):
            size = catalog.size(batch)
            while waiting and (held + size > _HELD or len(waiting) == _BATCHES):
                taken, found = waiting.popleft()
                yield from found
                held -= taken
            waiting.append((size, _ask(catalog, batch, reader, pool)))
            held += size
        for _, found in waiting:
            yield from found
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(catalog: Catalog, rows: Sequence[int]) -> Iterator[list[int]]:
    """The rows in turn, as many at a time as are asked for together."""
    batch: list[int] = []
    size = 0
    for row in rows:
        length = int(catalog.lengths[row])
        if batch and (len(batch) == _TOGETHER or size + length > _HELD // 4):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += length
    if batch:
        yield batch


def _ask(catalog: Catalog, batch: Sequence[int], reader: Reader, pool: ThreadPoolExecutor) -> Iterator[Buffer]:
    """The bytes of each row of a batch: those of one archive in one call, those of a file of its own in another."""
    groups: dict[Container | int, list[int]] = {}
    for row in batch:
        container = catalog.container(row)
        groups.setdefault(container if isinstance(container, Archive) else row, []).append(row)
    asked: dict[int, tuple[Future[list[Buffer]], int]] = {}
    for group in groups.values():
        future = pool.submit(_read, catalog, group, reader)
        asked |= {row: (future, number) for number, row in enumerate(group)}
    return (future.result()[number] for future, number in map(asked.__getitem__, batch))


def _read(catalog: Catalog, group: Sequence[int], reader: Reader) -> list[Buffer]:
    container = catalog.container(group[0])
    if isinstance(container, Archive):
        return container.read_all([catalog.row(row) for row in group])
    return [catalog.read(row, reader) for row in group]
