"""Repaired images are TensorFlow 0.12.1's bytes: odd images and digests of what it made of them.

``odd_images.tar`` and ``odd_images.csv`` were written by scripts/reference. An image from Pillow's
or another encoder could change with its version, so the digests of both are held.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from imagenet_prep.images import pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.images.prepare import prepare

HERE = Path(__file__).parent
ROWS = [tuple(row) for row in csv.reader((HERE / "odd_images.csv").read_text().splitlines())][1:]
"""Name, SHA-256 of the file, SHA-256 of the image in its record of 2016."""

DENSITY = slice(13, 18)
"""Where JFIF has the unit (1 is dots per inch) and the two densities."""


@functools.cache
def odd_images() -> dict[str, bytes]:
    """Every odd image by name."""
    with tarfile.open(HERE / "odd_images.tar") as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def sha256(data: bytes | memoryview) -> str:
    """The digest in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("name", "digest", "digest_2016"), ROWS, ids=[row[0] for row in ROWS])
def test_an_odd_image_becomes_the_bytes_of_2016(name: str, digest: str, digest_2016: str) -> None:
    """Decoder, conversion to RGB and encoder give TensorFlow 0.12.1's bytes;
    JPEGs of 1 or 3 components stay.
    """
    data = odd_images()[name]
    assert sha256(data) == digest
    assert sha256(prepare(data, "decode").encoded) == digest_2016


def test_the_odd_images_are_of_every_kind() -> None:
    """At least 40 are repaired, all with other bytes; the others stay as they are."""
    names = [row[0] for row in ROWS]
    assert names == [*odd_images()]
    repaired = [name for name, digest, digest_2016 in ROWS if digest != digest_2016]
    assert repaired == [name for name in names if not name.startswith("kept ")]
    assert len(repaired) >= 40


def _saved(form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((40, 30)).convert("RGB").save(buffer, form, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["PNG", "GIF", "WEBP", "BMP", "TIFF"])
def test_every_repaired_image_has_the_density_of_tensorflow(form: str) -> None:
    """300 x 300 dots per inch, whichever format it had and whatever density that had;
    a resized one has none.
    """
    data = _saved(form, dpi=(72, 72))
    repaired = bytes(prepare(data, "decode").encoded)
    assert repaired[DENSITY] == b"\1\1\x2c\1\x2c"
    for how in (Reencode(resize=20), Reencode(quality=100)):
        assert bytes(prepare(data, "decode", how).encoded)[DENSITY] == b"\0\0\1\0\1"


@pytest.mark.parametrize("name", ["cmyk adobe 440.jpg", "ycck 440.jpg"])
def test_rows_of_half_height_are_interpolated_as_in_2016(name: str) -> None:
    """In 4:4:0 with four components, pixels differ by at most 2 levels
    from those of today's decoder.
    """
    data = odd_images()[name]
    with Image.open(io.BytesIO(data)) as image:
        today = np.asarray(image.convert("RGB"), int)
    assert 0 < np.abs(np.asarray(pixels.decode_rgb(data), int) - today).max() <= 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [row[0] for row in ROWS if row[0].endswith("trns.png")])
def test_no_warning_is_printed_for_a_transparent_palette(name: str) -> None:
    """Pillow would advise RGBA for it."""
    prepare(odd_images()[name], "decode")


@pytest.mark.parametrize("name", ["cmyk adobe 440.jpg", "cmyk adobe 420.jpg", "ycck 440.jpg"])
def test_a_cut_image_of_four_components_is_refused(name: str) -> None:
    """Whichever decoder it needs: half an image is an ImageError,
    also where nothing was checked before.
    """
    data = odd_images()[name]
    with pytest.raises(ImageError):
        pixels.decode_rgb(data[: len(data) // 2])
