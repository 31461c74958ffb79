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
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.recipes.splits import USUAL, place_of_split, split_names, stem_of, suffix_of
from imagenet_prep.sources.folders import read_file_list
from imagenet_prep.storage.files import read_plain

_ENDINGS = (".txt", ".lst", ".list", ".csv", ".tsv")
_LARGEST = 1 << 28


class SplitLists(Struct, frozen=True):
    """The lists that divide images.

    Args:
        files: the file of each split, from the folder.
        divided: the images of each split.
        is_plain: whether each line is a name and nothing else, so that a recipe can name the files.
    """

    files: Mapping[str, str]
    divided: Mapping[str, Sequence[str]]
    is_plain: bool

    @property
    def names(self) -> list[str]:
        """The images of all splits."""
        return list(chain.from_iterable(self.divided.values()))


def find_split_lists(inspection: Inspection, names: Sequence[str], lead: str) -> list[SplitLists]:
    """The lists that divide images, by their names from ``lead``: at least half of them, each into
    one split.

    A folder can have several, such as train1.txt and test1.txt, train2.txt and test2.txt.
    """
    found = []
    for files in _called_as_splits(inspection):
        lists = read_split_lists(inspection.folder, files, names, lead)
        if lists is not None and 2 * len(lists.names) >= len(names):
            found.append(lists)
    return found


def read_split_lists(
    folder: Path, files: Mapping[str, str], names: Sequence[str], lead: str
) -> SplitLists | None:
    """The images that list files name; None if a line names no image, or two name the same.

    Args:
        folder: the data.
        files: by split its list, from the folder.
        names: the images, from ``lead``.
        lead: the folders that hold them all, with a slash.
    """
    base = folder / lead
    plain = {split: _plain_rows(folder / name, names, base) for split, name in files.items()}
    is_plain = all(plain.values())
    divided: dict[str, list[str]] = {}
    for split, name in files.items():
        rows = plain[split] or _rows_of_column(folder / name, names, base)
        if not rows:
            return None
        divided[split] = [names[row] for row in rows]
    every = list(chain.from_iterable(divided.values()))
    return SplitLists(files, divided, is_plain) if len(set(every)) == len(every) else None


def find_split_table(
    inspection: Inspection, names: Sequence[str], taken: Collection[str]
) -> SplitLists | None:
    """The splits of images by the column of a table that says nothing of classes, such as CelebA's
    partition.

    Args:
        inspection: the folder.
        names: the images, from the folder.
        taken: the tables that are used otherwise.
    """
    wanted = set(names)
    tables = [
        table
        for table in inspection.labels
        if table.splits is not None and table.where not in taken
    ]
    if len(tables) != 1:
        return None
    (table,) = tables
    column = table.splits
    assert column is not None
    values = table.table.columns.get(column.name) or table.table.splits or ()
    others = [name for name in table.table.columns if name != column.name]
    is_said = column.is_sure or (len(column.splits) == len(USUAL) and not others)
    if not is_said or table.has_labels:
        return None
    divided: dict[str, list[str]] = {
        split: [] for split in USUAL if split in column.splits.values()
    }
    for row, value in zip(table.rows, values, strict=True):
        if row >= 0 and value is not None and inspection.items[row] in wanted:
            divided.setdefault(column.splits[str(value)], []).append(inspection.items[row])
    divided = {split: several for split, several in divided.items() if several}
    return SplitLists(dict.fromkeys(divided, table.where), divided, is_plain=False)


def _plain_rows(path: Path, names: Sequence[str], base: Path) -> list[int]:
    """The image of each line, where each line is a name; none otherwise."""
    with contextlib.suppress(InputError):
        rows = match(read_file_list(path, base).names, names, base, path)
        return rows if min(rows, default=-1) >= 0 else []
    return []


def _rows_of_column(path: Path, names: Sequence[str], base: Path) -> list[int]:
    """The image of each line, by the only column that has their names;
    none if there is no such column.
    """
    lines = read_cells(path)
    columns = min(map(len, lines), default=0)
    for column in range(columns):
        rows = match([cells[column] for cells in lines], names, base, path)
        body = rows[1:] if rows[0] < 0 else rows  # the first line may be a header
        if min(body, default=-1) >= 0:
            return body
    return []


def read_cells(path: Path) -> list[list[str]]:
    """The cells of each line of a table: by commas, semicolons or tabs as its first line has them,
    otherwise by blanks.

    Raises:
        InputError: it can't be read.
    """
    lines = [
        line
        for line in read_plain(path).decode("utf-8-sig", "replace").splitlines()
        if line.strip()
    ]
    sign = next((sign for sign in ("\t", ",", ";") if lines and sign in lines[0]), "")
    if not sign:
        return [line.split() for line in lines]
    return [[cell.strip() for cell in cells] for cells in csv.reader(lines, delimiter=sign)]


def _called_as_splits(inspection: Inspection) -> Iterator[dict[str, str]]:
    """The files that are called as splits are, by split; those that are called alike together."""
    items = set(inspection.items)
    sizes = zip(inspection.listing.names, inspection.listing.lengths.tolist(), strict=True)
    texts = [
        name
        for name, size in sizes
        if _may_be_list(name) and name not in items and size <= _LARGEST
    ]
    alike: dict[tuple[str, str], list[str]] = {}
    for name in texts:
        alike.setdefault(
            (name.rpartition("/")[0], "".join(re.findall(r"\d+$", stem_of(name)))), []
        ).append(name)
    for several in alike.values():
        splits = _splits_of(several)
        if (
            len(splits) > 1
            and "train" in splits.values()
            and len(set(splits.values())) == len(splits)
        ):
            files = {split: name for name, split in splits.items()}
            yield {split: files[split] for split in sorted(files, key=place_of_split)}


def _may_be_list(name: str) -> bool:
    suffix = suffix_of(name)
    return suffix in _ENDINGS or not suffix.startswith(".")


def _splits_of(names: Iterable[str]) -> dict[str, str]:
    """The split of each file by its name; trainval is left out where it is
    divided into train and val.
    """
    stems = {name.removesuffix(suffix_of(name)) or name: name for name in names}
    known = {stem.rpartition("/")[2].lower() for stem in stems}
    if {"train", "val"} <= known:
        stems = {
            stem: name for stem, name in stems.items() if not stem.lower().endswith("trainval")
        }
    return {stems[stem]: split for stem, split in split_names(stems).items()}
