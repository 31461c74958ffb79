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
import importlib.util
import itertools
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from msgspec import Struct

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import command_line
from imagenet_prep.hints import Hint
from imagenet_prep.sources.slices import Buffer, Container, ReadOrder, Row
from imagenet_prep.storage.location import local_path
from imagenet_prep.storage.refusals import unreadable

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

BATCH = 64
"""The number of rows decoded at a time."""

HEAD = 32
"""Bytes that tell the format of an image."""

_USUAL = ("image", "img", "jpg", "jpeg", "png", "webp", "picture", "photo")
"""Usual names of a column of images, the likeliest first."""

_BUFFER = 1 << 20  # bytes per read of a file
_REMEDY = "get an intact copy of it"
_COLUMNS = "a column image of bytes and path, and a column label of whole numbers"


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

    read_order: ClassVar[ReadOrder] = "in order"

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
            Hint(
                command_line(["pip", "install", "imagenet-prep[parquet]"]),
                "    (with make: make imagenet EXTRAS=parquet ...)",
            ),
        )


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
            raise without_image(path, sample.number)
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


class Schema(Struct, frozen=True):
    """The columns of a file.

    Args:
        image: that of images.
        columns: others that can be read.
        passed: those that can't.
        classes: the names of the classes of columns, by column.
        objects: the one of ``columns`` that has the boxes of each image and their classes.
        object_classes: the names of those classes.
        unread_boxes: those of ``passed`` that seem to have boxes.
    """

    image: str
    columns: Sequence[str]
    passed: Sequence[str] = ()
    classes: Mapping[str, Sequence[str]] = {}
    objects: str | None = None
    object_classes: Sequence[str] = ()
    unread_boxes: Sequence[str] = ()


def read_schema(path: Path) -> Schema:
    """The columns of a file of images.

    Names of classes are in the metadata that Hugging Face's datasets write, as ClassLabel features.

    Raises:
        InputError: it is damaged, or has no column of images.
    """
    with contextlib.closing(_open(path, ())) as file:
        return schema_of(path, file.schema_arrow)


def schema_of(path: Path, schema: Any) -> Schema:
    """The columns of a file by pyarrow's schema.

    Raises:
        InputError: no column has images.
    """
    image = image_column(schema)
    if image is None:
        raise _no_images(path, schema)
    columns = [column for column in schema if column.name != image]
    readable, objects = _readable_columns(columns)
    unread = [column for column in columns if column.name not in readable]
    classes, object_classes = _class_names(schema, objects)
    return Schema(
        image,
        readable,
        [column.name for column in unread],
        classes,
        objects,
        object_classes,
        [column.name for column in unread if _BOXES.search(str(column))],
    )


def _readable_columns(columns: Sequence[Any]) -> tuple[list[str], str | None]:
    """The columns of plain values and the one of objects, if there is one; and that one alone."""
    plain: list[str] = []
    objects: str | None = None
    for column in columns:
        if _is_plain(column.type):
            plain.append(column.name)
        elif objects is None and _has_objects(column.type):
            objects = column.name
    return (plain if objects is None else [*plain, objects]), objects


_BOXES = re.compile(r"box|object|annotations\b")
"""Words in the names of columns that hold boxes, or of the fields of those."""


def _class_names(
    schema: Any, objects: str | None
) -> tuple[dict[str, Sequence[str]], Sequence[str]]:
    """The names of classes by column, and those of objects, in the metadata of Hugging Face's."""
    classes: dict[str, Sequence[str]] = {}
    try:
        metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = metadata["info"]["features"]
        for name, feature in features.items():
            if feature.get("_type") == "ClassLabel":
                classes[name] = feature["names"]
        return classes, next(_class_labels_in(features.get(objects)), ())
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}, ()


def _inner_type(arrow_type: Any) -> Any:
    """The type of the values of a list; any other type as it is."""
    from pyarrow import types

    is_list = types.is_list(arrow_type) or types.is_large_list(arrow_type)
    return arrow_type.value_type if is_list else arrow_type


def _has_objects(arrow_type: Any) -> bool:
    """Whether a column has boxes and their classes: a struct of lists, or a list of structs."""
    fields = _fields_of(_inner_type(arrow_type)).keys()
    has_boxes = not fields.isdisjoint(("bbox", "bboxes"))
    return has_boxes and not fields.isdisjoint(("category", "categories"))


def _fields_of(arrow_type: Any) -> dict[str, Any]:
    """The types of the fields of a struct by their names; none of another type."""
    from pyarrow import types

    if not types.is_struct(arrow_type):
        return {}
    return {field.name: field.type for field in arrow_type}


def _class_labels_in(feature: Any) -> Iterator[Sequence[str]]:
    """The names of every ClassLabel within the description of a column."""
    if isinstance(feature, list):
        for part in feature:
            yield from _class_labels_in(part)
    elif isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
        yield feature["names"]
    elif isinstance(feature, dict):
        yield from _class_labels_in(list(feature.values()))


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

    with faults_named(path, 0):
        return read(path)


