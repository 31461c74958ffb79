"""RemoteStore: objects by name, with the methods of a LocalStore;
and RemoteSink, an object being written.
"""

from __future__ import annotations

import abc
import contextlib
import errno
import io
import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, TypeAlias

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from typing_extensions import Self


Buffer = bytes | memoryview

MOST = 1 << 30
"""The most bytes of a file that is read whole, unless the caller sets another limit."""

_AHEAD = 1 << 20  # bytes of the first fetch in a file that is read in order
_MOST_AHEAD = 8 << 20
_NEAR = 1 << 20  # fetching this many bytes between two slices is as fast as another request


class ObjectEntry(Struct, frozen=True):
    """A listed object: its name in the folder, its URL, its size in bytes, and its modification
    time in ns.

    The size of a folder is -1. The methods are those of os.DirEntry.
    """

    name: str
    path: str
    size: int = -1
    changed: int = 0

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""
        return self.size < 0

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is an object."""
        return self.size >= 0

    def is_symlink(self) -> bool:
        """False: there are no links."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The status that os.stat gives for a plain file of this size and time."""
        seconds = self.changed // 10**9
        fields = (stat.S_IFREG | 0o644, 0, 0, 1, 0, 0, self.size, seconds, seconds, seconds)
        return os.stat_result(fields, {"st_mtime_ns": self.changed})


FolderEntry: TypeAlias = os.DirEntry[str] | ObjectEntry
"""An entry of a folder."""


@dataclass(frozen=True)
class RemoteStore(abc.ABC):
    """Objects below a prefix. Each appears whole and durable, so nothing is ever synced.

    A new kind of store subclasses it and defines the abstract methods; names are relative to
    ``folder``.
    """

    folder: str = ""

    @property
    @abc.abstractmethod
    def root(self) -> str:
        """The URL before ``folder``, without a trailing slash: ``s3://bucket``."""

    @abc.abstractmethod
    def find(self, name: str) -> ObjectEntry | None:
        """Size and time of an object, None if it does not exist."""

    @abc.abstractmethod
    def get(self, name: str, max_bytes: int) -> memoryview:
        """The content of an object.

        Raises:
            FileNotFoundError: it does not exist.
            InputError: it is larger than ``max_bytes`` bytes.
        """

    @abc.abstractmethod
    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> Sequence[memoryview]:
        """The bytes from each start to its stop, fewer if the object is shorter;
        raises FileNotFoundError.
        """

    @abc.abstractmethod
    def put(self, name: str, content: bytes | memoryview, *, is_new: bool = False) -> bool:
        """Write an object; with ``is_new`` only if it does not exist.
        Returns whether it was written.
        """

    @abc.abstractmethod
    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""

    @abc.abstractmethod
    def list_folder(self, name: str = "") -> Sequence[ObjectEntry]:
        """The folders in a folder, then its objects, both sorted by name."""

    def has_below(self, name: str) -> bool:
        """Whether a folder of this name holds an object."""
        return bool(self.list_folder(name))

    def look(self, name: str) -> ObjectEntry | None:
        """``find``, whatever is remembered."""
        return self.find(name)

    def remembering(self, name: str) -> contextlib.AbstractContextManager[None]:
        """While the block runs, a folder and those in it may be listed only once."""
        return contextlib.nullcontext()

    # derived methods ------------------------------------------------------------------------------

    @property
    def device(self) -> str:
        """The bucket."""
        return self.root

    def below(self, folder: str) -> Self:
        """The store of a folder in this store."""
        return replace(self, folder=self.key(folder))

    def key(self, name: str) -> str:
        """The name in the bucket."""
        return f"{self.folder}/{name}".strip("/")

    def url(self, name: str) -> str:
        """The URL of an object."""
        return f"{self.root}/{self.key(name)}".rstrip("/")

    def list(self) -> Sequence[str]:
        """The names of all objects in the folder, sorted."""
        return [entry.name for entry in self.list_folder() if entry.is_file()]

    @contextlib.contextmanager
    def scan(self) -> Iterator[Iterator[FolderEntry]]:
        """The folders and objects of a folder; raises FileNotFoundError if it has none."""
        entries = self.list_folder()
        if not entries:
            raise FileNotFoundError(errno.ENOENT, "no object is below it", self.url(""))
        yield iter(entries)

    def size(self, name: str) -> int | None:
        """Size of an object in bytes, None if it does not exist."""
        entry = self.find(name)
        return None if entry is None else entry.size

    def open(self, name: str) -> IO[bytes]:
        """The object, fetched whole."""
        return io.BytesIO(self.get(name, 1 << 40))

    def load(self, name: str, max_bytes: int = MOST) -> bytes | None:
        """The content of an object, None if it does not exist."""
        try:
            return bytes(self.get(name, max_bytes))
        except FileNotFoundError:
            return None

    def view(self, name: str, *, in_order: bool = False, least: int = 0) -> RangedView:
        """Ranges, fetched when they are sliced; at least ``least`` bytes per request."""
        return RangedView(self, name, least=_AHEAD if in_order else least)

    def create(self, name: str) -> RemoteSink:
        """An object collected in memory."""
        return RemoteSink(self, name)

    @contextlib.contextmanager
    def replace(self, name: str) -> Iterator[IO[bytes]]:
        """Collected in memory, then written as one object."""
        content = io.BytesIO()
        yield content
        self.put(name, content.getbuffer())

    def save(self, name: str, content: bytes) -> bool:
        """Compare in one request, and write in another."""
        return self.load(name) != content and self.put(name, content)

    def claim(self, name: str, content: bytes) -> bytes:
        """A conditional write. A repeated request is refused if the first one arrived,
        so the content decides.
        """
        while not self.put(name, content, is_new=True):
            if (present := self.load(name)) is not None:
                return present
        return content

    def append(self, name: str) -> RemoteAppender:
        """Objects next to it: ``journal-7.jsonl`` for ``journal.jsonl``."""
        return RemoteAppender(self, name)

    def sync_names(self) -> None:  # noqa: B027 - nothing to do: an answered request is durable
        """Nothing to do: an answered request is durable."""

    def sync(self) -> None:  # noqa: B027
        """Nothing to do: an answered request is durable."""


