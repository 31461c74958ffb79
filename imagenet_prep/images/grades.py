"""judge: a JPEG's bytes -> its header, its pixels and its warning; or the reason why it is damaged.

A JPEG is clean if the strict decoder has no complaint. It is warned if its pixels are whole and
only its headers or markers are unusual. Otherwise it is damaged. The decoder's words don't tell the
two apart ("extraneous bytes before marker" can be either), so the place decides: a copy gets plain
headers, with its coded data as it is, and is decoded strictly. ITU-T T.81, Annex B.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from imagenet_prep.images import jpeg
from imagenet_prep.images.jpeg import ImageError, JpegHeader, MarkerSegment
from imagenet_prep.images.opening import opened
from imagenet_prep.text import number_of

Buffer = bytes | memoryview
Check = Literal["header", "decode", "strict"]
"""How closely images are checked: their headers alone; all pixels;
all pixels, and each warning is damage.
"""

T = TypeVar("T")
Decode = Callable[[Buffer, JpegHeader], T]
"""Decodes a JPEG strictly: each complaint of the decoder is an ImageError."""

_APP0, _APP14, _APP15, _COM = 0xE0, 0xEE, 0xEF, 0xFE
_START = b"\xff\xd8\xff"
"""The first bytes of a JPEG: TensorFlow and Pillow take no other, libjpeg would."""

# the length of the segment, and the place of the major revision or of the code, from the marker
_JFIF, _JFIF_LENGTH, _JFIF_MAJOR = b"JFIF\0", 18, 9
_ADOBE, _ADOBE_LENGTH, _ADOBE_TRANSFORM = b"Adobe", 16, 15
_TRANSFORMS = {3: (0, 1), 4: (0, 2)}
"""The codes of Adobe's marker by components; the last is what decoders assume."""


class Judged(Struct, Generic[T], frozen=True):
    """A JPEG that is not damaged.

    Args:
        header: its size and components.
        warning: what is unusual in its file; "" if it is clean.
        decoded: its pixels, or whatever the caller's decoder returned.
        plain: the bytes to decode: its own, or a copy with plain headers if it is warned.
    """

    header: JpegHeader
    warning: str
    decoded: T
    plain: Buffer


def judge(data: Buffer, check: Check, decode: Decode[T]) -> Judged[T]:
    """Judge a JPEG by its headers and its end, then by ``decode``.

    Raises:
        ImageError: it is damaged, or ``check`` is "strict" and it is not clean.
    """
    try:
        header = jpeg.read_plain_header(data)
        jpeg.check_ends(data)
        return Judged(header, "", decode(data, header), data)
    except ImageError as complaint:
        if check == "strict":
            raise _refusal(data, complaint, decode) from None
        return look_closer(data, complaint, decode)


def _refusal(data: Buffer, complaint: ImageError, decode: Decode[T]) -> ImageError:
    """The strict check's error: a warning of the decoder if the pixels are whole."""
    warning = str(complaint).removeprefix(jpeg.NOT_CLEAN)
    if warning == str(complaint):
        return complaint
    try:
        look_closer(data, complaint, decode)
    except ImageError:
        return complaint
    return ImageError(f"libjpeg warns: {warning}; the strict check refuses every warning")


def leave_coded(data: Buffer, header: JpegHeader) -> None:
    """A ``decode`` for headers alone: coded data is not looked at."""


def look_closer(data: Buffer, complaint: ImageError, decode: Decode[T]) -> Judged[T]:
    """Judge a JPEG that a strict decoder, or the reader of its headers, complained about.

    Raises:
        ImageError: it is damaged.
    """
    if bytes(data[:3]) != _START:
        raise complaint
    plain = _Plain(data, complaint)
    header = jpeg.read_plain_header(plain.copy)
    try:
        decoded = decode(plain.copy, header)
    except ImageError as fault:
        plain = _Plain(data, fault, drops_segments=True)
        decoded = decode(plain.copy, header)
    if decode is not leave_coded:
        _check_lenient(data, plain.copy)
    return Judged(header, plain.warning or str(complaint), decoded, plain.copy)


