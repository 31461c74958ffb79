"""Archive, a container whose images are slices of its bytes, and the one walk of a tar: files are read in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from imagenet_prep.errors import InputError, Text
from imagenet_prep.model import Engine
from imagenet_prep.sources.catalog import Catalog, fault_of_name, refuse_twice
from imagenet_prep.sources.container import Reading, Row
from imagenet_prep.sources.in_order import in_order
from imagenet_prep.sources.slices import Buffer, changed, slices_of
from imagenet_prep.sources.tar_members import BLOCK, Member, Sliceable, TarFault, iter_members
from imagenet_prep.storage import objects
from imagenet_prep.storage.mapped import map_file
from imagenet_prep.storage.object_path import ObjectPath
from imagenet_prep.storage.refusals import unreadable

_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "Zstandard"}


@dataclass(frozen=True, slots=True)
class Archive:
    """A file in which images lie at offsets: a tar, tars within it, or a bundle."""

    path: Path
    is_sliced: ClassVar[bool] = True
    reading: ClassVar[Reading] = "anywhere"

    def place(self, row: Row) -> str:
        """Where a row lies, in words."""
        return f"{self.path.name}, byte {row.offset:,}"

    def open(self) -> Callable[[Row], Buffer]:
        """What reads rows: slices of the archive's map, so that an image is never copied; of an object, ranges."""
        if isinstance(self.path, ObjectPath):
            return lambda row: self.read_all([row])[0]
        content = map_file(self.path)

        def read(row: Row) -> Buffer:
            return _whole(content[row.offset : row.offset + row.length], self.path, row)

        return read

    def read_all(self, rows: Sequence[Row]) -> list[Buffer]:
        """The bytes of several rows of an object, asked for side by side."""
        path = self.path
        assert isinstance(path, ObjectPath)
        try:
            found = objects.get_ranges(path, [(row.offset, row.offset + row.length) for row in rows])
        except FileNotFoundError as error:
            raise unreadable(path, error) from error
        return [_whole(each, path, row) for each, row in zip(found, rows, strict=True)]


def _whole(found: memoryview, path: Path, row: Row) -> memoryview:
    if len(found) != row.length:
        raise changed(path, row.offset, row.length, len(found))
    return found


class NamedSlices(Sliceable, Protocol):
    """An archive whose members are walked, and what to call it."""

    @property
    def path(self) -> Path:
        """Where it lies."""
        ...


def walk(
    view: NamedSlices, start: int = 0, stop: int | None = None, *, inside: str = "", hint: Text
) -> Iterator[Member]:
    """Name, offset in the archive and length of each file in the tar at ``start`` to ``stop`` of it.

    Raises:
        InputError: it can't be trusted: which archive, which tar ``inside`` it, at which byte; ``hint``: what to do.
    """
    try:
        yield from iter_members(view, start, len(view) if stop is None else stop)
    except TarFault as fault:
        where = f"{view.path} ({inside})" if inside else str(view.path)
        raise InputError(f"{where} is damaged at byte {fault.offset:,}", fault.reason, hint) from fault


def list_tars(archives: Sequence[Path], engine: Engine, *, folder_each: bool) -> Catalog:
    """The files in all of ``archives``; with ``folder_each`` as if each lay in a folder of its archive's name.

    Raises:
        InputError: an archive is damaged or compressed, a name leads out of it, or occurs twice.
    """
    tasks = sorted(archives, key=lambda archive: (os.fsencode(_folder_of(archive)), str(archive)))
    return refuse_twice(Catalog.join(in_order(engine, _List(folder_each), tasks)))


def _folder_of(archive: Path) -> str:
    """The folder that stands for an archive in the names of its files."""
    return f"{archive.name.removesuffix('.tar')}/"


@dataclass(frozen=True, slots=True)
class _List:
    """Lists one tar."""

    folder_each: bool

    def __call__(self, archive: Path) -> Catalog:
        found = Catalog(containers=[Archive(archive)])
        lead = _folder_of(archive) if self.folder_each else ""
        with slices_of(archive) as view:
            _refuse_compressed(archive, bytes(view[0:5]))
            stamp = view.modified
            for raw, offset, length in walk(view, hint="get a sound copy of it"):
                name = _checked(archive, raw, offset)
                if not any(part.startswith(".") for part in name.split("/")):
                    if fault := fault_of_name(lead + name, archive):
                        raise fault
                    found.append(lead + name, offset, length, stamp)
        return found.sorted()


def _refuse_compressed(archive: Path, start: bytes) -> None:
    for magic, name in _COMPRESSED.items():
        if start.startswith(magic):
            raise InputError(
                f"{archive} is compressed with {name}",
                "expected a plain tar: its files are read where they lie",
                "decompress it first",
            )


def _checked(archive: Path, raw: bytes, offset: int) -> str:
    """The name of a member, "./" before it taken away."""
    name = raw.decode("utf-8", "surrogateescape")
    while name.startswith("./"):
        name = name[2:]
    if name.startswith("/") or not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise InputError(
            f"{archive} holds a member whose name leads out of it, at byte {offset - BLOCK:,}",
            f"expected a path within the archive, got {raw[:100].decode('utf-8', 'backslashreplace')!r}",
            "check where it comes from",
        )
    return name
