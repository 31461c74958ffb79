"""Which split each file is of; and layouts of folders that would be misread: masks, annotations, nested classes."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate, chain

import numpy as np
from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.inputs import Inputs, need_path
from imagenet_prep.recipes.labels_file import match
from imagenet_prep.recipes.recipe_file import RecipeFile, shortened
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.folders import read_file_list
from imagenet_prep.sources.names import Column, Names, Rows, below, places_of
from imagenet_prep.sources.patterns import compile_pattern
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of

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

_PAIRED = 0.9
"""The least share of the files of a folder of masks are called as files of another folder, at the least."""

_MASKED = 0.1
"""The least number of masks next to their images in a set that has masks."""


class Misread(Struct, frozen=True):
    """The reason why folders are no classes, and the recipe that fits."""

    what: str
    choice: str


def misread(classes: Mapping[str, Sequence[str]], names: Names) -> Misread | None:
    """The class folders that would be misread as classes; None without a sign of that.

    Args:
        classes: the files of each, by their paths from there.
        names: all of them.
    """
    named, masks = list(classes), _mask_folders(classes)
    listing = f"or classes: [{', '.join(named)}], if that is what they are"
    if len(named) > 1 and all(_SPLIT.fullmatch(name) for name in named):
        ways = "a file of labels, and a pattern for each split (splits: {train: {files: 'train/*'}, ...})"
        what = f"the folders {listed(named)} are called as splits are, not as classes"
        return Misread(what, f"{ways}; {listing}")
    if masks:
        images = next(name for name in named if name not in masks)
        what = f"the folders {listed(named)} look like images and their masks, not like classes"
        return Misread(what, f"the images alone (source: {{files: '{images}/**/*'}}); {listing}")
    return mixed_masks(names)


def nested(classes: Mapping[str, Sequence[str]]) -> list[str]:
    """The folders within classes that only paths distinguish; ``classes`` as for ``misread``.

    One way down to all files of a class, as in class/images/file, tells nothing apart.
    """
    found = []
    for name, files in classes.items():
        inner = sorted({each.rpartition("/")[0] for each in files})
        if len(inner) > 1:
            found += [f"{name}/{each}".rstrip("/") for each in inner]
    return found


def _mask_folders(classes: Mapping[str, Sequence[str]]) -> list[str]:
    masks, others = list(filter(is_mask_folder, classes)), [name for name in classes if not is_mask_folder(name)]
    if not masks or not others:
        return []
    if any(map(is_image_folder, others)):
        return masks
    images = {stem_of(each) for name in others for each in classes[name]}
    pairs = [unmasked(stem_of(each)) in images or stem_of(each) in images for name in masks for each in classes[name]]
    return masks if sum(pairs) >= _PAIRED * len(pairs) else []


def _plain(folder: str) -> str:
    return re.sub(r"[^a-z0-9]", "", folder.lower())


def is_image_folder(name: str) -> bool:
    """Whether a folder has a name that says no more than that images are in it."""
    return _plain(name) in _IMAGE_FOLDERS


def is_mask_folder(name: str) -> bool:
    """Whether a folder has the name of one of masks or annotations."""
    return _plain(name) in _MASK_FOLDERS


def split_name(folder: str) -> str:
    """The split that a folder is called as: "train" for train2017; "" if it is not."""
    match = _SPLIT.fullmatch(folder)
    word = match[1].lower() if match else ""
    return {"training": "train", "testing": "test", "dev": "validation"}.get(word, FOLDERS.get(word, word))


def splits_above(names: Iterable[str]) -> dict[str, str]:
    """The folders of splits that all files are in, and the split that each is: train2017 is train; else none."""
    places: dict[str, str] = {}
    for name in names:
        folders = name.split("/")[:-1]
        place = next((place for place, each in enumerate(folders, 1) if split_name(each)), 0)
        places["/".join(folders[:place])] = split_name(folders[place - 1]) if place else ""
    if "" in places or len(places) < 2:
        return {}
    return places if len(set(places.values())) == len(places) else {each: re.sub(r"\W", "-", each) for each in places}


def mixed_masks(names: Names) -> Misread | None:
    """The evidence for masks next to their images: a.jpg and a_mask.png."""
    stems = ((name, name.rpartition(".")[0]) for name in names.holding(_MASK_WORDS))
    images = {name: image for name, stem in stems if (image := unmasked(stem)) != stem}
    if not images or len(images) < _MASKED * len(names):
        return None
    wanted = set(images.values())
    known = {stem for name in names if (stem := name.rpartition(".")[0]) in wanted}
    masks = [name for name, image in images.items() if image in known]
    if not masks or len(masks) < _MASKED * len(names):
        return None
    what = f"{len(masks):,} of {len(names):,} files are called as masks of others are: {listed(masks)}"
    ways = "take the masks to a folder of their own outside; or name the classes in the recipe (classes: [...])"
    return Misread(what, f"{ways}, if these are images like the others")


def stem_of(name: str) -> str:
    """The name of a file without its folders and its ending."""
    return name.rpartition("/")[2].rpartition(".")[0]


def unmasked(stem: str) -> str:
    """The name of the image that a mask of this name belongs to; the same name if it says nothing of that."""
    match = _MASK_NAME.fullmatch(stem.lower())
    return stem[: len(match[1])] if match else stem


# names and types of files ------------------------------------------------------------------------------------


def suffix_of(name: str) -> str:
    """The ending of a file's name as types are counted by: ".jpg"; the whole name if it has none."""
    last = name.rpartition("/")[2]
    stem, dot, suffix = last.rpartition(".")
    return f".{suffix.lower()}" if dot and stem else last


