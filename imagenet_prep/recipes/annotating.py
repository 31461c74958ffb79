"""annotate: a recipe's `boxes` and `mask` -> Annotations:
the objects and the mask of each image of a listing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_images import AnnotatedImages, Roots
from imagenet_prep.recipes.box_files import BoxFile, Marked
from imagenet_prep.recipes.box_policy import fault
from imagenet_prep.recipes.classes import class_notes
from imagenet_prep.recipes.formats import load_format
from imagenet_prep.recipes.impossible_boxes import (
    count_changed,
    note_impossible,
    refuse_impossible,
)
from imagenet_prep.recipes.label_matching import left_out
from imagenet_prep.recipes.mask_folders import pair_masks
from imagenet_prep.recipes.namesakes import refuse_namesakes
from imagenet_prep.recipes.none_annotated import none_annotated
from imagenet_prep.recipes.object_masks import OBJECT_MASKS
from imagenet_prep.recipes.path_parts import stem_of
from imagenet_prep.recipes.row_marks import RowMarks
from imagenet_prep.recipes.schema import Boxes, listed_texts
from imagenet_prep.sources.catalog import MASK_STAMP, Catalog
from imagenet_prep.sources.names import below, edges_of, text_of
from imagenet_prep.storage.location import AnyPath, real_path
from imagenet_prep.text import listed, number_of, one_of
from imagenet_prep.tfrecord.inception import EDGES

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import Mask, Recipe

SIZE = "boxes.size"
"""The column of the size that boxes were annotated for, which an image must have."""

FIRST = 1
"""The label of the first class: the Object Detection API keeps 0 for the background."""

_EDGE_COLUMNS = tuple(f"boxes.{edge}" for edge in EDGES)
_BOX_COLUMNS = (*_EDGE_COLUMNS, "boxes.label", "boxes.text", "boxes.source_id")


class Annotations(Struct):
    """The objects and masks of images.

    Args:
        listing: the images that stay, with their boxes.
        values: the columns of its rows, by the names in detection.FEATURES; and SIZE.
        columns: those that a record can hold.
        classes: the names of boxes by label.
        masks: the folder that paths of masks start at.
        notes: what was cut, left out or not found.
        unmatched_images: the names of images without an annotation.
        unmatched_annotations: the names of annotations without an image.
        unread: notes of what annotation files hold and records don't.
        has_outlines: whether objects have outlines, read or not.
        changed_boxes: how many boxes of each image were "clipped" and "dropped", by its name.
        is_numbered: whether the annotations number the classes themselves.
        divided: the rows of each split, where files of annotations are those of splits.
    """

    listing: Catalog
    values: dict[str, list[Any]] = {}
    columns: tuple[str, ...] = ()
    classes: Mapping[int, str] = {}
    masks: Path | None = None
    notes: list[str] = []
    unmatched_images: Sequence[str] = ()
    unmatched_annotations: Sequence[str] = ()
    unread: Sequence[str] = ()
    has_outlines: bool = False
    changed_boxes: Mapping[str, Mapping[str, int]] = {}
    is_numbered: bool = False
    divided: Mapping[str, Sequence[int]] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """The classes of boxes for the manifest: they decide bytes, and verify reads them."""
        if not self.classes:
            return {}
        names_by_label = {str(label): name for label, name in self.classes.items()}
        return {"boxes": names_by_label}

    def renumber(self, classes: Mapping[int, str]) -> None:
        """Give the boxes these labels, by the names of their classes, which must have them all."""
        labels_by_name = {name: label for label, name in classes.items()}
        new_labels = {label: labels_by_name[name] for label, name in self.classes.items()}
        rows = self.values.get("boxes.label", [])
        for row, labels in enumerate(rows):
            rows[row] = [new_labels[label] for label in labels]
        outdated_notes = set(_note_of_labels(self.classes))
        self.classes = dict(sorted(classes.items()))
        self.notes = [note for note in self.notes if note not in outdated_notes]
        self.notes += _note_of_labels(self.classes)


def annotate(recipe: Recipe, listing: Catalog, roots: Roots) -> Annotations:
    """The objects and masks of the images of a listing.

    Args:
        recipe: its `boxes`, `mask` and settings of boxes.
        listing: the images.
        roots: where paths start.

    Raises:
        InputError: an annotation is not there or can't be; an image has none, or one has no image.
    """
    annotations = Annotations(listing)
    boxes = recipe.boxes
    if recipe.mask is not None:  # first: rows that go take no boxes with them
        _add_masks(annotations, recipe.mask, roots)
    if boxes is not None:
        file = BoxFile(recipe.boxes_outside, boxes.polygons, roots.root)
        splits = {below(roots.root, text): split for text, split in boxes.splits.items()}
        listing_with_masks = annotations.listing
        names = list(listing_with_masks.names)
        images = AnnotatedImages(listing_with_masks, names, roots, file, splits)
        _add_boxes(annotations, boxes, images)
    return annotations


def annotate_rows(recipe: Recipe, marks: RowMarks, listing: Catalog, roots: Roots) -> Annotations:
    """The objects and masks that the rows of a source have;
    otherwise as ``annotate``. The recipe's `boxes` names classes.
    """
    annotations = Annotations(listing)
    if marks.masks:
        mask_paths = [marks.masks[name] for name in listing.names]
        _attach_masks(annotations, mask_paths, roots.root)
    if marks.images:
        keys = recipe.boxes or Boxes()
        file = BoxFile(recipe.boxes_outside)
        names = list(listing.names)
        images = AnnotatedImages(listing, names, roots, file)
        class_names = images.class_names(keys).order

        def path_of(row: int) -> AnyPath:
            return listing.container(row).path

        marked = marks.mark(names, images.size, path_of, file, class_names)
        images.marked.update(marked)
        is_numbered = bool(file.classes)
        _take_marked(annotations, keys, images, is_numbered=is_numbered)
    return annotations


def _note_of_labels(classes: Mapping[int, str]) -> Iterator[str]:
    names = [*classes.values()]
    labels = [*classes]
    return class_notes(names, labels, "labels of boxes")


def _add_boxes(annotations: Annotations, keys: Boxes, images: AnnotatedImages) -> None:
    box_format = load_format(keys.format)
    box_format.mark(keys, images)
    if not images.marked and images.names:
        ending = next(iter(box_format.endings), "")
        raise none_annotated(keys.places, images, ending, is_by_name=box_format.is_by_name)
    _take_marked(
        annotations,
        keys,
        images,
        is_numbered=box_format.is_numbered,
        unannotated=box_format.unannotated,
    )


def _take_marked(
    annotations: Annotations,
    keys: Boxes,
    images: AnnotatedImages,
    *,
    is_numbered: bool,
    unannotated: str = "error",
) -> None:
    """Give the images their objects; ``is_numbered``: their classes have numbers already."""
    annotations.is_numbered = is_numbered
    refuse_impossible(images.marked)
    if not is_numbered:
        _number_classes(keys, images)
    policy = keys.unannotated or unannotated
    rows = _match_up(annotations, keys, images, policy)
    captioned = images.file.captioned
    marked: list[Marked] = []
    for row in rows:
        image = images.marked.get(row) or captioned.get(row) or Marked("", "")
        marked.append(image)
    _fill_columns(annotations, keys, images, rows, marked)
    annotations.divided = _divide(images, rows)
    box_counts = np.array([len(image.boxes) for image in marked], np.int64)
    box_starts = edges_of(box_counts)
    boxes = chain.from_iterable(image.boxes for image in marked)
    corners = np.fromiter(chain.from_iterable(boxes), np.float32)
    listing = images.listing.picked(rows)
    annotations.listing = replace(listing, box_starts=box_starts, boxes=corners)
    annotations.notes += _note_of_labels(annotations.classes)


def _match_up(
    annotations: Annotations, keys: Boxes, images: AnnotatedImages, policy: str
) -> list[int]:
    """The rows of the images that stay; the notes say which images and
    annotations have no counterpart.
    """
    file = images.file
    names = images.names
    marked = images.marked
    missing = list(dict.fromkeys(images.missing))
    bare = [name for row, name in enumerate(names) if row not in marked]
    boxless = [names[row] for row, image in sorted(marked.items()) if not image.boxes]
    place = listed(keys.places)
    annotations.notes += _unmatched("boxes", "unannotated", place, bare, policy)
    if missing and keys.missing == "error":
        refuse_namesakes(place, missing, names, images.roots.strip)
    annotations.notes += _unmatched("boxes", "missing", place, missing, keys.missing)
    annotations.notes += _notes_of_boxes(file, boxless)
    annotations.notes += note_impossible(marked, file.policy)
    annotations.notes += file.unread
    annotations.changed_boxes = count_changed(marked, names)
    annotations.unmatched_images = bare
    annotations.unmatched_annotations = missing
    annotations.unread = file.unread
    annotations.has_outlines = file.has_outlines
    if policy == "skip":
        return sorted(marked)
    return list(range(len(names)))


def _divide(images: AnnotatedImages, rows: Sequence[int]) -> dict[str, list[int]]:
    """The new rows of each split, where files of annotations are those of splits."""
    splits = set(images.divided.values())
    usual_splits = [split for split in ("train", "validation", "test") if split in splits]
    new_rows: dict[str, list[int]] = {}
    for split in (*images.splits.values(), *usual_splits):
        new_rows[split] = []
    for new_row, row in enumerate(rows):
        if row in images.divided:
            split = images.divided[row]
            new_rows[split].append(new_row)
    return new_rows


def _fill_columns(
    annotations: Annotations,
    keys: Boxes,
    images: AnnotatedImages,
    rows: Sequence[int],
    marked: Sequence[Marked],
) -> None:
    """Add the columns of boxes, and keep the values of the rows that stay."""
    columns = annotations.values
    for name, column in columns.items():
        columns[name] = [column[row] for row in rows]
    annotations.columns += _BOX_COLUMNS
    annotations.columns += images.file.columns
    if keys.captions:
        annotations.columns += ("boxes.caption",)
    sorted_classes = sorted(images.file.classes.items())
    annotations.classes = dict(sorted_classes)
    columns[SIZE] = [image.size for image in marked]
    for name in annotations.columns:
        if name.startswith("boxes.") and name not in _EDGE_COLUMNS:
            columns[name] = _column_of(name, marked)
    columns["boxes.source_id"] = _source_ids(images, rows, marked)
    if images.file.polygons == "masks":
        _add_object_masks(annotations, marked, images.roots.root)


def _column_of(name: str, marked: Sequence[Marked]) -> list[Any]:
    """The values of a column, by image: one value, or one for each box."""
    column: list[Any] = []
    for image in marked:
        values_of_boxes = image.columns.get(name, [])
        column.append(image.values.get(name, values_of_boxes))
    return column


def _source_ids(
    images: AnnotatedImages, rows: Sequence[int], marked: Sequence[Marked]
) -> list[str]:
    """The id of each image in its annotation file, otherwise its file name."""
    source_ids: list[str] = []
    for row, image in zip(rows, marked, strict=True):
        _, _, file_name = images.names[row].rpartition("/")
        source_id = image.values.get("boxes.source_id", file_name)
        source_ids.append(source_id)
    return source_ids


def _add_object_masks(annotations: Annotations, marked: Sequence[Marked], root: Path) -> None:
    """Add the outlines of objects, and the times of the files that hold some."""
    annotations.columns += (OBJECT_MASKS,)
    annotations.values[OBJECT_MASKS] = [image.outlines for image in marked]
    if not any(image.mask_files for image in marked):
        return
    annotations.masks = root
    no_stamps = [None] * len(marked)
    stamps = annotations.values.setdefault(MASK_STAMP, no_stamps)
    for row, image in enumerate(marked):
        if image.mask_files:
            stamps[row] = stamp_of(image.mask_files)


def stamp_of(paths: Sequence[Path]) -> list[Any] | None:
    """The folder of an image's masks, as text, and their times of change; None without masks."""
    if not paths:
        return None
    folder = real_path(paths[0].parent)
    times = [path.stat().st_mtime_ns for path in paths]
    name = f"masks in {folder}"
    if len(times) == 1:
        return [name, times[0]]
    return [name, times]


