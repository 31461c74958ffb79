"""Files of labels -> tables: ``path:label`` lines, CSV or TSV with a header, JSON lines. A row a file, by its path."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from imagenet_prep.tfrecord.example import Kind

Form = Literal["lines", "csv", "tsv", "jsonl"]

PATHS = ("path", "filename", "file", "image")
"""Names under which a column of paths is recognised, where none is named; the first that is there."""

LABELS = ("label", "class")
"""The same for the labels."""

_INT = re.compile(r"-?(0|[1-9]\d*)")
_FLOAT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_LARGEST = 3.4028234663852886e38
_MAX_DEPTH = 64


class LabelsFault(ValueError):  # noqa: N818 - the data is at fault, no error of the program
    """A file of labels that can't be understood at ``line`` (from 1), for ``reason``."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class LabelTable:
    """What a file of labels says: a path, a line number and a value of every column a row; None for no value.

    ``labels`` is None if the file has no column of labels. Values of CSV and TSV are texts until ``typed``.
    """

    paths: list[str]
    lines: Sequence[int]
    labels: list[Any] | None
    columns: dict[str, list[Any]]
    is_text: bool


def form_of(name: str) -> Form:
    """The form of a file by its name: .csv, .tsv, .jsonl or .ndjson; any other is of ``path:label`` lines."""
    suffix = name.rpartition(".")[2].lower()
    forms: dict[str, Form] = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl"}
    return forms.get(suffix, "lines")


def parse_labels(content: bytes, form: Form, path: str | None = None, label: str | bool | None = None) -> LabelTable:
    """The table of a file of labels.

    Args:
        content: the file, UTF-8.
        form: how it is written.
        path: the column of paths; by default one of ``PATHS``.
        label: the column of labels; by default one of ``LABELS`` if it is there; False for none.

    Raises:
        LabelsFault: a line can't be understood, or a path occurs twice.
    """
    if form == "lines":
        table = _parse_lines(content)
    else:
        table = _tabulated(*read_rows(content, form), path, label, is_text=form != "jsonl")
    _refuse_twice(table)
    return table


def _opened(content: bytes, newline: str) -> io.TextIOWrapper:
    """The text, decoded line by line: as a whole it would take up to four times the memory.

    Raises:
        LabelsFault: it is not UTF-8.
    """
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise LabelsFault(content[: error.start].count(b"\n") + 1, "it is not UTF-8") from None
    return io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline=newline)


def read_rows(content: bytes, form: Form) -> tuple[Sequence[int], dict[str, list[Any]]]:
    """The line in which each row of a CSV, TSV or JSON lines begins, and the values of each column.

    Raises:
        LabelsFault: it can't be understood.
    """
    if form == "jsonl":
        return _read_jsonl(_opened(content, "\n"))
    return _read_csv(_opened(content, ""), "\t" if form == "tsv" else ",")


def _parse_lines(content: bytes) -> LabelTable:
    paths, lines, labels = [], array("Q"), []
    for number, line in enumerate(_opened(content, "\n"), 1):
        if not line.strip():
            continue
        line = line.removesuffix("\n")
        path, colon, label = line.rpartition(":")
        if not colon or not path.strip() or not label.strip():
            raise LabelsFault(number, f"expected path:label, got {line[:80]!r}")
        paths.append(path.strip())
        lines.append(number)
        labels.append(sys.intern(label.strip()))
    return LabelTable(paths, lines, labels, {}, is_text=True)


def _read_csv(file: io.TextIOWrapper, delimiter: str) -> tuple[Sequence[int], dict[str, list[Any]]]:
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    lines = array("Q")
    try:
        header = [name.strip() for name in next(reader, [])]
        if len(set(header)) != len(header) or "" in header:
            raise LabelsFault(1, "a column has no name, or two have the same")
        columns: dict[str, list[Any]] = {name: [] for name in header}
        line = reader.line_num + 1
        for cells in reader:
            if cells and len(cells) != len(header):
                raise LabelsFault(line, f"{len(header)} columns expected, {len(cells)} found")
            if cells:
                lines.append(line)
                for cell, values in zip(cells, columns.values(), strict=True):
                    values.append(sys.intern(cell.strip()) or None)  # most values occur again
            line = reader.line_num + 1
    except csv.Error as error:
        raise LabelsFault(max(1, reader.line_num), str(error)) from None
    return lines, columns


