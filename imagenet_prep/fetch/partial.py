"""PartialFile: a file that arrives in pieces, and the map file that lists the bytes present."""

from __future__ import annotations

import json
import os
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from imagenet_prep.errors import PrepError, WriteError
from imagenet_prep.fetch.reply import NO_VALIDATOR, Remote
from imagenet_prep.storage.durable import fsync_dir, make_folder
from imagenet_prep.storage.files import atomic_file, load_json
from imagenet_prep.storage.local import remove_abandoned
from imagenet_prep.storage.refusals import space_errors, writing

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Span = tuple[int, int]
"""Start and stop (exclusive) of a run of bytes."""


class Spans:
    """A set of byte positions, kept as sorted, disjoint spans."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        self.size = 0
        for start, stop in spans:
            self.add(start, stop)

    def __iter__(self) -> Iterator[Span]:
        return zip(self._starts, self._stops, strict=True)

    def add(self, start: int, stop: int) -> None:
        """Add the positions from ``start`` to ``stop``; an empty span adds nothing."""
        if start >= stop:
            return
        first = bisect_left(self._stops, start)  # the first span that touches the new one
        last = bisect_right(self._starts, stop)  # the first later span that does not
        if first < last:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self.size += (stop - start) - sum(self._stops[first:last]) + sum(self._starts[first:last])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def gaps(self, total: int) -> list[Span]:
        """The missing spans below ``total``."""
        edges = [0, *(edge for span in self for edge in span), total]
        return [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop]

    @property
    def front(self) -> int:
        """The number of bytes from the start up to the first gap."""
        return self._stops[0] if self._starts and self._starts[0] == 0 else 0


@dataclass(frozen=True, slots=True)
class Leftover:
    """The bytes that earlier runs fetched of a file, and the version that they belong to."""

    remote: Remote
    spans: tuple[Span, ...]

    @property
    def size(self) -> int:
        """The number of bytes fetched."""
        return sum(stop - start for start, stop in self.spans)

    def obstacle(self, remote: Remote, *, has_digest: bool) -> str:
        """Why a transfer of ``remote`` can't resume from these bytes; "" if it can."""
        if remote.total != self.remote.total:
            return f"the file on the server has another size: {remote.total:,} bytes, it was {self.remote.total:,}"
        if not remote.ranges:
            return "the server sends the file only as a whole"
        if remote.url != self.remote.url:
            return "it comes from another address"
        if not remote.has_validator and not has_digest:
            return NO_VALIDATOR
        return "" if remote.may_join(self.remote, has_digest=has_digest) else "the file on the server has changed"


def state_path(path: Path) -> Path:
    """The path of the durable map of the partial file ``path``; the bytes it names are durable too."""
    return path.with_name(f"{path.name}.json")


def written_path(path: Path) -> Path:
    """The path of the map of everything written; it is valid until the next boot."""
    return path.with_name(f"{path.name}.written.json")


def boot_id() -> str:
    """An identifier of the current boot; "" if the system gives none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def find_leftover(path: Path) -> Leftover | None:
    """The bytes that earlier runs left in ``path``; None if there are none, or their map is invalid."""
    try:
        status = path.stat()
    except OSError:
        return None
    durable, written = load_json(state_path(path)), load_json(written_path(path))
    left = _leftover(durable, status.st_size)
    if isinstance(written, dict) and written.get("where") == _where(status):
        later = _leftover(written, status.st_size)
        if later and (not left or later.remote == left.remote):
            left = Leftover(later.remote, tuple(Spans([*later.spans, *(left.spans if left else ())])))
    return left if left and left.spans else None


def _leftover(state: Any, size: int) -> Leftover | None:
    """Read a map; None if it is invalid, or names bytes beyond the file."""
    try:
        remote = Remote(state["url"], state["total"], state["etag"], state["last_modified"])
        spans = [(int(start), int(stop)) for start, stop in state["done"]]
        fits = all(0 <= start <= stop <= min(size, remote.total) for start, stop in spans)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return Leftover(remote, tuple(Spans(spans))) if fits else None


def _where(status: os.stat_result) -> list[str | int] | None:
    """The current boot and the file's identity; a copy of the file has another one."""
    boot = boot_id()
    return [boot, status.st_dev, status.st_ino] if boot else None


def kept_bytes(path: Path, remote: Remote, *, has_digest: bool = False) -> int:
    """The number of bytes of ``remote`` that earlier runs left in ``path`` and this run can reuse."""
    left = find_leftover(path)
    return left.size if left and not left.obstacle(remote, has_digest=has_digest) else 0


def finish(path: Path, final: Path) -> None:
    """Give the complete partial file ``path`` its final name, durably; then remove its maps.

    Raises:
        WriteError: the disk failed; the partial file can't be trusted.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        _fsync(file, path)
    except PrepError:
        written_path(path).unlink(missing_ok=True)
        raise
    finally:
        os.close(file)
    path.replace(final)
    for folder in {path.parent, final.parent}:
        fsync_dir(folder)
    forget(path)


def forget(path: Path) -> None:
    """Remove the maps of the partial file ``path``, and temporary map files of a killed run."""
    written_path(path).unlink(missing_ok=True)
    state_path(path).unlink(missing_ok=True)
    remove_abandoned(state_path(path))


class PartialFile:
    """A file being fetched, which any thread may write to at any position.

    ``save`` makes the received bytes durable before it updates the map, so the map never names a missing byte, even
    after a crash. ``note`` updates a second map of written bytes, without a sync: it survives a kill.

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
        self._noted: list[Span] = []
        self._has_failed = False
        left = find_leftover(path)
        make_folder(path.parent)
        with writing(path):
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if left is None or left.obstacle(remote, has_digest=has_digest):
            self.reset()
            return
        self._spans, self._noted = Spans(left.spans), list(left.spans)
        if remote != left.remote:
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
            self._spans, self._saved, self._noted = Spans(), [], []
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

    def note(self) -> None:
        """Record the written bytes in the map that survives a kill, but not a crash of the system."""
        where, spans = _where(os.fstat(self._open_file())), self.spans()
        if where is None or self._has_failed or spans == self._noted:
            return
        new = written_path(self.path).with_suffix(".new")
        with space_errors(self.path):
            new.touch(0o600)
            new.write_text(self._map(spans, where=where))
            new.replace(written_path(self.path))
        self._noted = spans

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
            written_path(self.path).unlink(missing_ok=True)
            raise
        with space_errors(self.path), atomic_file(state_path(self.path)) as file:
            os.fchmod(file.fileno(), 0o600)  # while it is still empty
            file.write(self._map(spans).encode())
        self._saved = spans

    def _map(self, spans: list[Span], **more: Any) -> str:
        remote = self.remote
        version = {"url": remote.url, "total": remote.total, "etag": remote.etag, "last_modified": remote.last_modified}
        return json.dumps({**version, "done": spans, **more}, indent=2) + "\n"

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
