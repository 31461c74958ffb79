"""Rows of a table or of a user's function -> RowImages: what each row says of its image, checked
and joined.

A row names an image; every other value describes it. The names of the values are those of Hugging
Face's imagefolder (https://huggingface.co/docs/datasets/image_dataset, "ImageFolder"): file_name,
and objects with bbox and categories.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from imagenet_prep.recipes.box_policy import Corners, Size, corners_of_size, fault
from imagenet_prep.recipes.labels_file import LabelTable
from imagenet_prep.text import listed
from imagenet_prep.tfrecord.inception import EDGES

FILES = ("file_name", "image_file_name", "filename", "path", "file", "image")
"""The columns that may name the image; the first that is there does."""

MASKS = ("mask", "mask_file_name")
BOX_CLASSES = ("class", "category")
"""The columns of the class of a box, where a row is a box."""

_BBOXES = ("bbox", "bboxes")
_CATEGORIES = ("categories", "category")

_WHOLE = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)


class TableRow(NamedTuple):
    """A row as it is written.

    Args:
        values: by column; None for no value.
        where: its place, for messages.
        folder: where its paths start, as text.
        split: that of its whole table; "" if the table is of no split.
        archive: the sealed file that holds the image, which the row's name is a member of.
    """

    values: Mapping[str, Any]
    where: str
    folder: str
    split: str = ""
    archive: Path | None = None


class RowObject(NamedTuple):
    """An object as a row has it: its class, a text or a number, and its corners in pixels."""

    label: str | int
    corners: Corners


class RowImage(Struct):
    """An image with all that its rows say of it.

    Args:
        file_name: as it is written.
        where: the place of its first row.
        folder: where its paths start, as text.
        split: "" for none.
        label: None for none.
        mask: the path of its mask; None for none.
        size: width and height that its row has; None if its row has none.
        objects: with the place of each.
        columns: all other values.
        archive: the sealed file that holds the image.
    """

    file_name: str
    where: str
    folder: str
    split: str
    label: Any
    mask: str | None
    size: Size | None
    objects: list[tuple[RowObject, str]]
    columns: dict[str, Any]
    archive: Path | None = None


class ColumnRoles(Struct, frozen=True):
    """The columns that have a meaning, by name; None where no column has it.

    ``is_box_a_row``: each row has one box, in columns of its corners and its class. ``taken`` are
    the names of all.
    """

    image: str
    label: str | None = None
    split: str | None = None
    mask: str | None = None
    objects: str | None = None
    box_class: str | None = None
    taken: frozenset[str] = frozenset()

    @property
    def is_box_a_row(self) -> bool:
        """Whether each row is a box."""
        return self.box_class is not None

    @classmethod
    def of(cls, **columns: str | None) -> ColumnRoles:
        """These columns; a box in a row takes those of its corners and of the size of its image."""
        names = {name for name in columns.values() if name is not None}
        boxes = {*EDGES, "width", "height"} if columns["box_class"] is not None else set()
        return cls(**columns, taken=frozenset(names | boxes))  # type: ignore[arg-type]


class RowTable(LabelTable, frozen=True, kw_only=True):
    """The labels and columns of rows; ``places`` has the place of each, for messages."""

    places: Sequence[str] = ()

    def place(self, path: object, line: int) -> str:
        """The place of the row of this number, from 1."""
        return self.places[line - 1]


class Rows(Struct, frozen=True):
    """The images of all rows, in the order of the rows, and the columns that have a meaning."""

    images: list[RowImage]
    roles: ColumnRoles
    is_text: bool

    def table_of(self, images: Sequence[RowImage], names: Sequence[str]) -> RowTable:
        """The labels and other columns of the images, in an order of their own,
        under their ``names`` in a listing.
        """
        columns = dict.fromkeys(name for image in self.images for name in image.columns)
        return RowTable(
            list(names),
            range(1, len(names) + 1),
            [image.label for image in images] if self.roles.label is not None else None,
            {name: [image.columns.get(name) for image in images] for name in columns},
            self.is_text,
            places=[image.where for image in images],
        )


def gather(rows: Sequence[TableRow], roles: ColumnRoles, *, is_text: bool) -> Rows:
    """Join what rows say of each image; rows of one image are joined where each of them is a box.

    Raises:
        InputError: a value can't be, or an image has two rows.
    """
    images: dict[tuple[str, str], RowImage] = {}
    for row in rows:
        image = _read_row(row, roles)
        first_image = images.setdefault((image.folder, image.file_name), image)
        if first_image is not image:
            _join(first_image, image, roles)
    if is_text:
        _number_classes([*images.values()])
    return Rows([*images.values()], roles, is_text)


def _number_classes(images: Sequence[RowImage]) -> None:
    """Turn the classes of boxes into numbers, if the texts of all of them are whole numbers."""
    labels = {str(shape.label) for image in images for shape, _ in image.objects}
    if not all(_WHOLE.fullmatch(label) for label in labels):
        return
    for image in images:
        image.objects = [
            (shape._replace(label=int(shape.label)), place) for shape, place in image.objects
        ]


def _join(first_image: RowImage, image: RowImage, roles: ColumnRoles) -> None:
    """Add the box of another row of an image; raises InputError unless all else agrees."""
    first_place, place = first_image.where, image.where
    if not roles.is_box_a_row:
        raise fault(
            place,
            f"{image.file_name!r} is in {first_place} already",
            "expected every image once",
        )
    for name in ("split", "label", "mask", "size"):
        first_value, value = getattr(first_image, name), getattr(image, name)
        _refuse_difference(name, first_value, value, first_place, place)
    for name in {**first_image.columns, **image.columns}:
        first_value, value = first_image.columns.get(name), image.columns.get(name)
        _refuse_difference(name, first_value, value, first_place, place)
    first_image.objects += image.objects


def _refuse_difference(
    name: str, first_value: Any, value: Any, first_place: str, place: str
) -> None:
    """Raise InputError if two rows of an image have different values in one column."""
    if first_value != value:
        raise fault(
            place,
            f"{name} is {value!r}, and {first_value!r} in {first_place}",
            "expected one value for all boxes of an image",
        )


# the columns --------------------------------------------------------------------------------------


def find_roles(
    names: Iterable[str], place: str, image: str | None, label: str | bool | None
) -> ColumnRoles:
    """The columns that have a meaning.

    Args:
        names: of all columns.
        place: the table, for messages.
        image: the column that the recipe names for the image.
        label: that for the label; False for none.

    Raises:
        InputError: a column is missing.
    """
    columns = dict.fromkeys(names)
    for column, content in ((image, "images"), (label, "labels")):
        if isinstance(column, str) and column not in columns:
            expected = f"expected one of {', '.join(columns)}"
            raise fault(place, f"no column {column} of {content}", expected)
    box_class = _box_class_column(columns, place)
    if label is None:
        usual_names = ("label", "class") if box_class is None else ("label",)
        label = _first_of(usual_names, columns)
    return ColumnRoles.of(
        image=image or _image_column(columns, place),
        label=label or None,  # type: ignore[arg-type]
        split="split" if "split" in columns else None,
        mask=_first_of(MASKS, columns),
        objects="objects" if "objects" in columns else None,
        box_class=box_class,
    )


def _box_class_column(columns: Mapping[str, Any], place: str) -> str | None:
    """The column of the class of a box, where each row is one; None where no row is.

    Raises:
        InputError: columns of some corners, or of corners without a class.
    """
    corners = [edge for edge in EDGES if edge in columns]
    if not corners:
        return None
    if len(corners) < len(EDGES):
        raise fault(
            place,
            f"columns {', '.join(corners)} alone",
            f"expected all of {', '.join(EDGES)}, or none",
        )
    box_class = _first_of(BOX_CLASSES, columns)
    if box_class is None:
        raise fault(
            place, "boxes without a class", "expected a column class with the class of each box"
        )
    return box_class


def _first_of(names: Sequence[str], columns: Mapping[str, Any]) -> str | None:
    """The first of these names that is a column."""
    return next((name for name in names if name in columns), None)


def _image_column(columns: Mapping[str, Any], place: str) -> str:
    """The column that names the images, by its usual names; raises InputError if there is none."""
    column = _first_of(FILES, columns)
    if column is not None:
        return column
    file_names = [name for name in columns if name.endswith("_file_name") and name not in MASKS]
    if len(file_names) == 1:
        return file_names[0]
    raise fault(
        place,
        "no column names the images",
        f"expected file_name, got {', '.join(columns) or 'nothing'}",
        "write in the recipe: source: {..., image: COLUMN}",
    )


# one row ------------------------------------------------------------------------------------------


def _read_row(row: TableRow, roles: ColumnRoles) -> RowImage:
    """Read what one row says; raises InputError if a value can't be."""
    values, place = row.values, row.where
    file_name = _text(values.get(roles.image), place, roles.image, "expected the path of an image")
    if file_name is None:
        raise fault(place, f"no {roles.image}", "expected the path of an image in every row")
    split = _read_split(row, roles)
    mask = size = None
    objects: list[RowObject] = []
    if roles.mask:
        mask = _text(values.get(roles.mask), place, "mask", "expected the path of a PNG")
    if roles.objects:
        objects = read_objects(values.get(roles.objects), place)
    if roles.is_box_a_row:
        objects = [*objects, *_box_of(values, roles, place)]
        size = _size_of(values, place)
    return RowImage(
        file_name,
        place,
        row.folder,
        split,
        values.get(roles.label) if roles.label else None,
        mask,
        size,
        [(shape, place) for shape in objects],
        {name: value for name, value in values.items() if name not in roles.taken},
        row.archive,
    )


