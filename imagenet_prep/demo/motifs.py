"""motif_of, draw_thing: a class of ILSVRC2012 -> the look of its things, and a picture of one.

``shapes.json`` describes the looks.
"""

from __future__ import annotations

import colorsys
import functools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, ImageChops, ImageDraw

from imagenet_prep.ilsvrc2012.facts import labels, texts

Size = tuple[int, int]
Colour = tuple[int, int, int]

_FIRST_THING = 401
"""The label that the list of man-made things counts from."""

_LABELS_PER_SHAPE = 50
"""Man-made things with labels next to each other, of one shape."""


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
    hue, saturation = _body_tone(rng, label, shape, words)
    brightness = 0.28
    if "black" not in words:
        brightness = rng.uniform(0.45, 0.9)
    tones = {
        "body": (hue, saturation, brightness),
        "dark": (hue, saturation, brightness * 0.6),
        "light": (hue, saturation * 0.35, min(1.0, brightness + 0.25)),
        "accent": ((hue + 0.45) % 1, max(saturation, 0.65), 0.85),
        "white": (0.15, 0.03, 0.96),
        "black": (0.7, 0.15, 0.1),
    }
    return Motif(shape, {name: _rgb(*tone) for name, tone in tones.items()})


def _shape_of(label: int) -> str:
    """The key of the shape of a class: an animal, a man-made thing, or something edible."""
    table = shapes()
    for last_label, animal in table["animals"]:
        if label <= last_label:
            return str(animal)
    if label >= table["fruit"]:
        return "fruit"
    things = table["things"]
    group = (label - _FIRST_THING) // _LABELS_PER_SHAPE
    return str(things[group % len(things)])


def _body_tone(rng: random.Random, label: int, shape: str, words: str) -> tuple[float, float]:
    """The hue and the saturation of a class: those of a word in its name come first."""
    table = shapes()
    hue = label * 0.382 % 1
    saturation = 0.7
    if shape in table["furred"]:
        hue = rng.uniform(0.03, 0.12)
        saturation = rng.uniform(0.2, 0.75)
    for word, (named_hue, named_saturation) in table["named"].items():
        if word in words:
            return named_hue, named_saturation
    return hue, saturation


def _rgb(hue: float, saturation: float, brightness: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, brightness)
    return round(255 * red), round(255 * green), round(255 * blue)


def draw_thing(motif: Motif, size: Size) -> tuple[Image.Image, Image.Image]:
    """Draw a thing as its own RGB image, lit from above, with the mask of its shape."""
    width, height = size
    large = (width * 2, height * 2)  # drawn twice as large, for soft edges
    thing = Image.new("RGB", large)
    mask = Image.new("L", large)
    brush = ImageDraw.Draw(thing)
    mask_brush = ImageDraw.Draw(mask)
    shape = shapes()["shapes"][motif.shape]
    for mark, tone, numbers in shape["marks"]:
        _draw_mark(brush, mark, numbers, large, motif.colours[tone])
        _draw_mark(mask_brush, mark, numbers, large, 255)
    thing = _light_from_above(thing)
    small_thing = thing.resize(size, Image.Resampling.BOX)
    small_mask = mask.resize(size, Image.Resampling.BOX)
    return small_thing, small_mask


def _light_from_above(image: Image.Image) -> Image.Image:
    """Darken an RGB image towards its lower edge."""
    width, height = image.size
    darker_below = [255 - level * 5 // 8 for level in range(256)]
    column = Image.linear_gradient("L").crop((0, 0, 1, 256)).resize((1, height))
    shade = column.point(darker_below).convert("RGB")
    return ImageChops.multiply(image, shade.resize((width, height), Image.Resampling.NEAREST))


def _draw_mark(
    brush: ImageDraw.ImageDraw,
    mark: str,
    numbers: Sequence[float],
    size: Size,
    colour: Colour | int,
) -> None:
    """Draw an ellipse, a polygon or a line; see ``shapes``."""
    width, height = size
    x_scale = (width - 1) / 100
    y_scale = (height - 1) / 100
    coordinates = zip(numbers[::2], numbers[1::2], strict=False)
    points = [(x * x_scale, y * y_scale) for x, y in coordinates]
    if mark == "ellipse":
        brush.ellipse(points, colour)
    elif mark == "line":
        thickness = round(numbers[-1] * min(x_scale, y_scale))
        _draw_line(brush, points, max(2, thickness), colour)
    else:
        brush.polygon(points, colour)


def _draw_line(
    brush: ImageDraw.ImageDraw,
    points: Sequence[tuple[float, float]],
    thickness: int,
    colour: Colour | int,
) -> None:
    """Draw a line through points, with round ends."""
    brush.line(points, colour, thickness, joint="curve")
    radius = thickness / 2
    for x, y in points:
        corners = (x - radius, y - radius, x + radius, y + radius)
        brush.ellipse(corners, colour)
