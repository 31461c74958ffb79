"""LabelTable, read from a labels file: ``path:label`` or ``path label`` lines,
CSV, TSV or JSON lines. A row a file.
"""

from __future__ import annotations

import ast
import codecs
import contextlib
import csv
import io
import itertools
import json
import math
import os
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord.example import Kind

Form = Literal["lines", "words", "csv", "tsv", "spaces", "jsonl", "json"]
"""How a labels file is written: ``path:label``, ``path label``, columns by commas, tabs or spaces,
or JSON.

JSON is an object a line ("jsonl"), or one document ("json"): {path: label}, {class: [paths]}, or a
list of objects.
"""

PATHS = ("path", "filename", "file", "image")
"""Names under which a column of paths is recognised, where none is named;
the first that is there.
"""

LABELS = ("label", "class")
"""The same for the labels."""

LINES = "lines"
"""A file has several labels: a line for each."""

_INT = re.compile(r"-?(0|[1-9]\d*)")
_FLOAT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
COMMENT = re.compile(r"#(\s|$)")
_ENDING = re.compile(r".\.(jpe?g|png|tiff?|npy|npz)", re.IGNORECASE)
_LARGEST = 3.4028234663852886e38


class LabelsFault(ValueError):  # noqa: N818 - the data is at fault, no error of the program
    """A file of labels that can't be understood at ``line`` (from 1), for ``reason``."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason


NO_LABEL = -1
"""A number in place of a label that is no class, as in Hugging Face's data sets."""


class LabelTable(Struct, frozen=True):
    """The content of a labels file: a path, a line number and a value of every column a row; None
    for no value.

    ``labels`` is None if the file has no column of labels. Values of CSV and TSV are texts until
    ``typed``. ``words`` are those of labels that are numbers, where the file has them,
    ``class_names`` the names of these classes, if they are others. ``of_samples``: the images are
    in the same files. ``splits``: the value of the column that says which split a row is of.
    ``sections``: where the lines of each of several files start, and the file.
    """

    paths: list[str]
    lines: Sequence[int]
    labels: list[Any] | None
    columns: dict[str, list[Any]]
    is_text: bool
    words: Mapping[int, str] = {}
    of_samples: bool = False
    class_names: Mapping[int, str] = {}
    splits: list[str | None] | None = None
    sections: Sequence[tuple[int, AnyPath]] = ()

    @property
    def is_several(self) -> bool:
        """Whether a file may have several labels."""
        return any(isinstance(each, list) for each in self.labels or ())

    def take(self, rows: Sequence[int]) -> LabelTable:
        """The table of some of its rows, in their order; a row can come several times."""
        return replace(
            self,
            paths=[self.paths[row] for row in rows],
            lines=[self.lines[row] for row in rows],
            labels=None if self.labels is None else [self.labels[row] for row in rows],
            splits=None if self.splits is None else [self.splits[row] for row in rows],
            columns={name: [values[row] for row in rows] for name, values in self.columns.items()},
        )

    def place(self, path: object, line: int) -> str:
        """A line of the file, or the sample of that number, for messages."""
        if self.of_samples:
            return f"sample {self.paths[line - 1]}"
        for start, section in self.sections:
            if line > start:
                path, number = section, line - start
        return f"{path}, line {number if self.sections else line}"


def form_of(name: str) -> Form:
    """The form of a file by its name: .csv, .tsv, .jsonl, .ndjson or .json;
    any other has ``path:label`` lines.
    """
    suffix = name.rpartition(".")[2].lower()
    forms: dict[str, Form] = {
        "csv": "csv",
        "tsv": "tsv",
        "jsonl": "jsonl",
        "ndjson": "jsonl",
        "json": "json",
    }
    return forms.get(suffix, "lines")


