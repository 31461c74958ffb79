"""Annotation files of COCO, Pascal VOC and YOLO, and CSVs of boxes -> BoxFile: the objects of each image they name.

Boxes become relative to the image: pixels divided by its size, as in TensorFlow's Object Detection API. ``box_policy``
decides about boxes that are not inside their image.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from xml.etree import ElementTree

import msgspec
from msgspec import Meta, Struct

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.recipes.box_policy import BoxesOutside, Corners, ImpossibleBox, PlacedBox, Size, fault, place_box
from imagenet_prep.recipes.labels_file import LABELS, PATHS, LabelsFault, csv_rows, read_rows
from imagenet_prep.recipes.recipe_file import read_texts
from imagenet_prep.storage.files import read_plain, view_of
from imagenet_prep.text import has_doctype
from imagenet_prep.tfrecord.inception import EDGES

_LARGEST = 1 << 26

_MOST = 1 << 53
"""The largest number: flags and sizes are whole, and records hold 64 bits."""


class Marked(Struct):
    """One image as an annotation file has it.

    Args:
        name: its name there.
        where: its place, for messages.
        size: as annotated; None where the file does not say.
        boxes: relative to it.
        columns: the values of each column of objects, one per box or per point.
        values: the values of the image itself by column.
        impossible: those of its boxes that are not as they can be.
    """

    name: str
    where: str
    size: Size | None = None
    boxes: list[Corners] = []
    columns: dict[str, list[Any]] = {}
    values: dict[str, Any] = {}
    impossible: list[ImpossibleBox] = []

    @property
    def texts(self) -> list[str]:
        """The classes of its boxes."""
        return self.columns.get("boxes.text", [])

    def add(self, box: Corners, **values: Any) -> None:
        """Add an object; several values of one column are as many points."""
        self.boxes.append(box)
        for name, value in values.items():
            self.columns.setdefault(f"boxes.{name}", []).extend(value if isinstance(value, list) else [value])


class BoxFile(Struct):
    """The columns and classes of annotation files, and the places of boxes that were ``cut`` by a pixel.

    ``policy`` decides about impossible boxes. ``captioned`` are the images, by row, that have captions alone: they are
    not annotated. ``unread`` are notes of the parts that no record has.
    """

    policy: BoxesOutside = "refuse"
    columns: tuple[str, ...] = ()
    classes: dict[int, str] = {}
    captioned: dict[int, Marked] = {}
    cut: list[str] = []
    unread: list[str] = []

    def place(self, corners: Corners, image: Marked, where: str) -> PlacedBox:
        """Place a box in its image, and note it if it is cut or impossible; raises as ``place_box``."""
        placed = place_box(corners, image.size, where, self.policy)
        if placed.is_cut:
            self.cut.append(where)
        if placed.impossible is not None:
            image.impossible.append(placed.impossible)
        return placed


def _named(*columns: str) -> tuple[str, ...]:
    return tuple(f"boxes.{each}" for each in columns)


def _size(width: float, height: float, where: str) -> Size:
    if min(width, height) < 1:
        raise fault(where, f"a size of {int(width)} x {int(height)}", "expected pixels")
    return int(width), int(height)


# COCO ----------------------------------------------------------------------------------------------------------


_Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""All that a record can hold."""


class _CocoImage(Struct, gc=False):
    id: int | str
    file_name: str
    width: int
    height: int


class _Annotation(Struct, gc=False):
    image_id: int | str
    id: int | str | None = None
    category_id: _Int64 | None = None
    bbox: Corners | None = None
    iscrowd: _Int64 = 0
    area: float | None = None
    keypoints: list[float] | None = None
    num_keypoints: _Int64 | None = None
    caption: str | None = None


class _Category(Struct):
    id: _Int64
    name: str
    keypoints: list[str] = []


class Coco(Struct):
    """The parts of a COCO file that matter; https://cocodataset.org/#format-data has them."""

    images: list[_CocoImage]
    annotations: list[_Annotation] = []
    categories: list[_Category] = []
    has_outlines: bool = False

    @property
    def sort(self) -> str:
        """ "boxes" or "captions", as its annotations are; "" for others, such as panoptic segments."""
        if any(each.bbox is not None for each in self.annotations):
            return "boxes"
        return "captions" if any(each.caption is not None for each in self.annotations) else ""


_OUTLINES = re.compile(rb'"segmentation"\s*:\s*[\[{]\s*[^\s\]}]')


