"""What lies in a folder, here or in an object store, as os.scandir tells it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from imagenet_prep.storage import objects
from imagenet_prep.storage.object_path import ObjectPath, status_of


class FolderEntry(Protocol):
    """What os.DirEntry tells of a file or a folder."""

    @property
    def name(self) -> str:
        """Without the folder that it lies in."""
        ...

    @property
    def path(self) -> str:
        """With it."""
        ...

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""
        ...

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file."""
        ...

    def is_symlink(self) -> bool:
        """Whether it is a link."""
        ...

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Size and times."""
        ...


@dataclass(frozen=True, slots=True)
class _Object:
    """An object, or a folder, of which ``found`` is None, as an FolderEntry."""

    name: str
    path: str
    found: objects.Found | None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.found is None

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self.found is not None

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        assert self.found is not None, "a file"
        return status_of(self.found.size, self.found.changed)


@contextlib.contextmanager
def scan(folder: Path) -> Iterator[Iterator[FolderEntry]]:
    """The entries of a folder, in any order; raises OSError as os.scandir does."""
    if isinstance(folder, ObjectPath):
        yield iter(_objects(folder))
    else:
        with os.scandir(folder) as entries:
            yield entries


def names_in(folder: Path) -> list[str]:
    """The names in a folder, in any order; raises OSError as os.listdir does."""
    return [each.name for each in _objects(folder)] if isinstance(folder, ObjectPath) else os.listdir(folder)


def _objects(folder: ObjectPath) -> list[_Object]:
    folders, files = objects.list_folder(folder)
    if not folders and not files:
        raise FileNotFoundError(2, "there is nothing below it", str(folder))
    found = [_Object(name, str(folder / name), None) for name in folders]
    return found + [_Object(each.name, str(folder / each.name), each) for each in files]
