"""A whole split in compact arrays: 1.3 million images in tens of megabytes, an Item only when a shard needs it."""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
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
            blobs.append(catalog._add_label(by_label[label], ids))
        catalog.names = b"".join(blobs)
        catalog.box_starts = array("I", bytes(4 * (len(catalog) + 1)))
        catalog.containers = list(ids)
        return catalog

    def _add_label(self, parts: list[Part], ids: dict[Container, int]) -> bytes:
        """Append the images of one label, sorted by name, but for the names: they are returned, joined."""
        names = [name for part in parts for name in part.names]
        container_ids = [ids.setdefault(part.container, len(ids)) for part in parts for _ in part.names]
        rows = sorted(range(len(names)), key=names.__getitem__)
        self.labels.extend([part.label for part in parts for _ in part.names])
        self.container_ids.extend([container_ids[row] for row in rows])
        for column, pieces in (
            (self.offsets, [part.offsets for part in parts]),
            (self.lengths, [part.lengths for part in parts]),
            (self.stamps, [part.stamps for part in parts]),
        ):
            values = list(chain.from_iterable(pieces))
            column.extend([values[row] for row in rows])
        in_order = [names[row] for row in rows]
        self.name_starts.extend(accumulate(map(len, in_order), initial=self.name_starts.pop()))
        return b"".join(in_order)

    def attach_boxes(self, boxes: Mapping[str, Sequence[Box]]) -> None:
        """Give every image its boxes, by file name."""
        starts, values = array("I", [0]), array("f")
        for filename in self.filenames():
            if filename in boxes:
                for box in boxes[filename]:
                    values.extend((box.xmin, box.ymin, box.xmax, box.ymax))
            starts.append(len(values) // 4)
        self.box_starts, self.boxes = starts, values

    def filenames(self) -> Iterator[str]:
        """The file names of all rows."""
        names = self.names.decode("ascii")
        return (names[start:stop] for start, stop in pairwise(self.name_starts))

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
        return dict(Counter(self.labels))

    def fingerprint(self, rows: Sequence[int], settings: str) -> str:
        """A digest (hex) of everything that decides a shard's bytes.

        That is the ordered items (name, label, words, boxes, length), the identity of the file that holds each image
        (its modification time), and ``settings``, the canonical form of every setting that changes bytes.
        """
        starts, box_starts = self.name_starts, self.box_starts
        names = [self.names[starts[row] : starts[row + 1]] for row in rows]
        labels = [self.labels[row] for row in rows]
        edges = [(box_starts[row], box_starts[row + 1]) for row in rows]
        facts = map(
            _ROW.pack,
            labels,
            map(self.lengths.__getitem__, rows),
            map(self.stamps.__getitem__, rows),
            [last - first for first, last in edges],
        )
        corners = memoryview(self.boxes).cast("B")
        boxes = [corners[16 * first : 16 * last] if first != last else b"" for first, last in edges]
        digest = hashlib.sha256(settings.encode())
        digest.update(b"".join(chain.from_iterable(zip(names, facts, boxes, strict=True))))
        for label in sorted(set(labels)):
            digest.update(f"{label} {self.wnids[label - 1]} {self.texts[label - 1]}\n".encode())
        return digest.hexdigest()
