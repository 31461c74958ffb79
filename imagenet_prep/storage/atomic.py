"""Small files that are replaced whole and durably, or not at all."""

from __future__ import annotations

import contextlib
import glob
import io
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from imagenet_prep.storage import objects
from imagenet_prep.storage.durable import fsync_dir, make_folder
from imagenet_prep.storage.lock import take
from imagenet_prep.storage.object_path import ObjectPath
from imagenet_prep.storage.plain import find_plain
from imagenet_prep.storage.refusals import writing


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under ``path`` whole and durable, or, if the block raises, not at all.

    Several writers may be at it at once: each has a file of its own until its last step, and the last one wins. In an
    object store it is collected in memory, and put there as one object.
    """
    if isinstance(path, ObjectPath):
        content = io.BytesIO()
        yield content
        objects.put(path, content.getbuffer())
        return
    make_folder(path.parent)
    with writing(path):
        remove_abandoned(path)
        partial, descriptor = _create_partial(path)
    try:
        with writing(path), os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            partial.replace(path)
            fsync_dir(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):  # what the block raised is what counts
            partial.unlink(missing_ok=True)
        raise


def _create_partial(path: Path) -> tuple[Path, int]:
    """A new file beside ``path`` and its descriptor; locked, so that others see that it is not abandoned."""
    while True:
        partial = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}-{_host()}.partial")
        try:
            return partial, take(partial, os.O_EXCL)
        except (BlockingIOError, FileExistsError):  # another writer is about to remove it, or has the same name
            continue
        except OSError:  # no locks here: then nobody removes what is abandoned either
            return partial, os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _host() -> str:
    """What tells this machine from others, short enough for any file's name."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"


def remove_abandoned(path: Path) -> None:
    """Remove what writers of ``path`` left that were killed; no file that a living one holds.

    Nor one of another machine: it may hold a lock that is not seen here. An earlier version did not say whose it was.
    """
    for partial in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        *_, machine = (partial.name.split(".")[-2] + "--").split("-")[:3]  # process, random number, machine
        if machine not in ("", _host()):
            continue
        with contextlib.suppress(OSError):  # it is held, or gone
            descriptor = take(partial)
            try:
                partial.unlink()
            finally:
                os.close(descriptor)


def save_bytes(path: Path, content: bytes) -> bool:
    """Write ``content`` atomically unless the file holds just that already; say whether it was written."""
    if isinstance(path, ObjectPath):
        is_new = find_plain(path) != content
        return is_new and objects.put(path, content)
    if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
        remove_abandoned(path)
        return False
    with atomic_file(path) as file:
        file.write(content)
    return True


def save_json(path: Path, value: Any) -> bool:
    """Write a JSON value atomically, readable by people, unless it is there already."""
    return save_bytes(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())
