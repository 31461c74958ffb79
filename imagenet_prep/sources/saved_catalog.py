"""PackedCatalog: a Catalog -> its form on disk, saved in a folder or store;
load_catalog: the rows of a saved one, checked.

The form is ``catalog.json`` (split, classes, kind and path of each container, names of columns;
type, count and checksums of each file) and one file of plain values per column: names (joined
UTF-8), name_starts, container_ids, offsets, lengths, stamps, labels, box_starts and boxes
(float32). Each of the other columns has its JSON texts and their start offsets: column_0,
column_0_starts, ... The rows of a shard are one range of each. A digest of catalog.json names the
whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, convert, to_builtins

from imagenet_prep.errors import InputError
from imagenet_prep.sources.blocks import ArrayFolder, SavedArray, array_file
from imagenet_prep.sources.catalog import NUMBER_COLUMNS, Catalog
from imagenet_prep.sources.names import Column, Names
from imagenet_prep.sources.slices import Container, container_class
from imagenet_prep.storage.durable import make_folder
from imagenet_prep.storage.files import find_plain
from imagenet_prep.storage.location import AnyPath, Sink, Store, local_or_none, locate, open_store
from imagenet_prep.storage.refusals import GoneError, replaced_by_run, writing

MOST_BYTES = 1 << 33
"""The largest catalog.json that is read; a billion rows have some 300 MB of checksums."""


class DamagedError(InputError):
    """A saved table is not as it was written."""


class _Head(Struct, frozen=True):
    """The content of catalog.json."""

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
        if content is None or _digest(content) != digest:
            raise ValueError("catalog.json is gone or has changed")
        return convert(json.loads(content), cls)


class PackedCatalog(Struct, frozen=True):
    """A Catalog in its form on disk: ``head``, the content of catalog.json,
    and the columns by name.
    """

    head: bytes
    arrays: Mapping[str, Column]

    @classmethod
    def pack(cls, catalog: Catalog) -> PackedCatalog:
        """The form of a table on disk."""
        columns: dict[str, Column] = {}
        for name in (*NUMBER_COLUMNS, "box_starts", "boxes"):
            columns[name] = getattr(catalog, name)
        columns["names"] = catalog.names.blob
        columns["name_starts"] = catalog.names.starts
        for number, column in enumerate(catalog.columns.values()):
            texts = Names.take(map(json.dumps, column))
            columns[f"column_{number}"] = texts.blob
            columns[f"column_{number}_starts"] = texts.starts
        arrays = {name: np.ascontiguousarray(column) for name, column in columns.items()}
        containers: list[tuple[str, str]] = []
        for container in catalog.containers:
            path = container.path.absolute()
            containers.append((type(container).__name__, str(path)))
        classes = [(label, *words) for label, words in catalog.classes.items()]
        saved_arrays = {name: SavedArray.describe(array) for name, array in arrays.items()}
        head = _Head(
            split=catalog.split,
            rows=len(catalog),
            classes=classes,
            containers=containers,
            columns=list(catalog.columns),
            arrays=saved_arrays,
        )
        text = json.dumps(to_builtins(head), sort_keys=True)
        return cls(f"{text}\n".encode(), arrays)

    @property
    def name(self) -> str:
        """A digest of all of it."""
        return _digest(self.head)

    def save(self, folder: AnyPath, unfinished: AnyPath | None = None) -> None:
        """Save it durably in a folder or object store, unless it is there, intact;
        ``catalog.json`` is written last. ``unfinished`` is that of ``open_store``.
        """
        with contextlib.suppress(InputError):
            load_catalog(folder, self.name)
            return
        local = local_or_none(folder)
        if local is not None:
            make_folder(local)
        store = open_store(folder, unfinished)
        for name, array in self.arrays.items():
            file = array_file(name)
            with _create(store, folder / file) as sink:
                sink.write([array.data.cast("B")])
                sink.commit()
        with writing(folder):
            store.sync()
        with _create(store, folder / "catalog.json") as sink:
            sink.write([self.head])
            sink.seal()
            sink.commit()
            store.sync_names()


@contextlib.contextmanager
def _create(store: Store, path: AnyPath) -> Iterator[Sink]:
    """A file to write; raises BusyError if another run removes it meanwhile."""
    with writing(path):
        try:
            with store.create(path.name) as sink:
                yield sink
        except GoneError as error:
            raise replaced_by_run(path, "there") from error


def load_catalog(folder: AnyPath, digest: str, pieces: Sequence[range] | None = None) -> Catalog:
    """Load a saved table, or some rows: memory maps of files, or the required bytes from an object
    store.

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
        if pieces is None:
            pieces = [range(head.rows)]
        return _read_rows(head, files, pieces)
    except ValueError as error:
        raise DamagedError(f"{folder} can't be used: {error}") from error


def _read_rows(head: _Head, files: ArrayFolder, pieces: Sequence[range]) -> Catalog:
    numbers = {name: files.part(name, pieces) for name in NUMBER_COLUMNS}
    columns: dict[str, Sequence[Any]] = {}
    for number, name in enumerate(head.columns):
        texts = files.texts(f"column_{number}", f"column_{number}_starts", pieces)
        columns[name] = _JsonColumn(texts)
    classes = {label: (wnid, text) for label, wnid, text in head.classes}
    containers: list[Container] = []
    for kind, path in head.containers:
        make_container = container_class(kind)
        containers.append(make_container(locate(path)))
    names = files.texts("names", "name_starts", pieces)
    catalog = Catalog(
        split=head.split,
        classes=classes,
        containers=containers,
        names=names,
        columns=columns,
        **numbers,
    )
    if files.count("box_starts"):
        box_ranges, catalog.box_starts = files.spans("box_starts", pieces)
        edge_ranges = [range(4 * boxes.start, 4 * boxes.stop) for boxes in box_ranges]
        catalog.boxes = files.part("boxes", edge_ranges)
    return catalog


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
        text = self._texts.encoded(row)
        return json.loads(text)