def _read_split(row: TableRow, roles: ColumnRoles) -> str:
    """The split that the recipe names for the table, or that the row has; "" for none."""
    split = None
    if roles.split:
        value = row.values.get(roles.split)
        split = _text(value, row.where, "split", "expected the name of a split")
    if row.split and split and split != row.split:
        expected = f"expected {row.split!r}, as the recipe says of this table"
        raise fault(row.where, f"split is {split!r}", expected)
    return row.split or split or ""


def _text(value: Any, place: str, name: str | None, expected: str) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise fault(place, f"{name} is {_shown(value)}", expected)
    return value


def _shown(value: Any) -> str:
    return f"{str(value)[:60]!r} ({type(value).__name__})"


def _size_of(values: Mapping[str, Any], place: str) -> Size | None:
    """The size of the image, if the row has it."""
    if values.get("width") is None or values.get("height") is None:
        return None
    width, height = (_number(values[side], place, side) for side in ("width", "height"))
    if min(width, height) < 1:
        raise fault(place, f"a size of {width:g} x {height:g}", "expected pixels")
    return int(width), int(height)


def _number(value: Any, place: str, name: str) -> float:
    """A finite number; the cells of a CSV are texts."""
    number: float = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not is_number or not math.isfinite(number):
        raise fault(place, f"{name} is {_shown(value)}", "expected a finite number")
    return number


