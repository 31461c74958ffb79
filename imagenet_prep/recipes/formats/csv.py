"""CSV: a row for each box, with the image, its class and four corners, in pixels or relative."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, number_in, size_of
from imagenet_prep.recipes.box_policy import Corners, Size, fault
from imagenet_prep.recipes.formats import Format
from imagenet_prep.recipes.labels_file import LABELS, PATHS, LabelsFault, csv_rows, read_rows
from imagenet_prep.storage.files import view_of
from imagenet_prep.tfrecord.inception import EDGES

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_NO_PIXELS = 2
"""Relative corners are smaller, even those of a box that leads out of its image; pixels of a whole file never are."""

_ROLES: Mapping[str, tuple[str, ...]] = {
    "path": (*PATHS, "image_path", "imageid", "image_id", "file_name"),
    "label": (*LABELS, "labelname", "name", "class_name"),
    "xmin": ("xmin", "x1"),
    "ymin": ("ymin", "y1"),
    "xmax": ("xmax", "x2"),
    "ymax": ("ymax", "y2"),
    "width": ("width", "image_width"),
    "height": ("height", "image_height"),
}
"""The columns of a CSV of boxes, each with the names by which it is found."""


class _Row(NamedTuple):
    """A row: the image, its class, corners as they are (None for an image without boxes), size and place."""

    name: str
    label: str
    corners: Corners | None
    size: Size | None
    where: str


def _read(path: Path, columns: Mapping[str, str]) -> list[Drawn]:
    """The images of a CSV with a header.

    Raises:
        InputError: a column is missing, or a value can't be; or an image has two sizes.
    """
    rows = _rows(path, columns)
    is_relative = _is_relative(rows)
    images: dict[str, Drawn] = {}
    for row in rows:
        image = images.setdefault(row.name, Drawn(row.name, row.where, is_relative=is_relative))
        if not is_relative and row.size is not None:
            image.size = image.size or row.size
            if row.size != image.size:
                was, expected = (f"{width} x {height}" for width, height in (row.size, image.size))
                raise fault(row.where, f"a size of {was}", f"expected {expected}, as before")
        if row.corners is not None:
            image.objects.append(DrawnObject(row.label, row.corners, row.where))
    return list(images.values())


def _rows(path: Path, columns: Mapping[str, str]) -> list[_Row]:
    view = view_of(path)
    try:
        lines, cells = read_rows(bytes(view[0 : len(view)]), "csv")
    except LabelsFault as error:
        raise fault(f"{path}, line {error.line}", error.reason) from error
    at, rows = _columns_at(path, cells, columns), []
    for number, line in enumerate(lines):
        if any(values[number] for values in cells.values()):
            texts = {role: values[number] or "" for role, values in at.items()}
            rows.append(_row(texts, f"{path}, line {line}"))
    return rows


def _row(texts: Mapping[str, str], where: str) -> _Row:
    size = None
    if texts.get("width") and texts.get("height"):
        size = size_of(number_in(texts["width"], where), number_in(texts["height"], where), where)
    edges = [texts[edge] for edge in EDGES]
    if not texts["path"] or (any(edges) and not texts["label"]):
        raise fault(where, "an empty cell", "expected an image, four corners and a class")
    if not any(edges):
        return _Row(texts["path"], texts["label"], None, size, where)
    xmin, ymin, xmax, ymax = (number_in(edge, where) for edge in edges)
    return _Row(texts["path"], texts["label"], (xmin, ymin, xmax, ymax), size, where)


def _columns_at(path: Path, cells: Mapping[str, list[Any]], wanted: Mapping[str, str]) -> dict[str, list[Any]]:
    """The column of each role."""
    if strange := sorted(set(wanted) - set(_ROLES)):
        raise fault(str(path), f"columns: {strange[0]}", f"expected some of {', '.join(_ROLES)}")
    folded = {name.lower(): values for name, values in reversed([*cells.items()])}
    columns = {}
    for role, usual in _ROLES.items():
        names = [wanted[role].lower()] if role in wanted else usual
        name = next((name for name in names if name in folded), None)
        if name is not None:
            columns[role] = folded[name]
        elif role not in ("width", "height") or role in wanted:
            hint = f"write in the recipe: columns: {{{role}: COLUMN}}"
            raise InputError(f"{path}: no column for {role}", f"expected one of {', '.join(cells)}", hint)
    return columns


def _is_relative(rows: Iterable[_Row]) -> bool:
    """Whether the boxes of a CSV are relative: most of them, since a few may lead far out of their image."""
    are_small = [max(row.corners) < _NO_PIXELS for row in rows if row.corners is not None]
    return not are_small or 2 * sum(are_small) > len(are_small)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    columns = keys.columns or {}
    images.mark_named(keys.places, lambda path: _read(path, columns))


def _header(ends: bytes) -> Sequence[str]:
    """The cells of the first line."""
    try:
        _, header = next(csv_rows(ends[: ends.rfind(b"\n") + 1] or ends, "csv"), (0, []))
    except LabelsFault:
        return []
    return [name.strip().lower() for name in header]


def _is_of(_name: str, ends: bytes) -> bool:
    """Whether the header names a column for each corner of a box."""
    names = set(_header(ends))
    return all(not names.isdisjoint(_ROLES[edge]) for edge in EDGES)


FORMAT = Format("csv", "CSV", "csv-boxes", (".csv",), _is_of, _mark, keys=("names", "first_label", "columns"))
