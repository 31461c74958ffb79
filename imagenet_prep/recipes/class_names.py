"""A file of names of classes, or a mapping in a recipe: id -> name.
Ids are names of folders, or numbers of a table.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.classes import Classes
from imagenet_prep.recipes.json_faults import json_line, json_reason, parse_json
from imagenet_prep.recipes.label_cells import are_all
from imagenet_prep.recipes.names_of_classes import CLASS_ID, NamesOfClasses
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.recipes.row_numbers import count_of_numbers
from imagenet_prep.sources.names import below
from imagenet_prep.sources.utf8_text import decode_text
from imagenet_prep.storage.files import read_plain
from imagenet_prep.storage.location import AnyPath

FORMS = (
    "expected JSON (a list of names, {id: name} or {name: id}), a .pbtxt label map, "
    "a CSV with the columns id and name, or lines: a name, or an id and a name"
)

_WORDS = re.compile(r"([^\s,;:=]+)(?:\t|\s*[,;:=]\s*|\s+)(\S.*)")
_IDS = (
    "id",
    "class_id",
    "label_id",
    "category_id",
    "label",
    "index",
    "idx",
    "code",
    "wnid",
    "synset",
    "classid",
    "key",
)
_NAMES = (
    "common name",
    "name",
    "display_name",
    "class_name",
    "label_name",
    "category_name",
    "classname",
    "class",
    "words",
    "title",
)
_HEADINGS = ("names", "name", "classes", "class", "class_name", "classname", "labels", "label")
"""Usual headings of a column of names."""


def name_classes(file: RecipeFile, root: AnyPath, classes: Classes) -> Classes:
    """The classes with the names that the recipe's `class_names` gives them; their order and
    numbers stay.

    Raises:
        InputError: the file is not there, or can't be understood, or a class has no name in it.
    """
    class_names = file.recipe.class_names
    if class_names is None:
        return classes
    if isinstance(class_names, str):
        path = need_path(file, ("class_names",), below(root, class_names))
        content = read_plain(path)
        names = read_names(path, content)
        place = str(path)
    else:
        names = NamesOfClasses(dict(class_names))
        place = file.place(("class_names",))
    return renamed(classes, names.names_of_all(classes.names, file.recipe.first_label, place))


def renamed(classes: Classes, names: Mapping[str, str]) -> Classes:
    """The classes under their names; one of several classes of one name
    keeps its id in brackets.
    """
    counts = Counter(names.values())
    unique_names: list[str] = []
    texts: list[str] = []
    for class_id in classes.names:
        name = names[class_id]
        texts.append(name)
        if counts[name] > 1:
            name = f"{name} ({class_id})"
        unique_names.append(name)
    return replace(classes, names=tuple(unique_names), texts=tuple(texts))


def read_names(path: AnyPath, content: bytes) -> NamesOfClasses:
    """The names in a file.

    Raises:
        InputError: it holds none, or two for one id.
    """
    text = decode_text(path, content)
    _, _, suffix = path.name.rpartition(".")
    readers = {"json": _from_json, "pbtxt": _from_pbtxt, "csv": _from_csv, "tsv": _from_csv}
    read = readers.get(suffix.lower(), _from_lines)
    try:
        names = read(text)
    except _NamesFault as fault:
        raise InputError(f"{path} {fault.reason}", fault.expected) from fault
    if names is None or not (names.by_id or names.in_order):
        raise InputError(f"{path} holds no class names in a known form", FORMS)
    return names


class _NamesFault(ValueError):  # noqa: N818 - the data is at fault, no error of the program
    """A file of names that is damaged, or that contradicts itself."""

    def __init__(self, reason: str, expected: str) -> None:
        super().__init__(reason, expected)
        self.reason = reason
        self.expected = expected


def _from_json(text: str) -> NamesOfClasses | None:
    try:
        value = parse_json(text)
    except (RecursionError, ValueError) as error:
        line = json_line(error, text)
        place = f", line {line}" if line else ""
        raise _NamesFault(f"can't be read{place}: {json_reason(error)}", FORMS) from error
    return _from_value(value)


_HOLDERS = (
    "id2label",
    "label2id",
    "class_to_idx",
    "idx_to_class",
    "names",
    "classes",
    "categories",
    "labels",
)


def _from_value(value: Any) -> NamesOfClasses | None:
    """The names in a JSON value: a list, a mapping, or one that holds either."""
    if isinstance(value, dict):
        for key in _HOLDERS:
            content = value.get(key)
            if isinstance(content, (dict, list)):
                return _from_value(content)
        return _from_mapping(value)
    if not isinstance(value, list):
        return None
    if are_all(value, str):
        return NamesOfClasses(in_order=value)
    if are_all(value, dict):
        return _from_rows(value)
    return None


def _from_mapping(mapping: Mapping[str, Any]) -> NamesOfClasses | None:
    """{id: name}, {name: number}, or {number: [wnid, name]}."""
    values = mapping.values()
    have_ids = all(map(CLASS_ID.fullmatch, mapping))
    if are_all(values, str):
        values_are_ids = not have_ids and all(map(CLASS_ID.fullmatch, values))
        if values_are_ids:
            return _keyed((class_id, name) for name, class_id in mapping.items())
        return NamesOfClasses(dict(mapping))
    if are_all(values, int):
        return _keyed((str(number), name) for name, number in mapping.items())
    if not have_ids or not are_all(values, list):
        return None
    lengths = set(map(len, values))
    if lengths != {2}:
        return None
    by_wnid = [(str(wnid), str(name)) for wnid, name in values]
    by_number = [(number, str(name)) for number, (_, name) in mapping.items()]
    return _keyed([*by_wnid, *by_number])


def _keyed(pairs: Iterable[tuple[str, str]]) -> NamesOfClasses:
    """Names by id; raises _NamesFault if an id has two names."""
    names: dict[str, str] = {}
    for key, name in pairs:
        first_name = names.setdefault(key, name)
        if first_name != name:
            class_id = key or "without an id"
            reason = f"names the class {class_id} twice: {first_name} and {name}"
            raise _NamesFault(reason, "expected one name for each id")
    return NamesOfClasses(names)


def _from_rows(rows: Sequence[Mapping[str, Any]]) -> NamesOfClasses | None:
    """Rows with a column of ids and one of names."""
    if not rows:
        return None
    id_column, name_column = _find_columns(list(rows[0]))
    if id_column is None or name_column is None:
        return None
    pairs: list[tuple[str, str]] = []
    for row in rows:
        class_id, name = row.get(id_column), row.get(name_column)
        if class_id is not None and name is not None:
            pairs.append((str(class_id), str(name).strip()))
    return _keyed(pairs)


def _find_columns(header: Sequence[str]) -> tuple[str | None, str | None]:
    """The columns of ids and of names, None where there is none."""
    columns = {str(name).lower(): name for name in header}
    id_column = next((columns[usual] for usual in _IDS if usual in columns), None)
    name_columns = (columns[usual] for usual in _NAMES if usual in columns)
    name_column = next((name for name in name_columns if name != id_column), None)
    return id_column, name_column


_PB_ITEM = re.compile(r"item\s*\{([^}]*)\}", re.DOTALL)
_PB_FIELD = re.compile(r"(id|name|display_name)\s*:\s*(?:'([^']*)'|\"([^\"]*)\"|(\d+))")


def _from_pbtxt(text: str) -> NamesOfClasses | None:
    """Items of TensorFlow's label maps: id, and display_name or name."""
    pairs: list[tuple[str, str]] = []
    for item in _PB_ITEM.findall(text):
        fields: dict[str, str] = {}
        for key, single_quoted, double_quoted, number in _PB_FIELD.findall(item):
            fields[key] = single_quoted or double_quoted or number
        if "id" in fields:
            name = fields.get("display_name") or fields.get("name", "")
            pairs.append((fields["id"], name))
    return _keyed(pairs)


