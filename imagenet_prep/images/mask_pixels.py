"""Masks: outlines (polygons, runs of COCO, segments of a panoptic PNG) -> pixels of 0 and 1, and
PNGs of them.

Polygons become the pixels that pycocotools gives, by pycocotools itself: the extra ``masks``. Runs
and segments are plain NumPy. Sources of the formats: https://cocodataset.org/#format-data, and
pycocotools' common/maskApi.c for the text of runs.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import math
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from imagenet_prep.errors import missing_library
from imagenet_prep.images import format_of, png
from imagenet_prep.images.jpeg import ImageError, check_claim
from imagenet_prep.images.opening import opened
from imagenet_prep.images.pixels import decode_rgb, turn_upright
from imagenet_prep.text import either, number_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

    Pixels = NDArray[np.uint8]
    """1 within the object, 0 elsewhere; of the shape (height, width)."""

Buffer = bytes | memoryview
Size = tuple[int, int]
"""Width and height in pixels."""

RELATIVE = (1, 1)
"""The size of every image whose outlines have shares of its sides for pixels."""

LOSSLESS = ("PNG", "GIF", "BMP", "TIFF")
"""The formats that keep the values of a mask; a mask of another format than PNG becomes a PNG."""

_FEWEST = 6
"""The numbers of the smallest polygon: three points."""


@functools.cache
def has_pycocotools() -> bool:
    """Whether the library that fills polygons is installed."""
    return importlib.util.find_spec("pycocotools") is not None


def check_pycocotools() -> None:
    """Raise UsageError if the library that fills polygons is not installed."""
    if not has_pycocotools():
        raise missing_library("pycocotools", "makes masks of polygons", "masks")


# outlines -> pixels -------------------------------------------------------------------------------


def check_polygon(polygon: Sequence[float], size: Size) -> None:
    """Raise ImageError for a polygon that can't be filled: x and y in turn, in pixels of an image
    of this size.

    Points may lead out of the image by its own width and height: the part inside is filled.
    """
    if len(polygon) < _FEWEST or len(polygon) % 2:
        count = number_of(len(polygon), "number")
        raise ImageError(f"a polygon has {count}: expected x and y of each of 3 or more points")
    for place, coordinate in enumerate(polygon):
        side = size[place % 2]
        if not (math.isfinite(coordinate) and -side <= coordinate <= 2 * side):
            axis = "xy"[place % 2]
            problem = f"a polygon has the {axis} {coordinate}: expected {-side} to {2 * side}"
            if size != RELATIVE:
                problem += f", for an image of {size[0]} x {size[1]} pixels"
            raise ImageError(problem)


def fill_polygons(polygons: Sequence[Sequence[float]], size: Size) -> Pixels:
    """The pixels within any of the polygons of one object, as pycocotools' ``annToMask`` has them.

    Raises:
        ImageError: a polygon can't be filled.
        UsageError: pycocotools is not installed.
    """
    check_pycocotools()
    from pycocotools import mask

    for polygon in polygons:
        check_polygon(polygon, size)
    width, height = size
    points = [list(map(float, polygon)) for polygon in polygons]
    pixels: Pixels = mask.decode(mask.merge(mask.frPyObjects(points, height, width)))
    return pixels


def read_runs(text: str) -> list[int]:
    """The lengths of runs in COCO's text of them: 5 bits a character, low ones first; each a change
    from two before.

    Raises:
        ImageError: the text ends within a number, or has a character that is none of them.
    """
    runs: list[int] = []
    number, shift = 0, 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64:
            raise _unreadable_runs()
        if shift > 60:
            raise _unreadable_runs()
        number |= (bits & 0x1F) << shift
        shift += 5
        if bits & 0x20:
            continue
        if bits & 0x10:
            number -= 1 << shift
        runs.append(number + runs[-2] if len(runs) > 2 else number)
        number, shift = 0, 0
    if shift:
        raise _unreadable_runs()
    return runs


def _unreadable_runs() -> ImageError:
    """The error for a text that COCO doesn't write for runs."""
    return ImageError("its run lengths (`counts`) can't be read: they may be cut short or damaged")


