"""photograph: pictures with the sizes and the entropy of photographs, and odd file formats among
them.

Each shows things of one class in a field, on the water or in a room; motifs.py draws the things.
"""

from __future__ import annotations

import enum
import io
import random
from collections.abc import Sequence
from typing import Any

from PIL import Image, ImageChops, ImageFilter

from imagenet_prep.demo.motifs import Motif, Size, draw_thing, motif_of, shapes
from imagenet_prep.ilsvrc2012.facts import synsets

Corners = tuple[int, int, int, int]
"""xmin, ymin, xmax, ymax in pixels."""

TINY_SIZE: Size = (16, 16)

_SMALLEST = 24  # pixels: smaller things all look alike
_PALE = (236, 234, 224)
_MASK_EDGE = 96
"""The level of a thing's mask from which on a pixel is inside its box."""

_ORIENTATION = 0x0112  # the EXIF tag
# A TIFF header and a directory that promises twelve entries and has none.
_CORRUPT_EXIF = b"Exif\0\0MM\0*\0\0\0\x08\0\x0c\x01\x0f\0\x02"


class Kind(str, enum.Enum):
    """The format of an image file; all except RGB are rare."""

    RGB = "rgb"
    GREY = "grey"
    CMYK = "cmyk"
    YCCK = "ycck"
    PNG = "png"
    ROTATED = "rotated"
    PROGRESSIVE = "progressive"
    CORRUPT_EXIF = "corrupt-exif"


def photograph_size(seed: int) -> Size:
    """The width and height of photograph ``seed`` in pixels, with the frequencies of ILSVRC2012."""
    sizes: list[Size] = []
    weights: list[int] = []
    for width, height, weight in shapes()["sizes"]:
        sizes.append((width, height))
        weights.append(weight)
    rng = random.Random(f"size {seed}")
    return rng.choices(sizes, weights)[0]


def photograph(seed: int, size: Size) -> Image.Image:
    """Draw an RGB image of a class; the same arguments give the same image."""
    wnids = synsets()
    image, _ = scene(seed, size, wnids[seed % len(wnids)])
    return image


def encode(image: Image.Image, kind: Kind, quality: int = 90) -> bytes:
    """Encode an RGB image as the bytes of a file of that kind."""
    if kind is Kind.YCCK:
        return _encode_ycck(image, quality)
    if kind is Kind.PNG:
        return _save(image, {"format": "PNG", "compress_level": 1})
    if kind is Kind.GREY:
        image = image.convert("L")
    elif kind is Kind.CMYK:
        image = _cmyk(image)
    options: dict[str, Any] = {"format": "JPEG", "quality": quality}
    if kind is Kind.ROTATED:
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
    rng = random.Random(f"quality {seed}")
    return rng.choice((85, 92, 94, 95, 95, 95))


def photograph_bytes(seed: int, kind: Kind = Kind.RGB) -> tuple[bytes, Size]:
    """Make a whole photograph file; return its width and height too."""
    size = photograph_size(seed)
    image = photograph(seed, size)
    content = encode(image, kind, photograph_quality(seed))
    return content, size


def tiny(seed: int, kind: Kind = Kind.RGB) -> bytes:
    """Make a real image of 16x16 pixels in a few hundred bytes, for tests that require many."""
    rng = random.Random(f"tiny {seed}")
    four_pixels = Image.frombytes("RGB", (2, 2), rng.randbytes(12))
    image = four_pixels.resize(TINY_SIZE, Image.Resampling.BICUBIC)
    if kind is Kind.RGB:
        return _save(image, {"format": "JPEG", "quality": 75, "optimize": True})
    return encode(image, kind, 75)


# pictures -----------------------------------------------------------------------------------------


def scene(seed: int, size: Size, wnid: str) -> tuple[Image.Image, tuple[Corners, ...]]:
    """Draw one to three things of a class; return the image and each box in pixels: xmin, ymin,
    xmax, ymax.

    The same arguments give the same image.
    """
    rng = random.Random(f"scene {seed} {size} {wnid}")
    motif = motif_of(wnid)
    shape = shapes()["shapes"][motif.shape]
    place = shapes()["places"][shape["place"]]
    horizon = rng.uniform(*place["horizon"])
    image = _background(rng, size, place, horizon)
    things = rng.choice((1, 1, 1, 2, 3))
    boxes: list[Corners] = []
    for number in range(things):
        thing_size = _thing_size(rng, shape, size, things)
        sway = rng.uniform(-0.08, 0.08) / things
        centre = (number + 0.5) / things + sway
        bottom = rng.uniform(horizon + 0.12, 0.97)
        corner = _corner_of(size, thing_size, centre, bottom)
        box = _put(rng, image, motif, thing_size, corner)
        boxes.append(box)
    lens_blur = ImageFilter.BoxBlur(size[0] / 450)
    return _add_grain(rng, image.filter(lens_blur)), tuple(boxes)


