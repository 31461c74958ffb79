"""Splits that the user names, such as train=Train: folders, list files or values of a column -> a recipe's `splits`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from imagenet_prep.errors import UsageError
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.rules import SPLIT_NAME
from imagenet_prep.text import listed

_MOST_VALUES = 10
"""A column with more values names no splits."""


def parse_splits(texts: Iterable[str]) -> dict[str, str]:
    """The splits of ``--split NAME=WHERE``, by name.

    Raises:
        UsageError: a text has no name of a split, or a name is there twice.
    """
    splits: dict[str, str] = {}
    for text in texts:
        name, sign, where = text.partition("=")
        if not sign or not where or not SPLIT_NAME.fullmatch(name):
            raise UsageError(f"--split {text} can't be", "expected NAME=WHERE, such as train=Train")
        if name in splits:
            raise UsageError(f"--split {name} is there twice", "expected each split once")
        splits[name] = where
    return splits


def asked_folders(inspection: Inspection) -> dict[str, str] | None:
    """The split of each folder that the user names; None if no split is named, or not all are folders."""
    folders = {where.strip("/").removeprefix("./"): name for name, where in inspection.splits.items()}
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


def asked_places(inspection: Inspection) -> dict[str, dict[str, str]]:
    """The recipe's `splits` for the splits that the user names; none if no split is named.

    Raises:
        UsageError: one of them is no folder, no list file and no value of a column.
    """
    if (folders := asked_folders(inspection)) is not None:
        return {name: {"folder": folder} for folder, name in folders.items()}
    places: dict[str, dict[str, str]] = {}
    is_folder, values = _holding(inspection), _values(inspection) if inspection.splits else set()
    for name, where in inspection.splits.items():
        folder = where.strip("/").removeprefix("./")
        if where in values:
            places[name] = {"value": where}
        elif is_folder(folder):
            places[name] = {"files": f"{folder}/**/*"}
        elif (Path(inspection.folder) / where).is_file():
            places[name] = {"manifest": where}
        else:
            tops = sorted({item.partition("/")[0] for item in inspection.items if "/" in item})
            known = [*tops, *sorted(values)]
            what = f"{inspection.folder} has no folder, no list and no value {where} for --split {name}"
            raise UsageError(what, f"expected one of {listed(known, 8)}" if known else "expected a list of files")
    return places


def _values(inspection: Inspection) -> set[str]:
    """The values of columns of labels files that name few things, as splits do."""
    values: set[str] = set()
    for file in inspection.labels:
        for column in file.table.columns.values():
            several = set(map(str, column))
            values |= several if len(several) <= _MOST_VALUES else set()
    return values
