"""COCO: one JSON file of images, annotations and categories, with outlines,
key points, captions or segments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.recipes.annotated_images import AnnotatedImages, find_rows
from imagenet_prep.recipes.annotation_files import MOST, check_size, json_problem
from imagenet_prep.recipes.box_files import (
    READS_OUTLINES,
    BoxFile,
    Marked,
    PolygonError,
    columns_named,
)
from imagenet_prep.recipes.box_policy import Corners, Size, corners_of_size, fault
from imagenet_prep.recipes.coco_file import Coco, CocoAnnotation, OutlinedAnnotation, read_coco
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed
from imagenet_prep.recipes.object_masks import (
    Outline,
    Runs,
    box_of,
    check_outline,
    read_outline,
)
from imagenet_prep.recipes.recipe_paths import fault_of_path
from imagenet_prep.sources.names import below, text_of
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


# boxes --------------------------------------------------------------------------------------------


def _read_boxes(path: Path, coco: Coco, keypoint_count: int, file: BoxFile) -> list[Marked]:
    """The images of a COCO file with their objects, which have ``keypoint_count`` key points each.

    Labels are the numbers of categories, as they stand.
    """
    images = _images_in(path, coco)
    keypoint_names = _number_classes(path, coco, file)
    keypoint_columns = _KEYPOINTS if keypoint_count else ()
    file.columns = columns_named("crowd", "area", *keypoint_columns)
    file.has_outlines |= coco.has_outlines or coco.content == "segments"
    _note_unread(path, coco, keypoint_count, file)
    for annotation, outline, place in _objects_in(path, coco, images, file):
        image = _image_of(images, annotation, place)
        category = annotation.category_id
        if category not in keypoint_names:
            expected = "expected the id of one of the categories"
            problem = f"category_id {category} is the id of no category"
            if category is None:
                problem = "category_id is missing"
            raise fault(place, problem, expected)
        corners = _corners(annotation, outline, image, place, has_outlines=coco.has_outlines)
        placed = file.place(corners, image, place)
        if placed.corners is None:
            continue
        values: dict[str, Any] = {}
        if keypoint_count:
            names = keypoint_names[category]
            values = _read_keypoints(annotation, names, keypoint_count, image, place)
        values["area"] = _area(annotation, corners)
        if placed.impossible is not None:
            values["area"] = _limit_area(values["area"], placed.corners, image)
        class_name = file.classes[category or 0]
        image.add(
            placed.corners, label=category, text=class_name, crowd=annotation.iscrowd, **values
        )
        file.outline(image, outline, place)
    return list(images.values())


def _note_unread(path: Path, coco: Coco, keypoint_count: int, file: BoxFile) -> None:
    """Note outlines and key points that are not read."""
    if coco.has_outlines and file.polygons is None:
        reason = f"segmentation is not read, only boxes; {READS_OUTLINES}"
        file.unread.append(f"{path.name}: {reason}")
    if keypoint_count:
        return
    if any(annotation.keypoints for annotation in coco.annotations):
        reason = "keypoints are not read: no category has a list `keypoints` of their names"
        file.unread.append(f"{path.name}: {reason}")


def _objects_in(
    path: Path, coco: Coco, images: Mapping[int | str, Marked], file: BoxFile
) -> Iterator[tuple[CocoAnnotation, Outline | None, str]]:
    """Every object with its outline, None without one, and its place for messages;
    a segment is an object, too.
    """
    for number, annotation in enumerate(coco.annotations):
        place = f"{path}: {annotation.place(number)}"
        if annotation.segments_info is None:
            yield annotation, _outline_of(annotation, place), place
            continue
        png = Runs()
        if file.polygons == "masks":
            image = _image_of(images, annotation, place)
            png = _panoptic_png(path, annotation, image, file, place)
        for segment in annotation.segments_info:
            segment_annotation = CocoAnnotation(
                annotation.image_id,
                segment.id,
                segment.category_id,
                segment.bbox,
                segment.iscrowd,
                segment.area,
            )
            outline = replace(png, segment=segment.id)
            place = f"{path}: annotations[{number}], segment {segment.id}"
            yield segment_annotation, outline, place


_NULL = msgspec.Raw(b"null")


def _outline_of(annotation: CocoAnnotation, place: str) -> Outline | None:
    """The outline of an annotation; None if it has none, or if nobody asked."""
    if not isinstance(annotation, OutlinedAnnotation) or annotation.segmentation == _NULL:
        return None
    try:
        outline = read_outline(annotation.segmentation)
    except msgspec.MsgspecError as error:
        expected = "expected a list of polygons, or RLE: {counts: ..., size: ...}"
        problem, key = json_problem(error)
        raise fault(place, f"segmentation{key}: {problem}", expected) from error
    if isinstance(outline, Runs):
        return Runs(size=outline.size, counts=outline.counts)  # an annotation names no file
    return outline or None


def _panoptic_png(
    path: Path, annotation: CocoAnnotation, image: Marked, file: BoxFile, place: str
) -> Runs:
    """The PNG of an image's segments: in the folder that is named as their file is, next to it."""
    folder = path.with_suffix("")
    expected = f"expected the PNG of its segments in {folder}"
    if not annotation.file_name:
        raise fault(place, "it has no file_name", expected)
    file_name = Path(annotation.file_name)
    if file_name.is_absolute() or ".." in file_name.parts:
        problem = f"file_name {annotation.file_name[:80]!r} leads out of {folder}"
        raise fault(place, problem, expected)
    png = below(folder, annotation.file_name)
    problem = fault_of_path(png, "file")
    if problem:
        raise InputError(f"{place}: {png} {problem}", expected, "put the PNGs there")
    image.mask_files.append(png)
    relative_path = os.path.relpath(png, file.root)
    length = png.stat().st_size
    return Runs(file=text_of(relative_path), length=length)


