"""Parts of every annotation file: Drawn, an image with its objects as a file has them -> Marked, as
records do.

Boxes become relative to the image: pixels divided by its size, as in TensorFlow's Object Detection
API. ``box_policy`` decides about boxes that are not inside their image. The readers of each format
are in ``formats``; ``annotation_files`` has what they share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.mask_pixels import box_of_pixels, check_pycocotools
from imagenet_prep.recipes.box_policy import (
    BoxesOutside,
    Corners,
    ImpossibleBox,
    PlacedBox,
    Size,
    fault,
    place_box,
)
from imagenet_prep.recipes.object_masks import (
    Outline,
    Polygons,
    check_outline,
    corners_of,
    outline_text,
)
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_NOTHING: Mapping[str, Any] = MappingProxyType({})
"""The other values of most objects: one for all, since files have millions of them."""


class DrawnObject(Struct, gc=False):
    """An object as a file has it.

    Args:
        label: its class.
        corners: its box, in pixels or relative, as the file has all of an image.
        place: the file, and its line or key there, for messages.
        values: its values of other columns.
        rings: its outline, if it is a polygon, in the unit of the corners.
    """

    label: str
    corners: Corners
    place: str
    values: Mapping[str, Any] = _NOTHING
    rings: Polygons | None = None

    @classmethod
    def polygon(cls, label: str, points: Sequence[tuple[float, float]], place: str) -> DrawnObject:
        """An object whose outline is a polygon; its box is that of the outline."""
        if len(points) < 3:
            count = number_of(len(points), "point")
            raise fault(place, f"a polygon of {count}", "expected at least three")
        ring = [coordinate for point in points for coordinate in point]
        return cls(label, corners_of([ring]), place, rings=[ring])

    @classmethod
    def rectangle(
        cls, label: str, corners: Sequence[tuple[float, float]], place: str
    ) -> DrawnObject:
        """An object whose box has these two opposite corners, in any order."""
        first, second = corners
        return cls(label, corners_of([[*first, *second]]), place)


class Drawn(Struct):
    """An image as a file has it.

    Args:
        name: its name there.
        place: the file, and its line or key there, for messages.
        objects: its objects.
        size: its width and height, as annotated; None where the file does not say.
        is_relative: whether its boxes are relative to the image.
        split: the split that it is in; "" where the file does not say.
    """

    name: str
    place: str
    objects: list[DrawnObject] = []
    size: Size | None = None
    is_relative: bool = False
    split: str = ""


class Marked(Struct):
    """An image with its objects, as records have them.

    Args:
        name: its name in the annotation file.
        place: the file, and its line or key there, for messages.
        size: as annotated; None where the file does not say.
        boxes: relative to it.
        columns: the values of each column of objects, one per box or per point.
        values: the values of the image itself by column.
        impossible: those of its boxes that are not as they can be.
        outlines: that of each box, as text, in pixels, or relative where ``size`` is None; none
            unless masks are asked.
        mask_files: the files of outlines.
    """

    name: str
    place: str
    size: Size | None = None
    boxes: list[Corners] = []
    columns: dict[str, list[Any]] = {}
    values: dict[str, Any] = {}
    impossible: list[ImpossibleBox] = []
    outlines: list[str] = []
    mask_files: list[Path] = []

    @property
    def texts(self) -> list[str]:
        """The classes of its boxes."""
        return self.columns.get("boxes.text", [])

    def add(self, box: Corners, **values: Any) -> None:
        """Add an object; several values of one column are as many points."""
        self.boxes.append(box)
        for name, value in values.items():
            column = self.columns.setdefault(f"boxes.{name}", [])
            column.extend(value if isinstance(value, list) else [value])


class BoxFile(Struct):
    """The columns and classes of annotation files, and what becomes of their boxes.

    Args:
        policy: decides about impossible boxes.
        polygons: the recipe's key.
        root: where paths start.
        columns: those that objects have next to box and class.
        classes: the names of classes by number, where the files number them.
        class_files: the first file that names each of these classes, for messages.
        captioned: the images, by row, that have captions alone: they are not annotated.
        cut: the places of boxes that led out of their image by at most a pixel.
        unread: notes of the parts that no record has.
        has_outlines: whether objects have outlines, read or not.
    """

    policy: BoxesOutside = "refuse"
    polygons: str | None = None
    root: Path = Path()
    columns: tuple[str, ...] = ()
    classes: dict[int, str] = {}
    class_files: dict[int, Path] = {}
    captioned: dict[int, Marked] = {}
    cut: list[str] = []
    unread: list[str] = []
    has_outlines: bool = False

    def place(self, corners: Corners, image: Marked, place: str) -> PlacedBox:
        """Place a box in its image, and note it if it is cut or impossible;
        raises as ``place_box``.
        """
        placed = place_box(corners, image.size, place, self.policy)
        if placed.is_cut:
            self.cut.append(place)
        if placed.impossible is not None:
            image.impossible.append(placed.impossible)
        return placed

    def add(self, image: Marked, shape: DrawnObject) -> None:
        """Add an object to its image, if its box can be.

        Raises:
            InputError: it is a polygon, and the recipe doesn't say what polygons become.
        """
        if shape.rings and self.polygons is None:
            raise PolygonError(shape.place)
        placed = self.place(shape.corners, image, shape.place)
        if placed.corners is None:
            return
        image.add(placed.corners, text=shape.label, **shape.values)
        self.outline(image, shape.rings, shape.place)

    def add_pixels(
        self, image: Marked, label: str, pixels: NDArray[np.uint8], outline: Outline, place: str
    ) -> None:
        """Add an object by the pixels of its outline: its box is the one around them.

        Raises:
            InputError: no pixel is inside.
        """
        corners = box_of_pixels(pixels)
        if corners is None:
            raise fault(place, "the object has no pixels", "expected at least one pixel")
        placed = self.place(corners, image, place)
        assert placed.corners is not None
        image.add(placed.corners, text=label, area=float(pixels.sum()))
        self.outline(image, outline, place)

    def outline(self, image: Marked, outline: Outline | None, place: str) -> None:
        """Keep the outline of the box that was added last, if masks are asked for.

        Raises:
            OutlineError: it has none.
            InputError: the outline can't be one of this image.
            UsageError: the library that fills polygons is not installed.
        """
        if self.polygons != "masks":
            return
        if not outline:
            raise OutlineError(place)
        if isinstance(outline, list):
            check_pycocotools()
        try:
            check_outline(outline, image.size or (1, 1))
        except ImageError as error:
            raise fault(place, str(error)) from error
        image.outlines.append(outline_text(outline))


READS_OUTLINES = "`polygons: masks` in `boxes` reads it"
"""The end of a note on outlines that are not read."""


class PolygonError(InputError):
    """A polygon, in a recipe that doesn't say what polygons become."""

    def __init__(
        self, place: str, problem: str = "the object is a polygon", condition: str = ""
    ) -> None:
        hint = (
            f"{condition}write in the recipe's `boxes`: polygons: boxes "
            "(the box around each outline), or masks (its pixels, too)"
        )
        super().__init__(f"{place}: {problem}", "expected a box", hint)


class OutlineError(InputError):
    """An object without an outline, in a recipe that makes masks of outlines."""

    def __init__(self, place: str) -> None:
        hint = (
            "write in the recipe's `boxes`: polygons: boxes (there are no masks then); "
            "or draw its outline"
        )
        expected = "expected an outline of each object: the recipe says `polygons: masks`"
        super().__init__(f"{place}: the object has no outline", expected, hint)


def columns_named(*columns: str) -> tuple[str, ...]:
    """The columns of objects of these names."""
    return tuple(f"boxes.{name}" for name in columns)
