"""Files below a folder: all of them, or those that match a pattern. Folders are listed in parallel."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.formats.patterns import compile_pattern, depth_of, split_pattern
from imagenet_prep.model import Engine, Failed
from imagenet_prep.sources.catalog import Container
from imagenet_prep.sources.listing import Found, Listing, join


def list_folder(base: Path, engine: Engine) -> Listing:
    """Every file below ``base``, but for those whose own name or folder begins with a dot.

    Raises:
        InputError: a folder can't be read, a folder in it is a link, or a name can't be written.
    """
    return _list(_Walk(base, "", None, None), engine)


def list_matching(base: Path, pattern: str, engine: Engine) -> Listing:
    """Every file below ``base`` whose path from there matches ``pattern``.

    Raises:
        InputError: as list_folder.
        ValueError: the pattern is none.
    """
    fixed, _ = split_pattern(pattern)
    return _list(_Walk(base, fixed, compile_pattern(pattern), depth_of(pattern)), engine)


def _list(walk: _Walk, engine: Engine) -> Listing:
    top, folders = walk.start()
    parts = [top]
    for outcome in engine.map(walk, folders):
        if isinstance(outcome, Failed):
            raise outcome.error
        parts.append(outcome.value)
    return join(parts)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Lists one folder below ``base``, with all below it.

    ``begin`` is where the search starts; ``accept`` what a path must match, ``depth`` how many folders deep it can lie.
    """

    base: Path
    begin: str
    accept: re.Pattern[str] | None
    depth: int | None

    def start(self) -> tuple[Found, list[str]]:
        """The files of the folder where the search starts, and the folders in it."""
        folder = self.base / self.begin
        if not folder.is_dir():
            what = "is no folder" if folder.exists() else "is not there"
            raise InputError(f"{folder} {what}", "expected the folder that holds the files")
        found, folders = self._empty(), []
        for name, entry in self._entries(self.begin):
            if self._is_folder(entry):
                folders.append(name)
            else:
                self._take(found, name, entry)
        return found, folders

    def __call__(self, folder: str) -> Found:
        """The files below one folder."""
        found, pending = self._empty(), [folder]
        while pending:
            for name, entry in self._entries(pending.pop()):
                if self._is_folder(entry):
                    pending.append(name)
                else:
                    self._take(found, name, entry)
        return found

    def _empty(self) -> Found:
        return Found(Container(self.base, is_folder=True))

    def _entries(self, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        if self.depth is not None and folder and folder.count("/") + 1 > self.depth:
            return
        try:
            with os.scandir(self.base / folder) as entries:
                for entry in entries:
                    if self.accept is not None or not entry.name.startswith("."):
                        yield f"{folder}/{entry.name}" if folder else entry.name, entry
        except OSError as error:
            raise InputError(f"{error.filename} can't be read", error.strerror or str(error)) from error

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        if entry.is_dir(follow_symlinks=False):
            return True
        if entry.is_symlink() and Path(entry.path).is_dir():  # a link to itself is none: _take says so
            raise InputError(
                f"{entry.path} is a link to another folder",
                "expected a folder: links of folders may lead out of the data, or in circles",
                "put the folder in its place, or name it in the recipe",
            )
        return False

    def _take(self, found: Found, name: str, entry: os.DirEntry[str]) -> None:
        if self.accept is not None and not self.accept.fullmatch(name):
            return
        try:
            status = entry.stat()
        except OSError as error:  # a link to nowhere
            raise InputError(f"{entry.path} can't be read", error.strerror or str(error)) from error
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{entry.path} is no file", "expected files and folders", "remove it")
        found.add(name, 0, status.st_size, status.st_mtime_ns)
        if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(self.base.resolve()):
            found.links.append(name)
