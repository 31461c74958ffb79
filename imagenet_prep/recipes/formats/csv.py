"""CSV: a row for each box, with the image, its class and four corners, in pixels or relative."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import (
    Drawn,
    DrawnObject,
    number_in,
    read_names,
    rows_in,
    size_of,
)
from imagenet_prep.recipes.box_policy import (
    NAMELESS,
    NO_PIXELS,
    Corners,
    Size,
    corners_of_size,
    fault,
)
from imagenet_prep.recipes.formats import NUMBERING, AnnotatedFolder, Format, Proposed
from imagenet_prep.recipes.labels_file import LABELS, PATHS, LabelsFault, csv_rows
from imagenet_prep.recipes.splits import stem_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_ROLES: Mapping[str, tuple[str, ...]] = {
    "path": (*PATHS, "image_path", "imageid", "image_id", "file_name", "image_name"),
    "label": (*LABELS, "labelname", "name", "class_name"),
    "xmin": ("xmin", "x1", "x_min"),
    "ymin": ("ymin", "y1", "y_min"),
    "xmax": ("xmax", "x2", "x_max"),
    "ymax": ("ymax", "y2", "y_max"),
    "width": ("width", "image_width"),
    "height": ("height", "image_height"),
}
"""The columns of a CSV of boxes, each with the names by which it is found."""

_BY_SIZE: Mapping[str, tuple[str, ...]] = {
    "path": _ROLES["path"],
    "label": _ROLES["label"],
    "xmin": ("x", "bbox_x"),
    "ymin": ("y", "bbox_y"),
    "box_width": ("w", "width", "bbox_width"),
    "box_height": ("h", "height", "bbox_height"),
}
"""The same for boxes by a corner and their size."""

_IN_A_CELL: Mapping[str, tuple[str, ...]] = {
    "path": _ROLES["path"],
    "label": _ROLES["label"],
    "boxes": ("boxesstring", "bbox", "bboxes"),
}
"""The same for boxes in one cell: "[x, y, width, height]", or "x1 y1 x2 y2;x1 y1 x2 y2"."""

_NO_HEADER = {"path": "1", "xmin": "2", "ymin": "3", "xmax": "4", "ymax": "5", "label": "6"}
"""The columns of a CSV without a header, as keras-retinanet has them."""


class _TableReader(Struct, frozen=True):
    """How a CSV is read: the columns that the recipe names, whether it has a header,
    and the class of all boxes.
    """

    columns: Mapping[str, str]
    header: bool
    only_class: str

    def read(self, path: Path) -> list[Drawn]:
        """The images of a CSV.

        Raises:
            InputError: a column is missing, or a value can't be; or an image has two sizes.
        """
        rows = self._rows(path)
        is_relative = _is_relative(rows)
        images: dict[str, Drawn] = {}
        for row in rows:
            image = images.get(row.name)
            if image is None:
                image = images[row.name] = Drawn(row.name, row.where, is_relative=is_relative)
            if not is_relative and row.size is not None:
                image.size = image.size or row.size
                if row.size != image.size:
                    was, expected = (
                        f"{width} x {height}" for width, height in (row.size, image.size)
                    )
                    raise fault(row.where, f"a size of {was}", f"expected {expected}, as before")
            if row.corners is not None:
                image.objects.append(DrawnObject(row.label, row.corners, row.where))
        return list(images.values())

    def _rows(self, path: Path) -> list[_Row]:
        rows: list[_Row] = []
        names: Mapping[str, str] = {}
        for where, values in rows_in(path, header=self.header):
            names = names or self._columns(path, [*values])
            if any(values.values()):
                texts = {
                    "label": self.only_class,
                    **{role: values[name] for role, name in names.items()},
                }
                rows += _several(texts, where) if "boxes" in texts else [_row(texts, where)]
        return rows

    def _columns(self, path: Path, header: Sequence[str]) -> dict[str, str]:
        """The column of each role."""
        if strange := sorted(set(self.columns) - {*_ROLES, *_IN_A_CELL}):
            raise fault(
                str(path), f"columns: {strange[0]}", f"expected some of {', '.join(_ROLES)}, boxes"
            )
        folded = {name.lower(): name for name in reversed(header)}
        wanted = self.columns if self.header else {**_NO_HEADER, **self.columns}
        columns = {}
        for role, usual in _roles(folded).items():
            names = [wanted[role].lower()] if role in wanted else usual
            name = next((folded[name] for name in names if name in folded), None)
            if name is not None:
                columns[role] = name
            elif role in wanted or not (
                role in ("width", "height") or (role == "label" and self.only_class)
            ):
                hint = f"write in the recipe: columns: {{{role}: COLUMN}}"
                raise InputError(
                    f"{path}: no column for {role}", f"expected one of {', '.join(header)}", hint
                )
        return columns


class _Row(NamedTuple):
    """A row: the image, its class, corners as they are (None for an image without boxes),
    size and place.
    """

    name: str
    label: str
    corners: Corners | None
    size: Size | None
    where: str


def _roles(names: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """The roles of the columns of a table: a corner and a size only if it has no other corner."""
    has_corner = any(name in names for name in _ROLES["xmax"])
    has_size = all(
        not set(_BY_SIZE[role]).isdisjoint(names)
        for role in _BY_SIZE
        if role not in ("path", "label")
    )
    if not has_corner and not set(_IN_A_CELL["boxes"]).isdisjoint(names):
        return _IN_A_CELL
    return _BY_SIZE if has_size and not has_corner else _ROLES


def _several(texts: Mapping[str, str], where: str) -> list[_Row]:
    """The rows of a cell with boxes; one without a box if it is empty."""
    cell = texts["boxes"].strip()
    if cell.lower() in ("", "no_box", "[]"):
        return [_Row(texts["path"], texts["label"], None, None, where)]
    sides = (
        "xmin",
        "ymin",
        *(("box_width", "box_height") if cell.startswith("[") else ("xmax", "ymax")),
    )
    rows = []
    for part in cell.split(";"):
        words = part.strip("[] ").replace(",", " ").split()
        if len(words) != len(sides):
            raise fault(
                where, f"boxes {cell[:40]!r}", "expected [x, y, width, height], or x1 y1 x2 y2;..."
            )
        rows.append(_row({**texts, **dict(zip(sides, words, strict=True))}, where))
    return rows


def _row(texts: Mapping[str, str], where: str) -> _Row:
    size = None
    if texts.get("width") and texts.get("height"):
        size = size_of(number_in(texts["width"], where), number_in(texts["height"], where), where)
    ends = ("box_width", "box_height") if "box_width" in texts else ("xmax", "ymax")
    edges = [texts[name] for name in ("xmin", "ymin", *ends)]
    if not texts["path"] or (any(edges) and not texts["label"]):
        raise fault(where, "an empty cell", "expected an image, four corners and a class")
    if not any(edges):
        return _Row(texts["path"], texts["label"], None, size, where)
    first, second, third, fourth = (number_in(edge, where) for edge in edges)
    corners = first, second, third, fourth
    if "box_width" in texts:
        corners = corners_of_size(*corners)
    return _Row(texts["path"], texts["label"], corners, size, where)


def _is_relative(rows: Iterable[_Row]) -> bool:
    """Whether the boxes of a CSV are relative:
    most of them, since a few may lead far out of their image.
    """
    are_small = [max(row.corners) < NO_PIXELS for row in rows if row.corners is not None]
    return not are_small or 2 * sum(are_small) > len(are_small)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    names = images.class_names(keys).order
    only_class = names[0] if len(names) == 1 else ""
    images.mark_named(keys.places, _TableReader(keys.columns or {}, keys.header, only_class).read)


# init ---------------------------------------------------------------------------------------------


def _rows_of(path: Path) -> list[list[str]]:
    """The first rows of a file, which may have gigabytes."""
    with path.open("rb") as file:
        return _first_rows(file.read(_PROBED_BYTES))


_PROBED_BYTES = 1 << 20


def _first_rows(content: bytes) -> list[list[str]]:
    """The cells of the first lines, without blanks around them."""
    whole = content[: content.rfind(b"\n") + 1] or content
    try:
        return [
            [cell.strip() for cell in cells] for _, cells in islice(csv_rows(whole, "csv"), _PROBED)
        ]
    except LabelsFault:
        return []


_PROBED = 20


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names a column for each corner of a box,
    or for one corner and the size.
    """
    names = {name.lower() for name in rows[0]} if rows else set()
    roles = _roles(names)
    return all(
        not names.isdisjoint(roles[role])
        for role in roles
        if role not in ("path", "label", "width", "height")
    )


