"""Catalog: the one table of images, with one row per file in plain NumPy columns,
in memory or saved in a folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import escaped
from imagenet_prep.model import Box, Item
from imagenet_prep.sources.blocks import ArrayFolder, SavedArray, array_file
from imagenet_prep.sources.names import (
    Column,
    Names,
    Rows,
    below,
    chunks,
    edges_of,
    places_of,
)
from imagenet_prep.sources.slices import Buffer, Container, Reader, Row
from imagenet_prep.storage.durable import make_folder
from imagenet_prep.storage.files import find_plain, save_bytes
from imagenet_prep.storage.location import AnyPath, local_or_none, locate, open_store
from imagenet_prep.storage.refusals import writing
from imagenet_prep.text import listed

_COLUMNS = {"container_ids": "i", "offsets": "q", "lengths": "q", "stamps": "q", "labels": "i"}
"""The columns of plain numbers, and their types while the table is built."""

_KINDS = {
    **{
        "Folder": "folders",
        "Archive": "tars",
        "ParquetImages": "parquets",
        "Zip": "zips",
        "SealedZip": "zips",
        "Gone": "slices",
    },
    "ArrayFile": "array_files",
}
"""The modules of the containers that a saved table may name; those modules import this one."""

MASK_STAMP = "mask.stamp"
"""The column of the folder, as text, and the time of change in ns of each image's mask; in no
fingerprint.

