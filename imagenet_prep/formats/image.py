"""An image file's bytes -> what goes into its record: those very bytes, unless something has to be done to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from imagenet_prep.formats import jpeg, pixels
from imagenet_prep.formats.pixels import Reencode

Buffer = bytes | memoryview
Check = Literal["header", "decode"]

REPAIR_QUALITY = 100


@dataclass(frozen=True, slots=True)
class Prepared:
    """An image ready for a record: its bytes, its size in pixels, and which repair was made ("" for none)."""

    encoded: Buffer
    width: int
    height: int
    repair: str = ""


def prepare(data: Buffer, check: Check, how: Reencode | None = None) -> Prepared:
    """What goes into the record for an image file's bytes.

    Those very bytes, but for two repairs: a PNG under a .JPEG name and a 4-component JPEG are decoded to RGB and
    encoded as baseline JPEG, quality 100, 4:2:0, as the scripts of 2016 did. They are found by their bytes, not by a
    list of names. With ``how``, every image is decoded, resized and encoded again; then ``check`` makes no difference.

    Raises:
        ImageError: the image is damaged, or isn't one.
    """
    if data[:1] == b"\x89" and bytes(data[:8]) == jpeg.PNG_SIGNATURE:
        return _repair(data, "png", how)
    header = jpeg.read_header(data)
    jpeg.check_ends(data)
    if header.components == 4:
        if check == "decode" or how is not None:
            pixels.check_decode(data)
        return _repair(data, "cmyk", how)
    if how is not None:
        encoded, size = pixels.reencode(data, (header.width, header.height), header.components, how)
        return Prepared(encoded, *size)
    if check == "decode":
        pixels.check_decode(data)
    return Prepared(data, header.width, header.height)


def _repair(data: Buffer, repair: str, how: Reencode | None) -> Prepared:
    image = pixels.decode_rgb(data)
    if how is not None:
        image = pixels.shrink(image, how.target(*image.size))
    encoded = pixels.encode(image, how.quality if how else REPAIR_QUALITY)
    return Prepared(encoded, image.width, image.height, repair)
