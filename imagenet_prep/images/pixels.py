"""Pixels: decode to RGB, repair, resize and encode again: everything beyond a JPEG's markers.

simplejpeg (libjpeg-turbo) decodes, because it reports libjpeg's warnings; Pillow does the rest.
docs/performance.md has measurements. Both are imported for the first image that needs them.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from imagenet_prep.images import ENDINGS, format_of, grades, jpeg, png
from imagenet_prep.images.coded import check_coded
from imagenet_prep.images.inks import inks_as_rgb
from imagenet_prep.images.jpeg import ImageError, check_claim
from imagenet_prep.images.opening import opened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

Buffer = bytes | memoryview

REDUCE = 2
"""A JPEG is decoded at 1/2, 3/8, ... if each side stays at least this many times the target's: the
resized image then differs from full-size decoding by less than a level on average, and by 8 at most
(a test checks this).
"""


_ORIENTATION = 0x0112

MAX_SIDE = 65_500
"""libjpeg's own limit, in pixels."""


QUALITY = 90
"""The quality of JPEGs that are encoded again, by default."""


class Reencode(Struct, frozen=True):
    """How to encode every image again.

    Args:
        resize: the shorter side's target in pixels, or None.
        max_side: the longer side's limit in pixels, or None.
        quality: JPEG quality, 1 to 100.
    """

    resize: int | None = None
    max_side: int | None = None
    quality: int = QUALITY

    @property
    def may_shrink(self) -> bool:
        """Whether images may become smaller."""
        return self.resize is not None or self.max_side is not None

    def target(self, width: int, height: int) -> tuple[int, int]:
        """The new size in pixels of an image of this size: same proportions, never larger."""
        scale = 1.0
        if self.resize is not None:
            scale = min(scale, self.resize / min(width, height))
        if self.max_side is not None:
            scale = min(scale, self.max_side / max(width, height))
        return max(1, round(width * scale)), max(1, round(height * scale))


def check_decode(data: Buffer, header: jpeg.JpegHeader) -> None:
    """Decode all of a JPEG with this header, strictly: libjpeg's warnings count as damage.

    Every coefficient is entropy-decoded. Colour conversion is left out and the inverse transform
    runs at 1/8 scale. Neither can fail, so both would find nothing more (a test compares this with
    full decoding).

    Raises:
        ImageError: with libjpeg's own message.
    """
    _decoded(data, header, "GRAY", min_width=1, min_height=1, min_factor=8)


def decode_for(data: Buffer, header: jpeg.JpegHeader, target: tuple[int, int]) -> Image.Image:
    """Decode a JPEG with this header to RGB or grey, strictly, at reduced scale where ``target``
    (pixels) allows it.

    Four components are decoded in full size.

    Raises:
        ImageError: with libjpeg's own message.
    """
    from PIL import Image

    is_grey = header.components == 1
    pixels = _decoded(
        data,
        header,
        "GRAY" if is_grey else "RGB",
        min_width=REDUCE * target[0],
        min_height=REDUCE * target[1],
        min_factor=2,  # at 7/8 and the like the inverse transform is slower than at full scale
    )
    return Image.fromarray(pixels[:, :, 0] if is_grey else pixels)


def decode_whole(data: Buffer, header: jpeg.JpegHeader) -> Image.Image:
    """Decode a JPEG with this header to RGB or grey, strictly, in full size.

    Raises:
        ImageError: with the decoder's own message.
    """
    return decode_for(data, header, (header.width, header.height))


