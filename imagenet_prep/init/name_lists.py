"""Lists of texts -> the images that their lines name:
by path, by name, without the ending, or by number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.recipes.joined_tables import family_of, split_in
from imagenet_prep.recipes.path_matching import unique_rows, without_ending
from imagenet_prep.recipes.splits import suffix_of
from imagenet_prep.storage.files import read_plain

_ENDINGS = (".txt", ".lst", ".list")
_LARGEST = 1 << 26
_MOST_LISTS = 2000


class NameList(Struct, frozen=True):
    """A list each line of which names an image.

    Args:
        where: the file, from the folder.
        split: the split that its name says; or "".
        family: the words of its name without the split.
        rows: the image of each line.
        texts: what follows the name in each line; "" for nothing.
    """

    where: str
    split: str
    family: tuple[str, ...]
    rows: Sequence[int]
    texts: Sequence[str]


def find_name_lists(inspection: Inspection) -> list[NameList]:
    """The lists each line of which starts with the name of an image; those of train and validation
    in one are left out.

    A line has a name, or a name, a blank and a text.
    """
    sizes = zip(inspection.listing.names, inspection.listing.lengths.tolist(), strict=True)
    names = [name for name, size in sizes if suffix_of(name) in _ENDINGS and 0 < size <= _LARGEST]
    if len(names) > _MOST_LISTS or not inspection.items:
        return []
    ways = list(_ways(inspection.items))
    lists = []
    for name in names:
        last = name.rpartition("/")[2]
        lines = read_plain(inspection.folder / name).decode("utf-8-sig", "replace").splitlines()
        cells = [
            line.strip().partition(" ")
            for line in lines
            if line.strip() and not line.startswith("#")
        ]
        rows = next(
            filter(None, (_rows_of([first for first, _, _ in cells], way) for way in ways)), None
        )
        if rows is not None:
            texts = [text.strip() for _, _, text in cells]
            lists.append(NameList(name, split_in(last), family_of(last), rows, texts))
    divided = {(each.family, each.split) for each in lists if "trainval" not in each.where.lower()}
    return [
        each
        for each in lists
        if "trainval" not in each.where.lower()
        or not {(each.family, "train"), (each.family, "validation")} <= divided
    ]


def _ways(items: Sequence[str]) -> Iterator[Mapping[str, int]]:
    """The image of each text, for each way to name images."""
    last = [name.rpartition("/")[2] for name in items]
    stems = list(map(without_ending, last))
    yield unique_rows(items)
    yield unique_rows(last)
    yield unique_rows(map(without_ending, items))
    yield unique_rows(stems)
    yield unique_rows(re.sub(r"^[A-Za-z_]+", "", stem) for stem in stems)


def _rows_of(texts: Sequence[str], way: Mapping[str, int]) -> list[int]:
    """The image of each text; none if a text names no image, or two name the same."""
    rows = [way.get(text, -1) for text in texts]
    return rows if min(rows, default=-1) >= 0 and len(set(rows)) == len(rows) else []


def divided_by(lists: Sequence[NameList], items: Sequence[str]) -> dict[str, list[str]]:
    """The images of each split that lists name; none if one of them says no split."""
    if not all(each.split for each in lists):
        return {}
    divided: dict[str, dict[str, None]] = {}
    for each in lists:
        divided.setdefault(each.split, {}).update(dict.fromkeys(items[row] for row in each.rows))
    return {split: list(names) for split, names in divided.items()}