def grouped(names: Iterable[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    """The names by their key, in their order."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(key(name), []).append(name)
    return found


def counted(names: Iterable[str], most: int = 8) -> str:
    """How many files there are of each type: "12 .gif, 3 .webp"."""
    found = Counter(map(suffix_of, names)).most_common()
    text = ", ".join(f"{count:,} {suffix}" for suffix, count in found[:most])
    return text + (f", {sum(count for _, count in found[most:]):,} others" if len(found) > most else "")


FOLDERS = {"train": "train", "validation": "validation", "valid": "validation", "val": "validation", "test": "test"}
"""Folders that are splits if a set has no others, and the split that each is."""

ONLY = "train"
"""The name of the split where there is but one."""

_ALL = 1 << 64


class Division(Struct, frozen=True):
    """One split: its rows of the listing, whether in an order of their own, and how many folders lead to its classes.

    ``lead`` is what comes before the class in each name: "train/", or nothing.
    """

    name: str
    rows: Rows
    is_ordered: bool
    lead: str = ""


def divide(
    file: RecipeFile, inputs: Inputs, listing: Catalog, root: AnyPath, classes_below: int
) -> tuple[list[Division], list[str]]:
    """The splits, and what to tell the user of files that are in none.

    Args:
        file: the recipe.
        inputs: where the files are from.
        listing: those of them that matter.
        root: the folder of the recipe's relative paths.
        classes_below: how many folders must follow that of a split: 1 if they are the classes.

    Raises:
        InputError: a split has no file, or a file is in two.
    """
    fractions, places = rules.fractions_of(file), rules.places_of(file)
    if inputs.divided:
        divisions = [Division(name, rows, is_ordered=True) for name, rows in inputs.divided.items()]
    elif file.recipe.stratified:
        divisions = [Division(ONLY, range(len(listing)), inputs.is_ordered)]  # divided once the classes are known
    elif fractions:
        shares, parts = Shares(fractions), {name: array("I") for name in fractions}
        for row, name in enumerate(listing.names):
            parts[shares.split_of(name)].append(row)
        divisions = [Division(name, rows, inputs.is_ordered) for name, rows in parts.items()]
    elif places:
        divisions = [_placed(file, inputs, listing, root, name, place) for name, place in places.items()]
    elif folders := _folders_of(inputs, listing, classes_below):
        divisions = [
            Division(split, listing.names.below(f"{top}/"), is_ordered=False, lead=f"{top}/")
            for top, split in folders.items()
        ]
    else:
        divisions = [Division(ONLY, range(len(listing)), inputs.is_ordered)]
    _refuse_empty(file, divisions)
    return divisions, _check_disjoint(listing, divisions)


def _folders_of(inputs: Inputs, listing: Catalog, classes_below: int) -> Mapping[str, str]:
    """The folders that are splits, and the splits."""
    if inputs.given:
        return {name: name for name in inputs.given}
    return split_folders(listing.names, classes_below) if inputs.has_folders else {}


def _refuse_empty(file: RecipeFile, divisions: Sequence[Division]) -> None:
    """Raise InputError if a split has no file."""
    for split in (division.name for division in divisions if not len(division.rows)):
        what = f"{file.place(('splits', split))}: no file is in split {split}"
        remedy = f"correct what `splits` says of {split}, or take that split out"
        if rules.fractions_of(file):
            remedy = f"give {split} a larger fraction, or take `splits` out: all files are in one split then"
        raise InputError(what, "expected at least one", remedy)


def _placed(
    file: RecipeFile, inputs: Inputs, listing: Catalog, root: AnyPath, name: str, place: tuple[str, str]
) -> Division:
    sort, text = place
    key = ("splits", name, sort)
    if sort == "manifest":
        path = need_path(file, key, below(root, text))
        found = read_file_list(path, inputs.base)
        hits = match(found.names, listing.names, inputs.base, path, file.recipe.strip)
        for each, line, hit in zip(found.names, found.lines, hits, strict=True):
            if hit < 0:
                what = f"{path}, line {line}: {each} is not among the files of the source"
                hint = "remove the line, or check the source in the recipe"
                raise InputError(what, "expected every file in the manifest to exist", hint)
        return Division(name, hits, is_ordered=True)
    if sort == "folder":
        lead = text.removeprefix("./").rstrip("/") + "/"
        rows = array("I", (row for row, each in enumerate(listing.names) if each.startswith(lead)))
        return Division(name, rows, inputs.is_ordered, lead)
    try:
        accept = compile_pattern(text.removeprefix("./"))
    except ValueError as error:
        raise file.fault(key, f"{shortened(text)!r} is not a pattern", str(error)) from error
    rows = array("I", (row for row, each in enumerate(listing.names) if accept.fullmatch(each)))
    return Division(name, rows, inputs.is_ordered)


def split_folders(names: Iterable[str], classes_below: int) -> dict[str, str]:
    """The splits that a set's own folders are, by folder; none if one of them is no name of a split.

    Files are at least ``classes_below`` folders below their split's.
    """
    tops = set()
    for name in names:
        if name.count("/") <= classes_below:
            return {}
        tops.add(top := name.partition("/")[0])
        if top not in FOLDERS:
            return {}
    splits = {top: split for top, split in FOLDERS.items() if top in tops}
    is_known = "train" in splits and len(tops) == len(splits) == len(set(splits.values()))
    return splits if is_known else {}


def _check_disjoint(listing: Catalog, divisions: Sequence[Division]) -> list[str]:
    owner = np.zeros(len(listing), np.int16)
    for number, division in enumerate(divisions, 1):
        places = places_of(division.rows)
        if owner[places].any():
            row = next(row for row in division.rows if owner[row])
            raise InputError(
                f"{listing.names[row]} is in the splits {divisions[owner[row] - 1].name} and {division.name}",
                "expected every file in one split",
                "change `splits` in the recipe, or the manifests that it names",
            )
        owner[places] = number
    left = len(listing) - int(np.count_nonzero(owner))
    return [f"{left:,} of {len(listing):,} files are in no split, and are left out"] if left else []


# by the hash of a name ------------------------------------------------------------------------------------------


class Shares:
    """Splits by fractions, in the order in which they are named: files that come later move none.

    A name's SHA-256 (UTF-8), its first 8 bytes as a big-endian number over 2^64, falls in the range of one split.

    Args:
        fractions: of each split; they sum to 1.
    """

    def __init__(self, fractions: Mapping[str, float]) -> None:
        edges = [round(edge * _ALL) for edge in accumulate(fractions.values())]
        edges[-1] = _ALL
        self._edges = list(zip(edges, fractions, strict=True))

    def split_of(self, name: str) -> str:
        """The split of a name."""
        place = hash_of(name)
        return next(split for edge, split in self._edges if place < edge)


def hash_of(name: str) -> int:
    """The first 8 bytes of the SHA-256 of a name in UTF-8, as a big-endian number."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


# by class -------------------------------------------------------------------------------------------------------


def stratify(file: RecipeFile, listing: Catalog, whole: Division, labels: Column) -> list[Division]:
    """The splits by fractions of each class: its files in the order of their hashes, the first go to the first split.

    Args:
        file: the recipe.
        listing: the files.
        whole: the rows to divide.
        labels: by row of the listing.
    """
    rows, fractions = np.asarray(whole.rows, np.int64), rules.fractions_of(file)
    hashes = np.array([hash_of(listing.names[row]) for row in rows.tolist()], np.uint64)
    rows = rows[np.lexsort((hashes, labels[rows]))]
    parts: dict[str, list[Column]] = {name: [] for name in fractions}
    for of_class in np.split(rows, np.flatnonzero(np.diff(labels[rows])) + 1):
        edges = list(accumulate(apportion(len(of_class), [*fractions.values()])))[:-1]
        for name, part in zip(fractions, np.split(of_class, edges), strict=True):
            parts[name].append(part)
    divisions = [Division(name, np.sort(np.concatenate(each)), whole.is_ordered) for name, each in parts.items()]
    _refuse_empty(file, divisions)
    return divisions


def apportion(count: int, fractions: Sequence[float]) -> list[int]:
    """How many of a class's files each split gets, near its fraction; one at least, if there are enough.

    The rest is given one by one, each file to the split that is furthest below its fraction, the first of equals.
    """
    least, room = int(count >= len(fractions)), len(fractions)
    found = [max(math.floor(count * fraction) - room, least) for fraction in fractions]  # these are given in any case
    for _ in range(count - sum(found)):
        lacks = [count * fraction - given for fraction, given in zip(fractions, found, strict=True)]
        found[lacks.index(max(lacks))] += 1
    return found


def missing_classes(found: Mapping[str, Collection[str]]) -> list[str]:
    """A warning for each split that lacks classes of the others; ``found`` are the classes of each split, in order."""
    every = dict.fromkeys(chain.from_iterable(found.values()))
    lacking = {split: every.keys() - own for split, own in found.items() if own}
    return [
        f"warning: split {split} lacks {len(names):,} of {number_of(len(every), 'class', 'classes')}: "
        + listed(name for name in every if name in names)
        for split, names in lacking.items()
        if names
    ]
