"""A file of names of classes, or a mapping in a recipe: id -> name.
Ids are names of folders, or numbers of a table.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.classes import Classes
from imagenet_prep.recipes.json_faults import json_line, json_reason
from imagenet_prep.recipes.label_cells import are_all
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.sources.names import below
from imagenet_prep.sources.utf8_text import decode_text
from imagenet_prep.storage.files import read_plain
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of

FORMS = (
    "expected JSON (a list of names, {id: name} or {name: id}), a .pbtxt label map, "
    "a CSV with the columns id and name, or lines: a name, or an id and a name"
)

_ID = re.compile(r"-?\d+|n\d{8}")
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


class NamesOfClasses(Struct, frozen=True):
    """Names by id; or, where a file has no ids, in order."""

    by_id: Mapping[str, str] = {}
    in_order: Sequence[str] = ()

    def names_of(self, ids: Collection[str], first_label: int | None = None) -> dict[str, str]:
        """The name of each id that has one.

        Names without ids, or with those of WordNet for numbers, count from ``first_label``, if each
        number then has a name. Otherwise they count from 0; or from 1, if an id is as large as
        there are names.
        """
        names = self._named_by_id(ids) or self._named_in_order(ids, first_label)
        return {class_id: name for class_id, name in names.items() if name}

    def _named_by_id(self, ids: Collection[str]) -> dict[str, str]:
        plain_names = {_plain(key): name for key, name in self.by_id.items()}
        return {key: plain_names[_plain(key)] for key in ids if _plain(key) in plain_names}

    def _named_in_order(self, ids: Collection[str], first_label: int | None) -> dict[str, str]:
        ordered = self.in_order
        if not ordered and not any(key.isdigit() for key in self.by_id):
            ordered = list(self.by_id.values())
        return _names_by_number(ids, ordered, first_label) if ordered else {}

    def names_of_all(
        self, ids: Collection[str], first_label: int | None, place: str
    ) -> dict[str, str]:
        """The name of each id, as ``names_of``; raises InputError if one has none."""
        names = self.names_of(ids, first_label)
        unnamed = [class_id for class_id in ids if class_id not in names]
        if unnamed:
            count = f"{len(unnamed):,} of {number_of(len(ids), 'class', 'classes')}"
            problem = f"no name found in {place} for {count}: {listed(unnamed)}"
            are_unknown = bool(self.in_order) and not names
            hint = "write a tab between each id and its name" if are_unknown else ""
            raise InputError(problem, "expected a name for each class", hint)
        return names

    @property
    def are_ids(self) -> bool:
        """Whether its names are ids themselves, such as WordNet's."""
        names = self.in_order or self.by_id.values()
        return all(map(_ID.fullmatch, names))


def _names_by_number(
    ids: Collection[str], names: Sequence[str], first_label: int | None
) -> dict[str, str]:
    """The name of each id that is a number, where the names count from the first label, 0 or 1."""
    numbers = {key: int(key) for key in ids if key.isascii() and key.isdigit()}
    count = len(names)
    first_number = int(count in numbers.values())
    if first_label is not None:
        places = [number - first_label for number in numbers.values()]
        if all(0 <= place < count for place in places):
            first_number = first_label
    names_by_id: dict[str, str] = {}
    for key, number in numbers.items():
        place = number - first_number
        if 0 <= place < count:
            names_by_id[key] = names[place]
    return names_by_id


def _plain(key: str) -> str:
    """An id without needless zeros: 007 and 7 are one."""
    is_number = key.isascii() and key.isdigit()
    if not is_number:
        return key
    return key.lstrip("0") or "0"


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
        value = json.loads(text)
    except (RecursionError, ValueError) as error:
        place = f"line {json_line(error, text)}"
        raise _NamesFault(f"can't be read, {place}: {json_reason(error)}", FORMS) from error
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
    have_ids = all(map(_ID.fullmatch, mapping))
    if are_all(values, str):
        values_are_ids = not have_ids and all(map(_ID.fullmatch, values))
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
    columns = {str(name).lower(): name for name in rows[0]}
    id_column = next((columns[usual] for usual in _IDS if usual in columns), None)
    name_columns = (columns[usual] for usual in _NAMES if usual in columns)
    name_column = next((name for name in name_columns if name != id_column), None)
    if id_column is None or name_column is None:
        return None
    pairs: list[tuple[str, str]] = []
    for row in rows:
        class_id, name = row.get(id_column), row.get(name_column)
        if class_id is not None and name is not None:
            pairs.append((str(class_id), str(name).strip()))
    return _keyed(pairs)


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
    has_header = not any(map(_ID.fullmatch, header))
    return _from_two_columns(next_rows if has_header else rows)


def _csv_cells(text: str) -> list[list[str]]:
    """The cells of each line that has some."""
    lines = text.splitlines()
    delimiter = _delimiter_of(lines[0]) if lines else ","
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    try:
        return [row for row in reader if row]
    except csv.Error as error:
        raise _NamesFault(
            f"can't be read as a CSV, line {reader.line_num}: {error}", FORMS
        ) from error


def _from_two_columns(rows: Sequence[Sequence[str]]) -> NamesOfClasses | None:
    """Rows of an id and a name, or of a name and an id."""
    pairs = [(first_cell.strip(), second_cell.strip()) for first_cell, second_cell in rows]
    if pairs and all(_ID.fullmatch(second_cell) for _, second_cell in pairs):
        pairs = [(key, name) for name, key in pairs]
    return _keyed(pairs)


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
    pairs = _ids_and_names(lines)
    if pairs is None:
        return NamesOfClasses(in_order=lines)
    return _keyed(pairs)


def _ids_and_names(lines: Sequence[str]) -> list[tuple[str, str]] | None:
    """The id and the name in each line; None if lines are names alone."""
    matches = [match for match in map(_WORDS.fullmatch, lines) if match]
    if len(matches) != len(lines):
        return None
    pairs = [(str(match[1]), str(match[2])) for match in matches]
    if all(_ID.fullmatch(key) for key, _ in pairs):
        return _without_numbers(pairs)
    if all(_ID.fullmatch(text.strip()) for _, text in pairs):
        return [(text.strip(), name) for name, text in pairs]
    if all("\t" in line for line in lines):
        return [(key, text.strip()) for key, text in pairs]
    return None
