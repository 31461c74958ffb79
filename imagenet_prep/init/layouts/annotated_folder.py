"""Images and their annotations, in each format of ``formats``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.images.mask_pixels import has_pycocotools
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.layouts import Recogniser
from imagenet_prep.init.layouts.class_folders import shape_of
from imagenet_prep.init.proposal import CERTAIN, LIKELY, Interpretation, Proposal
from imagenet_prep.recipes.annotated_images import Roots, split_in
from imagenet_prep.recipes.annotating import Annotations, annotate
from imagenet_prep.recipes.box_files import PolygonError
from imagenet_prep.recipes.formats import (
    FORMATS,
    AnnotatedFolder,
    Proposed,
    all_formats,
    load_format,
)
from imagenet_prep.recipes.mask_names import (
    folder_around,
    folders_around,
    is_image_folder,
    is_mask_folder,
)
from imagenet_prep.recipes.schema import Boxes
from imagenet_prep.recipes.splits import splits_above, stem_of
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.text import listed, number_of

CHOICES = {"missing": "ignore", "unannotated": "skip"}
"""The keys of a recipe's `boxes` that leave out annotations without an image,
and images without an annotation.
"""


class _Matched(Struct, frozen=True):
    """The images of a folder and their annotations.

    Args:
        value: what the recipe says of the annotations, except for CHOICES.
        images: the images that are no masks.
        masks: the images in folders of masks.
        found: the annotations.
        keeps_bare: whether images without an annotation are kept.
        unlisted: the images in no list of a split.
    """

    value: Mapping[str, Any]
    images: Sequence[str]
    masks: Sequence[str]
    found: Annotations
    keeps_bare: bool
    unlisted: frozenset[str]

    @property
    def bare(self) -> Sequence[str]:
        """The images without an annotation."""
        return self.found.unmatched[0]

    @property
    def count(self) -> int:
        """How many images are annotated."""
        return len(self.images) - len(self.bare)

    def names(self) -> list[str]:
        """The images that a recipe takes."""
        left = self.unlisted.union(() if self.keeps_bare else self.bare)
        return [name for name in self.images if name not in left]


def _read(
    inspection: Inspection, proposed: Proposed, *, in_classes: bool = False
) -> Interpretation | None:
    """The folder with annotations; None if they are of less than half of the images.

    Args:
        inspection: the folder.
        proposed: what it holds, except for CHOICES.
        in_classes: whether the folders of the images are classes, too.
    """
    try:
        matched = _match(inspection, proposed)
    except InputError as error:
        return _refuse(inspection, error, proposed.used)
    if 2 * matched.count < len(matched.images):
        return None
    lists = {split: path for split, (path, _) in proposed.lists.items()}
    proposal = _with_classes(matched) if in_classes else _without_classes(matched)
    written = _lists_of_kept(proposed, matched, proposal.lead)
    proposal = replace(
        proposal,
        lists={} if written else lists,
        written_lists=written,
        divided=tuple(matched.found.divided),
        annotations={"boxes": _value(matched)},
        clips_boxes=bool(matched.found.changed_boxes),
    )
    lost, passed = _without_counterpart(matched, proposed)
    return Interpretation(
        _certainty(inspection, matched, proposed, in_classes=in_classes),
        tuple(_evidence(proposed, matched)),
        "class folders of images with boxes" if in_classes else "images with boxes",
        proposal,
        [*proposed.faults, *_mixed(inspection, matched.images, matched.masks)],
        annotation_files=frozenset((*proposed.used, *lists.values())),
        losses=_unaccepted(inspection, lost, proposed),
        mended_faults=_impossible_boxes(inspection, matched.found),
        skip_notes=[*passed, *_unread_masks(inspection, matched), *matched.found.unread],
        labelled=matched.count,
        classes=len(matched.found.classes),
    )


def _lists_of_kept(proposed: Proposed, matched: _Matched, lead: str) -> dict[str, list[str]]:
    """The images of each split's list that are kept, where a list has others:
    a recipe can't name such a list.
    """
    kept = set(matched.names())
    if kept.issuperset(name for _, names in proposed.lists.values() for name in names):
        return {}
    lists = {
        split: [name.removeprefix(lead) for name in names if name in kept]
        for split, (_, names) in proposed.lists.items()
    }
    return {split: names for split, names in lists.items() if names}


def _unaccepted(
    inspection: Inspection, lost: Sequence[str], proposed: Proposed
) -> list[InputError]:
    """The faults of what is left out, and of doubts about the annotations,
    which a user must accept.
    """
    faults = [InputError(f"{inspection.folder}: {text}", "expected one for each") for text in lost]
    return [
        *faults,
        *(InputError(f"{inspection.folder}: {text}", "expected boxes") for text in proposed.doubts),
    ]


def _without_classes(matched: _Matched) -> Proposal:
    """The images, divided by the folders of splits that they are in."""
    names, lead = matched.names(), folders_around(matched.images)
    names = [name.removeprefix(lead) for name in names]
    splits = {} if matched.found.divided else splits_above(names)
    return Proposal("files", "image", names, lead, splits=splits)


def _with_classes(matched: _Matched) -> Proposal:
    """The images in class folders, perhaps below those of splits."""
    shape = shape_of(matched.images)
    names = [name.removeprefix(shape.lead) for name in matched.names()]
    splits = {} if matched.found.divided else shape.splits
    return Proposal("folders", "image", names, shape.lead, splits=splits)


def _certainty(
    inspection: Inspection, matched: _Matched, proposed: Proposed, *, in_classes: bool
) -> int:
    """How sure it is that images have annotations, and that their folders are classes or not.

    Class folders whose boxes have classes of their own are a question; those that each have one
    class of boxes, which no other folder has, are both.
    """
    if in_classes:
        return CERTAIN if _is_class_a_folder(matched) else LIKELY
    if _has_classes(matched.images) and not proposed.is_certain:
        return LIKELY
    used = proposed.used
    return CERTAIN + (
        not any(table.has_labels for table in inspection.labels if table.where not in used)
    )


def _is_class_a_folder(matched: _Matched) -> bool:
    """Whether each folder has boxes of one class, which no other folder has."""
    shape, found = shape_of(matched.images), matched.found
    pairs: set[tuple[str, str]] = set()
    for name, texts in zip(found.listing.names, found.values["boxes.text"], strict=True):
        folder = name.removeprefix(shape.lead).split("/")[bool(shape.splits)]
        pairs.update((folder, text) for text in texts)
    return (
        len({folder for folder, _ in pairs}) == len(pairs) == len({text for _, text in pairs}) > 1
    )


def _match(inspection: Inspection, proposed: Proposed) -> _Matched:
    """The images of a folder with the annotations that are proposed;
    raises InputError if those can't be.
    """
    images, masks = _images_and_masks(inspection)
    rows = {name: row for row, name in enumerate(inspection.listing.names)}
    listing = inspection.listing.picked([rows[name] for name in images])
    value = _by_split(proposed, images)
    keeps_bare = load_format(next(iter(value))).unannotated == "empty"
    value, found = _annotate(
        value, listing, Roots(inspection.folder, inspection.folder), keeps_bare=keeps_bare
    )
    bare = () if keeps_bare else found.unmatched[0]
    listed_images = set(bare).union(*(names for _, names in proposed.lists.values()))
    unlisted = set(images) - listed_images if proposed.lists else ()
    return _Matched(value, images, masks, found, keeps_bare, frozenset(unlisted))


def _by_split(proposed: Proposed, images: Sequence[str]) -> Mapping[str, Any]:
    """The value with the files by split, if their names tell it and the
    folders of the images do not.
    """
    key, files = next(iter(proposed.value.items()))
    if not isinstance(files, list) or proposed.lists or splits_above(images):
        return proposed.value
    splits = {split_in(stem_of(name)): name for name in files}
    if len(splits) < max(2, len(files)) or "" in splits:
        return proposed.value
    order = sorted(splits, key=lambda split: (split not in _USUAL, _USUAL.find(split), split))
    return {**proposed.value, key: {split: splits[split] for split in order}}


_USUAL = "train validation test"


def _annotate(
    value: Mapping[str, Any], listing: Catalog, roots: Roots, *, keeps_bare: bool
) -> tuple[Mapping[str, Any], Annotations]:
    """The objects of images by the keys of `boxes`, and these keys,
    with masks if every object has an outline.
    """
    boxes = msgspec.convert({**value, **CHOICES}, Boxes)
    if keeps_bare:
        boxes = replace(boxes, unannotated="empty")
    plain: Annotations | None = None
    why: list[str] = []
    with contextlib.suppress(PolygonError):
        plain = annotate(boxes, None, listing, roots, "clip")
    if has_pycocotools() and (plain is None or plain.has_outlines):
        try:
            with_masks = replace(boxes, polygons="masks")
            return {**value, "polygons": "masks"}, annotate(
                with_masks, None, listing, roots, "clip"
            )
        except InputError as error:
            why = [f"masks of objects are left out: {error.what}"]
    if plain is None:
        value = {**value, "polygons": "boxes"}
        plain = annotate(replace(boxes, polygons="boxes"), None, listing, roots, "clip")
    plain.unread = [*plain.unread, *why]
    return value, plain


def _value(matched: _Matched) -> dict[str, Any]:
    """The keys of `boxes` in the recipe, with the names of the classes:
    so they are numbered once.
    """
    value = dict(matched.value)
    format = load_format(next(iter(value)))
    if "names" in format.keys and "names" not in value and matched.found.classes:
        value["names"] = tuple(matched.found.classes.values())
    if matched.found.unmatched[1]:
        value["missing"] = CHOICES["missing"]
    if matched.bare and not matched.keeps_bare:
        value["unannotated"] = CHOICES["unannotated"]
    return value


def _without_counterpart(matched: _Matched, proposed: Proposed) -> tuple[list[str], list[str]]:
    """The images and annotations that are lost,
    and the images that are kept without boxes, as text.
    """
    lists = (path for path, _ in proposed.lists.values())
    places = listed(dict.fromkeys(path.rpartition("/")[0] or path for path in lists))
    lost, passed = [], []
    for names, noun, how in (
        (sorted(matched.unlisted), "image", f"in no list of {places}"),
        (matched.found.unmatched[1], "annotation", "without an image"),
        (matched.bare, "image", "without an annotation"),
    ):
        if names:
            lost.append(f"{number_of(len(names), noun)} {how}: {listed(names)}")
    if matched.bare and matched.keeps_bare:
        passed.append(f"{lost.pop()} (kept without boxes)")
    return lost, passed


def _unread_masks(inspection: Inspection, matched: _Matched) -> list[str]:
    """The note on masks next to images with boxes."""
    if not matched.masks:
        return []
    where = sorted({name.rpartition("/")[0] for name in matched.masks})
    hint = (
        f"mask: {{folder: {inspection.folder.resolve().name}/{where[0]}, unmasked: skip}} in a "
        "recipe takes them"
    )
    return [f"{number_of(len(matched.masks), 'mask')} in {listed(where)}: {hint}"]


def _impossible_boxes(inspection: Inspection, found: Annotations) -> list[InputError]:
    """The fault of boxes that are outside their image, swapped or empty; none if there are none."""
    if not found.changed_boxes:
        return []
    count = sum(sum(counts.values()) for counts in found.changed_boxes.values())
    boxes = number_of(count, "impossible box", "impossible boxes")
    images = number_of(len(found.changed_boxes), "image")
    what = f"{inspection.folder}: {boxes} of {images}: {listed(found.changed_boxes)}"
    return [
        InputError(
            what, "expected boxes inside their images, neither swapped nor empty", "correct them"
        )
    ]


_OUTLINED = {"masks": ", with masks,", "boxes": " around polygons"}
"""The words for the outlines of objects, by the value of `polygons`."""


def _evidence(proposed: Proposed, matched: _Matched) -> list[str]:
    places, found = next(iter(proposed.value.values())), matched.found
    verb = "annotates" if len(places) == 1 else "annotate"
    boxes = number_of(len(found.listing.boxes) // 4, "box", "boxes")
    classes = number_of(len(found.classes), "class", "classes")
    outlined = _OUTLINED.get(matched.value.get("polygons", ""), "")
    counted = f"{boxes}{outlined} of {classes}: {listed(found.classes.values())}"
    evidence = [
        f"{listed(places)} {verb} {matched.count:,} of {len(matched.images):,} images: {counted}"
    ]
    if found.divided:
        counts = (f"{len(rows):,} {split}" for split, rows in found.divided.items())
        evidence.append(f"splits by these files: {', '.join(counts)}")
    if proposed.lists:
        counts = (f"{len(names):,} in {path}" for path, names in proposed.lists.values())
        evidence.append(f"splits: {', '.join(counts)}")
    return evidence


def _refuse(
    inspection: Inspection, error: InputError, files: Sequence[str] = ()
) -> Interpretation | None:
    """An interpretation with the fault of annotations; None if the folders are classes:
    then they are somebody else's.
    """
    if _has_classes(_images_and_masks(inspection)[0]):
        return None
    used = [*files, *(name for names in inspection.annotations.values() for name in names)]
    if any(each.where in used for each in inspection.labels):
        hint = f"{error.hint}; or take its columns: {inspection.command_as('with-labels')}"
        error = InputError(error.what, error.detail, hint)
    return Interpretation(
        CERTAIN + 1, (), "images with boxes", faults=[error], annotation_files=used
    )


def _images_and_masks(inspection: Inspection) -> tuple[list[str], list[str]]:
    """The images of a folder, and those that are in folders of masks."""
    holds_masks = functools.cache(_is_below_masks)  # all files of a folder have one answer
    images: list[str] = []
    masks: list[str] = []
    for name in inspection.items:
        (masks if holds_masks(name.rpartition("/")[0]) else images).append(name)
    return images, masks


def _is_below_masks(folder: str) -> bool:
    """Whether a folder, or one above it, has the name of one of masks or annotations."""
    return any(map(is_mask_folder, folder.split("/")))


def _has_classes(names: Sequence[str]) -> bool:
    """Whether the folders of images may be classes."""
    shape = shape_of(names)
    if all(map(split_in, shape.files)):
        return False
    return sum(not is_image_folder(name) for name in shape.files) > 1 and shape.has_classes


def _mixed(inspection: Inspection, names: Sequence[str], masks: Sequence[str]) -> list[InputError]:
    """The fault of masks that patterns of the images would match."""
    lead = folders_around(names)
    endings = {name.rpartition(".")[2] for name in names}
    is_deep = any("/" in name.removeprefix(lead) for name in names)
    if folder_around(name.removeprefix(lead) for name in names):
        return []  # the patterns name that folder
    found = [
        name
        for name in masks
        if is_deep and name.startswith(lead) and name.rpartition(".")[2] in endings
    ]
    what = f"{inspection.folder}: masks are among images of the same ending: {listed(found)}"
    return (
        [InputError(what, "expected the images in a folder of their own", "move them to images/")]
        if found
        else []
    )


# each kind of annotation --------------------------------------------------------------------------


def _recognise(key: str, inspection: Inspection) -> Interpretation | None:
    """The files of one format of annotations, and what its module proposes for them;
    folders are no classes.
    """
    try:
        proposed = _propose(key, inspection)
    except InputError as error:
        return _refuse(inspection, error)
    return _read(inspection, proposed) if proposed else None


def _recognise_in_classes(inspection: Inspection) -> Interpretation | None:
    """Class folders whose images have annotations of any format: both are kept."""
    images = _images_and_masks(inspection)[0] if inspection.content == "image" else []
    if not images or not _has_classes(images):
        return None
    for key in FORMATS:
        with contextlib.suppress(InputError):
            proposed = _propose(key, inspection)
            interpretation = _read(inspection, proposed, in_classes=True) if proposed else None
            if interpretation is not None:
                return interpretation
    return None


def _propose(key: str, inspection: Inspection) -> Proposed | None:
    """The proposal of a format's module for the files of a folder;
    raises InputError if they can't be.
    """
    if inspection.content != "image":
        return None
    format = load_format(key)
    images = _images_and_masks(inspection)[0]
    files = inspection.annotations.get(format.tool, ())
    stray = [name for names in inspection.others.values() for name in names]
    names, columns = list(inspection.listing.names), _asked_columns(inspection)
    return format.propose_for(
        AnnotatedFolder(inspection.folder, files, images, names, stray, columns)
    )


def _asked_columns(inspection: Inspection) -> dict[str, str]:
    """The columns of images and classes that the user names."""
    columns = {"path": inspection.options.image, "label": inspection.options.label}
    return {role: column.rpartition(":")[2] for role, column in columns.items() if column}


def _layouts() -> dict[str, Recogniser]:
    """A layout for each format of annotations, and one for those of images in class folders."""
    formats = {
        format.layout: functools.partial(_recognise, key) for key, format in all_formats().items()
    }
    return {**formats, "boxes-in-class-folders": _recognise_in_classes}


LAYOUTS = _layouts()