def check_runs(runs: Sequence[int], size: Size) -> None:
    """Raise ImageError for runs that don't fill an image of this size."""
    width, height = size
    shortest = min(runs, default=0)
    if shortest < 0:
        raise ImageError(f"a run has {shortest:,} pixels: expected 0 or more")
    if width * height >= 1 << 63:
        raise ImageError(f"an image of {width:,} x {height:,} pixels is too large for a mask")
    if sum(runs) != width * height:
        pixels = number_of(sum(runs), "pixel")
        expected = f"{width * height:,} ({width} x {height})"
        raise ImageError(f"its run lengths sum to {pixels}: expected {expected}")


def box_of_runs(runs: Sequence[int], size: Size) -> tuple[float, float, float, float] | None:
    """The box around the pixels of runs: xmin, ymin, xmax, ymax; None without any. No pixel is
    filled for it.

    Raises:
        ImageError: they don't fill the size.
    """
    import numpy as np

    check_runs(runs, size)
    height = size[1]
    ends = np.cumsum(np.asarray(runs, np.int64))
    starts, stops = ends[:-1:2], ends[1::2]  # of the runs inside
    is_filled = starts < stops
    if not is_filled.any():
        return None
    left, top = np.divmod(starts[is_filled], height)
    right, bottom = np.divmod(stops[is_filled] - 1, height)
    xmin, xmax = float(left.min()), float(right.max() + 1)
    # from one column to another, a run has the bottom of the first, and the top of the last
    if (left < right).any():
        return xmin, 0.0, xmax, float(height)
    return xmin, float(top.min()), xmax, float(bottom.max() + 1)


def fill_runs(runs: Sequence[int], size: Size) -> Pixels:
    """The pixels of runs: column by column, 0 first, then 1 and 0 in turn.

    Raises:
        ImageError: they don't fill the size.
    """
    import numpy as np

    width, height = size
    check_runs(runs, size)
    run_values = np.zeros(len(runs), np.uint8)
    run_values[1::2] = 1
    columns: Pixels = np.repeat(run_values, np.asarray(runs, np.int64)).reshape(width, height)
    return np.ascontiguousarray(columns.T)


def segment_numbers(data: Buffer) -> NDArray[np.int32]:
    """The number of the segment of each pixel of a panoptic PNG: red + 256 green + 65,536 blue.

    Raises:
        ImageError: it is no PNG of RGB, or damaged.
    """
    import numpy as np

    header = png.read_header(data)
    check_claim(header.width, header.height, len(data), header.depth)
    if header.colour_type != 2 or header.depth != 8:
        raise ImageError(
            "its PNG is not RGB of 8 bits: expected a panoptic PNG of COCO, with the numbers of "
            "segments as colours"
        )
    with opened(data, "PNG") as image:
        colours = np.asarray(image.convert("RGB"), np.int32)
    numbers: NDArray[np.int32] = colours @ np.array([1, 1 << 8, 1 << 16], np.int32)
    return numbers


def decode_mask(data: Buffer) -> Pixels:
    """The pixels of a mask of one object: 1 wherever the file is not 0, which is black.

    Raises:
        ImageError: it can't be decoded, has several frames, or its format loses values.
    """
    import numpy as np

    with _opened(data) as image:
        colours = image.convert("RGB") if image.mode in ("P", "RGBA", "LA") else image
        samples = np.asarray(colours)
    is_inside = samples.reshape(*samples.shape[:2], -1).any(axis=2)
    return np.asarray(is_inside, np.uint8)


def decode_values(data: Buffer) -> NDArray[Any]:
    """The values of a mask as they are stored: those of a palette are its numbers, not its colours.

    Of the shape (height, width), or (height, width, channels) if the mask is no PNG of one channel.

    Raises:
        ImageError: it can't be decoded, has several frames, or its format loses values.
    """
    import numpy as np

    with _opened(data) as image:
        return np.array(image)


