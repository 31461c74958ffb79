"""JPEG markers: size, components, and whether it starts and ends as it should. Nothing is decoded.

Source: ITU-T T.81, Annex B.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

Buffer = bytes | memoryview

MAX_PIXELS = 1 << 28
"""Larger images are refused: a 1 kB file can claim 65,535 x 65,535 pixels. ILSVRC2012's largest has some 30 million."""

FREE_PIXELS = 1 << 25
"""An image of up to this many pixels is always decoded: some 100 MB of memory, a fraction of a second."""

MOST_PER_BYTE = 128
"""A larger image may have this many pixels per byte of its file: a photograph has two, a blank page fewer than 128."""

_SOI, _EOI, _SOS = 0xD8, 0xD9, 0xDA
_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_SEQUENTIAL = (0xC0, 0xC1)
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD8), _SOS, _EOI, _SOI, 0xFF})  # TEM, RST0 to RST7; a fill byte
_FRAME = struct.Struct(">BHHB")
_TAIL = 4096  # some cameras add padding after the end of image


class ImageError(ValueError):
    """An image that can't be used; the message is the reason."""


class JpegHeader(NamedTuple):
    """The header of a JPEG: size in pixels, number of colour components (1 grey, 3 colour, 4 CMYK or YCCK)."""

    width: int
    height: int
    components: int


def check_claim(width: int, height: int, length: int, bits: int = 8) -> None:
    """Raise ImageError for a size that ``length`` bytes can't fill: a decoder would allocate the memory for it.

    ``bits`` is the depth of a sample; with more than 8, a pixel counts as several.
    """
    pixels = width * height * max(1, bits // 8)
    if pixels > max(FREE_PIXELS, MOST_PER_BYTE * length):
        raise ImageError(f"it claims {width} x {height} pixels in {length:,} bytes: possibly a decompression bomb")


def check_size(kind: str, width: int, height: int) -> None:
    """Raise ImageError for an impossible size, or one over the limit."""
    if width == 0 or height == 0:
        raise ImageError(f"the {kind}'s size is {width} x {height}")
    if width * height > MAX_PIXELS:
        raise ImageError(f"the {kind} claims {width} x {height} pixels, over the limit of {MAX_PIXELS:,}")


def read_header(data: Buffer) -> JpegHeader:
    """Size and components from the frame header of a JPEG, without decoding.

    Raises:
        ImageError: not a JPEG, or no valid frame header before the image data.
    """
    if len(data) < 4 or data[0] != 0xFF or data[1] != _SOI:
        raise ImageError("it is empty" if len(data) == 0 else f"not a JPEG: it starts with {bytes(data[:4]).hex(' ')}")
    position = _find(data, _SOF)
    if position < 0:
        raise ImageError("the JPEG has no frame header: it is cut or damaged")
    return _frame_header(data, position)


def _find(data: Buffer, wanted: frozenset[int]) -> int:
    """The position of the first of these markers before the image data; -1 if there is none."""
    position, end = 2, len(data)
    while position + 4 <= end:
        if data[position] != 0xFF:
            raise ImageError(f"no JPEG marker at byte {position}")
        marker = data[position + 1]
        if marker in wanted:
            return position
        if marker not in _WITHOUT_LENGTH:
            position += 2 + (data[position + 2] << 8 | data[position + 3])
        elif marker in (_SOS, _EOI, _SOI):
            break
        else:
            position += 1 if marker == 0xFF else 2  # a fill byte
    return -1


def _frame_header(data: Buffer, position: int) -> JpegHeader:
    if position + 10 > len(data):
        raise ImageError("the JPEG ends within its frame header")
    precision, height, width, components = _FRAME.unpack_from(data, position + 4)
    if not 0 < width * height <= MAX_PIXELS:
        check_size("JPEG", width, height)
    if precision != 8 or components not in (1, 3, 4):
        raise ImageError(f"{components} components of {precision} bits are not supported")
    return JpegHeader(width, height, components)


def with_rows(data: Buffer, rows: int) -> bytearray | None:
    """The JPEG with a header of fewer rows: a decoder stops there. None if it has several scans, each of all rows."""
    frame, scan = _find(data, _SOF), _find(data, frozenset({_SOS}))
    if data[frame + 1] not in _SEQUENTIAL or scan < 0 or data[scan + 4] != data[frame + 9]:
        return None
    shorter = bytearray(data)
    shorter[frame + 5 : frame + 7] = rows.to_bytes(2, "big")
    return shorter


def check_ends(data: Buffer) -> None:
    """Raise ImageError if the JPEG doesn't close with an end-of-image marker: it was cut short.

    A thumbnail's marker, which precedes the image data, doesn't count.
    """
    if data[-2:] == b"\xff\xd9":
        return
    start = max(_find(data, frozenset({_SOS})), len(data) - _TAIL, 0)
    if bytes(data[start:]).rfind(b"\xff\xd9") < 0:
        raise ImageError("the JPEG has no end-of-image marker: it is cut short")
