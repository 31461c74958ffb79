"""PNG chunks: size, channels, and whether it starts and ends as it should. Nothing is decoded.

Source: PNG (Third Edition), W3C, 5 and 11.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from imagenet_prep.images import first_bytes, format_of
from imagenet_prep.images.jpeg import ImageError, check_size

Buffer = bytes | memoryview

_HEADER = struct.Struct(">4x4sIIBB")
_CHUNK = struct.Struct(">I4s")
_END = b"\0\0\0\0IEND\xaeB`\x82"
_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by colour type; 3 is a palette of RGB


class PngHeader(NamedTuple):
    """The header of a PNG: size in pixels, bits per sample,
    colour type, and channels once decoded.
    """

    width: int
    height: int
    depth: int
    colour_type: int
    channels: int


def read_header(data: Buffer) -> PngHeader:
    """Size and channels from the first chunk of a PNG, without decoding.

    Raises:
        ImageError: no valid header, or more pixels than any image has.
    """
    image_format = format_of(data)
    if image_format != "PNG":
        got = f"its format is {image_format}"
        if not image_format:
            got = f"it starts with {first_bytes(data)}"
        raise ImageError(f"not a PNG: {got}", "replace it by the original PNG")
    if len(data) < 33:
        raise _bad_header()
    chunk_type, width, height, depth, colour_type = _HEADER.unpack_from(data, 8)
    if chunk_type == b"CgBI":
        raise ImageError("it is Apple's variant of PNG (CgBI)", "convert it to a plain PNG")
    if chunk_type != b"IHDR" or colour_type not in _CHANNELS or depth not in (1, 2, 4, 8, 16):
        raise _bad_header()
    check_size("PNG", width, height)
    return PngHeader(width, height, depth, colour_type, _CHANNELS[colour_type])


def _bad_header() -> ImageError:
    """The error for a first chunk that is not whole, or not that of a PNG."""
    return ImageError("its PNG header can't be read: it may be damaged or cut off")


def iter_chunks(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    """Each chunk's type, and where its content starts and stops;
    stops at the first incomplete chunk.
    """
    position = 8
    while position + _CHUNK.size <= len(data):
        length, chunk_type = _CHUNK.unpack_from(data, position)
        start = position + _CHUNK.size
        if start + length > len(data):
            return
        yield chunk_type, start, start + length
        position = start + length + 4


def lost_in_jpeg(data: Buffer) -> tuple[str, ...]:
    """The names of everything in a PNG that an 8-bit JPEG can't hold."""
    header = read_header(data)
    chunk_types = (chunk_type for chunk_type, _, _ in iter_chunks(data))
    facts = {
        "16 bits": header.depth == 16,
        "palette": header.colour_type == 3,
        "alpha": header.colour_type in (4, 6) or b"tRNS" in chunk_types,
    }
    return tuple(name for name, is_so in facts.items() if is_so)


def check_ends(data: Buffer) -> None:
    """Raise ImageError if the PNG holds no end chunk."""
    if bytes(data[-12:]) != _END and bytes(data).rfind(_END) < 0:
        raise ImageError("the PNG has no end (IEND): it may be cut short or damaged")
