"""FrontHasher: hashes a file that is still arriving, up to its first gap."""

from __future__ import annotations

import functools
import hashlib
import threading
import timeit
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Union

from imagenet_prep.errors import WriteError
from imagenet_prep.fetch.partial import PartialFile
from imagenet_prep.model import Progress
from imagenet_prep.storage.durable import begin_write_out
from imagenet_prep.tfrecord import crc32c

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
    """The algorithm that this processor computes fastest; the measurement takes a few milliseconds."""
    content = bytes(256 << 10)
    return min(algorithms, key=lambda name: min(timeit.repeat(lambda: hasher(name).update(content), number=1)))


class FrontHasher:
    """A thread that hashes a partial file from its start, up to its first gap, while the rest arrives.

    It reads the bytes of an earlier run again first. hashlib lets other threads run meanwhile. Hashed pages are
    written out and leave memory, so arriving bytes and other programs can use them.

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
        """The digest (hex) of the file, once complete; ``progress`` gets a bar of the bytes left to hash."""
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
                        raise WriteError(f"{self._part.path} shrank while it was written")
                    self._hash.update(buffer[:count])
                    self._give_back(file.fileno(), count)
                    self._done += count

    def _give_back(self, descriptor: int, count: int) -> None:
        """Write out the next ``count`` bytes; as many earlier bytes, already on the disk, leave memory."""
        for behind in (0, _BEHIND):
            start, stop = max(0, self._done - behind), self._done + count - behind
            if start < stop:
                begin_write_out(descriptor, start, stop - start)
