"""train_counts: the number of train images of each class, from ``meta.mat`` in the devkit of
ILSVRC2012.

It is a MATLAB 5 file ("MAT-File Format", MathWorks, chapter 1) with one variable, ``synsets``: a
struct array of 1,860 synsets, of which 1,000 are classes. A struct's values are matrices in order:
each field of the first synset, then each field of the second one.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.raw_data import how_to_get
from imagenet_prep.sources.tar_members import stream_faults, stream_members
from imagenet_prep.storage.files import open_file, read_plain
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

META = "data/meta.mat"
FOLDER = "ILSVRC2012_devkit_t12"

# Bounds, so that no file takes more than a second; the real one has less than 2 MB in one variable
# of 8 fields.
_LARGEST = 1 << 23  # bytes of meta.mat, and of a variable in it after decompression
_MOST_UNPACKED = 1 << 28  # bytes of the unpacked archive
_MOST_VARIABLES = 100
_MOST_FIELDS = 1024  # bytes of their names
_MOST_NUMBERS = 256  # bytes of the numbers that are read
_MOST_SYNSETS = 10_000
_MOST_IMAGES = 1 << 31

_HEADER = 128
_TAG = 8

_INT32, _UINT32, _MATRIX, _COMPRESSED = 5, 6, 14, 15
_STRUCT, _CHARACTERS = 2, 4  # classes of matrices
_NUMERIC = range(6, 16)
_FORMATS = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}
_ENCODINGS = {1: "ascii", 2: "ascii", 4: "utf-16-", 16: "utf-8", 17: "utf-16-"}


def train_counts(layout: Layout) -> Mapping[str, int] | None:
    """The number of train images of each of the 1,000 classes by wnid; None if the raw folder has
    no devkit.

    The devkit is the official archive, or the folder that it unpacks to.

    Raises:
        InputError: the devkit is damaged, or its table doesn't have every class exactly once.
    """
    for path in devkit_paths(layout):
        if path.name.endswith(".mat"):
            return _parse(str(path), read_plain(path, _LARGEST), _remedy(path, layout))
        remedy = _remedy(path, layout)
        return _parse(f"{META} in {path}", _read_member(path, remedy), remedy)
    return None


def devkit_paths(layout: Layout) -> list[AnyPath]:
    """The devkit's archive and tables that are there; the first one counts."""
    archive = layout.extra_path(facts.ARCHIVES["devkit"])
    tables = [raw_dir / FOLDER / META for raw_dir in (layout.raw_dir, layout.own_raw_dir)]
    return [path for path in (archive, *tables) if path.exists()]


def _read_member(archive_path: AnyPath, remedy: Hint) -> bytes:
    """The content of meta.mat in the archive, which a browser may have decompressed."""
    table = None
    with (
        stream_faults(archive_path),
        open_file(archive_path) as file,
        stream_faults(archive_path, file.tell),
    ):
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if is_packed else file
        for name, content in stream_members(stream, limit=_MOST_UNPACKED, keep=_LARGEST + 1):
            if (b"/" + name).endswith(f"/{META}".encode()):
                table = content
    if table is None:
        raise _unreadable(str(archive_path), remedy)
    return table


def _parse(place: str, content: bytes, remedy: Hint) -> Mapping[str, int]:
    try:
        return _counts(content)
    except _UnreadableError:
        raise _unreadable(place, remedy) from None


def _unreadable(place: str, remedy: Hint) -> InputError:
    return InputError(
        f"{place} is damaged, or is another file",
        "expected the devkit of ILSVRC2012, with the number of train images of each of the "
        f"{facts.CLASSES:,} classes",
        remedy,
    )


def _remedy(path: AnyPath, layout: Layout) -> Hint:
    return Hint(f"move {path} away, and get the devkit again: ", how_to_get(layout, "devkit"))


class _UnreadableError(ValueError):
    """The file is not the devkit's table, or is damaged: the user does the same in each case."""


def _counts(content: bytes) -> dict[str, int]:
    counts: dict[str, int] = {}
    for synset in _synsets(content):
        wnid = synset["WNID"].text()
        if wnid not in facts.labels():
            continue  # an inner node of the tree of synsets
        if wnid in counts:
            raise _UnreadableError
        counts[wnid] = synset["num_train_images"].number()
    if len(counts) < facts.CLASSES:
        raise _UnreadableError
    return counts


# MATLAB 5 -----------------------------------------------------------------------------------------


