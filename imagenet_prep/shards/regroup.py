"""regroup, the sequential plan: a single read of an archive in its own order copies each image to
its shard's bundle.

Shards hold images in shuffled order. If seeks are expensive (a spinning disk, a network file
system) and the page cache can't hold the archive, fetching images one by one would crawl. So the
archive is read once from start to end. Images are collected per shard up to a memory limit, then
appended to the shard's bundle. A bundle is small enough to be read whole when its shard is made.
The price is one more copy of the data, in large reads and writes. With a Consumption, the pass
resumes after a crash, and frees the archive's space meanwhile.
"""

from __future__ import annotations

import itertools
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedReader, FileIO
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import Progress
from imagenet_prep.shards.consumption import Consumption
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Column, places_of
from imagenet_prep.sources.slices import Buffer, Container, Row
from imagenet_prep.storage.durable import make_folders, write_all
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.storage.memory_maps import map_file
from imagenet_prep.storage.refusals import space_errors, writing
from imagenet_prep.storage.store import changed

CHUNK = 16 << 20
"""Bytes per read of the archive."""

_CRC = struct.Struct("<I")


class Bundle(Container, frozen=True):
    """The images of one shard, each followed by its CRC-32: there may be no other copy of them."""

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows: parts of the bundle's map, after their CRC is checked."""
        content = map_file(local_path(self.path))

        def read(row: Row) -> Buffer:
            stop = row.offset + row.length
            data = content[row.offset : stop]
            if content[stop : stop + _CRC.size] != _CRC.pack(zlib.crc32(data)):
                raise _damaged(
                    self.path, f"{row.name} at byte {row.offset:,} does not match its checksum"
                )
            return data

        return read


def regroup(
    catalog: Catalog,
    shards: Sequence[tuple[str, Sequence[int]]],
    folder: Path,
    *,
    memory: int,
    progress: Progress,
    keeper: Consumption | None = None,
) -> Catalog:
    """Copy the images of ``shards`` (name, rows) from their archives to ``folder``/name, and return
    their new places.

    ``memory`` bytes are held before they are written out. The ``keeper`` makes copied images
    durable, and resumes an earlier pass with the same ``shards``; after a finished pass, ``shards``
    may be some of them. Returns the catalog, with ``shards`` at their new place. Raises InputError
    if an archive is shorter than before, or a bundle too short.
    """
    bundle_of = np.full(len(catalog), -1, np.int32)
    for number, (_, shard_rows) in enumerate(shards):
        bundle_of[places_of(shard_rows)] = number
    rows = _in_order_of_archives(catalog, np.flatnonzero(bundle_of >= 0))
    paths = [folder / name for name, _ in shards]
    bundles = _Bundles(paths, bundle_of.tolist(), memory)
    offsets = catalog.offsets.astype(np.int64)
    container_ids = catalog.container_ids.astype(np.int64)
    start = _start_of_pass(keeper, len(rows))
    sizes = [0] * len(paths)
    durable_sizes = sizes
    for position, row in enumerate(rows):
        if position == start:
            durable_sizes = sizes.copy()
        number = bundle_of[row]
        offsets[row] = sizes[number]
        container_ids[row] = len(catalog.containers) + number
        sizes[number] += int(catalog.lengths[row]) + _CRC.size
    if keeper:
        _take_up(paths, durable_sizes)
        keeper.keep(start, (), _place_of(catalog, rows, start))
    if start < len(rows):
        _copy(catalog, rows, start, bundles, progress, keeper)
    containers = [*catalog.containers, *map(Bundle, paths)]
    return replace(catalog, containers=containers, offsets=offsets, container_ids=container_ids)


def _in_order_of_archives(catalog: Catalog, rows: Column) -> list[int]:
    """The rows by archive and offset."""
    order = np.lexsort((catalog.offsets[rows], catalog.container_ids[rows]))
    in_order: list[int] = rows[order].tolist()
    return in_order


def _start_of_pass(keeper: Consumption | None, rows: int) -> int:
    """The number of the first row to copy, of so many ``rows``: earlier ones are in bundles."""
    if keeper is None:
        return 0
    return rows if keeper.is_read else keeper.rows


def _copy(
    catalog: Catalog,
    rows: Sequence[int],
    start: int,
    bundles: _Bundles,
    progress: Progress,
    keeper: Consumption | None,
) -> None:
    """Run the pass: copy the images of ``rows`` from ``start`` on, in order, each to its bundle."""
    total = catalog.size(rows)
    done = catalog.size(rows[:start])
    progress.begin(f"reading {name_archives(catalog, rows)} in order", total, "B", done)
    with bundles:
        images = _read_in_order(catalog, rows[start:])
        for position, (row, data) in enumerate(images, start + 1):
            written = bundles.add(row, bytes(data))
            if keeper and written:
                keeper.keep(position, written, _place_of(catalog, rows, position))
            progress.advance(len(data))
    if keeper:
        keeper.keep(len(rows), bundles.written, None)
    progress.end()


