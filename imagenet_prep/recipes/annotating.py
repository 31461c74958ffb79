"""annotate: a recipe's `boxes` and `mask` -> Annotations:
the objects and the mask of each image of a listing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_images import AnnotatedImages, Roots
from imagenet_prep.recipes.box_files import BoxFile, Marked
from imagenet_prep.recipes.box_policy import BoxesOutside, ImpossibleBox, fault
from imagenet_prep.recipes.classes import class_notes
from imagenet_prep.recipes.formats import load_format
from imagenet_prep.recipes.labels import left_out
from imagenet_prep.recipes.mask_folders import pair_masks
from imagenet_prep.recipes.object_masks import OBJECT_MASKS
from imagenet_prep.recipes.row_marks import RowMarks
from imagenet_prep.recipes.schema import Boxes
from imagenet_prep.sources.catalog import MASK_STAMP, Catalog
from imagenet_prep.sources.names import below, edges_of, text_of
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord.inception import EDGES

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import Mask

SIZE = "boxes.size"
"""The column of the size that boxes were annotated for, which an image must have."""

FIRST = 1
"""The label of the first class: the Object Detection API keeps 0 for the background."""

_USUAL = tuple(f"boxes.{each}" for each in (*EDGES, "label", "text", "source_id"))


class Annotations(Struct):
    """The objects and masks of images.

    Args:
        listing: the images that stay, with their boxes.
        values: the columns of its rows, by the names in detection.FEATURES; and SIZE.
        columns: those that a record can hold.
        classes: the names of boxes by label.
        masks: the folder that paths of masks start at.
        notes: what was cut, left out or not found.
        unmatched: images without annotation, and annotations without image, by name.
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
    unmatched: tuple[Sequence[str], Sequence[str]] = ((), ())
    unread: Sequence[str] = ()
    has_outlines: bool = False
    changed_boxes: Mapping[str, Mapping[str, int]] = {}
    is_numbered: bool = False
    divided: Mapping[str, Sequence[int]] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """The classes of boxes for the manifest: they decide bytes, and verify reads them."""
        return (
            {"boxes": {str(label): name for label, name in self.classes.items()}}
            if self.classes
            else {}
        )

    def renumber(self, classes: Mapping[int, str]) -> None:
        """Give the boxes these labels, by the names of their classes, which must have them all."""
        labels = {name: label for label, name in classes.items()}
        labels_now = {label: labels[name] for label, name in self.classes.items()}
        if "boxes.label" in self.values:
            self.values["boxes.label"] = [
                [labels_now[label] for label in row] for row in self.values["boxes.label"]
            ]
        outdated = set(_note_of_labels(self.classes))
        self.classes = dict(sorted(classes.items()))
        self.notes = [note for note in self.notes if note not in outdated]
        self.notes += _note_of_labels(self.classes)


def annotate(
    boxes: Boxes | None,
    mask: Mask | None,
    listing: Catalog,
    roots: Roots,
    policy: BoxesOutside = "refuse",
) -> Annotations:
    """The objects and masks of the images of a listing.

    Args:
        boxes: the recipe's key.
        mask: the same.
        listing: the images.
        roots: where paths start.
        policy: what becomes of impossible boxes.

    Raises:
        InputError: an annotation is not there or can't be; an image has none, or one has no image.
    """
    found = Annotations(listing)
    if mask is not None:  # first: rows that go take no boxes with them
        _add_masks(found, mask, roots)
    if boxes is not None:
        file = BoxFile(policy, boxes.polygons, roots.root)
        splits = {below(roots.root, text): split for text, split in boxes.splits.items()}
        images = AnnotatedImages(found.listing, list(found.listing.names), roots, file, splits)
        _add_boxes(found, boxes, images)
    if not len(found.listing):
        raise InputError(f"no image in {roots.base} has an annotation", "expected some")
    return found


