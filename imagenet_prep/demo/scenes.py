"""Pictures for the demo: things of a class, each in its box, in a field, on the water or in a room.

The grain of a photograph is laid over them, so that files have the sizes and the entropy of those of ILSVRC2012.
"""

from __future__ import annotations

import math
import random

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from imagenet_prep.demo.annotations import Corners
from imagenet_prep.demo.photographs import Size, noise
from imagenet_prep.demo.shapes import Colour, Mark, Motif, Pattern, motif_of

_SMALLEST = 24  # pixels: a thing of less can't be told from another


def scene(seed: int, size: Size, wnid: str) -> tuple[Image.Image, tuple[Corners, ...]]:
    """An RGB image of one to three things of a class, and the box of each in pixels: xmin, ymin, xmax, ymax.

    The same for the same arguments.
    """
    rng = random.Random(f"scene {seed} {size} {wnid}")
    things = rng.choice((1, 1, 1, 2, 3))
    motif = motif_of(wnid)
    image, ground = _BACKGROUNDS[motif.shape.place](rng, size)
    image = image.filter(ImageFilter.BoxBlur(size[0] / 250))
    boxes = [_put(rng, image, motif, ground, number, things) for number in range(things)]
    return _grained(rng, image), tuple(boxes)


# things ----------------------------------------------------------------------------------------------------------


def _put(rng: random.Random, image: Image.Image, motif: Motif, ground: float, number: int, things: int) -> Corners:
    """Draw one thing with its shadow into the image; what its box is."""
    width, height = image.size
    most = 0.72 if things == 1 else 0.5 - 0.06 * things
    share = min(width / motif.shape.width, height / motif.shape.height) * rng.uniform(0.8, 1.0) * most
    size = max(_SMALLEST, round(share * motif.shape.width)), max(_SMALLEST, round(share * motif.shape.height))
    thing, alpha = drawn(motif, size, rng.random() < 0.5)
    middle = (number + 0.5) / things + rng.uniform(-0.08, 0.08) / things
    left = min(max(0, round(middle * width - size[0] / 2)), max(0, width - size[0]))
    bottom = height * min(0.97, max(ground + 0.12, rng.uniform(ground + 0.1, 0.95)))
    top = min(max(0, round(bottom - size[1])), max(0, height - size[1]))
    if motif.shape.place != "water":
        _cast_shadow(image, (left, top), size)
    image.paste(thing, (left, top), alpha)
    box = alpha.point([0] * 96 + [255] * 160).getbbox() or (0, 0, *size)
    return left + box[0], top + box[1], min(width, left + box[2]), min(height, top + box[3])


