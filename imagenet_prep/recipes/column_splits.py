"""The splits that a labels file gives: by the values of a column, or as a file of each split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.divisions import Division
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.labels import Labelled
from imagenet_prep.recipes.labels_file import LabelTable
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_lines import flow
from imagenet_prep.recipes.schema import Labels, PlaceKeys
from imagenet_prep.recipes.splits import place_of_split
from imagenet_prep.text import listed


def divisions_of_table(file: RecipeFile, labelled: Labelled) -> list[Division]:
    """The splits that a table gives: the files of one of each split, or the values of the column
    `labels.split`.

    Raises:
        InputError: a value is no name of a split, and the recipe doesn't say which split it is.
        UsageError: ``splits`` names places of another sort.
    """
    table = labelled.table
    assert table is not None
    assert table.splits is not None
    names = _names_of_values(file, table, labelled)
    rows: dict[str, list[int]] = {split: [] for split in dict.fromkeys(names.values())}
    for row, line in enumerate(labelled.table_rows.tolist()):
        value = table.splits[line] if line >= 0 else None
        if value is not None:
            rows[names[value]].append(row)
    order = list(file.recipe.splits or ()) or sorted(rows, key=place_of_split)
    return [
        Division(split, np.array(rows[split], np.int64), is_ordered=False)
        for split in order
        if rows.get(split)
    ]


def _names_of_values(file: RecipeFile, table: LabelTable, labelled: Labelled) -> dict[str, str]:
    """The split of each value."""
    keys = file.recipe.labels
    assert isinstance(keys, Labels)
    assert table.splits is not None
    if isinstance(keys.file, dict):
        return {split: split for split in keys.file}
    values = _values(table)
    if not values:
        problem = f"{labelled.table_path}: the column {keys.split} has no value"
        hint = f"fill it in; or leave out `split` of `labels` in {file.path}, for one split"
        raise InputError(problem, "expected the split of each file", hint)
    split_of = _declared_values(file, values, keys)
    for value in values:
        split_of.setdefault(value, "" if file.recipe.splits else split_name(value))
    unknown = [value for value, split in split_of.items() if not split]
    if unknown:
        raise _unknown_values(file, labelled, keys, unknown)
    return split_of


_MOST_SHOWN = 5
"""Values that a hint shows."""


def _unknown_values(
    file: RecipeFile, labelled: Labelled, keys: Labels, values: Sequence[str]
) -> InputError:
    """The error for values that are no names of splits, or that `splits` does not name."""
    place = f"{labelled.table_path}: the column {keys.split} has {listed(values)}"
    entry = flow({"value": values[0]})
    if file.recipe.splits:
        values_of_column = "this value" if len(values) == 1 else "these values"
        problem = f"{place}, but no split in {file.path} has {values_of_column}"
        expected = "expected a split for each value of the column"
        return InputError(problem, expected, f"add a split to `splits`: NAME: {entry}")
    problem = f"{place}, which is not the name of a split"
    if len(values) > 1:
        problem = f"{place}, which are not names of splits"
    expected = "expected names such as train, val, validation or test"
    entries = [f"NAME: {flow({'value': value})}" for value in values[:_MOST_SHOWN]]
    if len(values) > _MOST_SHOWN:
        entries.append("...")
    hint = f"name a split for each value in {file.path}: splits: {{{', '.join(entries)}}}"
    return InputError(problem, expected, hint)


def _declared_values(file: RecipeFile, values: Sequence[str], keys: Labels) -> dict[str, str]:
    """The split of each value that the recipe names."""
    split_of: dict[str, str] = {}
    for split, declared in (file.recipe.splits or {}).items():
        key = ("splits", split)
        place = PlaceKeys()
        if isinstance(declared, dict):
            place = file.convert(declared, PlaceKeys, key)
        if place.value is None:
            raise file.fault(
                key,
                f"{flow(declared)} can't be used with labels.split, which takes the splits from "
                f"the column {keys.split}",
                f"expected {{value: ...}} with a value of that column: {listed(values)}",
                "to split by `splits` instead, remove labels.split",
            )
        split_of[str(place.value)] = split
    return split_of


def _values(table: LabelTable) -> list[str]:
    """The values of the column of splits, in order."""
    return sorted({value for value in table.splits or () if value is not None})
