"""ImagePart: a part of an image, in pixels and fractions of them.
decode_part decodes it, and little around it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from imagenet_prep.images import jpeg
from imagenet_prep.images.jpeg import check_claim
from imagenet_prep.images.pixels import Buffer, decode_rgb, decode_whole_array, read_facts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT = 6
"""A JPEG is decoded at 1/2, 3/8, ... for an exact part if this many times its new size remain:
after resizing, a pixel then differs by a level at most from decoding in full (a test checks this).
"""

LEAST = 16
"""Pixels that a decoded part keeps at least: enough to tell the scale by the width."""

ROUNDING = 1e-6
"""By how many pixels a part may end beyond its image: sums of fractions do."""


class ImagePart(NamedTuple):
    """A part of an image, in pixels of the whole image.

    With ``is_cut`` it is cut out before it is resized, as RandomResizedCrop does: pixels around it
    don't count. Without, the image is resized first, as Resize and CenterCrop do: pixels around the
    part count at its edges, and the part is decoded at reduced scale only if no pixel then differs
    by more than a level.
    """

    top: float
    left: float
    height: float
    width: float
    is_cut: bool = True


PartChooser = Callable[[int, int], tuple[float, float, float, float] | ImagePart]
"""A function from the height and width of an image to a part of it:
(top, left, height, width), or an ImagePart.
"""


class Cutout(NamedTuple):
    """Decoded pixels, (height, width, 3) in RGB, and the box of a part within them:
    left, top, right, bottom.
    """

    pixels: NDArray[np.uint8]
    box: tuple[float, float, float, float]

    @property
    def is_all(self) -> bool:
        """Whether the box has all of the pixels."""
        height, width = self.pixels.shape[:2]
        return self.box == (0, 0, width, height)

    def resized(self, size: int) -> NDArray[np.uint8]:
        """The part, ``size`` pixels wide and high (bilinear, antialiased)."""
        import numpy as np
        from PIL import Image

        image = Image.fromarray(self.pixels)
        return np.array(image.resize((size, size), Image.Resampling.BILINEAR, self.box))


def decode_part(data: Buffer, choose: PartChooser, size: int) -> Cutout:
    """The part that ``choose`` gives for the image's height and width, decoded to be resized to
    ``size`` pixels.

    A JPEG is decoded at 1/2 or less as long as both sides of the part keep ``size`` pixels,
    ``EXACT`` times as many for a part that is not cut. Most of what is below the part is not
    decoded, if the JPEG has one scan.

    Raises:
        ImageError: it can't be decoded.
        ValueError: the part is not within the image.
    """
    facts = read_facts(data)
    chosen = choose(facts.height, facts.width)
    part = chosen if isinstance(chosen, ImagePart) else ImagePart(*chosen)
    refuse_outside(part, facts.height, facts.width)
    if facts.kind == "JPEG":
        pixels = _decode_jpeg(data, part, size)
    else:
        import numpy as np

        pixels = np.array(decode_rgb(data))
    scale = round(8 * pixels.shape[1] / facts.width) / 8
    return cut_out(pixels, part, scale, size)


def refuse_outside(part: ImagePart, height: int, width: int) -> None:
    """Raise ValueError for a part that is not within the image."""
    has_rows = 0 <= part.top < part.top + part.height <= height + ROUNDING
    has_columns = 0 <= part.left < part.left + part.width <= width + ROUNDING
    if not (has_rows and has_columns):
        raise ValueError(
            f"the part with top {part.top}, left {part.left}, height {part.height} and width "
            f"{part.width} is empty or not within an image of height {height} and width {width}"
        )


def _reach(part: ImagePart, extent: float, size: int) -> float:
    """How many pixels around a part of this height or width count."""
    return 0 if part.is_cut else max(1, extent / size)  # Pillow's bilinear filter, antialiased


def cut_out(pixels: NDArray[np.uint8], part: ImagePart, scale: float, size: int) -> Cutout:
    """The part and what counts around it, of an image decoded at this scale."""
    import numpy as np

    height, width = pixels.shape[:2]
    rows, top, bottom = _span(part, part.top * scale, part.height * scale, height, size)
    columns, left, right = _span(part, part.left * scale, part.width * scale, width, size)
    counting = np.ascontiguousarray(pixels[rows, columns])
    return Cutout(counting, (left, top, right, bottom))


def _span(
    part: ImagePart, part_start: float, extent: float, limit: int, size: int
) -> tuple[slice, float, float]:
    """The rows or columns that count, and where the part starts and ends among them."""
    part_stop = min(part_start + extent, limit)
    reach = _reach(part, extent, size)
    start = max(0, math.floor(part_start - reach))
    stop = min(limit, math.ceil(part_stop + reach))
    return slice(start, stop), part_start - start, part_stop - start


_LEFT_OVER = "extraneous bytes before marker"


def _decode_jpeg(data: Buffer, part: ImagePart, size: int) -> NDArray[np.uint8]:
    """The rows of a JPEG down to the end of the part or below, at the least scale that will do."""
    header = jpeg.read_header(data)
    min_side = max(size, LEAST) * (1 if part.is_cut else EXACT)
    smaller = {"min_width": math.ceil(min_side * header.width / part.width), "min_factor": 2}
    rows = _needed_rows(part, size)
    shorter = None
    if rows < header.height and header.components != 4:
        shorter = jpeg.with_rows(data, rows)
    if shorter is not None:
        check_claim(header.width, header.height, len(data))
        min_height = math.ceil(rows * min_side / part.height)
        # if it fails, the whole image is decoded, which tells why
        with contextlib.suppress(ValueError, KeyError):
            return _decode_shorter(shorter, smaller | {"min_height": min_height})
    smaller["min_height"] = math.ceil(header.height * min_side / part.height)
    return decode_whole_array(data, **smaller)


def _needed_rows(part: ImagePart, size: int) -> int:
    """The number of rows to decode from the top of the image, a multiple of 16.

    The decoder interpolates colours from the next two rows, and decodes 16 rows at a time.
    """
    end = math.ceil(part.top + part.height + _reach(part, part.height, size))
    return math.ceil((end + 2) / 16) * 16


def _decode_shorter(shorter: bytearray, smaller: dict[str, int]) -> NDArray[np.uint8]:
    """Decode a JPEG whose header claims fewer rows than it has.

    The decoder stops at the rows that the header claims. Then it warns of the bytes that are left,
    as its first warning only if it had no other.

    Raises:
        KeyError, ValueError: it can't be decoded.
    """
    import numpy as np
    import simplejpeg

    height, width = simplejpeg.decode_jpeg_header(shorter, **smaller)[:2]
    pixels = np.empty((height, width, 3), np.uint8)
    try:
        simplejpeg.decode_jpeg(shorter, "RGB", buffer=pixels, **smaller)
    except ValueError as error:
        if _LEFT_OVER not in str(error):
            raise
    return pixels