class _Plain:
    """A copy of a JPEG with plain headers: its coded data and tables, without what is unusual
    around them.

    Stray bytes and bytes after the end are left out, and the parameters of sequential scans are
    those of the standard. With ``drops_segments``, application segments and comments are left out
    too, except those that decide colours.
    """

    def __init__(
        self, data: Buffer, complaint: ImageError, *, drops_segments: bool = False
    ) -> None:
        self._data = data
        self._complaint = complaint
        self._drops_segments = drops_segments
        self._components = jpeg.read_header(data).components
        self._frame = 0
        self._strays = 0
        self._has_odd_scans = False
        self.copy, self._trailing = self._plain_copy()

    @property
    def warning(self) -> str:
        """Everything that the copy doesn't have, as text."""
        facts = {
            f"{number_of(self._strays, 'stray byte')} before markers": self._strays,
            "odd scan parameters": self._has_odd_scans,
            str(self._complaint).rpartition(": ")[2]: self._drops_segments,
            f"{number_of(self._trailing, 'byte')} after the end": self._trailing,
        }
        return ", ".join(fact for fact, is_so in facts.items() if is_so)

    def _plain_copy(self) -> tuple[bytes, int]:
        """The copy, and the number of bytes after the end."""
        data = self._data
        pieces: list[Buffer] = [data[:2]]
        scanned = 0  # the end of the last segment, once the first scan has started
        for segment in jpeg.iter_segments(data):
            if scanned:
                pieces.append(data[scanned : segment.start])
            else:
                self._strays += segment.strays
            pieces.append(self._plain_segment(segment, is_header=not scanned))
            if segment.marker == jpeg.EOI and scanned:
                return b"".join(pieces), len(data) - segment.stop
            if scanned or segment.marker == jpeg.SOS:
                scanned = segment.stop
        raise self._complaint

    def _plain_segment(self, segment: MarkerSegment, *, is_header: bool) -> Buffer:
        """The content of a segment, as a decoder expects it."""
        content = self._data[segment.start : segment.stop]
        if jpeg.is_frame(segment.marker):
            self._frame = segment.marker
        if segment.marker == jpeg.SOS and self._frame in jpeg.SEQUENTIAL:
            self._has_odd_scans |= content[-3:] != jpeg.WHOLE_COEFFICIENTS
            return bytes(content[:-3]) + jpeg.WHOLE_COEFFICIENTS
        is_application = _APP0 <= segment.marker <= _APP15 or segment.marker == _COM
        if is_application and is_header and self._drops_segments:
            return self._colour_segment(segment.marker, bytearray(content))
        return content

    def _colour_segment(self, marker: int, content: bytearray) -> bytes:
        """An application segment that decides colours,
        with the revision and code that decoders assume; b"" if not.
        """
        if marker == _APP0 and content[4:9] == _JFIF and len(content) >= _JFIF_LENGTH:
            content[_JFIF_MAJOR] = 1
            return bytes(content)
        if marker == _APP14 and content[4:9] == _ADOBE and len(content) >= _ADOBE_LENGTH:
            transforms = _TRANSFORMS.get(self._components, (0,))
            if content[_ADOBE_TRANSFORM] not in transforms:
                content[_ADOBE_TRANSFORM] = transforms[-1]
            return bytes(content)
        return b""


def _check_lenient(data: Buffer, copy: bytes) -> None:
    """Raise ImageError unless Pillow, lenient as most decoders are,
    reads the copy's pixels from the file itself.
    """
    if _lenient(data) != _lenient(copy):
        raise ImageError("its headers are unusual: decoders may get different pixels from it")


def _lenient(data: Buffer) -> tuple[str, bytes]:
    """Colour mode and pixels at 1/8 scale."""
    with opened(data, "JPEG") as image:
        image.draft(None, (1, 1))
        return image.mode, image.tobytes()