def box_of_pixels(pixels: Pixels) -> tuple[float, float, float, float] | None:
    """The box around the pixels of an object, as pycocotools' ``toBbox``: xmin, ymin, xmax, ymax;
    None without any.
    """
    import numpy as np

    rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
    if not len(rows):
        return None
    return float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)


@contextlib.contextmanager
def _opened(data: Buffer) -> Iterator[Image.Image]:
    """A mask of a format that keeps its values, opened;
    raises ImageError for another one, or for several frames.
    """
    kind = format_of(data)
    if kind not in LOSSLESS:
        raise _no_mask(data, kind)
    with opened(data, kind) as image:
        check_claim(image.width, image.height, len(data))
        if getattr(image, "n_frames", 1) > 1:
            raise ImageError(
                "it has several frames: expected one", "save the frame of the mask as its own file"
            )
        yield image


def _no_mask(data: Buffer, kind: str) -> ImageError:
    """The error for a file of this format, which is no mask; "" is that of one that is no image."""
    expected = f"expected {either(LOSSLESS)}"
    if not data:
        return ImageError("it is empty")
    if not kind:
        return ImageError(f"it is no image of a known format: {expected}")
    return ImageError(
        f"its format is {kind}, which may change the values of a mask: {expected}",
        f"get the mask as it was before {kind}: a PNG made of it may have wrong values, too",
    )


# pixels -> PNG ------------------------------------------------------------------------------------


def encode_mask(pixels: Pixels) -> bytes:
    """A gray PNG of 8 bits with the values themselves, 0 and 1,
    as TensorFlow's Object Detection API reads masks.
    """
    from PIL import Image

    return _encoded(Image.fromarray(pixels))


def fit_pixels(pixels: Pixels, size: Size, orientation: int) -> Pixels:
    """The pixels at the size of their image in its record, turned as its orientation asked;
    nothing is mixed.
    """
    import numpy as np
    from PIL import Image

    return np.asarray(_fit(Image.fromarray(pixels), size, orientation))


def png_of(data: Buffer) -> Buffer:
    """A mask as PNG: its own bytes, or the values and colours of a lossless image of another
    format.

    Raises:
        ImageError: it can't be decoded, has several frames, or is of a format that loses values.
    """
    if format_of(data) == "PNG":
        return data
    with _opened(data) as image:
        return _encoded(image)


def threshold_mask(data: Buffer, threshold: int) -> bytes:
    """A PNG of 255 where the brightness of a mask is ``threshold`` or more, 0 elsewhere; for masks
    in JPEG, too.

    Raises:
        ImageError: it can't be decoded, or has several frames.
    """
    import numpy as np

    if format_of(data) == "JPEG":
        brightness = np.asarray(decode_rgb(data).convert("L"))
    else:
        with _opened(data) as image:
            brightness = np.asarray(image.convert("L"))
    return encode_mask(np.where(brightness >= threshold, np.uint8(255), np.uint8(0)))


def fit_png(data: Buffer, size: Size, orientation: int) -> bytes:
    """A PNG of the same values and palette at another size and turn:
    nearest neighbours, nothing mixed.
    """
    with opened(data, "PNG") as image:
        return _encoded(_fit(image, size, orientation))


def _fit(image: Image.Image, size: Size, orientation: int) -> Image.Image:
    """An image at the ``size`` that it has once it is turned."""
    from PIL import Image

    size_before_turn = size[::-1] if orientation > 4 else size
    if image.size != size_before_turn:
        image = image.resize(size_before_turn, Image.Resampling.NEAREST)
    return turn_upright(image, orientation)


def _encoded(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    # for masks, smaller than the default, in half the time
    image.save(buffer, "PNG", compress_type=zlib.Z_RLE)
    return buffer.getvalue()
