"""Rows of a Catalog -> files of their own, read in the order that costs their containers least."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.container import Container, Reader
from imagenet_prep.storage.durable import begin_write_out, write_all
from imagenet_prep.storage.refusals import unreadable


def write_rows(catalog: Catalog, rows: Iterable[int], folder_of: Callable[[int], Path]) -> Iterator[int]:
    """Write the bytes of each row to a new file of its name in the folder that it goes to, and say which one that was.

    Names must be safe to be made a path of. Each container is asked for rows by rising offset.

    Raises:
        InputError: a row can't be read, or its container was written to since it was listed.
        OSError: a file can't be written.
    """
    reader, ids = Reader(), catalog.container_ids
    ordered = sorted(rows, key=lambda row: (ids[row], catalog.offsets[row]))
    for number, group in itertools.groupby(ordered, ids.__getitem__):
        stamp = catalog.stamps[ordered[0]]
        for row in group:
            stamp = catalog.stamps[row]
            _refuse_changed(catalog.containers[number], stamp)
            content = catalog.read(row, reader)
            descriptor = os.open(
                f"{folder_of(row)}/{catalog.names[row]}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666
            )
            try:
                write_all(descriptor, [content])
                begin_write_out(descriptor)
            finally:
                os.close(descriptor)
            yield row
        _refuse_changed(catalog.containers[number], stamp)


def _refuse_changed(container: Container, stamp: int) -> None:
    try:
        now = container.path.stat().st_mtime_ns
    except OSError as error:
        raise unreadable(container.path, error) from error
    if now != stamp:
        raise InputError(
            f"{container.path} changed while it was read",
            "another file took its place, or something wrote to it",
            "run the same command again once nothing does",
        )