def annotate_rows(
    marks: RowMarks,
    boxes: Boxes | None,
    listing: Catalog,
    roots: Roots,
    policy: BoxesOutside = "refuse",
) -> Annotations:
    """The objects and masks that the rows of a source have;
    otherwise as ``annotate``. ``boxes`` names classes.
    """
    found = Annotations(listing)
    if marks.masks:
        _attach_masks(found, [marks.masks[name] for name in listing.names], roots.root)
    if marks.images:
        keys = boxes or Boxes()
        images = AnnotatedImages(listing, list(listing.names), roots, BoxFile(policy))
        class_names = images.class_names(keys).order
        images.marked.update(marks.mark(images.names, images.size, images.file, class_names))
        _take_marked(found, keys, images, is_numbered=bool(images.file.classes))
    return found


def _note_of_labels(classes: Mapping[int, str]) -> Iterator[str]:
    return class_notes([*classes.values()], [*classes], "labels of boxes")


def _add_boxes(found: Annotations, keys: Boxes, images: AnnotatedImages) -> None:
    format = load_format(keys.format)
    format.mark(keys, images)
    if not images.marked and images.names:
        raise _none_annotated(keys, images)
    _take_marked(
        found, keys, images, is_numbered=format.is_numbered, unannotated=format.unannotated
    )


def _take_marked(
    found: Annotations,
    keys: Boxes,
    images: AnnotatedImages,
    *,
    is_numbered: bool,
    unannotated: str = "error",
) -> None:
    """Give the images their objects; ``is_numbered``: their classes have numbers already."""
    found.is_numbered = is_numbered
    _refuse_impossible(images.marked)
    if not is_numbered:
        _label(keys, images)
    rows = _match_up(found, keys, images, keys.unannotated or unannotated)
    several = [
        images.marked.get(row) or images.file.captioned.get(row) or Marked("", "") for row in rows
    ]
    _fill_columns(found, keys, images, rows, several)
    found.divided = _divide(images, rows)
    found.listing = replace(
        images.listing.picked(rows),
        box_starts=edges_of(
            np.fromiter((len(image.boxes) for image in several), np.int64, len(several))
        ),
        boxes=np.fromiter(
            (edge for image in several for box in image.boxes for edge in box), np.float32
        ),
    )
    found.notes += _note_of_labels(found.classes)


def _none_annotated(keys: Boxes, images: AnnotatedImages) -> InputError:
    """The error for annotations of other images: it shows a name of each."""
    where = listed(keys.places)
    if not images.missing:
        return InputError(f"{where} has no annotation of an image", "expected some")
    what = (
        f"{where}: none of {number_of(len(images.missing), 'annotated image')} is among the images"
    )
    expected = f"expected names such as {images.names[0]}, and it has {images.missing[0]}"
    return InputError(
        what,
        expected,
        "get the images; or, if the names start with other folders, "
        "run init with --strip FOLDERS/, or write "
        "`strip: FOLDERS/` in the recipe",
    )


def _match_up(found: Annotations, keys: Boxes, images: AnnotatedImages, policy: str) -> list[int]:
    """The rows of the images that stay; the notes say which images and
    annotations have no counterpart.
    """
    file, names, marked = images.file, images.names, images.marked
    missing = list(dict.fromkeys(images.missing))
    bare = [name for row, name in enumerate(names) if row not in marked]
    where = listed(keys.places)
    found.notes += _unmatched("an annotation", "unannotated", where, bare, policy)
    found.notes += _unmatched("an image", "missing", where, missing, keys.missing)
    found.notes += _notes(
        file, [names[row] for row, image in sorted(marked.items()) if not image.boxes]
    )
    found.notes += _notes_of_impossible(marked, file.policy)
    found.notes += file.unread
    found.changed_boxes = _count_changed(marked, names)
    found.unmatched, found.unread, found.has_outlines = (
        (bare, missing),
        file.unread,
        file.has_outlines,
    )
    return [row for row in range(len(names)) if row in marked or policy != "skip"]


