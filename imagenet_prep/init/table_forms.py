"""A text -> TableForm: how it is written, and which of its columns are the paths,
the labels and the splits.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.init.column_words import Columns
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.label_columns import (
    Candidate,
    class_candidates,
    distinct_candidates,
    names_beside,
    usual_column,
)
from imagenet_prep.init.split_columns import SplitColumn, find_split_column
from imagenet_prep.recipes import labels_file, table_rows, typed_values
from imagenet_prep.recipes.joined_tables import family_of
from imagenet_prep.recipes.labels_file import LABELS, PATHS, LabelTable
from imagenet_prep.recipes.path_matching import without_ending
from imagenet_prep.recipes.path_parts import base_name, composed
from imagenet_prep.recipes.table_rows import Form, LabelsFault, form_of

_PROBED = 50  # lines that tell the form of a file
_FORMS: tuple[Form, ...] = ("lines", "csv", "tsv", "words", "spaces")
_COLUMNS = ("csv", "tsv", "spaces")


class Sought(Struct, frozen=True):
    """The images whose labels are sought.

    Args:
        folder: the folder of the data.
        items: the images in it.
        known_names: their names without folders, in lower case; or other names that they may have
            in a table.
        options: the columns that the user names.
        is_cut: whether paths of a table count without their endings, as the known names are.
        is_packed: whether the images are in tars.
    """

    folder: Path
    items: Sequence[str]
    known_names: frozenset[str]
    options: InitOptions = InitOptions()
    is_cut: bool = False
    is_packed: bool = False

    def command(self, **changes: object) -> str:
        """The command of init for the folder, with these options in place of others."""
        return self.options.command(self.folder, **changes)


def last_name(path: str) -> str:
    """The name of a file or a folder without the folders above it, in lower case."""
    posix_path = path.replace("\\", "/").rstrip("/")
    file_name = posix_path.rpartition("/")[2]
    return composed(file_name).lower()


class TableForm(Struct):
    """How a file is written.

    Args:
        form: its format.
        header: whether its first line names columns.
        several: how it gives an image several labels.
        path: the column of paths that a recipe must name.
        column: the column of paths.
        label: the column of labels that a recipe must name; False: there is none.
        one_hot: the columns of labels, if each is a class.
        splits: the column of splits.
        label_option: the columns of labels that are taken, as --label has them.
        candidates: the columns that can be the classes, where none of them is taken.
        image_columns: the columns that name images equally well, if there are several.
        class_names: the name of each class, by its number, where another column has them.
    """

    form: Form
    header: bool
    several: str
    path: str | None = None
    column: str = ""
    label: str | bool | None = None
    one_hot: Sequence[str] = ()
    splits: SplitColumn | None = None
    label_option: str = ""
    candidates: Sequence[Candidate] = ()
    image_columns: Sequence[str] = ()
    class_names: Mapping[str, str] = {}

    @property
    def split(self) -> str | None:
        """The column that a recipe must name as that of splits."""
        if self.splits is None or not self.splits.is_sure:
            return None
        return self.splits.name

    def options(self, name: str) -> dict[str, Any]:
        """The keys of `labels` in a recipe, except for the name of the file."""
        keys: dict[str, Any] = {}
        if self.form != form_of(name):
            keys["format"] = self.form
        if self.form in _COLUMNS and not self.header:
            keys["header"] = False
        if self.path is not None:
            keys["path"] = self.path
        if self.label is not None:
            keys["label"] = self.label
        if self.one_hot:
            keys["one_hot"] = list(self.one_hot)
        if self.split is not None:
            keys["split"] = self.split
        if self.several:
            keys["several"] = self.several
        return keys


# how it is written --------------------------------------------------------------------------------


def probe_form(
    content: bytes, name: str, known_names: frozenset[str], several: str = ""
) -> TableForm:
    """The form in which most of the first lines name images, and whether the first line does."""
    usual_form = form_of(name)
    if usual_form in ("jsonl", "json"):
        return TableForm(usual_form, header=True, several=several)
    lines = list(itertools.islice(_lines_of(content), _PROBED))
    hits: dict[Form, list[bool]] = {}
    for possible_form in _possible_forms(usual_form):
        hits[possible_form] = [_names_image(line, possible_form, known_names) for line in lines]
    form = max(hits, key=lambda form: (sum(hits[form]), form == usual_form))
    if form == "words" and _are_spaced_columns(lines):
        form = "spaces"
    first_line = 0
    if form == "spaces" and lines[0].strip().isdigit():
        first_line = 1  # after the number of lines
    header = hits[form][first_line : first_line + 1] != [True]
    return TableForm(form, header=header, several=several)


def _lines_of(content: bytes) -> Iterable[str]:
    """The lines of a text that are neither empty nor comments."""
    for line in table_rows.open_text(content):
        if line.strip() and not table_rows.COMMENT.match(line):
            yield line


def _possible_forms(usual_form: Form) -> Sequence[Form]:
    """The forms that a text of this ending may have."""
    if usual_form == "csv":
        return "csv", "tsv"
    if usual_form == "tsv":
        return ("tsv",)
    return _FORMS


def _are_spaced_columns(lines: Sequence[str]) -> bool:
    """Whether all lines have as many words, except for a count and a header at the start."""
    is_wide = any(len(line.split()) > 2 for line in lines)
    if not is_wide and not lines[0].strip().isdigit():
        return False
    word_counts = {len(line.split()) for line in lines[2:]}
    return len(word_counts) == 1 and min(word_counts) > 1


def _names_image(line: str, form: Form, known_names: frozenset[str]) -> bool:
    if form in ("lines", "words"):
        path, label = table_rows.split_line(line, form)
        return bool(label) and last_name(path) in known_names
    delimiter: str | None = None
    if form != "spaces":
        delimiter = table_rows.delimiter_of(line, form)
    cells = line.split(delimiter)
    if len(cells) < 2:
        return False
    texts = [cell.strip().strip('"') for cell in cells]
    return any(last_name(text) in known_names for text in texts)


# which columns it has -----------------------------------------------------------------------------

_Rows = tuple[Sequence[int], dict[str, list[Any]]]
"""The number of each line, and the columns."""


def parse_table(content: bytes, form: TableForm, name: str, sought: Sought) -> LabelTable | None:
    """The table, with the column that names most images as that of paths; None if no column names
    one.

    The form gets the columns that are taken.

    Raises:
        LabelsFault: a line can't be understood, or a path occurs twice.
    """
    rows, hits = _read_rows(content, form, sought)
    _, columns = rows
    if not any(hits.values()):
        return None
    if form.form in ("lines", "words"):
        if not hits["1"]:
            return None
        return _parse_list(rows, form, name)
    _choose_paths(form, columns, hits, sought.options)
    _choose_labels(form, columns, sought.options, name)
    table = _make_table(rows, form)
    if form.label_option and not form.one_hot and class_values(table) is None:
        # numbers with a fraction, for example
        form.label, form.label_option, form.class_names = False, "", {}
        table = _make_table(rows, form)
    return table


def _read_rows(content: bytes, form: TableForm, sought: Sought) -> tuple[_Rows, dict[str, int]]:
    """The rows, and how many images each column names; the rows' own numbers are a column if only
    they name images.
    """
    rows = table_rows.read_rows(content, form.form, header=form.header)
    hits = _hits_of(rows, sought)
    if not any(hits.values()) and table_rows.count_row_numbers(content, form.form):
        rows = table_rows.read_rows(content, form.form, header=form.header, keeps_numbers=True)
        hits = _hits_of(rows, sought)
    return rows, hits


def _hits_of(rows: _Rows, sought: Sought) -> dict[str, int]:
    """How many images each column names."""
    _, columns = rows
    return {column: _count_images(cells, sought) for column, cells in columns.items()}


def _parse_list(rows: _Rows, form: TableForm, name: str) -> LabelTable:
    """A list of paths, each with a label; or with a split, if its name says so."""
    table = labels_file.make_table(rows, form.form, several=form.several)
    splits = _splits_of_list(name, table)
    if splits is not None:
        form.splits, form.label = splits, False
        columns = {splits.name: table.labels or []}
        return replace(table, labels=None, columns=columns)
    form.label = None
    if class_values(table) is None:
        form.label = False
    return table


_OF_SPLITS = frozenset(("partition", "partitions", "split", "splits"))


def _splits_of_list(name: str, table: LabelTable) -> SplitColumn | None:
    """The splits that a list gives in place of classes, if it is called so,
    as list_eval_partition.txt is.
    """
    family = family_of(base_name(name))
    if _OF_SPLITS.isdisjoint(family) or table.labels is None:
        return None
    column = find_split_column({"split": table.labels}, {})
    if column is None:
        return None
    return replace(column, name="2")


def _make_table(rows: _Rows, form: TableForm) -> LabelTable:
    several = form.several if form.label_option else ""
    return labels_file.make_table(
        rows,
        form.form,
        form.path,
        form.label,
        header=form.header,
        several=several,
        one_hot=form.one_hot,
        split=form.split,
    )


def _count_images(cells: Iterable[Any], sought: Sought) -> int:
    """How many different images a column names."""
    texts = {cell for cell in cells if isinstance(cell, str)}
    if sought.is_cut:
        texts = {without_ending(text) for text in texts} - texts
    return sum(last_name(text) in sought.known_names for text in texts)


def _choose_paths(
    form: TableForm, columns: Columns, hits: Mapping[str, int], options: InitOptions
) -> None:
    """Take the column that names most images; those that name half as many
    are other ways to read the table.
    """
    usual_names = PATHS if form.header else ("1",)
    usual_name = next((name for name in usual_names if name in columns), None)
    column = max(columns, key=lambda name: (hits[name], name == usual_name))
    if options.image is not None and hits.get(options.image):
        column = options.image
    elif column != usual_name or not form.header:
        rivals = [name for name in columns if 2 * hits[name] >= hits[column]]
        form.image_columns = ()
        if len(rivals) > 1:
            form.image_columns = rivals
    form.column = column
    form.path = None if column == usual_name else column


def _choose_labels(form: TableForm, columns: Columns, options: InitOptions, name: str) -> None:
    """Take the column of labels: the one that is asked for, the one that is called so,
    or the only one that can be.
    """
    others = {column: columns[column] for column in columns if column != form.column}
    for column in form.image_columns:
        others.pop(column, None)
    form.splits = find_split_column(others, options.splits)
    if form.splits is not None:
        others.pop(form.splits.name)
    if "submission" in base_name(name).lower():
        form.label = False  # an example of what to hand in: its labels are no more than that
        return
    label_columns = _columns_of_option(options.label, columns, name)
    if label_columns is not None:
        _take_labels(form, columns, label_columns)
        return
    if options.label is not None and options.label != name:
        form.label = False
        return
    usual_label = _usual_label(form, columns, others)
    if usual_label is not None:
        _take_labels(form, others, [usual_label])
    else:
        _choose_candidate(form, others)


def _columns_of_option(label: str | None, columns: Columns, name: str) -> list[str] | None:
    """The columns that --label names, alone or after the name of a table; None if they are not
    those of this one.
    """
    if label is None:
        return None
    table_name, colon, column = label.rpartition(":")
    if colon and table_name != name and family_of(table_name) != family_of(name):
        return None
    names = [column] if column in columns else column.split(",")
    if any(name not in columns for name in names):
        return None
    return names


def _usual_label(form: TableForm, columns: Columns, others: Columns) -> str | None:
    """The column that is called label or class; without a header, the second of two."""
    if form.header:
        return usual_column(others, form.column)
    if len(columns) == 2 and form.path is None:
        return "2"
    return None


def _choose_candidate(form: TableForm, columns: Columns) -> None:
    """Take the only column that can be the classes; several are a question."""
    candidates = class_candidates(columns, form.column)
    candidates = distinct_candidates(candidates, columns)
    form.label = False
    if len(candidates) == 1 and not candidates[0].is_doubtful:
        _take_labels(form, columns, candidates[0].columns)
    else:
        form.candidates = candidates


def _take_labels(form: TableForm, columns: Columns, names: Sequence[str]) -> None:
    """Take a column as that of labels, or several as one-hot."""
    form.label_option = ",".join(names)
    if len(names) > 1:
        form.one_hot, form.label = names, None
        return
    name = names[0]
    form.label = None if name == _default_label(form, columns) else name
    names_column = names_beside(columns, name)
    if names_column is not None:
        pairs = zip(columns[name], columns[names_column], strict=True)
        pairs_in_order = sorted(pairs, key=lambda pair: int(pair[0]))
        form.class_names = {str(number): class_name for number, class_name in pairs_in_order}


def _default_label(form: TableForm, columns: Columns) -> str | None:
    """The column of labels that a recipe need not name."""
    if form.header:
        return next((name for name in LABELS if name in columns), None)
    return "2" if form.path is None else None


LABEL_VALUES = "only texts, or only whole numbers of 64 bits"
"""What ``class_values`` takes, for messages."""


def class_values(table: LabelTable) -> list[Any] | None:
    """The labels of a table, if they can be classes: in a list, each is once."""
    if table.labels is None:
        return None
    lines = table.lines if table.labels else ()
    with contextlib.suppress(LabelsFault):
        kind, values = typed_values.typed(table.labels, lines, table.is_text)
        lists = (value for value in values if isinstance(value, list))
        if kind != "float" and all(len(set(labels)) == len(labels) for labels in lists):
            return values
    return None