def parse_labels(  # noqa: PLR0913 - what a recipe says of a table, by keyword
    content: bytes,
    form: Form,
    path: str | None = None,
    label: str | bool | None = None,
    *,
    header: bool = True,
    several: str = "",
    one_hot: bool | Sequence[str] = (),
    split: str | None = None,
) -> LabelTable:
    """The table of a labels file.

    Args:
        content: the file, UTF-8, or UTF-16 with a byte order mark.
        form: how it is written.
        path: the column of paths; by default one of ``PATHS``.
        label: the column of labels; by default one of ``LABELS`` if it is there; False for none.
        header: whether the first line names the columns. Without one they are "1", "2" and so on: a
        path and a label. several: how a file has several labels: what is between them, or
        ``LINES``; "": each has one, or a list. one_hot: the columns of which each is a class, with
        a 1 where it is the file's; True: all of zeros and ones. split: the column that says which
        split a file is of.

    Raises:
        LabelsFault: a line can't be understood, or a path occurs twice.
    """
    rows = read_rows(content, form, header=header)
    return make_table(
        rows, form, path, label, header=header, several=several, one_hot=one_hot, split=split
    )


def make_table(  # noqa: PLR0913 - what a recipe says of a table, by keyword
    rows: tuple[Sequence[int], dict[str, list[Any]]],
    form: Form,
    path: str | None = None,
    label: str | bool | None = None,
    *,
    header: bool = True,
    several: str = "",
    one_hot: bool | Sequence[str] = (),
    split: str | None = None,
) -> LabelTable:
    """The table of the ``rows`` of ``read_rows``;
    the other arguments and errors are those of ``parse_labels``.
    """
    lines, columns = rows[0], dict(rows[1])
    if not header or form in ("lines", "words"):
        path = path or "1"
        label = "2" if label is None and path == "1" and "2" in columns else label
    splits = None
    if split is not None:
        splits = [
            None if value is None else str(value)
            for value in columns.pop(_column([*columns], split, (), "splits"))
        ]
    if one_hot:
        wanted = one_hot_columns(columns) if one_hot is True else one_hot
        hot = {name: columns.pop(_column([*columns], name, (), "labels")) for name in wanted}
        columns[_HOT], label = hot_labels(hot, lines), _HOT
    table = _tabulated(lines, columns, path, label, is_text=form not in ("jsonl", "json"))
    if splits is not None:
        table = replace(table, splits=splits)
    if several and table.labels is not None:
        table = _split(table, several)
    if len(set(table.paths)) == len(table.paths):
        return table
    table = _without_repeats(table)
    _refuse_twice(table)
    return table


def _without_repeats(table: LabelTable) -> LabelTable:
    """The table without the lines that say once more what a line before them says."""
    parts = [
        table.paths,
        table.labels or table.paths,
        table.splits or table.paths,
        *table.columns.values(),
    ]
    seen: set[str] = set()
    kept: list[int] = []
    for row, values in enumerate(zip(*parts, strict=True)):
        text = repr(values)
        if text not in seen:
            seen.add(text)
            kept.append(row)
    return table.take(kept)


def open_text(content: bytes, newline: str = "\n") -> io.TextIOWrapper:
    """The text, decoded line by line: as a whole it would take up to four times the memory.

    Raises:
        LabelsFault: it is neither UTF-8 nor UTF-16 with a byte order mark.
    """
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        content.decode("utf-16" if is_wide else "utf-8")
    except UnicodeDecodeError as error:
        raise LabelsFault(content[: error.start].count(b"\n") + 1, "it is not UTF-8") from None
    return io.TextIOWrapper(
        io.BytesIO(content), "utf-16" if is_wide else "utf-8-sig", newline=newline
    )


