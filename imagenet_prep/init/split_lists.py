"""Split lists: train.txt and test.txt with a name of an image in each line
-> the split of each image.
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.init.file_endings import LARGEST_TEXT
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.recipes.path_parts import base_name, has_ending, parent_of, stem_of, suffix_of
from imagenet_prep.recipes.splits import USUAL, place_of_split, split_names
from imagenet_prep.sources.file_lists import read_file_list
from imagenet_prep.storage.files import read_plain

_ENDINGS = (".txt", ".lst", ".list", ".csv", ".tsv")


class SplitLists(Struct, frozen=True):
    """The lists that divide images.

    Args:
        files: the file of each split, from the folder.
        divided: the images of each split.
        is_plain: whether each line is the name of an image and nothing else, so that a recipe can
            name the files.
        absent: by file the images that it names and that are not there.
    """

    files: Mapping[str, str]
    divided: Mapping[str, Sequence[str]]
    is_plain: bool
    absent: Mapping[str, Sequence[str]] = {}

    @property
    def names(self) -> list[str]:
        """The images of all splits."""
        return list(chain.from_iterable(self.divided.values()))


def find_split_lists(inspection: Inspection, names: Sequence[str], lead: str) -> list[SplitLists]:
    """The lists that divide images, by their names from ``lead``: at least half of them, each into
    one split.

    A folder can have several, such as train1.txt and test1.txt, train2.txt and test2.txt.
    """
    ways_to_divide: list[SplitLists] = []
    for files in _called_as_splits(inspection):
        lists = read_split_lists(inspection, files, names, lead)
        if lists is not None and 2 * len(lists.names) >= len(names):
            ways_to_divide.append(lists)
    return ways_to_divide


def read_split_lists(
    inspection: Inspection, files: Mapping[str, str], names: Sequence[str], lead: str
) -> SplitLists | None:
    """The images that list files name; None if most lines of one name none, or two the same.

    Args:
        inspection: the folder.
        files: by split its list, from the folder.
        names: the images, from ``lead``.
        lead: the folders that hold them all, with a slash.
    """
    base = inspection.folder / lead
    strip = inspection.options.strip
    is_plain = True
    divided: dict[str, list[str]] = {}
    absent_by_file: dict[str, list[str]] = {}
    for split, list_name in files.items():
        path = inspection.folder / list_name
        rows, absent = _plain_rows(path, names, base, strip)
        if absent or not rows:
            rows_of_column, absent_of_column = _rows_of_column(path, names, base, strip)
            if not rows or len(absent_of_column) < len(absent):
                rows, absent = rows_of_column, absent_of_column
            is_plain = False
        if not rows:
            return None
        divided[split] = [names[row] for row in rows]
        if absent:
            absent_by_file[list_name] = absent
    lists = SplitLists(files, divided, is_plain, absent_by_file)
    if len(set(lists.names)) < len(lists.names):
        return None
    return lists


def read_whole_lists(
    inspection: Inspection, files: Mapping[str, str], names: Sequence[str], lead: str
) -> SplitLists | None:
    """The images that lists name which the user chose; None if a line names none."""
    lists = read_split_lists(inspection, files, names, lead)
    if lists is None or lists.absent:
        return None
    return lists


def find_split_table(
    inspection: Inspection, names: Sequence[str], used_tables: Collection[str], lead: str = ""
) -> SplitLists | None:
    """The splits of images by the column of a table that says nothing of classes, such as CelebA's
    partition.

    Args:
        inspection: the folder.
        names: the images, from ``lead``.
        used_tables: the tables that are used otherwise.
        lead: the folder of the images, from the folder.
    """
    tables: list[LabelsFile] = []
    for table in inspection.labels:
        if table.splits is not None and table.name not in used_tables:
            tables.append(table)
    if len(tables) != 1:
        return None
    (table,) = tables
    if table.has_labels or not _says_splits(table):
        return None
    kept_names = set(names)
    divided: dict[str, list[str]] = {split: [] for split in USUAL}
    for row, split in _splits_by_row(table):
        name = inspection.items[row].removeprefix(lead)
        if name in kept_names:
            divided.setdefault(split, []).append(name)
    divided = {split: images for split, images in divided.items() if images}
    files = dict.fromkeys(divided, table.name)
    return SplitLists(files, divided, is_plain=False)


def find_split_table_of_all(
    inspection: Inspection, names: Sequence[str], lead: str
) -> SplitLists | None:
    """The splits by the column of a table, as "find_split_table" has them, if each image has one
    and the user names no other splits.
    """
    if inspection.options.splits:
        return None
    lists = find_split_table(inspection, names, (), lead)
    if lists is None or len(lists.names) < len(names):
        return None
    return lists


def _says_splits(table: LabelsFile) -> bool:
    """Whether a column says splits: by words, or as the only one, by as many numbers as there are
    usual splits.
    """
    column = table.splits
    assert column is not None
    if column.is_sure:
        return True
    is_alone = not table.table.columns.keys() - {column.name}
    return is_alone and len(column.splits) == len(USUAL)


def _splits_by_row(table: LabelsFile) -> Iterator[tuple[int, str]]:
    """The split of each image that a table gives one."""
    column = table.splits
    assert column is not None
    values = table.table.columns.get(column.name) or table.table.splits or ()
    for row, value in zip(table.rows, values, strict=True):
        if row >= 0 and value is not None:
            yield row, column.splits[str(value)]


_Rows = tuple[list[int], list[str]]
"""The images of lines, and the lines that name none."""


def _plain_rows(path: Path, names: Sequence[str], base: Path, strip: str | None) -> _Rows:
    """The image of each line, where most lines are names; none otherwise."""
    with contextlib.suppress(InputError):
        lines = read_file_list(path, base).names
        return _most(lines, match(lines, names, base, path, strip))
    return [], []


def _rows_of_column(path: Path, names: Sequence[str], base: Path, strip: str | None) -> _Rows:
    """The image of each line, by the column that has most of their names;
    none if there is no such column.
    """
    lines = read_cells(path)
    column_count = min(map(len, lines), default=0)
    found: _Rows = ([], [])
    for column in range(column_count):
        texts = [cells[column] for cells in lines]
        rows = match(texts, names, base, path, strip)
        if rows[0] < 0:  # the first line may be a header
            texts, rows = texts[1:], rows[1:]
        of_column = _most(texts, rows)
        if len(of_column[0]) > len(found[0]):
            found = of_column
    return found


def _most(texts: Sequence[str], rows: Sequence[int]) -> _Rows:
    """The images of lines and the lines that name none; nothing if those are more."""
    absent = [text for text, row in zip(texts, rows, strict=True) if row < 0]
    found_rows = [row for row in rows if row >= 0]
    if len(absent) > len(found_rows):
        return [], []
    return found_rows, absent


def read_cells(path: Path) -> list[list[str]]:
    """The cells of each line of a table: by commas, semicolons or tabs as its first line has them,
    otherwise by blanks.

    Raises:
        InputError: it can't be read.
    """
    text = read_plain(path).decode("utf-8-sig", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    for sign in ("\t", ",", ";"):
        if lines and sign in lines[0]:
            rows = csv.reader(lines, delimiter=sign)
            return [[cell.strip() for cell in cells] for cells in rows]
    return [line.split() for line in lines]


def _called_as_splits(inspection: Inspection) -> Iterator[dict[str, str]]:
    """The files that are called as splits are, by split; those that are called alike together."""
    items = set(inspection.items)
    alike: dict[tuple[str, str], list[str]] = {}
    for name, size in inspection.sizes():
        if _may_be_list(name) and name not in items and size <= LARGEST_TEXT:
            number = "".join(re.findall(r"\d+$", stem_of(name)))
            folder_and_number = (parent_of(name), number)
            alike.setdefault(folder_and_number, []).append(name)
    for _, names in sorted(alike.items(), key=_in_numeric_order):
        splits = _splits_of(names)
        files = {split: name for name, split in splits.items()}
        if len(files) == len(splits) > 1 and "train" in files:
            yield {split: files[split] for split in sorted(files, key=place_of_split)}


def _in_numeric_order(entry: tuple[tuple[str, str], list[str]]) -> tuple[str, int, str]:
    (folder, number), _ = entry
    return folder, int(number or 0), number


def _may_be_list(name: str) -> bool:
    suffix = suffix_of(name)
    return suffix in _ENDINGS or not suffix.startswith(".")


def _splits_of(names: Iterable[str]) -> dict[str, str]:
    """The split of each file by its name; trainval is left out where it is
    divided into train and val.
    """
    name_by_stem: dict[str, str] = {}
    for name in names:
        stem = name.removesuffix(suffix_of(name)) or name
        name_by_stem[stem] = name
    stems = list(name_by_stem)
    words = {base_name(stem).lower() for stem in stems}
    if {"train", "val"} <= words:
        stems = [stem for stem in stems if not has_ending(stem, "trainval")]
    split_by_stem = split_names(stems)
    return {name_by_stem[stem]: split for stem, split in split_by_stem.items()}
