"""ParquetImages, a container: images as Hugging Face's datasets keep them, one per row of a parquet
file.

The column of images, usually ``image``, is a struct of ``bytes`` and ``path``; ``label`` is a
number (https://huggingface.co/docs/datasets/image_load, "Image" in
https://huggingface.co/docs/datasets/about_dataset_features). A row group is compressed as a whole,
usually as one page: to read a row, all earlier rows of its group must be decoded. So rows are read
in file order, a few at a time; any other order decodes the group again per row.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import importlib.util
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError, missing_library
from imagenet_prep.sources.slices import Buffer, Container, ReadOrder, Row
from imagenet_prep.storage.location import local_path
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import changed_since
from imagenet_prep.text import row_text

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile
from imagenet_prep.sources.parquet_columns import (
    REMEDY,
    USUAL_COLUMNS,
    Schema,
    has_usual_columns,
    image_column,
    no_images,
    other_columns,
    parts_of,
    schema_of,
)

BATCH = 64
"""The number of rows decoded at a time."""

_PROBED = 20  # images of which one must be of a known format

HEAD = 32
"""Bytes that tell the format of an image."""

_BUFFER = 1 << 20  # bytes per read of a file
_OTHER_COUNT = "it has another number of rows than it says itself"
_REWRITE = "update pyarrow; or write the file again, with plain columns and a usual compression"


class ImageRow(NamedTuple):
    """A row without its image: its number in the file, from 0,
    and the length of its image in bytes.
    """

    number: int
    path: str
    label: int
    length: int


class ParquetImages(Container, frozen=True):
    """A parquet file with one image per row: a Row's ``offset`` is the row's number in the file,
    from 0.
    """

    is_consumable: ClassVar[bool] = True
    read_order: ClassVar[ReadOrder] = "in order"

    def place(self, row: Row) -> str:
        """The place of a row, for messages."""
        return f"{self.path.name}, {row_text(row.offset)}"

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows; it is fast in file order."""
        return _Rows(local_path(self.path)).read


def check_pyarrow() -> None:
    """Raise UsageError if the library that reads parquet files is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise missing_library("pyarrow", "reads and writes parquet and Arrow files", "parquet")


def iter_rows(path: Path) -> Iterator[ImageRow]:
    """List all rows of a file of ImageNet in order, without their images, which are only read for
    their lengths.

    Raises:
        InputError: the file is damaged, or has other columns.
    """
    schema = Schema("image", ("label",))
    for sample in iter_samples(path, schema, ("image", "label")):
        label = sample.columns["label"]
        if sample.path is None or label is None:
            part = "path" if sample.path is None else "label"
            raise InputError(
                f"{path} has no {part} of the image in {row_text(sample.number)}",
                f"expected {USUAL_COLUMNS}, none of them null",
                REMEDY,
            )
        yield ImageRow(sample.number, sample.path, label, sample.length)


class ParquetRow(NamedTuple):
    """An image of any data set: its number, its path, if known, its length,
    its first bytes, its other columns.
    """

    number: int
    path: str | None
    length: int
    head: bytes
    columns: dict[str, Any]


def read_schema(path: Path) -> Schema:
    """The columns of a file of images.

    Names of classes are in the metadata that Hugging Face's datasets write, as ClassLabel features.

    Raises:
        InputError: it is damaged, or has no column of images.
    """
    with contextlib.closing(_open(path, ())) as file:
        return schema_of(path, file.schema_arrow)


def first_heads(path: Path) -> tuple[str, list[bytes]]:
    """The column of images of a file, and the first bytes of its first images.

    Raises:
        InputError: it is damaged, or has no column of images.
    """
    schema = replace(read_schema(path), columns=())
    samples = itertools.islice(iter_samples(path, schema), _PROBED)
    return schema.image, [sample.head for sample in samples]


def has_images(path: Path) -> bool:
    """Whether a file has a column of images.

    Raises:
        InputError: it is damaged, or no parquet file.
    """
    return image_column(_arrow_schema(path)) is not None


def may_hold_images(path: Path) -> bool:
    """Whether a file has a column of images, or can't be read."""
    try:
        return has_images(path)
    except (InputError, UsageError):
        return True


