"""JPEGs of every kind that is warned, and of every kind that is damaged, made from a real one."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path
from typing import Any

from PIL import Image

from imagenet_prep.demo import photographs
from imagenet_prep.demo.photographs import Kind

PHOTOGRAPH = photographs.photograph(5, (160, 120))


def saved(image: Image.Image = PHOTOGRAPH, **options: Any) -> bytes:
    """An image as a JPEG."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90, **options)
    return buffer.getvalue()


def segment(marker: int, content: bytes) -> bytes:
    """A marker segment."""
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def inserted(data: bytes, position: int, content: bytes) -> bytes:
    """The data with more bytes at a position."""
    return data[:position] + content + data[position:]


def headed(data: bytes, marker: int, content: bytes) -> bytes:
    """A JPEG with one more segment right after its first two bytes."""
    return inserted(data, 2, segment(marker, content))


def before(data: bytes, marker: int, content: bytes) -> bytes:
    """A JPEG with more bytes ahead of the first marker of this kind."""
    return inserted(data, data.index(bytes([0xFF, marker])), content)


def scan_start(data: bytes) -> int:
    """The position of the coded data of the last scan."""
    scan = data.rindex(b"\xff\xda")
    return int(scan + 2 + struct.unpack_from(">H", data, scan + 2)[0])


def with_scan(data: bytes, first: int, last: int, bits: int) -> bytes:
    """A JPEG of one scan with other parameters: Ss, Se, and Ah with Al."""
    start = scan_start(data)
    return data[: start - 3] + bytes([first, last, bits]) + data[start:]


def replaced(data: bytes, position: int, content: bytes) -> bytes:
    """The data with other bytes at a position."""
    return data[:position] + content + data[position + len(content) :]


def mpo(*images: Image.Image) -> bytes:
    """A Multi-Picture file: several JPEGs, one after another."""
    buffer = io.BytesIO()
    images[0].save(buffer, "MPO", save_all=True, append_images=images[1:])
    return buffer.getvalue()


