"""A LabelsFile -> the Proposal of files with its labels, and the lists that divide them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.init.proposal import Proposal
from imagenet_prep.init.split_lists import (
    SplitLists,
    find_split_lists,
    find_split_table,
    read_whole_lists,
)
from imagenet_prep.init.split_options import named_folders, named_lists
from imagenet_prep.recipes.splits import splits_above
from imagenet_prep.text import listed


def kept_items(items: Sequence[str], table: LabelsFile) -> list[str]:
    """The images that stay: without a label none does, if the table has labels."""
    if not table.losses:
        return list(items)
    rows = set(table.label_by_row()) if table.has_labels else table.named_rows
    rows -= table.undivided_rows()
    return [name for row, name in enumerate(items) if row in rows]


def propose_files(inspection: Inspection, table: LabelsFile) -> tuple[Proposal, frozenset[str]]:
    """Patterns of files, the labels file, and splits by folders or by lists;
    and the files of these lists.
    """
    assert inspection.content is not None
    items = kept_items(inspection.items, table)
    proposal = Proposal("files", inspection.content, items, table=table)
    if table.table.splits is not None:
        return proposal, frozenset()
    splits = _splits_by_folders(inspection, items)
    if splits and not named_lists(inspection):
        return replace(proposal, splits=splits), frozenset()
    lists = _lists_of(inspection, table, items)
    if lists is None:
        return proposal, frozenset()
    return proposal.divide(lists), frozenset(lists.files.values())


def _splits_by_folders(inspection: Inspection, items: Sequence[str]) -> dict[str, str]:
    """The split of each folder: those that the user names, if all images are there."""
    folders = named_folders(inspection) or {}
    leads = tuple(f"{folder}/" for folder in folders)
    if folders and all(name.startswith(leads) for name in items):
        return folders
    return splits_above(items)


def _lists_of(inspection: Inspection, table: LabelsFile, items: Sequence[str]) -> SplitLists | None:
    """The lists that divide the images of a table: those that the user names, or the only ones;
    or another table.
    """
    if files := named_lists(inspection):
        return read_whole_lists(inspection, files, items, "")
    ways_to_divide = [
        lists
        for lists in find_split_lists(inspection, items, "")
        if table.name not in lists.files.values()
    ]
    if ways_to_divide:
        return ways_to_divide[0] if len(ways_to_divide) == 1 else None
    return find_split_table(inspection, items, table.places)


def remarks_on_lists(list_files: frozenset[str]) -> list[str]:
    """The note on the lists that divide the images."""
    if not list_files:
        return []
    return [f"splits by lists: {listed(sorted(list_files))}"]