def _box_of(values: Mapping[str, Any], roles: ColumnRoles, place: str) -> list[RowObject]:
    """The box of a row; none where all its cells are empty."""
    edges = [values.get(edge) for edge in EDGES]
    label = values.get(str(roles.box_class))
    if all(edge is None for edge in edges):
        return []
    if label is None or None in edges:
        raise fault(
            place, "an empty cell", "expected four corners and a class, or five empty cells: no box"
        )
    xmin, ymin, xmax, ymax = (
        _number(edge, place, name) for edge, name in zip(edges, EDGES, strict=True)
    )
    return [RowObject(_class_of(label, place), (xmin, ymin, xmax, ymax))]


def _class_of(value: Any, place: str) -> str | int:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise fault(
            place, f"the class of a box is {_shown(value)}", "expected a text or a whole number"
        )
    if isinstance(value, int) and not 0 <= value < 1 << 62:
        raise fault(place, f"the class of a box is {value}", "expected 0 or more")
    return value


def read_objects(value: Any, place: str) -> list[RowObject]:
    """The objects of a row: lists of boxes and of classes, or a list of objects;
    a CSV has them as JSON.
    """
    if value is None:
        return []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise fault(
                place, f"objects is not JSON: {error}", '{"bbox": [[x, y, width, height]], ...}'
            ) from error
    if isinstance(value, list):
        value = _as_lists(value, place)
    expected = "expected {bbox: [[x, y, width, height], ...], categories: [...]}"
    if not isinstance(value, dict):
        raise fault(place, f"objects is {_shown(value)}", expected)
    boxes, labels = _value_at(_BBOXES, value), _value_at(_CATEGORIES, value)
    if not isinstance(boxes, list) or not isinstance(labels, list):
        raise fault(place, f"objects has {listed(map(str, value)) or 'nothing'}", expected)
    if len(boxes) != len(labels):
        raise fault(
            place,
            f"{len(boxes):,} boxes and {len(labels):,} classes",
            "expected one class for each box",
        )
    return [_object_of(box, label, place) for box, label in zip(boxes, labels, strict=True)]


def _value_at(names: Sequence[str], mapping: Mapping[str, Any]) -> Any:
    """The value at the first of these names that is a key; None if none is."""
    return mapping.get(_first_of(names, mapping) or "")


def _as_lists(objects: list[Any], place: str) -> dict[str, list[Any]]:
    """A list of objects as lists of their values."""
    boxes: list[Any] = []
    labels: list[Any] = []
    for shape in objects:
        if not isinstance(shape, dict):
            raise fault(
                place,
                f"an object is {_shown(shape)}",
                "expected {bbox: [x, y, width, height], category: ...}",
            )
        boxes.append(_value_at(_BBOXES, shape))
        labels.append(_value_at(_CATEGORIES, shape))
    return {"bbox": boxes, "category": labels}


def _object_of(box: Any, label: Any, place: str) -> RowObject:
    """An object of x, y, width and height in pixels."""
    if not isinstance(box, list) or len(box) != len(EDGES):
        raise fault(place, f"a bbox of {_shown(box)}", "expected x, y, width, height in pixels")
    x, y, width, height = (_number(value, place, "bbox") for value in box)
    return RowObject(_class_of(label, place), corners_of_size(x, y, width, height))
