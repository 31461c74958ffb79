"""Folder, a container, and what lies below it: all files, or those that match a pattern. Listed in parallel."""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imagenet_prep.errors import InputError, all_of
from imagenet_prep.model import Engine
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder, Remarks, fault_of_name, refuse_twice
from imagenet_prep.sources.container import Reading, Row
from imagenet_prep.sources.in_order import in_order
from imagenet_prep.sources.patterns import compile_pattern, depth_of, folder_of
from imagenet_prep.sources.slices import Buffer
from imagenet_prep.storage.files import scan
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import FolderEntry, changed

HIDDEN, EMPTY, MACOSX = "hidden", "empty folders", "__MACOSX"
"""What is passed over in a folder; macOS puts the last into every archive, for its own use."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, an image a file: the container of all that lies below it."""

    path: AnyPath
    is_sliced: ClassVar[bool] = False
    reading: ClassVar[Reading] = "alone"

    def place(self, row: Row) -> str:
        """Where a row lies, in words."""
        return str(self.path / row.name)

    def open(self) -> Callable[[Row], Buffer]:
        """What reads rows."""
        return self._read

    def _read(self, row: Row) -> bytes:
        path = self.path / row.name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise unreadable(path, error) from error
        if len(content) != row.length:
            raise changed(path, 0, row.length, len(content))
        return content


def list_folder(base: AnyPath, engine: Engine) -> tuple[Catalog, Remarks]:
    """Every file below ``base``, but for those whose own name or folder begins with a dot.

    What it passes over is counted. A folder that can't be read, a link to one, and a name that can't be written are
    ``obstacles`` of the remarks: whoever takes the files raises them all together.

    Raises:
        InputError: ``base`` itself is not a folder.
    """
    return _list(_Walk(base, "", None, None), engine)


def list_matching(base: AnyPath, pattern: str, engine: Engine) -> tuple[Catalog, Remarks]:
    """Every file below ``base`` whose path from there matches ``pattern``.

    Raises:
        InputError: what list_folder has for obstacles.
        ValueError: the pattern is none.
    """
    found, remarks = _list(_Walk(base, folder_of(pattern), compile_pattern(pattern), depth_of(pattern)), engine)
    if remarks.obstacles:
        raise all_of(remarks.obstacles)
    return found, remarks


def _list(walk: _Walk, engine: Engine) -> tuple[Catalog, Remarks]:
    top, folders = walk.start()
    files, remarks = top.rows.listed(), [top.remarks]

    def parts() -> Iterator[Catalog]:
        """The files of the top between those of the folders, as their names are sorted."""
        row, step = 0, max(1, len(folders) // (16 * engine.workers))  # small folders take less than to send a task
        groups = [folders[start : start + step] for start in range(0, len(folders), step)]
        found = itertools.chain.from_iterable(in_order(engine, walk, groups))
        for folder, (rows, said) in zip(folders, found, strict=True):
            before = files.names.find(os.fsencode(f"{folder}/"), row)
            yield files.picked(range(row, before))
            yield rows
            remarks.append(said)
            row = before
        yield files.picked(range(row, len(files)))

    return refuse_twice(Catalog.join(parts())), Remarks.join(remarks)


@dataclass(slots=True)
class _Found:
    """What was found so far."""

    rows: CatalogBuilder
    remarks: Remarks


@dataclass(frozen=True, slots=True)
class _Walk:
    """Lists folders below ``base``, with all below them.

    ``begin`` is where the search starts; ``accept`` what a path must match, ``depth`` how many folders deep it can lie.
    """

    base: AnyPath
    begin: str
    accept: re.Pattern[str] | None
    depth: int | None

    def start(self) -> tuple[_Found, list[str]]:
        """The files of the folder where the search starts, and the folders in it."""
        folder = self.base / self.begin
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "is not there"
            raise InputError(f"{folder} {what}", "expected the folder that holds the files")
        found, folders = self._empty(), []
        for name, entry in self._entries(self.begin, found):
            if self._is_folder(name, entry, found):
                folders.append(name)
        return found, folders

    def __call__(self, folders: Sequence[str]) -> list[tuple[Catalog, Remarks]]:
        """The files below each of some folders, in the order of the bytes of their names."""
        return [self._below(folder) for folder in folders]

    def _below(self, folder: str) -> tuple[Catalog, Remarks]:
        found = self._empty()
        pending = [*self._entries(folder, found)][::-1]
        while pending:
            name, entry = pending.pop()
            if self._is_folder(name, entry, found):
                pending += [*self._entries(name, found)][::-1]
        return found.rows.listed(), found.remarks

    def _empty(self) -> _Found:
        return _Found(CatalogBuilder(Folder(self.base)), Remarks())

    def _entries(self, folder: str, found: _Found) -> Iterator[tuple[str, FolderEntry]]:
        """What a folder holds and the search takes; what is passed over, and what is in the way, goes to ``found``."""
        if self.depth is not None and folder and folder.count("/") + 1 > self.depth:
            return
        try:
            with scan(self.base / folder) as entries:
                is_empty = True
                for entry in sorted(entries, key=_in_path_order):
                    is_empty = False
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if self.accept is not None or not self._is_apart(name, entry, found):
                        yield name, entry
        except OSError as error:
            found.remarks.obstacles.append(InputError(f"{error.filename} can't be read", error.strerror or str(error)))
            return
        if is_empty and folder:
            found.remarks.pass_over(folder, EMPTY)

    def _is_apart(self, name: str, entry: FolderEntry, found: _Found) -> bool:
        if entry.name == MACOSX:
            found.remarks.pass_over(name, MACOSX)
        elif entry.name.startswith("."):
            found.remarks.pass_over(name, HIDDEN)
        else:
            return False
        return True

    def _is_folder(self, name: str, entry: FolderEntry, found: _Found) -> bool:
        """Whether it is a folder to look into; anything else is taken at once, or is in the way."""
        if entry.is_dir(follow_symlinks=False):
            return True
        try:
            if entry.is_symlink() and entry.is_dir():
                raise InputError(
                    f"{entry.path} is a link to another folder",
                    "expected a folder: links of folders may lead out of the data, or in circles",
                    "put the folder in its place, or name it in the recipe",
                )
            self._take(found, name, entry)
        except OSError as error:  # a link to nowhere, or to itself
            found.remarks.obstacles.append(InputError(f"{entry.path} can't be read", error.strerror or str(error)))
        except InputError as error:
            found.remarks.obstacles.append(error)
        return False

    def _take(self, found: _Found, name: str, entry: FolderEntry) -> None:
        if self.accept is not None and not self.accept.fullmatch(name):
            return
        status = entry.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{entry.path} is not a file", "expected files and folders", "remove it")
        fault = fault_of_name(name, self.base)
        if fault is not None:
            raise fault
        found.rows.append(name, 0, status.st_size, status.st_mtime_ns)
        if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(local_path(self.base).resolve()):
            found.remarks.links.append(name)


def _in_path_order(entry: FolderEntry) -> bytes:
    """What sorts the entries of a folder as the paths of all files in and below it."""
    return os.fsencode(f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name)