def _has_boxes(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are path, four corners and a class, or a path alone."""
    corners = [cells[1:5] for cells in rows if len(cells) == len(_NO_HEADER)]
    filled = [edges for edges in corners if any(edges)]
    return bool(filled) and len(corners) == len(rows) and all(map(_is_box, filled))


def _is_box(edges: Sequence[str]) -> bool:
    try:
        xmin, ymin, xmax, ymax = map(float, edges)
    except ValueError:
        return False
    return xmin < xmax and ymin < ymax


def _is_of(_name: str, ends: bytes) -> bool:
    rows = _first_rows(ends)
    return _has_header(rows) or _has_boxes(rows)


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """The tables; what a recipe must say of them;
    and the file of the names of classes, where there is one.
    """
    if not folder.files:
        return None
    files = sorted(folder.files)
    rows = _rows_of(folder.path / files[0])
    value: dict[str, Any] = {"csv": files}
    columns = _columns_of(folder, files[0], rows) if _has_header(rows) else {}
    if columns:
        value["columns"] = columns
    names = _names_file(folder)
    used = [*files, *names]
    if names:
        value["names"] = names[0]
    if not _has_header(rows):
        value["header"] = False
    elif "label" not in columns and _is_nameless(rows[0], columns):
        value["names"] = (NAMELESS,)
    return Proposed(value, used)


def _columns_of(
    folder: AnnotatedFolder, name: str, rows: Sequence[Sequence[str]]
) -> dict[str, str]:
    """The columns that a recipe must name: the column of images by its values, and that of the
    class if it is asked.

    Raises:
        InputError: a column may be the class, and is not called so.
    """
    header, columns = rows[0], dict(folder.columns)
    folded = [cell.lower() for cell in header]
    roles = _roles(folded)
    if "path" not in columns and set(folded).isdisjoint(roles["path"]):
        columns |= _column_of_images(folder.images, rows)
    if (
        "label" in columns
        or not set(folded).isdisjoint(roles["label"])
        or _is_nameless(header, columns)
    ):
        return columns
    used = {column.lower() for column in columns.values()}
    used.update(*roles.values(), _ROLES["width"], _ROLES["height"])
    others = [cell for cell in header if cell.lower() not in used][:_MOST_NAMED]
    commands = (
        command("init", folder.path, (("as", FORMAT.layout), ("label", other))) for other in others
    )
    hint = f"if it is one of them, choose it: {'; or '.join(commands)}"
    raise InputError(
        f"{folder.path / name}: no column for label", f"expected one of {', '.join(header)}", hint
    )


_MOST_NAMED = 4


def _column_of_images(images: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """The column that has the names of most images; none if no column has one."""
    known = {*map(stem_of, images), *(image.rpartition("/")[2] for image in images)}
    counts = dict.fromkeys(rows[0], 0)
    for row in rows[1:]:
        for column, cell in zip(rows[0], row, strict=False):  # a row may be cut short
            counts[column] += cell.rpartition("/")[2] in known
    column = max(counts, key=counts.__getitem__)
    return {"path": column} if counts[column] else {}


def _is_nameless(header: Sequence[str], columns: Mapping[str, str]) -> bool:
    """Whether a table has no column but those of images and boxes: none can be the class."""
    names = {name.lower() for name in header if name not in columns.values()}
    known = {name for role, usual in _roles(names).items() if role != "label" for name in usual}
    return names <= known.union(_ROLES["width"], _ROLES["height"])


def _names_file(folder: AnnotatedFolder) -> list[str]:
    """The CSV of two columns that has a name, and a number or an id,
    for every class of the tables.
    """
    rows = [row for name in folder.files for row in _rows_of(folder.path / name)]
    cells = {cell for row in rows for cell in row}
    for name in (
        name for name in folder.names if name.lower().endswith(".csv") and name not in folder.files
    ):
        with contextlib.suppress(InputError):
            names = read_names(folder.path / name)
            if cells.intersection(names.by_id or names.order):
                return [name]
    return []


FORMAT = Format(
    "csv",
    "CSV",
    "csv-boxes",
    (".csv",),
    _is_of,
    _mark,
    usage={
        "CSV": (
            "`boxes: {csv: FILES, columns: {xmin: left}}`. A row per box: image, class, `xmin`, "
            "`ymin`, `xmax`, `ymax` (or `x1`, ...; or `x`, `y`, `width`, `height`). Numbers below "
            "2 are relative"
        ),
        "keras-retinanet": (
            "`boxes: {csv: FILES, header: false}`: path, x1, y1, x2, y2, class. "
            "`names: classes.csv` has the number of each class"
        ),
        "Open Images": (
            "`boxes: {csv: FILES, names: class-descriptions-boxable.csv}`, which has the name of "
            "each id"
        ),
    },
    keys=(*NUMBERING, "columns", "header"),
    propose=_propose,
)