def _place_of(catalog: Catalog, rows: Sequence[int], position: int) -> tuple[int, int] | None:
    """Container and offset of a row of the pass; None after the last one."""
    if position >= len(rows):
        return None
    row = rows[position]
    return int(catalog.container_ids[row]), int(catalog.offsets[row])


def _take_up(paths: Sequence[Path], sizes: Sequence[int]) -> None:
    """Cut bundles to their durable length.

    Raises:
        InputError: one is shorter, so the pass did not write it.
    """
    for path, size in zip(paths, sizes, strict=True):
        current_size = path.stat().st_size if path.exists() else 0
        if current_size < size:
            raise _damaged(path, f"expected at least {size:,} bytes, got {current_size:,}")
        if current_size > size:
            with writing(path):
                os.truncate(path, size)


def _damaged(path: AnyPath, detail: str) -> InputError:
    """The error for a bundle; raw data that was consumed has no other copy of its images."""
    folder = path.parent.parent
    if not (folder / "record.json").exists():
        hint = "run the same command again: it copies the images from the raw data again"
        return InputError(f"{path} is not as it was written", detail, hint)
    return InputError(
        f"{path} is not as it was written, and its images may exist nowhere else",
        detail,
        Hint(
            f"move {folder} away, get the raw data again with ",
            mention("download"),
            ", and run the same command again: finished shards are kept",
        ),
    )


def name_archives(catalog: Catalog, rows: Sequence[int]) -> str:
    """The name of the archive, or of the first of several, for messages."""
    numbers = sorted({catalog.container_ids[row] for row in rows})
    if not numbers:
        return "nothing"
    unnamed_words = f" and {len(numbers) - 1:,} more" if len(numbers) > 1 else ""
    return f"{catalog.containers[numbers[0]].path.name}{unnamed_words}"


def _read_in_order(catalog: Catalog, rows: Sequence[int]) -> Iterator[tuple[int, Buffer]]:
    """Each row with its bytes, one archive after another, by rising offset."""
    for number, rows_of_archive in itertools.groupby(rows, catalog.container_ids.item):
        archive = catalog.containers[number]
        if archive.is_sliced:
            yield from _read_forward(catalog, rows_of_archive, local_path(archive.path))
        else:
            read = archive.open()
            for row in rows_of_archive:
                yield row, read(catalog.row(row))


def _read_forward(
    catalog: Catalog, rows: Iterable[int], archive: Path
) -> Iterator[tuple[int, Buffer]]:
    """Each row with its bytes; adjacent rows are read together, and no byte twice."""
    with BufferedReader(FileIO(archive), CHUNK) as file:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        for row in rows:
            offset, length = catalog.offsets.item(row), catalog.lengths.item(row)
            file.seek(offset)
            data = file.read(length)
            if len(data) != length:
                raise changed(archive, offset, length, len(data))
            yield row, data


class _Bundles:
    """Files to append to; all are written whenever ``memory`` bytes have been collected."""

    def __init__(self, paths: list[Path], bundle_of: Sequence[int], memory: int) -> None:
        self.written: list[Path] = []  # by the last flush
        self._paths = paths
        self._bundle_of = bundle_of  # a row's index among the paths
        self._memory = memory
        self._held = 0
        self._pending: list[list[bytes]] = [[] for _ in paths]

    def __enter__(self) -> None:
        """Make the folder."""
        for folder in {path.parent for path in self._paths}:
            make_folders(folder)

    def add(self, row: int, data: bytes) -> Sequence[Path]:
        """Append to the bundle of ``row``; returns the bundles written,
        if the memory limit was reached.
        """
        self._pending[self._bundle_of[row]] += (data, _CRC.pack(zlib.crc32(data)))
        self._held += len(data) + _CRC.size
        if self._held < self._memory:
            return ()
        self._flush()
        return self.written

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        """Write the rest, unless an error occurred."""
        if kind is None:
            self._flush()

    def _flush(self) -> None:
        self.written = []
        for path, parts in zip(self._paths, self._pending, strict=True):
            if parts:
                with space_errors(path), path.open("ab", buffering=0) as file:
                    write_all(file.fileno(), parts)
                self.written.append(path)
                parts.clear()
        self._held = 0
