"""Samples of one file -> their columns; and of several files, joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imagenet_prep.recipes.joined_samples import Samples, join_samples, usual_label
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.names import shown_name
from imagenet_prep.sources.tars import Archive

if TYPE_CHECKING:
    from imagenet_prep.sources.mds_shards import SlicedSample


def join_files(read_file: Callable[[Path], Samples], paths: Sequence[Path]) -> dict[str, Samples]:
    """The samples of all files, of no split."""
    return {"": join_samples([read_file(path) for path in paths])}


def columns_of(samples: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values by column; None where a sample has none.
    A column of texts and whole numbers becomes texts.
    """
    names = dict.fromkeys(name for sample in samples for name in sample)
    columns = {name: [sample.get(name) for sample in samples] for name in names}
    for name, column in columns.items():
        if {type(value) for value in column} >= {int, str}:
            columns[name] = [None if value is None else str(value) for value in column]
    return columns


def samples_of_slices(path: Path, slices: Iterable[SlicedSample]) -> Samples:
    """Images that are slices of a file, each with its values."""
    builder, stamp = CatalogBuilder(Archive(path)), path.stat().st_mtime_ns
    folder = shown_name(path.parent if path.name == "data.mdb" else path)
    names: list[str] = []
    samples: list[Mapping[str, Any]] = []
    for sample in slices:
        name = f"{folder}/{sample.name}"
        names.append(name)
        builder.append(name, sample.offset, sample.length, stamp)
        samples.append(sample.values)
    columns = columns_of(samples)
    return Samples(builder.sorted(), names, columns, {}, usual_label(columns), [])
