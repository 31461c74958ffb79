"""images.prepare: the orientation that a JPEG states, as Pillow reads it; whatever else there is counts as upright."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from imagenet_prep.demo import photographs
from imagenet_prep.demo.photographs import Kind
from imagenet_prep.images.prepare import read_orientation

ORIENTATION, MAKE = 0x0112, 0x010F


def jpeg(exif: bytes = b"", **options: object) -> bytes:
    """A small JPEG with this EXIF segment, if any."""
    out = io.BytesIO()
    if exif:
        options["exif"] = exif
    Image.new("RGB", (8, 8)).save(out, "JPEG", **options)
    return out.getvalue()


def tiff(orientation: int, order: str, *, kind: int = 3, magic: int = 42, promised: int = 2) -> bytes:
    """An EXIF segment with the maker's name and an orientation, big endian (">") or little endian ("<")."""
    begin = {"<": b"II", ">": b"MM"}[order] + struct.pack(f"{order}HIH", magic, 8, promised)
    make = struct.pack(f"{order}HHI4s", MAKE, 2, 4, b"us\0\0")
    return b"Exif\0\0" + begin + make + struct.pack(f"{order}HHIHH", ORIENTATION, kind, 1, orientation, 0) + bytes(4)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_orientation_is_read(orientation: int, order: str) -> None:
    """All eight, in both byte orders, as Pillow reads them."""
    data = jpeg(tiff(orientation, order))
    with Image.open(io.BytesIO(data)) as image:
        assert image.getexif()[ORIENTATION] == orientation
    assert read_orientation(data) == read_orientation(memoryview(data)) == orientation


def test_what_pillow_writes_is_read() -> None:
    """EXIF made by Pillow, and that of the demo's rotated image."""
    exif = Image.Exif()
    exif[ORIENTATION] = 8
    assert read_orientation(jpeg(exif.tobytes())) == 8
    assert read_orientation(photographs.tiny(1, Kind.ROTATED)) == 6


def test_exif_behind_other_segments() -> None:
    """Segments before it are passed over, another APP1 among them; EXIF behind the frame header is not looked for."""
    data = jpeg(tiff(3, ">"))
    assert read_orientation(data[:2] + b"\xff\xff" + data[2:]) == 3
    xmp = b"\xff\xe1" + struct.pack(">H", 2 + 20) + b"http://ns.adobe.com/"
    assert read_orientation(data[:2] + xmp + data[2:]) == 3
    start = data.index(b"Exif") - 4
    (length,) = struct.unpack_from(">H", data, start + 2)
    segment = data[start : start + 2 + length]
    frame = data.index(b"\xff\xc0")
    assert read_orientation(data[:start] + data[start + 2 + length : frame] + data[frame:-2] + segment) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8",
        jpeg(),
        photographs.tiny(1, Kind.CORRUPT_EXIF),
        photographs.tiny(1, Kind.PNG),
        jpeg(tiff(0, "<")),
        jpeg(tiff(9, "<")),
        jpeg(tiff(6, "<", kind=4)),
        jpeg(tiff(6, "<", magic=43)),
        jpeg(tiff(6, "<", promised=1)),
        jpeg(b"Exif\0\0XX" + tiff(6, "<")[8:]),
        jpeg(tiff(6, "<")[:20]),
        jpeg(tiff(6, "<"))[:30],
    ],
)
def test_without_a_sensible_orientation_it_is_upright(data: bytes) -> None:
    """No EXIF, EXIF cut short, an orientation that there isn't, or of another type: upright."""
    assert read_orientation(data) == 1


@given(st.binary(max_size=200))
def test_no_bytes_are_an_error(data: bytes) -> None:
    """Any bytes, alone or as an EXIF segment, have an orientation from 1 to 8."""
    assert 1 <= read_orientation(data) <= 8
    segment = b"Exif\0\0" + data
    assert 1 <= read_orientation(b"\xff\xd8\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment) <= 8
