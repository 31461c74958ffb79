"""read_tables: the universal tables that a recipe names, CSV,
TSV, JSON lines or Parquet -> Rows.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.box_policy import CORRECT, fault
from imagenet_prep.recipes.columns import has_ending_of
from imagenet_prep.recipes.row_source import (
    FILES,
    IMAGE_IN_RECIPE,
    MASKS,
    Rows,
    TableRow,
    find_roles,
    gather,
)
from imagenet_prep.recipes.table_rows import LabelsFault, csv_rows, form_of, read_rows
from imagenet_prep.sources.names import text_of
from imagenet_prep.storage.files import read_plain

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import Source

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
"""Endings of the files that are tables."""

PARQUET = ".parquet"


_OTHER_FORM = "write the table in one of these forms, in a file whose name ends so"


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name."""
    return path.name.lower().endswith(ENDINGS)


def read_tables(
    source: Source, groups: Mapping[str, Sequence[Path]], hint: str = IMAGE_IN_RECIPE
) -> Rows:
    """The rows of all tables, by split ("": of none); ``hint`` tells how to name the column of the
    images.

    Raises:
        InputError: a table or a value can't be understood, there is no row, or tables have
            different forms.
    """
    paths = [path for split_paths in groups.values() for path in split_paths]
    _refuse_mixed_forms(paths)
    rows: list[TableRow] = []
    names: dict[str, None] = {}
    for split, split_paths in groups.items():
        for path in split_paths:
            columns, table_rows = _read_table(path, split)
            names |= dict.fromkeys(columns)
            rows += table_rows
    if not rows:
        raise InputError(f"{paths[0]} has no row", "expected a row for each image", CORRECT)
    first_path = paths[0]
    place = str(first_path)
    if len(paths) > 1:
        place = f"{first_path} and {len(paths) - 1} more"
    roles = find_roles(names, place, source.image, source.label, hint=hint)
    return gather(rows, roles, is_text=_is_text(first_path))


def _is_text(path: Path) -> bool:
    """Whether all values of a table are texts."""
    return form_of(path.name) in ("csv", "tsv")


def _refuse_mixed_forms(paths: Sequence[Path]) -> None:
    """Raise InputError if some tables have only texts, and others have types."""
    for path in paths:
        if not is_table(path):
            expected = f"expected a name that ends in {', '.join(ENDINGS)}"
            raise InputError(f"{path} is no table by its name", expected, _OTHER_FORM)
    first_path = paths[0]
    for path in paths:
        if _is_text(path) != _is_text(first_path):
            raise InputError(
                f"{first_path} and {path.name} have different formats",
                "expected only CSV and TSV, or only JSON lines and Parquet",
                "save them in one format",
            )


def _read_table(path: Path, split: str) -> tuple[list[str], Iterator[TableRow]]:
    """The names of the columns of a table, and its rows."""
    if path.name.lower().endswith(PARQUET):
        return _parquet_rows(path, split)
    content = read_plain(path)
    form = form_of(path.name)
    try:
        lines, columns = read_rows(content, form)
    except LabelsFault as error:
        raise fault(error.place(path), error.reason, hint=error.hint or CORRECT) from error
    return [*columns], _rows_of(path, split, "line", lines, columns)


def _rows_of(
    path: Path, split: str, word: str, lines: Sequence[int], columns: Mapping[str, Sequence[Any]]
) -> Iterator[TableRow]:
    cells_by_row: Iterable[tuple[Any, ...]] = itertools.repeat((), len(lines))
    if columns:
        cells_by_row = zip(*columns.values(), strict=True)
    folder = text_of(str(path.parent))
    names = list(columns)
    for line, cells in zip(lines, cells_by_row, strict=True):
        values = dict(zip(names, cells, strict=True))
        yield TableRow(values, f"{path}, {word} {line}", folder, split)


def column_names(path: Path) -> list[str]:
    """The names of the columns of a table, from its beginning; none if it can't be read as one."""
    with contextlib.suppress(InputError, LabelsFault, OSError, StopIteration):
        if path.name.lower().endswith(PARQUET):
            from imagenet_prep.sources.parquets import read_names

            return read_names(path)
        with path.open("rb") as file:
            head = file.readline(_LONGEST) + file.readline(_LONGEST)
        form = form_of(path.name)
        if form == "jsonl":
            first_line, _, _ = head.partition(b"\n")
            _, columns = read_rows(first_line, form)
            return [*columns]
        _, header = next(csv_rows(head, form))
        return [name.strip() for name in header]
    return []


def unusual_columns(path: Path) -> list[str]:
    """The columns of paths of images in a table where none has a usual name; [] if one has."""
    names = column_names(path)
    file_names = [name for name in names if name.endswith("_file_name") and name not in MASKS]
    if len(file_names) == 1 or any(name in FILES for name in names):
        return []
    return _columns_of_image_paths(path)


def _columns_of_image_paths(path: Path) -> list[str]:
    """The columns of a table whose first values all end as the names of images or arrays do; none
    if it can't be read.
    """
    with contextlib.suppress(InputError):
        _, all_rows = _read_table(path, "")
        rows = list(itertools.islice(all_rows, _PROBED))
        names = rows[0].values if rows else ()
        return [name for name in names if _are_image_paths(rows, name)]
    return []


def _are_image_paths(rows: Sequence[TableRow], column: str) -> bool:
    for row in rows:
        value = row.values[column]
        if not isinstance(value, str):
            return False
        if not has_ending_of("image", value) and not has_ending_of("array", value):
            return False
    return True


_PROBED = 100
"""Rows that are read to find the columns of paths."""

_LONGEST = 1 << 20
"""Bytes of a line that are read to find the names of columns."""


# Parquet ------------------------------------------------------------------------------------------


def _parquet_rows(path: Path, split: str) -> tuple[list[str], Iterator[TableRow]]:
    """The names of the columns, and the rows.

    Raises:
        InputError: it is damaged, or holds the images themselves.
    """
    from imagenet_prep.sources.parquets import first_heads, has_images, read_table

    if has_images(path):
        expected = "expected texts and numbers, which name and describe images"
        column, _ = first_heads(path)
        hint = (
            f"if {column} holds images, write `parquet` in place of `table` in the recipe's "
            f"`source`; otherwise write the file again without {column}"
        )
        raise InputError(f"{path} has a column of bytes, {column}", expected, hint)
    columns = read_table(path)
    first_column: Sequence[Any] = next(iter(columns.values()), ())
    numbers = range(1, len(first_column) + 1)
    return [*columns], _rows_of(path, split, "row", numbers, columns)
