"""Images and their annotations: COCO, Pascal VOC, YOLO, a CSV of boxes, or a folder of masks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotating import Annotations, annotate, find_rows
from imagenet_prep.recipes.box_files import has_corners, read_coco, read_data_yaml
from imagenet_prep.recipes.inspection import MOST_READ, Inspection
from imagenet_prep.recipes.labels_file import match
from imagenet_prep.recipes.layouts import CERTAIN, LIKELY, Proposal, Reading, as_command
from imagenet_prep.recipes.layouts.class_folders import shape_of
from imagenet_prep.recipes.schema import Boxes, Mask
from imagenet_prep.recipes.splits import is_image_folder, is_mask_folder, splits_above, stem_of, unmasked
from imagenet_prep.text import listed, number_of

CHOICES = {"boxes": {"missing": "ignore", "unannotated": "skip"}, "mask": {"missing": "ignore", "unmasked": "skip"}}
"""The keys of a recipe that leave out annotations without an image, and images without an annotation."""

Lists = Mapping[str, tuple[str, Sequence[str]]]
"""By split the file that lists its images, and those images."""


def _read(
    inspection: Inspection,
    key: str,
    value: Mapping[str, Any],
    used: Sequence[str],
    *,
    lists: Lists | None = None,
    faults: Sequence[InputError] = (),
) -> Reading | None:
    """The folder with these annotations; None if they are of less than half of the images.

    Args:
        inspection: the folder.
        key: the recipe's key, "boxes" or "mask".
        value: what it holds, except for CHOICES.
        used: the files of annotations.
        lists: of the splits.
        faults: found before.
    """
    images, masks = _images_and_masks(inspection)
    rows = {name: row for row, name in enumerate(inspection.listing.names)}
    listing = inspection.listing.picked([rows[name] for name in images])
    is_yolo = "yolo" in value
    full = {**value, **CHOICES[key], **({"unannotated": "empty"} if is_yolo else {})}
    boxes = msgspec.convert(full, Boxes) if key == "boxes" else None
    mask = msgspec.convert(full, Mask) if key == "mask" else None
    try:
        found = annotate(boxes, mask, listing, inspection.folder, inspection.folder, "clip")
    except InputError as error:
        return _refuse(inspection, key, error, used)
    bare, missing = found.unmatched
    matched = len(images) - len(bare)
    if 2 * matched < len(images):
        return None
    skips = [*CHOICES[key].items()]
    said = {**value, **dict(skips[:1] if missing else []), **dict(skips[1:] if bare and not is_yolo else [])}
    lead, left, lists = _lead(images), set(() if is_yolo else bare), lists or {}
    ways = {split: path for split, (path, _) in lists.items()}
    unlisted = set(images).difference(left, *(names for _, names in lists.values())) if lists else set()
    names = [name.removeprefix(lead) for name in images if name not in left and name not in unlisted]
    places = listed(dict.fromkeys(path.rpartition("/")[0] or path for path in ways.values()))
    without = f"without {'an annotation' if key == 'boxes' else 'a mask'}"
    texts = [
        f"{number_of(len(several), noun)} {how}: {listed(several)}"
        for several, noun, how in (
            (sorted(unlisted), "image", f"in no list of {places}"),
            (missing, "annotation", "without an image"),
            (bare, "image", without),
        )
        if several
    ]
    passed = [f"{texts.pop()} (kept without boxes)"] if bare and is_yolo else []
    if key == "boxes" and masks:
        where = sorted({name.rpartition("/")[0] for name in masks})
        hint = f"mask: {{folder: {inspection.folder.resolve().name}/{where[0]}, unmasked: skip}} in a recipe takes them"
        passed.append(f"{number_of(len(masks), 'mask')} in {listed(where)}: {hint}")
    certainty = CERTAIN + (not any(each.has_labels for each in inspection.labels if each.where not in used))
    return Reading(
        LIKELY if _has_classes(images) else certainty,
        tuple(_evidence(key, value, found, matched, len(images), lists)),
        f"images with {key}",
        Proposal(
            "files",
            "image",
            names,
            lead,
            splits={} if lists else splits_above(names),
            lists=ways,
            annotations={key: said},
            clips_boxes=bool(found.changed_boxes),
        ),
        [*faults, *_mixed(inspection, images, masks)],
        used=frozenset((*used, *ways.values())),
        lost=[InputError(f"{inspection.folder}: {each}", "expected one for each") for each in texts],
        clipped=_impossible_boxes(inspection, found),
        passed=[*passed, *found.unread],
    )


def _impossible_boxes(inspection: Inspection, found: Annotations) -> list[InputError]:
    """The fault of boxes that are outside their image, swapped or empty; none if there are none."""
    if not found.changed_boxes:
        return []
    count = sum(sum(counts.values()) for counts in found.changed_boxes.values())
    boxes = number_of(count, "impossible box", "impossible boxes")
    images = number_of(len(found.changed_boxes), "image")
    what = f"{inspection.folder}: {boxes} of {images}: {listed(found.changed_boxes)}"
    return [InputError(what, "expected boxes inside their images, neither swapped nor empty", "correct them")]


def _evidence(
    key: str, value: Mapping[str, Any], found: Annotations, matched: int, total: int, lists: Lists
) -> list[str]:
    where = listed(next(iter(value.values())))
    evidence = [f"{where} {'annotates' if key == 'boxes' else 'has masks of'} {matched:,} of {total:,} images"]
    if key == "boxes":
        boxes, classes = len(found.listing.boxes) // 4, found.classes
        said = f"{number_of(boxes, 'box', 'boxes')} of {number_of(len(classes), 'class', 'classes')}"
        evidence[0] += f": {said}: {listed(classes.values())}"
    if lists:
        evidence.append(f"splits: {', '.join(f'{len(names):,} in {path}' for path, names in lists.values())}")
    return evidence


def _refuse(inspection: Inspection, key: str, error: InputError, files: Sequence[str] = ()) -> Reading | None:
    """A reading with the fault of annotations; None if the folders are classes: then they are somebody else's."""
    if _has_classes(_images_and_masks(inspection)[0]):
        return None
    used = [*files, *(name for names in inspection.annotations.values() for name in names)]
    if any(each.where in used for each in inspection.labels):
        hint = f"{error.hint}; or {as_command(inspection, 'with-labels')} takes its columns"
        error = InputError(error.what, error.detail, hint)
    return Reading(CERTAIN + 1, (), f"images with {key}", faults=[error], used=used)


