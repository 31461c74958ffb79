"""PartialFile: a file that arrives in pieces, and the map file that lists the bytes present."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

from imagenet_prep.errors import PrepError, WriteError
from imagenet_prep.fetch.reply import Remote
from imagenet_prep.storage.durable import fsync_dir, make_folder
from imagenet_prep.storage.files import atomic_file, load_json
from imagenet_prep.storage.local import remove_abandoned
from imagenet_prep.storage.refusals import space_errors, writing

Span = tuple[int, int]
"""Start and stop (exclusive) of a run of bytes."""


class Spans:
    """A set of byte positions, kept as sorted, disjoint spans; a transfer has about as many as connections."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans: list[Span] = []
        self.size = 0
        for start, stop in spans:
            self.add(start, stop)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def add(self, start: int, stop: int) -> None:
        """Add the positions from ``start`` to ``stop``; an empty span adds nothing."""
        if start >= stop:
            return
        touching = [span for span in self._spans if span[0] <= stop and start <= span[1]]
        start, stop = min([start, *(span[0] for span in touching)]), max([stop, *(span[1] for span in touching)])
        self._spans = sorted([*(span for span in self._spans if span not in touching), (start, stop)])
        self.size = sum(stop - start for start, stop in self._spans)

    def gaps(self, total: int) -> list[Span]:
        """The missing spans below ``total``."""
        edges = [0, *(edge for span in self for edge in span), total]
        return [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop]

    @property
    def front(self) -> int:
        """The number of bytes from the start up to the first gap."""
        return self._spans[0][1] if self._spans and self._spans[0][0] == 0 else 0


def state_path(path: Path) -> Path:
    """The path of the map of the partial file ``path``; the bytes it names are durable too."""
    return path.with_name(f"{path.name}.json")


def find_leftover(path: Path) -> tuple[Remote, Spans] | None:
    """The version and the bytes that earlier runs left in ``path``; None without any, or if the map is invalid."""
    state = load_json(state_path(path))
    try:
        remote = Remote(state["url"], state["total"], state["etag"], state["last_modified"])
        done = [(int(start), int(stop)) for start, stop in state["done"]]
        end = min(path.stat().st_size, remote.total)
        fits = all(0 <= start <= stop <= end for start, stop in done)
    except (OSError, KeyError, TypeError, ValueError, OverflowError):
        return None
    spans = Spans(done if fits else ())
    return (remote, spans) if spans.size else None


def kept_bytes(path: Path, remote: Remote, *, has_digest: bool = False) -> int:
    """The number of bytes of ``remote`` that earlier runs left in ``path`` and this run can reuse."""
    version, spans = find_leftover(path) or (remote, Spans())
    return 0 if remote.obstacle(version, has_digest=has_digest) else spans.size


def finish(path: Path, final: Path) -> None:
    """Give the complete partial file ``path`` its final name, durably; then remove its map.

    Raises:
        WriteError: the disk failed; the partial file can't be trusted.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        _fsync(file, path)
    finally:
        os.close(file)
    path.replace(final)
    for folder in {path.parent, final.parent}:
        fsync_dir(folder)
    forget(path)


def forget(path: Path) -> None:
    """Remove the map of the partial file ``path``, and temporary map files of a killed run."""
    state_path(path).unlink(missing_ok=True)
    remove_abandoned(state_path(path))


class PartialFile:
    """A file being fetched, which any thread may write to at any position.

    ``save`` makes the received bytes durable before it updates the map, so the map never names a missing byte, even
    after a crash.

    Args:
        path: the partial file; created if missing.
        remote: the version to fetch. The bytes of an earlier run are kept if they fit, otherwise thrown away.
        has_digest: whether a digest will decide at the end if the file is correct.

    ``received`` is the number of bytes received since it was opened.

    Raises:
        SpaceError: the disk is full.
    """

    def __init__(self, path: Path, remote: Remote, *, has_digest: bool = False) -> None:
        self.path = path
        self.remote = remote
        self.received = 0
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._spans = Spans()
        self._saved: list[Span] = []
        self._has_failed = False
        left = find_leftover(path)
        make_folder(path.parent)
        with writing(path):
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if left is None or remote.obstacle(left[0], has_digest=has_digest):
            self.reset()
            return
        self._spans = left[1]
        if remote != left[0]:
            self.save()

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._writing:  # a closed descriptor may soon belong to another file
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def reset(self) -> None:
        """Throw away every byte."""
        with self._changed, space_errors(self.path):
            forget(self.path)
            fsync_dir(self.path.parent)  # the map goes before the bytes
            self._spans, self._saved = Spans(), []
            os.truncate(self._open_file(), 0)

    def write(self, offset: int, data: bytes) -> None:
        """Write ``data`` at ``offset``; any number of threads may call this.

        Raises:
            SpaceError: the disk is full.
        """
        view = memoryview(data)
        while view:
            with self._writing, space_errors(self.path):  # the system admits one writer at a time; the others spin
                written = os.pwrite(self._open_file(), view, offset)
            with self._changed:
                front, size = self._spans.front, self._spans.size
                self._spans.add(offset, offset + written)
                self.received += self._spans.size - size
                if self._spans.front > front:
                    self._changed.notify_all()
            offset, view = offset + written, view[written:]

    def front(self, beyond: int, seconds: float) -> int:
        """The number of bytes before the first gap, once it is more than ``beyond``.

        After ``seconds`` it returns the current number.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._spans.front > beyond, seconds)
            return self._spans.front

    def save(self) -> None:
        """Make the received bytes durable, then record them in the map.

        Raises:
            SpaceError: the disk is full; the last saved map remains valid.
            WriteError: the disk failed; the last saved map remains valid.
        """
        spans = self.spans()
        if self._has_failed or spans == self._saved:
            return
        try:
            _fsync(self._open_file(), self.path)
        except PrepError:  # unsynced bytes may be lost, and a later fsync would not report it
            self._has_failed = True
            raise
        with space_errors(self.path), atomic_file(state_path(self.path)) as file:
            os.fchmod(file.fileno(), 0o600)  # while it is still empty
            state = {key: getattr(self.remote, key) for key in ("url", "total", "etag", "last_modified")}
            file.write(f"{json.dumps({**state, 'done': spans}, indent=2)}\n".encode())
        self._saved = spans

    def spans(self) -> list[Span]:
        """The spans that have arrived, sorted and disjoint; start and stop (exclusive)."""
        with self._changed:
            return list(self._spans)

    def gaps(self) -> list[Span]:
        """The missing spans."""
        with self._changed:
            return self._spans.gaps(self.remote.total)

    @property
    def size(self) -> int:
        """The number of bytes present."""
        with self._changed:
            return self._spans.size

    def _open_file(self) -> int:
        if self._file is None:
            raise ValueError(f"{self.path} is closed")
        return self._file


def _fsync(file: int, path: Path) -> None:
    try:
        with space_errors(path):
            os.fsync(file)
    except OSError as error:
        raise WriteError(
            f"{path} could not be made durable", f"the system says: {error.strerror}", "check the disk"
        ) from error
