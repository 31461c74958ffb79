"""inks_as_rgb: a JPEG of four components, CMYK or YCCK -> RGB, with the arithmetic of TensorFlow
0.12.1.

Its libjpeg-turbo differs from today's in one point: how it interpolates components of half height.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

    Plane = NDArray[np.int32]

Buffer = bytes | memoryview

_ADOBE = re.compile(rb"\xff\xee(?=..Adobe)", re.DOTALL)
_OTHER_MARKER = b"\xff\xef"

_BAND = 64  # rows at a time: their products take twice the memory of the image

# YCbCr to RGB by JFIF, in units of 1 / 65,536 as in libjpeg.
_ONE_HALF = 1 << 15
_CR_TO_RED, _CB_TO_BLUE = 91_881, 116_130
_CR_TO_GREEN, _CB_TO_GREEN = 46_802, 22_554


def inks_as_rgb(image: Image.Image, data: Buffer) -> Image.Image:
    """The JPEG ``data`` in RGB; ``image`` is Pillow's of it, opened.

    Adobe's programs store inks inverted: 255 is no ink. Other programs don't.
    """
    import numpy as np
    from PIL import Image

    image.load()  # it raises an error for a file that is cut
    inks = _stored_inks(image, data)
    # libjpeg too ignores an Adobe marker that is too short to have one
    is_adobe = "adobe_transform" in image.info
    colours = np.empty((*inks.shape[:2], 3), np.uint8)
    for top in range(0, len(inks), _BAND):
        band = inks[top : top + _BAND].astype(np.uint16)
        band = band if is_adobe else 255 - band
        colours[top : top + _BAND] = band[:, :, :3] * band[:, :, 3:] // 255
    return Image.fromarray(colours)


def _stored_inks(image: Image.Image, data: Buffer) -> NDArray[np.uint8]:
    """The inks as the file stores them: uint8 of the shape (height, width, 4)."""
    import numpy as np

    if not _has_half_height(data):
        return 255 - np.asarray(image)  # Pillow inverts every file
    return _interpolate_rows(data, is_ycck=image.info.get("adobe_transform", 0) != 0)


def _has_half_height(data: Buffer) -> bool:
    """Whether the second and third component, and no other, have half as many rows: 4:4:0."""
    import simplejpeg

    try:
        return bool(simplejpeg.decode_jpeg_header(data, strict=False)[3] == "440")
    except (ValueError, KeyError):  # sampling factors that it can't tell
        return False


def _interpolate_rows(data: Buffer, *, is_ycck: bool) -> NDArray[np.uint8]:
    """The inks of a JPEG in 4:4:0, interpolated as in 2016."""
    import numpy as np
    import simplejpeg

    without_adobe = _ADOBE.sub(_OTHER_MARKER, data)  # then nothing is converted
    repeated = simplejpeg.decode_jpeg(without_adobe, "CMYK", fastupsample=True, strict=False)
    full: Plane = repeated.astype(np.int32)
    for component in (1, 2):
        full[:, :, component] = _doubled(full[::2, :, component], len(full))
    if is_ycck:
        full[:, :, :3] = _colour_inks(*np.moveaxis(full[:, :, :3], 2, 0))
    inks: NDArray[np.uint8] = full.astype(np.uint8)
    return inks


def _doubled(rows: Plane, height: int) -> Plane:
    """Twice as many rows, or one less: each is three quarters of its own and one quarter of the
    nearest other row.

    Today's libjpeg-turbo adds 2 instead of 1 in every second row.
    """
    import numpy as np

    above, below = np.vstack((rows[:1], rows[:-1])), np.vstack((rows[1:], rows[-1:]))
    doubled = np.repeat(rows, 2, axis=0)
    doubled[::2] = (3 * rows + above + 1) >> 2
    doubled[1::2] = (3 * rows + below + 1) >> 2
    return doubled[:height]


def _colour_inks(luma: Plane, blue: Plane, red: Plane) -> Plane:
    """YCbCr planes as cyan, magenta, yellow: of the shape (height, width, 3)."""
    import numpy as np

    blue, red = blue - 128, red - 128
    green = (_ONE_HALF - _CB_TO_GREEN * blue - _CR_TO_GREEN * red) >> 16
    colours = (
        luma + ((_CR_TO_RED * red + _ONE_HALF) >> 16),
        luma + green,
        luma + ((_CB_TO_BLUE * blue + _ONE_HALF) >> 16),
    )
    inks: Plane = 255 - np.clip(np.stack(colours, axis=2), 0, 255)
    return inks
