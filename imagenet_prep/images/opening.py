"""opened: an image file's bytes -> Pillow's image, open and bounded;
Pillow's errors are ImageErrors.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from imagenet_prep.images import format_of
from imagenet_prep.images.jpeg import MAKE_SMALLER, MAX_PIXELS, ImageError, check_size

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

Buffer = bytes | memoryview

_PILLOW = re.compile(r"PIL\.")
_NO_WARNINGS = ("ignore", None, Warning, _PILLOW, 0)
"""The filter that silences Pillow's own modules, which warn of odd tags alone; missing data fails
in the decoder.

It stays: taking filters away again, as ``warnings.catch_warnings`` does, is not safe with several
threads.
"""


@contextlib.contextmanager
def opened(data: Buffer, *formats: str) -> Iterator[ImageFile]:
    """An image file of one of these formats, opened by Pillow; errors of Pillow in the block are
    covered too.

    Raises:
        ImageError: it can't be decoded; any failure of Pillow's parsers is the image's fault.
    """
    from PIL import Image, UnidentifiedImageError

    if _NO_WARNINGS not in warnings.filters:
        warnings.filterwarnings("ignore", category=Warning, module=_PILLOW.pattern)
    try:
        if format_of(data) == "PNG":
            with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
                image.verify()  # checks each chunk's CRC and the end chunk: decoding does neither
        with Image.open(io.BytesIO(data), formats=formats) as image:
            if image.width * image.height > MAX_PIXELS:
                check_size(_noun(data), image.width, image.height)
            _refuse_signed(image)
            yield image
    except (ImageError, MemoryError):
        raise
    except UnidentifiedImageError:  # its text names an object in memory
        raise _header_fault(_noun(data)) from None
    except Image.DecompressionBombError as error:
        pixels, limit = re.findall(r"\d+", str(error))
        raise ImageError(
            f"the {_noun(data)} claims {int(pixels):,} pixels, over Pillow's limit of "
            f"{int(limit):,}",
            MAKE_SMALLER,
        ) from None
    except Exception as error:  # noqa: BLE001 - a parser of untrusted files
        kind = _noun(data)
        raise ImageError(
            f"the {kind} does not decode cleanly: {_reason(error)}", _remedy(kind)
        ) from None


def _refuse_signed(image: ImageFile) -> None:
    """Raise ImageError for a TIFF of signed integers.

    Pillow reads those of 8 bits as unsigned ones: -1 becomes 255.
    """
    if image.format != "TIFF":
        return
    from PIL import TiffImagePlugin as Tiff

    assert isinstance(image, Tiff.TiffImageFile)
    if _SIGNED in image.tag_v2.get(Tiff.SAMPLEFORMAT, ()):
        bits = max(image.tag_v2.get(Tiff.BITSPERSAMPLE, (1,)))
        raise ImageError(
            f"its samples are signed integers of {bits} bits: expected unsigned ones",
            "convert them to unsigned integers",
        )


_SIGNED = 2
"""Signed integers, as TIFF 6.0 numbers the formats of samples."""

_PLAIN = ("JPEG", "PNG")
"""The formats of which Pillow can decode all kinds that pass the checks of their headers."""

_OPTIONAL = {"AVIF": "avif", "WEBP": "webp"}
"""The formats that Pillow may be built without, and what it calls their decoders."""


def _header_fault(kind: str) -> ImageError:
    """The error for a file that starts as one of this format does, and that Pillow can't open."""
    from PIL import features

    if kind in _OPTIONAL and not features.check(_OPTIONAL[kind]):
        return ImageError(
            f"the installed Pillow was built without {kind}",
            "install the latest Pillow from PyPI, or convert the image to JPEG or PNG",
        )
    may_be = "it may be damaged or cut off"
    if kind not in _PLAIN:
        may_be = "it may be damaged, cut off or of an unusual kind"
    return ImageError(f"its {kind} header can't be read: {may_be}", _remedy(kind))


def _remedy(kind: str) -> str:
    """The advice for a file of this format that Pillow can't decode; "" if it must be damaged.

    Pillow refuses a sound PNG with a very long text or colour profile.
    """
    return "" if kind == "JPEG" else "get a sound copy of it, or save it again as PNG"


def _noun(data: Buffer) -> str:
    """The format of an image by its first bytes, for messages."""
    return format_of(data) or "image"


def _reason(error: Exception) -> str:
    """The text of an error; with its type if it has no words, as that of a KeyError."""
    text = str(error)
    return text if " " in text else f"{type(error).__name__} {text}".rstrip()
