"""COCO: one JSON file of images, annotations and categories, with outlines,
key points, captions or segments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.recipes.annotated_images import AnnotatedImages, find_rows
from imagenet_prep.recipes.box_files import (
    MOST,
    BoxFile,
    Marked,
    PolygonError,
    columns_named,
    json_fault,
    size_of,
)
from imagenet_prep.recipes.box_policy import Corners, corners_of_size, fault
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed
from imagenet_prep.recipes.object_masks import (
    NO_OUTLINE,
    Outline,
    Runs,
    box_of,
    check_outline,
    read_outline,
)
from imagenet_prep.sources.names import below, text_of
from imagenet_prep.storage.files import kind_of, view_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""All that a record can hold."""


class _CocoImage(Struct, gc=False):
    id: int | str
    file_name: str
    width: int
    height: int


class _Segment(Struct, gc=False):
    """An object of a panoptic PNG: its pixels have the number ``id``."""

    id: int
    category_id: _Int64 | None = None
    bbox: Corners | None = None
    iscrowd: _Int64 = 0
    area: float | None = None


class _Annotation(Struct):
    image_id: int | str
    id: int | str | None = None
    category_id: _Int64 | None = None
    bbox: Corners | None = None
    iscrowd: _Int64 = 0
    area: float | None = None
    keypoints: list[float] | None = None
    num_keypoints: _Int64 | None = None
    caption: str | None = None
    segments_info: list[_Segment] | None = None
    file_name: str = ""


class _Outlined(_Annotation):
    """An annotation with its outline, polygons or runs, as its file has it:
    numbers would take ten times the memory.
    """

    segmentation: msgspec.Raw = NO_OUTLINE


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
        """ "boxes", "outlines", "segments" or "captions", as its annotations are; "" for others."""
        if any(each.bbox is not None for each in self.annotations):
            return "boxes"
        if any(each.caption is not None for each in self.annotations):
            return "captions"
        if any(each.segments_info for each in self.annotations):
            return "segments"
        return "outlines" if self.has_outlines and self.annotations else ""


class _CocoOutlines(Coco):
    annotations: list[_Outlined] = []  # type: ignore[assignment]


_OUTLINES = re.compile(rb'"segmentation"\s*:\s*[\[{]\s*[^\s\]}]')


def read_coco(path: Path, *, with_outlines: bool = False) -> Coco:
    """Read a COCO file.

    Raises:
        InputError: it is no JSON, or a key is missing or has another type; the error names it.
    """
    try:
        view = view_of(path)
        data = view[0 : len(view)]
        coco: Coco = msgspec.json.decode(data, type=_CocoOutlines if with_outlines else Coco)
        coco.has_outlines = bool(_OUTLINES.search(data))
        return coco
    except (msgspec.MsgspecError, RecursionError) as error:
        raise json_fault(path, error, "expected a COCO file of boxes or captions") from error


# boxes --------------------------------------------------------------------------------------------


def _boxes_in(path: Path, coco: Coco, most: int, file: BoxFile) -> list[Marked]:
    """The images of a COCO file with their objects; ``most`` is how many key points an object has.

    Labels are the numbers of categories, as they stand.
    """
    images = _images_in(path, coco)
    points = _number_classes(path, coco, file)
    file.columns = columns_named("crowd", "area", *(_KEYPOINTS if most else ()))
    file.has_outlines |= coco.has_outlines or coco.sort == "segments"
    if coco.has_outlines and file.polygons is None:
        file.unread.append(
            f"{path.name}: segmentation is not read, only boxes; `polygons: "
            "masks` in `boxes` reads it"
        )
    if not most and any(annotation.keypoints for annotation in coco.annotations):
        file.unread.append(
            f"{path.name}: keypoints are not read: no category has a list `keypoints` of their "
            "names"
        )
    for annotation, outline, where in _objects_in(path, coco, images, file):
        image = _image_of(images, annotation, where)
        if annotation.category_id not in points:
            raise fault(
                where,
                f"category_id {annotation.category_id}",
                "expected the id of one of the categories",
            )
        corners = _corners(annotation, outline, image, where, has_outlines=coco.has_outlines)
        placed = file.place(corners, image, where)
        if placed.corners is None:
            continue
        values = (
            _points(annotation, points[annotation.category_id], most, image, where) if most else {}
        )
        area = _area(annotation, corners)
        values["area"] = (
            area if placed.impossible is None else _limited(area, placed.corners, image)
        )
        text = file.classes[annotation.category_id or 0]
        image.add(
            placed.corners,
            label=annotation.category_id,
            text=text,
            crowd=annotation.iscrowd,
            **values,
        )
        file.outline(image, outline, where)
    return list(images.values())


