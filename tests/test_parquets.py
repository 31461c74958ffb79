"""Images in parquet files: listed and read as they are, in any order,
with what is wrong said of file and row.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from copies_of_imagenet import SCHEMA, write_parquet
from made_sets import flip

from imagenet_prep.errors import InputError
from imagenet_prep.sources.arrow_files import ArrowImages
from imagenet_prep.sources.parquets import (
    ImageRow,
    ParquetImages,
    faults_named,
    iter_rows,
    iter_samples,
    read_schema,
)
from imagenet_prep.sources.slices import Reader, Row

COUNT = 150
RNG = random.Random(3)
IMAGES = [RNG.randbytes(RNG.randrange(3000)) for _ in range(COUNT)]


def _rows(**changes: Any) -> list[dict[str, Any]]:
    """Rows of made bytes; ``changes`` replace parts of row 97."""
    rows = [
        {"image": {"bytes": content, "path": f"{number}.JPEG"}, "label": number % 7}
        for number, content in enumerate(IMAGES)
    ]
    for key in ("bytes", "path"):
        if key in changes:
            rows[97]["image"] = {**rows[97]["image"], key: changes.pop(key)}
    rows[97].update(changes)
    return rows


def _read_all(path: Path, order: list[int]) -> list[bytes]:
    reader, container = Reader(), ParquetImages(path)
    return [
        bytes(reader.read(container, Row("", number, len(IMAGES[number]), 0))) for number in order
    ]


def _large() -> pa.Schema:
    image = pa.struct([("path", pa.large_string()), ("bytes", pa.large_binary())])
    return pa.schema([("label", pa.int16()), ("more", pa.string()), ("image", image)])


@pytest.mark.parametrize(
    "written", [{}, {"group": 7}, {"group": COUNT}, {"schema": _large()}], ids=str
)
def test_rows_are_listed_and_read_as_they_are(tmp_path: Path, written: dict[str, Any]) -> None:
    """Every row has its path, label and length;
    its bytes come back in order, backwards, and in no order.
    """
    path = write_parquet(tmp_path / "a.parquet", _rows(), **written)
    assert list(iter_rows(path)) == [
        ImageRow(number, f"{number}.JPEG", number % 7, len(IMAGES[number]))
        for number in range(COUNT)
    ]
    order = list(range(COUNT))
    for chosen in (order, order[::-1], random.Random(1).sample(order, COUNT), order[5::40]):
        assert _read_all(path, chosen) == [IMAGES[number] for number in chosen]


def test_memory_is_that_of_a_row_group(tmp_path: Path) -> None:
    """A file is not read whole, whatever its size: what is allocated stays that of a row group."""
    image = os.urandom(1 << 16)
    rows = [
        {"image": {"bytes": image[number:], "path": f"{number}.JPEG"}, "label": 0}
        for number in range(640)
    ]
    path = write_parquet(tmp_path / "a.parquet", rows, group=20)
    del rows
    pool, before = pa.default_memory_pool(), pa.total_allocated_bytes()
    held = []
    for row in iter_rows(path):
        held.append(pool.bytes_allocated() - before)
        assert row.length == len(image) - row.number
    read = ParquetImages(path).open()
    for number in range(640):
        assert read(Row("", number, len(image) - number, 0)) == image[number:]
        held.append(pool.bytes_allocated() - before)
    assert max(held) < 8 * 20 * len(image) < path.stat().st_size / 3


# what is refused ----------------------------------------------------------------------------------


def _image(content: pa.DataType, path: pa.DataType) -> pa.DataType:
    return pa.struct([("bytes", content), ("path", path)])


@pytest.mark.parametrize(
    "columns",
    [
        {"label": pa.int64()},
        {"image": pa.binary(), "label": pa.int64()},
        {"image": pa.struct([("path", pa.string())]), "label": pa.int64()},
        {"image": _image(pa.string(), pa.string()), "label": pa.int64()},
        {"image": _image(pa.binary(), pa.string()), "label": pa.string()},
        {},
    ],
    ids=str,
)
def test_other_columns_are_refused(tmp_path: Path, columns: dict[str, pa.DataType]) -> None:
    """A file of anything else is named with what it has,
    when it is listed, or read without images.
    """
    path = tmp_path / "a.parquet"
    pq.write_table(pa.schema(list(columns.items())).empty_table(), path)
    others = f"{path} has other columns, or types of columns, than Hugging Face's ImageNet"
    uses: list[tuple[Callable[[], object], str]] = [(lambda: list(iter_rows(path)), others)]
    if "image" not in columns:
        uses.append((ParquetImages(path).open, f"{path} has no column of images"))
        arrow = path.with_suffix(".arrow")
        with pa.ipc.new_file(arrow, pa.schema(list(columns.items()))):
            pass
        uses.append((ArrowImages(arrow).open, f"{arrow} has no column of images"))
    for use, what in uses:
        with pytest.raises(InputError) as caught:
            use()
        assert caught.value.what == what
        assert (
            "got no columns" in caught.value.detail
            if not columns
            else next(iter(columns)) in caught.value.detail
        )


@pytest.mark.parametrize(
    "lacking", [{"bytes": None}, {"path": None}, {"label": None}, {"image": None}], ids=str
)
def test_a_row_without_its_image_is_named(tmp_path: Path, lacking: dict[str, None]) -> None:
    """Nothing where bytes, path or label should be: no image is left out without a word."""
    path = write_parquet(tmp_path / "a.parquet", _rows(**lacking), group=50)
    with pytest.raises(InputError, match="in row 98") as caught:
        list(iter_rows(path))
    part = next(iter(lacking))
    noun = part if part in ("path", "label") else "bytes"
    assert f"{path} has no {noun} of " in caught.value.what


def test_a_null_in_any_data_set_is_no_matter_of_labels(tmp_path: Path) -> None:
    """A row may lack its path and its label; the error for its image asks for neither."""
    path = write_parquet(tmp_path / "a.parquet", _rows(bytes=None, path=None, label=None), group=50)
    with pytest.raises(InputError) as caught:
        list(iter_samples(path, read_schema(path)))
    assert caught.value.what == f"{path} has no bytes of an image in row 98"
    assert "label" not in str(caught.value)


def test_a_path_in_place_of_the_bytes_is_shown(tmp_path: Path) -> None:
    """Files of data sets whose images are elsewhere have paths only."""
    path = write_parquet(tmp_path / "a.parquet", _rows(bytes=None), group=50)
    with pytest.raises(InputError) as caught:
        list(iter_samples(path, read_schema(path)))
    assert ", got only a path, " in caught.value.detail
    assert caught.value.hint.startswith("write the file again with the bytes of each image")


def test_a_failure_of_pyarrow_alone_is_not_called_damage(tmp_path: Path) -> None:
    """What it can't do, and memory that is short; before a row is read no row is named."""
    path = tmp_path / "a.parquet"
    with pytest.raises(InputError, match="pyarrow can't read") as caught, faults_named(path, 5):
        raise pa.ArrowNotImplementedError("Support for codec 'lzo' not built")
    assert "damaged" not in str(caught.value)
    with pytest.raises(InputError, match="or memory is short"), faults_named(path, 5):
        raise pa.ArrowMemoryError("malloc of size 64 failed")
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError) as caught:
        read_schema(path)
    assert caught.value.what == f"{path} can't be read as a parquet file"
    assert caught.value.hint == "get an intact copy of it"
    with pytest.raises(InputError) as caught, faults_named(path):
        raise OSError("Could not read encrypted metadata, no decryption found")
    assert caught.value.hint == "write it again without encryption"