class _Element(NamedTuple):
    """A typed piece of data; ``order`` is "<" or ">"."""

    data_type: int
    data: memoryview
    order: str

    def inner(self) -> Iterator[_Element]:
        """The elements in it, one after another."""
        return _elements(self.data, self.order)

    def numbers(self) -> tuple[float, ...]:
        """Its numbers."""
        code = _FORMATS.get(self.data_type)
        width = struct.calcsize(f"<{code}") if code else 1
        if code is None or len(self.data) % width or len(self.data) > _MOST_NUMBERS:
            raise _UnreadableError
        return struct.unpack(f"{self.order}{len(self.data) // width}{code}", self.data)


class _Matrix(NamedTuple):
    """A matrix: its class, name, number of items,
    and the elements of their values, each read once.
    """

    matrix_class: int
    name: bytes
    size: int
    values: Iterator[_Element]

    def text(self) -> str:
        """Its characters."""
        element = _next(self.values)
        encoding = _ENCODINGS.get(element.data_type)
        if encoding is None or self.matrix_class != _CHARACTERS:
            raise _UnreadableError
        suffix = {"<": "le", ">": "be"}[element.order] if encoding.endswith("-") else ""
        try:
            return str(element.data, encoding + suffix)
        except UnicodeDecodeError:
            raise _UnreadableError from None

    def number(self) -> int:
        """Its only number, a count."""
        numbers = _next(self.values).numbers() if self.matrix_class in _NUMERIC else ()
        if len(numbers) != 1 or not 0 < numbers[0] < _MOST_IMAGES or numbers[0] % 1:
            raise _UnreadableError
        return int(numbers[0])


def _synsets(content: bytes) -> Iterator[Mapping[str, _Matrix]]:
    """The fields of each struct in the variable ``synsets``."""
    order = {b"IM": "<", b"MI": ">"}.get(content[_HEADER - 2 : _HEADER])
    if order is None or len(content) > _LARGEST:
        raise _UnreadableError
    for element in islice(_elements(memoryview(content)[_HEADER:], order), _MOST_VARIABLES):
        matrix = _matrix(_decompress(element))
        if matrix.name == b"synsets":
            return _structs(matrix)
    raise _UnreadableError


def _structs(matrix: _Matrix) -> Iterator[Mapping[str, _Matrix]]:
    if matrix.matrix_class != _STRUCT or matrix.size > _MOST_SYNSETS:
        raise _UnreadableError
    keys = _field_names(matrix)
    if not {"WNID", "num_train_images"} <= set(keys):
        raise _UnreadableError
    for _ in range(matrix.size):
        yield {key: _matrix(_next(matrix.values)) for key in keys}


def _field_names(matrix: _Matrix) -> list[str]:
    """The names of a struct's fields: all of one width, filled up with zeros."""
    widths, names = _next(matrix.values).numbers(), _next(matrix.values).data
    if len(widths) != 1 or not 0 < widths[0] <= len(names) <= _MOST_FIELDS:
        raise _UnreadableError
    width = int(widths[0])
    fields = [bytes(names[at : at + width]) for at in range(0, len(names), width)]
    return [str(field.partition(b"\0")[0], "ascii", "replace") for field in fields]


def _matrix(element: _Element) -> _Matrix:
    if element.data_type != _MATRIX:
        raise _UnreadableError
    if not element.data:  # MATLAB writes an empty matrix so
        return _Matrix(0, b"", 0, iter(()))
    values = element.inner()
    flags, dimensions, name = _next(values), _next(values), _next(values)
    if flags.data_type != _UINT32 or dimensions.data_type != _INT32 or not flags.data:
        raise _UnreadableError
    return _Matrix(
        int(flags.numbers()[0]) & 0xFF,
        bytes(name.data),
        int(math.prod(dimensions.numbers())),
        values,
    )


def _next(elements: Iterator[_Element]) -> _Element:
    for element in elements:
        return element
    raise _UnreadableError


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    """The elements of ``data``: a tag of type and length, then that many bytes,
    filled up to 8 unless compressed.
    """
    position = 0
    while position < len(data):
        tag = data[position : position + _TAG]
        if len(tag) < _TAG:
            raise _UnreadableError
        data_type, length = struct.unpack(f"{order}II", tag)
        start = position + _TAG
        # a small element: its length in the upper half of the type, its data in place of the length
        if data_type >> 16:
            data_type, length, start = data_type & 0xFFFF, data_type >> 16, position + 4
            if length > 4:
                raise _UnreadableError
        if length > len(data) - start:
            raise _UnreadableError
        yield _Element(data_type, data[start : start + length], order)
        position = max(position + _TAG, start + length)
        if data_type != _COMPRESSED:
            position += -position % _TAG


def _decompress(element: _Element) -> _Element:
    """The element that a compressed one holds."""
    if element.data_type != _COMPRESSED:
        return element
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(element.data, _LARGEST)
    except zlib.error:
        raise _UnreadableError from None
    if not unpacker.eof:
        raise _UnreadableError
    return _next(_elements(memoryview(content), element.order))
