"""load_pickle: a pickled dictionary -> its numbers, texts and arrays; long ones stay in the file,
as LongValues.

A pickle may make NumPy arrays and nothing else. Pickles of a whole set have gigabytes in one value,
so the opcodes are read from a map of the file, and each long value is put in place by its position.

Source of the opcodes: Python's pickletools. NumPy writes an array as ``_reconstruct`` with a state,
since protocol 5 as ``_frombuffer``; Python 3 writes bytes of protocol 2 as a text of Latin-1
characters.
"""

from __future__ import annotations

import codecs
import io
import mmap
import pickle
import pickletools
import re
from math import prod
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np
from msgspec import Struct

from imagenet_prep.images.arrays import SAVE_AS_NUMBERS, ArrayError
from imagenet_prep.sources.stored_arrays import INTACT_OR_NPZ, SAVE_AS_NPZ, OtherFormError
from imagenet_prep.storage.memory_maps import open_plain

_LONG = 1 << 16
"""Values of more bytes stay in the file."""

_BYTES_OPCODES = {"BINBYTES": 4, "BINBYTES8": 8, "BINSTRING": 4, "BYTEARRAY8": 8}
_TEXT_OPCODES = {"BINUNICODE": 4, "BINUNICODE8": 8}
_LENGTH_BYTES = _BYTES_OPCODES | _TEXT_OPCODES
"""The bytes of the length of a value, by the opcodes whose values may be long."""

_OPCODES = {opcode.code.encode("latin1"): opcode for opcode in pickletools.opcodes}

_BLOCK = 1 << 18

_CUT_OR_DAMAGED = "its pickle is cut or damaged"
_READ = "expected arrays of NumPy, numbers, texts, lists and dictionaries"


class LongValue(Struct, frozen=True):
    """A long value in a pickle: its first byte in the file, and its bytes there.

    ``is_text``: each character of this UTF-8 text stands for a byte.
    """

    start: int
    length: int
    is_text: bool

    def __len__(self) -> int:
        return self.length

    def open(self, path: Path) -> IO[bytes]:
        """Open the file of a text as the bytes that it stands for; any other one as it is."""
        return cast("IO[bytes]", _BytesOfText(path, self)) if self.is_text else path.open("rb")


