"""Split lists: train.txt and test.txt with a name of an image in each line -> the split of each image."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.labels_file import match
from imagenet_prep.recipes.splits import USUAL, split_names, stem_of, suffix_of
from imagenet_prep.sources.folders import read_file_list

_ENDINGS = (".txt", ".lst", ".list")
_LARGEST = 1 << 28


class SplitLists(Struct, frozen=True):
    """The list file of each split, and the images that they name."""

    files: Mapping[str, str]
    names: Sequence[str]


def find_split_lists(inspection: Inspection, names: Sequence[str], lead: str) -> list[SplitLists]:
    """The lists that divide images, by their names from ``lead``: at least half of them, each into one split.

    A folder can have several, such as train1.txt and test1.txt, train2.txt and test2.txt.
    """
    found = []
    for files in _called_as_splits(inspection):
        lists = read_split_lists(inspection.folder, files, names, lead)
        if lists is not None and 2 * len(lists.names) >= len(names):
            found.append(lists)
    return found


def read_split_lists(folder: Path, files: Mapping[str, str], names: Sequence[str], lead: str) -> SplitLists | None:
    """The images that list files name; None if a line names no image, or two name the same.

    Args:
        folder: the data.
        files: by split its list, from the folder.
        names: the images, from ``lead``.
        lead: the folders that hold them all, with a slash.
    """
    named: dict[int, None] = {}
    base, count = folder / lead, 0
    for name in files.values():
        path = folder / name
        with contextlib.suppress(InputError):
            rows = match(read_file_list(path, base).names, names, base, path)
            if min(rows, default=-1) >= 0:
                named |= dict.fromkeys(rows)
                count += len(rows)
                continue
        return None
    return SplitLists(files, [names[row] for row in named]) if len(named) == count else None


def _called_as_splits(inspection: Inspection) -> Iterator[dict[str, str]]:
    """The files that are called as splits are, by split; those that are called alike together."""
    items = set(inspection.items)
    sizes = zip(inspection.listing.names, inspection.listing.lengths.tolist(), strict=True)
    texts = [name for name, size in sizes if _may_be_list(name) and name not in items and size <= _LARGEST]
    alike: dict[tuple[str, str], list[str]] = {}
    for name in texts:
        alike.setdefault((name.rpartition("/")[0], "".join(re.findall(r"\d+$", stem_of(name)))), []).append(name)
    for several in alike.values():
        splits = _splits_of(several)
        if len(splits) > 1 and "train" in splits.values() and len(set(splits.values())) == len(splits):
            files = {split: name for name, split in splits.items()}
            usual = [split for split in USUAL if split in files]
            yield {split: files[split] for split in (*usual, *sorted(files.keys() - {*usual}))}


def _may_be_list(name: str) -> bool:
    suffix = suffix_of(name)
    return suffix in _ENDINGS or not suffix.startswith(".")


def _splits_of(names: Iterable[str]) -> dict[str, str]:
    """The split of each file by its name; trainval is left out where it is divided into train and val."""
    stems = {name.removesuffix(suffix_of(name)) or name: name for name in names}
    known = {stem.rpartition("/")[2].lower() for stem in stems}
    if {"train", "val"} <= known:
        stems = {stem: name for stem, name in stems.items() if not stem.lower().endswith("trainval")}
    return {stems[stem]: split for stem, split in split_names(stems).items()}