def _decoded(
    data: Buffer, header: jpeg.JpegHeader, colorspace: str, **limits: Any
) -> NDArray[np.uint8]:
    """A JPEG decoded by simplejpeg, strictly; or by Pillow, to RGB, if simplejpeg can't.

    simplejpeg can't decode four components as RGB, or odd sampling factors, whose coded data is
    checked here instead.
    """
    import numpy as np
    import simplejpeg  # it imports NumPy: a conversion that decodes nothing never loads either

    check_claim(header.width, header.height, len(data))
    if header.components < 4 or colorspace != "RGB":
        try:
            pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(
                data, colorspace, strict=True, **limits
            )
            return pixels
        except ValueError as error:
            if "subsampling" not in str(error):
                remedy = "save it as a baseline JPEG" if "nsupported" in str(error) else ""
                raise ImageError(f"{jpeg.NOT_CLEAN}{error}", remedy) from None
        lenient = np.array(decode_rgb(data))
        check_coded(data)
        return lenient
    check_decode(data, header)
    return np.array(decode_rgb(data))


def shrink(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """The image at this size in pixels, antialiased (bicubic)."""
    from PIL import Image

    return image if image.size == size else image.resize(size, Image.Resampling.BICUBIC)


def turn_upright(image: Image.Image, orientation: int) -> Image.Image:
    """The image, turned as its EXIF orientation (1 to 8) asks."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,  # Pillow counts degrees counterclockwise
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image.transpose(turns[orientation]) if orientation in turns else image


def encode(image: Image.Image, quality: int, density: int = 0) -> bytes:
    """A baseline JPEG, 4:2:0, with nothing but the picture; ``density`` is in dots per inch, 0 for
    none.

    Raises:
        ImageError: it is wider or taller than a JPEG can be.
    """
    if max(image.size) > MAX_SIDE:
        raise ImageError(
            f"it has {image.width} x {image.height} pixels: "
            f"libjpeg writes at most {MAX_SIDE:,} in a row or column of a JPEG",
            f"make it smaller: max_side: {MAX_SIDE} in the recipe; without one, add "
            f"--set max_side={MAX_SIDE}",
        )
    buffer = io.BytesIO()
    image.save(
        buffer, "JPEG", quality=quality, subsampling="4:2:0", comment=b"", dpi=(density, density)
    )
    return buffer.getvalue()


def encode_webp(image: Image.Image, quality: int) -> bytes:
    """A WebP with nothing but the picture: half the bytes of a small JPEG,
    whose tables alone are 600.
    """
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=quality, exif=b"", icc_profile=b"")
    return buffer.getvalue()


def decode_rgb(data: Buffer) -> Image.Image:
    """Decode an image to RGB, EXIF rotation not applied; alpha is dropped, as TensorFlow's decoder
    does.

    Raises:
        ImageError: it can't be decoded, or its bytes can't fill the size that it claims.
    """
    image_format = format_of(data)
    if image_format not in ("", "JPEG", "PNG"):
        return decode_other(data, image_format)[0]
    if image_format == "PNG":
        png_header = png.read_header(data)
        check_claim(png_header.width, png_header.height, len(data), png_header.depth)
    else:
        header = jpeg.read_header(data)
        check_claim(header.width, header.height, len(data))
    with opened(data, "JPEG", "PNG") as image:
        return inks_as_rgb(image, data) if image.mode == "CMYK" else _as_rgb(image)


def decode_array(data: Buffer, min_side: int | None = None) -> NDArray[np.uint8]:
    """RGB pixels as uint8 of the shape (height, width, 3): twice as fast as ``decode_rgb`` for most
    JPEGs.

    With ``min_side`` a JPEG is decoded at 1/2 or less as long as both sides keep that many pixels.
    Its pixels then differ from those of the whole image made smaller.

    Raises:
        ImageError: it can't be decoded.
    """
    import numpy as np

    if format_of(data) != "JPEG":
        return np.array(decode_rgb(data))
    if min_side is None:
        return decode_whole_array(data)
    return decode_whole_array(data, min_width=min_side, min_height=min_side, min_factor=2)


def decode_whole_array(data: Buffer, **limits: Any) -> NDArray[np.uint8]:
    """The RGB pixels of a JPEG that is clean or warned, made smaller as simplejpeg's arguments
    ``limits`` say.

    Bytes after its end are ignored.

    Raises:
        ImageError: it can't be decoded.
    """

    def decode(data: Buffer, header: jpeg.JpegHeader) -> NDArray[np.uint8]:
        return _decoded(data, header, "RGB", **limits)

    try:
        return decode(data, jpeg.read_plain_header(data))
    except ImageError as complaint:
        return grades.look_closer(data, complaint, decode).decoded


def decode_other(data: Buffer, image_format: str) -> tuple[Image.Image, tuple[str, ...], int]:
    """An image of another format than JPEG and PNG, in RGB; what a JPEG of it loses; and its EXIF
    orientation.

    Of an animation it is the first frame. A TIFF is turned already.

    Raises:
        ImageError: it can't be decoded, has several pages, or more than 16 bits a sample.
    """
    from PIL import ImageFile

    _refuse_unread(image_format)
    if image_format == "TIFF":
        return *_decode_tiff(data), 1
    with opened(data, image_format) as image:
        assert isinstance(image, ImageFile.ImageFile)
        check_claim(image.width, image.height, len(data))
        image.load()
        lost = {
            "alpha": image.has_transparency_data,
            "other frames": getattr(image, "n_frames", 1) > 1,
        }
        return _as_rgb(image), _named(lost), image.getexif().get(_ORIENTATION, 1)


def _refuse_unread(image_format: str) -> None:
    """Raise ImageError for a format that is known, and not read."""
    if image_format not in ENDINGS:
        raise ImageError(f"{image_format} can't be read", "convert it to JPEG or PNG")


def _decode_tiff(data: Buffer) -> tuple[Image.Image, tuple[str, ...]]:
    from PIL import Image

    from imagenet_prep.images.lossless import decode_tiff

    samples = decode_tiff(data)
    is_wide, channels = samples.dtype.itemsize > 1, samples.shape[2]
    has_alpha = channels in (2, 4)
    if is_wide:
        samples = samples >> 8
    colours = samples[:, :, : channels - has_alpha].astype("u1")
    if channels < 3:
        colours = colours.squeeze(2)
    image = Image.fromarray(colours).convert("RGB")
    return image, _named({"16 bits": is_wide, "alpha": has_alpha})


def _named(facts: dict[str, bool]) -> tuple[str, ...]:
    return tuple(name for name, is_so in facts.items() if is_so)


class ImageFacts(NamedTuple):
    """An image's format, its size in pixels, and its channels once decoded."""

    kind: str
    width: int
    height: int
    channels: int


def read_facts(data: Buffer) -> ImageFacts:
    """Format, size and channels of an image, without decoding.

    Raises:
        ImageError: it is damaged, or of no known format.
    """
    image_format = format_of(data)
    if image_format == "PNG":
        header = png.read_header(data)
        return ImageFacts(image_format, header.width, header.height, header.channels)
    if image_format in ("", "JPEG"):
        return ImageFacts("JPEG", *jpeg.read_header(data))
    _refuse_unread(image_format)
    with opened(data, image_format) as image:
        channels = len(image.getbands())
        if image.mode == "P":
            channels = 3 + image.has_transparency_data
        return ImageFacts(image_format, image.width, image.height, channels)


def _as_rgb(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode in ("I;16", "I;16B"):  # Pillow would clip it; TensorFlow uses the high byte
        high = slice(1, None, 2) if image.mode == "I;16" else slice(0, None, 2)
        return Image.frombytes("L", image.size, image.tobytes()[high]).convert("RGB")
    if image.mode == "P" and isinstance(image.info.get("transparency"), bytes):
        image = image.convert("RGBA")  # Pillow prints a warning where it goes to RGB at once
    if image.mode == "RGBA":
        return Image.merge("RGB", image.split()[:3])
    return image.convert("RGB")


def codec() -> str:
    """Names and versions of the encoders: they decide the bytes."""
    import PIL
    import simplejpeg
    from PIL import features

    decoder = f"simplejpeg {getattr(simplejpeg, '__version__', '')}"
    return f"Pillow {PIL.__version__}, libjpeg-turbo {features.version('libjpeg_turbo')}, {decoder}"
