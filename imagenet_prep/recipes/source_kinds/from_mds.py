"""MosaicML's shards, whose samples hold an image and its values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from imagenet_prep.model import Engine
from imagenet_prep.recipes.joined_samples import Samples
from imagenet_prep.recipes.sample_columns import join_files, samples_of_slices
from imagenet_prep.recipes.sample_sources import list_sample_inputs
from imagenet_prep.recipes.source_kinds import BySplit, SourceKind

_OBJECT_COLUMNS = ("objects", "object", "annotations", "bbox", "bboxes", "boxes", "litter", "faces")
"""Usual names of columns of boxes, which no reader of MosaicML's shards takes."""


def _read_samples(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    return join_files(_read_file, paths)


def _read_file(path: Path) -> Samples:
    from imagenet_prep.sources.mds_shards import iter_mds, unread_columns

    samples = samples_of_slices(path, iter_mds(path))
    for name, encoding in unread_columns(path).items():
        note = f"the column {name}: not read, it holds {encoding}"
        if encoding in ("jpeg", "png") or name.lower() in _OBJECT_COLUMNS:
            samples.lost.append(note)
        else:
            samples.passed.append(note)
    return samples


def _recognises(name: str, _head: bytes) -> bool:
    return name.lower().endswith(".mds")


KIND = SourceKind(
    "mds",
    90,
    BySplit,
    list_sample_inputs,
    options=("label",),
    read_samples=_read_samples,
    recognises=_recognises,
)