def _add_masks(annotations: Annotations, keys: Mask, roots: Roots) -> None:
    names = list(annotations.listing.names)
    pairs = pair_masks(keys, names, roots.base, roots.root)
    bare: list[str] = []
    for row, name in enumerate(names):
        if row not in pairs.paths and row not in pairs.rows:
            bare.append(name)
    place = listed(listed_texts(keys.folder))
    annotations.notes += _unmatched("mask", "unmasked", place, bare, keys.unmasked)
    annotations.notes += _unmatched("mask", "missing", place, pairs.missing, keys.missing)
    annotations.unmatched_images = bare
    annotations.unmatched_annotations = pairs.missing
    rows = sorted(pairs.paths)
    if not rows:
        expected = "expected at least one image with a mask"
        if names:
            stem = stem_of(names[0]).removesuffix(keys.image_suffix or "")
            expected = f"expected masks such as {stem}{keys.suffix or ''}.png for {names[0]}"
        raise InputError(f"{place}: no mask has the name of an image", expected)
    mask_paths = [pairs.paths[row] for row in rows]
    annotations.listing = annotations.listing.picked(rows)
    threshold: list[int] = []
    if keys.threshold is not None:
        threshold.append(keys.threshold)
    _attach_masks(annotations, mask_paths, roots.root, threshold)


