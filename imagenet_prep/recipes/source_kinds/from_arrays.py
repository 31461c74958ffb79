"""Files of arrays that hold a whole set, such as CIFAR's and MedMNIST's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from imagenet_prep.model import Engine
from imagenet_prep.recipes.joined_samples import Samples
from imagenet_prep.recipes.sample_sources import list_sample_inputs
from imagenet_prep.recipes.source_kinds import BySplit, SourceKind
from imagenet_prep.sources.array_files import may_hold_arrays


def _read_samples(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    from imagenet_prep.recipes.array_sets import list_arrays

    return list_arrays(paths, engine)


KIND = SourceKind(
    "arrays",
    110,
    BySplit,
    list_sample_inputs,
    options=("label",),
    read_samples=_read_samples,
    recognises=may_hold_arrays,
    structure="array-sets",
)
