"""Lists of texts -> the images that their lines name:
by path, by name, without the ending, or by number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.recipes.joined_tables import family_of, split_in
from imagenet_prep.recipes.path_matching import unique_rows, without_ending
from imagenet_prep.recipes.path_parts import base_name, composed, suffix_of
from imagenet_prep.storage.files import read_plain

_ENDINGS = (".txt", ".lst", ".list")
_LARGEST = 1 << 26
_MOST_LISTS = 2000

_HEADINGS = frozenset(("file", "filename", "file_name", "id", "image", "image_id", "name", "path"))
"""Names for the column of images in the first line of a table."""


class NameList(Struct, frozen=True):
    """A list each line of which names an image.

    Args:
        name: the file, from the folder.
        split: the split that its name says; or "".
        family: the words of its name without the split.
        rows: the image of each line.
        texts: what follows the name in each line; "" for nothing.
        absent: the names of images that are not there.
    """

    name: str
    split: str
    family: tuple[str, ...]
    rows: Sequence[int]
    texts: Sequence[str]
    absent: Sequence[str] = ()

    @property
    def joins_splits(self) -> bool:
        """Whether it is of train and validation in one."""
        return "trainval" in self.name.lower()


def find_name_lists(inspection: Inspection) -> list[NameList]:
    """The lists most lines of which start with the name of an image; those of train and validation
    in one are left out.

    A line has a name, or a name, a blank and a text.
    """
    names = _texts_of(inspection)
    if len(names) > _MOST_LISTS or not inspection.items:
        return []
    namings = list(_namings(inspection.items))
    lists: list[NameList] = []
    for name in names:
        name_list = _read_list(inspection.folder, name, namings)
        if name_list is not None:
            lists.append(name_list)
    parts = {(part.family, part.split) for part in lists if not part.joins_splits}
    return [name_list for name_list in lists if not _is_in_parts(name_list, parts)]


def _texts_of(inspection: Inspection) -> list[str]:
    """The files that may be lists."""
    names: list[str] = []
    for name, size in inspection.sizes():
        if suffix_of(name) in _ENDINGS and 0 < size <= _LARGEST:
            names.append(name)
    return names


def _is_in_parts(name_list: NameList, parts: set[tuple[tuple[str, ...], str]]) -> bool:
    """Whether a list is of train and validation in one, and each has a list, too."""
    if not name_list.joins_splits:
        return False
    family = name_list.family
    return (family, "train") in parts and (family, "validation") in parts


def _read_list(folder: Path, name: str, namings: Sequence[Mapping[str, int]]) -> NameList | None:
    """A list of names; None if less than half of its lines name an image,
    or if it is a table: its first line names its columns.
    """
    image_names, texts = _read_lines(folder / name)
    for row_by_name in namings:
        rows = [row_by_name.get(image_name, -1) for image_name in image_names]
        found_rows = [row for row in rows if row >= 0]
        if not found_rows or 2 * len(found_rows) < len(rows):
            continue
        if len(set(found_rows)) == len(found_rows):
            absent = [image_names[line] for line, row in enumerate(rows) if row < 0]
            if not _HEADINGS.isdisjoint(map(str.lower, absent)):
                return None
            kept_texts = [texts[line] for line, row in enumerate(rows) if row >= 0]
            file_name = base_name(name)
            split, family = split_in(file_name), family_of(file_name)
            return NameList(name, split, family, found_rows, kept_texts, absent)
    return None


def _read_lines(path: Path) -> tuple[list[str], list[str]]:
    """The first word of each line, which may name an image, and the text after it."""
    content = read_plain(path).decode("utf-8-sig", "replace")
    image_names: list[str] = []
    texts: list[str] = []
    for line in content.splitlines():
        if line.strip() and not line.startswith("#"):
            image_name, _, text = line.strip().partition(" ")
            image_names.append(composed(image_name))
            texts.append(text.strip())
    return image_names, texts


def _namings(items: Sequence[str]) -> Iterator[Mapping[str, int]]:
    """The image of each name, for each way to name images."""
    items = list(map(composed, items))
    file_names = [name.rpartition("/")[2] for name in items]
    stems = list(map(without_ending, file_names))
    yield unique_rows(items)
    yield unique_rows(file_names)
    yield unique_rows(map(without_ending, items))
    yield unique_rows(stems)
    yield unique_rows(re.sub(r"^[A-Za-z_]+", "", stem) for stem in stems)


def divided_by(lists: Sequence[NameList], items: Sequence[str]) -> dict[str, list[str]]:
    """The images of each split that lists name; none if one of them says no split."""
    if not all(name_list.split for name_list in lists):
        return {}
    divided: dict[str, dict[str, None]] = {}
    for name_list in lists:
        names = (items[row] for row in name_list.rows)
        names_of_split = divided.setdefault(name_list.split, {})
        names_of_split.update(dict.fromkeys(names))
    return {split: list(names) for split, names in divided.items()}