def _number_classes(path: Path, coco: Coco, file: BoxFile) -> dict[int | None, list[str]]:
    """Keep the names of the categories by their numbers; the names of the key points of each."""
    for category in coco.categories:
        first_name = file.classes.setdefault(category.id, category.name)
        first_path = file.class_files.setdefault(category.id, path)
        if first_name != category.name:
            place = f"{path}: category {category.id}"
            elsewhere = "earlier in this file" if first_path == path else f"in {first_path}"
            problem = f"the name is {category.name!r} here, and {first_name!r} {elsewhere}"
            raise fault(place, problem, "expected one name for each id")
    return {category.id: category.keypoints for category in coco.categories}


def _corners(
    annotation: CocoAnnotation,
    outline: Outline | None,
    image: Marked,
    place: str,
    *,
    has_outlines: bool,
) -> Corners:
    """The box of an annotation, in pixels: its own, or that of its outline."""
    if annotation.bbox is not None:
        return corners_of_size(*annotation.bbox)
    if outline is None and has_outlines and not isinstance(annotation, OutlinedAnnotation):
        raise PolygonError(place, "the object has no bbox", "if it has an outline, ")
    is_segment = isinstance(outline, Runs) and outline.segment is not None
    if is_segment:
        raise fault(place, "the segment has no bbox", "expected x, y, width, height")
    if outline is None:
        raise fault(place, "the object has no bbox", "expected a bbox or a segmentation")
    assert image.size is not None
    return _corners_of_outline(outline, image.size, place)


def _corners_of_outline(outline: Outline, size: Size, place: str) -> Corners:
    """The box around an outline; raises InputError if it is empty, or none of this image."""
    try:
        check_outline(outline, size)
        corners = box_of(outline, size)
    except ImageError as error:
        raise fault(place, str(error)) from error
    if corners is None:
        raise fault(place, "its outline covers no pixel")
    return corners


