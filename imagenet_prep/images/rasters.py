"""Image files -> their samples as they are: 8 or 16 bits, height x width x channels. PNG, TIFF and JPEG.

Pillow reads the files, but brings colours of 16 bits down to 8. For those it is asked twice: once for the high bytes,
once for the low ones, by telling it the other byte order.
"""

from __future__ import annotations

import contextlib
import functools
import io
import warnings
import zlib
from typing import TYPE_CHECKING, Any

from imagenet_prep.images import jpeg, pixels, png
from imagenet_prep.images.jpeg import ImageError, check_claim

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

    Array = np.ndarray[Any, np.dtype[Any]]

Buffer = bytes | memoryview

_OTHER_ORDER = {";16B": ";16L", ";16L": ";16B", ";16N": ";16B"}
_TIFF_STARTS = (b"II*\0", b"MM\0*")


def decode(data: Buffer) -> Array:
    """The samples of an image file: uint8 or uint16, shape (height, width, channels); grey has one channel.

    Palettes are resolved, samples of 1, 2 or 4 bits spread over 0 to 255; alpha stays, no rotation is applied.

    Raises:
        ImageError: it is damaged, not one of the three formats, of several pages, or of more than 16 bits.
    """
    if png.is_png(data):
        header = png.read_header(data)
        png.check_ends(data)
        check_claim(header.width, header.height, len(data), header.depth)
        if (header.depth, header.colour_type) == (16, 4):
            return _grey_alpha_16(data)
        return _decode(data, "PNG", wide=header.depth == 16 and header.colour_type in (2, 6))
    if bytes(data[:4]) in _TIFF_STARTS:
        return _decode(data, "TIFF", wide=None)
    return _decode_jpeg(data)


def _decode_jpeg(data: Buffer) -> Array:
    import numpy as np

    header = jpeg.read_header(data)
    jpeg.check_ends(data)
    if header.components == 4:
        return np.asarray(pixels.decode_rgb(data))
    image = pixels.decode_for(data, header.components, (header.width, header.height))
    return _with_channels(np.asarray(image))


def _decode(data: Buffer, kind: str, *, wide: bool | None) -> Array:
    """With every warning taken away: what Pillow warns of is an odd tag, and what is missing fails in the decoder."""
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pixels.opened(data, kind) as image:
            if getattr(image, "n_frames", 1) != 1 and kind == "TIFF":
                raise ImageError("it has several pages: save each as a file of its own")
            if kind == "TIFF":
                _check_tiff(image, len(data))
            if wide is None:
                wide = _is_wide(image)
            low = _low_bytes(data, kind) if wide else None
            image.load()
            samples = _samples(image)
    return samples if low is None else samples.astype(np.uint16) << 8 | low


def _check_tiff(image: Image.Image, length: int) -> None:
    """Raise ImageError for a TIFF whose image, or a tile of it, its bytes do not fill; let libtiff be quiet."""
    from PIL.TiffImagePlugin import BITSPERSAMPLE, TILELENGTH, TILEWIDTH, TiffImageFile

    assert isinstance(image, TiffImageFile)
    bits = max(image.tag_v2.get(BITSPERSAMPLE, (1,)))
    check_claim(image.width, image.height, length, bits)
    check_claim(image.tag_v2.get(TILEWIDTH, 0), image.tag_v2.get(TILELENGTH, 0), length, bits)
    _hush_libtiff()


@functools.cache
def _hush_libtiff() -> None:
    """libtiff writes to standard error what it finds, and Pillow lets it: what matters comes back as an error, too.

    Its handler is taken away by its own function, which is found among what Pillow's module is linked with.
    """
    import ctypes

    from PIL import _imaging

    with contextlib.suppress(OSError, AttributeError):  # a libtiff that is a part of Pillow hides its functions
        ctypes.CDLL(_imaging.__file__).TIFFSetErrorHandler(None)


def _is_wide(image: Image.Image) -> bool:
    """Whether a TIFF has samples of 16 bits that Pillow brings down to 8; ImageError if nothing helps against it."""
    from PIL.TiffImagePlugin import (
        BITSPERSAMPLE,
        PHOTOMETRIC_INTERPRETATION,
        PLANAR_CONFIGURATION,
        TiffImageFile,
    )

    assert isinstance(image, TiffImageFile)
    if max(image.tag_v2.get(BITSPERSAMPLE, (1,))) != 16:
        return False
    if image.tag_v2.get(PHOTOMETRIC_INTERPRETATION) == 0:
        raise ImageError("its samples of 16 bits have 0 for white: save it with 0 for black")
    if image.mode in ("I;16", "I;16B"):
        return False
    if image.tag_v2.get(PLANAR_CONFIGURATION, 1) != 1:
        raise ImageError("its channels of 16 bits lie in planes of their own: save it with interleaved ones")
    return True


def _low_bytes(data: Buffer, kind: str) -> Array:
    """The low byte of every sample of 16 bits."""
    import numpy as np
    from PIL import Image, ImageFile

    with Image.open(io.BytesIO(data), formats=(kind,)) as image:
        assert isinstance(image, ImageFile.ImageFile)
        image.tile = [tile._replace(args=_swapped(tile.args)) for tile in image.tile]
        image.load()
        return np.asarray(image)


def _swapped(args: Any) -> Any:
    mode = args if isinstance(args, str) else args[0]
    for order, other in _OTHER_ORDER.items():
        if mode.endswith(order):
            swapped = mode.removesuffix(order) + other
            return swapped if isinstance(args, str) else (swapped, *args[1:])
    raise ImageError(f"samples stored as {mode!r} can't be read with all their bits")


def _samples(image: Image.Image) -> Array:
    import numpy as np

    match image.mode:
        case "1":
            image = image.convert("L")
        case "P":
            image = image.convert("RGBA" if "transparency" in image.info else "RGB")
        case "L" | "LA" | "RGB" | "RGBA":
            pass
        case "I;16" | "I;16B":
            return _with_channels(np.asarray(image).astype(np.uint16))
        case other:
            raise ImageError(f"its samples are of mode {other}: expected grey or RGB of 8 or 16 bits")
    return _with_channels(np.asarray(image))


def _with_channels(samples: Array) -> Array:
    return samples[:, :, None] if samples.ndim == 2 else samples


def _grey_alpha_16(data: Buffer) -> Array:
    """Grey with alpha of 16 bits, which Pillow has no mode for: byte for byte it is RGBA of 8 bits."""
    chunk = b"IHDR" + bytes(data[16:24]) + b"\x08\x06" + bytes(data[26:29])
    renamed = bytes(data[:12]) + chunk + zlib.crc32(chunk).to_bytes(4, "big") + bytes(data[33:])
    samples = _decode(renamed, "PNG", wide=False)
    return samples.reshape(-1).view(">u2").astype("u2").reshape(*samples.shape[:2], 2)
