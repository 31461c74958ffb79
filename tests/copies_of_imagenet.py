"""The small ImageNet as other places keep it: written the way that they write,
with the bytes of the archives.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from made_tars import contents

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012.facts import SPLITS

SCHEMA = pa.schema(
    [("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("label", pa.int64())]
)


def hugging_face_rows(made: MadeSet, split: str) -> list[dict[str, Any]]:
    """The rows of Hugging Face's copy: names that end with the wnid,
    labels from 0, classes mixed.
    """
    found = contents(made, split)
    rows = [
        {
            "image": {
                "bytes": found[image.filename],
                "path": f"{image.filename[:-5]}_{image.wnid}.JPEG",
            },
            "label": image.label - 1,
        }
        for image in made.of(split)
    ]
    random.Random(split).shuffle(rows)
    return rows


def write_parquet(
    path: Path, rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA, group: int = 100
) -> Path:
    """A file as the datasets library writes it: snappy, a row group of at most 100 images."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, len(rows), group):
            writer.write_table(pa.Table.from_pylist(rows[first : first + group], schema=schema))
    return path


def write_hugging_face(
    folder: Path, made: MadeSet, *, files: int = 3, group: int = 16
) -> list[Path]:
    """All of Hugging Face's copy in ``folder``, a few files each split, and one of test images."""
    paths = []
    for split in SPLITS:
        rows = hugging_face_rows(made, split)
        for number in range(files):
            part = rows[len(rows) * number // files : len(rows) * (number + 1) // files]
            paths.append(
                write_parquet(
                    folder / f"{split}-{number:05d}-of-{files:05d}.parquet", part, group=group
                )
            )
    test = [{"image": {"bytes": b"no JPEG", "path": "ILSVRC2012_test_00000001.JPEG"}, "label": -1}]
    write_parquet(folder / "test-00000-of-00001.parquet", test)
    return paths
