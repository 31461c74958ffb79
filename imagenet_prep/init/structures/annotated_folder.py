"""Images and their annotations, in each format of ``formats``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint, join_hints
from imagenet_prep.init.annotation_matching import (
    CHOICES,
    MatchedImages,
    images_and_masks,
    match_images,
)
from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import (
    CERTAIN,
    LIKELY,
    ONLY_IF_ASKED,
    DoubtError,
    Interpretation,
    Proposal,
)
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
from imagenet_prep.recipes.path_parts import folders_around, parent_of
from imagenet_prep.recipes.recipe_lines import flow_list
from imagenet_prep.recipes.splits import splits_above
from imagenet_prep.text import listed, number_of

_MOST_FOLDERS = 100  # of images, that a recipe names one by one


def _interpret(
    inspection: Inspection, proposed: Proposed, *, in_classes: bool = False
) -> Interpretation | None:
    """The folder with annotations, only if asked where they are of less than half of the images;
    None if they are of none.

    Args:
        inspection: the folder.
        proposed: what it holds, except for CHOICES.
        in_classes: whether the folders of the images are classes, too.
    """
    try:
        matched = match_images(inspection, proposed)
    except InputError as error:
        return _refuse(inspection, error, proposed.used, is_certain=proposed.is_certain)
    if not matched.count:
        return None
    annotations = matched.annotations
    losses, notes_on_kept = _without_counterpart(inspection, matched, proposed)
    notes_on_masks = _unread_masks(inspection, matched)
    list_files = [path for path, _ in proposed.lists.values()]
    meaning = "images with boxes"
    class_count = len(annotations.classes)
    if in_classes:
        meaning = "class folders of images with boxes"
        class_count = len(shape_of(matched.images).classes)
    certainty = _certainty(inspection, matched, proposed, in_classes=in_classes)
    if 2 * matched.count < len(matched.images):
        certainty = ONLY_IF_ASKED
    proposal = _propose_recipe(proposed, matched, in_classes=in_classes)
    faults_of_masks = _read_as_images(inspection, matched, in_classes=in_classes)
    return Interpretation(
        certainty,
        tuple(_evidence(inspection, proposed, matched)),
        meaning,
        proposal,
        [*proposed.faults, *faults_of_masks],
        annotation_files=frozenset((*proposed.used, *list_files)),
        losses=[
            *losses,
            *_faults_of_doubts(inspection, proposed),
            *_impossible_boxes(inspection, annotations),
        ],
        skip_notes=[*notes_on_kept, *notes_on_masks, *annotations.unread],
        labelled=len(set(matched.names()).difference(matched.bare)),
        classes=class_count,
        total=len(matched.images),
    )


# the recipe ---------------------------------------------------------------------------------------


def _propose_recipe(proposed: Proposed, matched: MatchedImages, *, in_classes: bool) -> Proposal:
    """The images with their annotations, in class folders or without classes."""
    proposal = _without_classes(matched)
    if in_classes:
        proposal = _with_classes(matched)
    lists: dict[str, str] = {}
    written_lists = _lists_of_kept(proposed, matched, proposal.lead)
    if not written_lists:
        lists = {split: path for split, (path, _) in proposed.lists.items()}
    boxes_keys = _boxes_keys(matched)
    clips_boxes = bool(matched.annotations.changed_boxes)
    return replace(
        proposal,
        lists=lists,
        written_lists=written_lists,
        divided=tuple(matched.annotations.divided),
        annotations={"boxes": boxes_keys},
        clips_boxes=clips_boxes,
    )


def _without_classes(matched: MatchedImages) -> Proposal:
    """The images, divided by the folders of splits that they are in."""
    lead = folders_around(matched.images)
    names = [name.removeprefix(lead) for name in matched.names()]
    splits = {} if matched.annotations.divided else splits_above(names)
    are_mixed = bool(matched.masks_between())
    return Proposal("files", "image", names, lead, splits=splits, in_named_folders=are_mixed)


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
    is_whole = True
    lists: dict[str, list[str]] = {}
    for split, (_, names) in proposed.lists.items():
        kept_names = [name.removeprefix(lead) for name in names if name in kept]
        if kept_names:
            lists[split] = kept_names
        if len(kept_names) < len(names):
            is_whole = False
    return {} if is_whole else lists


def _boxes_keys(matched: MatchedImages) -> dict[str, Any]:
    """The keys of `boxes` in the recipe, with the names of the classes:
    so they are numbered once.
    """
    keys = dict(matched.keys)
    classes = matched.annotations.classes
    format_key = next(iter(keys))
    takes_names = "names" in load_format(format_key).keys
    if takes_names and "names" not in keys and classes:
        keys["names"] = tuple(classes.values())
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
    for table in inspection.labels:
        if table.has_labels and table.name not in proposed.used:
            return CERTAIN
    return CERTAIN + 1


def _is_class_a_folder(matched: MatchedImages) -> bool:
    """Whether each folder has boxes of one class, which no other folder has."""
    shape, annotations = shape_of(matched.images), matched.annotations
    place = 1 if shape.splits else 0
    pairs: set[tuple[str, str]] = set()
    classes_by_image = annotations.values["boxes.text"]
    for name, classes in zip(annotations.listing.names, classes_by_image, strict=True):
        path = name.removeprefix(shape.lead)
        folder = path.split("/")[place]
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


def _evidence(inspection: Inspection, proposed: Proposed, matched: MatchedImages) -> list[str]:
    """How many boxes and classes there are, and by what they are divided."""
    folder = str(inspection.folder)
    files = [folder if file == "." else file for file in next(iter(proposed.value.values()))]
    annotations = matched.annotations
    verb = "annotates" if len(files) == 1 else "annotate"
    box_count = len(annotations.listing.boxes) // 4
    boxes = number_of(box_count, "box", "boxes")
    polygons = matched.keys.get("polygons", "")
    outlined = _OUTLINED.get(polygons, "")
    classes = number_of(len(annotations.classes), "class", "classes")
    class_names = listed(annotations.classes.values())
    images = f"{matched.count:,} of {number_of(len(matched.images), 'image')}"
    evidence = [f"{listed(files)} {verb} {images}: {boxes}{outlined} of {classes}: {class_names}"]
    if annotations.divided:
        counts = [f"{len(rows):,} {split}" for split, rows in annotations.divided.items()]
        evidence.append(f"splits by these files: {', '.join(counts)}")
    if proposed.lists:
        counts = [f"{len(names):,} in {path}" for path, names in proposed.lists.values()]
        evidence.append(f"splits: {', '.join(counts)}")
    return evidence


# faults and notes ---------------------------------------------------------------------------------


_COUNTERPART = "every image needs an annotation, and every annotation an image"


def _without_counterpart(
    inspection: Inspection, matched: MatchedImages, proposed: Proposed
) -> tuple[list[InputError], list[str]]:
    """The faults of images and annotations that are lost,
    and the images that are kept without boxes, as text.
    """
    folder = inspection.folder
    losses: list[InputError] = []
    if matched.unlisted:
        paths = [path for path, _ in proposed.lists.values()]
        places = dict.fromkeys(parent_of(path) or path for path in paths)
        count = number_of(len(matched.unlisted), "image")
        unlisted = listed(sorted(matched.unlisted))
        problem = f"{folder}: {count} in no list of {listed(places)}: {unlisted}"
        losses.append(InputError(problem, "expected every image in a list of a split"))
    if matched.missing:
        count = number_of(len(matched.missing), "annotation")
        problem = f"{folder}: {count} without an image: {listed(matched.missing)}"
        losses.append(InputError(problem, _COUNTERPART))
    if not matched.bare:
        return losses, []
    count = number_of(len(matched.bare), "image")
    bare = f"{count} without an annotation: {listed(matched.bare)}"
    if matched.keeps_bare:
        return losses, [f"{bare} (kept without boxes)"]
    return [*losses, InputError(f"{folder}: {bare}", _COUNTERPART)], []


def _faults_of_doubts(inspection: Inspection, proposed: Proposed) -> list[InputError]:
    """The doubts about the annotations, which a user must accept."""
    faults: list[InputError] = []
    for aim, doubt in proposed.doubts:
        faults.append(DoubtError.of(aim, "accepted", f"{inspection.folder}: {doubt}"))
    return faults


def _unread_masks(inspection: Inspection, matched: MatchedImages) -> list[str]:
    """The note on masks next to images with boxes."""
    if not matched.masks or "mask_files" in matched.keys:  # these are read as objects
        return []
    folders = sorted({parent_of(name) for name in matched.masks})
    count = number_of(len(matched.masks), "mask")
    name = inspection.folder.resolve().name
    paths = flow_list([f"{name}/{folder}" for folder in folders])
    keys = f"mask: {{folder: {paths}, unmasked: skip}}"
    hint = f"to keep only the images with a mask, add {keys} and, to boxes, missing: ignore"
    return [f"{count} in {listed(folders)}, not read; {hint}"]


def _impossible_boxes(inspection: Inspection, annotations: Annotations) -> list[InputError]:
    """The doubt about boxes that are outside their image, swapped or empty; none without them."""
    images = annotations.changed_boxes
    if not images:
        return []
    box_count = 0
    for counts in images.values():
        box_count += sum(counts.values())
    boxes = number_of(box_count, "impossible box", "impossible boxes")
    count = number_of(len(images), "image")
    problem = f"{inspection.folder}: {boxes} of {count}: {listed(images)}"
    expected = "expected boxes inside their images, with xmin < xmax and ymin < ymax"
    aim, outcome = "clip or drop these boxes", "clipped or dropped"
    return [DoubtError.of(aim, outcome, problem, expected, "correct them")]


def _read_as_images(
    inspection: Inspection, matched: MatchedImages, *, in_classes: bool
) -> list[InputError]:
    """The fault of masks that a recipe would read as images;
    none where it can name each folder of images.
    """
    masks = matched.masks_between()
    image_folders = {parent_of(name) for name in matched.images}
    if not masks or (len(image_folders) <= _MOST_FOLDERS and not in_classes):
        return []
    around = inspection.folder / folders_around(matched.images)
    problem = f"{inspection.folder}: masks would be read as images: {listed(masks)}"
    hint = f"move all masks out of {around}"
    return [InputError(problem, f"expected only images in {around}", hint)]


def _refuse(
    inspection: Inspection,
    error: InputError,
    files: Sequence[str] = (),
    *,
    is_certain: bool = False,
) -> Interpretation | None:
    """The fault of annotations; None if the folders are classes, as far as they can be
    (``is_certain``: they can't): then the annotations are somebody else's.
    """
    if not is_certain and _has_classes(images_and_masks(inspection)[0]):
        return None
    annotation_files = [*files]
    for tool_files in inspection.annotations.values():
        annotation_files += tool_files
    tables = [table.name for table in inspection.labels if table.name in annotation_files]
    if tables:
        command = inspection.command_as("with-labels")
        columns = Hint(f"to read only the columns of {tables[0]}: ", command)
        hint = join_hints("; ", filter(None, (error.hint, columns)))
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
    if inspection.content != "image":
        return None
    images, _ = images_and_masks(inspection)
    if not images or not _has_classes(images):
        return None
    for key in FORMATS:
        with contextlib.suppress(InputError):
            proposed = _propose_for(key, inspection)
            if proposed is None:
                continue
            interpretation = _interpret(inspection, proposed, in_classes=True)
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
    files = inspection.annotations.get(format.tool, ())
    images, _ = images_and_masks(inspection)
    stray_files: list[str] = []
    for names in inspection.others.values():
        stray_files += names
    folder = AnnotatedFolder(
        inspection.folder,
        files=files,
        images=images,
        names=list(inspection.listing.names),
        stray=stray_files,
        columns=_named_columns(inspection),
        init=inspection.command,
    )
    return format.propose_for(folder)


def _named_columns(inspection: Inspection) -> dict[str, str]:
    """The columns of images and classes that the user names."""
    options = {"path": inspection.options.image, "label": inspection.options.label}
    columns: dict[str, str] = {}
    for role, option in options.items():
        if option:
            _, _, columns[role] = option.rpartition(":")
    return columns


def _structures() -> dict[str, Recogniser]:
    """A structure for each format of annotations, and one for those of images in class folders."""
    structures: dict[str, Recogniser] = {}
    for key, format in all_formats().items():
        structures[format.structure] = functools.partial(_recognise, key)
    structures["boxes-in-class-folders"] = _recognise_in_classes
    return structures


STRUCTURES = _structures()
