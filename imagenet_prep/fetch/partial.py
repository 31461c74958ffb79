"""A file that arrives in pieces and survives every kind of death: its bytes, and what is durable of them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from imagenet_prep.errors import WriteError
from imagenet_prep.fetch.reply import Remote
from imagenet_prep.storage.atomic import atomic_file
from imagenet_prep.storage.durable import fsync_dir, make_folder
from imagenet_prep.storage.plain import load_json
from imagenet_prep.storage.space import space_errors

Span = tuple[int, int]


def state_path(path: Path) -> Path:
    """Where the state of the partial file ``path`` is kept."""
    return path.with_name(f"{path.name}.json")


def durable_bytes(path: Path, remote: Remote) -> int:
    """How many bytes of ``remote`` an earlier run left in ``path``."""
    return sum(stop - start for start, stop in _load(path, remote))


def finish(path: Path, final: Path) -> None:
    """Give the partial file ``path``, complete now, its final name, durably; then forget its state.

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
    state_path(path).unlink(missing_ok=True)


class PartialFile:
    """A file being fetched, open for writing at any place from any thread.

    Beside it lies a JSON state file: the version of the remote file and the spans of bytes that are surely on disk. A
    span is entered only after an fsync, so whatever kills the process, or the machine, the state never says too much.

    Args:
        path: the partial file; made if it isn't there.
        remote: what it becomes; parts of another version are thrown away.

    Raises:
        SpaceError: the disk is full.
    """

    def __init__(self, path: Path, remote: Remote) -> None:
        self.path = path
        self.remote = remote
        self.received = 0
        self._lock = threading.Lock()
        self._saved = _load(path, remote)
        self._starts = {stop: start for start, stop in self._saved}  # by where a span ends, which is where it grows
        with space_errors(path):
            make_folder(path.parent)
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if not self._saved:
                self.reset()

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def reset(self) -> None:
        """Throw every byte away."""
        with self._lock:
            state_path(self.path).unlink(missing_ok=True)
            fsync_dir(self.path.parent)  # first the claim goes, then the bytes
            self._starts.clear()
            self._saved = []
            os.truncate(self._open_file(), 0)

    def write(self, offset: int, data: bytes) -> None:
        """Put ``data`` at ``offset``. Threads take turns: a page cache is faster than any network.

        Raises:
            SpaceError: the disk is full.
        """
        view = memoryview(data)
        with self._lock, space_errors(self.path):
            while view:
                written = os.pwrite(self._open_file(), view, offset)
                self._starts[offset + written] = self._starts.pop(offset, offset)
                self.received += written
                offset, view = offset + written, view[written:]

    def save(self) -> None:
        """Make what has arrived durable, then say so in the state file.

        Raises:
            SpaceError: the disk is full; the state saved before stands.
            WriteError: the disk failed; the state saved before stands.
        """
        spans = self.spans()
        if spans == self._saved:
            return
        _fsync(self._open_file(), self.path)
        with space_errors(self.path):
            _save_state(self.path, self.remote, spans)
        self._saved = spans

    def spans(self) -> list[Span]:
        """The spans that have arrived: sorted, apart from each other; start and stop (exclusive)."""
        with self._lock:
            return _merged((start, stop) for stop, start in self._starts.items())

    def gaps(self) -> list[Span]:
        """The spans that are missing."""
        edges = [0, *(edge for span in self.spans() for edge in span), self.remote.total]
        return [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop]

    def _open_file(self) -> int:
        if self._file is None:
            raise ValueError(f"{self.path} is closed")
        return self._file


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _fsync(file: int, path: Path) -> None:
    try:
        with space_errors(path):
            os.fsync(file)
    except OSError as error:
        raise WriteError(
            f"{path} could not be made durable", f"the system says: {error.strerror}", "check the disk"
        ) from error


def _save_state(path: Path, remote: Remote, spans: list[Span]) -> None:
    state = {
        "url": remote.url,
        "total": remote.total,
        "etag": remote.etag,
        "last_modified": remote.last_modified,
        "done": spans,
    }
    with atomic_file(state_path(path)) as file:
        os.fchmod(file.fileno(), 0o600)  # while it is still empty
        file.write((json.dumps(state, indent=2) + "\n").encode())


def _load(path: Path, remote: Remote) -> list[Span]:
    """The durable spans of ``remote`` in ``path``; none if the state is of another version or makes no sense."""
    state = load_json(state_path(path))
    try:
        saved = Remote(state["url"], state["total"], state["etag"], state["last_modified"])
        spans = _merged((int(start), int(stop)) for start, stop in state["done"] if start < stop)
        size = path.stat().st_size
    except (KeyError, TypeError, ValueError, OverflowError, FileNotFoundError):
        return []
    fits = all(start >= 0 and stop <= min(size, remote.total) for start, stop in spans)
    return spans if fits and remote.ranges and remote.is_same_version(saved) else []