BASELINE = saved()
PROGRESSIVE = saved(progressive=True)
RESTARTS = saved(restart_marker_rows=1)
CMYK = photographs.encode(PHOTOGRAPH, Kind.CMYK)
THUMBNAIL = saved(PHOTOGRAPH.resize((40, 30)))
ODDLY_SAMPLED = (Path(__file__).parent / "oddly_sampled.jpg").read_bytes()
"""The photograph by cjpeg of libjpeg-turbo: -quality 75 -sample 2x2,2x1,1x1 -restart 2."""
WITH_THUMBNAIL = headed(BASELINE, 0xE1, b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0" + THUMBNAIL)
_NO_JFIF = BASELINE[:2] + BASELINE[20:]
_FACTORS = (
    BASELINE.index(b"\xff\xc0") + 11
)  # of the first component: 2 x 2 blocks, and 1 x 4 are as many
_ICC_CUT = b"ICC_PROFILE\0\1"
_ICC_NUMBERS = b"ICC_PROFILE\0\3\1" + bytes(100)
EXIF_CUT = b"Exif\0\0MM\0*\0\0\0\x08\0\x0c\x01\x0f\0\2"
_LOOPING_EXIF = b"Exif\0\0MM\0*" + struct.pack(">IHI", 8, 0, 8)
_SAMSUNG = with_scan(BASELINE, 0, 0, 0)
_NOISE = random.Random(3).randbytes(3000).replace(b"\xff", b"\xfe")

WARNED = {
    "Se 0": _SAMSUNG,
    "Se 255": with_scan(BASELINE, 0, 255, 0),
    "Ss 1": with_scan(BASELINE, 1, 63, 0),
    "Ah and Al": with_scan(BASELINE, 0, 63, 0x11),
    "scan parameters are nonsense": with_scan(BASELINE, 200, 3, 0xFF),
    "JFIF 2.00": replaced(BASELINE, 11, b"\2\0"),
    "stray bytes before DQT": before(BASELINE, 0xDB, bytes(4)),
    "stray bytes before DHT": before(BASELINE, 0xC4, b"padding"),
    "stray bytes before SOF": before(BASELINE, 0xC0, b"\0"),
    "stray bytes before SOS": before(BASELINE, 0xDA, b"garbage!"),
    "stray bytes between application segments": inserted(
        headed(BASELINE, 0xE3, b"of a camera"), 17, bytes(64)
    ),
    "stray bytes with FF 00": before(BASELINE, 0xDB, b"\0\xff\0\0"),
    "stray bytes in a progressive file": before(PROGRESSIVE, 0xC2, bytes(9)),
    "stray bytes in a CMYK file": before(CMYK, 0xDA, b"???"),
    "ICC numbers": headed(BASELINE, 0xE2, _ICC_NUMBERS),
    "ICC cut": headed(BASELINE, 0xE2, _ICC_CUT + b"\2" + bytes(60)),
    "Adobe's code unknown": headed(_NO_JFIF, 0xEE, b"Adobe\0\x64\0\0\0\0\7"),
    "10 bytes after the end": BASELINE + bytes(10),
    "10 kB after the end": BASELINE + bytes(10_000),
    "1 MB after the end": BASELINE + bytes(1 << 20),
    "a video after the end": BASELINE
    + b"\0\0\0\x18ftypmp42"
    + _NOISE
    + b"\xff\xd9\xff\xda"
    + _NOISE,
    "a trailer after a progressive file": PROGRESSIVE + b"SEFHe" + bytes(30),
    "a trailer after restart markers": RESTARTS + bytes(30),
    "a trailer and a thumbnail": WITH_THUMBNAIL + bytes(5000),
    "an MPO with odd scan parameters": _SAMSUNG + PROGRESSIVE,
    "odd sampling factors, Se 0": with_scan(ODDLY_SAMPLED, 0, 0, 0),
    "odd sampling factors, stray bytes before DHT": before(ODDLY_SAMPLED, 0xC4, b"padding"),
    "odd sampling factors, a trailer": ODDLY_SAMPLED + bytes(30),
    "all at once": headed(before(_SAMSUNG, 0xDA, b"zz"), 0xE2, _ICC_NUMBERS) + bytes(77),
}
"""JPEGs with whole pixels and odd headers or markers, by kind: each is refused by a strict rule."""

CLEAN = {
    "MPO": mpo(PHOTOGRAPH, PHOTOGRAPH.rotate(3)),
    "two files, one after another": BASELINE + PROGRESSIVE,
    "EXIF cut": headed(BASELINE, 0xE1, EXIF_CUT),
    "EXIF that loops": headed(BASELINE, 0xE1, _LOOPING_EXIF),
    "Adobe's code unknown, with JFIF": headed(BASELINE, 0xEE, b"Adobe\0\x64\0\0\0\0\7"),
    "fill bytes": inserted(BASELINE, 2, b"\xff" * 9),
    "a thumbnail": WITH_THUMBNAIL,
    "odd sampling factors": ODDLY_SAMPLED,
    "4:4:1": replaced(BASELINE, _FACTORS, b"\x14"),
    "odd sampling factors, fill bytes": inserted(
        ODDLY_SAMPLED, len(ODDLY_SAMPLED) - 2, b"\xff" * 20
    ),
    "an odd density": replaced(BASELINE, 13, b"\x09\0\0\0\0"),
}
"""JPEGs with odd parts that no JPEG decoder looks at, by kind."""

_HALF = len(BASELINE) // 2
_OPTIMIZED = saved(optimize=True)
_FIRST_TABLE = _OPTIMIZED.index(b"\xff\xc4")
_SECOND_SCAN = PROGRESSIVE.index(b"\xff\xda", PROGRESSIVE.index(b"\xff\xda") + 2)
_NEXT_TABLE = PROGRESSIVE.index(b"\xff\xc4", PROGRESSIVE.index(b"\xff\xda"))
_RESTART = RESTARTS.index(b"\xff\xd1", scan_start(RESTARTS))
_ODD_HALF = ODDLY_SAMPLED[: len(ODDLY_SAMPLED) // 2]
_ODD_LAST = ODDLY_SAMPLED.rindex(b"\xff\xd2")
_FRAME = BASELINE.index(b"\xff\xc0")

DAMAGED = {
    "bad Huffman code": replaced(BASELINE, _HALF, b"\xfe\xfe\xfe\xfe\xfe\xfe"),
    "cut": BASELINE[:_HALF],
    "cut, with an end marker": BASELINE[:_HALF] + b"\xff\xd9",
    "cut in its last bytes, with an end marker": BASELINE[:-12] + b"\xff\xd9",
    "cut, a thumbnail in front": WITH_THUMBNAIL[:-_HALF],
    "cut, a thumbnail in front and a trailer": WITH_THUMBNAIL[:-_HALF] + bytes(20),
    "cut, a trailer with an end marker": BASELINE[:_HALF] + _NOISE + b"\xff\xd9" + bytes(20),
    "cut, an image after it": BASELINE[:_HALF] + THUMBNAIL,
    "cut, an image and a trailer after it": BASELINE[:_HALF] + THUMBNAIL + bytes(20),
    "the second half is zeros": BASELINE[:_HALF] + bytes(len(BASELINE) - _HALF - 2) + b"\xff\xd9",
    "the second half is zeros, odd scan parameters": _SAMSUNG[:_HALF] + bytes(_HALF) + b"\xff\xd9",
    "bytes before the end marker": BASELINE[:-2] + bytes(10) + b"\xff\xd9",
    "bytes before the next scan's tables": inserted(PROGRESSIVE, _NEXT_TABLE, bytes(20)),
    "bytes before the next scan": inserted(PROGRESSIVE, _SECOND_SCAN, bytes(3)),
    "a restart marker with another number": replaced(RESTARTS, _RESTART + 1, b"\xd5"),
    "a restart marker is missing": RESTARTS[:_RESTART] + RESTARTS[_RESTART + 2 :],
    "a Huffman table is missing": _OPTIMIZED[:_FIRST_TABLE]
    + _OPTIMIZED[_FIRST_TABLE + 2 + struct.unpack_from(">H", _OPTIMIZED, _FIRST_TABLE + 2)[0] :],
    "odd sampling factors, cut, with an end marker": _ODD_HALF + b"\xff\xd9",
    "odd sampling factors, the second half is zeros": _ODD_HALF + bytes(2000) + b"\xff\xd9",
    "odd sampling factors, bytes before the end marker": ODDLY_SAMPLED[:-2]
    + bytes(10)
    + b"\xff\xd9",
    "odd sampling factors, a restart marker is missing": ODDLY_SAMPLED.replace(b"\xff\xd1", b"", 1),
    "odd sampling factors, a wrong restart marker": ODDLY_SAMPLED.replace(
        b"\xff\xd1", b"\xff\xd5", 1
    ),
    "odd sampling factors, the last interval is missing": ODDLY_SAMPLED[:_ODD_LAST] + b"\xff\xd9",
    "odd sampling factors, a Huffman table is missing": ODDLY_SAMPLED.replace(
        b"\xff\xc4", b"\xff\xe4", 1
    ),
    "odd sampling factors, half a trailer": _ODD_HALF + _NOISE + b"\xff\xd9" + bytes(20),
    "no rows": replaced(BASELINE, _FRAME + 5, b"\0\0"),
    "no columns": replaced(BASELINE, _FRAME + 7, b"\0\0"),
    "bytes after the first two, which no decoder skips": inserted(BASELINE, 2, bytes(2)),
    "a segment of no length": inserted(BASELINE, 2, b"\xff\xe5\0\0"),
    "cut CMYK, with an end marker": CMYK[: len(CMYK) // 2] + b"\xff\xd9",
}
"""JPEGs that lack pixels, or that no decoder takes, by kind."""