def read_coco(path: Path) -> Coco:
    """Read a COCO file.

    Raises:
        InputError: it is no JSON, or a key is missing or has another type; the error names it.
    """
    try:
        view = view_of(path)
        data = view[0 : len(view)]
        found = msgspec.json.decode(data, type=Coco)
        found.has_outlines = bool(_OUTLINES.search(data))
        return found
    except (msgspec.MsgspecError, RecursionError) as error:
        problem, _, key = str(error).partition(" - at ")
        what = f"{path}: {key.strip('`').removeprefix('$.')}" if key else str(path)
        raise fault(what, problem.replace("`", ""), "expected a COCO file of boxes or captions") from error


def coco_boxes(path: Path, coco: Coco, most: int, found: BoxFile) -> list[Marked]:
    """The images of a COCO file with their objects; ``most`` is how many key points an object has.

    Labels are the numbers of categories, as they stand.
    """
    images = _coco_images(path, coco)
    for category in coco.categories:
        if found.classes.setdefault(category.id, category.name) != category.name:
            what = f"{category.name!r}, and {found.classes[category.id]!r} before"
            raise fault(f"{path}: category {category.id}", what, "expected one name for each id")
    points = {category.id: category.keypoints for category in coco.categories}
    found.columns = _named("crowd", "area", *(_KEYPOINTS if most else ()))
    if coco.has_outlines:
        found.unread.append(f"{path.name}: segmentation is not read, only boxes")
    if not most and any(each.keypoints for each in coco.annotations):
        found.unread.append(f"{path.name}: keypoints are not read: no category has a list `keypoints` of their names")
    for number, each in enumerate(coco.annotations):
        where = f"{path}: annotations[{number}] (id {each.id})"
        image = _image_of(images, each, where)
        if each.category_id not in points:
            raise fault(where, f"category_id {each.category_id}", "expected the id of one of the categories")
        if each.bbox is None:
            raise fault(where, "no bbox", "expected x, y, width, height")
        x, y, width, height = each.bbox
        placed = found.place((x, y, x + width, y + height), image, where)
        if placed.corners is not None:
            more = _points(each, points[each.category_id], most, image, where) if most else {}
            area = width * height if each.area is None else each.area
            more["area"] = area if placed.impossible is None else _limited(area, placed.corners, image)
            text = found.classes[each.category_id]
            image.add(placed.corners, label=each.category_id, text=text, crowd=each.iscrowd, **more)
    return list(images.values())


def _limited(area: float, box: Corners, image: Marked) -> float:
    """The area of an object whose box was clipped: at most that of its box, in pixels."""
    assert image.size is not None
    width, height = image.size
    xmin, ymin, xmax, ymax = box
    return min(abs(area), (xmax - xmin) * width * (ymax - ymin) * height)


_KEYPOINTS = ("keypoint_count", "keypoint_x", "keypoint_y", "keypoint_visibility", "keypoint_text")


def _points(each: _Annotation, names: list[str], most: int, image: Marked, where: str) -> dict[str, Any]:
    """The key points of an object, relative; zeros where it has none, so that all objects have equally many."""
    values = each.keypoints or [0.0] * 3 * most
    if len(values) != 3 * most or (each.keypoints and len(names) != most):
        raise fault(where, f"{len(values)} numbers of keypoints", f"expected three for each of {most}")
    assert image.size is not None
    xs, ys = ([value / side for value in values[start::3]] for start, side in enumerate(image.size))
    if not all(-1 <= value <= 2 for value in (*xs, *ys)):
        raise fault(where, "keypoints that lead out of the image", "expected x, y and visibility of each")
    strange = next((value for value in values[2::3] if not abs(value) <= _MOST), None)
    if strange is not None:
        raise fault(where, f"a visibility of {strange:g}", "expected 0, 1 or 2")
    seen = [int(value) for value in values[2::3]]
    count = sum(value > 0 for value in seen) if each.num_keypoints is None else each.num_keypoints
    text = names if len(names) == most else [""] * most
    return dict(zip(_KEYPOINTS, (count, xs, ys, seen, text), strict=True))


def coco_captions(path: Path, coco: Coco) -> list[Marked]:
    """The images of a COCO file with their captions."""
    images = _coco_images(path, coco)
    for number, each in enumerate(coco.annotations):
        where = f"{path}: annotations[{number}] (id {each.id})"
        if each.caption is None:
            raise fault(where, "no caption", "expected a file of captions")
        _image_of(images, each, where).values.setdefault("boxes.caption", []).append(each.caption.strip())
    return list(images.values())