def _objects_in(
    path: Path, coco: Coco, images: Mapping[int | str, Marked], file: BoxFile
) -> Iterator[tuple[_Annotation, Outline | None, str]]:
    """Every object with its outline, None without one, and its place for messages;
    a segment is an object, too.
    """
    for number, annotation in enumerate(coco.annotations):
        where = f"{path}: annotations[{number}] (id {annotation.id})"
        if annotation.segments_info is None:
            yield annotation, _outline_of(annotation, where), where
            continue
        png = Runs()
        if file.polygons == "masks":
            png = _panoptic_png(path, annotation, _image_of(images, annotation, where), file, where)
        for segment in annotation.segments_info:
            values = {
                name: getattr(segment, name)
                for name in ("id", "category_id", "bbox", "iscrowd", "area")
            }
            place = f"{path}: annotations[{number}], segment {segment.id}"
            yield (
                _Annotation(annotation.image_id, **values),
                replace(png, segment=segment.id),
                place,
            )


_NULL = msgspec.Raw(b"null")


def _outline_of(annotation: _Annotation, where: str) -> Outline | None:
    """The outline of an annotation; None if it has none, or if nobody asked."""
    if not isinstance(annotation, _Outlined) or annotation.segmentation == _NULL:
        return None
    try:
        outline = read_outline(annotation.segmentation)
    except msgspec.MsgspecError as error:
        raise fault(
            where, f"segmentation: {error}", "expected polygons, or runs with counts and size"
        ) from error
    if isinstance(outline, Runs):
        return Runs(size=outline.size, counts=outline.counts)  # an annotation names no file
    return outline or None


def _panoptic_png(
    path: Path, annotation: _Annotation, image: Marked, file: BoxFile, where: str
) -> Runs:
    """The PNG of an image's segments: in the folder that is named as their file is, next to it."""
    folder = path.with_suffix("")
    expected = f"expected the PNG of its segments in {folder}"
    name = Path(annotation.file_name)
    if name.is_absolute() or ".." in name.parts:
        raise fault(
            where, f"file_name {annotation.file_name[:80]!r} leads out of {folder}", expected
        )
    png = below(folder, annotation.file_name)
    if kind_of(png) != "file":
        raise InputError(f"{where}: {png} is not there", expected, "unpack the PNGs there")
    image.mask_files.append(png)
    return Runs(file=text_of(os.path.relpath(png, file.root)), length=png.stat().st_size)


def _number_classes(path: Path, coco: Coco, file: BoxFile) -> dict[int | None, list[str]]:
    """Keep the names of the categories by their numbers; the names of the key points of each."""
    for category in coco.categories:
        if file.classes.setdefault(category.id, category.name) != category.name:
            what = f"{category.name!r}, and {file.classes[category.id]!r} before"
            raise fault(f"{path}: category {category.id}", what, "expected one name for each id")
    return {category.id: category.keypoints for category in coco.categories}


def _corners(
    annotation: _Annotation,
    outline: Outline | None,
    image: Marked,
    where: str,
    *,
    has_outlines: bool,
) -> Corners:
    """The box of an annotation, in pixels: its own, or that of its outline."""
    if annotation.bbox is not None:
        return corners_of_size(*annotation.bbox)
    if outline is None and has_outlines and not isinstance(annotation, _Outlined):
        raise PolygonError(where)
    is_segment = isinstance(outline, Runs) and outline.segment is not None
    if outline is None or is_segment:
        raise fault(where, "no bbox", "expected x, y, width, height")
    assert image.size is not None
    try:
        check_outline(outline, image.size)
        corners = box_of(outline, image.size)
    except ImageError as error:
        raise fault(where, str(error)) from error
    if corners is None:
        raise fault(where, "an outline without a pixel")
    return corners


def _area(annotation: _Annotation, corners: Corners) -> float:
    """The area of an object in pixels; that of its box where the file does not say."""
    if annotation.area is not None:
        return annotation.area
    if annotation.bbox is not None:
        return annotation.bbox[2] * annotation.bbox[3]
    xmin, ymin, xmax, ymax = corners
    return (xmax - xmin) * (ymax - ymin)


def _limited(area: float, box: Corners, image: Marked) -> float:
    """The area of an object whose box was clipped: at most that of its box, in pixels."""
    assert image.size is not None
    width, height = image.size
    xmin, ymin, xmax, ymax = box
    return min(abs(area), (xmax - xmin) * width * (ymax - ymin) * height)


_KEYPOINTS = ("keypoint_count", "keypoint_x", "keypoint_y", "keypoint_visibility", "keypoint_text")


