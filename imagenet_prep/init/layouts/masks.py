"""Images and a mask for each: in a folder of masks, or next to it,
with the same name except for the end of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command_line
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import decode_rgb, read_facts
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.layouts.class_folders import shape_of
from imagenet_prep.init.proposal import CERTAIN, LIKELY, Interpretation, Proposal
from imagenet_prep.recipes.annotated_images import Roots
from imagenet_prep.recipes.annotating import annotate
from imagenet_prep.recipes.mask_folders import LOSSY, THRESHOLD, lossy_fault, reduced
from imagenet_prep.recipes.mask_names import (
    folders_around,
    is_mask_folder,
    is_mask_suffix,
    may_be_mask_folder,
)
from imagenet_prep.recipes.schema import Mask
from imagenet_prep.recipes.splits import splits_above, stem_of
from imagenet_prep.sources.names import below
from imagenet_prep.text import listed, number_of

_PAIRED = 0.9
"""The least share of the files of a folder of masks that have the name of an image."""

_HALF = 0.5
"""The least share of the images that have a mask."""

_CUTS = 2
"""How many words at the end of a mask's name may be its suffix: _gtFine_labelIds has two."""

_PREFERRED = (re.compile(r"label_?ids?$"), re.compile(r"class$"))
"""The ends of the suffix or folder that counts where each image has several masks;
the first that one of them has.
"""


class _Suffixes(Struct, frozen=True, order=True):
    """The ends of the names of masks, and of their images, after what both have in common."""

    mask: str = ""
    image: str = ""


class _Masks(Struct):
    """Masks of the images: their folders, or "" for the top, and their suffixes.

    ``pairs`` has the image of each mask, by their paths.
    """

    folders: list[str]
    suffixes: _Suffixes
    pairs: dict[str, str]

    @property
    def is_lossy(self) -> bool:
        """Whether most of them are JPEGs."""
        return sum(mask.lower().endswith(LOSSY) for mask in self.pairs) > len(self.pairs) / 2


def recognise(inspection: Inspection) -> Interpretation | None:
    """The folder with its masks, if they are those of at least half of the images."""
    if inspection.content not in ("image", "pixels"):
        return None
    json_files = {name for name in inspection.listing.names if name.endswith(".json")}
    items = [
        name for name in inspection.items if f"{name.rpartition('/')[0]}.json" not in json_files
    ]  # COCO's segments
    images = [name for name in items if not _mask_folder(name)]
    choices = _in_folders(images, items) or _beside_images(items)
    if not choices:
        return None
    masks = choices[0]
    if not all(map(is_mask_folder, map(_last, masks.folders))) and not _look_like_masks(
        inspection, masks
    ):
        return None
    images = [name for name in images if name not in masks.pairs]
    if len(set(masks.pairs.values())) < _HALF * len(images):
        return None
    return _read(inspection, masks, images, choices[1:])


def _last(folder: str) -> str:
    return folder.rpartition("/")[2]


_LOOKED_AT = 8
"""Masks of a folder that are looked at, if its name alone doesn't show that they are masks."""

_MOST_COLOURS = 64
"""The most colours of a mask: a photograph has more."""


