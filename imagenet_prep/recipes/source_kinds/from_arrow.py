"""Arrow files, as Hugging Face's datasets keeps them, whose rows hold an image and its values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from imagenet_prep.model import Engine
from imagenet_prep.recipes.joined_samples import Samples
from imagenet_prep.recipes.row_samples import samples_of_rows
from imagenet_prep.recipes.sample_columns import join_files
from imagenet_prep.recipes.sample_sources import list_sample_inputs
from imagenet_prep.recipes.source_kinds import BySplit, SourceKind


def _read_samples(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    return join_files(_read_file, paths)


def _read_file(path: Path) -> Samples:
    from imagenet_prep.sources.arrow_files import (
        ArrowImages,
        iter_arrow_samples,
        read_arrow_schema,
    )

    schema = read_arrow_schema(path)
    return samples_of_rows(path, ArrowImages(path), schema, iter_arrow_samples(path, schema))


def _recognises(name: str, _head: bytes) -> bool:
    return name.lower().endswith(".arrow")


KIND = SourceKind(
    "arrow",
    80,
    BySplit,
    list_sample_inputs,
    options=("label",),
    read_samples=_read_samples,
    may_have_boxes=True,
    recognises=_recognises,
)
