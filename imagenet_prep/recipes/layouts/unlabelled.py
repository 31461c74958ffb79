"""Unlabelled: images or arrays in any folders, without classes."""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts import ONLY_IF_ASKED, POSSIBLE, Description, Proposal, Reading, describe_rest
from imagenet_prep.recipes.layouts.class_folders import shape_of
from imagenet_prep.recipes.splits import mixed_masks
from imagenet_prep.sources.names import Names
from imagenet_prep.text import number_of


def recognise(inspection: Inspection) -> Reading | None:
    """All files in one folder, or in none."""
    if not inspection.items:
        return None
    shape = shape_of(inspection.items)
    certainty = ONLY_IF_ASKED if len(shape.files) > 1 or shape.splits else POSSIBLE
    what = "array" if inspection.content == "array" else "image"
    evidence = f"{number_of(len(inspection.items), what)} without a class"
    wrong = mixed_masks(Names.take(inspection.items)) if len(shape.files) < 2 else None
    hint = f"a recipe can say: {wrong.choice}" if wrong else ""
    faults = (InputError(f"{inspection.folder}: {wrong.what}", "expected images alone", hint),) if wrong else ()
    return Reading(certainty, (evidence,), "records without labels", faults)


def describe(inspection: Inspection, reading: Reading) -> Description:
    """All files."""
    return describe_rest(inspection, reading.meaning, is_labelled=False)


def recipe(inspection: Inspection, reading: Reading) -> Proposal:
    """Patterns of files."""
    assert inspection.content is not None
    return Proposal("files", inspection.content, inspection.items, inspection.lengths)
