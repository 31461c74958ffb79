"""NumPy's .npy and .npz files, and image files at full bit depth -> arrays. Every claimed size is
checked first.

Nothing is unpickled. Format: numpy.lib.format, versions 1.0 and 2.0; an .npz is a ZIP of them.
Pillow reads PNG, TIFF and JPEG, but reduces 16-bit colour to 8 bits. These samples are decoded
twice, for the high and then for the low bytes, by telling Pillow the other byte order.
"""

from __future__ import annotations

import contextlib
import functools
import io
import zipfile
import zlib
from math import prod
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from imagenet_prep.images import format_of, grades, is_npy, pixels, png
from imagenet_prep.images.grades import Check
from imagenet_prep.images.jpeg import ImageError, check_claim
from imagenet_prep.images.opening import opened
from imagenet_prep.text import listed

if TYPE_CHECKING:
    from PIL import Image

Array = np.ndarray[Any, np.dtype[Any]]
Buffer = bytes | memoryview

MAX_BYTES = 1 << 31
"""Larger arrays are refused: no record can hold one."""

DEFLATES_TO = 1032
"""The most bytes that one byte of deflated data can expand to."""

_ZIP = b"PK\x03\x04"
_KINDS = "biuf"  # bool, integers, floats: the kinds that records can hold

_OTHER_ORDER = {";16B": ";16L", ";16L": ";16B", ";16N": ";16B"}
_IN_RGB = {"CMYK": "RGB", "LAB": "RGB", "YCbCr": "RGB", "PA": "RGBA"}
_TIFF_STARTS = (b"II*\0", b"MM\0*")


class ArrayError(ImageError):
    """An array that can't be used; the message is the reason."""


def parse_array(data: Buffer, key: str | None = None) -> Array:
    """The array of an .npy, or an array of an .npz: the only one, or the one named ``key``.

    Raises:
        ArrayError: it is damaged, holds objects, complex numbers or texts, or the choice of array
            is ambiguous.
    """
    if bytes(data[:4]) == _ZIP or bytes(data[:4]) == b"PK\x05\x06":
        data = _member(data, key)
    elif key is not None:
        raise ArrayError(f"it is not an .npz, and has no array {key!r}")
    return _parse_npy(data)


def names_in_npz(data: Buffer | IO[bytes]) -> list[str]:
    """The names of the arrays in an .npz, or in a file; none if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data) if isinstance(data, Buffer) else data) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return []


def _member(data: Buffer, key: str | None) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if key is None and len(names) != 1:
                raise ArrayError(
                    f"it holds {len(names)} arrays ({listed(names, 5) or 'none'}): "
                    "name one with `array`"
                )
            info = names.get(next(iter(names)) if key is None else key)
            if info is None:
                raise ArrayError(f"it has no array {key!r}, only {listed(names, 5) or 'none'}")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ArrayError(
                    "its array is compressed in a way that NumPy never does: save it again"
                )
            if info.file_size > min(MAX_BYTES, DEFLATES_TO * len(data)):
                raise ArrayError(
                    f"its array claims {info.file_size:,} bytes: more than {len(data):,} bytes "
                    "can hold"
                )
            with archive.open(info) as stream:
                return stream.read(info.file_size + 1)
    except (ArrayError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - any failure of zipfile is the file's fault
        raise ArrayError(f"the .npz is damaged: {error}") from None


def read_npy_header(
    file: IO[bytes], *, has_texts: bool = False
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in Fortran order, and type of an .npy; its values follow.

    Raises:
        ArrayError: the header is damaged, or it holds objects, complex numbers or, unless
            ``has_texts``, texts.
    """
    try:
        version = npy.read_magic(file)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if read is None:
            raise ArrayError(f"version {version[0]}.{version[1]} of .npy: expected 1.0 or 2.0")
        shape, is_fortran, dtype = read(file)
    except ArrayError:
        raise
    except Exception as error:  # noqa: BLE001 - any failure of NumPy's parser is the file's fault
        raise ArrayError(f"the .npy's header is damaged: {error}") from None
    if has_texts and dtype.kind in "US" and dtype.itemsize:
        return shape, is_fortran, dtype
    if dtype.kind not in _KINDS or dtype.itemsize > 8:
        raise ArrayError(f"it holds {dtype}: expected bool, integers or floats of at most 64 bits")
    return shape, is_fortran, dtype


