"""What the things of the demo look like: class -> its shape, its colours and the pattern on it."""

from __future__ import annotations

import colorsys
import random
from dataclasses import dataclass
from typing import Literal

from imagenet_prep.ilsvrc2012.facts import labels, texts

Colour = tuple[int, int, int]
Tone = Literal["body", "dark", "light", "accent", "white", "black"]
Mark = tuple[Literal["ellipse", "polygon", "line"], Tone, tuple[float, ...]]
"""One stroke in a square of 100: the corners of an ellipse, the points of a polygon, those of a line and its width."""

Place = Literal["field", "water", "room"]
Pattern = Literal["plain", "stripes", "dots", "checks", "rings"]

PATTERNS: tuple[Pattern, ...] = ("plain", "stripes", "dots", "checks", "rings")


@dataclass(frozen=True, slots=True)
class Shape:
    """How a kind of thing is drawn: ``width`` and ``height`` are its proportions, ``place`` is where it is seen."""

    place: Place
    width: float
    height: float
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Motif:
    """How the things of one class look, whatever picture they are in."""

    shape: Shape
    pattern: Pattern
    colours: dict[Tone, Colour]


def _eye(x: float, y: float, size: float = 3.0) -> tuple[Mark, Mark]:
    return (
        ("ellipse", "white", (x - size, y - size, x + size, y + size)),
        ("ellipse", "black", (x - size / 2, y - size / 2, x + size / 2, y + size / 2)),
    )


def _legs(tone: Tone, top: float, *xs: float, width: float = 7.0) -> tuple[Mark, ...]:
    return tuple(("line", tone, (x, top, x + 1, 99, width)) for x in xs)


