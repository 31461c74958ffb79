"""Parts of every annotation file: Drawn, an image with its objects as a file has them -> Marked, as
records do.

Boxes become relative to the image: pixels divided by its size, as in TensorFlow's Object Detection
API. ``box_policy`` decides about boxes that are not inside their image. The readers of each format
are in ``formats``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import msgspec
from msgspec import Struct

from imagenet_prep.errors import InputError, UsageError
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
from imagenet_prep.recipes.labels_file import LabelsFault, csv_rows, read_rows
from imagenet_prep.recipes.object_masks import Outline, Polygons, check_outline, outline_text
from imagenet_prep.recipes.object_masks import corners_of as corners_of
from imagenet_prep.recipes.recipe_file import read_texts
from imagenet_prep.storage.files import read_plain, view_of
from imagenet_prep.text import has_doctype

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST = 1 << 26
"""Bytes of an annotation of one image, or of a file of names."""

MOST = 1 << 53
"""The largest number: flags and sizes are whole, and records hold 64 bits."""


_NOTHING: Mapping[str, Any] = MappingProxyType({})
"""The other values of most objects: one for all, since files have millions of them."""


class DrawnObject(Struct, gc=False):
    """An object as a file has it.

    Args:
        label: its class.
        corners: its box, in pixels or relative, as the file has all of an image.
        where: its place, for messages.
        values: its values of other columns.
        rings: its outline, if it is a polygon, in the unit of the corners.
    """

    label: str
    corners: Corners
    where: str
    values: Mapping[str, Any] = _NOTHING
    rings: Polygons | None = None

    @classmethod
    def polygon(cls, label: str, points: Sequence[tuple[float, float]], where: str) -> DrawnObject:
        """An object whose outline is a polygon; its box is that of the outline."""
        if len(points) < 3:
            raise fault(where, f"a polygon of {len(points)} points", "expected at least three")
        ring = [coordinate for point in points for coordinate in point]
        return cls(label, corners_of([ring]), where, rings=[ring])

    @classmethod
    def rectangle(
        cls, label: str, corners: Sequence[tuple[float, float]], where: str
    ) -> DrawnObject:
        """An object whose box has these two opposite corners, in any order."""
        first, second = corners
        return cls(label, corners_of([[*first, *second]]), where)


class Drawn(Struct):
    """An image as a file has it.

    Args:
        name: its name there.
        where: its place, for messages.
        objects: its objects.
        size: its width and height, as annotated; None where the file does not say.
        is_relative: whether its boxes are relative to the image.
        split: the split that it is in; "" where the file does not say.
    """

    name: str
    where: str
    objects: list[DrawnObject] = []
    size: Size | None = None
    is_relative: bool = False
    split: str = ""


class Marked(Struct):
    """An image with its objects, as records have them.

    Args:
        name: its name in the annotation file.
        where: its place, for messages.
        size: as annotated; None where the file does not say.
        boxes: relative to it.
        columns: the values of each column of objects, one per box or per point.
        values: the values of the image itself by column.
        impossible: those of its boxes that are not as they can be.
        outlines: that of each box, as text, in pixels, or relative where ``size`` is None; none
        unless masks are asked. mask_files: the files of outlines.
    """

    name: str
    where: str
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
            self.columns.setdefault(f"boxes.{name}", []).extend(
                value if isinstance(value, list) else [value]
            )


class BoxFile(Struct):
    """The columns and classes of annotation files, and the places of boxes that were ``cut`` by a
    pixel.

    ``policy`` decides about impossible boxes, ``polygons`` is the recipe's key, paths start at
    ``root``. ``captioned`` are the images, by row, that have captions alone: they are not
    annotated. ``unread`` are notes of the parts that no record has. ``has_outlines``: whether
    objects have outlines, read or not.
    """

    policy: BoxesOutside = "refuse"
    polygons: str | None = None
    root: Path = Path()
    columns: tuple[str, ...] = ()
    classes: dict[int, str] = {}
    captioned: dict[int, Marked] = {}
    cut: list[str] = []
    unread: list[str] = []
    has_outlines: bool = False

    def place(self, corners: Corners, image: Marked, where: str) -> PlacedBox:
        """Place a box in its image, and note it if it is cut or impossible;
        raises as ``place_box``.
        """
        placed = place_box(corners, image.size, where, self.policy)
        if placed.is_cut:
            self.cut.append(where)
        if placed.impossible is not None:
            image.impossible.append(placed.impossible)
        return placed

    def add(self, image: Marked, shape: DrawnObject) -> None:
        """Add an object to its image, if its box can be.

        Raises:
            InputError: it is a polygon, and the recipe doesn't say what polygons become.
        """
        if shape.rings and self.polygons is None:
            raise PolygonError(shape.where)
        placed = self.place(shape.corners, image, shape.where)
        if placed.corners is None:
            return
        image.add(placed.corners, text=shape.label, **shape.values)
        self.outline(image, shape.rings, shape.where)

    def add_pixels(
        self, image: Marked, label: str, pixels: NDArray[np.uint8], outline: Outline, where: str
    ) -> None:
        """Add an object by the pixels of its outline: its box is the one around them.

        Raises:
            InputError: no pixel is inside.
        """
        corners = box_of_pixels(pixels)
        if corners is None:
            raise fault(
                where, "an object without a pixel", "expected one that is not 0, which is black"
            )
        placed = self.place(corners, image, where)
        assert placed.corners is not None
        image.add(placed.corners, text=label, area=float(pixels.sum()))
        self.outline(image, outline, where)

    def outline(self, image: Marked, outline: Outline | None, where: str) -> None:
        """Keep the outline of the box that was added last, if masks are asked for.

        Raises:
            OutlineError: it has none.
            InputError: the outline can't be one of this image.
            UsageError: the library that fills polygons is not installed.
        """
        if self.polygons != "masks":
            return
        if not outline:
            raise OutlineError(where)
        if isinstance(outline, list):
            check_pycocotools()
        try:
            check_outline(outline, image.size or (1, 1))
        except ImageError as error:
            raise fault(where, str(error)) from error
        image.outlines.append(outline_text(outline))


class PolygonError(InputError):
    """A polygon, in a recipe that doesn't say what polygons become."""

    def __init__(self, where: str) -> None:
        hint = (
            "write in the recipe's `boxes`: polygons: boxes (the box around each outline), "
            "or masks (its pixels, too)"
        )
        super().__init__(f"{where}: the object is a polygon", "expected a box", hint)


