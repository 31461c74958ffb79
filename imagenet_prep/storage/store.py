"""Store: where shards go and come from. Sink: a file on its way there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | memoryview


class GoneError(FileNotFoundError):
    """Someone removed what was being written: a run that took this one's place."""


class Sink(Protocol):
    """A file being written. As a context manager it is discarded at the end, unless it was committed.

    Every method may raise OSError, as the system refuses; then nothing of the file can be trusted. It is a GoneError if
    someone removed the file: trying again is of no use then. ``size`` is the bytes written so far.
    """

    size: int

    def write(self, parts: Sequence[Buffer]) -> None:
        """Append all of ``parts``, one after the other. None of it is durable yet."""

    def rest(self) -> None:
        """Hold nothing open until the next call: there can be any number of resting sinks."""

    def seal(self) -> None:
        """Make every byte durable; nothing is written after that. There is still no file of that name."""

    def commit(self, name: str = "") -> None:
        """Give it its name, or this other one: from one moment to the next the whole file stands there.

        What had the name is replaced. If the system goes down before the names are synced, the old file may stand there
        again, or none; if the sink was not sealed, some of its bytes may be missing until the store is synced.
        """

    def discard(self) -> None:
        """Remove what was written, unless it has its name already."""

    def __enter__(self) -> Sink:
        """Nothing to do."""

    def __exit__(self, *_: object) -> None:
        """Discard it."""


class Store(Protocol):
    """Finished files under their names; nothing unfinished is ever seen here."""

    @property
    def device(self) -> object:
        """What a sync is of: one sync serves all stores of one device."""

    def list(self) -> Sequence[str]:
        """All names, in order."""

    def size(self, name: str) -> int | None:
        """Bytes of a file, None if there is none."""

    def read(self, name: str, offset: int = 0, length: int | None = None) -> memoryview:
        """These bytes of a file, or all from ``offset`` on; they stay as they are while the view lives.

        Raises:
            InputError: it can't be opened.
        """

    def create(self, name: str) -> Sink:
        """A file that will have this name once it is committed.

        Several may be written at once, of one name too, by any number of processes: none does another any harm, and
        the one committed last stands there.
        """

    def delete(self, name: str) -> None:
        """Remove a file, if there is one. Durable once the names are synced."""

    def sync_names(self) -> None:
        """Make all that was committed and deleted so far durable; the bytes of what was sealed are."""

    def sync(self) -> None:
        """Make everything durable, sealed or not, in one go for any number of files."""
