"""AnnotatedFolder: images and their annotations: COCO, Pascal VOC, YOLO, or a folder of masks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotating import Annotations, annotate, find_rows
from imagenet_prep.recipes.box_files import read_coco
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts import (
    CERTAIN,
    LIKELY,
    Description,
    FolderLayout,
    Proposal,
    Reading,
    describe_rest,
)
from imagenet_prep.recipes.layouts.class_folders import Shape, shape_of
from imagenet_prep.recipes.splits import is_image_folder, is_mask_folder, split_name, stem_of, unmasked
from imagenet_prep.text import listed, number_of

CHOICES = {"boxes": {"missing": "ignore", "unannotated": "skip"}, "mask": {"missing": "ignore", "unmasked": "skip"}}
"""The keys of a recipe that leave out annotations without an image, and images without an annotation."""


@dataclass(frozen=True, slots=True)
class AnnotatedFolder:
    """Images with their annotations.

    Args:
        names: the images.
        key: the recipe's key, "boxes" or "mask", and ``value`` what it holds, except for CHOICES.
        used: the files of annotations.
        found: what they say.
        others: the images that are masks, and not taken.
        lists: the file that lists the images of each split, and those images; empty if no file does.
    """

    names: Sequence[str]
    key: str
    value: Mapping[str, Any]
    used: frozenset[str]
    found: Annotations
    others: Sequence[str]
    lists: Mapping[str, tuple[str, Sequence[str]]] = field(default_factory=dict)


def recognise_annotations(
    inspection: Inspection, key: str, value: Mapping[str, Any], used: Sequence[str], where: str
) -> Reading | None:
    """The folder with these annotations; None if they are of less than half of the images."""
    import msgspec

    from imagenet_prep.recipes.schema import Boxes, Mask

    items, masks = images_and_masks(inspection)
    rows = {name: row for row, name in enumerate(inspection.listing.names)}
    listing = inspection.listing.picked([rows[name] for name in items])
    has_classes = _has_classes(items)
    certainty = LIKELY if has_classes else CERTAIN + (not any(each.has_labels for each in inspection.labels))
    full = {**value, **CHOICES[key], **({"unannotated": "empty"} if "yolo" in value else {})}
    boxes = msgspec.convert(full, Boxes) if key == "boxes" else None
    mask = msgspec.convert(full, Mask) if key == "mask" else None
    faults = _mixed(inspection, items, masks)
    try:
        found = annotate(boxes, mask, listing, inspection.folder, inspection.folder)
    except InputError as error:
        return refuse_annotations(inspection, key, error)
    matched = len(items) - len(found.unmatched[0])
    if 2 * matched < len(items):
        return None
    evidence = f"{where} {'annotates' if key == 'boxes' else 'has masks of'} {matched:,} of {len(items):,} images"
    if key == "boxes":
        boxes_said = number_of(len(found.listing.boxes) // 4, "box", "boxes")
        classes = number_of(len(found.classes), "class", "classes")
        evidence += f": {boxes_said} of {classes}: {listed(found.classes.values())}"
    folder = AnnotatedFolder(items, key, value, frozenset(used), found, masks if key == "boxes" else ())
    return Reading(certainty, (evidence,), f"images with {key}", faults, folder)


def refuse_annotations(inspection: Inspection, key: str, error: InputError) -> Reading | None:
    """A reading with the fault of annotations; None if the folders are classes: then they are somebody else's."""
    items, masks = images_and_masks(inspection)
    folder = AnnotatedFolder(items, key, {}, frozenset(), Annotations(inspection.listing), masks)
    return None if _has_classes(items) else Reading(CERTAIN + 1, (), f"images with {key}", (error,), folder)


def describe_annotations(inspection: Inspection, reading: Reading) -> Description:
    """The images and annotations without a counterpart are lost; other masks and lists are passed."""
    folder: AnnotatedFolder = reading.value
    used = folder.used or [name for names in inspection.annotations.values() for name in names]
    rest = describe_rest(inspection, used=[*used, *(path for path, _ in folder.lists.values())])
    lost, passed = list(rest.lost), list(rest.passed)
    bare, missing = folder.found.unmatched
    if folder.lists and (others := sorted(set(folder.names).difference(*_in_lists(folder), bare))):
        text = f"{number_of(len(others), 'image')} in no list of ImageSets/Main: {listed(others)}"
        lost.append(InputError(f"{inspection.folder}: {text}", "expected each in a split"))
    texts = [(bare, f"without {'an annotation' if folder.key == 'boxes' else 'a mask'}", "image")]
    for names, words, noun in (*texts, (missing, "without an image", "annotation")):
        text = f"{number_of(len(names), noun)} {words}: {listed(names)}"
        if names and noun == "image" and "yolo" in folder.value:
            passed.append(f"{text} (kept without boxes)")
        elif names:
            lost.append(InputError(f"{inspection.folder}: {text}", "expected one for each"))
    if folder.others:
        where = sorted({name.rpartition("/")[0] for name in folder.others})
        hint = f"mask: {{folder: {inspection.folder.resolve().name}/{where[0]}, unmasked: skip}} in a recipe takes them"
        passed.append(f"{number_of(len(folder.others), 'mask')} in {listed(where)}: {hint}")
    return Description(tuple(lost), (*passed, *folder.found.unread))


