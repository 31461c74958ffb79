"""read_text, read_xml, read_json, read_table: an annotation file -> its content; every fault names
the file and the line or key.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.box_policy import Size, fault
from imagenet_prep.recipes.table_rows import LabelsFault, read_rows
from imagenet_prep.sources.utf8_text import decode_text
from imagenet_prep.storage.files import read_plain, view_of
from imagenet_prep.text import has_doctype

Buffer = bytes | memoryview

LARGEST = 1 << 26
"""Bytes of an annotation of one image, or of a file of names."""

MOST = 1 << 53
"""The largest number: flags and sizes are whole, and records hold 64 bits."""


def check_size(width: float, height: float, place: str) -> Size:
    """A size in pixels; raises InputError if it can't be one."""
    if not 1 <= min(width, height) <= max(width, height) <= MOST:
        problem = size_text(_side_text(width), _side_text(height))
        raise fault(place, problem, "expected its width and height, both at least 1")
    return int(width), int(height)


def size_text(width: object, height: object) -> str:
    """The words for the size that an annotation gives, which may not be that of the image."""
    return f"the size of the image is given as {width} x {height} pixels"


def _side_text(side: float) -> str:
    """A width or a height, which may not be whole, or have hundreds of digits."""
    if side > MOST:
        return f"over {MOST:,}"
    if side < -MOST:
        return f"under -{MOST:,}"
    return f"{int(side)}" if side == int(side) else f"{side:g}"


def parse_number(text: str, place: str, name: str = "") -> float:
    """The finite number of a text; raises InputError, with the ``name`` of the value, if it is
    none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if abs(number) <= MOST:
        return number
    problem = "the number is missing"
    if text.strip():
        problem = f"{text[:40]!r} is not a valid number"
    place_of_value = f"{place}: {name}" if name else place
    raise fault(place_of_value, problem, "expected a number of at most 15 digits, such as 12.5")


def check_numbers(values: Sequence[Any]) -> list[float]:
    """The numbers of a JSON whose types nobody has checked;
    raises TypeError if one is a text, or true or false, and ValueError if one is too large.
    """
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError
        if abs(value) > MOST:
            raise ValueError
    return list(values)


def read_text(path: Path) -> str:
    """The text of an annotation file; raises InputError if it is not UTF-8."""
    return decode_text(path, read_plain(path, LARGEST))


def read_xml(path: Path) -> ElementTree.Element:
    """The root of an XML file; raises InputError if it is none, or if it declares entities."""
    content, place = read_plain(path, LARGEST), str(path)
    if has_doctype(content):
        hint = "remove <!DOCTYPE ...> from the file, and run the same command again"
        raise fault(place, "it holds <!DOCTYPE", "expected XML without <!DOCTYPE", hint)
    try:
        return ElementTree.fromstring(content)  # noqa: S314 - nothing expands without a DOCTYPE
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise fault(place, f"the XML can't be read: {error}") from error


def read_json(path: Path, content_type: Any, tool: str) -> Any:
    """A JSON file as values of a type.

    Raises:
        InputError: it is no JSON, or a key is missing or has another type; the error names it.
    """
    return decode_json(path, json_content(path), content_type, tool)


def decode_json(path: Path, content: Buffer, content_type: Any, tool: str) -> Any:
    """The bytes of a JSON file as values of a type; raises as ``read_json``."""
    try:
        return msgspec.json.decode(content, type=content_type)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _json_fault(path, error, f"expected a {tool} file") from error


def json_content(path: Path) -> Buffer:
    """The bytes of a JSON file, without the byte order mark that some editors write."""
    view = view_of(path)
    start = len(codecs.BOM_UTF8) if bytes(view[0:3]) == codecs.BOM_UTF8 else 0
    return view[start : len(view)]


def _json_fault(path: Path, error: Exception, expected: str) -> InputError:
    """The error for a JSON file of another shape."""
    problem, key = json_problem(error)
    place = f"{path}: {key.removeprefix('.')}" if key else str(path)
    if isinstance(error, RecursionError):
        problem = "the JSON is nested too deep"
    elif isinstance(error, UnicodeDecodeError):
        problem = "a text in it is not UTF-8"
    return fault(place, problem, expected)


_JSON_TYPES = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}
"""The types of JSON values by msgspec's names."""


def json_problem(error: Exception) -> tuple[str, str]:
    """The problem of a JSON value, of which msgspec says "Expected `int`, got `str`", as a user
    knows the types; and its key, such as ".boxes[0]", "" for the whole value.
    """
    problem, _, key = str(error).partition(" - at ")
    return _problem_in_words(problem), key.strip("`").removeprefix("$")


def _problem_in_words(problem: str) -> str:
    missing = re.fullmatch(r"Object missing required field `(.*)`", problem)
    if missing:
        return f"the key {missing[1]} is missing"
    if problem == "Input data was truncated":
        return "the JSON ends too early"
    problem = problem.replace("got `float`", "got a decimal number")
    return re.sub(r"`([^`]*)`", _in_plain_words, problem).replace("Expected ", "expected ")


def _in_plain_words(types: re.Match[str]) -> str:
    names = types[1].split(" | ")
    return " or ".join(_JSON_TYPES.get(name, name) for name in names)


def list_files(folder: Path, ending: str) -> list[str]:
    """The names of the files with this ending, in any case, below a folder, sorted; hidden ones are
    left out.

    ``ending`` "" finds files without an ending.
    """
    names = []
    for path in folder.rglob("*"):
        if path.suffix.lower() != ending or not (ending or path.is_file()):
            continue
        name = path.relative_to(folder).as_posix()
        if not re.search(r"(^|/)\.", name):
            names.append(name)
    return sorted(names)


def read_columns(
    path: Path, *, header: bool = True
) -> tuple[Sequence[int], dict[str, list[str | None]]]:
    """The line of each row of a CSV, and the cells of each column ("1", "2", ...
    without a header); None: empty.
    """
    view = view_of(path)
    try:
        return read_rows(bytes(view[0 : len(view)]), "csv", header=header)
    except LabelsFault as error:
        raise fault(error.place(path), error.reason) from error


def read_table(path: Path, *, header: bool = True) -> Iterator[tuple[str, dict[str, str]]]:
    """The place of each row of a CSV, and its cells by column, as ``read_columns``;
    "" for an empty one.
    """
    line_numbers, columns = read_columns(path, header=header)
    rows = zip(*columns.values(), strict=True)
    for line_number, row in zip(line_numbers, rows, strict=False):
        cells = {name: cell or "" for name, cell in zip(columns, row, strict=True)}
        yield f"{path}, line {line_number}", cells
