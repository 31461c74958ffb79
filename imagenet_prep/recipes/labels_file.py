"""LabelTable, made of the rows of a labels file: a path, labels and other values in each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.recipes.label_cells import (
    are_same,
    as_classes,
    labels_of_cells,
    parts_of_cell,
    shown_value,
)
from imagenet_prep.recipes.one_hot_labels import NO_HOT_COLUMN, hot_labels, one_hot_columns
from imagenet_prep.recipes.row_numbers import names_an_index
from imagenet_prep.recipes.table_rows import (
    FILE_ENDING,
    Form,
    HeaderFault,
    LabelsFault,
    SameNameFault,
    read_header,
    read_rows,
)
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed

PATHS = ("path", "filename", "file", "image")
"""Names under which a column of paths is recognised, where none is named;
the first that is there.
"""

LABELS = ("label", "class")
"""The same for the labels."""

LINES = "lines"
"""A file has several labels: a line for each."""

Unit = Literal["line", "entry"]
"""The numbers of rows count the lines of a file, or the entries of a JSON document."""

NO_LABEL = -1
"""A number in place of a label that is no class, as in Hugging Face's data sets."""

_NAME_COLUMN = "name it in the recipe: labels: {file: ..., path: COLUMN}"
_CORRECT_NAME = "correct the name in the recipe, or in the file"
_CORRECT_RECIPE = "correct `labels` in the recipe"
_WITHOUT_HEADER = "a file without a header needs labels: {file: ..., header: false}"


class LabelTable(Struct, frozen=True):
    """The content of a labels file: a path, a line number and a value of every column a row; None
    for no value.

    ``labels`` is None if the file has no column of labels. Values of CSV and TSV are texts until
    ``typed``. ``words`` are those of labels that are numbers, where the file has them,
    ``class_names`` the names of these classes, if they are others. ``of_samples``: the images are
    in the same files. ``splits``: the value of the column that says which split a row is of.
    ``sections``: where the lines of each of several files start, the file, and the unit of its
    lines. ``unit``: that of the numbers in ``lines`` of a single file.
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
    sections: Sequence[tuple[int, AnyPath, Unit]] = ()
    unit: Unit = "line"

    @property
    def is_several(self) -> bool:
        """Whether a file may have several labels."""
        return any(isinstance(label, list) for label in self.labels or ())

    def take(self, rows: Sequence[int]) -> LabelTable:
        """The table of some of its rows, in their order; a row can come several times."""
        paths = [self.paths[row] for row in rows]
        lines = [self.lines[row] for row in rows]
        labels: list[Any] | None = None
        if self.labels is not None:
            labels = [self.labels[row] for row in rows]
        splits: list[str | None] | None = None
        if self.splits is not None:
            splits = [self.splits[row] for row in rows]
        columns: dict[str, list[Any]] = {}
        for name, column in self.columns.items():
            columns[name] = [column[row] for row in rows]
        return replace(
            self, paths=paths, lines=lines, labels=labels, splits=splits, columns=columns
        )

    def place(self, path: object, line: int) -> str:
        """A line of the file, or the sample of that number, for messages."""
        if self.of_samples:
            return f"sample {self.paths[line - 1]}"
        number = line
        unit = self.unit
        for start, section, section_unit in self.sections:
            if line > start:
                path = section
                number = line - start
                unit = section_unit
        return f"{path}, {unit} {number}"

    def paths_of_files(self, path: AnyPath) -> list[AnyPath]:
        """The files of a table that was read from ``path``, or from several files."""
        return list(dict.fromkeys(section for _, section, _ in self.sections)) or [path]


def _unit_of(form: Form) -> Unit:
    """The unit of the numbers of a table: lines of a file, or entries of a JSON document."""
    return "entry" if form == "json" else "line"


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
            path and a label.
        several: how a file has several labels: what is between them, or ``LINES``; "": each has
            one, or a list.
        one_hot: the columns of which each is a class, with a 1 where it is the file's; True: all of
            zeros and ones.
        split: the column that says which split a file is of.

    Raises:
        LabelsFault: a line can't be understood, or a path occurs twice.
    """
    try:
        named = [path, label, split, *(one_hot if isinstance(one_hot, (list, tuple)) else ())]
        rows = read_rows(content, form, header=header, keeps_numbers=names_an_index(named))
    except SameNameFault as fault:
        raise LabelsFault(fault.line, f"{fault.reason}; {_WITHOUT_HEADER}") from fault
    try:
        return make_table(
            rows, form, path, label, header=header, several=several, one_hot=one_hot, split=split
        )
    except LabelsFault as fault:
        fault.unit = _unit_of(form)
        if isinstance(fault, HeaderFault) and header:
            fault.line = _line_of_header(content, form)
        raise