def propose_annotations(inspection: Inspection, reading: Reading) -> Proposal:
    """Patterns of the images, and the recipe's key of their annotations."""
    folder: AnnotatedFolder = reading.value
    taken, lengths = list(folder.names), dict(zip(inspection.items, inspection.lengths, strict=True))
    lead = _lead(taken)
    value = dict(folder.value)
    for names, choice in zip(folder.found.unmatched[::-1], CHOICES[folder.key].items(), strict=True):
        if names and not (choice[0] == "unannotated" and "yolo" in value):
            value |= dict([choice])
    left = set(folder.found.unmatched[0]) if "yolo" not in value else set()
    left |= set(taken).difference(*_in_lists(folder)) if folder.lists else set()
    names = [name for name in taken if name not in left]
    lists = {
        split: (path, sum(lengths[name] for name in own if name not in left))
        for split, (path, own) in folder.lists.items()
    }
    return Proposal(
        "files",
        "image",
        [name.removeprefix(lead) for name in names],
        [lengths[name] for name in names],
        lead,
        splits=None if lists else _splits([name.removeprefix(lead) for name in names]),
        lists=lists,
        annotations={folder.key: value},
    )


def _in_lists(folder: AnnotatedFolder) -> list[Sequence[str]]:
    return [names for _, names in folder.lists.values()]


def images_and_masks(inspection: Inspection) -> tuple[list[str], list[str]]:
    """The images of a folder, and those that are in folders of masks."""
    masks = [name for name in inspection.items if mask_folder(name)]
    found = set(masks)
    return [name for name in inspection.items if name not in found], masks


def mask_folder(name: str) -> str:
    """The folder of masks that a file is in, by its path; "" if it is in none."""
    folders = name.split("/")[:-1]
    place = next((place for place, each in enumerate(folders, 1) if is_mask_folder(each)), 0)
    return "/".join(folders[:place])


def _has_classes(names: Sequence[str]) -> bool:
    """Whether the folders of images may be classes."""
    classes = {name: files for name, files in shape_of(names).files.items() if not is_image_folder(name)}
    return Shape("", classes, {}).has_classes


def _mixed(inspection: Inspection, names: Sequence[str], masks: Sequence[str]) -> tuple[InputError, ...]:
    """The fault of masks that patterns of the images would match."""
    lead = _lead(names)
    endings = {name.rpartition(".")[2] for name in names}
    is_deep = any("/" in name.removeprefix(lead) for name in names)
    found = [name for name in masks if is_deep and name.startswith(lead) and name.rpartition(".")[2] in endings]
    if not found:
        return ()
    what = f"{inspection.folder}: masks are among images of the same ending: {listed(found)}"
    return (InputError(what, "expected the images in a folder of their own", "move them to images/"),)


def _lead(names: Sequence[str]) -> str:
    """The folders that all images are in."""
    first, last = min(names).split("/")[:-1], max(names).split("/")[:-1]
    count = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    kept = first[: min(len(first), len(last)) if count is None else count]
    return "".join(f"{each}/" for each in kept)


def _splits(names: Sequence[str]) -> dict[str, str] | None:
    """The folders of splits that all images are in, and the split that each is: train2017 is train."""
    places: dict[str, str] = {}
    for name in names:
        folders = name.split("/")[:-1]
        place = next((place for place, each in enumerate(folders, 1) if split_name(each)), 0)
        if not place:
            return None
        places["/".join(folders[:place])] = split_name(folders[place - 1])
    if len(places) < 2:
        return None
    return places if len(set(places.values())) == len(places) else {each: re.sub(r"\W", "-", each) for each in places}


# each kind of annotation ---------------------------------------------------------------------------------------


def _recognise_coco(inspection: Inspection) -> Reading | None:
    """A file of boxes that names the images; of several files for the same images, the one called instances."""
    files = [name for tool, names in inspection.annotations.items() if "COCO" in tool for name in names]
    if inspection.content != "image" or not files:
        return None
    sorts: dict[str, dict[int | str, str]] = {"boxes": {}, "captions": {}}
    rows = {name: row for row, name in enumerate(inspection.items)}
    for name in sorted(files, key=lambda name: ("instances" not in name, name)):
        if not name.endswith(".json"):
            continue
        try:
            coco = read_coco(inspection.folder / name)
        except InputError as error:
            return refuse_annotations(inspection, "boxes", error)
        if coco.sort and coco.images:
            first = coco.images[0].file_name
            (row,) = find_rows([first], rows, inspection.folder, inspection.folder / name)
            sorts[coco.sort].setdefault(first if row < 0 else row, name)
    boxes, captions = (sorted(names.values()) for names in sorts.values())
    if not boxes:
        return None
    value = {"coco": boxes, **({"captions": captions} if captions else {})}
    return recognise_annotations(inspection, "boxes", value, [*boxes, *captions], listed(boxes))