def _divide(images: AnnotatedImages, rows: Sequence[int]) -> dict[str, list[int]]:
    """The new rows of each split, where files of annotations are those of splits."""
    found = set(images.divided.values())
    usual = [split for split in ("train", "validation", "test") if split in found]
    divided: dict[str, list[int]] = {split: [] for split in (*images.splits.values(), *usual)}
    for place, row in enumerate(rows):
        if row in images.divided:
            divided[images.divided[row]].append(place)
    return divided


def _fill_columns(
    found: Annotations,
    keys: Boxes,
    images: AnnotatedImages,
    rows: Sequence[int],
    several: Sequence[Marked],
) -> None:
    """Add the columns of boxes, and keep the values of the rows that stay."""
    found.values = {name: [values[row] for row in rows] for name, values in found.values.items()}
    found.columns += (*_USUAL, *images.file.columns, *(("boxes.caption",) if keys.captions else ()))
    found.classes = dict(sorted(images.file.classes.items()))
    found.values[SIZE] = [image.size for image in several]
    for name in (
        name
        for name in found.columns
        if name.startswith("boxes.") and name.partition(".")[2] not in EDGES
    ):
        found.values[name] = [
            image.values.get(name, image.columns.get(name, [])) for image in several
        ]
    lasts = [images.names[row].rpartition("/")[2] for row in rows]
    ids = zip(several, lasts, strict=True)
    found.values["boxes.source_id"] = [
        image.values.get("boxes.source_id", last) for image, last in ids
    ]
    if images.file.polygons == "masks":
        _add_object_masks(found, several, images.roots.root)


def _add_object_masks(found: Annotations, several: Sequence[Marked], root: Path) -> None:
    """Add the outlines of objects, and the times of the files that hold some."""
    found.columns += (OBJECT_MASKS,)
    found.values[OBJECT_MASKS] = [image.outlines for image in several]
    if any(image.mask_files for image in several):
        found.masks = root
        earlier = found.values.get(MASK_STAMP, [None] * len(several))
        pairs = zip(earlier, several, strict=True)
        found.values[MASK_STAMP] = [stamp_of(image.mask_files) or stamp for stamp, image in pairs]


def stamp_of(paths: Sequence[Path]) -> list[Any] | None:
    """The folder of an image's masks, as text, and their times of change; None without masks."""
    if not paths:
        return None
    times = [path.stat().st_mtime_ns for path in paths]
    return [f"masks in {os.path.realpath(paths[0].parent)}", times[0] if len(times) == 1 else times]


def _add_masks(found: Annotations, keys: Mask, roots: Roots) -> None:
    root, names = roots.root, list(found.listing.names)
    pairs = pair_masks(keys, names, roots.base, root)
    bare = [
        name for row, name in enumerate(names) if row not in pairs.paths and row not in pairs.rows
    ]
    where = listed(_texts(keys.folder))
    found.notes += _unmatched("a mask", "unmasked", where, bare, keys.unmasked)
    found.notes += _unmatched("an image", "missing", where, pairs.missing, keys.missing)
    found.unmatched = bare, pairs.missing
    rows = sorted(pairs.paths)
    paths = [pairs.paths[row] for row in rows]
    found.listing = found.listing.picked(rows)
    more = [] if keys.threshold is None else [keys.threshold]
    _attach_masks(found, paths, root, more)


def _attach_masks(
    found: Annotations, paths: Sequence[Path], root: Path, more: Sequence[int] = ()
) -> None:
    """Give each image of the listing its mask;
    ``more`` is what a mask's column has next to path and size.
    """
    found.values = {
        MASK_STAMP: [stamp_of([path]) for path in paths],
        "mask.encoded": [
            [text_of(os.path.relpath(path, root)), path.stat().st_size, *more] for path in paths
        ],
        "mask.format": ["png"] * len(paths),
    }
    found.columns += ("mask.encoded", "mask.format")
    found.masks = root


