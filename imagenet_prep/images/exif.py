"""The one EXIF tag that matters to whoever looks at an image: how it should be turned. Nothing is decoded.

EXIF 2.32, 4.6: a TIFF header and a directory of twelve-byte entries in a JPEG's APP1 segment, or a PNG's eXIf chunk.
"""

from __future__ import annotations

import struct

from imagenet_prep.images import png
from imagenet_prep.model import Box

Buffer = bytes | memoryview

UPRIGHT = 1

_ORIENTATION, _SHORT = 0x0112, 3
_APP1, _SOF, _SOS, _EOI = 0xE1, 0xC0, 0xDA, 0xD9
_HEADER = b"Exif\0\0"


def read_orientation(data: Buffer) -> int:
    """The EXIF orientation of a JPEG or PNG, 1 to 8; 1, upright, where none is stated or it makes no sense."""
    try:
        tiff = _find_in_png(data) if png.is_png(data) else _find_tiff(data)
        return _orientation(tiff) if tiff else UPRIGHT
    except (struct.error, IndexError):  # EXIF that ends too early: some cameras write it
        return UPRIGHT


def turn_box(box: Box, orientation: int) -> Box:
    """The box of the same thing once an image of this orientation is turned upright.

    EXIF 2.32, table 6: 2 is mirrored, 3 turned by half, 4 both; 5 to 8 are the same of an image with rows for columns.
    """
    xmin, ymin, xmax, ymax = box.xmin, box.ymin, box.xmax, box.ymax
    if orientation >= 5:
        xmin, ymin, xmax, ymax = ymin, xmin, ymax, xmax
    if orientation in (2, 3, 6, 7):
        xmin, xmax = 1 - xmax, 1 - xmin
    if orientation in (3, 4, 7, 8):
        ymin, ymax = 1 - ymax, 1 - ymin
    return Box(xmin, ymin, xmax, ymax)


def _find_in_png(data: Buffer) -> bytes:
    """The TIFF structure of a PNG's EXIF chunk, b"" if there is none."""
    return next((bytes(data[start:stop]) for kind, start, stop in png.iter_chunks(data) if kind == b"eXIf"), b"")


def _find_tiff(data: Buffer) -> bytes:
    """The TIFF structure of the first EXIF segment before the image data, b"" if there is none."""
    position = 2
    while data[position] == 0xFF and data[position + 1] not in (_SOF, _SOS, _EOI):
        if data[position + 1] == 0xFF:  # fill byte
            position += 1
            continue
        (length,) = struct.unpack_from(">H", data, position + 2)
        start = position + 4
        if data[position + 1] == _APP1 and bytes(data[start : start + len(_HEADER)]) == _HEADER:
            return bytes(data[start + len(_HEADER) : position + 2 + length])
        position += 2 + length
    return b""


def _orientation(tiff: bytes) -> int:
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return UPRIGHT
    magic, directory = struct.unpack_from(f"{order}HI", tiff, 2)
    (count,) = struct.unpack_from(f"{order}H", tiff, directory)
    for number in range(count if magic == 42 else 0):
        tag, kind, values, value = struct.unpack_from(f"{order}HHIH", tiff, directory + 2 + 12 * number)
        if tag == _ORIENTATION:
            return int(value) if (kind, values) == (_SHORT, 1) and 1 <= value <= 8 else UPRIGHT
    return UPRIGHT
