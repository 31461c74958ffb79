"""LocalStore: files of a folder on a disk: gathered writes, renames, one fsync per file."""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command_line
from imagenet_prep.hints import Hint
from imagenet_prep.storage.durable import (
    begin_write_out,
    fsync_dir,
    make_folder,
    make_folders,
    sync_file_system,
    write_all,
)
from imagenet_prep.storage.lock import take
from imagenet_prep.storage.memory_maps import map_file, open_plain
from imagenet_prep.storage.refusals import GoneError, unreadable, writing
from imagenet_prep.storage.store import MOST, Buffer, FolderEntry, too_large

_WRITE_OUT = 4 << 20  # bytes that are enough to start a write-out
_BEHIND = 256 << 20  # a later call repeats this many bytes: the system skips pages in use
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_SHOWN = 40  # characters of a file's name in the name of its unfinished file, for people


class LocalStore(Struct, frozen=True):
    """Files in a folder.

    Args:
        folder: the folder of finished files.
        unfinished: the folder of files from ``create`` until they are committed, on the same file
            system. The writer makes it and removes the files of killed processes; a removed file
            never gets its final name. None: they are next to their final names, locked; see
            ``remove_abandoned``.
    """

    folder: Path
    unfinished: Path | None = None

    @property
    def device(self) -> int:
        """The file system's number."""
        return self.folder.stat().st_dev

    def list(self) -> Sequence[str]:
        """All names in the folder, sorted."""
        return sorted(os.listdir(self.folder)) if self.folder.is_dir() else []

    def scan(self) -> contextlib.AbstractContextManager[Iterator[FolderEntry]]:
        """The entries of the folder as the system lists them."""
        return os.scandir(self.folder)

    def size(self, name: str) -> int | None:
        """Size of a file in bytes, None if it does not exist."""
        try:
            return (self.folder / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, name: str) -> IO[bytes]:
        """A file to read; it never waits for a pipe."""
        return open_plain(self.folder / name)

    def load(self, name: str, max_bytes: int = MOST) -> bytes | None:
        """The whole content of a small file, None if it does not exist."""
        path = self.folder / name
        try:
            with open_plain(path) as file:
                size = os.fstat(file.fileno()).st_size
                if size > max_bytes:
                    raise too_large(path, size, max_bytes)
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(path, error) from error
        except ValueError as error:  # no system accepts such a name
            raise InputError(f"{path} can't be read", str(error), "correct this path") from error

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> Sequence[memoryview]:
        """Slices of one memory map."""
        whole = map_file(self.folder / name)
        return [whole[start:stop] for start, stop in ranges]

    def view(self, name: str, *, in_order: bool = False) -> memoryview:
        """The memory map of a file: only pages that are used are read;
        ``in_order``: the system reads ahead.
        """
        return map_file(self.folder / name, in_order=in_order)

    def create(self, name: str) -> LocalSink:
        """An unfinished file of that name.

        In the folder of unfinished files, the first write creates it.
        """
        final = self.folder / name
        if self.unfinished is None:
            partial, lock = _create_partial(final)
            return LocalSink(partial, final, lock)
        return LocalSink(self.unfinished / f"{final.name[:_SHOWN]}.{os.urandom(8).hex()}", final)

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        (self.folder / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def replace(self, name: str) -> Iterator[IO[bytes]]:
        """A file next to it, locked while it is written;
        then one fsync, one rename and one fsync of the folder.
        """
        path = self.folder / name
        with _partial(path) as (partial, file):
            yield file
            file.flush()
            os.fsync(file.fileno())
            partial.replace(path)
            fsync_dir(path.parent)

    def save(self, name: str, content: bytes) -> bool:
        """Replace a small file unless it already holds this content;
        returns whether it was written.
        """
        path = self.folder / name
        if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
            remove_abandoned(path.parent)
            return False
        with self.replace(name) as file:
            file.write(content)
        return True

    def claim(self, name: str, content: bytes) -> bytes:
        """A file next to it, made durable, then one link: the system refuses a second one."""
        path = self.folder / name
        while (present := self.load(name)) is None:
            if path.is_symlink() and not path.exists():
                expected = "expected a file, or no link"
                raise InputError(
                    f"{path} is a broken link",
                    expected,
                    Hint("remove it: ", command_line(["rm", str(path)])),
                )
            with _partial(path) as (partial, file):
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                with contextlib.suppress(FileExistsError):
                    _link(partial, path, content)
                    fsync_dir(path.parent)
        return present

    def append(self, name: str) -> LocalAppender:
        """Append in place; one fsync per sync."""
        return LocalAppender(self.folder / name)

    def sync_names(self) -> None:
        """Make names durable: one fsync of the folder."""
        fsync_dir(self.folder)

    def sync(self) -> None:
        """Make everything durable: one syncfs of the file system."""
        sync_file_system(self.folder)


class LocalSink:
    """An unfinished file: gathered writes, one fsync, a rename.

    Args:
        path: its name until it is committed. It is unique across machines, so that several writers
            of the same file never collide.
        final: the name that ``commit`` gives it.
        lock: a descriptor that keeps the file locked until it is discarded or the block ends; None
            if it does not exist yet.
    """

    def __init__(self, path: Path, final: Path, lock: int | None = None) -> None:
        self._path = path
        self._final = final
        self._lock = lock
        self._descriptor: int | None = None
        self._is_made = lock is not None
        self._is_committed = False
        self._begun = 0  # the end of the last write-out
        self.size = 0

    def write(self, parts: Sequence[Buffer]) -> None:
        """Append all of ``parts``: the kernel gathers them, nothing is copied."""
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
        """Make the content durable: one fsync."""
        os.fsync(self._open())

    def commit(self, name: str = "") -> None:
        """Give the file its final name: one rename."""
        if not self._is_made:
            self._open()  # nothing was written
        self.rest()
        with _removed(self._path):
            self._path.replace(self._final.with_name(name or self._final.name))
        self._is_committed = True

    def discard(self) -> None:
        """Close and remove it; a file that can't be removed is never
        mistaken for a finished one.
        """
        with contextlib.suppress(OSError):
            self.rest()
        if not self._is_committed:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
        if self._lock is not None:
            lock, self._lock = self._lock, None
            os.close(lock)

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
    """Raise GoneError if someone removed the unfinished file, alone or with its folder."""
    try:
        yield
    except FileNotFoundError as error:
        if path.exists():
            raise  # the folder of the final name is missing
        raise GoneError(
            error.errno, "it was removed while it was being written", os.fspath(path)
        ) from error


class LocalAppender:
    """Lines appended to a file; a line that a crash cut short is terminated first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with writing(path):
            make_folders(path.parent)
            self._file: IO[bytes] = path.open("a+b", buffering=0)
        if self._file.tell() == 0:
            fsync_dir(path.parent)
        else:
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def append(self, lines: bytes) -> None:
        """Append lines in one write."""
        with writing(self._path):
            write_all(self._file.fileno(), [lines])

    def sync(self) -> None:
        """Make the lines durable: one fsync."""
        with writing(self._path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextlib.contextmanager
def _partial(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """A new file next to ``path``, locked, and its place;
    it is removed at the end, unless it was renamed.
    """
    make_folder(path.parent)
    with writing(path):
        remove_abandoned(path.parent)
        partial, descriptor = _create_partial(path)
    try:
        with writing(path), os.fdopen(descriptor, "wb") as file:
            yield partial, file
    finally:
        with contextlib.suppress(OSError):  # the block's own exception matters
            partial.unlink(missing_ok=True)


def _create_partial(path: Path) -> tuple[Path, int]:
    """A new file next to ``path`` and its descriptor; its lock shows that it is in use."""
    while True:
        partial = path.with_name(
            f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}-{_host()}.partial"
        )
        try:
            return partial, take(partial, os.O_EXCL)
        except (
            BlockingIOError,
            FileExistsError,
        ):  # another writer is removing it, or has the same name
            continue
        except OSError:  # without locks, nobody removes abandoned files either
            return partial, os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _host() -> str:
    """A mark of this machine that fits in any file name."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"


def remove_abandoned(folder: Path) -> None:
    """Remove the partial files that killed writers on this machine left in a folder; a living
    writer holds a lock.

    This machine can't see locks of writers on others: their files stay.
    """
    for partial in folder.glob(f".*-{_host()}.partial"):
        with contextlib.suppress(OSError):  # it is locked, or gone
            descriptor = take(partial)
            try:
                partial.unlink()
            finally:
                os.close(descriptor)


def _link(partial: Path, path: Path, content: bytes) -> None:
    """Give a durable file its final name or raise FileExistsError;
    without links, write the final file directly.
    """
    try:
        os.link(partial, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            write_all(descriptor, [content])
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
