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

from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.label_columns import (
    Candidate,
    Columns,
    SplitColumn,
    class_candidates,
    distinct_candidates,
    names_beside,
    split_column,
    usual_column,
)
from imagenet_prep.recipes import labels_file, path_matching, typed_values
from imagenet_prep.recipes.joined_tables import family_of
from imagenet_prep.recipes.labels_file import LABELS, PATHS, Form, LabelsFault, LabelTable, form_of

_PROBED = 50  # lines that tell the form of a file
_FORMS: tuple[Form, ...] = ("lines", "csv", "tsv", "words", "spaces")
_COLUMNS = ("csv", "tsv", "spaces")


class Sought(Struct, frozen=True):
    """The images whose labels are sought.

    Args:
        folder: the folder of the data.
        items: the images in it.
        known: their names without folders, in lower case; or other names that they may have in a
            table.
        options: the columns that the user names.
        is_cut: whether paths of a table count without their endings, as the known names are.
    """

    folder: Path
    items: Sequence[str]
    known: frozenset[str]
    options: InitOptions = InitOptions()
    is_cut: bool = False


def last_name(path: str) -> str:
    """The name of a file or a folder without the folders above it, in lower case."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()


class TableForm(Struct):
    """How a file is written; ``column`` is that of paths,
    ``path`` and ``label`` are what a recipe must name.
    """

    form: Form
    header: bool
    several: str
    path: str | None = None
    column: str = ""
    label: str | bool | None = None
    one_hot: Sequence[str] = ()
    splits: SplitColumn | None = None
    taken: str = ""
    candidates: Sequence[Candidate] = ()
    images: Sequence[str] = ()
    names: Mapping[str, str] = {}

    @property
    def split(self) -> str | None:
        """The column that a recipe must name as that of splits."""
        return self.splits.name if self.splits is not None and self.splits.is_sure else None

    def options(self, where: str) -> dict[str, Any]:
        """The keys of `labels` in a recipe, except for the name of the file."""
        has_columns = self.form in _COLUMNS
        found: dict[str, Any] = {
            "format": self.form if self.form != form_of(where) else None,
            "header": False if has_columns and not self.header else None,
            "path": self.path,
            "label": self.label,
            "one_hot": list(self.one_hot) or None,
            "split": self.split,
            "several": self.several or None,
        }
        return {key: value for key, value in found.items() if value is not None}


def probe_form(content: bytes, where: str, known: frozenset[str], several: str = "") -> TableForm:
    """The form in which most of the first lines name images, and whether the first line does."""
    usual = form_of(where)
    if usual in ("jsonl", "json"):
        return TableForm(usual, header=True, several=several)
    lines = (
        line
        for line in labels_file.open_text(content)
        if line.strip() and not labels_file.COMMENT.match(line)
    )
    first = list(itertools.islice(lines, _PROBED))
    forms: Sequence[Form] = (
        ("csv", "tsv") if usual == "csv" else ("tsv",) if usual == "tsv" else _FORMS
    )
    hits = {form: [_names_image(line, form, known) for line in first] for form in forms}
    best = max(forms, key=lambda form: (sum(hits[form]), form == usual))
    is_wide = any(len(line.split()) > 2 for line in first)
    if best == "words" and (is_wide or first[0].strip().isdigit()) and _are_even(first):
        best = "spaces"
    is_counted = best == "spaces" and first[0].strip().isdigit()
    return TableForm(
        best, header=hits[best][is_counted : is_counted + 1] != [True], several=several
    )


def _are_even(lines: Sequence[str]) -> bool:
    """Whether all lines have as many words, except for a count and a header at the start."""
    counts = {len(line.split()) for line in lines[2:]}
    return len(counts) == 1 and min(counts) > 1


def _names_image(line: str, form: Form, known: frozenset[str]) -> bool:
    if form in ("lines", "words"):
        path, label = labels_file.split_line(line, form)
        return bool(label) and last_name(path) in known
    cells = line.split() if form == "spaces" else line.split(labels_file.delimiter_of(line, form))
    return len(cells) > 1 and any(last_name(cell.strip().strip('"')) in known for cell in cells)


def parse_table(
    content: bytes, reading: TableForm, where: str, sought: Sought
) -> LabelTable | None:
    """The table, with the column that names most images as that of paths; None if no column names
    one.

    The form gets the columns that are taken.

    Raises:
        LabelsFault: a line can't be understood, or a path occurs twice.
    """
    form, header, several = reading.form, reading.header, reading.several
    rows = labels_file.read_rows(content, form, header=header)
    columns = rows[1]
    hits = {name: _count_images(values, sought) for name, values in columns.items()}
    if not any(hits.values()):
        return None
    if form in ("lines", "words"):
        table = labels_file.make_table(rows, form, several=several) if hits["1"] else None
        if table is not None and (splits := _splits_of_list(where, table)) is not None:
            reading.splits, reading.label = splits, False
            return replace(table, labels=None, columns={splits.name: table.labels or []})
        reading.label = False if table is not None and class_values(table) is None else None
        return table
    _choose_paths(reading, columns, hits, sought.options)
    _choose_labels(reading, columns, sought.options, where)
    table = _table(rows, reading)
    if (
        reading.taken and not reading.one_hot and class_values(table) is None
    ):  # numbers with a fraction, for example
        reading.label, reading.taken, reading.names = False, "", {}
        table = _table(rows, reading)
    return table


_OF_SPLITS = frozenset(("partition", "partitions", "split", "splits"))


def _splits_of_list(where: str, table: LabelTable) -> SplitColumn | None:
    """The splits that a list gives in place of classes, if it is called so,
    as list_eval_partition.txt is.
    """
    if _OF_SPLITS.isdisjoint(family_of(where.rpartition("/")[2])) or table.labels is None:
        return None
    column = split_column({"split": table.labels}, {})
    return None if column is None else replace(column, name="2")


def _table(rows: tuple[Sequence[int], dict[str, list[Any]]], reading: TableForm) -> LabelTable:
    return labels_file.make_table(
        rows,
        reading.form,
        reading.path,
        reading.label,
        header=reading.header,
        several=reading.several if reading.taken else "",
        one_hot=reading.one_hot,
        split=reading.split,
    )


def _count_images(values: Iterable[Any], sought: Sought) -> int:
    """How many different images a column names."""
    texts = {value for value in values if isinstance(value, str)}
    if sought.is_cut:
        texts = {path_matching.without_ending(text) for text in texts} - texts
    return sum(last_name(text) in sought.known for text in texts)


def _choose_paths(
    reading: TableForm, columns: Columns, hits: Mapping[str, int], asked: InitOptions
) -> None:
    """Take the column that names most images; those that name half as many
    are other ways to read the table.
    """
    usual = next((name for name in (PATHS if reading.header else "1") if name in columns), None)
    best = max(columns, key=lambda name: (hits[name], name == usual))
    if asked.image in columns and hits.get(asked.image or ""):
        assert asked.image is not None
        best = asked.image
    elif best != usual or not reading.header:
        rivals = [name for name in columns if 2 * hits[name] >= hits[best]]
        reading.images = rivals if len(rivals) > 1 else ()
    reading.column, reading.path = best, None if best == usual else best


def _choose_labels(reading: TableForm, columns: Columns, asked: InitOptions, where: str) -> None:
    """Take the column of labels: the one that is asked for, the one that is called so,
    or the only one that can be.
    """
    others = {
        name: values
        for name, values in columns.items()
        if name not in {reading.column, *reading.images}
    }
    reading.splits = split_column(others, asked.splits)
    if reading.splits is not None:
        others.pop(reading.splits.name)
    if "submission" in where.rpartition("/")[2].lower():
        reading.label = False  # an example of what to hand in: its labels are no more than that
        return
    if asked.label is not None:
        place, sign, wanted = asked.label.rpartition(":")
        is_other = bool(sign) and place != where and family_of(place) != family_of(where)
        names = [wanted] if wanted in columns else wanted.split(",")
        if not is_other and set(names) <= columns.keys():
            _take(reading, columns, names)
            return
        if asked.label != where:
            reading.label = False
            return
    usual = usual_column(others, reading.column) if reading.header else None
    if usual is None and not reading.header and len(columns) == 2 and reading.path is None:
        usual = "2"
    if usual is not None:
        _take(reading, others, [usual])
        return
    candidates = distinct_candidates(class_candidates(others, reading.column), others)
    reading.label = False
    if len(candidates) == 1 and not candidates[0].is_doubtful:
        _take(reading, others, candidates[0].columns)
    else:
        reading.candidates = candidates


def _take(reading: TableForm, columns: Columns, names: Sequence[str]) -> None:
    """Take a column as that of labels, or several as one-hot."""
    reading.taken = ",".join(names)
    if len(names) > 1:
        reading.one_hot, reading.label = names, None
        return
    name = names[0]
    default = (
        next((usual for usual in LABELS if usual in columns), None) if reading.header else None
    )
    if not reading.header and reading.path is None:
        default = "2"
    reading.label = None if name == default else name
    if beside := names_beside(columns, name):
        pairs = zip(columns[name], columns[beside], strict=True)
        reading.names = {
            str(number): text for number, text in sorted(pairs, key=lambda pair: int(pair[0]))
        }


def class_values(table: LabelTable) -> list[Any] | None:
    """The labels of a table, if they can be classes: in a list, each is once."""
    with contextlib.suppress(LabelsFault):
        kind, values = typed_values.typed(
            table.labels or (), table.lines if table.labels else (), table.is_text
        )
        lists = (value for value in values if isinstance(value, list))
        if (
            table.labels is not None
            and kind != "float"
            and all(len(set(each)) == len(each) for each in lists)
        ):
            return values
    return None
