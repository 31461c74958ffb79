"""Examples: arrays that hold a whole set each, as X_train.npy and y_train.npy. Recognised, and not read yet."""

from __future__ import annotations

import re

from imagenet_prep.errors import InputError
from imagenet_prep.images.arrays import names_in_npz
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts import CERTAIN, Description, Proposal, Reading, as_command, describe_rest, unlabelled
from imagenet_prep.recipes.splits import stem_of
from imagenet_prep.text import listed

_NAME = re.compile(
    r"([xy]|images?|labels?|data|targets?)([_-]?(train|test|val|valid|validation|eval|dev|all))?|"
    r"(train|test|val|valid|validation|eval|dev)([_-]?([xy]|images?|labels?|data|targets?))?",
    re.IGNORECASE,
)
_FEW = 12


def recognise(inspection: Inspection) -> Reading | None:
    """A few arrays with the names of images and labels; or .npz files that hold several arrays."""
    if inspection.content != "array":
        return None
    several = [name for name in inspection.items if name.lower().endswith(".npz")]
    inside = names_in_npz((inspection.folder / several[0]).read_bytes()) if several else []
    named = len(inspection.items) <= _FEW and all(_NAME.fullmatch(stem_of(name)) for name in inspection.items)
    if len(inside) < 2 and not named:
        return None
    if len(inside) > 1:
        evidence = f"{several[0]} holds {len(inside)} arrays: {listed(inside, 5)}"
        hint = f"write a recipe with content: array and array: {inside[0]}, if each file is one record"
    else:
        evidence = f"{listed(inspection.items)} are named as the images and labels of whole sets"
        hint = f"{as_command(inspection, 'unlabelled')} makes one record of each file"
    what = f"{inspection.folder}: {evidence}"
    fault = InputError(
        what, "expected a file for each record", f"save each example as a file in a folder of its class; {hint}"
    )
    return Reading(CERTAIN, (evidence,), "arrays of many examples", (fault,))


def describe(inspection: Inspection, reading: Reading) -> Description:
    """Nothing is taken."""
    return describe_rest(inspection, reading.meaning)


def recipe(inspection: Inspection, reading: Reading) -> Proposal:
    """A record a file: this layout is refused before."""
    return unlabelled.recipe(inspection, reading)
