"""Catalog: the one table of images, with one row per file in plain NumPy columns;
CatalogBuilder makes one from rows or parts.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from imagenet_prep.model import Box, Item
from imagenet_prep.sources.names import Column, Names, Rows, below, chunks, edges_of, places_of
from imagenet_prep.sources.slices import Buffer, Container, Reader, Row
from imagenet_prep.storage.location import local_or_none

NUMBER_COLUMNS = {
    "container_ids": "i",
    "offsets": "q",
    "lengths": "q",
    "stamps": "q",
    "labels": "i",
}
"""The columns of plain numbers, and their types while the table is built."""

MASK_STAMP = "mask.stamp"
"""The column of the folder, as text, and the time of change in ns of each image's mask; in no
fingerprint.

An image with several files of masks has a list of times, one without has None.
"""

_NOTHING = np.zeros(0, np.int8)


class Catalog(Struct, eq=False):
    """Files and their known facts. A column is an array of signed numbers, as narrow as its values
    allow.

    ``names`` are relative to the container of the row, "/" between folders. ``offsets`` are bytes
    within an archive, 0 for a separate file; ``lengths`` are bytes, ``stamps`` modification times
    in ns of the file that holds the image. In a ``split``, ``labels`` are 0 for none, otherwise a
    key of ``classes``, which holds the id and words of each class. ``boxes`` holds xmin, ymin,
    xmax, ymax per box; row ``i`` has those from ``box_starts[i]`` to the next row's start. Both are
    empty if no boxes are known. ``columns`` hold one JSON value per row, None for none.
    """

    split: str = ""
    classes: Mapping[int, tuple[str, str]] = {}
    containers: Sequence[Container] = ()
    names: Names = field(default_factory=Names)
    container_ids: Column = _NOTHING
    offsets: Column = _NOTHING
    lengths: Column = _NOTHING
    stamps: Column = _NOTHING
    labels: Column = _NOTHING
    box_starts: Column = _NOTHING
    boxes: Column = _NOTHING.astype(np.float32)
    columns: dict[str, Sequence[Any]] = {}

    def __len__(self) -> int:
        return len(self.offsets)

    # building a table -----------------------------------------------------------------------------

    @classmethod
    def join(cls, parts: Iterable[Catalog], *, is_listed: bool = False) -> Catalog:
        """Join all parts, sorted by label, then by the bytes of the names; ``is_listed``: in the
        order of a list.

        Parts are freed one by one, and have no boxes or columns. Sorted parts in order are not
        sorted again.
        """
        listing = CatalogBuilder()
        for part in parts:
            listing.extend(part)
        return listing.listed() if is_listed else listing.sorted()

    def sorted(self) -> Catalog:
        """The rows by label, then by the bytes of their names."""
        is_labelled = bool(self.labels.any())
        if self._is_sorted(is_labelled):
            return self
        all_rows = range(len(self))
        keys = self._keys(all_rows, is_labelled)
        rows = sorted(all_rows, key=keys.__getitem__)
        return self.picked(np.array(rows, np.int64))

    def _is_sorted(self, is_labelled: bool) -> bool:
        count = len(self)
        for rows in chunks(count):
            stop = min(rows.stop + 1, count)  # with the first row of the next chunk
            compared_rows = range(rows.start, stop)
            keys = self._keys(compared_rows, is_labelled)
            next_keys = keys[1:]
            if not all(map(bytes.__lt__, keys, next_keys)):
                return False
        return True

    def _keys(self, rows: range, is_labelled: bool) -> list[bytes]:
        """A key that sorts like label and name."""
        names = self.names.slices(rows)
        if not is_labelled:
            return names
        labels = self.labels[rows.start : rows.stop]
        leads = labels.astype(">u4").tobytes()
        return [leads[4 * place : 4 * place + 4] + name for place, name in enumerate(names)]

    def picked(self, rows: Rows) -> Catalog:
        """These rows only, in this order; a range shares their memory."""
        if isinstance(rows, range) and rows == range(len(self)):
            return self
        places = places_of(rows)
        numbers: dict[str, Column] = {}
        for name in NUMBER_COLUMNS:
            column = getattr(self, name)
            numbers[name] = column[places]
        columns: dict[str, Sequence[Any]] = {}
        for name, json_values in self.columns.items():
            columns[name] = [json_values[row] for row in rows]
        box_starts, boxes = self.boxes_of(rows)
        return replace(
            self,
            names=self.names.picked(rows),
            box_starts=box_starts,
            boxes=boxes,
            columns=columns,
            **numbers,
        )

    def whole(self, rows: Rows) -> Catalog:
        """The same table without unused containers and classes, to send to a worker."""
        picked = self.picked(rows)
        used_numbers, new_numbers = np.unique(picked.container_ids, return_inverse=True)
        containers = [self.containers[number] for number in used_numbers.tolist()]
        labels = set(picked.labels.tolist())  # np.unique would import numpy.ma
        labels.discard(0)
        classes = {label: self.classes[label] for label in sorted(labels)}
        container_ids = _narrow(new_numbers)
        return replace(picked, containers=containers, container_ids=container_ids, classes=classes)

    def attach_boxes(self, boxes: Mapping[str, Sequence[Box]]) -> None:
        """Give every image its boxes, by file name."""
        boxes_by_row = [boxes.get(name, ()) for name in self.names]
        corners: list[float] = []
        for box in itertools.chain.from_iterable(boxes_by_row):
            corners += (box.xmin, box.ymin, box.xmax, box.ymax)
        counts = np.array([len(boxes_of_row) for boxes_of_row in boxes_by_row], np.int64)
        self.box_starts = edges_of(counts)
        self.boxes = np.array(corners, np.float32)

    def boxes_of(self, rows: Rows) -> tuple[Column, Column]:
        """Start offsets of the boxes of these rows, and the boxes; empty if none are known."""
        if not len(self.box_starts):
            return self.box_starts, self.boxes
        places = np.asarray(rows, np.int64)
        starts = self.box_starts[places]
        stops = self.box_starts[places + 1]
        counts = stops - starts
        edges = edges_of(counts)
        shifts = starts - edges[:-1]
        box_numbers = np.repeat(shifts, counts) + np.arange(edges[-1])
        all_boxes = self.boxes.reshape(-1, 4)
        picked_boxes = all_boxes[box_numbers]
        return edges, picked_boxes.reshape(-1)

    # queries --------------------------------------------------------------------------------------

    def row(self, number: int) -> Row:
        """The row as its container identifies it."""
        name = self.names[number]
        offset = self.offsets.item(number)
        length = self.lengths.item(number)
        stamp = self.stamps.item(number)
        return Row(name, offset, length, stamp)

    @property
    def is_in_order(self) -> bool:
        """Whether some of its containers can only be read in their order."""
        return any(container.read_order == "in order" for container in self.containers)

    def container(self, number: int) -> Container:
        """The container of a row."""
        container_number: int = self.container_ids.item(number)
        return self.containers[container_number]

    def place(self, number: int) -> str:
        """The place of a row, for messages."""
        row = self.row(number)
        return self.container(number).place(row)

    def read(self, number: int, reader: Reader) -> Buffer:
        """The bytes of a row.

        Raises:
            InputError: the bytes are gone.
        """
        container = self.container(number)
        row = self.row(number)
        return reader.read(container, row)

    def places(self) -> Iterator[tuple[Container, Row]]:
        """Every row with its container, in order; faster than one by one."""
        container_numbers = self.container_ids.tolist()
        offsets = self.offsets.tolist()
        lengths = self.lengths.tolist()
        stamps = self.stamps.tolist()
        facts = zip(self.names, container_numbers, offsets, lengths, stamps, strict=True)
        for name, container_number, offset, length, stamp in facts:
            yield self.containers[container_number], Row(name, offset, length, stamp)

    def items(self) -> Iterator[Item]:
        """Everything that goes into the record of every row, except its bytes."""
        boxes: Iterator[tuple[Box, ...]] = itertools.repeat(())
        if len(self.box_starts):
            boxes = self._boxes_in_turn()
        numbers = range(len(self))
        labels = self.labels.tolist()
        return map(self._item, numbers, self.names, labels, boxes)

    def item(self, number: int) -> Item:
        """The record's content for one row."""
        name = self.names[number]
        label = self.labels.item(number)
        boxes = self._boxes(number)
        return self._item(number, name, label, boxes)

    def _item(self, number: int, name: str, label: int, boxes: tuple[Box, ...]) -> Item:
        if label:
            wnid, text = self.classes[label]
        else:
            wnid = text = ""
        columns = {}
        if self.columns:
            columns = {column: values[number] for column, values in self.columns.items()}
        return Item(name, label, wnid, text, boxes, columns)

    def _boxes_in_turn(self) -> Iterator[tuple[Box, ...]]:
        for rows in chunks(len(self)):
            starts = self.box_starts[rows.start : rows.stop + 1].tolist()
            boxes = self._boxes_between(starts[0], starts[-1])
            next_boxes = iter(boxes)
            for start, stop in itertools.pairwise(starts):
                count = stop - start
                yield tuple(itertools.islice(next_boxes, count))

    def _boxes(self, number: int) -> tuple[Box, ...]:
        if not len(self.box_starts):
            return ()
        start, stop = self.box_starts[number : number + 2].tolist()
        boxes = self._boxes_between(start, stop)
        return tuple(boxes)

    def _boxes_between(self, start: int, stop: int) -> list[Box]:
        """Boxes by their numbers in the table."""
        corners = self.boxes[4 * start : 4 * stop].reshape(-1, 4)
        return [Box(*edges) for edges in corners.tolist()]

    def count_by_label(self) -> dict[int, int]:
        """The number of images per label; labels without any are left out."""
        labels, counts = np.unique(self.labels, return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def size(self, rows: Rows) -> int:
        """The number of bytes in these rows together."""
        places = places_of(rows)
        size = self.lengths[places].sum(dtype=np.int64)
        return int(size)

    def times(self, rows: Rows) -> str:
        """A digest (hex) of the modification times of the files that hold these rows,
        and of their masks.
        """
        places = places_of(rows)
        stamps = self.stamps[places].astype("<i8")
        digest = hashlib.sha256(stamps.tobytes())
        mask_times = self._mask_times(rows)
        if mask_times:
            mask_text = json.dumps(mask_times, sort_keys=True)
            digest.update(mask_text.encode())
        return digest.hexdigest()

    def _mask_times(self, rows: Rows) -> dict[str, list[int | list[int]]]:
        """The modification times of the masks of these rows by folder."""
        times: dict[str, list[int | list[int]]] = {}
        if MASK_STAMP not in self.columns:
            return times
        stamps = self.columns[MASK_STAMP]
        for row in rows:
            stamp = stamps[row]
            if stamp:
                folder, time = stamp
                times.setdefault(folder, []).append(time)
        return times

    def is_current(self, *, trusts_folders: bool) -> bool:
        """Whether the files that hold its rows are unchanged.

        Of separate image files, the first one is checked: a copy may have times of its own.
        """
        numbers, first_rows = np.unique(self.container_ids, return_index=True)
        for number, first_row in zip(numbers, first_rows, strict=True):
            container = self.containers[number]
            if container.read_order == "alone":
                if not trusts_folders or self._has_other_time(first_row):
                    return False
                continue
            path = container.path
            if not path.is_file():
                return False
            if path.stat().st_mtime_ns != self.stamps.item(first_row):
                return False
        return True

    def _has_other_time(self, row: int) -> bool:
        """Whether the image file of a row is there with another time; not asked of a store."""
        container = self.container(row)
        path = local_or_none(below(container.path, self.names[row]))
        if path is None:
            return False
        with contextlib.suppress(OSError):
            is_other: bool = path.stat().st_mtime_ns != self.stamps.item(row)
            return is_other
        return False

    def stamps_of_containers(self) -> dict[str, str]:
        """A digest (hex) of the modification times in each container and each folder of masks,
        by its path.
        """
        rows_by_container = np.argsort(self.container_ids, kind="stable")
        sorted_ids = self.container_ids[rows_by_container]
        edges = np.searchsorted(sorted_ids, np.arange(len(self.containers) + 1))
        images = replace(self, columns={})
        digests: dict[str, str] = {}
        for number, container in enumerate(self.containers):
            start, stop = edges[number], edges[number + 1]
            path = _resolved_path(container)
            digests[path] = images.times(rows_by_container[start:stop])
        all_rows = range(len(self))
        for folder, times in self._mask_times(all_rows).items():
            mask_text = json.dumps(times)
            digests[folder] = hashlib.sha256(mask_text.encode()).hexdigest()
        return digests

    def containers_of(self, rows: Rows) -> list[str]:
        """The paths of the containers of these rows, and of the folders of their masks."""
        places = places_of(rows)
        numbers = set(self.container_ids[places].tolist())
        paths = [_resolved_path(self.containers[number]) for number in sorted(numbers)]
        mask_folders = self._mask_times(rows)
        return [*paths, *mask_folders]


class CatalogBuilder:
    """Rows that become a Catalog: added one by one for one container, or in parts."""

    def __init__(self, *containers: Container) -> None:
        self._containers: dict[Container, int] = {}
        for number, container in enumerate(containers):
            self._containers[container] = number
        self._blob = bytearray()
        self._starts = array("q", [0])
        self._columns = {name: array(form) for name, form in NUMBER_COLUMNS.items()}
        self._appends = [column.append for column in self._columns.values()]

    def append(self, name: str, offset: int, length: int, stamp: int, label: int = 0) -> None:
        """Add a file of the first container."""
        self._blob += name.encode()
        self._starts.append(len(self._blob))
        add_container, add_offset, add_length, add_stamp, add_label = self._appends
        add_container(0)
        add_offset(offset)
        add_length(length)
        add_stamp(stamp)
        add_label(label)

    def extend(self, part: Catalog) -> None:
        """Add all rows of another table, without boxes and columns."""
        new_numbers: list[int] = []
        for container in part.containers:
            number = self._containers.setdefault(container, len(self._containers))
            new_numbers.append(number)
        numbers = np.array(new_numbers, np.int32)
        starts_in_part = part.names.starts[1:].astype(np.int64)
        starts = starts_in_part + len(self._blob)
        self._starts.frombytes(starts.tobytes())
        self._blob += part.names.blob.data
        for name, column in self._columns.items():
            part_column = getattr(part, name)
            if name == "container_ids":
                part_column = numbers[part_column]
            wide_column = part_column.astype(column.typecode)
            column.frombytes(wide_column.tobytes())

    def listed(self) -> Catalog:
        """The rows in the order of adding; no more can be added."""
        blob = np.frombuffer(self._blob, np.uint8)
        starts = _narrow(np.asarray(self._starts))
        names = Names(blob, starts)
        columns: dict[str, Any] = {}
        for name, column in self._columns.items():
            columns[name] = _narrow(np.asarray(column))
        containers = list(self._containers)
        return Catalog(containers=containers, names=names, **columns)

    def sorted(self) -> Catalog:
        """The rows by label, then by the bytes of their names."""
        return self.listed().sorted()


def _narrow(column: Column) -> Column:
    """A copy with the fewest bytes per value, always signed: differences of values are computed."""
    largest = 0
    if len(column):
        largest = max(int(column.max()), -int(column.min()))
    for dtype in (np.int8, np.int16, np.int32):
        if largest <= np.iinfo(dtype).max:
            return column.astype(dtype)
    return column.astype(np.int64)


def _resolved_path(container: Container) -> str:
    """The path of a container, the same for any links that lead to it."""
    path = container.path.resolve()
    return str(path)
