"""PNG and TIFF files -> samples at full bit depth, as arrays.

Pillow reads both, but reduces 16-bit colour to 8 bits. These samples are decoded twice, for the
high and then for the low bytes, by telling Pillow the other byte order.
"""

from __future__ import annotations

import contextlib
import functools
import io
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from imagenet_prep.images import format_of, png
from imagenet_prep.images.arrays import Array
from imagenet_prep.images.jpeg import ImageError, check_claim
from imagenet_prep.images.opening import opened

if TYPE_CHECKING:
    from PIL import Image

Buffer = bytes | memoryview

_OTHER_ORDER = {";16B": ";16L", ";16L": ";16B", ";16N": ";16B"}
_NAMES_OF_MODES = {
    "I": "32-bit integers",
    "F": "32-bit floats",
    "PA": "numbers of a palette, with alpha",
}
"""The samples of Pillow's modes whose names are no words."""

_SAVE_INVERTED = (
    "save it as PNG with its samples inverted (65535 minus each): Pillow does not invert them"
)

_IN_RGB = {"CMYK": "RGB", "LAB": "RGB", "YCbCr": "RGB", "PA": "RGBA"}
_TIFF_STARTS = (b"II*\0", b"MM\0*")


def decode_tiff(data: Buffer) -> Array:
    """The samples of a TIFF as ``decode_raster``, and 8-bit CMYK, Lab,
    YCbCr and palettes with alpha in RGB.
    """
    return _decode(data, "TIFF", wide=None, converts=True)


def is_lossless(data: Buffer) -> bool:
    """Whether a file starts as a PNG or a TIFF does."""
    return format_of(data) == "PNG" or bytes(data[:4]) in _TIFF_STARTS


def decode_lossless(data: Buffer) -> Array:
    """The samples of a PNG or TIFF: uint8 or uint16, shape (height, width, channels).

    Raises:
        ImageError: it is damaged, of several pages, or of more than 16 bits.
    """
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
        if wide:
            low_bytes = _low_bytes(data, kind)
            image.load()
            return _samples(image).astype(np.uint16) << 8 | low_bytes
        image.load()
        if converts and image.mode in _IN_RGB:
            return _samples(image.convert(_IN_RGB[image.mode]))
        return _samples(image)


def _is_wide_tiff(image: Image.Image, length: int) -> bool:
    """Whether a TIFF of ``length`` bytes has 16-bit samples that Pillow reduces to 8 bits.

    Raises:
        ImageError: it can't be read in full, it has several pages, or its bytes can't fill its
            image or a tile of it.
    """
    from PIL import TiffImagePlugin as Tiff

    assert isinstance(image, Tiff.TiffImageFile)
    if image.n_frames != 1:
        raise ImageError("it has several pages: expected one", "save each page as its own file")
    bits = max(image.tag_v2.get(Tiff.BITSPERSAMPLE, (1,)))
    check_claim(image.width, image.height, length, bits)
    tile_width = image.tag_v2.get(Tiff.TILEWIDTH, 0)
    tile_height = image.tag_v2.get(Tiff.TILELENGTH, 0)
    check_claim(tile_width, tile_height, length, bits, "its tile")
    _hush_libtiff()
    if bits != 16:
        return False
    if image.tag_v2.get(Tiff.PHOTOMETRIC_INTERPRETATION) == 0:
        raise ImageError("its 16-bit samples use 0 for white: expected 0 for black", _SAVE_INVERTED)
    if image.mode in ("I;16", "I;16B"):
        return False
    if image.tag_v2.get(Tiff.PLANAR_CONFIGURATION, 1) != 1:
        raise ImageError(
            "its 16-bit samples are stored as one plane for each channel, which can't be read",
            "save it with the channels of each pixel together (with tifffile: an array of height x "
            "width x 3), or as PNG of 16 bits",
        )
    return True


def _unread_samples() -> ImageError:
    """The error for 16-bit samples of a rare form."""
    return ImageError(
        "its 16-bit samples are stored in a form that can't be read", "save it as PNG of 16 bits"
    )


@functools.cache
def _hush_libtiff() -> None:
    """Silence libtiff, which writes to standard error; real faults are raised as errors anyway.

    Its own function removes its error handler. That function is found among the libraries linked to
    Pillow's module.
    """
    import ctypes

    from PIL import _imaging

    # a libtiff built into Pillow hides its functions
    with contextlib.suppress(OSError, AttributeError):
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
    """The arguments of a decoder of Pillow's, with the other byte order in their mode."""
    mode = args if isinstance(args, str) else args[0]
    for byte_order, other_order in _OTHER_ORDER.items():
        if mode.endswith(byte_order):
            swapped = mode.removesuffix(byte_order) + other_order
            return swapped if isinstance(args, str) else (swapped, *args[1:])
    raise _unread_samples()


def _samples(image: Image.Image) -> Array:
    if image.mode in ("I;16", "I;16B"):
        return with_channels(np.asarray(image).astype(np.uint16))
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        samples = _NAMES_OF_MODES.get(image.mode, image.mode)
        raise ImageError(
            f"its samples are {samples}: expected grey or RGB of 8 or 16 bits",
            "convert it to grey or RGB of 8 or 16 bits",
        )
    return with_channels(np.asarray(image))


def with_channels(samples: Array) -> Array:
    """Samples of the shape (height, width, channels); those of grey images may have no channels."""
    return samples[:, :, None] if samples.ndim == 2 else samples


def _grey_alpha_16(data: Buffer) -> Array:
    """Grey with alpha at 16 bits: Pillow has no mode for it,
    but its bytes equal those of 8-bit RGBA.
    """
    chunk = b"IHDR" + bytes(data[16:24]) + b"\x08\x06" + bytes(data[26:29])
    renamed = bytes(data[:12]) + chunk + zlib.crc32(chunk).to_bytes(4, "big") + bytes(data[33:])
    samples = _decode(renamed, "PNG", wide=False)
    return samples.reshape(-1).view(">u2").astype("u2").reshape(*samples.shape[:2], 2)