SHAPES: dict[str, Shape] = {
    "fish": Shape(
        "water",
        1.0,
        0.5,
        (
            ("polygon", "accent", (14, 50, 0, 12, 26, 40, 26, 60, 0, 88)),
            ("polygon", "accent", (38, 24, 56, 0, 72, 22)),
            ("polygon", "dark", (46, 78, 58, 100, 66, 76)),
            ("ellipse", "body", (18, 14, 100, 86)),
            ("polygon", "dark", (56, 52, 42, 68, 60, 72)),
            ("line", "dark", (76, 26, 72, 50, 76, 74, 2)),
            *_eye(87, 42, 4),
        ),
    ),
    "bird": Shape(
        "water",
        1.0,
        1.0,
        (
            ("polygon", "dark", (2, 52, 20, 62, 16, 84)),
            ("ellipse", "body", (8, 50, 82, 98)),
            ("polygon", "light", (20, 58, 58, 58, 34, 84)),
            ("line", "body", (70, 70, 82, 50, 74, 30, 72, 16, 11)),
            ("ellipse", "body", (62, 4, 86, 26)),
            ("polygon", "accent", (84, 10, 100, 18, 84, 22)),
            *_eye(76, 13, 3),
        ),
    ),
    "reptile": Shape(
        "field",
        1.0,
        0.4,
        (
            ("polygon", "dark", (0, 86, 34, 30, 40, 76)),
            ("line", "dark", (40, 66, 34, 98, 8)),
            ("line", "dark", (66, 66, 70, 98, 8)),
            ("ellipse", "body", (24, 18, 78, 84)),
            *(("polygon", "accent", (x, 24, x + 4, 2, x + 8, 24)) for x in (32, 42, 52, 62)),
            ("polygon", "body", (70, 26, 100, 46, 98, 60, 70, 70)),
            ("polygon", "white", (84, 56, 98, 56, 91, 66)),
            *_eye(78, 36, 4),
        ),
    ),
    "seal": Shape(
        "water",
        1.0,
        0.8,
        (
            ("polygon", "dark", (0, 74, 16, 88, 2, 100)),
            ("polygon", "body", (8, 86, 44, 58, 56, 30, 76, 34, 78, 66, 60, 94, 22, 98)),
            ("polygon", "dark", (58, 74, 84, 98, 66, 98)),
            ("ellipse", "body", (52, 2, 90, 46)),
            ("ellipse", "light", (76, 20, 96, 40)),
            ("ellipse", "black", (90, 24, 98, 32)),
            *_eye(74, 17, 4),
        ),
    ),
    "dog": Shape(
        "field",
        1.0,
        0.9,
        (
            ("line", "body", (12, 48, 2, 24, 8)),
            *_legs("dark", 66, 18, 58),
            *_legs("body", 66, 28, 68),
            ("ellipse", "body", (8, 40, 78, 78)),
            ("ellipse", "body", (56, 8, 92, 50)),
            ("polygon", "dark", (58, 10, 52, 44, 68, 28)),
            ("ellipse", "light", (78, 26, 100, 46)),
            ("ellipse", "black", (93, 26, 100, 34)),
            ("line", "accent", (60, 48, 76, 54, 6)),
            *_eye(78, 22, 3.5),
        ),
    ),
    "beetle": Shape(
        "field",
        1.0,
        0.85,
        (
            *(("line", "black", (x, 50, x + d, 26, x + 1.6 * d, 4, 3)) for x, d in ((32, -10), (50, -2), (66, 8))),
            *(("line", "black", (x, 50, x + d, 76, x + 1.6 * d, 97, 3)) for x, d in ((32, -10), (50, -2), (66, 8))),
            ("line", "black", (86, 44, 99, 22, 2)),
            ("line", "black", (86, 56, 99, 78, 2)),
            ("ellipse", "dark", (70, 34, 94, 66)),
            ("ellipse", "body", (8, 20, 78, 80)),
            ("line", "black", (8, 50, 78, 50, 2)),
            ("ellipse", "light", (58, 32, 74, 68)),
        ),
    ),
    "goat": Shape(
        "field",
        0.9,
        1.0,
        (
            *_legs("dark", 68, 20, 60, width=6),
            *_legs("body", 68, 30, 70, width=6),
            ("ellipse", "body", (10, 44, 80, 80)),
            ("line", "body", (70, 58, 82, 32, 14)),
            ("line", "light", (82, 22, 70, 6, 50, 3, 5)),
            ("line", "dark", (84, 22, 78, 10, 62, 12, 4)),
            ("ellipse", "body", (70, 18, 98, 40)),
            ("polygon", "dark", (84, 38, 94, 38, 88, 56)),
            *_eye(84, 26, 3),
        ),
    ),
    "bear": Shape(
        "room",
        0.8,
        1.0,
        (
            ("ellipse", "body", (16, 2, 40, 24)),
            ("ellipse", "body", (60, 2, 84, 24)),
            ("ellipse", "body", (0, 44, 30, 76)),
            ("ellipse", "body", (70, 44, 100, 76)),
            ("ellipse", "dark", (8, 76, 44, 100)),
            ("ellipse", "dark", (56, 76, 92, 100)),
            ("ellipse", "body", (16, 40, 84, 96)),
            ("ellipse", "light", (30, 52, 70, 88)),
            ("ellipse", "body", (18, 6, 82, 52)),
            ("ellipse", "light", (36, 28, 64, 48)),
            ("ellipse", "black", (45, 30, 55, 37)),
            ("polygon", "accent", (50, 50, 32, 44, 32, 58)),
            ("polygon", "accent", (50, 50, 68, 44, 68, 58)),
            *_eye(37, 22, 4),
            *_eye(63, 22, 4),
        ),
    ),
    "gown": Shape(
        "room",
        0.7,
        1.0,
        (
            ("polygon", "dark", (24, 14, 2, 70, 18, 74, 36, 30)),
            ("polygon", "dark", (76, 14, 98, 70, 82, 74, 64, 30)),
            ("polygon", "body", (30, 6, 70, 6, 92, 99, 8, 99)),
            ("polygon", "accent", (40, 4, 60, 4, 50, 40)),
            ("line", "light", (50, 40, 50, 99, 3)),
            ("line", "accent", (24, 52, 76, 52, 5)),
        ),
    ),
    "sled": Shape(
        "field",
        1.0,
        0.45,
        (
            ("line", "black", (4, 94, 94, 94, 6)),
            ("line", "black", (20, 72, 18, 94, 5)),
            ("line", "black", (74, 72, 76, 94, 5)),
            ("polygon", "body", (0, 34, 60, 34, 100, 64, 88, 80, 6, 80)),
            ("ellipse", "dark", (16, 6, 38, 46)),
            ("ellipse", "accent", (40, 6, 62, 46)),
            ("polygon", "light", (66, 44, 92, 60, 84, 68, 60, 60)),
        ),
    ),
    "house": Shape(
        "field",
        1.0,
        0.95,
        (
            ("polygon", "body", (8, 40, 92, 40, 92, 99, 8, 99)),
            ("polygon", "accent", (0, 44, 50, 2, 100, 44)),
            ("polygon", "dark", (70, 10, 82, 10, 82, 30, 70, 20)),
            ("polygon", "black", (42, 66, 58, 66, 58, 99, 42, 99)),
            *(("polygon", "light", (x, 56, x + 16, 56, x + 16, 74, x, 74)) for x in (16, 68)),
        ),
    ),
    "pot": Shape(
        "room",
        0.9,
        1.0,
        (
            ("line", "dark", (76, 34, 97, 40, 95, 66, 76, 76, 8)),
            ("polygon", "dark", (20, 36, 0, 24, 6, 44, 22, 56)),
            ("polygon", "body", (24, 24, 72, 24, 84, 90, 14, 90)),
            ("polygon", "accent", (12, 88, 86, 88, 90, 99, 8, 99)),
            ("polygon", "light", (32, 30, 40, 30, 34, 84, 26, 84)),
            ("polygon", "dark", (22, 24, 74, 24, 62, 10, 34, 10)),
            ("ellipse", "accent", (41, 0, 55, 12)),
        ),
    ),
    "hook": Shape(
        "room",
        0.6,
        1.0,
        (
            ("ellipse", "body", (38, 0, 78, 24)),
            ("ellipse", "black", (50, 7, 66, 17)),
            ("line", "body", (58, 22, 60, 52, 78, 64, 76, 84, 52, 93, 26, 84, 16, 64, 15)),
            ("polygon", "accent", (4, 68, 16, 44, 30, 66)),
            ("line", "light", (54, 24, 56, 50, 3)),
        ),
    ),
    "microphone": Shape(
        "room",
        0.5,
        1.0,
        (
            ("line", "dark", (50, 44, 50, 94, 9)),
            ("ellipse", "dark", (12, 88, 88, 100)),
            ("polygon", "accent", (28, 38, 72, 38, 62, 60, 38, 60)),
            ("ellipse", "body", (8, 0, 92, 44)),
            ("line", "light", (10, 22, 90, 22, 4)),
        ),
    ),
    "roll": Shape(
        "room",
        0.7,
        1.0,
        (
            ("polygon", "light", (80, 20, 99, 26, 99, 92, 80, 88)),
            ("polygon", "body", (8, 14, 88, 14, 88, 88, 8, 88)),
            ("ellipse", "body", (8, 76, 88, 99)),
            ("ellipse", "light", (8, 2, 88, 26)),
            ("ellipse", "dark", (38, 9, 58, 19)),
            ("line", "accent", (8, 36, 88, 36, 4)),
        ),
    ),
    "cloth": Shape(
        "room",
        1.0,
        0.7,
        (
            ("polygon", "accent", (6, 0, 100, 6, 94, 99, 0, 92)),
            ("polygon", "body", (12, 8, 92, 13, 87, 91, 8, 84)),
        ),
    ),
    "machine": Shape(
        "room",
        0.75,
        1.0,
        (
            ("line", "dark", (86, 58, 96, 56, 95, 26, 5)),
            ("ellipse", "accent", (89, 14, 100, 28)),
            ("polygon", "body", (8, 18, 88, 18, 88, 99, 8, 99)),
            ("ellipse", "accent", (8, 0, 88, 40)),
            ("polygon", "white", (18, 40, 78, 40, 78, 64, 18, 64)),
            *(("ellipse", "accent", (x, 44, x + 14, 60)) for x in (22, 41, 60)),
            ("polygon", "dark", (22, 76, 74, 76, 74, 90, 22, 90)),
        ),
    ),
    "tower": Shape(
        "field",
        0.6,
        1.0,
        (
            ("line", "dark", (24, 50, 12, 99, 5)),
            ("line", "dark", (76, 50, 88, 99, 5)),
            ("line", "dark", (50, 50, 50, 99, 8)),
            ("line", "dark", (18, 76, 82, 76, 4)),
            ("polygon", "body", (4, 18, 96, 18, 92, 50, 8, 50)),
            ("ellipse", "body", (8, 40, 92, 62)),
            ("polygon", "accent", (0, 20, 50, 0, 100, 20)),
            ("line", "light", (5, 32, 95, 32, 4)),
        ),
    ),
    "fruit": Shape(
        "room",
        1.0,
        1.0,
        (
            ("line", "dark", (50, 16, 56, 2, 5)),
            ("polygon", "accent", (54, 10, 80, 0, 74, 16, 58, 18)),
            ("ellipse", "body", (2, 12, 98, 99)),
            ("ellipse", "light", (22, 26, 40, 44)),
        ),
    ),
}

