"""read_rows: the bytes of a table -> its rows by column, with their lines: ``path:label`` or
``path label`` lines, CSV, TSV, JSON lines or a JSON document.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import io
import itertools
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from imagenet_prep.recipes.json_faults import json_line, json_reason, parse_json
from imagenet_prep.recipes.label_cells import are_all
from imagenet_prep.recipes.row_numbers import Rows, count_of_numbers
from imagenet_prep.text import number_of

Form = Literal["lines", "words", "csv", "tsv", "spaces", "jsonl", "json"]
"""How a labels file is written: ``path:label``, ``path label``, columns by commas, tabs or spaces,
or JSON.

JSON is an object a line ("jsonl"), or one document ("json"): {path: label}, {class: [paths]}, or a
list of objects.
"""

COMMENT = re.compile(r"#(\s|$)")
FILE_ENDING = re.compile(r".\.(jpe?g|png|tiff?|npy|npz)", re.IGNORECASE)


class LabelsFault(ValueError):  # noqa: N818 - the data is at fault, no error of the program
    """A file of labels that can't be understood at ``line`` (from 1; 0: as a whole), for
    ``reason``; ``unit`` is "entry" where ``line`` counts the entries of a JSON document.
    ``hint``: what to do; "" to correct the file.
    """

    unit = "line"

    def __init__(self, line: int, reason: str, hint: str = "") -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason
        self.hint = hint

    def place(self, path: object) -> str:
        """The file at ``path``, and the line if the fault is in one, for messages."""
        return f"{path}, {self.unit} {self.line}" if self.line else str(path)


class HeaderFault(LabelsFault):
    """A table without a column that it must have."""


class SameNameFault(LabelsFault):
    """A table whose first line has a value twice: two columns of one name, or no header at all."""


def form_of(name: str) -> Form:
    """The form of a file by its name: .csv, .tsv, .jsonl, .ndjson or .json;
    any other has ``path:label`` lines.
    """
    _, _, suffix = name.rpartition(".")
    forms: dict[str, Form] = {
        "csv": "csv",
        "tsv": "tsv",
        "jsonl": "jsonl",
        "ndjson": "jsonl",
        "json": "json",
    }
    return forms.get(suffix.lower(), "lines")


def open_text(content: bytes, newline: str = "\n") -> io.TextIOWrapper:
    """The text, decoded line by line: as a whole it would take up to four times the memory.

    Raises:
        LabelsFault: it is neither UTF-8 nor UTF-16 with a byte order mark.
    """
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        content.decode("utf-16" if is_wide else "utf-8")
    except UnicodeDecodeError as error:
        readable = content[: error.start]
        text = readable.decode("utf-16" if is_wide else "utf-8", "ignore")
        line_end = r"\n" if newline else r"\r\n?|\n"
        line = len(re.findall(line_end, text)) + 1
        reason = "it is not UTF-8"
        if is_wide:
            reason = "it starts as UTF-16, and is not UTF-16 here"
        raise LabelsFault(line, reason) from None
    encoding = "utf-16" if is_wide else "utf-8-sig"
    return io.TextIOWrapper(io.BytesIO(content), encoding, newline=newline)


def read_rows(
    content: bytes, form: Form, *, header: bool = True, keeps_numbers: bool = False
) -> tuple[Sequence[int], dict[str, list[Any]]]:
    """The line on which each row of a table starts, and the values of each column: of lines, "1"
    and "2". The rows' own numbers are left out unless ``keeps_numbers``, as in ``csv_rows``.

    Raises:
        LabelsFault: it can't be understood.
    """
    if form == "jsonl":
        text = open_text(content)
        return _read_jsonl(text)
    if form == "json":
        return _read_json(content)
    start, names, rows, unnamed_count = read_header(
        content, form, has_header=header, keeps_numbers=keeps_numbers
    )
    _refuse_names(names, start)
    return _read_cells(names, rows, unnamed_count)


def _refuse_names(names: Sequence[str], line: int) -> None:
    """Raise LabelsFault if a column has no name, or two have the same."""
    numbers: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name:
            raise LabelsFault(line, f"column {number} has no name")
        first_number = numbers.setdefault(name, number)
        if first_number != number:
            columns = f"columns {first_number} and {number}"
            hint = "let the first line name the columns, each with another name"
            raise SameNameFault(line, f"{columns} have the same name, {name!r}", hint)


def _read_cells(
    names: Sequence[str], rows: Rows, unnamed_count: int
) -> tuple[Sequence[int], dict[str, list[Any]]]:
    """The cells of rows by column; those of columns without a name must be empty."""
    lines = array("Q")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    width = len(names)
    width_with_unnamed = width + unnamed_count
    for line, cells in rows:
        if unnamed_count and len(cells) == width_with_unnamed:
            unnamed_cells = cells[width:]
            if not any(unnamed_cells):
                cells = cells[:width]
        if len(cells) != width:
            expected = number_of(width, "column")
            raise LabelsFault(line, f"{expected} expected, {len(cells):,} found")
        lines.append(line)
        for cell, column in zip(cells, columns.values(), strict=True):
            text = sys.intern(cell.strip())  # most values occur again
            column.append(text or None)
    return lines, columns


def read_header(
    content: bytes, form: Form, *, has_header: bool, keeps_numbers: bool = False
) -> tuple[int, list[str], Rows, int]:
    """The line and names of the columns, the rows, and how many unnamed columns come last."""
    read_columns = functools.partial(csv_rows, keeps_numbers=keeps_numbers)
    readers: dict[Form, Callable[[bytes, Form], Rows]] = {
        "csv": read_columns,
        "tsv": read_columns,
        "spaces": _spaced_rows,
    }
    if form not in readers:
        rows = _plain_rows(content, form)
        return 1, ["1", "2"], rows, 0
    read = readers[form]
    rows = read(content, form)
    start, cells = next(rows, (1, []))
    names = [cell.strip() for cell in cells]
    width = len(names)
    if not has_header:
        rows = itertools.chain([(start, names)], rows)
        numbers = range(1, width + 1)
        return start, list(map(str, numbers)), rows, 0
    while len(names) > 1 and not names[-1]:  # a spreadsheet's columns without anything in them
        names.pop()
    if names and not names[0]:  # pandas writes its index without a name
        names[0] = "index"
    unnamed_count = width - len(names)
    return start, names, rows, unnamed_count


def _plain_rows(content: bytes, form: Form) -> Iterator[tuple[int, list[str]]]:
    """The number of each line with a path and a label."""
    for number, line in enumerate(open_text(content), 1):
        if not line.strip() or COMMENT.match(line):
            continue
        cells = split_line(line, form)
        if not all(cells):
            raise _other_form(number, line, form)
        yield number, [*cells]


def _other_form(number: int, line: str, form: Form) -> LabelsFault:
    """The fault of a line without a path or a label."""
    expected = "path:label" if form == "lines" else "a path and a label, a space between them"
    hint = ""
    if form == "lines" and all(split_line(line, "words")):
        hint = "correct it; or, for lines such as 'a.jpg cat', write labels: {..., format: words}"
    return LabelsFault(number, f"expected {expected}, got {_shown(line)}", hint)


def _spaced_rows(content: bytes, form: Form) -> Iterator[tuple[int, list[str]]]:
    """The number of each line and its words; a count of the lines before them is left out.

    A header without a name for the paths, as CelebA's, gets one.
    """
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(open_text(content), 1):
        if line.strip() and not COMMENT.match(line):
            words = line.split()
            rows.append((number, words))
    if len(rows) > 1:
        _, first_words = rows[0]
        is_count = len(first_words) == 1 and first_words[0].isdigit()
        if is_count:
            rows = rows[1:]
    if len(rows) > 1:
        header_line, header = rows[0]
        _, first_cells = rows[1]
        if len(header) + 1 == len(first_cells):
            rows[0] = (header_line, ["path", *header])
    yield from rows


def _shown(line: str) -> str:
    """The beginning of a line, for messages."""
    beginning = line.rstrip()[:80]
    return repr(beginning)


def split_line(line: str, form: Form) -> tuple[str, str]:
    """Path and label of a line of this form;
    one of them is empty where the line has another form.
    """
    if form == "words":
        parts = line.strip().rsplit(None, 1)
        path, label = [*parts, ""][:2]
    else:
        content = line.removesuffix("\n")
        path, _, label = content.rpartition(":")
    return path.strip(), label.strip()


def delimiter_of(line: str, form: Form) -> str:
    """The separator of this line's columns: a tab, a comma, or a semicolon if it has no comma."""
    if form == "tsv":
        return "\t"
    if ";" in line and "," not in line:
        return ";"
    return ","