def _look_like_masks(inspection: Inspection, masks: _Masks) -> bool:
    """Whether files are as large as their images and have few colours;
    JPEGs are asked about in any case.
    """
    step = -(-len(masks.pairs) // _LOOKED_AT)
    for mask, image in list(masks.pairs.items())[::step]:
        try:
            size = read_facts(below(inspection.folder, image).read_bytes())[1:3]
            data = below(inspection.folder, mask).read_bytes()
            if read_facts(data)[1:3] != size:
                return False
            if (
                not mask.lower().endswith(LOSSY)
                and decode_rgb(data).getcolors(_MOST_COLOURS) is None
            ):
                return False
        except (ImageError, OSError):
            return False
    return True


# which files are masks ----------------------------------------------------------------------------


def _mask_folder(name: str) -> str:
    """The folder of masks that a file is in, by its path; "" if it is in none."""
    folders = name.split("/")[:-1]
    place = next(
        (place for place, folder in enumerate(folders, 1) if may_be_mask_folder(folder)), 0
    )
    return "/".join(folders[:place])


def _in_folders(images: Sequence[str], items: Sequence[str]) -> list[_Masks]:
    """The masks in folders of their own; several where each image has several,
    the preferred ones first.
    """
    by_folder: dict[str, list[str]] = {}
    for name in items:
        if folder := _mask_folder(name):
            by_folder.setdefault(folder, []).append(name)
    choices: list[_Masks] = []
    for folder, files in by_folder.items():
        for masks in _paired(images, folder, files):
            _add(choices, masks)
    return sorted(choices, key=_preference)


def _paired(images: Sequence[str], folder: str, files: Sequence[str]) -> list[_Masks]:
    """The masks of one folder, by suffix; none if too many of its files are masks of no image."""
    ways = _pair(images, files)
    ways = [masks for masks in ways if masks.suffixes == ways[0].suffixes or masks.suffixes.mask]
    most = max((len(masks.pairs) for masks in ways), default=0)
    chosen: list[_Masks] = []
    taken: set[str] = set()
    for masks in ways:
        if len(masks.pairs) >= _PAIRED * most and taken.isdisjoint(masks.pairs):
            chosen.append(msgspec.structs.replace(masks, folders=[folder]))
            taken |= masks.pairs.keys()
    return chosen if len(taken) >= _PAIRED * len(files) else []


def _pair(images: Sequence[str], files: Sequence[str]) -> list[_Masks]:
    """The ways to pair files with images by suffixes,
    the one that pairs most first, then the shortest.
    """
    owners = _Owners(images)
    pairs: dict[_Suffixes, dict[str, str]] = {}
    for file in files:
        for core, suffix in _cuts(stem_of(file), _CUTS):
            for image, image_suffix in owners.find(file, core):
                if not suffix or suffix != image_suffix:
                    pairs.setdefault(_Suffixes(suffix, image_suffix), {})[file] = image
    ways = [_Masks([], suffixes, found) for suffixes, found in pairs.items()]
    return sorted(
        ways, key=lambda masks: (-len(masks.pairs), len(masks.suffixes.mask + masks.suffixes.image))
    )


class _Owners:
    """Images by what their names have in common with those of masks, in their folder or in any."""

    def __init__(self, images: Sequence[str]) -> None:
        self._in_folder: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._anywhere: dict[str, list[tuple[str, str]]] = {}
        for image in images:
            for core, suffix in _cuts(stem_of(image), 1):
                self._in_folder.setdefault((_folders_of(image), core), []).append((image, suffix))
                self._anywhere.setdefault(core, []).append((image, suffix))

    def find(self, mask: str, core: str) -> list[tuple[str, str]]:
        """The images of a mask with their suffixes:
        those of its folder, or the only ones of this name.
        """
        near = self._in_folder.get((_folders_of(mask), core))
        if near:
            return near
        anywhere = self._anywhere.get(core, [])
        suffixes = {suffix for _, suffix in anywhere}
        return anywhere if len(suffixes) == len(anywhere) else []


def _folders_of(name: str) -> str:
    """The folders of a file without the words that only say what is in them."""
    return reduced(name, "").rpartition("/")[0]


def _cuts(stem: str, most: int) -> Iterator[tuple[str, str]]:
    """A name and "", then what is before its last words, and those: a suffix has a letter."""
    yield stem, ""
    places = [match.start() for match in re.finditer(r"[ _.-](?=[^ _.-])", stem) if match.start()]
    for place in places[-most:]:
        if re.search(r"[A-Za-z]", stem[place:]):
            yield stem[:place], stem[place:]


def _add(choices: list[_Masks], masks: _Masks) -> None:
    """Join the masks of a folder with those of others of the same suffixes,
    if they are of other images.
    """
    images = set(masks.pairs.values())
    for other in choices:
        if other.suffixes == masks.suffixes and images.isdisjoint(other.pairs.values()):
            other.folders += masks.folders
            other.pairs |= masks.pairs
            return
    choices.append(masks)


def _preference(masks: _Masks) -> tuple[int, int]:
    """The masks of most images come first, then those whose names say that they are of classes."""
    name = (masks.suffixes.mask or masks.folders[0].rpartition("/")[2]).lower()
    place = next(
        (place for place, words in enumerate(_PREFERRED) if words.search(name)), len(_PREFERRED)
    )
    return -len(set(masks.pairs.values())), place


def _beside_images(items: Sequence[str]) -> list[_Masks]:
    """The masks next to their images, known by a usual suffix: a.jpg and a_mask.png."""
    by_suffix = Counter(
        suffix for item in items for _, suffix in _cuts(stem_of(item), 1) if is_mask_suffix(suffix)
    )
    for suffix, _ in by_suffix.most_common():
        files = [item for item in items if stem_of(item).endswith(suffix)]
        others = [item for item in items if not stem_of(item).endswith(suffix)]
        ways = [masks for masks in _pair(others, files) if masks.suffixes.mask == suffix]
        if ways and len(ways[0].pairs) >= _PAIRED * len(files):
            pairs = ways[0].pairs
            folders = sorted({mask.rpartition("/")[0] for mask in pairs})
            return [
                _Masks(folders if len(folders) < _MOST_NAMED else [""], ways[0].suffixes, pairs)
            ]
    return []


_MOST_NAMED = 8
"""Folders that a recipe names one by one."""


# the recipe ---------------------------------------------------------------------------------------


def _read(
    inspection: Inspection, masks: _Masks, images: Sequence[str], others: Sequence[_Masks]
) -> Interpretation:
    """The folder with these masks; ``others`` are masks that the images have, too."""
    value = _value(masks)
    rows = {name: row for row, name in enumerate(inspection.listing.names)}
    listing = inspection.listing.picked([rows[name] for name in images])
    full = {**value, "missing": "ignore", "unmasked": "skip"}
    try:
        found = annotate(
            None, msgspec.convert(full, Mask), listing, Roots(inspection.folder, inspection.folder)
        )
    except InputError as error:
        return Interpretation(
            CERTAIN + 1, (), "images with mask", faults=[error], annotation_files=()
        )
    bare, missing = found.unmatched
    if missing:
        value["missing"] = "ignore"
    if bare:
        value["unmasked"] = "skip"
    left_out = set(bare)
    lead = folders_around(images)
    names = [name.removeprefix(lead) for name in images if name not in left_out]
    count = f"{len(images) - len(bare):,} of {len(images):,} images"
    proposal = Proposal(
        "files", "image", names, lead, splits=splits_above(names), annotations={"mask": value}
    )
    is_beside = any(name.rpartition("/")[0] in masks.folders for name in images)
    is_class_a_folder = (
        is_beside and shape_of(images).has_classes and len(shape_of(images).files) > 1
    )
    return Interpretation(
        LIKELY
        if is_class_a_folder
        else CERTAIN + (not any(table.has_labels for table in inspection.labels)),
        (f"{listed(value['folder'])} has masks of {count}",),
        "images with mask",
        proposal,
        _ambiguous(inspection, masks, others),
        annotation_files=frozenset(),
        losses=list(_lost(inspection, bare, missing)),
        mended_faults=_lossy(masks),
        mending=f"take 255 from a brightness of {THRESHOLD} on, and 0 below",
        mended="made 0 and 255",
    )


def _value(masks: _Masks) -> dict[str, Any]:
    """The keys of the recipe's `mask`."""
    value: dict[str, Any] = {"folder": [folder or "." for folder in masks.folders]}
    if masks.suffixes.mask:
        value["suffix"] = masks.suffixes.mask
    if masks.suffixes.image:
        value["image_suffix"] = masks.suffixes.image
    if masks.is_lossy:
        value["threshold"] = THRESHOLD
    return value


def _lost(
    inspection: Inspection, bare: Sequence[str], missing: Sequence[str]
) -> Iterator[InputError]:
    """The faults of images without a mask, and of masks without an image."""
    for names, noun, lack in ((missing, "mask", "an image"), (bare, "image", "a mask")):
        if names:
            what = (
                f"{inspection.folder}: {number_of(len(names), noun)} without {lack}: "
                f"{listed(names)}"
            )
            yield InputError(what, "expected one for each")


def _lossy(masks: _Masks) -> list[InputError]:
    """The fault of masks in JPEG."""
    return [lossy_fault(sorted(masks.pairs), "convert them to PNG")] if masks.is_lossy else []


def _ambiguous(inspection: Inspection, masks: _Masks, others: Sequence[_Masks]) -> list[InputError]:
    """The fault of images that have several masks each, none of which is preferred."""
    rivals = [other for other in others if _preference(other) == _preference(masks)]
    if not rivals:
        return []
    several = [masks, *rivals]
    what = f"{inspection.folder}: {listed(map(_name, several))} each have a mask of the same images"
    ways = [
        _set_aside(inspection, [other for other in several if other is not kept])
        for kept in several
    ]
    return [
        InputError(
            what, "expected one mask for each image", f"set the others aside: {'; or '.join(ways)}"
        )
    ]


def _set_aside(inspection: Inspection, several: Sequence[_Masks]) -> str:
    """The command that moves masks out of a folder."""
    folder = inspection.folder
    moves = []
    for name in (name for masks in several for name in masks.folders):
        aside = folder.with_name(f"{folder.name}-{name.replace('/', '-')}")
        moves.append(command_line(["mv", "--", str(folder / name), str(aside)]))
    return " && ".join(moves)


def _name(masks: _Masks) -> str:
    """Masks by their folders and suffix, for messages."""
    return f"{listed(masks.folders)}{f' ({masks.suffixes.mask})' if masks.suffixes.mask else ''}"


LAYOUTS = {"masks": recognise}
