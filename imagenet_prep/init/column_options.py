"""The columns that a user names with --label and --image:
a recipe takes them, or the command is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from imagenet_prep.errors import UsageError
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.layout_choice import Choice
from imagenet_prep.init.proposal import Proposal
from imagenet_prep.text import listed

_OF_LISTS = ("class-lists", "class-lines")
"""Layouts whose --label names a list, which they look for themselves."""


def refuse_unknown_image_column(inspection: Inspection) -> None:
    """Raise UsageError if tables name the images,
    and none has the column that the user names for their paths.
    """
    wanted, columns = inspection.options.image, _columns_of(inspection)
    if wanted is not None and columns and wanted not in columns:
        raise _no_column(inspection, "image", wanted)


def refuse_unused_columns(inspection: Inspection, choice: Choice) -> None:
    """Raise UsageError if the recipe does not take a column that the user names."""
    asked = inspection.options
    taken = set(_names_in(choice.proposal))
    label = asked.label if choice.name not in _OF_LISTS else None
    for option, wanted in (("label", label), ("image", asked.image)):
        if wanted is None or wanted in taken or set(wanted.rpartition(":")[2].split(",")) <= taken:
            continue
        raise _no_column(inspection, option, wanted)


def _no_column(inspection: Inspection, option: str, wanted: str) -> UsageError:
    columns = _columns_of(inspection)
    what = f"{inspection.folder} has no table with the column {wanted}, which --{option} names"
    expected = (
        f"expected one of {listed(columns, 20)}" if columns else "expected a table of the images"
    )
    without = inspection.command(**{option: None})
    return UsageError(what, expected, f"without --{option}: {without}")


def _names_in(proposal: Proposal) -> Iterator[str]:
    """Every column and file that a recipe names."""
    yield from _texts_in(proposal.options)
    yield from _texts_in(proposal.annotations)
    table = proposal.table
    if table is not None:
        yield from (table.where, table.column, table.label, *table.label.split(","))
        yield from _texts_in(table.options)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts_in(part)


def _columns_of(inspection: Inspection) -> list[str]:
    """The columns of all tables that name images."""
    columns: dict[str, None] = {}
    for table in (*inspection.labels, *inspection.partial):
        columns |= dict.fromkeys(
            filter(None, (table.column, *table.images, table.label, *table.table.columns))
        )
    return list(columns)