def _coco_images(path: Path, coco: Coco) -> dict[int | str, Marked]:
    images: dict[int | str, Marked] = {}
    names: dict[str, int] = {}
    for number, each in enumerate(coco.images):
        where = f"{path}: images[{number}] (id {each.id})"
        if each.id in images or names.setdefault(each.file_name, number) != number:
            raise fault(where, f"{each.file_name} or its id is there twice", "expected every image once")
        size, values = _size(each.width, each.height, where), {"boxes.source_id": str(each.id)}
        images[each.id] = Marked(each.file_name, where, size, values=values)
    return images


def _image_of(images: Mapping[int | str, Marked], each: _Annotation, where: str) -> Marked:
    if each.image_id not in images:
        raise fault(where, f"image_id {each.image_id}", "expected the id of one of the images")
    return images[each.image_id]


# Pascal VOC ----------------------------------------------------------------------------------------------------


def voc_boxes(path: Path, found: BoxFile) -> Marked:
    """One XML file; its name tells the image, since <filename> is often another one. Labels come later."""
    found.columns = _named("difficult", "truncated", "view")
    content, where = read_plain(path, _LARGEST), str(path)
    if has_doctype(content):
        raise fault(where, "a document type declaration, which annotations don't have")
    try:
        root = ElementTree.fromstring(content)  # noqa: S314 - nothing expands without a DOCTYPE
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise fault(where, f"not well-formed XML: {error}") from error
    size = _size(_number(root, "size/width", where), _number(root, "size/height", where), where)
    image = Marked(_text(root, "filename"), where, size)
    for number, each in enumerate(root.findall("object"), 1):
        place = f"{where}: object {number}"
        name = _text(each, "name")
        if not name:
            raise fault(place, "no <name>", "expected the class")
        xmin, ymin, xmax, ymax = (_number(each, f"bndbox/{edge}", place) for edge in EDGES)
        placed = found.place((xmin, ymin, xmax, ymax), image, place)
        if placed.corners is not None:
            flags = {key: int(_number(each, key, place, "0")) for key in ("difficult", "truncated")}
            image.add(placed.corners, text=name, **flags, view=_text(each, "pose") or "Unspecified")
    return image


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _number(element: ElementTree.Element, path: str, where: str, otherwise: str = "") -> float:
    text = _text(element, path) or otherwise
    return _parsed(text, f"{where}: <{path.rpartition('/')[2]}>")


def _parsed(text: str, where: str) -> float:
    with contextlib.suppress(ValueError):
        if abs(value := float(text)) <= _MOST:
            return value
    raise fault(where, f"{text[:40]!r}", f"expected a finite number, at most {_MOST:,}")


_NO_PIXELS = 2
"""Relative corners are smaller, even those of a box that leads out of its image; pixels of a whole file never are."""


# YOLO ----------------------------------------------------------------------------------------------------------


def yolo_boxes(path: Path, names: Sequence[str], found: BoxFile) -> Marked:
    """One text file: a line a box, its class from 0, its centre and its size, relative to the image."""
    image = Marked(path.stem, str(path))
    for number, line in enumerate(_decoded(path).split("\n"), 1):
        words, where = line.split(), f"{path}, line {number}"
        if not words:
            continue
        if len(words) != 5:
            expected = "expected 5: class, x, y, width, height; polygons, key points and confidences are not read"
            raise fault(where, f"{len(words)} values", expected)
        if not words[0].isdecimal() or len(words[0]) > 18 or not "".join(names[int(words[0]) :][:1]):
            raise fault(where, f"class {words[0][:40]}", f"expected 0 to {len(names) - 1}, the classes of `names`")
        x, y, width, height = values = [_parsed(word, where) for word in words[1:]]
        if not all(-_NO_PIXELS < value < _NO_PIXELS for value in values):
            raise fault(where, " ".join(words[1:]), "expected numbers from 0 to 1, relative to the image")
        placed = found.place((x - width / 2, y - height / 2, x + width / 2, y + height / 2), image, where)
        if placed.corners is not None:
            image.add(placed.corners, text=names[int(words[0])])
    return image