def _parse_npy(data: Buffer) -> Array:
    if not is_npy(data):
        raise ArrayError(
            "it is empty"
            if len(data) == 0
            else f"not an .npy: it starts with {bytes(data[:4]).hex(' ')}"
        )
    head = io.BytesIO(data[: 1 << 16])
    shape, is_fortran, dtype = read_npy_header(head)
    size, found = prod(shape) * dtype.itemsize, len(data) - head.tell()
    if size != found or min(shape, default=0) < 0:
        raise ArrayError(
            f"the .npy is cut or damaged: {size:,} bytes of data expected, {found:,} found"
        )
    flat = np.frombuffer(data, dtype, count=prod(shape), offset=head.tell())
    return flat.reshape(shape[::-1]).transpose() if is_fortran else flat.reshape(shape)


def rescale(array: Array, lower: float, upper: float) -> Array:
    """Clip to [lower, upper] and scale to [0, 1], as 32-bit floats.

    Raises:
        ArrayError: it holds NaN, which can't be clipped.
    """
    values = np.clip(array.astype(np.float64), lower, upper)
    if np.isnan(values).any():
        raise ArrayError("it holds NaN: it can't be rescaled to [0, 1]")
    return ((values - lower) / (upper - lower)).astype(np.float32)


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
        raise ArrayError(f"an array of shape {array.shape} and type {array.dtype} is no picture")
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
        values = array.astype("<f4")
    if array.dtype == np.float64 and (np.isinf(values) & np.isfinite(array)).any():
        raise ArrayError("it holds a value beyond 3.4e38, and a record's floats have 32 bits")
    return values.tobytes()


