"""The columns that a user names with --label and --image:
a recipe takes them, or the command is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from imagenet_prep.errors import UsageError
from imagenet_prep.hints import Hint
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import Choice, Proposal
from imagenet_prep.text import listed

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
    named_columns = {"label": inspection.options.label, "image": inspection.options.image}
    if choice.name in _OF_LISTS:
        named_columns.pop("label")
    names = set(_names_in(choice.proposal))
    for option, column in named_columns.items():
        if column is None:
            continue
        if option == "image" and _is_label_alone(choice.proposal, column):
            raise _no_column(inspection, option, column, choice.name)
        if column in names:
            continue
        if not names.issuperset(column.rpartition(":")[2].split(",")):
            raise _no_column(inspection, option, column, choice.name)


def _is_label_alone(proposal: Proposal, column: str) -> bool:
    """Whether a column has the labels of a table, and not its paths."""
    table = proposal.table
    if table is None or column == table.column:
        return False
    return column in table.label.split(",")


def _no_column(inspection: Inspection, option: str, column: str, structure: str = "") -> UsageError:
    """The error for a column that no table has, or that the structure does not take."""
    folder, columns = inspection.folder, _columns_of(inspection)
    expected = f"expected one of {listed(columns, 20)}" if columns else "expected a table of images"
    hint = Hint(f"without --{option}: ", inspection.command(**{option: None}))
    names = column.rpartition(":")[2].split(",")
    unknown_names = [name for name in names if name not in columns and column not in columns]
    if unknown_names:
        name = column if len(names) == 1 else unknown_names[0]
        problem = f"{folder} has no table with the column {name}, which --{option} names"
        return UsageError(problem, expected, hint)
    if inspection.options.structure is not None and structure not in _OF_TABLES:
        problem = f"--as {structure} does not read the column {column}, which --{option} names"
        hint = Hint("without --as: ", inspection.command(**{"as": None}))
        return UsageError(problem, "expected a structure that reads a table", hint)
    if option == "image":
        problem = f"{folder}: the column {column}, which --image names, names none of the images"
        return UsageError(problem, "expected a column of the paths of images", hint)
    problem = f"{folder}: the column {column}, which --label names, can't be the classes"
    return UsageError(problem, "expected texts or whole numbers", hint)


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
