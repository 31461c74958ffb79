"""A whole split in compact arrays: 1.3 million images in tens of megabytes, an Item only when a shard needs it."""

from __future__ import annotations

import hashlib
import json
import struct
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise, repeat
from pathlib import Path
from typing import Any, NamedTuple

from imagenet_prep.model import Box, ByteRange, Item

_ROW = struct.Struct("<HQqI")


@dataclass(frozen=True, slots=True)
class Container:
    """Where images lie: an archive (images at offsets) or a folder (an image a file)."""

    path: Path
    is_folder: bool


class Names(Collection[bytes]):
    """File names in one piece of memory: as objects, 1.3 million would take a hundred megabytes."""

    def __init__(self, names: Iterable[bytes]) -> None:
        self._joined = b"\0".join(names)
        self._count = len(self._joined.split(b"\0")) if self._joined else 0

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        """Each name."""
        return iter(self._joined.split(b"\0") if self._joined else ())

    def __contains__(self, name: object) -> bool:
        """Whether a name is among them."""
        return any(name == each for each in self)


@dataclass(slots=True)
class Part:
    """The images of one container and label, in no particular order; parallel lists.

    ``offsets`` are bytes within an archive (0 for a file of its own), ``lengths`` are bytes, ``stamps`` are the
    modification times (ns) of the file that holds the image.
    """

    label: int
    container: Container
    names: Collection[bytes]
    offsets: array[int]
    lengths: array[int]
    stamps: array[int]


@dataclass(slots=True)
class Listed:
    """Rows in an order of their own; parallel. ``container_ids`` count a catalog's containers from 0."""

    names: Sequence[bytes]
    labels: array[int]
    container_ids: array[int]
    offsets: array[int]
    lengths: array[int]
    stamps: array[int]
    columns: dict[str, list[Any]]


@dataclass(slots=True)
class Catalog:
    """One split, in the order before the shuffle: by label and the bytes of the names, or as a manifest has it.

    ``names`` are relative to their container, UTF-8. ``wnids`` and ``texts`` are those of label 1, 2, ...; label 0 is
    none. ``columns`` hold a value a row, None for none. ``boxes`` holds xmin, ymin, xmax, ymax a box, those of row
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
    columns: dict[str, list[Any]] = field(default_factory=dict)

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
        labels = sorted(by_label)
        rows = [_in_order(by_label[label], ids) for label in labels]
        catalog.containers = list(ids)
        catalog.names = b"".join(r.names for r in rows)
        catalog.name_starts = array("Q", accumulate(chain.from_iterable(r.name_lengths for r in rows), initial=0))
        catalog.labels = array("H", chain.from_iterable(map(repeat, labels, (len(r.offsets) for r in rows))))
        catalog.container_ids = _join("I", [r.container_ids for r in rows])
        catalog.offsets = _join("Q", [r.offsets for r in rows])
        catalog.lengths = _join("Q", [r.lengths for r in rows])
        catalog.stamps = _join("q", [r.stamps for r in rows])
        catalog.box_starts = array("I", bytes(4 * (len(catalog) + 1)))
        return catalog

    @classmethod
    def listed(
        cls, split: str, wnids: tuple[str, ...], texts: tuple[str, ...], containers: list[Container], rows: Listed
    ) -> Catalog:
        """A catalog of rows in the order in which they are given."""
        catalog = cls(split, wnids, texts, containers)
        catalog.names = b"".join(rows.names)
        catalog.name_starts = array("Q", accumulate(map(len, rows.names), initial=0))
        catalog.labels = rows.labels
        catalog.container_ids, catalog.offsets = rows.container_ids, rows.offsets
        catalog.lengths, catalog.stamps = rows.lengths, rows.stamps
        catalog.box_starts = array("I", bytes(4 * (len(catalog) + 1)))
        catalog.columns = rows.columns
        return catalog

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
        names = self.names
        if names.isascii():  # one decoding in place of a million
            text = names.decode("ascii")
            return (text[start:stop] for start, stop in pairwise(self.name_starts))
        return (names[start:stop].decode() for start, stop in pairwise(self.name_starts))

    def filename(self, row: int) -> str:
        """The file name of a row."""
        return self.names[self.name_starts[row] : self.name_starts[row + 1]].decode()

    def item(self, row: int) -> Item:
        """Everything there is to know of a row."""
        name, label = self.filename(row), self.labels[row]
        container = self.containers[self.container_ids[row]]
        path = container.path / name if container.is_folder else container.path
        first, last = self.box_starts[row], self.box_starts[row + 1]
        return Item(
            filename=name,
            label=label,
            wnid=self.wnids[label - 1] if label else "",
            text=self.texts[label - 1] if label else "",
            boxes=tuple(Box(*self.boxes[4 * i : 4 * i + 4]) for i in range(first, last)),
            where=ByteRange(path, self.offsets[row], self.lengths[row]),
            columns={name: values[row] for name, values in self.columns.items()} if self.columns else {},
        )

    def count_by_label(self) -> dict[int, int]:
        """How many images each label has, labels without any left out."""
        return dict(Counter(self.labels))

    def fingerprint(self, rows: Sequence[int], settings: str) -> str:
        """A digest (hex) of everything that decides a shard's bytes.

        That is the ordered items (name, label, words, boxes, length, columns), the identity of the file that holds
        each image (its modification time), and ``settings``, the canonical form of every setting that changes bytes.
        """
        labels, lengths, stamps = self.labels, self.lengths, self.stamps
        names, starts, boxes, box_starts = self.names, self.name_starts, self.boxes, self.box_starts
        columns = [self.columns[name] for name in sorted(self.columns)]
        digest = hashlib.sha256(settings.encode())
        for row in rows:
            first, last = box_starts[row], box_starts[row + 1]
            digest.update(names[starts[row] : starts[row + 1]])
            digest.update(_ROW.pack(labels[row], lengths[row], stamps[row], last - first))
            if first != last:
                digest.update(boxes[4 * first : 4 * last].tobytes())
            if columns:
                digest.update(json.dumps([values[row] for values in columns]).encode())
        for label in sorted({labels[row] for row in rows} - {0}):
            digest.update(f"{label} {self.wnids[label - 1]} {self.texts[label - 1]}\n".encode())
        return digest.hexdigest()


class _Rows(NamedTuple):
    """The images of one label, by name; parallel but for ``names``, which are joined."""

    names: bytes
    name_lengths: array[int]
    container_ids: array[int]
    offsets: array[int]
    lengths: array[int]
    stamps: array[int]


def _in_order(parts: list[Part], ids: dict[Container, int]) -> _Rows:
    """The images of all parts of one label, sorted by name; ``ids`` gives every container a number."""
    names = [name for part in parts for name in part.names]
    columns = (
        array("H", map(len, names)),
        _join("I", [array("I", [ids.setdefault(part.container, len(ids))]) * len(part.names) for part in parts]),
        _join("Q", [part.offsets for part in parts]),
        _join("Q", [part.lengths for part in parts]),
        _join("q", [part.stamps for part in parts]),
    )
    order = sorted(range(len(names)), key=names.__getitem__)
    return _Rows(
        b"".join([names[row] for row in order]),
        *(array(column.typecode, [column[row] for row in order]) for column in columns),
    )


def _join(typecode: str, pieces: list[array[int]]) -> array[int]:
    """Arrays one after the other."""
    return array(typecode, b"".join(pieces))
