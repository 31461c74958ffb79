"""divide: the files of a source -> Divisions, the rows of each split, by lists, patterns, folders
or fractions.
"""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np
from msgspec import Struct

from imagenet_prep.datasets.planned_set import SplitNote
from imagenet_prep.errors import InputError
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.lists_of_left_out import refuse_left_out
from imagenet_prep.recipes.namesakes import refuse_namesakes
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.recipes.recipe_file import Key, RecipeFile, shortened
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.recipes.splits import ONLY, split_folders
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.file_lists import FileList, read_file_list
from imagenet_prep.sources.names import Column, Rows, below, places_of
from imagenet_prep.sources.patterns import compile_pattern
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of

_ALL = 1 << 64


class Division(Struct, frozen=True):
    """One split: its rows of the listing, whether in an order of their own, and how many folders
    lead to its classes.

    ``lead`` is what comes before the class in each name: "train/", or nothing. A split of several
    folders has a part for each in ``parts``.
    """

    name: str
    rows: Rows
    is_ordered: bool
    lead: str = ""
    parts: tuple[Division, ...] = ()


def divide(
    file: RecipeFile,
    inputs: Inputs,
    listing: Catalog,
    root: AnyPath,
    classes_below: int,
    annotated: Mapping[str, Sequence[int]],
) -> tuple[list[Division], list[str]]:
    """The splits, and what to tell the user of files that are in none.

    Args:
        file: the recipe.
        inputs: where the files are from.
        listing: those of them that matter.
        root: the folder of the recipe's relative paths.
        classes_below: how many folders must follow that of a split: 1 if they are the classes.
        annotated: the rows of each split, where files of annotations say so.

    Raises:
        InputError: a split has no file, or a file is in two.
    """
    fractions = rules.fractions_of(file)
    places = rules.places_of(file)
    is_ordered = inputs.is_ordered
    whole = Division(ONLY, range(len(listing)), is_ordered)
    divisions: list[Division] = []
    if inputs.divided:
        for name, rows in inputs.divided.items():
            divisions.append(Division(name, rows, is_ordered))
    elif annotated:
        for name, rows_of_split in annotated.items():
            annotated_rows = array("I", rows_of_split)
            divisions.append(Division(name, annotated_rows, is_ordered))
    elif file.recipe.stratified:  # divided once the classes are known
        divisions = [whole]
    elif fractions:
        divisions = _by_hashes(listing, fractions, is_ordered=is_ordered)
    elif places:
        for name, place in places.items():
            division = _placed(file, inputs, listing, root, name, place)
            divisions.append(division)
    else:
        divisions = _by_folders(inputs, listing, classes_below) or [whole]
    _refuse_empty(file, divisions)
    return divisions, _check_disjoint(listing, divisions, places)


def _by_folders(inputs: Inputs, listing: Catalog, classes_below: int) -> list[Division]:
    """The splits that are folders; none if no folder is one."""
    divisions: list[Division] = []
    for folder, split in _folders_of(inputs, listing, classes_below).items():
        lead = f"{folder}/"
        rows = listing.names.below(lead)
        divisions.append(Division(split, rows, is_ordered=False, lead=lead))
    return divisions


def _by_hashes(
    listing: Catalog, fractions: Mapping[str, float], *, is_ordered: bool
) -> list[Division]:
    """Splits of these fractions of all files."""
    shares = Shares(fractions)
    rows_of_splits = {split: array("I") for split in fractions}
    for row, name in enumerate(listing.names):
        split = shares.split_of(name)
        rows_of_splits[split].append(row)
    return [Division(split, rows, is_ordered) for split, rows in rows_of_splits.items()]


def _folders_of(inputs: Inputs, listing: Catalog, classes_below: int) -> Mapping[str, str]:
    """The folders that are splits, and the splits."""
    if inputs.given:
        return {name: name for name in inputs.given}
    if inputs.has_folders:
        return split_folders(listing.names, classes_below)
    return {}


def _refuse_empty(file: RecipeFile, divisions: Sequence[Division]) -> None:
    """Raise InputError if a split has no file."""
    for division in divisions:
        for part in division.parts or (division,):
            if len(part.rows):
                continue
            split = part.name
            place = file.place(("splits", split))
            problem = f"{place}: split {split} is empty"
            if part.lead and division.parts:
                problem = f"{place}: no file of split {split} is in {part.lead}"
            expected = "expected at least one image or array"
            raise InputError(problem, expected, _hint_on_empty(file, split))


def _hint_on_empty(file: RecipeFile, split: str) -> str:
    """The hint on a split without a file, by the key of the recipe that makes it."""
    if file.recipe.stratified:
        return (
            "add files to the classes, or take `stratified` out: no class has a file for each split"
        )
    if rules.fractions_of(file):
        return f"give {split} a larger fraction, or take `splits` out"
    if file.recipe.splits is not None:
        return f"correct what `splits` says of {split}, or take that split out"
    if file.recipe.boxes is not None and file.recipe.boxes.format and file.recipe.boxes.splits:
        return f"correct what `boxes` says of {split}, or take that split out"
    return f"add images to {split}, or take that split out of the source"


