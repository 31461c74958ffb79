"""Need and Room: whether the space and the files that steps need are free on a disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import SpaceError
from imagenet_prep.escaping import rerun
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.text import listed, size_text


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
