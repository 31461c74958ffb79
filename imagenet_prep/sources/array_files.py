"""ArrayFile, a container: the examples of arrays in one file, a .npy, .npz, IDX or pickle; each is
read as an .npy.

IDX is MNIST's format (http://yann.lecun.com/exdb/mnist, "file format"), pickles are CIFAR's
(https://www.cs.toronto.edu/~kriz/cifar.html, "python version") and those of downsampled ImageNet
(https://image-net.org/download-images.php, "Download downsampled image data").
"""

from __future__ import annotations

import functools
import gzip
import io
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from msgspec.structs import replace

from imagenet_prep.escaping import command_line, path_word
from imagenet_prep.hints import Hint
from imagenet_prep.images import first_bytes, is_npy
from imagenet_prep.images.arrays import ArrayError, read_npy_header
from imagenet_prep.sources.array_formats import is_of_array_format, open_array_format
from imagenet_prep.sources.pickles import LongValue, PickledArray, as_text, load_pickle
from imagenet_prep.sources.slices import Buffer, Container, ReadOrder, Row
from imagenet_prep.sources.stored_arrays import (
    INTACT_OR_NPZ,
    SAVE_AS_NPZ,
    ArrayLike,
    OtherFormError,
    StoredArray,
    check_expansion,
    check_rows,
    damage_named,
    remedy_of,
    stored_rows,
)
from imagenet_prep.storage.location import local_path
from imagenet_prep.storage.memory_maps import open_plain
from imagenet_prep.text import listed

_LARGEST_HEADER = 1 << 16  # bytes; NumPy refuses more than 10,000

_RUN_AGAIN = "run the same command again; if it fails again, get an intact copy of the file"
"""The advice on a file that may have been replaced by another sound one during the run."""

_HEAD = 32  # bytes that tell a format
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_IDX = re.compile(rb"\0\0\x08[\x01-\x04]")
_GZIP = b"\x1f\x8b"
_ZIPS = b"PK\x03\x04", b"PK\x05\x06"


