"""LocalStore: a folder of finished files, and one beside it for those that are not."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.storage.durable import begin_write_out, fsync_dir, sync_file_system, write_all
from imagenet_prep.storage.mapped import map_file
from imagenet_prep.storage.store import Buffer, GoneError

_WRITE_OUT = 1 << 20  # bytes that are worth telling the system to begin
_BEHIND = 256 << 20  # bytes before them of which it is told again: it passes over all pages that it is told of
_SHOWN = 40  # characters of a file's name in that of its unfinished file: for people who look


@dataclass(frozen=True, slots=True)
class LocalStore:
    """Files in a folder.

    Args:
        folder: where they are.
        unfinished: where they lie until they are committed, on the same file system; whoever writes makes it, and
            removes what a killed process left in it. Once it is gone, none of what was in it gets its name any more.
    """

    folder: Path
    unfinished: Path

    @property
    def device(self) -> int:
        """The file system."""
        return self.folder.stat().st_dev

    def list(self) -> Sequence[str]:
        """All names in the folder, in order."""
        return sorted(os.listdir(self.folder)) if self.folder.is_dir() else []

    def size(self, name: str) -> int | None:
        """Bytes of a file, None if there is none."""
        path = self.folder / name
        try:
            return path.stat().st_size
        except OSError:
            if path.exists():
                raise
            return None

    def read(self, name: str, offset: int = 0, length: int | None = None) -> memoryview:
        """A view of a memory map: what is not touched is never read, what is read is never copied."""
        whole = map_file(self.folder / name)
        return whole[offset:] if length is None else whole[offset : offset + length]

    def create(self, name: str) -> LocalSink:
        """A file of that name in the folder of unfinished ones, made by the first write."""
        return LocalSink(self.unfinished, self.folder / name)

    def delete(self, name: str) -> None:
        """Remove a file, if there is one."""
        (self.folder / name).unlink(missing_ok=True)

    def sync_names(self) -> None:
        """One fsync of the folder."""
        fsync_dir(self.folder)

    def sync(self) -> None:
        """One syncfs of the file system."""
        sync_file_system(self.folder)


class LocalSink:
    """A file among the unfinished ones: gathered writes, one fsync, a rename.

    It has a name that no other has, on this machine or another: several that write the same file at once don't meet.
    """

    def __init__(self, unfinished: Path, final: Path) -> None:
        self._path = unfinished / f"{final.name[:_SHOWN]}.{os.urandom(8).hex()}"
        self._final = final
        self._descriptor: int | None = None
        self._is_made = False
        self._is_committed = False
        self._begun = 0  # up to where the system was told to write out
        self.size = 0

    def write(self, parts: Sequence[Buffer]) -> None:
        """Append all of ``parts``: gathered by the kernel, not copied here."""
        descriptor = self._open()
        write_all(descriptor, parts)
        self.size += sum(map(len, parts))
        if self.size - self._begun >= _WRITE_OUT:
            begin_write_out(descriptor, max(0, self._begun - _BEHIND))
            self._begun = self.size

    def rest(self) -> None:
        """Close the file until the next call."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def seal(self) -> None:
        """One fsync."""
        os.fsync(self._open())

    def commit(self, name: str = "") -> None:
        """One rename."""
        if not self._is_made:
            self._open()  # nothing was written
        self.rest()
        with _removed(self._path):
            self._path.replace(self._final.with_name(name or self._final.name))
        self._is_committed = True

    def discard(self) -> None:
        """Close and remove it; where that can't be done, it lies there and nobody takes it for a finished file."""
        with contextlib.suppress(OSError):
            self.rest()
        if not self._is_committed:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)

    def __enter__(self) -> LocalSink:
        """Nothing to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """Discard it."""
        self.discard()

    def _open(self) -> int:
        if self._descriptor is None:
            begin = os.O_APPEND if self._is_made else os.O_CREAT | os.O_EXCL
            with _removed(self._path):
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | begin, 0o666)
            self._is_made = True
        return self._descriptor


@contextlib.contextmanager
def _removed(path: Path) -> Iterator[None]:
    """Make a GoneError of what the system says of an unfinished file that someone removed, alone or with its folder."""
    try:
        yield
    except FileNotFoundError as error:
        if path.exists():
            raise  # it is the other name's folder that is not there
        raise GoneError(error.errno, "it was removed while it was written", os.fspath(path)) from error
