"""A devkit of ILSVRC2012 for a small ImageNet:
its meta.mat, encoded here as MATLAB does, in its archive.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from made_tars import pack, save

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012 import facts

FOLDER = "ILSVRC2012_devkit_t12"
FIELDS = [
    "ILSVRC2012_ID",
    "WNID",
    "words",
    "gloss",
    "num_children",
    "children",
    "wordnet_height",
    "num_train_images",
]

Value = str | Sequence[int]
Synset = Mapping[str, Value]


def counts_of(made: MadeSet) -> dict[str, int]:
    """Train images of all 1,000 classes: those of a made set,
    and the official minimum of each other class.
    """
    images = Counter(image.wnid for image in made.of(facts.TRAIN))
    return {wnid: images.get(wnid, facts.FEWEST[facts.TRAIN]) for wnid in facts.synsets()}


def add_devkit(raw_dir: Path, counts: Mapping[str, int]) -> Path:
    """Put the devkit's archive into ``raw_dir``; returns its path."""
    path = raw_dir / facts.ARCHIVES["devkit"].filename
    save(path, devkit(meta_mat(synsets(counts))))
    return path


def devkit(meta: bytes) -> bytes:
    """The archive: meta.mat among other files."""
    files = {"readme.txt": b"ILSVRC2012", "data/meta.mat": meta, "evaluation/demo.m": b"% demo"}
    return gzip.compress(
        pack({f"{FOLDER}/{name}": content for name, content in files.items()}), mtime=0
    )


def synsets(counts: Mapping[str, int]) -> list[Synset]:
    """The rows of the table: classes by their ids, then two inner nodes, as in the real one."""
    ids = facts.devkit_ids()
    leaves = [
        _synset(ids[wnid], wnid, (), counts[wnid]) for wnid in sorted(counts, key=ids.__getitem__)
    ]
    return [*leaves, _synset(1001, "n01861778", (2, 3), 0), _synset(1002, "n00001740", (1001,), 0)]


def _synset(number: int, wnid: str, children: Sequence[int], images: int) -> Synset:
    words = facts.texts().get(wnid, "")
    values = (
        [number],
        wnid,
        words,
        f"a {words}",
        [len(children)],
        children,
        [len(children)],
        [images],
    )
    return dict(zip(FIELDS, values, strict=True))


def meta_mat(
    rows: Sequence[Synset], *, compressed: bool = False, order: str = "<", name: str = "synsets"
) -> bytes:
    """A MATLAB 5 file with the struct array ``name`` of so many rows and one column."""
    width = 32
    fields = list(rows[0])
    content = _element(5, struct.pack(f"{order}i", width), order)
    content += _element(1, b"".join(field.encode().ljust(width, b"\0") for field in fields), order)
    content += b"".join(_value(row[field], order) for row in rows for field in fields)
    variable = _matrix(2, (len(rows), 1), name, content, order)
    if compressed:
        packed = zlib.compress(variable)
        variable = struct.pack(f"{order}II", 15, len(packed)) + packed
    mark = struct.pack(f"{order}HH", 0x0100, 0x4D49)
    return b"MATLAB 5.0 MAT-file".ljust(124) + mark + variable


def _value(value: Value, order: str) -> bytes:
    if isinstance(value, str):
        return _matrix(
            4,
            (1, len(value)),
            "",
            _element(4, value.encode(f"utf-16-{'lb'[order == '>']}e"), order),
            order,
        )
    packed = struct.pack(
        f"{order}{len(value)}H", *value
    )  # doubles, stored in the smallest type that fits
    return _matrix(6, (1, len(value)), "", _element(4, packed, order), order)


def _matrix(kind: int, shape: tuple[int, int], name: str, content: bytes, order: str) -> bytes:
    head = _element(6, struct.pack(f"{order}II", kind, 0), order) + _element(
        5, struct.pack(f"{order}2i", *shape), order
    )
    return _element(14, head + _element(1, name.encode(), order) + content, order)


def _element(kind: int, data: bytes, order: str) -> bytes:
    if 0 < len(data) <= 4:
        return struct.pack(f"{order}I", len(data) << 16 | kind) + data.ljust(4, b"\0")
    return struct.pack(f"{order}II", kind, len(data)) + data + bytes(-len(data) % 8)