An image with several files of masks has a list of times, one without has None.
"""

MOST_BYTES = 1 << 33
"""The largest catalog.json that is read; a billion rows have some 300 MB of checksums."""

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

    ``pack`` makes the form saved in a folder: ``catalog.json`` (split, classes, kind and path of
    each container, names of columns; type, count and checksums of each file) and one file of plain
    values per column: names (joined UTF-8), name_starts, container_ids, offsets, lengths, stamps,
    labels, box_starts and boxes (float32). Each of ``columns`` has its JSON texts and their start
    offsets: column_0, column_0_starts, ... The rows of a shard are one range of each. A digest of
    catalog.json names the whole.
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
        keys = self._keys(range(len(self)), is_labelled)
        return self.picked(np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64))

    def _is_sorted(self, is_labelled: bool) -> bool:
        for rows in chunks(len(self)):
            keys = self._keys(range(rows.start, min(rows.stop + 1, len(self))), is_labelled)
            if not all(map(bytes.__lt__, keys, keys[1:])):
                return False
        return True

    def _keys(self, rows: range, is_labelled: bool) -> list[bytes]:
        """A key that sorts like label and name."""
        names = self.names.slices(rows)
        if not is_labelled:
            return names
        lead = self.labels[rows.start : rows.stop].astype(">u4").tobytes()
        return [lead[4 * place : 4 * place + 4] + name for place, name in enumerate(names)]

    def picked(self, rows: Rows) -> Catalog:
        """These rows only, in this order; a range shares their memory."""
        if isinstance(rows, range) and rows == range(len(self)):
            return self
        places = places_of(rows)
        found: dict[str, Any] = {name: getattr(self, name)[places] for name in _COLUMNS}
        found["box_starts"], found["boxes"] = self.boxes_of(rows)
        found["columns"] = {
            name: [values[row] for row in rows] for name, values in self.columns.items()
        }
        return replace(self, names=self.names.picked(rows), **found)

    def whole(self, rows: Rows) -> Catalog:
        """The same table without unused containers and classes, to send to a worker."""
        found = self.picked(rows)
        ids, container_ids = np.unique(found.container_ids, return_inverse=True)
        labels = sorted(set(found.labels.tolist()))  # np.unique would import numpy.ma
        return replace(
            found,
            containers=[self.containers[each] for each in ids.tolist()],
            container_ids=_narrow(container_ids),
            classes={label: self.classes[label] for label in labels if label},
        )

    def attach_boxes(self, boxes: Mapping[str, Sequence[Box]]) -> None:
        """Give every image its boxes, by file name."""
        found = [boxes.get(name, ()) for name in self.names]
        values = [
            value
            for each in found
            for box in each
            for value in (box.xmin, box.ymin, box.xmax, box.ymax)
        ]
        self.box_starts = edges_of(np.fromiter(map(len, found), np.int64, len(found)))
        self.boxes = np.array(values, np.float32)

    def boxes_of(self, rows: Rows) -> tuple[Column, Column]:
        """Start offsets of the boxes of these rows, and the boxes; empty if none are known."""
        if not len(self.box_starts):
            return self.box_starts, self.boxes
        places = np.asarray(rows, np.int64)
        starts = self.box_starts[places]
        counts = self.box_starts[places + 1] - starts
        edges = edges_of(counts)
        which = np.repeat(starts - edges[:-1], counts) + np.arange(edges[-1])
        return edges, self.boxes.reshape(-1, 4)[which].reshape(-1)

    # queries --------------------------------------------------------------------------------------

    def row(self, number: int) -> Row:
        """The row as its container identifies it."""
        return Row(
            self.names[number],
            *(column.item(number) for column in (self.offsets, self.lengths, self.stamps)),
        )

    @property
    def is_in_order(self) -> bool:
        """Whether some of its containers can only be read in their order."""
        return any(container.reading == "in order" for container in self.containers)

    def container(self, number: int) -> Container:
        """The container of a row."""
        which: int = self.container_ids.item(number)
        return self.containers[which]

    def place(self, number: int) -> str:
        """The place of a row, for messages."""
        return self.container(number).place(self.row(number))

    def read(self, number: int, reader: Reader) -> Buffer:
        """The bytes of a row.

        Raises:
            InputError: the bytes are gone.
        """
        return reader.read(self.container(number), self.row(number))

    def places(self) -> Iterator[tuple[Container, Row]]:
        """Every row with its container, in order; faster than one by one."""
        numbers = (
            column.tolist()
            for column in (self.container_ids, self.offsets, self.lengths, self.stamps)
        )
        for name, which, offset, length, stamp in zip(self.names, *numbers, strict=True):
            yield self.containers[which], Row(name, offset, length, stamp)

    def items(self) -> Iterator[Item]:
        """Everything that goes into the record of every row, except its bytes."""
        boxes = self._boxes_in_turn() if len(self.box_starts) else itertools.repeat(())
        return map(self._item, range(len(self)), self.names, self.labels.tolist(), boxes)

    def item(self, number: int) -> Item:
        """The record's content for one row."""
        return self._item(number, self.names[number], self.labels.item(number), self._boxes(number))

    def _item(self, number: int, name: str, label: int, boxes: tuple[Box, ...]) -> Item:
        wnid, text = self.classes[label] if label else ("", "")
        columns = (
            {column: values[number] for column, values in self.columns.items()}
            if self.columns
            else {}
        )
        return Item(name, label, wnid, text, boxes, columns)

    def _boxes_in_turn(self) -> Iterator[tuple[Box, ...]]:
        for rows in chunks(len(self)):
            starts = self.box_starts[rows.start : rows.stop + 1].tolist()
            corners = iter(self.boxes[4 * starts[0] : 4 * starts[-1]].reshape(-1, 4).tolist())
            for start, stop in itertools.pairwise(starts):
                yield tuple([Box(*each) for each in itertools.islice(corners, stop - start)])

    def _boxes(self, number: int) -> tuple[Box, ...]:
        if not len(self.box_starts):
            return ()
        start, stop = self.box_starts[number : number + 2].tolist()
        return tuple(
            [Box(*values) for values in self.boxes[4 * start : 4 * stop].reshape(-1, 4).tolist()]
        )

    def count_by_label(self) -> dict[int, int]:
        """The number of images per label; labels without any are left out."""
        labels, counts = np.unique(self.labels, return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def size(self, rows: Rows) -> int:
        """The number of bytes in these rows together."""
        return int(self.lengths[places_of(rows)].sum(dtype=np.int64))

    def times(self, rows: Rows) -> str:
        """A digest (hex) of the modification times of the files that hold these rows,
        and of their masks.
        """
        masks = self._mask_times(rows)
        more = json.dumps(masks, sort_keys=True).encode() if masks else b""
        return hashlib.sha256(
            self.stamps[places_of(rows)].astype("<i8").tobytes() + more
        ).hexdigest()

    def _mask_times(self, rows: Rows) -> dict[str, list[int | list[int]]]:
        """The modification times of the masks of these rows by folder."""
        found: dict[str, list[int | list[int]]] = {}
        if MASK_STAMP in self.columns:
            stamps = (self.columns[MASK_STAMP][row] for row in rows)
            for folder, time in filter(None, stamps):
                found.setdefault(folder, []).append(time)
        return found

    def is_current(self, *, trusts_folders: bool) -> bool:
        """Whether the files that hold its rows are unchanged.

        Of separate image files, the first one is checked: a copy may have times of its own.
        """
        for number, row in zip(*np.unique(self.container_ids, return_index=True), strict=True):
            container = self.containers[number]
            if container.reading == "alone":
                if not trusts_folders or self._has_other_time(row):
                    return False
            elif (
                not container.path.is_file()
                or container.path.stat().st_mtime_ns != self.stamps.item(row)
            ):
                return False
        return True

    def _has_other_time(self, row: int) -> bool:
        """Whether the image file of a row is there with another time; not asked of a store."""
        path = local_or_none(below(self.container(row).path, self.names[row]))
        with contextlib.suppress(OSError):
            return path is not None and path.stat().st_mtime_ns != self.stamps.item(row)
        return False

    def stamps_of_containers(self) -> dict[str, str]:
        """A digest (hex) of the modification times in each container and each folder of masks,
        by its path.
        """
        ordered = np.argsort(self.container_ids, kind="stable")
        edges = np.searchsorted(self.container_ids[ordered], np.arange(len(self.containers) + 1))
        images = replace(self, columns={})
        found = {
            _known_by(each): images.times(ordered[start:stop])
            for each, start, stop in zip(self.containers, edges[:-1], edges[1:], strict=True)
        }
        masks = self._mask_times(range(len(self))).items()
        return found | {
            folder: hashlib.sha256(json.dumps(times).encode()).hexdigest()
            for folder, times in masks
        }

    def containers_of(self, rows: Rows) -> list[str]:
        """The paths of the containers of these rows, and of the folders of their masks."""
        ids = set(self.container_ids[places_of(rows)].tolist())
        return [
            *(_known_by(self.containers[number]) for number in sorted(ids)),
            *self._mask_times(rows),
        ]

    # on disk --------------------------------------------------------------------------------------

    def pack(self) -> PackedCatalog:
        """Its form on disk."""
        arrays = {name: getattr(self, name) for name in (*_COLUMNS, "box_starts", "boxes")}
        arrays |= {"names": self.names.blob, "name_starts": self.names.starts}
        for number, values in enumerate(self.columns.values()):
            texts = Names.take(map(json.dumps, values))
            arrays |= {f"column_{number}": texts.blob, f"column_{number}_starts": texts.starts}
        arrays = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
        head = _Head(
            split=self.split,
            rows=len(self),
            classes=[(label, *words) for label, words in self.classes.items()],
            containers=[
                (type(each).__name__, str(each.path.absolute())) for each in self.containers
            ],
            columns=list(self.columns),
            arrays={name: SavedArray.describe(values) for name, values in arrays.items()},
        )
        return PackedCatalog(
            (json.dumps(to_builtins(head), sort_keys=True) + "\n").encode(), arrays
        )

    @classmethod
    def load(cls, folder: AnyPath, digest: str, pieces: Sequence[range] | None = None) -> Catalog:
        """Load a saved table, or some rows: memory maps of files, or the required bytes from an
        object store.

        Every byte that is used is compared with a checksum.

        Args:
            folder: the folder it was saved in.
            digest: the name of the saved table, see PackedCatalog.
            pieces: the rows; None for all.

        Raises:
            DamagedError: part of it is gone, or has changed since it was written.
            InputError: the storage can't be read.
        """
        try:
            head = _Head.load(folder, digest)
            files = ArrayFolder(folder, head.arrays)
            pieces = [range(head.rows)] if pieces is None else pieces
            numbers = {name: files.part(name, pieces) for name in _COLUMNS}
            spans, box_starts = (
                files.spans("box_starts", pieces) if files.count("box_starts") else ([], _NOTHING)
            )
            columns: dict[str, Sequence[Any]] = {
                name: _JsonColumn(
                    files.texts(f"column_{number}", f"column_{number}_starts", pieces)
                )
                for number, name in enumerate(head.columns)
            }
            return cls(
                split=head.split,
                classes={label: (wnid, text) for label, wnid, text in head.classes},
                containers=[_container(kind, path) for kind, path in head.containers],
                names=files.texts("names", "name_starts", pieces),
                box_starts=box_starts,
                boxes=files.part("boxes", [range(4 * each.start, 4 * each.stop) for each in spans]),
                columns=columns,
                **numbers,
            )
        except ValueError as error:
            raise DamagedError(
                f"{folder} is damaged: {error}",
                "expected the listing of raw data as imagenet-prep convert wrote it",
                "run the same imagenet-prep convert again: it lists the raw data again",
            ) from error


class DamagedError(InputError):
    """A saved table is not as it was written."""


class _Head(Struct, frozen=True):
    """The content of catalog.json; see Catalog."""

    split: str
    rows: int
    classes: list[tuple[int, str, str]]
    containers: list[tuple[str, str]]
    columns: list[str]
    arrays: dict[str, SavedArray]

    @classmethod
    def load(cls, folder: AnyPath, digest: str) -> _Head:
        """The one that was saved under this digest;
        raises ValueError if it is not there, or another one is.
        """
        content = find_plain(folder / "catalog.json", MOST_BYTES)
        if content is None:
            raise ValueError("catalog.json is gone")
        if _digest(content) != digest:
            raise ValueError("catalog.json has another digest than its name")
        return convert(json.loads(content), cls)


class PackedCatalog(Struct, frozen=True):
    """A Catalog in its form on disk: ``head``, the content of catalog.json,
    and the columns by name.
    """

    head: bytes
    arrays: Mapping[str, Column]

    @property
    def name(self) -> str:
        """A digest of all of it."""
        return _digest(self.head)

    def save(self, folder: AnyPath) -> None:
        """Save it durably in a folder or object store, unless it is there, intact;
        ``catalog.json`` is written last.
        """
        with contextlib.suppress(InputError):
            Catalog.load(folder, self.name)
            return
        if (local := local_or_none(folder)) is not None:
            make_folder(local)
        store = open_store(folder)
        for name, values in self.arrays.items():
            file = array_file(name)
            with writing(folder / file), store.create(file) as sink:
                sink.write([values.data.cast("B")])
                sink.commit()
        with writing(folder):
            store.sync()
        save_bytes(folder / "catalog.json", self.head)


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()[:16]


class _JsonColumn(Sequence[Any]):
    """The values of a saved column, each parsed on access."""

    __slots__ = ("_texts",)

    def __init__(self, texts: Names) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, row: int) -> Any:  # type: ignore[override]
        return json.loads(self._texts.encoded(row))