def _from_csv(text: str) -> NamesOfClasses | None:
    """A table with columns of ids and names; or of two columns without a header."""
    rows = _csv_cells(text)
    lengths = set(map(len, rows))
    if len(lengths) != 1:
        return None
    first_row, *next_rows = rows
    header = [cell.strip() for cell in first_row]
    cells_by_column = [dict(zip(header, row, strict=True)) for row in next_rows]
    names = _from_rows(cells_by_column)
    if names is not None or len(header) != 2:
        return names
    return _from_two_columns(rows)


def _csv_cells(text: str) -> list[list[str]]:
    """The cells of each row that has some; a quoted cell can have line breaks."""
    lines = io.StringIO(text, newline="")  # keeps the line breaks in quoted cells
    delimiter = _delimiter_of(lines.readline())
    lines.seek(0)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    try:
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise _NamesFault(
            f"can't be read as a CSV, line {reader.line_num}: {error}", FORMS
        ) from error
    count = count_of_numbers(lambda: enumerate(rows))
    return [row[count:] for row in rows]


def _from_two_columns(rows: Sequence[Sequence[str]]) -> NamesOfClasses | None:
    """Rows of an id and a name, or of a name and an id, with or without a header."""
    pairs = [(first_cell.strip(), second_cell.strip()) for first_cell, second_cell in rows]
    for column, pairs_with_ids in _find_ids(pairs, (1, 0)):
        return _keyed((pair[column], pair[1 - column]) for pair in pairs_with_ids)
    return _keyed_by_words(pairs)


