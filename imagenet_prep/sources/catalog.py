"""A whole split in compact arrays: 1.3 million images in tens of megabytes, an Item only when a shard needs it."""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from imagenet_prep.model import Box, ByteRange, Item

_ROW = struct.Struct("<HQqI")


@dataclass(frozen=True, slots=True)
class Container:
    """Where images lie: an archive (images at offsets) or a folder (an image a file)."""

    path: Path
    is_folder: bool


@dataclass(slots=True)
class Part:
    """The images of one container and label, in no particular order; parallel lists.

    ``offsets`` are bytes within an archive (0 for a file of its own), ``lengths`` are bytes, ``stamps`` are the
    modification times (ns) of the file that holds the image.
    """

    label: int
    container: Container
    names: list[bytes]
    offsets: array[int]
    lengths: array[int]
    stamps: array[int]


@dataclass(slots=True)
class Catalog:
    """One split, in canonical order before the shuffle: by label, then by the bytes of the names.

    ``wnids`` and ``texts`` are those of label 1, 2, ...; ``boxes`` holds xmin, ymin, xmax, ymax a box, those of row
    ``i`` from box ``box_starts[i]`` to ``box_starts[i + 1]``.
    """

    split: str
    wnids: tuple[str, ...]
    texts: tuple[str, ...]
    containers: list[Container] = field(default_factory=list)
    names: bytes = b""
    name_starts: array[int] = field(default_factory=lambda: array("Q", [0]))
    labels: array[int] = field(default_factory=lambda: array("H"))
    container_ids: array[int] = field(default_factory=lambda: array("I"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("Q"))
    stamps: array[int] = field(default_factory=lambda: array("q"))
    box_starts: array[int] = field(default_factory=lambda: array("I", [0]))
    boxes: array[float] = field(default_factory=lambda: array("f"))

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def build(cls, split: str, wnids: tuple[str, ...], texts: tuple[str, ...], parts: Iterable[Part]) -> Catalog:
        """Put parts together in canonical order; several parts of one label are merged."""
        catalog = cls(split, wnids, texts)
        ids: dict[Container, int] = {}
        by_label: dict[int, list[Part]] = {}
        for part in parts:
            by_label.setdefault(part.label, []).append(part)
        blobs: list[bytes] = []
        for label in sorted(by_label):
            rows = []
            for part in by_label[label]:
                container_id = ids.setdefault(part.container, len(ids))
                rows += [
                    (name, container_id, *row)
                    for name, *row in zip(part.names, part.offsets, part.lengths, part.stamps, strict=True)
                ]
            rows.sort()
            names, container_ids, offsets, lengths, stamps = zip(*rows, strict=True) if rows else ((),) * 5
            blobs += names
            catalog.labels.extend([label] * len(rows))
            catalog.container_ids.extend(container_ids)
            catalog.offsets.extend(offsets)
            catalog.lengths.extend(lengths)
            catalog.stamps.extend(stamps)
        catalog.names = b"".join(blobs)
        catalog.name_starts = array("Q", accumulate(map(len, blobs), initial=0))
        catalog.box_starts = array("I", bytes(4 * (len(catalog) + 1)))
        catalog.containers = list(ids)
        return catalog

    def attach_boxes(self, boxes: Mapping[str, tuple[Box, ...]]) -> None:
        """Give every image its boxes, by file name."""
        starts, values = array("I", [0]), array("f")
        for row in range(len(self)):
            for box in boxes.get(self.filename(row), ()):
                values.extend((box.xmin, box.ymin, box.xmax, box.ymax))
            starts.append(len(values) // 4)
        self.box_starts, self.boxes = starts, values

    def filename(self, row: int) -> str:
        """The file name of a row."""
        return self.names[self.name_starts[row] : self.name_starts[row + 1]].decode("ascii")

    def item(self, row: int) -> Item:
        """Everything there is to know of a row."""
        name, label = self.filename(row), self.labels[row]
        container = self.containers[self.container_ids[row]]
        path = container.path / name if container.is_folder else container.path
        first, last = self.box_starts[row], self.box_starts[row + 1]
        return Item(
            filename=name,
            label=label,
            wnid=self.wnids[label - 1],
            text=self.texts[label - 1],
            boxes=tuple(Box(*self.boxes[4 * i : 4 * i + 4]) for i in range(first, last)),
            where=ByteRange(path, self.offsets[row], self.lengths[row]),
        )

    def count_by_label(self) -> dict[int, int]:
        """How many images each label has, labels without any left out."""
        counts: dict[int, int] = {}
        for label in self.labels:
            counts[label] = counts.get(label, 0) + 1
        return counts

    def fingerprint(self, rows: Iterable[int], settings: str) -> str:
        """A digest (hex) of everything that decides a shard's bytes.

        That is the ordered items (name, label, words, boxes, length), the identity of the file that holds each image
        (its modification time), and ``settings``, the canonical form of every setting that changes bytes.
        """
        digest = hashlib.sha256(settings.encode())
        labels = set()
        for row in rows:
            first, last = self.box_starts[row], self.box_starts[row + 1]
            labels.add(self.labels[row])
            digest.update(self.names[self.name_starts[row] : self.name_starts[row + 1]])
            digest.update(_ROW.pack(self.labels[row], self.lengths[row], self.stamps[row], last - first))
            if first != last:
                digest.update(self.boxes[4 * first : 4 * last].tobytes())
        for label in sorted(labels):
            digest.update(f"{label} {self.wnids[label - 1]} {self.texts[label - 1]}\n".encode())
        return digest.hexdigest()