def _attach_masks(
    annotations: Annotations, paths: Sequence[Path], root: Path, threshold: Sequence[int] = ()
) -> None:
    """Give each image of the listing its mask; ``threshold`` follows path and size, if there is
    one.
    """
    places: list[Any] = []
    stamps: list[Any] = []
    for path in paths:
        relative_path = text_of(os.path.relpath(path, root))
        size = path.stat().st_size
        places.append([relative_path, size, *threshold])
        stamps.append(stamp_of([path]))
    annotations.values = {
        MASK_STAMP: stamps,
        "mask.encoded": places,
        "mask.format": ["png"] * len(paths),
    }
    annotations.columns += ("mask.encoded", "mask.format")
    annotations.masks = root


_UNMATCHED = {
    ("boxes", "missing"): ("annotation", "an image", "missing: ignore"),
    ("boxes", "unannotated"): (
        "image",
        "an annotation",
        "unannotated: skip (or empty: they are kept without boxes)",
    ),
    ("mask", "missing"): ("mask", "an image", "missing: ignore"),
    ("mask", "unmasked"): ("image", "a mask", "unmasked: skip"),
}
"""By the recipe's two keys what has no counterpart, that counterpart, and how a recipe leaves it
out.
"""

_PAIRED = {
    "boxes": "every image needs an annotation, and every annotation an image",
    "mask": "every image needs a mask, and every mask an image",
}