def _decoded(path: Path) -> str:
    try:
        return read_plain(path, _LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(str(path), f"not UTF-8, at byte {error.start:,}", "expected a text") from error


def read_data_yaml(path: Path) -> Mapping[str, Any]:
    """The keys of a data.yaml, whose values are texts; raises InputError if it can't be read."""
    try:
        value = read_texts(path, _decoded(path))
    except UsageError as error:  # it is no recipe but data
        raise InputError(error.what, error.detail, error.hint) from error
    return value if isinstance(value, dict) else {}


def read_names(path: Path) -> list[str]:
    """The names of classes in order: ``names`` of a data.yaml, or a line each; "" for a number without a name.

    Raises:
        InputError: it can't be read, or holds none.
    """
    if path.suffix.lower() not in (".yaml", ".yml"):
        return [line.strip() for line in _decoded(path).splitlines() if line.strip()]
    names = read_data_yaml(path).get("names")
    named = names if isinstance(names, dict) else dict(enumerate(names)) if isinstance(names, list) else {}
    are_numbers = all(re.fullmatch(r"0|[1-9]\d{0,4}", str(number)) for number in named)
    if not named or not are_numbers or not all(isinstance(name, str) and name for name in named.values()):
        raise fault(str(path), "no `names`", "expected the names of the classes, from 0")
    by_number = {int(number): name for number, name in named.items()}
    return [by_number.get(number, "") for number in range(max(by_number) + 1)]


# CSV -----------------------------------------------------------------------------------------------------------

_ROLES: Mapping[str, tuple[str, ...]] = {
    "path": (*PATHS, "image_path", "imageid", "image_id", "file_name"),
    "label": (*LABELS, "labelname", "name", "class_name"),
    **{
        edge: (edge, f"{edge[0]}{number}")
        for edge, number in zip(("xmin", "ymin", "xmax", "ymax"), "1122", strict=True)
    },
    "width": ("width", "image_width"),
    "height": ("height", "image_height"),
}
"""The columns of a CSV of boxes, each with the names by which it is found."""


class CsvBox(NamedTuple):
    """A row of a CSV: the image, its class, corners as they are (None for an image without boxes), size and place."""

    name: str
    label: str
    corners: Corners | None
    size: Size | None
    where: str


def has_corners(path: Path) -> bool:
    """Whether the header of a CSV names a column for each corner of a box."""
    try:
        _, header = next(csv_rows(path.read_bytes(), "csv"), (0, []))
    except (OSError, LabelsFault):
        return False
    names = {name.strip().lower() for name in header}
    return all(not names.isdisjoint(_ROLES[edge]) for edge in EDGES)


def csv_boxes(path: Path, columns: Mapping[str, str]) -> list[CsvBox]:
    """The rows of a CSV with a header.

    Raises:
        InputError: a column is missing, or a value can't be.
    """
    view = view_of(path)
    try:
        lines, cells = read_rows(bytes(view[0 : len(view)]), "csv")
    except LabelsFault as error:
        raise fault(f"{path}, line {error.line}", error.reason) from error
    at, found = _columns_at(path, cells, columns), []
    for number, line in enumerate(lines):
        said, where = {role: values[number] or "" for role, values in at.items()}, f"{path}, line {line}"
        if not any(values[number] for values in cells.values()):
            continue
        size = None
        if said.get("width") and said.get("height"):
            size = _size(_parsed(said["width"], where), _parsed(said["height"], where), where)
        edges = [said[edge] for edge in EDGES]
        if not said["path"] or (any(edges) and not said["label"]):
            raise fault(where, "an empty cell", "expected an image, four corners and a class")
        xmin, ymin, xmax, ymax = (_parsed(edge, where) if any(edges) else 0.0 for edge in edges)
        corners = (xmin, ymin, xmax, ymax) if any(edges) else None
        found.append(CsvBox(said["path"], said["label"], corners, size, where))
    return found


def _columns_at(path: Path, cells: Mapping[str, list[Any]], wanted: Mapping[str, str]) -> dict[str, list[Any]]:
    """The column of each role."""
    if strange := sorted(set(wanted) - set(_ROLES)):
        raise fault(str(path), f"columns: {strange[0]}", f"expected some of {', '.join(_ROLES)}")
    folded = {name.lower(): values for name, values in reversed([*cells.items()])}
    found = {}
    for role, usual in _ROLES.items():
        names = [wanted[role].lower()] if role in wanted else usual
        name = next((name for name in names if name in folded), None)
        if name is not None:
            found[role] = folded[name]
        elif role not in ("width", "height") or role in wanted:
            hint = f"write in the recipe: columns: {{{role}: COLUMN}}"
            raise InputError(f"{path}: no column for {role}", f"expected one of {', '.join(cells)}", hint)
    return found


def is_relative(rows: Iterable[CsvBox]) -> bool:
    """Whether the boxes of a CSV are relative: most of them, since a few may lead far out of their image."""
    are_small = [max(row.corners) < _NO_PIXELS for row in rows if row.corners is not None]
    return not are_small or 2 * sum(are_small) > len(are_small)


def walk(folder: Path, ending: str) -> Iterator[str]:
    """The names of the files with this ending, in any case, below a folder, sorted; hidden ones are left out."""
    found = (each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.suffix.lower() == ending)
    yield from sorted(name for name in found if not re.search(r"(^|/)\.", name))
