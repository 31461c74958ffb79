"""PartialFile: a file that arrives in pieces, with a map file of the bytes present;
FrontHasher hashes it meanwhile.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading
import timeit
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Union

from imagenet_prep.errors import PrepError, WriteError
from imagenet_prep.fetch.reply import Remote
from imagenet_prep.model import Progress
from imagenet_prep.storage.durable import begin_write_out, fsync_dir, make_folder
from imagenet_prep.storage.files import atomic_file, load_json
from imagenet_prep.storage.local import remove_abandoned
from imagenet_prep.storage.refusals import AGAIN, space_errors, writing
from imagenet_prep.tfrecord import crc32c

Span = tuple[int, int]
"""Start and stop (exclusive) of a run of bytes."""


class Spans:
    """A set of byte positions, kept as sorted, disjoint spans;
    a transfer has about as many as connections.
    """

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
        start, stop = (
            min([start, *(span[0] for span in touching)]),
            max([stop, *(span[1] for span in touching)]),
        )
        self._spans = sorted(
            [*(span for span in self._spans if span not in touching), (start, stop)]
        )
        self.size = sum(stop - start for start, stop in self._spans)

    def gaps(self, total: int) -> list[Span]:
        """The missing spans below ``total``."""
        edges = [0, *(edge for span in self for edge in span), total]
        return [
            (start, stop)
            for start, stop in zip(edges[::2], edges[1::2], strict=True)
            if start < stop
        ]

    @property
    def front(self) -> int:
        """The number of bytes from the start up to the first gap."""
        return self._spans[0][1] if self._spans and self._spans[0][0] == 0 else 0


def state_path(path: Path) -> Path:
    """The path of the map of the partial file ``path``; the bytes it names are durable too."""
    return path.with_name(f"{path.name}.json")


def find_leftover(path: Path) -> tuple[Remote, Spans] | None:
    """The version and the bytes that earlier runs left in ``path``;
    None without any, or if the map is invalid.
    """
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
    """The number of bytes of ``remote`` that earlier runs left in ``path``
    and this run can reuse.
    """
    version, spans = find_leftover(path) or (remote, Spans())
    return 0 if remote.obstacle(version, has_digest=has_digest) else spans.size


def finish(path: Path, final: Path) -> None:
    """Give the complete partial file ``path`` its final name, durably; then remove its map.

    Raises:
        WriteError: the disk failed; the partial file can't be trusted.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        with writing(path):
            os.fsync(file)
    finally:
        os.close(file)
    path.replace(final)
    for folder in {path.parent, final.parent}:
        fsync_dir(folder)
    forget(path)


def forget(path: Path) -> None:
    """Remove the map of the partial file ``path``, and temporary map files of killed runs."""
    state_path(path).unlink(missing_ok=True)
    remove_abandoned(path.parent)


class PartialFile:
    """A file being fetched, which any thread may write to at any position.

    ``save`` makes the received bytes durable before it updates the map, so the map never names a
    missing byte, even after a crash.

    Args:
        path: the partial file; created if missing.
        remote: the version to fetch. The bytes of an earlier run are kept if they fit, otherwise
            thrown away.
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
        leftover = find_leftover(path)
        make_folder(path.parent)
        with writing(path):
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if leftover is None:
            self.reset()
            return
        version, spans = leftover
        if remote.obstacle(version, has_digest=has_digest):
            self.reset()
            return
        self._spans = spans
        if remote != version:
            self.save()

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
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
            # the system admits one writer at a time; the others spin
            with self._writing, space_errors(self.path):
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
            with writing(self.path):
                os.fsync(self._open_file())
        except PrepError:  # unsynced bytes may be lost, and a later fsync would not report it
            self._has_failed = True
            raise
        with space_errors(self.path), atomic_file(state_path(self.path)) as file:
            os.fchmod(file.fileno(), 0o600)  # while it is still empty
            state = {
                key: getattr(self.remote, key) for key in ("url", "total", "etag", "last_modified")
            }
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


# digests ------------------------------------------------------------------------------------------

_CHUNK = 4 << 20
_BEHIND = 64 << 20  # bytes behind the newest write; by then the disk has them
_LOOK = 0.1  # seconds between two checks whether to stop


class _Crc32c:
    """CRC32C as a digest: Google's storage gives it for files composed there."""

    def __init__(self) -> None:
        self._crc = 0

    def update(self, data: bytes | memoryview, /) -> None:
        self._crc = crc32c(data, self._crc)

    def hexdigest(self) -> str:
        return f"{self._crc:08x}"


Hasher = Union[_Crc32c, "hashlib._Hash"]
"""A digest that is updated chunk by chunk."""


def hasher(algorithm: str) -> Hasher:
    """A new hasher by the algorithm's name: crc32c, or one of hashlib's."""
    return _Crc32c() if algorithm == "crc32c" else hashlib.new(algorithm, usedforsecurity=False)


@functools.cache
def fastest(algorithms: tuple[str, ...]) -> str:
    """The algorithm that this processor computes fastest;
    the measurement takes a few milliseconds.
    """
    content = bytes(256 << 10)
    return min(
        algorithms,
        key=lambda name: min(timeit.repeat(lambda: hasher(name).update(content), number=1)),
    )


class FrontHasher:
    """A thread that hashes a partial file from its start, up to its first gap, while the rest
    arrives.

    It reads the bytes of an earlier run again first. hashlib lets other threads run meanwhile.
    Hashed pages are written out and leave memory, so arriving bytes and other programs can use
    them.

    Args:
        part: the file.
        algorithms: algorithms of the known digests; the fastest one is computed.
    """

    def __init__(self, part: PartialFile, algorithms: Iterable[str]) -> None:
        self.algorithm = fastest(tuple(algorithms))
        self._done = 0
        self._part = part
        self._hash = hasher(self.algorithm)
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> FrontHasher:
        self._work = self._pool.submit(self._hash_all)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()

    def digest(self, progress: Progress, label: str) -> str:
        """The digest (hex) of the file, once complete;
        ``progress`` gets a bar of the bytes left to hash.
        """
        total, shown = self._part.remote.total, self._done
        progress.begin(label, total, "B", shown)
        try:
            while shown < total:
                wait([self._work], _LOOK)
                done = self._done
                progress.advance(done - shown)
                shown = done
                if self._work.done():
                    self._work.result()
        finally:
            progress.end()
        return self._hash.hexdigest()

    def _hash_all(self) -> None:
        buffer = memoryview(bytearray(_CHUNK))
        with self._part.path.open("rb", buffering=0) as file:
            while self._done < self._part.remote.total and not self._stop.is_set():
                front = self._part.front(self._done, _LOOK)
                while self._done < front and not self._stop.is_set():
                    count = file.readinto(buffer[: front - self._done])
                    if not count:
                        raise WriteError(
                            f"{self._part.path} became shorter while it was being written",
                            "only this command may write to it",
                            f"stop the other program that writes to it {AGAIN}",
                        )
                    self._hash.update(buffer[:count])
                    self._give_back(file.fileno(), count)
                    self._done += count

    def _give_back(self, descriptor: int, count: int) -> None:
        """Write out the next ``count`` bytes; as many earlier bytes,
        already on the disk, leave memory.
        """
        for behind in (0, _BEHIND):
            start, stop = max(0, self._done - behind), self._done + count - behind
            if start < stop:
                begin_write_out(descriptor, start, stop - start)