def read_rows(
    content: bytes, form: Form, *, header: bool = True
) -> tuple[Sequence[int], dict[str, list[Any]]]:
    """The line on which each row of a table starts, and the values of each column: of lines, "1"
    and "2".

    Raises:
        LabelsFault: it can't be understood.
    """
    if form == "jsonl":
        return _read_jsonl(open_text(content))
    if form == "json":
        return _read_json(content)
    start, names, rows, empty = _header(content, form, has_header=header)
    if len(set(names)) != len(names) or "" in names:
        raise LabelsFault(start, "a column has no name, or two have the same")
    lines, columns = array("Q"), {name: list[Any]() for name in names}
    for line, cells in rows:
        if empty and len(cells) == len(names) + empty and not any(cells[len(names) :]):
            cells = cells[: len(names)]
        if len(cells) != len(names):
            raise LabelsFault(line, f"{len(names)} columns expected, {len(cells)} found")
        lines.append(line)
        for cell, values in zip(cells, columns.values(), strict=True):
            values.append(sys.intern(cell.strip()) or None)  # most values occur again
    return lines, columns


_Rows = Iterator[tuple[int, list[str]]]


def _header(content: bytes, form: Form, *, has_header: bool) -> tuple[int, list[str], _Rows, int]:
    """The line and the names of the columns, the rows,
    and how many columns without a name come last.
    """
    readers: dict[Form, Callable[[bytes, Form], _Rows]] = {
        "csv": csv_rows,
        "tsv": csv_rows,
        "spaces": _spaced_rows,
    }
    rows = readers.get(form, _plain_rows)(content, form)
    if form not in readers:
        return 1, ["1", "2"], rows, 0
    start, cells = next(rows, (1, []))
    names = [cell.strip() for cell in cells]
    if not has_header:
        rows = itertools.chain([(start, names)], rows)
        return start, [str(number) for number in range(1, len(names) + 1)], rows, 0
    width = len(names)
    while len(names) > 1 and not names[-1]:  # a spreadsheet's columns without anything in them
        names.pop()
    names[:1] = [name or "index" for name in names[:1]]  # pandas writes its index without a name
    return start, names, rows, width - len(names)


def _plain_rows(content: bytes, form: Form) -> Iterator[tuple[int, list[str]]]:
    """The number of each line with a path and a label."""
    for number, line in enumerate(open_text(content), 1):
        if not line.strip() or COMMENT.match(line):
            continue
        cells = split_line(line, form)
        if not all(cells):
            expected = (
                "path:label" if form == "lines" else "a path and a label, a space between them"
            )
            raise LabelsFault(number, f"expected {expected}, got {line.rstrip()[:80]!r}")
        yield number, [*cells]


def _spaced_rows(content: bytes, form: Form) -> Iterator[tuple[int, list[str]]]:
    """The number of each line and its words; a count of the lines before them is left out.

    A header without a name for the paths, as CelebA's, gets one.
    """
    numbered = enumerate(open_text(content), 1)
    rows = [
        (number, line.split())
        for number, line in numbered
        if line.strip() and not COMMENT.match(line)
    ]
    if len(rows) > 1 and len(rows[0][1]) == 1 and rows[0][1][0].isdigit():
        rows = rows[1:]
    if len(rows) > 1 and len(rows[0][1]) + 1 == len(rows[1][1]):
        rows[0] = (rows[0][0], ["path", *rows[0][1]])
    yield from rows


def split_line(line: str, form: Form) -> tuple[str, str]:
    """Path and label of a line of this form;
    one of them is empty where the line has another form.
    """
    if form == "words":
        path, label = ([*line.strip().rsplit(None, 1), ""])[:2]
    else:
        path, _, label = line.removesuffix("\n").rpartition(":")
    return path.strip(), label.strip()


def delimiter_of(line: str, form: Form) -> str:
    """The separator of this line's columns: a tab, a comma, or a semicolon if it has no comma."""
    if form == "tsv":
        return "\t"
    return ";" if ";" in line and "," not in line else ","


