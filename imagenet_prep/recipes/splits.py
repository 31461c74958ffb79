"""Which split each file is of: by fractions, by a place that the recipe names, or by the folder it lies in."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from imagenet_prep.errors import InputError
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.inputs import Inputs, need_file
from imagenet_prep.recipes.recipe_file import RecipeFile, shortened
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.folders import pick_listed, read_file_list
from imagenet_prep.sources.names import Rows, places_of
from imagenet_prep.sources.patterns import compile_pattern
from imagenet_prep.storage.location import AnyPath

FOLDERS = {"train": "train", "validation": "validation", "valid": "validation", "val": "validation", "test": "test"}
"""Folders that are splits if a set has no others, and the split that each is."""

ONLY = "train"
"""The name of the split where there is but one."""

_ALL = 1 << 64


@dataclass(frozen=True, slots=True)
class Division:
    """One split: its rows of the listing, whether in an order of their own, and how many folders lead to its classes.

    ``lead`` is what comes before the class in each name: "train/", or nothing.
    """

    name: str
    rows: Rows
    is_ordered: bool
    lead: str = ""


def _by_shares(listing: Catalog, fractions: Mapping[str, float]) -> dict[str, array[int]]:
    """The rows of each split, by the hashes of their names."""
    shares = Shares(fractions)
    rows = {name: array("I") for name in fractions}
    for row, name in enumerate(listing.names):
        rows[shares.split_of(name)].append(row)
    return rows


def divide(
    file: RecipeFile, inputs: Inputs, listing: Catalog, root: AnyPath, classes_below: int
) -> tuple[list[Division], list[str]]:
    """The splits, and what to tell the user of files that are in none.

    Args:
        file: the recipe.
        inputs: where the files are from.
        listing: those of them that matter.
        root: what relative paths of the recipe begin with.
        classes_below: how many folders must follow that of a split: 1 if they are the classes.

    Raises:
        InputError: a split has no file, or a file is in two.
    """
    fractions, places = rules.fractions_of(file), rules.places_of(file)
    if inputs.divided:
        divisions = [Division(name, rows, is_ordered=True) for name, rows in inputs.divided.items()]
    elif fractions:
        divisions = [Division(name, rows, inputs.is_ordered) for name, rows in _by_shares(listing, fractions).items()]
    elif places:
        divisions = [_placed(file, inputs, listing, root, name, place) for name, place in places.items()]
    elif inputs.has_folders and (folders := split_folders(listing.names, classes_below)):
        divisions = [
            Division(split, listing.names.below(f"{top}/"), is_ordered=False, lead=f"{top}/")
            for top, split in folders.items()
        ]
    else:
        divisions = [Division(ONLY, range(len(listing)), inputs.is_ordered)]
    for division in divisions:
        if not len(division.rows):
            line = file.lines.get(("splits", division.name), 1)
            raise InputError(
                f"{file.path}, line {line}: no file is in split {division.name}",
                "expected at least one",
                _remedy(division.name, bool(fractions)),
            )
    return divisions, _check_disjoint(listing, divisions)


def _remedy(split: str, is_fraction: bool) -> str:
    if is_fraction:
        return f"give {split} a larger fraction, or take `splits` out: all files are in one split then"
    return f"correct what `splits` says of {split}, or take that split out"


def _placed(
    file: RecipeFile, inputs: Inputs, listing: Catalog, root: AnyPath, name: str, place: tuple[str, str]
) -> Division:
    sort, text = place
    key = ("splits", name, sort)
    if sort == "manifest":
        listed = read_file_list(need_file(file, key, root / text), inputs.base)
        return Division(name, pick_listed(listed, listing), is_ordered=True)
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

    Files lie ``classes_below`` folders below that of their split, at the least.
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
        place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        return next(split for edge, split in self._edges if place < edge)
