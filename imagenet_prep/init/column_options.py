"""The columns that a user names with --label and --image:
a recipe takes them, or the command is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from imagenet_prep.errors import UsageError
from imagenet_prep.hints import Hint
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import Choice, Proposal
from imagenet_prep.init.table_forms import LABEL_VALUES, class_values
from imagenet_prep.text import one_of

_OF_TABLES = ("with-labels", "tars-with-labels", "several-labels")
"""Structures whose labels are those of a table."""

_OF_LISTS = ("class-lists", "class-lines")
"""Structures whose --label names a list, which they look for themselves."""


def refuse_unknown_image_column(inspection: Inspection) -> None:
    """Raise UsageError if tables name the images,
    and none has the column that the user names for their paths.
    """
    column, columns = inspection.options.image, _columns_of(inspection)
    if column is not None and columns and column not in columns:
        raise _no_column(inspection, "image", column)


def refuse_unknown_label_column(inspection: Inspection, structure: str) -> None:
    """Raise UsageError if the folder has no such structure
    since no table has the labels that the user names.
    """
    label = inspection.options.label
    if label is not None and structure in _OF_TABLES and _columns_of(inspection):
        raise _no_column(inspection, "label", label, structure)


def refuse_unused_columns(inspection: Inspection, choice: Choice) -> None:
    """Raise UsageError if the recipe does not take a column that the user names."""
    for option, column in unused_columns(inspection, choice.name, choice.proposal).items():
        raise _no_column(inspection, option, column, choice.name)


def unused_columns(inspection: Inspection, structure: str, proposal: Proposal) -> dict[str, str]:
    """The columns that the user names and the recipe does not take, by their options."""
    named_columns = {"label": inspection.options.label, "image": inspection.options.image}
    if structure in _OF_LISTS:
        named_columns.pop("label")
    names = set(_names_in(proposal))
    unused: dict[str, str] = {}
    for option, column in named_columns.items():
        if column is None:
            continue
        is_label_alone = option == "image" and _is_label_alone(proposal, column)
        is_taken = column in names or names.issuperset(column.rpartition(":")[2].split(","))
        if is_label_alone or not is_taken:
            unused[option] = column
    return unused


def _is_label_alone(proposal: Proposal, column: str) -> bool:
    """Whether a column has the labels of a table, and not its paths."""
    table = proposal.table
    if table is None or column == table.column:
        return False
    return column in table.label.split(",")


def _no_column(inspection: Inspection, option: str, column: str, structure: str = "") -> UsageError:
    """The error for a column that no table has, or that the structure does not take."""
    folder, columns = inspection.folder, _columns_of(inspection)
    hint = Hint(f"to run init without --{option}: ", inspection.command(**{option: None}))
    unknown = _unknown_column(inspection, option, column)
    if unknown:
        noun, name = unknown
        known_names = _table_names(inspection) if noun == "table" else columns
        expected = (
            f"expected {one_of(known_names)}" if known_names else "expected a table of images"
        )
        named = f"{folder}: --{option} names the {noun} {name}"
        problem = f"{named}, and init finds no such {noun} for the {inspection.noun}s"
        return UsageError(problem, expected, hint)
    problem = f"{folder}: the column {column}, which --{option} names"
    if option == "image" and not _names_most(inspection, column):
        images = f"{inspection.noun}s"
        problem += f", names less than half of the {images}"
        return UsageError(problem, f"expected a column of the paths of {images}", hint)
    if option == "label" and not _may_be_classes(inspection, column):
        problem += ", can't be the classes"
        return UsageError(problem, f"expected {LABEL_VALUES}", hint)
    if structure in _OF_TABLES:
        problem += ", is not in the table that init reads"
        expected = "expected columns of one table: --label FILE:COLUMN chooses the table"
        return UsageError(problem, expected, hint)
    return _outside_of_tables(inspection, option, column, structure)


def _outside_of_tables(
    inspection: Inspection, option: str, column: str, structure: str
) -> UsageError:
    """The error for a column that a table has, and that a structure without tables leaves out."""
    of_table = "with-labels" if inspection.items else "tars-with-labels"
    problem = f"--as {structure} does not read the column {column}, which --{option} names"
    if inspection.options.structure is None:
        problem = (
            f"{inspection.folder}: the structure {structure}, which init takes, does not read the "
            f"column {column}, which --{option} names"
        )
    without_column = inspection.command(**{"as": structure, option: None})
    has_labels = option == "label" or any(table.has_labels for table in inspection.labels)
    if not inspection.items and not has_labels:
        hint = Hint(f"to run init without --{option}: ", without_column)
        return UsageError(problem, "expected a table with labels, for images in tars", hint)
    changes = {"as": of_table if _labels_all(inspection, column) else None}
    with_column = inspection.command(**changes)
    without = f"; to run init without --{option}: "
    hint = Hint("to read the table: ", with_column, without, without_column)
    expected = f"expected --as {of_table}, which takes the labels from a table"
    return UsageError(problem, expected, hint)


def _labels_all(inspection: Inspection, column: str) -> bool:
    """Whether a table with this column labels every image."""
    total = len(inspection.items or inspection.members)
    name = column.rpartition(":")[2]
    for table in inspection.labels:
        if name in table.table.columns or name in (table.label, table.column):
            return table.labelled == total
    return False


def _unknown_column(inspection: Inspection, option: str, column: str) -> tuple[str, str] | None:
    """The column or table of an option that is not there: its noun and name; None if all are."""
    columns = _columns_of(inspection)
    if column in columns:
        return None
    if option == "image":  # it names one column, without its table
        return "column", column
    table_name, _, names_text = column.rpartition(":")
    names = names_text.split(",")
    unknown_names = [name for name in names if name not in columns]
    if unknown_names:
        return "column", unknown_names[0]
    is_unknown = table_name and table_name not in _table_names(inspection)
    return ("table", table_name) if is_unknown else None


def _table_names(inspection: Inspection) -> list[str]:
    """The names of all tables that name images."""
    names: dict[str, None] = {}
    for table in (*inspection.labels, *inspection.partial):
        names |= dict.fromkeys((table.name, *table.places))
    return list(names)


def _names_most(inspection: Inspection, column: str) -> bool:
    """Whether a column of a table names at least half of the images."""
    return any(column in (table.column, *table.image_columns) for table in inspection.labels)


def _may_be_classes(inspection: Inspection, column: str) -> bool:
    """Whether the values of a column in a table can be classes; of several, they are one-hot."""
    name = column.rpartition(":")[2]
    for table in (*inspection.labels, *inspection.partial):
        cells = table.table.columns.get(column) or table.table.columns.get(name)
        if cells is not None:
            as_labels = replace(table.table, labels=list(cells))
            return class_values(as_labels) is not None
    return True


def _names_in(proposal: Proposal) -> Iterator[str]:
    """Every column and file that a recipe names."""
    yield from _texts_in(proposal.options)
    yield from _texts_in(proposal.annotations)
    table = proposal.table
    if table is not None:
        yield from (table.name, table.column, table.label, *table.label.split(","))
        yield from _texts_in(table.options)


def _texts_in(value: Any) -> Iterator[str]:
    """The texts in a value of a recipe, except for its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(part)


def _columns_of(inspection: Inspection) -> list[str]:
    """The columns of all tables that name images."""
    columns: dict[str, None] = {}
    for table in (*inspection.labels, *inspection.partial):
        names = (table.column, *table.image_columns, table.label, *table.table.columns)
        columns |= dict.fromkeys(filter(None, names))
    return list(columns)
