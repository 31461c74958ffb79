"""JPEG: what is taken, what is refused, and repairs held against TensorFlow's own decoding."""

from __future__ import annotations

import io
import random
import struct
import zlib
from typing import Any

import pytest
import simplejpeg
import tf_fixture
from hypothesis import given, settings
from hypothesis import strategies as st
from made_tars import in_memory
from PIL import Image, features
from test_hostile_inputs import png

from imagenet_prep.demo import photographs
from imagenet_prep.demo.photographs import Kind
from imagenet_prep.images import first_bytes, jpeg
from imagenet_prep.images.grades import Check
from imagenet_prep.images.jpeg import ImageError, JpegHeader
from imagenet_prep.images.prepare import Prepared, prepare

tf = tf_fixture.tf

NOISE = Image.frombytes("RGB", (24, 20), random.Random(1).randbytes(24 * 20 * 3))
PHOTOGRAPH = photographs.photograph(5, (160, 120))


def _save(image: Image.Image, form: str = "JPEG", **options: Any) -> bytes:
    return in_memory(lambda file: image.save(file, form, **options))


PLAIN = _save(NOISE)


def _with_segment(data: bytes, marker: int, content: bytes) -> bytes:
    """A JPEG with one more segment right after its first two bytes."""
    return (
        data[:2] + bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content + data[2:]
    )


def _segments(data: bytes) -> dict[int, bytes]:
    """The marker segments before the image data; several of one marker are joined."""
    found: dict[int, bytes] = {}
    position = 2
    while data[position + 1] != 0xDA:
        (length,) = struct.unpack_from(">H", data, position + 2)
        found[data[position + 1]] = (
            found.get(data[position + 1], b"") + data[position + 4 : position + 2 + length]
        )
        position += 2 + length
    return found


def _sampled(factors: tuple[int, ...]) -> bytes:
    """A JPEG of one grey block group with any sampling factors, written by hand:
    each is h << 4 | v.
    """
    tables = b"".join(
        bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content
        for marker, content in _segments(_save(NOISE)).items()
        if marker in (0xDB, 0xC4)
    )
    width, height = 8 * max(f >> 4 for f in factors), 8 * max(f & 15 for f in factors)
    frame = struct.pack(">BHHB", 8, height, width, len(factors))
    frame += b"".join(
        bytes([number + 1, factor, min(number, 1)]) for number, factor in enumerate(factors)
    )
    scan = (
        bytes([len(factors)])
        + b"".join(bytes([n + 1, 0x11 if n else 0]) for n in range(len(factors)))
        + b"\0\x3f\0"
    )
    # One block: no difference to the last one, and no other coefficient, as Annex K's tables code
    # them.
    bits = "".join(("0000" if n else "001010") * (f >> 4) * (f & 15) for n, f in enumerate(factors))
    bits += "1" * (-len(bits) % 8)
    data = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    head = b"\xff\xd8" + tables + b"\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame
    return head + b"\xff\xda" + struct.pack(">H", len(scan) + 2) + scan + data + b"\xff\xd9"


# headers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "header"),
    [
        pytest.param(PLAIN, JpegHeader(24, 20, 3), id="rgb"),
        pytest.param(_save(NOISE.convert("L")), JpegHeader(24, 20, 1), id="grey"),
        pytest.param(_save(NOISE.convert("CMYK")), JpegHeader(24, 20, 4), id="cmyk"),
        pytest.param(_save(NOISE, progressive=True), JpegHeader(24, 20, 3), id="progressive"),
        pytest.param(
            _save(NOISE, restart_marker_rows=1), JpegHeader(24, 20, 3), id="restart-markers"
        ),
        pytest.param(_save(NOISE, keep_rgb=True), JpegHeader(24, 20, 3), id="not-YCbCr"),
        pytest.param(
            _with_segment(PLAIN, 0xE1, b"Exif\0\0" + _save(NOISE.resize((9, 7)))),
            JpegHeader(24, 20, 3),
            id="thumb",
        ),
        pytest.param(
            _with_segment(PLAIN, 0xFE, b"\xff\xc0\0\x0b\x08\0\1\0\1\3"),
            JpegHeader(24, 20, 3),
            id="comment",
        ),
        pytest.param(PLAIN[:2] + b"\xff" * 7 + PLAIN[2:], JpegHeader(24, 20, 3), id="fill-bytes"),
        pytest.param(
            _with_segment(PLAIN, 0xE2, bytes(65_533)), JpegHeader(24, 20, 3), id="long-segment"
        ),
    ],
)
def test_sizes_are_read_from_the_frame_header(data: bytes, header: JpegHeader) -> None:
    """Size and components come from the image's own frame header,
    not from a thumbnail's or a comment's bytes.
    """
    assert jpeg.read_header(data) == header
    assert Image.open(io.BytesIO(data)).size == (header.width, header.height)


