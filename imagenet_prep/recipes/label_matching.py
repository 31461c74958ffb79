"""match_files: a table of labels, and the files of a listing -> the row of each file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.joined_tables import match_table
from imagenet_prep.recipes.labels_file import LabelTable
from imagenet_prep.recipes.namesakes import refuse_namesakes
from imagenet_prep.recipes.path_matching import folders_to_strip
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_lines import flow
from imagenet_prep.recipes.schema import Labels
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Column
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of


def label_policies(file: RecipeFile) -> Labels:
    """The recipe's policies for files and lines that have no counterpart."""
    keys = file.recipe.labels
    if isinstance(keys, Labels):
        return keys
    return Labels(file="-")


def left_out(text: str, names: Sequence[str], policy: str, expected: str, hint: str) -> list[str]:
    """The note on files, lines or annotations that have no counterpart, if there are any.

    Raises:
        InputError: the ``policy`` is "error".
    """
    if not names:
        return []
    listed_names = listed(names)
    if policy == "error":
        raise InputError(f"{text}: {listed_names}", expected, hint)
    outcomes = {"skip": "; left out", "empty": "; kept without boxes"}
    outcome = outcomes.get(policy, "")
    return [f"{text}: {listed_names}{outcome}"]


def match_files(
    file: RecipeFile, inputs: Inputs, listing: Catalog, table: LabelTable, path: AnyPath
) -> tuple[Column, list[str]]:
    """The table's row of each file (-1: none), and notes on what is not matched.

    Raises:
        InputError: something is not matched, unless the recipe says otherwise.
    """
    keys = label_policies(file)
    places = listed(map(str, table.paths_of_files(path)))
    strip = file.recipe.strip
    file_of_line = np.array(match_table(table, listing.names, inputs.base, path, strip))
    matched_lines = np.flatnonzero(file_of_line >= 0)
    rows = np.full(len(listing), -1, np.int64)
    rows[file_of_line[matched_lines]] = matched_lines
    unmatched_lines = np.flatnonzero(file_of_line < 0).tolist()
    unmatched_files = np.flatnonzero(rows < 0).tolist()
    if unmatched_lines and _are_refused(keys, unmatched_files):
        unmatched_paths = _paths_with_places(table, unmatched_lines)
        refuse_namesakes(places, unmatched_paths, listing.names, strip or "")
    may_match_none = keys.unlabelled == "keep" and keys.missing == "ignore"
    if not len(matched_lines) and not may_match_none:
        raise _none_matched(table, listing, places, strip)
    notes = _note_on_files(keys, [listing.names[row] for row in unmatched_files], places)
    repeated_lines = np.setdiff1d(matched_lines, rows).tolist()
    notes += _note_on_repeats(keys, _paths_with_places(table, repeated_lines), places)
    if unmatched_lines and len(listing) < len(inputs.listing):
        unmatched_lines = _unlisted_lines(file, inputs, table, path, unmatched_lines)
    unmatched_paths = _paths_with_places(table, unmatched_lines)
    notes += _note_on_paths(keys, unmatched_paths, places, inputs.origin)
    return rows, notes


def _are_refused(keys: Labels, unmatched_files: Sequence[int]) -> bool:
    """Whether a line without a file, or these files without a line, are an error."""
    files_are_refused = bool(unmatched_files) and keys.unlabelled in (None, "error")
    return keys.missing == "error" or files_are_refused


def _note_on_files(keys: Labels, files: Sequence[str], places: str) -> list[str]:
    """The note on files without a line, unless the recipe keeps them."""
    if keys.unlabelled == "keep":
        return []
    files_have = number_of(len(files), "file has", "files have")
    return left_out(
        f"{files_have} no label in {places}",
        files,
        keys.unlabelled or "error",
        "expected a label for every file",
        "add the labels, or leave such files out with labels: {file: ..., unlabelled: skip}",
    )


def _note_on_repeats(keys: Labels, paths: Sequence[str], places: str) -> list[str]:
    """The note on lines whose file is that of a later line."""
    paths_mean = number_of(len(paths), "path means", "paths mean")
    return left_out(
        f"{places}: {paths_mean} the same file as a later one",
        paths,
        keys.missing,
        "expected every file once",
        "remove such lines, or skip them with labels: {file: ..., missing: ignore}",
    )


def _note_on_paths(keys: Labels, paths: Sequence[str], places: str, origin: object) -> list[str]:
    """The note on lines without a file."""
    paths_are = number_of(
        len(paths),
        "path is not that of one file in the source",
        "paths are not those of one file each in the source",
    )
    return left_out(
        f"{places}: {paths_are}",
        paths,
        keys.missing,
        f"expected the path of one of the files in {origin}",
        "remove such lines, or skip them with labels: {file: ..., missing: ignore}",
    )


def _none_matched(
    table: LabelTable, listing: Catalog, places: str, strip: str | None
) -> InputError:
    """The error for a table without a path of a file: it shows a path of each."""
    first_rows = range(len(table.paths))[:4]  # one more than are listed
    paths = listed(_paths_with_places(table, first_rows))
    hint = "correct the paths, or get these files"
    if strip:
        hint = "correct the paths, or `strip` in the recipe"
    else:
        folders = folders_to_strip(table.paths, listing.names)
        if folders:
            key = f"strip: {flow(folders)}"
            hint = f"to read the paths without {folders}, write in the recipe {key}"
    return InputError(
        f"{places}: no path is that of one file in the source: {paths}",
        f"expected paths such as {listing.names[0]}",
        hint,
    )


def _unlisted_lines(
    file: RecipeFile, inputs: Inputs, table: LabelTable, path: AnyPath, rows: Sequence[int]
) -> list[int]:
    """The rows of a table, among some, that match no file of the source, left out or not."""
    rows_table = table.take(rows)
    files_of_rows = match_table(
        rows_table, inputs.listing.names, inputs.base, path, file.recipe.strip
    )
    return [row for row, file_row in zip(rows, files_of_rows, strict=True) if file_row < 0]


def _paths_with_places(table: LabelTable, rows: Sequence[int]) -> list[str]:
    """The paths of some rows of a table, each with its place."""
    paths: list[str] = []
    for row in rows:
        place = table.place("", table.lines[row])
        place = place.lstrip(", ")
        paths.append(f"{table.paths[row]} ({place})")
    return paths
