"""The doubt about a few files above the folders of all the others, which would decide alone how
the others are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command_line
from imagenet_prep.hints import Hint
from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import DoubtError
from imagenet_prep.recipes.folder_words import name_as_split
from imagenet_prep.recipes.path_parts import base_name
from imagenet_prep.recipes.splits import split_names, splits_above
from imagenet_prep.text import listed, number_of

_LARGEST_SHARE = 0.02
"""The share of the other files that may be strays; one always may."""

_FEWEST_OTHERS = 4


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


def doubts_of_strays(inspection: Inspection, splits: Mapping[str, str]) -> list[InputError]:
    """The doubt about strays without which the folders are classes, or other ``splits``."""
    names = inspection.items
    fewest_slashes = min(name.count("/") for name in names)
    strays = [name for name in names if name.count("/") == fewest_slashes]
    others = [name for name in names if name.count("/") > fewest_slashes]
    most = max(1, int(_LARGEST_SHARE * len(others)))
    if len(strays) > most or len(others) < _FEWEST_OTHERS:
        return []
    lost = _lost_with_strays(others, splits)
    if not lost:
        return []
    count = number_of(len(strays), inspection.noun)
    problem = f"{inspection.folder}: {count} above the folders of the others: {listed(strays)}"
    it = "it" if len(strays) == 1 else "them"
    hint = _moving(inspection, strays) or f"to leave {it} out, move {it} out of {inspection.folder}"
    aim, outcome = f"take no {lost}", f"taken without {lost}"
    return [DoubtError.of(aim, outcome, problem, f"without {it}, the folders are {lost}", hint)]


def _moving(inspection: Inspection, strays: Sequence[str]) -> str:
    """The command that moves a stray next to the folder; "" for several, or if a file is there."""
    place = inspection.folder.resolve()
    stray = strays[0]
    target = place.with_name(f"{place.name}-{base_name(stray)}")
    if len(strays) > 1 or target.exists():
        return ""
    words = ["mv", "--", str(inspection.folder / stray), str(target)]
    return Hint("to leave it out, move it away: ", command_line(words))


def _lost_with_strays(others: Sequence[str], splits: Mapping[str, str]) -> str:
    """The word for folders without strays, "classes" or "splits"; "" if strays change nothing."""
    if shape_of(others).has_classes:
        return "classes"
    if not splits and splits_by_folders(_below_one_folder(others)):
        return "splits"
    return ""


def _below_one_folder(names: Sequence[str]) -> Sequence[str]:
    """The names without the folders that lead to all of them."""
    lead = shape_of(names).lead
    return [name.removeprefix(lead) for name in names]
