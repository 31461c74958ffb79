"""Catalog, the one table of images: a row a file in compact columns, 1.3 million of them in tens of megabytes."""

from __future__ import annotations

import dataclasses
import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from imagenet_prep.errors import InputError
from imagenet_prep.model import Box, Item
from imagenet_prep.sources import numbers as cols
from imagenet_prep.sources.arrangement import Arrangement
from imagenet_prep.sources.container import Container, Reader, Row
from imagenet_prep.sources.names import Names, NamesBuilder
from imagenet_prep.sources.numbers import Builder, Numbers, Rows, chunks, distinct, some
from imagenet_prep.sources.slices import Buffer
from imagenet_prep.sources.sorting import is_sorted, sorted_rows
from imagenet_prep.storage.location import AnyPath

_COLUMNS = ("container_ids", "offsets", "lengths", "stamps", "labels")


class Words(Sequence[str]):
    """The words of some labels in their places among ``count`` labels; those of the others are empty."""

    __slots__ = ("_count", "_known")

    def __init__(self, count: int, known: Mapping[int, str]) -> None:
        self._count, self._known = count, known

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> str:  # type: ignore[override]
        if not 0 <= place < self._count:
            raise IndexError(place)
        return self._known.get(place, "")

    def __reduce__(self) -> tuple[type[Words], tuple[int, Mapping[int, str]]]:
        return Words, (self._count, self._known)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class Catalog:
    """Files, and what is known of them; all columns have a value a row, but for those of what is not known: empty.

    ``names`` are relative to the container of the row, "/" between folders. ``offsets`` are bytes within an archive, 0
    for a file of its own; ``lengths`` are bytes, ``stamps`` modification times in ns of the file that holds the image.
    Of a ``split``: ``labels`` count ``wnids`` and ``texts`` from 1, 0 is none. ``boxes`` holds xmin, ymin, xmax, ymax a
    box, those of row ``i`` from box ``box_starts[i]`` to ``box_starts[i + 1]``. ``columns`` hold None for no value.
    """

    split: str = ""
    wnids: Sequence[str] = ()
    texts: Sequence[str] = ()
    containers: list[Container] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    container_ids: Numbers = field(default_factory=lambda: array("I"))
    offsets: Numbers = field(default_factory=lambda: array("Q"))
    lengths: Numbers = field(default_factory=lambda: array("Q"))
    stamps: Numbers = field(default_factory=lambda: array("q"))
    labels: Numbers = field(default_factory=lambda: array("I"))
    box_starts: array[int] = field(default_factory=lambda: array("I"))
    boxes: array[float] = field(default_factory=lambda: array("f"))
    columns: dict[str, list[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets)

    # putting it together ---------------------------------------------------------------------------------------

    def append(self, name: str, offset: int, length: int, stamp: int, label: int | None = None) -> None:
        """Add a file of the first container, and its label where labels are known; in memory."""
        assert isinstance(self.offsets, array), "a table that is put together row by row is short"
        self.names.append(name)
        self.container_ids.append(0)  # type: ignore[union-attr]
        self.offsets.append(offset)
        self.lengths.append(length)  # type: ignore[union-attr]
        self.stamps.append(stamp)  # type: ignore[union-attr]
        if label is not None:
            self.labels.append(label)  # type: ignore[union-attr]

    @classmethod
    def join(cls, parts: Iterable[Catalog], *, is_listed: bool = False) -> Catalog:
        """The rows of all parts by label, then by the bytes of their names; ``is_listed``: in the order of a list.

        Parts are let go one by one as they come; they know of no boxes and columns. Where they come in order, and each
        is sorted, nothing has to be sorted again.
        """
        ids: dict[Container, int] = {}
        names, builders = NamesBuilder(), cls()._builders()
        for part in parts:
            numbers = [ids.setdefault(container, len(ids)) for container in part.containers] if len(part) else []
            names.add_all(part.names)
            is_alike = numbers == list(range(len(numbers)))
            for name, builder in builders.items():
                column = getattr(part, name)
                builder.add(column if name != "container_ids" or is_alike else _mapped(column, numbers))
        columns: dict[str, Any] = {name: builder.done() for name, builder in builders.items()}
        joined = cls(containers=list(ids), names=names.done(), **columns)
        return joined if is_listed else joined.sorted()

    def sorted(self) -> Catalog:
        """The rows by label, then by the bytes of their names."""
        if is_sorted(self.names, self.labels):
            return self
        return self.picked(cols.column_of("I", sorted_rows(self.names, self.labels)))

    def picked(self, rows: Rows) -> Catalog:
        """Just these rows, in this order."""
        if isinstance(rows, range) and rows == range(len(self)):
            return self
        found: dict[str, Any]
        if isinstance(rows, range) and rows.step == 1:
            names, builders = NamesBuilder(), self._builders()
            for block in cols.blocks(rows):
                names.add(*self.names.some(block))
                for name, builder in builders.items():
                    column = getattr(self, name)
                    builder.add(some(column, block) if len(column) else column)
            found = {"names": names.done(), **{name: builder.done() for name, builder in builders.items()}}
        else:
            arrangement = Arrangement(rows)
            found = {name: arrangement.column(getattr(self, name)) for name in _COLUMNS}
            found["names"] = arrangement.names(self.names)
        found["box_starts"], found["boxes"] = self.boxes_of(rows)
        found["columns"] = {name: [values[row] for row in rows] for name, values in self.columns.items()}
        return dataclasses.replace(self, **found)

    def whole(self, rows: Rows) -> Catalog:
        """The same with no word of containers and classes that no row needs: to be sent to a worker."""
        import numpy as np

        found = dataclasses.replace(self.picked(rows))
        every = range(len(found))
        container_ids = some(found.container_ids, every)
        ids = distinct(container_ids, len(self.containers))
        found.container_ids = cols.column_of("I", [np.searchsorted(ids, container_ids)])
        found.containers = [self.containers[each] for each in ids.tolist()]
        labels = distinct(some(found.labels, every), len(self.wnids) + 1).tolist() if len(found.labels) else []
        known = [label - 1 for label in labels if label]
        found.wnids = Words(len(self.wnids), dict(zip(known, map(self.wnids.__getitem__, known), strict=True)))
        if self.texts == self.wnids:
            found.texts = found.wnids
        else:
            found.texts = Words(len(self.texts), dict(zip(known, map(self.texts.__getitem__, known), strict=True)))
        return found

    def _builders(self) -> dict[str, Builder]:
        return {name: Builder(getattr(self, name).typecode) for name in _COLUMNS}

    def attach_boxes(self, boxes: Mapping[str, Sequence[Box]]) -> None:
        """Give every image its boxes, by file name."""
        starts, values = array("I", [0]), array("f")
        for filename in self.names:
            if filename in boxes:
                for box in boxes[filename]:
                    values.extend((box.xmin, box.ymin, box.xmax, box.ymax))
            starts.append(len(values) // 4)
        self.box_starts, self.boxes = starts, values

    def boxes_of(self, rows: Rows) -> tuple[array[int], array[float]]:
        """Where the boxes of these rows begin, and the boxes; nothing where none are known."""
        import numpy as np

        if not self.box_starts:
            return array("I"), array("f")
        starts = np.asarray(self.box_starts, np.int64)
        rows = np.asarray(rows, np.int64)
        counts = starts[rows + 1] - starts[rows]
        edges = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        places = np.repeat(starts[rows] - edges[:-1], counts) + np.arange(edges[-1])
        boxes = array("f", np.asarray(self.boxes, np.float32).reshape(-1, 4)[places].tobytes())
        return array("I", edges.astype(np.uint32).tobytes()), boxes

    # what it holds ---------------------------------------------------------------------------------------------

    def row(self, number: int) -> Row:
        """What the container of a row knows it by."""
        return Row(self.names[number], self.offsets[number], self.lengths[number], self.stamps[number])

    @property
    def is_in_order(self) -> bool:
        """Whether some of its containers can only be read in their order."""
        return any(container.reading == "in order" for container in self.containers)

    def container(self, number: int) -> Container:
        """The container that a row lies in."""
        return self.containers[self.container_ids[number]]

    def place(self, number: int) -> str:
        """Where a row lies, in words."""
        return self.container(number).place(self.row(number))

    def read(self, number: int, reader: Reader) -> Buffer:
        """The bytes of a row.

        Raises:
            InputError: they are not there any more.
        """
        return reader.read(self.container(number), self.row(number))

    def item(self, number: int) -> Item:
        """All of a row that goes into its record, but for its bytes."""
        label = self.labels[number]
        return Item(
            filename=self.names[number],
            label=label,
            wnid=self.wnids[label - 1] if label else "",
            text=self.texts[label - 1] if label else "",
            boxes=tuple([Box(*self.boxes[4 * each : 4 * each + 4]) for each in self._boxes_of(number)]),
            columns={name: values[number] for name, values in self.columns.items()} if self.columns else {},
        )

    def _boxes_of(self, number: int) -> range:
        return range(self.box_starts[number], self.box_starts[number + 1]) if self.box_starts else range(0)

    def count_by_label(self) -> dict[int, int]:
        """How many images each label has, labels without any left out."""
        import numpy as np

        found: Counter[int] = Counter()
        for rows in chunks(len(self.labels)):
            labels, counts = np.unique(some(self.labels, rows), return_counts=True)
            found.update(dict(zip(labels.tolist(), counts.tolist(), strict=True)))
        return dict(found)

    def size(self, rows: Rows) -> int:
        """How many bytes these rows have together."""
        return sum(int(some(self.lengths, block).sum()) for block in cols.blocks(rows))

    def times(self, rows: Rows) -> str:
        """A digest (hex) of the modification times of the files that hold these rows."""
        return hashlib.sha256(b"".join(some(self.stamps, block).tobytes() for block in cols.blocks(rows))).hexdigest()

    def stamps_of_containers(self) -> dict[str, str]:
        """A digest (hex) of the modification times of the rows that lie in each container, by its path."""
        import numpy as np

        digests = [hashlib.sha256() for _ in self.containers]
        for rows in chunks(len(self)):
            ids, stamps = some(self.container_ids, rows), some(self.stamps, rows)
            ordered = np.argsort(ids, kind="stable")
            edges = np.flatnonzero(np.diff(ids[ordered])) + 1
            for group in np.split(ordered, edges):
                digests[ids[group[0]]].update(stamps[group].tobytes())
        return {_known_by(each): digest.hexdigest() for each, digest in zip(self.containers, digests, strict=True)}

    def containers_of(self, rows: Rows) -> list[str]:
        """The paths of the containers that these rows lie in."""
        ids = {number for block in cols.blocks(rows) for number in some(self.container_ids, block).tolist()}
        return [_known_by(self.containers[number]) for number in sorted(ids)]


@dataclass(slots=True)
class Remarks:
    """What a listing says beside its rows.

    ``links`` names those rows that are links out of the folder that was searched. ``passed`` names what was passed
    over, by the reason; ``obstacles`` are what can't be passed over.
    """

    links: list[str] = field(default_factory=list)
    passed: dict[str, list[str]] = field(default_factory=dict)
    obstacles: list[InputError] = field(default_factory=list)

    @classmethod
    def join(cls, parts: Iterable[Remarks]) -> Remarks:
        """All that parts say, in order."""
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
        """Remember what is not taken."""
        self.passed.setdefault(reason, []).append(name)


def refuse_twice(catalog: Catalog) -> Catalog:
    """The catalog, if no name is there twice; its rows are sorted by their names.

    Raises:
        InputError: one is.
    """
    row = catalog.names.first_twice()
    if row is None:
        return catalog
    first, second = (catalog.container(each).path for each in (row, row + 1))
    places = f"in {first} and in {second}" if first != second else f"in {first}, twice"
    raise InputError(f"{catalog.names[row]} occurs {places}", "expected every name once", "rename one of them")


def fault_of_name(name: str, where: AnyPath) -> InputError | None:
    """The error for a name that can't be a line of UTF-8: it could be neither listed nor found again."""
    try:
        key = name.encode()
    except UnicodeEncodeError:
        key = b"\n"
    if len(name) < 8192 and not any(byte < 32 for byte in key) and b"\x7f" not in key:
        return None
    shown = name.encode("utf-8", "backslashreplace").decode("unicode_escape", "replace") if name.isascii() else name
    return InputError(
        f"{where} holds a file whose name can't be written: {shown!r}",
        "expected UTF-8 without control characters",
        "rename it",
    )


def _known_by(container: Container) -> str:
    """The path of a container, the same by whatever links it is reached."""
    return str(container.path.resolve())


def _mapped(ids: Numbers, numbers: Sequence[int]) -> Numbers:
    """Other numbers in place of ids."""
    import numpy as np

    return cols.column_of("I", [np.array(numbers, np.uint32)[some(ids, rows)] for rows in chunks(len(ids))])


Narrow: TypeAlias = "tuple[dict[str, Any], dict[str, cols.Packed], bytes]"
"""A table whose columns are as narrow as their numbers allow."""


def narrowed(catalog: Catalog) -> Narrow:
    """A table on its way to another process: half as many bytes."""
    values = {each.name: getattr(catalog, each.name) for each in dataclasses.fields(catalog)}
    names: Names = values.pop("names")
    columns = {name: cols.packed(values.pop(name)) for name in (*_COLUMNS, "box_starts")}
    joined, lengths = names.parts()
    return values, {"names": cols.packed(lengths), **columns}, joined


def widened(narrow: Narrow) -> Catalog:
    """The table that was sent."""
    values, columns, joined = narrow
    found: dict[str, Any] = {name: cols.unpacked(packed) for name, packed in columns.items()}
    return Catalog(names=Names.of_parts(joined, found.pop("names")), **values, **found)