def _images_and_masks(inspection: Inspection) -> tuple[list[str], list[str]]:
    """The images of a folder, and those that are in folders of masks."""
    masks = [name for name in inspection.items if _mask_folder(name)]
    found = set(masks)
    return [name for name in inspection.items if name not in found], masks


def _mask_folder(name: str) -> str:
    """The folder of masks that a file is in, by its path; "" if it is in none."""
    folders = name.split("/")[:-1]
    place = next((place for place, each in enumerate(folders, 1) if is_mask_folder(each)), 0)
    return "/".join(folders[:place])


def _has_classes(names: Sequence[str]) -> bool:
    """Whether the folders of images may be classes."""
    shape = shape_of(names)
    return sum(not is_image_folder(name) for name in shape.files) > 1 and shape.has_classes


def _mixed(inspection: Inspection, names: Sequence[str], masks: Sequence[str]) -> list[InputError]:
    """The fault of masks that patterns of the images would match."""
    lead = _lead(names)
    endings = {name.rpartition(".")[2] for name in names}
    is_deep = any("/" in name.removeprefix(lead) for name in names)
    found = [name for name in masks if is_deep and name.startswith(lead) and name.rpartition(".")[2] in endings]
    what = f"{inspection.folder}: masks are among images of the same ending: {listed(found)}"
    return [InputError(what, "expected the images in a folder of their own", "move them to images/")] if found else []


def _lead(names: Sequence[str]) -> str:
    """The folders that all images are in."""
    common = os.path.commonpath([name.rpartition("/")[0] for name in (min(names), max(names))])
    return f"{common}/" if common else ""


# each kind of annotation ---------------------------------------------------------------------------------------


def _files_of(inspection: Inspection, tool: str) -> list[str]:
    """The annotation files of a tool; none if the folder does not hold images."""
    files = [name for each, names in inspection.annotations.items() if tool in each for name in names]
    return files if inspection.content == "image" else []


def _recognise_coco(inspection: Inspection) -> Reading | None:
    """A file of boxes that names the images; of several files for the same images, the one called instances."""
    files = [name for name in _files_of(inspection, "COCO") if name.endswith(".json")]
    sorts: dict[str, dict[int | str, str]] = {"boxes": {}, "captions": {}}
    for name in sorted(files, key=lambda name: ("instances" not in name, name)):
        try:
            coco = read_coco(inspection.folder / name)
        except InputError as error:
            return _refuse(inspection, "boxes", error)
        if coco.sort and coco.images:
            first = coco.images[0].file_name
            (row,) = find_rows([first], inspection.items, inspection.folder, inspection.folder / name)
            sorts[coco.sort].setdefault(first if row < 0 else row, name)
    boxes, captions = (sorted(names.values()) for names in sorts.values())
    value = {"coco": boxes, **({"captions": captions} if captions else {})}
    return _read(inspection, "boxes", value, [*boxes, *captions]) if boxes else None


def _recognise_yolo(inspection: Inspection) -> Reading | None:
    """Text files with the names of the images, and a file of the names of classes, which may name lists of splits."""
    files = _files_of(inspection, "YOLO")
    stems = set(map(stem_of, inspection.items))
    labels = [name for name in files if name.endswith(".txt") and stem_of(name) in stems]
    if not labels:
        return None
    every = [*files, *(name for names in inspection.others.values() for name in names)]
    names = [name for name in every if name.endswith((".yaml", ".yml", "classes.txt", "obj.names"))]
    names.sort(key=lambda name: (not name.endswith((".yaml", ".yml")), not name.endswith("data.yaml")))
    if not names:
        what = f"{inspection.folder} has YOLO annotations, and no file of the names of classes"
        hint = "add data.yaml with names: [...], or classes.txt with a class in each line"
        return _refuse(inspection, "boxes", InputError(what, "expected one", hint))
    try:
        lists = _listed_splits(inspection, names[0])
    except InputError as error:
        return _refuse(inspection, "boxes", error)
    value = {"yolo": sorted({name.rpartition("/")[0] or "." for name in labels}), "names": names[0]}
    return _read(inspection, "boxes", value, [*labels, names[0]], lists=lists)


