"""NumPy's .npy and .npz files -> arrays -> bytes of records. Every claimed size is checked first.

Nothing is unpickled. Format: numpy.lib.format, versions 1.0 and 2.0; an .npz is a ZIP of them.
"""

from __future__ import annotations

import io
import zipfile
from math import prod
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from imagenet_prep.images import first_bytes, is_npy
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.text import listed, number_of

Array = np.ndarray[Any, np.dtype[Any]]
Buffer = bytes | memoryview

MAX_BYTES = 1 << 31
"""Larger arrays are refused: no record can hold one."""

DEFLATES_TO = 1032
"""The most bytes that one byte of deflated data can expand to."""

_ENDING = ".npy"
_ZIP = b"PK\x03\x04"
_KINDS = "biuf"  # bool, integers, floats: the kinds that records can hold


SAVE_AS_NUMBERS = "save its values with a type such as uint8, int64 or float32"
"""The advice for an array of values that records can't hold."""

_SAVE_NPY = "save it again with numpy.save and a type such as uint8, int64 or float32"
_SAVE_NPZ = "save it again with numpy.savez"
_INTACT_OR_SAVED = "get an intact copy of it, or save it again with NumPy"


class ArrayError(ImageError):
    """An array that can't be used; the message is the reason."""


def parse_array(data: Buffer, key: str | None = None) -> Array:
    """The array of an .npy, or an array of an .npz: the only one, or the one named ``key``.

    Raises:
        ArrayError: it is damaged, holds objects, complex numbers or texts, or the choice of array
            is ambiguous.
    """
    if bytes(data[:4]) == _ZIP or bytes(data[:4]) == b"PK\x05\x06":
        return _parse_member(data, key)
    if key is not None:
        raise ArrayError(
            f"it is no .npz file, so it has no array called {key!r}",
            "save it as .npz, or take `array` out of the recipe" if is_npy(data) else "",
        )
    return _parse_npy(data)


