"""Rows of a table or of a user's function -> RowImages: what each row says of its image, checked
and joined.

A row names an image; every other value describes it. The names of the values are those of Hugging
Face's imagefolder (https://huggingface.co/docs/datasets/image_dataset, "ImageFolder"): file_name,
and objects with bbox and categories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from imagenet_prep.recipes.box_policy import Size, fault
from imagenet_prep.recipes.label_cells import are_same, label_of_cell
from imagenet_prep.recipes.labels_file import LabelTable
from imagenet_prep.recipes.row_objects import (
    RowObject,
    first_of,
    read_class,
    read_number,
    read_objects,
    shown_cell,
)
from imagenet_prep.text import listed, one_of
from imagenet_prep.tfrecord.inception import EDGES

FILES = ("file_name", "image_file_name", "filename", "path", "file", "image")
"""The columns that may name the image; the first that is there does."""

MASKS = ("mask", "mask_file_name")
BOX_CLASSES = ("class", "category")
"""The columns of the class of a box, where a row is a box."""

IMAGE_IN_RECIPE = (
    "write image: COLUMN under source in the recipe; a CSV or TSV needs a line with column names"
)
"""How a recipe names the column of the images."""


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
        if columns["box_class"] is not None:
            names.update(EDGES, ("width", "height"))
        return cls(**columns, taken=frozenset(names))  # type: ignore[arg-type]


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
        labels: list[Any] | None = None
        if self.roles.label is not None:
            labels = [image.label for image in images]
        column_names = dict.fromkeys(name for image in self.images for name in image.columns)
        columns: dict[str, list[Any]] = {}
        for name in column_names:
            columns[name] = [image.columns.get(name) for image in images]
        lines = range(1, len(names) + 1)
        places = [image.where for image in images]
        return RowTable(list(names), lines, labels, columns, self.is_text, places=places)


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
    distinct_images = [*images.values()]
    if is_text:
        _number_classes(distinct_images)
    return Rows(distinct_images, roles, is_text)


def _number_classes(images: Sequence[RowImage]) -> None:
    """Turn the classes of boxes into numbers, if the texts of all of them are whole numbers."""
    labels = {str(shape.label) for image in images for shape, _ in image.objects}
    if not all(map(_WHOLE.fullmatch, labels)):
        return
    for image in images:
        numbered_objects: list[tuple[RowObject, str]] = []
        for shape, place in image.objects:
            numbered_shape = shape._replace(label=int(shape.label))
            numbered_objects.append((numbered_shape, place))
        image.objects = numbered_objects


def _join(first_image: RowImage, image: RowImage, roles: ColumnRoles) -> None:
    """Add the box of another row of an image; raises InputError unless all else agrees."""
    first_place = first_image.where
    place = image.where
    if not roles.is_box_a_row:
        problem = f"{image.file_name!r} is in {first_place} already"
        raise fault(place, problem, "expected every image once")
    for name in ("split", "label", "mask", "size"):
        first_value = getattr(first_image, name)
        value = getattr(image, name)
        column = getattr(roles, name, None) or name
        _refuse_difference(column, first_value, value, first_place, place)
    for name in {**first_image.columns, **image.columns}:
        first_value = first_image.columns.get(name)
        value = image.columns.get(name)
        _refuse_difference(name, first_value, value, first_place, place)
    first_image.objects += image.objects


def _refuse_difference(
    name: str, first_value: Any, value: Any, first_place: str, place: str
) -> None:
    """Raise InputError if two rows of an image have different values in one column."""
    if not are_same(first_value, value):
        problem = f"{name} is {_in_words(value)}, and {_in_words(first_value)} in {first_place}"
        raise fault(place, problem, "expected one value for all boxes of an image")


def _in_words(value: Any) -> str:
    """A value of a row for messages: a size as width x height, no value as empty."""
    if isinstance(value, tuple):
        width, height = value
        return f"{width} x {height}"
    return "empty" if value in (None, "") else repr(value)


# the columns --------------------------------------------------------------------------------------


def find_roles(
    names: Iterable[str],
    place: str,
    image: str | None,
    label: str | bool | None,
    *,
    is_table: bool = True,
    hint: str = IMAGE_IN_RECIPE,
) -> ColumnRoles:
    """The columns that have a meaning.

    Args:
        names: of all columns.
        place: the table, for messages.
        image: the column that the recipe names for the image.
        label: that for the label; False for none.
        is_table: whether a recipe can name the column of the images; it can't for a function.
        hint: how to name that column.

    Raises:
        InputError: a column is missing.
    """
    columns = dict.fromkeys(names)
    noun = "column" if is_table else "key"
    for column, content, option in ((image, "images", "image"), (label, "labels", "label")):
        if isinstance(column, str) and column not in columns:
            expected = f"expected {one_of(columns)}"
            if not columns:
                expected = f"expected a {noun} of this name, got none"
            hint = f"correct the name of this {noun}, {column}, in the recipe"
            if is_table:
                hint += f" or after --{option}"
            raise fault(place, f"no {noun} {column} for the {content}", expected, hint)
    box_class = _box_class_column(columns, place, noun)
    if label is None:
        usual_names = ("label", "class") if box_class is None else ("label",)
        label = first_of(usual_names, columns)
    image_column = image or _image_column(columns, place, hint, is_table=is_table)
    return ColumnRoles.of(
        image=image_column,
        label=label or None,  # type: ignore[arg-type]
        split=first_of(("split",), columns),
        mask=first_of(MASKS, columns),
        objects=first_of(("objects",), columns),
        box_class=box_class,
    )


def _box_class_column(columns: Mapping[str, Any], place: str, noun: str) -> str | None:
    """The column of the class of a box, where each row is one; None where no row is.

    ``noun`` is "column", or "key" for rows of a function.

    Raises:
        InputError: columns of some corners, or of corners without a class.
    """
    corners = [edge for edge in EDGES if edge in columns]
    if not corners:
        return None
    if len(corners) < len(EDGES):
        missing = [edge for edge in EDGES if edge not in columns]
        problem = f"it has {', '.join(corners)}, and no {', '.join(missing)}"
        expected = f"expected a {noun} for each of {', '.join(EDGES)}, or none of them"
        raise fault(place, problem, expected)
    box_class = first_of(BOX_CLASSES, columns)
    if box_class is None:
        expected = f"expected a {noun} class or category"
        if "label" in columns:
            expected += "; label is the class of the whole image"
        hint = f"rename the {noun} with the class of each box to class, or add such a {noun}"
        raise fault(place, f"no {noun} has the class of each box", expected, hint)
    return box_class


def _image_column(columns: Mapping[str, Any], place: str, hint: str, *, is_table: bool) -> str:
    """The column that names the images, by its usual names; raises InputError if there is none."""
    column = first_of(FILES, columns)
    if column is not None:
        return column
    file_names = [name for name in columns if name.endswith("_file_name") and name not in MASKS]
    if len(file_names) == 1:
        return file_names[0]
    column_names = listed(columns, 20) or "nothing"
    if not is_table:
        expected = f"expected file_name (a path) or image (the bytes of a file), got {column_names}"
        raise fault(place, "the rows have no key for the image", expected)
    expected = f"expected a column file_name, got {column_names}"
    raise fault(place, "no column has a known name for paths of images", expected, hint)


# one row ------------------------------------------------------------------------------------------


def _read_row(row: TableRow, roles: ColumnRoles) -> RowImage:
    """Read what one row says; raises InputError if a value can't be."""
    values = row.values
    place = row.where
    image_cell = values.get(roles.image)
    file_name = _text(image_cell, place, roles.image, "expected the path of an image")
    if file_name is None:
        raise fault(
            place, f"no value for {roles.image}", "expected the path of an image in every row"
        )
    split = _read_split(row, roles)
    mask = size = None
    objects: list[RowObject] = []
    if roles.mask:
        mask = _text(values.get(roles.mask), place, roles.mask, "expected the path of a PNG")
    if roles.objects:
        objects = read_objects(values.get(roles.objects), place)
    if roles.is_box_a_row:
        objects = [*objects, *_box_of(values, roles, place)]
        size = _size_of(values, place)
    label: Any = None
    if roles.label:
        label = label_of_cell(values.get(roles.label))
    placed_objects = [(shape, place) for shape in objects]
    columns = {name: cell for name, cell in values.items() if name not in roles.taken}
    return RowImage(
        file_name,
        place,
        row.folder,
        split,
        label,
        mask,
        size,
        placed_objects,
        columns,
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
        raise fault(place, f"{name} is {shown_cell(value)}", expected)
    return value


def _size_of(values: Mapping[str, Any], place: str) -> Size | None:
    """The size of the image, if the row has it."""
    width_cell = values.get("width")
    height_cell = values.get("height")
    if width_cell is None or height_cell is None:
        return None
    width = read_number(width_cell, place, "width")
    height = read_number(height_cell, place, "height")
    if min(width, height) < 1:
        problem = f"width x height of the image is {width:g} x {height:g}"
        raise fault(place, problem, "expected at least 1 x 1 pixels")
    return int(width), int(height)


def _box_of(values: Mapping[str, Any], roles: ColumnRoles, place: str) -> list[RowObject]:
    """The box of a row; none where all its cells are empty."""
    edges = [values.get(edge) for edge in EDGES]
    label = values.get(str(roles.box_class))
    if all(edge is None for edge in edges):
        return []
    if label is None or None in edges:
        expected = "expected four corners and a class; or four empty corners, for no box"
        cells = dict(zip((*EDGES, str(roles.box_class)), (*edges, label), strict=True))
        empty_names = [name for name, cell in cells.items() if cell is None]
        is_empty = "is empty" if len(empty_names) == 1 else "are empty"
        raise fault(place, f"{', '.join(empty_names)} {is_empty}", expected)
    xmin, ymin, xmax, ymax = (
        read_number(edge, place, name) for edge, name in zip(edges, EDGES, strict=True)
    )
    class_of_box = read_class(label, place)
    return [RowObject(class_of_box, (xmin, ymin, xmax, ymax))]