def csv_rows(content: bytes, form: Form, *, keeps_numbers: bool = False) -> Rows:
    """The line on which each row of a CSV or TSV starts, and its cells; comments and empty lines
    are left out, and so are the numbers of the rows that pandas writes before the other columns,
    unless ``keeps_numbers``.

    Raises:
        LabelsFault: it can't be understood.
    """
    count = 0 if keeps_numbers else count_row_numbers(content, form)
    for line, cells in _all_cells(content, form):
        yield line, cells[count:]


def count_row_numbers(content: bytes, form: Form) -> int:
    """How many of the first columns of a CSV or TSV are numbers of its rows; 0 for another form."""
    if form in ("csv", "tsv"):
        with contextlib.suppress(LabelsFault):
            return count_of_numbers(lambda: _all_cells(content, form))
    return 0


def _all_cells(content: bytes, form: Form) -> Rows:
    """The line on which each row starts, and all of its cells."""
    file = open_text(content, "")
    skipped_lines = 0
    header = file.readline()
    while COMMENT.match(header):
        skipped_lines += 1
        header = file.readline()
    lines: Iterable[str] = file
    if header:
        lines = itertools.chain([header], file)
    delimiter = delimiter_of(header, form)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = 1 + skipped_lines
    try:
        for cells in reader:
            if cells and not COMMENT.match(cells[0]):
                yield line, cells
            line = reader.line_num + 1 + skipped_lines
    except csv.Error as error:
        line_read = reader.line_num + skipped_lines
        raise _csv_fault(error, line, max(1, line_read)) from None


