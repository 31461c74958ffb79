"""Images and their annotations, in each format of ``formats``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint
from imagenet_prep.init.annotation_matching import (
    CHOICES,
    MatchedImages,
    images_and_masks,
    match_images,
)
from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import CERTAIN, LIKELY, Interpretation, Proposal
from imagenet_prep.init.structures import Recogniser
from imagenet_prep.recipes.annotated_images import split_in
from imagenet_prep.recipes.annotating import Annotations
from imagenet_prep.recipes.folder_words import is_image_folder
from imagenet_prep.recipes.formats import (
    FORMATS,
    AnnotatedFolder,
    Proposed,
    all_formats,
    load_format,
)
from imagenet_prep.recipes.path_parts import folder_around, folders_around, parent_of
from imagenet_prep.recipes.splits import splits_above
from imagenet_prep.text import listed, number_of


def _interpret(
    inspection: Inspection, proposed: Proposed, *, in_classes: bool = False
) -> Interpretation | None:
    """The folder with annotations; None if they are of less than half of the images.

    Args:
        inspection: the folder.
        proposed: what it holds, except for CHOICES.
        in_classes: whether the folders of the images are classes, too.
    """
    try:
        matched = match_images(inspection, proposed)
    except InputError as error:
        return _refuse(inspection, error, proposed.used)
    if 2 * matched.count < len(matched.images):
        return None
    annotations = matched.annotations
    losses, notes_on_kept = _without_counterpart(matched, proposed)
    list_files = [path for path, _ in proposed.lists.values()]
    return Interpretation(
        _certainty(inspection, matched, proposed, in_classes=in_classes),
        tuple(_evidence(proposed, matched)),
        "class folders of images with boxes" if in_classes else "images with boxes",
        _propose_recipe(proposed, matched, in_classes=in_classes),
        [*proposed.faults, *_mixed(inspection, matched.images, matched.masks)],
        annotation_files=frozenset((*proposed.used, *list_files)),
        losses=_unaccepted(inspection, losses, proposed),
        mended_faults=_impossible_boxes(inspection, annotations),
        skip_notes=[*notes_on_kept, *_unread_masks(inspection, matched), *annotations.unread],
        labelled=matched.count,
        classes=len(annotations.classes),
    )


# the recipe ---------------------------------------------------------------------------------------


def _propose_recipe(proposed: Proposed, matched: MatchedImages, *, in_classes: bool) -> Proposal:
    """The images with their annotations, in class folders or without classes."""
    proposal = _with_classes(matched) if in_classes else _without_classes(matched)
    written_lists = _lists_of_kept(proposed, matched, proposal.lead)
    lists = {split: path for split, (path, _) in proposed.lists.items()}
    return replace(
        proposal,
        lists={} if written_lists else lists,
        written_lists=written_lists,
        divided=tuple(matched.annotations.divided),
        annotations={"boxes": _boxes_keys(matched)},
        clips_boxes=bool(matched.annotations.changed_boxes),
    )


def _without_classes(matched: MatchedImages) -> Proposal:
    """The images, divided by the folders of splits that they are in."""
    lead = folders_around(matched.images)
    names = [name.removeprefix(lead) for name in matched.names()]
    splits = {} if matched.annotations.divided else splits_above(names)
    return Proposal("files", "image", names, lead, splits=splits)


def _with_classes(matched: MatchedImages) -> Proposal:
    """The images in class folders, perhaps below those of splits."""
    shape = shape_of(matched.images)
    names = [name.removeprefix(shape.lead) for name in matched.names()]
    splits = {} if matched.annotations.divided else shape.splits
    return Proposal("folders", "image", names, shape.lead, splits=splits)


def _lists_of_kept(proposed: Proposed, matched: MatchedImages, lead: str) -> dict[str, list[str]]:
    """The images of each split's list that are kept, where a list has others:
    a recipe can't name such a list.
    """
    kept = set(matched.names())
    names_by_split = {split: names for split, (_, names) in proposed.lists.items()}
    if all(kept.issuperset(names) for names in names_by_split.values()):
        return {}
    lists: dict[str, list[str]] = {}
    for split, names in names_by_split.items():
        kept_names = [name.removeprefix(lead) for name in names if name in kept]
        if kept_names:
            lists[split] = kept_names
    return lists


def _boxes_keys(matched: MatchedImages) -> dict[str, Any]:
    """The keys of `boxes` in the recipe, with the names of the classes:
    so they are numbered once.
    """
    keys = dict(matched.keys)
    format = load_format(next(iter(keys)))
    if "names" in format.keys and "names" not in keys and matched.annotations.classes:
        keys["names"] = tuple(matched.annotations.classes.values())
    if matched.missing:
        keys["missing"] = CHOICES["missing"]
    if matched.bare and not matched.keeps_bare:
        keys["unannotated"] = CHOICES["unannotated"]
    return keys


# how sure it is -----------------------------------------------------------------------------------


def _certainty(
    inspection: Inspection, matched: MatchedImages, proposed: Proposed, *, in_classes: bool
) -> int:
    """How sure it is that images have annotations, and that their folders are classes or not.

    Class folders whose boxes have classes of their own are a question; those that each have one
    class of boxes, which no other folder has, are both.
    """
    if in_classes:
        return CERTAIN if _is_class_a_folder(matched) else LIKELY
    if _has_classes(matched.images) and not proposed.is_certain:
        return LIKELY
    other_labels = [
        table for table in inspection.labels if table.has_labels and table.name not in proposed.used
    ]
    return CERTAIN if other_labels else CERTAIN + 1


def _is_class_a_folder(matched: MatchedImages) -> bool:
    """Whether each folder has boxes of one class, which no other folder has."""
    shape, annotations = shape_of(matched.images), matched.annotations
    place = 1 if shape.splits else 0
    pairs: set[tuple[str, str]] = set()
    for name, classes in zip(
        annotations.listing.names, annotations.values["boxes.text"], strict=True
    ):
        folder = name.removeprefix(shape.lead).split("/")[place]
        pairs.update((folder, class_name) for class_name in classes)
    folders = {folder for folder, _ in pairs}
    class_names = {class_name for _, class_name in pairs}
    return len(folders) == len(pairs) == len(class_names) > 1


def _has_classes(names: Sequence[str]) -> bool:
    """Whether the folders of images may be classes."""
    shape = shape_of(names)
    if all(map(split_in, shape.files)):
        return False
    class_folders = [folder for folder in shape.files if not is_image_folder(folder)]
    return len(class_folders) > 1 and shape.has_classes


_OUTLINED = {"masks": ", with masks,", "boxes": " around polygons"}
"""The words for the outlines of objects, by the value of `polygons`."""


def _evidence(proposed: Proposed, matched: MatchedImages) -> list[str]:
    """How many boxes and classes there are, and by what they are divided."""
    files, annotations = next(iter(proposed.value.values())), matched.annotations
    verb = "annotates" if len(files) == 1 else "annotate"
    boxes = number_of(len(annotations.listing.boxes) // 4, "box", "boxes")
    outlined = _OUTLINED.get(matched.keys.get("polygons", ""), "")
    classes = number_of(len(annotations.classes), "class", "classes")
    evidence = [
        f"{listed(files)} {verb} {matched.count:,} of {len(matched.images):,} images: "
        f"{boxes}{outlined} of {classes}: {listed(annotations.classes.values())}"
    ]
    if annotations.divided:
        counts = [f"{len(rows):,} {split}" for split, rows in annotations.divided.items()]
        evidence.append(f"splits by these files: {', '.join(counts)}")
    if proposed.lists:
        counts = [f"{len(names):,} in {path}" for path, names in proposed.lists.values()]
        evidence.append(f"splits: {', '.join(counts)}")
    return evidence


# faults and notes ---------------------------------------------------------------------------------


def _without_counterpart(matched: MatchedImages, proposed: Proposed) -> tuple[list[str], list[str]]:
    """The images and annotations that are lost,
    and the images that are kept without boxes, as text.
    """
    paths = [path for path, _ in proposed.lists.values()]
    places = listed(dict.fromkeys(parent_of(path) or path for path in paths))
    losses: list[str] = []
    if matched.unlisted:
        count = number_of(len(matched.unlisted), "image")
        losses.append(f"{count} in no list of {places}: {listed(sorted(matched.unlisted))}")
    if matched.missing:
        count = number_of(len(matched.missing), "annotation")
        losses.append(f"{count} without an image: {listed(matched.missing)}")
    if not matched.bare:
        return losses, []
    count = number_of(len(matched.bare), "image")
    bare = f"{count} without an annotation: {listed(matched.bare)}"
    if matched.keeps_bare:
        return losses, [f"{bare} (kept without boxes)"]
    return [*losses, bare], []


def _unaccepted(
    inspection: Inspection, losses: Sequence[str], proposed: Proposed
) -> list[InputError]:
    """The faults of what is left out, and of doubts about the annotations,
    which a user must accept.
    """
    folder = inspection.folder
    faults = [
        InputError(
            f"{folder}: {loss}", "every image needs an annotation, and every annotation an image"
        )
        for loss in losses
    ]
    doubts = [InputError(f"{folder}: {doubt}", "expected boxes") for doubt in proposed.doubts]
    return faults + doubts


def _unread_masks(inspection: Inspection, matched: MatchedImages) -> list[str]:
    """The note on masks next to images with boxes."""
    if not matched.masks:
        return []
    folders = sorted({parent_of(name) for name in matched.masks})
    hint = (
        f"mask: {{folder: {inspection.folder.resolve().name}/{folders[0]}, unmasked: skip}} in a "
        "recipe takes them"
    )
    return [f"{number_of(len(matched.masks), 'mask')} in {listed(folders)}: {hint}"]


def _impossible_boxes(inspection: Inspection, annotations: Annotations) -> list[InputError]:
    """The fault of boxes that are outside their image, swapped or empty; none if there are none."""
    images = annotations.changed_boxes
    if not images:
        return []
    box_count = sum(sum(counts.values()) for counts in images.values())
    boxes = number_of(box_count, "impossible box", "impossible boxes")
    count = number_of(len(images), "image")
    problem = f"{inspection.folder}: {boxes} of {count}: {listed(images)}"
    expected = "expected boxes inside their images, neither swapped nor empty"
    return [InputError(problem, expected, "correct them")]


def _mixed(inspection: Inspection, names: Sequence[str], masks: Sequence[str]) -> list[InputError]:
    """The fault of masks that patterns of the images would match."""
    lead = folders_around(names)
    names_below = [name.removeprefix(lead) for name in names]
    are_flat = not any("/" in name for name in names_below)
    if are_flat or folder_around(names_below):
        return []  # the patterns name no other folder
    endings = {name.rpartition(".")[2] for name in names}
    mixed = [name for name in masks if name.startswith(lead) and name.rpartition(".")[2] in endings]
    if not mixed:
        return []
    problem = f"{inspection.folder}: masks are among images of the same ending: {listed(mixed)}"
    return [
        InputError(problem, "expected the images in a folder of their own", "move them to images/")
    ]


def _refuse(
    inspection: Inspection, error: InputError, files: Sequence[str] = ()
) -> Interpretation | None:
    """The fault of annotations; None if the folders are classes:
    then they are somebody else's.
    """
    if _has_classes(images_and_masks(inspection)[0]):
        return None
    annotation_files = [*files]
    for tool_files in inspection.annotations.values():
        annotation_files += tool_files
    if any(table.name in annotation_files for table in inspection.labels):
        hint = Hint(error.hint, "; or take its columns: ", inspection.command_as("with-labels"))
        error = InputError(error.what, error.detail, hint)
    return Interpretation(
        CERTAIN + 1,
        (),
        "images with boxes",
        faults=[error],
        annotation_files=annotation_files,
    )


# each kind of annotation --------------------------------------------------------------------------


def _recognise(key: str, inspection: Inspection) -> Interpretation | None:
    """The files of one format of annotations, and what its module proposes for them;
    folders are no classes.
    """
    try:
        proposed = _propose_for(key, inspection)
    except InputError as error:
        return _refuse(inspection, error)
    return _interpret(inspection, proposed) if proposed else None


def _recognise_in_classes(inspection: Inspection) -> Interpretation | None:
    """Class folders whose images have annotations of any format: both are kept."""
    images = images_and_masks(inspection)[0] if inspection.content == "image" else []
    if not images or not _has_classes(images):
        return None
    for key in FORMATS:
        with contextlib.suppress(InputError):
            proposed = _propose_for(key, inspection)
            interpretation = _interpret(inspection, proposed, in_classes=True) if proposed else None
            if interpretation is not None:
                return interpretation
    return None


def _propose_for(key: str, inspection: Inspection) -> Proposed | None:
    """The proposal of a format's module for the files of a folder;
    raises InputError if they can't be.
    """
    if inspection.content != "image":
        return None
    format = load_format(key)
    folder = AnnotatedFolder(
        inspection.folder,
        files=inspection.annotations.get(format.tool, ()),
        images=images_and_masks(inspection)[0],
        names=list(inspection.listing.names),
        stray=[name for names in inspection.others.values() for name in names],
        columns=_named_columns(inspection),
    )
    return format.propose_for(folder)


def _named_columns(inspection: Inspection) -> dict[str, str]:
    """The columns of images and classes that the user names."""
    columns = {"path": inspection.options.image, "label": inspection.options.label}
    return {role: column.rpartition(":")[2] for role, column in columns.items() if column}


def _structures() -> dict[str, Recogniser]:
    """A structure for each format of annotations, and one for those of images in class folders."""
    structures: dict[str, Recogniser] = {
        format.structure: functools.partial(_recognise, key)
        for key, format in all_formats().items()
    }
    return {**structures, "boxes-in-class-folders": _recognise_in_classes}


STRUCTURES = _structures()