def csv_rows(content: bytes, form: Form) -> Iterator[tuple[int, list[str]]]:
    """The line on which each row of a CSV or TSV starts, and its cells; comments and empty lines
    are left out.

    Raises:
        LabelsFault: it can't be understood.
    """
    file = open_text(content, "")
    skipped, first = 0, file.readline()
    while COMMENT.match(first):
        skipped, first = skipped + 1, file.readline()
    text = itertools.chain([first] if first else [], file)
    reader = csv.reader(text, delimiter=delimiter_of(first, form), strict=True)
    line = 1 + skipped
    try:
        for cells in reader:
            if cells and not COMMENT.match(cells[0]):
                yield line, cells
            line = reader.line_num + 1 + skipped
    except csv.Error as error:
        raise LabelsFault(max(1, reader.line_num + skipped), str(error)) from None


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


def _read_json(content: bytes) -> tuple[Sequence[int], dict[str, list[Any]]]:
    """{path: label}, {path: {column: value}}, {class: [paths]} or [{column: value}]; lines are
    numbers of entries.

    Raises:
        LabelsFault: it is none of these.
    """
    text = open_text(content).read()
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise LabelsFault(getattr(error, "lineno", 1), f"not JSON: {error}") from None
    if isinstance(value, dict) and isinstance(value.get("labels"), (dict, list)):
        value = value["labels"]  # as StyleGAN and FiftyOne write them, with the names of classes
    if (
        isinstance(value, list)
        and value
        and all(isinstance(entry, list) and len(entry) == 2 for entry in value)
    ):
        value = [{"path": path, "label": label} for path, label in value]
    if isinstance(value, dict) and value:
        value = _objects_of(value)
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(entry, dict) for entry in value)
    ):
        raise LabelsFault(1, "expected {path: label}, {class: [paths]} or a list of objects")
    names = dict.fromkeys(name for entry in value for name in entry)
    columns = {name: [entry.get(name) for entry in value] for name in names}
    return range(1, len(value) + 1), columns