def _is_deep(value: Any) -> bool:
    """Whether lists and objects lie within each other beyond _MAX_DEPTH; how deep Python reads differs by version."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        lists = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, list | dict))
        level = [child for each in lists for child in each]
    return bool(level)


def _read_jsonl(file: io.TextIOWrapper) -> tuple[Sequence[int], dict[str, list[Any]]]:
    lines = array("Q")
    columns: dict[str, list[Any]] = {}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        row = _parse_object(line, number)
        for name in row:
            if name not in columns:
                columns[name] = [None] * len(lines)
        lines.append(number)
        for name, values in columns.items():
            values.append(row.get(name))
    return lines, columns


def _parse_object(line: str, number: int) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        LabelsFault: it is none, it is nested too deep, or UTF-8 can't write its texts.
    """
    try:
        row = json.loads(line)
        if "\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise LabelsFault(number, "half of a surrogate pair: expected texts that UTF-8 can write") from None
    except (ValueError, RecursionError) as error:
        raise LabelsFault(number, f"not JSON: {error}") from None
    if line.count("[") + line.count("{") > _MAX_DEPTH and _is_deep(row):
        raise LabelsFault(number, f"values are nested too deep: expected at most {_MAX_DEPTH} levels")
    if not isinstance(row, dict):
        raise LabelsFault(number, f"expected an object, got {line.rstrip()[:80]!r}")
    return row


def _tabulated(
    lines: Sequence[int], columns: dict[str, list[Any]], path: str | None, label: str | bool | None, is_text: bool
) -> LabelTable:
    path_column, label_column = _column([*columns], path, PATHS, "paths"), _label_column([*columns], label)
    paths = columns.pop(path_column)
    for where, line in zip(paths, lines, strict=True):
        if not isinstance(where, str) or not where:
            raise LabelsFault(line, f"no text in the column of paths, {path_column!r}")
    if label_column == path_column:
        return LabelTable(paths, lines, paths, columns, is_text)
    return LabelTable(paths, lines, None if label_column is None else columns.pop(label_column), columns, is_text)


def _column(header: Sequence[str], wanted: str | None, usual: Sequence[str], what: str) -> str:
    found = next((name for name in ([wanted] if wanted else usual) if name in header), None)
    if found is None:
        expected = repr(wanted) if wanted else "one of " + ", ".join(usual)
        raise LabelsFault(1, f"no column of {what}: expected {expected}, got {', '.join(header) or 'nothing'}")
    return found


def _label_column(header: Sequence[str], wanted: str | bool | None) -> str | None:
    if wanted is False:
        return None
    if isinstance(wanted, str):
        return _column(header, wanted, (), "labels")
    return next((name for name in LABELS if name in header), None)


def _refuse_twice(table: LabelTable) -> None:
    if len(set(table.paths)) == len(table.paths):
        return
    first: dict[str, int] = {}
    for path, line in zip(table.paths, table.lines, strict=True):
        if path in first:
            raise LabelsFault(line, f"{path!r} is in line {first[path]} already")
        first[path] = line


def match(paths: Sequence[str], rows: Mapping[str, int], base: str, beside: str) -> list[int]:
    """The row of the file that each path of a table means, -1 for none; ``rows`` are those of the files by name.

    Paths are relative to the source (``base``), else to the file of labels (it lies in ``beside``), else bare names,
    else to a folder above: that above the file of labels, or above the source: flowers/x.png of a file that lies in
    flowers. The first way counts that finds any.
    """

    for way in _ways(rows, base, beside):
        found = [way(text) for text in paths]
        if max(found, default=-1) >= 0:
            return found
    return [-1] * len(paths)


