"""CSV: a row for each box, with the image, its class and four corners, in pixels or relative."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint, join_hints
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import check_size, parse_number, read_table, size_text
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_names import read_box_names
from imagenet_prep.recipes.box_policy import (
    NAMELESS,
    NO_PIXELS,
    Corners,
    Size,
    corners_of_size,
    fault,
)
from imagenet_prep.recipes.formats import NUMBERING, AnnotatedFolder, Format, Proposed
from imagenet_prep.recipes.labels_file import LABELS, PATHS
from imagenet_prep.recipes.path_parts import stem_of
from imagenet_prep.recipes.table_rows import LabelsFault, csv_rows

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
    "width": (),
    "height": (),
}
"""The same for boxes by a corner and their size; the image's own size only if it is named."""

_IN_A_CELL: Mapping[str, tuple[str, ...]] = {
    "path": _ROLES["path"],
    "label": _ROLES["label"],
    "boxes": ("boxesstring", "bbox", "bboxes"),
}
"""The same for boxes in one cell: "[x, y, width, height]", or "x1 y1 x2 y2;x1 y1 x2 y2"."""

_OWN_ROLES: Sequence[tuple[Mapping[str, tuple[str, ...]], frozenset[str]]] = (
    (_BY_SIZE, frozenset(("box_width", "box_height"))),
    (_IN_A_CELL, frozenset(("boxes",))),
    (_ROLES, frozenset(("xmax", "ymax"))),
)
"""The columns of each kind of table, with those that no other kind has."""

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
                image = Drawn(row.name, row.place, is_relative=is_relative)
                images[row.name] = image
            if not is_relative and row.size is not None:
                image.size = image.size or row.size
                if row.size != image.size:
                    raise _other_size(row.size, image.size, row.place)
            if row.corners is not None:
                image.objects.append(DrawnObject(row.class_name, row.corners, row.place))
        return list(images.values())

    def _rows(self, path: Path) -> list[_Row]:
        rows: list[_Row] = []
        columns: Mapping[str, str] = {}
        for place, cells in read_table(path, header=self.header):
            columns = columns or self._find_columns(path, [*cells])
            if not any(cells.values()):
                continue
            texts = {"label": self.only_class}
            for role, column in columns.items():
                texts[role] = cells[column]
            if "boxes" in texts:
                rows += _rows_of_cell(texts, place)
            else:
                rows.append(_row(texts, place))
        return rows

    def _find_columns(self, path: Path, header: Sequence[str]) -> dict[str, str]:
        """The column of each role."""
        known_roles = dict.fromkeys((*_ROLES, *_BY_SIZE, *_IN_A_CELL))
        unknown_roles = sorted(set(self.columns) - known_roles.keys())
        if unknown_roles:
            problem = f"`columns` in the recipe's `boxes` has the unknown key {unknown_roles[0]}"
            raise InputError(problem, f"expected keys among {', '.join(known_roles)}")
        folded = {column.lower(): column for column in reversed(header)}
        named = self.columns
        if not self.header:
            named = {**_NO_HEADER, **named}
        columns: dict[str, str] = {}
        for role, usual_names in _roles(folded, self.columns).items():
            names: Sequence[str] = usual_names
            if role in named:
                names = [named[role].lower()]
            matches = [folded[name] for name in names if name in folded]
            if matches:
                columns[role] = matches[0]
            elif role in named or self._needs(role):
                raise _no_column(path, role, named.get(role), header)
        return columns

    def _needs(self, role: str) -> bool:
        """Whether a table must have a column of this role."""
        if role == "label":
            return not self.only_class
        return role not in ("width", "height")


def _no_column(path: Path, role: str, name: str | None, header: Sequence[str]) -> InputError:
    """The error for a table without the column of a role, or without the one that is named."""
    problem = f"{path}: no column for {role}"
    if name is not None:
        problem = f"{path}: no column {name} for {role}"
    expected = f"the table has {', '.join(header)}"
    hint = f"name the column in the recipe's `boxes`: columns: {{{role}: COLUMN}}"
    if role in ("xmax", "ymax"):
        hint += "; for boxes with a width and a height: {box_width: COLUMN, box_height: COLUMN}"
    return InputError(problem, expected, hint)


def _other_size(size: Size, expected: Size, place: str) -> InputError:
    """The error for an image that has two sizes."""
    width, height = size
    expected_width, expected_height = expected
    problem = size_text(width, height)
    return fault(
        place, problem, f"expected {expected_width} x {expected_height}, as in an earlier row"
    )


class _Row(NamedTuple):
    """A row: the image, its class, corners as they are (None for an image without boxes),
    size and place.
    """

    name: str
    class_name: str
    corners: Corners | None
    size: Size | None
    place: str


