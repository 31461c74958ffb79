"""The doubt about a few files above the folders of all the others, which would decide alone how
the others are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint
from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.folder_splits import splits_by_folders
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.moves_away import move_next_to
from imagenet_prep.init.proposal import DoubtError
from imagenet_prep.recipes.path_parts import base_name
from imagenet_prep.text import listed, number_of

_LARGEST_SHARE = 0.02
"""The share of the other files that may be strays; one always may."""

_FEWEST_OTHERS = 4


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
    if len(strays) > 1:
        return ""
    move = move_next_to(inspection, strays[0], base_name(strays[0]))
    return "" if move is None else Hint("to leave it out, move it away: ", move)


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