def _placed(
    file: RecipeFile,
    inputs: Inputs,
    listing: Catalog,
    root: AnyPath,
    name: str,
    place: tuple[str, list[str]],
) -> Division:
    """The split of the files in folders, in a manifest, or of patterns."""
    place_key, texts = place
    key = ("splits", name, place_key)
    if place_key == "manifest":
        path = need_path(file, key, below(root, texts[0]))
        manifest_rows = _rows_in_manifest(file, inputs, listing, path)
        return Division(name, manifest_rows, is_ordered=True)
    if place_key == "folder":
        folders = _folders_once(file, key, texts)
        return _in_folders(name, listing, folders, is_ordered=inputs.is_ordered)
    accept = _accepting(file, key, texts)
    rows = array("I")
    for row, file_name in enumerate(listing.names):
        if accept(file_name):
            rows.append(row)
    return Division(name, rows, inputs.is_ordered)


def _rows_in_manifest(
    file: RecipeFile, inputs: Inputs, listing: Catalog, path: AnyPath
) -> list[int]:
    """The rows of the files that a manifest names; raises InputError if one is not there."""
    source_key = _source_key(file)
    example = listing.names[0] if len(listing) else None
    manifest = read_file_list(path, inputs.base, source_key, example)
    rows = match(manifest.names, listing.names, inputs.base, path, file.recipe.strip)
    for name, line, row in zip(manifest.names, manifest.lines, rows, strict=True):
        if row < 0:
            refuse_left_out(file, inputs, listing, FileList(path, [name], [line]))
            name_and_line = f"{name} (line {line})"
            refuse_namesakes(str(path), [name_and_line], listing.names, file.recipe.strip or "")
            expected = "expected the path of one file in each line"
            if example is not None:
                expected = f"{expected}, such as {example}"
            raise InputError(
                f"{path}, line {line}: {name} is no file of `{source_key}`",
                expected,
                "correct the line, or remove it",
            )
    return rows


def _source_key(file: RecipeFile) -> str:
    """The key of the recipe that names its files."""
    if file.recipe.source is not None:
        return "source"
    return "input_file_pattern" if file.recipe.manifest_file is None else "manifest_file"


def _folders_once(file: RecipeFile, key: Key, texts: Sequence[str]) -> list[str]:
    """The folders of a split, as names have them; raises UsageError if one is named twice."""
    folders: list[str] = []
    for text in texts:
        folder = text.removeprefix("./").rstrip("/")
        if folder in folders:
            raise file.fault(key, f"{folder} is named twice", "expected each folder once")
        folders.append(folder)
    return folders


def _in_folders(
    name: str, listing: Catalog, folders: Sequence[str], *, is_ordered: bool
) -> Division:
    """The files in some folders: of one, or a part for each."""
    parts: list[Division] = []
    for folder in folders:
        lead = f"{folder}/"
        rows = array("I")
        for row, file_name in enumerate(listing.names):
            if file_name.startswith(lead):
                rows.append(row)
        part = Division(name, rows, is_ordered, lead)
        parts.append(part)
    if len(parts) == 1:
        return parts[0]
    rows_of_parts = chain.from_iterable(part.rows for part in parts)
    all_rows = array("I", sorted(rows_of_parts))
    _refuse_overlap(listing, parts, all_rows)
    return Division(name, all_rows, is_ordered, parts=tuple(parts))


def _refuse_overlap(
    listing: Catalog, parts: Sequence[Division], sorted_rows: Sequence[int]
) -> None:
    """Raise InputError if a file is in two folders of a split: it would have two records."""
    for row, next_row in pairwise(sorted_rows):
        if row != next_row:
            continue
        leads = [part.lead for part in parts if row in part.rows]
        outer, *_, inner = sorted(leads, key=len)
        raise InputError(
            f"the folders {outer} and {inner} of split {parts[0].name} both have "
            f"{listing.names[row]}",
            "expected folders that are not within each other",
            f"remove {inner} from `splits` in the recipe: {outer} includes it",
        )


