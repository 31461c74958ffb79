"""Formats of arrays other than NumPy's -> StoredArrays by name: HDF5, MATLAB's .mat, CSV of pixels,
CIFAR-10, STL-10.

CIFAR's is described at https://www.cs.toronto.edu/~kriz/cifar.html ("binary version"), STL-10's at
https://cs.stanford.edu/~acoates/stl10 (images by channel, then by column).
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from imagenet_prep.sources.stored_arrays import (
    OtherFormError,
    StoredArray,
    check_claim,
    need_library,
    stored_rows,
)
from imagenet_prep.text import number_of

Arrays = dict[str, StoredArray]

_HDF5 = b"\x89HDF\r\n\x1a\n"
_MATLAB = b"MATLAB "
_PIXELS = re.compile(rb"([^,\n]*,)*?(pixel_?0*[01],pixel|1x1,1x2|pixels(,|\r?\n))", re.IGNORECASE)
_WHOLE = re.compile(r"\s*\d+(\.0*)?\s*")
_SHOWN = 40
_PIXEL = re.compile(r"pixel_?\d+|\d+x\d+", re.IGNORECASE)
_CIFAR = re.compile(r"(data_batch_\d+|test_batch)\.bin")
_STL = re.compile(r"(train|test|unlabeled)_([Xy])\.bin")
_CIFAR_SIDE, _STL_SIDE = 32, 96
_MNIST_SIDE = 28
_USAGES = {"training": "train", "publictest": "val", "privatetest": "test"}
_CHANNELS = (1, 3, 4)


def is_of_array_format(name: str, head: bytes) -> bool:
    """Whether a file holds arrays in one of these formats, by its name and its first 32 bytes."""
    return any(is_one(name, head) for is_one, _ in _FORMATS)


def open_array_format(path: Path, head: bytes) -> Arrays:
    """The arrays of such a file; raises UsageError if the library that
    reads it is not installed.
    """
    readers = (read for is_one, read in _FORMATS if is_one(path.name, head))
    read = next(readers)
    return read(path)


def counts_from_1(name: str) -> bool:
    """Whether labels count from 1 in a file of this name: in MATLAB's, and in STL-10's."""
    is_matlab = name.lower().endswith(".mat")
    return is_matlab or _STL.fullmatch(name) is not None


def _is_hdf5(name: str, head: bytes) -> bool:
    if not name.lower().endswith((".h5", ".hdf5", ".mat")):
        return False
    if head.startswith(_HDF5):
        return True
    return head.startswith(_MATLAB) and b"7.3" in head[:16]


def _is_matlab(name: str, head: bytes) -> bool:
    is_mat = name.lower().endswith(".mat")
    return is_mat and head.startswith(_MATLAB)


def _is_pixel_table(name: str, head: bytes) -> bool:
    is_csv = name.lower().endswith(".csv")
    return is_csv and _PIXELS.match(head) is not None


def _is_cifar(name: str, head: bytes) -> bool:
    return bool(head) and _CIFAR.fullmatch(name) is not None


def _is_stl(name: str, head: bytes) -> bool:
    return bool(head) and _STL.fullmatch(name) is not None


# HDF5 and MATLAB ----------------------------------------------------------------------------------


def _open_hdf5(path: Path) -> Arrays:
    """The data sets of all groups; MATLAB's have their dimensions in reverse."""
    extra = "mat" if path.suffix == ".mat" else "hdf5"
    h5py = need_library("h5py", extra, "HDF5 files")
    names: list[str] = []

    def add_plain(name: str, item: Any) -> None:
        if _is_plain(item):
            names.append(name)

    with h5py.File(path) as file:
        file.visititems(add_plain)
    arrays: Arrays = {}
    for name in names:
        load = functools.partial(_load_hdf5, path, name)
        if path.suffix.lower() == ".mat":
            load = functools.partial(_reversed, path, load)
        dotted_name = name.replace("/", ".")
        arrays[dotted_name] = stored_rows(path, load)
    return arrays


def _is_plain(item: Any) -> bool:
    """Whether it is an array of numbers or of texts, in this file."""
    if getattr(item, "external", None) or getattr(item, "is_virtual", False):
        return False
    shape = getattr(item, "shape", ())
    dtype = getattr(item, "dtype", None)
    has_rows = bool(shape) and 0 not in shape
    if not has_rows or dtype is None:
        return False
    return dtype.kind in "biufS"


def _load_hdf5(path: Path, name: str) -> Any:
    h5py = need_library("h5py", "hdf5", "HDF5 files")
    file = h5py.File(path)
    return file[name]


def _reversed(path: Path, load: Callable[[], Any]) -> Any:
    rows = load()
    check_claim(path, rows.shape, rows.dtype)  # all of it is read
    matrix = np.asarray(rows).T
    return _examples_first(matrix)