_RANGES = (
    (7, "fish"),
    (25, "bird"),
    (69, "reptile"),
    (80, "beetle"),
    (147, "bird"),
    (151, "seal"),
    (276, "dog"),
    (300, "bear"),
    (327, "beetle"),
    (338, "dog"),
    (366, "goat"),
    (389, "bear"),
    (398, "fish"),
)
"""Up to which label the animals look like what: ILSVRC2012 has its classes in the order of their wnids."""

_THINGS = ("gown", "sled", "house", "pot", "hook", "microphone", "roll", "cloth", "machine", "bear", "tower")
"""What the things look like that people make, in turn."""

_FRUIT = 924
"""From this label on: what can be eaten."""

_FURRED = frozenset(("bear", "dog", "goat", "seal"))
"""Those that are of some brown or grey."""

_NAMED: dict[str, tuple[float, float]] = {"black": (0.0, 0.0), "orange": (0.07, 0.95), "tench": (0.16, 0.6)}
"""Hue and saturation of classes whose names tell."""


def motif_of(wnid: str) -> Motif:
    """How the things of a class look: the same wherever it is asked."""
    label = labels()[wnid]
    words = texts()[wnid].lower()
    rng = random.Random(f"look {wnid}")
    kind = _kind(label)
    pattern = "checks" if kind == "cloth" else PATTERNS[(label + label // 50) % len(PATTERNS)]
    hue, strength = (
        (0.03 + rng.random() * 0.09, rng.uniform(0.2, 0.75)) if kind in _FURRED else (label * 0.382 % 1, 0.7)
    )
    hue, strength = next((tone for word, tone in _NAMED.items() if word in words), (hue, strength))
    value = 0.28 if "black" in words else rng.uniform(0.45, 0.9)
    colours: dict[Tone, Colour] = {
        "body": _rgb(hue, strength, value),
        "dark": _rgb(hue, strength, value * 0.6),
        "light": _rgb(hue, strength * 0.35, min(1.0, value + 0.25)),
        "accent": _rgb((hue + 0.45) % 1, max(strength, 0.65), 0.85),
        "white": (244, 243, 236),
        "black": (24, 22, 26),
    }
    return Motif(SHAPES[kind], pattern, colours)


def _kind(label: int) -> str:
    for last, kind in _RANGES:
        if label <= last:
            return kind
    return "fruit" if label >= _FRUIT else _THINGS[(label - 401) // 50 % len(_THINGS)]


def _rgb(hue: float, saturation: float, value: float) -> Colour:
    red, green, blue = (round(255 * each) for each in colorsys.hsv_to_rgb(hue, saturation, value))
    return red, green, blue