def _container(kind: str, path: str) -> Container:
    """The container of a kind, found by the name in a saved table."""
    made: Container = getattr(
        importlib.import_module(f"imagenet_prep.sources.{_KINDS[kind]}"), kind
    )(locate(path))
    return made


class CatalogBuilder:
    """Rows that become a Catalog: added one by one for one container, or in parts."""

    def __init__(self, *containers: Container) -> None:
        self._containers = {container: number for number, container in enumerate(containers)}
        self._blob, self._starts = bytearray(), array("q", [0])
        self._columns = {name: array(form) for name, form in _COLUMNS.items()}
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
        known = self._containers
        numbers = np.array(
            [known.setdefault(each, len(known)) for each in part.containers], np.int32
        )
        self._starts.frombytes((part.names.starts[1:].astype(np.int64) + len(self._blob)).tobytes())
        self._blob += part.names.blob.data
        for name, column in self._columns.items():
            values = numbers[part.container_ids] if name == "container_ids" else getattr(part, name)
            column.frombytes(values.astype(column.typecode).tobytes())

    def listed(self) -> Catalog:
        """The rows in the order of adding; no more can be added."""
        names = Names(np.frombuffer(self._blob, np.uint8), _narrow(np.asarray(self._starts)))
        columns: dict[str, Any] = {
            name: _narrow(np.asarray(values)) for name, values in self._columns.items()
        }
        return Catalog(containers=list(self._containers), names=names, **columns)

    def sorted(self) -> Catalog:
        """The rows by label, then by the bytes of their names."""
        return self.listed().sorted()