def _use(path: Path) -> list[bytes]:
    """List and read all: what stands in the file."""
    return _read_all(path, [row.number for row in iter_rows(path)])


@pytest.mark.parametrize("kept", [0, 4, 20_000, -9, -1])
def test_a_cut_file_is_refused(tmp_path: Path, kept: int) -> None:
    """Cut anywhere, it is never a smaller set."""
    path = write_parquet(tmp_path / "a.parquet", _rows())
    os.truncate(path, kept if kept >= 0 else path.stat().st_size + kept)
    with pytest.raises(InputError) as caught:
        _use(path)
    assert str(path) in caught.value.what
    assert caught.value.detail


def test_a_file_with_a_hole_is_refused_with_its_row(tmp_path: Path) -> None:
    """Zeros where the images of the second group were:
    what came before it is named by its number.
    """
    path = write_parquet(tmp_path / "a.parquet", _rows(), group=100)
    begin = pq.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(bytes(3000))
    with pytest.raises(InputError, match="at row 101") as caught:
        list(iter_rows(path))
    assert str(path) in caught.value.what
    assert _read_all(path, [99]) == [IMAGES[99]]
    with pytest.raises(InputError, match="at row 101"):
        _read_all(path, [99, 120])


def test_a_checksum_of_a_page_is_believed(tmp_path: Path) -> None:
    """Where pages have checksums, one changed byte of an image is found."""
    path = tmp_path / "a.parquet"
    table = pa.Table.from_pylist(_rows(), schema=SCHEMA)
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    flip(path, path.read_bytes().index(IMAGES[70]) + 5)
    with pytest.raises(InputError, match=r"(?i)crc") as caught:
        list(iter_rows(path))
    assert str(path) in caught.value.what


def test_strange_bytes_are_errors_that_name_the_file(tmp_path: Path) -> None:
    """Wherever some bytes are overwritten, the images come out, or an error that names the file."""
    whole = write_parquet(tmp_path / "a.parquet", _rows(), group=50).read_bytes()
    footer = len(whole) - int.from_bytes(whole[-8:-4], "little") - 8
    path, rng, refused = tmp_path / "b.parquet", random.Random(5), []
    for attempt in range(60):
        content = bytearray(whole)
        begin = rng.randrange(footer, len(whole)) if attempt % 2 else rng.randrange(len(whole))
        content[begin : begin + rng.choice((1, 4))] = rng.randbytes(rng.choice((1, 4)))
        path.write_bytes(content)
        try:
            _use(path)
        except InputError as error:
            refused.append(error.what)
    assert len(refused) > 10
    assert all(str(path) in what for what in refused)


@pytest.mark.parametrize("row", [Row("", 97, 5000, 0), Row("", COUNT, 1, 0)], ids=str)
def test_a_file_that_changed_since_it_was_listed_is_refused(tmp_path: Path, row: Row) -> None:
    """Another length, or no such row any more."""
    path = write_parquet(tmp_path / "a.parquet", _rows())
    with pytest.raises(InputError, match="has changed since it was first looked at") as caught:
        ParquetImages(path).open()(row)
    assert str(path) in caught.value.what


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """What can't be opened is named."""
    for path in (tmp_path / "none.parquet", tmp_path):
        with pytest.raises(InputError, match=re.escape(str(path))):
            ParquetImages(path).open()
