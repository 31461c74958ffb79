"""JPEG markers: size, components, segments, and whether it starts and ends as it should. Nothing is
decoded.

Source: ITU-T T.81, Annex B.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from imagenet_prep.images import first_bytes, format_of
from imagenet_prep.text import number_of

Buffer = bytes | memoryview

MAX_PIXELS = 1 << 28
"""Larger images are refused: a 1 kB file can claim 65,535 x 65,535 pixels.
ILSVRC2012's largest has some 30 million.
"""

MAKE_SMALLER = "make it smaller, or get a sound copy of it"
"""The remedy for an image whose header claims too many pixels."""

NOT_CLEAN = "the JPEG does not decode cleanly: "
"""The start of a complaint of the strict decoder, and of the check that stands in for it:
a lenient decoder may still give an image.
"""

_SAVE_AS_KNOWN = "get a sound copy of it, or convert it to JPEG or PNG"
"""The remedy for a file that may be an image of a format that is not read."""

FREE_PIXELS = 1 << 25
"""An image of up to this many pixels is always decoded:
some 100 MB of memory, a fraction of a second.
"""

MOST_PER_BYTE = 128
"""A larger image may have this many pixels per byte of its file:
a photograph has two, a blank page fewer than 128.
"""

SOI, EOI, SOS = 0xD8, 0xD9, 0xDA
HUFFMAN = frozenset({0xC0, 0xC1})
"""The sequential frames of Huffman codes: baseline and extended."""

SEQUENTIAL = HUFFMAN | {0xC9}
"""The frames whose scans hold whole coefficients:
baseline and extended, Huffman and arithmetic coding.
"""

WHOLE_COEFFICIENTS = b"\x00\x3f\x00"
"""Ss, Se, Ah and Al of their scan headers: T.81, B.2.3."""

_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_ALONE = frozenset({0x01, *range(0xD0, 0xD8), EOI, SOI})  # TEM and RST0 to RST7: no length follows
_WITHOUT_LENGTH = _ALONE | {SOS, 0xFF}  # the walk of headers ends at SOS; a fill byte
_FRAME = struct.Struct(">BHHB")
_SEGMENT_START = struct.Struct(">BBH")  # 0xFF, the marker, the length of its segment
_NEXT_MARKER = re.compile(rb"\xff+[^\x00\xff]", re.DOTALL)
_AFTER_SCAN = re.compile(
    rb"\xff+[^\x00\xff\xd0-\xd7]", re.DOTALL
)  # coded data has FF 00 and restart markers


class ImageError(ValueError):
    """An image that can't be used; the message is the reason.

    ``remedy`` is the advice for a file that is sound, and can't be used here; "" for other files.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


class MaskError(ImageError):
    """An image whose mask can't be used: the path and the size of the image don't explain it."""


class StrayBytesError(ImageError):
    """There are bytes of no segment before a marker of the header; decoders skip them."""


class JpegHeader(NamedTuple):
    """The header of a JPEG: size in pixels, number of colour components (1 grey,
    3 colour, 4 CMYK or YCCK).
    """

    width: int
    height: int
    components: int


