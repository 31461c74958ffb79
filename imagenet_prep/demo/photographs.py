"""photograph: pictures with the sizes and the entropy of photographs, and odd file formats among
them.

Each shows things of one class in a field, on the water or in a room. ``shapes.json`` describes
their looks.
"""

from __future__ import annotations

import colorsys
import enum
import functools
import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from imagenet_prep.ilsvrc2012.facts import labels, synsets, texts

Corners = tuple[int, int, int, int]
"""xmin, ymin, xmax, ymax in pixels."""
Size = tuple[int, int]
Colour = tuple[int, int, int]

TINY_SIZE: Size = (16, 16)

_SMALLEST = 24  # pixels: smaller things all look alike
_PALE = (236, 234, 224)

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
    *sides, weights = zip(*shapes()["sizes"], strict=True)
    width, height = random.Random(f"size {seed}").choices([*zip(*sides, strict=True)], weights)[0]
    return width, height


def photograph(seed: int, size: Size) -> Image.Image:
    """Draw an RGB image of a class; the same arguments give the same image."""
    return scene(seed, size, synsets()[seed % len(synsets())])[0]


def encode(image: Image.Image, kind: Kind, quality: int = 90) -> bytes:
    """Encode an RGB image as the bytes of a file of that kind."""
    if kind is Kind.YCCK:
        return _encode_ycck(image, quality)
    if kind is Kind.PNG:
        return _save(image, {"format": "PNG", "compress_level": 1})
    exif = Image.Exif()
    exif[_ORIENTATION] = 6
    more: dict[Kind, dict[str, Any]] = {
        Kind.ROTATED: {"exif": exif},
        Kind.PROGRESSIVE: {"progressive": True},
        Kind.CORRUPT_EXIF: {"exif": _CORRUPT_EXIF},
    }
    image = (
        image.convert("L") if kind is Kind.GREY else _cmyk(image) if kind is Kind.CMYK else image
    )
    return _save(image, {"format": "JPEG", "quality": quality, **more.get(kind, {})})


def photograph_quality(seed: int) -> int:
    """The JPEG quality of photograph ``seed``, from 85 to 95."""
    return random.Random(f"quality {seed}").choice((85, 92, 94, 95, 95, 95))


def photograph_bytes(seed: int, kind: Kind = Kind.RGB) -> tuple[bytes, Size]:
    """Make a whole photograph file; return its width and height too."""
    size = photograph_size(seed)
    return encode(photograph(seed, size), kind, photograph_quality(seed)), size


def tiny(seed: int, kind: Kind = Kind.RGB) -> bytes:
    """Make a real image of 16x16 pixels in a few hundred bytes, for tests that require many."""
    rng = random.Random(f"tiny {seed}")
    image = Image.frombytes("RGB", (2, 2), rng.randbytes(12)).resize(
        TINY_SIZE, Image.Resampling.BICUBIC
    )
    if kind is Kind.RGB:
        return _save(image, {"format": "JPEG", "quality": 75, "optimize": True})
    return encode(image, kind, 75)


# looks of things ----------------------------------------------------------------------------------


@functools.cache
def shapes() -> dict[str, Any]:
    """The content of ``shapes.json``: how kinds of things and places are drawn, and the kind of
    each class.

    A shape has proportions, a place, marks, and the tone of its colour. A mark is an ellipse by two
    corners, a polygon by its points, or a line by its points and width, in a square of 100.
    ``animals`` has the last label of each kind, ``things`` the kinds of man-made things in turn,
    ``fruit`` the first label of edible things. ``named`` has hue and saturation of classes whose
    names imply them.
    """
    table: dict[str, Any] = json.loads(
        Path(__file__).with_name("shapes.json").read_text(encoding="utf-8")
    )
    return table


class Motif(NamedTuple):
    """The look of the things of one class, in every picture."""

    kind: str
    colours: dict[str, Colour]