def _recognise_yolo(inspection: Inspection) -> Reading | None:
    """Text files with the names of the images, and a file of the names of classes."""
    files = [name for tool, names in inspection.annotations.items() if "YOLO" in tool for name in names]
    stems = set(map(stem_of, inspection.items))
    labels = [name for name in files if name.endswith(".txt") and stem_of(name) in stems]
    if inspection.content != "image" or not labels:
        return None
    folders = sorted({name.rpartition("/")[0] or "." for name in labels})
    every = [*files, *(name for names in inspection.others.values() for name in names)]
    names = [name for name in every if name.endswith((".yaml", ".yml", "classes.txt", "obj.names"))]
    names.sort(key=lambda name: (not name.endswith((".yaml", ".yml")), not name.endswith("data.yaml")))
    if not names:
        what = f"{inspection.folder} has YOLO annotations, and no file of the names of classes"
        hint = "add data.yaml with names: [...], or classes.txt with a class in each line"
        return refuse_annotations(inspection, "boxes", InputError(what, "expected one", hint))
    value = {"yolo": folders, "names": names[0]}
    return recognise_annotations(inspection, "boxes", value, [*labels, names[0]], listed(folders))


def _recognise_voc(inspection: Inspection) -> Reading | None:
    """XML files with the names of the images."""
    files = [name for tool, names in inspection.annotations.items() if "Pascal VOC" in tool for name in names]
    files = [name for name in files if name.lower().endswith(".xml")]
    if inspection.content != "image" or not files:
        return None
    folders = sorted({name.rpartition("/")[0] or "." for name in files})
    reading = recognise_annotations(inspection, "boxes", {"voc": folders}, files, listed(folders))
    found = list(filter(None, map(_IMAGE_SET.fullmatch, inspection.listing.names)))
    if reading is None or not found:
        return reading
    if len({match[1] for match in found}) > 1:
        what = f"{inspection.folder} has lists of splits in several folders: {listed(match[0] for match in found)}"
        fault = InputError(what, "expected one folder ImageSets/Main", "make a recipe of each folder above them")
        return dataclasses.replace(reading, faults=(*reading.faults, fault))
    lists = _image_sets(inspection.folder, {match[2]: match[0] for match in found}, reading.value.names)
    said = ", ".join(f"{len(names):,} in {path}" for path, names in lists.values())
    value = dataclasses.replace(reading.value, lists=lists)
    return dataclasses.replace(reading, evidence=(*reading.evidence, f"splits: {said}"), value=value)


_IMAGE_SET = re.compile(r"(.*/)?ImageSets/Main/(train|val|test|trainval)\.txt")


def _image_sets(folder: Path, found: Mapping[str, str], images: Sequence[str]) -> dict[str, tuple[str, Sequence[str]]]:
    """The lists of VOC's splits, of names without endings; trainval if there is neither train nor val."""
    names = ("train", "val", "test") if {"train", "val"} & found.keys() else ("trainval", "test")
    by_stem = {stem_of(name): name for name in images}
    lists: dict[str, tuple[str, Sequence[str]]] = {}
    for split in (each for each in names if each in found):
        lines = (folder / found[split]).read_text(errors="replace").split()
        own = [by_stem[line] for line in lines if line in by_stem]
        lists["validation" if split == "val" else split] = (found[split], own)
    return lists


_PAIRED = 0.9
"""The least share of masks that have the name of an image."""


def _recognise_masks(inspection: Inspection) -> Reading | None:
    """A folder with a name of masks, whose PNGs have the names of the images outside of it."""
    images, masks = images_and_masks(inspection)
    stems = {unmasked(stem_of(name)) for name in images}
    paired = [name for name in masks if name.lower().endswith(".png") and unmasked(stem_of(name)) in stems]
    if inspection.content != "image" or not paired or len(paired) < _PAIRED * len(masks):
        return None
    folders = sorted({mask_folder(name) for name in masks})
    return recognise_annotations(inspection, "mask", {"folder": folders, "match": "stem"}, (), listed(folders))


LAYOUTS = {
    name: FolderLayout(recognise, describe_annotations, propose_annotations)
    for name, recognise in {
        "coco": _recognise_coco,
        "masks": _recognise_masks,
        "pascal-voc": _recognise_voc,
        "yolo": _recognise_yolo,
    }.items()
}