def check_claim(width: int, height: int, length: int, bits: int = 8, noun: str = "it") -> None:
    """Raise ImageError for a size that ``length`` bytes can't fill: a decoder would allocate the
    memory for it.

    ``bits`` is the depth of a sample; with more than 8, a pixel counts as several. ``noun`` is what
    has this size, for the message.
    """
    pixels = width * height * max(1, bits // 8)
    if pixels > max(FREE_PIXELS, MOST_PER_BYTE * length):
        raise ImageError(
            f"{noun} claims {width} x {height} pixels in {length:,} bytes: "
            "possibly a decompression bomb",
            MAKE_SMALLER,
        )


def check_size(kind: str, width: int, height: int) -> None:
    """Raise ImageError for an impossible size, or one over the limit."""
    if width == 0 or height == 0:
        raise ImageError(f"the {kind}'s size is {width} x {height}: expected at least 1 x 1")
    if width * height > MAX_PIXELS:
        raise ImageError(
            f"the {kind} claims {width} x {height} pixels, over the limit of {MAX_PIXELS:,}",
            MAKE_SMALLER,
        )


def read_header(data: Buffer) -> JpegHeader:
    """Size and components from the frame header of a JPEG, without decoding; stray bytes before
    markers are skipped.

    Raises:
        ImageError: not a JPEG, or no valid frame header before the image data.
    """
    try:
        return read_plain_header(data)
    except StrayBytesError:
        for segment in iter_segments(data):
            if segment.marker in _SOF:
                return _frame_header(data, segment.start)
            if segment.marker == SOS:
                break
        raise


def read_plain_header(data: Buffer) -> JpegHeader:
    """Size and components of a JPEG that has no stray bytes before its frame header, as
    ``read_header``.

    Raises:
        StrayBytesError: there are some.
        ImageError: not a JPEG, or no valid frame header before the image data.
    """
    if len(data) < 2 or data[0] != 0xFF or data[1] != SOI:
        if len(data) == 0:
            raise ImageError("it is empty")
        problem = "not a JPEG" if format_of(data) else "not an image of a known format"
        raise ImageError(f"{problem}: it starts with {first_bytes(data)}", _SAVE_AS_KNOWN)
    position = _find(data, _SOF)
    if position < 0:
        raise _no_size()
    return _frame_header(data, position)


def _find(data: Buffer, wanted: frozenset[int]) -> int:
    """The position of the first of these markers before the image data; -1 if there is none."""
    position = 2
    last = len(data) - _SEGMENT_START.size
    unpack = _SEGMENT_START.unpack_from
    while position <= last:
        lead, marker, length = unpack(data, position)
        if lead != 0xFF:
            raise StrayBytesError(
                f"byte {position:,} of the JPEG does not start a marker, as expected there: it is "
                f"{lead:02x}, not ff"
            )
        if marker in wanted:
            return position
        if marker not in _WITHOUT_LENGTH:
            position += 2 + length
        elif marker in (SOS, EOI, SOI):
            break
        else:
            position += 1 if marker == 0xFF else 2  # a fill byte
    return -1


def _no_size() -> ImageError:
    """The error for a JPEG without a whole frame header before its image data."""
    return ImageError("the JPEG's size can't be read: it may be cut short or damaged")


def _frame_header(data: Buffer, position: int) -> JpegHeader:
    if position + 10 > len(data):
        raise _no_size()
    precision, height, width, components = _FRAME.unpack_from(data, position + 4)
    if not 0 < width * height <= MAX_PIXELS:
        check_size("JPEG", width, height)
    if precision != 8 or components not in (1, 3, 4):
        count = number_of(components, "component")
        raise ImageError(
            f"a JPEG with {count} of {precision} bits per sample can't be read: expected 1, 3 or 4 "
            "components of 8 bits per sample",
            "convert it to a JPEG of 8 bits, grey or RGB, or get a sound copy of it",
        )
    return JpegHeader(width, height, components)


def is_frame(marker: int) -> bool:
    """Whether a marker starts a frame header."""
    return marker in _SOF


class MarkerSegment(NamedTuple):
    """A marker segment: its marker, its position from the marker's own 0xFF,
    and the stray bytes before it.
    """

    marker: int
    start: int
    stop: int
    strays: int


def iter_segments(data: Buffer) -> Iterator[MarkerSegment]:
    """The segments of a JPEG to the end-of-image marker of its own scans, or as far as they can be
    followed.

    Stray bytes are skipped to the next marker, as libjpeg does. Between segments is coded data.
    """
    position = 2
    while match := _NEXT_MARKER.search(data, position):
        start, stop = match.end() - 2, match.end()
        marker = data[start + 1]
        if marker not in _ALONE:
            stop += int.from_bytes(data[stop : stop + 2], "big")
            if not match.end() + 2 <= stop <= len(data):
                return
        yield MarkerSegment(marker, start, stop, match.start() - position)
        if marker == EOI:
            return
        position = stop
        if marker == SOS:
            scan_end = _AFTER_SCAN.search(data, stop)
            if scan_end is None:
                return
            position = scan_end.start()


def with_rows(data: Buffer, rows: int) -> bytearray | None:
    """The JPEG with a header of fewer rows: a decoder stops there.

    None if it has several scans, each of all rows, or stray bytes in its header.
    """
    try:
        frame, scan = _find(data, _SOF), _find(data, frozenset({SOS}))
    except StrayBytesError:
        return None
    if data[frame + 1] not in HUFFMAN or scan < 0 or data[scan + 4] != data[frame + 9]:
        return None
    shorter = bytearray(data)
    shorter[frame + 5 : frame + 7] = rows.to_bytes(2, "big")
    return shorter


def check_ends(data: Buffer) -> None:
    """Raise ImageError unless the JPEG's last two bytes are an end-of-image marker."""
    # Two numbers compare several times as fast as a slice of a memoryview.
    if len(data) >= 2 and data[-1] == EOI and data[-2] == 0xFF:
        return
    count = _count_after_end(data)
    if count:
        raise ImageError(f"the JPEG has {number_of(count, 'byte')} after its end-of-image marker")
    raise ImageError(
        "the JPEG does not end with an end-of-image marker: it may be cut short or damaged"
    )


def _count_after_end(data: Buffer) -> int:
    """The number of bytes after the end-of-image marker; 0 if there is no such marker."""
    for segment in iter_segments(data):
        if segment.marker == EOI:
            return len(data) - segment.stop
    return 0