def read_table(path: Path) -> dict[str, list[Any]]:
    """The values of each column of a file without images.

    Raises:
        InputError: it is damaged, or no parquet file.
    """
    check_pyarrow()
    from pyarrow.parquet import ParquetFile

    with (
        faults_named(path, 0),
        contextlib.closing(ParquetFile(path, page_checksum_verification=True)) as file,
    ):
        return file.read(use_threads=False).to_pydict()  # type: ignore[no-any-return]


def _is_plain(arrow_type: Any) -> bool:
    """Whether a column has numbers, texts, or lists of them."""
    from pyarrow import types

    inner = _inner_type(arrow_type)
    is_number = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)
    return is_number or _is_text(inner)


def _is_text(arrow_type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(arrow_type) or types.is_large_string(arrow_type))


def _is_binary(arrow_type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(arrow_type) or types.is_large_binary(arrow_type))


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
        expected = file.metadata.num_rows
        if count != expected:
            raise _damaged(path, count, f"expected {expected:,} rows, got {count:,}")


def _samples(path: Path, schema: Schema, batch: Any, first: int) -> Iterator[ParquetRow]:
    """The rows of a batch, of which ``first`` is the number of the first."""
    import pyarrow.compute as pc

    content, paths = parts_of(batch.column(schema.image))
    if content.null_count:
        raise without_image(path, first + content.is_valid().to_pylist().index(False))
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
        self._batches = _batches(self._path, self._file, self._first, group, self._column)

    def _decode(self) -> None:
        self._first += len(self._decoded)
        self._decoded = ()  # free the memory first
        batch = next(self._batches, None)
        if batch is None:
            raise _damaged(self._path, self._first, "its row group ends before its last row")
        self._decoded = parts_of(batch.column(self._image))[0]

    def _changed(self, row: Row, got: str) -> InputError:
        return InputError(
            f"{self._path} changed while it was being read",
            f"expected {row.length:,} bytes in row {row.offset:,}, got {got}",
            "run the same command again once nothing writes to it",
        )


def _open(path: Path, needed: Sequence[str] = ("image", "label")) -> ParquetFile:
    """Open a file and check that it has a column of images, and the ``needed`` ones.

    Raises:
        InputError: it can't be read, is damaged or no parquet file, or has other columns.
    """
    check_pyarrow()
    from pyarrow.parquet import ParquetFile

    with faults_named(path, 0):
        file = ParquetFile(
            path, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
        )
        schema = file.schema_arrow
    has_columns = _holds_images(schema) if needed else image_column(schema) is not None
    if not has_columns:
        raise _no_images(path, schema)
    return file


def _no_images(path: Path, schema: Any) -> InputError:
    got = ", ".join(f"{field.name}: {field.type}" for field in schema)
    return InputError(
        f"{path} holds no images", f"expected {_COLUMNS}; got {got[:300] or 'no columns'}", _REMEDY
    )


def _holds_images(schema: Iterable[Any]) -> bool:
    from pyarrow import types

    columns = {field.name: field.type for field in schema}
    if not {"image", "label"} <= columns.keys() or not types.is_integer(columns["label"]):
        return False
    parts = _fields_of(columns["image"])
    if not {"bytes", "path"} <= parts.keys():
        return False
    return _is_binary(parts["bytes"]) and _is_text(parts["path"])


def image_column(schema: Any) -> str | None:
    """The column of images: structs with bytes, or bytes alone;
    one of the usual name, otherwise the first.
    """
    names = [column.name for column in schema if _may_be_image(column.type)]
    usual = [name for name in _USUAL if name in names]
    return next(iter(usual + names), None)


def _may_be_image(arrow_type: Any) -> bool:
    """Whether a column has bytes, alone or in structs."""
    fields = _fields_of(arrow_type)
    return _is_binary(arrow_type) or ("bytes" in fields and _is_binary(fields["bytes"]))


def parts_of(column: Any) -> tuple[Any, Any]:
    """The bytes of a column of images, and their paths, if it has them."""
    from pyarrow import types

    if not types.is_struct(column.type):
        return column, None
    fields = _fields_of(column.type)
    has_path = "path" in fields and _is_text(fields["path"])
    return column.field("bytes"), column.field("path") if has_path else None


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
def faults_named(path: Path, row: int, noun: str = "parquet file") -> Iterator[None]:
    """Turn pyarrow's errors about a file, read up to ``row``, into the error that names it."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, UnicodeError) as error:
        number = getattr(error, "errno", None)
        if number:
            raise unreadable(path, OSError(number, os.strerror(number))) from error
        raise _damaged(path, row, str(error).partition("\n")[0], noun) from error


def _damaged(path: Path, row: int, reason: str, noun: str = "parquet file") -> InputError:
    return InputError(f"{path} is damaged, or no {noun}, at row {row:,}", reason, _REMEDY)


def without_image(path: Path, row: int) -> InputError:
    """The error for a row without an image."""
    return InputError(
        f"{path} lacks the bytes, the path or the label of an image, in row {row:,}",
        f"expected {_COLUMNS}, none of them null",
        _REMEDY,
    )
