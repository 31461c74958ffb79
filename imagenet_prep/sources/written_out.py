"""Rows of a Catalog -> files of their own, read in the order that costs their containers least."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.container import Reader
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.storage.durable import begin_write_out, write_all
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.storage.refusals import unreadable


def write_rows(catalog: Catalog, rows: Iterable[int], folder_of: Callable[[int], Path]) -> Iterator[int]:
    """Write the bytes of each row to a new file of its name in the folder that it goes to, and say which one that was.

    Names must be safe to be made a path of. Each container is asked for rows by rising offset. Slices of an archive are
    copied within the kernel where it can.

    Raises:
        InputError: a row can't be read, or its container was written to since it was listed.
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
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
                try:
                    write(row, descriptor)
                    begin_write_out(descriptor)
                finally:
                    os.close(descriptor)
                yield row
        _refuse_written_to(container.path, stamp)


def _writer(catalog: Catalog, number: int, stack: contextlib.ExitStack) -> Callable[[int, int], None]:
    """What writes a row of a container to an open file."""
    container = catalog.containers[number]
    if container.is_sliced:
        view = stack.enter_context(FileSlices(local_path(container.path)))
        return lambda row, descriptor: view.copy(int(catalog.offsets[row]), int(catalog.lengths[row]), descriptor)
    reader = Reader()
    return lambda row, descriptor: write_all(descriptor, [catalog.read(row, reader)])


def refuse_changed(path: AnyPath, is_the_same: bool) -> None:
    """Raise InputError unless a file is the one that was listed."""
    if not is_the_same:
        raise InputError(
            f"{path} changed while it was read",
            "another file took its place, or something wrote to it",
            "run the same command again once nothing does",
        )


def _refuse_written_to(path: AnyPath, stamp: int) -> None:
    try:
        now = path.stat().st_mtime_ns
    except OSError as error:
        raise unreadable(path, error) from error
    refuse_changed(path, now == stamp)