def _line_of_header(content: bytes, form: Form) -> int:
    """The line that names the columns, after comments and the like; 0 in a form without one."""
    if form not in ("csv", "tsv", "spaces"):
        return 0
    line, *_ = read_header(content, form, has_header=True)
    return line


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
    lines, columns_by_name = rows
    columns = dict(columns_by_name)
    if not header or form in ("lines", "words"):
        path, label = _numbered_columns(columns, path, label)
    is_text = form not in ("jsonl", "json")
    if not columns:
        return LabelTable([], lines, None, {}, is_text)
    path = _column([*columns], path, PATHS, "path", may_lack_header=is_text)
    hot_names = one_hot if isinstance(one_hot, (list, tuple)) else ()
    _refuse_two_purposes(path, split, [*hot_names, *([label] if isinstance(label, str) else [])])
    splits = None if split is None else _take_splits(columns, split)
    if one_hot:
        _join_hot_columns(columns, hot_names, lines)
        label = _HOT
    table = _build_table(lines, columns, path, label, is_text)
    table = replace(table, unit=_unit_of(form), splits=splits)
    if several and table.labels is not None:
        table = _with_several(table, several)
    if _has_repeats(table):
        table = _without_repeats(table)
        _refuse_twice(table)
    return table


def _numbered_columns(
    columns: Mapping[str, object], path: str | None, label: str | bool | None
) -> tuple[str, str | bool | None]:
    """The columns of paths and labels in a table without a header, which are the first two by
    default.
    """
    path = path or "1"
    if label is None and path == "1" and "2" in columns:
        label = "2"
    return path, label


def _join_hot_columns(
    columns: dict[str, list[Any]], names: Sequence[str], lines: Sequence[int]
) -> None:
    """Put one column of labels in place of the one-hot ones: these ``names``, or all that look so.

    Raises:
        LabelsFault: there is none.
    """
    names = names or one_hot_columns(columns)
    if not names:
        raise HeaderFault(0, NO_HOT_COLUMN)
    hot_columns = _take_columns(columns, names)
    columns[_HOT] = hot_labels(hot_columns, lines)


def _has_repeats(table: LabelTable) -> bool:
    """Whether a path occurs in several rows."""
    distinct_paths = set(table.paths)
    return len(distinct_paths) < len(table.paths)


def _refuse_two_purposes(path: str, split: str | None, labels: Sequence[str]) -> None:
    """Raise LabelsFault for a column of splits that is another one, too, or of labels that is named
    twice.
    """
    purposes = {path: "the paths"} | dict.fromkeys(labels, "the labels")
    if split in purposes:
        both = f"the splits and of {purposes[split]}"
        reason = f"the recipe's `labels` names {split!r} as the column of {both}"
        raise HeaderFault(0, f"{reason}: expected a column for each", _CORRECT_RECIPE)
    for name, count in Counter(labels).items():
        if count > 1:
            reason = f"the recipe's `one_hot` names the column {name!r} {count:,} times"
            raise HeaderFault(0, f"{reason}: expected once", _CORRECT_RECIPE)


