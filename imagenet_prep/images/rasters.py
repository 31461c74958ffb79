"""Image files of any format -> samples at full bit depth, and what a check says about the file."""

from __future__ import annotations

import numpy as np

from imagenet_prep.images import format_of, grades, lossless, pixels
from imagenet_prep.images.arrays import Array
from imagenet_prep.images.grades import Check
from imagenet_prep.images.jpeg import ImageError

Buffer = bytes | memoryview


def decode_raster(data: Buffer) -> Array:
    """The samples of an image file: uint8 or uint16, shape (height, width, channels); grey has one
    channel.

    Palettes are resolved, and samples of 1, 2 or 4 bits are scaled to 0 to 255. Alpha is kept; no
    rotation is applied.

    Raises:
        ImageError: it is damaged, of another format, of several pages, or of more than 16 bits.
    """
    return judge_raster(data, "decode")[0]


def judge_raster(data: Buffer, check: Check) -> tuple[Array, str]:
    """The samples of an image file, and its warning;
    raises as ``decode_raster``, and if ``check`` refuses it.
    """
    if lossless.is_lossless(data):
        return lossless.decode_lossless(data), ""
    image_format = format_of(data)
    if image_format not in ("", "JPEG"):
        raise ImageError(
            f"its format is {image_format}, but `content: pixels` in the recipe requires JPEG, "
            "PNG or TIFF",
            "convert it to PNG or TIFF",
        )
    judged = grades.judge(data, check, pixels.decode_whole)
    return lossless.with_channels(np.asarray(judged.decoded)), judged.warning
