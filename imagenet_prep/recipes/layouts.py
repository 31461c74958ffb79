"""Names and first bytes of files -> what they are that no class folder is: masks, splits, other tools' annotations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from imagenet_prep.sources.names import Names
from imagenet_prep.text import listed

_MASK_FOLDERS = frozenset(
    (
        *("mask", "masks", "annotation", "annotations", "annotated", "anndir", "label", "labels", "labelled", "gt"),
        *("groundtruth", "groundtruths", "segmentation", "segmentations", "seg", "segs", "segmentationclass"),
        *("segmentationobject", "target", "targets", "trimap", "trimaps", "gtfine", "gtcoarse", "matte", "mattes"),
    )
)
_IMAGE_FOLDERS = frozenset(
    (
        *("image", "images", "img", "imgs", "imgdir", "jpegimages", "photo", "photos", "picture", "pictures", "rgb"),
        *("input", "inputs", "original", "originals", "leftimg8bit", "raw"),
    )
)
_MASK_NAME = re.compile(r"(.+)[ _.-](?:mask|masks|gt|seg|segmentation|label|labels|labelids|annotation)(?:[ _-]?\d+)?")
_MASK_WORDS = (b"mask", b"gt", b"seg", b"label", b"annotation")
_SPLIT = re.compile(r"(train|training|val|valid|validation|test|testing|dev|eval)[ _-]?\d*", re.IGNORECASE)
_YOLO = re.compile(rb"\s*\d+(\s+-?\d*\.?\d+){4,}\s*")
_COCO = (b'"images"', b'"annotations"', b'"categories"', b'"image_id"', b'"file_name"')

_PAIRED = 0.9
"""The least share of the files of a folder of masks are called as files of another folder, at the least."""

_MASKED = 0.1
"""So many files of a set are masks beside their images, at the least, where it has any."""


@dataclass(frozen=True, slots=True)
class Misread:
    """Why folders are no classes, and what can be said in a recipe in their place."""

    what: str
    choice: str


def misread(classes: Mapping[str, Sequence[str]], names: Names) -> Misread | None:
    """What class folders would be misread as classes; None if there is no sign of that.

    Args:
        classes: the files of each, by their paths from there.
        names: all of them.
    """
    named = list(classes)
    if len(named) > 1 and all(_SPLIT.fullmatch(name) for name in named):
        return Misread(
            f"the folders {listed(named)} are called as splits are, not as classes",
            "a file of labels, and a pattern for each split (splits: {train: {files: 'train/*'}, ...}); "
            f"or classes: [{', '.join(named)}], if that is what they are",
        )
    masks = _mask_folders(classes)
    if masks:
        images = [name for name in named if name not in masks]
        return Misread(
            f"the folders {listed(named)} look like images and their masks, not like classes",
            f"the images alone (source: {{files: '{images[0]}/**/*'}}); "
            f"or classes: [{', '.join(named)}], if that is what they are",
        )
    return mixed_masks(names)


def nested(classes: Mapping[str, Sequence[str]]) -> list[str]:
    """The folders within classes that would be told apart by nothing but paths; ``classes`` as for ``misread``.

    One way down to all files of a class, as in class/images/file, tells nothing apart.
    """
    found = []
    for name, files in classes.items():
        inner = sorted({each.rpartition("/")[0] for each in files})
        if len(inner) > 1:
            found += [f"{name}/{each}".rstrip("/") for each in inner]
    return found


def _mask_folders(classes: Mapping[str, Sequence[str]]) -> list[str]:
    plain = {name: re.sub(r"[^a-z0-9]", "", name.lower()) for name in classes}
    masks = [name for name, text in plain.items() if text in _MASK_FOLDERS]
    others = [name for name in classes if name not in masks]
    if not masks or not others:
        return []
    if any(plain[name] in _IMAGE_FOLDERS for name in others):
        return masks
    images = {_stem(each) for name in others for each in classes[name]}
    pairs = [_unmasked(_stem(each)) in images or _stem(each) in images for name in masks for each in classes[name]]
    return masks if sum(pairs) >= _PAIRED * len(pairs) else []


def mixed_masks(names: Names) -> Misread | None:
    """What tells that masks lie beside their images: a.jpg and a_mask.png."""
    images = {}
    for name in names.holding(_MASK_WORDS):
        stem = name.rpartition(".")[0]
        image = _unmasked(stem)
        if image != stem:
            images[name] = image
    if not images or len(images) < _MASKED * len(names):
        return None
    wanted = set(images.values())
    stems = {stem for name in names if (stem := name.rpartition(".")[0]) in wanted}
    masks = [name for name, image in images.items() if image in stems]
    if not masks or len(masks) < _MASKED * len(names):
        return None
    return Misread(
        f"{len(masks):,} of {len(names):,} files are called as masks of others are: {listed(masks)}",
        "take the masks to a folder of their own outside; or name the classes in the recipe (classes: [...]), "
        "if these are images like the others",
    )


def _stem(name: str) -> str:
    return name.rpartition("/")[2].rpartition(".")[0]


def _unmasked(stem: str) -> str:
    """The name of the image that a mask of this name belongs to; the same name if it says nothing of that."""
    match = _MASK_NAME.fullmatch(stem.lower())
    return stem[: len(match[1])] if match else stem


# what a folder holds beside images -----------------------------------------------------------------------------


def annotations_in(name: str, head: bytes, tail: bytes, stems: frozenset[str]) -> str:
    """Whose annotations a file holds, by its name and some of its bytes; "" if of no tool that is known.

    ``stems`` are the names of the images without folder and ending.
    """
    suffix = suffix_of(name)
    if suffix == ".json":
        both = head + tail
        if b'"shapes"' in both and b'"imagePath"' in both:
            return "LabelMe"
        return "COCO" if sum(key in both for key in _COCO) > 1 else ""
    if suffix == ".xml" and b"<annotation" in head:
        return "Pascal VOC"
    if suffix == ".txt" and _stem(name) in stems:
        lines = [line for line in head.split(b"\n")[:3] if line.strip()]
        return "YOLO" if lines and all(_YOLO.fullmatch(line) for line in lines) else ""
    return ""


def suffix_of(name: str) -> str:
    """The ending of a file's name as types are counted by: ".jpg"; the whole name if it has none."""
    last = name.rpartition("/")[2]
    stem, dot, suffix = last.rpartition(".")
    return f".{suffix.lower()}" if dot and stem else last


def counted(names: Iterable[str], most: int = 8) -> str:
    """How many files there are of each type: "12 .gif, 3 .webp"."""
    found = Counter(map(suffix_of, names)).most_common()
    text = ", ".join(f"{count:,} {suffix}" for suffix, count in found[:most])
    return text + (f", {sum(count for _, count in found[most:]):,} others" if len(found) > most else "")
