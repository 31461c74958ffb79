"""An image file's bytes -> the image in its record: the same bytes, unless the image has to be
changed.

One EXIF tag matters here: the orientation. EXIF 2.32, 4.6: a TIFF header and a directory of
twelve-byte entries in a JPEG's APP1 segment, or a PNG's eXIf chunk.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.images import format_of, grades, is_npy, jpeg, pixels, png
from imagenet_prep.images.grades import Check
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.model import Box

if TYPE_CHECKING:
    from PIL.Image import Image

Buffer = bytes | memoryview

REPAIR_QUALITY = 100
REPAIR_DENSITY = 300
"""TensorFlow's encoder writes this many dots per inch, whatever the image."""

UPRIGHT = 1

_ORIENTATION, _SHORT, _TIFF = 0x0112, 3, 42
_APP1 = 0xE1
_HEADER = b"Exif\0\0"

TURNED = "turned upright"
"""The note for an image that was turned, as its EXIF orientation asks."""


class Prepared(Struct, frozen=True):
    """An image ready for a record.

    Args:
        encoded: its bytes.
        width, height: its size in pixels.
        repair: the repair that was made: "cmyk", or the format that it had, such as "png"; "" for
            none.
        lost: the names of everything in an image of another format that its JPEG doesn't hold.
        orientation: the EXIF orientation that it was turned from; 1 if it was not.
        warning: what is unusual in its file, though its pixels are whole; "" for nothing.
    """

    encoded: Buffer
    width: int
    height: int
    repair: str = ""
    lost: tuple[str, ...] = ()
    orientation: int = UPRIGHT
    warning: str = ""

    @property
    def changes(self) -> str:
        """A description of every change."""
        if not self.repair and self.orientation == UPRIGHT:
            return ""
        turned = () if self.orientation == UPRIGHT else (TURNED,)
        return ", ".join(filter(None, (self.repair, *self.lost, *turned)))


def count_changes(repairs: Iterable[str]) -> Counter[str]:
    """The number of images with each change; ``repairs`` are those of ShardInfo,
    "a.png (png, alpha)".
    """
    counts: Counter[str] = Counter()
    for repair in repairs:
        changes = repair.rpartition(" (")[2].removesuffix(")")
        counts.update(changes.split(", "))
    return counts


def repaired_images(repairs: Iterable[str]) -> dict[str, str]:
    """The former kind of each repaired image, such as "png", by name;
    ``repairs`` are those of ShardInfo.
    """
    images = {}
    for repair in repairs:
        name, _, changes = repair.removesuffix(")").rpartition(" (")
        if changes != TURNED:
            images[name] = changes.partition(", ")[0]
    return images


def prepare(
    data: Buffer, check: Check, how: Reencode | None = None, *, upright: bool = False
) -> Prepared:
    """The bytes of an image for its record, from the bytes of its file.

    They are the same, except for repairs: a PNG under a .JPEG name, another format, and a
    4-component JPEG. These are decoded to RGB and encoded as baseline JPEG, quality 100, 4:2:0: the
    bytes of TensorFlow 0.12.1. They are found by their bytes, not by a list of names. With ``how``,
    every image is decoded, resized and encoded again: ``check`` then decides only whether warned
    images are taken. With ``upright``, an image that is encoded again is turned as its EXIF
    orientation asks; otherwise the orientation is lost, as in 2016.

    Raises:
        ImageError: the image is damaged, or is not an image; or it is warned, and ``check`` is
            "strict".
    """
    image_format = format_of(data)
    if image_format == "JPEG":  # nearly always
        return _prepare_jpeg(data, check, how, upright=upright)
    if is_npy(data):
        from imagenet_prep.images.arrays import png_of

        data = png_of(data)
        image_format = "PNG"
    if image_format == "PNG":
        image = pixels.decode_rgb(data)
        return _again(image, how, _turn_of(data, upright), "png", png.lost_in_jpeg(data))
    if image_format:
        image, lost, orientation = pixels.decode_other(data, image_format)
        return _again(image, how, orientation if upright else UPRIGHT, image_format.lower(), lost)
    return _prepare_jpeg(data, check, how, upright=upright)


def _prepare_jpeg(data: Buffer, check: Check, how: Reencode | None, *, upright: bool) -> Prepared:
    if how is not None:
        return _reencode(data, check, how, upright=upright)
    decode = grades.leave_coded if check == "header" else pixels.check_decode
    judged = grades.judge(data, check, decode)
    width, height, components = judged.header
    if components == 4:
        repaired = _again(pixels.decode_rgb(judged.plain), None, _turn_of(data, upright), "cmyk")
        return replace(repaired, warning=judged.warning)
    return Prepared(data, width, height, warning=judged.warning)


