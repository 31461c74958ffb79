"""Reads and writes small files, folders and views, each by its place in any Store."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import stat
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal

from imagenet_prep.errors import InputError
from imagenet_prep.storage.location import AnyPath, Appender, local_or_none, open_store, split
from imagenet_prep.storage.refusals import AGAIN, unreadable
from imagenet_prep.storage.store import MOST, FolderEntry

if TYPE_CHECKING:
    from imagenet_prep.tfrecord.framing import View


def load_json(path: AnyPath) -> Any:
    """The JSON value in a file, or None if the file does not exist or is not JSON."""
    content = find_plain(path)
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        return None


def read_plain(path: AnyPath, max_bytes: int = MOST) -> bytes:
    """The content of a file of at most ``max_bytes`` bytes. Never waits for a pipe or reads a
    device without end.

    Raises:
        InputError: it does not exist, can't be read, is larger, or is not a plain file.
    """
    content = find_plain(path, max_bytes)
    if content is None:
        raise unreadable(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    return content


def find_plain(path: AnyPath, max_bytes: int = MOST) -> bytes | None:
    """The content of a file as ``read_plain`` reads it, or None if the file does not exist."""
    store, name = split(path)
    return store.load(name, max_bytes)


def plain_lines(path: AnyPath, max_bytes: int = 1 << 26) -> Iterator[bytes]:
    """The lines of a file, one at a time, each with its newline; none if the file does not exist.

    Raises:
        InputError: it can't be read, is not a plain file, or has a line of more than ``max_bytes``
            bytes.
    """
    try:
        with open_file(path) as file:
            for line in iter(functools.partial(file.readline, max_bytes + 1), b""):
                if len(line) > max_bytes:
                    raise InputError(
                        f"{path} holds a line of more than {max_bytes:,} bytes",
                        "imagenet-prep, which wrote the file, writes shorter lines",
                        f"the file is damaged: move it away, {AGAIN}",
                    )
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(path, error) from error


def open_file(path: AnyPath) -> IO[bytes]:
    """A file to read from its start; raises OSError, also for a pipe or a device."""
    store, name = split(path)
    return store.open(name)


def kind_of(path: AnyPath) -> Literal["file", "folder", "other", "nothing"]:
    """The kind of file at a path that was read from a file.

    Raises:
        InputError: access is denied, the path is too long, or it is a link to itself.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "nothing"
    except OSError as error:
        raise unreadable(path, error) from error
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def absence_of(path: AnyPath) -> str:
    """The problem of a path where a folder, or a file too, was expected."""
    if path.is_file():
        return f"{path} is a file"
    if path.exists():
        return f"{path} is neither a file nor a folder"
    local = local_or_none(path)
    is_link = local is not None and local.is_symlink()
    return f"{path} is a broken link" if is_link else f"{path} does not exist"


def lack_of(folder: AnyPath, lack: str) -> str:
    """The problem of a folder, such as "no archives in FOLDER", or of a path that is no folder."""
    if folder.exists() and not folder.is_dir():
        return absence_of(folder)
    return lack


IN_WORDS = {
    "file": "a file",
    "folder": "a folder",
    "other": "a pipe, a socket or a device",
    "nothing": "a broken link",
}
"""What ``kind_of`` says about a path that is listed in its folder, for messages."""


def kind_in_words(path: AnyPath) -> str:
    """The kind of file at a path as a message has it: "missing" if not even a broken link is there.

    Raises:
        InputError: as kind_of.
    """
    kind = kind_of(path)
    local = local_or_none(path)
    is_link = local is not None and local.is_symlink()
    return "missing" if kind == "nothing" and not is_link else IN_WORDS[kind]


def atomic_file(path: AnyPath) -> contextlib.AbstractContextManager[IO[bytes]]:
    """A binary file that appears as ``path`` whole and durable, or not at all if the block raises.

    Several writers may write it at once: the last one wins.
    """
    store, name = split(path)
    return store.replace(name)


def save_bytes(path: AnyPath, content: bytes) -> bool:
    """Write ``content`` as ``atomic_file`` does, unless the file already holds it;
    returns whether it was written.
    """
    store, name = split(path)
    return store.save(name, content)


def save_json(path: AnyPath, value: Any) -> bool:
    """Write a readable JSON value as ``save_bytes`` does."""
    return save_bytes(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def claim(path: AnyPath, content: bytes) -> bytes:
    """Create a file, whole and durable, only if it does not exist; returns the content that it
    holds now.

    The result is ``content`` if the caller was first, or if the first caller claimed the same.
    """
    store, name = split(path)
    return store.claim(name, content)


def append_to(path: AnyPath) -> Appender:
    """Append lines to a file, created if missing; in an object store, to objects next to it: see
    parts_of.

    Raises:
        WriteError: it can't be written.
    """
    store, name = split(path)
    return store.append(name)


def parts_of(path: AnyPath) -> Sequence[AnyPath]:
    """The files next to ``path`` that are parts of it, in order:
    ``journal-7.jsonl`` of ``journal.jsonl``.
    """
    parts: list[AnyPath] = [*path.parent.glob(f"{path.stem}-*{path.suffix}")]
    return sorted(parts, key=str)


def scan(folder: AnyPath) -> contextlib.AbstractContextManager[Iterator[FolderEntry]]:
    """The entries of a folder, in any order; raises OSError as os.scandir does."""
    return open_store(folder).scan()


def names_in(folder: AnyPath) -> list[str]:
    """The names in a folder, in any order; raises OSError as os.listdir does."""
    with scan(folder) as entries:
        return [entry.name for entry in entries]


def view_of(path: AnyPath, *, in_order: bool = False) -> View:
    """A read-only view of a whole file, to slice: a memory map, or ranges of an object;
    raises InputError.
    """
    store, name = split(path)
    return store.view(name, in_order=in_order)
