"""read_box_names: a data.yaml, a text or a CSV -> BoxNames, the classes of boxes in order, or by
their ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.recipes.annotation_files import LARGEST, read_text
from imagenet_prep.recipes.box_policy import fault
from imagenet_prep.recipes.recipe_file import read_texts
from imagenet_prep.recipes.table_rows import LabelsFault, csv_rows
from imagenet_prep.storage.files import read_plain
from imagenet_prep.text import number_of


class BoxNames(Struct, frozen=True):
    """The classes of boxes that a recipe names: in order,
    and the name of each by its id in annotation files.
    """

    order: Sequence[str] = ()
    by_id: Mapping[str, str] = {}


def read_data_yaml(path: Path) -> Mapping[str, Any]:
    """The keys of a data.yaml, whose values are texts; raises InputError if it can't be read."""
    try:
        keys = read_texts(path, read_text(path))
    except UsageError as error:  # it is no recipe but data
        raise InputError(error.what, error.detail, error.hint) from error
    return keys if isinstance(keys, dict) else {}


def read_box_names(path: Path) -> BoxNames:
    """The classes of a file.

    ``names`` of a data.yaml, "" for a number without a name; or a line each; or a CSV of names and
    their numbers from 0, as keras-retinanet has it, or of ids and their names, as Open Images has
    it.

    Raises:
        InputError: it can't be read, or holds none.
    """
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _names_in_csv(path)
    if suffix not in (".yaml", ".yml"):
        lines = map(str.strip, read_text(path).splitlines())
        names_in_order = list(filter(None, lines))
        if not names_in_order:
            raise fault(str(path), "it names no class", "expected the name of a class in each line")
        return BoxNames(names_in_order)
    keys = read_data_yaml(path)
    if "names" not in keys:
        raise fault(str(path), "it has no key `names`", "expected the names of the classes")
    names = keys["names"]
    if isinstance(names, list):
        names = dict(enumerate(names))
    elif not isinstance(names, dict):
        names = {}
    return BoxNames(_order(path, {str(number): name for number, name in names.items()}))


_NUMBER = re.compile(r"0|[1-9][0-9]{0,4}")
_LARGEST_NUMBER = 99_999


def _order(path: Path, names: Mapping[str, Any]) -> list[str]:
    """The names in the order of their numbers; "" for a number without a name."""
    if not names:
        expected = "expected a list of names, or names by number"
        raise fault(str(path), "`names` lists no class", expected)
    for number, name in names.items():
        expected = f"expected whole numbers from 0 to {_LARGEST_NUMBER:,}, each with a name"
        if not _NUMBER.fullmatch(number):
            problem = f"{number[:40]!r} is not the number of a class"
            raise fault(str(path), problem, expected)
        if not isinstance(name, str) or not name:
            problem = f"class {number} has no name"
            if name:
                problem = f"the name of class {number} is not a text"
            raise fault(str(path), problem, expected)
    names_by_number = {int(number): name for number, name in names.items()}
    class_count = max(names_by_number) + 1
    return [names_by_number.get(number, "") for number in range(class_count)]


def _names_in_csv(path: Path) -> BoxNames:
    """The classes of a CSV with a name and its number in each line, or an id and its name."""
    pairs = _read_pairs(path)
    first_left, first_right = pairs[0]
    starts_with_number = _NUMBER.fullmatch(first_right)
    if first_left.lower() in ("labelname", "id") and not starts_with_number:
        return BoxNames(by_id=_names_by_id(path, pairs[1:]))
    rows = pairs if starts_with_number else pairs[1:]  # without a header
    if rows and all(_NUMBER.fullmatch(number) for _, number in rows):
        names_by_number = [(number, name) for name, number in rows]
        return BoxNames(_order(path, _names_by_id(path, names_by_number)))
    return BoxNames(by_id=_names_by_id(path, pairs))


def _names_by_id(path: Path, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The names by their numbers or ids; raises InputError if one has two."""
    names: dict[str, str] = {}
    for class_id, name in pairs:
        first_name = names.setdefault(class_id, name)
        if first_name != name:
            problem = f"the class {class_id} has two names, {first_name} and {name}"
            raise fault(str(path), problem, "expected one name for each number or id")
    return names


def _read_pairs(path: Path) -> list[tuple[str, str]]:
    """The cells of a CSV of two columns, one row at least."""
    try:
        rows = list(csv_rows(read_plain(path, LARGEST), "csv"))
    except LabelsFault as error:
        raise fault(error.place(path), error.reason) from error
    expected = "expected lines of two values: a class name and its number, or an id and a name"
    if not rows:
        raise fault(str(path), "it names no class", expected)
    for line, cells in rows:
        if len(cells) != 2:
            problem = f"the line has {number_of(len(cells), 'value')}"
            raise fault(f"{path}, line {line}", problem, expected)
    return [(left.strip(), right.strip()) for _, (left, right) in rows]