def _open_matlab(path: Path) -> Arrays:
    loadmat = need_library("scipy.io", "mat", ".mat files").loadmat
    variables = loadmat(path, squeeze_me=False, struct_as_record=True)
    named_variables = {
        name: variable for name, variable in variables.items() if not name.startswith("__")
    }
    arrays: Arrays = {}
    for name, matrix in _iter_matrices(named_variables):
        rows = _examples_first(matrix)
        load = functools.partial(_as_is, rows)
        arrays[name] = stored_rows(path, load)
    return arrays


def _iter_matrices(variables: Mapping[str, Any], lead: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays of numbers of a .mat by their names;
    those in structures are called structure.name.
    """
    for name, matrix in variables.items():
        if not isinstance(matrix, np.ndarray):
            continue
        if matrix.dtype.names and matrix.size == 1:
            inner = {field: matrix[field].item() for field in matrix.dtype.names}
            yield from _iter_matrices(inner, f"{lead}{name}.")
        elif matrix.dtype.kind in "biuf" and matrix.size:
            yield f"{lead}{name}", matrix


def _examples_first(matrix: Any) -> Any:
    """MATLAB's images with the number of the image first: H x W x C x N is N x H x W x C, a row of
    labels a column.

    Rows of 784 bytes are images of 28 x 28 by column.
    """
    if matrix.ndim == 4 and matrix.shape[2] in _CHANNELS:
        return np.moveaxis(matrix, 3, 0)
    if matrix.ndim != 2:
        return matrix
    if matrix.shape[1] == _MNIST_SIDE**2 and matrix.dtype == np.uint8:
        images_by_column = matrix.reshape(-1, _MNIST_SIDE, _MNIST_SIDE)
        return images_by_column.transpose(0, 2, 1)
    if matrix.shape[0] == 1:
        return matrix.T
    return matrix


def _as_is(rows: Any) -> Any:
    return rows


# tables of pixels ---------------------------------------------------------------------------------


class _PixelTableReader(Protocol):
    """The csv.reader of a table."""

    @property
    def line_num(self) -> int:
        """The number of lines read; a row may have several."""
        ...

    def __iter__(self) -> Iterator[list[str]]:
        """The rows."""
        ...


class _PixelColumns(NamedTuple):
    """The places of columns in a table of pixels: a column for each pixel, or one of numbers with
    spaces between them; that of the split; and the others.
    """

    pixels: list[int]
    is_single: bool
    usage: int | None
    others: list[int]

    @classmethod
    def find(cls, header: Sequence[str]) -> _PixelColumns:
        """The places of columns by their names."""
        names = [name.lower() for name in header]
        pixels = [place for place, name in enumerate(header) if _PIXEL.fullmatch(name)]
        used_places = {*pixels}
        is_single = "pixels" in names
        if is_single:
            pixels = [names.index("pixels")]
            used_places.update(pixels)
        others = [place for place in range(len(names)) if place not in used_places]
        usage = next((place for place in others if names[place] == "usage"), None)
        return cls(pixels, is_single, usage, others)


def _open_pixel_table(path: Path) -> Arrays:
    """The pixels, and the other columns, of each split."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows)]
        columns = _PixelColumns.find(header)
        splits = _read_pixel_rows(rows, columns, len(header))
    arrays: Arrays = {}
    for split, samples in splits.items():
        lead = f"{split}." if split else ""
        pixel_rows = np.stack([pixels for pixels, _ in samples])
        images = _squares(pixel_rows)
        load = functools.partial(_as_is, images)
        arrays[f"{lead}pixels.images"] = stored_rows(path, load)
        for number, place in enumerate(columns.others):
            if place == columns.usage:
                continue
            texts = [cells[number] for _, cells in samples]
            column = _numbers_or_texts(texts)
            if _counts_rows(header[place], column):
                continue
            load = functools.partial(_as_is, column)
            name = header[place] or f"column {place + 1}"
            arrays[f"{lead}{name}"] = stored_rows(path, load)
    return arrays


_ROW_NUMBER = re.compile(r"|unnamed: \d+|index|(?:row|image)?[_ ]?id", re.IGNORECASE)
"""The name of a column of the numbers of rows, as pandas writes them, or without one."""


def _counts_rows(name: str, column: Any) -> bool:
    """Whether a column has only the numbers of rows: they are neither labels nor facts."""
    if _ROW_NUMBER.fullmatch(name) is None or column.dtype != np.int64:
        return False
    return bool((np.diff(column) == 1).all())


def _read_pixel_rows(
    rows: _PixelTableReader, columns: _PixelColumns, width: int
) -> dict[str, list[tuple[Any, list[str]]]]:
    """The pixels and the other cells of each row, by split; "" without one."""
    splits: dict[str, list[tuple[Any, list[str]]]] = {}
    for row in rows:
        line = rows.line_num
        if len(row) != width:
            cells = number_of(len(row), "cell")
            raise _bad_line(line, f" has {cells}: expected {width:,}")
        texts = [row[place] for place in columns.pixels]
        if columns.is_single:
            texts = texts[0].split()
        pixels = _bytes_of(texts, line)
        other_cells = [row[place] for place in columns.others]
        split = ""
        if columns.usage is not None:
            usage = row[columns.usage]
            split = _USAGES.get(usage.lower(), usage)
        samples = splits.setdefault(split, [])
        expected = len(samples[0][0]) if samples else len(pixels)
        if len(pixels) != expected:
            count = number_of(len(pixels), "pixel")
            problem = f" has {count}: expected {expected:,}, as in an earlier row"
            raise _bad_line(line, problem)
        samples.append((pixels, other_cells))
    return splits


def _bytes_of(texts: list[str], line: int) -> Any:
    if not texts:
        raise _bad_line(line, " has no pixels")
    has_points = any("." in text for text in texts)
    number_type = np.float64 if has_points else np.int64
    try:
        numbers = np.array(texts, number_type)
    except (ValueError, OverflowError) as error:
        raise _bad_pixel(line, texts) from error
    are_whole = not (numbers % 1).any()
    if not are_whole or numbers.min() < 0 or numbers.max() > 255:
        raise _bad_pixel(line, texts)
    return numbers.astype(np.uint8)


def _bad_pixel(line: int, texts: list[str]) -> OtherFormError:
    """The fault of the first pixel that is not written as expected."""
    bad_pixels = (text for text in texts if not _WHOLE.fullmatch(text) or float(text) > 255)
    pixel = next(bad_pixels, "")[:_SHOWN]
    return _bad_line(line, f" has the pixel {pixel!r}: expected 0 to 255, in digits")


def _bad_line(line: int, problem: str) -> OtherFormError:
    """The fault of a row; ``line`` is the last line of it."""
    return OtherFormError(
        f"line {line:,}{problem}", "correct that line of the file, or get an intact copy of it"
    )


def _squares(rows: Any) -> Any:
    """Rows of pixels as square images, gray or RGB; as they are if they are no squares."""
    count, width = rows.shape
    for channels in (1, 3):
        side = round((width / channels) ** 0.5)
        if side * side * channels != width:
            continue
        if channels == 1:
            return rows.reshape(count, side, side)
        return rows.reshape(count, side, side, channels)
    return rows


def _numbers_or_texts(cells: list[str]) -> Any:
    are_numbers = all(re.fullmatch(r"-?\d{1,18}", cell) for cell in cells)
    if are_numbers:
        return np.array(cells, np.int64)
    return np.array(cells)


# formats of one data set --------------------------------------------------------------------------


def _open_cifar(path: Path) -> Arrays:
    row_bytes = 1 + 3 * _CIFAR_SIDE**2
    _check_rows(path, row_bytes, " and its label")
    load_images = functools.partial(_cifar_rows, path, is_label=False)
    load_labels = functools.partial(_cifar_rows, path, is_label=True)
    images = stored_rows(path, load_images)
    labels = stored_rows(path, load_labels)
    return {"data": images, "labels": labels}


def _cifar_rows(path: Path, *, is_label: bool) -> Any:
    content = np.memmap(path, np.uint8, "r")
    rows = content.reshape(-1, 1 + 3 * _CIFAR_SIDE**2)
    if is_label:
        return rows[:, 0]
    pixels = rows[:, 1:]
    return pixels.reshape(-1, 3, _CIFAR_SIDE, _CIFAR_SIDE)


def _open_stl(path: Path) -> Arrays:
    is_images = path.stem.endswith("X")
    if is_images:
        _check_rows(path, 3 * _STL_SIDE**2)
    load = functools.partial(_stl_rows, path, is_images=is_images)
    return {path.stem: stored_rows(path, load)}


def _stl_rows(path: Path, *, is_images: bool) -> Any:
    content = np.memmap(path, np.uint8, "r")
    if not is_images:
        return content
    images_by_column = content.reshape(-1, 3, _STL_SIDE, _STL_SIDE)
    return images_by_column.transpose(0, 3, 2, 1)


_OTHER_NAME = "get an intact copy of it; if it is no file of CIFAR-10 or STL-10, rename it"


def _check_rows(path: Path, row_bytes: int, more: str = "") -> None:
    size = path.stat().st_size
    if size % row_bytes:
        expected = f"expected a multiple of {row_bytes:,}, the bytes of an image{more}"
        raise OtherFormError(f"it has {size:,} bytes: {expected}", _OTHER_NAME)


IsOfFormat = Callable[[str, bytes], bool]
"""Whether a file is of a format, by its name and its first bytes."""

_FORMATS: list[tuple[IsOfFormat, Callable[[Path], Arrays]]] = [
    (_is_hdf5, _open_hdf5),
    (_is_matlab, _open_matlab),
    (_is_pixel_table, _open_pixel_table),
    (_is_cifar, _open_cifar),
    (_is_stl, _open_stl),
]