def read_names(path: Path) -> list[str]:
    """The names of the columns of a file; none for one of images.

    Raises:
        InputError: it is damaged, or no parquet file.
    """
    schema = _arrow_schema(path)
    return [] if image_column(schema) else list(schema.names)


def _arrow_schema(path: Path) -> Any:
    check_pyarrow()
    from pyarrow.parquet import read_schema as read

    with faults_named(path):
        return read(path)


def read_table(path: Path) -> dict[str, list[Any]]:
    """The values of each column of a file without images.

    Raises:
        InputError: it is damaged, or no parquet file.
    """
    check_pyarrow()
    from pyarrow.parquet import ParquetFile

    with (
        faults_named(path),
        contextlib.closing(ParquetFile(path, page_checksum_verification=True)) as file,
    ):
        return file.read(use_threads=False).to_pydict()  # type: ignore[no-any-return]


def iter_samples(path: Path, schema: Schema, needed: Sequence[str] = ()) -> Iterator[ParquetRow]:
    """List all rows of a file in order; images are only read for their lengths and first bytes.

    Raises:
        InputError: the file is damaged, lacks ``needed`` columns, or a row has no image.
    """
    with contextlib.closing(_open(path, needed)) as file:
        count = 0
        for group in range(file.num_row_groups):
            for batch in _batches(path, file, count, group, schema.image, *schema.columns):
                yield from _samples(path, schema, batch, count)
                count += len(batch)
        if count != file.metadata.num_rows:
            raise _damaged(path, count, _OTHER_COUNT)


def _samples(path: Path, schema: Schema, batch: Any, first: int) -> Iterator[ParquetRow]:
    """The rows of a batch, of which ``first`` is the number of the first."""
    import pyarrow.compute as pc

    content, paths = parts_of(batch.column(schema.image))
    refuse_without_bytes(path, content, paths, first)
    with faults_named(path, first):  # a path may be invalid UTF-8
        heads = pc.binary_slice(content, 0, HEAD).to_pylist()
        lengths = pc.binary_length(content).to_pylist()
        names = paths.to_pylist() if paths is not None else [None] * len(batch)
        columns: list[dict[str, Any]] = [{}] * len(batch)
        if schema.columns:
            columns = batch.select(schema.columns).to_pylist()
    return map(ParquetRow, itertools.count(first), names, lengths, heads, columns)


