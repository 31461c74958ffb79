"""Labels files of several splits -> one, if they name different images."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.init.table_forms import class_values
from imagenet_prep.recipes.columns import has_ending_of
from imagenet_prep.recipes.joined_tables import family_of, join_tables, split_in
from imagenet_prep.recipes.labels_file import LabelTable, Unit
from imagenet_prep.recipes.splits import place_of_split
from imagenet_prep.text import listed, number_of

SKIPS = ("unlabelled", "missing")
"""The keys of a recipe's `labels` that skip images or lines."""

_TableForm = tuple[bool, str, str]
"""Whether a file has labels, their column, and its options."""

_Family = tuple[_TableForm, tuple[str, ...]]
"""The form of files, and what their names say but the split."""

_Part = tuple[str, LabelsFile]
"""A split, and its file."""


def place_of_table(folder: Path, name: str) -> Path:
    """The path of a table in a folder, or next to it."""
    return Path(os.path.normpath(folder / name))


def join_by_split(
    folder: Path, files: Sequence[LabelsFile], items: Sequence[str]
) -> list[LabelsFile]:
    """The files of several splits as one each, if they name different images:
    by what else their names say.
    """
    families: dict[_Family, list[_Part]] = {}
    for file in files:
        split = split_in(file.name)
        if split and file.table.splits is None:
            options = str(_options_without_skips(file))
            form = file.has_labels, file.label, options
            family = form, family_of(file.name)
            families.setdefault(family, []).append((split, file))
    families_by_form: dict[_TableForm, list[list[_Part]]] = {}
    for (form, _), parts in families.items():
        splits = {split for split, _ in parts}
        if len(splits) > 1:
            families_by_form.setdefault(form, []).append(parts)
    joined: list[LabelsFile] = []
    for families_of_form in families_by_form.values():
        all_parts = list(chain.from_iterable(families_of_form))
        if _are_apart(all_parts):
            joined.append(_join(folder, all_parts, items))
            continue
        for parts in families_of_form:
            if _are_apart(parts):
                joined.append(_join(folder, parts, items))
    return joined


def _options_without_skips(file: LabelsFile) -> dict[str, Any]:
    return {key: value for key, value in file.options.items() if key not in SKIPS}


def _are_apart(parts: Sequence[_Part]) -> bool:
    """Whether no image is in two files."""
    rows = [row for _, file in parts for row in file.rows if row >= 0]
    return len(rows) == len(set(rows))


def _join(folder: Path, parts: Sequence[_Part], items: Sequence[str]) -> LabelsFile:
    """The files of several splits as one."""
    parts_in_order = sorted(parts, key=_place_of_part)
    tables: list[tuple[str, LabelTable, Path]] = []
    rows: list[int] = []
    class_names: dict[str, str] = {}
    files: dict[str, list[str]] = {}
    for split, file in parts_in_order:
        path = place_of_table(folder, file.name)
        tables.append((split, file.table, path))
        rows += file.rows
        class_names |= file.class_names
        files.setdefault(split, []).append(file.name)
    table = join_tables(tables)
    _, first_file = parts_in_order[0]
    paths = listed([str(path) for _, _, path in tables])
    losses, skips = find_losses(paths, table, rows, items)
    labels = class_values(table)
    if not {str(label) for label in labels or ()} <= class_names.keys():
        class_names = {}
    options = {**_options_without_skips(first_file), **skips}
    named_rows = set(rows) - {-1}
    return replace(
        first_file,
        table=table,
        options=options,
        labels=labels,
        rows=rows,
        class_names=dict(sorted(class_names.items())),
        losses=losses,
        is_most=2 * len(named_rows) >= len(items),
        files=files,
    )


def _place_of_part(part: _Part) -> tuple[tuple[int, str], str]:
    """The key by which parts are sorted: by split, then by name."""
    split, file = part
    return place_of_split(split), file.name


