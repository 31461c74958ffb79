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
from imagenet_prep.recipes.labels import Classes
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.sources.names import below
from imagenet_prep.storage.files import read_plain
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of

FORMS = (
    "expected JSON, pbtxt, a CSV with the columns id and name, or lines: a name, "
    "or an id and a name"
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
        plain = {_plain(key): name for key, name in self.by_id.items()}
        found = {each: plain[_plain(each)] for each in ids if _plain(each) in plain}
        names = self.in_order or ([] if any(key.isdigit() for key in plain) else [*plain.values()])
        if found or not names:
            return found
        numbers = {each: int(each) for each in ids if each.isascii() and each.isdigit()}
        first = int(len(names) in numbers.values())
        if first_label is not None and all(
            0 <= number - first_label < len(names) for number in numbers.values()
        ):
            first = first_label
        places = {each: number - first for each, number in numbers.items()}
        return {each: names[place] for each, place in places.items() if 0 <= place < len(names)}

    @property
    def are_ids(self) -> bool:
        """Whether its names are ids themselves, such as WordNet's."""
        return all(map(_ID.fullmatch, self.in_order or self.by_id.values()))


def _plain(key: str) -> str:
    """An id without needless zeros: 007 and 7 are one."""
    return key.lstrip("0") or "0" if key.isascii() and key.isdigit() else key


def name_classes(file: RecipeFile, root: AnyPath, classes: Classes) -> Classes:
    """The classes with the names that the recipe's `class_names` gives them; their order and
    numbers stay.

    Raises:
        InputError: the file is not there, or can't be understood, or a class has no name in it.
    """
    said = file.recipe.class_names
    if said is None:
        return classes
    if isinstance(said, str):
        path = need_path(file, ("class_names",), below(root, said))
        names = read_names(path, read_plain(path))
        place = str(path)
    else:
        names, place = NamesOfClasses(dict(said)), file.place(("class_names",))
    found = names.names_of(classes.names, file.recipe.first_label)
    lacking = [name for name in classes.names if name not in found]
    if lacking:
        what = (
            f"{place} names {number_of(len(found), 'class', 'classes')} of {len(classes.names):,}"
        )
        raise InputError(
            f"{what}: {listed(lacking)} has no name there", "expected a name for each class"
        )
    return renamed(classes, found)


def renamed(classes: Classes, names: Mapping[str, str]) -> Classes:
    """The classes under their names; one of several classes of one name
    keeps its id in brackets.
    """
    count = Counter(names.values())
    unique = [
        f"{names[each]} ({each})" if count[names[each]] > 1 else names[each]
        for each in classes.names
    ]
    return replace(classes, names=tuple(unique), texts=tuple(names[each] for each in classes.names))


def read_names(path: AnyPath, content: bytes) -> NamesOfClasses:
    """The names in a file.

    Raises:
        InputError: it holds none, or two for one id.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} can't be read", str(error)) from error
    suffix = path.name.rpartition(".")[2].lower()
    readers = {"json": _from_json, "pbtxt": _from_pbtxt, "csv": _from_csv, "tsv": _from_csv}
    found = readers.get(suffix, _from_lines)(text)
    if found is None or not (found.by_id or found.in_order):
        raise InputError(f"{path} holds no names of classes", FORMS)
    return found


def _from_json(text: str) -> NamesOfClasses | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
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
    if isinstance(value, dict):
        inner = next(
            (value[key] for key in _HOLDERS if isinstance(value.get(key), (dict, list))), None
        )
        return _from_value(inner) if inner is not None else _from_mapping(value)
    if not isinstance(value, list):
        return None
    if all(isinstance(entry, str) for entry in value):
        return NamesOfClasses(in_order=value)
    rows = [entry for entry in value if isinstance(entry, dict)]
    return _from_rows(rows) if len(rows) == len(value) else None


def _from_mapping(value: Mapping[str, Any]) -> NamesOfClasses | None:
    """{id: name}, {name: number}, or {number: [wnid, name]}."""
    entries = list(value.values())
    if all(isinstance(entry, str) for entry in entries):
        if all(_ID.fullmatch(entry) for entry in entries) and not all(map(_ID.fullmatch, value)):
            return _keyed((entry, name) for name, entry in value.items())
        return NamesOfClasses(dict(value))
    if all(isinstance(entry, int) for entry in entries):
        return _keyed((str(entry), name) for name, entry in value.items())
    if all(isinstance(entry, list) and len(entry) == 2 for entry in entries) and all(
        map(_ID.fullmatch, value)
    ):
        pairs = [(str(entry[0]), str(entry[1])) for entry in entries]
        return _keyed([*pairs, *((key, name) for key, (_, name) in zip(value, pairs, strict=True))])
    return None


def _keyed(pairs: Iterable[tuple[str, str]]) -> NamesOfClasses | None:
    """Names by id; None if an id is there twice."""
    found: dict[str, str] = {}
    for key, name in pairs:
        if found.setdefault(key, name) != name:
            return None
    return NamesOfClasses(found)


def _from_rows(rows: Sequence[Mapping[str, Any]]) -> NamesOfClasses | None:
    """Rows with a column of ids and one of names."""
    columns = {str(name).lower(): name for name in (rows[0] if rows else ())}
    key = next((columns[name] for name in _IDS if name in columns), None)
    name = next(
        (columns[name] for name in _NAMES if name in columns and columns[name] != key), None
    )
    if key is None or name is None:
        return None
    return _keyed((str(row.get(key)), str(row.get(name)).strip()) for row in rows)


_PB_ITEM = re.compile(r"item\s*\{([^}]*)\}", re.DOTALL)
_PB_FIELD = re.compile(r"(id|name|display_name)\s*:\s*(?:'([^']*)'|\"([^\"]*)\"|(\d+))")


def _from_pbtxt(text: str) -> NamesOfClasses | None:
    """Items of TensorFlow's label maps: id, and display_name or name."""
    pairs = []
    for item in _PB_ITEM.findall(text):
        fields = {
            key: single or double or number
            for key, single, double, number in _PB_FIELD.findall(item)
        }
        if "id" in fields:
            pairs.append((fields["id"], fields.get("display_name") or fields.get("name", "")))
    return _keyed(pairs)


def _from_csv(text: str) -> NamesOfClasses | None:
    """A table with columns of ids and names; or of two columns without a header."""
    lines = text.splitlines()
    sign = (
        "\t"
        if lines and "\t" in lines[0]
        else ";"
        if lines and ";" in lines[0] and "," not in lines[0]
        else ","
    )
    rows = [row for row in csv.reader(lines, delimiter=sign, skipinitialspace=True) if row]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        return None
    header = [cell.strip() for cell in rows[0]]
    named = _from_rows([dict(zip(header, row, strict=True)) for row in rows[1:]])
    if named is not None or len(header) != 2:
        return named
    body = rows if _ID.fullmatch(header[0]) or _ID.fullmatch(header[1]) else rows[1:]
    if body and all(_ID.fullmatch(row[1].strip()) for row in body):
        body = [[row[1], row[0]] for row in body]
    return _keyed((row[0].strip(), row[1].strip()) for row in body)


def _without_numbers(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Ids and names, where each name may have the number of its line before it,
    as in ImageNet's map_clsloc.txt.
    """
    split = [name.strip().partition(" ") for _, name in pairs]
    is_counted = all(number == str(line) for line, (number, _, _) in enumerate(split, 1))
    if is_counted and all(name for _, _, name in split):
        return [(key, name.strip()) for (key, _), (_, _, name) in zip(pairs, split, strict=True)]
    return [(key, name.strip()) for key, name in pairs]


def _from_lines(text: str) -> NamesOfClasses | None:
    """A name a line, in order; or an id and a name in each."""
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")
    ]
    if lines and "," in lines[0] and lines[0].partition(",")[0].strip().lower() in _IDS:
        return _from_csv(text)
    pairs = [(str(match[1]), str(match[2])) for match in map(_WORDS.fullmatch, lines) if match]
    if len(pairs) == len(lines):
        if all(_ID.fullmatch(key) for key, _ in pairs):
            return _keyed((key, name) for key, name in _without_numbers(pairs))
        if all(_ID.fullmatch(name.strip()) for _, name in pairs):
            return _keyed((name.strip(), key) for key, name in pairs)
        if all("\t" in line for line in lines):
            return _keyed((key, name.strip()) for key, name in pairs)
    return NamesOfClasses(in_order=lines)
