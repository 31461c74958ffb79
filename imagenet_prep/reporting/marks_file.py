"""read_marks: a table of flagged images, by a network or a person -> Marks.
find_marked: Marks, and the census of a set -> the images among its records.
names_of_none: Marks, and the images of several sets -> the names that none of the sets has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command, mention
from imagenet_prep.hints import Hint
from imagenet_prep.recipes.json_faults import parse_json
from imagenet_prep.recipes.label_cells import are_all
from imagenet_prep.recipes.labels_file import PATHS
from imagenet_prep.recipes.table_rows import FILE_ENDING, Form, LabelsFault, form_of, read_rows
from imagenet_prep.reporting.census import Census
from imagenet_prep.storage.files import read_plain
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import either, listed, number_of

REASONS = ("reason", "label")
"""Columns that say why an image is flagged; the first that is there counts."""

SCORE = "score"

_FORMS = {
    "tsv": "a TSV file",
    "jsonl": "JSON lines",
    "json": "a JSON list",
}
"""The name of a file's form, by its ending; any other is a CSV file."""


class Mark(NamedTuple):
    """Why an image is flagged: "" if nobody says; ``text`` has the score too."""

    reason: str
    text: str


class Marks(Struct, frozen=True):
    """The flagged images of a file, by name; ``repeated`` are names that it has several times.

    If they are ``of_several_sets``, one of the sets may have none of them.
    """

    file_name: str
    by_name: Mapping[str, Mark]
    repeated: Sequence[str]
    of_several_sets: bool = False


class MarkedImages(Struct, frozen=True):
    """The flagged images of a set: the mark of each row of the census, in order.

    ``remarks`` are sentences for the page and the terminal: how many names were found, and which
    were not. No record has the ``unknown_names``.
    """

    by_row: Mapping[int, Mark]
    remarks: Sequence[str]
    unknown_names: Sequence[str] = ()


def read_marks(path: AnyPath) -> Marks:
    """The flagged images of a CSV file (or TSV, or JSON lines, by its ending); or of a list of
    file names, one a line or in JSON.

    Raises:
        InputError: it can't be read, or has no column of file names, or no row.
    """
    form = form_of(path.name)
    lines, columns = _read_table(path, form)
    if not columns:
        raise _no_rows(path)
    unit = "entry" if form == "json" else "line"
    name_column = _name_column(path, columns)
    reason_column = next((name for name in REASONS if name in columns), None)
    marks: dict[str, Mark] = {}
    repeated = {}
    for row, line in enumerate(lines):
        name = _cell(columns, name_column, row)
        if not name:
            raise InputError(
                f"{path}, {unit} {line}: no file name in the column {name_column}",
                f"expected a file name in each {unit}",
                f"remove the {unit}, or add the name",
            )
        if name in marks:
            repeated[name] = line
            continue
        reason = _cell(columns, reason_column, row)
        score = _cell(columns, SCORE, row)
        texts = (reason, f"score {score}" if score else "")
        marks[name] = Mark(reason, ", ".join(filter(None, texts)))
    if not marks:
        raise _no_rows(path)
    return Marks(path.name, marks, tuple(repeated))


def _no_rows(path: AnyPath) -> InputError:
    return InputError(
        f"{path} has no rows",
        "expected rows that each name an image",
        "add the names of the images, or leave out --mark",
    )


_Table = tuple[Sequence[int], Mapping[str, Sequence[Any]]]
"""The line of each row, and the values of each column."""


def _read_table(path: AnyPath, form: Form) -> _Table:
    """The table in a file; a list of file names becomes one of one column."""
    content = read_plain(path)
    try:
        if form == "json":
            return _names_of_json(content) or read_rows(content, form)
        table = read_rows(content, "csv" if form == "lines" else form)
        header = [*table[1]]
        if form != "jsonl" and len(header) == 1 and FILE_ENDING.search(header[0]):
            lines, columns = read_rows(content, "csv", header=False)
            return lines, {PATHS[0]: columns["1"]}
    except LabelsFault as error:
        hint = "correct the file"
        if form != "csv":
            hint += f", or save the table as {path.stem}.csv: UTF-8, with a header line"
        what = f"{error.place(path)}: {error.reason}"
        if form == "json" and not error.line:
            what = f"{path} is no list of objects, and no list of file names"
        raise InputError(
            what,
            f"expected {_FORMS.get(form, 'a CSV file')} in UTF-8 with a column {either(PATHS)}",
            hint,
        ) from error
    return table