def _roles(names: Collection[str], named: Collection[str] = ()) -> Mapping[str, tuple[str, ...]]:
    """The roles of the columns of a table, by those that the recipe names, or by their names:
    a corner and a size only if it has no other corner.
    """
    for roles, own_roles in _OWN_ROLES:
        if not own_roles.isdisjoint(named):
            return roles
    if any(name in names for name in _ROLES["xmax"]):
        return _ROLES
    if any(name in names for name in _IN_A_CELL["boxes"]):
        return _IN_A_CELL
    for edge in _SIZED_EDGES:
        if not any(name in names for name in _BY_SIZE[edge]):
            return _ROLES
    return _BY_SIZE


def _rows_of_cell(texts: Mapping[str, str], place: str) -> list[_Row]:
    """The rows of a cell with boxes; one without a box if it is empty."""
    cell = texts["boxes"].strip()
    if cell.lower() in ("", "no_box", "[]"):
        return [_Row(texts["path"], texts["label"], None, None, place)]
    edges = _SIZED_EDGES if cell.startswith("[") else _EDGES
    rows: list[_Row] = []
    for box in cell.split(";"):
        numbers = box.strip("[] ").replace(",", " ")
        words = numbers.split()
        if len(words) != len(edges):
            expected = "expected [x, y, width, height], or x1 y1 x2 y2;..."
            raise fault(place, f"the cell of boxes is {cell[:40]!r}", expected)
        box_texts = dict(zip(edges, words, strict=True))
        row = _row({**texts, **box_texts}, place)
        rows.append(row)
    return rows


_EDGES = ("xmin", "ymin", "xmax", "ymax")
_SIZED_EDGES = ("xmin", "ymin", "box_width", "box_height")


def _row(texts: Mapping[str, str], place: str) -> _Row:
    name = texts["path"]
    class_name = texts["label"]
    size = None
    if texts.get("width") and texts.get("height"):
        width = parse_number(texts["width"], place, "width")
        height = parse_number(texts["height"], place, "height")
        size = check_size(width, height, place)
    is_sized = "box_width" in texts
    edge_names = _SIZED_EDGES if is_sized else _EDGES
    edges = [texts[edge] for edge in edge_names]
    has_box = any(edges)
    if not name or (has_box and not class_name):
        missing = "class" if name else "name of an image"
        problem = f"the row has no {missing}"
        raise fault(place, problem, "expected an image, a box and a class")
    if not has_box:
        return _Row(name, class_name, None, size, place)
    xmin, ymin, width_or_xmax, height_or_ymax = (
        parse_number(edge, place, name_of_edge.removeprefix("box_"))
        for name_of_edge, edge in zip(edge_names, edges, strict=True)
    )
    corners = (xmin, ymin, width_or_xmax, height_or_ymax)
    if is_sized:
        corners = corners_of_size(*corners)
    return _Row(name, class_name, corners, size, place)


def _is_relative(rows: Iterable[_Row]) -> bool:
    """Whether the boxes of a CSV are relative:
    most of them, since a few may lead far out of their image.
    """
    box_count = 0
    relative_count = 0
    for row in rows:
        if row.corners is not None:
            box_count += 1
            relative_count += max(row.corners) < NO_PIXELS
    return not box_count or 2 * relative_count > box_count


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    class_names = images.class_names(keys).order
    only_class = class_names[0] if len(class_names) == 1 else ""
    reader = _TableReader(keys.columns or {}, keys.header, only_class)
    images.mark_named(keys.places, reader.read)


# init ---------------------------------------------------------------------------------------------


def _read_first_rows(path: Path) -> list[list[str]]:
    """The first rows of a file, which may have gigabytes."""
    with path.open("rb") as file:
        content = file.read(_PROBED_BYTES)
    return _first_rows(content)


_PROBED_BYTES = 1 << 20


def _first_rows(content: bytes) -> list[list[str]]:
    """The cells of the first lines, without blanks around them."""
    end = content.rfind(b"\n") + 1
    whole_lines = content[:end] or content
    rows: list[list[str]] = []
    try:
        for _, cells in islice(csv_rows(whole_lines, "csv"), _PROBED):
            stripped_cells = [cell.strip() for cell in cells]
            rows.append(stripped_cells)
    except LabelsFault:
        return []
    return rows


_PROBED = 20


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names a column for each corner of a box,
    or for one corner and the size.
    """
    header = rows[0] if rows else ()
    names = {name.lower() for name in header}
    roles = _roles(names)
    box_roles = roles.keys() - {"path", "label", "width", "height"}
    return all(not names.isdisjoint(roles[role]) for role in box_roles)


def _has_boxes(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are path, four corners and a class, or a path alone."""
    if any(len(cells) != len(_NO_HEADER) for cells in rows):
        return False
    corners = [cells[1:5] for cells in rows]
    boxes = list(filter(any, corners))
    return bool(boxes) and all(map(_is_box, boxes))


