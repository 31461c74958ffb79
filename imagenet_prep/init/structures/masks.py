"""Images and a mask for each: in a folder of masks, or next to it,
with the same name except for the end of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine, Shell, command_line, in_sequence, quoted
from imagenet_prep.hints import Hint, join_hints
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import decode_rgb, read_facts
from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import CERTAIN, LIKELY, DoubtError, Interpretation, Proposal
from imagenet_prep.recipes.annotated_images import Roots
from imagenet_prep.recipes.annotating import annotate
from imagenet_prep.recipes.folder_words import is_mask_folder, is_mask_suffix, may_be_mask_folder
from imagenet_prep.recipes.mask_folders import LOSSY, THRESHOLD, lossy_fault, reduced
from imagenet_prep.recipes.path_parts import (
    base_name,
    folders_around,
    has_ending,
    parent_of,
    stem_of,
)
from imagenet_prep.recipes.schema import Mask, Recipe
from imagenet_prep.recipes.splits import splits_above
from imagenet_prep.sources.names import below
from imagenet_prep.text import listed, number_of

_PAIRED = 0.9
"""The least share of the files of a folder of masks that have the name of an image, where only the
name of the folder says that they are masks.
"""

_LEAST_PAIRED = 0.1
"""The same where their size and colours say it, too; the others are masks without an image."""

_HALF = 0.5
"""The least share of the images that have a mask, and of masks that have an image; with fewer, it
is a question whether they are masks.
"""

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

    @property
    def length(self) -> int:
        """How many characters both have."""
        return len(self.mask) + len(self.image)


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
        lossy_count = sum(has_ending(mask, LOSSY) for mask in self.pairs)
        return lossy_count > len(self.pairs) / 2


def recognise(inspection: Inspection) -> Interpretation | None:
    """The folder with its masks, if nearly all of them are those of at least half of the images, or
    if they look like masks.
    """
    if inspection.content not in ("image", "pixels"):
        return None
    items = _without_segments(inspection)
    images = [name for name in items if not _mask_folder(name)]
    choices = _in_folders(images, items) or _beside_images(items)
    if not choices:
        return None
    masks, *others = choices
    images = [name for name in images if name not in masks.pairs]
    file_count = _count_files(masks, items)
    are_of_most = len(set(masks.pairs.values())) >= _HALF * len(images)
    are_called_masks = all(is_mask_folder(base_name(folder)) for folder in masks.folders)
    are_paired = len(masks.pairs) >= _PAIRED * file_count
    is_shown_by_names = are_called_masks and are_paired and are_of_most
    if not is_shown_by_names and not _look_like_masks(inspection, masks):
        return None
    if not (are_paired and are_of_most) and not _are_apart(masks):
        return None
    interpretation = _interpret(inspection, masks, images, others)
    if not are_of_most or len(masks.pairs) < _HALF * file_count:
        return msgspec.structs.replace(interpretation, certainty=LIKELY)
    return interpretation


def _without_segments(inspection: Inspection) -> list[str]:
    """The images, except for the PNGs of COCO's segments, whose folder has a JSON of its name."""
    json_files = {name for name in inspection.listing.names if name.endswith(".json")}
    return [
        name for name in inspection.items if f"{name.rpartition('/')[0]}.json" not in json_files
    ]


def _are_apart(masks: _Masks) -> bool:
    """Whether they are in folders without images, and each folder has masks of several images:
    a folder of masks for each image has those of its objects.
    """
    leads = tuple(f"{folder}/" for folder in masks.folders)
    images = set(masks.pairs.values())
    images_among_masks = [name for name in images if name.startswith(leads)]
    return len(images) > len(masks.folders) and not images_among_masks


def _count_files(masks: _Masks, items: Sequence[str]) -> int:
    """How many files are in the folders of masks; of masks next to their images, those that have
    their suffix.
    """
    suffix = masks.suffixes.mask
    leads = tuple(f"{folder}/" for folder in masks.folders if folder)
    if not leads or any(image.startswith(leads) for image in masks.pairs.values()):
        return sum(stem_of(item).endswith(suffix) for item in items)
    return sum(item.startswith(leads) for item in items)