def _narrow(values: Column) -> Column:
    """A copy with the fewest bytes per value, always signed: differences of values are computed."""
    most = max(int(values.max()), -int(values.min())) if len(values) else 0
    return values.astype(
        next(form for form in (np.int8, np.int16, np.int32, np.int64) if most <= np.iinfo(form).max)
    )


class Remarks(Struct):
    """Remarks of a listing, apart from its rows.

    ``links`` names rows that are links out of the searched folder. ``passed`` names skipped
    entries, by the reason. ``obstacles`` are the errors of entries that can't be skipped.
    """

    links: list[str] = []
    passed: dict[str, list[str]] = {}
    obstacles: list[InputError] = []

    @classmethod
    def join(cls, parts: Iterable[Remarks]) -> Remarks:
        """All remarks of parts, in order."""
        joined = cls()
        for part in parts:
            joined.links += part.links
            joined.obstacles += part.obstacles
            for reason, names in part.passed.items():
                joined.passed.setdefault(reason, []).extend(names)
        joined.links = sorted(set(joined.links))
        joined.obstacles.sort(key=str)
        for names in joined.passed.values():
            names.sort()
        return joined

    def pass_over(self, name: str, reason: str) -> None:
        """Record a skipped entry."""
        self.passed.setdefault(reason, []).append(name)