class OutlineError(InputError):
    """An object without an outline, in a recipe that makes masks of outlines."""

    def __init__(self, where: str) -> None:
        hint = (
            "write in the recipe's `boxes`: polygons: boxes (there are no masks then); "
            "or draw its outline"
        )
        super().__init__(
            f"{where}: the object has no outline",
            "expected a polygon of each: polygons is masks",
            hint,
        )


def columns_named(*columns: str) -> tuple[str, ...]:
    """The columns of objects of these names."""
    return tuple(f"boxes.{name}" for name in columns)


# what files hold ----------------------------------------------------------------------------------


def size_of(width: float, height: float, where: str) -> Size:
    """A size in pixels; raises InputError if it can't be one."""
    if min(width, height) < 1:
        raise fault(where, f"a size of {int(width)} x {int(height)}", "expected pixels")
    return int(width), int(height)


def number_in(text: str, where: str) -> float:
    """The finite number of a text; raises InputError if it is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if abs(value) <= MOST:
        return value
    raise fault(where, f"{text[:40]!r}", f"expected a finite number, at most {MOST:,}")


def numbers_in(values: Sequence[Any]) -> list[float]:
    """The numbers of a JSON whose types nobody has checked;
    raises TypeError if one is a text, or true or false.
    """
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        raise TypeError
    return list(values)


def text_in(path: Path) -> str:
    """The text of an annotation file; raises InputError if it is not UTF-8."""
    try:
        return read_plain(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(str(path), f"not UTF-8, at byte {error.start:,}", "expected a text") from error


def xml_in(path: Path) -> ElementTree.Element:
    """The root of an XML file; raises InputError if it is none, or if it declares entities."""
    content, where = read_plain(path, LARGEST), str(path)
    if has_doctype(content):
        raise fault(where, "a document type declaration, which annotations don't have")
    try:
        return ElementTree.fromstring(content)  # noqa: S314 - nothing expands without a DOCTYPE
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise fault(where, f"not well-formed XML: {error}") from error


def json_in(path: Path, kind: Any, tool: str) -> Any:
    """A JSON file as values of a type.

    Raises:
        InputError: it is no JSON, or a key is missing or has another type; the error names it.
    """
    view = view_of(path)
    try:
        return msgspec.json.decode(view[0 : len(view)], type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise json_fault(path, error, f"expected a {tool} file") from error


def json_fault(path: Path, error: Exception, expected: str) -> InputError:
    """The error for a JSON file of another shape."""
    problem, _, key = str(error).partition(" - at ")
    what = f"{path}: {key.strip('`').removeprefix('$.')}" if key else str(path)
    return fault(what, problem.replace("`", ""), expected)


# names of classes ---------------------------------------------------------------------------------


class BoxNames(Struct, frozen=True):
    """The classes of boxes that a recipe names: in order,
    and the name of each by its id in annotation files.
    """

    order: Sequence[str] = ()
    by_id: Mapping[str, str] = {}


def read_data_yaml(path: Path) -> Mapping[str, Any]:
    """The keys of a data.yaml, whose values are texts; raises InputError if it can't be read."""
    try:
        value = read_texts(path, text_in(path))
    except UsageError as error:  # it is no recipe but data
        raise InputError(error.what, error.detail, error.hint) from error
    return value if isinstance(value, dict) else {}


