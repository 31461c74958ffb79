"""An image file's bytes -> what goes into its record: those very bytes, unless something has to be done to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from imagenet_prep.images import exif, jpeg, pixels, png
from imagenet_prep.images.pixels import Reencode

if TYPE_CHECKING:
    from PIL.Image import Image

Buffer = bytes | memoryview
Check = Literal["header", "decode"]

REPAIR_QUALITY = 100


TURNED = "turned upright"
"""What is said of an image that was turned, as its EXIF orientation asks."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An image ready for a record.

    Args:
        encoded: its bytes.
        width, height: its size in pixels.
        repair: which repair was made, "png" or "cmyk"; "" for none.
        lost: what of a PNG its JPEG does not hold, in words.
        orientation: the EXIF orientation that it was turned from; 1 if it was not.
    """

    encoded: Buffer
    width: int
    height: int
    repair: str = ""
    lost: tuple[str, ...] = ()
    orientation: int = exif.UPRIGHT

    @property
    def changes(self) -> str:
        """All that was done to it, in words."""
        turned = () if self.orientation == exif.UPRIGHT else (TURNED,)
        return ", ".join(filter(None, (self.repair, *self.lost, *turned)))


def count_changes(repairs: Iterable[str]) -> Counter[str]:
    """How many images each thing was done to; ``repairs`` are those of ShardInfo, "a.png (png, alpha)"."""
    return Counter(change for each in repairs for change in each.rpartition(" (")[2].removesuffix(")").split(", "))


def prepare(data: Buffer, check: Check, how: Reencode | None = None, *, upright: bool = False) -> Prepared:
    """What goes into the record for an image file's bytes.

    Those very bytes, but for two repairs: a PNG under a .JPEG name and a 4-component JPEG are decoded to RGB and
    encoded as baseline JPEG, quality 100, 4:2:0, as the scripts of 2016 did. They are found by their bytes, not by a
    list of names. With ``how``, every image is decoded, resized and encoded again; then ``check`` makes no difference.
    With ``upright``, what is encoded again is turned as its EXIF orientation asks; else it is lost, as in 2016.

    Raises:
        ImageError: the image is damaged, or isn't one.
    """
    if png.is_png(data):
        return _encoded(data, pixels.decode_rgb(data), how, upright, "png")
    header = jpeg.read_header(data)
    jpeg.check_ends(data)
    if header.components == 4:
        if check == "decode" or how is not None:
            pixels.check_decode(data)
        return _encoded(data, pixels.decode_rgb(data), how, upright, "cmyk")
    if how is not None:
        target = how.target(header.width, header.height)
        return _encoded(data, pixels.decode_for(data, header.components, target), how, upright, target=target)
    if check == "decode":
        pixels.check_decode(data)
    return Prepared(data, header.width, header.height)


def _encoded(
    data: Buffer,
    image: Image,
    how: Reencode | None,
    upright: bool,
    repair: str = "",
    target: tuple[int, int] | None = None,
) -> Prepared:
    """An image that was decoded: made smaller, turned, and encoded again."""
    if how is not None:
        image = pixels.shrink(image, target or how.target(*image.size))
    orientation = exif.read_orientation(data) if upright else exif.UPRIGHT
    image = pixels.turn_upright(image, orientation)
    encoded = pixels.encode(image, how.quality if how else REPAIR_QUALITY)
    lost = png.lost_in_jpeg(data) if repair == "png" else ()
    return Prepared(encoded, image.width, image.height, repair, lost, orientation)