def _texts(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


_SKIPS = {"missing": "missing: ignore", "unmasked": "unmasked: skip"}
_SKIPS["unannotated"] = "unannotated: skip (or empty: they are kept without boxes)"


def _unmatched(what: str, key: str, where: str, names: Sequence[str], policy: str) -> list[str]:
    text = (
        f"{where}: {number_of(len(names), 'annotation' if what == 'an image' else 'image')} "
        f"without {what}"
    )
    hint = f"to leave them out, write next to {where}: {_SKIPS[key]}"
    return left_out(text, names, policy, "expected one for each", hint)


def _notes(file: BoxFile, bare: Sequence[str]) -> Iterator[str]:
    if file.cut:
        yield (
            f"{number_of(len(file.cut), 'box', 'boxes')} cut at the edge of the image: "
            f"{listed(file.cut)}"
        )
    if bare:
        yield f"{number_of(len(bare), 'image has', 'images have')} no box: {listed(bare)}"


# impossible boxes ---------------------------------------------------------------------------------


def _impossible(marked: Mapping[int, Marked]) -> list[ImpossibleBox]:
    """The impossible boxes of all images, in the order of the images."""
    return [box for _, image in sorted(marked.items()) for box in image.impossible]


def _refuse_impossible(marked: Mapping[int, Marked]) -> None:
    """Raise InputError if the recipe refuses impossible boxes and images have some:
    the error counts all of them.
    """
    refused = [box for box in _impossible(marked) if box.outcome == "refused"]
    if not refused:
        return
    others = [box.where for box in refused[1:]]
    more = (
        f"; {number_of(len(others), 'more box', 'more boxes')} can't be: {listed(others)}"
        if others
        else ""
    )
    hint = (
        "correct the annotations, or write in the recipe: boxes_outside: clip (or drop, "
        "which leaves such boxes out)"
    )
    raise InputError(
        f"{refused[0].where}: {refused[0].problem}", f"{refused[0].expected}{more}", hint
    )


def _notes_of_impossible(marked: Mapping[int, Marked], policy: BoxesOutside) -> Iterator[str]:
    impossible = _impossible(marked)
    for outcome in ("clipped", "dropped"):
        places = [box.where for box in impossible if box.outcome == outcome]
        if places:
            count = number_of(len(places), "impossible box", "impossible boxes")
            yield f"boxes_outside: {policy}: {count} {outcome}: {listed(places)}"


def _count_changed(marked: Mapping[int, Marked], names: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many boxes of each image were clipped and dropped, by its name;
    nothing for the usual image.
    """
    changed: dict[str, dict[str, int]] = {}
    for row, image in sorted(marked.items()):
        if image.impossible:
            changed[names[row]] = dict(Counter(box.outcome for box in image.impossible))
    return changed


def _label(keys: Boxes, images: AnnotatedImages) -> None:
    """Number the classes of boxes in the order of ``names``, otherwise of their bytes.

    Raises:
        InputError: a class is not among ``names``.
    """
    file, marked = images.file, images.marked
    given = images.class_names(keys)
    for image in marked.values() if given.by_id else ():
        image.columns["boxes.text"] = [given.by_id.get(text, text) for text in image.texts]
    names = given.order or sorted(
        {text for image in marked.values() for text in image.texts}, key=str.encode
    )
    first = FIRST if keys.first_label is None else keys.first_label
    file.classes = {label: name for label, name in enumerate(names, first) if name}
    labels = {name: label for label, name in file.classes.items()}
    for image in marked.values():
        strange = next((text for text in image.texts if text not in labels), None)
        if strange is not None:
            raise fault(
                image.where, f"the class {strange!r}", f"expected one of {listed(labels, 20)}"
            )
        image.columns["boxes.label"] = [labels[text] for text in image.texts]