def _background(
    rng: random.Random, size: Size, place: dict[str, Any], horizon: float
) -> Image.Image:
    """Draw sky or a wall, and ground with a coarse grain in front."""
    width, height = size
    horizon_y = round(height * horizon)
    sky = [rng.randint(*bounds) for bounds in place["sky"]]
    near_ground = [rng.randint(*bounds) for bounds in place["ground"]]
    image = _gradient(size, sky, _PALE)
    ground_height = max(1, height - horizon_y)
    ground = _gradient((width, ground_height), sky, near_ground)
    cell_width, cell_height = place["grain"]
    cells = (width // (cell_width * 2), ground_height // (cell_height * 2))
    texture = _noise(rng, cells).resize(ground.size, Image.Resampling.BILINEAR)
    rough_ground = ImageChops.overlay(ground, texture.convert("RGB"))
    ground = Image.blend(ground, rough_ground, 0.6)
    image.paste(ground, (0, horizon_y))
    return image


def _thing_size(rng: random.Random, shape: dict[str, Any], image_size: Size, things: int) -> Size:
    """The size of one of so many things of a shape in an image."""
    width, height = image_size
    share = rng.uniform(0.8, 1.0)
    if things == 1:
        share *= 0.72
    else:
        share *= 0.5 - 0.06 * things
    share *= min(width / shape["width"], height / shape["height"])
    thing_width = max(_SMALLEST, round(share * shape["width"]))
    thing_height = max(_SMALLEST, round(share * shape["height"]))
    return min(width, thing_width), min(height, thing_height)


def _corner_of(image_size: Size, thing_size: Size, centre: float, bottom: float) -> tuple[int, int]:
    """The upper left corner of a thing, moved into the image if it would leave it.

    ``centre`` is a share of the image's width, ``bottom`` the lower edge, of its height.
    """
    width, height = image_size
    thing_width, thing_height = thing_size
    left = round(centre * width - thing_width / 2)
    top = round(bottom * height - thing_height)
    left = min(max(0, left), width - thing_width)
    top = min(max(0, top), height - thing_height)
    return left, top


def _put(
    rng: random.Random, image: Image.Image, motif: Motif, size: Size, corner: tuple[int, int]
) -> Corners:
    """Draw one thing into an image; return its box."""
    thing, mask = draw_thing(motif, size)
    if rng.random() < 0.5:
        thing = thing.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        mask = mask.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    image.paste(thing, corner, mask)
    is_inside = [255 * (level >= _MASK_EDGE) for level in range(256)]
    width, height = size
    xmin, ymin, xmax, ymax = mask.point(is_inside).getbbox() or (0, 0, width, height)
    left, top = corner
    return left + xmin, top + ymin, left + xmax, top + ymax


def _add_grain(rng: random.Random, image: Image.Image) -> Image.Image:
    """Add fine and coarse noise to an image, as a camera's."""
    width, height = image.size
    coarse = _noise(rng, (width // 2, height // 2))
    coarse = coarse.resize(image.size, Image.Resampling.BILINEAR)
    fine = _noise(rng, image.size)
    noise = Image.blend(fine, coarse, 0.4)
    noisy_image = ImageChops.overlay(image, noise.convert("RGB"))
    return Image.blend(image, noisy_image, rng.uniform(0.22, 0.46))


def _gradient(size: Size, above: Sequence[int], below: Sequence[int]) -> Image.Image:
    """An RGB image from the colour ``above`` to that ``below``."""
    width, height = size
    two_pixels = Image.frombytes("RGB", (1, 2), bytes([*above, *below]))
    column = two_pixels.resize((1, height), Image.Resampling.BICUBIC)
    return column.resize((width, height), Image.Resampling.NEAREST)


def _noise(rng: random.Random, size: Size) -> Image.Image:
    """A grey image of random noise."""
    width = max(1, size[0])
    height = max(1, size[1])
    pixels = rng.randbytes(width * height)
    return Image.frombytes("L", (width, height), pixels)


# odd file formats ---------------------------------------------------------------------------------


def _save(image: Image.Image, options: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def _cmyk(image: Image.Image) -> Image.Image:
    """Convert to four inks, with half of the grey part in black, as in a printer's separation."""
    cyan, magenta, yellow = ImageChops.invert(image).split()
    grey = ImageChops.darker(cyan, magenta)
    grey = ImageChops.darker(grey, yellow)
    black = grey.point([level // 2 for level in range(256)])
    inks = [ImageChops.subtract(ink, black) for ink in (cyan, magenta, yellow)]
    return Image.merge("CMYK", (*inks, black))


def _encode_ycck(image: Image.Image, quality: int) -> bytes:
    """Encode a YCCK JPEG, which Pillow can read but not write by itself.

    libjpeg's YCCK is YCbCr of the three colour inks, and black unchanged. So the four planes are
    written as CMYK, without subsampling, and the transform flag of the Adobe marker is then set
    from 0 to 2 (YCCK). Pillow inverts CMYK when it writes, as Photoshop does. That is right for
    black; the other three are inverted first.
    """
    *inks, black = _cmyk(image).split()
    ycbcr = Image.merge("RGB", inks).convert("YCbCr")
    planes = ImageChops.invert(ycbcr).split()
    cmyk = Image.merge("CMYK", (*planes, black))
    content = _save(cmyk, {"format": "JPEG", "quality": quality, "subsampling": 0})
    flag = content.index(b"\xff\xee\x00\x0eAdobe") + 15
    return content[:flag] + b"\x02" + content[flag + 1 :]