def _find_ids(
    pairs: Sequence[tuple[str, str]], columns: Sequence[int]
) -> Iterator[tuple[int, Sequence[tuple[str, str]]]]:
    """The columns with an id in each pair, and these pairs; then those with an id in each but the
    first, which may be a header, and the pairs without it.
    """
    for pairs_with_ids in (pairs, pairs[1:]):
        for column in columns:
            ids = [pair[column] for pair in pairs_with_ids]
            if ids and all(map(CLASS_ID.fullmatch, ids)):
                yield column, pairs_with_ids


def _keyed_by_words(pairs: Sequence[tuple[str, str]]) -> NamesOfClasses:
    """Names by ids that are words: the first pair may be a header, too, and is kept as a pair."""
    return replace(_keyed(pairs), may_have_heading=True)


def _delimiter_of(line: str) -> str:
    """The sign between the cells of a line."""
    if "\t" in line:
        return "\t"
    if ";" in line and "," not in line:
        return ";"
    return ","


def _without_numbers(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Ids and names, where each name may have the number of its line before it,
    as in ImageNet's map_clsloc.txt.
    """
    plain_pairs: list[tuple[str, str]] = []
    for line_number, (key, text) in enumerate(pairs, 1):
        number, _, name = text.strip().partition(" ")
        if number != str(line_number) or not name:
            return [(key, text.strip()) for key, text in pairs]
        plain_pairs.append((key, name.strip()))
    return plain_pairs


def _from_lines(text: str) -> NamesOfClasses | None:
    """A name a line, in order; or an id and a name in each."""
    lines: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and not line.startswith("#"):
            lines.append(stripped)
    first_line = lines[0] if lines else ""
    first_cell, comma, _ = first_line.partition(",")
    if comma and first_cell.strip().lower() in _IDS:
        return _from_csv(text)
    names = _from_words(lines)
    if names is not None:
        return names
    may_have_heading = first_line.lower() in _HEADINGS
    return NamesOfClasses(in_order=lines, may_have_heading=may_have_heading)


def _from_words(lines: Sequence[str]) -> NamesOfClasses | None:
    """An id and a name in each line; None if the lines are none of that."""
    matches = [match for match in map(_WORDS.fullmatch, lines) if match]
    if len(matches) < len(lines):
        return None
    pairs = [(str(match[1]), str(match[2]).strip()) for match in matches]
    names = _from_pairs(pairs)
    if names is None and all("\t" in line for line in lines):
        return _keyed_by_words(pairs)
    return names


def _from_pairs(pairs: Sequence[tuple[str, str]]) -> NamesOfClasses | None:
    """The names of lines of an id and a name, or of a name and an id; None if they are neither.

    Raises:
        _NamesFault: all lines but the first have an id, and it is no heading.
    """
    headings = (*_IDS, *_NAMES, *_HEADINGS)
    for column, pairs_with_ids in _find_ids(pairs, (0, 1)):
        names = [pair[1 - column] for pair in pairs_with_ids]
        if len(pairs_with_ids) < len(pairs):
            first_cells = [cell.lower() for cell in pairs[0]]
            if len(set(names)) < len(names) and first_cells[column] not in headings:
                continue  # names that end with numbers: stage none, stage 1, stage 2
            if first_cells[0] not in headings:
                example = pairs_with_ids[0][column]
                reason = f"has an id, such as {example}, in each line except the first"
                raise _NamesFault(reason, "expected an id and a name in each line")
        if column == 0:
            return _keyed(_without_numbers(pairs_with_ids))
        return _keyed((class_id, name) for name, class_id in pairs_with_ids)
    return None
