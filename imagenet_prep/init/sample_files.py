"""Which files of a folder hold whole sets, images with their labels: arrays, WebDataset tars,
Parquet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from imagenet_prep.images.arrays import names_in_npz
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.recipes import downsampled
from imagenet_prep.recipes.array_groups import NAMES, are_sets
from imagenet_prep.recipes.columns import has_ending_of
from imagenet_prep.recipes.joined_samples import split_of
from imagenet_prep.recipes.path_parts import base_name, has_ending, stem_of
from imagenet_prep.sources.parquets import may_hold_images

_USUAL_NAME = re.compile(
    r"([xy]|images?|labels?|data|targets?)([_-]?(train|test|val|valid|validation|eval|dev|all))?|"
    r"(train|test|val|valid|validation|eval|dev)([_-]?([xy]|images?|labels?|data|targets?))?",
    re.IGNORECASE,
)
"""Names of arrays of a whole set."""

_FEW = 12
"""Files of usual names that can be a set; more are examples."""

_WEIGHTS_OR_TABLES = (".h5", ".hdf5", ".mat", ".csv")
"""Endings of files next to arrays that are no part of a set: weights of a network, or a table."""


_MOST_PICTURES = 3
"""Images next to arrays that can be pictures of a description; more are the set."""


def holders_of(kind: str, inspection: Inspection) -> Sequence[str]:
    """The files that inspection found to be of this kind."""
    return inspection.holders.get(kind, ())


# arrays -------------------------------------------------------------------------------------------


def find_arrays(inspection: Inspection) -> Sequence[str]:
    """Files of arrays that hold a whole set: of known formats, of usual names,
    or by the shapes of what they hold.
    """
    holders = holders_of("arrays", inspection)
    if inspection.content not in (None, "array"):
        if len(inspection.items) > _MOST_PICTURES:
            return ()
        return [*holders, *_files_of_class_names(inspection, holders)] if holders else ()
    if inspection.items:
        holders = [name for name in holders if not has_ending(name, _WEIGHTS_OR_TABLES)]
    if not holders and not _hold_sets(inspection):
        return ()
    array_files = [*inspection.items, *holders]
    return [*array_files, *_files_of_class_names(inspection, array_files)]


def _files_of_class_names(inspection: Inspection, arrays: Sequence[str]) -> list[str]:
    """The files next to arrays that have the names of their classes."""
    path_by_name = {base_name(name): name for name in inspection.listing.names}
    files = [path_by_name[name] for name in NAMES if name in path_by_name]
    if downsampled.are_batches(arrays):
        return files
    return [name for name in files if not name.endswith(downsampled.SYNSETS)]


def _hold_sets(inspection: Inspection) -> bool:
    """Whether the arrays are those of whole sets, by their names or their shapes."""
    return _have_names_of_sets(inspection) or _have_shapes_of_sets(inspection)


def _have_names_of_sets(inspection: Inspection) -> bool:
    """Whether the arrays have names of sets, or several arrays in a file do."""
    items = inspection.items
    are_few = len(items) <= _FEW
    npz_files = [name for name in items if has_ending(name, ".npz")]
    if npz_files:
        inner_names = _names_in(inspection.folder / npz_files[0])
        return len(inner_names) > 1 or (are_few and not inner_names)
    if not are_few:
        return False
    return all(_USUAL_NAME.fullmatch(stem_of(name)) for name in items)


def _have_shapes_of_sets(inspection: Inspection) -> bool:
    """Whether the files hold sets: they are in no folder but those of splits,
    which class folders are not.
    """
    folders = {name.rpartition("/")[0] for name in inspection.items}
    if not all(folder == "" or split_of(folder) for folder in folders):
        return False
    paths = [inspection.folder / name for name in inspection.items]
    return are_sets(paths)


def _names_in(path: Path) -> list[str]:
    """The names of the arrays in a file; none if it can't be read."""
    try:
        with path.open("rb") as file:
            return names_in_npz(file)
    except OSError:
        return []


# tars and Parquet ---------------------------------------------------------------------------------


def find_webdataset(inspection: Inspection) -> Sequence[str]:
    """All tars, if one holds members such as 1.jpg and 1.cls."""
    for listing in inspection.archives.values():
        if _have_labels(listing.names) or _have_masks(listing.names):
            return list(inspection.archives)
    return ()


def _have_labels(names: Iterable[str]) -> bool:
    """Whether an image has a file of its key that may be its label: 1.jpg and 1.cls."""
    parts = [name.rpartition(".") for name in names]
    stems = {stem for stem, _, ending in parts if ending.lower() in ("cls", "json", "txt")}
    return any(name.rpartition(".")[0] in stems for name in filter(_is_image, names))


def _have_masks(names: Iterable[str]) -> bool:
    """Whether most images have a second image of their key: 1.jpg and 1.seg.png."""
    endings_by_key: dict[str, set[str]] = {}
    for name in filter(_is_image, names):
        folder, slash, file_name = name.rpartition("/")
        stem, _, ending = file_name.partition(".")
        key = f"{folder}{slash}{stem}"
        endings_by_key.setdefault(key, set()).add(ending.lower())
    pair_count = 0
    for endings in endings_by_key.values():
        depths = {"." in ending for ending in endings}
        pair_count += len(depths) == 2
    return pair_count > 0 and 2 * pair_count >= len(endings_by_key)


def _is_image(name: str) -> bool:
    return has_ending_of("image", name)


def find_parquet(inspection: Inspection) -> Sequence[str]:
    """The parquet files; none if they hold no images, and something else does."""
    names = holders_of("parquet", inspection)
    if not inspection.items and not inspection.archives:
        return names
    if any(may_hold_images(inspection.folder / name) for name in names):
        return names
    return ()


def lists_beside(inspection: Inspection, kind: str) -> list[str]:
    """The parquet files next to tars that hold no images:
    img2dataset's lists of what it fetched.
    """
    if kind != "webdataset":
        return []
    names = holders_of("parquet", inspection)
    return [name for name in names if not may_hold_images(inspection.folder / name)]


_NUMBERED = re.compile(r"(.*?)(\d+)(\.\w+|)", re.ASCII)


def missing_numbers(names: Sequence[str]) -> list[str]:
    """The files that are missing among those that are counted: 00001.tar, of 00000.tar and
    00002.tar.

    Numbers count files if most of them are there; others are dates or the like.
    """
    digits_by_series: dict[tuple[str, str], dict[int, str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            continue
        start, digits, end = match.groups()
        series = digits_by_series.setdefault((start, end), {})
        series[int(digits)] = digits
    missing: list[str] = []
    for (start, end), series in digits_by_series.items():
        lowest, highest = min(series), max(series)
        if highest - lowest >= 2 * len(series):
            continue
        width = len(series[lowest])
        for number in range(lowest, highest):
            if number not in series:
                missing.append(f"{start}{number:0{width}}{end}")
    return missing