def _area(annotation: CocoAnnotation, corners: Corners) -> float:
    """The area of an object in pixels; that of its box where the file does not say."""
    if annotation.area is not None:
        return annotation.area
    if annotation.bbox is not None:
        return annotation.bbox[2] * annotation.bbox[3]
    xmin, ymin, xmax, ymax = corners
    return (xmax - xmin) * (ymax - ymin)


def _limit_area(area: float, box: Corners, image: Marked) -> float:
    """The area of an object whose box was clipped: at most that of its box, in pixels."""
    assert image.size is not None
    width, height = image.size
    xmin, ymin, xmax, ymax = box
    box_area = (xmax - xmin) * width * (ymax - ymin) * height
    return min(abs(area), box_area)


_KEYPOINTS = ("keypoint_count", "keypoint_x", "keypoint_y", "keypoint_visibility", "keypoint_text")


def _read_keypoints(
    annotation: CocoAnnotation, names: list[str], keypoint_count: int, image: Marked, place: str
) -> dict[str, Any]:
    """The key points of an object, relative; zeros where it has none,
    so that all objects have equally many.
    """
    number_count = 3 * keypoint_count
    numbers = annotation.keypoints or [0.0] * number_count
    has_names = len(names) == keypoint_count
    if annotation.keypoints and not has_names:
        raise fault(
            place,
            f"`keypoints` of its category has {number_of(len(names), 'name')}",
            f"expected {keypoint_count}, as in another category: records have equally many for "
            "each object",
            f"write {keypoint_count} names in each category; or remove `keypoints` from all "
            "categories, and they are not read",
        )
    if len(numbers) != number_count:
        count = number_of(len(numbers), "number")
        points = number_of(keypoint_count, "key point")
        expected = f"expected {number_count}: x, y and visibility of {points}"
        raise fault(place, f"keypoints has {count}", expected)
    assert image.size is not None
    width, height = image.size
    xs = [x / width for x in numbers[::3]]
    ys = [y / height for y in numbers[1::3]]
    written_visibilities = numbers[2::3]
    _check_keypoints(xs, ys, written_visibilities, place)
    visibilities = [int(visibility) for visibility in written_visibilities]
    visible_count = annotation.num_keypoints
    if visible_count is None:
        visible_count = sum(visibility > 0 for visibility in visibilities)
    texts = names if has_names else [""] * keypoint_count
    columns = (visible_count, xs, ys, visibilities, texts)
    return dict(zip(_KEYPOINTS, columns, strict=True))


def _check_keypoints(
    xs: list[float], ys: list[float], visibilities: list[float], place: str
) -> None:
    """Raise InputError if one is far out of the image, or a visibility is no number of a record."""
    if not all(-1 <= coordinate <= 2 for coordinate in (*xs, *ys)):
        problem = "one of its keypoints is far outside the image"
        raise fault(place, problem, "expected x, y in pixels of the image, and visibility of each")
    for visibility in visibilities:
        if not abs(visibility) <= MOST:
            raise fault(place, f"a keypoint's visibility is {visibility:g}", "expected 0, 1 or 2")


def _read_captions(path: Path, coco: Coco) -> list[Marked]:
    """The images of a COCO file with their captions."""
    images = _images_in(path, coco)
    for number, annotation in enumerate(coco.annotations):
        place = f"{path}: {annotation.place(number)}"
        if annotation.caption is None:
            raise fault(place, "the annotation has no caption", "expected a file of captions")
        image = _image_of(images, annotation, place)
        captions = image.values.setdefault("boxes.caption", [])
        captions.append(annotation.caption.strip())
    return list(images.values())


def _images_in(path: Path, coco: Coco) -> dict[int | str, Marked]:
    """The images of a COCO file by their ids, without objects."""
    images: dict[int | str, Marked] = {}
    names: set[str] = set()
    for number, image in enumerate(coco.images):
        place = f"{path}: images[{number}] (id {image.id})"
        problem = ""
        if image.file_name in names:
            problem = f"its file_name, {image.file_name}, is also that of an earlier image"
        elif image.id in images:
            problem = f"its id is also that of {images[image.id].name}"
        if problem:
            raise fault(place, problem, "expected each image only once, with its own id")
        names.add(image.file_name)
        size = check_size(image.width, image.height, place)
        values = {"boxes.source_id": str(image.id)}
        images[image.id] = Marked(image.file_name, place, size, values=values)
    return images