def drawn(motif: Motif, size: Size, mirrored: bool = False) -> tuple[Image.Image, Image.Image]:
    """A thing as an RGB image of its own, lit from above, and the mask that tells where it is."""
    large = size[0] * 2, size[1] * 2  # twice as large, so that its edges are soft in the end
    paint, alpha, body = Image.new("RGB", large, motif.colours["body"]), Image.new("L", large), Image.new("L", large)
    for mark in motif.shape.marks:
        _stroke(ImageDraw.Draw(paint), mark, large, motif.colours[mark[1]])
        _stroke(ImageDraw.Draw(alpha), mark, large, 255)
        _stroke(ImageDraw.Draw(body), mark, large, 255 if mark[1] == "body" else 0)
    if motif.pattern != "plain":
        paint.paste(motif.colours["dark"], None, ImageChops.multiply(body, _pattern(motif.pattern, large)))
    light = Image.radial_gradient("L").resize((large[0] * 2, large[1] * 2), Image.Resampling.BILINEAR)
    corner = round(large[0] * 0.65), round(large[1] * 0.75)
    shade = light.crop((*corner, corner[0] + large[0], corner[1] + large[1])).point(
        [255 - v * 5 // 8 for v in range(256)]
    )
    paint = ImageChops.multiply(paint, Image.merge("RGB", (shade,) * 3))
    found = [each.resize(size, Image.Resampling.BOX) for each in (paint, alpha)]
    if mirrored:
        found = [each.transpose(Image.Transpose.FLIP_LEFT_RIGHT) for each in found]
    return found[0], found[1]


def _stroke(draw: ImageDraw.ImageDraw, mark: Mark, size: Size, colour: Colour | int) -> None:
    kind, _, numbers = mark
    x, y = (size[0] - 1) / 100, (size[1] - 1) / 100
    if kind == "line":
        points = [(px * x, py * y) for px, py in zip(numbers[:-1:2], numbers[1:-1:2], strict=True)]
        thick = max(2, round(numbers[-1] * min(x, y)))
        draw.line(points, colour, thick, joint="curve")
        for px, py in points:  # round ends
            draw.ellipse((px - thick / 2, py - thick / 2, px + thick / 2, py + thick / 2), colour)
        return
    points = [(px * x, py * y) for px, py in zip(numbers[::2], numbers[1::2], strict=True)]
    (draw.ellipse if kind == "ellipse" else draw.polygon)(points, colour)


def _pattern(pattern: Pattern, size: Size) -> Image.Image:
    """A mask that tells where the darker of two colours is."""
    mask = Image.new("L", size)
    draw = ImageDraw.Draw(mask)
    width, height = size
    step = max(8, max(size) // 9)
    across, down = range(-height, width + step, step), range(0, height + step, step)
    if pattern == "stripes":
        for x in across:
            draw.line((x, 0, x + height / 2, height), 200, step // 3)
    elif pattern == "dots":
        for row, y in enumerate(down):
            for x in range(step // 2 * (row % 2), width + step, step):
                draw.ellipse((x - step / 4, y - step / 4, x + step / 4, y + step / 4), 200)
    elif pattern == "checks":
        for row, y in enumerate(down):
            for x in range(step * (row % 2), width + step, 2 * step):
                draw.rectangle((x, y, x + step, y + step), 170)
    elif pattern == "rings":
        for radius in range(step, max(size), step):
            middle = width / 2, height / 2
            box = (middle[0] - radius, middle[1] - radius, middle[0] + radius, middle[1] + radius)
            draw.ellipse(box, None, 200, max(2, step // 4))
    return mask


def _cast_shadow(image: Image.Image, corner: tuple[int, int], size: Size) -> None:
    width, height = size[0], max(6, size[1] // 9)
    mask = Image.new("L", (width + 24, height + 24))
    ImageDraw.Draw(mask).ellipse((12 + width // 12, 12, 12 + width - width // 12, 12 + height), 130)
    mask = mask.filter(ImageFilter.BoxBlur(5))
    image.paste((16, 16, 22), (corner[0] - 12, corner[1] + size[1] - height // 2 - 14), mask)


# what is behind them ---------------------------------------------------------------------------------------------


def _field(rng: random.Random, size: Size) -> tuple[Image.Image, float]:
    """Sky, hills one behind the other, the nearer the darker, and grass that is coarser in front."""
    width, height = size
    warm = rng.random()
    sky = (round(120 + 90 * warm), round(165 + 20 * warm), round(225 - 40 * warm))
    image = _gradient(size, sky, (235, 232, 222))
    horizon = rng.uniform(0.42, 0.6)
    hill = (rng.randint(70, 110), rng.randint(100, 140), rng.randint(70, 120))
    for layer in range(3):
        haze = 0.62 - 0.28 * layer
        colour = _mixed(hill, sky, haze)
        base, swell = height * (horizon - 0.12 + 0.06 * layer), height * rng.uniform(0.03, 0.09)
        ridge = _ridge(rng, width, base, swell)
        ImageDraw.Draw(image).polygon([(0, height), *ridge, (width, height)], colour)
    near, far = (rng.randint(60, 110), rng.randint(95, 140), rng.randint(35, 70)), _mixed(hill, (180, 190, 120), 0.3)
    _lay_ground(rng, image, round(height * horizon), far, near, (1, 3))
    return image, horizon


def _water(rng: random.Random, size: Size) -> tuple[Image.Image, float]:
    """A far shore, and water with waves that are longer in front."""
    width, height = size
    sky = (rng.randint(150, 215), rng.randint(180, 215), rng.randint(205, 240))
    image = _gradient(size, sky, (240, 236, 226))
    horizon = rng.uniform(0.25, 0.4)
    shore = _ridge(rng, width, height * (horizon - 0.03), height * 0.05)
    ImageDraw.Draw(image).polygon([(0, height), *shore, (width, height)], _mixed((70, 95, 80), sky, 0.35))
    near = (rng.randint(14, 40), rng.randint(70, 110), rng.randint(95, 140))
    _lay_ground(rng, image, round(height * horizon), _mixed(near, sky, 0.65), near, (9, 1))
    return image, horizon


def _room(rng: random.Random, size: Size) -> tuple[Image.Image, float]:
    """A wall with the light of a window on it, and a table of wood."""
    width, height = size
    wall = tuple(rng.randint(150, 215) for _ in range(3))
    image = _gradient(size, wall, _mixed(wall, (60, 50, 50), 0.35))  # type: ignore[arg-type]
    light = Image.new("L", size)
    left, across = rng.uniform(-0.1, 0.6) * width, rng.uniform(0.25, 0.45) * width
    slope = rng.uniform(-0.3, 0.3) * width
    ImageDraw.Draw(light).polygon(
        [(left, 0), (left + across, 0), (left + across + slope, height), (left + slope, height)], 90
    )
    image.paste((255, 246, 224), None, light.filter(ImageFilter.BoxBlur(max(2, width // 40))))
    edge = rng.uniform(0.55, 0.7)
    wood = (rng.randint(110, 160), rng.randint(75, 105), rng.randint(45, 70))
    _lay_ground(rng, image, round(height * edge), _mixed(wood, (240, 225, 200), 0.25), wood, (14, 1))
    return image, edge


_BACKGROUNDS = {"field": _field, "water": _water, "room": _room}


def _gradient(size: Size, above: Colour, below: Colour) -> Image.Image:
    return Image.frombytes("RGB", (1, 2), bytes([*above, *below])).resize(size, Image.Resampling.BICUBIC)


def _lay_ground(
    rng: random.Random, image: Image.Image, top: int, far: Colour, near: Colour, grain: tuple[int, int]
) -> None:
    """Ground from row ``top`` down: its grain is ``grain`` pixels wide and high far away, four times that in front."""
    width, height = image.size
    below = max(1, height - top)
    ground = _gradient((width, below), far, near)
    for begin, scale, strength in ((0.0, 1, 0.22), (0.3, 2, 0.26), (0.62, 4, 0.3)):
        first = round(below * begin)
        part = (width, max(1, below - first))
        cells = max(2, part[0] // (grain[0] * scale)), max(2, part[1] // (grain[1] * scale))
        texture = noise(rng, cells).resize(part, Image.Resampling.BILINEAR)
        strip = ground.crop((0, first, width, first + part[1]))
        mixed = ImageChops.overlay(strip, Image.merge("RGB", (texture,) * 3))
        ground.paste(Image.blend(strip, mixed, min(1.0, strength * 2.4)), (0, first))
    image.paste(ground, (0, top))


def _ridge(rng: random.Random, width: int, base: float, swell: float) -> list[tuple[float, float]]:
    """A line of hills from the left edge to the right one."""
    waves = [(rng.uniform(1, 3) * 2**k, rng.uniform(0, 6.3), swell / 2**k) for k in range(4)]
    step = max(2, width // 60)
    return [
        (x, base - sum(high * math.sin(phase + often * 3.14 * x / width) for often, phase, high in waves))
        for x in (*range(0, width, step), width)
    ]


def _mixed(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _grained(rng: random.Random, image: Image.Image) -> Image.Image:
    """The image with the fine texture of a photograph: of light and shadow, and of a sensor."""
    size = image.size
    coarse = noise(rng, (max(1, size[0] // 2), max(1, size[1] // 2))).resize(size, Image.Resampling.BILINEAR)
    grain = Image.blend(noise(rng, size), coarse, 0.4)
    return Image.blend(image, ImageChops.overlay(image, Image.merge("RGB", (grain,) * 3)), rng.uniform(0.2, 0.42))