def _take_columns(columns: dict[str, list[Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    """The columns of labels with these names, which are no other columns then."""
    taken_columns: dict[str, list[Any]] = {}
    header = [*columns]
    for name in names:
        column_name = _column(header, name, (), "one_hot")
        taken_columns[name] = columns.pop(column_name)
    return taken_columns


def _take_splits(columns: dict[str, list[Any]], split: str) -> list[str | None]:
    """The column of splits as texts, which is no other column then."""
    column_name = _column([*columns], split, (), "split")
    column = columns.pop(column_name)
    return [None if value is None else str(value) for value in column]


def _without_repeats(table: LabelTable) -> LabelTable:
    """The table without the lines that say once more what a line before them says."""
    labels = table.labels or table.paths
    splits = table.splits or table.paths
    columns = [table.paths, labels, splits, *table.columns.values()]
    row_texts: set[str] = set()
    new_rows: list[int] = []
    for row, cells in enumerate(zip(*columns, strict=True)):
        row_text = repr(cells)
        if row_text not in row_texts:
            row_texts.add(row_text)
            new_rows.append(row)
    return table.take(new_rows)


def _build_table(
    lines: Sequence[int],
    columns: dict[str, list[Any]],
    path: str,
    label: str | bool | None,
    is_text: bool,
) -> LabelTable:
    """The table whose ``columns`` lose those of paths and labels: ``path``, and the one that
    ``label`` chooses as in ``parse_labels``.
    """
    path_column = _column([*columns], path, (), "path", may_lack_header=is_text)
    label_column = _find_label_column([*columns], label, may_lack_header=is_text)
    paths = columns.pop(path_column)
    for cell, line in zip(paths, lines, strict=True):
        if not isinstance(cell, str) or not cell:
            raise LabelsFault(line, f"the column {path_column!r} has no path")
    labels: list[Any] | None = None
    if label_column == path_column:  # one column has both
        labels = paths
    elif label_column is not None:
        written_labels = columns.pop(label_column)
        labels = as_classes(labels_of_cells(written_labels))
    return LabelTable(paths, lines, labels, columns, is_text)


def _find_label_column(
    names: Sequence[str], label: str | bool | None, *, may_lack_header: bool
) -> str | None:
    """The column of labels: the one that ``label`` names, or with None one of ``LABELS``;
    None if there is none.
    """
    if isinstance(label, str):
        return _column(names, label, (), "label", may_lack_header=may_lack_header)
    if label is None:
        return next((name for name in LABELS if name in names), None)
    return None


_HOT = "labels of columns"  # a name that is used for no longer than it takes to read a table


def _with_several(table: LabelTable, several: str) -> LabelTable:
    """The table with a list of labels in each row:
    of the parts of a cell, or of all lines of a path.
    """
    assert table.labels is not None
    if several == LINES:
        return _one_row_a_path(table)
    labels = [parts_of_cell(label, several) for label in table.labels]
    return replace(table, labels=labels)


def _one_row_a_path(table: LabelTable) -> LabelTable:
    """The table with the labels of all lines of a path in one row.

    Raises:
        LabelsFault: these lines differ in another column.
    """
    assert table.labels is not None
    rows_of_path: dict[str, list[int]] = {}
    for row, path in enumerate(table.paths):
        rows_of_path.setdefault(path, []).append(row)
    shared_columns: dict[str, Sequence[Any]] = {**table.columns}
    if table.splits:
        shared_columns["the split"] = table.splits
    for name, column in shared_columns.items():
        for rows in rows_of_path.values():
            _refuse_unequal(table, name, column, rows)
    labels: list[list[Any] | None] = []
    first_rows: list[int] = []
    for rows in rows_of_path.values():
        path_labels = [table.labels[row] for row in rows if table.labels[row]]
        labels.append(path_labels or None)
        first_rows.append(rows[0])
    return replace(table.take(first_rows), labels=labels)


def _refuse_unequal(
    table: LabelTable, name: str, column: Sequence[Any], rows: Sequence[int]
) -> None:
    """Raise LabelsFault if the rows of one path have several values in a column."""
    first_row = rows[0]
    first_value = column[first_row]
    for row in rows[1:]:
        value = column[row]
        if are_same(first_value, value):
            continue
        first_line = table.lines[first_row]
        first_place = f"{table.unit} {first_line}"
        reason = f"{name} is {shown_value(value)}, and {shown_value(first_value)} in {first_place}"
        path = table.paths[row]
        hint = ""
        if name in table.columns:
            hint = (
                f"write one value in all lines of {path}, or remove the column {name} from the file"
            )
        raise LabelsFault(table.lines[row], f"{reason}: expected one value for {path}", hint)


def _column(
    header: Sequence[str],
    name: str | None,
    usual: Sequence[str],
    key: str,
    *,
    may_lack_header: bool = False,
) -> str:
    """The column of this name, or of the first usual name; raises LabelsFault if there is none.

    ``key`` of the recipe's labels has the name; ``may_lack_header``: the first line may be a row.
    """
    candidates = [name] if name else usual
    column = next((candidate for candidate in candidates if candidate in header), None)
    if column is None:
        columns = listed(header, 20) or "nothing"
        if name:
            problem = f"the recipe's labels.{key} names the column {name}, which the file lacks"
            raise HeaderFault(0, f"{problem}: expected one of {columns}", _CORRECT_NAME)
        expected = f"expected one of {', '.join(usual)}, got {columns}"
        hint = f"{_NAME_COLUMN}; {_WITHOUT_HEADER}" if may_lack_header else _NAME_COLUMN
        raise HeaderFault(0, f"no column has a usual name for the paths of files: {expected}", hint)
    if may_lack_header and FILE_ENDING.search(column):
        raise HeaderFault(
            0,
            f"the recipe's labels.{key} names the column {column}, which looks like a file",
            f"if the file has no header, write labels: {{file: ..., header: false}} without {key}",
        )
    return column


def _refuse_twice(table: LabelTable) -> None:
    """Raise LabelsFault if a path occurs in several rows."""
    line_of_path: dict[str, int] = {}
    for path, line in zip(table.paths, table.lines, strict=True):
        if path in line_of_path:
            first_place = f"{table.unit} {line_of_path[path]}"
            hint = ""
            if table.labels is not None:
                hint = (
                    "remove one of these lines; or, if a file has several labels, "
                    "write labels: {file: ..., several: lines}"
                )
            raise LabelsFault(line, f"{path!r} is in {first_place} already", hint)
        line_of_path[path] = line