class _Rows:
    """Reads images by their row, for several threads too;
    the next row continues where the last one ended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _open(path, ())
        self._image = image_column(self._file.schema_arrow) or ""
        is_struct = bool(self._file.schema_arrow.field(self._image).type.num_fields)
        self._column = f"{self._image}.bytes" if is_struct else self._image
        groups = range(self._file.num_row_groups)
        counts = (self._file.metadata.row_group(group).num_rows for group in groups)
        self._starts = [0, *itertools.accumulate(counts)]
        self._lock = threading.Lock()
        self._decoded: Any = ()  # the images of the rows from _first on
        self._first = 0
        self._stop = 0  # the end of the current group
        self._batches: Iterator[Any] = iter(())

    def read(self, row: Row) -> Buffer:
        """The bytes of an image."""
        if not 0 <= row.offset < self._starts[-1]:
            raise changed_row(self._path, row)
        with self._lock:
            if not self._first <= row.offset < self._stop:
                self._begin(bisect.bisect_right(self._starts, row.offset) - 1)
            while row.offset >= self._first + len(self._decoded):
                self._decode()
            content = self._decoded[row.offset - self._first].as_buffer()
        if content is None or content.size != row.length:
            raise changed_row(self._path, row)
        return memoryview(content).cast("B")  # pyarrow declares them signed

    def _begin(self, group: int) -> None:
        self._first, self._stop, self._decoded = self._starts[group], self._starts[group + 1], ()
        self._batches = _batches(self._path, self._file, self._first, group, self._column)

    def _decode(self) -> None:
        self._first += len(self._decoded)
        self._decoded = ()  # free the memory first
        batch = next(self._batches, None)
        if batch is None:
            raise _damaged(self._path, self._first, _OTHER_COUNT)
        self._decoded = parts_of(batch.column(self._image))[0]


def changed_row(path: Path, row: Row) -> InputError:
    """The error for a row that is not as it was listed."""
    return changed_since(path, f"expected the same image in {row_text(row.offset)}")


def _open(path: Path, needed: Sequence[str] = ("image", "label")) -> ParquetFile:
    """Open a file and check that it has a column of images, and the ``needed`` ones.

    Raises:
        InputError: it can't be read, is damaged or no parquet file, or has other columns.
    """
    check_pyarrow()
    from pyarrow.parquet import ParquetFile

    with faults_named(path):
        file = ParquetFile(
            path, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
        )
        schema = file.schema_arrow
    if needed and not has_usual_columns(schema):
        raise other_columns(path, schema)
    if image_column(schema) is None:
        raise no_images(path, schema)
    return file


def _batches(path: Path, file: ParquetFile, first: int, group: int, *columns: str) -> Iterator[Any]:
    """The rows of a group, whose first is ``first``;
    without threads, since the process may fork later.
    """
    batches = file.iter_batches(
        batch_size=BATCH, row_groups=[group], columns=columns, use_threads=False
    )
    while True:
        with faults_named(path, first):
            batch = next(batches, None)
        if batch is None:
            return
        first += len(batch)
        yield batch


@contextlib.contextmanager
def faults_named(
    path: Path, row: int | None = None, noun: str = "a parquet file"
) -> Iterator[None]:
    """Turn pyarrow's errors about a file into the error that names it; rows before ``row`` were
    read; None while it is opened.
    """
    from pyarrow import ArrowException, ArrowMemoryError, ArrowNotImplementedError

    try:
        yield
    except (ArrowException, OSError, UnicodeError) as error:
        number = errno.EISDIR if path.is_dir() else getattr(error, "errno", None)
        reason = str(error).partition("\n")[0]
        if isinstance(error, UnicodeEncodeError):  # of the path: the file is not opened
            raise InputError(
                f"{path} can't be read: its path is not UTF-8",
                "pyarrow opens only paths in UTF-8",
                "rename the file, or the folder whose name is not UTF-8",
            ) from error
        if number:
            raise unreadable(path, OSError(number, os.strerror(number))) from error
        if isinstance(error, ArrowNotImplementedError):
            raise InputError(f"pyarrow can't read {path}", reason, _REWRITE) from error
        if isinstance(error, ArrowMemoryError):
            what = f"{path} can't be read: it is damaged, or memory is short"
            raise InputError(what, reason, f"free some memory, or {REMEDY}") from error
        if row is not None:
            raise _damaged(path, row, reason) from error
        raise InputError(f"{path} can't be read as {noun}", reason, _remedy(reason)) from error


def _damaged(path: Path, row: int, reason: str) -> InputError:
    what = f"{path} can't be read at {row_text(row)}, or after it"
    return InputError(what, reason, _remedy(reason))


def _remedy(reason: str) -> str:
    """The advice for a file that pyarrow can't read."""
    return "write it again without encryption" if "encrypted" in reason else REMEDY


def refuse_without_bytes(path: Path, content: Any, image_paths: Any, first: int) -> None:
    """Raise InputError for the first row without the bytes of an image, which may have its path;
    ``first`` is the number of the first row.
    """
    if not content.null_count:
        return
    position = content.is_valid().to_pylist().index(False)
    image_path = None if image_paths is None else image_paths[position].as_py()
    found, remedy = "null", "put the bytes of its image into the row"
    if image_path:
        found = f"only a path, {image_path}"
        remedy = "write the file again with the bytes of each image in place of its path"
    raise InputError(
        f"{path} has no bytes of an image in {row_text(first + position)}",
        f"expected the bytes of an image in every row, got {found}",
        f"{remedy}, or remove such rows from the file",
    )
