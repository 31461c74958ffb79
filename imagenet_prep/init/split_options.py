"""Splits that the user names, such as train=Train:
folders, list files or values of a column -> a recipe's `splits`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from pathlib import Path

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.sources.folders import read_file_list
from imagenet_prep.text import listed

_MOST_VALUES = 10
"""A column with more values names no splits."""


def asked_folders(inspection: Inspection) -> dict[str, str] | None:
    """The split of each folder that the user names;
    None if no split is named, or not all are folders.
    """
    folders = {
        where.strip("/").removeprefix("./"): name
        for name, where in inspection.options.splits.items()
    }
    if not folders or not all(map(_holding(inspection), folders)):
        return None
    return folders


def _holding(inspection: Inspection) -> Callable[[str], bool]:
    """Whether a folder holds items."""
    tops = set()
    for item in inspection.items:
        folder = item.rpartition("/")[0]
        while folder and folder not in tops:
            tops.add(folder)
            folder = folder.rpartition("/")[0]
    return tops.__contains__


def asked_lists(inspection: Inspection) -> dict[str, str]:
    """The list file of each split that the user names, from the folder;
    none if not all are files.
    """
    lists = {name: where.removeprefix("./") for name, where in inspection.options.splits.items()}
    is_file = [(Path(inspection.folder) / where).is_file() for where in lists.values()]
    return lists if all(is_file) else {}


def check_asked(inspection: Inspection) -> None:
    """Raise UsageError if a split that the user names is no folder,
    no list file and no value of a column.
    """
    splits = inspection.options.splits
    if not splits:
        return
    is_folder, values = _holding(inspection), _values(inspection)
    sorts = {}
    for name, where in splits.items():
        if where in values:
            sorts[name] = "values"
        elif is_folder(where.strip("/").removeprefix("./")):
            sorts[name] = "folders"
        elif (Path(inspection.folder) / where).is_file():
            sorts[name] = "list files"
        else:
            tops = sorted({item.partition("/")[0] for item in inspection.items if "/" in item})
            known = [*tops, *sorted(values)]
            what = (
                f"{inspection.folder} has no folder, no list and no value {where} for --split "
                f"{name}"
            )
            raise UsageError(
                what, f"expected one of {listed(known, 8)}" if known else "expected a list of files"
            )
    if len(set(sorts.values())) > 1:
        what = ", ".join(f"{name} is one of {sort}" for name, sort in sorts.items())
        raise UsageError(f"--split: {what}", "expected folders, list files or values alone")
    if "values" in sorts.values():
        _refuse_other_values(inspection)


def _refuse_other_values(inspection: Inspection) -> None:
    """Raise UsageError if a column of splits has a value that the user gives no split."""
    for file in inspection.labels:
        if file.splits is None:
            continue
        values = {value for value in file.table.splits or () if value is not None}
        others = sorted(values - file.splits.splits.keys())
        if others:
            what = (
                f"{file.place} has {listed(others)} in its column {file.splits.name}, "
                "and no --split for it"
            )
            splits = {**inspection.options.splits, **{value: value for value in others}}
            command = inspection.command(splits=splits)
            raise UsageError(
                what, "expected a split for each value", f"with splits of these names: {command}"
            )


def refuse_unused_splits(
    folder: Path, asked: InitOptions, inspection: Inspection | None, split_names: Collection[str]
) -> None:
    """Raise UsageError if the recipe lacks a split that the user names; ``split_names`` are those
    that it has.

    A layout takes some sorts of splits only, and a list with a line that names no image can't be
    taken.
    """
    unused = [
        f"--split {split}={place}"
        for split, place in asked.splits.items()
        if split not in split_names
    ]
    if not unused:
        return
    what = f"{folder}: the recipe would not have {' and '.join(unused)}"
    expected = "expected folders, lists or values that divide the images of this layout"
    if inspection is not None and (unknown := _unknown_line(inspection)):
        what, expected = (
            f"{folder}: {unknown}",
            "expected the path of an image in each line, and each image once",
        )
    raise UsageError(what, expected, f"without --split: {asked.command(folder, splits={})}")


def _unknown_line(inspection: Inspection) -> str:
    """The first line of the user's lists that names no image, for a message;
    "" if there is none.
    """
    for name in asked_lists(inspection).values():
        path = inspection.folder / name
        with contextlib.suppress(InputError):
            listing = read_file_list(path, inspection.folder)
            rows = match(listing.names, inspection.items, inspection.folder, path)
            for text, line, row in zip(listing.names, listing.lines, rows, strict=True):
                if row < 0:
                    return f"{name}, line {line}: {text} is no image there"
    return ""


def _values(inspection: Inspection) -> set[str]:
    """The values of columns of labels files that name few things, as splits do."""
    values: set[str] = set()
    for file in inspection.labels:
        for column in (*file.table.columns.values(), file.table.splits or ()):
            several = {str(value) for value in column if value is not None}
            values |= several if len(several) <= _MOST_VALUES else set()
        values |= {value for value in file.table.splits or () if value is not None}
    return values
