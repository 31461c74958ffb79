"""Three grades of an image: clean, warned and damaged, the same in convert, verify and the loaders."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import odd_jpegs
import pytest
import tf_fixture
from PIL import Image

from imagenet_prep.checks.examiner import check_jpeg
from imagenet_prep.demo import photographs
from imagenet_prep.images import arrays, grades, jpeg, pixels
from imagenet_prep.images.grades import Check
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.images.prepare import prepare, read_orientation

tf = tf_fixture.tf

SMALLER = Reencode(resize=60)


def _named(images: dict[str, bytes]) -> Any:
    return pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in images.items()])


def _is_repaired(data: bytes) -> bool:
    return jpeg.read_header(data).components == 4


# grades ----------------------------------------------------------------------------------------------------------


@_named(odd_jpegs.WARNED)
@pytest.mark.parametrize("how", [None, SMALLER], ids=["as is", "resized"])
def test_a_warned_image_is_taken_with_its_warning(data: bytes, how: Reencode | None) -> None:
    """Whole pixels under odd headers: taken byte for byte unless encoded again, and the warning says what is odd."""
    prepared = prepare(data, "decode", how)
    assert prepared.warning
    assert " (" not in prepared.warning  # a shard's entry parts the name from the warning there
    assert _is_repaired(data) or how is not None or bytes(prepared.encoded) == data


@_named(odd_jpegs.CLEAN)
@pytest.mark.parametrize("check", ["header", "decode", "strict"])
def test_what_no_jpeg_decoder_looks_at_is_clean(data: bytes, check: Check) -> None:
    """Odd metadata that no decoder of the pixels looks at needs no warning, and is no damage to any check."""
    prepared = prepare(data, check)
    assert (bytes(prepared.encoded), prepared.warning) == (data, "")


@_named(odd_jpegs.WARNED)
@pytest.mark.parametrize("how", [None, SMALLER], ids=["as is", "resized"])
def test_strict_refuses_each_warning(data: bytes, how: Reencode | None) -> None:
    """With check: strict each complaint of the decoder is damage, and so are bytes after the end."""
    with pytest.raises(ImageError):
        prepare(data, "strict", how)


@_named(odd_jpegs.DAMAGED)
@pytest.mark.parametrize("check", ["decode", "strict"])
@pytest.mark.parametrize("how", [None, SMALLER], ids=["as is", "resized"])
def test_missing_or_wrong_coded_data_is_damage(data: bytes, check: Check, how: Reencode | None) -> None:
    """Coded data that is missing or wrong is damage, whatever a lenient decoder makes of it."""
    with pytest.raises(ImageError):
        prepare(data, check, how)


@_named(odd_jpegs.WARNED)
def test_headers_alone_are_enough_for_a_warned_image(data: bytes) -> None:
    """check: header takes each warned image too."""
    assert _is_repaired(data) or bytes(prepare(data, "header").encoded) == data


@pytest.mark.parametrize(
    ("kind", "warning"),
    [
        ("Se 0", "odd scan parameters"),
        ("JFIF 2.00", "unknown JFIF revision number 2.00"),
        ("stray bytes before SOF", "1 stray byte before markers"),
        ("ICC numbers", "bad ICC marker"),
        ("10 kB after the end", "10,000 bytes after the end"),
        ("an MPO with odd scan parameters", f"odd scan parameters, {len(odd_jpegs.PROGRESSIVE):,} bytes after the end"),
        ("all at once", "2 stray bytes before markers, odd scan parameters, bad ICC marker, 77 bytes after the end"),
    ],
)
def test_a_warning_says_everything_that_is_odd(kind: str, warning: str) -> None:
    """The warning names each odd thing, with counts of bytes."""
    assert prepare(odd_jpegs.WARNED[kind], "decode").warning == warning


# one judge -------------------------------------------------------------------------------------------------------


def _verify(data: bytes) -> None:
    for finding in check_jpeg(memoryview(data), {"width": None, "height": None}, decode=True):
        raise ImageError(finding.detail)


USERS = {
    "verify": _verify,
    "decode_array": pixels.decode_array,
    "decode_array, smaller": lambda data: pixels.decode_array(data, 40),
    "decode_part": lambda data: pixels.decode_part(data, lambda height, width: (0, 0, height, width), 40),
    "decode_raster": arrays.decode_raster,
}


@pytest.mark.parametrize("user", USERS)
@_named(odd_jpegs.WARNED | odd_jpegs.CLEAN)
def test_verify_and_the_loaders_take_what_convert_takes(user: str, data: bytes) -> None:
    """One judge: verify finds no fault in a warned image, and the loaders decode it."""
    USERS[user](data)


@pytest.mark.parametrize("user", USERS)
@_named(odd_jpegs.DAMAGED)
def test_verify_and_the_loaders_refuse_what_convert_refuses(user: str, data: bytes) -> None:
    """One judge: what convert refuses as damaged is damaged to verify and to the loaders."""
    with pytest.raises(ImageError):
        USERS[user](data)


@_named(odd_jpegs.WARNED)
def test_every_decoder_reads_a_warned_image(tf: Any, data: bytes) -> None:
    """Pillow and TensorFlow decode a warned file by default, to the pixels of a copy with plain headers."""
    plain = bytes(grades.judge(data, "decode", pixels.check_decode).plain)
    assert plain != data
    read = [np.asarray(Image.open(io.BytesIO(each))) for each in (data, plain)]
    assert (read[0] == read[1]).all()
    if not _is_repaired(data):
        read = [tf.io.decode_jpeg(each).numpy() for each in (data, plain)]
        assert (read[0] == read[1]).all()
        assert (pixels.decode_array(data) == pixels.decode_array(plain)).all()


def test_a_warned_image_has_the_pixels_of_the_image_that_it_was_made_from() -> None:
    """Odd headers around the same coded data change no pixel, in full size, smaller, or in part."""
    whole = pixels.decode_array(odd_jpegs.BASELINE)
    part = pixels.decode_part(odd_jpegs.BASELINE, lambda height, width: (8, 8, 40, 60), 40)
    for kind in ("Se 0", "JFIF 2.00", "stray bytes before DQT", "ICC numbers", "1 MB after the end"):
        data = odd_jpegs.WARNED[kind]
        assert (pixels.decode_array(data) == whole).all(), kind
        assert (pixels.decode_part(data, lambda height, width: (8, 8, 40, 60), 40) == part).all(), kind


def test_the_orientation_is_read_behind_stray_bytes() -> None:
    """Stray bytes ahead of the EXIF segment hide no orientation."""
    exif = Image.Exif()
    exif[0x0112] = 6
    data = odd_jpegs.saved(exif=exif)
    assert read_orientation(odd_jpegs.before(data, 0xE1, bytes(5))) == read_orientation(data) == 6


def test_as_many_flipped_bits_are_found_as_by_the_strict_rule() -> None:
    """Of 300 flipped bits in coded data the judge finds each one that libjpeg warns of."""
    rng, found = random.Random(35), {"strict": 0, "decode": 0}
    for seed in range(6):
        data, _ = photographs.photograph_bytes(seed)
        start = odd_jpegs.scan_start(data)
        for _ in range(50):
            flipped = bytearray(data)
            flipped[rng.randrange(start, len(data) - 2)] ^= 1 << rng.randrange(8)
            for check in found:
                try:
                    prepare(bytes(flipped), check)  # type: ignore[arg-type]
                except ImageError:
                    found[check] += 1
    assert found["decode"] >= found["strict"] > 60