def plane(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Height, width and depth of an array of this shape: (height, width) or (height, width, depth).

    Raises:
        ArrayError: it has another number of dimensions.
    """
    if len(shape) not in (2, 3):
        raise ArrayError(
            f"it has {len(shape)} dimensions: only arrays with 2 or 3 have height, width and depth"
        )
    return shape[0], shape[1], shape[2] if len(shape) == 3 else 1


# image files --------------------------------------------------------------------------------------


def decode_raster(data: Buffer) -> Array:
    """The samples of an image file: uint8 or uint16, shape (height, width, channels); grey has one
    channel.

    Palettes are resolved, and samples of 1, 2 or 4 bits are scaled to 0 to 255. Alpha is kept; no
    rotation is applied.

    Raises:
        ImageError: it is damaged, of another format, of several pages, or of more than 16 bits.
    """
    return judge_raster(data, "decode")[0]


def judge_raster(data: Buffer, check: Check) -> tuple[Array, str]:
    """The samples of an image file, and its warning;
    raises as ``decode_raster``, and if ``check`` refuses it.
    """
    if format_of(data) == "PNG" or bytes(data[:4]) in _TIFF_STARTS:
        return _decode_lossless(data), ""
    judged = grades.judge(data, check, pixels.decode_whole)
    return _with_channels(np.asarray(judged.decoded)), judged.warning


def decode_tiff(data: Buffer) -> Array:
    """The samples of a TIFF as ``decode_raster``, and 8-bit CMYK, Lab,
    YCbCr and palettes with alpha in RGB.
    """
    return _decode(data, "TIFF", wide=None, converts=True)


def _decode_lossless(data: Buffer) -> Array:
    """The samples of a PNG or TIFF."""
    if format_of(data) == "PNG":
        header = png.read_header(data)
        png.check_ends(data)
        check_claim(header.width, header.height, len(data), header.depth)
        if (header.depth, header.colour_type) == (16, 4):
            return _grey_alpha_16(data)
        return _decode(data, "PNG", wide=header.depth == 16 and header.colour_type in (2, 6))
    return _decode(data, "TIFF", wide=None)


def _decode(data: Buffer, kind: str, *, wide: bool | None, converts: bool = False) -> Array:
    with opened(data, kind) as image:
        if wide is None:
            wide = _is_wide_tiff(image, len(data))
        converts = converts and not wide
        low = _low_bytes(data, kind) if wide else None
        image.load()
        samples = _samples(
            image.convert(_IN_RGB[image.mode]) if converts and image.mode in _IN_RGB else image
        )
    return samples if low is None else samples.astype(np.uint16) << 8 | low


def _is_wide_tiff(image: Image.Image, length: int) -> bool:
    """Whether a TIFF of ``length`` bytes has 16-bit samples that Pillow reduces to 8 bits.

    Raises:
        ImageError: it can't be read in full, it has several pages, or its bytes can't fill its
            image or a tile of it.
    """
    from PIL import TiffImagePlugin as Tiff

    assert isinstance(image, Tiff.TiffImageFile)
    if image.n_frames != 1:
        raise ImageError("it has several pages: save each as a separate file")
    bits = max(image.tag_v2.get(Tiff.BITSPERSAMPLE, (1,)))
    check_claim(image.width, image.height, length, bits)
    check_claim(
        image.tag_v2.get(Tiff.TILEWIDTH, 0), image.tag_v2.get(Tiff.TILELENGTH, 0), length, bits
    )
    _hush_libtiff()
    if bits != 16:
        return False
    if image.tag_v2.get(Tiff.PHOTOMETRIC_INTERPRETATION) == 0:
        raise ImageError("its 16-bit samples use 0 for white: save it with 0 for black")
    if image.mode in ("I;16", "I;16B"):
        return False
    if image.tag_v2.get(Tiff.PLANAR_CONFIGURATION, 1) != 1:
        raise ImageError(
            "its 16-bit channels are in separate planes: save it with interleaved channels"
        )
    return True


@functools.cache
def _hush_libtiff() -> None:
    """Silence libtiff, which writes to standard error; real faults are raised as errors anyway.

    Its own function removes its error handler. That function is found among the libraries linked to
    Pillow's module.
    """
    import ctypes

    from PIL import _imaging

    with contextlib.suppress(
        OSError, AttributeError
    ):  # a libtiff built into Pillow hides its functions
        ctypes.CDLL(_imaging.__file__).TIFFSetErrorHandler(None)


def _low_bytes(data: Buffer, kind: str) -> Array:
    """The low byte of every 16-bit sample."""
    from PIL import Image, ImageFile

    with Image.open(io.BytesIO(data), formats=(kind,)) as image:
        assert isinstance(image, ImageFile.ImageFile)
        image.tile = [tile._replace(args=_swapped(tile.args)) for tile in image.tile]
        image.load()
        return np.asarray(image)


def _swapped(args: Any) -> Any:
    mode = args if isinstance(args, str) else args[0]
    for order, other in _OTHER_ORDER.items():
        if mode.endswith(order):
            swapped = mode.removesuffix(order) + other
            return swapped if isinstance(args, str) else (swapped, *args[1:])
    raise ImageError(f"samples stored as {mode!r} can't be read at full bit depth")


def _samples(image: Image.Image) -> Array:
    if image.mode in ("I;16", "I;16B"):
        return _with_channels(np.asarray(image).astype(np.uint16))
    if image.mode in ("1", "P"):
        of_palette = "RGBA" if "transparency" in image.info else "RGB"
        image = image.convert("L" if image.mode == "1" else of_palette)
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        raise ImageError(
            f"its samples are of mode {image.mode}: expected grey or RGB of 8 or 16 bits"
        )
    return _with_channels(np.asarray(image))


def _with_channels(samples: Array) -> Array:
    return samples[:, :, None] if samples.ndim == 2 else samples


def _grey_alpha_16(data: Buffer) -> Array:
    """Grey with alpha at 16 bits: Pillow has no mode for it,
    but its bytes equal those of 8-bit RGBA.
    """
    chunk = b"IHDR" + bytes(data[16:24]) + b"\x08\x06" + bytes(data[26:29])
    renamed = bytes(data[:12]) + chunk + zlib.crc32(chunk).to_bytes(4, "big") + bytes(data[33:])
    samples = _decode(renamed, "PNG", wide=False)
    return samples.reshape(-1).view(">u2").astype("u2").reshape(*samples.shape[:2], 2)