def _names_of_json(content: bytes) -> _Table | None:
    """The table of a JSON list of file names; None for any other content."""
    with contextlib.suppress(ValueError, RecursionError):
        names = parse_json(content.decode("utf-8-sig"))
        if names and isinstance(names, list) and are_all(names, str):
            return range(1, len(names) + 1), {PATHS[0]: names}
    return None


def _name_column(path: AnyPath, columns: Mapping[str, Sequence[Any]]) -> str:
    for name in PATHS:
        if name in columns:
            return name
    raise InputError(
        f"{path} has no column of file names",
        f"expected a column {either(PATHS)}; found {listed(columns, 10) or 'no column'}",
        "give the file names a column with the name filename",
    )


def _cell(columns: Mapping[str, Sequence[Any]], name: str | None, row: int) -> str:
    """A cell as text; "" if the table has no such column."""
    if name is None or name not in columns:
        return ""
    value = columns[name][row]
    return "" if value is None else str(value).strip()


def find_marked(marks: Marks, census: Census, set_name: str, shard: AnyPath) -> MarkedImages:
    """The flagged images among the records of a set.

    A name with folders stands for the record whose name it ends with: /data/train/a/1.jpg for
    a/1.jpg, or for 1.jpg. ``shard`` is the path of one, whose names an error advises to look at.

    Raises:
        InputError: no record has any of the names, and they are of this set alone.
    """
    candidates = set()
    for name in marks.by_name:
        candidates.update(_endings(name))
    rows_by_name = census.find_rows(candidates)
    mark_by_row: dict[int, Mark] = {}
    unknown_names = []
    for name, mark in marks.by_name.items():
        known = next((ending for ending in _endings(name) if ending in rows_by_name), None)
        if known is None:
            unknown_names.append(name)
            continue
        for row in rows_by_name[known]:
            mark_by_row.setdefault(row, mark)
    if not mark_by_row and not marks.of_several_sets:
        record_name = next(filter(None, census.list_filenames()), "")
        show = Hint("to see the names in the records: ", command("show", shard))
        raise _no_match(marks, set_name, show, record_name)
    count = number_of(len(mark_by_row), "image")
    remarks = [f"{count} named in {marks.file_name}"]
    if unknown_names and not marks.of_several_sets:
        remarks.append(describe_unknown(marks.file_name, unknown_names))
    if marks.repeated:
        names = number_of(len(marks.repeated), "name is", "names are")
        remarks.append(
            f"{names} in {marks.file_name} several times, and the first one counts: "
            f"{listed(marks.repeated)}"
        )
    return MarkedImages(dict(sorted(mark_by_row.items())), remarks, unknown_names)


def describe_unknown(file_name: str, names: Sequence[str]) -> str:
    """The sentence about names of a file that no image has."""
    count = number_of(len(names), "name")
    return f"{file_name} has {count} that no image has: {listed(names)}"


def names_of_none(
    marks: Marks, unknown_by_set: Sequence[Sequence[str]], folder_name: str
) -> list[str]:
    """The names that are unknown in each of the sets of a folder.

    Raises:
        InputError: all names are.
    """
    unknown = set(marks.by_name).intersection(*unknown_by_set)
    if len(unknown) == len(marks.by_name):
        show = Hint("compare the names with those that ", mention("show"), " prints")
        raise _no_match(marks, folder_name, show)
    return [name for name in marks.by_name if name in unknown]


def _endings(name: str) -> list[str]:
    """A path, then the same without its first folder, and so on: a/b/c, b/c, c."""
    parts = name.split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _no_match(marks: Marks, place: str, show: Hint, record_name: str | None = None) -> InputError:
    """The error that nothing in a place is named; ``show`` is how to see the names of records, and
    ``record_name`` is "" if records have none.
    """
    what = f"{marks.file_name} names no image of {place}"
    names = number_of(len(marks.by_name), "name")
    found = f"found {names}: {listed(marks.by_name)}"
    if record_name == "":
        expected = "expected records with file names, but these records hold none"
        return InputError(what, f"{expected}; {found}", "leave out --mark")
    example = f", such as {record_name}" if record_name else ""
    return InputError(what, f"expected names as in the records{example}; {found}", show)
