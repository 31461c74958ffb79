"""Small files, folders and views of a place, asked of its Store; and the space that a step needs."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from imagenet_prep.errors import InputError, SpaceError
from imagenet_prep.escaping import rerun
from imagenet_prep.storage.location import AnyPath, Appender, local_or_none, open_store, split
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import MOST, FolderEntry
from imagenet_prep.text import listed, size_text

if TYPE_CHECKING:
    from imagenet_prep.tfrecord.framing import View


def load_json(path: AnyPath) -> Any:
    """The JSON value in a file, or None if there is no file or it isn't JSON (then it is as good as absent)."""
    content = find_plain(path)
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        return None


def read_plain(path: AnyPath, most: int = MOST) -> bytes:
    """The content of a file of at most ``most`` bytes. Never waits for a pipe, or reads from a device without end.

    Raises:
        InputError: it is not there, can't be read, is larger, or is not a plain file.
    """
    content = find_plain(path, most)
    if content is None:
        raise unreadable(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    return content


def find_plain(path: AnyPath, most: int = MOST) -> bytes | None:
    """The content of a file as ``read_plain`` reads it, or None if there is no such file."""
    store, name = split(path)
    return store.load(name, most)


def plain_lines(path: AnyPath, most: int = 1 << 26) -> Iterator[bytes]:
    """The lines of a file, one at a time, each with its newline; none if there is no such file.

    Raises:
        InputError: it can't be read, is not a plain file, or has a line of more than ``most`` bytes.
    """
    try:
        with open_file(path) as file:
            for line in iter(functools.partial(file.readline, most + 1), b""):
                if len(line) > most:
                    raise InputError(f"{path} holds a line of more than {most:,} bytes", "expected shorter ones")
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(path, error) from error


def open_file(path: AnyPath) -> IO[bytes]:
    """A file to read from its beginning; raises OSError, also for a pipe or a device."""
    store, name = split(path)
    return store.open(name)


def kind_of(path: AnyPath) -> Literal["file", "folder", "other", "nothing"]:
    """The kind of file under a path that came from a file.

    Raises:
        InputError: there is no right to see it, it is too long, or a link to itself.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "nothing"
    except OSError as error:
        raise unreadable(path, error) from error
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def atomic_file(path: AnyPath) -> contextlib.AbstractContextManager[IO[bytes]]:
    """A binary file that appears under ``path`` whole and durable, or, if the block raises, not at all.

    Several writers may be at it at once: the last one wins.
    """
    store, name = split(path)
    return store.replace(name)


def save_bytes(path: AnyPath, content: bytes) -> bool:
    """Write ``content`` as ``atomic_file`` does unless the file holds just that already; whether it was written."""
    store, name = split(path)
    return store.save(name, content)


def save_json(path: AnyPath, value: Any) -> bool:
    """Write a JSON value that people can read as ``save_bytes`` does."""
    return save_bytes(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def claim(path: AnyPath, content: bytes) -> bytes:
    """Create a file only where there is none, whole and durable: the content that stands there now.

    It is ``content`` if the caller was first, or if the first one claimed the same.
    """
    store, name = split(path)
    return store.claim(name, content)


def append_to(path: AnyPath) -> Appender:
    """Add lines to a file, made if need be; in an object store, to objects beside it: see parts_of.

    Raises:
        WriteError: it can't be written.
    """
    store, name = split(path)
    return store.append(name)


def parts_of(path: AnyPath) -> Sequence[AnyPath]:
    """The files beside ``path`` that are parts of it: ``journal-7.jsonl`` of ``journal.jsonl``; in order."""
    found: list[AnyPath] = [*path.parent.glob(f"{path.stem}-*{path.suffix}")]
    return sorted(found, key=str)


def scan(folder: AnyPath) -> contextlib.AbstractContextManager[Iterator[FolderEntry]]:
    """The entries of a folder, in any order; raises OSError as os.scandir does."""
    return open_store(folder).scan()


def names_in(folder: AnyPath) -> list[str]:
    """The names in a folder, in any order; raises OSError as os.listdir does."""
    with scan(folder) as entries:
        return [each.name for each in entries]


def view_of(path: AnyPath, *, in_order: bool = False) -> View:
    """The whole of a file to slice, read-only: a memory map, or ranges of an object; raises InputError."""
    store, name = split(path)
    return store.view(name, in_order=in_order)


@dataclass(frozen=True, slots=True)
class Need:
    """What a step will take of the file system that ``folder`` is on, or will be: beyond what is there already.

    Args:
        step: the command, such as ``convert``.
        what: what takes it, in words: "1,024 shards".
        folder: where; it need not exist yet.
        size: bytes.
        files: how many files and folders: inodes.
        is_about: whether both are an estimate.
    """

    step: str
    what: str
    folder: AnyPath
    size: int
    files: int = 1
    is_about: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """A file system, and all that is needed of it: each step keeps what the ones before it made.

    ``folder`` is one that is on it, ``free_files`` the free inodes, None where their number has no limit.
    What a quota leaves of it the system doesn't tell.
    """

    folder: Path
    needs: tuple[Need, ...]
    free: int
    free_files: int | None

    @property
    def size(self) -> int:
        """Bytes needed."""
        return sum(need.size for need in self.needs)

    @property
    def files(self) -> int:
        """Files and folders needed."""
        return sum(need.files for need in self.needs)

    @property
    def lacks_space(self) -> bool:
        """Whether fewer bytes are free than are needed."""
        return self.free < self.size

    @property
    def lacks_files(self) -> bool:
        """Whether fewer inodes are free than are needed."""
        return self.free_files is not None and self.free_files < self.files


def rooms_for(needs: Iterable[Need]) -> list[Room]:
    """The needs of all steps by the file system they are on, and what is free there; object stores have no end."""
    by_device: dict[int, tuple[Path, list[Need]]] = {}
    for need in needs:
        if (local := local_or_none(need.folder)) is not None:
            folder = nearest(local)
            by_device.setdefault(folder.stat().st_dev, (folder, []))[1].append(need)
    return [_room(folder, tuple(each)) for folder, each in by_device.values()]


def refuse_lack(needs: Iterable[Need], consuming: Iterable[Need] | None = None) -> None:
    """Raise SpaceError if all of it does not fit where it is to go; the first file system that lacks something.

    ``consuming`` is what is needed if raw data gives its space to the shards, None where it can't: if that fits, the
    error says so.
    """
    for room in rooms_for(needs):
        names = listed(need.what for need in room.needs if need.size > 0)
        if room.lacks_space:
            raise SpaceError(
                f"not enough space in {room.folder} for {names}",
                f"needed {size_text(room.size)}, free {size_text(room.free)}",
                _less(consuming),
            )
        if room.lacks_files:
            raise SpaceError(
                f"not enough inodes on the file system of {room.folder} for {names}",
                f"needed {room.files:,} files and folders, free {room.free_files:,}",
                f"choose a folder on a file system with more inodes, then: {rerun()}",
            )


def _less(consuming: Iterable[Need] | None) -> str:
    """What to do where space is lacking."""
    freed = f"free some space or choose another folder, then: {rerun()}"
    if consuming is None or any(room.lacks_space for room in rooms_for(consuming)):
        return freed
    return f"{freed}; or let the archives give theirs to the shards: {rerun((('consume', True),))}"


def _room(folder: Path, needs: tuple[Need, ...]) -> Room:
    found = os.statvfs(folder)
    free_files = found.f_favail if found.f_files else None  # some, such as btrfs, make inodes as they are needed
    return Room(folder, needs, found.f_bavail * found.f_frsize, free_files)


def nearest(folder: Path) -> Path:
    """A folder, or the nearest one above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder if folder.parts else Path.cwd()
