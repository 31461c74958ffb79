"""Images with the entropy and the sizes of photographs, and the odd formats among them; scenes.py has things to see."""

from __future__ import annotations

import enum
import io
import random
from typing import Any

from PIL import Image, ImageChops, ImageDraw, ImageFilter

Size = tuple[int, int]

SIZES: tuple[tuple[Size, int], ...] = (
    ((500, 375), 38),
    ((375, 500), 16),
    ((500, 333), 16),
    ((333, 500), 8),
    ((400, 300), 6),
    ((500, 500), 3),
    ((240, 180), 3),
    ((120, 96), 2),
    ((640, 480), 4),
    ((800, 600), 3),
    ((1024, 768), 1),
)
"""Width and height in pixels, and how often of 100 images: as they come in ILSVRC2012."""

TINY_SIZE: Size = (16, 16)

# Gives back what mixing in noise took away from the light, for each of three bands.
_CONTRAST = [min(255, max(0, round(128 + 1.7 * (value - 125)))) for value in range(256)] * 3

_ORIENTATION = 0x0112  # the EXIF tag
# A TIFF header and a directory that promises twelve entries, of which not one is there.
_CORRUPT_EXIF = b"Exif\0\0MM\0*\0\0\0\x08\0\x0c\x01\x0f\0\x02"


class Kind(str, enum.Enum):
    """What an image file is; all but RGB are rare."""

    RGB = "rgb"
    GREY = "grey"
    CMYK = "cmyk"
    YCCK = "ycck"
    PNG = "png"
    ROTATED = "rotated"
    PROGRESSIVE = "progressive"
    CORRUPT_EXIF = "corrupt-exif"


def photograph_size(seed: int) -> Size:
    """The width and height of photograph ``seed``: one of SIZES, as often as stated there."""
    sizes, weights = zip(*SIZES, strict=True)
    size: Size = random.Random(f"size {seed}").choices(sizes, weights)[0]
    return size


def photograph(seed: int, size: Size) -> Image.Image:
    """An RGB image with light, things with soft edges, and texture; the same for the same arguments.

    Made from coarse to fine: each step doubles the resolution and mixes in some noise, so that every scale has its
    share of detail, as in natural images.
    """
    rng = random.Random(f"photograph {seed} {size}")
    image = _light(rng, size)
    for step in range(5, 1, -1):
        image = _finer(rng, image, _part(size, step), 0.13)
    image = image.point(_CONTRAST)
    _draw_things(rng, image, rng.randint(2, 4))
    image = _finer(rng, image, _part(size, 1), 0.18)
    _draw_things(rng, image, rng.randint(1, 3))
    return _textured(rng, image, size)


def encode(image: Image.Image, kind: Kind, quality: int = 90) -> bytes:
    """An RGB image as the bytes of a file of that kind."""
    options: dict[str, Any] = {"format": "JPEG", "quality": quality}
    if kind is Kind.PNG:
        options = {"format": "PNG", "compress_level": 1}
    elif kind is Kind.GREY:
        image = image.convert("L")
    elif kind is Kind.CMYK:
        image = _cmyk(image)
    elif kind is Kind.YCCK:
        return _encode_ycck(image, quality)
    elif kind is Kind.ROTATED:
        exif = Image.Exif()
        exif[_ORIENTATION] = 6
        options["exif"] = exif
    elif kind is Kind.PROGRESSIVE:
        options["progressive"] = True
    elif kind is Kind.CORRUPT_EXIF:
        options["exif"] = _CORRUPT_EXIF
    return _save(image, options)


def photograph_quality(seed: int) -> int:
    """The JPEG quality of photograph ``seed``, from 85 to 95."""
    return random.Random(f"quality {seed}").choice((85, 92, 94, 95, 95, 95))


def photograph_bytes(seed: int, kind: Kind = Kind.RGB) -> tuple[bytes, Size]:
    """A whole photograph file and its width and height."""
    size = photograph_size(seed)
    return encode(photograph(seed, size), kind, photograph_quality(seed)), size


def tiny(seed: int, kind: Kind = Kind.RGB) -> bytes:
    """A real image of 16x16 pixels in some hundred bytes, for tests that want many."""
    rng = random.Random(f"tiny {seed}")
    image = Image.frombytes("RGB", (2, 2), rng.randbytes(12)).resize(TINY_SIZE, Image.Resampling.BICUBIC)
    if kind is Kind.RGB:
        return _save(image, {"format": "JPEG", "quality": 75, "optimize": True})
    return encode(image, kind, 75)


# how a photograph comes about ----------------------------------------------------------------------------------