def _reencode(data: Buffer, check: Check, how: Reencode, *, upright: bool) -> Prepared:
    """A JPEG, decoded and encoded again."""

    def decode(data: Buffer, header: jpeg.JpegHeader) -> Image:
        return pixels.decode_for(data, header, how.target(header.width, header.height))

    judged = grades.judge(data, check, decode)
    width, height, components = judged.header
    repair = "cmyk" if components == 4 else ""
    prepared = _again(
        judged.decoded, how, _turn_of(data, upright), repair, target=how.target(width, height)
    )
    return replace(prepared, warning=judged.warning)


def _turn_of(data: Buffer, upright: bool) -> int:
    return read_orientation(data) if upright else UPRIGHT


def _again(
    image: Image,
    how: Reencode | None,
    orientation: int,
    repair: str = "",
    lost: tuple[str, ...] = (),
    target: tuple[int, int] | None = None,
) -> Prepared:
    """A decoded image, made smaller, turned, and encoded again;
    without ``how`` it is repaired, as in 2016.
    """
    if how is not None:
        image = pixels.shrink(image, target or how.target(*image.size))
    image = pixels.turn_upright(image, orientation)
    quality, density = (REPAIR_QUALITY, REPAIR_DENSITY) if how is None else (how.quality, 0)
    encoded = pixels.encode(image, quality, density)
    return Prepared(encoded, image.width, image.height, repair, lost, orientation)


# EXIF ---------------------------------------------------------------------------------------------


def read_orientation(data: Buffer) -> int:
    """The EXIF orientation of a JPEG or PNG, 1 to 8; 1 (upright) if it is missing or invalid."""
    try:
        tiff = _find_exif(data)
        return _orientation(tiff) if tiff else UPRIGHT
    except (struct.error, IndexError):  # truncated EXIF: some cameras write it
        return UPRIGHT


def turn_box(box: Box, orientation: int) -> Box:
    """A box of an image with this orientation, after the image was turned upright.

    EXIF 2.32, table 6: 2 is mirrored, 3 turned by 180 degrees, 4 both; 5 to 8 are the same with
    rows for columns.
    """
    xmin, ymin, xmax, ymax = box.xmin, box.ymin, box.xmax, box.ymax
    if orientation >= 5:
        xmin, ymin, xmax, ymax = ymin, xmin, ymax, xmax
    if orientation in (2, 3, 6, 7):
        xmin, xmax = 1 - xmax, 1 - xmin
    if orientation in (3, 4, 7, 8):
        ymin, ymax = 1 - ymax, 1 - ymin
    return Box(xmin, ymin, xmax, ymax)


def _exif_of_png(data: Buffer) -> Iterator[bytes]:
    return (
        bytes(data[start:stop]) for kind, start, stop in png.iter_chunks(data) if kind == b"eXIf"
    )


def _find_exif(data: Buffer) -> bytes:
    """The TIFF structure of an image file's EXIF, b"" if there is none."""
    match format_of(data):
        case "PNG":
            return next(_exif_of_png(data), b"")
        case "JPEG":
            return _exif_of_jpeg(data)
    return b""


def _exif_of_jpeg(data: Buffer) -> bytes:
    """The TIFF structure of a JPEG's first EXIF segment before the image data,
    b"" if there is none.
    """
    for segment in jpeg.iter_segments(data):
        start = segment.start + 4
        if segment.marker == jpeg.SOS:
            break
        if segment.marker == _APP1 and bytes(data[start : start + len(_HEADER)]) == _HEADER:
            return bytes(data[start + len(_HEADER) : segment.stop])
    return b""


def _orientation(tiff: bytes) -> int:
    """The orientation in a TIFF structure; 1 if it is missing or invalid."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return UPRIGHT
    magic, directory = struct.unpack_from(f"{order}HI", tiff, 2)
    (entries,) = struct.unpack_from(f"{order}H", tiff, directory)
    if magic != _TIFF:
        return UPRIGHT
    for entry in range(entries):
        place = directory + 2 + 12 * entry
        tag, value_type, count, value = struct.unpack_from(f"{order}HHIH", tiff, place)
        if tag == _ORIENTATION:
            is_valid = (value_type, count) == (_SHORT, 1) and 1 <= value <= 8
            return int(value) if is_valid else UPRIGHT
    return UPRIGHT