class _BytesOfText(io.BufferedIOBase):
    """The bytes that a text stands for, fast in order; a step back starts again."""

    def __init__(self, path: Path, segment: LongValue) -> None:
        self._file = path.open("rb")
        self._segment = segment
        self._rewind()

    def _rewind(self) -> None:
        self._file.seek(self._segment.start)
        self._unread = self._segment.length
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._buffer, self._position = memoryview(b""), 0

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a byte."""
        if position < self._position:
            self._rewind()
        while self._position < position and self.read(min(_BLOCK, position - self._position)):
            pass
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        missing = self._segment.length if size is None or size < 0 else size
        pieces = []
        while missing and (self._buffer or self._fill()):
            piece = self._buffer[:missing]
            self._buffer = self._buffer[len(piece) :]
            missing -= len(piece)
            self._position += len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def _fill(self) -> bool:
        """Decode the next block; False at the end."""
        block = self._file.read(min(_BLOCK, self._unread))
        self._unread -= len(block)
        if not block:
            return False
        text = self._decoder.decode(block, final=not self._unread)
        self._buffer = memoryview(text.encode("latin1"))
        return bool(self._buffer) or self._fill()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def load_pickle(path: Path) -> dict[str, Any]:
    """The dictionary in a pickle, or one array as its ``data``; none if it holds another value.

    Raises:
        ArrayError: it is damaged, claims more than its bytes, or would make other things than
            arrays.
        OSError: it can't be read.
    """
    try:
        with (
            open_plain(path) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            short, segments = _without_long_values(content)
        loaded = _Arrays(short, segments).load()
    except (ArrayError, OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - any failure of the unpickler is the file's fault
        reason = f"{type(error).__name__}: {error}"
        raise OtherFormError(f"its pickle can't be read: {reason}", INTACT_OR_NPZ) from None
    if isinstance(loaded, PickledArray):
        return {"data": loaded}
    if not isinstance(loaded, dict):
        return {}
    return {as_text(name): value for name, value in loaded.items()}


def as_text(value: Any) -> str:
    """A name, which pickles of Python 2 that were read as bytes and saved again have as bytes."""
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _without_long_values(content: mmap.mmap) -> tuple[bytes, list[LongValue]]:
    """The pickle with a number, as a persistent id, in place of each long value; and these values.

    Raises:
        ArrayError: it claims more than its bytes: the unpickler would allocate all of it; or has
            persistent ids.
    """
    parts: list[bytes] = []
    segments: list[LongValue] = []
    copied = 0  # bytes that are in parts, or left out
    name = ""
    while name != "STOP":
        position = content.tell()
        opcode = _OPCODES.get(content.read(1))
        if opcode is None:
            raise ArrayError(_CUT_OR_DAMAGED)
        name = opcode.name
        segment = _long_value(content, name)
        if segment:
            number = len(segments).to_bytes(4, "little")
            parts += [content[copied:position], b"J", number, b"Q"]  # BININT, BINPERSID
            segments.append(segment)
            copied = content.tell()
            continue
        _check_opcode(opcode, content)
        if name == "FRAME":  # the unpickler would look for its end
            parts.append(content[copied:position])
            copied = content.tell()
    parts.append(content[copied : content.tell()])
    return b"".join(parts), segments


def _check_opcode(opcode: pickletools.OpcodeInfo, content: mmap.mmap) -> None:
    """Read the argument of an opcode; raise ArrayError for one that no array needs."""
    argument = opcode.arg.reader(cast("IO[bytes]", content)) if opcode.arg else None
    table_size = argument if "PUT" in opcode.name and isinstance(argument, int) else 0
    if table_size > len(content):
        raise ArrayError(_CUT_OR_DAMAGED)
    if "PERSID" in opcode.name:
        raise OtherFormError(f"its pickle requires values outside the file: {_READ}", SAVE_AS_NPZ)


def _long_value(content: mmap.mmap, opcode: str) -> LongValue | None:
    """The value of the opcode before this position, if it is long;
    the position is then after it, else unchanged.
    """
    width = _LENGTH_BYTES.get(opcode)
    if width is None:
        return None
    start = content.tell() + width
    length = int.from_bytes(content[start - width : start], "little")
    if start + length > len(content):
        raise ArrayError(_CUT_OR_DAMAGED)
    if length <= _LONG:
        return None
    content.seek(start + length)
    return LongValue(start, length, opcode in _TEXT_OPCODES)


# the names that a pickle may use ------------------------------------------------------------------


def _other_values(dtype: np.dtype[Any]) -> OtherFormError:
    """The error for an array of objects, texts, complex numbers or the like."""
    name = dtype.type.__name__.rstrip("_")
    expected = "expected bool, integers or floats of at most 64 bits"
    remedy = SAVE_AS_NPZ if dtype.kind in "OUS" else SAVE_AS_NUMBERS
    return OtherFormError(f"its pickle holds an array of {name}: {expected}", remedy)


class _Dtype:
    """Stands for numpy.dtype in a pickle: a type of booleans or numbers, without addresses."""

    def __init__(self, code: str, *_: object) -> None:
        if not re.fullmatch("[biuf][1248]", code):
            raise _other_values(np.dtype(code))
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        # version 4 adds metadata, which the values don't depend on
        if state[0] not in (3, 4) or state[2:8] != (None, None, None, -1, -1, 0):
            raise OtherFormError(
                f"its pickle has an array of {self.dtype} in a form that imagenet-prep can't read",
                INTACT_OR_NPZ,
            )
        self.dtype = self.dtype.newbyteorder(state[1])


class PickledArray:
    """An array in a pickle: its shape and type, and the bytes that the pickle holds,
    or where they are.
    """

    def __init__(self, *_: object) -> None:
        """The shape follows in the state."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, content = state
        self.shape, self.dtype, self.is_fortran = tuple(shape), dtype.dtype, bool(is_fortran)
        if isinstance(content, str):  # Python 2 has texts of bytes
            content = content.encode("latin1")
        self.content = content
        expected = prod(self.shape) * self.dtype.itemsize
        is_text = isinstance(content, LongValue) and content.is_text
        if not expected <= len(content) <= (2 * expected if is_text else expected):
            raise ArrayError(
                f"its pickle holds {len(content):,} bytes for an array of shape {self.shape} "
                f"of {self.dtype}: expected {expected:,}"
            )

    def values(self, path: Path) -> np.ndarray[Any, Any]:
        """The whole array, in memory; ``path`` is the pickle's file."""
        data = self.content
        if isinstance(data, LongValue):
            size = prod(self.shape) * self.dtype.itemsize
            # a text is opened at its first byte, any other value at that of the file
            first_byte = 0 if data.is_text else data.start
            with data.open(path) as file:
                file.seek(first_byte)
                data = file.read(size)
        order: Literal["F", "C"] = "F" if self.is_fortran else "C"
        return np.frombuffer(data, self.dtype).reshape(self.shape, order=order)


def _frombuffer(content: Any, dtype: _Dtype, shape: tuple[int, ...], order: str) -> PickledArray:
    """The array as pickles of protocol 5 have it."""
    if isinstance(content, bytearray):
        content = bytes(content)
    pickled = PickledArray()
    pickled.__setstate__((1, shape, dtype, order == "F", content))
    return pickled


def _scalar(dtype: _Dtype, data: bytes | str) -> Any:
    """A single number of NumPy's as one of Python's."""
    content = data.encode("latin1") if isinstance(data, str) else data
    (number,) = np.frombuffer(content, dtype.dtype).tolist()
    return number


def _encode(text: Any, encoding: str = "utf-8") -> Any:
    return text if isinstance(text, LongValue) else text.encode(encoding)


_ROOMS = ("core", "_core")  # of NumPy 1 and 2
_GLOBALS = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): _Dtype,
    **{(f"numpy.{room}.multiarray", "_reconstruct"): PickledArray for room in _ROOMS},
    **{(f"numpy.{room}.multiarray", "scalar"): _scalar for room in _ROOMS},
    **{(f"numpy.{room}.numeric", "_frombuffer"): _frombuffer for room in _ROOMS},
    ("_codecs", "encode"): _encode,
}
"""The only names that a pickle may use, those that an array needs; none is NumPy's own."""


class _Arrays(pickle.Unpickler):
    """Makes arrays, numbers, texts, lists and dictionaries; refuses every other name."""

    def __init__(self, content: bytes, segments: list[LongValue]) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._segments = segments

    def persistent_load(self, pid: Any) -> LongValue:
        """The long value of a number."""
        segment: LongValue = self._segments[pid]
        return segment

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for one of the names that arrays need."""
        if (module, name) not in _GLOBALS:
            raise OtherFormError(f"its pickle requires {module}.{name}: {_READ}", SAVE_AS_NPZ)
        return _GLOBALS[module, name]