def read_names(path: Path) -> BoxNames:
    """The classes of a file.

    ``names`` of a data.yaml, "" for a number without a name; or a line each; or a CSV of names and
    their numbers from 0, as keras-retinanet has it, or of ids and their names, as Open Images has
    it.

    Raises:
        InputError: it can't be read, or holds none.
    """
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _names_in_csv(path)
    if suffix not in (".yaml", ".yml"):
        return BoxNames([line.strip() for line in text_in(path).splitlines() if line.strip()])
    names = read_data_yaml(path).get("names")
    named = (
        names
        if isinstance(names, dict)
        else dict(enumerate(names))
        if isinstance(names, list)
        else {}
    )
    return BoxNames(_by_number(path, {str(number): name for number, name in named.items()}))


_NUMBER = re.compile(r"0|[1-9]\d{0,4}")


def _by_number(path: Path, named: Mapping[str, Any]) -> list[str]:
    """The names in the order of their numbers."""
    are_numbers = all(map(_NUMBER.fullmatch, named))
    if (
        not named
        or not are_numbers
        or not all(isinstance(name, str) and name for name in named.values())
    ):
        raise fault(str(path), "no `names`", "expected the names of the classes, from 0")
    by_number = {int(number): name for number, name in named.items()}
    return [by_number.get(number, "") for number in range(max(by_number) + 1)]


def _names_in_csv(path: Path) -> BoxNames:
    """The classes of a CSV with a name and its number in each line, or an id and its name."""
    try:
        rows = list(csv_rows(read_plain(path, LARGEST), "csv"))
    except LabelsFault as error:
        raise fault(f"{path}, line {error.line}", error.reason) from error
    wrong = next((line for line, cells in rows if len(cells) != 2), None)
    if wrong is not None or not rows:
        raise fault(
            f"{path}, line {wrong or 1}",
            "not two columns",
            "expected a name and its number, or an id and a name",
        )
    pairs = [(first.strip(), second.strip()) for _, (first, second) in rows]
    if all(_NUMBER.fullmatch(number) for _, number in pairs):
        return BoxNames(_by_number(path, {number: name for name, number in pairs}))
    if pairs[0][0].lower() in ("labelname", "id"):
        del pairs[0]
    return BoxNames(by_id=dict(pairs))


def walk(folder: Path, ending: str) -> Iterator[str]:
    """The names of the files with this ending, in any case, below a folder, sorted; hidden ones are
    left out.

    ``ending`` "" finds files without an ending.
    """
    paths = (
        path
        for path in folder.rglob("*")
        if path.suffix.lower() == ending and (ending or path.is_file())
    )
    names = (path.relative_to(folder).as_posix() for path in paths)
    yield from sorted(name for name in names if not re.search(r"(^|/)\.", name))


def columns_in(
    path: Path, *, header: bool = True
) -> tuple[Sequence[int], dict[str, list[str | None]]]:
    """The line of each row of a CSV, and the cells of each column ("1", "2", ...
    without a header); None: empty.
    """
    view = view_of(path)
    try:
        return read_rows(bytes(view[0 : len(view)]), "csv", header=header)
    except LabelsFault as error:
        raise fault(f"{path}, line {error.line}", error.reason) from error


def rows_in(path: Path, *, header: bool = True) -> Iterator[tuple[str, dict[str, str]]]:
    """The place of each row of a CSV, and its cells by column, as ``columns_in``;
    "" for an empty one.
    """
    lines, cells = columns_in(path, header=header)
    values = zip(*cells.values(), strict=True)
    for line, row in zip(lines, values, strict=False):
        yield (
            f"{path}, line {line}",
            {name: cell or "" for name, cell in zip(cells, row, strict=True)},
        )