def _ways(rows: Mapping[str, int], base: str, beside: str) -> Iterator[Callable[[str], int]]:
    """What finds the row that a path means, one way after the other."""

    def found_from(folder: str) -> Callable[[str], int]:
        return lambda text: rows.get(os.path.normpath(f"{folder}/{text}").removeprefix(f"{base}/"), -1)

    yield lambda text: rows.get(text.removeprefix("./"), -1)
    yield found_from(beside)
    bare: dict[str, int] = {}
    for name, row in rows.items():
        last = name.rpartition("/")[2]
        bare[last] = -1 if last in bare else row
    yield lambda text: bare.get(text, -1)
    yield found_from(str(Path(beside).parent))
    yield found_from(str(Path(base).parent))


# values --------------------------------------------------------------------------------------------------------


def typed(
    values: Sequence[Any], lines: Sequence[int], is_text: bool, kind: Kind | None = None
) -> tuple[Kind, list[Any]]:
    """The values of a column as one kind, and that kind: the one asked for, or the narrowest that fits all.

    A list stays one; None stays None. Texts that are all whole numbers are int64, all numbers float: but one that
    begins with a needless zero (a postcode) makes them texts.

    Raises:
        LabelsFault: a value that is not of that kind, or no value of a record.
    """
    kind = kind or _narrowest(values, lines, is_text)
    if is_text:  # each once; where one is at fault, its line is looked for below
        with contextlib.suppress(LabelsFault):
            known = {each: None if each is None else _single(each, 0, kind, is_text) for each in set(values)}
            return kind, [known[value] for value in values]
    return kind, [
        None if value is None else _converted(value, line, kind, is_text)
        for value, line in zip(values, lines, strict=True)
    ]


def _narrowest(values: Sequence[Any], lines: Sequence[int], is_text: bool) -> Kind:
    if is_text:
        kinds = {_kind(each, 0, is_text) for each in set(values) if each is not None}
    else:
        kinds = {_kind(each, line, is_text) for value, line in zip(values, lines, strict=True) for each in _flat(value)}
    if "bytes" in kinds:
        if kinds != {"bytes"} and not is_text:
            line = next(n for v, n in zip(values, lines, strict=True) if any(isinstance(e, str) for e in _flat(v)))
            raise LabelsFault(line, "a text, where other lines have numbers")
        return "bytes"
    return "float" if "float" in kinds else "int64" if kinds else "bytes"


def _flat(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else () if value is None else (value,)


def _kind(value: Any, line: int, is_text: bool) -> Kind:
    if is_text:
        return "int64" if _INT.fullmatch(value) else "float" if _is_float(value) else "bytes"
    if isinstance(value, str):
        return "bytes"
    if isinstance(value, (int, float)):
        return "int64" if isinstance(value, int) else "float"
    raise LabelsFault(line, f"a value of type {type(value).__name__}: expected text, a number, or a list of them")


def _is_float(text: str) -> bool:
    is_padded = len(text) > 1 and text[0] == "0" and text[1].isdigit()
    return text.lower() == "nan" or (not is_padded and _FLOAT.fullmatch(text) is not None)


def _converted(value: Any, line: int, kind: Kind, is_text: bool) -> Any:
    if isinstance(value, list):
        return [_single(each, line, kind, is_text) for each in value]
    return _single(value, line, kind, is_text)


def _single(value: Any, line: int, kind: Kind, is_text: bool) -> Any:
    found = _kind(value, line, is_text)
    if kind == "bytes" and (is_text or found == "bytes"):
        return value
    if kind == "int64" and found == "int64":
        if (is_text and len(value) > 20) or not -(1 << 63) <= int(value) < 1 << 63:
            raise LabelsFault(line, f"{str(value)[:40]} is beyond 64 bits")
        return int(value)
    if kind == "float" and found != "bytes":
        if not is_text and isinstance(value, int) and abs(value) > _LARGEST:
            raise LabelsFault(line, f"{str(value)[:40]} is beyond 32-bit floats")
        number = float(value)
        if abs(number) > _LARGEST and not (math.isinf(number) and not is_text):
            raise LabelsFault(line, f"{str(value)[:40]} is beyond 32-bit floats")
        return number
    raise LabelsFault(line, f"{str(value)[:80]!r} is not of type {'text' if kind == 'bytes' else kind}")