def _csv_fault(error: csv.Error, row_line: int, line: int) -> LabelsFault:
    """The fault of a CSV in the row that starts at ``row_line``;
    ``line`` is the last one that was read.
    """
    reason = str(error)
    if reason == "unexpected end of data":
        return LabelsFault(row_line, "a quotation mark opens a cell here, and none closes it")
    if reason.startswith("field larger than field limit"):
        limit = csv.field_size_limit()
        return LabelsFault(
            row_line, f"a cell has more than {limit:,} characters: is a quotation mark missing?"
        )
    if "expected after" in reason:
        reason = "a quotation mark ends a cell, and the cell goes on after it"
    return LabelsFault(line, reason)


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
        for name, column in columns.items():
            column.append(row.get(name))
    return lines, columns


def _read_json(content: bytes) -> tuple[Sequence[int], dict[str, list[Any]]]:
    """{path: label}, {path: {column: value}}, {class: [paths]} or [{column: value}]; lines are
    numbers of entries.

    Raises:
        LabelsFault: it is none of these.
    """
    document = _parse_document(content)
    rows = _json_rows(document)
    if rows is None or not are_all(rows, dict):
        raise LabelsFault(
            0,
            'expected an object such as {"a.jpg": "cat"} or {"cat": ["a.jpg"]}, whose labels are '
            'texts or whole numbers, or a list such as [{"path": "a.jpg", "label": "cat"}]',
        )
    names = dict.fromkeys(itertools.chain.from_iterable(rows))
    columns: dict[str, list[Any]] = {}
    for name in names:
        columns[name] = [row.get(name) for row in rows]
    lines = range(1, len(rows) + 1)
    return lines, columns


def _parse_document(content: bytes) -> Any:
    """The value of a JSON document; raises LabelsFault if it is none."""
    text = open_text(content).read()
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise LabelsFault(json_line(error, text), json_reason(error)) from None


def _json_rows(document: Any) -> list[Any] | None:
    """The rows of a document; None if it has another form."""
    if isinstance(document, dict):
        labels = document.get("labels")
        if isinstance(labels, (dict, list)):
            # StyleGAN and FiftyOne write the labels so, next to the names of classes
            document = labels
    if isinstance(document, dict):
        return _rows_of_object(document)
    if not isinstance(document, list):
        return None
    if are_all(document, list):
        lengths = set(map(len, document))
        if lengths <= {2}:
            return [{"path": path, "label": label} for path, label in document]
    return document


def _rows_of_object(document: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The rows of an object by path, or by class; None if it is neither."""
    entries = document.values()
    if are_all(entries, dict):
        return [{"path": path, **entry} for path, entry in document.items()]
    if are_all(entries, (str, int)):
        return [{"path": path, "label": label} for path, label in document.items()]
    if not are_all(entries, list):
        return None
    texts = itertools.chain.from_iterable(entries)
    if not are_all(texts, str):
        return None
    if any(map(FILE_ENDING.search, document)):  # by path, with a list of labels each
        return [{"path": path, "label": labels} for path, labels in document.items()]
    rows: list[dict[str, Any]] = []
    for class_name, paths in document.items():
        rows += [{"path": path, "label": class_name} for path in paths]
    return rows


def _parse_object(line: str, number: int) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        LabelsFault: it is none, or UTF-8 can't write its texts.
    """
    try:
        row = parse_json(line.rstrip("\r\n"))
    except (ValueError, RecursionError) as error:
        raise LabelsFault(number, json_reason(error)) from None
    if not isinstance(row, dict):
        raise LabelsFault(number, f"expected a JSON object, got {_shown(line)}")
    return row