def _image_of(images: Mapping[int | str, Marked], annotation: CocoAnnotation, place: str) -> Marked:
    if annotation.image_id not in images:
        expected = "expected the id of one of the images"
        raise fault(place, f"image_id {annotation.image_id!r} is the id of no image", expected)
    return images[annotation.image_id]


# the format ---------------------------------------------------------------------------------------


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    paths = [*images.paths(keys.places)]
    with_outlines = keys.polygons is not None
    contents = [read_coco(path, with_outlines=with_outlines) for path in paths]
    keypoint_counts = [coco.keypoint_count for coco in contents]
    keypoint_count = max(keypoint_counts, default=0)
    for path in paths:
        coco = contents.pop(0)  # it takes a gigabyte
        annotated = _read_boxes(path, coco, keypoint_count, images.file)
        for row, image in images.by_name(annotated, path):
            images.mark(row, image)
    for path in images.paths(keys.caption_files):
        _mark_captions(path, images)


def _mark_captions(path: Path, images: AnnotatedImages) -> None:
    """Give the images the captions of a file; those without objects are kept apart."""
    annotated = _read_captions(path, read_coco(path))
    for row, captioned in images.by_name(annotated, path):
        captions = captioned.values.pop("boxes.caption", [])
        image = images.marked.get(row)
        if image is None:
            image = images.file.captioned.setdefault(row, captioned)
        captions_of_image = image.values.setdefault("boxes.caption", [])
        captions_of_image.extend(captions)


_PARTS = (b'"images"', b'"annotations"', b'"categories"', b'"image_id"', b'"file_name"')


def _recognises(name: str, ends: bytes) -> bool:
    return sum(part in ends for part in _PARTS) > 1


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """A file of boxes that names the images; of several files for the same images,
    the one called instances.
    """
    files = _files_by_content(folder)
    objects = files["boxes"] or files["outlines"] or files["segments"]
    captions = files["captions"]
    if not objects:
        return None
    value: dict[str, Any] = {"coco": objects}
    if captions:
        value["captions"] = captions
    return Proposed(value, [*objects, *captions])


_BOX = "bbox: [x, y, width, height]"


def _why_unread(path: Path) -> tuple[str, str]:
    """The key that the annotations of a file lack, and what to do."""
    coco = read_coco(path)
    if coco.content == "captions":
        return "its annotations are captions, and no file has objects", ""
    if coco.content:
        return "", ""
    if not coco.annotations:
        return "it has no annotations", f"add annotations with {_BOX}"
    keys = "neither bbox nor segmentation"
    if any(annotation.keypoints for annotation in coco.annotations):
        keys += ", only keypoints"
    return f"its annotations have {keys}", f"add {_BOX} to each annotation"


def _files_by_content(folder: AnnotatedFolder) -> dict[str, list[str]]:
    """The files of each content, sorted: one for the same images."""
    files: dict[str, list[str]] = {"boxes": [], "outlines": [], "segments": [], "captions": []}
    first_images: set[tuple[str, int | str]] = set()
    instances_first = sorted(folder.files, key=lambda name: ("instances" not in name, name))
    for name in instances_first:
        path = folder.path / name
        coco = read_coco(path)
        if not coco.content or not coco.images:
            continue
        image_name = coco.images[0].file_name
        (row,) = find_rows([image_name], folder.images, folder.path, path)
        first_image = (coco.content, image_name if row < 0 else row)
        if first_image not in first_images:
            first_images.add(first_image)
            files[coco.content].append(name)
    return {content: sorted(names) for content, names in files.items()}


FORMAT = Format(
    "coco",
    "COCO",
    "coco",
    (".json",),
    _recognises,
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
    why_unread=_why_unread,
)
