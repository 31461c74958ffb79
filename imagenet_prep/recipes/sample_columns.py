"""Samples of one file -> their columns; and of several files, joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imagenet_prep.recipes.joined_samples import Samples, join_samples, usual_label
from imagenet_prep.recipes.label_cells import are_mixed, labels_of_cells, texts_if_mixed
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.names import shown_name
from imagenet_prep.sources.tars import Archive

if TYPE_CHECKING:
    from imagenet_prep.sources.mds_shards import SlicedSample


def join_files(read_file: Callable[[Path], Samples], paths: Sequence[Path]) -> dict[str, Samples]:
    """The samples of all files, of no split."""
    parts = [read_file(path) for path in paths]
    return {"": join_samples(parts)}


def columns_of(samples: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values by column; None where a sample has none.
    A column of texts and whole numbers becomes texts, unless all its texts are empty.
    """
    names = dict.fromkeys(name for sample in samples for name in sample)
    columns: dict[str, list[Any]] = {}
    for name in names:
        column = [sample.get(name) for sample in samples]
        if are_mixed(column) and are_mixed(labels_of_cells(column)):
            column = texts_if_mixed(column)
        columns[name] = column
    return columns


def samples_of_slices(path: Path, slices: Iterable[SlicedSample]) -> Samples:
    """Images that are slices of a file, each with its values."""
    builder = CatalogBuilder(Archive(path))
    stamp = path.stat().st_mtime_ns
    named_path = path.parent if path.name == "data.mdb" else path
    folder = shown_name(named_path)
    names: list[str] = []
    samples: list[Mapping[str, Any]] = []
    for sample in slices:
        name = f"{folder}/{sample.name}"
        names.append(name)
        builder.append(name, sample.offset, sample.length, stamp)
        samples.append(sample.values)
    columns = columns_of(samples)
    return Samples(builder.sorted(), names, columns, {}, usual_label(columns), [])
