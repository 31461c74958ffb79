"""Rows of images as tables and functions have them, and what their records must hold."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from made_folders import picture
from made_tars import in_memory, save
from PIL import Image

from imagenet_prep import records
from imagenet_prep.storage.layout import Layout

Row = Mapping[str, Any]

LABELLED: list[Row] = [
    {"file_name": "a/1.jpg", "label": "dog", "split": "train", "text": "a dog", "age": 3},
    {"file_name": "a/2.png", "label": "cat", "split": "train", "text": "a cat", "age": 4},
    {"file_name": "b/1.jpg", "label": "cat", "split": "val", "text": "a small cat", "age": 5},
    {"file_name": "b/3.jpg", "label": "dog", "split": "val", "text": "ein großer Hund", "age": 6},
]


def images(folder: Path, rows: Sequence[Row], key: str = "file_name") -> None:
    """The image of each row."""
    for name in dict.fromkeys(row[key] for row in rows):
        save(folder / name, picture(name))


def table(rows: Sequence[Row], ending: str) -> bytes:
    """A table of rows; cells of a CSV or TSV are texts, nested values in JSON."""
    if ending == "jsonl":
        return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    if ending == "parquet":
        return in_memory(
            lambda file: pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), file)
        )
    stream = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(stream, names, delimiter="\t" if ending == "tsv" else ",")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {
                name: json.dumps(value) if isinstance(value, (dict, list)) else value
                for name, value in row.items()
            }
        )
    return stream.getvalue().encode()


def mask(values: np.ndarray) -> bytes:
    """A PNG of class numbers."""
    return in_memory(lambda file: Image.fromarray(values.astype(np.uint8)).save(file, "PNG"))


def read_split(out: Path, split: str, text: set[str]) -> dict[str, dict[str, Any]]:
    """The records of a split by the name of their image."""
    found = records.read(
        str(Layout(out).output_dir / f"{split}-*-of-*"), text={"image/filename", *text}
    )
    return {record["image/filename"]: record for record in found}
