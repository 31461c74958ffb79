"""splits_by_folders: names of files without classes -> the folders that are their splits."""

from __future__ import annotations

from collections.abc import Sequence

from imagenet_prep.recipes.folder_words import name_as_split
from imagenet_prep.recipes.splits import split_names, splits_above


def splits_by_folders(names: Sequence[str]) -> dict[str, str]:
    """The folders that are splits of files without classes, and the splits."""
    return dict(splits_above(names)) or _splits_by_tops(names)


def _splits_by_tops(names: Sequence[str]) -> dict[str, str]:
    """The first folders as splits, if some are called as splits are: train, val and extra."""
    if not all("/" in name for name in names):
        return {}
    tops = {name.partition("/")[0] for name in names}
    splits = split_names(tops)
    if "train" not in splits.values() or len(splits) < 2:
        return {}
    return {top: splits.get(top) or name_as_split(top) for top in sorted(tops)}
