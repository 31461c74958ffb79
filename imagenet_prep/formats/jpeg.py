"""JPEG: sniff, size, check, repair.

Markers as in ITU-T T.81, Annex B. Only JPEG and PNG decoders are ever opened, whatever a file's name says.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from PIL import Image

Buffer = bytes | memoryview
Check = Literal["header", "decode"]

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
REPAIR_QUALITY = 100
MAX_PIXELS = 1 << 28
"""Larger images are refused: a 1 kB file can claim 65,535 x 65,535 pixels. ILSVRC2012's largest has some 30 million."""

_SOI, _EOI, _SOS = 0xD8, 0xD9, 0xDA
_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length: TEM, RST0 to RST7
_FRAME = struct.Struct(">BHHB")
_LENGTH = struct.Struct(">H")
_TAIL = 4096  # some cameras pad behind the end of image


class ImageError(ValueError):
    """An image that can't be used; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a JPEG says of itself: size in pixels, number of colour components (1 grey, 3 colour, 4 CMYK or YCCK)."""

    width: int
    height: int
    components: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """An image ready for a record: its bytes, its size in pixels, and which repair was made ("" for none)."""

    encoded: Buffer
    width: int
    height: int
    repair: str = ""


def read_header(data: Buffer) -> Header:
    """Size and components from the frame header of a JPEG, without decoding.

    Raises:
        ImageError: not a JPEG, or no valid frame header before the image data.
    """
    if len(data) < 4 or data[0] != 0xFF or data[1] != _SOI:
        raise ImageError("it is empty" if len(data) == 0 else f"not a JPEG: it begins {bytes(data[:4]).hex(' ')}")
    position, end = 2, len(data)
    while position + 4 <= end:
        if data[position] != 0xFF:
            raise ImageError(f"no JPEG marker at byte {position}")
        marker = data[position + 1]
        if marker == 0xFF:  # fill byte
            position += 1
        elif marker in _STANDALONE:
            position += 2
        elif marker in _SOF:
            return _frame_header(data, position)
        elif marker in (_SOS, _EOI, _SOI):
            break
        else:
            (length,) = _LENGTH.unpack_from(data, position + 2)
            position += 2 + length
    raise ImageError("the JPEG has no frame header: it is cut or damaged")


def _frame_header(data: Buffer, position: int) -> Header:
    if position + 10 > len(data):
        raise ImageError("the JPEG ends within its frame header")
    precision, height, width, components = _FRAME.unpack_from(data, position + 4)
    if width == 0 or height == 0:
        raise ImageError(f"the JPEG's size is {width} x {height}")
    if width * height > MAX_PIXELS:
        raise ImageError(f"the JPEG claims {width} x {height} pixels, over the limit of {MAX_PIXELS:,}")
    if precision != 8 or components not in (1, 3, 4):
        raise ImageError(f"{components} components of {precision} bits: no image of this data set is like that")
    return Header(width, height, components)


def check_ends(data: Buffer) -> None:
    """Raise ImageError if the JPEG doesn't close with an end-of-image marker: it was cut short."""
    if bytes(data[-2:]) != b"\xff\xd9" and bytes(data[-_TAIL:]).rfind(b"\xff\xd9") < 0:
        raise ImageError("the JPEG has no end-of-image marker: it is cut short")


def check_decode(data: Buffer) -> None:
    """Decode all of a JPEG, strictly: what libjpeg only warns of counts as damage.

    Every coefficient is entropy-decoded; the colour channels are not converted, which finds nothing more.

    Raises:
        ImageError: with libjpeg's own words.
    """
    import simplejpeg  # NumPy comes with it: not needed, and not loaded, by a conversion that decodes nothing

    try:
        simplejpeg.decode_jpeg(data, colorspace="GRAY", strict=True)
    except ValueError as error:
        if "subsampling" not in str(error):
            raise ImageError(f"the JPEG does not decode: {error}") from None
        decode_rgb(data)  # simplejpeg knows the usual sampling factors only; Pillow decodes the others, less strictly


def prepare(data: Buffer, check: Check) -> Prepared:
    """What goes into the record for an image file's bytes: those very bytes, but for the two repairs.

    A PNG under a .JPEG name and a 4-component JPEG are decoded to RGB and encoded as baseline JPEG, quality 100,
    4:2:0, as the scripts of 2016 did. They are found by their bytes, not by a list of names.

    Raises:
        ImageError: the image is damaged, or isn't one.
    """
    if bytes(data[:8]) == PNG_SIGNATURE:
        return _repair(data, "png")
    header = read_header(data)
    check_ends(data)
    if check == "decode":
        check_decode(data)
    if header.components == 4:
        return _repair(data, "cmyk")
    return Prepared(data, header.width, header.height)


def _repair(data: Buffer, repair: str) -> Prepared:
    image = decode_rgb(data)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=REPAIR_QUALITY, subsampling="4:2:0", comment=b"")
    return Prepared(buffer.getvalue(), image.width, image.height, repair)


def decode_rgb(data: Buffer) -> Image.Image:
    """Decode a JPEG or PNG to RGB, EXIF rotation not applied; alpha is dropped, as TensorFlow's decoder does.

    Raises:
        ImageError: it can't be decoded.
    """
    from PIL import Image

    try:
        if bytes(data[:8]) == PNG_SIGNATURE:
            with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
                image.verify()  # each chunk's CRC, up to the end chunk: decoding looks at neither
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ImageError(f"{image.width} x {image.height} pixels, over the limit of {MAX_PIXELS:,}")
            if image.mode == "CMYK" and "adobe" not in image.info:
                # Pillow takes every CMYK JPEG for an inverted one; without Adobe's marker it is not.
                from PIL import ImageChops

                return ImageChops.invert(image).convert("RGB")
            if image.mode == "I;16":  # Pillow would clip it; TensorFlow takes the high byte, here the second of two
                return Image.frombytes("L", image.size, image.tobytes()[1::2]).convert("RGB")
            if image.mode == "RGBA":
                return Image.merge("RGB", image.split()[:3])
            rgb: Image.Image = image.convert("RGB")
            return rgb
    except (ImageError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever Pillow's parsers stumble over is the image's fault
        raise ImageError(f"the image does not decode: {error}") from None
