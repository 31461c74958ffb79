"""Need, the space that a step requires, and refuse_lack,
which compares all needs with the free space.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import SpaceError
from imagenet_prep.escaping import is_command_line, rerun
from imagenet_prep.hints import Hint, run_again
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.text import listed, size_text


class Need(Struct, frozen=True):
    """The space that a step requires on the file system of ``folder``, in addition to existing
    files.

    Args:
        step: the command, such as ``convert``.
        what: what requires it: "1,024 shards".
        folder: where; it may not exist yet.
        size: bytes.
        files: number of files and folders: inodes.
        is_about: whether both numbers are estimates.
    """

    step: str
    what: str
    folder: AnyPath
    size: int
    files: int = 1
    is_about: bool = False


class Room(Struct, frozen=True):
    """A file system and its total needs: each step keeps the output of earlier steps.

    ``folder`` is a folder on it. ``free_files`` is the number of free inodes, None if it has no
    limit. The system does not report what a quota leaves.
    """

    folder: Path
    needs: tuple[Need, ...]
    free: int
    free_files: int | None

    @property
    def size(self) -> int:
        """Total bytes needed."""
        return sum(need.size for need in self.needs)

    @property
    def files(self) -> int:
        """Total files and folders needed."""
        return sum(need.files for need in self.needs)

    @property
    def lacks_space(self) -> bool:
        """Whether more bytes are needed than are free."""
        return self.free < self.size

    @property
    def lacks_files(self) -> bool:
        """Whether more inodes are needed than are free."""
        return self.free_files is not None and self.free_files < self.files


def rooms_for(needs: Iterable[Need]) -> list[Room]:
    """The needs of all steps by file system, with its free space; object stores are unlimited."""
    by_device: dict[int, tuple[Path, list[Need]]] = {}
    for need in needs:
        if (local := local_or_none(need.folder)) is not None:
            folder = nearest(local)
            _, device_needs = by_device.setdefault(folder.stat().st_dev, (folder, []))
            device_needs.append(need)
    return [_room(folder, tuple(device_needs)) for folder, device_needs in by_device.values()]


def refuse_lack(needs: Iterable[Need], *, consuming: Iterable[Need] | None = None) -> None:
    """Raise SpaceError for the first file system that lacks space or inodes for these needs.

    ``consuming``: the needs with --consume, which the error proposes if they fit; None if --consume
    is refused.
    """
    for room in rooms_for(needs):
        if room.lacks_space:
            names = listed(need.what for need in room.needs if need.size > 0)
            raise SpaceError(
                f"not enough space in {room.folder} for {names}",
                f"needed {size_text(room.size)}, free {size_text(room.free)}",
                Hint(
                    "free some space, or name another folder in the command, then ",
                    run_again(),
                    _or_consume(consuming),
                ),
            )
        if room.lacks_files:
            names = listed(need.what for need in room.needs if need.files > 0)
            raise SpaceError(
                f"not enough inodes on the file system of {room.folder} for {names}",
                f"needed {room.files:,} files and folders, free {room.free_files:,}",
                Hint(
                    "remove files there, or name a folder on another file system in the command, "
                    "then ",
                    run_again(),
                ),
            )


def _or_consume(consuming: Iterable[Need] | None) -> str:
    """The proposal that the raw data gives its space to the shards; "" if that doesn't help."""
    if consuming is None or not is_command_line():
        return ""
    if any(room.lacks_space or room.lacks_files for room in rooms_for(consuming)):
        return ""
    return Hint(
        "; or let --consume delete archives that download has compared, "
        "while the shards are made: ",
        rerun((("consume", True),)),
    )


def _room(folder: Path, needs: tuple[Need, ...]) -> Room:
    file_system = os.statvfs(folder)
    # some, such as btrfs, make inodes on demand
    free_files = file_system.f_favail if file_system.f_files else None
    return Room(folder, needs, file_system.f_bavail * file_system.f_frsize, free_files)


def nearest(folder: Path) -> Path:
    """A folder, or the nearest one above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder if folder.parts else Path.cwd()