def refuse_twice(catalog: Catalog) -> Catalog:
    """The catalog, if its names are unique; its rows are sorted by name.

    Raises:
        InputError: a name repeats.
    """
    row = catalog.names.first_twice()
    if row is None:
        return catalog
    first, second = (catalog.container(each).path for each in (row, row + 1))
    places = f"in {first} and in {second}" if first != second else f"in {first}, twice"
    raise InputError(
        f"{catalog.names[row]} occurs {places}", "expected every name once", "rename one of them"
    )


_SHARD = re.compile(r"(.*-)(\d{5})(-of-(\d{5}).*)")


def missing_shards(paths: Iterable[object]) -> list[InputError]:
    """The fault of each set of files a-00000-of-00002 that isn't whole."""
    found: dict[tuple[str, str, int], set[int]] = {}
    for match in filter(None, (_SHARD.fullmatch(str(path)) for path in paths)):
        found.setdefault((match[1], match[3], int(match[4])), set()).add(int(match[2]))
    faults = []
    for (head, tail, count), numbers in found.items():
        names = [f"{head}{number:05}{tail}" for number in range(count) if number not in numbers]
        if names:
            what = (
                f"{len(names):,} of {count:,} files are missing, by the names of the others: "
                f"{listed(names)}"
            )
            hint = "add them; or give the files names without -of-"
            faults.append(InputError(what, f"expected {count:,} files {head}*{tail}", hint))
    return faults


def fault_of_name(name: str, where: AnyPath) -> InputError | None:
    """The error for a name that can't be a line of UTF-8,
    so it could neither be listed nor found again.
    """
    try:
        key = name.encode()
    except UnicodeEncodeError:
        key = b"\n"
    if len(name) < 8192 and not any(byte < 32 for byte in key) and b"\x7f" not in key:
        return None
    return InputError(
        f"{where} holds a file whose name can't be written: '{escaped(name)}'",
        "expected UTF-8 without control characters",
        "rename it",
    )


def _known_by(container: Container) -> str:
    """The path of a container, the same for any links that lead to it."""
    return str(container.path.resolve())
