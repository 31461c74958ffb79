"""Catalog, the one table of images: a row a file in compact arrays, 1.3 million of them in tens of megabytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, repeat
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.model import Box, Item
from imagenet_prep.sources.container import Container, Reader, Row
from imagenet_prep.sources.slices import Buffer

_NARROW = 1 << 16  # labels below it take 16 bits in a digest, as they did when there were no others
_CHUNK = 4096  # rows whose names and numbers are objects at a time


@dataclass(slots=True)
class Names:
    """File names in one piece of memory: as objects, 1.3 million would take a hundred megabytes."""

    joined: bytearray = field(default_factory=bytearray)
    starts: array[int] = field(default_factory=lambda: array("Q", [0]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> str:
        return self.joined[self.starts[row] : self.starts[row + 1]].decode()

    def __iter__(self) -> Iterator[str]:
        if self.joined.isascii():  # one decoding in place of a million
            text = self.joined.decode("ascii")
            return (text[start:stop] for start, stop in pairwise(self.starts))
        return (self.joined[start:stop].decode() for start, stop in pairwise(self.starts))

    def encoded(self) -> Callable[[int], bytes]:
        """What gives the name of a row in UTF-8."""
        joined, starts = bytes(self.joined), self.starts
        return lambda row: joined[starts[row] : starts[row + 1]]

    def extend(self, names: Names) -> None:
        """Add all of another one."""
        base = len(self.joined)
        self.joined += names.joined
        self.starts.extend([base + stop for stop in names.starts[1:]] if base else names.starts[1:])

    def picked(self, rows: Sequence[int]) -> Names:
        """Those of ``rows``, in that order."""
        found, joined, starts = Names(), self.joined, self.starts
        for first in range(0, len(rows), _CHUNK):
            names = [joined[starts[row] : starts[row + 1]] for row in rows[first : first + _CHUNK]]
            found.joined += b"".join(names)
            found.starts.extend(accumulate(map(len, names), initial=found.starts.pop()))
        return found


@dataclass(slots=True)
class Catalog:
    """Files, and what is known of them; all arrays have a value a row, but for those of what is not known: empty.

    ``names`` are relative to the container of the row, "/" between folders. ``offsets`` are bytes within an archive, 0
    for a file of its own; ``lengths`` are bytes, ``stamps`` modification times in ns of the file that holds the image.
    Of a ``split``: ``labels`` count ``wnids`` and ``texts`` from 1, 0 is none. ``boxes`` holds xmin, ymin, xmax, ymax a
    box, those of row ``i`` from box ``box_starts[i]`` to ``box_starts[i + 1]``. ``columns`` hold None for no value.
    """

    split: str = ""
    wnids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    containers: list[Container] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    container_ids: array[int] = field(default_factory=lambda: array("I"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("Q"))
    stamps: array[int] = field(default_factory=lambda: array("q"))
    labels: array[int] = field(default_factory=lambda: array("I"))
    box_starts: array[int] = field(default_factory=lambda: array("I"))
    boxes: array[float] = field(default_factory=lambda: array("f"))
    columns: dict[str, list[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets)

    # putting it together ---------------------------------------------------------------------------------------

    def append(self, name: str, offset: int, length: int, stamp: int, label: int | None = None) -> None:
        """Add a file of the first container, and its label where labels are known."""
        names = self.names
        names.joined += name.encode()
        names.starts.append(len(names.joined))
        self.container_ids.append(0)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.stamps.append(stamp)
        if label is not None:
            self.labels.append(label)

    @classmethod
    def join(cls, parts: Iterable[Catalog], *, is_listed: bool = False) -> Catalog:
        """The rows of all parts by label, then by the bytes of their names; ``is_listed``: in the order of a list.

        Parts come as workers finish, and are let go one by one; they know of no boxes and columns. Parts that are
        sorted make it cheap.
        """
        joined = cls()
        ids: dict[Container, int] = {}
        left = [part for part in parts if len(part)]
        if not is_listed:
            left.sort(key=lambda part: (part.labels[:1], part.names[0].encode(), str(part.containers[0].path)))
        left.reverse()
        while left:
            part = left.pop()
            numbers = [ids.setdefault(container, len(ids)) for container in part.containers]
            joined.container_ids.extend(map(numbers.__getitem__, part.container_ids))
            joined.names.extend(part.names)
            joined.offsets.extend(part.offsets)
            joined.lengths.extend(part.lengths)
            joined.stamps.extend(part.stamps)
            joined.labels.extend(part.labels)
        joined.containers = list(ids)
        return joined if is_listed else joined.sorted()

    def sorted(self) -> Catalog:
        """The rows by label, then by the bytes of their names."""
        by_label = {label: array("I") for label in sorted(set(self.labels or [0]))}
        for row, label in enumerate(self.labels or repeat(0, len(self))):
            by_label[label].append(row)
        order, encoded = array("I"), self.names.encoded()
        for rows in by_label.values():
            order.extend(sorted(rows, key=encoded))
        return self if order == array("I", range(len(self))) else self.picked(order)

    def picked(self, rows: Sequence[int]) -> Catalog:
        """Just these rows, in this order, without boxes: those come last."""
        return dataclasses.replace(
            self,
            names=self.names.picked(rows),
            container_ids=_picked(self.container_ids, rows),
            offsets=_picked(self.offsets, rows),
            lengths=_picked(self.lengths, rows),
            stamps=_picked(self.stamps, rows),
            labels=_picked(self.labels, rows),
            box_starts=array("I"),
            boxes=array("f"),
            columns={name: [values[row] for row in rows] for name, values in self.columns.items()},
        )

    def whole(self, rows: Sequence[int]) -> Catalog:
        """The same with boxes, and no word of containers and classes that no row needs: to be sent to a worker."""
        found = self.picked(rows)
        ids = sorted(set(found.container_ids))
        if len(ids) < len(self.containers):
            new = {old: number for number, old in enumerate(ids)}
            found.container_ids = array("I", map(new.__getitem__, found.container_ids))
            found.containers = [self.containers[each] for each in ids]
        labels = set(found.labels) - {0}
        found.wnids, found.texts = _only(self.wnids, labels), _only(self.texts, labels)
        if self.box_starts:
            spans = [self._boxes_of(row) for row in rows]
            found.box_starts = array("I", accumulate(map(len, spans), initial=0))
            for span in spans:
                found.boxes.extend(self.boxes[4 * span.start : 4 * span.stop])
        return found

    def attach_boxes(self, boxes: Mapping[str, Sequence[Box]]) -> None:
        """Give every image its boxes, by file name."""
        starts, values = array("I", [0]), array("f")
        for filename in self.names:
            if filename in boxes:
                for box in boxes[filename]:
                    values.extend((box.xmin, box.ymin, box.xmax, box.ymax))
            starts.append(len(values) // 4)
        self.box_starts, self.boxes = starts, values

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
        return dict(Counter(self.labels))

    def digest(self) -> str:
        """A digest (hex) of the names, lengths and labels of all rows."""
        form = "H" if max(self.labels, default=0) < _NARROW else "I"
        digest = hashlib.sha256(self.names.joined)
        for values in (self.lengths, array(form, self.labels)):
            digest.update(values)
        return digest.hexdigest()

    def fingerprint(self, rows: Sequence[int], settings: str) -> str:
        """A digest (hex) of everything that decides a shard's bytes.

        That is the ordered items (name, label, words, boxes, length, columns), and ``settings``, the canonical form of
        every setting that changes bytes. Where the items lie, and since when, makes no difference.
        """
        return self._digest(rows, settings, has_times=False)

    def fingerprint_with_times(self, rows: Sequence[int], settings: str) -> str:
        """What versions took for the fingerprint that knew items by the times of their files, too."""
        return self._digest(rows, settings, has_times=True)

    def _digest(self, rows: Sequence[int], settings: str, *, has_times: bool) -> str:
        names, starts = self.names.joined, self.names.starts
        labels, lengths, stamps = self.labels, self.lengths, self.stamps
        columns = [self.columns[name] for name in sorted(self.columns)]
        picked = _picked(labels, rows)
        label_form = "H" if max(picked, default=0) < _NARROW else "I"
        digest = hashlib.sha256(settings.encode())
        update, pack = digest.update, struct.Struct(f"<{label_form}QI").pack
        pack_timed = struct.Struct(f"<{label_form}QqI").pack
        for row in rows:
            boxes = self.box_starts[row + 1] - self.box_starts[row] if self.box_starts else 0
            update(names[starts[row] : starts[row + 1]])
            if has_times:
                update(pack_timed(labels[row], lengths[row], stamps[row], boxes))
            else:
                update(pack(labels[row], lengths[row], boxes))
            if boxes:
                first = 4 * self.box_starts[row]
                update(self.boxes[first : first + 4 * boxes])
            if columns:
                update(json.dumps([values[row] for values in columns]).encode())
        for label in sorted(set(picked) - {0}):
            update(f"{label} {self.wnids[label - 1]} {self.texts[label - 1]}\n".encode())
        return digest.hexdigest()

    def times(self, rows: Sequence[int]) -> str:
        """A digest (hex) of the modification times of the files that hold these rows."""
        return hashlib.sha256(_picked(self.stamps, rows)).hexdigest()

    def stamps_of_containers(self) -> dict[str, str]:
        """A digest (hex) of the modification times of the rows that lie in each container, by its path."""
        stamps = [array("q") for _ in self.containers]
        if len(stamps) == 1:
            stamps = [self.stamps]
        else:
            for number, stamp in zip(self.container_ids, self.stamps, strict=True):
                stamps[number].append(stamp)
        digests = (hashlib.sha256(each).hexdigest() for each in stamps)
        return {_known_by(each): digest for each, digest in zip(self.containers, digests, strict=True)}

    def containers_of(self, rows: Sequence[int]) -> list[str]:
        """The paths of the containers that these rows lie in."""
        return [_known_by(self.containers[number]) for number in sorted({self.container_ids[row] for row in rows})]


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
    for row, (name, following) in enumerate(pairwise(catalog.names)):
        if name == following:
            first, second = (catalog.container(each).path for each in (row, row + 1))
            places = f"in {first} and in {second}" if first != second else f"in {first}, twice"
            raise InputError(f"{name} occurs {places}", "expected every name once", "rename one of them")
    return catalog


def fault_of_name(name: str, where: Path) -> InputError | None:
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


def _picked(column: array[int], rows: Sequence[int]) -> array[int]:
    found = array(column.typecode)
    for first in range(0, len(rows) if column else 0, _CHUNK):
        found.fromlist([column[row] for row in rows[first : first + _CHUNK]])
    return found


def _known_by(container: Container) -> str:
    """The path of a container, the same by whatever links it is reached."""
    return str(container.path.resolve())


def _only(words: Sequence[str], labels: set[int]) -> tuple[str, ...]:
    """The words of these labels in their places, the others empty."""
    found = [""] * len(words)
    for label in labels:
        found[label - 1] = words[label - 1]
    return tuple(found)
