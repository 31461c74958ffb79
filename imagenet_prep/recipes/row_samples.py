"""Rows of Parquet and Arrow files, each with an image -> Samples."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imagenet_prep.images import ending_of
from imagenet_prep.recipes.joined_samples import Samples, usual_label
from imagenet_prep.recipes.row_marks import RowMarks
from imagenet_prep.recipes.row_objects import read_objects
from imagenet_prep.recipes.row_source import RowImage
from imagenet_prep.recipes.sample_columns import columns_of
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.names import shown_name
from imagenet_prep.sources.slices import Container
from imagenet_prep.text import row_text

if TYPE_CHECKING:
    from imagenet_prep.sources.parquet_columns import Schema
    from imagenet_prep.sources.parquets import ParquetRow


def samples_of_rows(
    path: Path, container: Container, schema: Schema, rows: Iterable[ParquetRow]
) -> Samples:
    """The images of rows, with their other values and their boxes."""
    builder, stamp = CatalogBuilder(container), path.stat().st_mtime_ns
    folder = shown_name(path.with_suffix(""))
    names: list[str] = []
    samples: list[dict[str, Any]] = []
    images: dict[str, RowImage] = {}
    for number, file_path, length, head, values in rows:
        file_name = (file_path or "").rpartition("/")[2] or f"image{ending_of(head) or '.jpg'}"
        name = f"{folder}/{number:06}/{file_name}"
        names.append(name)
        builder.append(name, number, length, stamp)
        if schema.objects is not None:
            objects = values.pop(schema.objects)
            images[name] = _image_with_boxes(name, objects, f"{path}, {row_text(number)}")
        samples.append(values)
    columns = columns_of(samples)
    passed, lost = _unread_columns(schema)
    return Samples(
        builder.sorted(),
        names,
        columns,
        {name: dict(enumerate(texts)) for name, texts in schema.classes.items() if name in columns},
        _label_of(schema, columns),
        passed,
        lost=lost,
        marks=RowMarks(images, class_names=schema.object_classes),
    )


def _label_of(schema: Schema, columns: dict[str, list[Any]]) -> str | None:
    """The column of labels: the only one of classes, otherwise the one with a usual name."""
    if len(schema.classes) == 1:
        class_column = next(iter(schema.classes))
        if class_column in columns:
            return class_column
    return usual_label(columns)


def _unread_columns(schema: Schema) -> tuple[list[str], list[str]]:
    """Notes on the columns that are not read, and on those of boxes among them."""
    passed: list[str] = []
    lost: list[str] = []
    for name in schema.passed:
        note = f"the column {name}: not read, it holds no texts or numbers"
        if name in schema.unread_boxes:
            lost.append(note)
        else:
            passed.append(note)
    return passed, lost


def _image_with_boxes(name: str, objects: Any, place: str) -> RowImage:
    """An image with its boxes; raises InputError if they can't be."""
    shapes = [(shape, place) for shape in read_objects(objects, place)]
    return RowImage(name, place, "", "", None, None, None, shapes, {})
