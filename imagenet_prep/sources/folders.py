"""Folder, a container of image files, and its listings: all files, or those of a pattern."""

from __future__ import annotations

import itertools
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from imagenet_prep.errors import InputError, all_of
from imagenet_prep.model import Engine
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.names import below, entry_name
from imagenet_prep.sources.other_files import linked_folder, no_folder, other_file
from imagenet_prep.sources.patterns import compile_pattern, folder_of
from imagenet_prep.sources.remarks import Remarks, fault_of_name, refuse_twice
from imagenet_prep.sources.slices import Buffer, Container, ReadOrder, Row
from imagenet_prep.sources.tars import in_order
from imagenet_prep.storage.files import scan
from imagenet_prep.storage.layout import STATE_NAME
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.storage.memory_maps import open_plain
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import FolderEntry, changed

HIDDEN, EMPTY = "hidden", "empty folders"
"""Reasons to skip a file or folder; those of a private folder are in ``PRIVATE``."""

PRIVATE = {
    "__MACOSX": "macOS keeps its own data there",
    "@eaDir": "a Synology keeps its thumbnails there",
    "#recycle": "a Synology keeps deleted files there",
    "$RECYCLE.BIN": "Windows keeps deleted files there",
    "System Volume Information": "Windows keeps its own data there",
    "lost+found": "the file system keeps its own data there",
    STATE_NAME: "the state of a conversion is there",
}
"""Folders without data, by name: macOS adds the first to every archive,
a Synology has @eaDir in every folder.
"""