def motif_of(wnid: str) -> Motif:
    """Compute the look of a class; the result is always the same."""
    table, label, words, rng = (
        shapes(),
        labels()[wnid],
        texts()[wnid].lower(),
        random.Random(f"look {wnid}"),
    )
    things = table["things"]
    made = "fruit" if label >= table["fruit"] else things[(label - 401) // 50 % len(things)]
    kind = next((kind for last, kind in table["animals"] if label <= last), made)
    hue, strength = label * 0.382 % 1, 0.7
    if kind in table["furred"]:
        hue, strength = rng.uniform(0.03, 0.12), rng.uniform(0.2, 0.75)
    hue, strength = next(
        (tone for word, tone in table["named"].items() if word in words), (hue, strength)
    )
    value = 0.28 if "black" in words else rng.uniform(0.45, 0.9)
    tones = {
        "body": (hue, strength, value),
        "dark": (hue, strength, value * 0.6),
        "light": (hue, strength * 0.35, min(1.0, value + 0.25)),
        "accent": ((hue + 0.45) % 1, max(strength, 0.65), 0.85),
        "white": (0.15, 0.03, 0.96),
        "black": (0.7, 0.15, 0.1),
    }
    return Motif(kind, {name: _rgb(*colorsys.hsv_to_rgb(*tone)) for name, tone in tones.items()})


def _rgb(red: float, green: float, blue: float) -> Colour:
    return round(255 * red), round(255 * green), round(255 * blue)


def draw_thing(motif: Motif, size: Size) -> tuple[Image.Image, Image.Image]:
    """Draw a thing as its own RGB image, lit from above, with the mask of its shape."""
    large = size[0] * 2, size[1] * 2  # drawn twice as large, for soft edges
    paint, alpha = Image.new("RGB", large), Image.new("L", large)
    for kind, tone, numbers in shapes()["shapes"][motif.kind]["marks"]:
        _stroke(ImageDraw.Draw(paint), kind, numbers, large, motif.colours[tone])
        _stroke(ImageDraw.Draw(alpha), kind, numbers, large, 255)
    shade = (
        Image.linear_gradient("L")
        .resize(large)
        .point([255 - value * 5 // 8 for value in range(256)])
    )
    paint = ImageChops.multiply(paint, Image.merge("RGB", (shade,) * 3))
    return paint.resize(size, Image.Resampling.BOX), alpha.resize(size, Image.Resampling.BOX)


def _stroke(
    draw: ImageDraw.ImageDraw, kind: str, numbers: Sequence[float], size: Size, colour: Colour | int
) -> None:
    x, y = (size[0] - 1) / 100, (size[1] - 1) / 100
    points = [(px * x, py * y) for px, py in zip(numbers[::2], numbers[1::2], strict=False)]
    if kind != "line":
        (draw.ellipse if kind == "ellipse" else draw.polygon)(points, colour)
    else:
        thick = max(2, round(numbers[-1] * min(x, y)))
        draw.line(points, colour, thick, joint="curve")
        for px, py in points:  # round ends
            draw.ellipse((px - thick / 2, py - thick / 2, px + thick / 2, py + thick / 2), colour)


# pictures -----------------------------------------------------------------------------------------


def scene(seed: int, size: Size, wnid: str) -> tuple[Image.Image, tuple[Corners, ...]]:
    """Draw one to three things of a class; return the image and each box in pixels: xmin, ymin,
    xmax, ymax.

    The same arguments give the same image.
    """
    rng = random.Random(f"scene {seed} {size} {wnid}")
    motif = motif_of(wnid)
    place = shapes()["places"][shapes()["shapes"][motif.kind]["place"]]
    horizon = rng.uniform(*place["horizon"])
    image = _background(rng, size, place, horizon)
    things = rng.choice((1, 1, 1, 2, 3))
    boxes = [
        _put(rng, image, motif, horizon, ((number + 0.5) / things, things))
        for number in range(things)
    ]
    image = image.filter(ImageFilter.BoxBlur(size[0] / 450))  # as soft as a lens
    coarse = _noise(rng, (size[0] // 2, size[1] // 2)).resize(size, Image.Resampling.BILINEAR)
    grain = ImageChops.overlay(
        image, Image.blend(_noise(rng, size).convert("RGB"), coarse.convert("RGB"), 0.4)
    )
    return Image.blend(image, grain, rng.uniform(0.22, 0.46)), tuple(boxes)


def _put(
    rng: random.Random, image: Image.Image, motif: Motif, horizon: float, among: tuple[float, int]
) -> Corners:
    """Draw one thing; ``among`` has the centre of its place,
    as a share of the width, and the number of things.
    """
    shape, (width, height), (middle, things) = shapes()["shapes"][motif.kind], image.size, among
    share = rng.uniform(0.8, 1.0) * (0.72 if things == 1 else 0.5 - 0.06 * things)
    share *= min(width / shape["width"], height / shape["height"])
    size = tuple(
        min(most, max(_SMALLEST, round(share * shape[side])))
        for side, most in zip(("width", "height"), image.size, strict=True)
    )
    left = round((middle + rng.uniform(-0.08, 0.08) / things) * width - size[0] / 2)
    top = round(rng.uniform(horizon + 0.12, 0.97) * height - size[1])
    left, top = min(max(0, left), width - size[0]), min(max(0, top), height - size[1])
    thing, alpha = draw_thing(motif, size)
    if rng.random() < 0.5:
        thing, alpha = (each.transpose(Image.Transpose.FLIP_LEFT_RIGHT) for each in (thing, alpha))
    image.paste(thing, (left, top), alpha)
    box = alpha.point([0] * 96 + [255] * 160).getbbox() or (0, 0, *size)
    return left + box[0], top + box[1], left + box[2], top + box[3]


def _background(
    rng: random.Random, size: Size, place: dict[str, Any], horizon: float
) -> Image.Image:
    """Draw sky or a wall, and ground with a coarse grain in front."""
    width, top = size[0], round(size[1] * horizon)
    sky, near = ([rng.randint(*each) for each in place[name]] for name in ("sky", "ground"))
    image = _gradient(size, sky, _PALE)
    ground = _gradient((width, max(1, size[1] - top)), sky, near)
    cells = (width // (place["grain"][0] * 2), ground.height // (place["grain"][1] * 2))
    texture = _noise(rng, cells).resize(ground.size, Image.Resampling.BILINEAR).convert("RGB")
    image.paste(Image.blend(ground, ImageChops.overlay(ground, texture), 0.6), (0, top))
    return image


def _gradient(size: Size, above: Sequence[int], below: Sequence[int]) -> Image.Image:
    return Image.frombytes("RGB", (1, 2), bytes([*above, *below])).resize(
        size, Image.Resampling.BICUBIC
    )


def _noise(rng: random.Random, size: Size) -> Image.Image:
    """A grey image of random noise."""
    width, height = max(1, size[0]), max(1, size[1])
    return Image.frombytes("L", (width, height), rng.randbytes(width * height))


# odd file formats ---------------------------------------------------------------------------------


def _save(image: Image.Image, options: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def _cmyk(image: Image.Image) -> Image.Image:
    """Convert to four inks, with half of the grey part in black, as in a printer's separation."""
    inks = ImageChops.invert(image).split()
    grey = ImageChops.darker(ImageChops.darker(inks[0], inks[1]), inks[2])
    black = grey.point([value // 2 for value in range(256)])
    return Image.merge("CMYK", (*(ImageChops.subtract(ink, black) for ink in inks), black))


def _encode_ycck(image: Image.Image, quality: int) -> bytes:
    """Encode a YCCK JPEG, which Pillow can read but not write by itself.

    libjpeg's YCCK is YCbCr of the three colour inks, and black unchanged. So the four planes are
    written as CMYK, without subsampling, and the transform flag of the Adobe marker is then set
    from 0 to 2 (YCCK). Pillow inverts CMYK when it writes, as Photoshop does. That is right for
    black; the other three are inverted first.
    """
    *inks, black = _cmyk(image).split()
    planes = ImageChops.invert(Image.merge("RGB", inks).convert("YCbCr")).split()
    content = _save(
        Image.merge("CMYK", (*planes, black)),
        {"format": "JPEG", "quality": quality, "subsampling": 0},
    )
    flag = content.index(b"\xff\xee\x00\x0eAdobe") + 15
    return content[:flag] + b"\x02" + content[flag + 1 :]
