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

_OF_LISTS = ("class-lists", "class-lines")
"""Structures whose --label names a list, which they look for themselves."""


def refuse_unknown_image_column(inspection: Inspection) -> None:
    """Raise UsageError if tables name the images,
    and none has the column that the user names for their paths.
    """
    column, columns = inspection.options.image, _columns_of(inspection)
    if column is not None and columns and column not in columns:
        raise _no_column(inspection, "image", column)


def refuse_unused_columns(inspection: Inspection, choice: Choice) -> None:
    """Raise UsageError if the recipe does not take a column that the user names."""
    named_columns = {"label": inspection.options.label, "image": inspection.options.image}
    if choice.name in _OF_LISTS:
        named_columns.pop("label")
    names = set(_names_in(choice.proposal))
    for option, column in named_columns.items():
        if column is None or column in names:
            continue
        if not names.issuperset(column.rpartition(":")[2].split(",")):
            raise _no_column(inspection, option, column)


def _no_column(inspection: Inspection, option: str, column: str) -> UsageError:
    columns = _columns_of(inspection)
    problem = f"{inspection.folder} has no table with the column {column}, which --{option} names"
    expected = f"one of {listed(columns, 20)}" if columns else "a table of the images"
    hint = Hint(f"without --{option}: ", inspection.command(**{option: None}))
    return UsageError(problem, f"expected {expected}", hint)


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