class RangedView:
    """The bytes of an object, read-only.

    A slice of the last fetch is free. A slice that starts within a MiB after its end counts as
    reading in order: it fetches a MiB, then twice as much each time, up to 8 MiB. So a reader of
    headers gets many of them per request. Any other slice is fetched alone, with at least ``least``
    bytes. Several threads may read.

    Raises:
        InputError: the object does not exist; or a slice finds that it was replaced.
        NetworkError, AccessError: as their names say.
    """

    def __init__(self, store: RemoteStore, name: str, *, least: int = 0) -> None:
        self._store = store
        self._name = name
        self.path = store.url(name)
        entry = store.look(name)
        if entry is None:
            raise unreadable(self.path, FileNotFoundError(errno.ENOENT, "No such object"))
        self.modified = entry.changed
        self._size = entry.size
        self._least = least
        # one value: its start, its bytes, and the requested size
        self._window = (0, memoryview(b""), least)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, span: slice) -> memoryview:
        start, stop, _ = span.indices(self._size)
        begin, window, size = self._window
        end = begin + len(window)
        if begin <= start and stop <= end:
            return window[start - begin : stop - begin]
        gap = _NEAR if self._least else 0
        is_next = len(window) > 0 and begin < start <= end + gap
        size = min(max(2 * size, _NEAR, stop - start), _MOST_AHEAD) if is_next else self._least
        fetched = self._fetch(start, min(max(stop, start + size), self._size))
        self._window = start, fetched, max(size, stop - start)
        return fetched[: stop - start]

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def _fetch(self, start: int, stop: int) -> memoryview:
        try:
            (content,) = self._store.read_ranges(self._name, [(start, stop)])
        except FileNotFoundError as error:
            raise unreadable(self.path, error) from error
        if len(content) != stop - start:
            raise changed(self.path, start, stop - start, len(content))
        return content


def too_large(path: object, size: int, max_bytes: int) -> InputError:
    """The error for a file that is not read whole."""
    return InputError(
        f"{path} holds {size:,} bytes",
        f"expected at most {max_bytes:,} bytes",
        "correct the path, or use a smaller file; one that this program wrote is damaged",
    )


def changed(path: object, offset: int, length: int, got: int) -> InputError:
    """The error for bytes of a file that no longer exist."""
    expected = f"expected {number_of(length, 'byte')} at offset {offset:,}, got {got:,}"
    return changed_since(path, expected)


def changed_since(path: object, expected: str) -> InputError:
    """The error for a file that is not as it was when it was listed; ``expected`` is how it was."""
    return InputError(
        f"{path} has changed since it was first looked at",
        expected,
        "try again once nothing writes to it",
    )


class RemoteSink:
    """An object in memory; it does not exist before ``commit``."""

    def __init__(self, store: RemoteStore, name: str) -> None:
        self._store = store
        self._name = name
        self._held: list[Buffer] = []
        self.size = 0

    def write(self, parts: Sequence[Buffer]) -> None:
        """Append all of ``parts``."""
        self._held.extend(parts)
        self.size += sum(map(len, parts))

    def rest(self) -> None:
        """Nothing is open here."""

    def seal(self) -> None:
        """Nothing to do: the commit makes the object durable."""

    def commit(self, name: str = "") -> None:
        """Write the object."""
        folder, slash, first_name = self._name.rpartition("/")
        self._store.put(f"{folder}{slash}{name or first_name}", b"".join(self._held))

    def discard(self) -> None:
        """Free the memory."""
        self._held = []

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """Discard it."""
        self.discard()


class RemoteAppender:
    """An object for each sync of lines; closing replaces them by one
    object of all lines of this writer.
    """

    def __init__(self, store: RemoteStore, name: str) -> None:
        self._store = store
        self._stem, dot, suffix = name.rpartition(".")
        self._suffix = dot + suffix
        self._writer = os.urandom(6).hex()
        self._new: list[bytes] = []
        self._put: list[tuple[str, bytes]] = []

    def append(self, lines: bytes) -> None:
        """Hold lines until the next sync."""
        self._new.append(lines)

    def sync(self) -> None:
        """Write the new lines as an object."""
        if self._new:
            self._put_part(b"".join(self._new))
            self._new = []

    def close(self) -> None:
        """Replace several objects by one."""
        if len(self._put) > 1:
            parts = self._put[:]
            self._put_part(b"".join(lines for _, lines in parts))
            for name, _ in parts:
                self._store.delete(name)

    def _put_part(self, lines: bytes) -> None:
        # Later parts have later names, so that a later line about a shard wins.
        name = f"{self._stem}-{time.time_ns():019d}-{self._writer}{self._suffix}"
        self._store.put(name, lines)
        self._put.append((name, lines))
