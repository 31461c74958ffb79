"""Plain files, read without ever waiting for a pipe or reading from a device without end."""

from __future__ import annotations

import errno
import functools
import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

from imagenet_prep.errors import InputError
from imagenet_prep.storage import objects
from imagenet_prep.storage.object_path import ObjectPath
from imagenet_prep.storage.refusals import unreadable


def load_json(path: Path) -> Any:
    """The JSON value in a file, or None if there is no file or it isn't JSON (then it is as good as absent)."""
    content = find_plain(path)
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        return None


def read_plain(path: Path, most: int = 1 << 30) -> bytes:
    """The content of a file of at most ``most`` bytes. Never waits for a pipe, or reads from a device without end.

    Raises:
        InputError: it is not there, can't be read, is larger, or is not a plain file.
    """
    content = find_plain(path, most)
    if content is None:
        raise unreadable(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    return content


def find_plain(path: Path, most: int = 1 << 30) -> bytes | None:
    """The same, or None if there is no such file."""
    if isinstance(path, ObjectPath):
        return _find_object(path, most)
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            _refuse_other(path, status)
            if status.st_size > most:
                raise InputError(f"{path} holds {status.st_size:,} bytes", f"expected at most {most:,} bytes")
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:  # no system takes such a name
        raise InputError(f"{path} can't be read", str(error)) from error


def plain_lines(path: Path, most: int = 1 << 26) -> Iterator[bytes]:
    """The lines of a file, one at a time, each with its newline; none if there is no such file.

    Raises:
        InputError: it can't be read, is not a plain file, or has a line of more than ``most`` bytes.
    """
    try:
        with _opened(path) as file:
            for line in iter(functools.partial(file.readline, most + 1), b""):
                if len(line) > most:
                    raise InputError(f"{path} holds a line of more than {most:,} bytes", "expected shorter ones")
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(path, error) from error


def _opened(path: Path) -> IO[bytes]:
    """A file to read lines of; an object is fetched whole."""
    if isinstance(path, ObjectPath):
        return io.BytesIO(objects.get(path))
    file = open(path, "rb", 1 << 20, opener=_open_at_once)  # noqa: SIM115 - whoever asked for it closes it
    try:
        _refuse_other(path, os.fstat(file.fileno()))
    except InputError:
        file.close()
        raise
    return file


def _find_object(path: ObjectPath, most: int) -> bytes | None:
    """The content of an object, unless it is longer than that."""
    try:
        return bytes(objects.get(path, most))
    except FileNotFoundError:
        return None


def _refuse_other(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a plain file", "expected a file of its own, got a pipe or a device")


def open_plain(path: Path) -> IO[bytes]:
    """Open a file to read it, without waiting for a pipe.

    Raises:
        OSError: it can't be opened, or is not a plain file.
    """
    if isinstance(path, ObjectPath):
        return io.BytesIO(path.read_bytes())
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115 - whoever asked for it closes it
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "it is not a plain file", os.fspath(path))


def kind_of(path: Path) -> Literal["file", "folder", "other", "nothing"]:
    """What lies under a path that came from a file.

    Raises:
        InputError: no telling: there is no right to look, it is too long, or a link to itself.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "nothing"
    except OSError as error:
        raise unreadable(path, error) from error
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def _open_at_once(name: str, flags: int) -> int:
    """Open a file; a pipe too, whether or not anyone writes to it."""
    return os.open(name, flags | os.O_NONBLOCK)