def _listed_splits(inspection: Inspection, name: str) -> Lists:
    """The lists of images that a data.yaml names for its splits; none if it names folders, or is a list of names.

    Raises:
        InputError: a split is a list, and another one is not, or a list is not there or has no image of the folder.
    """
    path = inspection.folder / name
    said = read_data_yaml(path) if path.suffix.lower() in (".yaml", ".yml") else {}
    given = {key: said[key] for key in ("train", "val", "test") if said.get(key) not in (None, "", "~", "null")}
    if not any(str(each).strip("[]'\" ").endswith(".txt") for each in given.values()):
        return {}
    lists: dict[str, tuple[str, Sequence[str]]] = {}
    known = set(inspection.listing.names)
    for split, each in given.items():
        places = [each, f"{said.get('path', '.')}/{each}"]
        found = [os.path.normpath(f"{name.rpartition('/')[0]}/{place}").lstrip("/") for place in places]
        where = next((place for place in found if place in known), "")
        own = (inspection.folder / where).read_text(errors="replace").split("\n") if where else []
        lines = list(filter(None, map(str.strip, own)))
        hits = match(lines, inspection.items, inspection.folder, inspection.folder / where)
        if max(hits, default=-1) < 0:
            what = f"{path}: {split}: {each} is no list of images of {inspection.folder}"
            hint = "correct it; or take train, val and test out: all images are divided by their names then"
            raise InputError(what, "expected a text file for each split, with an image in each line", hint)
        lists["validation" if split == "val" else split] = where, [inspection.items[row] for row in hits if row >= 0]
    return lists


def _recognise_voc(inspection: Inspection) -> Reading | None:
    """XML files with the names of the images, and perhaps lists of the splits, of names without endings."""
    files = [name for name in _files_of(inspection, "Pascal VOC") if name.lower().endswith(".xml")]
    if not files:
        return None
    found = list(filter(None, map(_IMAGE_SET.fullmatch, inspection.listing.names)))
    faults = []
    if len({each[1] for each in found}) > 1:
        what = f"{inspection.folder} has lists of splits in several folders: {listed(each[0] for each in found)}"
        hint = "make a recipe of each folder above them"
        faults = [InputError(what, "expected one folder ImageSets/Main", hint)]
    by_stem = {stem_of(name): name for name in _images_and_masks(inspection)[0]}
    by_split = {each[2]: each[0] for each in found}
    lists: dict[str, tuple[str, Sequence[str]]] = {}
    for split in ("train", "val", "test") if {"train", "val"} & by_split.keys() else ("trainval", "test"):
        if split in by_split:
            lines = map(str.strip, (inspection.folder / by_split[split]).read_text(errors="replace").splitlines())
            own = [by_stem[line] for line in lines if line in by_stem]
            lists["validation" if split == "val" else split] = by_split[split], own
    if lists and not any(own for _, own in lists.values()):
        what = f"{listed(path for path, _ in lists.values())}: no line is the name of an image without its ending"
        faults.append(InputError(what, "expected the lists of these images", "correct them, or move them away"))
    folders = sorted({name.rpartition("/")[0] or "." for name in files})
    return _read(inspection, "boxes", {"voc": folders}, files, lists=lists, faults=faults)


def _recognise_csv(inspection: Inspection) -> Reading | None:
    """A CSV with a column for each corner of a box."""
    tables = [name for name in inspection.listing.names if name.lower().endswith(".csv")]
    if inspection.content != "image":
        return None
    files = [name for name in tables[:MOST_READ] if has_corners(inspection.folder / name)]
    return _read(inspection, "boxes", {"csv": files}, files) if files else None


_IMAGE_SET = re.compile(r"(.*/)?ImageSets/Main/(train|val|test|trainval)\.txt")

_PAIRED = 0.9
"""The least share of masks that have the name of an image."""


def _recognise_masks(inspection: Inspection) -> Reading | None:
    """A folder with a name of masks, whose PNGs have the names of the images outside of it."""
    images, masks = _images_and_masks(inspection)
    stems = {unmasked(stem_of(name)) for name in images}
    paired = [name for name in masks if name.lower().endswith(".png") and unmasked(stem_of(name)) in stems]
    if inspection.content != "image" or not paired or len(paired) < _PAIRED * len(masks):
        return None
    folders = sorted({_mask_folder(name) for name in masks})
    return _read(inspection, "mask", {"folder": folders, "match": "stem"}, ())


LAYOUTS = {
    "coco": _recognise_coco,
    "csv-boxes": _recognise_csv,
    "masks": _recognise_masks,
    "pascal-voc": _recognise_voc,
    "yolo": _recognise_yolo,
}
