"""ParquetImages, a container: images as Hugging Face's datasets keep them, one per row of a parquet file.

Column ``image`` is a struct of ``bytes`` and ``path``, ``label`` a number
(https://huggingface.co/docs/datasets/image_load, "Image" in https://huggingface.co/docs/datasets/about_dataset_features).
A row group is compressed as a whole, usually as one page: to read a row, all earlier rows of its group must be decoded.
So rows are read in file order, a few at a time; any other order decodes the group again per row.
"""

from __future__ import annotations

import bisect
import contextlib
import importlib.util
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.sources.slices import Buffer, Container, Reading, Row
from imagenet_prep.storage.location import local_path
from imagenet_prep.storage.refusals import unreadable

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

BATCH = 64
"""The number of rows decoded at a time."""

_BUFFER = 1 << 20  # bytes per read of a file
_REMEDY = "get an intact copy of it"
_COLUMNS = "a column image of bytes and path, and a column label of whole numbers"


class ImageRow(NamedTuple):
    """A row without its image: its number in the file, from 0, and the length of its image in bytes."""

    number: int
    path: str
    label: int
    length: int


@dataclass(frozen=True, slots=True)
class ParquetImages(Container):
    """A parquet file with one image per row: a Row's ``offset`` is the row's number in the file, from 0."""

    reading: ClassVar[Reading] = "in order"

    def place(self, row: Row) -> str:
        """The place of a row, for messages."""
        return f"{self.path.name}, row {row.offset:,}"

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows; it is fast in file order."""
        return _Rows(local_path(self.path)).read


def check_pyarrow() -> None:
    """Raise UsageError if the library that reads parquet files is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise UsageError(
            "pyarrow, which reads parquet files, is not installed",
            "expected the extra parquet",
            "pip install 'imagenet-prep[parquet]'    (with make: make imagenet EXTRAS=parquet ...)",
        )


def iter_rows(path: Path) -> Iterator[ImageRow]:
    """List all rows of a file in order, without their images, which are only read for their lengths.

    Raises:
        InputError: the file is damaged, or has other columns.
    """
    with contextlib.closing(_open(path)) as file:
        import pyarrow.compute as pc

        first = 0
        groups = range(file.num_row_groups)
        batches = (each for group in groups for each in _batches(path, file, first, group, "image", "label"))
        for batch in batches:
            image, label = batch.column("image"), batch.column("label")
            content, names = image.field("bytes"), image.field("path")
            if content.null_count or names.null_count or label.null_count:
                raise _without_image(
                    path, first, zip(content.is_valid(), names.is_valid(), label.is_valid(), strict=True)
                )
            with _faults(path, first):  # a path may be invalid UTF-8
                values = names.to_pylist(), label.to_pylist(), pc.binary_length(content).to_pylist()
            yield from map(ImageRow, itertools.count(first), *values)
            first += len(batch)
        if first != file.metadata.num_rows:
            raise _damaged(path, first, f"expected {file.metadata.num_rows:,} rows, got {first:,}")


class _Rows:
    """Reads images by their row, for several threads too; the next row continues where the last one ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _open(path)
        groups = range(self._file.num_row_groups)
        counts = (self._file.metadata.row_group(group).num_rows for group in groups)
        self._starts = [0, *itertools.accumulate(counts)]
        self._lock = threading.Lock()
        self._decoded: Any = ()  # the images of the rows from _first on
        self._first = self._stop = 0  # _stop: the end of the current group
        self._batches: Iterator[Any] = iter(())

    def read(self, row: Row) -> Buffer:
        """The bytes of an image."""
        if not 0 <= row.offset < self._starts[-1]:
            raise self._changed(row, f"a file of {self._starts[-1]:,} rows")
        with self._lock:
            if not self._first <= row.offset < self._stop:
                self._begin(bisect.bisect_right(self._starts, row.offset) - 1)
            while row.offset >= self._first + len(self._decoded):
                self._decode()
            content = self._decoded[row.offset - self._first].as_buffer()
        if content is None or content.size != row.length:
            raise self._changed(row, "null" if content is None else f"{content.size:,}")
        return memoryview(content).cast("B")  # pyarrow declares them signed

    def _begin(self, group: int) -> None:
        self._first, self._stop, self._decoded = self._starts[group], self._starts[group + 1], ()
        self._batches = _batches(self._path, self._file, self._first, group, "image.bytes")

    def _decode(self) -> None:
        self._first += len(self._decoded)
        self._decoded = ()  # free the memory first
        batch = next(self._batches, None)
        if batch is None:
            raise _damaged(self._path, self._first, "its row group ends before its last row")
        self._decoded = batch.column("image").field("bytes")

    def _changed(self, row: Row, got: str) -> InputError:
        return InputError(
            f"{self._path} changed while it was being read",
            f"expected {row.length:,} bytes in row {row.offset:,}, got {got}",
            "run the same command again once nothing writes to it",
        )


def _open(path: Path) -> ParquetFile:
    """Open a file and check that it has the columns of images.

    Raises:
        InputError: it can't be read, is damaged or no parquet file, or has other columns.
    """
    check_pyarrow()
    from pyarrow.parquet import ParquetFile

    with _faults(path, 0):
        file = ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True)
        schema = file.schema_arrow
    if not _holds_images(schema):
        got = ", ".join(f"{field.name}: {field.type}" for field in schema)
        raise InputError(f"{path} holds no images", f"expected {_COLUMNS}; got {got[:300] or 'no columns'}", _REMEDY)
    return file


def _holds_images(schema: Iterable[Any]) -> bool:
    from pyarrow import types

    columns = {field.name: field.type for field in schema}
    if not {"image", "label"} <= columns.keys() or not types.is_struct(columns["image"]):
        return False
    parts = {field.name: field.type for field in columns["image"]}
    content, path = parts.get("bytes"), parts.get("path")
    return (
        (content is not None and (types.is_binary(content) or types.is_large_binary(content)))
        and (path is not None and (types.is_string(path) or types.is_large_string(path)))
        and types.is_integer(columns["label"])
    )


def _batches(path: Path, file: ParquetFile, first: int, group: int, *columns: str) -> Iterator[Any]:
    """The rows of a group, whose first is ``first``; without threads, since the process may fork later."""
    found = file.iter_batches(batch_size=BATCH, row_groups=[group], columns=columns, use_threads=False)
    while True:
        with _faults(path, first):
            batch = next(found, None)
        if batch is None:
            return
        first += len(batch)
        yield batch


@contextlib.contextmanager
def _faults(path: Path, row: int) -> Iterator[None]:
    """Turn pyarrow's errors about a file, read up to ``row``, into the error that names it."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, UnicodeError) as error:
        number = getattr(error, "errno", None)
        if number:
            raise unreadable(path, OSError(number, os.strerror(number))) from error
        raise _damaged(path, row, str(error).partition("\n")[0]) from error


def _damaged(path: Path, row: int, reason: str) -> InputError:
    return InputError(f"{path} is damaged, or no parquet file, at row {row:,}", reason, _REMEDY)


def _without_image(path: Path, first: int, rows: Iterable[Iterable[Any]]) -> InputError:
    """The error for the first incomplete row; ``rows`` give the values of each."""
    lacking = next(number for number, row in enumerate(rows, first) if not all(part.as_py() for part in row))
    return InputError(
        f"{path} lacks the bytes, the path or the label of an image, in row {lacking:,}",
        f"expected {_COLUMNS}, none of them null",
        _REMEDY,
    )
