"""ArrowImages, a container: images in a file of Arrow, as Hugging Face's ``save_to_disk`` writes
it; it is mapped.

A file is a stream of record batches (https://arrow.apache.org/docs/format/Columnar.html, "IPC
Streaming Format"), or the same with a footer. Its columns are those of parquet files.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from imagenet_prep.sources.parquet_columns import Schema, parts_of, schema_of
from imagenet_prep.sources.parquets import (
    HEAD,
    ParquetRow,
    changed_row,
    check_pyarrow,
    faults_named,
    refuse_without_bytes,
)
from imagenet_prep.sources.slices import Buffer, Container, Row
from imagenet_prep.storage.location import local_path
from imagenet_prep.text import row_text

_WITH_FOOTER = b"ARROW1"


class ArrowImages(Container, frozen=True):
    """A file of Arrow with one image per row: a Row's ``offset`` is the row's number in the file,
    from 0.
    """

    def place(self, row: Row) -> str:
        """The place of a row, for messages."""
        return f"{self.path.name}, {row_text(row.offset)}"

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows, in any order."""
        path = local_path(self.path)
        table = _open(path)
        column = table.column(schema_of(path, table.schema).image)
        batches = [parts_of(chunk)[0] for chunk in column.chunks]
        starts = [0, *itertools.accumulate(map(len, batches))]

        def read(row: Row) -> Buffer:
            if row.offset >= starts[-1]:
                raise changed_row(path, row)
            number = bisect.bisect_right(starts, row.offset) - 1
            data = batches[number][row.offset - starts[number]].as_buffer()
            if data is None or data.size != row.length:
                raise changed_row(path, row)
            return memoryview(data).cast("B")

        return read


def read_arrow_schema(path: Path) -> Schema:
    """The columns of a file of images; raises InputError if it is damaged, or has no images."""
    return schema_of(path, _open(path).schema)


def iter_arrow_samples(path: Path, schema: Schema) -> Iterator[ParquetRow]:
    """List all rows of a file in order; raises InputError if it is damaged,
    or a row has no image.
    """
    first = 0
    for batch in _open(path).to_batches():
        content, paths = parts_of(batch.column(schema.image))
        refuse_without_bytes(path, content, paths, first)
        names = paths.to_pylist() if paths is not None else [None] * len(batch)
        rows: list[dict[str, Any]] = [{}] * len(batch)
        if schema.columns:
            rows = batch.select(schema.columns).to_pylist()
        for number, (name, columns) in enumerate(zip(names, rows, strict=True)):
            data = memoryview(content[number].as_buffer())
            yield ParquetRow(first + number, name, len(data), bytes(data[:HEAD]), columns)
        first += len(batch)


def _open(path: Path) -> Any:
    """The table of a file, mapped into memory.

    Raises:
        InputError: it is damaged, or has no images.
        UsageError: pyarrow is not installed.
    """
    check_pyarrow()
    import pyarrow as pa

    with faults_named(path, noun="an Arrow file"):
        source = pa.memory_map(str(path))
        has_footer = source.read(len(_WITH_FOOTER)) == _WITH_FOOTER
        source.seek(0)
        reader = pa.ipc.open_file(source) if has_footer else pa.ipc.open_stream(source)
        table = reader.read_all()
        # places of values, too: one outside of the file would kill the process
        table.validate(full=True)
    return table