@pytest.mark.parametrize(
    "kind", [kind for kind in Kind if kind not in (Kind.CMYK, Kind.YCCK, Kind.PNG)]
)
@pytest.mark.parametrize("check", ["header", "decode"])
def test_jpegs_are_taken_as_they_are(kind: Kind, check: Check) -> None:
    """Grey, progressive, rotated, with a corrupt EXIF block:
    the file's own bytes, stored size, no repair.
    """
    data = photographs.encode(PHOTOGRAPH, kind)
    assert prepare(data, check) == Prepared(data, 160, 120)


@pytest.mark.parametrize(
    "factors", [(0x11, 0x11, 0x11), (0x22, 0x21, 0x21), (0x22, 0x21, 0x12), (0x31, 0x11, 0x11)]
)
def test_rare_sampling_factors_are_no_damage(tf: Any, factors: tuple[int, ...]) -> None:
    """A JPEG that TensorFlow decodes is not refused because its chroma is
    sampled in an unusual way.
    """
    data = _sampled(factors)
    assert tf.io.decode_jpeg(data).shape[2] == 3
    assert prepare(data, "decode").encoded == data


# refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"\xff\xd8", "the JPEG's size can't be read", id="two-bytes"),
        pytest.param(
            _save(NOISE, "PPM"), "not an image of a known format: it starts with 50 36 0a", id="ppm"
        ),
        pytest.param(
            _save(NOISE, "GIF")[:200], "its GIF header can't be read: it may be", id="gif"
        ),
        pytest.param(_save(NOISE, "BMP")[:200], "does not decode", id="bmp"),
        pytest.param(_save(NOISE, "TIFF")[:200], "TIFF", id="tiff"),
        pytest.param(_save(NOISE, "WEBP")[:200], "does not decode", id="webp"),
        pytest.param(_save(NOISE, "AVIF")[:200], "AVIF header can't be read", id="avif"),
        pytest.param(b"\0\0\0\x18ftypheic" + bytes(40), "HEIC can't be read", id="heic"),
        pytest.param(
            _save(NOISE, "TIFF", save_all=True, append_images=[Image.new("RGB", (4, 4))]),
            "pages",
            id="pages",
        ),
        pytest.param(
            b"<!DOCTYPE html><html><body>Sign in</body></html>", r"3c 21 44 4f \(<!DO\)", id="html"
        ),
        pytest.param(bytes(5000), "not an image of a known format", id="zeros"),
        pytest.param(b"\xff\xd8\xff\xd9" * 3, "the JPEG's size can't be read", id="no-frame"),
        pytest.param(b"\xff\xd8" + b"\xff" * 5000, "size can't be read", id="fill-bytes-only"),
        pytest.param(
            PLAIN[:2] + b"garbage" + PLAIN[2:],
            "byte 2 of the JPEG does not start a marker, as expected there: it is 67, not ff",
            id="garbage",
        ),
        pytest.param(PLAIN[:-2], "end-of-image", id="no-end"),
        pytest.param(PLAIN[:-2] + bytes(2), "cut short or damaged", id="zeros-at-the-end"),
        pytest.param(PLAIN[:3], "the JPEG's size can't be read", id="three-bytes"),
        pytest.param(
            _save(NOISE, "GIF")[:9],
            "it may be damaged, cut off or of an unusual kind",
            id="gif-head",
        ),
        pytest.param(
            _save(Image.new("1", (70_000, 1)), "PNG"), "it has 70000 x 1 pixels", id="wide"
        ),
        pytest.param(
            _save(NOISE, "PNG").replace(b"IHDR", b"CgBI", 1), "Apple's variant", id="apple"
        ),
    ],
)
@pytest.mark.parametrize("check", ["header", "decode"])
def test_what_is_no_whole_jpeg_is_refused(data: bytes, reason: str, check: Check) -> None:
    """Other formats, web pages, nothing at all: refused with the reason, whatever the name said."""
    with pytest.raises(ImageError, match=reason):
        prepare(data, check)


