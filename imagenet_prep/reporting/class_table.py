"""What the page says of every class: a row of a table, and its images as data for the script."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imagenet_prep.errors import Call
from imagenet_prep.reporting.samples import Sample
from imagenet_prep.reporting.wording import Facts
from imagenet_prep.storage.layout import parse_shard_name
from imagenet_prep.text import size_text


@dataclass(frozen=True, slots=True)
class SplitOfClass:
    """What one split has of a class: ``split`` is its number; ``percent`` are its images, of the largest class's."""

    split: int
    images: int
    boxes: int
    bytes: int
    percent: float

    @property
    def size(self) -> str:
        """Its images together, in words."""
        return size_text(self.bytes)


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A class: what each split has of it, and some images."""

    label: int
    name: str
    wnid: str
    parts: Sequence[SplitOfClass]
    pictures: Sequence[Sample]


def class_rows(facts: Facts) -> list[ClassRow]:
    """A row a class, in order of labels."""
    census = facts.census
    found = {facts.subject.splits.index(split): census.splits[split] for split in facts.splits}
    labels = sorted(set().union(*(split.labels for split in found.values())))
    most = max((sum(split.labels[label] for split in found.values()) for label in labels), default=1)
    return [
        ClassRow(
            label,
            census.words.get(label, ""),
            census.wnids.get(label, ""),
            [
                SplitOfClass(
                    number,
                    split.labels[label],
                    split.class_boxes[label],
                    split.class_bytes[label],
                    100 * split.labels[label] / most,
                )
                for number, split in found.items()
            ],
            facts.of_classes.get(label, ()),
        )
        for label in labels
    ]


def class_data(rows: Sequence[ClassRow], facts: Facts) -> str:
    """The same for the script, as JSON that no text can break out of."""
    call = facts.worded(Call("show", Path(facts.name) / "@SHARD@", (("record", "@NUMBER@"),)))
    value = {"command": call, "classes": [_row(row, facts) for row in rows]}
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _row(row: ClassRow, facts: Facts) -> dict[str, Any]:
    return {
        "label": row.label,
        "name": row.name or f"label {row.label}",
        "wnid": row.wnid,
        **{name: {part.split: getattr(part, name) for part in row.parts} for name in ("images", "boxes", "bytes")},
        "pictures": [_picture(sample, facts) for sample in row.pictures if sample.thumbnail],
    }


def _picture(sample: Sample, facts: Facts) -> dict[str, Any]:
    parsed = parse_shard_name(sample.shard)
    assert parsed is not None, sample.shard
    return {
        "split": facts.subject.splits.index(parsed[0]),
        "file": sample.filename,
        "shard": sample.shard,
        "number": sample.number,
        "offset": sample.offset,
        "size": sample.size,
        "bytes": size_text(sample.file_size),
        "boxes": [
            [round(100 * edge, 2) for edge in (box.xmin, box.ymin, box.xmax - box.xmin, box.ymax - box.ymin)]
            for box in sample.boxes
        ],
        "webp": base64.b64encode(sample.thumbnail).decode(),
    }