def _part(size: Size, step: int) -> Size:
    return max(1, size[0] >> step), max(1, size[1] >> step)


def _light(rng: random.Random, size: Size) -> Image.Image:
    """A gradient between four muted colours, bright above as under a sky."""
    above = [*_colour(rng, 120, 225), *_colour(rng, 120, 225)]
    below = [*_colour(rng, 30, 130), *_colour(rng, 30, 130)]
    corners = Image.frombytes("RGB", (2, 2), bytes(above + below))
    return corners.resize(_part(size, 6), Image.Resampling.BICUBIC)


def _colour(rng: random.Random, low: int, high: int) -> tuple[int, int, int]:
    """A colour nearer to grey than chance would have it: most of nature is."""
    grey = rng.randint(low, high)
    red, green, blue = (min(255, max(0, grey + round(rng.gauss(0, 22)))) for _ in range(3))
    return red, green, blue


def _finer(rng: random.Random, image: Image.Image, size: Size, strength: float) -> Image.Image:
    """The image at another size with noise mixed in: of every colour while it's coarse, then of lightness alone."""
    image = image.resize(size, Image.Resampling.BILINEAR)
    grey = size[0] * size[1] > 300
    planes = (noise(rng, size),) * 3 if grey else tuple(noise(rng, size) for _ in range(3))
    return Image.blend(image, Image.merge("RGB", planes), strength)


def noise(rng: random.Random, size: Size) -> Image.Image:
    """A grey image of chance alone."""
    return Image.frombytes("L", size, rng.randbytes(size[0] * size[1]))


def _draw_things(rng: random.Random, image: Image.Image, count: int) -> None:
    """Put shapes into the image, each with its own colour and its own soft edge."""
    width, height = image.size
    for _ in range(count):
        size = max(8, int(width * rng.uniform(0.08, 0.5))), max(8, int(height * rng.uniform(0.08, 0.5)))
        corner = rng.randint(-size[0] // 2, width), rng.randint(-size[1] // 2, height)
        mask = Image.new("L", size)
        draw = ImageDraw.Draw(mask)
        opacity = rng.randint(110, 235)
        if rng.random() < 0.6:
            draw.ellipse((2, 2, size[0] - 3, size[1] - 3), fill=opacity)
        else:
            draw.polygon([(rng.randrange(size[0]), rng.randrange(size[1])) for _ in range(5)], fill=opacity)
        image.paste(_colour(rng, 20, 235), corner, mask.filter(ImageFilter.BoxBlur(rng.choice((0.5, 1, 2)))))


def _textured(rng: random.Random, image: Image.Image, size: Size) -> Image.Image:
    """The image at full size, with strong texture in some regions (fur, leaves) and weak in others (sky, blur)."""
    image = image.resize(size, Image.Resampling.BILINEAR)
    regions = Image.frombytes("L", (5, 5), rng.randbytes(25)).resize(size, Image.Resampling.BILINEAR)
    grain = Image.composite(noise(rng, size), Image.new("L", size, 128), regions)
    return Image.blend(image, Image.merge("RGB", (grain,) * 3), rng.uniform(0.25, 0.5))


# how the odd ones are written ----------------------------------------------------------------------------------


def _save(image: Image.Image, options: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def _cmyk(image: Image.Image) -> Image.Image:
    """The image in four inks, half of the grey part in black, as a printer's separation has it."""
    inks = ImageChops.invert(image).split()
    grey = ImageChops.darker(ImageChops.darker(inks[0], inks[1]), inks[2])
    black = grey.point([value // 2 for value in range(256)])
    return Image.merge("CMYK", (*(ImageChops.subtract(ink, black) for ink in inks), black))


def _encode_ycck(image: Image.Image, quality: int) -> bytes:
    """A YCCK JPEG, which Pillow can read but not write by itself.

    libjpeg's YCCK is YCbCr of the three colour inks, and black unchanged. Those four planes are written as if they
    were CMYK, without subsampling, and the transform flag of the Adobe marker then says 2 (YCCK) in place of 0.
    Pillow inverts what it writes as CMYK, as Photoshop does; black is meant so, the other three are inverted first.
    """
    *inks, black = _cmyk(image).split()
    planes = ImageChops.invert(Image.merge("RGB", inks).convert("YCbCr")).split()
    content = _save(Image.merge("CMYK", (*planes, black)), {"format": "JPEG", "quality": quality, "subsampling": 0})
    flag = content.index(b"\xff\xee\x00\x0eAdobe") + 15
    return content[:flag] + b"\x02" + content[flag + 1 :]