def _accepting(file: RecipeFile, key: Key, patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a name matches one of the patterns,
    and none of those that start with an exclamation mark.
    """
    included: list[re.Pattern[str]] = []
    excluded: list[re.Pattern[str]] = []
    for text in patterns:
        pattern = text.removeprefix("!")
        try:
            compiled = compile_pattern(pattern.removeprefix("./"))
        except ValueError as error:
            problem = f"{shortened(text)!r} is not a pattern"
            raise file.fault(key, problem, str(error)) from error
        if pattern == text:
            included.append(compiled)
        else:
            excluded.append(compiled)

    def accept(name: str) -> bool:
        if not any(pattern.fullmatch(name) for pattern in included):
            return False
        return not any(pattern.fullmatch(name) for pattern in excluded)

    return accept


def _check_disjoint(
    listing: Catalog, divisions: Sequence[Division], declared: Mapping[str, tuple[str, list[str]]]
) -> list[str]:
    """The note on files that are in no split; raises InputError if a file is in two. ``declared``
    are the places of the splits, if the recipe names them.
    """
    count = len(listing)
    split_numbers = np.zeros(count, np.int16)  # from 1
    for number, division in enumerate(divisions, 1):
        places = places_of(division.rows)
        if split_numbers[places].any():
            row = next(row for row in division.rows if split_numbers[row])
            other = divisions[split_numbers[row] - 1]
            raise InputError(
                f"{listing.names[row]} is in the splits {other.name} and {division.name}",
                "expected each file in only one split",
                _way_out_of_two([declared.get(split.name) for split in (other, division)]),
            )
        split_numbers[places] = number
    undivided = count - int(np.count_nonzero(split_numbers))
    if not undivided:
        return []
    verb = "is" if undivided == 1 else "are"
    return [f"{undivided:,} of {count:,} files {verb} in no split, and {verb} left out"]


def _way_out_of_two(places: Sequence[tuple[str, list[str]] | None]) -> str:
    """How a file leaves one of two splits in these places."""
    lists: list[str] = []
    for place in places:
        if place is None:
            return "leave this file out of one of these splits"
        place_key, texts = place
        if place_key == "manifest":
            lists += texts
    if len(lists) == 2:
        return f"remove its line from {' or from '.join(lists)}"
    return "change `splits` in the recipe: only one of these splits may have it"


# by the hash of a name ----------------------------------------------------------------------------


class Shares:
    """Splits by fractions, in the order in which they are named: files that come later move none.

    A name's SHA-256 (UTF-8), its first 8 bytes as a big-endian number over 2^64, falls in the range
    of one split.

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
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big")


# by class -----------------------------------------------------------------------------------------


def stratify(file: RecipeFile, listing: Catalog, whole: Division, labels: Column) -> list[Division]:
    """The splits by fractions of each class: its files in the order of their hashes, the first go
    to the first split.

    Args:
        file: the recipe.
        listing: the files.
        whole: the rows to divide.
        labels: by row of the listing.
    """
    fractions = rules.fractions_of(file)
    rows = np.asarray(whole.rows, np.int64)
    hashes = np.array([hash_of(listing.names[row]) for row in rows.tolist()], np.uint64)
    by_class_and_hash = np.lexsort((hashes, labels[rows]))
    rows = rows[by_class_and_hash]
    sorted_labels = labels[rows]
    class_starts = np.flatnonzero(np.diff(sorted_labels)) + 1
    parts: dict[str, list[Column]] = {split: [] for split in fractions}
    for class_rows in np.split(rows, class_starts):
        counts = apportion(len(class_rows), [*fractions.values()])
        *inner_edges, _ = accumulate(counts)
        class_parts = np.split(class_rows, inner_edges)
        for split, part in zip(fractions, class_parts, strict=True):
            parts[split].append(part)
    divisions: list[Division] = []
    for split, split_parts in parts.items():
        split_rows = np.sort(np.concatenate(split_parts))
        divisions.append(Division(split, split_rows, whole.is_ordered))
    _refuse_empty(file, divisions)
    return divisions


def apportion(count: int, fractions: Sequence[float]) -> list[int]:
    """How many of a class's files each split gets, near its fraction; one at least, if there are
    enough.

    The rest is given one by one, each file to the split that is furthest below its fraction, the
    first of equals.
    """
    room = len(fractions)
    at_least = int(count >= room)
    shares = [count * fraction for fraction in fractions]
    # these are given in any case
    counts = [max(math.floor(share) - room, at_least) for share in shares]
    for _ in range(count - sum(counts)):
        lacks = [share - size for share, size in zip(shares, counts, strict=True)]
        neediest = lacks.index(max(lacks))
        counts[neediest] += 1
    return counts


def missing_classes(classes: Mapping[str, Collection[str]]) -> list[str]:
    """A warning for each split that lacks classes of the others;
    ``classes`` are those of each split, in order.
    """
    all_classes = dict.fromkeys(chain.from_iterable(classes.values()))
    count = number_of(len(all_classes), "class", "classes")
    warnings: list[str] = []
    for split, split_classes in classes.items():
        if not split_classes:
            continue
        present_classes = set(split_classes)
        missing = [name for name in all_classes if name not in present_classes]
        if missing:
            lack = f"lacks {len(missing):,} of {count}: {listed(missing)}"
            warnings.append(SplitNote.of(split, f"warning: split {split} {lack}"))
    return warnings