def _objects_of(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The rows of an object by path, or by class; None if it is neither."""
    if all(isinstance(entry, dict) for entry in value.values()):
        return [{"path": path, **entry} for path, entry in value.items()]
    if all(isinstance(entry, (str, int)) for entry in value.values()):
        return [{"path": path, "label": label} for path, label in value.items()]
    if not all(isinstance(entry, list) for entry in value.values()):
        return None
    if not all(isinstance(path, str) for entry in value.values() for path in entry):
        return None
    if any(_ENDING.search(name) for name in value):  # by path, with a list of labels each
        return [{"path": path, "label": labels} for path, labels in value.items()]
    return [{"path": path, "label": name} for name, paths in value.items() for path in paths]


def _parse_object(line: str, number: int) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        LabelsFault: it is none, or UTF-8 can't write its texts.
    """
    try:
        row = json.loads(line)
        if "\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise LabelsFault(
            number, "half of a surrogate pair: expected texts that UTF-8 can write"
        ) from None
    except (ValueError, RecursionError) as error:
        raise LabelsFault(number, f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise LabelsFault(number, f"expected an object, got {line.rstrip()[:80]!r}")
    return row


def _tabulated(
    lines: Sequence[int],
    columns: dict[str, list[Any]],
    path: str | None,
    label: str | bool | None,
    is_text: bool,
) -> LabelTable:
    path_column = _column([*columns], path, PATHS, "paths")
    usual = next((name for name in LABELS if name in columns), None) if label is None else None
    label_column = _column([*columns], label, (), "labels") if isinstance(label, str) else usual
    paths = columns.pop(path_column)
    for where, line in zip(paths, lines, strict=True):
        if not isinstance(where, str) or not where:
            raise LabelsFault(line, f"no text in the column of paths, {path_column!r}")
    if label_column == path_column:
        return LabelTable(paths, lines, paths, columns, is_text)
    labels = None if label_column is None else _as_classes(columns.pop(label_column))
    return LabelTable(paths, lines, labels, columns, is_text)


_WHOLE = re.compile(r"(-?\d+)\.0+")
_LIST = re.compile(r"\[.*\]", re.DOTALL)


def _as_classes(labels: list[Any]) -> list[Any]:
    """Labels as classes are: 2.000 is 2, and "['a', 'b']",
    as pandas writes a list, is that list.
    """
    texts = {label for label in labels if isinstance(label, str)}
    if texts and all(map(_WHOLE.fullmatch, texts)):
        return [None if label is None else _WHOLE.sub(r"\1", label) for label in labels]
    if not texts or not all(map(_LIST.fullmatch, texts)):
        return labels
    lists: dict[str, list[str] | None] = {}
    for text in texts:
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return labels
        lists[text] = [str(part) for part in value] or None
    return [None if label is None else lists[label] for label in labels]


_HOT = "labels of columns"  # a name that is used for no longer than it takes to read a table
_ON, _OFF = (
    frozenset(("1", "1.0", "true", "yes")),
    frozenset(("0", "0.0", "-1", "-1.0", "false", "no")),
)


def one_hot_columns(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """The columns that hold nothing but zeros (or -1) and ones, and both of them."""
    found = []
    for name, values in columns.items():
        texts = {
            "0" if value is None else str(value).lower()
            for value in values
            if not isinstance(value, list)
        }
        if texts & _ON and texts & _OFF and texts <= _ON | _OFF:
            found.append(name)
    return found


def hot_labels(columns: Mapping[str, Sequence[Any]], lines: Sequence[int]) -> list[Any]:
    """The class of each row, which is the name of the column that holds its 1; a list of them if a
    row has several.

    Raises:
        LabelsFault: a column holds another value.
    """
    labels: list[list[str]] = [[] for _ in lines]
    for name, values in columns.items():
        for row, value in enumerate(values):
            text = str(value).lower()
            if text in _ON:
                labels[row].append(name)
            elif value is not None and text not in _OFF:
                raise LabelsFault(lines[row], f"{name} is {value!r}: expected 0 or 1")
    if all(len(names) < 2 for names in labels):
        return [names[0] if names else None for names in labels]
    return [names or None for names in labels]


def _split(table: LabelTable, several: str) -> LabelTable:
    """The table with a list of labels in each row:
    of the parts of a cell, or of all lines of a path.
    """
    assert table.labels is not None
    if several != LINES:
        parts = [
            () if label is None else map(str.strip, str(label).split(several))
            for label in table.labels
        ]
        return replace(table, labels=[[*filter(None, each)] or None for each in parts])
    rows: dict[str, list[int]] = {}
    for row, path in enumerate(table.paths):
        rows.setdefault(path, []).append(row)
    shared = {**table.columns, "the split": table.splits or [None] * len(table.paths)}
    for name, values in shared.items():
        for several_rows in rows.values():
            first = several_rows[0]
            if other := next((row for row in several_rows if values[row] != values[first]), 0):
                reason = (
                    f"{name} is {values[other]}, and {values[first]} in line {table.lines[first]}"
                )
                raise LabelsFault(
                    table.lines[other], f"{reason}: expected one for all labels of a file"
                )
    labels = [
        [table.labels[row] for row in several_rows if table.labels[row]]
        for several_rows in rows.values()
    ]
    firsts = table.take([several_rows[0] for several_rows in rows.values()])
    return replace(firsts, labels=[names or None for names in labels])


def _column(header: Sequence[str], wanted: str | None, usual: Sequence[str], what: str) -> str:
    found = next((name for name in ([wanted] if wanted else usual) if name in header), None)
    if found is None:
        expected = repr(wanted) if wanted else "one of " + ", ".join(usual)
        hint = (
            "" if wanted else "; a file without a header needs labels: {file: ..., header: false}"
        )
        raise LabelsFault(
            1,
            f"no column of {what}: expected {expected}, got {', '.join(header) or 'nothing'}{hint}",
        )
    if _ENDING.search(found):
        raise LabelsFault(
            1, f"it names a file, {found}, no columns: write labels: {{file: ..., header: false}}"
        )
    return found


def _refuse_twice(table: LabelTable) -> None:
    if len(set(table.paths)) == len(table.paths):
        return
    first: dict[str, int] = {}
    for path, line in zip(table.paths, table.lines, strict=True):
        if path in first:
            raise LabelsFault(line, f"{path!r} is in line {first[path]} already")
        first[path] = line


def match(
    paths: Sequence[str],
    names: Iterable[str],
    base: AnyPath,
    table: AnyPath,
    strip: str | None = None,
) -> list[int]:
    """The row of the file that each path of a ``table`` means, -1 for none; ``names`` are those of
    the files.

    ``strip`` is taken off the paths first.

    Paths are relative to the source (``base``), or to the folder of the table, or to a folder there
    that has the name of the table, or the first or last word of it (train.csv, train_labels.csv),
    or bare names, else relative to a folder above: that above the labels file, or above the source.
    Then comes what follows the folders that all paths start with, as another machine had them;
    last, a path of folders that ends the name of one file alone. The first way that finds any file
    counts, with letters as they are, then in any case; then the same without the files' endings, as
    VOC's ImageSets have names, and without any: 1.dcm was made 1.png.
    """
    home, near = (os.path.normpath(str(each)) for each in (base, table.parent))
    whole = list(names)
    if strip:
        paths = [path.removeprefix(strip) for path in paths]
    cuts: tuple[tuple[Callable[[str], str], Callable[[str], str]], ...]
    cuts = ((_as_is, _as_is), (without_ending, _as_is), (without_ending, without_ending))
    forms: tuple[Callable[[str], str], ...] = (str, _folded)
    stem = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", without_ending(table.name))
    for (cut, cut_text), form in itertools.product(cuts, forms):
        texts = [form(cut_text(text)) for text in paths]
        for way in _ways(
            [form(cut(name)) for name in whole], form(home), form(near), texts, form(stem)
        ):
            found = [way(text) for text in texts]
            if max(found, default=-1) >= 0:
                return found
    return [-1] * len(paths)


def unique_rows(names: Iterable[str]) -> dict[str, int]:
    """The row of each name, -1 for one that several have."""
    rows: dict[str, int] = {}
    for row, name in enumerate(names):
        rows[name] = -1 if name in rows else row
    return rows


def without_ending(name: str) -> str:
    """The path of a file without its ending."""
    return name.rpartition(".")[0] or name


def _as_is(path: str) -> str:
    return path


def _folded(path: str) -> str:
    return path.replace("\\", "/").lower()


def _ways(
    names: Sequence[str], base: str, near: str, paths: Sequence[str], stem: str
) -> Iterator[Callable[[str], int]]:
    """Functions that find the row that a path means, one after the other;
    ``stem`` is the name of the table.
    """
    rows = unique_rows(names)
    words = re.split(r"[\W_]+", stem)
    tops = {name.partition("/")[0] for name in names if "/" in name}

    def from_folder(folder: object, lead: str = "") -> Callable[[str], int]:
        def find(text: str) -> int:
            path = (
                os.path.normpath(f"{folder}/{rest}")
                if (rest := text.removeprefix(lead))[:1] != "/"
                else rest
            )
            return rows.get(path.removeprefix(f"{base}/"), -1)

        return find

    yield lambda text: rows.get(text.removeprefix("./"), -1)
    yield from_folder(near)
    for word in dict.fromkeys((stem, words[0], words[-1])):
        if word in tops:
            yield from_folder(f"{base}/{word}")
        if near != base:
            yield from_folder(f"{near}/{word}")
    bare = unique_rows(name.rpartition("/")[2] for name in names)
    yield lambda text: bare.get(text, -1)
    yield from_folder(Path(near).parent)
    yield from_folder(Path(base).parent)
    first, other = (
        path.split("/")[:-1] for path in (min(paths, default=""), max(paths, default=""))
    )
    for count in range(1, min(len(first), len(other)) + 1):
        if first[:count] != other[:count]:
            break
        lead = "/".join((*first[:count], ""))
        yield from_folder(base, lead)
        yield from_folder(near, lead)
    deep = {text.count("/") for text in paths if "/" in text}
    ends = {
        count: unique_rows("/".join(name.split("/")[-count - 1 :]) for name in names)
        for count in deep
    }
    yield lambda text: ends[text.count("/")].get(text, -1) if "/" in text else -1


# values -------------------------------------------------------------------------------------------


def typed(
    values: Sequence[Any], lines: Sequence[int], is_text: bool, kind: Kind | None = None
) -> tuple[Kind, list[Any]]:
    """The values of a column as one kind, and that kind: the one asked for, or the narrowest that
    fits all.

    A list stays one; None stays None. Texts that are all whole numbers are int64, all numbers
    float: but one that starts with a needless zero (a postcode) makes them texts.

    Raises:
        LabelsFault: a value that is not of that kind, or no value of a record.
    """
    firsts: dict[tuple[type, Any], int] = {}  # the line of each value: the first one
    for value, line in zip(values, lines, strict=True):
        for each in _flat(value):
            if not isinstance(each, (str, int, float)):
                what = (
                    f"a value of type {type(each).__name__}: expected text, a number, "
                    "or a list of them"
                )
                raise LabelsFault(line, what)
            firsts.setdefault((type(each), each), line)
    kind = kind or _narrowest(firsts, is_text)
    known = {key: _single(key[1], line, kind, is_text) for key, line in firsts.items()}

    def convert(each: Any) -> Any:
        return (
            known[type(each), each] if is_text else _single(each, 0, kind, is_text)
        )  # 0.0 and -0.0 are one key

    return kind, [
        None
        if value is None
        else [convert(each) for each in value]
        if isinstance(value, list)
        else convert(value)
        for value in values
    ]


def _narrowest(firsts: Mapping[tuple[type, Any], int], is_text: bool) -> Kind:
    kinds = {_kind(value, is_text) for _, value in firsts}
    if "bytes" in kinds and len(kinds) > 1 and not is_text:
        raise LabelsFault(
            min(line for (sort, _), line in firsts.items() if sort is str),
            "a text, where other lines have numbers",
        )
    return next((kind for kind in _KINDS if kind in kinds), "bytes")


_KINDS: tuple[Kind, ...] = ("bytes", "float", "int64")


def _flat(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else () if value is None else (value,)


def flat_labels(labels: Iterable[Any]) -> list[Any]:
    """The labels of all lists and single values; None is none."""
    return list(itertools.chain.from_iterable(map(_flat, labels)))


def _kind(value: Any, is_text: bool) -> Kind:
    if not is_text:
        return "bytes" if isinstance(value, str) else "int64" if isinstance(value, int) else "float"
    is_padded = len(value) > 1 and value[0] == "0" and value[1].isdigit()
    is_float = value.lower() == "nan" or (not is_padded and _FLOAT.fullmatch(value))
    return "int64" if _INT.fullmatch(value) else "float" if is_float else "bytes"


def _single(value: Any, line: int, kind: Kind, is_text: bool) -> Any:
    found = _kind(value, is_text)
    if kind == "bytes" and (is_text or found == "bytes"):
        return value
    if kind == "int64" and found == "int64":
        if (is_text and len(value) > 20) or not -(1 << 63) <= int(value) < 1 << 63:
            raise LabelsFault(line, f"{str(value)[:40]} is beyond 64 bits")
        return int(value)
    if kind == "float" and found != "bytes":
        with contextlib.suppress(OverflowError):
            number = float(value)
            is_infinity = isinstance(value, float) and math.isinf(value)
            if not abs(number) > _LARGEST or is_infinity:
                return number
        raise LabelsFault(line, f"{str(value)[:40]} is beyond 32-bit floats")
    raise LabelsFault(
        line, f"{str(value)[:80]!r} is not of type {'text' if kind == 'bytes' else kind}"
    )