def test_a_format_that_pillow_lacks_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Pillow was built without AVIF, the error says so."""
    monkeypatch.setattr(features, "check", lambda name: name != "avif")
    with pytest.raises(ImageError, match="Pillow was built without AVIF"):
        prepare(_save(NOISE, "AVIF")[:40], "decode")


def test_bytes_after_the_end_are_no_cut() -> None:
    """A strict check counts the bytes after a JPEG's end: nothing of it is missing."""
    with pytest.raises(ImageError) as caught:
        prepare(PLAIN + b"x", "strict")
    assert str(caught.value) == "the JPEG has 1 byte after its end-of-image marker"


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "none"), (b"PAR1x", "50 41 52 31 (PAR1)"), (b"\x89PNG", "89 50 4e 47")],
    ids=["empty", "text", "bytes"],
)
def test_the_first_bytes_of_a_file_in_words(data: bytes, words: str) -> None:
    """As numbers, and as text if they are one."""
    assert first_bytes(data) == words


def _with_frame(form: str, *values: int) -> bytes:
    start = PLAIN.index(b"\xff\xc0") + 4
    return PLAIN[:start] + struct.pack(form, *values) + PLAIN[start + struct.calcsize(form) :]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (_with_frame(">BHH", 8, 65_535, 65_535), "claims 65535 x 65535 pixels"),
        (_with_frame(">BHH", 8, 0, 24), "size is 24 x 0"),
        (_with_frame(">BHH", 8, 20, 0), "size is 0 x 20"),
        (_with_frame(">B", 12), "3 components of 12 bits per sample"),
        (_with_frame(">BHHB", 8, 20, 24, 2), "2 components"),
        (_with_frame(">BHHB", 12, 20, 24, 1), "expected 1, 3 or 4 components of 8 bits per sample"),
        (png(60_000, 60_000, 8, 2, zlib.compress(bytes(100))), "claims 60000 x 60000 pixels"),
        (png(0, 5, 8, 2, zlib.compress(bytes(100))), "size is 0 x 5"),
    ],
)
def test_absurd_frames_are_refused(data: bytes, reason: str) -> None:
    """A claimed size that would take gigabytes, no size, 12 bits, two components."""
    with pytest.raises(ImageError, match=reason):
        prepare(data, "header")


@pytest.mark.parametrize("rows", [None, b"", bytes(10), b"\x09" * 1000])
def test_a_png_without_its_rows_is_refused(rows: bytes | None) -> None:
    """No image data, too little of it, rows with a filter that doesn't exist."""
    with pytest.raises(ImageError, match="does not decode"):
        prepare(png(8, 8, 8, 2, rows and zlib.compress(rows)), "header")


# damage -------------------------------------------------------------------------------------------


def test_the_end_marker_of_a_thumbnail_ends_no_image() -> None:
    """An image cut within its data is refused by its header alone,
    however close its thumbnail's end marker is.
    """
    whole = _with_segment(PLAIN, 0xE1, b"Exif\0\0" + _save(NOISE.resize((9, 7))))
    start = whole.rindex(b"\xff\xda")
    assert whole.count(b"\xff\xd9") == 2
    for length in range(start + 4, len(whole) - 1):
        with pytest.raises(ImageError, match="end-of-image"):
            prepare(whole[:length], "header")
    for pad in (1, 4094, 4095):
        assert prepare(whole + bytes(pad), "header").width == 24


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(PLAIN, id="baseline"),
        pytest.param(_save(NOISE, progressive=True), id="progressive"),
        pytest.param(_save(NOISE, restart_marker_rows=1), id="restart-markers"),
        pytest.param(
            _with_segment(PLAIN, 0xE1, b"Exif\0\0" + _save(NOISE.resize((9, 7)))), id="thumbnail"
        ),
        pytest.param(_save(NOISE.convert("CMYK")), id="cmyk"),
        pytest.param(_save(NOISE, "PNG"), id="png"),
    ],
)
def test_no_cut_is_taken(data: bytes) -> None:
    """An image cut at any length is refused when it is decoded, even if the last byte alone is
    missing.

    Of a PNG the last 4 bytes may: they are the CRC of its end chunk, which is empty.
    """
    spare = 4 if data.startswith(b"\x89PNG\r\n\x1a\n") else 0
    for length in range(len(data) - spare):
        with pytest.raises(ImageError):
            prepare(data[:length], "decode")


@pytest.mark.parametrize("kind", [Kind.RGB, Kind.GREY, Kind.PROGRESSIVE, Kind.CMYK, Kind.YCCK])
def test_damage_that_libjpeg_warns_of_is_refused(kind: Kind) -> None:
    """Of 150 single wrong bits within the image data,
    all that libjpeg warns of are refused, and many are.
    """
    data = photographs.encode(PHOTOGRAPH, kind)
    start = data.index(b"\xff\xda") + 12
    rng, refused = random.Random(3), 0
    colorspace = "CMYK" if kind in (Kind.CMYK, Kind.YCCK) else "RGB"
    for _ in range(150):
        damaged = bytearray(data)
        damaged[rng.randrange(start, len(data) - 2)] ^= 1 << rng.randrange(8)
        try:
            simplejpeg.decode_jpeg(bytes(damaged), colorspace=colorspace, strict=True)
        except ValueError:
            refused += 1
            with pytest.raises(ImageError, match="does not decode"):
                prepare(bytes(damaged), "decode")
    assert refused > 20


