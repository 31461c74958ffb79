"""place_box: the corners of an annotated box and a policy -> the box of a record, inside its image,
or none.

Three kinds of boxes are impossible: one leads out of its image, one has swapped corners, one is
empty. The recipe's ``boxes_outside`` decides about all of them. A box that leads out by at most a
pixel is only rounded: it is cut.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.tfrecord.inception import EDGES

BoxesOutside = Literal["refuse", "clip", "drop"]
"""The result for an impossible box: an error, its part inside the image, or no box."""

Corners = tuple[float, float, float, float]
"""xmin, ymin, xmax, ymax."""

Size = tuple[int, int]
"""Width and height in pixels."""

NO_PIXELS = 2
"""Relative corners are smaller, even those of a box that leads out of its image;
pixels of a whole file never are.
"""

NAMELESS = "object"
"""The class of objects in files that have no classes."""

SLACK = 1.0
"""Pixels by which a box may lead out of its image: COCO's own boxes do, by rounding."""

RELATIVE_SLACK = 0.002
"""The same for relative boxes, whose image's size their file does not say: a pixel of 500."""


def corners_of_size(x: float, y: float, width: float, height: float) -> Corners:
    """The corners of a box by its upper left one and its size."""
    return x, y, x + width, y + height


def corners_around(x: float, y: float, half_width: float, half_height: float) -> Corners:
    """The corners of the box around a centre."""
    return x - half_width, y - half_height, x + half_width, y + half_height


class ImpossibleBox(Struct, frozen=True):
    """A box that can't be as it is annotated.

    Args:
        place: the file, and its line or key there.
        problem: what is wrong, with its corners.
        expected: what is right.
        outcome: what becomes of it.
    """

    place: str
    problem: str
    expected: str
    outcome: Literal["refused", "clipped", "dropped"]


class PlacedBox(NamedTuple):
    """A box relative to its image, from 0 to 1; ``corners`` are None if records don't have it.

    ``is_cut``: it led out of the image by at most a pixel.
    """

    corners: Corners | None
    is_cut: bool = False
    impossible: ImpossibleBox | None = None


def place_box(corners: Corners, size: Size | None, place: str, policy: BoxesOutside) -> PlacedBox:
    """Place a box in its image.

    Args:
        corners: in pixels of ``size``; if that is None, relative to the image.
        size: of the image as it was annotated.
        place: that of the box, for messages.
        policy: what becomes of an impossible box. An empty one can't be clipped: it is dropped.

    Raises:
        InputError: a number is not finite, whatever the policy.
    """
    width, height = size or (1, 1)
    xmin, ymin, xmax, ymax = corners
    if 0 <= xmin < xmax <= width and 0 <= ymin < ymax <= height:  # true for nearly all
        return PlacedBox((xmin / width, ymin / height, xmax / width, ymax / height))
    if not all(map(math.isfinite, corners)):
        raise fault(place, f"a box of {_shown(corners)}", "expected finite numbers")
    inside = _part_inside(corners, width, height)
    problem = _find_problem(corners, size, has_area=inside is not None)
    if problem is None:
        return PlacedBox(inside, is_cut=True)
    if policy == "refuse":
        return PlacedBox(None, impossible=ImpossibleBox(place, *problem, "refused"))
    if policy == "clip" and inside is not None:
        return PlacedBox(inside, impossible=ImpossibleBox(place, *problem, "clipped"))
    return PlacedBox(None, impossible=ImpossibleBox(place, *problem, "dropped"))


def _part_inside(corners: Corners, width: int, height: int) -> Corners | None:
    """The part of a box that is inside its image, relative to it; None for an empty one."""
    xmin, ymin, xmax, ymax = corners
    left, right = sorted((_clamp(xmin / width), _clamp(xmax / width)))
    top, bottom = sorted((_clamp(ymin / height), _clamp(ymax / height)))
    return (left, top, right, bottom) if left < right and top < bottom else None


def _clamp(coordinate: float) -> float:
    return min(max(coordinate, 0.0), 1.0)


def _find_problem(corners: Corners, size: Size | None, *, has_area: bool) -> tuple[str, str] | None:
    """The problem of a box, and what is right; None for a box at most one pixel outside."""
    xmin, ymin, xmax, ymax = corners
    expected = "expected a box inside the image, with a width and a height"
    if xmax < xmin or ymax < ymin:
        problem = "has swapped corners"
        expected = "expected xmin <= xmax and ymin <= ymax"
    elif _leads_out(corners, size):
        image = "the image" if size is None else f"the image of {size[0]} x {size[1]} pixels"
        problem = f"leads out of {image}"
    elif has_area:
        return None
    elif xmin < xmax and ymin < ymax:
        problem = "has no part inside the image"
    else:
        problem = "is empty"
    return f"a box of {_shown(corners)} {problem}", expected


def _leads_out(corners: Corners, size: Size | None) -> bool:
    """Whether a box leads out of its image by more than a pixel."""
    xmin, ymin, xmax, ymax = corners
    slack = RELATIVE_SLACK if size is None else SLACK
    width, height = size or (1, 1)
    return min(xmin, ymin) < -slack or xmax > width + slack or ymax > height + slack


def _shown(corners: Corners) -> str:
    pairs = zip(EDGES, corners, strict=True)
    return ", ".join(f"{name} {edge:g}" for name, edge in pairs)


CORRECT = "correct it and run the same command again"
DRAW_AGAIN = "draw this object again in such a form, or delete it; then run the same command again"
"""The hint for an object that its tool can draw, and that is no box or polygon."""
DRAW_AND_EXPORT = "draw this object again in such a form, or delete it; then export again"


def fault(place: str, problem: str, expected: str = "", hint: str = CORRECT) -> InputError:
    """The error for a place in an annotation file, or for a row."""
    return InputError(f"{place}: {problem}", expected, hint)


def rotated(place: str, shape: str) -> InputError:
    """The error for a shape that is rotated: records have upright boxes only."""
    hint = "set its rotation to 0, or draw its corners as a polygon; then export again"
    return fault(place, f"the {shape} is rotated", "expected a shape without rotation", hint)