def _points(
    annotation: _Annotation, names: list[str], most: int, image: Marked, where: str
) -> dict[str, Any]:
    """The key points of an object, relative; zeros where it has none,
    so that all objects have equally many.
    """
    values = annotation.keypoints or [0.0] * 3 * most
    if len(values) != 3 * most or (annotation.keypoints and len(names) != most):
        raise fault(
            where, f"{len(values)} numbers of keypoints", f"expected three for each of {most}"
        )
    assert image.size is not None
    xs, ys = ([value / side for value in values[start::3]] for start, side in enumerate(image.size))
    if not all(-1 <= value <= 2 for value in (*xs, *ys)):
        raise fault(
            where, "keypoints that lead out of the image", "expected x, y and visibility of each"
        )
    strange = next((value for value in values[2::3] if not abs(value) <= MOST), None)
    if strange is not None:
        raise fault(where, f"a visibility of {strange:g}", "expected 0, 1 or 2")
    seen = [int(value) for value in values[2::3]]
    count = (
        sum(value > 0 for value in seen)
        if annotation.num_keypoints is None
        else annotation.num_keypoints
    )
    text = names if len(names) == most else [""] * most
    return dict(zip(_KEYPOINTS, (count, xs, ys, seen, text), strict=True))


def _captions_in(path: Path, coco: Coco) -> list[Marked]:
    """The images of a COCO file with their captions."""
    images = _images_in(path, coco)
    for number, annotation in enumerate(coco.annotations):
        where = f"{path}: annotations[{number}] (id {annotation.id})"
        if annotation.caption is None:
            raise fault(where, "no caption", "expected a file of captions")
        captions = _image_of(images, annotation, where).values.setdefault("boxes.caption", [])
        captions.append(annotation.caption.strip())
    return list(images.values())


def _images_in(path: Path, coco: Coco) -> dict[int | str, Marked]:
    images: dict[int | str, Marked] = {}
    names: dict[str, int] = {}
    for number, image in enumerate(coco.images):
        where = f"{path}: images[{number}] (id {image.id})"
        if image.id in images or names.setdefault(image.file_name, number) != number:
            raise fault(
                where, f"{image.file_name} or its id is there twice", "expected every image once"
            )
        size, values = size_of(image.width, image.height, where), {"boxes.source_id": str(image.id)}
        images[image.id] = Marked(image.file_name, where, size, values=values)
    return images


def _image_of(images: Mapping[int | str, Marked], annotation: _Annotation, where: str) -> Marked:
    if annotation.image_id not in images:
        raise fault(
            where, f"image_id {annotation.image_id}", "expected the id of one of the images"
        )
    return images[annotation.image_id]


# the format ---------------------------------------------------------------------------------------


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    paths = [*images.paths(keys.places)]
    contents = [read_coco(path, with_outlines=keys.polygons is not None) for path in paths]
    most = max(
        (len(category.keypoints) for coco in contents for category in coco.categories), default=0
    )
    while contents:
        path, coco = paths.pop(0), contents.pop(0)  # it takes a gigabyte
        for row, image in images.by_name(_boxes_in(path, coco, most, images.file), path):
            images.mark(row, image)
    for path in images.paths(keys.caption_files):
        for row, image in images.by_name(_captions_in(path, read_coco(path)), path):
            captions = image.values.pop("boxes.caption", [])
            kept = images.marked.get(row) or images.file.captioned.setdefault(row, image)
            kept.values.setdefault("boxes.caption", []).extend(captions)


_PARTS = (b'"images"', b'"annotations"', b'"categories"', b'"image_id"', b'"file_name"')


def _is_of(name: str, ends: bytes) -> bool:
    return sum(part in ends for part in _PARTS) > 1


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """A file of boxes that names the images; of several files for the same images,
    the one called instances.
    """
    sorts: dict[str, dict[int | str, str]] = {
        "boxes": {},
        "outlines": {},
        "segments": {},
        "captions": {},
    }
    for name in sorted(folder.files, key=lambda name: ("instances" not in name, name)):
        coco = read_coco(folder.path / name)
        if coco.sort and coco.images:
            first = coco.images[0].file_name
            (row,) = find_rows([first], folder.images, folder.path, folder.path / name)
            sorts[coco.sort].setdefault(first if row < 0 else row, name)
    boxes, outlines, segments, captions = (sorted(names.values()) for names in sorts.values())
    objects = boxes or outlines or segments
    if not objects:
        return None
    value: dict[str, Any] = {"coco": objects}
    if captions:
        value["captions"] = captions
    return Proposed(value, [*value["coco"], *captions])


FORMAT = Format(
    "coco",
    "COCO",
    "coco",
    (".json",),
    _is_of,
    _mark,
    usage={
        "COCO": (
            "`boxes: {coco: FILES, captions: FILES}`. Labels are the ids of categories; "
            "key points are kept"
        )
    },
    keys=("captions", "polygons"),
    is_numbered=True,
    propose=_propose,
)
