"""Arrays of a whole set: x_train and y_train in .npz or .npy files, MNIST's IDX files, CIFAR's pickles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from imagenet_prep.images.arrays import names_in_npz
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts._sample_layout import SampleLayout
from imagenet_prep.recipes.splits import stem_of

_NAME = re.compile(
    r"([xy]|images?|labels?|data|targets?)([_-]?(train|test|val|valid|validation|eval|dev|all))?|"
    r"(train|test|val|valid|validation|eval|dev)([_-]?([xy]|images?|labels?|data|targets?))?",
    re.IGNORECASE,
)
_FEW = 12


def _find(inspection: Inspection) -> Sequence[str]:
    """IDX files and pickles; a few arrays with the names of images and labels; .npz files that hold several arrays."""
    if inspection.content not in (None, "array"):
        return ()
    several = [name for name in inspection.items if name.lower().endswith(".npz")]
    inside = _names_in(inspection.folder / several[0]) if several else []
    few = len(inspection.items) <= _FEW
    named = few and (not inside if several else all(_NAME.fullmatch(stem_of(name)) for name in inspection.items))
    held = inspection.holders.get("arrays", ())
    return [*inspection.items, *held] if len(inside) > 1 or named or held else ()


def _names_in(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            return names_in_npz(file)
    except OSError:
        return []


_LAYOUT = SampleLayout("arrays", _find)
recognise, describe, recipe = _LAYOUT.recognise, _LAYOUT.describe, _LAYOUT.recipe