def test_every_flipped_bit_of_a_png_is_refused() -> None:
    """Its chunks have CRCs, and they are looked at: the repaired image would hide the damage for
    good.

    The last 12 bytes are the end chunk, which holds nothing that could be wrong.
    """
    data = _save(NOISE.resize((3, 3)), "PNG")
    for position in range(len(data) - 12):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(ImageError):
            prepare(bytes(damaged), "decode")


MUTABLE = [
    PLAIN,
    _save(NOISE, progressive=True),
    _save(NOISE.convert("CMYK")),
    _save(NOISE, "PNG"),
    _sampled((0x31, 0x11, 0x11)),
]


@given(
    st.sampled_from(MUTABLE),
    st.lists(st.tuples(st.floats(0, 0.999), st.binary(min_size=1, max_size=4)), max_size=4),
)
@settings(deadline=None, max_examples=300)
def test_mutated_images_raise_image_errors_only(
    data: bytes, changes: list[tuple[float, bytes]]
) -> None:
    """Images with bytes replaced anywhere, headers and tables included,
    are taken or refused, never a crash.
    """
    damaged = bytearray(data)
    for place, patch in changes:
        position = int(place * len(data))
        damaged[position : position + len(patch)] = patch
    try:
        prepared = prepare(bytes(damaged), "decode")
    except ImageError:
        return
    assert 0 < prepared.width * prepared.height <= jpeg.MAX_PIXELS


# repairs ------------------------------------------------------------------------------------------


def _alpha(mode: str) -> Image.Image:
    image = PHOTOGRAPH.convert(mode)
    image.putalpha(PHOTOGRAPH.convert("L"))
    return image


CMYK = photographs.encode(PHOTOGRAPH, Kind.CMYK)
ADOBE = CMYK.index(
    b"\xff\xee\x00\x0eAdobe"
)  # without this marker inks aren't inverted, by the standard
REPAIRED = {
    "cmyk": CMYK,
    "ycck": photographs.encode(PHOTOGRAPH, Kind.YCCK),
    "cmyk without Adobe's marker": CMYK[:ADOBE] + CMYK[ADOBE + 16 :],
    "png": photographs.encode(PHOTOGRAPH, Kind.PNG),
    "png with alpha": _save(_alpha("RGBA"), "PNG"),
    "png grey": _save(PHOTOGRAPH.convert("L"), "PNG"),
    "png grey with alpha": _save(_alpha("LA"), "PNG"),
    "png of 16 bits": _save(
        PHOTOGRAPH.convert("I").point(lambda value: value * 256).convert("I;16"), "PNG"
    ),
    "png with a palette": _save(PHOTOGRAPH.convert("P"), "PNG"),
    "png of one bit": _save(PHOTOGRAPH.convert("1"), "PNG"),
}
repaired = pytest.mark.parametrize("data", REPAIRED.values(), ids=REPAIRED)


@repaired
def test_repaired_images_are_what_tensorflow_makes(tf: Any, data: bytes) -> None:
    """Today's TensorFlow writes the same bytes, if its decoder uses the accurate transform, as that
    of 2016 did.

    test_repaired_bytes.py has digests of TensorFlow 0.12.1's own bytes.
    """
    rgb = tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")
    assert (
        prepare(data, "decode").encoded == tf.io.encode_jpeg(rgb, format="rgb", quality=100).numpy()
    )


@repaired
def test_repaired_images_are_baseline_420_at_quality_100(data: bytes) -> None:
    """The repaired file is a baseline JPEG, chroma halved both ways,
    every quantiser 1, size unchanged.
    """
    prepared = prepare(data, "decode")
    segments = _segments(bytes(prepared.encoded))
    frame = segments[0xC0]
    assert [frame[7 + 3 * n] for n in range(3)] == [0x22, 0x11, 0x11]
    tables = segments[0xDB]
    assert len(tables) % 65 == 0
    assert {*tables} - {tables[0], tables[65 % len(tables)]} <= {1}
    assert all(set(tables[start + 1 : start + 65]) == {1} for start in range(0, len(tables), 65))
    assert (prepared.width, prepared.height) == PHOTOGRAPH.size
    assert jpeg.read_header(prepared.encoded) == JpegHeader(*PHOTOGRAPH.size, 3)
    assert segments.keys() <= {0xE0, 0xDB, 0xC0, 0xC4}
