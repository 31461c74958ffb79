"""PartialFile: a file that arrives in pieces and survives every kind of death; its bytes, and what is sure of them."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from imagenet_prep.errors import PrepError, WriteError
from imagenet_prep.fetch import written
from imagenet_prep.fetch.reply import NO_VALIDATOR, Remote
from imagenet_prep.fetch.spans import Span, Spans
from imagenet_prep.fetch.written import WrittenLog, written_spans
from imagenet_prep.storage.durable import fsync_dir, make_folder
from imagenet_prep.storage.files import atomic_file, load_json
from imagenet_prep.storage.local import remove_abandoned
from imagenet_prep.storage.refusals import space_errors


def state_path(path: Path) -> Path:
    """Where the state of the partial file ``path`` is kept."""
    return path.with_name(f"{path.name}.json")


@dataclass(frozen=True, slots=True)
class Leftover:
    """What earlier runs left of a file.

    Args:
        remote: the version that they fetched.
        spans: which of its bytes are there: sorted, apart from each other.
        is_joined: whether these are bytes of several versions, which only a digest can tell to be one file.
    """

    remote: Remote
    spans: tuple[Span, ...]
    is_joined: bool = False

    @property
    def size(self) -> int:
        """How many bytes that is."""
        return sum(stop - start for start, stop in self.spans)

    def obstacle(self, remote: Remote, *, has_digest: bool) -> str:
        """Why a transfer of ``remote`` can't go on from here; "" if it can.

        ``has_digest``: in the end a digest tells whether the file is right, so that another version may be tried.
        """
        if remote.total != self.remote.total:
            return f"the file on the server has another size: {remote.total:,} bytes, it was {self.remote.total:,}"
        if not remote.ranges:
            return "the server sends the file only as a whole"
        if has_digest:
            return ""
        if self.is_joined:
            return "what is there is of several versions, and no digest is known: nothing tells if it fits together"
        if remote.url != self.remote.url:
            return "it comes from another address, and no digest is known: nothing tells if it is the same file"
        if not remote.has_validator:
            return NO_VALIDATOR
        return "" if remote.is_same_version(self.remote) else "the file on the server has changed"


def find_leftover(path: Path) -> Leftover | None:
    """What earlier runs left in ``path``; None if that is nothing, or can't be believed."""
    try:
        size = path.stat().st_size
    except OSError:
        return None
    found = [_saved(path, size)]
    version = None if found[0] is None else _version(found[0].remote, found[0].is_joined)
    with contextlib.suppress(KeyError, TypeError):
        if said := written_spans(path, version):
            found.append(_leftover(said[0], said[1], size))
    spans = tuple(Spans(span for each in found if each for span in each.spans))
    first = next((each for each in found if each), None)
    return Leftover(first.remote, spans, first.is_joined) if first and spans else None


def _saved(path: Path, size: int) -> Leftover | None:
    """What the state file says; None if it makes no sense."""
    state = load_json(state_path(path))
    try:
        return _leftover(state, [(int(start), int(stop)) for start, stop in state["done"]], size)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _leftover(version: Any, spans: list[Span], size: int) -> Leftover | None:
    """Spans of a version; None if one of them lies where nothing can be."""
    remote = Remote(version["url"], version["total"], version["etag"], version["last_modified"])
    fits = all(0 <= start <= stop <= min(size, remote.total) for start, stop in spans)
    return Leftover(remote, tuple(Spans(spans)), bool(version.get("joined"))) if fits else None


def _version(remote: Remote, is_joined: bool) -> dict[str, Any]:
    """The version of a file as states and logs have it."""
    version: dict[str, Any] = {
        "url": remote.url,
        "total": remote.total,
        "etag": remote.etag,
        "last_modified": remote.last_modified,
    }
    return {**version, "joined": True} if is_joined else version


def kept_bytes(path: Path, remote: Remote, *, has_digest: bool = False) -> int:
    """How many bytes of ``remote`` need not be fetched, since earlier runs left them in ``path``."""
    left = find_leftover(path)
    return left.size if left and not left.obstacle(remote, has_digest=has_digest) else 0