def _is_box(edges: Sequence[str]) -> bool:
    try:
        xmin, ymin, xmax, ymax = map(float, edges)
    except ValueError:
        return False
    return xmin < xmax and ymin < ymax


def _recognises(_name: str, ends: bytes) -> bool:
    rows = _first_rows(ends)
    return _has_header(rows) or _has_boxes(rows)


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """The tables; what a recipe must say of them;
    and the file of the names of classes, where there is one.
    """
    if not folder.files:
        return None
    files = sorted(folder.files)
    first_file = files[0]
    rows = _read_first_rows(folder.path / first_file)
    has_header = _has_header(rows)
    value: dict[str, Any] = {"csv": files}
    columns: dict[str, str] = {}
    if has_header:
        columns = _propose_columns(folder, first_file, rows)
    if columns:
        value["columns"] = columns
    names_file = _find_names(folder)
    used = [*files]
    if names_file is not None:
        value["names"] = names_file
        used.append(names_file)
    if not has_header:
        value["header"] = False
    elif "label" not in columns and _is_nameless(rows[0], columns):
        value["names"] = (NAMELESS,)
    return Proposed(value, used)


def _propose_columns(
    folder: AnnotatedFolder, name: str, rows: Sequence[Sequence[str]]
) -> dict[str, str]:
    """The columns that a recipe must name: the column of images by its values, and that of the
    class if it is asked.

    Raises:
        InputError: a column may be the class, and is not called so.
    """
    header = rows[0]
    columns = dict(folder.columns)
    names = {cell.lower() for cell in header}
    roles = _roles(names)
    if "path" not in columns and names.isdisjoint(roles["path"]):
        columns |= _column_of_images(folder.images, rows)
    has_label = "label" in columns or not names.isdisjoint(roles["label"])
    if has_label or _is_nameless(header, columns):
        return columns
    used_names = {column.lower() for column in columns.values()}
    used_names.update(*roles.values(), _ROLES["width"], _ROLES["height"])
    candidates = [cell for cell in header if cell.lower() not in used_names]
    raise _no_label(folder, name, candidates)


def _no_label(folder: AnnotatedFolder, name: str, candidates: Sequence[str]) -> InputError:
    """The error for a table whose column of classes nobody can tell: it names the commands."""
    commands = []
    for column in candidates[:_MOST_NAMED]:
        commands.append(folder.init(**{"as": FORMAT.structure, "label": column}))
    problem = f"{folder.path / name}: no column has a usual name of a class"
    expected = f"expected a column such as label or class; others: {', '.join(candidates)}"
    hint = Hint("if another column has the class names: ", join_hints("; or ", commands))
    return InputError(problem, expected, hint)


_MOST_NAMED = 4


def _column_of_images(images: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """The column that has the names of most images; none if no column has one."""
    image_names: set[str] = set()
    for image in images:
        _, _, file_name = image.rpartition("/")
        image_names.update((file_name, stem_of(image)))
    header = rows[0]
    name_counts = dict.fromkeys(header, 0)
    for row in rows[1:]:
        for column, cell in zip(header, row, strict=False):  # a row may be cut short
            _, _, file_name = cell.rpartition("/")
            if file_name in image_names:
                name_counts[column] += 1
    best_column = max(name_counts, key=name_counts.__getitem__)
    if not name_counts[best_column]:
        return {}
    return {"path": best_column}


def _is_nameless(header: Sequence[str], columns: Mapping[str, str]) -> bool:
    """Whether a table has no column but those of images and boxes: none can be the class."""
    other_columns = set(header) - set(columns.values())
    names = {name.lower() for name in other_columns}
    box_names = {*_ROLES["width"], *_ROLES["height"]}
    for role, usual_names in _roles(names).items():
        if role != "label":
            box_names.update(usual_names)
    return names <= box_names


def _find_names(folder: AnnotatedFolder) -> str | None:
    """The CSV of two columns that has a name, and a number or an id, for every class of the
    tables; None if there is none.
    """
    cells: set[str] = set()
    for name in folder.files:
        rows = _read_first_rows(folder.path / name)
        cells.update(*rows)
    for name in folder.names:
        if not name.lower().endswith(".csv") or name in folder.files:
            continue
        with contextlib.suppress(InputError):
            class_names = read_box_names(folder.path / name)
            names = class_names.by_id or class_names.order
            if cells.intersection(names):
                return name
    return None


FORMAT = Format(
    "csv",
    "CSV",
    "csv-boxes",
    (".csv",),
    _recognises,
    _mark,
    usage={
        "CSV": (
            "`boxes: {csv: FILES, columns: {xmin: left}}`. A row per box: image, class, `xmin`, "
            "`ymin`, `xmax`, `ymax` (or `x1`, ...; or `x`, `y`, `width`, `height`). "
            "Values below 2 are fractions of the image"
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
