"""Files found somewhere, in arrays: what a source gives before anyone says what the files are."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.sources.catalog import Container


@dataclass(slots=True)
class Found:
    """Files of one container; parallel lists. ``names`` are relative to it, "/" between folders.

    ``offsets`` are bytes within an archive (0 for a file of its own), ``lengths`` are bytes, ``stamps`` modification
    times in ns. ``links`` names those that are links out of the folder that was searched. ``passed`` names what was
    passed over, by the reason; ``obstacles`` are what can't be passed over.
    """

    container: Container
    names: list[str] = field(default_factory=list)
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("Q"))
    stamps: array[int] = field(default_factory=lambda: array("q"))
    links: list[str] = field(default_factory=list)
    passed: dict[str, list[str]] = field(default_factory=dict)
    obstacles: list[InputError] = field(default_factory=list)

    def add(self, name: str, offset: int, length: int, stamp: int) -> None:
        """Append one file."""
        self.names.append(name)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.stamps.append(stamp)

    def pass_over(self, name: str, reason: str) -> None:
        """Remember what is not taken."""
        self.passed.setdefault(reason, []).append(name)


@dataclass(slots=True)
class Listing:
    """Files of all containers; parallel lists. Sorted by the bytes of the names, or in a manifest's order."""

    containers: list[Container]
    names: list[str]
    container_ids: array[int]
    offsets: array[int]
    lengths: array[int]
    stamps: array[int]
    links: list[str]
    passed: dict[str, list[str]] = field(default_factory=dict)
    obstacles: list[InputError] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)

    def picked(self, rows: Sequence[int]) -> Listing:
        """Just these rows, in this order."""
        ids, offsets, lengths, stamps = (
            array(column.typecode, [column[row] for row in rows])
            for column in (self.container_ids, self.offsets, self.lengths, self.stamps)
        )
        names = [self.names[row] for row in rows]
        return Listing(self.containers, names, ids, offsets, lengths, stamps, self.links, self.passed, self.obstacles)

    def where(self, row: int) -> Path:
        """The file of a row, or the archive that holds it."""
        container = self.containers[self.container_ids[row]]
        return container.path / self.names[row] if container.is_folder else container.path


def join(parts: Iterable[Found]) -> Listing:
    """All files found, sorted by the bytes of their names.

    Raises:
        InputError: a name occurs twice, or can't stand in a list of names.
    """
    listing = in_order(sorted(parts, key=lambda part: part.container.path))  # they come as workers finish
    listing.links.sort()
    listing.obstacles.sort(key=str)
    for names in listing.passed.values():
        names.sort()
    keys = [_key(name, row, listing) for row, name in enumerate(listing.names)]
    ordered = listing.picked(sorted(range(len(keys)), key=keys.__getitem__))
    _refuse_twice(ordered)
    return ordered


def in_order(parts: Iterable[Found]) -> Listing:
    """All files found, as they come."""
    ids: dict[Container, int] = {}
    listing = Listing([], [], array("I"), array("Q"), array("Q"), array("q"), [])
    for part in parts:
        number = ids.setdefault(part.container, len(ids))
        listing.names += part.names
        listing.container_ids.extend([number] * len(part.names))
        listing.offsets.extend(part.offsets)
        listing.lengths.extend(part.lengths)
        listing.stamps.extend(part.stamps)
        listing.links += part.links
        for reason, names in part.passed.items():
            listing.passed.setdefault(reason, []).extend(names)
        listing.obstacles += part.obstacles
    listing.containers = list(ids)
    return listing


def _key(name: str, row: int, listing: Listing) -> bytes:
    fault = fault_of_name(name, listing.containers[listing.container_ids[row]].path)
    if fault is not None:
        raise fault
    return name.encode()


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


def _refuse_twice(listing: Listing) -> None:
    for row in range(1, len(listing)):
        if listing.names[row] == listing.names[row - 1]:
            first, second = listing.where(row - 1), listing.where(row)
            places = f"in {first} and in {second}" if first != second else f"in {first}, twice"
            raise InputError(f"{listing.names[row]} occurs {places}", "expected every name once", "rename one of them")
