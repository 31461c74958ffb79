"""read_in_turn: rows of a catalog -> their bytes in order, prefetched from an object store;
or files of their own.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import Buffer, Container, FileSlices, Reader
from imagenet_prep.sources.tars import Archive
from imagenet_prep.storage.durable import begin_write_out, write_all
from imagenet_prep.storage.location import AnyPath, local_or_none, local_path
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import changed_since

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_THREADS = 8
_BATCH_ROWS = 32  # rows per request; for archives, ten requests at a time
_MAX_BATCHES = 4
_MAX_BYTES = 32 << 20  # of rows requested and not yet used
_BATCH_BYTES = _MAX_BYTES // _MAX_BATCHES


def read_in_turn(catalog: Catalog, reader: Reader) -> Iterator[Buffer]:
    """The bytes of each row, in order.

    Raises:
        InputError: the bytes of a row are gone or have changed.
        NetworkError, AccessError: the object store can't be reached, or refuses.
    """
    if any(local_or_none(container.path) is None for container in catalog.containers):
        return _fetched(catalog, range(len(catalog)), reader)
    return itertools.starmap(reader.read, catalog.places())


def _fetched(catalog: Catalog, rows: Sequence[int], reader: Reader) -> Iterator[Buffer]:
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(_THREADS)
    requested: deque[tuple[int, Iterator[Buffer]]] = deque()
    requested_bytes = 0
    try:
        for batch in _batches(catalog, rows):
            size = catalog.size(batch)
            while requested and (
                requested_bytes + size > _MAX_BYTES or len(requested) == _MAX_BATCHES
            ):
                used_size, contents = requested.popleft()
                yield from contents
                requested_bytes -= used_size
            requested.append((size, _request(catalog, batch, reader, pool)))
            requested_bytes += size
        for _, contents in requested:
            yield from contents
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(catalog: Catalog, rows: Sequence[int]) -> Iterator[list[int]]:
    """The rows in order, in batches that are requested together."""
    batch: list[int] = []
    size = 0
    for row in rows:
        length = int(catalog.lengths[row])
        if batch and (len(batch) == _BATCH_ROWS or size + length > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += length
    if batch:
        yield batch


def _request(
    catalog: Catalog, batch: Sequence[int], reader: Reader, pool: ThreadPoolExecutor
) -> Iterator[Buffer]:
    """The bytes of each row of a batch: one call for rows of an archive,
    another for separate files.
    """
    groups: dict[Container | int, list[int]] = {}
    for row in batch:
        container = catalog.container(row)
        group_key = container if isinstance(container, Archive) else row
        groups.setdefault(group_key, []).append(row)
    requests: dict[int, tuple[Future[list[Buffer]], int]] = {}
    for group in groups.values():
        future = pool.submit(_read, catalog, group, reader)
        for number, row in enumerate(group):
            requests[row] = future, number
    return (future.result()[number] for future, number in map(requests.__getitem__, batch))


def _read(catalog: Catalog, group: Sequence[int], reader: Reader) -> list[Buffer]:
    container = catalog.container(group[0])
    if isinstance(container, Archive):
        return container.read_all([catalog.row(row) for row in group])
    return [catalog.read(row, reader) for row in group]


def write_rows(
    catalog: Catalog, rows: Iterable[int], folder_of: Callable[[int], Path]
) -> Iterator[int]:
    """Write the bytes of each row to a new file of its name in its target folder, and yield each
    row that is done.

    Names must be safe as paths. Each container is asked for rows by rising offset. The kernel
    copies slices of an archive if it can.

    Raises:
        InputError: a row can't be read, or its container has changed since the listing.
        OSError: a file can't be written.
    """
    ids = catalog.container_ids
    ordered = sorted(rows, key=lambda row: (ids[row], catalog.offsets[row]))
    for number, group in itertools.groupby(ordered, ids.__getitem__):
        container, stamp = catalog.containers[number], 0
        with contextlib.ExitStack() as stack:
            write = _writer(catalog, number, stack)
            for row in group:
                stamp = catalog.stamps[row]
                _refuse_written_to(container.path, stamp)
                path = f"{folder_of(row)}/{catalog.names[row]}"
                descriptor = os.open(
                    path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666
                )
                try:
                    write(row, descriptor)
                    begin_write_out(descriptor)
                finally:
                    os.close(descriptor)
                yield row
        _refuse_written_to(container.path, stamp)


def _writer(
    catalog: Catalog, number: int, stack: contextlib.ExitStack
) -> Callable[[int, int], None]:
    """The function that writes a row of a container to an open file."""
    container = catalog.containers[number]
    if container.is_sliced:
        view = stack.enter_context(FileSlices(local_path(container.path)))

        def copy_slice(row: int, descriptor: int) -> None:
            offset, length = int(catalog.offsets[row]), int(catalog.lengths[row])
            view.copy(offset, length, descriptor)

        return copy_slice
    reader = Reader()
    return lambda row, descriptor: write_all(descriptor, [catalog.read(row, reader)])


def refuse_changed(path: AnyPath, is_the_same: bool) -> None:
    """Raise InputError unless a file is the listed one."""
    if not is_the_same:
        raise changed_since(
            path, "expected the same file, of the same size and time of modification"
        )


def _refuse_written_to(path: AnyPath, stamp: int) -> None:
    try:
        current_stamp = path.stat().st_mtime_ns
    except OSError as error:
        raise unreadable(path, error) from error
    refuse_changed(path, current_stamp == stamp)