def finish(path: Path, final: Path) -> None:
    """Give the partial file ``path``, complete now, its final name, durably; then forget its state.

    Raises:
        WriteError: the disk failed; the partial file can't be trusted.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        _fsync(file, path)
    except PrepError:
        written.forget(path)
        raise
    finally:
        os.close(file)
    path.replace(final)
    for folder in {path.parent, final.parent}:
        fsync_dir(folder)
    forget(path)


def forget(path: Path) -> None:
    """Remove what is said of the partial file ``path``, and what a killed run has begun to say."""
    written.forget(path)
    state_path(path).unlink(missing_ok=True)
    remove_abandoned(state_path(path))


class PartialFile:
    """A file being fetched, open for reading and writing at any place from any thread.

    Two files beside it say which of its bytes are there. The state (JSON) is durable and names only what an fsync has
    made durable before, so it never says too much, whatever kills the process or the machine. The log (written.py)
    names every write, without an fsync; it counts after a kill, but not after the end of the system.

    Args:
        path: the partial file; made if it isn't there.
        remote: what it becomes. What an earlier run left is kept if it fits, else thrown away.
        has_digest: whether a digest will tell in the end if the file is right.

    ``received`` is the number of bytes written since it was opened, ``before`` the version that an earlier run fetched
    (None: nothing of it was kept), ``is_joined`` whether bytes of several versions are in it.

    Raises:
        SpaceError: the disk is full.
    """

    def __init__(self, path: Path, remote: Remote, *, has_digest: bool = False) -> None:
        self.path = path
        self.remote = remote
        self.received = 0
        self.is_joined = False
        self._changed = threading.Condition()
        self._saving = threading.Lock()
        self._writing = threading.Lock()
        self._spans = Spans()
        self._saved: list[Span] = []
        self._log: WrittenLog | None = None
        self.before: Remote | None = None
        left = find_leftover(path)
        with space_errors(path):
            make_folder(path.parent)
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if left is None or left.obstacle(remote, has_digest=has_digest):
            self.reset()
            return
        self.before = left.remote
        self._spans = Spans(left.spans)
        self.is_joined = left.is_joined or not remote.is_same_version(left.remote)
        if _version(remote, self.is_joined) != _version(left.remote, left.is_joined):
            self._save_all()
        else:
            saved = _saved(path, os.fstat(self._open_file()).st_size)
            self._saved = list(saved.spans) if saved else []
        self._begin_log()

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            if self._file is not None:
                os.close(self._file)
            self._file = None
            if self._log is not None:
                self._log.close()
            self._log = None

    def reset(self) -> None:
        """Throw every byte away."""
        with self._saving, self._changed, space_errors(self.path):
            if self._log is not None:
                self._log.close()
            forget(self.path)
            fsync_dir(self.path.parent)  # first the claim goes, then the bytes
            self._spans.clear()
            self._saved = []
            self.is_joined = False
            os.truncate(self._open_file(), 0)
        self._begin_log()

    def join(self) -> None:
        """Remember, durably, that bytes of another version come in among those that are there."""
        if not self.is_joined:
            self.is_joined = True
            with self._saving:
                self._save_all()
            self._begin_log()

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Put ``data`` at ``offset``, then say so. Any number of threads may, but no two of them at one place.

        Raises:
            SpaceError: the disk is full.
        """
        view = memoryview(data)
        with space_errors(self.path):
            while view:
                with self._writing:  # the system takes one writer of a file at a time, and lets the others spin
                    written = os.pwrite(self._open_file(), view, offset)
                self._add(offset, offset + written)
                offset, view = offset + written, view[written:]

    def _add(self, start: int, stop: int) -> None:
        with self._changed:
            if self._log is not None:
                self._log.add(start, stop)
            front = self._spans.front
            self._spans.add(start, stop)
            self.received += stop - start
            if self._spans.front > front:
                self._changed.notify_all()

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from ``start`` to ``stop``."""
        return os.pread(self._open_file(), stop - start, start)

    def front(self, beyond: int, seconds: float) -> int:
        """How many bytes are there from the beginning on without a gap, once that is more than ``beyond``.

        After ``seconds`` it is given as it is.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._spans.front > beyond, seconds)
            return self._spans.front

    def save(self) -> None:
        """Make what has arrived durable, then say so in the state file.

        Raises:
            SpaceError: the disk is full; the state saved before stands.
            WriteError: the disk failed; the state saved before stands.
        """
        with self._saving:
            if self.spans() != self._saved:
                self._save_all()

    def _save_all(self) -> None:
        spans = self.spans()
        try:
            _fsync(self._open_file(), self.path)
        except PrepError:
            self._distrust_log()
            raise
        with space_errors(self.path):
            _save_state(self.path, {**_version(self.remote, self.is_joined), "done": spans})
        self._saved = spans
        with self._changed, space_errors(self.path):
            if self._log is not None:
                self._log.shorten(self._spans)

    def _distrust_log(self) -> None:
        """The system may have dropped what it could not write: what was only written is not known to be there."""
        with self._changed:
            if self._log is not None:
                self._log.drop()
            self._log = None

    def _begin_log(self) -> None:
        with self._changed, space_errors(self.path):
            if self._log is not None:
                self._log.close()
            version = _version(self.remote, self.is_joined)
            self._log = WrittenLog(self.path, self._open_file(), version, self._spans)

    def spans(self) -> list[Span]:
        """The spans that have arrived: sorted, apart from each other; start and stop (exclusive)."""
        with self._changed:
            return list(self._spans)

    def gaps(self) -> list[Span]:
        """The spans that are missing."""
        with self._changed:
            return self._spans.gaps(self.remote.total)

    @property
    def size(self) -> int:
        """How many bytes are there."""
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


def _save_state(path: Path, state: dict[str, Any]) -> None:
    with atomic_file(state_path(path)) as file:
        os.fchmod(file.fileno(), 0o600)  # while it is still empty
        file.write((json.dumps(state, indent=2) + "\n").encode())
