"""NumPy's .npy and .npz files -> arrays. Nothing is unpickled, and no size is believed before it is checked.

Format: numpy.lib.format, versions 1.0 and 2.0; an .npz is a ZIP of them. NumPy is imported when the first one comes.
"""

from __future__ import annotations

import io
import zipfile
from math import prod
from typing import TYPE_CHECKING, Any

from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.text import listed

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

Buffer = bytes | memoryview

MAX_BYTES = 1 << 31
"""Larger arrays are refused: no record can hold one."""

_DEFLATES_TO = 1032
"""Bytes that one byte of deflated data can stand for, at most."""

_ZIP = b"PK\x03\x04"
_MAGIC = b"\x93NUMPY"
_KINDS = "biuf"  # bool, integers, floats: what records can hold


class ArrayError(ImageError):
    """An array that can't be used; the message is the reason."""


def parse_array(data: Buffer, key: str | None = None) -> Array:
    """The array of an .npy, or of an .npz: the one it holds, or the one named ``key``.

    Raises:
        ArrayError: it is damaged, holds objects, complex numbers or texts, or it is not clear which array is meant.
    """
    if bytes(data[:4]) == _ZIP or bytes(data[:4]) == b"PK\x05\x06":
        data = _member(data, key)
    elif key is not None:
        raise ArrayError(f"it is not an .npz, and has no array {key!r}")
    return _parse_npy(data)


def _member(data: Buffer, key: str | None) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if key is None and len(names) != 1:
                raise ArrayError(f"it holds {len(names)} arrays ({listed(names, 5) or 'none'}): name one with `array`")
            info = names.get(next(iter(names)) if key is None else key)
            if info is None:
                raise ArrayError(f"it has no array {key!r}, only {listed(names, 5) or 'none'}")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ArrayError("its array is compressed in a way that NumPy never does: save it again")
            if info.file_size > min(MAX_BYTES, _DEFLATES_TO * len(data)):
                raise ArrayError(f"its array claims {info.file_size:,} bytes: more than {len(data):,} bytes can hold")
            with archive.open(info) as stream:
                return stream.read(info.file_size + 1)
    except (ArrayError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever zipfile stumbles over is the file's fault
        raise ArrayError(f"the .npz is damaged: {error}") from None


def _parse_npy(data: Buffer) -> Array:
    import numpy as np
    from numpy.lib import format as npy

    if bytes(data[:6]) != _MAGIC:
        raise ArrayError("it is empty" if len(data) == 0 else f"not an .npy: it begins {bytes(data[:4]).hex(' ')}")
    head = io.BytesIO(data[: 1 << 16])
    try:
        version = npy.read_magic(head)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if read is None:
            raise ArrayError(f"version {version[0]}.{version[1]} of .npy: expected 1.0 or 2.0")
        shape, is_fortran, dtype = read(head)
    except ArrayError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever NumPy's parser stumbles over is the file's fault
        raise ArrayError(f"the .npy's header is damaged: {error}") from None
    if dtype.kind not in _KINDS or dtype.itemsize > 8:
        raise ArrayError(f"it holds {dtype}: expected bool, integers or floats of at most 64 bits")
    size, found = prod(shape) * dtype.itemsize, len(data) - head.tell()
    if size != found or min(shape, default=0) < 0:
        raise ArrayError(f"the .npy is cut or damaged: {size:,} bytes of data expected, {found:,} found")
    flat = np.frombuffer(data, dtype, count=prod(shape), offset=head.tell())
    return flat.reshape(shape[::-1]).transpose() if is_fortran else flat.reshape(shape)


def rescale(array: Array, lower: float, upper: float) -> Array:
    """Clip to [lower, upper] and bring to [0, 1], as 32-bit floats.

    Raises:
        ArrayError: it holds NaN, which no clipping brings into a range.
    """
    import numpy as np

    values = np.clip(array.astype(np.float64), lower, upper)
    if np.isnan(values).any():
        raise ArrayError("it holds NaN: it can't be rescaled to [0, 1]")
    return ((values - lower) / (upper - lower)).astype(np.float32)


def raw_bytes(array: Array) -> bytes:
    """The values of an array, C order, little endian; a bool is a byte."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def float_bytes(array: Array) -> bytes:
    """The values as 32-bit floats, C order, little endian: the content of a FloatList.

    Raises:
        ArrayError: a value would become infinite.
    """
    import numpy as np

    with np.errstate(over="ignore"):
        values = array.astype("<f4")
    if array.dtype == np.float64 and (np.isinf(values) & np.isfinite(array)).any():
        raise ArrayError("it holds a value beyond 3.4e38: a float of a record has 32 bits")
    return values.tobytes()


def plane(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Height, width and depth of an array of this shape: (height, width) or (height, width, depth).

    Raises:
        ArrayError: it has another number of dimensions.
    """
    if len(shape) not in (2, 3):
        raise ArrayError(f"it has {len(shape)} dimensions: height, width and depth are of those with 2 or 3")
    return shape[0], shape[1], shape[2] if len(shape) == 3 else 1