class ArrayFile(Container, frozen=True):
    """A file of arrays: a Row's ``offset`` is the example's number,
    the last folder of its name the array's name.
    """

    read_order: ClassVar[ReadOrder] = "in order"

    def place(self, row: Row) -> str:
        """The place of a row, for messages."""
        return f"{self.path.name}, {row.name.split('/')[-2]}[{row.offset:,}]"

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows; it is fast in the order of the file."""
        path = local_path(self.path)
        arrays = open_arrays(path)

        @functools.lru_cache(maxsize=1)
        def opened(name: str) -> tuple[StoredArray, IO[bytes], bytes]:
            return arrays[name], arrays[name].open(), arrays[name].header

        def read(row: Row) -> Buffer:
            with damage_named(path):
                name = row.name.split("/")[-2]
                if name not in arrays:
                    names = listed(arrays) or "none"
                    problem = f"it was changed: it had the array {name}, now {names}"
                    raise ArrayError(problem, _RUN_AGAIN)
                stored, file, header = opened(name)
                file.seek(stored.start + row.offset * stored.item_bytes)
                data = header + file.read(stored.item_bytes)
                if len(data) != row.length:
                    raise _changed(stored, name, row, len(data))
                return data

        return read


def _changed(stored: StoredArray, name: str, row: Row, size: int) -> ArrayError:
    """The error for an example whose bytes, with a header, are not as many as when the file was
    listed.
    """
    place = f"{name}[{row.offset:,}]"
    if size < len(stored.header) + stored.item_bytes:
        problem = f"the file ends within {place} or before it"
    else:
        problem = f"{place} has the shape {stored.shape[1:]} of {stored.dtype}, and had another"
    return ArrayError(
        f"{problem}: it is damaged, or was replaced after its images were counted",
        _RUN_AGAIN,
    )


def may_hold_arrays(name: str, head: bytes) -> bool:
    """Whether a file is an IDX, perhaps compressed, or a pickle, by its first bytes."""
    is_packed_idx = head.startswith(_GZIP) and re.search(r"idx\d-ubyte\.gz$", name)
    if _IDX.match(head) or is_packed_idx:
        return True
    if is_downsampled(name):
        return True  # a batch that can't be read is an error, not another file
    if is_of_array_format(name, head):
        return True
    return bool(_PICKLE.match(head)) and not name.lower().endswith((".pt", ".pth"))


def open_arrays(path: Path) -> Mapping[str, StoredArray]:
    """The arrays of a file by name: those of an .npz or a pickle have names, any other is called as
    the file is.

    Raises:
        InputError: it is damaged, is no file of arrays, or its pickle would run code.
    """
    with damage_named(path):
        with open_plain(path) as file:
            head = file.read(_HEAD)
        if is_of_array_format(path.name, head):
            return open_array_format(path, head)
        if head.startswith(_ZIPS):
            arrays = _of_npz(path)
            return {name: _as_pictures(array, is_pickle=False) for name, array in arrays.items()}
        is_old_pickle = is_downsampled(path.name) and head[:1] in (b"}", b"(")  # protocols 0 and 1
        if _PICKLE.match(head) or is_old_pickle:
            arrays = _of_pickle(path)
            return {name: _as_pictures(array, is_pickle=True) for name, array in arrays.items()}
        if head.startswith(_GZIP):
            return {stem(path): _of_idx(path, gzip.open)}
        if head.startswith(b"\0\0"):
            return {stem(path): _of_idx(path, open)}
        _refuse_other_format(path, head)
        return {stem(path): _of_npy(path, lambda: path.open("rb"), path.stat().st_size)}


def _refuse_other_format(path: Path, head: bytes) -> None:
    """Raise ArrayError unless a file starts as an .npy."""
    if not head:
        raise ArrayError("it is empty")
    if is_npy(head):
        return
    if path.suffix == ".npy":
        raise ArrayError("it does not start as an .npy does")
    raise OtherFormError(
        "by its name and its first bytes it is none of the formats of arrays: .npy, .npz, IDX, "
        "pickles of protocol 2 to 5, HDF5, .mat, a CSV of pixels, CIFAR, STL-10",
        f"check the path; or {SAVE_AS_NPZ}",
    )


_DOWNSAMPLED = re.compile(r"(train_data_batch_\d+|val_data)(\.npz|\.pkl|\.pickle)?")
_SIDES = (8, 16, 32, 64)
_CIFAR_SIDE = 32


def is_downsampled(name: str) -> bool:
    """Whether a file has the name of a batch of downsampled ImageNet (Chrabaszcz,
    Loshchilov, Hutter, 2017).
    """
    return _DOWNSAMPLED.fullmatch(name) is not None


def _as_pictures(stored: StoredArray, *, is_pickle: bool) -> StoredArray:
    """Rows of bytes as pictures, red first, then green and blue,
    as CIFAR and downsampled ImageNet have them.
    """
    sides: tuple[int, ...] = ()
    if is_downsampled(stored.path.name):
        sides = _SIDES
    elif is_pickle:
        sides = (_CIFAR_SIDE,)
    for side in sides:
        if stored.shape[1:] == (3 * side * side,) and stored.dtype == np.uint8:
            return replace(stored, shape=(stored.shape[0], 3, side, side))
    return stored


def stem(path: Path) -> str:
    """The name of a file without the endings that say how it is written."""
    return re.sub(r"([-.]idx\d-ubyte)?(\.npy|\.npz|\.gz|\.pkl|\.pickle)?$", "", path.name)


def names_of_classes(path: Path) -> dict[str, dict[int, str]]:
    """The names of CIFAR's classes by column, in ``batches.meta`` or ``meta``; none if it is
    another file.

    Raises:
        InputError: it is damaged.
    """
    with damage_named(path, "a file of class names"):
        with open_plain(path) as file:
            is_pickle = bool(_PICKLE.match(file.read(4)))
        try:
            pickled = load_pickle(path) if is_pickle else {}
        except ArrayError as error:  # its own remedy is for images
            remedy = "get an intact copy of it, or move it away"
            raise OtherFormError(str(error), remedy) from error
    columns = {}
    for key, names in pickled.items():
        if key.endswith("label_names") and isinstance(names, list):
            columns[f"{key.removesuffix('_names')}s"] = dict(enumerate(map(as_text, names)))
    return columns


def _checked(array: StoredArray, claimed: int, size: int) -> StoredArray:
    """The array, if a file of ``size`` bytes can hold its ``claimed`` bytes."""
    check_rows(array)
    check_expansion("it", claimed, size)
    return array


def _of_npy(
    path: Path,
    opened: Callable[[], IO[bytes]],
    size: int,
    load: Callable[[], ArrayLike] | None = None,
) -> StoredArray:
    """The array in an .npy, or in an entry of an .npz, which ``load`` reads as a whole: rows of
    Fortran order are not in one piece.
    """
    with opened() as file:
        head = io.BytesIO(file.read(_LARGEST_HEADER))
        shape, is_fortran, dtype = read_npy_header(head, has_texts=True)
        start = head.tell()
    stored = _checked(StoredArray(path, shape, dtype, opened, start), 0, size)
    expected = start + prod(shape) * dtype.itemsize
    if expected != size:
        found = f"it has {size:,} bytes"
        raise OtherFormError(
            f"{found}: expected {expected:,} for the shape {shape} of {dtype}", INTACT_OR_NPZ
        )
    if not is_fortran or len(shape) < 2:
        return stored
    if load is None:
        load = functools.partial(np.memmap, path, dtype, "r", start, shape, "F")
    return stored_rows(path, load)


def _load_entry(path: Path, name: str) -> Any:
    with zipfile.ZipFile(path) as archive, archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _of_npz(path: Path) -> dict[str, StoredArray]:
    def opened(name: str) -> IO[bytes]:
        return zipfile.ZipFile(path).open(name)

    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
    arrays = {}
    for member in members:
        name, size = member.filename, member.file_size
        check_expansion(name, size, max(member.compress_size, 1))
        opener = functools.partial(opened, name)
        try:
            array = _of_npy(path, opener, size, functools.partial(_load_entry, path, name))
        except ArrayError as error:
            raise OtherFormError(f"{name}: {error}", remedy_of(error)) from error
        arrays[name.removesuffix(".npy")] = array
    return arrays


def _of_idx(path: Path, opener: Callable[..., Any]) -> StoredArray:
    with opener(path, "rb") as file:
        head = file.read(4)
        if not _IDX.match(head):
            is_packed = opener is gzip.open
            if is_packed and head.startswith(_GZIP):
                raise OtherFormError(
                    "its compressed content is a gzip file again: it was compressed twice",
                    _unpack_once(path),
                )
            content = "its compressed content" if is_packed else "it"
            got = first_bytes(head)
            raise OtherFormError(
                f"{content} is not an IDX file of numbers from 0 to 255 (first bytes: {got})",
                INTACT_OR_NPZ,
            )
        dimensions = head[3]
        shape = struct.unpack(f">{dimensions}I", file.read(4 * dimensions))
    opened = functools.partial(opener, path, "rb")
    array = StoredArray(path, shape, np.dtype(np.uint8), opened, 4 + 4 * dimensions)
    return _checked(array, prod(shape), path.stat().st_size)


def _unpack_once(path: Path) -> Hint:
    """The advice on a file that was compressed twice."""
    packed = path_word(f"{path}.gz")
    unpack = command_line(["gunzip", packed])
    return Hint("unpack it once: ", command_line(["mv", path_word(path), packed]).then(unpack))


def _of_pickle(path: Path) -> dict[str, StoredArray]:
    """The arrays and the lists of numbers in a pickled dictionary; long arrays stay in the file."""
    arrays = {}
    for name, value in load_pickle(path).items():
        if isinstance(value, PickledArray):
            arrays[name] = _as_stored(path, value)
        elif isinstance(value, list) and set(map(type, value)) == {int}:
            arrays[name] = _in_memory(path, np.array(value))
    return arrays


def _as_stored(path: Path, array: PickledArray) -> StoredArray:
    content = array.content
    if not isinstance(content, LongValue) or (array.is_fortran and len(array.shape) > 1):
        return _in_memory(path, array.values(path))
    opened = functools.partial(content.open, path)
    start = 0 if content.is_text else content.start
    stored = StoredArray(
        path, array.shape, array.dtype, opened, start, is_inside=not content.is_text
    )
    return _checked(stored, 0, len(content))


def _in_memory(path: Path, array: np.ndarray[Any, Any]) -> StoredArray:
    opened = functools.partial(io.BytesIO, array.tobytes())
    return StoredArray(path, array.shape, array.dtype, opened)