def _unmatched(section: str, key: str, place: str, names: Sequence[str], policy: str) -> list[str]:
    """The note on images or annotations without a counterpart; raises InputError if ``policy``
    refuses them.

    ``section`` is the recipe's key that holds the ``key``: "boxes" or "mask".
    """
    noun, counterpart, skip = _UNMATCHED[section, key]
    count = number_of(len(names), noun)
    text = f"{place}: {count} without {counterpart}"
    expected = _PAIRED[section]
    hint = f"to leave them out, write in the recipe's `{section}`: {skip}"
    return left_out(text, names, policy, expected, hint)


def _notes_of_boxes(file: BoxFile, boxless: Sequence[str]) -> Iterator[str]:
    if file.cut:
        boxes = number_of(len(file.cut), "box", "boxes")
        yield f"{boxes} cut at the edge of the image: {listed(file.cut)}"
    if boxless:
        images_have = number_of(len(boxless), "image has", "images have")
        yield f"{images_have} no box: {listed(boxless)}"


# numbers of classes -------------------------------------------------------------------------------


def _number_classes(keys: Boxes, images: AnnotatedImages) -> None:
    """Number the classes of boxes in the order of ``names``, otherwise of their bytes.

    Raises:
        InputError: a class is not among ``names``.
    """
    marked = images.marked.values()
    box_names = images.class_names(keys)
    if box_names.by_id:
        for image in marked:
            texts = [box_names.by_id.get(text, text) for text in image.texts]
            image.columns["boxes.text"] = texts
    class_names = box_names.order or _sorted_classes(marked)
    first_label = FIRST if keys.first_label is None else keys.first_label
    classes: dict[int, str] = {}
    labels: dict[str, int] = {}
    for label, name in enumerate(class_names, first_label):
        if name:
            classes[label] = name
            labels[name] = label
    images.file.classes = classes
    for image in marked:
        image.columns["boxes.label"] = _labels_of(image, labels)


def _sorted_classes(marked: Iterable[Marked]) -> list[str]:
    """The classes of all boxes, by their bytes."""
    class_names = set(chain.from_iterable(image.texts for image in marked))
    return sorted(class_names, key=str.encode)


def _labels_of(image: Marked, labels: Mapping[str, int]) -> list[int]:
    """The labels of the boxes of an image; raises InputError if a class has none."""
    for text in image.texts:
        if text not in labels:
            problem = f"the class {text!r} is not in `names`"
            expected = f"expected {one_of(labels)}"
            if not text:
                problem = "an object has no class"
                expected = "expected the class of each object"
            raise fault(image.place, problem, expected)
    return [labels[text] for text in image.texts]