def find_losses(
    place: object, table: LabelTable, rows: Sequence[int], items: Sequence[str]
) -> tuple[list[InputError], dict[str, str]]:
    """The images without a line, the lines without an image or a label;
    and the keys of a recipe that skip them.

    ``place`` is the table for messages, or are those that were joined.
    """
    skips: dict[str, str] = {}
    losses = _unnamed_images(place, table, rows, items)
    if losses:
        skips["unlabelled"] = "skip"
    missing = _missing_files(place, table, rows, items)
    if missing:
        losses += missing
        skips["missing"] = "ignore"
    labelled = zip(rows, table.labels or (), table.lines, strict=False)
    empty: list[int] = []
    for row, label, line in labelled:
        if row >= 0 and label is None:
            empty.append(line)
    if empty:
        losses.append(_lacking_lines(place, table, empty, "label"))
        skips["unlabelled"] = "skip"
    divided = zip(table.splits or (), table.lines, strict=False)
    undivided = [line for split, line in divided if split is None]
    if undivided:
        losses.append(_lacking_lines(place, table, undivided, "split"))
    return losses, skips


def _unnamed_images(
    place: object, table: LabelTable, rows: Sequence[int], items: Sequence[str]
) -> list[InputError]:
    """The fault of images that no line names."""
    named_rows = set(rows) - {-1}
    unnamed = [name for row, name in enumerate(items) if row not in named_rows]
    if not unnamed:
        return []
    noun = noun_of_items(items)
    counts = f"{len(named_rows):,} of {number_of(len(items), noun)}"
    verb = "name" if table.sections else "names"
    problem = f"{place} {verb} {counts}, and not {unnamed[0]}"
    return [InputError(problem, f"every {noun} needs {_one_of(table)}")]


def _missing_files(
    place: object, table: LabelTable, rows: Sequence[int], items: Sequence[str]
) -> list[InputError]:
    """The fault of lines that name no file, or a name that several have."""
    missing = [number for number, row in enumerate(rows) if row < 0]
    if not missing:
        return []
    noun = noun_of_items(items)
    count = number_of(len(missing), "path leads", "paths lead")
    first_number = missing[0]
    line = _place_of_line(table, table.lines[first_number])
    counts = Counter(name.rpartition("/")[2] for name in items)
    may_be_several = any(counts[table.paths[number].rpartition("/")[2]] > 1 for number in missing)
    kind = f"no {noun}, or to several" if may_be_several else f"no {noun}"
    more = ", ..." if len(missing) > 1 else ""
    problem = f"{place}: {count} to {kind}: {table.paths[first_number]} in {line}{more}"
    return [InputError(problem, f"every {_unit_of(table)} needs the path of an {noun}")]


def noun_of_items(items: Sequence[str]) -> str:
    """The word for one of the files."""
    return "array" if has_ending_of("array", items[0]) else "image"


def _lacking_lines(place: object, table: LabelTable, lines: Sequence[int], noun: str) -> InputError:
    """The fault of lines without a label, or without a split."""
    unit = _unit_of(table)
    count = number_of(len(lines), unit, _PLURALS[unit])
    first_line = _place_of_line(table, lines[0])
    verb = "have" if table.sections else "has"
    more = ", ..." if len(lines) > 1 else ""
    problem = f"{place} {verb} {count} without a {noun}: {first_line}{more}"
    return InputError(problem, f"every {unit} needs a {noun}", f"add the missing {noun}s")


_PLURALS: dict[Unit, str] = {"line": "lines", "entry": "entries"}


def _unit_of(table: LabelTable) -> Unit:
    """The unit that a table is counted in: lines, or the entries of JSON."""
    units = {unit for _, _, unit in table.sections} or {table.unit}
    return units.pop() if len(units) == 1 else "line"


def _one_of(table: LabelTable) -> str:
    """The unit of a table with its article."""
    return "an entry" if _unit_of(table) == "entry" else "a line"


def _place_of_line(table: LabelTable, line: int) -> str:
    """The place of a line in a message about its table."""
    return table.place("", line).lstrip(", ")
