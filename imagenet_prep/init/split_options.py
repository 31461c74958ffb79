"""Splits that the user names, such as train=Train:
folders, list files or values of a column -> a recipe's `splits`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.hints import Hint
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.recipes.folder_words import name_as_split
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.sources.file_lists import read_file_list
from imagenet_prep.text import either, listed, one_of

_MOST_ALIKE = 3
"""Images of one name that a message lists."""

_FRACTION = re.compile(r"-?\d*\.\d+")
_MOST_VALUES = 10
"""A column with more values names no splits."""


def named_folders(inspection: Inspection) -> dict[str, str] | None:
    """The split of each folder that the user names;
    None if no split is named, or not all are folders.
    """
    splits = inspection.options.splits
    folders = {_folder_in(place): split for split, place in splits.items()}
    if not folders or not folders.keys() <= _folders_of_items(inspection):
        return None
    return folders


def _folder_in(place: str) -> str:
    """A place that the user names, as the path of a folder."""
    return place.strip("/").removeprefix("./")


def _folders_of_items(inspection: Inspection) -> set[str]:
    """The folders that hold items, and those above them."""
    folders: set[str] = set()
    for item in inspection.items:
        folder = item.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def named_lists(inspection: Inspection) -> dict[str, str]:
    """The list file of each split that the user names, from the folder;
    none if not all are files.
    """
    splits = inspection.options.splits
    lists = {split: place.removeprefix("./") for split, place in splits.items()}
    are_files = [(Path(inspection.folder) / name).is_file() for name in lists.values()]
    return lists if all(are_files) else {}


def check_splits(inspection: Inspection) -> None:
    """Raise UsageError if a split that the user names is no folder,
    no list file and no value of a column.
    """
    splits = inspection.options.splits
    if not splits:
        return
    folders, values = _folders_of_items(inspection), _split_values(inspection)
    nouns_by_split: dict[str, list[str]] = {}
    for split, place in splits.items():
        nouns_by_split[split] = _nouns_of(inspection, place, folders, values)
        if not nouns_by_split[split]:
            raise _no_such_place(inspection, split, place, values)
    common_nouns = [
        noun for noun in _NOUNS if all(noun in nouns for nouns in nouns_by_split.values())
    ]
    if not common_nouns:
        texts: list[str] = []
        for split, nouns in nouns_by_split.items():
            texts.append(f"{split}={splits[split]} is {either(nouns)}")
        problem = f"--split: {', '.join(texts)}"
        expected = "expected only folders, or only list files, or only values of a column"
        raise UsageError(problem, expected)
    if common_nouns[0] == _VALUE:
        _refuse_other_values(inspection)


_VALUE, _FOLDER, _LIST = _NOUNS = ("a value of a column", "a folder", "a list file")
"""The sorts of places that a split has, in the order of choice."""


def _nouns_of(
    inspection: Inspection, place: str, folders: Collection[str], values: Collection[str]
) -> list[str]:
    """The sorts of a place: a value of a column can be a folder, too."""
    nouns: list[str] = []
    if place in values:
        nouns.append(_VALUE)
    if _folder_in(place) in folders:
        nouns.append(_FOLDER)
    if (Path(inspection.folder) / place).is_file():
        nouns.append(_LIST)
    return nouns


def _no_such_place(
    inspection: Inspection, split: str, place: str, values: Collection[str]
) -> UsageError:
    """The error for a split that is nowhere."""
    tops = sorted({item.partition("/")[0] for item in inspection.items if "/" in item})
    places = list(dict.fromkeys([*tops, *sorted(values)]))
    expected = "a file that lists images"
    if places:
        expected += f", or {one_of(places, 8)}"
    problem = (
        f"--split {split}: {inspection.folder} has no folder and no list {place}, "
        "and no such value in a column that init can read as splits"
    )
    path = inspection.folder / place
    if path.is_dir():
        problem = f"--split {split}: init finds no {inspection.noun}s in the folder {path}"
    elif os.path.lexists(path):
        problem = f"--split {split}: {path} is neither a folder nor a file that can be read"
    return UsageError(problem, f"expected {expected}")


def _refuse_other_values(inspection: Inspection) -> None:
    """Raise UsageError if a column of splits has a value that the user gives no split."""
    for table in inspection.labels:
        if table.splits is None:
            continue
        values = {value for value in table.table.splits or () if value is not None}
        other_values = sorted(values - table.splits.splits.keys())
        if other_values:
            column = f"column {table.splits.name} of {table.place}"
            options, folder = inspection.options, inspection.folder
            raise fault_of_other_values(column, other_values, options, folder)


def fault_of_other_values(
    column: str, values: Sequence[str], options: InitOptions, place: Path
) -> UsageError:
    """The error for values of a column of splits that no --split names; init reads ``place``."""
    noun = "the value" if len(values) == 1 else "the values"
    problem = f"no --split names {noun} {listed(values)} of the {column}"
    splits = _splits_with_values(options.splits, values)
    hint = Hint("to make a split of each value: ", options.command(place, splits=splits))
    return UsageError(problem, "expected --split NAME=VALUE for each value", hint)


def _splits_with_values(named_splits: Mapping[str, str], values: Iterable[str]) -> dict[str, str]:
    """The splits that the user names, after one for each of these values, called as it is."""
    new_splits: dict[str, str] = {}
    for value in values:
        name = name_as_split(value)
        while name in new_splits or name in named_splits:
            name += "-2"
        new_splits[name] = value
    return {**new_splits, **named_splits}


def refuse_unused_splits(
    folder: Path, options: InitOptions, inspection: Inspection | None, split_names: Collection[str]
) -> None:
    """Raise UsageError if the recipe lacks a split that the user names; ``split_names`` are those
    that it has.

    A structure takes some sorts of splits only, and a list with a line that names no image can't be
    taken.
    """
    unused = [
        f"--split {split}={place}"
        for split, place in options.splits.items()
        if split not in split_names
    ]
    if not unused:
        return
    if inspection is not None:
        _refuse_unknown_line(inspection)
    verb = "does" if len(unused) == 1 else "do"
    problem = f"{' and '.join(unused)} {verb} not divide {folder} as init reads it"
    expected = "some structures take folders, some lists of files, some values of a column"
    hint = Hint("to run init without --split: ", options.command(folder, splits={}))
    raise UsageError(problem, expected, hint)


def _refuse_unknown_line(inspection: Inspection) -> None:
    """Raise UsageError if a line of the user's lists names no image, or one of a line before it, if
    a list can't be read, or if two splits have the same.
    """
    place_of_row: dict[int, str] = {}
    split_of_list: dict[str, str] = {}
    for split, name in named_lists(inspection).items():
        path = inspection.folder / name
        if name in split_of_list:
            raise UsageError(
                f"--split names {path} for both {split_of_list[name]} and {split}",
                "expected a list of its own for each split",
                "name another list for one of the two",
            )
        split_of_list[name] = split
        hint = f"correct {path} and run the same command again"
        try:
            listing = read_file_list(path, inspection.folder)
        except InputError as error:
            raise UsageError(error.what, error.detail, hint) from error
        strip = inspection.options.strip
        rows = match(listing.names, inspection.items, inspection.folder, path, strip)
        for text, line, row in zip(listing.names, listing.lines, rows, strict=True):
            place = f"{path}, line {line}"
            problem = ""
            if row < 0:
                problem = _why_no_image(inspection.folder, inspection.items, text)
            elif row in place_of_row:
                problem = f"is in {place_of_row[row]} already"
            if problem:
                expected = "expected the path of an image in each line, and each image once"
                raise UsageError(f"{place}: {text} {problem}", expected, hint)
            place_of_row[row] = place


def _why_no_image(folder: Path, items: Sequence[str], text: str) -> str:
    """The reason why a line names no image: there is none, or there are several."""
    alike = [item for item in items if f"/{item}".endswith(f"/{text}")]
    if len(alike) > 1:
        return f"may be {either(alike[:_MOST_ALIKE])}"
    return f"is no image in {folder}"


def _split_values(inspection: Inspection) -> set[str]:
    """The values of columns of labels files that name few things, as splits do."""
    values: set[str] = set()
    for table in inspection.labels:
        values.update(value for value in table.table.splits or () if value is not None)
        values.update(*_columns_of_few_values(table))
    return values


def _columns_of_few_values(table: LabelsFile) -> list[set[str]]:
    """The values of each column that has few."""
    columns = [*table.table.columns.values(), table.table.splits or (), table.table.labels or ()]
    values = [{str(cell) for cell in cells if cell is not None} for cells in columns]
    return [
        few_values
        for few_values in values
        if len(few_values) <= _MOST_VALUES and not any(map(_FRACTION.fullmatch, few_values))
    ]