def names_in_npz(data: Buffer | IO[bytes]) -> list[str]:
    """The names of the arrays in an .npz, or in a file; none if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data) if isinstance(data, Buffer) else data) as archive:
            return list(_members(archive))
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return []


def _parse_member(data: Buffer, key: str | None) -> Array:
    """The array of this name in an .npz; the only one without a name."""
    name, content = _read_member(data, key)
    try:
        return _parse_npy(content)
    except ArrayError as error:
        raise ArrayError(f"its array {name!r}: {error}", error.remedy) from None


def _read_member(data: Buffer, key: str | None) -> tuple[str, bytes]:
    """The name of an array in an .npz, and its bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            member = _find_member(archive, key)
            _check_member(member, len(data))
            name = member.filename.removesuffix(_ENDING)
            with archive.open(member) as stream:
                return name, stream.read(member.file_size + 1)
    except (ArrayError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - any failure of zipfile is the file's fault
        reason = str(error) or type(error).__name__
        raise ArrayError(f"the .npz can't be read: {reason}", _INTACT_OR_SAVED) from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an .npz by name; other files are no arrays."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        if member.filename.endswith(_ENDING):
            members[member.filename.removesuffix(_ENDING)] = member
    return members


def _find_member(archive: zipfile.ZipFile, key: str | None) -> zipfile.ZipInfo:
    """The array of this name; the only one without a name."""
    members = _members(archive)
    if not members:
        raise ArrayError("the .npz holds no array (no .npy file)", "save it again with an array")
    names = listed(members, 5)
    if key is None:
        if len(members) != 1:
            first_name = next(iter(members))
            raise ArrayError(
                f"it holds {len(members)} arrays ({names}): expected one",
                f"save it with one array; or, if every file has an array called {first_name}, "
                f"write array: {first_name} in the recipe",
            )
        return next(iter(members.values()))
    if key not in members:
        raise ArrayError(
            f"it has no array {key!r}, only {names}",
            "correct `array` in the recipe, or save the file with that array",
        )
    return members[key]


def _check_member(member: zipfile.ZipInfo, length: int) -> None:
    """Raise ArrayError for an array that NumPy didn't write, or that an .npz of ``length`` bytes
    can't hold.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        problem = f"its array is compressed by ZIP's method {member.compress_type}: expected 0 or 8"
        raise ArrayError(problem, _SAVE_NPZ)
    if member.file_size > MAX_BYTES:
        size = f"{member.file_size:,} bytes"
        raise ArrayError(
            f"its header claims {size}, over the limit of {MAX_BYTES:,}",
            "save a smaller array, or get an intact copy of it",
        )
    if member.file_size > DEFLATES_TO * length:
        raise ArrayError(
            f"its header claims {member.file_size:,} bytes: {length:,} bytes can't hold that"
        )


def _parse_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an .npy, whatever it holds."""
    try:
        version = npy.read_magic(file)
        if version == (1, 0):
            return npy.read_array_header_1_0(file)
        if version == (2, 0):
            return npy.read_array_header_2_0(file)
    except Exception as error:  # noqa: BLE001 - any failure of NumPy's parser is the file's fault
        first_line, _, _ = str(error).partition("\n")
        problem = f"the .npy's header can't be read: {first_line}"
        raise ArrayError(problem, _INTACT_OR_SAVED) from None
    problem = f"its .npy version is {version[0]}.{version[1]}: expected 1.0 or 2.0"
    raise ArrayError(problem, _SAVE_NPY)


def read_npy_header(
    file: IO[bytes], *, has_texts: bool = False
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in Fortran order, and type of an .npy; its values follow.

    Raises:
        ArrayError: the header is damaged, or it holds objects, complex numbers or, unless
            ``has_texts``, texts.
    """
    shape, is_fortran, dtype = _parse_npy_header(file)
    if has_texts and dtype.kind in "US" and dtype.itemsize:
        return shape, is_fortran, dtype
    if dtype.kind not in _KINDS or dtype.itemsize > 8:
        texts = ", or texts" if has_texts else ""
        raise ArrayError(
            f"its dtype is {dtype}: expected bool, integers or floats of at most 64 bits{texts}",
            SAVE_AS_NUMBERS,
        )
    return shape, is_fortran, dtype


def _parse_npy(data: Buffer) -> Array:
    if len(data) == 0:
        raise ArrayError("it is empty")
    if not is_npy(data):
        raise ArrayError(f"not an .npy: it starts with {first_bytes(data)}", _INTACT_OR_SAVED)
    head = io.BytesIO(data[: 1 << 16])
    shape, is_fortran, dtype = read_npy_header(head)
    expected, size = prod(shape) * dtype.itemsize, len(data) - head.tell()
    if 0 <= expected < size and min(shape, default=0) >= 0:
        raise ArrayError(
            f"the .npy has {number_of(size - expected, 'byte')} after its array",
            "save one array per file, or get a sound copy of it",
        )
    if size != expected or min(shape, default=0) < 0:
        raise ArrayError(
            f"the .npy has {number_of(size, 'byte')} after its header, which asks for "
            f"{expected:,} ({dtype} of shape {shape}): it may be cut short or damaged"
        )
    flat = np.frombuffer(data, dtype, count=prod(shape), offset=head.tell())
    return flat.reshape(shape[::-1]).transpose() if is_fortran else flat.reshape(shape)


def rescale(array: Array, lower: float, upper: float) -> Array:
    """Clip to [lower, upper] and scale to [0, 1], as 32-bit floats.

    Raises:
        ArrayError: it holds NaN, which can't be clipped.
    """
    clipped = np.clip(array.astype(np.float64), lower, upper)
    if np.isnan(clipped).any():
        raise ArrayError(
            "it holds NaN: it can't be rescaled to [0, 1]",
            "save it without NaN, or take min_val and max_val out of the recipe",
        )
    return ((clipped - lower) / (upper - lower)).astype(np.float32)


def is_picture(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether an array is grey, grey with alpha, RGB or RGBA of 8 bits,
    with its channels first or last.
    """
    if dtype.name != "uint8" or len(shape) not in (2, 3) or min(shape) < 1:
        return False
    return len(shape) == 2 or shape[2] <= 4 or shape[0] in (1, 3)


def png_of(data: Buffer) -> bytes:
    """A picture in an .npy as a PNG, with every value as it is."""
    from PIL import Image

    array = parse_array(data)
    if not is_picture(array.shape, array.dtype):
        raise ArrayError(
            f"an array of shape {array.shape} and type {array.dtype} is no picture: expected "
            "uint8 of shape (height, width), (height, width, 1 to 4) or (1 or 3, height, width)",
            "save it with such a shape and type",
        )
    if array.ndim == 3 and array.shape[2] > 4:
        array = array.transpose(1, 2, 0)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    buffer = io.BytesIO()
    Image.fromarray(array.copy()).save(buffer, "PNG")
    return buffer.getvalue()


def raw_bytes(array: Array) -> bytes:
    """The values of an array, in C order, little endian; a bool is a byte."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def float_bytes(array: Array) -> bytes:
    """The values as 32-bit floats, in C order, little endian: the content of a FloatList.

    Raises:
        ArrayError: a value would become infinite.
    """
    with np.errstate(over="ignore"):
        floats = array.astype("<f4")
    if array.dtype == np.float64 and (np.isinf(floats) & np.isfinite(array)).any():
        raise ArrayError(
            "it holds a value beyond 3.4e38 or -3.4e38, and a record's floats have 32 bits",
            "save smaller values, or write `raw` in place of `values` in the recipe's `record`",
        )
    return floats.tobytes()


def plane(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Height, width and depth of an array of this shape: (height, width) or (height, width, depth).

    Raises:
        ArrayError: it has another number of dimensions.
    """
    if len(shape) not in (2, 3):
        raise ArrayError(
            f"it has {number_of(len(shape), 'dimension')}: "
            "only arrays with 2 or 3 have height, width and depth",
            "in the recipe's record, write `shape` in place of height, width and depth",
        )
    return shape[0], shape[1], shape[2] if len(shape) == 3 else 1
