"""A labels file of each split -> one LabelTable, and the files that its paths mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.labels_file import LabelTable, Unit
from imagenet_prep.recipes.path_matching import match, without_ending
from imagenet_prep.storage.location import AnyPath


def join_tables(tables: Sequence[tuple[str, LabelTable, AnyPath]]) -> LabelTable:
    """The rows of all tables, each given with its split and its file; a column that one of them
    lacks is empty there.

    Raises:
        InputError: one of them has labels, and another one has none.
    """
    _refuse_some_without_labels(tables)
    tables = _alike(tables)
    _, first_table, _ = tables[0]
    names = dict.fromkeys(name for _, table, _ in tables for name in table.columns)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    paths: list[str] = []
    lines: list[int] = []
    labels: list[Any] = []
    splits: list[str | None] = []
    sections: list[tuple[int, AnyPath, Unit]] = []
    start = 0
    for split, table, path in tables:
        count = len(table.paths)
        sections.append((start, path, table.unit))
        paths += table.paths
        lines += [start + line for line in table.lines]
        labels += table.labels or ()
        splits += [split] * count
        for name, column in columns.items():
            column += table.columns.get(name) or [None] * count
        start += max(table.lines, default=0)
    return replace(
        first_table,
        paths=paths,
        lines=lines,
        labels=None if first_table.labels is None else labels,
        columns=columns,
        splits=splits,
        sections=sections,
    )


def _refuse_some_without_labels(tables: Sequence[tuple[str, LabelTable, AnyPath]]) -> None:
    """Raise InputError if some of the tables have labels, and others have none."""
    paths_without_labels = [path for _, table, path in tables if table.labels is None]
    paths_with_labels = [path for _, table, path in tables if table.labels is not None]
    if not paths_with_labels or not paths_without_labels:
        return
    path = paths_without_labels[0]
    raise InputError(
        f"{paths_with_labels[0]} has a column of labels, and {path} has none",
        "expected a column of labels in every file, or in none",
        f"add this column to {path.name}; for images without a label, leave its cells empty",
    )


def _alike(
    tables: Sequence[tuple[str, LabelTable, AnyPath]],
) -> Sequence[tuple[str, LabelTable, AnyPath]]:
    """The tables, all of them of texts if one is."""
    if len({table.is_text for _, table, _ in tables}) == 1:
        return tables
    return [(split, _with_texts(table), path) for split, table, path in tables]


def _with_texts(table: LabelTable) -> LabelTable:
    """A table whose numbers are texts, as those of a CSV are."""
    if table.is_text:
        return table
    labels: list[Any] | None = None
    if table.labels is not None:
        labels = [_as_text(label) for label in table.labels]
    columns: dict[str, list[Any]] = {}
    for name, column in table.columns.items():
        columns[name] = [_as_text(value) for value in column]
    return replace(table, labels=labels, columns=columns, is_text=True)


def _as_text(value: Any) -> Any:
    """A number, or the numbers of a list, as texts; other values as they are."""
    if isinstance(value, list):
        return [_as_text(single) for single in value]
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, (int, float)) else value


def match_table(
    table: LabelTable, names: Sequence[str], base: AnyPath, path: AnyPath, strip: str | None = None
) -> list[int]:
    """``match`` for the paths of a table; the paths of each of several
    files are matched from where that file is.
    """
    if not table.sections:
        return match(table.paths, names, base, path, strip)
    starts = np.array([start for start, _, _ in table.sections])
    lines = np.asarray(table.lines)
    section_numbers = np.searchsorted(starts, lines, side="left") - 1
    hits: list[int] = []
    for number, (_, section, _) in enumerate(table.sections):
        rows = np.flatnonzero(section_numbers == number).tolist()
        section_paths = [table.paths[row] for row in rows]
        hits += match(section_paths, names, base, section, strip)
    return hits


def split_in(path: str) -> str:
    """The split that the name of a file, or of its folder, says."""
    splits = list(filter(None, map(split_name, _words_of(path))))
    if not splits:
        return ""
    return splits[-1]


def family_of(path: str) -> tuple[str, ...]:
    """The words of a file's path without its split: files of several splits have them in common."""
    words = [word for word in _words_of(path) if not split_name(word)]
    return tuple(map(str.lower, words))


def _words_of(path: str) -> list[str]:
    stem, _, _ = path.rpartition(".")
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", stem or path)
    return re.split(r"[\W_\d]+", spaced)


def spread(table: LabelTable, names: Sequence[str]) -> LabelTable:
    """A table of folders, such as those of patients, with a row for each file in them; any other
    table as it is.

    Its paths are paths of folders, or the ends of them; the first has no ending.
    """
    if not table.paths:
        return table
    _, _, first_name = table.paths[0].rpartition("/")
    if "." in first_name:
        return table
    last_words = {path.strip("/").rpartition("/")[2] for path in table.paths}
    files = _files_by_folder(names, last_words)
    rows: list[int] = []
    paths: list[str] = []
    for row, path in enumerate(table.paths):
        folder_files = files.get(path.strip("/"), ())
        rows += [row] * len(folder_files)
        paths += folder_files
    if not rows:
        return table
    spread_table = table.take(rows)
    return replace(spread_table, paths=paths)


def _files_by_folder(names: Sequence[str], last_words: set[str]) -> dict[str, list[str]]:
    """The files in each folder whose path ends in one of these words, by every end of that path;
    none if a file is called so itself.
    """
    files: dict[str, list[str]] = {}
    for name in names:
        *folders, _ = name.split("/")
        _, _, stem = without_ending(name).rpartition("/")
        if stem in last_words:
            return {}
        for depth, folder in enumerate(folders, 1):
            if folder not in last_words:
                continue
            for start in range(depth):
                end_of_path = "/".join(folders[start:depth])
                files.setdefault(end_of_path, []).append(name)
    return files