_LOOKED_AT = 8
"""Masks of a folder that are looked at, if its name alone doesn't show that they are masks."""

_MOST_COLOURS = 64
"""The most colours of a mask: a photograph has more."""


def _look_like_masks(inspection: Inspection, masks: _Masks) -> bool:
    """Whether files are as large as their images and have few colours;
    JPEGs are asked about in any case.
    """
    step = -(-len(masks.pairs) // _LOOKED_AT)
    looked_at = list(masks.pairs.items())[::step]
    try:
        return all(_looks_like_mask(inspection.folder, mask, image) for mask, image in looked_at)
    except (ImageError, OSError):
        return False


def _looks_like_mask(folder: Path, mask: str, image: str) -> bool:
    """Whether a file is as large as its image and has few colours."""
    image_data = below(folder, image).read_bytes()
    mask_data = below(folder, mask).read_bytes()
    if read_facts(mask_data)[1:3] != read_facts(image_data)[1:3]:
        return False
    if has_ending(mask, LOSSY):
        return True
    colours = decode_rgb(mask_data).getcolors(_MOST_COLOURS)
    return colours is not None


# which files are masks ----------------------------------------------------------------------------


def _mask_folder(name: str) -> str:
    """The folder of masks that a file is in, by its path; "" if it is in none."""
    folders = name.split("/")[:-1]
    for depth, folder in enumerate(folders, 1):
        if may_be_mask_folder(folder):
            return "/".join(folders[:depth])
    return ""


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
    pairings = _pair(images, files)
    if not pairings:
        return []
    most_pairs = len(pairings[0].pairs)
    chosen: list[_Masks] = []
    paired_files: set[str] = set()
    for masks in pairings:
        if masks is not pairings[0] and not masks.suffixes.mask:
            continue
        if len(masks.pairs) >= _PAIRED * most_pairs and paired_files.isdisjoint(masks.pairs):
            chosen.append(msgspec.structs.replace(masks, folders=[folder]))
            paired_files |= masks.pairs.keys()
    if len(paired_files) < _LEAST_PAIRED * len(files):
        return []
    return chosen


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
                    suffixes = _Suffixes(suffix, image_suffix)
                    pairs.setdefault(suffixes, {})[file] = image
    pairings = [_Masks([], suffixes, of_suffixes) for suffixes, of_suffixes in pairs.items()]
    return sorted(pairings, key=lambda masks: (-len(masks.pairs), masks.suffixes.length))


class _Owners:
    """Images by what their names have in common with those of masks, in their folder or in any."""

    def __init__(self, images: Sequence[str]) -> None:
        self._in_folder: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._anywhere: dict[str, list[tuple[str, str]]] = {}
        for image in images:
            for core, suffix in _cuts(stem_of(image), 1):
                place = (_folders_of(image), core)
                self._in_folder.setdefault(place, []).append((image, suffix))
                self._anywhere.setdefault(core, []).append((image, suffix))

    def find(self, mask: str, core: str) -> list[tuple[str, str]]:
        """The images of a mask with their suffixes:
        those of its folder, or the only ones of this name.
        """
        place = (_folders_of(mask), core)
        near = self._in_folder.get(place)
        if near:
            return near
        anywhere = self._anywhere.get(core, [])
        suffixes = {suffix for _, suffix in anywhere}
        if len(suffixes) < len(anywhere):
            return []
        return anywhere


def _folders_of(name: str) -> str:
    """The folders of a file without the words that only say what is in them."""
    return reduced(name, "").rpartition("/")[0]


def _cuts(stem: str, most: int) -> Iterator[tuple[str, str]]:
    """A name and "", then what is before its last words, and those: a suffix has a letter."""
    yield stem, ""
    word_starts = re.finditer(r"[ _.-](?=[^ _.-])", stem)
    places = [match.start() for match in word_starts if match.start()]
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
    name = masks.suffixes.mask or base_name(masks.folders[0])
    masked_images = set(masks.pairs.values())
    for place, pattern in enumerate(_PREFERRED):
        if pattern.search(name.lower()):
            return -len(masked_images), place
    return -len(masked_images), len(_PREFERRED)


def _beside_images(items: Sequence[str]) -> list[_Masks]:
    """The masks next to their images, known by a usual suffix: a.jpg and a_mask.png."""
    counts: Counter[str] = Counter()
    for item in items:
        cuts = _cuts(stem_of(item), 1)
        counts.update(suffix for _, suffix in cuts if is_mask_suffix(suffix))
    for suffix, _ in counts.most_common():
        masks = _of_suffix(items, suffix)
        if masks is not None:
            return [masks]
    return []


def _of_suffix(items: Sequence[str], suffix: str) -> _Masks | None:
    """The masks whose names end with a suffix; None if too many of them are of no image."""
    files = [item for item in items if stem_of(item).endswith(suffix)]
    others = [item for item in items if not stem_of(item).endswith(suffix)]
    for masks in _pair(others, files):
        if masks.suffixes.mask == suffix:
            if len(masks.pairs) < _LEAST_PAIRED * len(files):
                return None
            folders = sorted({parent_of(name) for name in masks.pairs})
            named_folders = folders if len(folders) < _MOST_NAMED else [""]
            return msgspec.structs.replace(masks, folders=named_folders)
    return None


_MOST_NAMED = 8
"""Folders that a recipe names one by one."""


# the recipe ---------------------------------------------------------------------------------------


def _interpret(
    inspection: Inspection, masks: _Masks, images: Sequence[str], others: Sequence[_Masks]
) -> Interpretation:
    """The folder with these masks; ``others`` are masks that the images have, too."""
    meaning = "images with mask"
    keys = _mask_keys(masks)
    try:
        bare, missing = _unmatched(inspection, keys, images)
    except InputError as error:
        faults = [error]
        return Interpretation(CERTAIN + 1, (), meaning, faults=faults, annotation_files=())
    if missing:
        keys["missing"] = "ignore"
    if bare:
        keys["unmasked"] = "skip"
    lead = folders_around(images)
    left_out = set(bare)
    names = [name.removeprefix(lead) for name in images if name not in left_out]
    splits = splits_above(names)
    proposal = Proposal("files", "image", names, lead, splits=splits, annotations={"mask": keys})
    counts = f"{len(images) - len(bare):,} of {number_of(len(images), 'image')}"
    has = "has" if len(keys["folder"]) == 1 else "have"
    folders = [folder or str(inspection.folder) for folder in masks.folders]
    evidence = f"{listed(folders)} {has} masks of {counts}"
    losses = _without_counterpart(inspection, missing, "mask", "an image")
    losses += _without_counterpart(inspection, bare, "image", "a mask")
    return Interpretation(
        _certainty(inspection, masks, images),
        (evidence,),
        meaning,
        proposal,
        _question(inspection, masks, others),
        annotation_files=frozenset(),
        losses=[*losses, *_lossy(masks)],
        total=len(images),
    )


def _mask_keys(masks: _Masks) -> dict[str, Any]:
    """The keys of the recipe's `mask`."""
    folders = [folder or "." for folder in masks.folders]
    keys: dict[str, Any] = {"folder": folders}
    if masks.suffixes.mask:
        keys["suffix"] = masks.suffixes.mask
    if masks.suffixes.image:
        keys["image_suffix"] = masks.suffixes.image
    if masks.is_lossy:
        keys["threshold"] = THRESHOLD
    return keys


def _unmatched(
    inspection: Inspection, keys: dict[str, Any], images: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """The images without a mask, and the masks without an image, by the keys of the recipe.

    Raises:
        InputError: a mask can't be used.
    """
    row_by_name = {name: row for row, name in enumerate(inspection.listing.names)}
    rows = [row_by_name[name] for name in images]
    listing = inspection.listing.picked(rows)
    tolerant_keys = {**keys, "missing": "ignore", "unmasked": "skip"}
    mask = msgspec.convert(tolerant_keys, Mask)
    roots = Roots(inspection.folder, inspection.folder)
    annotations = annotate(Recipe(mask=mask), listing, roots)
    return annotations.unmatched_images, annotations.unmatched_annotations


def _certainty(inspection: Inspection, masks: _Masks, images: Sequence[str]) -> int:
    """Images in class folders with their masks next to them are a question; so are labels."""
    are_beside = any(name.rpartition("/")[0] in masks.folders for name in images)
    if are_beside:
        shape = shape_of(images)
        if shape.has_classes and len(shape.files) > 1:
            return LIKELY
    if any(table.has_labels for table in inspection.labels):
        return CERTAIN
    return CERTAIN + 1


def _without_counterpart(
    inspection: Inspection, names: Sequence[str], noun: str, counterpart: str
) -> list[InputError]:
    """The fault of images without a mask, or of masks without an image."""
    if not names:
        return []
    count = number_of(len(names), noun)
    problem = f"{inspection.folder}: {count} without {counterpart}: {listed(names)}"
    return [InputError(problem, "every image needs a mask, and every mask an image")]


def _lossy(masks: _Masks) -> list[InputError]:
    """The doubt about masks in JPEG."""
    if not masks.is_lossy:
        return []
    fault = lossy_fault(sorted(masks.pairs))
    aim = f"make pixels 255 from a brightness of {THRESHOLD} on, and others 0"
    return [DoubtError.of(aim, "made 0 and 255", fault.what, fault.detail, fault.hint)]


def _question(inspection: Inspection, masks: _Masks, others: Sequence[_Masks]) -> list[InputError]:
    """The fault of several masks of equally many images, none of which is preferred."""
    preference = _preference(masks)
    rivals = [other for other in others if _preference(other) == preference]
    if not rivals:
        return []
    choices = [masks, *rivals]
    are_alike = len({choice.suffixes.mask for choice in choices}) == 1
    names = [listed(choice.folders) if are_alike else _name(choice) for choice in choices]
    count = number_of(len(set(masks.pairs.values())), "image")
    problem = f"{inspection.folder}: {listed(names)} each have masks of {count}"
    expected = "expected one mask for each image"
    folders = [folder for choice in choices for folder in choice.folders]
    are_mixed = len(set(folders)) < len(folders)
    if are_mixed and not all(choice.suffixes.mask for choice in choices):
        return [InputError(problem, expected, _KEEP_ONE)]
    hint = _moving_hint(inspection, names, choices, are_mixed=are_mixed)
    return [InputError(problem, expected, hint)]


def _moving_hint(
    inspection: Inspection, names: Sequence[str], choices: Sequence[_Masks], *, are_mixed: bool
) -> str:
    """The commands of which each leaves one choice of masks in its place, with its name."""
    commands: list[str] = []
    for name, kept in zip(names, choices, strict=True):
        set_aside = [choice for choice in choices if choice is not kept]
        command = _moving_command(inspection, set_aside, are_mixed=are_mixed)
        commands.append(Hint(f"to use {name}, move the others away: ", command))
    return join_hints("; or ", commands)


_KEEP_ONE = "keep one of them, and move the others away"


def _moving_command(
    inspection: Inspection, choices: Sequence[_Masks], *, are_mixed: bool
) -> CommandLine:
    """The command that moves masks out of a folder;
    files by their suffix, if masks that are kept are among them.
    """
    folder = inspection.folder
    place = folder.resolve()
    moves: list[CommandLine] = []
    for masks in choices:
        suffix = masks.suffixes.mask
        for name in masks.folders:
            source = str(folder / name)
            end = f"{name.replace('/', '-')}{suffix if are_mixed else ''}"
            target = str(place.with_name(f"{place.name}-{end}"))
            if not are_mixed:
                moves.append(command_line(["mv", "--", source, target]))
                continue
            files = Shell(f"{quoted(source)}/*{quoted(suffix)}.*")
            moves.append(command_line(["mkdir", "--", target]))
            moves.append(command_line(["mv", "--", files, target]))
    return in_sequence(moves)


def _name(masks: _Masks) -> str:
    """Masks by their folders and suffix, for messages."""
    suffix = masks.suffixes.mask
    end = f"suffix {suffix}" if suffix else "without a suffix"
    return f"{listed(masks.folders)} ({end})"


STRUCTURES = {"masks": recognise}
