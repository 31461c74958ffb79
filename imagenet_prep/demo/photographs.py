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
    sizes = [(width, height) for width, height, _ in shapes()["sizes"]]
    weights = [weight for _, _, weight in shapes()["sizes"]]
    return random.Random(f"size {seed}").choices(sizes, weights)[0]


def photograph(seed: int, size: Size) -> Image.Image:
    """Draw an RGB image of a class; the same arguments give the same image."""
    return scene(seed, size, synsets()[seed % len(synsets())])[0]


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
    return random.Random(f"quality {seed}").choice((85, 92, 94, 95, 95, 95))


def photograph_bytes(seed: int, kind: Kind = Kind.RGB) -> tuple[bytes, Size]:
    """Make a whole photograph file; return its width and height too."""
    size = photograph_size(seed)
    return encode(photograph(seed, size), kind, photograph_quality(seed)), size


def tiny(seed: int, kind: Kind = Kind.RGB) -> bytes:
    """Make a real image of 16x16 pixels in a few hundred bytes, for tests that require many."""
    rng = random.Random(f"tiny {seed}")
    four_pixels = Image.frombytes("RGB", (2, 2), rng.randbytes(12))
    image = four_pixels.resize(TINY_SIZE, Image.Resampling.BICUBIC)
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
    text = Path(__file__).with_name("shapes.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


class Motif(NamedTuple):
    """The look of the things of one class, in every picture; ``shape`` is a key of the shapes."""

    shape: str
    colours: dict[str, Colour]


def motif_of(wnid: str) -> Motif:
    """Compute the look of a class; the result is always the same."""
    rng = random.Random(f"look {wnid}")
    label = labels()[wnid]
    words = texts()[wnid].lower()
    shape = _shape_of(label)
    hue, saturation = label * 0.382 % 1, 0.7
    if shape in shapes()["furred"]:
        hue, saturation = rng.uniform(0.03, 0.12), rng.uniform(0.2, 0.75)
    for word, named_tone in shapes()["named"].items():
        if word in words:
            hue, saturation = named_tone
            break
    brightness = 0.28 if "black" in words else rng.uniform(0.45, 0.9)
    tones = {
        "body": (hue, saturation, brightness),
        "dark": (hue, saturation, brightness * 0.6),
        "light": (hue, saturation * 0.35, min(1.0, brightness + 0.25)),
        "accent": ((hue + 0.45) % 1, max(saturation, 0.65), 0.85),
        "white": (0.15, 0.03, 0.96),
        "black": (0.7, 0.15, 0.1),
    }
    return Motif(shape, {name: _rgb(*colorsys.hsv_to_rgb(*tone)) for name, tone in tones.items()})


def _shape_of(label: int) -> str:
    """The key of the shape of a class: an animal, a man-made thing, or something edible."""
    table = shapes()
    for last_label, animal in table["animals"]:
        if label <= last_label:
            return str(animal)
    if label >= table["fruit"]:
        return "fruit"
    things = table["things"]
    return str(things[(label - 401) // 50 % len(things)])


def _rgb(red: float, green: float, blue: float) -> Colour:
    return round(255 * red), round(255 * green), round(255 * blue)


def draw_thing(motif: Motif, size: Size) -> tuple[Image.Image, Image.Image]:
    """Draw a thing as its own RGB image, lit from above, with the mask of its shape."""
    large = size[0] * 2, size[1] * 2  # drawn twice as large, for soft edges
    paint, alpha = Image.new("RGB", large), Image.new("L", large)
    for mark, tone, numbers in shapes()["shapes"][motif.shape]["marks"]:
        _stroke(ImageDraw.Draw(paint), mark, numbers, large, motif.colours[tone])
        _stroke(ImageDraw.Draw(alpha), mark, numbers, large, 255)
    darker_below = [255 - level * 5 // 8 for level in range(256)]
    shade = Image.linear_gradient("L").resize(large).point(darker_below)
    paint = ImageChops.multiply(paint, Image.merge("RGB", (shade,) * 3))
    return paint.resize(size, Image.Resampling.BOX), alpha.resize(size, Image.Resampling.BOX)


def _stroke(
    draw: ImageDraw.ImageDraw, mark: str, numbers: Sequence[float], size: Size, colour: Colour | int
) -> None:
    x_scale, y_scale = (size[0] - 1) / 100, (size[1] - 1) / 100
    coordinates = zip(numbers[::2], numbers[1::2], strict=False)
    points = [(x * x_scale, y * y_scale) for x, y in coordinates]
    if mark == "ellipse":
        draw.ellipse(points, colour)
    elif mark != "line":
        draw.polygon(points, colour)
    else:
        thick = max(2, round(numbers[-1] * min(x_scale, y_scale)))
        draw.line(points, colour, thick, joint="curve")
        radius = thick / 2
        for x, y in points:  # round ends
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), colour)


# pictures -----------------------------------------------------------------------------------------


def scene(seed: int, size: Size, wnid: str) -> tuple[Image.Image, tuple[Corners, ...]]:
    """Draw one to three things of a class; return the image and each box in pixels: xmin, ymin,
    xmax, ymax.

    The same arguments give the same image.
    """
    rng = random.Random(f"scene {seed} {size} {wnid}")
    motif = motif_of(wnid)
    place = shapes()["places"][shapes()["shapes"][motif.shape]["place"]]
    horizon = rng.uniform(*place["horizon"])
    image = _background(rng, size, place, horizon)
    things = rng.choice((1, 1, 1, 2, 3))
    boxes: list[Corners] = []
    for number in range(things):
        centre = (number + 0.5) / things
        boxes.append(_put(rng, image, motif, horizon, (centre, things)))
    image = image.filter(ImageFilter.BoxBlur(size[0] / 450))  # as soft as a lens
    return _add_grain(rng, image), tuple(boxes)


def _add_grain(rng: random.Random, image: Image.Image) -> Image.Image:
    """Add fine and coarse noise to an image, as a camera's."""
    width, height = image.size
    coarse = _noise(rng, (width // 2, height // 2)).resize(image.size, Image.Resampling.BILINEAR)
    fine = _noise(rng, image.size)
    noise = Image.blend(fine.convert("RGB"), coarse.convert("RGB"), 0.4)
    return Image.blend(image, ImageChops.overlay(image, noise), rng.uniform(0.22, 0.46))


def _put(
    rng: random.Random, image: Image.Image, motif: Motif, horizon: float, among: tuple[float, int]
) -> Corners:
    """Draw one thing; ``among`` has the centre of its place,
    as a share of the width, and the number of things.
    """
    centre, things = among
    width, height = image.size
    size = _thing_size(rng, motif, image.size, things)
    left = round((centre + rng.uniform(-0.08, 0.08) / things) * width - size[0] / 2)
    top = round(rng.uniform(horizon + 0.12, 0.97) * height - size[1])
    left, top = min(max(0, left), width - size[0]), min(max(0, top), height - size[1])
    thing, alpha = draw_thing(motif, size)
    if rng.random() < 0.5:
        thing = thing.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        alpha = alpha.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    image.paste(thing, (left, top), alpha)
    box = alpha.point([0] * 96 + [255] * 160).getbbox() or (0, 0, *size)
    return left + box[0], top + box[1], left + box[2], top + box[3]


def _thing_size(rng: random.Random, motif: Motif, image_size: Size, things: int) -> Size:
    """The size of one of so many things in an image."""
    shape, (width, height) = shapes()["shapes"][motif.shape], image_size
    share = rng.uniform(0.8, 1.0) * (0.72 if things == 1 else 0.5 - 0.06 * things)
    share *= min(width / shape["width"], height / shape["height"])
    thing_width = max(_SMALLEST, round(share * shape["width"]))
    thing_height = max(_SMALLEST, round(share * shape["height"]))
    return min(width, thing_width), min(height, thing_height)


def _background(
    rng: random.Random, size: Size, place: dict[str, Any], horizon: float
) -> Image.Image:
    """Draw sky or a wall, and ground with a coarse grain in front."""
    width, top = size[0], round(size[1] * horizon)
    sky = [rng.randint(*bounds) for bounds in place["sky"]]
    near = [rng.randint(*bounds) for bounds in place["ground"]]
    image = _gradient(size, sky, _PALE)
    ground = _gradient((width, max(1, size[1] - top)), sky, near)
    cells = (width // (place["grain"][0] * 2), ground.height // (place["grain"][1] * 2))
    texture = _noise(rng, cells).resize(ground.size, Image.Resampling.BILINEAR).convert("RGB")
    image.paste(Image.blend(ground, ImageChops.overlay(ground, texture), 0.6), (0, top))
    return image


def _gradient(size: Size, above: Sequence[int], below: Sequence[int]) -> Image.Image:
    two_pixels = Image.frombytes("RGB", (1, 2), bytes([*above, *below]))
    return two_pixels.resize(size, Image.Resampling.BICUBIC)


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
    black = grey.point([level // 2 for level in range(256)])
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
    cmyk = Image.merge("CMYK", (*planes, black))
    content = _save(cmyk, {"format": "JPEG", "quality": quality, "subsampling": 0})
    flag = content.index(b"\xff\xee\x00\x0eAdobe") + 15
    return content[:flag] + b"\x02" + content[flag + 1 :]