class Folder(Container, frozen=True):
    """A folder with one image per file: the container of all files below it."""

    read_order: ClassVar[ReadOrder] = "alone"

    def place(self, row: Row) -> str:
        """The place of a row, for messages."""
        return str(below(self.path, row.name))

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows."""
        return self._read

    def _read(self, row: Row) -> bytes:
        path = below(self.path, row.name)
        try:
            content = _read_whole(path)
        except OSError as error:
            raise unreadable(path, error) from error
        if len(content) != row.length:
            raise changed(path, 0, row.length, len(content))
        return content


def _read_whole(path: AnyPath) -> bytes:
    if not isinstance(path, Path):
        return path.read_bytes()
    # never waits for a pipe that took the place of an image
    with open_plain(path, buffering=0) as file:
        return file.read()


def list_folder(base: AnyPath, engine: Engine) -> tuple[Catalog, Remarks]:
    """List every file below ``base``, except those whose own name or folder starts with a dot.

    Skipped entries are counted. An unreadable folder, a link to a folder, and an invalid name are
    ``obstacles`` of the remarks: the caller that uses the files raises them together.

    Raises:
        InputError: ``base`` itself is not a folder.
    """
    return _list(_Walk(base, "", None, None), engine)


def list_matching(base: AnyPath, pattern: str, engine: Engine) -> tuple[Catalog, Remarks]:
    """List every file below ``base`` whose path from there matches ``pattern``.

    Raises:
        InputError: one of the obstacles of list_folder.
        ValueError: the pattern is invalid.
    """
    depth = None if "**" in pattern else pattern.count("/")
    walk = _Walk(base, folder_of(pattern), compile_pattern(pattern), depth)
    catalog, remarks = _list(walk, engine)
    if remarks.obstacles:
        raise all_of(remarks.obstacles)
    return catalog, remarks


def _list(walk: _Walk, engine: Engine) -> tuple[Catalog, Remarks]:
    top, folders = walk.start()
    top_files, remarks = top.rows.listed(), [top.remarks]

    def merge_by_name() -> Iterator[Catalog]:
        """The files of the top folder, and between them those of each subfolder: all by name."""
        row = 0
        listings = _list_subfolders(walk, folders, engine)
        for folder, (folder_files, folder_remarks) in zip(folders, listings, strict=True):
            row_after = top_files.names.find(_encoded(f"{folder}/"), row)
            yield top_files.picked(range(row, row_after))
            yield folder_files
            remarks.append(folder_remarks)
            row = row_after
        yield top_files.picked(range(row, len(top_files)))

    files = Catalog.join(merge_by_name())
    return refuse_twice(files), Remarks.join(remarks)


def _list_subfolders(
    walk: _Walk, folders: Sequence[str], engine: Engine
) -> Iterator[tuple[Catalog, Remarks]]:
    """The listing of each folder in order; workers list several folders at a time,
    since a small one is listed faster than a task starts.
    """
    group_size = max(1, len(folders) // (16 * engine.workers))
    starts = range(0, len(folders), group_size)
    groups = [folders[start : start + group_size] for start in starts]
    return itertools.chain.from_iterable(in_order(engine, walk, groups))


class _WalkedFiles(Struct):
    """The rows and remarks so far."""

    rows: CatalogBuilder
    remarks: Remarks


class _Walk(Struct, frozen=True):
    """Lists folders below ``base``, with everything below them.

    ``begin`` is the folder to search; ``accept`` is the pattern of a path, ``depth`` the maximum
    depth of a match.
    """

    base: AnyPath
    begin: str
    accept: re.Pattern[str] | None
    depth: int | None

    def start(self) -> tuple[_WalkedFiles, list[str]]:
        """The files and the subfolders of the folder to search."""
        folder = below(self.base, self.begin)
        if not folder.is_dir():
            raise no_folder(folder)
        listing, folders = self._empty(), []
        for name, entry in self._entries(self.begin, listing):
            if self._is_folder(name, entry, listing):
                folders.append(name)
        return listing, folders

    def __call__(self, folders: Sequence[str]) -> list[tuple[Catalog, Remarks]]:
        """The files below each of some folders, sorted by the bytes of their names."""
        return [self._below(folder) for folder in folders]

    def _below(self, folder: str) -> tuple[Catalog, Remarks]:
        listing = self._empty()
        pending = [*self._entries(folder, listing)][::-1]
        while pending:
            name, entry = pending.pop()
            if self._is_folder(name, entry, listing):
                pending += [*self._entries(name, listing)][::-1]
        return listing.rows.listed(), listing.remarks

    def _empty(self) -> _WalkedFiles:
        return _WalkedFiles(CatalogBuilder(Folder(self.base)), Remarks())

    def _entries(self, folder: str, listing: _WalkedFiles) -> Iterator[tuple[str, FolderEntry]]:
        """The accepted entries of a folder; skipped entries and obstacles
        are added to ``listing``.
        """
        if self.depth is not None and folder and folder.count("/") + 1 > self.depth:
            return
        try:
            with scan(below(self.base, folder)) as entries:
                is_empty = True
                for entry in sorted(entries, key=_in_path_order):
                    is_empty = False
                    name = f"{folder}/{entry_name(entry)}" if folder else entry_name(entry)
                    if not self._is_apart(name, entry, listing):
                        yield name, entry
        except OSError as error:
            listing.remarks.obstacles.append(unreadable(error.filename, error))
            return
        if is_empty and folder:
            listing.remarks.pass_over(folder, EMPTY)

    def _is_apart(self, name: str, entry: FolderEntry, listing: _WalkedFiles) -> bool:
        """Whether an entry is private or hidden; then it is skipped, with a remark."""
        if entry.name in PRIVATE and entry.is_dir():
            listing.remarks.pass_over(name, PRIVATE[entry.name])
        elif self.accept is None and entry.name.startswith("."):
            listing.remarks.pass_over(name, HIDDEN)
        else:
            return False
        return True

    def _is_folder(self, name: str, entry: FolderEntry, listing: _WalkedFiles) -> bool:
        """Whether the search enters an entry; other entries are accepted now, or are obstacles."""
        if entry.is_dir(follow_symlinks=False):
            return True
        try:
            if entry.is_symlink() and entry.is_dir():
                raise linked_folder(Path(entry.path))
            self._take(listing, name, entry)
        except OSError as error:  # a dangling or circular link
            listing.remarks.obstacles.append(unreadable(entry.path, error))
        except InputError as error:
            listing.remarks.obstacles.append(error)
        return False

    def _take(self, listing: _WalkedFiles, name: str, entry: FolderEntry) -> None:
        """Add a file, if the pattern accepts its path."""
        if self.accept is not None and not self.accept.fullmatch(name):
            return
        status = entry.stat()
        if not stat.S_ISREG(status.st_mode):
            what = f"{entry.path} is {other_file(status)}"
            raise InputError(what, "expected files and folders", "move it out of the folder")
        fault = fault_of_name(name, self.base)
        if fault is not None:
            raise fault
        listing.rows.append(name, 0, status.st_size, status.st_mtime_ns)
        if entry.is_symlink():
            target, base = Path(entry.path).resolve(), local_path(self.base).resolve()
            if not target.is_relative_to(base):
                listing.remarks.links.append(name)


def _in_path_order(entry: FolderEntry) -> bytes:
    """A key that sorts the entries of a folder like the paths of all files in and below it."""
    name = entry_name(entry)
    return _encoded(f"{name}/" if entry.is_dir(follow_symlinks=False) else name)


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
